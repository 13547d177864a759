"""The registry of formats: a format is a reader in a module of its own and a line in the table."""

from pathlib import Path

import pytest

from transduce.system.errors import UserError
from transduce.system.registry import load
from transduce.text.formats import (
    FILE_FORMATS,
    PLAIN_TEXT,
    DocumentFile,
    Format,
    TextKind,
    bilingual_suffixes,
    document_suffixes,
    format_of,
    read_document,
)
from transduce.text.pairs import Origin, Pair, read_pairs

IMAGINED = '''
"""A format of an imagined program: a key, "=" and a text in each line; as a corpus, "source|target" is the text."""

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
def imagined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "imagined_format.py").write_text(IMAGINED)
    monkeypatch.syspath_prepend(tmp_path)
    readers = Format(
        "imagined_format:read_property_pairs", document="imagined_format:read_properties"
    )
    monkeypatch.setitem(FILE_FORMATS, ".imagined", readers)


@pytest.mark.usefixtures("imagined")
def test_a_new_format_is_a_module_and_a_line(tmp_path: Path) -> None:
    document = read_document(b"# a comment\nhello = Hello\nbye=Bye", "a.imagined", "en", "de")
    assert (document.texts, document.lines, document.kinds) == (
        [" Hello", "Bye"],
        [2, 3],
        [PLAIN_TEXT, PLAIN_TEXT],
    )
    assert (
        document.write([" Hallo", "Tschüss"]) == "# a comment\nhello = Hallo\nbye=Tschüss".encode()
    )
    file = tmp_path / "b.imagined"
    file.write_text("# a comment\nhello=Hello|Hallo\n")
    pair = Pair("Hello", "Hallo", Origin(str(file), 2))
    assert list(read_pairs([str(file)])) == [pair]
    assert list(read_pairs([str(tmp_path), str(file)])) == [pair, pair]
    assert ".imagined" in bilingual_suffixes() and ".imagined" in document_suffixes()


def test_without_its_line_a_format_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"its suffix \.foo is unknown\. Known suffixes: \.txt, "):
        read_document(b"", "a.foo", "en", "de")
    with pytest.raises(UserError, match=r"can't be translated: it is an INI file\."):
        read_document(b"", "a.ini", "en", "de")
    (tmp_path / "b.imagined").touch()
    with pytest.raises(UserError, match="the suffix does not name a bilingual format"):
        read_pairs([str(tmp_path / "b.imagined")])


TMX = """<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>Hello</seg></tuv>
<tuv xml:lang="de"><seg>Hallo</seg></tuv></tu></body></tmx>"""
XLIFF = """<xliff version="1.2"><file source-language="en" target-language="de" original="a" datatype="plaintext">
<body><trans-unit id="1"><source>Hello</source><target>Hallo</target></trans-unit></body></file></xliff>"""
PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "Hello"\nmsgstr "Hallo"\n'
PAGE = "<html><body><p>{}</p></body></html>"
SUBTITLES = "1\n00:00:01,000 --> 00:00:02,000\n{}\n"
WEB_SUBTITLES = "WEBVTT\n\n00:01.000 --> 00:02.000\n{}\n"
CATALOG = """{"sourceLanguage": "en", "strings": {"Hello": {"localizations": {"de": {"stringUnit":
{"state": "translated", "value": "Hallo"}}}}}}"""
BILINGUAL = {
    ".tsv": "Hello\tHallo\n",
    ".tab": "Hello\tHallo\n",
    ".txt": "Hello\tHallo\n",
    ".jsonl": '{"source": "Hello", "target": "Hallo"}\n',
    ".tmx": TMX,
    ".xlf": XLIFF,
    ".xliff": XLIFF,
    ".po": PO,
    ".csv": "en,de\nHello,Hallo\n",
    ".xcstrings": CATALOG,
}
EVENTS = "[Events]\nFormat: Start, End, Text\nDialogue: 0:00:01.00,0:00:02.00,{}\n"
ANDROID = '<resources><string name="a">{}</string></resources>'
MONOLINGUAL = dict.fromkeys((".html", ".htm", ".xhtml"), PAGE) | {
    ".srt": SUBTITLES,
    ".vtt": WEB_SUBTITLES,
    ".json": '{"a": "{}"}',
    ".arb": '{"a": "{}"}',
    ".xml": ANDROID,
    ".strings": '"a" = "{}";\n',
    ".properties": "a={}\n",
    ".resx": '<root><data name="a"><value>{}</value></data></root>',
    ".resw": '<root><data name="a"><value>{}</value></data></root>',
    ".ftl": "a = {}\n",
    ".ass": EVENTS,
    ".ssa": EVENTS,
    ".sbv": "0:00:01.000,0:00:02.000\n{}\n",
    ".ttml": '<tt><p begin="1s" end="2s">{}</p></tt>',
    ".yml": "en:\n  a: {}\n",
    ".yaml": "en:\n  a: {}\n",
}
PLAIN = {".tab", ".txt"}  # two such files are lines of plain text


@pytest.mark.parametrize("suffix", [*BILINGUAL, *MONOLINGUAL, "", ".en"])
def test_a_pair_is_read_from_files_of_every_format(tmp_path: Path, suffix: str) -> None:
    content = BILINGUAL.get(suffix, MONOLINGUAL.get(suffix, "{}\n"))
    files = [tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"]
    if suffix in BILINGUAL:
        files[0].write_text(content, encoding="utf-8")
        [pair] = read_pairs([str(files[0])], ("en", "de"))
        assert pair[:2] == ("Hello", "Hallo")
    if suffix in PLAIN or suffix not in BILINGUAL:
        for file, text in zip(files, ("Hello", "Hallo"), strict=True):
            file.write_text(
                ("{}\n" if suffix in PLAIN else content).replace("{}", text), encoding="utf-8"
            )
        [pair] = read_pairs(list(map(str, files)), ("en", "de"))
        assert pair[:2] == ("Hello", "Hallo")
    assert (suffix in bilingual_suffixes()) == (suffix in BILINGUAL.keys() - PLAIN)


@pytest.mark.parametrize(
    "suffix",
    [".txt", ".tmx", ".xlf", ".XLIFF", ".po", ".pot", ".csv", ".xcstrings", *MONOLINGUAL],
)
def test_a_text_is_translated_in_documents_of_every_format(suffix: str) -> None:
    content = MONOLINGUAL.get(suffix) or BILINGUAL.get(suffix.lower(), PO)
    if suffix == ".txt":
        content = "Hello\n"
    content = content.replace("{}", "Hello")
    document = read_document(content.encode(), f"a{suffix}", "en", "de", redo=True)
    assert document.texts == ["Hello"] and suffix.lower() in document_suffixes()
    assert b"Guten Tag" in document.write(["Guten Tag"])
    assert format_of(f"a{suffix}").is_document == (suffix != ".txt")


@pytest.mark.parametrize(
    ("suffix", "content", "kind"),
    [
        (".txt", "Hello\n", TextKind()),
        (".html", PAGE.format("Hello"), TextKind(markup=True)),
        (".xlf", XLIFF.replace("Hello", '<g id="1">Hello</g> you'), TextKind(True, True, True)),
        (".po", PO, TextKind(message=True)),
    ],
)
def test_a_format_says_what_its_texts_may_contain(
    suffix: str, content: str, kind: TextKind
) -> None:
    document = read_document(content.encode(), f"a{suffix}", "en", "de", redo=True)
    assert document.kinds == [kind]


def test_only_these_formats_are_documents() -> None:
    names = {
        ".txt",
        ".tmx",
        ".xlf",
        ".xliff",
        ".po",
        ".pot",
        ".csv",
        ".xlsx",
        ".xcstrings",
        *MONOLINGUAL,
    }
    office = {".docx", ".pptx", ".odt", ".odp", ".epub", ".md", ".markdown"}
    assert {*document_suffixes()} == names | office
    for name in ("a.tsv", "a.jsonl", "a", "a.en"):
        assert not format_of(name).is_document and not format_of(name).symbols
    assert format_of("dir.po/a.TMX.gz") == FILE_FORMATS[".tmx"] and format_of("a.gz") == Format()
    assert format_of("a.mrg").symbols and ".mrg" in bilingual_suffixes()  # of the lab
    for suffix in (".ods", ".xls"):
        with pytest.raises(UserError, match=r"can't be translated"):
            read_document(b"", f"a{suffix}", "en", "de")


def test_a_reader_gets_all_that_is_known_about_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = "transduce.text.formats:DocumentFile._make"  # returns its argument
    monkeypatch.setitem(FILE_FORMATS, ".same", Format(document=reader))
    assert read_document(b"x", "A.SAME", "en", "de") == DocumentFile(
        content=b"x", name="A.SAME", source="en", target="de", redo=False, needs_review=False
    )
    for redo in (True, False):
        found = read_document(b"x", "a.same", "en", "de", redo=redo, needs_review=not redo)
        assert (found.redo, found.needs_review) == (redo, not redo)


def test_every_reader_of_the_table_exists() -> None:
    readers = [
        reader
        for form in FILE_FORMATS.values()
        for reader in (form.pairs, form.parallel, form.document)
        if reader
    ]
    assert len(readers) > 15 and all(map(callable, map(load, readers)))
