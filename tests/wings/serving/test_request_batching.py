"""The queue in front of an engine: who is translated with whom, when, and what happens to the others."""

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpora import WORDS
from servers import Echo
from transduce.config.schema import DecodeConfig
from transduce.decoding.translator import Translator
from transduce.decoding.types import TranslationOptions
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.serving.batching import Batcher, BatchKey, Part, QueueFullError
from waiting import PATIENCE

TEXTS = [" ".join(words) for words in itertools.product(WORDS, repeat=2)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, TEXTS, vocab_size=300)


def run(
    body: Callable[[Batcher], Coroutine[Any, Any, Any]],
    *,
    requests: int = 100,
    tokens: int = 10_000,
    wait: float = 1e6,
) -> Any:
    """What a coroutine makes of a batcher that is running."""

    async def whole() -> Any:
        batcher = Batcher(requests, tokens, 8, wait, lambda *_: None)
        batcher.start()
        try:
            return await asyncio.wait_for(body(batcher), PATIENCE)
        finally:
            await batcher.stop()

    return asyncio.run(whole())


def key_of(translator: Translator, n_best: int) -> BatchKey:
    return BatchKey(translator, TranslationOptions(n_best))


async def ask(
    batcher: Batcher, key: BatchKey, sentences: Sequence[str], size: int = 1
) -> list[str]:
    """The translations of sentences that count as so many tokens each."""
    with batcher.place():
        (found,) = await batcher.translate(
            [Part(key, sentences, [size] * len(sentences), [1] * len(sentences))]
        )
    return [each.text for each in found]


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


@settings(max_examples=30)
@given(
    requests=st.lists(
        st.tuples(st.lists(st.sampled_from([*TEXTS[:8], "ti ti"]), max_size=30), st.integers(1, 2)),
        max_size=12,
    )
)
def test_each_request_gets_its_own_answer_or_error(
    tokenizer: Tokenizer, requests: list[tuple[list[str], int]]
) -> None:
    engine = Echo()
    engine.gate.set()
    translator = Translator(engine, tokenizer, DecodeConfig(beam_size=2))

    async def body(batcher: Batcher) -> list[Any]:
        asked = (ask(batcher, key_of(translator, n_best), texts) for texts, n_best in requests)
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert (batcher.requests, batcher.tokens) == (0, 0)
        return answers

    for (texts, _), answer in zip(requests, run(body), strict=True):
        assert isinstance(answer, UserError) if "ti ti" in texts else answer == texts


def test_failed_request_leaves_the_queue_completely(tokenizer: Tokenizer) -> None:
    engine = Echo()
    engine.gate.set()
    key = BatchKey(Translator(engine, tokenizer, DecodeConfig(beam_size=1)))

    async def body(batcher: Batcher) -> list[Any]:
        asked = ask(batcher, key, ["ti ti", *TEXTS[:30]]), ask(batcher, key, TEXTS[:30])
        return await asyncio.gather(*asked, return_exceptions=True)

    refused, answered = run(body)
    assert isinstance(refused, UserError) and answered == TEXTS[:30]


def test_a_message_has_the_number_of_the_text_in_its_own_request(tokenizer: Tokenizer) -> None:
    engine = Echo(max_positions=9)
    engine.gate.set()
    translator = Translator(engine, tokenizer, DecodeConfig(beam_size=1))

    async def body(batcher: Batcher) -> list[Any]:
        parts = [
            Part(BatchKey(translator), [TEXTS[0], " ".join(TEXTS[:9])], [1, 1], [number, 7])
            for number in (1, 2)
        ]
        return await asyncio.gather(
            *(batcher.translate([part]) for part in parts), return_exceptions=True
        )

    assert [str(error)[:25] for error in run(body)] == ["Source text 7 has 18 toke"] * 2


def test_a_long_document_does_not_hold_up_a_word(tokenizer: Tokenizer) -> None:
    engine = Echo()
    key = BatchKey(Translator(engine, tokenizer, DecodeConfig(beam_size=1)))

    async def body(batcher: Batcher) -> None:
        document = asyncio.create_task(ask(batcher, key, [TEXTS[0]] * 100))
        await until(engine.began.is_set)
        word = asyncio.create_task(ask(batcher, key, [TEXTS[1]]))
        await until(lambda: batcher.requests == 2)
        engine.gate.set()
        assert await word == [TEXTS[1]]
        assert not document.done()
        assert await document == [TEXTS[0]] * 100
        assert [batch for batch in engine.searched if TEXTS[1] in batch] == [engine.searched[1]]

    run(body)


@settings(max_examples=30)
@given(requests=st.lists(st.tuples(st.integers(1, 20), st.integers(1, 2)), max_size=20))
def test_requests_take_turns(tokenizer: Tokenizer, requests: list[tuple[int, int]]) -> None:
    engine = Echo()
    translator = Translator(engine, tokenizer, DecodeConfig(beam_size=2))
    texts = map(" ".join, itertools.product(WORDS, repeat=3))
    asked = [
        (key_of(translator, n_best), list(itertools.islice(texts, length)))
        for length, n_best in requests
    ]

    async def body(batcher: Batcher) -> None:
        first = asyncio.create_task(ask(batcher, BatchKey(translator), [TEXTS[0]]))
        await until(engine.began.is_set)
        others = [asyncio.create_task(ask(batcher, *each)) for each in asked]
        await until(lambda: batcher.requests == 1 + len(asked))
        engine.gate.set()
        await asyncio.gather(first, *others)

    run(body)
    turns = [0] * len(asked)
    for batch in engine.searched[1:]:
        for text in batch:
            turns[
                next(place for place, (_, sentences) in enumerate(asked) if text in sentences)
            ] += 1
        for (key, sentences), had in zip(asked, turns, strict=True):
            if had < len(sentences):
                assert (
                    had
                    >= max(
                        count for (each, _), count in zip(asked, turns, strict=True) if each == key
                    )
                    - 1
                )


def test_requests_with_other_options_get_their_turn(tokenizer: Tokenizer) -> None:
    engine = Echo()
    translator = Translator(engine, tokenizer, DecodeConfig(beam_size=2))

    async def body(batcher: Batcher) -> None:
        documents = [
            asyncio.create_task(ask(batcher, key_of(translator, 1), [TEXTS[0]] * 100))
            for _ in range(9)
        ]
        await until(engine.began.is_set)
        word = asyncio.create_task(ask(batcher, key_of(translator, 2), [TEXTS[1]]))
        await until(lambda: batcher.requests == 10)
        engine.gate.set()
        assert await word == [TEXTS[1]] and not any(document.done() for document in documents)
        await asyncio.gather(*documents)
        assert [TEXTS[1]] in engine.searched[:3]

    run(body)


def test_cancelled_request_frees_its_place(tokenizer: Tokenizer) -> None:
    engine = Echo()
    key = BatchKey(Translator(engine, tokenizer, DecodeConfig(beam_size=1)))

    async def body(batcher: Batcher) -> None:
        first = asyncio.create_task(ask(batcher, key, [TEXTS[0]]))
        await until(engine.began.is_set)
        second = asyncio.create_task(ask(batcher, key, [TEXTS[1]] * 20, 5))
        await until(lambda: batcher.requests == 2)
        assert batcher.tokens == 101
        with pytest.raises(QueueFullError) as full:  # at once, though the engine works
            await ask(batcher, key, [TEXTS[2]])
        assert int(full.value.headers["Retry-After"]) >= 1
        second.cancel()
        await until(lambda: (batcher.requests, batcher.tokens) == (1, 1))
        third = asyncio.create_task(ask(batcher, key, [TEXTS[2]]))
        engine.gate.set()
        assert (await first, await third) == ([TEXTS[0]], [TEXTS[2]])
        assert not any(TEXTS[1] in batch for batch in engine.searched)

    run(body, requests=2)


def test_queue_limit_counts_only_work_ahead_of_a_request(tokenizer: Tokenizer) -> None:
    engine = Echo()
    key = BatchKey(Translator(engine, tokenizer, DecodeConfig(beam_size=1)))

    async def body(batcher: Batcher) -> None:
        # Alone, it has room whatever it is.
        long = asyncio.create_task(ask(batcher, key, [TEXTS[0]] * 30, 10))
        await until(engine.began.is_set)
        short = asyncio.create_task(ask(batcher, key, [TEXTS[1]], 10))  # doesn't wait for all of it
        await until(lambda: batcher.requests == 2)
        with pytest.raises(QueueFullError):  # would
            await ask(batcher, key, [TEXTS[2]] * 30, 10)
        engine.gate.set()
        assert (await long, await short) == ([TEXTS[0]] * 30, [TEXTS[1]])

    run(body, tokens=100)


@pytest.mark.parametrize("wait", [1e-9, 1e6])
def test_request_that_would_wait_too_long_is_refused(tokenizer: Tokenizer, wait: float) -> None:
    engine = Echo()
    key = BatchKey(Translator(engine, tokenizer, DecodeConfig(beam_size=1)))

    async def body(batcher: Batcher) -> None:
        engine.gate.set()
        await ask(batcher, key, [TEXTS[0]])  # from now on it knows its pace
        engine.gate.clear()
        before = asyncio.create_task(ask(batcher, key, [TEXTS[1]]))
        await until(lambda: batcher.tokens == 1)
        with pytest.raises(QueueFullError) if wait < 1 else contextlib.nullcontext():
            batcher.check_room(1)
        engine.gate.set()
        assert await before == [TEXTS[1]]

    run(body, wait=wait)


def test_parts_of_a_request_count_as_one(tokenizer: Tokenizer) -> None:
    engine = Echo()
    engine.gate.set()
    translator = Translator(engine, tokenizer, DecodeConfig(beam_size=2))

    async def body(batcher: Batcher) -> None:
        parts = [
            Part(key_of(translator, n_best), [TEXTS[n_best]] * 9, [100] * 9, [1] * 9)
            for n_best in (1, 2)
        ]
        nothing = Part(BatchKey(translator), [], [], [])
        found = await batcher.translate([parts[0], nothing, parts[1]])
        assert [[each.text for each in part] for part in found] == [
            [TEXTS[1]] * 9,
            [],
            [TEXTS[2]] * 9,
        ]
        assert await batcher.translate([nothing]) == [[]]
        with pytest.raises(UserError):  # what is left of it isn't translated any more
            await batcher.translate(
                [Part(key_of(translator, 2), ["ti ti"] * 9, [100] * 9, [1] * 9), parts[0]]
            )
        before = sum(TEXTS[1] in batch for batch in engine.searched)
        for _ in range(3):
            assert await ask(batcher, BatchKey(translator), [TEXTS[0]]) == [TEXTS[0]]
        assert sum(TEXTS[1] in batch for batch in engine.searched) <= before + 1, "a running batch"

    run(body, tokens=100)


def test_calls_in_the_engine_thread_wait_for_the_running_batch(tokenizer: Tokenizer) -> None:
    engine = Echo()
    key = BatchKey(Translator(engine, tokenizer, DecodeConfig(beam_size=1)))

    async def body(batcher: Batcher) -> None:
        first = asyncio.create_task(ask(batcher, key, [TEXTS[0]]))
        await until(engine.began.is_set)
        computed = asyncio.create_task(batcher.call(lambda: len(engine.searched)))
        engine.gate.set()
        assert await computed == 1  # after what was there before
        await first

    run(body)


def test_batches_run_between_two_calls(tokenizer: Tokenizer) -> None:
    engine = Echo()
    key = BatchKey(Translator(engine, tokenizer, DecodeConfig(beam_size=1)))

    async def body(batcher: Batcher) -> None:
        first = asyncio.create_task(ask(batcher, key, [TEXTS[0]]))
        await until(engine.began.is_set)
        computed = [
            asyncio.create_task(batcher.call(lambda: len(engine.searched))) for _ in range(5)
        ]
        second = asyncio.create_task(ask(batcher, key, [TEXTS[1]]))
        await until(lambda: batcher.requests == 2)
        engine.gate.set()
        assert await asyncio.gather(*computed) == [1, 2, 2, 2, 2]
        assert (await first, await second) == ([TEXTS[0]], [TEXTS[1]])

    run(body)


def idle(**limits: float) -> Batcher:
    """A batcher whose numbers can be set."""
    given = {"room": 9, "room_for_tokens": 100, "batch_tokens": 8, "wait": 20.0} | limits
    return Batcher(**given, observe=lambda *_: None)  # type: ignore[arg-type]


def test_the_room_for_a_request_by_hand() -> None:
    """Of a longer request, only as many tokens as the new one has come first, since requests take turns."""
    batcher = idle()
    batcher._sizes = [10, 200]
    batcher.check_room(45)  # 10 + 45 before it, and 100 in all
    with pytest.raises(QueueFullError):
        batcher.check_room(46)
    batcher.room_for_tokens = 10_000
    batcher._pace = 3.0
    batcher.check_room(50)  # 60 tokens take 20 seconds
    with pytest.raises(QueueFullError) as error:
        batcher.check_room(51)
    headers = error.value.headers
    assert error.value.status_code == 503 and headers == {"Retry-After": "35"}, "half of 210 tokens"
    batcher._sizes = []
    batcher.check_room(100_000)
    batcher.room_for_tokens, batcher._sizes = 1, [0]
    batcher.check_room(100_000)


@pytest.mark.parametrize(
    ("sizes", "pace", "seconds"),
    [
        ([100], 0.0, 1),
        ([100], 10.0, 5),
        ([100, 20], 10.0, 6),
        ([], 10.0, 1),
        ([10], 10.0, 1),
        ([1200], 10.0, 60),
        ([1180], 10.0, 59),
        ([9999], 10.0, 60),
    ],
)
def test_the_seconds_to_wait_by_hand(sizes: list[int], pace: float, seconds: int) -> None:
    batcher = idle()
    batcher._sizes, batcher._pace = sizes, pace
    assert (batcher.tokens, batcher._seconds()) == (sum(sizes), seconds)


def test_places_are_counted() -> None:
    batcher = idle(room=2)
    with batcher.place():
        batcher.check_place()
        with batcher.place(), pytest.raises(QueueFullError, match="The server is busy"):
            batcher.check_place()
        with pytest.raises(KeyError), batcher.place():
            raise KeyError
        assert batcher.requests == 1
    assert batcher.requests == 0


def test_a_batch_ends_with_the_sentence_that_fills_it(tokenizer: Tokenizer) -> None:
    engine = Echo()
    engine.gate.set()
    key = BatchKey(Translator(engine, tokenizer, DecodeConfig(beam_size=1)))
    seen: list[tuple[int, ...]] = []

    async def body(batcher: Batcher) -> None:
        batcher.observe = lambda *batch: seen.append(batch)
        [found] = await batcher.translate([Part(key, TEXTS[:7], [4, 4, 3, 3, 3, 9, 8], [1] * 7)])
        assert [each.text for each in found] == TEXTS[:7]
        assert batcher._pace > 0
        # A slower batch lowers the pace by a tenth.
        batcher._pace = 1e9
        await ask(batcher, key, [TEXTS[0]])
        assert batcher._pace == pytest.approx(9e8)

    run(body)
    assert seen == [(2, 8), (3, 9), (1, 9), (1, 8), (1, 1)]


def test_a_quick_batch_has_a_pace(tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the clock is coarse, a batch counts as a thousandth of a second."""
    engine = Echo()
    engine.gate.set()
    key = BatchKey(Translator(engine, tokenizer, DecodeConfig(beam_size=1)))

    async def body(batcher: Batcher) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        monkeypatch.setattr(loop, "time", lambda: now)
        await ask(batcher, key, [TEXTS[0]], 5)
        monkeypatch.undo()
        assert batcher._pace == pytest.approx(5000)

    run(body)


def test_a_batcher_that_stops_waits_for_nothing_and_begins_nothing(tokenizer: Tokenizer) -> None:
    engine = Echo()
    key = BatchKey(Translator(engine, tokenizer, DecodeConfig(beam_size=1)))
    called: list[int] = []
    late = threading.Timer(PATIENCE / 20, engine.gate.set)

    async def body() -> None:
        batcher = idle()
        await batcher.stop()  # before its start
        batcher = idle()
        batcher.start()
        first = asyncio.create_task(ask(batcher, key, [TEXTS[0]]))
        await until(engine.began.is_set)
        call = asyncio.create_task(batcher.call(lambda: called.append(1)))
        await until(batcher._calling.locked)
        late.start()
        await batcher.stop()
        assert not engine.gate.is_set(), "it has not waited for the engine"
        engine.gate.set()
        batcher._threads.shutdown(wait=True)
        assert batcher._task and batcher._task.cancelled() and not called and not first.done()
        for each in (first, call):
            each.cancel()

    try:
        asyncio.run(asyncio.wait_for(body(), PATIENCE))
    finally:
        late.cancel()


def test_errors_of_the_engine_are_told_apart(tokenizer: Tokenizer) -> None:
    """A future accepts no StopIteration, and another error keeps its cause, which is logged."""

    class Failing(Echo):
        """An engine that fails."""

        def search(self, *_: Any) -> Any:
            raise error

    key = BatchKey(Translator(Failing(), tokenizer, DecodeConfig(beam_size=1)))
    for error in (ValueError("x"), StopIteration("y"), UserError("Mine.")):
        with pytest.raises(UserError if isinstance(error, UserError) else RuntimeError) as raised:
            run(lambda batcher: ask(batcher, key, [TEXTS[0]]))
        assert isinstance(error, UserError) or raised.value.__cause__ is not None
