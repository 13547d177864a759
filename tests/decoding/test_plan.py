"""Tests of transduce/decoding/plan.py."""

import pytest

from texts_with_tokens import A, B
from transduce.decoding.plan import GUESSED, IN_PARTS, LONG, OTHER_NUMBERS, Plan
from transduce.decoding.types import (
    CUT,
    EMPTY,
    LOOP,
    TERM,
    UNTRANSLATED,
    Link,
    Term,
    Translation,
    TranslationOptions,
)
from transduce.text.formats import MARKUP_TEXT, PLAIN_TEXT


def test_a_sentence_has_its_own_tokens() -> None:
    plan = Plan(["Open {0} with %s. Close {1}, {1}."], "en", placeholder_tokens=True)
    assert plan.sentences == [f"Open {A} with {B}.", "Open with.", f"Close {A}, {A}.", "Close,."]
    made = plan.assemble(
        [Translation(each, -1.0, ()) for each in (f"Mit {B} {A}.", "Auf.", f"{A}, {A} zu.", "Zu.")]
    )
    assert (made[0].text, made[0].flags) == ("Mit %s {0}. {1}, {1} zu.", ())


def test_a_text_that_holds_such_characters_keeps_them() -> None:
    plan = Plan([f"A {B} here. And {{0}} there."], "en", placeholder_tokens=True)
    assert plan.assemble([Translation(each, -1.0, ()) for each in plan.sentences])[
        0
    ].text.startswith(f"A {B} here.")


def test_unsplit_text_shares_its_tokens() -> None:
    plan = Plan(["  One. Two. {0} ", " ", ""], None, placeholder_tokens=True)
    assert plan.sentences == [f"One. Two. {A}", "One. Two."]
    assert [made.text for made in plan.assemble([Translation(f"{A} x", -1.0, ())] * 2)] == [
        "  {0} x ",
        " ",
        "",
    ]


KINDS = [PLAIN_TEXT, PLAIN_TEXT, MARKUP_TEXT, PLAIN_TEXT]


def made(text: str, score: float = -1.0, *others: str, **fields: object) -> Translation:
    alternatives = tuple(Translation(other, score - 1 - i, ()) for i, other in enumerate(others))
    return Translation(text, score, tuple(text.split()), alternatives, **fields)


def test_a_text_joins_the_translations_of_its_sentences():
    """The mean score, the tokens and flags of all, the lowest confidence, and links into the whole text."""
    plan = Plan(
        ["One dog.  Two cats.", "Two cats."], "en", options=TranslationOptions(3, align=True)
    )
    assert plan.sentences == ["One dog.", "Two cats.", "Two cats."]
    link = Link((0, 3), (0, 4), 0.5)
    first = made("Eins.", -1.0, "Ein.", flags=(CUT, LOOP), links=(link,), confidence=0.9)
    second = made("Zwei.", -2.0, "Zwo.", "Zwei?", flags=(LOOP,), links=(link,), confidence=0.3)
    [both, alone] = plan.assemble([first, second, second])
    assert (both.text, both.score, both.tokens) == ("Eins.  Zwei.", -1.5, ("Eins.", "Zwei."))
    assert (both.flags, both.confidence) == ((CUT, LOOP), 0.3)
    assert both.links == (link, Link((10, 13), (7, 11), 0.5))
    # The first sentence has one alternative, the second two.
    assert [(each.text, each.score) for each in both.alternatives] == [
        ("Ein.  Zwo.", -2.5),
        ("Ein.  Zwei?", -3.0),
    ]
    assert [each.text for each in alone.alternatives] == ["Zwo.", "Zwei?"]
    assert alone.links == (link,)
    plain = Plan(["One dog.  Two cats."], "en", options=TranslationOptions(2))
    [found] = plain.assemble([first, second])
    assert found.links == () and [each.text for each in found.alternatives] == ["Ein.  Zwo."]
    with pytest.raises(ValueError, match="1 translations of 2 sentences"):
        plain.assemble([first])


def test_alternatives_of_a_sentence_with_tokens_are_its_other_translations():
    plan = Plan(["Open {0} now."], "en", placeholder_tokens=True, options=TranslationOptions(3))
    assert plan.sentences == [f"Open {A} now.", "Open now."]
    first = made(f"Offen {A}.", -1.0, f"{A} auf.", "Weg.")
    [found] = plan.assemble([first, made("Auf.", -4.0, "Zu.", "Zurück.")])
    assert found.text == "Offen {0}."
    # The third translation has lost its token, as the other form of the sentence has.
    assert [(each.text, each.score, each.flags) for each in found.alternatives] == [
        ("{0} auf.", -2.0, ()),
        ("{0} Zurück.", -6.0, (GUESSED,)),
    ]


def test_equal_alternatives_of_a_text_are_one():
    plan = Plan(["a"], "en", options=TranslationOptions(4))
    [found] = plan.assemble([made("x", -1.0, "x", "y", "x", "z")])
    assert [each.text for each in found.alternatives] == ["y"]


def test_repeated_texts_are_planned_once_and_options_depend_on_marks():
    texts = ["A dog.", "A {0} dog.", "A <b>dog</b>.", "A dog."]
    options = TranslationOptions(2)
    plan = Plan(texts, "en", options=options, kinds=KINDS, beam_size=5)
    assert plan.sentences[0] == "A dog."
    groups = {group.options: group for group in plan.groups}
    assert groups[options].select(plan.sentences)[0] == "A dog."
    wider = [each for each in groups if each.n_best == 5]
    assert wider and any(each.align for each in wider), "tags need links"
    calls = []

    def translate(some, its, numbers):
        calls.append((list(some), its, list(numbers)))
        return [made(f"<{text}>") for text in some]

    found = plan.translate(translate, [11, 12, 13, 14])
    assert len(found) == len(plan.sentences)
    assert [each.text for each in found] == [f"<{text}>" for text in plan.sentences]
    assert sorted({number for *_, numbers in calls for number in numbers}) == [11, 12, 13]
    unaligned = Plan(texts, "en", kinds=KINDS, can_align=False)
    assert not any(group.options.align for group in unaligned.groups)
    assert Plan(["", " "], "en").translate(translate) == []


def test_only_sentences_with_marks_need_alternatives_and_most_need_links():
    """A placeholder that the sentence keeps needs no links; a tag, and a place to restore a placeholder, do."""
    texts = ["A dog.", "A {0} dog.", "A <b>dog</b>.", "A {0} <b>dog</b>."]

    def options_by_text(**changed):
        plan = Plan(texts, "en", kinds=[PLAIN_TEXT] * 2 + [MARKUP_TEXT] * 2, **changed)
        found = {}
        for group in plan.groups:
            for sentence, text in zip(group.select(plan.sentences), group.texts, strict=True):
                assert "dog" in sentence and ("{0}" in sentence) <= ("{0}" in texts[text])
                its = "{0}" in sentence, group.options.n_best, group.options.align
                found.setdefault(text, []).append(its)
        return [sorted(found[i]) for i in range(4)]

    counts = (1, 2, 1, 2)
    plain = [(False, 1, False)]
    tagged, both = [(False, 4, True)], [(False, 4, True), (True, 4, True)]
    kept = [(False, 4, True), (True, 4, False)]
    assert options_by_text(beam_size=4) == [plain, kept, tagged, both]
    unaligned = options_by_text(beam_size=4, can_align=False)
    assert [{each[1:] for each in its} for its in unaligned] == [{(1, False)}, *[{(4, False)}] * 3]
    links = TranslationOptions(5, align=True)
    asked = options_by_text(beam_size=4, can_align=False, options=links)
    assert [[each[1:] for each in its] for its in asked] == [[(5, True)] * n for n in counts]


def test_sentences_that_are_too_long_are_cut_or_copied():
    def lengths(some):
        return [len(text.split()) for text in some]

    text = "one two three, four five six. Seven eight."
    plan = Plan([text], "en", lengths=lengths, max_length=4)
    assert plan.sentences == ["one two three,", "four five six.", "Seven eight."]
    [found] = plan.assemble([made("A,"), made("b."), made("C.")])
    assert (found.text, found.flags) == ("A, b. C.", (IN_PARTS,))
    fitting = Plan([text], "en", lengths=lengths, max_length=6)
    assert fitting.sentences == ["one two three, four five six.", "Seven eight."]
    assert fitting.assemble([made("A."), made("B.")])[0].flags == ()
    word = Plan(["x" * 9], "en", lengths=lambda some: list(map(len, some)), max_length=4)
    [copied] = word.assemble([made(text) for text in word.sentences])
    assert copied.text == "x" * 9


def test_a_translation_that_is_empty_keeps_its_source():
    plan = Plan(["A dog.", "12"], "en")
    [found, number] = plan.assemble([made(" ", -3.0, flags=(CUT,))] * len(plan.sentences))
    assert (found.text, found.score, found.tokens, found.flags) == (
        "A dog.",
        -3.0,
        (),
        (CUT, EMPTY),
    )
    assert found.alternatives == () and number.text == "12"


def test_the_first_hypothesis_with_all_placeholders_is_used():
    plan = Plan(["Open {0} now."], "en", beam_size=3)
    with_it, without = plan.sentences
    [found] = plan.assemble([made("Auf.", -1.0, " ", with_it), made("Auf jetzt.", -9.0)])
    assert (found.text, found.score, found.flags) == ("Open {0} now.", -3.0, ())
    [other] = plan.assemble([made("Auf.", -1.0, "Zu."), made(without, -9.0)])
    assert "{0}" in other.text and other.score == -9.0, "no hypothesis has it"


def test_numbers_and_terms_are_compared():
    plan = Plan(["On page 30."], "en")
    assert plan.assemble([made("Auf Seite 31.")])[0].flags == (OTHER_NUMBERS,)
    assert plan.assemble([made("Auf Seite 30.")])[0].flags == ()
    changed = TranslationOptions(glossary=(Term(" {0} ", "x"), Term("dog", " dog")))
    text = "A {0} dog."
    for options, flags in ((changed, (TERM,)), (TranslationOptions(), ())):
        plan = Plan([text], "en", options=options)
        found = plan.assemble([made(sentence) for sentence in plan.sentences])[0]
        assert found.text == text and tuple(f for f in found.flags if f != GUESSED) == flags


def test_symbols_that_the_model_does_not_know_are_carried_over():
    plan = Plan(["♪", "A ♪ dog."], "en", unknown="♪")
    [alone, inside] = plan.assemble([made(sentence) for sentence in plan.sentences])
    assert (alone.text, alone.flags) == ("♪", ()) and "♪" in inside.text
    foreign = Plan(["ж"], "en", unknown="ж")
    assert foreign.assemble([made(each) for each in foreign.sentences])[0].flags == (UNTRANSLATED,)
    assert LONG not in alone.flags
