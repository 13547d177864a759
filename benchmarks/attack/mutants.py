"""Plants faults in the source, one at a time, and runs the fast tests that run the changed lines.

    pip install -e '.[attack]' -c constraints.txt
    python benchmarks/attack/mutants.py --minutes 60 [--seed 1] [--count 300] [--again] [--processes 2]

First, the script records which lines of the package each fast test runs. Then it plants the faults of faults.toml, and
`--count` random small changes (mutations.py), evenly over the areas, and only on lines that a test runs. It runs the
ten quickest tests that run a changed line. If these pass, it runs up to 90 seconds of the others, those first that run
little else. The outcome is
  failed     a test failed: the fault is noticed
  hung       the tests took too long: the fault is noticed
  survived   all these tests passed: a test is missing, unless faults.toml says why no test can fail
`--folder` (build/mutants) keeps the copy of the source, the recorded lines, and an outcome per fault, so a campaign can
be interrupted and resumed. `--again` runs all tests of the lines of the survivors. The exit status is 1 if faults
survived for which no reason is given, or if tests fail without a fault.
"""

import argparse
import compileall
import json
import multiprocessing
import os
import py_compile
import random
import re
import shutil
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from covering import TIMEOUT, Test, duration, preload, read_tests, record, run_tests
from mutations import mutations

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
AREAS = {
    "model": ("model/",),
    "training": ("training/",),
    "decoding": ("decoding/",),
    "tokens": ("tokens/",),
    "text, preparation": ("text/", "preparation/"),
    "evaluation": ("evaluation/",),
    "serving": ("wings/serving/",),
}
PLANTED = "planted by hand"
# Tests of programs in other processes, whose lines are not recorded: run if all other tests pass.
SUBPROCESS_TESTS = {"transduce/wings/serving/": "tests/wings/serving/test_serving.py"}
BROWSER_TESTS = "test_page"  # the beginning of their names
QUICKEST = 10  # tests of the first run
MORE_SECONDS = 90.0  # of the tests of the second run, unless --again
CONTROL_EVERY = 20  # faults between runs without a fault
# Exit statuses: 2 is an error while collecting, 4 and 5 are ours.
PASSED, FAILED, BROKEN = (
    0,
    (1, 2),
    (4, 5, 70),
)


class Fault(NamedTuple):
    """A change of one place in a file of the package."""

    area: str
    file: str  # relative to src/
    line: int
    last_line: int
    old: str  # the changed lines
    new: str
    content: bytes  # of the whole changed file

    @property
    def name(self) -> str:
        return f"{self.file}: {' '.join(self.old.split())} -> {' '.join(self.new.split())}"


def squeezed(code: str) -> str:
    """Code without blanks and without commas before closing brackets."""
    return re.sub(r",(?=[)\]}])", "", re.sub(r"\s", "", code))


def listed(table: str) -> list[dict[str, str]]:
    """A table of faults.toml."""
    return tomllib.loads((HERE / "faults.toml").read_text(encoding="utf-8"))[table]


def planted(source: Path) -> Iterator[Fault]:
    """The faults of faults.toml. Each `old` must occur once in its file."""
    for each in listed("planted"):
        text = (source / each["file"]).read_text(encoding="utf-8")
        if text.count(each["old"]) != 1:
            sys.exit(
                f"faults.toml: {each['old']!r} occurs {text.count(each['old'])} times in {each['file']}."
            )
        line = text[: text.index(each["old"])].count("\n") + 1
        content = text.replace(each["old"], each["new"]).encode()
        last_line = line + each["old"].rstrip("\n").count("\n")
        yield Fault(PLANTED, each["file"], line, last_line, each["old"], each["new"], content)


def mutants(source: Path, area: str) -> Iterator[Fault]:
    """All mutants of an area."""
    paths = chain.from_iterable(
        (source / "transduce" / folder).glob("*.py") for folder in AREAS[area]
    )
    for path in sorted(paths):
        file = path.relative_to(source).as_posix()
        content = path.read_bytes()
        source_lines = content.decode().splitlines()
        for each in mutations(content):
            changed = each.apply(content)
            old = "\n".join(source_lines[each.line - 1 : each.last_line])
            count = changed.count(b"\n") - content.count(b"\n") + each.last_line
            new = "\n".join(changed.decode().splitlines()[each.line - 1 : count])
            yield Fault(area, file, each.line, each.last_line, old, new, changed)


def drawn(faults: Iterable[Fault], lines: dict[str, set[int]], draw: random.Random) -> list[Fault]:
    """Faults in random order, at most one for each line that a test runs."""
    tested = [
        fault
        for fault in faults
        if not lines[fault.file].isdisjoint(range(fault.line, fault.last_line + 1))
    ]
    draw.shuffle(tested)
    return [*{(fault.file, fault.line): fault for fault in reversed(tested)}.values()]


class Campaign:
    """The tests, the copy of the source, and the outcomes of a campaign."""

    def __init__(self, folder: Path, end: float, again: bool):
        self.folder = folder.resolve()
        self.source = folder.resolve() / "original"
        self.end = end
        self.again = again
        self.results = self.folder / "results.jsonl"
        (folder / "lines").mkdir(parents=True, exist_ok=True)
        if not self.source.exists():
            shutil.copytree(ROOT / "src", self.source, ignore=shutil.ignore_patterns("__pycache__"))
            # A fault may keep the size and the second.
            by_content = py_compile.PycInvalidationMode.CHECKED_HASH
            compileall.compile_dir(self.source, quiet=2, invalidation_mode=by_content)
        self.outcomes = self.read_outcomes()
        self.tests: list[Test] = []

    def read_outcomes(self) -> dict[str, dict[str, Any]]:
        """The last outcome of each fault."""
        written = (
            self.results.read_text(encoding="utf-8").splitlines() if self.results.exists() else []
        )
        return {each["name"]: each for each in map(json.loads, written)}

    def record_lines(self, pool: ProcessPoolExecutor) -> None:
        """Record the lines of test files that have changed since their lines were recorded."""
        files = [
            path
            for path in sorted((ROOT / "tests").rglob("test_*.py"))
            if not path.name.startswith(BROWSER_TESTS)
        ]
        places = [
            self.folder / "lines" / f"{'.'.join(path.relative_to(ROOT).parts)}.json"
            for path in files
        ]
        for path, place in zip(files, places, strict=True):
            if not place.exists() or place.stat().st_mtime < path.stat().st_mtime:
                pool.submit(record, self.source, path.relative_to(ROOT).as_posix(), place)
        pool.shutdown()
        self.tests = [test for place in places if place.exists() for test in read_tests(place)]
        self.tests.sort(key=lambda test: test.alone)

    def lines(self) -> dict[str, set[int]]:
        """The lines of each file that any test runs."""
        lines = defaultdict[str, set[int]](set)
        for test in self.tests:
            for file, numbers in test.lines.items():
                lines[file] |= numbers
        return lines

    def run_all(self, faults: list[Fault], process: int) -> None:
        """Run faults that have no outcome yet, in a copy of the source for this process."""
        place = self.folder / f"process-{process}"
        shutil.rmtree(place, ignore_errors=True)  # it may hold the fault of a killed campaign
        shutil.copytree(self.source, place / "src")
        for number, fault in enumerate(faults):
            if time.monotonic() < self.end:
                self.run(fault, place, number % CONTROL_EVERY == 0)

    def run(self, fault: Fault, place: Path, control: bool) -> None:
        """Run the tests of a fault's lines, and write down the outcome. `control`: first run them without the fault."""
        changed = set(range(fault.line, fault.last_line + 1))
        covering = [
            test for test in self.tests if not changed.isdisjoint(test.lines.get(fault.file, ()))
        ]
        if not covering:
            print(f"No recorded test runs {fault.file}:{fault.line}.", flush=True)
            return
        # The quickest of each.
        functions = {test.name.partition("[")[0]: test for test in reversed(covering)}
        first = sorted(functions.values(), key=lambda test: test.alone)[:QUICKEST]
        more: list[Test] = []
        for test in sorted(
            covering,
            key=lambda test: -len(test.lines[fault.file]) / sum(map(len, test.lines.values())),
        ):
            if test not in first and (self.again or duration([*more, test]) < MORE_SECONDS):
                more.append(test)
        others = [
            name for folder, name in SUBPROCESS_TESTS.items() if fault.file.startswith(folder)
        ]
        path = place / "src" / fault.file
        original = path.read_bytes()
        if control and status(place, [*names(first)], duration(first)) != PASSED:
            sys.exit(f"Without a fault, tests fail: {place / 'output.txt'}")
        began = time.monotonic()
        outcome = "survived"
        ran = 0
        try:
            path.write_bytes(fault.content)
            for tests in filter(None, ([*names(first)], [*names(more)], others)):
                ran += len(tests)
                if (ended := status(place, tests, duration([*first, *more]))) != PASSED:
                    outcome = "hung" if ended == TIMEOUT else "failed"
                    break
        finally:
            path.write_bytes(original)
        result = {
            "name": fault.name,
            "area": fault.area,
            "line": fault.line,
            "outcome": outcome,
            "tests": ran,
        }
        result["of"] = len(covering)
        result["seconds"] = round(time.monotonic() - began, 1)
        with self.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result, ensure_ascii=False) + "\n")
        if outcome == "survived":
            print(
                f"survived {ran} of {len(covering)} tests: {fault.file}:{fault.line}: {fault.name}",
                flush=True,
            )


def status(place: Path, tests: list[str], seconds: float) -> int:
    """Run tests of the source in `place` until one fails. Returns pytest's exit status, or TIMEOUT."""
    ended = run_tests(place / "src", ["-x", *tests], place / "output.txt", 60 + 5 * seconds)
    if ended in BROKEN:
        sys.exit(f"pytest can't run the tests: {place / 'output.txt'}")
    return ended


def names(tests: Iterable[Test]) -> Iterator[str]:
    return (test.name for test in tests)


def report(campaign: Campaign) -> list[str]:
    """Print the table of outcomes. Returns the names of the survivors for which faults.toml gives no reason."""
    excused = {
        squeezed(f"{each['file']}: {each['old']} -> {each['new']}") for each in listed("excused")
    }
    counts = Counter[tuple[str, str]]()
    left = []
    for name, result in campaign.outcomes.items():
        outcome = (
            "excused"
            if result["outcome"] == "survived" and squeezed(name) in excused
            else result["outcome"]
        )
        counts[result["area"], outcome] += 1
        left += [name] if outcome == "survived" else []
    columns = ("failed", "hung", "excused", "survived")
    print(
        f"| area | faults | {' | '.join(columns)} | noticed |\n| --- |{' --- |' * (len(columns) + 2)}"
    )
    for area in [*AREAS, PLANTED, "all"]:
        row = [
            sum(n for (of, name), n in counts.items() if name == each and area in (of, "all"))
            for each in columns
        ]
        if sum(row):
            noticed = f"{100 * (row[0] + row[1]) / max(1, sum(row) - row[2]):.1f} %"
            print(f"| {area} | {sum(row)} | {' | '.join(map(str, row))} | {noticed} |")
    return left


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/mutants"))
    arguments = parser.parse_args()
    if find_spec("coverage") is None:
        sys.exit("The lines of tests can't be recorded: pip install 'transduce[attack]'.")
    os.chdir(ROOT)
    preload()
    pools = (
        ProcessPoolExecutor(arguments.processes, multiprocessing.get_context("fork"))
        for _ in range(2)
    )
    campaign = Campaign(
        arguments.folder, time.monotonic() + 60 * arguments.minutes, arguments.again
    )
    campaign.record_lines(next(pools))
    lines = campaign.lines()
    outcomes = campaign.outcomes
    areas = [[*mutants(campaign.source, area)] for area in AREAS]
    faults = [*planted(campaign.source)]
    if arguments.again:
        faults += chain.from_iterable(areas)
        faults = [
            fault for fault in faults if outcomes.get(fault.name, {}).get("outcome") == "survived"
        ]
    else:
        turns = zip_longest(*(drawn(area, lines, random.Random(arguments.seed)) for area in areas))
        faults += [fault for turn in turns for fault in turn if fault][: arguments.count]
        faults = [fault for fault in faults if fault.name not in outcomes]
    with next(pools) as pool:
        parts = [(faults[i :: arguments.processes], i) for i in range(arguments.processes)]
        for running in [pool.submit(campaign.run_all, *part) for part in parts]:
            running.result()
    campaign.outcomes = campaign.read_outcomes()
    left = report(campaign)
    print(f"seed {arguments.seed}, {len(campaign.outcomes)} faults, {len(left)} survivors")
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
