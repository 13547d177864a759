"""Hand-computed values of transduce/wings/documents/keyed.py and of the readers that use it."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from transduce.system.errors import UserError
from transduce.text.formats import format_of, read_document
from transduce.text.pairs import read_pairs
from transduce.wings.documents.plurals import in_categories


def translated(name: str, text: str, *translations: str, target: str = "de") -> str:
    document = read_document(text.encode(), name, "en", target)
    assert len(document.texts) == len(translations), document.texts
    return document.write(translations).decode()


def android(inner: str) -> str:
    return f'<resources><string name="a">{inner}</string></resources>'


def test_the_categories_of_the_target_language_are_added() -> None:
    forms = {"one": "%d file", "other": "%d files"}
    assert in_categories(forms, "de", ordinal=False) == forms
    assert in_categories(forms, "ru", ordinal=False) == {
        "one": "%d file",
        "few": "%d files",
        "many": "%d files",
        "other": "%d files",
    }
    assert in_categories({"one": "One file", "other": "%d files"}, "ru", ordinal=False)["one"] == (
        "%d files"
    ), "also for 21"
    assert in_categories({"other": "x"}, "en", ordinal=True).keys() == {
        "one",
        "two",
        "few",
        "other",
    }
    assert in_categories(forms, "ja", ordinal=False) == forms, "nothing is lost"
    assert in_categories(forms, "tlh", ordinal=False) == forms, "an unknown language"


@pytest.mark.parametrize(
    ("inner", "text", "translation", "expected"),
    [
        (r"It\'s", "It's", "C'est", r"C\'est"),
        ("It&apos;s", "It&apos;s", "C&apos;est", r"C\&apos;est"),
        (r"a\nb", "a\nb", "c\nd", r"c\nd"),
        ('" a "', " a ", " b ", r"\u0020b\u0020"),
        (r'"a  \"b"', 'a  "b', "b  a", r"b \u0020a"),
        (r"a\u0020", "a ", "b ", r"b\u0020"),
        (r"\u003cb", "&lt;b", "&lt;c", "&lt;c"),
        (" a\n  b ", "a b", "c d", " c d "),
        (r"\@a", "@a", "@b", r"\@b"),
        ("a", "a", "b]]>", "b]]&gt;"),
        ('<b class="x">a</b>', '<b class="x">a</b>', '<b class="x">"</b>', r'<b class="x">\"</b>'),
        (
            r"<![CDATA[<a href=\"x\">a</a>]]>",
            '<a href="x">a</a>',
            "]]>",
            "<![CDATA[]]]]><![CDATA[>]]>",
        ),
        (r"a\\b", "a\\b", "c\\b", r"c\\b"),
    ],
)
def test_escapes_of_android(inner: str, text: str, translation: str, expected: str) -> None:
    assert read_document(android(inner).encode(), "a.xml", "en", "de").texts == [text]
    assert translated("a.xml", android(inner), translation) == android(expected)


def test_a_kept_element_of_android_has_no_escapes() -> None:
    kept = '<xliff:g id="it">%1$s\'s</xliff:g>'
    text = f'<resources xmlns:xliff="x"><string name="a">by {kept}</string></resources>'
    [shown] = read_document(text.encode(), "a.xml", "en", "de").texts
    assert translated("a.xml", text, shown.replace("by ", "l' ")) == text.replace("by ", r"l\' ")


def test_elements_in_a_string_of_android_are_one_text() -> None:
    text = android("<item>a</item> and <string>b</string>")
    assert len(read_document(text.encode(), "a.xml", "en", "de").texts) == 1


@pytest.mark.parametrize(
    ("pattern", "texts", "translations", "expected"),
    [
        ("a { $x }", ["a { $x }"], ["[{ $x }"], '{"["}{ $x }'),
        ("a", ["a"], ["b {"], 'b {"{"}'),
        ("a\n    b", ["a\nb"], ["c\n*d"], 'c\n    {"*"}d'),
        (
            "{ $n ->\n    [one] a\n   *[other] b\n}",
            ["a", "b", "b", "b"],
            ["1", "2", "3", "4"],
            "{ $n ->\n    [one] 1\n    [few] 2\n    [many] 3\n   *[other] 4\n}",
        ),
        (
            "{ PLATFORM() ->\n    [macos] a\n   *[other] b\n}",
            ["a", "b"],
            ["1", "2"],
            "{ PLATFORM() ->\n    [macos] 1\n   *[other] 2\n}",
        ),
        (
            '{ $n ->\n    [x] a "{ "[" } b\n   *[other] c\n}',
            ['a "{ "[" } b', "c"],
            ['"', "d"],
            '{ $n ->\n    [x] "\n   *[other] d\n}',
        ),
        ('5" { $x }', ['5" { $x }'], ['{ $x } 5"'], '{ $x } 5"'),
    ],
)
def test_patterns_of_fluent(
    pattern: str, texts: list[str], translations: list[str], expected: str
) -> None:
    text = f"key = {pattern}\n"
    assert read_document(text.encode(), "a.ftl", "en", "ru").texts == texts
    assert translated("a.ftl", text, *translations, target="ru") == f"key = {expected}\n"


def test_json_of_unusual_shape() -> None:
    for depth in range(900, 1000, 5):
        text = '{"a": ' * depth + '"x"' + "}" * depth
        with pytest.raises(UserError):
            read_document(text.encode(), "a.json", "en", "de")
    text = '{"a": "x", "a": {"message": "y"}, "b": ["z", ["w", 1]]}'
    assert read_document(text.encode(), "a.json", "en", "de").texts == ["x", "y", "z", "w"]
    text = '{"a": "x", "a": {"message": "y"}}'
    assert read_document(text.encode(), "a.json", "en", "de").texts == ["y"]


def test_a_selector_of_fluent_beside_a_text_or_in_a_variant_stays() -> None:
    inner = "{ $n ->\n       *[other] a\n    }"
    text = f"a = before {inner}\nb = {inner} after\nc = {{ $m ->\n   *[x] {inner}\n}}\nd = text\n"
    assert read_document(text.encode(), "a.ftl", "en", "ru").texts == ["text"]


def test_forms_are_added_before_the_form_other() -> None:
    for name, text, added in (
        (
            "a.xml",
            '<resources><plurals name="a">\n <item quantity="other">x</item>\n</plurals></resources>',
            ' <item quantity="{}">{}</item>\n',
        ),
        ("a.json", '{\n "a_one": "y",\n "a_other": "x"\n}', ' "a_{}": "{}",\n'),
    ):
        forms = ["1", "2", "3", "4"]
        categories = zip(["few", "many"], ["2", "3"], strict=True)
        new = "".join(added.format(*each) for each in categories)
        written = translated(name, text, *forms, target="ru")
        expected = text.replace('"x"', '"4"').replace(">x", ">4").replace('"y"', '"1"')
        one = added.format("one", "1") if name == "a.xml" else ""
        before = ' <item quantity="other"' if name == "a.xml" else ' "a_other"'
        assert written == expected.replace(before, one + new + before)


@pytest.mark.parametrize(
    ("text", "shown", "translation", "expected"),
    [
        ("a=It''s {0}", "It's {0}", "C'est {0}", "a=C''est {0}"),
        ("a=It's", "It's", "C'est", "a=C'est"),
        ("a='{0}' It''s", "'{0}' It''s", "x", "a=x"),
        ("a = b\\\n  c", "bc", " d\n", "a = \\ d\\n"),
        ("a=b", "b", "ä𝄞", "a=\\u00e4\\ud834\\udd1e"),
        ("a=ö", "ö", "ä𝄞", "a=ä𝄞"),
    ],
)
def test_escapes_of_java(text: str, shown: str, translation: str, expected: str) -> None:
    assert read_document(text.encode(), "a.properties", "en", "fr").texts == [shown]
    assert translated("a.properties", text, translation, target="fr") == expected


@pytest.mark.parametrize(
    ("value", "text", "translation", "expected"),
    [
        ("a b", "a b", "c d", "c d"),
        ("a b", "a b", "c: d", "'c: d'"),
        ("a b", "a b", "c #d", "'c #d'"),
        ("a b", "a b", "no", "'no'"),
        ("a b", "a b", "c\nd", '"c\\nd"'),
        ("a b", "a b", "c\u2028\x7f", '"c\\L\\x7F"'),
        ("[a, b]", "a", "c, d", '["c, d", b]'),
        ("'a'", "a", "c'd", "'c''d'"),
        ("'a'", "a", "c\nd", '"c\\nd"'),
        ('"a"', "a", 'c"d', '"c\\"d"'),
        ("&x a", "a", "c", "&x c"),
        ("!!str a", "a", "c", "!!str c"),
        ("|\n    a\n    b\n", "a\nb", "c\nd", "|\n    c\n    d\n"),
        ("|-\n    a", "a", " c", '" c"'),
        (">\n    a\n    b\n\n    c\n", "a b\nc", "d\ne", ">\n    d\n\n    e\n"),
        ("|2\n      a\n    b\n", "  a\nb", "c", "|\n      c\n"),
        ("a", "a", ":b", '":b"'),
        ('":a"', ":a", ":b", '":b"'),
    ],
)
def test_the_styles_of_yaml(value: str, text: str, translation: str, expected: str) -> None:
    document = read_document(f"en:\n  a: {value}\n".encode(), "a.yml", "en", "de")
    assert document.texts[0] == text
    others = document.texts[1:]
    written = document.write([translation, *others]).decode()
    assert written == f"de:\n  a: {expected}\n"
    read_again = yaml.safe_load(written)["de"]["a"]
    shown = read_again[0] if isinstance(read_again, list) else read_again
    assert shown.rstrip("\n") == translation


def test_a_properties_file_in_latin_1_gets_escapes_for_other_characters() -> None:
    document = read_document("a=\xf6".encode("latin-1"), "a.properties", "en", "de")
    assert document.write(["ä–"]) == b"a=\xe4\\u2013"


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("a.json", '{"a": }', "a.json:1: not valid JSON: Expecting value: line 1 column 7"),
        ("a.json", "[1]", "a.json does not look like a file of texts. A .json file of texts is"),
        ("a.json", '{"name": "x", "dependencies": {}}', "does not look like a file of texts"),
        ("a.json", '{"a": [1, 2], "b": "x"}', "does not look like a file of texts"),
        ("a.json", '{"a":' * 100_000, "not valid JSON"),
        ("a.arb", "one line", "a.arb:1: not valid JSON"),
        ("a.arb", '{"@@locale": "fr", "a": "b"}', "a.arb declares translation from 'fr'"),
        ("a.xml", "<a/>", "is not a file of Android's string resources"),
        ("a.xml", "<resources>\n<a></resources>", "a.xml:2: not well-formed XML: mismatched tag"),
        (
            "a.xml",
            '<!DOCTYPE resources [<!ENTITY a "b">]><resources/>',
            "the document type declares entities",
        ),
        ("a.strings", '"a" = "b"\n"c"', 'a.strings:1: expected a comment or "key" = "value";'),
        ("a.strings", "bplist00", "A property list can't be translated"),
        ("a.yml", "jobs:\n  build: x", "a.yml is not a file of texts of Ruby on Rails"),
        ("a.yml", "en: x\nde: y", "it needs one root key, the language"),
        ("a.yml", "- x", "it needs one root key"),
        ("a.yml", "", "it needs one root key"),
        ("a.yml", "en: {}\n---\nde: {}", "it needs one root key"),
        ("a.yml", "en:\n  ? [a, b]\n  : x", "a.yml:2: this key is a collection or an alias."),
        ("a.yml", "fr:\n  a: b", "a.yml declares translation from 'fr'"),
        ("a.yml", "en:\n  a: b\n c", "a.yml:3: not valid YAML"),
        ("a.yml", "en:\n  a: \x01", "a.yml: not valid YAML: a character is not allowed"),
        ("a.ftl", "a = b\n<#if x>", "a.ftl:2: expected a message such as `key = text`"),
        ("a.ftl", "a = b\nc = {$n ->\n", "a.ftl:2: a brace of this text"),
        ("a.ftl", 'a = { "b }', "a.ftl:1: a brace of this text, or a string in braces, is never"),
        ("a.resx", "<a/>", "a.resx is XML but not ROOT"),
        ("a.csv", "a,b\n1,2", "a.csv: no column is named 'en'. The first row has: 'a', 'b'."),
        (
            "a.csv",
            "en\na,b",
            "a.csv:2: this row has text beside quotation marks, or too many columns",
        ),
        ("a.csv", 'en,de\n"a,b', "a.csv:2: this row has text beside quotation marks"),
    ],
)
def test_other_content_is_refused(name: str, text: str, error: str) -> None:
    with pytest.raises(UserError) as raised:
        read_document(text.encode(), name, "en", "de")
    assert error in str(raised.value)


def test_a_suffix_that_is_also_a_language_depends_on_the_content(tmp_path: Path) -> None:
    (tmp_path / "train.en").write_text("A dog.\n")
    (tmp_path / "train.arb").write_text("كلب\n")
    files = [str(tmp_path / "train.en"), str(tmp_path / "train.arb")]
    assert [pair[:2] for pair in read_pairs(files, ("en", "arb"))] == [("A dog.", "كلب")]
    assert not format_of(files[1]).is_document
    (tmp_path / "train.arb").write_text('\ufeff\n{"a": "b"}', encoding="utf-8")
    assert format_of(files[1]).is_document and format_of("missing.arb").is_document


def test_files_without_a_common_key_are_refused(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.json").write_text(f'{{"{name}": "x"}}')
    with pytest.raises(UserError, match="have no key in common"):
        list(read_pairs([str(tmp_path / "a.json"), str(tmp_path / "b.json")]))


@given(
    texts=st.lists(st.text(min_size=1), min_size=1, max_size=4),
    separator=st.sampled_from(",;\t"),
)
def test_a_table_is_read_as_pythons_csv_module_writes_it(
    texts: list[str], separator: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    import csv

    path = tmp_path_factory.mktemp("tables") / "a.csv"
    texts = [
        text.encode(errors="ignore").decode().replace("\r", "").replace("\0", "") for text in texts
    ]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator="\n")
        writer.writerows([("key", "en", "de"), *(("k", text, "x") for text in texts)])
    spoken = [text for text in texts if text.strip()]
    document = read_document(path.read_bytes(), "a.csv", "en", "de", redo=True)
    assert document.texts == spoken
    assert document.write([""] * len(spoken)) == path.read_bytes()
    pairs = list(read_pairs([str(path)], ("en", "de")))
    assert len(pairs) == len(texts)
    path.write_bytes(document.write(spoken))
    for pair in read_pairs([str(path)], ("en", "de")):
        assert pair.target in (pair.source, "x")


def test_the_corpus_of_a_table_knows_its_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('de,en\n"a\nb",c\n\nd,\n')
    pairs = [(*pair[:2], pair.origin.line) for pair in read_pairs([str(path)], ("en", "de"))]
    assert pairs == [("c", "a b", 2), ("", "d", 5)]
    path.write_text("en,fr\na,b\n")
    with pytest.raises(UserError, match=r"no column is named 'de'\. The first row has: 'en', 'fr'"):
        list(read_pairs([str(path)], ("en", "de")))
    path.write_text('en,de\na,"b\n')
    with pytest.raises(UserError, match=r"a.csv:2: this row has text beside quotation marks"):
        list(read_pairs([str(path)], ("en", "de")))
