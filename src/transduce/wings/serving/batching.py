"""Sentences of many requests, translated together.

All state belongs to the event loop; only the engine runs in threads. What arrives while a batch is being translated
makes up the next one, so nothing waits while an engine is idle. A batch takes a sentence of every request in turn: a
long document does not hold up those who want a word.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from transduce.decoding.glossary import Term
from transduce.decoding.translator import Translation, Translator
from transduce.system.errors import UserError

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


class Part(NamedTuple):
    """Sentences of a request that are translated in the same way."""

    want: Want
    sentences: Sequence[str]
    tokens: Sequence[int]  # of each


@dataclass(eq=False)
class Job:
    """A part that waits or is being translated."""

    want: Want
    sentences: Sequence[str]
    tokens: Sequence[int]
    done: asyncio.Future[list[Translation]]
    found: dict[int, Translation] = field(default_factory=dict)
    begun: int = 0  # sentences that are translated or being translated


class Batcher:
    """A queue in front of engines, with room for so many requests and source tokens."""

    def __init__(self, requests: int, tokens: int, batch_tokens: int, wait: float, observe: Callable[[int, int], None]):
        """wait: seconds. observe: is told of every batch the sentences and the source tokens."""
        self.room, self.room_for_tokens, self.batch_tokens, self.wait = requests, tokens, batch_tokens, wait
        self.requests = 0  # that have a place
        self._sizes: list[int] = []  # of those that wait or are being translated, in tokens
        self._observe = observe
        self._waiting: deque[Job] = deque()
        self._threads = ThreadPoolExecutor(1, "engine")  # which uses all cores by itself
        self._wake = asyncio.Event()
        self._calling = asyncio.Lock()
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

    @property
    def tokens(self) -> int:
        """Waiting or being translated."""
        return sum(self._sizes)

    def check_place(self) -> None:
        """Raise QueueFullError if there is none."""
        if self.requests >= self.room:
            raise QueueFullError(self._seconds())

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Of a request, from before it is taken apart until it is answered; raises QueueFullError if there is none."""
        self.check_place()
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    def check_room(self, tokens: int) -> None:
        """Raise QueueFullError if there is no room for so many tokens, or they would have to wait for too long.

        As all take turns, they wait for as many tokens of each other request, and not for the rest.
        """
        ahead = sum(min(size, tokens) for size in self._sizes)
        late = self._pace and ahead / self._pace > self.wait
        if late or (ahead and ahead + tokens > self.room_for_tokens):
            raise QueueFullError(self._seconds())

    async def translate(self, parts: Sequence[Part]) -> list[list[Translation]]:
        """A translation of each sentence of each part of one request, in order.

        Cancelling it frees the place of what has not begun. Raises QueueFullError if there is no room,
        and UserError for what the translator refuses.
        """
        loop = asyncio.get_running_loop()
        jobs = [Job(*part, loop.create_future()) for part in parts if part.sentences]
        if not jobs:
            return [[] for _ in parts]
        size = sum(sum(job.tokens) for job in jobs)
        self.check_room(size)
        self._sizes.append(size)
        self._waiting.extend(jobs)
        self._wake.set()
        try:
            found = iter(await asyncio.gather(*(job.done for job in jobs)))
            return [next(found) if part.sentences else [] for part in parts]
        finally:
            self._sizes.remove(size)
            for job in jobs:
                job.done.cancel()
            self._waiting = _wanted(self._waiting)

    async def call(self, compute: Callable[[], Result]) -> Result:
        """What a computation returns that must not run beside the engine, in the engine's thread.

        Between two of them a batch has its turn.
        """
        async with self._calling:
            return await asyncio.get_running_loop().run_in_executor(self._threads, compute)

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
            self._waiting = _wanted(self._waiting)  # as something may have failed

    def _compose(self) -> list[tuple[Job, int]]:
        """The next sentences: of all requests that want what the first one wants, one of each in turn."""
        want = self._waiting[0].want
        jobs = deque(job for job in self._waiting if job.want == want)
        others = [job for job in self._waiting if job.want != want]
        batch: list[tuple[Job, int]] = []
        tokens = 0
        while jobs and (not batch or tokens < self.batch_tokens):
            job = jobs.popleft()
            batch.append((job, job.begun))
            tokens += job.tokens[job.begun]
            job.begun += 1
            if job.begun < len(job.sentences):
                jobs.append(job)
        self._waiting = deque([*others, *jobs])  # next come others, and of these who had no turn, or had it first
        return batch

    def _seconds(self) -> int:
        """After which half of what is here will be done."""
        return max(1, min(60, round(self.tokens / self._pace / 2))) if self._pace else 1


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


def _wanted(jobs: Iterable[Job]) -> deque[Job]:
    return deque(job for job in jobs if not job.done.done())


def _deliver(job: Job, place: int, found: Translation | Exception) -> None:
    if job.done.done():  # cancelled, or failed before
        return
    if isinstance(found, Exception):
        broken = RuntimeError("in the engine")  # as not every exception may be given to a future
        broken.__cause__ = found
        job.done.set_exception(found if isinstance(found, UserError) else broken)
        return
    job.found[place] = found
    if len(job.found) == len(job.sentences):
        job.done.set_result([job.found[i] for i in range(len(job.sentences))])
