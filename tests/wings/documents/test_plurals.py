"""Tests of transduce/wings/documents/plurals.py."""

import sys

import pytest

from documents import read
from transduce.text.formats import read_document
from transduce.wings.documents.plurals import Plurals, categories, has_plurals, plurals


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        ("ja ko zh vi th id ms lo my km", (1, None)),
        (
            "en de nl sv da no nb nn es it el bg fi et he hu eo ca gl eu af sq ta tr fa hy hi fr pt is mk",
            (2, 0),
        ),
        ("lv lt ru uk be sr hr bs cs sk pl ro mo", (3, 0)),
        ("sl gd mt", (4, 0)),
        ("ga", (5, 0)),
        ("ar", (6, 1)),
        ("xx", (2, 0)),
    ],
)
def test_a_language_has_the_plural_forms_that_gettext_gives_it(
    languages: str, expected: tuple[int, int]
) -> None:
    for language in languages.split():
        assert plurals("", language, "a.po")[:2] == expected, language


def test_a_message_without_a_number_is_not_the_form_for_larger_numbers() -> None:
    assert all(
        plurals("", language, "a.po").is_singular for language in ("de", "fr", "pl", "kk", "sw")
    )
    assert not any(
        plurals("", language, "a.po").is_singular
        for language in ("ru", "uk", "lt", "sl", "gd", "hsb", "yo")
    )
    one, many = "One file", "%d files"
    for language, msgid, expected in [
        ("ru", one, [many] * 3),
        ("ru", "%d file", ["%d file", many, many]),
    ]:
        text = f'msgid "{msgid}"\nmsgid_plural "{many}"\nmsgstr[0] ""\n'
        assert read_document(text.encode(), "a.po", "en", language).texts == expected
    assert read("a.po", f'msgid "{one}"\nmsgid_plural "{many}"\nmsgstr[0] ""\n').texts == [
        one,
        many,
    ]


def test_a_region_has_the_plural_forms_of_its_language() -> None:
    assert plurals("", "pt-BR", "a.po") == plurals("", "pt_BR", "a.po") == plurals("", "fr", "a.po")
    assert plurals("", "pl_PL", "a.po") == Plurals(3, 0)


def test_a_header_decides_the_plural_forms() -> None:
    polish = "nplurals=3; plural=n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2;"
    assert plurals(f"Plural-Forms: {polish}\n", "de", "a.po") == Plurals(3, 0)
    assert plurals("nplurals=2; plural=__import__('os');", "de", "a.po") == Plurals(2, 0)


@pytest.mark.parametrize(
    ("language", "ordinal", "is_singular", "names"),
    [
        ("en", False, True, "one other"),
        ("en-GB", False, True, "one other"),
        ("en", True, False, "one two few other"),
        ("ja", False, True, "other"),
        ("ru", False, False, "one few many other"),
        ("sl", False, False, "one two few other"),
        ("ar", False, True, "zero one two few many other"),
        ("fr", True, True, "one other"),
    ],
)
def test_the_categories_of_a_language(
    language: str, ordinal: bool, is_singular: bool, names: str
) -> None:
    assert categories(language, ordinal=ordinal) == (is_singular, names.split())


def test_unknown_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="xx"):
        categories("xx", ordinal=False)
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(ValueError, match="no Babel"):
        categories("en", ordinal=False)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("nplurals=2; plural=n>1;", Plurals(2, 0, True)),
        ("nplurals=2; plural=n%10!=1;", Plurals(2, 0, False)),
        ("nplurals = 1 ;  plural = 0", Plurals(1, None, False)),
        ("nplurals=2; plural=n==1;", Plurals(2, 1, True)),
        ("nplurals=2; plural=n==1 || n==199;", Plurals(2, 1, False)),
        ("nplurals=2; plural=2;", Plurals(2, None, False)),
        ("nplurals=2; plural=n-2;", Plurals(2, None, True)),
        ("nplurals=0; plural=0;", None),
        ("nplurals=2; plural=1/(n-1);", None),
        ("nplurals=2; plural=n n;", None),
        ("nplurals=2;", None),
    ],
)
def test_rules_by_hand(rule: str, expected: Plurals | None) -> None:
    assert has_plurals(rule) == bool(expected)
    assert expected is None or plurals(rule, "de", "a.po") == expected
