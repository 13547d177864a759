"""Loads the models of a server, drops the least recently used ones, and replaces models by new versions.

Only the event loop changes the store. A thread loads models. A request opens all of its models at once, and each of
them stays the same version until the request is answered.
"""

import asyncio
import contextlib
import ctypes
import itertools
import math
import os
import platform
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from starlette.exceptions import HTTPException

from transduce.decoding.translator import Translator
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.wings.serving.catalogue import Catalogues, Route
from transduce.wings.serving.models import Model, Served, State, Version, summarize

POLL_SECONDS = 5.0  # time between two looks at the model folders
NICENESS = 5  # gives the loading thread about a third of a normal thread's share of the CPU
# A new version must translate these texts before it is used.
TRIAL_TEXTS = (
    "2026",
    "A1 b2.",
    "12:30",
)


class ModelStore:
    """The models of a server, in memory as far as a memory limit allows."""

    def __init__(
        self, models: Sequence[Model], load: Callable[[Path], Translator], limit: float = math.inf
    ):
        """`load` loads a folder. `limit` is the memory for the weights of all models in bytes.

        Raises UserError if a model alone needs more memory, or if two models of the same name have a common direction.
        """
        self.models = models
        self._load = load
        self._limit = limit
        self.catalogues = Catalogues(models)
        largest = max(models, key=lambda model: model.weight_bytes)
        if largest.weight_bytes > limit:
            raise UserError(
                f"The weights of {largest.folder} need {largest.weight_bytes:,} bytes, "
                f"which is more than the memory limit of {limit:,} bytes.",
                "Raise the limit.",
                "memory_limit",
            )
        # The threads of the engines that it loads have this priority, too.
        self._threads = ThreadPoolExecutor(1, "loading", initializer=_lower_priority)
        self._replaced: set[Version] = set()  # old versions that requests still use
        self._door = asyncio.Lock()  # is fair: a request that waits for memory is not overtaken
        self._freed = asyncio.Event()
        self._clock = itertools.count(1)
        self._incoming = 0  # bytes of a new version that is being loaded beside the old one

    def load_all(self) -> None:
        """Load all models before the server starts."""
        for model in self.models:
            self._use(model, self._threads.submit(self._read, model, model.state).result())

    @contextlib.asynccontextmanager
    async def open(self, routes: Sequence[Route]) -> AsyncIterator[list[tuple[Served, ...]]]:
        """Hold the models of some routes during an `async with` block. Models that are not in memory are loaded.

        Raises UserError if the models don't fit into the memory limit together, or HTTPException if one can't be read.
        """
        models = list(dict.fromkeys(hop.model for route in routes for hop in route))
        with contextlib.ExitStack() as held:
            async with self._door:
                for model in (
                    models if sum(model.weight_bytes for model in models) > self._limit else ()
                ):
                    # Never loaded: its engine may need less than the weights file has.
                    if model.last_used == 0:
                        await self._make_room([model])
                        with self._hold(model):
                            await self._loaded(model)
                await self._make_room(models)
                for model in models:
                    held.enter_context(self._hold(model))
            versions = {
                model: held.enter_context(self._using(await self._loaded(model)))
                for model in models
            }
            yield [
                tuple(Served(versions[hop.model], hop.direction) for hop in route)
                for route in routes
            ]

    @contextlib.contextmanager
    def _hold(self, model: Model) -> Iterator[None]:
        """Keep a model in memory during a `with` block."""
        model.users += 1
        model.last_used = next(self._clock)
        try:
            if model.version is None and model.loading is None:
                model.loading = asyncio.create_task(self._load_again(model))
            yield
        finally:
            model.users -= 1
            self._freed.set()
            # `_shrink` runs after the request has released its versions.
            asyncio.get_running_loop().call_soon(self._shrink)

    @contextlib.contextmanager
    def _using(self, version: Version) -> Iterator[Version]:
        """Count a request that uses a version during a `with` block."""
        version.users += 1
        try:
            yield version
        finally:
            version.users -= 1
            if not version.users:
                self._replaced.discard(version)

    async def _loaded(self, model: Model) -> Version:
        while model.version is None:
            # A new version was refused after the old version had been dropped for it.
            if model.loading is None:
                model.loading = asyncio.create_task(self._load_again(model))
            loading = model.loading
            await asyncio.wait([loading])  # other requests may wait, too
            if not loading.result():
                raise HTTPException(
                    503,
                    f"The model {model.name} can't be loaded. The server has logged the reason.",
                )
        return model.version

    async def _make_room(self, models: Collection[Model], more: int = 0) -> None:
        """Drop idle models until `models` and `more` bytes fit into the memory, and wait for those that are in use.

        The caller holds the door, so no other request opens models meanwhile.
        """
        if not more and all(model.version for model in models):
            return
        needed = more + sum(model.weight_bytes for model in models)
        # A single model was checked at the start.
        if needed > self._limit and (more or len(models) > 1):
            raise UserError(
                f"{needed:,} bytes of weights are needed at once, more than the memory limit of {self._limit:,} bytes."
            )
        while self._weight_bytes(models) + more > self._limit:
            if not self._drop_idle(models):
                if not any(model.users or model.loading for model in self.models):
                    return  # the rest is about to be freed
                self._freed.clear()
                await self._freed.wait()

    def _weight_bytes(self, wanted: Collection[Model] = ()) -> int:
        """The memory of all versions that are in memory, of models that are being loaded, and of the wanted models."""
        counted: list[Model | Version] = [
            each.version or each
            for each in self.models
            if each.version or each.loading or each in wanted
        ]
        return self._incoming + sum(each.weight_bytes for each in (*counted, *self._replaced))

    def _drop_idle(self, wanted: Collection[Model] = ()) -> bool:
        """Drop the least recently used model that no request uses. Returns whether there was such a model."""
        idle = [
            model
            for model in self.models
            if model.version and not model.users and model not in wanted
        ]
        if idle:
            oldest = min(idle, key=lambda model: model.last_used)
            oldest.version = None
            self._threads.submit(_return_memory)
        return bool(idle)

    def _shrink(self) -> None:
        """Drop idle models while the memory limit is exceeded: a model needs more if it opens a second engine."""
        while self._limit < math.inf and self._weight_bytes() > self._limit and self._drop_idle():
            pass

    def _read(self, model: Model, state: State) -> Version:
        """Load a version of a model; a new version must first translate the trial texts.

        Raises UserError if it can't be used.
        """
        version = Version(state, self._load(state.path))
        if state == model.state:
            return version
        if {*version.loaded.directions} != {*model.directions}:
            found, expected = (
                ", ".join(map(str, each)) for each in (version.loaded.directions, model.directions)
            )
            raise UserError(f"It translates {found} instead of {expected}.")
        for direction in model.directions:
            translations = version.loaded.direct(direction).translate(TRIAL_TEXTS)
            if not all(math.isfinite(each.score) for each in translations) or not any(
                each.text for each in translations
            ):
                raise UserError(f"It translates {', '.join(TRIAL_TEXTS)} to nothing ({direction}).")
        if State.of(state.path) != state:
            raise UserError("Its files have changed while they were read.")
        return version

    async def _bring(self, model: Model, state: State) -> str:
        """Load a version of a model in a thread and use it for new requests. Returns the reason if this fails."""
        try:
            version = await asyncio.get_running_loop().run_in_executor(
                self._threads, self._read, model, state
            )
        except Exception as error:
            return str(error) if isinstance(error, UserError) else repr(error)
        finally:
            model.loading = None
            self._freed.set()
        self._use(model, version)
        return ""

    def _use(self, model: Model, version: Version) -> None:
        if model.version and model.version.users:
            self._replaced.add(model.version)
        model.version = version
        model.weight_bytes = version.weight_bytes
        if version.state != model.state:
            model.state = version.state
            model.tried = None
            model.refused = None
            model.scores = version.loaded.scores
            self.catalogues = Catalogues(self.models)

    async def _load_again(self, model: Model) -> bool:
        """Load a model that is not in memory. Returns whether this succeeded; otherwise the reason is logged."""
        state = model.state
        if await asyncio.to_thread(State.of, state.path) != state:  # the files were replaced
            state = await asyncio.to_thread(State.of, model.folder)
        if reason := await self._bring(model, state):
            log(f"{model.folder} can't be loaded: {reason}")
        return not reason

    async def watch(self) -> None:
        """Replace models whose folders, or symbolic links to folders, have changed. Runs until it is cancelled."""
        while True:
            await asyncio.sleep(POLL_SECONDS)
            for model in self.models:
                state = await asyncio.to_thread(State.of, model.folder)
                if state.manifest and state != model.state and not model.loading:
                    await self._replace(model, state)

    async def _replace(self, model: Model, state: State) -> None:
        """Use a new version of a model.

        If the new version can't be used, logs the reason and what happens to the old version.
        """
        try:
            tried = state, await asyncio.to_thread(state.files)
            if tried == model.tried:  # otherwise a copy of the folder may be complete now
                return
            model.tried = tried
            size = (await asyncio.to_thread(summarize, state.path)).weight_bytes
            async with self._door:
                await self._make_room((), size)
                # A request is loading the model; the next look finds the new version again.
                if model.loading:
                    model.tried = None
                    return
                self._incoming = size
                model.loading = renewal = asyncio.create_task(self._renew(model, state))
            await renewal
        except Exception as error:  # the error would end the watching
            self._refuse(
                model, state, str(error) if isinstance(error, UserError | OSError) else repr(error)
            )

    async def _renew(self, model: Model, state: State) -> bool:
        try:
            reason = await self._bring(model, state)
        finally:
            self._incoming = 0
        if reason:
            self._refuse(model, state, reason)
        else:
            log(f"{model.folder} was replaced; requests now use the new version.")
            self._threads.submit(_return_memory)
        return True

    def _refuse(self, model: Model, state: State, reason: str) -> None:
        # The number of bytes is left out, because it grows during a copy.
        refused = (
            state,
            reason.partition(":")[0],
        )
        if refused != model.refused:
            if model.version:
                effect = "so the old version stays"
            elif State.of(model.state.path) == model.state:
                effect = "so requests load the old version again"
            else:
                effect = "and the old version, which was not in memory, is gone"
            log(f"The new version of {model.folder} can't be used, {effect}: {reason}")
        model.refused = refused


def _lower_priority() -> None:
    """On Linux, lower the priority of this thread and of the threads that it will start."""
    # Elsewhere the call affects the whole process.
    if hasattr(os, "setpriority") and platform.system() == "Linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def _return_memory() -> None:
    """Return freed memory to Linux, in spite of `keep_memory`."""
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)
