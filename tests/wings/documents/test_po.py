"""Tests of transduce/wings/documents/po.py."""

from collections.abc import Sequence
from itertools import chain

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents import PO, read, written
from transduce.system.errors import UserError
from transduce.wings.documents.po import CREDITS, read_translated_po

STRINGS = st.text(
    st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]) | st.sampled_from('\n\t\\"')
)


PARTS = st.sampled_from(
    ["word", "a\nline", '"quoted"', "back\\slash", "tab\t", "end\n", "ünd", "x" * 90]
)


WRAPPED = st.lists(PARTS).map(" ".join)


MESSAGES = st.lists(
    st.tuples(STRINGS | WRAPPED, STRINGS | WRAPPED, STRINGS, st.booleans()).filter(
        lambda each: bool(each[0])
    ),
    unique_by=lambda each: each[0],
)


def catalogue(messages: Sequence[tuple[str, str, str, bool]]) -> str:
    """A file as polib writes it."""
    file = polib.POFile()
    file.metadata = {"Language": "de", "Content-Type": "text/plain; charset=utf-8"}
    for source, target, context, fuzzy in messages:
        entry = polib.POEntry(
            msgid=source, msgstr=target, msgctxt=context or None, flags=["fuzzy"] if fuzzy else []
        )
        file.append(entry)
    return str(file)


@given(MESSAGES, st.data())
def test_a_po_file_is_read_as_polib_reads_it(
    messages: list[tuple[str, str, str, bool]], data: st.DataObject
) -> None:
    text = catalogue(messages)
    document = read("a.po", text)
    entries = polib.pofile(text)
    clear = [entry for entry in entries if not entry.fuzzy]
    assert [pair[:2] for pair in read_translated_po([text.encode()], "a.po", "de")] == [
        (e.msgid, e.msgstr) for e in clear if e.msgstr
    ]
    missing = [e for e in clear if not e.msgstr and e.msgid.strip() and e.msgid not in CREDITS]
    assert document.texts == [entry.msgid for entry in missing]
    translations = [data.draw(STRINGS | WRAPPED) for _ in missing]
    filled = polib.pofile(document.write(translations).decode())
    for entry, translation in zip(missing, translations, strict=True):
        entry.msgstr = translation
    assert [(e.msgid, e.msgstr, e.msgctxt, e.flags) for e in filled] == [
        (e.msgid, e.msgstr, e.msgctxt, e.flags) for e in entries
    ]


def test_only_untranslated_messages_are_filled() -> None:
    document = read("a.po", PO)
    assert document.texts == [
        'Close "it"\n',
        "%d file",
        "%d files",
        "A long message that goes on over two lines.",
    ]
    assert list(read_translated_po([PO.encode()], "a.po", "de")) == [("Open", "Öffnen", 9)]
    filled = written(document, str.upper)
    assert [line for line in filled.split("\n") if line not in PO.split("\n")] == [
        'msgstr "CLOSE \\"IT\\"\\n"',
        'msgstr[0] "%D FILE"',
        'msgstr[1] "%D FILES"',
        'msgstr "A LONG MESSAGE THAT GOES ON OVER TWO LINES."',
    ]
    assert read("a.po", filled).texts == []
    assert len(read("a.po", PO, redo=True).texts) == 5


def test_blank_lines_end_no_message() -> None:
    text = 'msgid "a"\n\n  \nmsgstr ""\n\n"b"\n\nmsgid "c"\n\nmsgstr "d"'
    assert [pair[:2] for pair in read_translated_po([text.encode()], "a.po", "de")] == [
        ("a", "b"),
        ("c", "d"),
    ]
    assert read("a.po", text, redo=True).texts == ["a", "c"]


def test_a_string_of_many_lines_or_a_long_one_is_read_in_little_time_and_memory() -> None:
    lines = '"x"\n' * 200_000
    [(_, target, _)] = read_translated_po([f'msgid "a"\nmsgstr ""\n{lines}'.encode()], "a.po", "de")
    assert target == "x" * 200_000
    [(_, target, _)] = read_translated_po(
        [f'msgid "a"\nmsgstr "{"xy" * 500_000}"\n'.encode()], "a.po", "de"
    )
    assert target == "xy" * 500_000
    endless = (f'"{"x" * 1000}"\n'.encode() for _ in range(11_000))
    with pytest.raises(UserError, match=":2: a string has more than 10,000,000 characters"):
        list(read_translated_po(chain([b'\nmsgid "a"\nmsgstr ""\n'], endless), "a.po", "de"))
