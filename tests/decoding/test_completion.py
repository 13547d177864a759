"""Prefixes and suffixes of translations, with the engines torch and CTranslate2."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from phrases import CONFIG, phrases
from terms import Chance
from transduce.decoding.beam import beam_search
from transduce.decoding.stepper import Stepper
from transduce.decoding.translator import Translator
from transduce.decoding.types import (
    TERM,
    Guide,
    MemoryMatch,
    Term,
    TranslationOptions,
    length_penalty,
)
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.completion.prefixes import Prefix, PrefixFilter

LETTERS = "HhuKndßüsae i\u0308\u2581\u00a0🙂.\t"
TYPED = st.text(LETTERS, max_size=9) | st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=5
)
SOURCES = phrases(8, seed=5)


@pytest.fixture(scope="session")
def completing(translator: Translator) -> Translator:
    """A translator with room for long prefixes."""
    return replace(translator, config=replace(CONFIG, max_extra_tokens=60))


@given(prefix=TYPED, source=st.sampled_from(SOURCES), beam_size=st.sampled_from([1, 4]))
def test_all_hypotheses_begin_with_the_prefix(
    completing: Translator, prefix: str, source: str, beam_size: int
) -> None:
    [found] = completing.translate(
        [source], prefixes=[prefix], beam_size=beam_size, n_best=beam_size
    )
    for each in (found, *found.alternatives):
        assert each.text.startswith(prefix)


@given(
    prefix=st.text("HhuKnd ", max_size=4),
    suffix=TYPED,
    source=st.sampled_from(SOURCES),
)
def test_all_hypotheses_begin_with_the_prefix_and_end_with_the_suffix(
    completing: Translator, prefix: str, suffix: str, source: str
) -> None:
    [found] = completing.translate([source], prefixes=[prefix], suffixes=[suffix], n_best=3)
    for each in (found, *found.alternatives):
        assert Guide(prefix=prefix, suffix=suffix).fits(each.text)


def test_prefixes_of_the_free_translation_change_nothing(completing: Translator) -> None:
    free = completing.translate(SOURCES)
    assert completing.translate(SOURCES, prefixes=[""] * 8, suffixes=[""] * 8) == free
    for size in (1, 3, 6, 99):
        prefixes = [each.text[:size] for each in free]
        found = completing.translate(SOURCES, prefixes=prefixes)
        assert [each.text for each in found] == [each.text for each in free]
        for one, other in zip(found, free, strict=True):
            assert one.score == pytest.approx(other.score, abs=0.02)
            assert one.flags == other.flags


def test_a_batch_translates_as_single_texts(completing: Translator) -> None:
    prefixes = ["", "H", "Kat", " gro", "x" * 9, "", "yz" * 6, "sieht "]
    together = completing.translate(SOURCES, prefixes=prefixes, n_best=2)
    for source, prefix, found in zip(SOURCES, prefixes, together, strict=True):
        [alone] = completing.translate([source], prefixes=[prefix], n_best=2)
        assert (alone.text, alone.flags) == (found.text, found.flags)
        assert alone.score == pytest.approx(found.score, abs=1e-4)


def test_the_score_is_that_of_the_tokens(completing: Translator) -> None:
    tokenizer = completing.tokenizer
    for source, prefix in zip(
        SOURCES, ["H", "Kat", "gro", "x", "", "si", "rot", "Ha"], strict=True
    ):
        [found] = completing.translate([source], prefixes=[prefix])
        tokens = [tokenizer.target.processor.piece_to_id(piece) for piece in found.tokens]
        [log_probs] = completing.engine.log_probs(tokenizer.encode_source([source]), [tokens])
        penalty = length_penalty(len(tokens) + 1, CONFIG.length_penalty)
        assert found.score == pytest.approx(sum(log_probs) / penalty, abs=0.01)


def test_a_filled_gap_is_the_best_of_all_cuts(completing: Translator) -> None:
    source = SOURCES[0]
    [found] = completing.translate([source], prefixes=["gr"], suffixes=["Hund."])
    best = completing.translate([source], prefixes=["gr"], n_best=4)[0]
    texts = {
        f"{begun}{gap}Hund."
        for each in (best, *best.alternatives)
        for row in [[completing.tokenizer.target.processor.piece_to_id(p) for p in each.tokens]]
        for begun in completing.tokenizer.decode([row[:size] for size in range(len(row) + 1)])
        for gap in ("", " ")
        if begun.startswith("gr")
    }
    scores = {
        text: scored.score
        for text, scored in zip(
            texts, completing.score([source] * len(texts), [*texts]), strict=True
        )
    }
    assert found.score == pytest.approx(max(scores.values()), abs=1e-3)
    assert scores[found.text] == pytest.approx(found.score, abs=1e-3)


# -- the search, by brute force


@pytest.fixture(scope="module")
def pieces(tokenizer: Tokenizer) -> ImportedVocabulary:
    """A vocabulary that spells few texts, but these in many ways."""
    listed = ["<pad>", "<s>", "</s>", "<unk>", "\u2581", "H", "\u2581H", "u", "Hu", "\u2581Hu"]
    return ImportedVocabulary(tokenizer.target.model, listed)


@pytest.mark.parametrize("prefix", ["H", "Hu", "HuH", "u", "H ", "H Hu", "uu"])
@pytest.mark.parametrize("beam_size", [1, 3000])
def test_the_search_considers_all_segmentations(
    pieces: ImportedVocabulary, prefix: str, beam_size: int
) -> None:
    """A wide beam is exhaustive; a greedy search takes the best allowed token at each step."""
    limit = 4
    chance: Stepper = Chance([0], pieces.size)
    token_filter = PrefixFilter([Prefix(pieces, prefix)], [limit])
    [found] = beam_search(
        chance, [limit], beam_size=beam_size, token_filter=token_filter, n_best=beam_size
    )
    expected = {}
    for size in range(1, limit + 1):
        for row in product(range(4, pieces.size), repeat=size):
            text = "".join(pieces.listed[token] for token in row).replace("\u2581", " ")
            if text.startswith(f" {prefix}"):
                expected[row] = score(pieces, row)
    scores = {tuple(each.tokens): each.score for each in found}
    assert scores and scores.keys() <= expected.keys()
    assert scores == pytest.approx({row: expected[row] for row in scores}, abs=1e-4)
    if beam_size > 1:
        assert scores.keys() == expected.keys()


def score(pieces: ImportedVocabulary, row: tuple[int, ...]) -> float:
    chance = Chance([0], pieces.size)
    total = 0.0
    for before, token in zip((1, *row), (*row, 2), strict=True):
        total += float(chance(torch.tensor([before]))[0, token])
    return total / length_penalty(len(row) + 1, 0.6)


@given(prefix=st.text("Hu ", min_size=1, max_size=7), seed=st.integers(0, 99))
def test_a_prefix_that_fits_is_never_cut(
    pieces: ImportedVocabulary, prefix: str, seed: int
) -> None:
    prefix = prefix.lstrip()
    assume(prefix)
    wanted = Prefix(pieces, prefix)
    limit = wanted.fewest[0]
    token_filter = PrefixFilter([wanted], [limit])
    for beam_size in (1, 3):
        [found] = beam_search(
            Chance([seed], pieces.size), [limit], beam_size=beam_size, token_filter=token_filter
        )
        token_filter = PrefixFilter([wanted], [limit])
        for each in found:
            text = "".join(pieces.listed[token] for token in each.tokens).replace("\u2581", " ")
            assert text.startswith(f" {prefix}")
        assert found


# -- what else is known about a text


def test_a_repetitive_prefix_is_allowed(completing: Translator) -> None:
    prefix = "x" * 9
    strict = replace(completing, config=replace(completing.config, no_repeat_ngram=2))
    [found] = strict.translate(["dog cat"], prefixes=[prefix])
    assert found.text.startswith(prefix)


def test_a_text_in_capitals_keeps_the_prefix(completing: Translator) -> None:
    for prefix in ("Hu", "HU"):
        [found] = completing.translate(["DOG SEES CAT"], prefixes=[prefix])
        assert found.text.startswith(prefix)


def test_terms_and_prefix_hold_together(completing: Translator) -> None:
    if "constraints" in completing.engine.supports:
        [found] = completing.translate(
            ["dog sees cat"], prefixes=["Hun"], glossary=[Term("cat", "Kater")]
        )
        assert found.text.startswith("Hun") and "Kater" in found.text
        long = "x" * (completing.limit([0, 0]) - 3)
        [found] = completing.translate(
            ["dog cat"], prefixes=[long], glossary=[Term("cat", "Kater")]
        )
        assert found.text.startswith(long) and found.flags[-1] == TERM
    with pytest.raises(UserError, match="Text 1: a suffix can't be used with a glossary"):
        completing.translate(["cat"], suffixes=["x"], glossary=[Term("cat", "Kater")])


def test_links_are_moved_behind_typed_characters(completing: Translator) -> None:
    typed = "  Hu\u0308nd"
    [found] = completing.translate(["dog sees cat"], prefixes=[typed], align=True)
    assert found.text.startswith(typed)
    words = {found.text[slice(*link.target)] for link in found.links}
    assert words and not any(word.strip() != word or " " in word for word in words)
    assert words <= set(found.text.split())


class Memory:
    """A memory of one unit."""

    def matches(self, texts: list[str], direction: str) -> list[tuple[MemoryMatch, ...]]:
        assert direction == "en-de"
        unit = MemoryMatch("dog", "der Hund", 1.0, "m.tsv:1")
        return [(unit,) if text.strip() == "dog" else () for text in texts]


@pytest.mark.parametrize(
    ("prefix", "suffix", "is_used"),
    [("der H", "", True), ("", "nd", True), ("Hu", "", False), ("", "ze", False)],
)
def test_the_memory_is_used_if_it_fits(
    completing: Translator, prefix: str, suffix: str, is_used: bool
) -> None:
    translator = replace(completing, directions=[Direction("en", "de")])
    [found] = translator.translate(
        ["dog"], prefixes=[prefix], suffixes=[suffix], translation_memory=Memory()
    )
    assert (found.text == "der Hund") == is_used
    assert Guide(prefix=prefix, suffix=suffix).fits(found.text)


def test_the_last_hop_of_a_pivot_has_the_prefix(completing: Translator) -> None:
    hops = (completing, completing)
    [found] = replace(completing, hops=hops).translate(["dog cat"], prefixes=["sie"])
    assert found.text.startswith("sie") and not found.hops[0].text.startswith("sie")
    [free] = completing.translate(["dog cat"])
    assert found.hops[0].text == free.text


@pytest.mark.parametrize(
    ("texts", "prefixes", "message"),
    [
        (["dog"], ["a", "b"], "There are 1 texts but 2 prefixes"),
        (["dog", " "], ["", "b"], "Text 2 is blank, but has a prefix or a suffix"),
        (["dog"], ["a\nb"], "Text 1: its prefix or its suffix has a line break"),
        (["dog"], ["a\ud800"], "Text 1: its prefix or its suffix has half a surrogate pair"),
        (["dog", "cat"], ["", "x" * 99], "Text 2: the prefix has at least 1?\\d\\d tokens"),
    ],
)
def test_what_can_not_be_continued_is_refused(
    completing: Translator, texts: list[str], prefixes: list[str], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        completing.translate(texts, prefixes=prefixes)
    with pytest.raises(TypeError, match="not a single string"):
        completing.translate(texts, prefixes="dog")


def test_a_suffix_that_does_not_fit_is_refused(completing: Translator) -> None:
    with pytest.raises(UserError, match=r"Text 1: no translation of at most 6\d tokens ends with"):
        completing.translate(["dog"], suffixes=["x" * 99])


def test_sentences_of_one_group_may_have_prefixes(completing: Translator) -> None:
    """A caller of `translate_sentences`, such as a server, may give guides to some sentences."""
    guides = [Guide(), Guide(prefix="K"), Guide()]
    found = completing.translate_sentences(
        ["dog", "dog", "cat"], TranslationOptions(), guides=guides
    )
    free = [each.text for each in completing.translate(["dog", "cat"])]
    assert [found[0].text, found[2].text] == free and found[1].text.startswith("K")
