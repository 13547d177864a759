"""The laws of search: what the beam finds, with the real model and with tables that can be checked by hand."""

import itertools
import math
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from transduce.config.schema import BOS, EOS, PAD, UNK, ModelConfig
from transduce.decoding import beam
from transduce.decoding.beam import beam_search
from transduce.decoding.stepper import ModelStepper, forced_log_probs
from transduce.decoding.types import Hypothesis, length_penalty
from transduce.model.build import build
from transduce.model.seq2seq import Seq2Seq, make_batch, source_tensor

ALPHAS = [-0.5, 0.0, 0.6, 1.0]
every_alpha = pytest.mark.parametrize("alpha", ALPHAS)
every_norm = pytest.mark.parametrize("norm", ["post", "pre"])

SOURCES = [[4, 5, 6, 4], [6, 4], [5]]


def tiny(norm: str = "post", vocab_size: int = 8, seed: int = 0) -> Seq2Seq:
    """A small model with weights large enough that no two hypotheses tie."""
    config = ModelConfig(
        vocab_size=vocab_size,
        d_model=16,
        d_ff=32,
        num_heads=4,
        num_encoder_layers=2,
        num_decoder_layers=2,
        norm=norm,
    )
    model = build(config, seed)
    for weight in model.parameters():
        weight.data.mul_(2.0)
    return model.eval()


def stepper(*models: Seq2Seq, sources: Sequence[Sequence[int]] = SOURCES) -> ModelStepper:
    return ModelStepper(models, source_tensor(sources))


def texts(found: list[list[Hypothesis]]) -> list[list[list[int]]]:
    return [[hypothesis.tokens for hypothesis in hypotheses] for hypotheses in found]


def same(found: list[list[Hypothesis]], expected: list[list[Hypothesis]]) -> None:
    assert texts(found) == texts(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert [h.score for h in ours] == pytest.approx([h.score for h in theirs], abs=1e-4)


@torch.inference_mode()
def rank_all(
    models: Sequence[Seq2Seq], source: list[int], max_length: int, alpha: float
) -> list[Hypothesis]:
    """Every translation of up to max_length tokens, best first: what search must approximate."""
    src, words, ranking = source_tensor([source]), range(UNK + 1, 7), []
    for length in range(max_length + 1):
        rows = list(itertools.product(words, repeat=length))
        tgt = torch.tensor([[BOS, *row] for row in rows])
        probs = [
            model.decode(tgt, model.encode(src))[0].double().softmax(dim=-1) for model in models
        ]
        log_probs = torch.stack(probs).mean(dim=0).log()
        for row, table in zip(rows, log_probs, strict=True):
            total = sum(table[i, word].item() for i, word in enumerate([*row, EOS]))
            ranking.append(Hypothesis(total / length_penalty(length + 1, alpha), list(row)))
    return sorted(ranking, reverse=True)


@every_norm
@every_alpha
def test_a_wide_beam_is_exhaustive(norm, alpha):
    model, limits = tiny(norm, vocab_size=7), [3, 2, 0]
    found = beam_search(stepper(model), limits, beam_size=60, length_penalty=alpha)
    same(found, [rank_all([model], s, n, alpha) for s, n in zip(SOURCES, limits, strict=True)])


@every_alpha
def test_a_wide_beam_of_an_ensemble_ranks_by_the_mean_of_probabilities(alpha):
    models = [tiny("post", vocab_size=7, seed=1), tiny("pre", vocab_size=7, seed=2)]
    found = beam_search(stepper(*models), [3, 2, 2], beam_size=60, length_penalty=alpha)
    same(found, [rank_all(models, s, n, alpha) for s, n in zip(SOURCES, [3, 2, 2], strict=True)])


@every_norm
@pytest.mark.parametrize("beam_size", [1, 3])
def test_batch_equals_single(norm, beam_size):
    model = tiny(norm)
    together = beam_search(stepper(model), [7, 5, 3], beam_size=beam_size)
    alone = [
        beam_search(stepper(model, sources=[source]), [limit], beam_size=beam_size)[0]
        for source, limit in zip(SOURCES, [7, 5, 3], strict=True)
    ]
    same(together, alone)


def test_additional_padding_changes_nothing():
    model, src = tiny(), source_tensor(SOURCES)
    padded = torch.nn.functional.pad(src, (0, 3), value=PAD)
    same(
        beam_search(ModelStepper([model], padded), [6, 6, 6]),
        beam_search(ModelStepper([model], src), [6, 6, 6]),
    )


def test_ensemble_of_equal_models_equals_the_model():
    model = tiny()
    same(
        beam_search(stepper(model, model, model), [7, 5, 3]), beam_search(stepper(model), [7, 5, 3])
    )


@torch.inference_mode()
def greedy(model: Seq2Seq, source: list[int], max_length: int) -> tuple[list[int], float]:
    """The plainest search: the likeliest token, again and again, everything computed anew each time."""
    tokens, total = [BOS], 0.0
    while True:
        log_probs = model(source_tensor([source]), torch.tensor([tokens]))[0, -1].log_softmax(
            dim=-1
        )
        allowed = [word for word in range(len(log_probs)) if word not in (PAD, BOS, UNK)]
        word = (
            max(allowed, key=lambda word: log_probs[word].item())
            if len(tokens) <= max_length
            else EOS
        )
        total += log_probs[word].item()
        if word == EOS:
            return tokens[1:], total
        tokens.append(word)


@every_norm
@every_alpha
def test_a_beam_of_one_is_greedy(norm, alpha):
    for seed in range(4):
        model, limits = tiny(norm, seed=seed), [8, 5, 3]
        found = beam_search(stepper(model), limits, beam_size=1, length_penalty=alpha)
        for [hypothesis], source, limit in zip(found, SOURCES, limits, strict=True):
            tokens, total = greedy(model, source, limit)
            assert hypothesis.tokens == tokens
            assert hypothesis.score == pytest.approx(
                total / length_penalty(len(tokens) + 1, alpha), abs=1e-4
            )


@every_norm
@every_alpha
def test_the_reported_score_is_the_forced_one(norm, alpha):
    models = [tiny(norm, seed=5), tiny(norm, seed=6)]
    found = beam_search(stepper(*models), [7, 5, 3], beam_size=4, length_penalty=alpha)
    for source, hypotheses in zip(SOURCES, found, strict=True):
        assert len(hypotheses) == 4
        rows = [hypothesis.tokens for hypothesis in hypotheses]
        totals = forced_log_probs(models, make_batch([source] * 4, rows)).sum(dim=1).tolist()
        expected = [
            total / length_penalty(len(row) + 1, alpha)
            for total, row in zip(totals, rows, strict=True)
        ]
        assert [hypothesis.score for hypothesis in hypotheses] == pytest.approx(expected, abs=1e-4)


@every_alpha
def test_stopping_early_changes_nothing(alpha, monkeypatch):
    def search(seed: int, n_best: int) -> list[list[Hypothesis]]:
        step = stepper(tiny(seed=seed, vocab_size=12))
        return beam_search(step, [9, 6, 4], beam_size=3, length_penalty=alpha, n_best=n_best)

    early = {(seed, n_best): search(seed, n_best) for seed in range(5) for n_best in (1, 3)}
    # Private, since no option switches the rule off that is tested here.
    monkeypatch.setattr(beam, "_done", lambda beam, length, *_: beam.limits < length)
    for (seed, n_best), found in early.items():
        same(found, [hypotheses[:n_best] for hypotheses in search(seed, 3)])


class Table:
    """A stepper whose next token depends on the last one only: probabilities that can be multiplied by hand."""

    device = torch.device("cpu")

    def __init__(self, table: dict[int, dict[int, float]], vocab_size: int):
        self.log_probs = torch.full((vocab_size, vocab_size), -torch.inf)
        for last, following in table.items():
            for word, probability in following.items():
                self.log_probs[last, word] = math.log(probability)
        self.steps = 0

    def __call__(self, tokens: Tensor) -> Tensor:
        self.steps += 1
        return self.log_probs[tokens]

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        """Nothing is remembered but the last token, which search passes in."""


A, B, C, D = 4, 5, 6, 7
WORDS = {BOS: {A: 0.6, B: 0.4}, A: {EOS: 0.55, C: 0.45}, B: {C: 1.0}, C: {EOS: 1.0}}


def test_search_by_hand():
    found = beam_search(Table(WORDS, 7), [4], beam_size=4, length_penalty=0.0)[0]
    assert [hypothesis.tokens for hypothesis in found] == [[B, C], [A], [A, C]]
    assert [math.exp(hypothesis.score) for hypothesis in found] == pytest.approx(
        [0.4, 0.6 * 0.55, 0.6 * 0.45]
    )
    # Greedy search takes A, the likelier first word, and never sees the best translation.
    assert texts(beam_search(Table(WORDS, 7), [4], beam_size=1)) == [[[A]]]


def test_the_length_penalty_by_hand():
    table = {BOS: {A: 0.5, B: 0.45}, A: {EOS: 1.0}, B: {C: 1.0}, C: {B: 0.2, EOS: 0.8}}
    short, long = math.log(0.5), math.log(0.45 * 0.8)
    by_probability = beam_search(Table(table, 7), [2], beam_size=2, length_penalty=0.0)[0]
    assert by_probability == [(pytest.approx(short), [A]), (pytest.approx(long), [B, C])]
    by_length = beam_search(Table(table, 7), [2], beam_size=2, length_penalty=4.0)[0]
    assert by_length == [
        (pytest.approx(long / (8 / 6) ** 4), [B, C]),  # two tokens and EOS: (5 + 3) / 6
        (pytest.approx(short / (7 / 6) ** 4), [A]),
    ]


def test_finished_sentences_free_their_batch_slot():
    ending = {EOS: 0.6, C: 0.4}
    table = Table({BOS: {A: 0.5, B: 0.45}, A: ending, B: ending, C: {EOS: 1.0}}, 7)
    # At the second step both of the best are ends.
    found = beam_search(table, [2], beam_size=2, length_penalty=4.0)
    assert found == [
        [
            (pytest.approx(math.log(0.2) / (8 / 6) ** 4), [A, C]),
            (pytest.approx(math.log(0.45 * 0.4) / (8 / 6) ** 4), [B, C]),
        ]
    ]


def test_greedy_search_takes_the_first_end_whatever_the_length_penalty():
    table = Table({BOS: {EOS: 0.5, A: 0.45}, A: {EOS: 1.0}}, 7)
    assert texts(beam_search(table, [5], beam_size=1, length_penalty=4.0)) == [[[]]]
    assert texts(beam_search(table, [5], beam_size=2, length_penalty=4.0)) == [[[A], []]]


def test_search_continues_while_a_longer_translation_can_win():
    table = Table(
        {BOS: {A: 0.5, B: 0.3}, A: {EOS: 1.0}, B: {C: 1.0}, C: {D: 1.0}, D: {EOS: 1.0}}, 8
    )
    assert texts(beam_search(table, [3], beam_size=2, length_penalty=4.0, n_best=1)) == [
        [[B, C, D]]
    ]


def test_the_limit_counts_tokens_without_the_end_and_forces_one():
    endless = {BOS: {A: 0.9, EOS: 0.1}, A: {A: 0.9, EOS: 0.1}}
    found = beam_search(Table(endless, 7), [3, 0], beam_size=1, length_penalty=0.0)
    assert found[0] == [(pytest.approx(math.log(0.9**3 * 0.1)), [A, A, A])]
    assert found[1] == [(pytest.approx(math.log(0.1)), [])]


def test_padding_begin_and_unknown_are_never_proposed():
    table = {word: {PAD: 0.3, BOS: 0.3, UNK: 0.3, A: 0.07, EOS: 0.03} for word in range(7)}
    found = beam_search(Table(table, 7), [3, 2], beam_size=5)
    assert [sorted(rows) for rows in texts(found)] == [
        [[A] * n for n in range(4)],
        [[A] * n for n in range(3)],
    ]


def test_search_stops_when_no_open_hypothesis_can_win():
    step = Table({word: {EOS: 0.9, A: 0.1} for word in range(7)}, 7)
    assert texts(beam_search(step, [100], beam_size=4, n_best=1)) == [[[]]]
    assert step.steps < 10
    assert texts(beam_search(step, [], beam_size=4)) == []


@pytest.mark.parametrize("size", [1, 2, 3])
def test_wide_beam_with_forbidden_repetitions_is_exhaustive(size):
    model, limits = tiny(vocab_size=7), [4, 3, 0]
    found = beam_search(
        stepper(model), limits, beam_size=200, length_penalty=0.6, no_repeat_ngram=size
    )
    every = [
        rank_all([model], source, limit, 0.6) for source, limit in zip(SOURCES, limits, strict=True)
    ]
    same(
        found,
        [[each for each in ranking if distinct_ngrams(each.tokens, size)] for ranking in every],
    )
    assert len(found[0]) < len(every[0])


def distinct_ngrams(tokens: list[int], size: int) -> bool:
    ngrams = [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]
    return len(set(ngrams)) == len(ngrams)


class Forbidding:
    """A filter that forbids one token in each sentence."""

    def __init__(self, forbidden: list[int]):
        self.forbidden = forbidden

    def __call__(self, tokens: Tensor, log_probs: Tensor) -> None:
        assert len(tokens) == len(log_probs) == len(self.forbidden)
        for sentence, token in enumerate(self.forbidden):
            log_probs[sentence, :, token] = -torch.inf

    def select(self, sentences: Tensor) -> None:
        self.forbidden = [self.forbidden[i] for i in sentences.tolist()]


def test_wide_beam_with_a_filter_is_exhaustive():
    """The filter follows its sentences, of which the last ends first, then the second."""
    model, limits, forbidden = tiny(vocab_size=7), [4, 3, 1], [A, B, C]
    found = beam_search(
        stepper(model), limits, beam_size=60, length_penalty=0.6, token_filter=Forbidding(forbidden)
    )
    every = [
        rank_all([model], source, limit, 0.6) for source, limit in zip(SOURCES, limits, strict=True)
    ]
    same(
        found,
        [
            [each for each in ranking if token not in each.tokens]
            for ranking, token in zip(every, forbidden, strict=True)
        ],
    )


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_steps_of_a_search_lead_to_its_result(beam_size):
    steps: list[beam.Expansion] = []
    model, alpha = tiny(vocab_size=9), 0.6
    step = stepper(model, sources=SOURCES[:1])
    [found] = beam_search(
        step, [6], beam_size=beam_size, length_penalty=alpha, on_step=steps.append
    )
    opened, ended = [(0.0, list[int]())], list[Hypothesis]()
    for length, its in enumerate(steps, 1):
        [candidates] = zip(
            its.log_probs.tolist(), its.parents.tolist(), its.tokens.tolist(), strict=True
        )
        rows = [
            (total, [*opened[at][1], token]) for total, at, token in zip(*candidates, strict=True)
        ]
        assert len(rows) <= 2 * beam_size and rows == sorted(rows, key=lambda row: -row[0])
        assert all(total <= opened[at][0] for total, at, _ in zip(*candidates, strict=True))
        for (total, tokens), score in zip(rows, its.ended[0].tolist(), strict=False):
            assert (score > -math.inf) == (tokens[-1] == EOS and total > -math.inf)
            if score > -math.inf:
                assert score == pytest.approx(total / length_penalty(length, alpha))
                ended.append(Hypothesis(score, tokens[:-1]))
        opened = [rows[i] for i in its.kept[0].tolist()]
        assert len(opened) <= beam_size
        assert all(tokens[-1] != EOS for total, tokens in opened if total > -math.inf)
    assert found == sorted(ended, reverse=True)[:beam_size]


def test_no_more_translations_than_the_beam_are_found():
    for n_best, count in ((9, 3), (2, 2), (None, 3)):
        step = stepper(tiny(vocab_size=6), sources=[[4]])
        [found] = beam_search(step, [9], beam_size=3, n_best=n_best)
        assert len(found) == count
