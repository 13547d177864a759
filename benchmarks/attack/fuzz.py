"""Fuzzes every reader of files, requests and options, guided by coverage (atheris), and looks for slow inputs.

    pip install -e '.[attack]' -c constraints.txt
    python benchmarks/attack/fuzz.py --minutes 60 [--jobs 2] [--seed 1] [--targets po html]

`fuzz_targets.py` lists the targets. The minutes are shared among them. Each target runs in a process of its own, and
--jobs of them run at once. The minutes are processor time, so that a busy machine delays a campaign and does not weaken
it. In the last fifth of its time, the process repeats slices of the inputs that it has kept, up to 50 KB. A defect is
  exception  the target raises something else than UserError
  broken     a round trip loses text, or a document changes
  slow       the target needs more than 5 seconds of processor time
  killed     the process ends, for instance because it needs more than 2 GB
All defects are listed with a small input, which is also written to --out. The exit status is 1 if there are any. Inputs
below `inputs/TARGET` are the seeds; tests/test_inputs.py runs them, too. The inputs that reached new lines stay in
--out/kept, and the next campaign with the same --out begins with them. The table counts the inputs and minutes of all
these campaigns.
"""

import contextlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from script import run_script

INPUTS = Path(__file__).parent / "inputs"
MAX_SECONDS = 5.0  # of processor time for one input
MAX_BYTES, MAX_REPEATED_BYTES = 4096, 50_000
MAX_MEMORY = 2048  # MiB
REPEATING_SHARE = 0.2
SHRINKING_SECONDS = 20.0
TOKENS = (  # words of the formats, for mutations
    "<tu>",
    "<tuv xml:lang='de'>",
    "<seg>",
    "</",
    "/>",
    "<![CDATA[",
    "]]>",
    "<!--",
    "-->",
    "&#x",
    ";",
    "<!DOCTYPE",
    "<?xml encoding='",
    "<!ENTITY",
    "<bpt i='1'>",
    "<ept>",
    "<ph id='1'/>",
    "translate='no'",
    "<p>",
    "<b>",
    "</b>",
    "utf-16",
    "utf-7",
    "latin-1",
    "charmap",
    "shift_jis",
    "hz",
    "idna",
    "\ufeff",
    "charset=",
    "msgid",
    "msgstr[1]",
    "#, fuzzy",
    "msgctxt",
    "Plural-Forms: nplurals=2; plural=n!=1;",
    "\\\\x",
    "00:00:01,000 --> 00:00:02,000",
    "\t",
    "\r\n",
    "{0}",
    "%(a)s",
    "%d",
    "http://a.b",
    "`a <b>`_",
    "**",
    "\ufdd0",
    "\u2581",
    "\u2028",
    "\ud800",
    "\\ud800",
    "NaN",
    "1e999",
    "[[",
    "{{",
    "[data]",
    "[[data.corpora]]",
    "0x",
    "inf",
    "\n=====\n",
    "boundary=",
    "Transfer-Encoding: chunked",
    "Content-Length: ",
    "POST /translate HTTP/1.1",
    "application/json",
    "(S (NP ",
    ")",
)


class Defect(NamedTuple):
    """A kind of defect, and an input that causes it."""

    kind: str
    what: str  # the exception and its place
    data: bytes


class TooSlowError(BaseException):
    """Raised after MAX_SECONDS of processor time."""


def warmed(target: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """The target, after a first call: some targets train a model then, which takes seconds."""
    with contextlib.suppress(Exception):
        target(b"")
    return target


def attempt(target: Callable[[bytes], None], data: bytes) -> Defect | None:
    """Run a target once."""
    from fuzz_targets import BrokenError

    from transduce.system.errors import UserError

    signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
    try:
        target(data)
    except UserError:
        return None
    except TooSlowError as error:
        return Defect("slow", _place(error), data)
    except BrokenError as error:
        return Defect("broken", str(error).partition(":")[0].partition("'")[0], data)
    except Exception as error:
        return Defect("exception", f"{type(error).__name__} in {_place(error)}", data)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def _stop(*_: object) -> None:
    raise TooSlowError


def _place(error: BaseException) -> str:
    """The innermost line of transduce in the traceback."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "/transduce/" in frame.filename
    ]
    last = (frames or traceback.extract_tb(error.__traceback__))[-1]
    return f"{last.filename.rpartition('/transduce/')[2]}:{last.lineno} {last.name}"


class Attack:
    """One target in this process."""

    def __init__(self, name: str, seconds: float, seed: int, kept: Path, result: Path) -> None:
        import atheris

        with atheris.instrument_imports(include=["transduce"]):
            from fuzz_targets import TARGETS
        self._target = warmed(TARGETS[name])
        self._result = result
        self._kept = kept
        self._seed = seed
        self._runs = 0
        self._defects = dict[tuple[str, str], Defect]()
        self._begun = time.process_time()
        self._end = self._begun + seconds
        self._repeat_from = self._end - REPEATING_SHARE * seconds

    def one(self, data: bytes) -> None:
        self._runs += 1
        if (found := attempt(self._target, data)) is not None:
            known = self._defects.setdefault(found[:2], found)
            if len(data) < len(known.data):
                self._defects[found[:2]] = found
            self._save()
        elif self._runs % 1000 == 0:
            self._save()
        if time.process_time() > self._repeat_from:
            self._repeat()

    def _save(self) -> None:
        seconds = time.process_time() - self._begun
        defects = [(kind, what, data.hex()) for kind, what, data in self._defects.values()]
        self._result.write_text(
            json.dumps({"runs": self._runs, "seconds": seconds, "defects": defects})
        )

    def _repeat(self) -> None:
        """Repeat slices of the kept inputs until the time is over, and end the process."""
        self._repeat_from = float("inf")
        draw = random.Random(self._seed)
        kept = [path.read_bytes() for path in sorted(self._kept.iterdir())]
        while time.process_time() < self._end:
            data = draw.choice(kept) or b"x"
            begin = draw.randrange(len(data))
            end = begin + draw.choice((1, 2, 4, 8, 64, len(data)))
            times = MAX_REPEATED_BYTES // (2 * len(data[begin:end]))
            # Of a second slice, such as the closing tag of the first.
            first = draw.randrange(end, end + 8)
            last = first + draw.choice((1, 2, 4, 8, 64))
            data = (
                data[:begin]
                + data[begin:end] * times
                + data[end:first]
                + data[first:last] * times
                + data[last:]
            )
            self.one(data[:MAX_REPEATED_BYTES])
        self._save()
        os._exit(0)  # libFuzzer ends no earlier


def fuzz(name: str, seconds: float, seed: int, folder: Path, kept: Path) -> None:
    """Attack one target in this process, which then ends."""
    import atheris

    signal.signal(signal.SIGPROF, _stop)
    result = folder / "result.json"
    kept.mkdir(parents=True, exist_ok=True)
    for path in sorted((INPUTS / name).iterdir()):
        (kept / path.name).write_bytes(path.read_bytes())
    words = (word.encode("utf-8", "surrogatepass").hex("x") for word in TOKENS)
    (folder / "dict").write_text(
        "".join('"\\x{}"\n'.format(word.replace("x", "\\x")) for word in words)
    )
    attack = Attack(name, seconds, seed, kept, result)
    timeout = round(120 + 10 * REPEATING_SHARE * seconds)  # the repeated slices count as one input
    # libFuzzer measures the time of the clock: an interrupted campaign would seem to have slow inputs.
    limits = (
        f"-max_len={MAX_BYTES}",
        f"-rss_limit_mb={MAX_MEMORY}",
        f"-timeout={timeout}",
        "-report_slow_units=999999",
    )
    options = (
        f"-seed={seed}",
        f"-dict={folder / 'dict'}",
        f"-artifact_prefix={folder}/killed-",
        *limits,
    )
    atheris.Setup([sys.argv[0], *options, str(kept)], attack.one)
    atheris.Fuzz()


def smaller(data: bytes) -> Iterator[bytes]:
    """Inputs without a slice."""
    size = len(data)
    while size := size // 2:
        for begin in range(0, len(data), size):
            yield data[:begin] + data[begin + size :]


def shrink(target: Callable[[bytes], None], defect: Defect) -> Defect:
    """Remove what the defect does not need."""
    end = time.monotonic() + SHRINKING_SECONDS
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for data in smaller(defect.data):
            if time.monotonic() > end:
                return defect
            found = attempt(target, data)
            if found and found[:2] == defect[:2]:
                defect = found
                is_smaller = True
                break
    return defect


def campaign(
    name: str, seconds: float, seed: int, out: Path
) -> tuple[dict[str, Any], list[Defect]]:
    """Attack one target in another process. Returns its counts, and its defects with small inputs."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        arguments = [
            "--child",
            temporary,
            "--targets",
            name,
            "--minutes",
            str(seconds / 60),
            "--seed",
            str(seed),
        ]
        arguments += ["--out", str(out)]
        environment = {
            **os.environ,
            "TMPDIR": temporary,
            "XDG_CACHE_HOME": temporary,
            "OMP_NUM_THREADS": "1",
        }
        with (out / f"{name}.log").open("wb") as log:
            command = [sys.executable, __file__, *arguments]
            end = subprocess.run(command, stdout=log, stderr=log, env=environment, check=False)
        path = folder / "result.json"
        result: dict[str, Any] = (
            json.loads(path.read_text())
            if path.exists()
            else {"runs": 0, "seconds": 0.0, "defects": []}
        )
        defects = [
            Defect(kind, what, bytes.fromhex(data)) for kind, what, data in result["defects"]
        ]
        defects += [
            Defect("killed", f"status {end.returncode}", path.read_bytes())
            for path in folder.glob("killed-*")
        ]
        if end.returncode and not any(defect.kind == "killed" for defect in defects):
            defects.append(Defect("killed", f"status {end.returncode}", b""))
    return result, defects


def main(
    *,
    minutes: float = 10,
    jobs: int = 1,
    seed: int = 1,
    targets: list[str] | None = None,
    out: Path = Path("build/fuzz-defects"),
    child: Path | None = None,
) -> None:
    """Attack the targets, print the table, and list the defects; `child` is for processes of one target."""
    if child and targets:
        fuzz(targets[0], 60 * minutes, seed, child, out / "kept" / targets[0])
    from fuzz_targets import TARGETS

    signal.signal(signal.SIGPROF, _stop)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out.mkdir(parents=True, exist_ok=True)
    names = targets or [*TARGETS]
    seconds = 60 * minutes * jobs / len(names)
    total = out / "totals.json"
    totals: dict[str, list[float]] = json.loads(total.read_text()) if total.exists() else {}
    print(
        "| target | inputs | a second | minutes | defects |\n| --- | --- | --- | --- | --- |",
        flush=True,
    )
    lines = list[str]()
    attack = partial(campaign, seconds=seconds, seed=seed, out=out)
    with ThreadPoolExecutor(jobs) as pool:
        for name, (result, defects) in zip(names, pool.map(attack, names), strict=True):
            # Measuring coverage takes time, so this process runs what was slow once more.
            target = warmed(TARGETS[name]) if defects else TARGETS[name]
            defects = [
                each for each in defects if each.kind != "slow" or attempt(target, each.data)
            ]
            before = totals.get(name, (0, 0.0, 0))
            added = result["runs"], result["seconds"], len(defects)
            totals[name] = [one + other for one, other in zip(before, added, strict=True)]
            total.write_text(json.dumps(totals))
            runs, spent, found = totals[name]
            print(
                f"| {name} | {runs:,} | {runs / max(1, spent):,.0f} | {spent / 60:.1f} | {found} |",
                flush=True,
            )
            for defect in defects:
                defect = defect if defect.kind == "killed" else shrink(target, defect)
                path = out / f"{name}-{len(lines) + 1}"
                path.write_bytes(defect.data)
                size = len(defect.data)
                begin = defect.data[:60]
                lines.append(
                    f"{defect.kind}: {name}: {defect.what}: {path}: {size} bytes {begin!r}"
                )
                print(lines[-1], file=sys.stderr, flush=True)
    print("\n".join(lines))
    print(
        f"seed {seed}, {sum(runs for runs, *_ in totals.values()):,} inputs in all, {len(lines)} new defects"
    )
    sys.exit(bool(lines))


if __name__ == "__main__":
    run_script(main, __doc__)
