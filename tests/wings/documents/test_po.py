"""Tests of transduce/wings/documents/po.py."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import polib
import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents import PO, read, written
from transduce.system.errors import UserError
from transduce.text.formats import CorpusFile, read_document
from transduce.text.pairs import read_pairs
from transduce.wings.documents import po
from transduce.wings.documents.po import CREDITS, read_po_pairs, read_translated_po

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


@pytest.mark.parametrize(
    ("language", "translations", "expected"),
    [
        ("de", "ab", ["a", "b"]),
        ("pl", "abc", ["a", "c"]),  # the last form is for most numbers
        ("ar", "abcdef", ["b", "f"]),  # the form 0 is for no files
        ("ja", "a", [None, "a"]),  # one form for all numbers
        ("ru", "abc", ["a", "c"]),
        ("pl", "ab", ["a", "b"]),  # a form is missing
    ],
)
def test_a_message_with_plural_forms_gives_the_pairs_for_one_and_for_many(
    language: str, translations: str, expected: list[str | None]
) -> None:
    forms = "".join(f'msgstr[{i}] "{text}"\n' for i, text in enumerate(translations))
    text = f'msgid "one"\nmsgid_plural "many"\n{forms}'
    pairs = [*zip(("one", "many"), expected, (1, 1), strict=True)]
    assert list(read_translated_po([text.encode()], "a.po", language)) == [
        pair for pair in pairs if pair[1]
    ]


@pytest.mark.parametrize("forms", [("x", ""), ("", "x"), ("", "")])
def test_a_message_without_one_of_its_plural_forms_is_no_pair(forms: tuple[str, str]) -> None:
    text = f'msgid "one"\nmsgid_plural "many"\nmsgstr[0] "{forms[0]}"\nmsgstr[1] "{forms[1]}"\n'
    assert list(read_translated_po([text.encode()], "a.po", "de")) == []


def test_each_plural_form_is_filled_with_the_translation_of_its_own_text() -> None:
    text = 'msgid "one"\nmsgid_plural "many"\nmsgstr[0] "x"\nmsgstr[1] ""\n\nmsgid "b"\nmsgstr ""\n'
    polish = read_document(text.encode(), "a.po", "en", "pl")
    assert polish.texts == ["many", "many", "b"]
    filled = polish.write(["A", "B", "C"]).decode()
    assert filled.partition("\n\n")[2].split("\n") == [
        'msgid "one"',
        'msgid_plural "many"',
        'msgstr[0] "x"',
        'msgstr[1] "A"',
        'msgstr[2] "B"',
        "",
        'msgid "b"',
        'msgstr "C"',
        "",
    ]
    arabic = read_document(b'msgid "one"\nmsgid_plural "many"\nmsgstr[0] ""\n', "a.po", "en", "ar")
    assert arabic.texts == ["many", "one", "many", "many", "many", "many"]


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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b'msgid "a"\nmsgstr "b\n',
            r"a\.po:2: expected a comment, or msgid .*, found 'msgstr \"b'\.",
        ),
        (b'msgid "a"\n', r"a\.po:1: this message has no msgstr"),
        (b'"a"\n', r"a\.po:1: this line continues a string"),
        (b'\nmsgstr "a"', r"a\.po:2: this message has no msgid"),
        (b'msgid "a"\nmsgid "b"\nmsgstr "c"\n', r"a\.po:2: this message has two msgid"),
        (b'msgid "a"\nmsgstr "b"\nmsgstr "c"\n', r"a\.po:3: this message has two msgstr"),
        (
            b'msgid "a"\nmsgid_plural "b"\nmsgstr ""\n',
            r"a\.po:3: this message has a msgid_plural, so .*\. Number .* 'msgstr\[0\]'",
        ),
        (b'msgid "a"\nmsgstr ""\nb\n', r"a\.po:3: expected a comment, .*, found 'b'\."),
        (b'msgid "a"\nmsgstr ""\n"b\\"\n', r"a\.po:3: expected a comment"),
        (PO.replace("Language: de", "Language: fr").encode(), "translation into 'fr'"),
    ],
)
def test_malformed_messages_are_named(content: bytes, said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_document(content, "a.po", "en", "de")
    with pytest.raises(UserError, match=said):
        list(read_translated_po([content], "a.po", "de"))


# -- plural forms and charsets ---------------------------------------------------------------------------


def test_flags_belong_to_the_next_message_even_if_it_is_obsolete() -> None:
    obsolete = '#, fuzzy\n#~ msgid "Old"\n#~ msgstr "Alt"\n\n'
    assert read("a.po", f'{obsolete}msgid "New"\nmsgstr ""\n').texts == ["New"]
    assert read("a.po", f'{obsolete}#, fuzzy\nmsgid "New"\nmsgstr ""\n').texts == []


FILES = 'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d Datei"\n'


LANGUAGE_HEADER = """msgid ""
msgstr ""
"Language: {}\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: {}\\n"

"""


TWO_FORMS = LANGUAGE_HEADER.format("de", "nplurals=2; plural=(n != 1);")


@pytest.mark.parametrize("rest", ['msgstr[1] ""\n', ""])
def test_existing_plural_forms_stay(rest: str) -> None:
    document = read("a.po", TWO_FORMS + FILES + rest)
    assert document.texts == ["%d files"]
    written = document.write(["%d Dateien"]).decode()
    assert written == TWO_FORMS + FILES + 'msgstr[1] "%d Dateien"\n'
    assert read("a.po", FILES + rest, redo=True).texts == ["%d file", "%d files"]


def test_plural_forms_are_written_at_their_index() -> None:
    rule = "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"
    gap = 'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[2] ""\nmsgstr[0] "a"\n'
    gap = LANGUAGE_HEADER.format("pl", rule) + gap
    document = read_document(gap.encode(), "a.po", "en", "pl")
    assert document.write(["c", "b"]).decode() == gap.replace('2] ""', '2] "c"') + 'msgstr[1] "b"\n'


def test_the_encoding_is_what_the_header_says_and_no_message() -> None:
    text = 'msgid "Content-Type: text/html; charset=iso-8859-1\\n"\nmsgstr ""\n\nmsgid "é"\nmsgstr ""\n'
    assert read("a.po", text).texts[1] == "é"
    short = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=iso-8859-1\\n"\n\nmsgid "é"\nmsgstr ""\n'
    assert read_document(short.encode("latin-1"), "a.po", "en", "de").texts == ["é"]


def test_missing_plural_forms_of_the_language_are_added() -> None:
    text = PO.replace("Language: de", "Language: pl").replace(
        "nplurals=2; plural=(n != 1)", "nplurals=INTEGER; plural=X"
    )
    document = read_document(text.encode(), "a.po", "en", "pl")
    assert document.texts[1:4] == ["%d file", "%d files", "%d files"]
    filled = document.write(["a", "jeden", "dwa", "pięć", "b"]).decode()
    assert 'msgstr[0] "jeden"\nmsgstr[1] "dwa"\nmsgstr[2] "pięć"\n\n' in filled
    assert polib.pofile(filled)[3].msgstr_plural == {0: "jeden", 1: "dwa", 2: "pięć"}
    japanese = read_document(
        text.replace("Language: pl", "Language: ja").encode(), "a.po", "en", "ja"
    )
    assert japanese.texts[1:-1] == ["%d files"]


def test_only_the_header_of_a_template_gets_a_charset() -> None:
    message = 'msgid "Replace charset=CHARSET."\nmsgstr ""\n'
    for charset in ("UTF-8", "CHARSET", "ASCII", "us-ascii"):
        header = '# charset=CHARSET\nmsgid ""\nmsgstr ""\n"Language: de\\n"\n'
        header += f'"Content-Type: text/plain; charset={charset}\\n"\n\n'
        written = read("a.po", header + message).write(["Ersetze charset=CHARSET: ö."]).decode()
        assert written == header.replace(f"{charset}\\n", "UTF-8\\n") + message.replace(
            'r ""', 'r "Ersetze charset=CHARSET: ö."'
        )


def test_headers_and_credits_of_other_programs_are_understood() -> None:
    header = 'msgid ""\nmsgstr "Language: \\nX-Language: {}\\n"\n\n'
    messages = 'msgid "translator-credits"\nmsgstr ""\n\nmsgid "One"\nmsgstr ""\n'
    assert read("a.po", header.format("de_DE") + messages).texts == ["One"]
    with pytest.raises(UserError, match="fr_FR"):
        read("a.po", header.format("fr_FR") + messages)


def test_without_babel_a_header_must_have_the_plural_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "babel", None)
    assert read("without.po", PO).texts[1:3] == ["%d file", "%d files"]
    with pytest.raises(
        UserError,
        match=r"^without\.po: the header has no Plural-Forms\. .*'transduce\[documents\]'",
    ):
        read("without.po", FILES + 'msgstr[1] ""\n')


# -- headers of templates ---------------------------------------------------------------------------------

PLURAL = """#, c-format
msgid "%d painter"
msgid_plural "%d painters"
msgstr[0] ""
msgstr[1] ""
"""
TEMPLATE = (
    r"""# SOME DESCRIPTIVE TITLE.
#, fuzzy
msgid ""
msgstr ""
"Project-Id-Version: PACKAGE VERSION\n"
"Language: \n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=CHARSET\n"
"Content-Transfer-Encoding: 8bit\n"
"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\n"

"""
    + PLURAL
)
POLISH = "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);"


def filled(text: str, target: str = "de", *, name: str = "a.pot", review: bool = False) -> str:
    document = read_document(text.encode(), name, "en", target, needs_review=review)
    return document.write([f"x {each}" for each in document.texts]).decode()


@pytest.mark.parametrize(
    ("target", "language", "rule"),
    [
        ("de", "de", "nplurals=2; plural=(n != 1);"),
        ("pt-BR", "pt_BR", "nplurals=2; plural=(n > 1);"),
        ("pl", "pl", POLISH),
        ("ja", "ja", "nplurals=1; plural=0;"),
    ],
)
def test_the_header_of_a_template_gets_the_language_and_its_rule(
    target: str, language: str, rule: str
) -> None:
    header, _, messages = TEMPLATE.partition("\n\n")
    written, _, translated = filled(TEMPLATE, target).partition("\n\n")
    expected = header.replace("#, fuzzy\n", "").replace("CHARSET", "UTF-8")
    expected = expected.replace("Language: ", f"Language: {language}")
    assert written == expected.replace("nplurals=INTEGER; plural=EXPRESSION;", rule)
    assert translated.count("msgstr[") == int(rule[len("nplurals=")])
    assert messages.splitlines()[:3] == translated.splitlines()[:3]
    entry = polib.pofile(filled(TEMPLATE, target))[0]
    assert len(entry.msgstr_plural) == int(rule[len("nplurals=")])


@pytest.mark.skipif(not shutil.which("msgfmt"), reason="gettext is not installed")
@pytest.mark.parametrize("template", [TEMPLATE, PLURAL, f"\ufeff{PLURAL}"])
@pytest.mark.parametrize("target", ["de", "fr", "pl", "ja", "ar", "sl", "vec"])
def test_gettext_compiles_a_filled_template(template: str, target: str, tmp_path: Path) -> None:
    text = filled(template.replace('"%d painter"', '"one painter"'), target)
    (tmp_path / "a.po").write_text(text.removeprefix("\ufeff"), encoding="utf-8")
    command = ["msgfmt", "-c", "-o", "/dev/null", tmp_path / "a.po"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_missing_header_is_added_and_missing_fields_are() -> None:
    fields = [
        r'"MIME-Version: 1.0\n"',
        r'"Content-Type: text/plain; charset=UTF-8\n"',
        r'"Content-Transfer-Encoding: 8bit\n"',
        r'"Language: de\n"',
    ]
    new = "\n".join(['msgid ""', 'msgstr ""', *fields, "", ""])
    message = '# First.\nmsgid "One"\nmsgstr ""\n'
    assert filled(message) == new + message.replace('r ""', 'r "x One"')
    windows = filled("\ufeff" + message.replace("\n", "\r\n"), name="a.po")
    assert windows == "\ufeff" + (new + message.replace('r ""', 'r "x One"')).replace("\n", "\r\n")
    one_line = 'msgid ""\nmsgstr "Project-Id-Version: x"\n\n'
    expected = [r'msgstr "Project-Id-Version: x\n"', fields[1], fields[3]]
    assert filled(one_line + message).startswith("\n".join(['msgid ""', *expected, "", "# First"]))


def test_a_field_over_several_lines_is_replaced() -> None:
    header = 'msgid ""\nmsgstr ""\n"Language: de\\nPlural-Forms: nplurals=INTEGER; "\n"plural=EXPRESSION;\\n"\n\n'
    text = filled(header + PLURAL)
    assert 'Plural-Forms: nplurals=2; plural=(n != 1);\\n"' in text and "EXPRESSION" not in text
    assert polib.pofile(text).metadata["Language"] == "de"


def test_a_complete_header_and_a_file_without_untranslated_messages_stay() -> None:
    assert filled(PO).partition("\n\n")[0] == PO.partition("\n\n")[0]
    for done in (
        TEMPLATE.partition("\n\n")[0] + "\n",
        'msgid "One"\nmsgstr "Eins"\n',
        f"{TEMPLATE}".replace('""\nmsgstr[1] ""', '"%d Maler"\nmsgstr[1] "%d Maler"'),
    ):
        assert filled(done) == done


def test_a_type_with_an_encoding_stays() -> None:
    header = TEMPLATE_HEADER.replace("text/plain; charset=UTF-8", "text/x-po; charset=utf-8")
    assert filled(f'{header}msgid "a"\nmsgstr ""\n').startswith(header)


def test_a_corpus_has_the_plural_forms_of_its_target_language(tmp_path: Path) -> None:
    forms = "".join(f'msgstr[{i}] "{i}"\n' for i in range(3))
    (tmp_path / "a.po").write_text(f'msgid "one"\nmsgid_plural "many"\n{forms}')
    for languages, one in ((("en", "ar"), "1"), (("ar", "pl"), "0")):
        pairs = read_pairs([str(tmp_path / "a.po")], languages)
        assert [pair[:2] for pair in pairs] == [("one", one), ("many", "2")]
    (tmp_path / "b.po").write_bytes(b'msgid "a"\nmsgstr "\xff"\n')
    with pytest.raises(UserError, match="byte 0xFF is not UTF-8"):
        list(read_pairs([str(tmp_path / "b.po")], ("en", "de")))
    lenient = CorpusFile(str(tmp_path / "b.po"), ("en", "de"), lenient=True)
    assert list(read_po_pairs(lenient)) == [("a", "\udcff", 1)]


def test_other_flags_of_a_header_stay() -> None:
    flagged = TEMPLATE.replace("#, fuzzy\n", "#, fuzzy, no-wrap\n")
    assert "TITLE.\n#, no-wrap\nmsgid" in filled(flagged)


@pytest.mark.parametrize(
    "credit",
    [
        'msgctxt "NAME OF TRANSLATORS"\nmsgid "Your names"',
        'msgctxt "EMAIL OF TRANSLATORS"\nmsgid "Your emails"',
        'msgid "_: NAME OF TRANSLATORS\\nYour names"',
        'msgid "translator-credits"',
        'msgid "CREDIT_FOR_TRANSLATORS"',
        'msgid "translator_credits"',
        'msgid "_: EMAIL OF TRANSLATORS\\nYour emails"',
        'msgid "ROLES_OF_TRANSLATORS"',
    ],
)
def test_the_names_of_translators_are_no_text(credit: str) -> None:
    assert read("a.po", f'{credit}\nmsgstr ""\n').texts == []
    assert read("a.po", 'msgid "Your names"\nmsgstr ""\n').texts == ["Your names"]


# -- translations that need a review ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "#, fuzzy\n"),
        ("#. A note.\n#: a.c:1\n", "#. A note.\n#: a.c:1\n#, fuzzy\n"),
        ("#: a.c:1\n#, c-format, no-wrap\n", "#: a.c:1\n#, fuzzy, c-format, no-wrap\n"),
        (
            '#: a.c:1\n#| msgctxt "x"\n#| msgid "Old"\n',
            '#: a.c:1\n#, fuzzy\n#| msgctxt "x"\n#| msgid "Old"\n',
        ),
        ('#: a.c:1\n#| msgid "Old"\n', '#: a.c:1\n#, fuzzy\n#| msgid "Old"\n'),
        ("#, c-format\n#, no-wrap\n", "#, fuzzy, c-format\n#, no-wrap\n"),
    ],
)
def test_new_translations_are_marked_as_fuzzy(before: str, after: str) -> None:
    done = f'{before}msgid "Two"\nmsgstr "Zwei"\n\n'
    header = PO[: PO.index("#: a.py")]
    context = 'msgctxt "menu"\nmsgid "One"\nmsgid_plural "Ones"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    text = filled(f"{header}{done}{before}{context}", review=True)
    expected = context.replace('[0] ""', '[0] "x One"').replace('[1] ""', '[1] "x Ones"')
    assert text == f"{header}{done}{after}{expected}"
    assert polib.pofile(text)[1].fuzzy and not polib.pofile(text)[0].fuzzy
    assert read("a.po", text).texts == []


def test_only_changed_translations_are_marked() -> None:
    document = read_document(PO.encode(), "a.po", "en", "de", needs_review=True)
    assert document.write(["" for _ in document.texts]).decode() == PO
    again = read_document(PO.encode(), "a.po", "en", "de", redo=True, needs_review=True)
    kept = [slot.present for slot in again.slots]  # type: ignore[attr-defined]
    assert again.write(kept).decode() == PO
    one = document.write(["Zu", *("" for _ in document.texts[1:])]).decode()
    assert one.count("#, fuzzy\n") == 1 and "#, fuzzy\nmsgctxt" in one


def test_line_ends_and_the_width_of_lines_are_kept() -> None:
    text = 'msgid "a"\r\nmsgstr ""\r\n\r\nmsgid "b"\r\nmsgstr "c"\r\n'
    words = " ".join(["fourteen chars"] * 12)
    filled = written(read("a.po", text), lambda _: words)
    assert filled.count("\r\n") == filled.count("\n") > 7
    assert [pair[:2] for pair in read_translated_po([filled.encode()], "a.po", "de")] == [
        ("a", words),
        ("b", "c"),
    ]
    quoted = [
        line
        for line in filled.split("\r\n")
        if line.startswith('"') and "charset" not in line and "chars" in line
    ]
    assert [len(line) for line in quoted] == [77, 77, 31], "a blank ends each line but the last"


def test_a_header_without_an_encoding_gets_ours() -> None:
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset={}\\n"\n\nmsgid "a"\nmsgstr ""\n'
    for declared, expected in (
        ("CHARSET", "UTF-8"),
        ("ASCII", "UTF-8"),
        ("ISO-8859-1", "ISO-8859-1"),
    ):
        document = read("a.po", header.format(declared))
        assert f"charset={expected}\\n" in written(document, lambda _: "b")


def test_escapes_by_hand() -> None:
    escaped = r"\a\b\f\v\r\t\n\\ \" "
    plain = '\a\b\f\v\r\t\n\\ " '
    message = f'msgid "x {escaped}\\q\\x41\\102\\1019."\nmsgstr ""\n'
    document = read("a.po", message)
    assert document.texts == [f"x {plain}qABA9."]
    filled = document.write([plain.replace("\n", "") + "é."]).decode()
    assert filled.endswith('msgstr "' + escaped.replace(r"\n", "") + 'é."\n')


@pytest.mark.parametrize("keyword", ["msgstr", "msgstr[1]"])
@pytest.mark.parametrize("length", [79, 80])
def test_a_line_of_79_characters_is_not_wrapped(keyword: str, length: int) -> None:
    plural = 'msgid_plural "b"\nmsgstr[0] "c"\n' if "[" in keyword else ""
    document = read("a.po", f'{TEMPLATE_HEADER}msgid "a"\n{plural}{keyword} ""\n')
    text = "word ".ljust(length - len(f'{keyword} ""'), "x")
    filled = document.write([text]).decode().splitlines()
    last = [f'{keyword} "{text}"'] if length == 79 else [f'{keyword} ""', f'"{text}"']
    assert filled[-len(last) :] == last
    broken = written(document, lambda _: "one\ntwo").splitlines()
    assert broken[-3:] == [f'{keyword} ""', '"one\\n"', '"two"']


TEMPLATE_HEADER = PO[: PO.index("#: a.py")]


def test_a_charset_may_follow_a_long_comment() -> None:
    comment = "# A comment.\n" * 5000
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=iso-8859-1\\n"\n\n'
    content = f'{comment}{header}msgid "é"\nmsgstr ""\n'.encode("latin-1")
    assert len(comment) < 1 << 16 and read_document(content, "a.po", "en", "de").texts == ["é"]
    pieces = [content[i : i + 1000] for i in range(0, len(content), 1000)]
    pieces[-1] = pieces[-1].replace(b'msgstr ""', b'msgstr "\xe4"')
    assert [pair[:2] for pair in read_translated_po(pieces, "a.po", "de")] == [("é", "ä")]


def test_a_line_without_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(po, "MAX_STRING_CHARACTERS", 20)
    for before, line in (("", 1), ("#\n#\n", 3)):
        with pytest.raises(UserError, match=rf"a\.po:{line}: the line has more than 20 characters"):
            list(read_translated_po([before.encode(), b"#" * 21], "a.po", "de"))
    assert list(read_translated_po([b"#" * 20], "a.po", "de")) == []
