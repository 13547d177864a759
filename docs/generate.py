"""Write the sources of the documentation site into a folder: `python docs/generate.py build/docs`.

These are the files of docs/, CONTRIBUTING.md, CHANGELOG.md and the results of the benchmarks, and what is generated
from the code: the help of every command, the list of options, and a page of the Python API for each folder of the
package. A page marks the places: `<!-- generated: commands -->`, `<!-- generated: options -->`,
`<!-- code: transduce.model.transformer.Residual -->`, `<!-- sentence: losses -->`. Equations in LaTeX
(blocks of the language `math`) become MathML.
The site leaves out what stands between `<!-- source only -->` and `<!-- end -->`: it is for readers of the file.
"""

import argparse
import html
import importlib
import inspect
import io
import json
import os
import posixpath
import re
import shutil
import textwrap
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

from latex2mathml.converter import convert
from sentence_tables import SENTENCE, table

from transduce import cli
from transduce.commands.options import options as print_options
from transduce.wings.inspection.page import packaged

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
FROM_ROOT = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}  # file of the repository -> page
# Folders of the repository -> folders of the site
FOLDERS = {"docs/": "", "benchmarks/results/": "results/"}
GENERATED = re.compile(r"<!-- generated: (commands|options|notebook) -->")
NOTEBOOK = "paper/beside.ipynb"
SOURCE_ONLY = re.compile(r"<!-- source only -->\n.*?<!-- end -->\n", re.DOTALL)
ALERT = re.compile(r"^> \[!([A-Z]+)\]\n((?:>.*\n)+)", re.MULTILINE)  # as GitHub shows it
CODE = re.compile(r"<!-- code: ([\w.]+) -->")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
NUMBERS = re.compile(r"<!-- sentence: (\w+) -->")
MATH = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)  # as GitHub shows it
FIGURE = re.compile(r"^!\[([^\]]*)\]\(\S*images/paper/([\w-]+)\.svg\)$", re.MULTILINE)
STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]+)(#[^)\s]*)?\)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder to write; it is emptied first")
    folder: Path = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    not_pages = shutil.ignore_patterns("*.py", "*.md", "__pycache__")
    for source, target in FOLDERS.items():
        shutil.copytree(ROOT / source, folder / target, ignore=not_pages, dirs_exist_ok=True)
    for name in ("drawing.js", "drawing.css"):
        (folder / "assets" / name).write_text(packaged(name), encoding="utf-8")
    from notebook import notebook_json  # imports this file

    (folder / NOTEBOOK).write_text(notebook_json(), encoding="utf-8")
    for page, text in pages():
        path = folder / page
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def pages() -> Iterator[tuple[str, str]]:
    """Every page of the site: its path and its Markdown."""
    paths = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.md")))
    sources = [path.relative_to(ROOT).as_posix() for path in paths]
    for source in [*sources, *FROM_ROOT]:
        text = SOURCE_ONLY.sub("", (ROOT / source).read_text(encoding="utf-8"))
        page = _page(source)
        parts = FENCED.split(text)
        parts[::2] = [
            LINK.sub(lambda link, source=source: _link(link, source), part) for part in parts[::2]
        ]
        parts[::2] = [
            FIGURE.sub(lambda mark: figure(mark[2], mark[1]), part) for part in parts[::2]
        ]
        parts[::2] = [ALERT.sub(_admonition, part) for part in parts[::2]]
        parts_of = {"commands": commands, "options": options, "notebook": notebook_link}
        text = GENERATED.sub(lambda mark, of=parts_of: of[mark[1]](), "".join(parts))
        text = NUMBERS.sub(lambda mark: numbers(mark[1]), text)
        text = MATH.sub(lambda block: equation(block[1]), text)
        yield page, CODE.sub(lambda mark: code(mark[1]), text)
    for folder in folders():
        yield f"api/{folder}.md", "\n".join(_api(folder))


def folders() -> list[str]:
    """The folders of the core, each wing, and the lab; `wings.export` is one."""
    package = SOURCE / "transduce"
    places = sorted([*package.glob("*/__init__.py"), *package.glob("wings/*/__init__.py")])
    return [*(".".join(place.parent.relative_to(package).parts) for place in places), "lab"]


def commands() -> str:
    """The help of every command."""
    text = cli.application().generate_docs(heading_level=1)
    sections = re.split(r"^## transduce (?=\w+$)", text, flags=re.MULTILINE)[1:]
    return "\n".join(f"## {section.strip()}\n" for section in sections)


def options() -> str:
    """A heading for each option that `transduce options` lists, which the search finds and links can lead to."""
    with redirect_stdout(io.StringIO()) as printed:
        print_options(json=True)
    lines: list[str] = []
    section = ""
    for option in json.loads(printed.getvalue()):
        name = option["name"]
        if name.partition(".")[0] != section:
            section = name.partition(".")[0]
            lines.append(f"## Section {section} {{ #{section} }}\n")
        default = option["default"]
        if not isinstance(default, str) or not default:
            default = json.dumps(default)
        facts = [option["type"], f"default `{default}`"]
        facts += [f"paper `{option['paper']}`"] if option["paper"] else []
        facts += [f"in {option['unit']}"] if option["unit"] else []
        lines += [
            f"### {name} {{ #{name} }}\n",
            f"{option['meaning']}\n",
            f"{' · '.join(facts)}\n{{ .facts }}\n",
        ]
    return "\n".join(lines)


def notebook_link() -> str:
    """A link to the notebook of the pages about the paper, beside their first page."""
    return f"[Download the notebook]({posixpath.basename(NOTEBOOK)})."


def code(name: str) -> str:
    """The source of a class or function, as a code block."""
    module, _, attribute = name.rpartition(".")
    try:
        owner = importlib.import_module(module)
    except ModuleNotFoundError:  # a method
        module, _, owner_name = module.rpartition(".")
        owner = getattr(importlib.import_module(module), owner_name)
    return f"```python\n{textwrap.dedent(inspect.getsource(getattr(owner, attribute)))}```"


def numbers(name: str) -> str:
    """A table of the sentence that the pages follow, or a part of the page that a script draws."""
    if name not in ("picture", "search"):
        return table(name)
    place = {"picture": "drawing", "search": "search"}[name]
    data = json.dumps(SENTENCE[name], separators=(",", ":")).replace("<", "\\u003c")
    parts = [
        f'<div id="{place}"><noscript><p>A script draws this part.</p></noscript></div>',
        f'<script type="application/json" id="{place}-data">{data}</script>',
    ]
    if name == "picture":
        parts.append('<link rel="stylesheet" href="../../assets/drawing.css">')
        parts += [
            f'<script src="../../assets/{file}.js"></script>' for file in ("drawing", "companion")
        ]
    return "\n\n".join(parts)


def equation(latex: str) -> str:
    """An equation as MathML, which browsers show without a script."""
    mathml = convert(" ".join(latex.split()), display="block")
    return f'<div class="equation">{mathml}</div>'


def figure(name: str, description: str) -> str:
    """A figure as part of the page: with the page's colours, and with links."""
    svg = (ROOT / "docs" / "images" / "paper" / f"{name}.svg").read_text(encoding="utf-8")
    role = "group" if "<a " in svg else "img"  # what is in an image can't be a link
    words = html.escape(" ".join(description.split()))
    svg = STYLE.sub("", svg).replace("<svg", f'<svg role="{role}" aria-label="{words}"', 1)
    return f'<div class="figure">{" ".join(svg.split())}</div>'


def _admonition(alert: re.Match[str]) -> str:
    """A note in Markdown for mkdocs."""
    text = re.sub("^> ?", "", alert[2], flags=re.MULTILINE)
    return f"!!! {alert[1].lower()}\n\n{textwrap.indent(text, '    ')}"


def _page(source: str) -> str:
    """The page that a file of the repository becomes."""
    if source in FROM_ROOT:
        return FROM_ROOT[source]
    folder = next(folder for folder in FOLDERS if source.startswith(folder))
    return FOLDERS[folder] + source.removeprefix(folder)


def _link(link: re.Match[str], source: str) -> str:
    """A link of a file, as a link of its page. A file without a page is named instead."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
    if target not in FROM_ROOT and not target.startswith(tuple(FOLDERS)):
        return f"] (`{target}`)"
    path = os.path.relpath(_page(target), posixpath.dirname(_page(source)) or ".")
    return f"]({path}{link[2] or ''})"


def _api(folder: str) -> Iterator[str]:
    """A page for the modules of a folder of the package."""
    name = "transduce_lab" if folder == "lab" else f"transduce.{folder}"
    yield f"---\nsearch:\n  boost: 0.05\n---\n\n# {name}\n"
    place = SOURCE.joinpath(*name.split("."))
    for path in sorted(place.glob("*.py") if folder == "wings" else place.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        if not module.endswith("__init__"):
            yield f"::: {module}\n    options: {{heading_level: 2, show_root_full_path: true}}\n"


if __name__ == "__main__":
    main()
