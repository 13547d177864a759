"""Tests of transduce/wings/documents/xliff.py."""

import re

import pytest

from documents import PLAIN_CDATA, XLIFF1, XLIFF2, read, written
from transduce.text.formats import MESSAGE, PRESERVED_TEXT
from transduce.wings.documents.xliff import read_translated_xliff


def test_targets_are_put_where_they_belong() -> None:
    filled = written(read("a.xlf", XLIFF1), str.upper)
    assert (
        '</source>\n        <target xml:lang="de">CLOSE <X ID="A"/></target>\n      </trans-unit>'
        in filled
    )
    assert '<target state="new">EMPTY</target>' in filled
    assert "</source><target><![CDATA[WITH <B>TAGS</B>]]></target>" in filled.replace(
        "\n        <alt", "<alt"
    )
    document = read("a2.xliff", XLIFF2)
    assert document.texts == ['One\n      line <pc id="1">more</pc>']
    assert [
        known[:2] for known in read_translated_xliff([XLIFF2.encode()], "a2.xliff", "en", "de")
    ] == [("Two", "Zwei")]
    assert "</source><target>Eins</target></segment>" in written(document, lambda _: "Eins")


@pytest.mark.parametrize(
    "empty", ['<mrk mtype="seg" mid="1"></mrk>', "<![CDATA[]]>", '<x id="1"/>', "\n"]
)
def test_an_xliff_target_without_text_is_no_translation(empty: str) -> None:
    document = XLIFF2.replace("Zwei", empty)
    assert len(read("a2.xliff", document).texts) == 2
    assert [*read_translated_xliff([document.encode()], "a2.xliff", "en", "de")] == []


def test_marked_segments_of_xliff_are_translated_one_by_one() -> None:
    unit = """<xliff version="1.2"><file source-language="en" target-language="de"><body><trans-unit id="1">
    <source>One. Two. Three.</source><seg-source><mrk mtype="seg" mid="0">One.</mrk>
    <mrk mtype="seg" mid="1">Two.</mrk> <mrk mtype="seg" mid="2">Three.</mrk></seg-source>
    <target><mrk mtype="seg" mid="0">Eins.</mrk> <mrk mid="2" mtype="seg"></mrk> <mrk mtype="seg" mid="1"/></target>
    </trans-unit></body></file></xliff>"""
    document = read("a.xlf", unit)
    assert document.texts == ["Three.", "Two."]
    filled = written(document, str.upper)
    assert filled == unit.replace('mtype="seg"></mrk>', 'mtype="seg">THREE.</mrk>').replace(
        '"1"/>', '"1">TWO.</mrk>'
    )
    assert [pair[:2] for pair in read_translated_xliff([unit.encode()], "a.xlf", "en", "de")] == [
        ("One.", "Eins.")
    ]
    inside = re.sub(
        "(<seg-source>|<target>)(.*?)(</seg-source>|</target>)",
        r'\1<g id="9">\2</g>\3',
        unit,
        flags=re.S,
    )
    assert inside.count('<g id="9">') == 2, "segments inside other elements"
    assert read("a.xlf", inside).texts == document.texts
    assert (
        written(read("a.xlf", inside), str.upper).replace('<g id="9">', "").replace("</g>", "")
        == filled
    )


@pytest.mark.parametrize(("state", "count"), [("initial", 1), ("translated", 0), ("final", 0)])
def test_the_state_of_an_xliff_2_segment_says_whether_its_target_is_a_translation(
    state: str, count: int
) -> None:
    document = XLIFF2.replace("<segment><source>Two", f'<segment state="{state}"><source>Two')
    assert len(read("a2.xliff", document).texts) == 1 + count
    assert len([*read_translated_xliff([document.encode()], "a2.xliff", "en", "de")]) == 1 - count


def test_a_section_of_characters_is_plain_where_it_has_no_markup() -> None:
    document = read("a.xlf", PLAIN_CDATA)
    assert document.kinds == [*[PRESERVED_TEXT._replace(message=True)] * 2, MESSAGE]
    assert "<![CDATA[Sichern & schließen]]></target>" in written(
        document, lambda _: "Sichern & schließen"
    )
    done = PLAIN_CDATA.replace(
        "</source>\n        <alt", "</source><target>Sichern &amp; ab</target><alt"
    )
    known = list(read_translated_xliff([done.encode()], "a.xlf", "en", "de"))
    assert known[-1][:2] == ("Save & close", "Sichern & ab")
