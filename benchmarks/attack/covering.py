"""Runs tests in forked processes, and records which lines of the package each test runs: for mutants.py.

A forked process has the large libraries already, so that a run of a quick test takes half a second. The lines of a
subprocess of a test are not recorded; but that the test has one is.
"""

import importlib
import json
import math
import os
import resource
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import Phase, settings

PRELOADED = [
    "torch",
    "torch._dynamo",
    "numpy",
    "safetensors.torch",
    "sentencepiece",
    "sacrebleu",
    "hypothesis",
    "ctranslate2",
    "fastapi",
    "uvicorn",
    "httpx",
    "matplotlib.pyplot",
    "rich.console",
    "cyclopts",
    "filelock",
    "prometheus_client",
]
OPTIONS = (
    "-q",
    "--import-mode=importlib",
    "--no-header",
    "-p",
    "no:cacheprovider",
    "-m",
    "not slow",
    "-o",
    "addopts=",
    "-W",
    "ignore",
    "--tb=line",
)
PROCESSES = {"subprocess.Popen", "os.fork", "os.posix_spawn", "socket.connect"}  # audited events
MAX_MEMORY_BYTES = 16 << 30  # of a test's process, since a fault may ask for everything
WAITING = 5  # times the limit in processor seconds: on a busy machine, or with a fault, tests may wait for longer
TIMEOUT = 124  # exit status, as of the command `timeout`


class Test(NamedTuple):
    """A passing test, its time without the fixtures that it shares with others, and the lines that it runs."""

    name: str
    seconds: float  # of a processor
    fixtures: dict[str, float]  # the seconds of each shared fixture
    lines: dict[str, set[int]]  # by file of the package, also of its fixtures
    has_processes: bool  # whose lines are not recorded

    @property
    def alone(self) -> float:
        """The seconds that the test takes alone."""
        return duration([self])


def duration(tests: Iterable[Test]) -> float:
    """The seconds that tests take together."""
    tests = list(tests)
    fixtures = {name: seconds for test in tests for name, seconds in test.fixtures.items()}
    return sum(test.seconds for test in tests) + sum(fixtures.values())


def preload() -> None:
    """Import what every test needs, except the package itself."""
    for name in PRELOADED:
        with suppress(ImportError):
            importlib.import_module(name)


def run_forked(work: Callable[[], int], output: Path, seconds: float) -> int:
    """Run `work` in a forked process that writes to `output`. Returns its exit status, or TIMEOUT.

    `seconds` limits the time of a processor, and WAITING times as many the whole time.
    """
    child = os.fork()
    if not child:
        status = 70
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
            if seconds < math.inf:
                limit = int(time.process_time() + seconds)
                resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
            with output.open("wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            status = work()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(status)
    end = time.monotonic() + WAITING * seconds
    done = 0
    while not done and time.monotonic() < end:
        time.sleep(0.05)
        done, status = os.waitpid(child, os.WNOHANG)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # also what the tests have left running
    if not done:
        os.waitpid(child, 0)
        return TIMEOUT
    status = os.waitstatus_to_exitcode(status)
    return TIMEOUT if status == -signal.SIGXCPU else status


def run_tests(
    source: Path, tests: Sequence[str], output: Path, seconds: float, plugins: Sequence[object] = ()
) -> int:
    """Run tests of the package in `source`. Returns pytest's exit status, or TIMEOUT."""

    def work() -> int:
        sys.dont_write_bytecode = True
        os.environ.update(PYTHONPATH=str(source), PYTHONDONTWRITEBYTECODE="1", OMP_NUM_THREADS="1")
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(output.with_suffix(".hypothesis"))
        sys.path.insert(0, str(source))
        options = [*OPTIONS, "--basetemp", str(output.with_suffix(".temporary"))]
        return int(pytest.main([*options, *tests], [FirstExample(), *plugins]))

    return run_forked(work, output, seconds)


class FirstExample:
    """A plugin of pytest: hypothesis stops at the first example that fails, and looks for no smaller one."""

    def pytest_collection_finish(self) -> None:
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("first", settings.default, phases=phases, database=None)
        settings.load_profile("first")


class Recorder:
    """A plugin of pytest that records each test's lines, fixtures and seconds, and writes them to a file."""

    def __init__(self, source: Path, place: Path):
        self.source = source
        self.place = place
        self.contexts = ["start"]  # the innermost is last
        self.seconds = defaultdict[str, float](float)  # by test or fixture
        self.fixtures: dict[str, list[str]] = {}  # by test that passed
        self.processes = set[str]()  # tests and fixtures that have some
        sys.addaudithook(
            lambda event, _: self.processes.add(self.contexts[-1]) if event in PROCESSES else None
        )

    def pytest_sessionstart(self) -> None:
        from coverage import Coverage

        self.coverage = Coverage(data_file=None, include=[f"{self.source}/*"])
        self.coverage.start()
        self.coverage.switch_context(self.contexts[-1])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        return (yield from self.record(item.nodeid))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        """A fixture of a module is a context of its own, for all tests that use it."""
        return (
            yield from self.record(
                self.contexts[-1] if fixturedef.scope == "function" else fixturedef.argname
            )
        )

    def record(self, context: str) -> Generator[None, Any, Any]:
        before = self.contexts[-1]
        began = time.process_time()
        self.contexts.append(context)
        self.coverage.switch_context(context)
        try:
            return (yield)
        finally:
            self.contexts.pop()
            self.coverage.switch_context(before)
            self.seconds[context] += time.process_time() - began
            self.seconds[before] -= time.process_time() - began

    def pytest_runtest_makereport(self, item: Any, call: pytest.CallInfo[None]) -> None:
        if call.when == "call" and not call.excinfo:
            self.fixtures[item.nodeid] = item.fixturenames

    def pytest_sessionfinish(self) -> None:
        self.coverage.stop()
        data = self.coverage.get_data()
        lines = defaultdict[str, dict[str, list[int]]](dict)
        for file in data.measured_files():
            for line, contexts in data.contexts_by_lineno(file).items():
                for context in contexts:
                    lines[context].setdefault(os.path.relpath(file, self.source), []).append(line)
        recorded = {"seconds": self.seconds, "fixtures": self.fixtures, "lines": lines}
        recorded["processes"] = [*self.processes]
        self.place.write_text(json.dumps(recorded), encoding="utf-8")


def record(source: Path, file: str, place: Path) -> None:
    """Record the tests of a file in the JSON file `place`, without those after a failing test."""
    run_tests(source, [file], place.with_suffix(".log"), 3600, [Recorder(source, place)])


def read_tests(place: Path) -> tuple[list[Test], dict[str, list[int]]]:
    """The passing tests of a file, and the lines that their collection runs."""
    recorded = json.loads(place.read_text(encoding="utf-8"))
    seconds = recorded["seconds"]
    tests = []
    for name, fixtures in recorded["fixtures"].items():
        shared = [fixture for fixture in fixtures if fixture in seconds]
        lines = defaultdict[str, set[int]](set)
        for context in (name, *shared):
            for file, numbers in recorded["lines"].get(context, {}).items():
                lines[file].update(numbers)
        of_file = {f"{place.name}:{fixture}": seconds[fixture] for fixture in shared}
        has_processes = not {name, *shared}.isdisjoint(recorded["processes"])
        tests.append(Test(name, seconds[name], of_file, dict(lines), has_processes))
    return tests, recorded["lines"].get("start", {})
