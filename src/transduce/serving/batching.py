"""Sentences of many requests, translated together.

All state belongs to the event loop; only the engine runs in threads. What arrives while a batch is being translated
makes up the next one, so nothing waits while an engine is idle. A batch takes a sentence of every request in turn: a
long document does not hold up those who want a word.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, TypeVar

from transduce.decoding.glossary import Term
from transduce.decoding.translator import Translation, Translator
from transduce.errors import UserError

Result = TypeVar("Result")
FORGOTTEN = 0.9  # of the best pace, with every batch


class QueueFullError(Exception):
    """There is no place in the queue."""

    def __init__(self, seconds: int):
        super().__init__(seconds)
        self.seconds = seconds  # after which there probably is


class Want(NamedTuple):
    """How sentences are to be translated; those with the same want are translated together."""

    translator: Translator
    n_best: int = 1
    align: bool = False
    glossary: tuple[Term, ...] = ()

    def translate(self, sentences: Sequence[str]) -> list[Translation]:
        """In the thread that calls."""
        return self.translator.translate(sentences, n_best=self.n_best, align=self.align, glossary=self.glossary)


@dataclass(eq=False)
class Job:
    """The sentences of a request."""

    want: Want
    sentences: Sequence[str]
    tokens: Sequence[int]  # of each
    done: asyncio.Future[list[Translation]]
    found: dict[int, Translation] = field(default_factory=dict)
    begun: int = 0  # sentences that are translated or being translated


class Batcher:
    """A queue in front of engines, with room for so many requests and source tokens."""

    def __init__(self, requests: int, tokens: int, batch_tokens: int, wait: float, observe: Callable[[int, int], None]):
        """wait: seconds. observe: is told of every batch the sentences and the source tokens."""
        self.room, self.room_for_tokens, self.batch_tokens, self.wait = requests, tokens, batch_tokens, wait
        self.requests = self.tokens = 0  # waiting or being translated
        self._observe = observe
        self._waiting: deque[Job] = deque()
        self._threads = ThreadPoolExecutor(1, "engine")  # which uses all cores by itself
        self._wake = asyncio.Event()
        self._pace = 0.0  # tokens a second: small batches are slower, but don't say what it can do
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to translate; to be called in the event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """End when the batch that is being translated is done; what waits is not answered."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._threads.shutdown(cancel_futures=True)

    def check_room(self, tokens: int = 0) -> None:
        """Raise QueueFullError if a request of so many tokens has no place, or would have to wait for too long.

        One alone always has a place, unless it is UserError: longer than the whole queue.
        """
        if tokens > self.room_for_tokens:
            raise UserError(f"A request has at most {self.room_for_tokens:,} tokens here, not {tokens:,}; divide it.")
        late = self._pace and self.tokens / self._pace > self.wait
        if self.requests >= self.room or (self.requests and (self.tokens + tokens > self.room_for_tokens or late)):
            raise QueueFullError(self._seconds())

    async def translate(
        self, want: Want, sentences: Sequence[str], tokens: Sequence[int], align: Sequence[bool] = ()
    ) -> list[Translation]:
        """A translation of each sentence, in order; tokens: of each sentence; align: those that want links, too.

        Cancelling it frees the place of what has not begun. Raises QueueFullError if there is no room,
        and UserError for what the translator refuses.
        """
        total = sum(tokens)
        self.check_room(total)
        linked = [want.align or each for each in align or [False] * len(sentences)]
        parts = [(each, [i for i, link in enumerate(linked) if link == each]) for each in sorted(set(linked))]
        jobs = [_job(want._replace(align=link), sentences, tokens, part) for link, part in parts]
        self.requests += 1
        self.tokens += total
        self._waiting.extend(jobs)
        self._wake.set()
        try:
            await asyncio.gather(*(job.done for job in jobs))
        finally:
            self.requests -= 1
            self.tokens -= total
            for job in jobs:
                job.done.cancel()
            self._waiting = deque(job for job in self._waiting if not job.done.done())
        places = [i for _, part in parts for i in part]
        found = dict(zip(places, chain.from_iterable(job.done.result() for job in jobs), strict=True))
        return [found[i] for i in range(len(sentences))]

    async def call(self, compute: Callable[[], Result]) -> Result:
        """What a computation returns that must not run beside the engine, in the engine's thread."""
        self.check_room()
        self.requests += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, compute)
        finally:
            self.requests -= 1

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            began, batch = loop.time(), self._compose()
            tokens = sum(job.tokens[i] for job, i in batch)
            found = await loop.run_in_executor(self._threads, _translate, batch)
            self._pace = max(FORGOTTEN * self._pace, tokens / max(loop.time() - began, 1e-3))
            self._observe(len(batch), tokens)
            for (job, i), each in zip(batch, found, strict=True):
                _deliver(job, i, each)
            self._waiting = deque(job for job in self._waiting if not job.done.done())  # but for what has failed

    def _compose(self) -> list[tuple[Job, int]]:
        """The next sentences: of all requests that want what the first one wants, one of each in turn."""
        jobs = deque(job for job in self._waiting if job.want == self._waiting[0].want)
        batch: list[tuple[Job, int]] = []
        tokens = 0
        while jobs and (not batch or tokens < self.batch_tokens):
            job = jobs.popleft()
            batch.append((job, job.begun))
            tokens += job.tokens[job.begun]
            job.begun += 1
            if job.begun < len(job.sentences):
                jobs.append(job)
        self._waiting = deque(job for job in self._waiting if job.begun < len(job.sentences))
        first = batch[0][0]
        if self._waiting and self._waiting[0] is first:  # others' turn, if they want something else
            self._waiting.rotate(-1)
        return batch

    def _seconds(self) -> int:
        """After which half of what is here will be done."""
        return max(1, min(60, round(self.tokens / self._pace / 2))) if self._pace else 1


def _job(want: Want, sentences: Sequence[str], tokens: Sequence[int], places: Sequence[int]) -> Job:
    """Of some of the sentences."""
    done = asyncio.get_running_loop().create_future()
    return Job(want, [sentences[i] for i in places], [tokens[i] for i in places], done)


def _translate(batch: Sequence[tuple[Job, int]]) -> list[Translation | Exception]:
    """Each sentence's translation or what kept it from one; what one of them does wrong is not the others' fault."""
    want = batch[0][0].want
    sentences = [job.sentences[i] for job, i in batch]
    try:
        return list(want.translate(sentences))
    except Exception:
        return [_translate_one(want, sentence) for sentence in sentences]


def _translate_one(want: Want, sentence: str) -> Translation | Exception:
    try:
        return want.translate([sentence])[0]
    except Exception as error:
        return error


def _deliver(job: Job, place: int, found: Translation | Exception) -> None:
    if job.done.done():  # cancelled, or failed before
        return
    if isinstance(found, Exception):
        job.begun = len(job.sentences)
        job.done.set_exception(found if isinstance(found, UserError) else RuntimeError(str(found)))
        return
    job.found[place] = found
    if len(job.found) == len(job.sentences):
        job.done.set_result([job.found[i] for i in range(len(job.sentences))])
