"""Tests of transduce/wings/documents/icu.py."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.wings.documents.icu import MAX_TEXTS, branched

pytest.importorskip("babel", reason="pip install 'transduce[documents]'")

HEAD = re.compile(r"\{\s*(\w+)\s*,\s*(plural|select)\s*,(?:\s*offset:(\d+))?")
VALUES = [
    {"n": n, "m": m, "who": who}
    for n, m, who in product((0, 1, 2, 21), (1, 5), ("male", "female", "x"))
]


def formatted(message: str, values: dict[str, int | str]) -> str:
    """The text that a program shows for a message, in English: an interpreter of the syntax of ICU."""
    text, rest = _formatted(message, values, None)
    assert rest == "", rest
    return text


def _formatted(rest: str, values: dict[str, int | str], number: int | None) -> tuple[str, str]:
    shown = ""
    while rest and not rest.startswith("}"):
        head = HEAD.match(rest)
        if head:
            value = values[head[1]]
            rest = rest[head.end() :]
            shifted = value - int(head[3] or 0) if isinstance(value, int) else number
            branches = dict[str, str]()
            while key := re.match(r"\s*(=\d+|\w+)\s*\{", rest):
                branches[key[1]], rest = _formatted(rest[key.end() :], values, shifted)
                rest = rest[1:]
            rest = rest.lstrip()[1:]
            category = "one" if shifted == 1 else "other"
            chosen = [f"={value}", category] if head[2] == "plural" else [str(value)]
            shown += next(branches[each] for each in [*chosen, "other"] if each in branches)
        elif simple := re.match(r"\{\s*(\w+)\s*(?:,[^{}]*)?\}", rest):
            shown += str(values[simple[1]])
            rest = rest[simple.end() :]
        elif rest.startswith("''"):
            shown += "'"
            rest = rest[2:]
        else:
            shown += str(number) if rest[0] == "#" and number is not None else rest[0]
            rest = rest[1:]
    return shown, rest


WORDS = st.sampled_from(["dogs ", "it''s ", "{m} ", "a, b. ", "<b>x</b> "])


def messages(depth: int, inside_plural: bool) -> st.SearchStrategy[str]:
    words = WORDS | st.just("# ") if inside_plural else WORDS
    if not depth:
        return words
    inner = {plural: messages(depth - 1, plural or inside_plural) for plural in (True, False)}
    plural = st.builds(
        "{{{}, plural, =0 {{{}}} one {{{}}} other {{{}}}}} ".format,
        st.sampled_from("nm"),
        *[inner[True]] * 3,
    )
    select = st.builds("{{who, select, male {{{}}} other {{{}}}}} ".format, *[inner[False]] * 2)
    return st.lists(words | plural | select, min_size=1, max_size=3).map("".join)


@given(messages(2, False))
def test_a_message_with_untranslated_branches_shows_the_same(message: str) -> None:
    parsed = branched(message, "de")
    if parsed is None:
        return
    assert "plural" not in "".join(parsed.texts)
    written = parsed.write(parsed.texts)
    for values in VALUES:
        assert formatted(written, values) == formatted(message, values)


def test_most_messages_are_read() -> None:
    for message in (
        "{n, plural, one {a} other {# b}}",
        "x {n,plural,=0{no}one{a}other{{who, select, male {his #} other {#}}}} y",
        "{who, select, male {He} other {They}} saw {who, select, male {his} other {their}} dog",
    ):
        assert branched(message, "de"), message


PLURAL = "{count, plural, one {It is raining.} other {# painters are waiting.}}"


@pytest.mark.parametrize(
    ("language", "message", "written"),
    [
        ("de", PLURAL, "{count, plural, one {IT IS RAINING.} other {# PAINTERS ARE WAITING.}}"),
        ("ja", PLURAL, "{count, plural, other {# PAINTERS ARE WAITING.}}"),
        (
            "ru",  # the form for 1 is also for 21, so it needs the number
            PLURAL,
            "{{count, plural, one {{{0}}} few {{{0}}} many {{{0}}} other {{{0}}}}}".format(
                "# PAINTERS ARE WAITING."
            ),
        ),
        (
            "ru",
            "{n, plural, =0 {none} one {# dog} other {# dogs}}",
            "{n, plural, =0 {NONE} one {# DOG} few {# DOGS} many {# DOGS} other {# DOGS}}",
        ),
        (
            "de",
            "{gender, select, male {He} other {They}} is waiting.",
            "{gender, select, male {HE IS WAITING.} other {THEY IS WAITING.}}",
        ),
        (
            "de",
            "{n, plural, one {its {m, plural, one {dog} other {# dogs}}} other {# with {m}}}",
            "{n, plural, one {{m, plural, one {ITS DOG} other {ITS # DOGS}}} other {# WITH {m}}}",
        ),
        (
            "de",  # the number of the outer argument
            "{n, plural, other {# of {m, plural, other {#}}}}",
            "{n, plural, one {{m, plural, one {{n, number} OF #} other {{n, number} OF #}}}"
            " other {{m, plural, one {{n, number} OF #} other {{n, number} OF #}}}}",
        ),
        ("de", "{n, selectordinal, one {#st} other {#th}}", "{n, selectordinal, other {#TH}}"),
        (
            "de",
            "\n{n, plural,\n  one {a}\n  other {b}\n}\n",
            "\n{n, plural,\n  one {A}\n  other {B}\n}\n",
        ),
        ("de", "{n, plural, one {a} other {it''s}}", "{n, plural, one {A} other {IT''S}}"),
        (
            "de",
            "{VAR_PLURAL, plural, =1 {it's} other {{n} items}}",
            "{VAR_PLURAL, plural, =1 {IT'S} one {{n} ITEMS} other {{n} ITEMS}}",
        ),
        (
            "de",
            "{n, plural, offset:1 =0 {nobody} other {# and you}}",
            "{n, plural, offset:1 =0 {NOBODY} one {# AND YOU} other {# AND YOU}}",
        ),
    ],
)
def test_branches_are_written_in_the_target_language(
    language: str, message: str, written: str
) -> None:
    parsed = branched(message, language)
    assert parsed
    translated = [
        re.sub(r"(?<![{#\w])\w+(?!\w*\})", lambda word: word[0].upper(), text)
        for text in parsed.texts
    ]
    assert parsed.write(translated) == written


@pytest.mark.parametrize(
    "message",
    [
        "{n, plural, one {a}}",  # no branch "other"
        "{n, plural, one {a} other {b}",
        "{n, plural, one {a} other {b}} }",
        "{n, plural, other {'{'a}}",
        "#1 {n, plural, other {# dogs}}",
        "{0,choice,0#none|1#one}",
        "{n, plural, offset:1 other {# {m, plural, other {#}}}}",
        "{a, select, other {}} " * 2
        + "".join(f"{{a{i}, select, x {{}} other {{}}}}" for i in range(7)),
        "no branches",
        'before <x equiv-text="{n, plural, other {a}}"/> it',
    ],
)
def test_unclear_messages_have_no_branches(message: str) -> None:
    assert branched(message, "de") is None


def test_an_argument_that_occurs_twice_has_one_branch_for_both() -> None:
    twice = "{a, select, x {He} other {They}} saw {a, select, x {his} y {her} other {their}} dog"
    parsed = branched(twice, "de")
    assert parsed and parsed.texts == ["He saw his dog", "They saw their dog"]
    inner = "{a, select, x {1} y {2 {a, select, x {3} other {4 {a, select, y {5} other {6}}}}} other {}}"
    parsed = branched(inner, "de")
    assert parsed and parsed.texts == ["1", "2 4 5", ""]


def test_a_language_that_is_not_known_has_no_categories() -> None:
    assert branched(PLURAL, "xx") is None
    assert branched("{a, select, x {y} other {z}}", "xx")


def test_a_message_without_one_of_its_translations_stays() -> None:
    parsed = branched("{n, plural, =0 {} one {a} other {b}}", "de")
    assert parsed
    assert parsed.write(["", "A", "B"]) == "{n, plural, =0 {} one {A} other {B}}"
    assert parsed.write(["", "A", ""]) == ""


def test_an_apostrophe_of_a_translation_hides_no_brace() -> None:
    parsed = branched("{n, plural, one {of {a}} other {dogs}}", "de")
    assert parsed
    assert parsed.write(["l'{a}", "l'eau"]) == "{n, plural, one {l''{a}} other {l'eau}}"
    parsed = branched("{n, plural, one {a} other {it''s}}", "de")
    assert parsed
    assert parsed.write(["l'eau", "a"]) == "{n, plural, one {l''eau} other {a}}"


def test_the_number_of_texts_is_limited() -> None:
    seven = "".join(f"{{a{i}, select, x {{1}} other {{2}}}} " for i in range(6))
    parsed = branched(seven, "de")
    assert parsed and len(parsed.texts) == MAX_TEXTS
