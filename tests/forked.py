"""Processes that are forked from one that has imported PyTorch and other modules, since the imports take seconds."""

import contextlib
import functools
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

from transduce import cli
from transduce.training import autobatch

MODULES = (
    "languages_loaded",
    "torch._dynamo",
    "transduce.training.run",
    "transduce.wings.serving.api",
    "transduce.wings.serving.network",
)
CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir")
COMMAND = "from transduce import cli; cli.main()"


def measure_quickly() -> None:
    """Let trainings measure the time of one update only: they are too short to need a reliable estimate."""
    autobatch.MAX_TIMED_UPDATES = 1


def load_languages_once() -> None:
    """Let py3langid's model, which takes half a second to load, be loaded once in a process."""
    with contextlib.suppress(ImportError):
        from py3langid.langid import LanguageIdentifier

        LanguageIdentifier.from_model_file = functools.cache(LanguageIdentifier.from_model_file)


def _forks() -> multiprocessing.context.ForkServerContext:
    """A context whose processes are forked from one that has the modules."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *MODULES])
    # Python 3.11 does not give its search path to the server.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()
    return context


class Forked:
    """A process of a Python program. Its methods are those of subprocess.Popen."""

    def __init__(
        self, code: str, *arguments: object, log: Path | None = None, **environment: str
    ) -> None:
        """`log` is the file for what it writes."""
        self._temporary = tempfile.NamedTemporaryFile()  # noqa: SIM115 – removed with this object
        self.log = log or Path(self._temporary.name)
        self.log.write_bytes(b"")
        words, known = [str(argument) for argument in arguments], os.environ | environment
        self._process = _forks().Process(
            target=_run, args=(code, words, self.log, Path.cwd(), known), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    @property
    def said(self) -> str:
        """What it has written."""
        return self.log.read_text("utf-8")

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if (status := self.poll()) is None:
            raise subprocess.TimeoutExpired("the process", timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _run(
    code: str, arguments: list[str], log: Path, folder: Path, environment: dict[str, str]
) -> None:
    multiprocessing.current_process().daemon = False  # it may have processes of its own
    with log.open("ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    measure_quickly()
    sys.argv = ["transduce", *arguments]
    exec(code, {"__name__": "__main__"})


def killed(
    change: int, arguments: list[str], folder: Path = Path(), pattern: str = ".", code: str = ""
) -> int | None:
    """The exit status of a command that is killed before it changes the disk for the so many-th time.

    Changes are counted from when something in the folder is called as the pattern says. `code` comes first.
    """
    process = _forks().Process(target=_die, args=(change, arguments, folder, pattern, code))
    process.start()
    process.join()
    return process.exitcode


def _die(change: int, arguments: list[str], folder: Path, pattern: str, code: str) -> None:
    begun, left = False, change

    def watch(event: str, details: tuple[Any, ...]) -> None:
        nonlocal begun, left
        if event in CHANGES or (event == "open" and details[2] & (os.O_WRONLY | os.O_RDWR)):
            begun = begun or pattern == "." or any(folder.glob(pattern))
            left -= begun
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    measure_quickly()
    exec(code)
    os.environ["no_proxy"] = "*"
    sys.addaudithook(watch)
    cli.main(arguments)
