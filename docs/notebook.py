"""Write the pages about the paper as a Jupyter notebook: `python docs/notebook.py beside.ipynb`.

The examples become cells with the outputs that the pages show. Code of the package and figures are part of the
notebook. The cells of answers are folded.
"""

import argparse
import ast
import base64
import doctest
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from generate import CODE, FIGURE, MATH, NUMBERS, ROOT, code
from sentence_tables import table

PAGES = ("background", "model", "layers", "training", "results")
FOLDED = {"jupyter": {"source_hidden": True}, "tags": ["answer"]}
FRONT = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
EXAMPLE = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TAG = re.compile(r"^(?:</?div[^>]*>)+$\n?", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:)[^)]*\)")
ANSWER = re.compile(r"(<details markdown><summary>Answer</summary>|</details>)")
BEGIN = """# The paper beside the code

Sections of "Attention Is All You Need" (Vaswani et al., 2017), with equations, code, numbers and exercises. Try an
exercise before you unfold its answer. The first cell goes to the folder of the repository, where the numbers of the
example sentence are."""
SETUP = """import os
from pathlib import Path

import transduce

os.chdir(Path(transduce.__file__).parents[2])"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path, help="the notebook to write")
    out: Path = parser.parse_args().out
    out.write_text(notebook_json(), encoding="utf-8")


def notebook_json() -> str:
    """The notebook as the text of its file."""
    return json.dumps(notebook(), ensure_ascii=False, indent=1) + "\n"


def notebook() -> dict[str, Any]:
    """The notebook, in Jupyter's format 4.5."""
    cells = [text_cell(BEGIN), code_cell(SETUP, None)]
    for page in PAGES:
        text = (ROOT / "docs" / "paper" / "beside" / f"{page}.md").read_text(encoding="utf-8")
        cells += cells_of(FRONT.sub("", text))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def cells_of(page: str) -> Iterator[dict[str, Any]]:
    """The cells of a page."""
    folded = False
    for part in ANSWER.split(page):
        if ANSWER.fullmatch(part):
            folded = part.startswith("<details")
            continue
        for number, piece in enumerate(EXAMPLE.split(part)):
            if number % 2:
                yield from examples(piece, folded=folded)
            elif piece.strip():
                yield from texts(piece, folded=folded)


def texts(text: str, *, folded: bool) -> Iterator[dict[str, Any]]:
    """The cell of a text, and a cell for each of its figures."""
    text = CODE.sub(lambda mark: code(mark[1]), TAG.sub("", text))
    text = NUMBERS.sub(lambda mark: table(mark[1]), text)
    text = MATH.sub(lambda block: f"$${' '.join(block[1].split())}$$", text)
    parts = FIGURE.split(text)
    for place in range(0, len(parts), 3):
        words = LINK.sub(r"\1", parts[place]).strip()
        if words and folded:
            words = f"<details><summary>Answer</summary>\n\n{words}\n\n</details>"
        if words:
            yield text_cell(words)
        if place + 2 < len(parts):
            description, name = parts[place + 1 : place + 3]
            cell = text_cell(f"![{' '.join(description.split())}](attachment:{name}.svg)")
            svg = (ROOT / "docs" / "images" / "paper" / f"{name}.svg").read_bytes()
            cell["attachments"] = {f"{name}.svg": {"image/svg+xml": base64.b64encode(svg).decode()}}
            yield cell


def examples(block: str, *, folded: bool) -> Iterator[dict[str, Any]]:
    """The cells of a block of examples: one for each output."""
    begun = ""
    for example in doctest.DocTestParser().get_examples(block):
        begun += example.source
        if example.want:
            yield code_cell(begun, example.want, folded=folded)
            begun = ""
    if begun:
        yield code_cell(begun, None, folded=folded)


def text_cell(text: str) -> dict[str, Any]:
    """A cell with Markdown."""
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def code_cell(source: str, output: str | None, *, folded: bool = False) -> dict[str, Any]:
    """A cell with Python and what it shows."""
    source = source.rstrip("\n")
    outputs = list[dict[str, Any]]()
    if output is not None and is_value(source):
        data = {"text/plain": output.rstrip("\n")}
        outputs = [
            {"output_type": "execute_result", "execution_count": None, "metadata": {}, "data": data}
        ]
    elif output is not None:
        outputs = [{"output_type": "stream", "name": "stdout", "text": output}]
    return {
        "cell_type": "code",
        "execution_count": None,
        "metadata": FOLDED if folded else {},
        "outputs": outputs,
        "source": source,
    }


def is_value(source: str) -> bool:
    """Whether a cell ends with an expression whose value is shown, and not printed."""
    last = ast.parse(source).body[-1]
    if not isinstance(last, ast.Expr):
        return False
    return not (isinstance(last.value, ast.Call) and ast.unparse(last.value.func) == "print")


if __name__ == "__main__":
    main()
