"""Times the translation of a .docx file against the translation of its sentences alone.

Makes a document from the sentences of a file, with LibreOffice: headings, bold and italic words, links, lists, tables
and footnotes. In each round, translates the document, and its sentences as plain lines, with the same translator. The
times are processor times of the whole process. `--share` is the share of sentences with a word in another style.

    python benchmarks/documents.py demo/model demo/text/train.en [--share 0.2]
"""

import itertools
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from html import escape
from pathlib import Path

from measuring import ratio, run_script

from transduce import load
from transduce.decoding.types import TranslationOptions
from transduce.text.formats import read_document
from transduce.wings.documents.archive import ArchiveDocument
from transduce.wings.documents.document import translate_document

LINES_OF_PAGE = 40
SENTENCES_OF_PARAGRAPH = 5
MARKS = ("<b>{}</b>", "<i>{}</i>", '<a href="https://example.org/">{}</a>', "{}<sup>1</sup>")


def marked(sentence: str, draw: random.Random, share: float) -> str:
    """A sentence that has, with the probability `share`, one of its words in another style."""
    words = escape(sentence).split()
    if draw.random() >= share:
        return " ".join(words)
    place = draw.randrange(len(words))
    words[place] = draw.choice(MARKS).format(words[place])
    return " ".join(words)


def page(sentences: list[str], pages: int, draw: random.Random, share: float) -> Iterator[str]:
    """The HTML of a document with at least so many pages."""
    endless = itertools.cycle(sentences)
    for number in range(pages):
        yield f"<h1>{escape(next(endless))}</h1>"
        for _ in range(LINES_OF_PAGE // SENTENCES_OF_PARAGRAPH - 1):
            its = [next(endless) for _ in range(SENTENCES_OF_PARAGRAPH)]
            yield f"<p>{' '.join(marked(each, draw, share) for each in its)}</p>"
        cells = "".join(f"<td>{escape(next(endless))}</td>" for _ in range(2))
        item = marked(next(endless), draw, share)
        yield f"<ul><li>{item}</li></ul><table><tr>{cells}</tr></table>"
        yield f'<p style="page-break-before: always">{number + 1}.</p>'


def make(sentences: list[str], pages: int, seed: int, share: float) -> bytes:
    """A .docx file, which LibreOffice makes of HTML."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        html = "".join(page(sentences, pages, random.Random(seed), share))
        (folder / "a.html").write_text(f"<html><body>{html}</body></html>", "utf-8")
        profile = f"-env:UserInstallation=file://{folder}/profile"
        kind = "docx:MS Word 2007 XML"
        command = ["soffice", profile, "--headless", "--convert-to", kind, "--outdir", folder]
        subprocess.run([*command, folder / "a.html"], check=True, capture_output=True)
        return (folder / "a.docx").read_bytes()


def main(
    model: Path,
    file: Path,
    /,
    *,
    pages: int = 100,
    rounds: int = 3,
    seed: int = 1,
    share: float = 1.0,
) -> None:
    """Print the times of each round, and their ratio."""
    translator = load(model)
    source, target = translator.require_direction()
    sentences = [line for line in file.read_text("utf-8").splitlines() if line.strip()]
    content = make(sentences, pages, seed, share)
    document = read_document(content, "a.docx", source, target)
    assert isinstance(document, ArchiveDocument)
    breaks = document.archive.read("word/document.xml").count(b'<w:br w:type="page"/>')
    plan = translator.plan(document.texts, TranslationOptions(sentences=True), kinds=document.kinds)
    lines = list(plan.sentences)
    print(
        f"at least {breaks} pages, {len(content):,} bytes, {len(document.texts):,} texts, "
        f"{len(lines):,} sentences"
    )
    whole = list[float]()
    alone = list[float]()
    for number in range(rounds):
        for times in (whole, alone) if number % 2 else (alone, whole):
            begin = time.process_time()
            if times is whole:
                translate_document(translator, content, "a.docx", source, target)
            else:
                list(translator.translate_lines(lines))
            times.append(time.process_time() - begin)
        print(f"document {whole[-1]:.1f} s, sentences alone {alone[-1]:.1f} s", flush=True)
    print(f"ratio: {ratio(whole, alone)}")


if __name__ == "__main__":
    run_script(main, __doc__)
