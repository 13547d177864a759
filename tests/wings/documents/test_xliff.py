"""Tests of transduce/wings/documents/xliff.py."""

import re

import pytest
from lxml import etree

from documents import PLAIN_CDATA, XLIFF1, XLIFF2, by, read, written
from transduce.decoding.plan import Plan
from transduce.system.errors import UserError
from transduce.text.formats import MESSAGE, PRESERVED_TEXT, read_document
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


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('srcLang="en-US"', 'srcLang="fi"', "translation from 'fi'"),
        ('trgLang="de"', 'trgLang="pl"', "translation into 'pl'"),
    ],
)
def test_other_languages_of_an_xliff_2_file_are_refused(old: str, new: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read("a2.xliff", XLIFF2.replace(old, new))


@pytest.mark.parametrize(("state", "count"), [("initial", 1), ("translated", 0), ("final", 0)])
def test_the_state_of_an_xliff_2_segment_says_whether_its_target_is_a_translation(
    state: str, count: int
) -> None:
    document = XLIFF2.replace("<segment><source>Two", f'<segment state="{state}"><source>Two')
    assert len(read("a2.xliff", document).texts) == 1 + count
    assert len([*read_translated_xliff([document.encode()], "a2.xliff", "en", "de")]) == 1 - count


@pytest.mark.parametrize(
    ("state", "is_translated", "is_approved"),
    [
        ("new", False, False),
        ("needs-translation", False, False),
        ("initial", False, False),
        ("translated", True, False),
        ("needs-review-translation", True, False),
        ("final", True, True),
        ("signed-off", True, True),
    ],
)
def test_states_of_a_target_by_hand(state: str, is_translated: bool, is_approved: bool) -> None:
    text = XLIFF1.replace("<target>Datei", f'<target state="{state}">Datei')
    first = 'Open <g id="1">the &amp; file</g>'
    assert (first in read("a.xlf", text).texts) is not is_translated
    assert (first in read("a.xlf", text, redo=True).texts) is not is_approved


@pytest.mark.parametrize("levels", [18, 19])
def test_marked_segments_may_be_twenty_levels_deep(levels: int) -> None:
    inner = '<mrk mtype="seg" mid="1">One.</mrk>'
    source = "<g>" * levels + inner + "</g>" * levels
    unit = f"<trans-unit><source>One.</source><seg-source>{source}</seg-source><target>{source}</target></trans-unit>"
    text = f"<xliff><file><body>{unit}</body></file></xliff>"
    [pair] = read_translated_xliff([text.encode()], "a.xlf", "en", "de")
    assert pair[:2] == ("One.", "One.")
    slots = read("a.xlf", text, redo=True).slots
    assert [slot.present == "One." for slot in slots] == [levels == 18]


def test_a_section_of_characters_is_plain_where_it_has_no_markup() -> None:
    document = read("a.xlf", PLAIN_CDATA)
    assert document.kinds == [*[PRESERVED_TEXT._replace(message=True)] * 2, MESSAGE]
    latin = PLAIN_CDATA.replace("utf-8", "iso-8859-1").encode("latin-1")
    with pytest.raises(UserError, match=r"a\.xlf:13: the translation has 'ł'"):
        read_document(latin, "a.xlf", "en", "de").write(["", "", "ł"])
    assert b">&#322;</target>" in read_document(latin, "a.xlf", "en", "de").write(["", "ł", ""])
    assert "<![CDATA[Sichern & schließen]]></target>" in written(
        document, lambda _: "Sichern & schließen"
    )
    done = PLAIN_CDATA.replace(
        "</source>\n        <alt", "</source><target>Sichern &amp; ab</target><alt"
    )
    known = list(read_translated_xliff([done.encode()], "a.xlf", "en", "de"))
    assert known[-1][:2] == ("Save & close", "Sichern & ab")


def reviewed(name: str, text: str, *, redo: bool = False) -> str:
    document = read_document(text.encode(), name, "en", "de", redo=redo, needs_review=True)
    return document.write([f"x {each}" for each in document.texts]).decode()


def test_new_translations_need_a_review_in_xliff_1() -> None:
    state = 'state="needs-review-translation"'
    text = reviewed("a.xlf", XLIFF1)
    assert f'\n        <target xml:lang="de" {state}>x Close <x id="a"/></target>' in text
    assert f"<target {state}>x Empty</target>" in text
    assert "<target>Datei öffnen</target>" in text and text.count(state) == 3
    assert read("a.xlf", text).texts == []
    assert f'<target {state}>x Open <g id="1">' in reviewed("a.xlf", XLIFF1, redo=True)
    etree.fromstring(text.encode())


def test_the_whole_target_of_marked_segments_needs_a_review() -> None:
    unit = """<x:xliff xmlns:x="urn:x"><x:file><x:body><x:trans-unit id="1"><x:source>One. Two.</x:source>
    <x:seg-source><x:mrk mtype="seg" mid="0">One.</x:mrk><x:mrk mtype="seg" mid="1">Two.</x:mrk></x:seg-source>
    <x:target state = 'new'><x:mrk mtype="seg" mid="0"/><x:mrk mtype="seg" mid="1">a</x:mrk></x:target>
    </x:trans-unit></x:body></x:file></x:xliff>"""
    expected = unit.replace("'new'", "'needs-review-translation'").replace(
        '0"/>', '0">x One.</x:mrk>'
    )
    assert reviewed("a.xlf", unit) == expected.replace(">a</", ">x Two.</")


def test_new_translations_are_initial_in_xliff_2() -> None:
    document = XLIFF2.replace(' id="s"', ' id="s" state="translated"')
    text = reviewed("a2.xliff", document)
    assert '<segment id="s" state="initial">' in text and "<segment><source>Two" in text
    assert text.count("state=") == 1
    text = reviewed("a2.xliff", XLIFF2, redo=True)
    assert '<segment state="initial"><source>Two</source><target>x Two</target>' in text


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (
            'See <mrk id="m" translate="no">Big Dog</mrk> now.',
            'SEE <mrk id="m" translate="no">Big Dog</mrk> NOW.',
        ),
        (
            'See <sm id="m" translate="no"/>Big Dog<em startRef="m"/> now.',
            'SEE <sm id="m" translate="no"/>Big Dog<em startRef="m"/> NOW.',
        ),
        (
            'See <x:sm translate="no" id="m"/>Big <pc id="1">Dog</pc><x:em startRef="m"/> now.',
            'SEE <x:sm translate="no" id="m"/>Big <pc id="1">Dog</pc><x:em startRef="m"/> NOW.',
        ),
        (
            'See now <sm id="m" translate="no"/>Big Dog',
            'SEE NOW <sm id="m" translate="no"/>Big Dog',
        ),
        (
            'See <sm id="m" type="term"/>big dogs<em startRef="m"/> now.',
            'SEE <sm id="m" type="term"/>BIG DOGS<em startRef="m"/> NOW.',
        ),
        (
            'See <mrk mtype="protected">Big Dog</mrk> now.',
            'SEE <mrk mtype="protected">Big Dog</mrk> NOW.',
        ),
        (
            'See <g id="1" translate="no">Big Dog</g> now.',
            'SEE <g id="1" translate="no">Big Dog</g> NOW.',
        ),
        (
            '<![CDATA[See <b class="notranslate">Big Dog</b> now.]]>',
            '<![CDATA[SEE <b class="notranslate">Big Dog</b> NOW.]]>',
        ),
    ],
)
def test_protected_text_stays(source: str, target: str) -> None:
    text = XLIFF2.replace("<source>Two</source><target>Zwei</target>", f"<source>{source}</source>")
    document = read("a.xliff", text.replace("<xliff ", '<xliff xmlns:x="urn:x" '))
    plan = Plan(document.texts, "en", kinds=document.kinds)
    made = plan.assemble(by(str.upper, plan.sentences))
    filled = document.write([each.text for each in made]).decode()
    assert f"<source>{source}</source><target>{target}</target>" in filled


@pytest.mark.parametrize("element", ["file", "group", "unit"])
def test_units_in_an_untranslated_element_stay(element: str) -> None:
    text = XLIFF2.replace('<unit id="u">', '<group id="g"><unit id="u">').replace(
        "</unit>", "</unit></group>"
    )
    assert len(read("a.xliff", text).texts) == 1
    kept = text.replace(f"<{element} ", f'<{element} translate="no" ')
    assert read("a.xliff", kept, redo=True).texts == []
    back = kept.replace("<unit ", '<unit translate="yes" ')
    assert element == "unit" or len(read("a.xliff", back).texts) == 1


def test_a_new_target_has_the_language_that_the_file_declares() -> None:
    content = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en-US" trgLang="de-DE">
        <file id="f"><unit id="1"><segment><source xml:lang="en-US">A dog.</source></segment></unit></file></xliff>"""
    assert b'<target xml:lang="de-DE">Ein Hund.</target>' in read("a.xlf", content).write(
        ["Ein Hund."]
    )


@pytest.mark.parametrize(
    ("declared", "target", "fits"),
    [
        ("zh-TW", "zh_Hans", False),
        ("zh-TW", "zh_Hant", True),
        ("zh", "zh_Hans", True),
        ("fil", "tl", True),
    ],
)
def test_a_file_is_filled_in_its_own_script(declared: str, target: str, fits: bool) -> None:
    content = XLIFF1.replace('target-language="de"', f'target-language="{declared}"').encode()
    if fits:
        assert read_document(content, "a.xlf", "en", target).texts == read("a.xlf", XLIFF1).texts
    else:
        with pytest.raises(UserError, match="declares translation into 'zh-TW'"):
            read_document(content, "a.xlf", "en", target)


def test_the_header_of_a_po_file_in_xliff_is_not_translated() -> None:
    unit = '<trans-unit id="1"{}><source>Plural-Forms: nplurals=2;</source></trans-unit>'
    content = '<xliff version="1.2"><file source-language="en" target-language="de"><body>{}</body></file></xliff>'
    assert read("a.xlf", content.format(unit.format(""))).texts
    assert not read(
        "a.xlf", content.format(unit.format(' restype="x-gettext-domain-header"'))
    ).texts


def test_external_dtd_is_not_fetched() -> None:
    text = XLIFF1.replace(
        "<!-- a comment -->", '<!DOCTYPE xliff SYSTEM "http://127.0.0.1:1/none.dtd">'
    )
    assert read("a.xlf", text).texts == read("a.xlf", XLIFF1).texts


@pytest.mark.parametrize("name", ["a.xlf", "a2.xliff"])
def test_xliff_is_what_lxml_says_it_is(name: str) -> None:
    content = {"a.xlf": XLIFF1, "a2.xliff": XLIFF2}[name]
    document = read(name, content)
    filled = document.write([text.replace("e", "é") for text in document.texts])
    before, after = etree.fromstring(content.encode()), etree.fromstring(filled)
    missing = list(document.texts)
    for unit in after.iter("{*}trans-unit", "{*}segment"):
        source, target = unit.find("{*}source"), unit.find("{*}target")
        if target is not None and "".join(source.itertext()).replace("e", "é") == "".join(
            target.itertext()
        ):
            missing.pop()
            if unit.get("id") not in ("3",):
                unit.remove(target)
    assert missing == []
    kept = [
        each
        for each in after.iter()
        if etree.QName(each).localname != "target" or each.get("state") != "new"
    ]
    assert [each.tag for each in kept] == [
        each.tag
        for each in before.iter()
        if etree.QName(each).localname != "target" or each.get("state") != "new"
    ]
    assert read_document(filled, name, "en", "de").texts == (["Empty"] if name == "a.xlf" else [])


def test_a_source_may_say_itself_that_its_blanks_count() -> None:
    unit = """<xliff version="1.2"><file source-language="en" target-language="de"><body><trans-unit id="1">
    <source xml:space="preserve">One line.
  Another.</source></trans-unit></body></file></xliff>"""
    filled = written(read("a.xlf", unit), str.upper)
    assert '<target xml:space="preserve">ONE LINE.\n  ANOTHER.</target>' in filled
    assert "<target>ONE LINE. ANOTHER.</target>" in written(
        read("a.xlf", unit.replace(' xml:space="preserve"', "")),
        lambda text: " ".join(text.upper().split()),
    )


def test_approved_translations_stay() -> None:
    unit = "<trans-unit{}><source>{}</source><target{}>B</target></trans-unit>"
    states = [
        (' approved="yes"', "A", ""),
        (' approved="yes"', "D", ' state="needs-translation"'),
        ("", "B", ' state="signed-off"'),
        ("", "C", ' state="translated"'),
    ]
    file = f'<xliff version="1.2"><file source-language="en"><body>{"".join(unit.format(*each) for each in states)}'
    assert read("a.xlf", f"{file}</body></file></xliff>", redo=True).texts == ["D", "C"]
    newer = XLIFF2.replace("<segment><source>Two", '<segment state="final"><source>Two')
    assert (
        len(read("a2.xliff", newer, redo=True).texts)
        == len(read("a2.xliff", XLIFF2, redo=True).texts) - 1
    )


def test_a_target_has_the_blanks_at_the_edges_of_its_source() -> None:
    unit = '<trans-unit><source>\u00a0 Updated <x id="1"/>\n   now\n  </source></trans-unit>'
    file = f'<xliff version="1.2"><file source-language="en"><body>{unit}</body></file></xliff>'
    filled = written(
        read("a.xlf", file), lambda text: " ".join(text.split()).replace("now", "jetzt")
    )
    assert '<target>\u00a0 Updated <x id="1"/> jetzt\n  </target>' in filled
