"""Learns corrections while nobody uses the server (`serve --learn`).

Another process makes the version, as `transduce learn` does, so that its memory and its crash are not the server's. It
has the lowest priority. The server changes to the new version as to any other.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.wings.learning.command import learning_command
from transduce.wings.learning.corrections import MIN_NEW, new_corrections
from transduce.wings.memories.database import Database

LOOK_SECONDS = 60.0
IDLE_SECONDS = 300.0  # without a request, before a version is made
LOWEST_PRIORITY = 19


class IdleLearner:
    """Makes a new version of a model whenever MIN_NEW more corrections have come, and nobody uses the server."""

    def __init__(
        self, models: Sequence[Path], database: Database, idle_seconds: Callable[[], float]
    ) -> None:
        """`idle_seconds` tells how long no request has been there."""
        self._models = models
        self._database = database
        self._idle_seconds = idle_seconds
        # The number of corrections at the last attempt: a refused version is tried again with more.
        self._tried = dict.fromkeys(models, 0)

    async def run(self) -> None:
        """Look for new corrections again and again. Runs until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for model in self._models:
                try:
                    await self._look(model)
                except (UserError, OSError) as error:  # the error would end the learning
                    log(f"Can't learn corrections for {model}: {error}")

    async def _look(self, model: Path) -> None:
        if self._idle_seconds() < IDLE_SECONDS:
            return
        waiting = await asyncio.to_thread(new_corrections, model, self._database)
        if waiting >= self._tried[model] + MIN_NEW:
            self._tried[model] = waiting
            if await self._learn(model):
                self._tried[model] = 0

    async def _learn(self, model: Path) -> bool:
        """Run `transduce learn`, and return whether it made a version."""
        command = learning_command(model, self._database.path)
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "transduce", *command)
        try:
            if hasattr(os, "setpriority"):
                with contextlib.suppress(OSError):  # it may be gone already
                    os.setpriority(os.PRIO_PROCESS, process.pid, LOWEST_PRIORITY)
            return await process.wait() == 0
        except asyncio.CancelledError:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            raise
