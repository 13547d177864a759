"""The laws of a glossary: every translation holds its terms, and nothing else changes."""

import itertools
from dataclasses import replace

import pytest
import torch

from command_line import run
from corpora import reverse_texts
from models import make_model, publish_model
from terms import BOUNDARIES, CONFIG, CONSTRAINTS, PIECES, TERMS, TEXTS, Chance, text_of
from transduce.config.schema import BOS, EOS, UNK, RunConfig
from transduce.decoding.beam import beam_search
from transduce.decoding.loading import load
from transduce.decoding.repetition import is_loop
from transduce.decoding.searcher import Fallback
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import (
    LOOP,
    TERM,
    Hypothesis,
    Term,
    length_penalty,
)
from transduce.system.errors import UserError
from transduce.wings.ct2.convert import convert
from transduce.wings.ct2.engine import CTranslate2Engine
from transduce.wings.terms.constraints import (
    NOTHING,
    ConstraintSelector,
    Progress,
    SentenceConstraints,
    _candidates,
    _joins,
)
from transduce.wings.terms.glossary import (
    Constraint,
    Glossary,
    contains,
    word_boundaries,
)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_without_terms_the_best_is_that_of_the_free_search(tokenizer, beam_size):
    boundaries, limits = word_boundaries(tokenizer.target), [6, 9, 4]
    free = beam_search(Chance([1, 2, 3], tokenizer.target.size), limits, beam_size=beam_size)
    selector = ConstraintSelector([[], [], []], boundaries, limits, beam_size)
    assert selector.beam_size == beam_size
    found = beam_search(
        Chance([1, 2, 3], tokenizer.target.size), limits, beam_size=beam_size, selector=selector
    )
    assert [each[0].score >= other[0].score for each, other in zip(found, free, strict=True)] == [
        True
    ] * 3


@pytest.mark.parametrize("alpha", [0.0, 0.6])
@pytest.mark.parametrize(
    ("asked", "forbidden"),
    [
        *((asked, []) for asked in (["a"], ["ab"], ["."], ["a", "ab"], ["ab", "."], ["a ."])),
        (["."], [(4,)]),
        (["ab"], [(6,), (5, 5)]),
        (["a"], [(4, 5), (7, 7, 6)]),
    ],
)
def test_a_wide_beam_is_exhaustive(asked, forbidden, alpha):
    limit, stepper, ranking = 5, Chance([0], len(PIECES)), []
    for length in range(limit + 1):
        for tokens in itertools.product(range(UNK + 1, len(PIECES)), repeat=length):
            stretches = {tokens[i:j] for i, j in itertools.combinations(range(length + 1), 2)}
            if all(contains(text_of(tokens), target) for target in asked) and not stretches & set(
                forbidden
            ):
                rows = [(0, BOS, *tokens[:n]) for n in range(length + 1)]
                steps = zip(rows, (*tokens, EOS), strict=True)
                total = sum(stepper.log_probs(row)[token].item() for row, token in steps)
                ranking.append(Hypothesis(total / length_penalty(length + 1, alpha), list(tokens)))
    ranking.sort(reverse=True)
    constraints = [[CONSTRAINTS[target] for target in asked]]
    selector = ConstraintSelector(constraints, BOUNDARIES, [limit], 700, [forbidden])
    [found] = beam_search(
        stepper, [limit], beam_size=700, length_penalty=alpha, n_best=10, selector=selector
    )
    assert [each.tokens for each in found] == [each.tokens for each in ranking[:10]]
    assert [each.score for each in found] == pytest.approx(
        [each.score for each in ranking[:10]], abs=1e-4
    )


def test_a_term_may_have_the_capitals_of_a_sentence_in_capitals(model, tokenizer):
    translator = Translator(TorchEngine([model]), tokenizer, CONFIG)
    texts = ["THE DOG SLEEPS", "The Dog Sleeps By The Cat"]
    for term in (Term("DOG", "Rüde"), Term("Dog", "Rüde"), Term("dog", "Rüde")):
        for text, found in zip(texts, translator.translate(texts, glossary=[term]), strict=True):
            asked = term.source in (*text.split(), "dog")
            assert ("rüde" in found.text.lower() or TERM in found.flags) == asked


def test_a_term_may_repeat_tokens(model, tokenizer):
    translator = Translator(TorchEngine([model]), tokenizer, replace(CONFIG, no_repeat_ngram=1))
    [found] = translator.translate(["The dog sleeps."], glossary=[Term("dog", "ha ha ha ha")])
    assert "ha ha ha ha" in found.text or TERM in found.flags


def test_a_loop_behind_a_term_is_flagged(tmp_path):
    translator, loops = load(make_model(tmp_path / "model", {}), engine="torch"), 0
    texts, terms = reverse_texts(8, seed=5)[0], [Term("ka", "Fex"), Term("mi", "Grobbel")]
    for text, found in zip(texts, translator.translate(texts, glossary=terms), strict=True):
        loops += (loop := is_loop(translator.encode([text])[0], found.tokens))
        assert LOOP in found.flags or not loop
    assert loops
    translator = replace(translator, config=replace(translator.config, retry_loops=False))
    assert not any(LOOP in found.flags for found in translator.translate(texts, glossary=terms))


def test_a_text_with_too_little_room_is_named(model, tokenizer):
    translator = Translator(TorchEngine([model]), tokenizer, replace(CONFIG, max_extra_tokens=1))
    terms = [Term("dog", "Ein sehr langer Name für einen Hund")]
    with pytest.raises(
        UserError,
        match=r"Text 2: the terms of the glossary \(Ein sehr.* or raise decode\.max_extra",
    ):
        translator.translate(["", "dog"], glossary=terms)
    translator.engine.max_positions = 6
    with pytest.raises(UserError, match=r"translation\. Shorten the terms\.$"):
        translator.translate(["", "dog"], glossary=terms)


def test_engine_without_constraints_falls_back_to_torch(model, config, tokenizer, tmp_path):
    convert(model, config, tmp_path, "float32")
    engine = CTranslate2Engine(tmp_path, "float32", config, threads=1)
    alone = Translator(engine, tokenizer, CONFIG)
    with pytest.raises(
        UserError, match="CTranslate2, float32 can't obey a glossary with this model"
    ):
        alone.translate(TEXTS, glossary=TERMS)
    assert alone.translate(TEXTS, glossary=[Term("zebra", "Zebra")]) == alone.translate(TEXTS)
    helped = Translator(engine, tokenizer, CONFIG, fallback=Fallback(lambda: TorchEngine([model])))
    ours = Translator(TorchEngine([model]), tokenizer, CONFIG)
    asked = [text for text in TEXTS if Glossary(TERMS).matches(text)]
    both = [each.translate(asked, glossary=TERMS) for each in (helped, ours)]
    assert [each.text for each in both[0]] == [each.text for each in both[1]]


@pytest.mark.parametrize("engine", ["torch", "auto"])
def test_the_command_takes_a_glossary(model, config, tokenizer, tmp_path, capsys, engine):
    weights = {key: value.contiguous() for key, value in model.state_dict().items()}
    publish_model(tmp_path / "model", RunConfig(model=config), tokenizer, weights, {}, "")
    (tmp_path / "text").write_text("The dog sleeps.\n\nA cat.\n", encoding="utf-8")
    (tmp_path / "terms.tsv").write_text("dog\tRüde\ncat\trote Katze\n", encoding="utf-8")
    arguments = [
        "--input",
        tmp_path / "text",
        "--engine",
        engine,
        "--glossary",
        tmp_path / "terms.tsv",
    ]
    status, output, _ = run(capsys, "translate", tmp_path / "model", *arguments)
    lines = output.split("\n")
    assert status == 0
    assert contains(lines[0], "Rüde") and lines[1] == "" and contains(lines[2], "rote Katze")
    status, _, error = run(
        capsys, "translate", tmp_path / "model", *arguments[:-1], tmp_path / "none.tsv"
    )
    assert status == 2 and "none.tsv" in error


@pytest.mark.parametrize(
    ("before", "after", "joins"),
    [
        ("letter", "letter", True),
        ("mark", "letter", True),
        ("letter", "mark", True),
        ("sign", "mark", True),
        ("unspaced", "mark", True),
        ("space", "mark", False),
        ("space", "letter", False),
        ("sign", "letter", False),
        ("unspaced", "letter", False),
        ("letter", "unspaced", False),
        ("letter", "sign", False),
        ("letter", "space", False),
    ],
)
def test_which_characters_belong_to_one_word(before, after, joins):
    assert _joins(before, after) is joins


def made(*names, limit=9, beam_size=4, opens=(), forbidden=()):
    boundaries = BOUNDARIES._replace(opens=tuple(piece in opens for piece in PIECES))
    constraints = [CONSTRAINTS[name] for name in names]
    return SentenceConstraints(constraints, boundaries, limit, beam_size, forbidden)


def test_the_size_of_a_beam_by_hand():
    """A group for each token of the terms, and one for what lacks none; "." has one token in the middle of a text."""
    assert [made(*names).lengths for names in ((), ("a", "ab"), (".", "a ."))] == [
        [],
        [1, 2],
        [1, 3],
    ]
    assert [made(*names).size for names in ((), ("a", "ab"), (".", "a ."))] == [4, 16, 20]
    # Only signs, and scripts without spaces, may follow any token without a space.
    spelt = [((7, 5), (5,)), ((7, 5, 6), (5, 6)), ((7, 6, 5), (6, 5)), ((7, 8, 5), (8, 5))]
    kinds = BOUNDARIES._replace(first=(*BOUNDARIES.first, "unspaced"))
    terms = [Constraint("", segmentations, "letter", "letter") for segmentations in spelt]
    assert SentenceConstraints(terms, kinds, 9, 4, ()).lengths == [2, 3, 2, 2]
    assert made(*["ab"] * 9).size == 64 and made(*["ab"] * 9, beam_size=99).size == 99


def test_where_a_constraint_may_begin():
    """After a space, its first form; a sign, and any term at the beginning or after a bracket, also without one."""
    its = made("ab", ".", opens=("b",))
    assert its.steps(NOTHING, 4) == {4: [(0, (5,))], 7: [(1, (6,))], 6: [(1, ())]}
    spaced = CONSTRAINTS["ab"]._replace(segmentations=((7, 5), (5,)))
    own = SentenceConstraints([spaced], its.boundaries, 9, 4, ())
    assert own.steps(NOTHING, 4) == {7: [(0, (5,))]}
    assert own.steps(NOTHING, BOS) == own.steps(NOTHING, 5) == {7: [(0, (5,))], 5: [(0, ())]}
    for first in ("unspaced", "sign"):
        anywhere = SentenceConstraints([spaced._replace(first=first)], its.boundaries, 9, 4, ())
        assert anywhere.steps(NOTHING, 4) == own.steps(NOTHING, BOS)
    met = Progress(frozenset({0}), frozenset())
    assert own.steps(met, BOS) == {}
    begun = Progress(frozenset(), frozenset({(0, (5,))}))
    assert own.steps(begun, 7) == {5: [(0, ())], 7: [(0, (5,))]}


def test_the_progress_of_a_hypothesis_by_hand():
    its = made("a", "ab")
    first = its.advance(NOTHING, its.steps(NOTHING, BOS), 4)
    assert first == (frozenset(), frozenset({(0, ()), (1, (5,))}))
    assert its.missing(NOTHING) == 3 and its.missing(first) == 2
    both = its.advance(first, its.steps(first, 4), 5)
    assert both == (frozenset(), frozenset({(1, ())})), "the word goes on, so it is not a"
    assert its.missing(both) == 1
    after = its.advance(both, its.steps(both, 5), 4)
    assert after.met == {1} and its.missing(after) == 0
    alone = its.advance(first, its.steps(first, 4), 4)
    assert alone.met == {0} and alone.begun == {(1, (5,))} and its.missing(alone) == 1


def test_forbidden_sequences_get_no_probability():
    its = made("a", forbidden=((4, 5), (6,)))
    totals = torch.zeros(2, len(PIECES))
    its.progress = {(1, 4): NOTHING, (1, 5): NOTHING}
    its.prepare([[1, 4], [1, 5]], totals)
    assert (totals == -torch.inf).nonzero().tolist() == [[0, 5], [0, 6], [1, 6]]


def test_candidates_are_the_best_of_each_hypothesis_and_of_all():
    """Two hypotheses of five tokens: the best ones of all are of the first."""
    totals = torch.tensor([[[-9.0, -9, -8, -1, -2], [-20, -30, -25, -19, -18]]])
    steps = [[{}, {2: [(0, ())], 4: [(1, ())]}]]
    found = _candidates(totals, steps, 2)[0].tolist()
    assert found == [3, 9, EOS, 5 + EOS, 7, 9, 3, 4]


@pytest.mark.parametrize(
    ("seed", "beam_size", "asked", "limits", "sharpness"),
    [
        (406, 2, [["a ."], [], ["a"]], [5, 3, 4], 0.3),
        (1603, 2, [["ab"], ["a .", "ab"], ["a ."]], [5, 5, 3], 0.3),
        (1918, 2, [[".", "ab", "a"], ["."], ["a ."]], [6, 3, 3], 1),
        (1995, 3, [["."], ["a", "a ."], ["a .", "a", "ab"]], [3, 5, 9], 8),
    ],
)
def test_sentences_with_more_terms_do_not_change_the_others(
    seed, beam_size, asked, limits, sharpness
):
    """Each sentence has its own beam size, and chooses from as many candidates as alone."""

    def search(places: list[int]) -> list[list[Hypothesis]]:
        its = [limits[i] for i in places]
        constraints = [[CONSTRAINTS[name] for name in asked[i]] for i in places]
        selector = ConstraintSelector(constraints, BOUNDARIES, its, beam_size)
        stepper = Chance([seed + i for i in places], len(PIECES), sharpness)
        return beam_search(stepper, its, beam_size=beam_size, selector=selector)

    assert search([0, 1, 2]) == [search([i])[0] for i in range(3)]


def test_the_choice_of_hypotheses_by_hand():
    """The groups supply open hypotheses in turn; an end must be among the best two that have all terms."""
    its = made("a", limit=3, beam_size=1)
    assert its.size == 2
    hypotheses = [[BOS, 5], [BOS, 4]]
    begun = its.advance(NOTHING, its.steps(NOTHING, BOS), 4)

    def choose(end: float) -> tuple[list[list[int]], list[list[int]]]:
        its.progress = {(BOS, 5): NOTHING, (BOS, 4): begun}
        steps = its.prepare(hypotheses, torch.zeros(2, 8))
        # "b" with its end, "b", "ba"; then "a" with its end, "ab", "a.", "a ", and one without probability.
        values = {2: -0.1, 5: -0.2, 4: -0.9, 10: end, 13: -0.25, 14: -2.0, 15: -1.0, 12: -torch.inf}
        ending, going_on = its.choose(hypotheses, steps, values, 8)
        assert [*its.progress] == [(*hypotheses[place // 8], place % 8) for place in going_on]
        return ending, going_on

    assert choose(-0.3) == ([10], [4, 5])
    assert its.progress[BOS, 5, 4] == begun and its.progress[BOS, 5, 5] == NOTHING
    assert choose(-0.95) == ([10], [4, 5]) and choose(-1.1) == ([], [4, 5])
    its.size = 4
    assert choose(-1.1) == ([10], [4, 5, 15, 13])
    its.limit = 2  # no room for the token that "b" and "ab" lack
    assert choose(-1.1) == ([10], [4, 15, 14])
    its.limit = 1  # only an end
    assert choose(-1.1)[0] == [10]
