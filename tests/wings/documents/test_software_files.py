"""Laws of the formats of software: only texts change, and each framework's own parser reads what was written."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import fluent.syntax.ast
import javaproperties
import openstep_plist
import pysubs2
import pytest
import yaml
from fluent.syntax import FluentParser
from fluent.syntax.serializer import serialize_pattern
from fluent.syntax.visitor import Visitor

from documents import by
from transduce.decoding.plan import Plan
from transduce.inline.placeholders import intact, mask
from transduce.system.errors import UserError
from transduce.text.formats import FILE_FORMATS, Document, read_document
from transduce.text.pairs import read_pairs

FOLDER = Path(__file__).parent / "software"
FILES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.*"))
BILINGUAL = (".csv", ".xcstrings")
MONOLINGUAL = [name for name in FILES if not name.endswith(BILINGUAL)]


def content(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


def read(name: str, target: str = "ru", source: str = "en") -> Document:
    return read_document(content(name), name, source, target, redo=True)


def shouted(document: Document) -> list[str]:
    """The texts in capitals, as a model would translate them: with their tags and placeholders."""
    plan = Plan(document.texts, "en", kinds=document.kinds)
    return [each.text for each in plan.assemble(by(str.upper, plan.sentences))]


def strings_in(value: Any) -> Iterator[str]:
    """The strings of a value that a parser has read."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from strings_in(each)


def android_strings(data: bytes) -> Iterator[str]:
    for element in ElementTree.fromstring(data).iter():
        if element.tag in ("string", "item"):
            shown = "".join(element.itertext())
            assert not re.search(r"(?<!\\)'", shown) or shown.startswith('"'), "aapt refuses it"
            yield re.sub(r"\\(?:([nt]|u....)|(.))", lambda sign: sign[2] or " ", shown)


def resx_strings(data: bytes) -> Iterator[str]:
    for value in ElementTree.fromstring(data).iter("value"):
        yield "".join(value.itertext())


def fluent_strings(data: bytes) -> Iterator[str]:
    """The patterns, in which a placeable counts as its words."""
    resource = FluentParser().parse(decoded(data).replace("\r\n", "\n"))
    for node in resource.body:
        assert not isinstance(node, fluent.syntax.ast.Junk), node.content
    found = list[str]()

    class Patterns(Visitor):
        def visit_Pattern(self, node: Any) -> None:  # noqa: N802
            found.append(re.sub(r"\s+", " ", serialize_pattern(node)))
            self.generic_visit(node)

    Patterns().visit(resource)
    yield from found


def subtitle_strings(data: bytes) -> Iterator[str]:
    text = data.decode("utf-8-sig").replace("Dialogue: broken", "")
    for event in pysubs2.SSAFile.from_string(text, "ass" if "v4.00+" in text else "ssa"):
        yield re.sub(r"\\[Nn]", " ", event.text)


def sbv_strings(data: bytes) -> Iterator[str]:
    for cue in re.split(r"(?:\r?\n){2}", decoded(data)):
        yield cue.strip().partition("\n")[2]


def ttml_strings(data: bytes) -> Iterator[str]:
    for element in ElementTree.fromstring(data).iter():
        if element.tag.endswith("}p"):
            yield " ".join(element.itertext())


def csv_strings(data: bytes) -> Iterator[str]:
    text = data.decode("utf-8-sig")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=text.count))
    widths = list(filter(None, map(len, rows_ := [*rows])))
    assert len({*widths}) == 1, "a row has another number of columns"
    for row in rows_:
        yield from row


PARSERS: dict[str, Callable[[bytes], Iterator[str]]] = {
    ".xml": android_strings,
    ".json": lambda data: strings_in(json.loads(data.decode("utf-8-sig"))),
    ".arb": lambda data: strings_in(json.loads(data)),
    ".strings": lambda data: strings_in(openstep_plist.loads(decoded(data))),
    ".properties": lambda data: strings_in(javaproperties.loads(decoded(data))),
    ".csv": csv_strings,
    ".resx": resx_strings,
    ".resw": resx_strings,
    ".ftl": fluent_strings,
    ".xcstrings": lambda data: strings_in(json.loads(data.decode("utf-8-sig"))),
    ".ass": subtitle_strings,
    ".ssa": subtitle_strings,
    ".sbv": sbv_strings,
    ".ttml": ttml_strings,
    ".yml": lambda data: strings_in(
        yaml.safe_load(decoded(data).replace(":year, :month, :day", ""))
    ),
    ".yaml": lambda data: strings_in(yaml.safe_load(data)),
}


def decoded(data: bytes) -> str:
    if data.startswith(b"\xff\xfe"):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def numbered(text: str) -> str:
    """A text of ICU with one way to write a number."""
    return re.sub(r"\{(\w+), NUMBER\}", r"{#\1}", text.upper())


def words(text: str) -> list[str]:
    """The words of a text without its tags and styles."""
    return re.findall(r"\w+", re.sub(r"<[^<>]*>|\{\\[^{}]*\}|\{a comment\}", "", text))


def test_every_format_has_five_files() -> None:
    folders = {Path(name).parent for name in FILES}
    assert len(folders) == 13
    for folder in folders:
        assert sum(Path(name).parent == folder for name in FILES) >= 5, folder
    assert {Path(name).suffix for name in FILES} == PARSERS.keys() <= FILE_FORMATS.keys()


@pytest.mark.parametrize("name", FILES)
def test_an_untranslated_file_keeps_its_bytes(name: str) -> None:
    document = read(name)
    assert document.texts
    assert document.write([""] * len(document.texts)) == content(name)
    lines = content(name).count(b"\n") + 1
    assert all(1 <= line <= lines for line in document.lines)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("target", ["de", "ru", "ja"])
def test_the_frameworks_parser_reads_the_translations(name: str, target: str) -> None:
    document = read(name, target)
    translations = shouted(document)
    for text, translation, kind in zip(document.texts, translations, document.kinds, strict=True):
        assert intact(text, translation, kind), "a placeholder is lost"
    shown = [words(string) for string in PARSERS[Path(name).suffix](document.write(translations))]
    for translation, kind in zip(translations, document.kinds, strict=True):
        plain = mask(translation, kind).text if kind.markup else translation
        if "{#" not in plain and name[:3] != "arb":
            assert words(plain) in shown or "&" in plain


@pytest.mark.parametrize("name", MONOLINGUAL)
@pytest.mark.parametrize("target", ["de", "ru"])
def test_what_was_written_is_read_again(name: str, target: str) -> None:
    document = read(name, target)
    translations = shouted(document)
    written = document.write(translations)
    again = read_document(written, name, target, target)
    assert [*map(numbered, again.texts)] == [*map(numbered, translations)]
    assert again.write(again.texts) == written, "a text is not written as it was"


@pytest.mark.parametrize("name", FILES)
def test_only_texts_change(name: str) -> None:
    """Without the characters of the texts, the file and its translation are the same."""
    document = read(name, "en")
    original = decoded(content(name))
    marked = decoded(document.write([f"QQ{text}" for text in document.texts]))
    assert marked.count("QQ") == len(document.texts)
    if "\\" not in original and "plural," not in original and not name.endswith(ADDED):
        assert marked.replace("QQ", "").split() == original.split()


# Files to which a translation into English adds a language, a column, a plural form or an escape.
ADDED = (*BILINGUAL, "windows.strings", "minified.arb", "selectors.ftl")


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith(BILINGUAL)])
def test_a_file_with_both_languages_is_a_corpus(name: str, tmp_path: Path) -> None:
    document = read(name, "de")
    path = tmp_path / Path(name).name
    path.write_bytes(document.write(shouted(document)))
    pairs = list(read_pairs([str(path)], ("en", "de")))
    spoken = [pair for pair in pairs if pair.source.strip()]
    assert len(spoken) == len(document.texts)
    for pair in spoken:
        assert sorted(words(pair.source.upper())) == sorted(words(pair.target.upper()))
    again = read_document(path.read_bytes(), name, "en", "de")
    assert not again.texts, "nothing is left to translate"


@pytest.mark.parametrize("name", MONOLINGUAL)
def test_two_files_are_a_corpus(name: str, tmp_path: Path) -> None:
    document = read(name, "de")
    suffix = Path(name).suffix
    source = tmp_path / f"a{suffix}"
    target = tmp_path / f"b{suffix}"
    source.write_bytes(content(name))
    target.write_bytes(document.write(shouted(document)))
    pairs = list(read_pairs([str(source), str(target)], ("en", "de")))
    assert pairs
    for pair in pairs:
        if "plural," not in pair.source:
            assert sorted(words(pair.source.upper())) == sorted(words(pair.target.upper()))
    with pytest.raises(UserError, match="holds one language"):
        read_pairs([str(source)])
    lines = content(name).count(b"\n") + 1
    assert all(pair.origin.line <= lines for pair in pairs)
