"""Tests of transduce/decoding/searcher.py."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

import transduce
from phrases import CONFIG
from transduce.config.schema import DecodeConfig
from transduce.decoding.minimum_bayes_risk import by_expected_chrf
from transduce.decoding.searcher import Fallback, Searcher
from transduce.decoding.types import (
    Constraints,
    Engine,
    Hypothesis,
    NBestLists,
    Request,
    Sentences,
)
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer


class Reversing:
    """An engine whose translations are the sources in reverse order; it keeps the requests.

    Sources that begin with a token of `loops` become loops while n-grams of so many tokens may repeat.
    """

    name = "reversing"
    weight_bytes = 5

    def __init__(self, tokens: int = 8, positions: int | None = None, *supports: str) -> None:
        self.tokens = tokens
        self.max_positions = positions
        self.supports = frozenset(supports)
        self.requests: list[tuple[Request, DecodeConfig, int]] = []
        self.totals: list[int] = []
        self.loops: dict[int, int] = {}

    def budget(self, _config: DecodeConfig, total: int) -> int:
        self.totals.append(total)
        return self.tokens

    def search(
        self, requests: Sequence[Request], config: DecodeConfig, n_best: int
    ) -> Iterator[NBestLists]:
        for request in requests:
            self.requests.append((request, config, n_best))
            size = config.no_repeat_ngram or 99
            yield [
                [
                    Hypothesis(
                        -1.0, [9, 9, 9, 9] if size >= self.loops.get(row[0], 100) else row[::-1]
                    )
                ]
                if row[0] != 7
                else []
                for row in request.sources
            ]

    def log_probs(self, sources: list[list[int]], targets: list[list[int]]) -> list[list[float]]:
        self.totals.append(-len(sources))
        return [[float(len(s)), *map(float, t)] for s, t in zip(sources, targets, strict=True)]


def searcher(tokenizer: Tokenizer, engine: Reversing, **options: object) -> Searcher:
    return Searcher(engine, tokenizer, replace(CONFIG, **options))


ROWS = [[4, 5, 6], [5], [6, 5, 4, 4, 5], [8, 8], [4]]
SENTENCES = Sentences([f"text {i}" for i in range(5)], ROWS, [11, 12, 13, 14, 15])


def test_sentences_of_similar_length_share_a_request_and_keep_their_places(tokenizer):
    engine = Reversing(8)
    found = searcher(tokenizer, engine).search(engine, SENTENCES, 3)
    assert found == [[Hypothesis(-1.0, row[::-1])] for row in ROWS]
    # Lengths with EOS: 4, 2, 6, 3 and 2 of at most 8 with padding.
    assert engine.totals == [4 + 2 + 6 + 3 + 2]
    assert sorted(sorted(request.sources) for request, *_ in engine.requests) == [
        [[4], [5]],
        [[4, 5, 6], [8, 8]],
        [[6, 5, 4, 4, 5]],
    ]
    for request, config, n_best in engine.requests:
        assert request.texts == [SENTENCES.texts[ROWS.index(row)] for row in request.sources]
        assert request.limits == [len(row) + CONFIG.max_extra_tokens for row in request.sources]
        assert (request.selector, config, n_best) == (None, CONFIG, 3)


def test_constraints_need_wider_beams_and_repeat_tokens(tokenizer):
    engine = Reversing(8)
    made = []
    constraints = Constraints([1, 2, 1, 3, 1], lambda *given: made.append(given))
    its = searcher(tokenizer, engine, no_repeat_ngram=2)
    assert its.search(engine, SENTENCES, 1, constraints) == [
        [Hypothesis(-1.0, row[::-1])] for row in ROWS
    ]
    assert engine.totals == [4 + 2 * 2 + 6 + 3 * 3 + 2]
    for request, config, _ in engine.requests:
        assert config.no_repeat_ngram == 0
        request.selector(4)
        places = [ROWS.index(row) for row in request.sources]
        assert made[-1] == (places, request.limits, 4)
    assert all(
        len(request.sources) == 1 for request, *_ in engine.requests if [8, 8] in request.sources
    )


def test_the_most_alike_text_comes_first_by_minimum_risk(tokenizer):
    ids = tokenizer.encode_target(["rot Hund", "Katze", "rot Hundu", "Katze"])
    best = [
        Hypothesis(score, row) for score, row in zip((-1.1, -1.0, -1.2, -9.0), ids, strict=True)
    ]
    its = searcher(tokenizer, Reversing(), mbr="chrf")
    by_text = {"Katze": best[1], "rot Hund": best[0], "rot Hundu": best[2]}
    expected = [*by_expected_chrf(by_text, CONFIG.length_penalty).values()]
    assert its.by_risk([best[1], best[0], best[2], best[3]]) == expected != [*by_text.values()]
    assert its.by_risk([]) == [] and searcher(tokenizer, Reversing()).by_risk(best) == best


def test_loops_are_searched_again_with_fewer_repetitions(tokenizer):
    """What begins with 4 always loops, with 6 until bigrams are forbidden, with 8 until trigrams are."""
    engine = Reversing(99)
    engine.loops = {4: 0, 6: 3, 8: 4}
    its = searcher(tokenizer, engine)
    lists = its.search(engine, SENTENCES, 1)
    loop = [Hypothesis(-1.0, [9, 9, 9, 9])]
    assert lists == [loop, [Hypothesis(-1.0, [5])], loop, loop, loop]
    engine.requests.clear()
    assert its.search_loops_again(SENTENCES, lists, 2) == {0, 2, 3, 4}
    assert [(config.no_repeat_ngram, n_best) for _, config, n_best in engine.requests] == [
        (3, 2),
        (2, 2),
    ]
    assert sorted(engine.requests[0][0].sources) == sorted([ROWS[0], ROWS[2], ROWS[3], ROWS[4]])
    assert lists[1] == [Hypothesis(-1.0, [5])] and lists[0] == loop
    again = {tuple(row) for row in engine.requests[1][0].sources}
    assert again == {(4, 5, 6), (6, 5, 4, 4, 5), (4,)} and lists[3] == [Hypothesis(-1.0, [8, 8])]
    assert lists[2] == [Hypothesis(-1.0, [5, 4, 4, 5, 6])]
    engine.requests.clear()
    forbidding = searcher(tokenizer, engine, no_repeat_ngram=4)
    assert forbidding.search_loops_again(SENTENCES, lists, 1) == {0, 4} and not engine.requests
    nothing = Sentences(["x"], [[7, 7]], [1])
    kept = [loop]
    assert its.search_loops_again(nothing, kept, 1) == {0} and kept == [loop], "no other was found"


def test_progress_counts_each_sentence_once(tokenizer):
    """Neither a search with constraints nor a search for loops counts."""
    engine, sizes = Reversing(8), []
    engine.loops = {4: 0}
    its = replace(searcher(tokenizer, engine), progress=sizes.append)
    lists = its.search(engine, SENTENCES, 1)
    assert sorted(sizes) == [1, 2, 2]
    its.search(engine, SENTENCES, 1, Constraints([1] * 5, lambda *_: None))
    assert its.search_loops_again(SENTENCES, lists, 1) == {0, 4} and len(sizes) == 3


def test_pairs_of_similar_length_are_scored_together(tokenizer):
    engine = Reversing(12)
    targets = [[1] * 4, [2], [3], [4] * 5, []]
    its = searcher(tokenizer, engine)
    found = its.forced(engine, engine.log_probs, ROWS, targets)
    assert found == [[float(len(s)), *map(float, t)] for s, t in zip(ROWS, targets, strict=True)]
    # The longer side with EOS: 5, 2, 6, 6 and 2; at most 12 with padding.
    assert engine.totals[0] == 5 + 2 + 6 + 6 + 2 and sorted(engine.totals[1:]) == [-2, -2, -1]


def test_limits_of_engines_count_the_end_of_a_sentence(tokenizer):
    free, short = searcher(tokenizer, Reversing()), searcher(tokenizer, Reversing(8, 7))
    extra = CONFIG.max_extra_tokens
    assert (free.max_tokens, short.max_tokens) == (None, 6)
    assert [free.limit([1] * n) for n in (0, 50)] == [extra, 50 + extra]
    assert [short.limit([1] * n) for n in (0, 1, 2, 3, 9)] == [extra, 1 + extra, 6, 6, 6]
    short.check_lengths("Source", [[1] * 6, []], [1, 2])
    free.check_lengths("Source", [[1] * 600], [1])
    with pytest.raises(
        UserError, match=r"Target text 9 has 7 tokens, but reversing supports at most 6\."
    ) as error:
        short.check_lengths("Target", [[1], [1] * 7], [8, 9])
    assert str(error.value).endswith("Split the text.")
    other = replace(short, fallback=Fallback(lambda: Reversing()))
    with pytest.raises(UserError, match="Split the text, or choose the engine torch"):
        other.check_lengths("Source", [[1] * 7], [1])
    able = Searcher(Reversing(8, 7, "positions"), tokenizer, CONFIG, other.fallback)
    with pytest.raises(UserError, match=r"Split the text\.$"):
        able.check_lengths("Source", [[1] * 7], [1])


def test_a_feature_may_need_the_other_engine(tokenizer):
    aligning, plain = Reversing(8, None, "attention"), Reversing()
    assert Searcher(aligning, tokenizer, CONFIG).engine_for("attention") is aligning
    fallback = Fallback(lambda: aligning)
    its = Searcher(plain, tokenizer, CONFIG, fallback)
    assert its.weight_bytes == 5 and fallback.weight_bytes == 0
    assert its.engine_for("attention") is aligning
    assert its.weight_bytes == 10 and Searcher(plain, tokenizer, CONFIG).weight_bytes == 5
    with pytest.raises(UserError, match=r"reversing can't obey a glossary with this model"):
        its.engine_for("constraints")
    with pytest.raises(UserError, match=r"reversing can't align words with this model"):
        Searcher(plain, tokenizer, CONFIG).engine_for("attention")


def test_several_threads_open_the_engine_for_glossaries_once(trained):
    loaded, opened = transduce.load(trained, engine="ctranslate2"), []

    def open_engine() -> Engine:
        opened.append(loaded.fallback.engine)
        return opened[-1]

    translator = replace(loaded, fallback=Fallback(open_engine))
    with ThreadPoolExecutor(5) as pool:
        found = list(
            pool.map(
                lambda _: translator.translate(["A dog runs."], glossary={"dog": "Katze"}), range(5)
            )
        )
    assert all(each == found[0] for each in found)
    assert len(opened) == 1
