"""Plants faults in the source, one at a time, and runs the tests of the changed module.

    pip install -e '.[attack]' -c constraints.txt
    python benchmarks/attack/mutants.py --minutes 60 [--seed 1] [--count 300] [--areas text tokens] [--again]

The tests of a module are those of its own file (tests/text/test_plain.py for text/plain.py); OWN_TESTS lists the
exceptions, and a module without either has all tests of its area. First, the script records which lines of the
package each of these tests runs. Then it plants the faults of faults.toml, and `--count` random small changes
(mutations.py), evenly over the areas, in any line of a module. It runs the module's tests that run a changed line, the
quickest first, up to 40 seconds of a processor. The outcome is
  failed     a test failed: the fault is noticed
  hung       the tests took too long: the fault is noticed
  survived   all these tests passed: a test is missing, unless faults.toml says why no test can fail
`--folder` (build/mutants) keeps the recorded lines, and an outcome per fault, so a campaign can be interrupted and
resumed. `--again` runs only faults that have survived. At the end, the script prints a report in Markdown. The exit
status is 1 if faults survived for which no reason is given.
"""

import argparse
import gc
import inspect
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from functools import cache, partial
from itertools import chain, takewhile, zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pytest
from _pytest.main import pytest_runtestloop
from covering import TIMEOUT, Test, duration, preload, read_tests, record, run_forked, run_tests
from mutations import mutations

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SOURCE = ROOT / "src"
TESTS = ROOT / "tests"
AREAS = {
    "text": "text",
    "tokens": "tokens",
    "preparation": "preparation",
    "decoding": "decoding",
    "evaluation": "evaluation",
    "augmentation": "augmentation",
    "terms": "wings/terms",
    "rules": "wings/rules",
    "export": "wings/export",
    "synthetic": "wings/synthetic",
    "training": "training",
    "inline": "inline",
    "documents": "wings/documents",
    "serving": "wings/serving",
    "pretrained": "wings/pretrained",
}
# Test files of modules that have none of their own, or need another one, below tests/.
OWN_TESTS = {
    "tokens/vocabulary.py": ("tokens/test_vocabulary.py", "tokens/test_tokenizer.py"),
    "decoding/plan.py": ("decoding/test_plan.py", "decoding/test_translator.py"),
    "decoding/registry.py": ("decoding/test_registry.py", "decoding/test_loading.py"),
    "decoding/searcher.py": ("decoding/test_searcher.py", "decoding/test_translator.py"),
    "decoding/torch_engine.py": ("decoding/test_torch_engine.py", "decoding/test_loading.py"),
    "inline/placeholder_removal.py": (
        "inline/test_placeholder_removal.py",
        "inline/test_placeholders.py",
    ),
    "training/corpus.py": ("training/test_corpus.py", "training/test_runs.py"),
    "training/finish.py": (
        "training/test_finish.py",
        "training/test_runs.py",
        "test_added_languages.py",
    ),
    "training/loop.py": ("training/test_loop.py", "training/test_cooldown.py"),
    "training/rendezvous.py": ("training/test_rendezvous.py", "training/test_distributed.py"),
    "training/resume.py": ("training/test_resume.py", "training/test_cooldown.py"),
    "training/run.py": tuple(f"training/test_{name}.py" for name in ("run", "runs", "resume")),
    "training/schedule.py": ("training/test_schedule.py", "training/test_cooldown.py"),
    "training/start.py": (
        "training/test_start.py",
        "training/test_runs.py",
        "test_added_languages.py",
    ),
    "wings/corpora/fetch/table.py": ("wings/corpora/test_fetch.py",),
    "wings/documents/tmx.py": ("wings/documents/test_memories.py",),
    "wings/export/marian.py": ("wings/export/test_marian.py", "wings/pretrained/test_importing.py"),
    "wings/export/marian_native.py": ("wings/export/test_marian_files.py",),
    "wings/pretrained/conversion.py": (
        "wings/export/test_marian_files.py",
        "wings/pretrained/test_importing.py",
        "wings/pretrained/test_huggingface_reader.py",
    ),
    "wings/pretrained/marian_reader.py": ("wings/export/test_marian_files.py",),
    "wings/serving/access.py": tuple(
        f"wings/serving/test_{name}.py" for name in ("access", "keys", "limits")
    ),
    "wings/serving/service.py": tuple(
        f"wings/serving/test_{name}.py" for name in ("service", "serving", "limits")
    ),
    "wings/serving/api.py": tuple(
        f"wings/serving/test_{name}.py" for name in ("api", "limits", "models", "keys")
    ),
    "wings/serving/protocols.py": ("wings/serving/test_access.py", "wings/serving/test_keys.py"),
    "wings/serving/requests.py": tuple(
        f"wings/serving/test_{name}.py" for name in ("api", "limits", "models", "keys")
    ),
    "wings/serving/batching.py": ("wings/serving/test_request_batching.py",),
    "wings/terms/enforce.py": (
        "wings/terms/test_enforce.py",
        "wings/terms/test_glossary.py",
        "wings/terms/test_constraints.py",
    ),
    "wings/serving/examples.py": ("wings/serving/test_api.py", "wings/serving/test_limits.py"),
    "wings/serving/store.py": ("wings/serving/test_store.py", "wings/serving/test_models.py"),
    "wings/terms/placement.py": ("wings/terms/test_placement.py", "wings/terms/test_glossary.py"),
}
PLANTED = "planted"  # as an area: by hand
BROWSER_TESTS = "test_page"  # the beginning of their names
MAX_SECONDS = 40.0  # of a processor, for the tests of a fault
SHOWN, MAX_SHOWN = (
    30,
    120,
)  # characters of a changed line in the report: around the change, and in all
# Exit statuses of pytest: 2 and 4 are errors while importing, 5 means that there are no tests.
PASSED = 0
BROKEN = (5,)


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
    def replaced(self) -> list[tuple[CodeType, CodeType]]:
        """The functions that the fault changes, old and new; empty: it changes something else."""
        old, new = (
            list(functions_of(compile(content, self.file, "exec")))
            for content in ((SOURCE / self.file).read_bytes(), self.content)
        )
        changed = set(range(self.line, self.last_line + 1))
        if not changed.isdisjoint(lines_of_import(self.file)) or len(old) != len(new):
            return []
        pairs = [pair for pair in zip(old, new, strict=True) if pair[0] != pair[1]]
        return pairs if all(one.co_freevars == two.co_freevars for one, two in pairs) else []

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


def mutants(area: str) -> Iterator[Fault]:
    """All mutants of an area."""
    for path in sorted((SOURCE / "transduce" / AREAS[area]).glob("*.py")):
        file = path.relative_to(SOURCE).as_posix()
        content = path.read_bytes()
        source_lines = content.decode().splitlines()
        for each in mutations(content):
            changed = each.apply(content)
            old = "\n".join(source_lines[each.line - 1 : each.last_line])
            count = changed.count(b"\n") - content.count(b"\n") + each.last_line
            new = "\n".join(changed.decode().splitlines()[each.line - 1 : count])
            yield Fault(area, file, each.line, each.last_line, old, new, changed)


def drawn(faults: Iterable[Fault], draw: random.Random) -> list[Fault]:
    """Faults in random order, at most one for each line."""
    shuffled = [*faults]
    draw.shuffle(shuffled)
    return [*{(fault.file, fault.line): fault for fault in reversed(shuffled)}.values()]


def test_files(file: str) -> list[Path]:
    """The files with the tests of a module."""
    module = Path(file).relative_to("transduce")
    own = TESTS / module.parent / f"test_{module.name}"
    if names := OWN_TESTS.get(module.as_posix()):
        return [TESTS / name for name in names]
    if own.exists():
        return [own]
    in_folder = sorted(own.parent.rglob("test_*.py"))
    return [path for path in in_folder if not path.name.startswith(BROWSER_TESTS)]


def is_function(code: CodeType) -> bool:
    """Whether code is that of a function with a name: a module's comprehension runs when the module is imported."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")


def functions_of(code: CodeType) -> Iterator[CodeType]:
    """The functions of a module and of its classes, without those inside of functions."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from [constant] if is_function(constant) else functions_of(constant)


@cache
def lines_of_import(file: str) -> set[int]:
    """The lines of a module that its import runs: what they define may matter in all tests of the module."""

    def of(code: CodeType) -> Iterator[int]:
        if not is_function(code):
            yield from (line for *_, line in code.co_lines() if line)
            for constant in code.co_consts:
                yield from of(constant) if isinstance(constant, CodeType) else ()

    return {*of(compile((SOURCE / file).read_bytes(), file, "exec"))}


class Campaign:
    """The recorded tests and the outcomes of a campaign."""

    def __init__(self, folder: Path, end: float):
        self.folder = folder.resolve()
        self.end = end
        self.results = self.folder / "results.jsonl"
        (self.folder / "lines").mkdir(parents=True, exist_ok=True)
        self.outcomes = self.read_outcomes()

    def read_outcomes(self) -> dict[str, dict[str, Any]]:
        """The last outcome of each fault."""
        written = (
            self.results.read_text(encoding="utf-8").splitlines() if self.results.exists() else []
        )
        return {each["name"]: each for each in map(json.loads, written)}

    def recorded(self, fault: Fault, path: Path) -> tuple[list[Test], dict[str, list[int]]]:
        """What `read_tests` returns for a file, recorded again if the tests or the module have changed."""
        place = self.folder / "lines" / f"{'.'.join(path.relative_to(ROOT).parts)}.json"
        newest = max(each.stat().st_mtime for each in (path, SOURCE / fault.file))
        if not place.exists() or place.stat().st_mtime < newest:
            record(SOURCE, path.relative_to(ROOT).as_posix(), place)
        return read_tests(place) if place.exists() else ([], {})  # all may be slow

    def run_all(self, faults: list[Fault], process: int) -> None:
        """Run faults in a copy of the source for this process, those with the same files of tests together."""
        source = self.folder / f"process-{process}" / "src"
        shutil.rmtree(
            source.parent, ignore_errors=True
        )  # it may hold the fault of a killed campaign
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
        groups: dict[tuple[Path, ...], list[Fault]] = {}
        for fault in faults:
            groups.setdefault(tuple(test_files(fault.file)), []).append(fault)
        for files, group in groups.items():
            if time.monotonic() > self.end:
                return
            quick = list[tuple[Fault, list[Test]]]()
            slow = list[tuple[Fault, list[Test]]]()
            for fault in group:
                tests, is_quick = self.tests(fault)
                (quick if is_quick else slow).append((fault, tests))
            if quick:
                names = [str(path.relative_to(ROOT)) for path in files]
                output = source.with_name("session.txt")
                if run_tests(source, names, output, math.inf, [Planter(self, source, quick)]):
                    sys.exit(f"pytest can't run the tests: {output}")
            for fault, tests in slow:
                if time.monotonic() < self.end:
                    run = partial(run_tests, source, ["-x", *(test.name for test in tests)])
                    self.run(fault, source, tests, run)

    def tests(self, fault: Fault) -> tuple[list[Test], bool]:
        """The tests of a fault's lines, the quickest first, and whether they need no other import of the module."""
        changed = set(range(fault.line, fault.last_line + 1))
        recorded = list[Test]()
        imported = set[int]()
        for path in test_files(fault.file):
            tests, lines = self.recorded(fault, path)
            recorded += tests
            imported.update(lines.get(fault.file, ()))
        is_quick = bool(fault.replaced) and changed.isdisjoint(imported)
        covering = recorded
        if is_quick:
            covering = [
                test for test in recorded if not changed.isdisjoint(test.lines.get(fault.file, ()))
            ] or [test for test in recorded if test.has_processes]
        # A test that runs no line of the module may read what a cache or a table holds.
        covering.sort(key=lambda test: (fault.file not in test.lines, test.alone))
        chosen: list[Test] = []
        for test in covering:
            if not chosen or duration([*chosen, test]) < MAX_SECONDS:
                chosen.append(test)
        return chosen, is_quick

    def run(
        self, fault: Fault, source: Path, tests: list[Test], run: Callable[[Path, float], int]
    ) -> None:
        """Plant a fault, call `run(its output, its limit in seconds)` for a status of pytest, and write the outcome."""
        path = source / fault.file
        original = path.read_bytes()
        output = source.with_name("output.txt")
        began = time.monotonic()
        try:
            path.write_bytes(fault.content)
            status = run(output, 30 + 5 * duration(tests)) if tests else PASSED
        finally:
            path.write_bytes(original)
            shutil.rmtree(output.with_suffix(".temporary"), ignore_errors=True)
        if status in BROKEN:
            sys.exit(f"pytest can't run the tests of {fault.name}: {output}")
        outcome = {PASSED: "survived", TIMEOUT: "hung"}.get(status, "failed")
        seconds = round(time.monotonic() - began, 1)
        result = {"name": fault.name, "area": fault.area, "outcome": outcome, "seconds": seconds}
        with self.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result, ensure_ascii=False) + "\n")
        if outcome == "survived":
            place = f"{fault.file}:{fault.line}"
            with (self.folder / "survivors.txt").open("a", encoding="utf-8") as file:
                file.write(f"{place}: {len(tests)} tests: {fault.name}\n")


class Planter:
    """A plugin of pytest: after the collection, it runs the tests of each fault in a forked process.

    The forked process exchanges the code of the fault's functions, so that nothing is imported again.
    """

    def __init__(
        self, campaign: Campaign, source: Path, faults: list[tuple[Fault, list[Test]]]
    ) -> None:
        self.campaign = campaign
        self.source = source
        self.faults = faults

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        gc.unfreeze()  # tests/conftest.py freezes what gc.get_objects() shall find
        functions: dict[CodeType, list[FunctionType]] = {}
        for each in gc.get_objects():
            if isinstance(each, FunctionType):
                functions.setdefault(each.__code__, []).append(each)
        items = {item.nodeid: item for item in session.items}
        for fault, tests in self.faults:
            if any(test.name not in items for test in tests):
                sys.exit(f"The tests have changed: {fault.file}")
            if time.monotonic() < self.campaign.end:
                session.items = [items[test.name] for test in tests]
                if fault is self.faults[0][0]:
                    self.check(session)
                work = partial(self.run, session, fault, functions)
                self.campaign.run(fault, self.source, tests, partial(run_forked, work))
        return True

    def check(self, session: pytest.Session) -> None:
        """Exit unless the tests pass without a fault."""
        no_fault = self.faults[0][0]._replace(
            content=(SOURCE / self.faults[0][0].file).read_bytes()
        )
        output = self.source.with_name("output.txt")
        if run_forked(partial(self.run, session, no_fault, {}), output, math.inf) != PASSED:
            sys.exit(f"Tests fail without a fault: {output}")

    def run(
        self,
        session: pytest.Session,
        fault: Fault,
        functions: dict[CodeType, list[FunctionType]],
    ) -> int:
        for old, new in fault.replaced:
            for function in functions.get(old, ()):
                if function.__code__.co_filename.endswith(fault.file):
                    function.__code__ = new
        session.config.option.maxfail = 1
        with suppress(session.Failed):
            pytest_runtestloop(session)
        return int(bool(session.testsfailed))


def equal_characters(one: str, other: str) -> int:
    """The number of equal characters at the beginning of two texts."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def shown(fault: Fault) -> str:
    """The change with some characters around it."""
    old, new = (" ".join(text.split()) for text in (fault.old, fault.new))
    begin = max(0, equal_characters(old, new) - SHOWN)
    end = max(0, equal_characters(old[begin:][::-1], new[begin:][::-1]) - SHOWN)
    one, two = (text[begin : len(text) - end][:MAX_SHOWN] for text in (old, new))
    return f"`` {one} `` → `` {two} ``"


def report(faults: list[Fault], outcomes: dict[str, dict[str, Any]]) -> int:
    """Print the table of outcomes and the survivors. Returns the number of those for which no reason is given."""
    reasons = {
        squeezed(f"{each['file']}: {each['old']} -> {each['new']}"): each["why"]
        for each in listed("excused")
    }
    counts = Counter[tuple[str, str]]()
    survivors = []
    for fault in {fault.name: fault for fault in faults if fault.name in outcomes}.values():
        outcome = outcomes[fault.name]["outcome"]
        if outcome == "survived":
            reason = reasons.get(squeezed(fault.name), "")
            outcome = "excused" if reason else outcome
            survivors.append((reason, f"`{fault.file}:{fault.line}` {shown(fault)}"))
        for area in (fault.area, "all"):
            counts[area, outcome] += 1
    columns = ("failed", "hung", "excused", "survived")
    print(f"| area | faults | {' | '.join(columns)} | noticed |")
    print(f"| --- |{' --- |' * (len(columns) + 2)}")
    for area in [*AREAS, PLANTED, "all"]:
        row = [counts[area, each] for each in columns]
        if sum(row):
            share = 100 * (row[0] + row[1]) / max(1, sum(row) - row[2])
            print(f"| {area} | {sum(row)} | {' | '.join(map(str, row))} | {share:.1f} % |")
    missed = sorted(change for reason, change in survivors if not reason)
    print("\nA test is missing:\n", *missed, sep="\n* ")
    print("\nNo test can fail:\n")
    for reason, change in sorted(survivors, key=lambda each: each[1]):
        print(f"* {change}: {reason}" if reason else "", end="\n" if reason else "")
    return len(missed)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    every = [PLANTED, *AREAS]
    parser.add_argument("--areas", nargs="*", choices=every, default=every)
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("build/mutants"))
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    os.chdir(ROOT)
    preload()
    campaign = Campaign(folder, time.monotonic() + 60 * arguments.minutes)
    areas = [
        drawn(mutants(area), random.Random(arguments.seed))
        for area in arguments.areas
        if area != PLANTED
    ]
    turns = chain.from_iterable(zip_longest(*areas))
    faults = [fault for fault in turns if fault][: arguments.count]
    if PLANTED in arguments.areas:
        faults = [*planted(SOURCE), *faults]
    outcomes = campaign.outcomes
    wanted = [
        fault
        for fault in faults
        if (fault.name not in outcomes)
        or (arguments.again and outcomes[fault.name]["outcome"] == "survived")
    ]
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(arguments.processes, context) as pool:
        parts = [(wanted[i :: arguments.processes], i) for i in range(arguments.processes)]
        for running in [pool.submit(campaign.run_all, *part) for part in parts]:
            running.result()
    missed = report(faults, campaign.read_outcomes())
    print(f"\nSeed {arguments.seed}: {missed} faults for which a test is missing.", file=sys.stderr)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
