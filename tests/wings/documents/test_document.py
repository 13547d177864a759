"""Tests of transduce/wings/documents/document.py."""

import re
from collections.abc import Sequence
from itertools import count, cycle
from pathlib import Path

import polib
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from command_line import run
from documents import PLAIN_CDATA, PO, SRT, VTT, XLIFF1, XLIFF2, by, read, translated, written
from models import publish_model
from transduce.config.schema import DataConfig, DecodeConfig, ModelConfig, RunConfig
from transduce.decoding.plan import GUESSED, IN_PARTS, LONG, LOST, OTHER_NUMBERS, Plan
from transduce.decoding.translator import Translator
from transduce.decoding.types import EMPTY, PLAIN, Link, Term, Translation, TranslationOptions
from transduce.inline.segments import split
from transduce.model.build import build
from transduce.system.errors import UserError
from transduce.text.formats import MARKUP_TEXT, PLAIN_TEXT, PRESERVED_TEXT, TextKind, read_document
from transduce.text.pairs import read_pairs
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.documents.document import decode_pieces, spoken_language, translate_document
from transduce.wings.documents.html import EMBEDDED, INLINE
from transduce.wings.phrasebook.examples import examples

HTML = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>My &amp; page</title><meta name=description content="What it is">
<style>p > a { content: "no" }</style><script>if (a < b) { x = "<p>no</p>" }</script></head>
<body class="a title"><!-- no --><h1>Welcome</h1><p>Hello <b>big</b>
   world. See <a href="x?a=1&amp;b=2" title="The 'docs'">the docs</a> &mdash; or <code>ls -l</code>.<br>Next line
<p>No close <img src=a.png alt='A dog'> here <pre>keep</pre>
<ul><li>One<li translate=no>Not</ul><div><img alt=dog></div><input type=submit value="Send it"><textarea>no</textarea>
<p>2.5 < 3 and AT&T</p><p>123</p></body></html>
"""


TXT = "\ufeffA title\r\n\r\n  A line. And another.  \r\n\tx"


FILES = {
    "a.po": PO,
    "a.xlf": XLIFF1,
    "a2.xliff": XLIFF2,
    "a.html": HTML,
    "a.srt": SRT,
    "a.vtt": VTT,
    "a.txt": TXT,
}


# -- every format -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("redo", [False, True])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", FILES)
def test_unchanged_document_is_written_back_identically(
    name: str, line_end: str, redo: bool
) -> None:
    content = FILES[name].replace("\r\n", "\n").replace("\n", line_end).encode()
    document = read_document(content, name, "en", "de", redo=redo)
    assert document.texts
    assert document.write([slot.present for slot in document.slots]) == content
    assert document.write([""] * len(document.texts)) == content
    with pytest.raises(ValueError):
        document.write(["one more", *[slot.present for slot in document.slots]])


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["a.xlf", "a.html", "a.srt", "a.txt"])
def test_encodings_with_a_byte_order_mark_stay(name: str, codec: str) -> None:
    text = (
        FILES[name]
        .removeprefix("\ufeff")
        .replace('encoding="utf-8"', 'encoding="utf-16"' if "16" in codec else "")
    )
    text = text.replace('<?xml version="1.0" ?>', '<?xml version="1.0"?>')
    content = text.encode(codec)
    if name == "a.xlf" and codec == "utf-32":
        return  # which XML parsers needn't know
    document = read_document(content, name, "en", "de")
    assert document.write([slot.present for slot in document.slots]) == content
    assert len(document.texts) == len(read(name, FILES[name]).texts)
    changed = document.write(["Ü" for _ in document.texts])
    assert changed.decode(codec).count("Ü") == sum(slot.within is None for slot in document.slots)
    assert changed[:2] == content[:2]


def test_slots_record_their_line() -> None:
    for name, text in FILES.items():
        for slot in read(name, text).slots:
            first = re.split(r"[\n<&]", slot.text)[0].strip()
            near = "\n".join(re.split(r"\r?\n", text)[slot.line - 1 : slot.line + 3])
            assert first.replace('"', '\\"') in near or name == "a.po" or first in near


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.doc", b"", r"a\.doc can't be translated: it is a document"),
        ("a", b"", "its name has no suffix"),
        ("a.FOO", b"", r"its suffix \.foo is unknown\. Known suffixes: .*\.po, "),
        (
            "a.txt",
            b"one\ntw\xff",
            r"a\.txt:2: byte 0xFF is not UTF-8\. Declare the file's encoding if",
        ),
        (
            "a.html",
            b"<meta charset=utf-8>\xff",
            r"a\.html:1: byte 0xFF is not UTF-8\. Correct the declared encoding, or convert",
        ),
        ("a.html", b"<meta charset=klingon>x", "encoding 'klingon', which is unknown"),
        ("a.html", b"<meta charset=punycode>x", "encoding 'punycode', which is unknown"),
        (
            "a.xlf",
            b'<?xml version="1.0" encoding="utf-16"?><xliff/>',
            "encoding 'utf-16', but does not begin with a byte order mark",
        ),
        ("a.po", PO.replace("Language: de", "Language: fr").encode(), "translation into 'fr'"),
        ("a.xlf", XLIFF1[:700].encode(), r"a\.xlf:\d+: not well-formed XML"),
        (
            "a.xlf",
            XLIFF1.replace("<body>", "<body>\x01").encode(),
            r"a\.xlf:5: not well-formed XML",
        ),
        ("a.xlf", XLIFF1.replace('e="de"', 'e="pl"').encode(), "translation into 'pl'"),
        ("a.xlf", XLIFF1.replace('e="en"', 'e="fi"').encode(), "translation from 'fi'"),
        ("a.xlf", b"<html/>", "it has no element <xliff>"),
        (
            "a.xlf",
            b'<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><x>&b;</x>',
            r"a\.xlf:1: the document type",
        ),
        (
            "a.xlf",
            b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>',
            "document type declares",
        ),
    ],
)
def test_unreadable_documents_are_refused(name: str, content: bytes, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_document(content, name, "en", "de")


@pytest.mark.parametrize("name", ["a.po", "a.tmx", "a.xlf"])
def test_a_stream_is_refused_as_a_file_is(name: str, tmp_path: Path) -> None:
    content = {"a.po": PO.replace("UTF-8", "utf-16")}.get(
        name, '<?xml version="1.0" encoding="utf-16"?><x/>'
    )
    (tmp_path / name).write_text(content)
    with pytest.raises(
        UserError, match="declares the encoding 'utf-16', but does not begin with a byte order mark"
    ):
        next(read_pairs([str(tmp_path / name)], ("en", "de")))


def test_a_page_may_say_its_encoding_as_xml_does() -> None:
    page = '<?xml version="1.0" encoding="iso-8859-1"?><html><p>caf\xe9</p></html>'.encode(
        "latin-1"
    )
    assert read_document(page, "a.xhtml", "en", "de").texts == ["café"]


@pytest.mark.parametrize(
    "label", ["iso-8859-1", "ISO-8859-1", "latin1", "us-ascii", "windows-1252"]
)
def test_a_page_in_latin_1_is_in_windows_1252_as_in_browsers(label: str) -> None:
    page = f"<meta charset={label}><p>“Café” – 5 €</p>".encode("cp1252")
    document = read_document(page, "a.html", "en", "de")
    assert document.texts == ["“Café” – 5 €"]
    assert document.write([slot.present for slot in document.slots]) == page
    assert document.write(["„Kaffee“ ł"]) == f"<meta charset={label}><p>„Kaffee“ &#322;</p>".encode(
        "cp1252"
    )


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("gb2312", "gbk", "朱镕基"),
        ("shift_jis", "cp932", "髙い"),
        ("x-sjis", "cp932", "髙い"),
        ("X-SJIS", "cp932", "髙い"),
        ("euc-kr", "cp949", "펲"),
    ],
)
def test_a_page_is_read_as_browsers_read_it(label: str, codec: str, text: str) -> None:
    page = f"<meta charset={label}><p>{text}</p>".encode(codec)
    document = read_document(page, "a.html", "zh", "de")
    assert (
        document.texts == [text]
        and document.write([slot.present for slot in document.slots]) == page
    )


def test_a_page_with_bytes_that_windows_1252_lacks_is_in_latin_1() -> None:
    page = b"<meta charset=iso-8859-1><p>caf\xe9 \x81</p>"
    document = read_document(page, "a.html", "en", "de")
    assert document.texts == ["café \x81"]
    assert document.write([slot.present for slot in document.slots]) == page


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("iso-8859-9", "cp1254", "İş 5 €"),
        ("iso-8859-11", "cp874", "แมว 5 €"),
        ("gbk", "gb18030", "猫\U00020000"),
        ("x-gbk", "gb18030", "猫\U00020000"),
        ("ascii", "cp1252", "é €"),
    ],
)
def test_an_encoding_is_read_as_the_larger_one_of_browsers(
    label: str, codec: str, text: str
) -> None:
    page = f"<meta charset={label}><p>{text}</p>".encode(codec)
    assert read_document(page, "a.html", "en", "de").texts == [text]


@pytest.mark.parametrize(("end", "text"), [(4096, "café"), (4120, "cafÃ©")])
def test_the_encoding_of_a_page_is_in_its_first_4096_bytes(end: int, text: str) -> None:
    meta = b"<meta charset=utf-8"
    page = b"<?xml version='1.0' encoding='latin-1'?>".ljust(end - len(meta)) + meta
    assert read_document(page + "><p>café</p>".encode(), "a.html", "en", "de").texts == [text]


@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_byte_order_mark_tells_the_encoding(codec: str) -> None:
    content = "\ufeffÄ dog.\n".encode(codec)
    document = read_document(content, "a.txt", "en", "de")
    assert document.texts == ["Ä dog."]
    assert document.write(["ß"]) == "\ufeffß\n".encode(codec)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        *(
            (label, "which is unknown")
            for label in (
                *("idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"),
                *("utf-7", "utf_7", "base64", "rot13", "klingon"),
            )
        ),
        *((label, "not begin with a byte order") for label in ("utf-8-sig", "utf-16", "utf-32")),
    ],
)
def test_labels_that_name_no_encoding_of_a_file_are_refused(label: str, said: str) -> None:
    with pytest.raises(UserError, match=f"declares (the )?encoding '{label}', .*{said}"):
        read_document(f"<meta charset={label}>x".encode(), "a.html", "en", "de")


def test_a_wrong_byte_of_a_stream_is_in_its_line() -> None:
    pieces = [b"a\nb", b"c\n", b"d \xc3\xa4\n\xc3", b"e"]
    with pytest.raises(UserError, match=r"n:4: byte 0xC3 is not UTF-8"):
        list(decode_pieces(pieces, "n", lambda _: None, 1))
    lenient = decode_pieces(pieces, "n", lambda _: None, 1, lenient=True)
    assert "".join(lenient) == "a\nbc\nd ä\n\udcc3e"
    declared = list[bytes]()
    list(decode_pieces([b"abc"] * 4, "n", declared.append, 5))
    assert declared == [b"abcabc"]


def test_the_language_of_a_code() -> None:
    languages = {
        **{"en-GB": "en", "EN_us": "en", "deu": "de", "sr@latin": "sr", "nn": "nb", "no": "nb"},
        **dict.fromkeys(("src", "tgt", "source", "target", "und", "mul"), ""),
        **dict.fromkeys(("", "e", "english", "x1", "{{ lang }}"), ""),
    }
    assert {code: spoken_language(code) for code in languages} == languages


TMX = """<tmx version="1.4"><header srclang="en"/><body>
<tu><tuv xml:lang="en"><seg>A <b>dog</b> &amp; %s</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>A cat.</seg></tuv><tuv xml:lang="de"><seg/></tuv></tu></body></tmx>"""


WITH_SIGNS = XLIFF1.replace(">Close", ">2 > 1: Close")


WITH_ADDRESSES = XLIFF1.replace(
    ">Close", ">Ask &lt;max@example.org&gt;, {0}&amp;{1}, &lt;{2}&gt;: Close"
)


ODD = st.text(st.sampled_from("aß &<>]!-\"'\\\x01\x0c\ufffe{0}\t"), min_size=1).filter(str.strip)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.po", PO),
        ("a.xlf", XLIFF1),
        ("b.xlf", PLAIN_CDATA),
        ("c.xlf", WITH_SIGNS),
        ("a2.xliff", XLIFF2),
        ("d.xlf", WITH_ADDRESSES),
        ("a.tmx", TMX),
    ],
)
@example(said=["]]\x0c>"])
@example(said=["a ]]> b"])
@given(said=st.lists(ODD, min_size=1, max_size=5))
def test_any_translation_gives_a_readable_document(
    name: str, content: str, said: list[str]
) -> None:
    document = read(name, content)
    plan = Plan(document.texts, "en", kinds=document.kinds)
    sentences = cycle(said)
    made = plan.assemble(by(lambda _: next(sentences), plan.sentences))
    filled = document.write([each.text for each in made])
    before, after = (
        read_document(each, name, "en", "de", redo=True) for each in (content.encode(), filled)
    )
    assert after.texts == before.texts
    if name != "a.po":
        etree.fromstring(filled)


@pytest.mark.parametrize(
    ("name", "content"), [("a.po", PO), ("a.xlf", XLIFF1), ("a2.xliff", XLIFF2), ("a.tmx", TMX)]
)
def test_a_model_without_language_codes_translates_files_that_have_them(
    name: str, content: str
) -> None:
    texts = read(name, content).texts
    assert read_document(content.encode(), name, "src", "tgt").texts == texts
    # Its source language is detected.
    assert read_document(content.encode(), name, "src", "de").texts == texts


@pytest.mark.parametrize("source", ["src", "tgt", "source", "target", "und", "mul"])
def test_a_memory_tells_the_source_of_a_model_without_languages(source: str) -> None:
    assert read_document(TMX.encode(), "a.tmx", source, "de").texts == read("a.tmx", TMX).texts
    with pytest.raises(UserError, match="has no unit in fr"):
        read_document(TMX.encode(), "a.tmx", "fr", "de")


@pytest.mark.parametrize("declared", ['srclang="*all*"', "", 'srclang="en-US"', 'srclang="de"'])
def test_the_source_of_a_memory_is_a_language_that_it_has(declared: str) -> None:
    content = TMX.replace('srclang="en"', declared).replace('xml:lang="en"', 'xml:lang="en-GB"')
    assert read_document(content.encode(), "a.tmx", "src", "de").texts == read("a.tmx", TMX).texts


def test_a_character_that_the_encoding_lacks() -> None:
    document = read_document(
        "<meta charset=latin-1><p>caf\xe9".encode("latin-1"), "a.html", "en", "de"
    )
    assert document.write(["é – <b>ł</b>"]) == "<meta charset=latin-1><p>é – <b>&#322;</b>".encode(
        "cp1252"
    )
    latin = PO.replace("UTF-8", "iso-8859-1").encode("latin-1")
    document = read_document(latin, "a.po", "en", "de")
    assert document.write([slot.present for slot in document.slots]) == latin
    with pytest.raises(
        UserError, match=r"a\.po:13: the translation has 'ł', which .* iso-8859-1 lacks"
    ):
        document.write(["ł"] * len(document.texts))


def test_new_targets_have_codes_with_hyphens() -> None:
    tmx = '<tmx><body><tu><tuv xml:lang="en"><seg>A dog.</seg></tuv></tu></body></tmx>'
    unit = '<trans-unit id="1"><source xml:lang="en">A dog.</source></trans-unit>'
    for name, content in (
        ("a.tmx", tmx),
        ("a.xlf", f'<xliff version="1.2"><file>{unit}</file></xliff>'),
    ):
        assert b' xml:lang="pt-BR">' in read_document(content.encode(), name, "en", "pt_BR").write(
            ["Um cachorro."]
        )


def test_visible_text_is_translated_unless_marked_otherwise() -> None:
    page = """<p>Size: <select><option>Big</option></select></p><object data="x"><p>Text</p></object>
    <img class="notranslate" alt="A"><p translate="NO">B</p><p><b class="x notranslate" title="C">D</b> runs</p>"""
    document = read("a.html", page)
    assert document.texts == [
        "Size:",
        "Big",
        "Text",
        '<b class="x notranslate" title="C">D</b> runs',
    ]


# -- HTML -------------------------------------------------------------------------------------------------


def test_the_texts_of_a_page() -> None:
    texts = read("a.html", HTML).texts
    assert texts == [
        "My &amp; page",
        "What it is",
        "Welcome",
        texts[3],
        "The 'docs'",
        "Next line",
        "No close <img src=a.png alt='A dog'> here",
        "A dog",
        "One",
        "dog",
        "Send it",
        "2.5 < 3 and AT&T",
    ]
    assert texts[3].startswith("Hello <b>big</b>\n   world. See <a href") and texts[3].endswith(
        "<code>ls -l</code>."
    )


def test_ruby_readings_are_kept_and_do_not_split_sentences() -> None:
    reading = "<rp>(</rp><rt>gǒu</rt><rp>)</rp></ruby>"
    document = read(
        "a.html", f"<p>一只大的<ruby>狗{reading}在公园里跑。</p><p><ruby>漢<rt>かん<rt></ruby>"
    )
    assert document.texts[0] == f"一只大的<ruby>狗{reading}在公园里跑。"
    assert len(document.texts) == 2
    plan = Plan(
        document.texts[:1], "zh", kinds=[MARKUP_TEXT], options=TranslationOptions(align=True)
    )
    assert plan.sentences == ["一只大的狗在公园里跑。"]
    links = (Link((4, 5), (6, 9), 1.0), Link((6, 8), (22, 26), 1.0))
    translation = plan.assemble(
        [Translation("A big dog runs in the park.", -1.0, (), links=links)]
    )[0]
    assert (
        translation.text
        == f"A big <ruby>dog {reading.replace('</ruby>', ' </ruby>')} runs in the park."
    )


def test_attributes_within_a_text_are_translated() -> None:
    def translate(text: str) -> str:
        return text.replace("See", "Siehe") if "<" in text else f'"DE" {text}'

    filled = written(read("a.html", HTML), translate)
    assert (
        """Siehe <a href="x?a=1&amp;b=2" title="&quot;DE&quot; The 'docs'">the docs</a>""" in filled
    )
    assert """<img src=a.png alt='"DE" A dog'>""" in filled
    assert """<img alt="&quot;DE&quot; dog">""" in filled


def test_names_of_attributes_are_those_that_browsers_read() -> None:
    page = """<hr =title="one"><hr x<title="two"><hr 'title="three"><hr title = "four">"""
    assert read("a.html", page).texts == ["four"]


def test_a_tag_inside_an_attribute_is_not_taken_for_another_tag() -> None:
    page = """<p>See <a title='an <img alt="a dog">'>it</a> or <img alt="a dog">.</p>"""
    document = read("a.html", page)
    translations = [document.texts[0], 'ein <img alt="a dog">', "ein Hund"]
    expected = """<p>See <a title='ein <img alt="a dog">'>it</a> or <img alt="ein Hund">.</p>"""
    assert document.write(translations).decode() == expected


def upper(page: str) -> str:
    """A page whose sentences are translated to capital letters."""
    document = read("a.html", page)
    plan = Plan(document.texts, "en", kinds=document.kinds)
    made = plan.assemble(by(str.upper, plan.sentences))
    return document.write([each.text for each in made]).decode()


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (
            '<p>See the <svg aria-label="Cloud"><text>Rain</text></svg> and <math><mi>x</mi></math> here.</p>',
            '<p>SEE THE <svg aria-label="CLOUD"><text>Rain</text></svg> AND <math><mi>x</mi></math> HERE.</p>',
        ),
        (
            '<p>The <picture><source srcset=x><img src=y alt="A dog"></picture> runs.</p>',
            '<p>THE <picture><source srcset=x><img src=y alt="A DOG"></picture> RUNS.</p>',
        ),
        (
            '<p>Watch <video title="Film"><track label="Words">It is <a href=x title="Yes">old</a>.</video> now.</p>',
            '<p>WATCH <video title="FILM"><track label="WORDS">IT IS <a href=x title="YES">OLD</a>.</video> NOW.</p>',
        ),
        (
            "<p>One <object data=x><p>A dog.</p><object data=y>A cat</object></object> here.</p>",
            "<p>ONE <object data=x><p>A DOG.</p><object data=y>A CAT</object></object> HERE.</p>",
        ),
        (
            '<p>See <iframe src=x title="Map">No frames</iframe> here.</p><p>A <canvas>a dog</canvas></p>',
            '<p>SEE <iframe src=x title="MAP">No frames</iframe> HERE.</p><p>A <canvas>A DOG</canvas></p>',
        ),
        ("<audio><p>Old.</p><p>Too</p></audio>", "<audio><p>OLD.</p><p>TOO</p></audio>"),
        (
            '<audio translate=no title="Song">Old.</audio>',
            '<audio translate=no title="Song">Old.</audio>',
        ),
    ],
)
def test_embedded_elements_do_not_split_a_sentence(page: str, expected: str) -> None:
    assert upper(page) == expected


def test_an_embedded_element_is_no_word() -> None:
    for element in ("<svg><text>Rain</text></svg>", "<video>Rain</video>", "<object>Rain</object>"):
        document = read("a.html", f"<p>The {element} icon.</p>")
        assert Plan(document.texts[:1], "en", kinds=document.kinds[:1]).sentences == ["The icon."]
        # In a message, a tag may have any name.
        message = 'msgid "The <video>rain</video> icon."\nmsgstr ""\n'
        assert Plan(read("a.po", message).texts, "en").sentences == ["The rain icon."]


@pytest.mark.parametrize(
    "link",
    [
        "<a href='https://x.org/very/long'><span>https://</span><span>x.org/very</span><i>/long</i></a>",
        "<a href='https://x.org/very/long'><span>x.org/very/lo</span>…</a>",
        "<a href='/tags/rain'>#<span>rain</span></a>",
        "<a href='/tags/rain'>#rain</a>",
        "<a href='/@ann'>@<span>ann</span></a>",
        "<a href='mailto:ann@x.org'>ann@<wbr>x.org</a>",
    ],
)
def test_an_address_in_several_elements_stays(link: str) -> None:
    page = f"<p>It rains. {link} and more.</p>"
    assert upper(page) == f"<p>IT RAINS. {link} AND MORE.</p>"
    assert upper(f"<p>{link}</p>") == f"<p>{link}</p>"
    assert read("a.html", page).write(read("a.html", page).texts).decode() == page


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("<a href='/painters'>painters</a>", "<a href='/painters'>PAINTERS</a>"),
        ("<a href='/x'>and/<b>or</b></a>", "<a href='/x'>AND/<b>OR</b></a>"),
        ("<a href='/etc.'>etc.</a>", "<a href='/etc.'>ETC.</a>"),
        ("<a href='#top'>to <b>top</b></a>", "<a href='#top'>TO <b>TOP</b></a>"),
    ],
)
def test_other_links_are_translated(link: str, expected: str) -> None:
    assert upper(f"<p>See {link}</p>") == f"<p>SEE {expected}</p>"


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<p lang=fr title=Oui>Oui</p><p>No</p>", "<p lang=fr title=Oui>Oui</p><p>NO</p>"),
        ("<p xml:lang='fr'>Oui</p>", "<p xml:lang='fr'>Oui</p>"),
        (
            "<p>He said <i lang=fr>oui</i> and <img lang=fr alt=Chat> left.</p>",
            "<p>HE SAID <i lang=fr>oui</i> AND <img lang=fr alt=Chat> LEFT.</p>",
        ),
        (
            "<div lang=fr><p>Oui <b>oui</b><p lang=en title=Yes>Yes <b>yes</b></p>oui</div>No",
            '<div lang=fr><p>Oui <b>oui</b><p lang=en title="YES">YES <b>YES</b></p>oui</div>NO',
        ),
        ("<p lang=fr>Oui <b lang=en>yes</b> oui</p>", "<p lang=fr>Oui <b lang=en>YES</b> oui</p>"),
        ("<i lang=fr>oui <b lang=en>yes</b></i> no", "<i lang=fr>oui <b lang=en>YES</b></i> NO"),
        ("<ul><li lang=fr>Oui<li>Yes</ul>", "<ul><li lang=fr>Oui<li>YES</ul>"),
        ("<div lang=fr>Oui</b> oui</div></i>No", "<div lang=fr>Oui</b> oui</div></i>NO"),
        ("<div lang=fr><b>Oui</div>No</b>", "<div lang=fr><b>Oui</div>NO</b>"),
        ("<p lang=fr>Oui<br>oui<hr></p>No", "<p lang=fr>Oui<br>oui<hr></p>NO"),
        *(
            (f"<p lang='{code}'>Yes</p>", f"<p lang='{code}'>YES</p>")
            for code in ("en", "en-GB", "EN_us", "eng", "", "und", "{{ lang }}")
        ),
        ("<p lang=fr>Oui <b lang=''>oui</b></p>", "<p lang=fr>Oui <b lang=''>oui</b></p>"),
        ("<p lang=zxx>xyz</p>", "<p lang=zxx>xyz</p>"),
        ("<html lang=fr><body lang=fr><p>Yes</p>", "<html lang=fr><body lang=fr><p>YES</p>"),
    ],
)
def test_text_in_another_language_stays(page: str, expected: str) -> None:
    assert upper(page) == expected


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        (
            "<div translate=no title=A><p>No</p><p translate=yes title=Yes>Yes</p>No</div>Yes",
            '<div translate=no title=A><p>No</p><p translate=yes title="YES">YES</p>No</div>YES',
        ),
        (
            "<p>See the <b translate=no>No</b> now.</p><p>A <i class='x notranslate'>no</i></p>",
            "<p>SEE THE <b translate=no>No</b> NOW.</p><p>A <i class='x notranslate'>no</i></p>",
        ),
        (
            "<p class=notranslate>No <b translate=yes>yes</b> no</p><p>Yes",
            "<p class=notranslate>No <b translate=yes>YES</b> no</p><p>YES",
        ),
        (
            "<div lang=fr><p translate=yes>Oui<p lang=en>Yes<p lang=en translate=no>No</div>",
            "<div lang=fr><p translate=yes>Oui<p lang=en>YES<p lang=en translate=no>No</div>",
        ),
        ("<code translate=yes>ls</code>", "<code translate=yes>ls</code>"),
        (
            "<pre translate=no><b translate=yes>a</b></pre>",
            "<pre translate=no><b translate=yes>a</b></pre>",
        ),
    ],
)
def test_a_part_of_an_untranslated_element_may_be_translated(page: str, expected: str) -> None:
    assert upper(page) == expected


@pytest.mark.parametrize(
    "element",
    [
        "<i lang=fr>oui</i>",
        "<i lang=fr>oui <b>ça</b></i>",
        "<img lang=fr alt=Chat>",
        "<i lang=en translate=no>No</i>",
        "<a href=x lang=en>#rain</a>",
        "<svg lang=fr><text>oui</text></svg>",
    ],
)
def test_an_element_that_stays_does_not_end_a_text(element: str) -> None:
    [text] = read("a.html", f"<p>He said {element} to her.</p>").texts
    assert text.startswith("He said ") and text.endswith(" to her.") and element in text


def test_without_a_source_language_no_text_is_in_another_one() -> None:
    page = b"<p lang=fr>Oui</p><p lang=en>Yes</p>"
    assert read_document(page, "a.html", "src", "tgt").texts == ["Oui", "Yes"]


def test_labels_and_descriptions_are_texts() -> None:
    page = """<meta property="og:image:alt" content="one"><meta name="twitter:image:alt" content="two">
    <meta itemprop=description content="three"><meta name=author content="Ann"><track label="four">
    <optgroup label="five"><option label="six">seven</option></optgroup><p aria-description="eight" label="x">
    <input type=submit value="nine"><input value="x"><menu aria-valuetext="ten">"""
    numbers = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    assert read("a.html", page).texts == numbers


def test_elements_in_a_line_do_not_end_a_text() -> None:
    names = (
        "a abbr acronym b bdi bdo big cite code data del dfn em embed font i img ins kbd mark nobr q rb rp rt rtc ruby "
        "s samp small span strike strong sub sup time tt u var wbr"
    )
    inline = names.split()
    embedded = ["audio", "canvas", "iframe", "map", "math", "object", "picture", "svg", "video"]
    assert {*inline, *embedded} == INLINE and {*embedded} == EMBEDDED
    for name in inline:
        page = f"<p>One <{name}>two</{name}> three</p>"
        assert read("a.html", page).texts == [page[3:-4]], name
    for name in embedded:
        inner = [] if name in ("svg", "math", "iframe") else ["two"]
        [text, *texts] = read("a.html", f"<p>One <{name}>two</{name}> three</p>").texts
        assert text.startswith("One ") and text.endswith(" three"), name
        assert [each.removesuffix(f"</{name}>") for each in texts] == inner, name
    for name in ("div", "h1", "li", "td", "section", "br"):
        assert read("a.html", f"<p>One <{name}>two</{name}> three</p>").texts[1:] == [
            "two",
            "three",
        ]
    for name in ("pre", "listing", "template", "script", "style", "textarea"):
        assert read("a.html", f"<p>One</p><{name}>two</{name}>").texts == ["One"], name


def test_attributes_that_are_texts() -> None:
    spoken = "alt title placeholder aria-label aria-description aria-placeholder "
    spoken += "aria-roledescription aria-valuetext"
    others = "value label content class data-title name"
    names = "description keywords og:title og:description og:image:alt twitter:title "
    names += "twitter:description twitter:image:alt"
    translated = {
        **{f'<hr {name}="one">': True for name in spoken.split()},
        **{f'<hr {name}="one">': False for name in others.split()},
        **{f'<{name} label="one">': True for name in ("optgroup", "option", "track")},
        **{f'<meta name="{name}" content="one">': True for name in names.split()},
        **{f'<meta {key}="description" content="one">': True for key in ("property", "itemprop")},
        **{f'<meta {key}="description" content="one">': False for key in ("id", "class")},
        **{f'<input type="{kind}" value="one">': True for kind in ("submit", "button", "RESET")},
        **{f'<input type="{kind}" value="one">': False for kind in ("text", "hidden", "")},
        '<meta name="viewport" content="one" title="two">': False,
        '<hr alt="12" title="%s">': False,
    }
    for page, is_text in translated.items():
        assert read("a.html", page).texts == ["one"] * is_text, page
    assert read("a.html", '<input type=submit value="b" title="a">').texts == ["b", "a"]


@pytest.mark.parametrize("spans", [6, 7])
def test_an_address_in_more_than_twenty_pieces_is_no_address(spans: int) -> None:
    link = f"<a href=x>#{'<i>a</i>' * spans}</a>"  # text of an address in 2 + 1 + 3 * spans pieces
    kept = f"<a href=x>{'<i>#a</i>' + '<i>a</i>' * (spans - 1)}</a>"
    assert (upper(f"<p>{kept}</p>") == f"<p>{kept}</p>") == (spans == 6)
    assert upper(f"<p>{link}</p>") != f"<p>{link}</p>" or spans == 6


def test_the_depth_of_embedded_elements_is_limited() -> None:
    page = "x"
    for level in (5, 4, 3, 2, 1):
        page = f"level {level} <object>{page}</object>"
    found = [text.split("<")[0].strip() for text in read("a.html", f"<p>{page}</p>").texts]
    assert found == [f"level {level}" for level in (1, 2, 3, 4, 5)], "and not x"


# -- lines and sentences -----------------------------------------------------------------------------------


def test_the_lines_of_a_text_file() -> None:
    document = read("a.txt", TXT)
    assert document.texts == ["A title", "A line. And another.", "x"]
    assert written(document, str.upper) == "\ufeffA TITLE\r\n\r\n  A LINE. AND ANOTHER.  \r\n\tX"


def test_blanks_around_a_line_stay() -> None:
    lines = "\u00a0 x\ufeff\n\u2003\n\t\ufeff\r\n\x0c\ny \u2003\n"
    document = read("a.txt", lines)
    assert (document.texts, document.lines) == (["x", "y \u2003"], [1, 5])
    assert written(document, lambda _: "z") == lines.replace("x", "z", 1).replace("y \u2003", "z")


PLACEHOLDERS = st.sampled_from(
    ["%(name)s", "{0}", "{1}", "{{ limit }}", "https://a.b/c", "``code``", "%s", "%%"]
)


WORDS = st.sampled_from(
    ["A word.", "Dr. No", "is", "3.5", "\n", "\r\n", "\t", "  ", "- item", "\u00a0", "“yes”", "ß"]
)


@given(
    st.lists(
        st.lists(WORDS | PLACEHOLDERS).map(" ".join) | st.text(alphabet="aB.,;!? \n\r\t\u2028é1-"),
        max_size=4,
    )
)
def test_unchanged_sentences_give_the_text_back(texts: list[str]) -> None:
    plan = Plan(texts, "en")
    made = plan.assemble(by(str, plan.sentences))
    assert [each.text for each in made] == texts
    assert not any(each.flags for each in made)


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("你好。你好吗？", {"你好。": "Hello.", "你好吗？": "How are you?"}, "Hello. How are you?"),
        ("你好。你好吗？", {"你好。": "もし。", "你好吗？": "元気？"}, "もし。元気？"),
        ("点击<x id='1'/>保存。", {"点击": "Click ", "保存。": "save."}, "Click <x id='1'/> save."),
        ("点击{0}保存。", {"点击": "Click ", "保存。": "save."}, "Click {0} save."),
        ("点击{0}保存。", {"点击": "押す", "保存。": "保存。"}, "押す{0}保存。"),
        ("(%d items)", {"(": "(", " items)": " Dinge)"}, "(%d Dinge)"),
        ("{0}'s file", {"'s file": "'s Datei"}, "{0}'s Datei"),
    ],
)
def test_blanks_follow_the_script_of_the_translation(
    text: str, words: dict[str, str], expected: str
) -> None:
    def translate(sentence: str) -> Translation:
        """Without placeholders, as a model that loses them. Each word is linked with its translation."""
        found, links = "", list[Link]()
        for word, other in words.items():
            if (begin := sentence.find(word)) >= 0:
                links.append(
                    Link((begin, begin + len(word)), (len(found), len(found + other.rstrip())), 1.0)
                )
                found += other
        return Translation(found, -1.0, (), (), (), tuple(links))

    plan = Plan(
        [text],
        "zh",
        kinds=[MARKUP_TEXT if "<" in text else PLAIN_TEXT],
        options=TranslationOptions(align=True),
    )
    assert plan.assemble([*map(translate, plan.sentences)])[0].text == expected


@pytest.mark.parametrize(
    ("language", "text", "sentences", "expected"),
    [
        ("en", "A child. A bird.", ["一个孩子。", "一只鸟。"], "一个孩子。一只鸟。"),
        (
            "en",
            "“Yes.” She went.  A bird.",
            ["“好。”", "她走了。", "一只鸟。"],
            "“好。”她走了。  一只鸟。",
        ),
        (
            "en",
            "A child. A bird.",
            ["เด็ก", "นก"],
            "เด็ก นก",
        ),  # in Thai and Khmer, a blank may separate sentences
        ("zh", "你好。 世界。", ["你好。", "世界。"], "你好。 世界。"),
        ("en", "A child. A bird.", ["图１", "２"], "图１ ２"),
        ("ur", "وہ جاتا ہے۔میں ہوں۔", ["He goes.", "I am."], "He goes. I am."),
        ("hi", "“यह है।”मैं हूँ।", ["“It is.”", "I am."], "“It is.” I am."),
        ("am", "ነው።እንዴት ነህ።", ["It is.", "I am."], "It is. I am."),
        ("hy", "Բարև։Ես։", ["Hello.", "I."], "Hello. I."),
        ("hy", "Բարև։Ես։", ["Բարև։", "Ես։"], "Բարև։Ես։"),
        ("hi", "यह है।मैं हूँ।", ["它。", "我。"], "它。我。"),
        ("zh", "狗。猫。", ["कुत्ता।", "बिल्ली।"], "कुत्ता। बिल्ली।"),
        ("ja", "「犬。」「猫。」", ['"A dog."', '"A cat."'], '"A dog." "A cat."'),
        ("en", "Call System.Out now.", ["Rufe System.", "Out."], "Rufe System.Out."),
    ],
)
def test_blanks_between_sentences_follow_the_script(language, text, sentences, expected):
    plan = Plan([text], language)
    assert plan.assemble([Translation(each, -1.0, ()) for each in sentences])[0].text == expected


TAGS = st.sampled_from(["<b>a b</b>", "**c**", "<i>Dr. No. He</i>", "{0}", "<b>{1}</b>", "“{2}”"])


@given(st.lists(WORDS | TAGS).map(" ".join))
def test_links_are_between_the_same_words_wherever_markup_stands(text: str) -> None:
    plan = Plan([text], "en", options=TranslationOptions(align=True))
    words = [
        [found.span() for found in re.finditer(r"\w+", sentence)] for sentence in plan.sentences
    ]
    sentences = [
        Translation(sentence, -1.0, (), (), (), tuple(Link(word, word, 1.0) for word in each))
        for sentence, each in zip(plan.sentences, words, strict=True)
    ]
    [made] = plan.assemble(sentences)
    assert made.text == text
    assert bool(made.links) == bool(sum(map(len, words)))
    for (begin, end), (first, last), _ in made.links:
        assert text[begin:end] == made.text[first:last]
        assert text[begin:end].replace("<b>", "").strip("{}").isalnum() or "<" in text[begin:end]


@given(
    st.text(alphabet="a.`*{}%<>/b: \n"), st.sampled_from([PLAIN_TEXT, MARKUP_TEXT, PRESERVED_TEXT])
)
@example("a<a\n>", PLAIN_TEXT)  # a tag on two lines is no tag in plain text
def test_no_sentence_holds_a_line_break(text: str, kind: TextKind) -> None:
    assert not any(
        "\n" in sentence or not sentence.strip()
        for sentence in Plan([text], "en", kinds=[kind]).sentences
    )


@given(st.lists(st.lists(WORDS).map(" ".join), max_size=4), st.integers(1, 8))
def test_too_long_sentences_are_translated_in_parts_and_flagged(
    texts: list[str], longest: int
) -> None:
    plan = Plan(texts, "en", lengths=lambda parts: list(map(len, parts)), max_length=longest)
    assert all(len(sentence) <= longest for sentence in plan.sentences)
    made = plan.assemble(by(str, plan.sentences))
    assert [each.text for each in made] == texts
    sentences = [text[begin:end] for text in texts for begin, end in split(text, "en")]
    too_long = [each for each in sentences if len(each) > longest and any(map(str.isalpha, each))]
    assert bool(too_long) == any(IN_PARTS in each.flags for each in made)


def test_a_placeholder_that_is_too_long_is_taken_out() -> None:
    def lengths(texts: Sequence[str]) -> list[int]:
        return list(map(len, texts))

    address = "https://example.org/" + "a/" * 20
    plan = Plan([f"See {address} for more."], "en", lengths=lengths, max_length=30)
    [made] = plan.assemble(by(str, plan.sentences))
    assert (plan.sentences, made.text) == (["See", "for more."], f"See {address} for more.")


def test_a_sentence_is_not_cut_inside_a_placeholder() -> None:
    def lengths(texts: Sequence[str]) -> list[int]:
        return list(map(len, texts))

    text = "Open all files {{ x }} and close them"
    plan = Plan([text], "en", lengths=lengths, max_length=24)
    [made] = plan.assemble(by(str.swapcase, plan.sentences))
    assert (made.text, LONG in made.flags) == ("oPEN ALL FILES {{ x }} AND CLOSE THEM", False)


def test_a_sentence_that_is_translated_to_nothing_is_left_and_flagged() -> None:
    for kept in ("Ka <b>lo</b>.", "Ka {0}.", "Ka."):
        plan = Plan([f"{kept} Mi."], "en", kinds=[MARKUP_TEXT])
        [made] = plan.assemble(
            [Translation("MI." if each == "Mi." else " ", -1.0, ()) for each in plan.sentences]
        )
        assert (made.text, made.flags) == (f"{kept} MI.", (EMPTY,))


def test_alternatives_do_not_hide_that_a_translation_is_empty() -> None:
    other = Translation("Lo.", -2.0, ())
    for n_best, alternatives in ((1, ()), (2, (other,))):
        plan = Plan(["Ka."], "en", options=PLAIN._replace(n_best=n_best))
        [made] = plan.assemble(
            [Translation("", -1.0, (), flags=(EMPTY,), alternatives=alternatives)]
        )
        assert (made.text, made.score, made.flags) == ("Ka.", -1.0, (EMPTY,))
        assert [each.text for each in made.alternatives] == [each.text for each in alternatives]


def test_text_in_utf_16_without_a_byte_order_mark() -> None:
    for codec in ("utf-16-le", "utf-16-be"):
        content = "A dog runs after a cat.\n".encode(codec)
        document = read_document(content, "a.txt", "en", "de")
        assert document.texts == ["A dog runs after a cat."] and document.write([""]) == content


def test_unshortenable_text_is_left_and_flagged() -> None:
    plan = Plan(["ab"], "en", lengths=lambda texts: [9] * len(texts), max_length=3)
    assert plan.sentences == []
    assert plan.assemble([]) == [Translation("ab", 0.0, (), flags=(LONG,))]


def test_a_placeholder_that_is_copied_stays_where_it_was_put() -> None:
    def with_placeholder(sentence: str) -> str:
        return {"Delete {0} now.": "{0} jetzt löschen.", "Delete now.": "Jetzt löschen."}[sentence]

    assert translated("Delete {0} now.", with_placeholder) == Translation(
        "{0} jetzt löschen.", -1.0, ("Delete {0} now.",)
    )


def test_placeholder_that_is_not_copied_is_inserted() -> None:
    def without(sentence: str) -> str:
        return {"Delete {0} now.": "Jetzt 0 löschen.", "Delete now.": "Jetzt löschen."}[sentence]

    made = translated("Delete {0} now.", without)
    assert made.text.replace("{0} ", "") == "Jetzt löschen." and made.text.count("{0}") == 1
    assert made.flags == (GUESSED,)


def test_lost_placeholders_and_other_numbers_are_flagged() -> None:
    assert LOST in translated("Write {0} here.", lambda _: "Hier {1} {0}.").flags
    assert translated("It is 3.5 km.", lambda _: "Es sind 3,6 km.").flags == (OTHER_NUMBERS,)
    assert translated("It is 3.5 km.", lambda _: "Es sind 3,5 km.").flags == ()


def test_texts_without_words_are_not_translated() -> None:
    plan = Plan(["{0}: 17\n<br/>", "", " \n", "https://a.b"], "en")
    assert plan.sentences == []
    assert [each.text for each in plan.assemble([])] == ["{0}: 17\n<br/>", "", " \n", "https://a.b"]


def test_markup_in_sentences() -> None:
    text = "<p>One <b>two. Three</b> &amp; four.</p>\n<i>Five</i> <code>x &lt; y</code> &quot;six&quot;"
    plan = Plan([text], "en", kinds=[MARKUP_TEXT])
    assert plan.sentences == ["One two.", "Three & four.", 'Five x < y "six"', 'Five "six"']
    made = plan.assemble(by(str.upper, plan.sentences))[0].text
    assert (
        made
        == "<p>ONE <b>TWO. THREE</b> &amp; FOUR.</p> <i>FIVE</i> <code>x &lt; y</code> &quot;SIX&quot;"
    )


def test_tags_ask_for_links_and_placeholders_for_hypotheses() -> None:
    def groups(
        beam_size: int, options: TranslationOptions = PLAIN, **engine: bool
    ) -> dict[tuple[int, bool], list[int]]:
        plan = Plan(
            ["No tags. A <b>tag</b> here. {0} words"],
            "en",
            options=options,
            beam_size=beam_size,
            **engine,
        )
        assert plan.sentences == ["No tags.", "A tag here.", "{0} words", "words"]
        return {(group.options.n_best, group.options.align): group.places for group in plan.groups}

    assert groups(4) == {(1, False): [0], (1, True): [1, 3], (4, False): [2]}
    assert groups(4, can_align=False) == {(1, False): [0, 1, 3], (4, False): [2]}
    assert groups(4, TranslationOptions(n_best=5, align=True)) == {(5, True): [0, 1, 2, 3]}
    assert Plan([], "en").groups == []


def test_sentence_too_long_without_its_placeholders_is_flagged() -> None:
    plan = Plan(
        ["a {0} b"],
        "en",
        lengths=lambda texts: [9 if "{0}" not in text else 1 for text in texts],
        max_length=3,
    )
    assert plan.sentences == ["a {0} b"]
    assert plan.assemble([Translation("b a", -1.0, ())])[0].flags == (LONG,)


def test_alternatives_join_those_of_the_sentences() -> None:
    plan = Plan(["One. Two."], "en", options=TranslationOptions(n_best=9))
    others = (Translation("Ein.", -2.0, ()), Translation("Eine.", -3.0, ()))
    made = plan.assemble(
        [Translation("Eins.", -1.0, ("a",), others), Translation("Zwei.", -2.0, ("b",))]
    )[0]
    assert (made.text, made.score, made.tokens) == ("Eins. Zwei.", -1.5, ("a", "b"))
    assert [(each.text, each.score) for each in made.alternatives] == [
        ("Ein. Zwei.", -2.0),
        ("Eine. Zwei.", -2.5),
    ]
    again = (Translation("Eins.", -2.0, ()), *others, Translation("Ein.", -4.0, ()))
    same = plan.assemble(
        [Translation("Eins.", -1.0, ("a",), again), Translation("Zwei.", -2.0, ("b",))]
    )[0]
    assert same.alternatives == made.alternatives
    with pytest.raises(ValueError, match="1 translations of 2 sentences"):
        plan.assemble([Translation("", 0.0, ())])


# -- with a model -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    sources = [
        f"{one} {other}."
        for one in ("a dog", "the cat", "a house")
        for other in ("runs", "sees it", "is red")
    ]
    signs = "- ( ) [ ] < > & % # / \\ ' \" , ; : ! ? … – „ “ ” « » ♪ 0 1 2 3 4 5 6 7 8 9 é ö ü"
    sources += [signs] * 3  # signs that it doesn't know would be carried over
    return Tokenizer.train(sources, [text.upper() for text in sources], vocab_size=400)


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model that has learnt nothing, and knows 40 positions."""
    config = ModelConfig(
        vocab_size=tokenizer.target.size,
        d_model=32,
        d_ff=32,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )
    run = RunConfig(
        model=config,
        data=DataConfig(source="en", target="de"),
        decode=DecodeConfig(beam_size=1, max_extra_tokens=2),
    )
    folder = tmp_path_factory.mktemp("models") / "model"
    publish_model(folder, run, tokenizer, build(config).state_dict(), {}, "")
    return folder


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    from transduce.decoding.loading import load

    return load(model, engine="torch")


def test_a_text_of_paragraphs_has_them_in_its_translation(translator: Translator) -> None:
    text = "A dog runs. The cat sees it!\r\n\r\n  A house is {0}.\n"
    [made] = translator.translate([text], sentences=True)
    assert re.fullmatch(r"[^\n]+\r\n\r\n  [^\n]*\{0\}[^\n]*\n", made.text)
    [first, blank] = translator.translate_lines(
        iter([text, " "]), TranslationOptions(sentences=True)
    )
    assert (first, blank.text) == (made, " ")


def test_a_sentence_longer_than_the_model_was_trained_on_is_translated_in_parts(
    translator: Translator,
) -> None:
    shorter = Translator(translator.engine, translator.tokenizer, translator.config, max_length=10)
    [made] = shorter.translate(["a dog runs, " * 20], sentences=True)
    assert IN_PARTS in made.flags
    assert made.text.endswith(" ")


def test_errors_name_the_line(translator: Translator) -> None:
    terms = [Term("dog", " ".join(["a very long name of a dog"] * 3))]
    lines = ["A cat {0}. A cat.", "", "A cat. A dog."]
    for sentences in (False, True):
        options = TranslationOptions(glossary=tuple(terms), sentences=sentences)
        with pytest.raises(UserError, match=r"^Text 102: the terms of the glossary"):
            list(translator.translate_lines(lines, options, numbers=count(100)))
    with pytest.raises(UserError, match=r"^Text 5: the terms of the glossary"):
        page = b"\n\n<p>A cat.</p>\n\n<p>A dog.</p>"
        options = TranslationOptions(glossary=tuple(terms))
        translate_document(translator, page, "a.html", "en", "de", options=options)


def test_texts_are_translated_sentence_by_sentence_and_flagged_with_their_lines(
    translator: Translator,
) -> None:
    texts = ["A dog runs. The cat sees it.", "3 dogs", "A cat."]
    page = "\n\n".join(f"<p>{text}</p>" for text in texts).encode()
    found = translate_document(translator, page, "a.html", "en", "de")
    made = translator.translate(texts, sentences=True)
    assert found.texts == 3
    again = read_document(found.content, "a.html", "de", "en")
    assert again.texts == [each.text for each in made if each.text]
    expected = [(line, each.flags) for line, each in zip((1, 3, 5), made, strict=True)]
    assert found.flagged == [each for each in expected if each[1]]
    assert OTHER_NUMBERS in dict(found.flagged)[3]


@pytest.mark.parametrize("name", FILES)
def test_a_document_is_translated_and_can_be_read_again(name: str, translator: Translator) -> None:
    content = FILES[name].encode()
    translated = translate_document(translator, content, name, "en", "de", redo=True)
    before, after = (
        read_document(each, name, "en", "de", redo=True) for each in (content, translated.content)
    )
    assert translated.texts == len(before.texts)
    if name in ("a.po", "a.xlf", "a2.xliff"):
        assert after.texts == before.texts
    assert not any(LOST in flags for _, flags in translated.flagged)


def test_the_command_translates_a_document(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, translated = tmp_path / "page.po", tmp_path / "out.po"
    page.write_text(PO)
    arguments = ("translate", model, "--engine", "torch", "--input", page)
    status, _, said = run(capsys, *arguments, "--output", translated)
    assert status == 0, said
    assert "4 texts translated" in said
    assert polib.pofile(translated.read_text()).percent_translated() == 80  # but for the fuzzy one
    assert run(capsys, *arguments, "--json")[0] == 2
    status, _, said = run(capsys, "translate", model, "--input", "a.po.gz")
    assert status == 2
    assert "a.po.gz is a compressed document. Decompress it first." in said
    made = translated.read_text()
    assert (
        run(capsys, *arguments, "--output", translated)[0] == 0
        and not translated.with_name("out.po.bak").exists()
    )
    translated.write_text(made.replace('msgstr "', 'msgstr "Corrected ', 2))
    status, _, said = run(capsys, *arguments, "--output", translated)
    assert "out.po is now" in said and "Corrected" in translated.with_name("out.po.bak").read_text()
    translated.write_text("Corrected again")
    status, _, said = run(capsys, *arguments, "--output", translated)
    assert "Corrected again" in translated.with_name("out.po.bak1").read_text()
    (tmp_path / "a.ts").write_text('<?xml version="1.0"?>\n')
    for name, why in {
        "a.sdlxliff": "Export it from your translation tool",
        "a.jsonl": "table",
        "a.jsonc": "is a JSON file. Convert it to .po with json2po of the Translate Toolkit. To",
        str(tmp_path / "a.ts"): "looks like a file of Qt Linguist",
        "a.csv.gz": "compressed document",
    }.items():
        status, _, refused = run(capsys, "translate", model, "--input", name)
        assert status == 2 and why in refused
    status, _, said = run(capsys, "translate", model, "--engine", "torch", "--input", translated)
    assert "There is nothing to translate" in said and "--redo" in said
    reviewed = tmp_path / "reviewed.po"
    assert run(capsys, *arguments, "--output", reviewed, "--needs-review")[0] == 0
    assert sum(entry.fuzzy for entry in polib.pofile(reviewed.read_text())) == 4
    (tmp_path / "a.html").write_text("<p>A dog.</p>")
    of_page = ("translate", model, "--engine", "torch", "--input", tmp_path / "a.html")
    assert (
        "only PO and XLIFF files and string catalogs can"
        in run(capsys, *of_page, "--needs-review")[2]
    )
    (tmp_path / "b.html").write_text("<p>12</p>")
    of_numbers = *of_page[:-1], tmp_path / "b.html", "--output", tmp_path / "c.html"
    for redo in ([], ["--redo"]):
        status, _, said = run(capsys, *of_numbers, *redo)
        assert status == 0 and f"0 texts translated → {tmp_path / 'c.html'}" in " ".join(
            said.split()
        )
        assert ("There is nothing to translate" in said) == (not redo)
    (tmp_path / "a.ass").write_text("A dog.\n\nA cat.\n")
    for of_lines in ((tmp_path / "a.ass",), (page,)):
        status, out, said = run(capsys, *of_page[:-1], *of_lines, "--plain")
        assert status == 0 and out.count("\n") == of_lines[0].read_text().count("\n")
    assert run(capsys, *of_page[:-1], tmp_path / "a.ass")[0] == 2
    assert run(capsys, *of_page[:-1], page, "--plain", "--needs-review")[0] == 2


@pytest.mark.parametrize(
    ("suffix", "can_say"),
    [(".po", 1), (".POT", 1), (".xlf", 1), (".xliff", 1), (".tmx", 0), (".html", 0)],
)
def test_formats_that_can_say_that_a_text_needs_a_review(
    suffix: str, can_say: bool, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"missing{suffix}"
    options = "--needs-review", "--output", tmp_path / "out"
    status, _, said = run(capsys, "translate", model, "--input", file, *options)
    said = " ".join(said.split())
    assert status == 2 and f"{file} can't be read: No such file or directory." in said
    assert ("can't say which texts need a review" in said) == (not can_say)


@pytest.mark.parametrize("count", [29, 30])
def test_a_long_file_in_the_target_language_is_named(
    count: int,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("transduce.commands.translate.MANY_LINES", 30)
    (tmp_path / "b.txt").write_text(
        "".join(f"{each.german}\n" for each in examples("train", count))
    )
    status, out, said = run(
        capsys, "translate", model, "--engine", "torch", "--input", tmp_path / "b.txt"
    )
    assert status == 0 and out.count("\n") == count
    assert ("% of the first lines look like de, not en." in said) == (count == 30)


@pytest.mark.parametrize("count", [29, 30])
def test_a_long_document_in_another_language_is_named(
    count: int,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("py3langid")
    monkeypatch.setattr("transduce.wings.documents.translate_command.MANY_LINES", 30)
    page = tmp_path / "b.html"
    page.write_text("".join(f"<p>{each.german}</p>\n" for each in examples("train", count)))
    command = ["translate", model, "--engine", "torch", "--input", page, "--output"]
    status, _, said = run(capsys, *command, tmp_path / "out.html")
    assert status == 0
    assert (f"% of the texts in {page} look like de, not en." in " ".join(said.split())) == (
        count == 30
    )


def test_a_test_set_in_another_language_is_named(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("py3langid")
    pairs = [(each.german, each.english) for each in examples("train", 30)]
    for name, texts in zip(("a.1", "a.2"), zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts))
    status, _, said = run(capsys, "evaluate", model, tmp_path / "a.1", tmp_path / "a.2")
    said = " ".join(said.split())
    assert status == 0 and "look like de, not en." in said and "look like en, not de." in said


def test_the_command_translates_lines_of_several_sentences(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("A dog runs. A cat runs.\n\n<b>3 dogs</b> run {0}.\n")
    arguments = ("translate", model, "--engine", "torch", "--input", tmp_path / "a.txt")
    status, out, said = run(capsys, *arguments, "--sentences")
    lines = out.split("\n")
    assert status == 0 and len(lines) == 4 and not lines[1]
    assert all(lines[2].count(each) == 1 for each in ("<b>", "</b>", "{0}"))
    assert "1 translation with other numbers than the source: line 3" in said
    assert run(capsys, *arguments, "--redo")[0] == 2
