"""Corpora that are documents: translation memories, XLIFF, PO, subtitles, pages; one, several, or a folder of them."""

import gzip
import os
import random
import re
import subprocess
import sys
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from xml.sax.saxutils import escape, quoteattr

import polib
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from command_line import run
from transduce.system.errors import UserError
from transduce.text import pairs
from transduce.text.formats import PLAIN_TEXT, PRESERVED_TEXT, read_document
from transduce.text.pairs import Origin, read_pairs
from transduce.wings.documents import tmx
from transduce.wings.documents.po import read_translated_po
from transduce.wings.documents.xliff import read_translated_xliff
from transduce.wings.documents.xml import UnitReader

DOCTYPE = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n'
LANG = "{http://www.w3.org/XML/1998/namespace}lang"
# Each of a language and a text, which may hold elements.
Units = Sequence[Sequence[tuple[str, str]]]


def memory(
    units: Units, *, srclang: str = "en-US", key: str = "xml:lang", declared: str = "UTF-8"
) -> str:
    """A translation memory, each unit on a line of its own, the first on line 6."""
    lines = [f'<?xml version="1.0" encoding="{declared}"?>', DOCTYPE.strip(), '<tmx version="1.4">']
    lines += [f'<header srclang="{srclang}" segtype="sentence" datatype="xml"/>', "<body>"]
    for unit in units:
        variants = (
            f"<tuv {key}={quoteattr(language)}><seg>{text}</seg></tuv>" for language, text in unit
        )
        lines.append(f"<tu>{''.join(variants)}</tu>")
    return "\n".join([*lines, "</body>", "</tmx>", ""])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def write(folder: Path, name: str, content: str | bytes) -> str:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(file)


def texts(
    files: Sequence[str] | str, source: str = "en", target: str = "de"
) -> list[tuple[str, str]]:
    files = [files] if isinstance(files, str) else files
    return [(pair.source, pair.target) for pair in read_pairs(files, (source, target))]


def test_units_that_lack_a_language_are_counted(tmp_path, capsys):
    both = [("en", "dog"), ("de", "Hund")]
    content = memory([both, both[:1], both, both[1:], []])
    file = tmp_path / "a.tmx"
    file.write_text(content.replace("<seg>Hund</seg>", "", 1))
    assert texts(str(file)) == [("dog", "Hund")]
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "a.tmx: 4 of 5 units lack a text in en or de, and are skipped. The first is in line 6."
        in said
    )


CODES = ["en", "en-US", "en-gb", "EN_CA", "de", "de-AT", "fr-ca", "fr", "ja-jp"]
SAID = st.text(alphabet="aé漢 <&>\"'\t\u2028", min_size=1)


def _nearness(code: str, wanted: str) -> int | None:
    """The documented rule, written another way."""
    ours, theirs = code.lower().replace("_", "-").split("-"), wanted.lower().split("-")
    if ours[0] != theirs[0] or (len(ours) == len(theirs) == 2 and ours != theirs):
        return None
    return 0 if ours == theirs else 1 if len(ours) > len(theirs) else 2


@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(CODES), SAID), unique_by=lambda each: each[0]),
        max_size=4,
    )
)
def test_units_are_read_as_lxml_and_the_rule_say(
    tmp_path_factory: pytest.TempPathFactory, units: Units
) -> None:
    content = memory([[(code, escape(text)) for code, text in unit] for unit in units])
    file = write(tmp_path_factory.mktemp("memory"), "a.tmx", content)
    for source, target in (("en", "de"), ("en-US", "en-GB"), ("de-AT", "fr"), ("en", "fr-CA")):
        expected = []
        for unit in etree.fromstring(content.encode()).iter("tu"):
            found = [(each.get(LANG), each.findtext("seg")) for each in unit]
            ways = [
                (far + farther, one[0].lower() != "en-us", found.index(one), found.index(other))
                for one in found
                for other in found
                if one != other
                and (far := _nearness(one[0], source)) is not None
                and (farther := _nearness(other[0], target)) is not None
            ]
            if ways:
                expected.append((found[min(ways)[2]][1], found[min(ways)[3]][1]))
        if expected or not any(units):
            assert texts(file, source, target) == expected
        else:
            with pytest.raises(UserError, match="no unit in both"):
                texts(file, source, target)


def test_several_texts_in_the_same_language_are_several_pairs(folder: Path) -> None:
    unit = [("en", "Hello"), ("de-DE", "Hallo"), ("de-DE", "Guten Tag"), ("de-AT", "Servus")]
    assert texts(write(folder, "a.tmx", memory([unit]))) == [
        ("Hello", "Hallo"),
        ("Hello", "Guten Tag"),
    ]


def test_an_old_code_is_that_of_the_same_language(folder: Path) -> None:
    file = write(folder, "a.tmx", memory([[("iw", "a"), ("fil-PH", "b")]]))
    assert [pair[:2] for pair in read_pairs([str(file)], ("he", "tl"))] == [("a", "b")]
    both = write(folder, "b.tmx", memory([[("en", "a"), ("no", "b"), ("nb", "c")]]))
    assert [pair[:2] for pair in read_pairs([str(both)], ("en", "nb"))] == [("a", "c")]


def test_a_region_of_chinese_says_its_script(folder: Path) -> None:
    file = write(folder, "a.tmx", memory([[("en", "a"), ("zh-CN", "b"), ("zh-TW", "c")]]))
    for code, target in (("zh_Hans", "b"), ("zh-Hant-TW", "c"), ("zh_Hant", "c"), ("zh-TW", "c")):
        assert [pair[:2] for pair in read_pairs([str(file)], ("en", code))] == [("a", target)]
    with pytest.raises(UserError, match="no unit"):
        list(read_pairs([str(file)], ("en", "zh-HK")))


def test_source_region_decides_which_variant_is_read(folder: Path) -> None:
    unit = [("en-GB", "colour"), ("en-US", "color"), ("de", "Farbe")]
    assert texts(write(folder, "a.tmx", memory([unit]))) == [("color", "Farbe")]
    assert texts(write(folder, "b.tmx", memory([unit], srclang="de"))) == [("colour", "Farbe")]
    own = memory([unit], srclang="de").replace("<tu>", '<tu srclang="en-US">')
    assert texts(write(folder, "c.tmx", own)) == [("color", "Farbe")]


def test_ambiguous_languages_must_be_named(folder: Path) -> None:
    file = write(folder, "a.tmx", memory([[("en", "a"), ("de", "b")]]))
    with pytest.raises(UserError, match="Name the two languages to read"):
        list(read_pairs([file]))
    with pytest.raises(
        UserError, match=r"no unit in both en and fr\. Units by language: en \(1\), de \(1\)"
    ):
        texts(file, "en", "fr")


@pytest.mark.parametrize(
    ("segment", "said"),
    [
        ("[&#x09;&#x09;   ]", "[\t\t   ]"),
        ("  kept  ", "  kept  "),
        ('The <bpt i="1">&lt;b></bpt>big<ept i="1">&lt;/b></ept> cat', "The big cat"),
        ('First <ph x="1">{\\x <sub>no text</sub>}</ph> end', "First end"),
        (
            'a <it pos="begin">&lt;a></it>, <hi x="1">high <hi>er</hi></hi> and <ut>x</ut>b',
            "a , high er and b",
        ),
        # Formatting that is a block, within another element: between two words comes a blank.
        ('one<bpt i="1">&lt;p><sub>x</sub></bpt><ph/>two', "one two"),
        ('one<ph/><bpt i="1">&lt;p></bpt>two<ph>&lt;b></ph>three', "one twothree"),
        ('one<ph ctype="lb">x</ph>two<ph ctype="b">x</ph>three', "one twothree"),
        ("\n    on two\n    lines\n  ", "on two lines"),
        ("&lt;b&gt; &amp;amp; <![CDATA[<i>]]>", "<b> &amp; <i>"),
        ("caf&eacute;&nbsp;!", "café\u00a0!"),  # which only the DTD would tell
        ("<!-- a comment -->text<?x an instruction?>", "text"),
    ],
)
def test_text_of_a_segment_by_hand(folder: Path, segment: str, said: str) -> None:
    assert texts(write(folder, "a.tmx", memory([[("en", segment), ("de", "x")]]))) == [(said, "x")]


@pytest.mark.parametrize(
    "codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "iso-8859-1", "cp1252"]
)
@pytest.mark.parametrize("name", ["a.tmx", "a.tmx.gz"])
def test_encodings(folder: Path, codec: str, name: str) -> None:
    declared = {"utf-8-sig": "UTF-8", "utf-16": "UTF-16", "cp1252": "windows-1252"}.get(
        codec, codec
    )
    content = memory([[("en", "æ" * 3000), ("de", "ÿ ß")]] * 3, declared=declared).encode(codec)
    file = write(folder, name, gzip.compress(content) if name.endswith("gz") else content)
    assert texts(file) == [("æ" * 3000, "ÿ ß")] * 3


def test_old_versions_say_lang_and_elements_may_have_prefixes(folder: Path) -> None:
    old = memory([[("en", "a"), ("de", "b")]], key="lang").replace('"1.4"', '"1.1"')
    assert texts(write(folder, "a.tmx", old)) == [("a", "b")]
    prefixed = memory([[("en", "a"), ("de", "b")]]).replace("<t", "<x:t").replace("</t", "</x:t")
    assert texts(write(folder, "b.tmx", prefixed.replace("<x:tmx", '<x:tmx xmlns:x="urn:x"'))) == [
        ("a", "b")
    ]


def test_a_pair_has_the_line_of_its_unit(folder: Path) -> None:
    file = write(
        folder, "a.tmx", memory([[("en", str(number)), ("de", "x")] for number in range(9)])
    )
    assert [pair.origin for pair in read_pairs([file], ("en", "de"))] == [
        Origin(file, line) for line in range(6, 15)
    ]


BOMB = '<!DOCTYPE tmx [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
GOOD = memory([[("en", "one"), ("de", "eins")]] * 4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD.replace(DOCTYPE.strip(), BOMB), r"a\.tmx:2: the document type declares entities"),
        (
            GOOD.replace(
                DOCTYPE.strip(), '<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
            ),
            ":2: the document type declares",
        ),
        (GOOD[:-60], r"a\.tmx:9: not well-formed XML: .*the file is cut short"),
        (GOOD.replace("</seg>", "</sag>", 1), r"a\.tmx:6: .* mismatched tag"),
        (
            GOOD.replace("one", "&unheard;"),
            r"a\.tmx:6: the entity &unheard; is not known without a DTD",
        ),
        (GOOD.encode().replace(b"eins", b"\xe9", 1), r"a\.tmx:6: byte 0xE9 is not UTF-8"),
        (GOOD.replace("UTF-8", "klingon"), "'klingon', which is unknown"),
        ("<html/>", "XML but not TMX"),
        ("", "no element found"),
        ("just text\n", ":1: not well-formed XML"),
    ],
)
def test_memories_that_are_refused(folder: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        texts(write(folder, "a.tmx", content))


def test_endless_segment_does_not_fill_the_memory(folder: Path) -> None:
    endless = memory([[("en", "x" * 1_100_000), ("de", "b")]])
    with pytest.raises(UserError, match=":6: a segment has more than 1,000,000 characters"):
        texts(write(folder, "a.tmx", endless))


def test_a_segment_has_a_million_characters_at_most() -> None:
    assert tmx.segment_text("x" * 1_000_000, "a.tmx", 1) == "x" * 1_000_000
    with pytest.raises(UserError, match=r"a\.tmx:7: a segment has more than"):
        tmx.segment_text("x" * 1_000_001, "a.tmx", 7)


def test_eight_languages_are_named(folder: Path) -> None:
    codes = ["ar", "bg", "cs", "da", "de", "el", "en", "es", "et"]
    units = [[(code, "x") for code in codes[number:]] for number in range(9)]
    with pytest.raises(UserError, match=r"Units by language: et \(9\), es \(8\), .*, bg \(2\)\."):
        texts(write(folder, "a.tmx", memory(units)), "fr", "it")


@pytest.mark.parametrize(
    ("code", "wanted", "distance"),
    [
        ("en", "en", 0),
        ("en-us", "en", 1),
        ("eng", "en", 1),
        ("en", "en-us", 2),
        ("eng", "en-us", 2),
        ("en-us", "en-gb", None),
        ("zh-tw", "zh-hant", 1),
        ("zh-hant", "zh-tw", 1),
        ("zh-tw", "zh-hk", None),  # the same script in two regions
        ("zh-tw", "zh-hans", None),
        ("zh", "zh-hans", 2),
        ("de", "en", None),
        ("", "en", None),
    ],
)
def test_distances_of_language_codes(code: str, wanted: str, distance: int | None) -> None:
    assert tmx.language_distance(code, wanted) == distance


def test_attributes_that_units_inherit() -> None:
    names = [
        "srclang",
        "state",
        "approved",
        "translate",
        "xml:space",
        "restype",
        "target-language",
        "trgLang",
    ]
    given = "".join(f' {name}="{number}"' for number, name in enumerate(names))
    content = f'<tmx{given} xml:lang="x"><tu approved="no"/><a state="b"/><tu/></tmx>'.encode()
    seen = list[tuple[str, dict[str, str]]]()
    reader = UnitReader("a.tmx", "tmx", ["tu"], 2, lambda *each: seen.append(each))
    inherited = {name: str(number) for number, name in enumerate(names)}
    one, two = [unit.attributes for unit in reader.read([content])]
    assert (one, two) == (inherited | {"approved": "no"}, inherited)
    assert seen == [("tmx", inherited | {"xml:lang": "x"}), ("a", {"state": "b"})]


def test_elements_below_the_limit_of_levels_are_only_text() -> None:
    content = b"<r><u><a>x<b>y<c><d/></c></b></a><e/></u><u/></r>"
    for levels, inner in ((1, []), (2, ["b"])):
        reader = UnitReader("a", "r", ["u"], levels, lambda *_: None)
        first, second = reader.read([content[:9], content[9:]])
        assert [each.name for each in first.children] == ["a", "e"] and not second.children
        assert [each.name for each in first.children[0].children] == inner
        assert first.text(first.children[0]) == "x<b>y<c><d/></c></b>"


@pytest.mark.parametrize(
    ("content", "is_cut"),
    [("<tmx>", 1), ("<tmx", 1), ("<tmx><![CDATA[x", 1), ("<tmx></tm>", 0), ("<tmx></tmx><", 1)],
)
def test_a_file_that_is_cut_short_is_named(content: str, is_cut: bool) -> None:
    with pytest.raises(UserError, match="a:1: not well-formed XML: ") as raised:
        list(UnitReader("a", "tmx", ["tu"], 2, lambda *_: None).read([content.encode()]))
    assert ("or the file is cut short" in str(raised.value)) == is_cut


def test_an_encoding_is_declared_in_the_first_kilobyte() -> None:
    declared = f'<?xml version="1.0"{" " * 900} encoding="iso-8859-1"?>'
    content = memory([[("en", "ä"), ("de", "ö")]]).split("\n", 1)[1]
    whole = (declared + content).encode("latin-1")
    pieces = [whole[i : i + 100] for i in range(0, len(whole), 100)]
    [unit] = UnitReader("a.tmx", "tmx", ["tu"], 2, lambda *_: None).read(pieces)
    assert "ä" in unit.content.decode()


def test_units_inherit_only_the_needed_attributes() -> None:
    """All attributes of all enclosing elements would be a quadratic number."""
    content = b'<tmx srclang="en" x="1"><a translate="no"><tu y="2"/></a></tmx>'
    (unit,) = UnitReader("a.tmx", "tmx", ["tu"], 2, lambda *_: None).read([content])
    assert unit.attributes == {"srclang": "en", "translate": "no"}


def read_elsewhere(file: Path) -> tuple[int, int]:
    """How many pairs a file has, and by how many bytes a process grows that reads them."""
    count = (
        "import resource, sys; from transduce.text.pairs import read_pairs\n"
        "begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "n = sum(1 for _ in read_pairs([sys.argv[1]], ('en', 'de')))\n"
        "print(n, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begun))"
    )
    out = subprocess.run(
        [sys.executable, "-c", count, str(file)], capture_output=True, check=True
    ).stdout
    pairs, grown = map(int, out.split())
    return pairs, grown


def test_a_large_memory_is_read_as_a_stream(folder: Path) -> None:
    words = random.Random(1).choices("abcdefgh", k=40)
    block = memory(
        [[("en-US", " ".join(words)), ("de-DE", " ".join(reversed(words))), ("fr", "x")]] * 4000
    )
    head, _, rest = block.partition("<body>\n")
    units = rest.partition("</body>")[0]
    with (folder / "a.tmx").open("w") as file:
        file.write(f"{head}<body>\n")
        file.writelines([units] * 6)
        file.write("</body></tmx>\n")
    size = (folder / "a.tmx").stat().st_size
    pairs, grown = read_elsewhere(folder / "a.tmx")
    assert pairs == 24_000
    assert grown < size / 2


@settings(max_examples=40)
@given(
    st.lists(
        st.lists(st.tuples(st.sampled_from(CODES), SAID), unique_by=lambda each: each[0]),
        max_size=4,
    )
)
def test_a_memory_is_written_back_and_filled(units: Units) -> None:
    content = (
        memory([[(code, escape(text)) for code, text in unit] for unit in units])
        .replace("\n", "\r\n")
        .encode()
    )
    if any(units) and not any("en" in code.lower() for unit in units for code, _ in unit):
        with pytest.raises(UserError, match=r"a\.tmx has no unit in en\. Units by language: "):
            read_document(content, "a.tmx", "en", "de")
        return
    document = read_document(content, "a.tmx", "en", "de")
    assert (
        document.write([slot.present for slot in document.slots])
        == document.write([""] * len(document.texts))
        == content
    )
    filled = document.write(
        [f"<{number}>".replace("<", "&lt;") for number in range(len(document.texts))]
    )
    assert read_document(filled, "a.tmx", "en", "de").texts == []
    before, after = etree.fromstring(content), etree.fromstring(filled)
    for one, other in zip(before.iter("tu"), after.iter("tu"), strict=True):
        kept, now = (
            [(each.get(LANG), each.findtext("seg")) for each in unit] for unit in (one, other)
        )
        new = [each for each in now if each not in kept]
        assert [each for each in now if each not in new] == [each for each in kept if each in now]
        assert len(new) <= 1 and all(each in now for each in kept if each[1].strip())
    added = [each.text for each in after.iter("seg") if each.text and each.text[1:-1].isdigit()]
    assert added == [f"<{number}>" for number in range(len(document.texts))]


def test_added_units_follow_the_format_of_the_file() -> None:
    content = memory(
        [
            [("en-US", "a <ph x='1'/>"), ("de-DE", "b")],
            [("en-US", "c")],
            [("en-US", "d"), ("de-DE", " ")],
        ]
    )
    document = read_document(content.encode(), "a.tmx", "en", "de")
    assert (document.texts, document.lines, [slot.present for slot in document.slots]) == (
        ["c", "d"],
        [7, 8],
        ["", " "],
    )
    filled = document.write(["C", "D"]).decode()
    assert (
        '<tuv xml:lang="en-US"><seg>c</seg></tuv><tuv xml:lang="de-DE"><seg>C</seg></tuv></tu>'
        in filled
    )
    assert '<tuv xml:lang="de-DE"><seg>D</seg></tuv>' in filled
    assert len(read_document(content.encode(), "a.tmx", "en", "de", redo=True).texts) == 3


@pytest.mark.parametrize("empty", ["", " ", "<![CDATA[]]>", "<!-- later -->", "<ph x='1'/>"])
def test_a_target_without_text_is_no_translation(empty: str) -> None:
    content = memory([[("en", "A dog"), ("de", empty)]])
    assert read_document(content.encode(), "a.tmx", "en", "de").texts == ["A dog"]


@pytest.mark.parametrize(
    ("codes", "target", "spelling"),
    [
        (("en", "de-AT", "de"), "de", "de"),
        (("en", "de-AT", "fr"), "de", "de-AT"),
        (("en", "fr"), "pt_BR", "pt-BR"),
        (("DE", "en"), "de", "DE"),
    ],
)
def test_a_new_translation_has_the_code_that_the_file_uses(codes, target, spelling) -> None:
    variants = [tmx._Variant(code, None, None, "") for code in codes]  # type: ignore[arg-type]
    units = [SimpleNamespace(variants=variants[:1]), SimpleNamespace(variants=variants[1:])]
    assert tmx._spelling(units, target) == spelling  # type: ignore[arg-type]


@pytest.mark.parametrize("there", ["&nbsp;b", "b " * 600_000, "<![CDATA[b]]>", "<ph x='1'/>b"])
def test_existing_translation_is_kept_unread(there: str) -> None:
    content = memory([[("en", "A dog"), ("de", there)]])
    assert read_document(content.encode(), "a.tmx", "en", "de").texts == []


def test_a_segment_may_be_a_section_of_characters() -> None:
    content = memory(
        [
            [("en", "<![CDATA[a & b]]>")],
            [("en", "<![CDATA[c <b>d</b>]]>"), ("de", "")],
            [("en", "<![CDATA[e &amp; f]]>")],
        ]
    )
    document = read_document(content.encode(), "a.tmx", "en", "de")
    assert (document.texts, document.kinds) == (
        ["a & b", "c <b>d</b>", "e &amp; f"],
        [PLAIN_TEXT, PRESERVED_TEXT, PRESERVED_TEXT],
    )
    filled = document.write(["A & B", "]]>", ""]).decode()
    assert '<tuv xml:lang="de"><seg><![CDATA[A & B]]></seg></tuv>' in filled
    assert "<![CDATA[]]]]><![CDATA[>]]></seg>" in filled


XLIFF = """<xliff version="1.2"><file source-language="en" target-language="de-DE"><body>
<trans-unit id="1"><source>Open <g id="1">it</g></source><target>Öffne <g id="1">es</g></target></trans-unit>
<trans-unit id="2"><source>New</source><target state="new">New</target></trans-unit>
<trans-unit id="3"><source>None</source></trans-unit>
<trans-unit id="4" xml:space="preserve"><source>a  b
c</source><target><![CDATA[d  e]]></target></trans-unit>
</body></file></xliff>
"""
XLIFF2 = """<xliff version="2.0" srcLang="en" trgLang="de"><file id="f"><unit id="1"><segment>
<source>Two <pc id="1">parts</pc></source><target>Zwei <pc id="1">Teile</pc></target></segment><segment>
<source>Three</source></segment></unit></file></xliff>
"""
PO = r"""msgid ""
msgstr ""
"Language: de\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

msgid "One"
msgstr "Eins"

msgctxt "menu"
msgid "One"
msgstr "Einer"

#, fuzzy
msgid "Two"
msgstr "Zwo"

msgid "Three"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

msgid ""
"On two\n"
"lines\n"
msgstr ""
"Auf zwei\n"
"Zeilen\n"

#~ msgid "Old"
#~ msgstr "Alt"
"""
SAID_OF_PO = [
    ("One", "Eins"),
    ("One", "Einer"),
    ("%d file", "%d Datei"),
    ("%d files", "%d Dateien"),
    ("On two lines", "Auf zwei Zeilen"),
]


def test_xliff_and_po_give_what_is_translated(folder: Path) -> None:
    assert texts(write(folder, "a.xlf", XLIFF)) == [("Open it", "Öffne es"), ("a  b c", "d  e")]
    assert texts(write(folder, "b.xliff.gz", gzip.compress(XLIFF2.encode()))) == [
        ("Two parts", "Zwei Teile")
    ]
    file = write(folder, "c.po", PO)
    assert texts(file) == SAID_OF_PO
    assert [pair.origin.line for pair in read_pairs([file], ("en", "de"))] == [6, 9, 20, 20, 25]
    entries = [entry for entry in polib.pofile(PO) if entry.translated() and not entry.obsolete]
    assert sum(len(entry.msgstr_plural) or 1 for entry in entries) == len(SAID_OF_PO)
    with pytest.raises(UserError, match="into 'de'"):
        texts(file, "en", "fr")


@given(st.lists(st.integers(1, 400), min_size=1), st.sampled_from(["utf-8", "utf-16"]))
def test_chunk_borders_change_no_text(sizes: list[int], codec: str) -> None:
    for name, content in (("a.xlf", XLIFF), ("b.xliff", XLIFF2), ("c.po", PO)):
        raw = content.encode("utf-8" if name == "c.po" else codec)
        ends = list(accumulate(sizes))
        pieces = [raw[begin:end] for begin, end in zip([0, *ends], [*ends, len(raw)], strict=True)]
        if name == "c.po":
            assert list(read_translated_po(pieces, name, "de")) == list(
                read_translated_po([raw], name, "de")
            )
        else:
            whole = read_translated_xliff([raw], name, "en", "de")
            assert list(read_translated_xliff(pieces, name, "en", "de")) == list(whole)


@pytest.mark.parametrize("name", [pytest.param("a.xlf", marks=pytest.mark.slow), "a.po"])
def test_large_files_are_streams(folder: Path, name: str) -> None:
    unit = '<trans-unit id="1"><source>{0} a</source><target>{0} b</target></trans-unit>\n'
    message = 'msgid "{0} a"\nmsgstr "{0} b"\n\n'
    with (folder / name).open("w") as file:
        file.write(
            '<xliff version="1.2"><file source-language="en"><body>\n' if name == "a.xlf" else PO
        )
        file.writelines(
            (unit if name == "a.xlf" else message).format("x" * 4000 + str(n)) for n in range(1500)
        )
        file.write("</body></file></xliff>\n" if name == "a.xlf" else "")
    pairs, grown = read_elsewhere(folder / name)
    assert pairs == 1500 + (len(SAID_OF_PO) if name == "a.po" else 0)
    assert grown < (folder / name).stat().st_size / 2


@pytest.mark.parametrize("name", ["a.tmx", "a.xlf"])
def test_file_without_units_does_not_fill_the_memory(name: str, folder: Path) -> None:
    with (folder / name).open("wb") as file:
        file.write(
            b'<tmx version="1.4"><header/>\n<!-- -->'
            if name == "a.tmx"
            else b'<xliff version="1.2"><file>\n'
        )
        file.writelines([b"<!-- %s -->" % (b"x" * 100_000)] * 600)
    with pytest.raises(
        UserError, match=":2: more than 50,000,000 bytes without a translation unit"
    ):
        texts(str(folder / name))


def test_several_files_and_folders(folder: Path) -> None:
    write(folder, "more/a.po", PO)
    write(folder, "more/deep/b.tmx", GOOD)
    write(folder, "more/notes.txt", "no corpus\n")
    write(folder, "more/.hidden.po", PO)
    write(folder, "more/.git/hidden.po", PO)
    write(folder, "more/folder.po/notes.txt", "no corpus\n")
    pairs = [("one", "eins")] * 4
    assert texts(str(folder / "more")) == [*SAID_OF_PO, *pairs]
    single = write(folder, "c.tsv", "a\tb\n")
    assert texts([single, str(folder / "more"), single]) == [
        ("a", "b"),
        *SAID_OF_PO,
        *pairs,
        ("a", "b"),
    ]
    (folder / "empty").mkdir()
    with pytest.raises(UserError, match="has no bilingual files"):
        texts(str(folder / "empty"))
    write(folder, "empty/" + os.fsdecode(b"caf\xe9.tsv"), "a\tb\n")
    with pytest.raises(UserError, match=r"empty/caf.\.tsv: this name is not UTF-8"):
        texts(str(folder / "empty"))


@given(st.text(" \t\r\na", max_size=12))
def test_a_line_break_becomes_a_blank_with_the_blanks_around_it(text: str) -> None:
    expected = re.sub(r"\A[ \t]*[\r\n][ \t\r\n]*|[ \t\r\n]*[\r\n][ \t]*\Z", "", text)
    assert pairs._as_line(text) == re.sub(r"[ \t]*[\r\n][ \t\r\n]*", " ", expected)


def test_many_blanks_take_no_long_time() -> None:
    """Which once took their square."""
    assert pairs._as_line("a" + 500_000 * " " + "b" + 500_000 * "\n") == "a" + 500_000 * " " + "b"


def subtitles(cues: Sequence[tuple[float, float, str]]) -> str:
    def time(seconds: float) -> str:
        return (
            f"{int(seconds // 3600):02}:{int(seconds // 60) % 60:02}:{seconds % 60:06.3f}".replace(
                ".", ","
            )
        )

    blocks = (
        f"{n}\n{time(begin)} --> {time(end)}\n{text}\n"
        for n, (begin, end, text) in enumerate(cues, 1)
    )
    return "\n".join(blocks)


def test_subtitles_are_paired_by_their_times(folder: Path) -> None:
    english = [
        (1, 3, "Hello\nthere."),
        (4, 6, "How are"),
        (6, 8, "you?"),
        (3600, 3603, "Only here."),
        (3610, 3612, "Bye."),
    ]
    german = [
        (1.2, 3.1, "Hallo."),
        (3.9, 8.2, "Wie geht's?"),
        (20, 22, "Nur da."),
        (3609.8, 3612, "Tschüss."),
    ]
    files = [write(folder, "a.srt", subtitles(english)), write(folder, "b.srt", subtitles(german))]
    assert texts(files) == [
        ("Hello there.", "Hallo."),
        ("How are you?", "Wie geht's?"),
        ("", "Nur da."),
        ("Only here.", ""),
        ("Bye.", "Tschüss."),
    ]
    with pytest.raises(UserError, match="appear at the same time"):
        texts([files[0], write(folder, "c.srt", subtitles([(500, 501, "x")]))])
    with pytest.raises(UserError, match="Give two files"):
        texts(files[0])


TIMES = st.lists(st.integers(0, 400), min_size=2, max_size=14, unique=True).map(sorted)


@given(TIMES, TIMES)
def test_every_cue_is_in_one_pair_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, here: list[int], there: list[int]
) -> None:
    sides = [
        [(a, b, f"{name}{a}") for a, b in zip(each[::2], each[1::2], strict=False)]
        for name, each in (("s", here), ("t", there))
    ]
    place = tmp_path_factory.mktemp("film")
    files = [write(place, f"{i}.srt", subtitles(side)) for i, side in enumerate(sides)]
    try:
        pairs = texts(files)
    except UserError:
        return
    for i, side in enumerate(sides):
        assert " ".join(pair[i] for pair in pairs if pair[i]).split() == [text for *_, text in side]


def test_pages_with_the_same_blocks_are_paired(folder: Path) -> None:
    page = "<title>{}</title><p>{} <b>{}</b></p><img alt='{}'>"
    files = [
        write(folder, "a.html", page.format("A", "Big &amp;", "dog", "Dog")),
        write(folder, "b.html", page.format("B", "Großer &amp;", "Hund", "Hund")),
    ]
    assert texts(files) == [("A", "B"), ("Big & dog", "Großer & Hund"), ("Dog", "Hund")]
    with pytest.raises(UserError, match=r"has 3 texts and .* has 4"):
        texts([files[0], write(folder, "c.html", page.format("B", "x", "y", "z") + "<p>more</p>")])


def test_prepare_reads_a_memory(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    units = [
        [("en-GB", f"the number {n} is here"), ("de-DE", f"die Zahl {n} ist da")]
        for n in range(300)
    ]
    file = write(folder, "a.tmx", memory([*units, [("en-GB", "no"), ("de-DE", " ")]]))
    arguments = ("prepare", "--train", file, "--from", "en", "--to", "de", "--out", folder / "data")
    status, out, said = run(capsys, *arguments, "data.vocab_size=400", "data.holdout=20")
    assert status == 0, said
    assert "left out by the rule empty: 1" in out and "20 held out" in out
    bomb = write(folder, "bomb.tmx", GOOD.replace(DOCTYPE.strip(), BOMB))
    status, _, said = run(
        capsys, "prepare", "--train", bomb, "--from", "en", "--to", "de", "--out", folder / "x"
    )
    assert status == 2 and ":2: the document type declares" in said and not (folder / "x").exists()
