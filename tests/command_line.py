"""Commands as a user gives them, for the tests."""

import multiprocessing
import os
import signal
import sys
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest

from transduce import cli

CHANGES = ("os.rename", "os.remove", "os.mkdir", "os.rmdir")


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command."""
    capsys.readouterr()
    status = 0
    try:
        cli.main([str(argument) for argument in arguments])
    except SystemExit as error:
        status = int(error.code or 0)
    return status, *capsys.readouterr()


def forks(*modules: str) -> multiprocessing.context.ForkServerContext:
    """Processes that are forked from one that has imported this module and others: that takes seconds each time."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, *modules])
    with pytest.MonkeyPatch.context() as patch:  # Python 3.11 does not give its search path to the server
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        forkserver.ensure_running()
    return context


def die(change: int, arguments: list[str], folder: Path = Path(), pattern: str = ".") -> None:
    """A command, in a process of its own, that is killed before it changes the disk for the so many-th time.

    Changes are counted from when something in the folder is called as the pattern says.
    """
    begun, left = False, change

    def watch(event: str, details: tuple[Any, ...]) -> None:
        nonlocal begun, left
        if event in CHANGES or (event == "open" and details[2] & (os.O_WRONLY | os.O_RDWR)):
            begun = begun or pattern == "." or any(folder.glob(pattern))
            left -= begun
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    os.environ["no_proxy"] = "*"
    sys.addaudithook(watch)
    cli.main(arguments)
