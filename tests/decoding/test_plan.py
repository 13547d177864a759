"""Tests of transduce/decoding/plan.py."""

import pytest

from texts_with_tokens import A, B
from transduce.decoding.plan import GUESSED, IN_PARTS, LONG, LOST, OTHER_NUMBERS, Plan
from transduce.decoding.types import (
    CUT,
    EMPTY,
    LOOP,
    TERM,
    UNTRANSLATED,
    Guide,
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
    assert wider and not any(each.align for each in wider), "placeholders need hypotheses"
    assert any(each.align and each.n_best == 2 for each in groups), "tags need links"
    calls = []

    def translate(some, its, numbers, _guides):
        calls.append((list(some), its, list(numbers)))
        return [made(f"<{text}>") for text in some]

    found = plan.translate(translate, [11, 12, 13, 14])
    assert len(found) == len(plan.sentences)
    assert [each.text for each in found] == [f"<{text}>" for text in plan.sentences]
    assert sorted({number for *_, numbers in calls for number in numbers}) == [11, 12, 13]
    unaligned = Plan(texts, "en", kinds=KINDS, can_align=False)
    assert not any(group.options.align for group in unaligned.groups)
    assert Plan(["", " "], "en").translate(translate, [1, 2]) == []


def test_sentences_with_placeholders_need_alternatives_and_most_marks_need_links():
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
    tagged, both = [(False, 1, True)], [(False, 1, True), (True, 4, True)]
    kept = [(False, 1, True), (True, 4, False)]
    assert options_by_text(beam_size=4) == [plain, kept, tagged, both]
    unaligned = options_by_text(beam_size=4, can_align=False)
    with_placeholder = [(False, 1, False), (True, 4, False)]
    assert unaligned == [plain, with_placeholder, plain, with_placeholder]
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
    same = TranslationOptions(glossary=(Term("{0}", " {0} "),))
    for options, flags in ((changed, (TERM,)), (same, ()), (TranslationOptions(), ())):
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


def by_words(texts):
    return [len(text.split()) for text in texts]


@pytest.mark.parametrize(
    "text",
    [
        "one two {0} three, four five %(a name)s six seven eight. Nine {1}.",
        "{0} {1} one two three four five six {a_long_name} seven eight {2}",
        "one {0} two {1} three {2} four {3} five {4} six {5} seven {6} eight",
    ],
)
@pytest.mark.parametrize("placeholder_tokens", [False, True])
def test_a_cut_sentence_keeps_its_text_and_its_placeholders(text, placeholder_tokens):
    plan = Plan([text], "en", lengths=by_words, max_length=4, placeholder_tokens=placeholder_tokens)
    assert max(by_words(plan.sentences)) <= 4 and len(plan.sentences) > 2
    [found] = plan.assemble([made(sentence) for sentence in plan.sentences])
    assert (found.text, found.flags) == (text, (IN_PARTS,))


def test_only_the_parts_of_a_long_sentence_say_so():
    texts = ["One two three four five six.", "Seven eight."]
    plan = Plan([" ".join(texts), texts[1]], "en", lengths=by_words, max_length=4)
    long, short = plan.assemble([made(sentence) for sentence in plan.sentences])
    assert (long.flags, short.flags) == ((IN_PARTS,), ())
    assert len([part for part in plan.sentences if part == texts[1]]) == 2


def test_what_can_not_be_cut_is_copied():
    """A character with more tokens than the limit; and a sentence that loses the placeholder in its only form."""
    plan = Plan(
        ["ab cd"], "en", lengths=lambda some: [5 * len(each) for each in some], max_length=4
    )
    assert plan.sentences == []
    [found] = plan.assemble([])
    assert (found.text, found.score, found.flags) == ("ab cd", 0.0, (LONG,))

    def lengths(some):
        return [1 if "{0}" in each else 5 for each in some]

    plan = Plan(["Open {0} now."], "en", lengths=lengths, max_length=4)
    assert plan.sentences == ["Open {0} now."]
    [found] = plan.assemble([made("Auf jetzt.", -2.0)])
    assert (found.text, found.score, found.flags) == ("Open {0} now.", 0.0, (LONG,))
    [found] = plan.assemble([made("Jetzt {0} auf.", -2.0)])
    assert (found.text, found.score, found.flags) == ("Jetzt {0} auf.", -2.0, ())


def test_what_is_not_translated_does_not_count_for_the_score():
    plan = Plan(["A dog. 12! Two cats."], "en")
    assert plan.sentences == ["A dog.", "Two cats."]
    [found] = plan.assemble([made("Ein Hund.", -1.0), made("Zwei Katzen.", -2.0)])
    assert (found.text, found.score) == ("Ein Hund. 12! Zwei Katzen.", -1.5)
    assert Plan(["12!"], "en").assemble([])[0] == Translation("12!", 0.0, ())


def test_of_hypotheses_with_made_up_tokens_the_first_counts():
    plan = Plan(["Open {0} now."], "en", placeholder_tokens=True)
    assert len(plan.sentences) == 2
    [found] = plan.assemble([made("Auf."), made(f"Zu {B}.", -1.0, f"Auf {B}.", f"Weg {B}.")])
    assert (found.text, found.score) == ("{0} Zu.", -1.0) and LOST in found.flags


def test_links_lead_into_the_text_with_its_placeholders():
    options = TranslationOptions(2, align=True)
    plan = Plan(["Hi! Open {0} now."], "en", options=options, placeholder_tokens=True)
    assert plan.sentences == ["Hi!", f"Open {A} now.", "Open now."]
    links = (Link((7, 10), (6, 11), 0.5), Link((0, 4), (0, 3), 0.25))
    other = Translation(f"{A} jetzt.", -2.0, (), links=(Link((7, 10), (2, 7), 0.75),))
    best = Translation(f"Auf {A} jetzt.", -1.0, (), (other,), links=links)
    [found] = plan.assemble([made("Ha!"), best, made("Auf jetzt.", -9.0)])
    assert found.text == "Ha! Auf {0} jetzt."
    assert found.links == (Link((13, 16), (12, 17), 0.5), Link((4, 8), (4, 7), 0.25))
    [second] = found.alternatives
    assert second.text == "Ha! {0} jetzt." and second.links == (Link((13, 16), (8, 13), 0.75),)
    markup = Plan(["Open <b>it</b>."], "en", options=options, kinds=[MARKUP_TEXT])
    [found] = markup.assemble([Translation("Open it.", -1.0, (), links=(Link((0, 4), (0, 4), 1),))])
    assert found.links == ()


def test_the_form_whose_translation_begins_and_ends_as_given_is_used() -> None:
    guide = Guide(prefix="{0} x", suffix=".")
    plan = Plan(["{0} a."], None, placeholder_tokens=True, guides=[guide])
    assert plan.sentences == [f"{A} a.", "{0} a."]
    assert plan.guides == [Guide(prefix=f"{A} x", suffix="."), guide]
    for first, expected in ((f"{A} x y.", "{0} x y."), (f"y {A}.", "{0} x z.")):
        [found] = plan.assemble([made(first), made("{0} x z.")])
        assert found.text == expected
    several = Plan(["A dog. A cat. A cow."], "en", guides=[Guide(prefix="E")])
    assert several.guides == [Guide(prefix="E"), Guide(), Guide()]
    ended = Plan(["A dog. A cat."], "en", guides=[Guide(suffix=".")])
    assert ended.sentences == ["A dog. A cat."]
