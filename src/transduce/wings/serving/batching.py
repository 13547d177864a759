"""Translates the sentences of many requests in shared batches.

A thread runs the engines, and only the event loop changes the queue. A batch takes one sentence from each request in
turn, so that short requests need not wait for long requests.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from starlette.exceptions import HTTPException

from transduce.decoding.translator import Translator
from transduce.decoding.types import PLAIN, Guide, Guides, Translation, TranslationOptions
from transduce.system.errors import UserError

Result = TypeVar("Result")
PACE_DECAY = 0.9  # factor on the best pace after every batch


class QueueFullError(HTTPException):
    """HTTP error 503 for a request that the queue can't accept."""

    def __init__(self, seconds: int):
        super().__init__(503, "The server is busy. Try again later.", {"Retry-After": str(seconds)})


class BatchKey(NamedTuple):
    """The translator and the options for a sentence. Sentences with different keys never share a batch."""

    translator: Translator
    options: TranslationOptions = PLAIN


class Part(NamedTuple):
    """Sentences of one request with the same `BatchKey`."""

    key: BatchKey
    sentences: Sequence[str]
    tokens: Sequence[int]  # number of tokens of each sentence
    numbers: Sequence[int]  # number of each sentence's text, for messages
    guides: Guides = None


@dataclass(eq=False)
class Job:
    """A `Part` in the queue, and the finished translations of its sentences."""

    part: Part
    done: asyncio.Future[list[Translation]]
    # Index of a sentence -> its translation.
    translations: dict[int, Translation] = field(default_factory=dict)
    begun: int = 0  # number of sentences that are translated or being translated


@dataclass
class Batcher:
    """A queue of translation requests that limits the numbers of requests and source tokens."""

    room: int  # maximum number of requests
    room_for_tokens: int
    batch_tokens: int
    wait: float  # the maximum estimated wait in seconds
    observe: Callable[[int, int], None]  # receives a batch's sentence and token counts

    def __post_init__(self) -> None:
        self.requests = 0  # number of requests in the queue
        self._last_used = time.monotonic()
        # Sizes in tokens of the requests that wait or are being translated.
        self._sizes: list[int] = []
        self._waiting: deque[Job] = deque()
        self._threads = ThreadPoolExecutor(1, "engine")  # an engine uses all cores by itself
        self._wake = asyncio.Event()
        self._calling = asyncio.Lock()
        self._pace = 0.0  # tokens a second: a decaying maximum, since small batches are slower
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task that translates batches. Needs a running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Stop. Requests in the queue get no response, and the engine's current batch is not awaited."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def idle_seconds(self) -> float:
        """How long nothing has been translated; 0 while requests are in the queue."""
        return 0.0 if self.requests or self._sizes else time.monotonic() - self._last_used

    @property
    def tokens(self) -> int:
        """The number of source tokens in the queue."""
        return sum(self._sizes)

    def check_place(self) -> None:
        """Raise QueueFullError if the queue holds the maximum number of requests."""
        if self.requests >= self.room:
            raise QueueFullError(self._seconds())

    @contextlib.contextmanager
    def place(self) -> Iterator[None]:
        """Reserve a place in the queue during a `with` block. Raises QueueFullError if no place is free."""
        self.check_place()
        self.requests += 1
        try:
            yield
        finally:
            self.requests -= 1

    def check_room(self, tokens: int) -> None:
        """Raise QueueFullError if `tokens` more tokens do not fit into the queue or would wait too long."""
        # Requests take turns, so long requests delay this request less.
        ahead = sum(min(size, tokens) for size in self._sizes)
        late = self._pace and ahead / self._pace > self.wait
        if late or (ahead and ahead + tokens > self.room_for_tokens):
            raise QueueFullError(self._seconds())

    async def translate(self, parts: Sequence[Part]) -> list[list[Translation]]:
        """Translate the parts of a request. Returns one list of translations per part.

        If the call is cancelled, its sentences leave the queue. Raises QueueFullError or the translator's UserError.
        """
        loop = asyncio.get_running_loop()
        jobs = [Job(part, loop.create_future()) for part in parts if part.sentences]
        size = sum(sum(job.part.tokens) for job in jobs)
        self.check_room(size)
        self._sizes.append(size)
        self._waiting.extend(jobs)
        self._wake.set()
        try:
            translations = iter(await asyncio.gather(*(job.done for job in jobs)))
            return [next(translations) if part.sentences else [] for part in parts]
        finally:
            self._sizes.remove(size)
            self._last_used = time.monotonic()
            for job in jobs:
                job.done.cancel()
            self._waiting = _unfinished(self._waiting)

    async def call(self, compute: Callable[[], Result]) -> Result:
        """Run `compute` in the engine's thread and return its result."""
        async with self._calling:
            return await asyncio.get_running_loop().run_in_executor(self._threads, compute)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            began = loop.time()
            batch = self._compose()
            tokens = sum(job.part.tokens[i] for job, i in batch)
            results = await loop.run_in_executor(self._threads, _translate, batch)
            self._pace = max(PACE_DECAY * self._pace, tokens / max(loop.time() - began, 1e-3))
            self.observe(len(batch), tokens)
            for (job, i), result in zip(batch, results, strict=True):
                _deliver(job, i, result)
            self._waiting = _unfinished(self._waiting)  # a failed sentence ends its request
            # These variables would keep a dropped model in memory.
            del (
                batch,
                results,
                job,
                result,
            )

    def _compose(self) -> list[tuple[Job, int]]:
        """Take the next batch from the queue, with one sentence from each request in turn."""
        key = self._waiting[0].part.key
        jobs = deque(job for job in self._waiting if job.part.key == key)
        others = [job for job in self._waiting if job.part.key != key]
        batch: list[tuple[Job, int]] = []
        tokens = 0
        while jobs and tokens < self.batch_tokens:
            job = jobs.popleft()
            batch.append((job, job.begun))
            tokens += job.part.tokens[job.begun]
            job.begun += 1
            if job.begun < len(job.part.sentences):
                jobs.append(job)
        # Requests with other keys come first, then the requests that waited longest.
        self._waiting = deque([*others, *jobs])
        return batch

    def _seconds(self) -> int:
        """Estimate the seconds until half of the queue is translated. The result is between 1 and 60."""
        return max(1, min(60, round(self.tokens / self._pace / 2))) if self._pace else 1


def _translate(batch: Sequence[tuple[Job, int]]) -> list[Translation | Exception]:
    """Translate a batch. Returns a translation or an exception for each sentence."""
    key = batch[0][0].part.key
    sentences = [job.part.sentences[i] for job, i in batch]
    numbers = [job.part.numbers[i] for job, i in batch]
    guides = [job.part.guides[i] if job.part.guides else Guide() for job, i in batch]
    try:
        return list(key.translator.translate_sentences(sentences, key.options, numbers, guides))
    except Exception as error:
        return [error] if len(batch) == 1 else [_translate([sentence])[0] for sentence in batch]


def _unfinished(jobs: Iterable[Job]) -> deque[Job]:
    return deque(job for job in jobs if not job.done.done())


def _deliver(job: Job, i: int, result: Translation | Exception) -> None:
    if job.done.done():  # cancelled, or failed before
        return
    if isinstance(result, Exception):
        wrapped = RuntimeError("in the engine")  # a future doesn't accept every exception
        wrapped.__cause__ = result
        job.done.set_exception(result if isinstance(result, UserError) else wrapped)
        return
    job.translations[i] = result
    if len(job.translations) == len(job.part.sentences):
        job.done.set_result([job.translations[i] for i in range(len(job.part.sentences))])
