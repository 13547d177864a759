"""The registry of formats: a format is a reader in a module of its own and a line in the table."""

from pathlib import Path

import pytest

from transduce.system.errors import UserError
from transduce.system.registry import load
from transduce.text.formats import (
    FILE_FORMATS,
    PLAIN_TEXT,
    Format,
    bilingual_suffixes,
    document_suffixes,
    read_document,
)
from transduce.text.pairs import Origin, Pair, read_pairs

PROPERTIES = '''
"""Java's .properties files: a key, "=" and a text in each line; as a corpus, "source|target" is the text."""

import re

from transduce.text.plain import read_lines
from transduce.wings.documents.document import Document, Slot, decode

ENTRY = re.compile(r"(?m)^[^#=\\n]+=(?P<text>.+)$")


def read_properties(file):
    text, codec = decode(file.content, file.name)
    slots = [
        Slot(entry["text"], entry["text"], text.count("\\n", 0, entry.start()) + 1, *entry.span("text"), str)
        for entry in ENTRY.finditer(text)
    ]
    return Document(file.name, text, codec, tuple(slots))


def read_property_pairs(file):
    for line, text in enumerate(read_lines(file.path, lenient=file.lenient), 1):
        if entry := ENTRY.match(text):
            source, _, target = entry["text"].partition("|")
            yield source, target, line
'''


@pytest.fixture
def properties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "java_properties.py").write_text(PROPERTIES)
    monkeypatch.syspath_prepend(tmp_path)
    readers = Format(
        "java_properties:read_property_pairs", document="java_properties:read_properties"
    )
    monkeypatch.setitem(FILE_FORMATS, ".properties", readers)


@pytest.mark.usefixtures("properties")
def test_a_new_format_is_a_module_and_a_line(tmp_path: Path) -> None:
    document = read_document(b"# a comment\nhello = Hello\nbye=Bye", "a.properties", "en", "de")
    assert (document.texts, document.lines, document.kinds) == (
        [" Hello", "Bye"],
        [2, 3],
        [PLAIN_TEXT, PLAIN_TEXT],
    )
    assert (
        document.write([" Hallo", "Tschüss"]) == "# a comment\nhello = Hallo\nbye=Tschüss".encode()
    )
    file = tmp_path / "b.properties"
    file.write_text("# a comment\nhello=Hello|Hallo\n")
    pair = Pair("Hello", "Hallo", Origin(str(file), 2))
    assert list(read_pairs([str(file)])) == [pair]
    assert list(read_pairs([str(tmp_path), str(file)])) == [pair, pair]
    assert ".properties" in bilingual_suffixes() and ".properties" in document_suffixes()


def test_without_its_line_a_format_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"its suffix \.foo is unknown\. Known suffixes: \.txt, "):
        read_document(b"", "a.foo", "en", "de")
    with pytest.raises(UserError, match=r"can't be translated: it is a Java properties file\."):
        read_document(b"", "a.properties", "en", "de")
    (tmp_path / "b.properties").touch()
    with pytest.raises(UserError, match="the suffix does not name a bilingual format"):
        read_pairs([str(tmp_path / "b.properties")])


def test_every_reader_of_the_table_exists() -> None:
    readers = [
        reader
        for form in FILE_FORMATS.values()
        for reader in (form.pairs, form.parallel, form.document)
        if reader
    ]
    assert len(readers) > 15 and all(map(callable, map(load, readers)))
