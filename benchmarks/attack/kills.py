"""Kills commands before the system calls that change the disk and at random moments, and repeats them.

    python benchmarks/attack/kills.py --minutes 30 [--seed 1] [--kills 1000]

Each command runs once without a kill. `strace` counts its system calls that change the disk. Then the script repeats
the following steps: it starts a command, kills it (SIGKILL) before one of these calls or at a random moment, sometimes
kills the repeated command as well, and runs the command again to its end. The outcome is
  same       the folders hold the same files with the same bytes as without a kill
  differs    a file is missing or has other bytes: a defect
  leftover   a temporary file, a lock or a folder remains: a defect
  error      the repeated command ends with a traceback, or refuses to go on although its result is missing: a defect
Files that hold times or hashes (TIMED in toy.py) are compared by name only, and all other files by their bytes,
without durations.

The table counts the kills. The exit status is 1 if there are defects.
"""

import ctypes
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from script import run_script
from toy import TINY, cache, command, content, write_corpus

sys.path.append(str(Path(__file__).parents[2] / "tests"))
from sites import Site, serving, tar

OUTCOMES = ("same", "differs", "leftover", "error")
CALLS = [  # names that a processor architecture lacks are ignored
    "openat",
    "write",
    "pwrite64",
    "writev",
    "copy_file_range",
    "sendfile",
    "ftruncate",
    "fsync",
    "fdatasync",
    "mkdir",
    "mkdirat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "rmdir",
    "link",
    "symlink",
    "chmod",
    "fchmod",
    "fchmodat",
]
PRELOADED = [
    "torch._dynamo",
    "transduce.training.run",
    "transduce.decoding.loading",
    "transduce.wings.ct2.build",
    "transduce.wings.synthetic.distill",
    "transduce.wings.cluster.command",
    "transduce.wings.corpora.fetch.corpus",
    "transduce.preparation.prepare",
    "transduce.wings.export.exporting",
    "sacrebleu.metrics.chrf",
    "filelock",
]
PR_SET_PTRACER = 0x59616D61  # lets strace attach to a process that is not its child
AGAIN = 0.25  # probability that the repeated command is killed, too
RANDOM_MOMENTS = 0.2  # share of kills at random moments
END = "end"  # instead of a moment: no kill


class Job(NamedTuple):
    """Commands that run one after the other in one process."""

    name: str
    commands: list[list[str]]
    has_engine: bool = True  # whether the cache has the fast engine at the start


def prepare_jobs(place: Path, trial: Path, site: Site) -> list[Job]:
    """Make the inputs in `place`. The jobs write to the folder `trial`."""
    source, target = write_corpus(place)
    lines = source.read_text(encoding="utf-8").splitlines()
    short = place / "short.txt"
    page = place / "page.html"
    short.write_text("".join(f"{line}\n" for line in lines[:40]), encoding="utf-8")
    page.write_text("".join(f"<p>{line}</p>\n" for line in lines[:40]), encoding="utf-8")
    (place / "few").mkdir()
    few = write_corpus(place / "few", 40)
    site.files["/a.tgz"] = tar(
        {"train.ka": source.read_bytes() * 50, "train.zu": target.read_bytes() * 50}
    )
    table = place / "table.toml"
    facts = 'title = "A toy"\nlanguages = ["ka-zu"]\nlicence = "CC0"\n'
    train = f'[[toy.train]]\nurl = "{site.address}/a.tgz"\nmember = "train.{{language}}"\n'
    table.write_text(f"[toy]\n{facts}{train}", encoding="utf-8")
    languages = ("--from", "ka", "--to", "zu")
    corpus = ("--train", source, target, *languages, "data.holdout=40")
    model = place / "model"
    shards = trial / "shards"
    prepared = trial / "prepared-shards"
    command("train", *corpus, "--out", model, *TINY, "train.steps=300", "train.save_every=100")
    with cache(place / "cache"):
        command("translate", model, "--input", short)

    def job(name: str, *commands: tuple[object, ...], has_engine: bool = True) -> Job:
        return Job(name, [[*map(str, each)] for each in commands], has_engine)

    half = ["translate", model, "--input", short, "--output", shards, "--shard"]
    part = ["prepare", *corpus, "--out", prepared, "data.vocab_size=300", "--shard"]
    return [
        job(
            "train",
            (
                "train",
                *corpus,
                "--out",
                trial / "model",
                *TINY,
                "train.steps=50",
                "train.keep_last=2",
            ),
        ),
        job("prepare", ("prepare", *corpus, "--out", trial / "prepared", "data.vocab_size=300")),
        job(
            "distill",
            ("distill", model, "--train", *few, "--out", trial / "distilled", "data.holdout=4"),
        ),
        job(
            "translate: lines",
            ("translate", model, "--input", short, "--output", trial / "out.txt"),
        ),
        job(
            "translate: document",
            ("translate", model, "--input", page, "--output", trial / "out.html"),
        ),
        job(
            "translate: shards",
            (*half, "1/2"),
            (*half, "2/2"),
            ("join", shards, "--output", trial / "out.txt"),
        ),
        job(
            "prepare: shards",
            (*part, "1/2"),
            (*part, "2/2"),
            ("join", prepared),
            (*part, "1/2"),
            (*part, "2/2"),
            ("join", prepared, "--output", trial / "prepared"),
        ),
        job(
            "engine",
            ("translate", model, "--input", short, "--output", trial / "out.txt"),
            has_engine=False,
        ),
        job("export", ("export", model, "--to", "ctranslate2", "--out", trial / "export")),
        job("average", ("average", model, "--last", 2, "--out", trial / "average")),
        job("fetch", ("fetch", "toy", "--out", trial / "toy", "--table", table)),
    ]


def perform(commands: list[list[str]], errors: Path, connection: Connection) -> None:
    """Run the commands in this new process when `connection` says so. The exit status is 1 if any of them fails."""
    with errors.open("wb") as file, Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if hasattr(ctypes.CDLL(None), "prctl"):
        ctypes.CDLL(None).prctl(PR_SET_PTRACER, -1)
    from transduce import cli

    connection.send(None)
    connection.recv()
    failed = False
    for each in commands:
        try:
            cli.main(each)
        except SystemExit as end:
            failed |= bool(end.code)
    sys.exit(failed)


class Attack:
    """Runs the commands of a job in the folder `trial`, whose subfolder `cache` is the user's cache."""

    def __init__(self, place: Path, trial: Path) -> None:
        self.place = place
        self.trial = trial
        self.errors = place / "errors"
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(PRELOADED)

    def clear(self, job: Job) -> None:
        shutil.rmtree(self.trial, ignore_errors=True)
        self.trial.mkdir()
        if job.has_engine:
            shutil.copytree(self.place / "cache", self.trial / "cache")
        else:
            (self.trial / "cache").mkdir()

    def run(self, job: Job, moment: str = END, log: Path | None = None) -> tuple[int, str]:
        """Run a job, and kill it at a moment such as "1.25 s", or "write 3" for before its third write.

        If `log` is given, strace writes the system calls to this file. Returns the exit status and the messages.
        """
        ours, theirs = self.processes.Pipe()
        process = self.processes.Process(target=perform, args=(job.commands, self.errors, theirs))
        process.start()
        ours.recv()
        name, number = moment.split() if moment != END else ("", "")
        tracer = None
        is_timed = number == "s"
        if log:
            tracer = trace(
                process.pid,
                "-y",
                f"--output={log}",
                f"--trace={','.join(f'?{each}' for each in CALLS)}",
            )
        elif number and not is_timed:
            tracer = trace(
                process.pid, f"--trace={name}", f"--inject={name}:signal=KILL:when={number}"
            )
        ours.send(None)
        if is_timed:
            process.join(float(name))
            process.kill()
        process.join()
        if tracer:
            tracer.wait()
        return process.exitcode or 0, self.errors.read_text(encoding="utf-8", errors="replace")

    def moments(self, job: Job) -> tuple[list[str], float, dict[str, str]]:
        """The system calls that change the disk, the seconds that the job takes, and the files that it writes."""
        log = self.place / "strace.log"
        self.clear(job)
        self.run(job, log=log)
        calls = list(changes(log, self.trial))
        self.clear(job)
        began = time.monotonic()
        status, said = self.run(job)
        assert not status, f"{job.name}: {said}"
        return calls, time.monotonic() - began, tree(self.trial)

    def attempt(
        self, job: Job, moments: list[str], expected: dict[str, str]
    ) -> tuple[list[str], str, str]:
        """Kill the job at each of the moments, and run it to its end.

        Returns the moments at which it was killed, the outcome, and its description.
        """
        self.clear(job)
        killed = [moment for moment in moments if self.run(job, moment)[0] == -signal.SIGKILL]
        status, said = self.run(job)
        outcome, what = compare(tree(self.trial), expected)
        if "Traceback" in said or (status and outcome == "differs"):
            outcome = "error"
            what = said.strip().splitlines()[-1]
        return killed, outcome, what


def trace(pid: int | None, *options: str) -> subprocess.Popen[bytes]:
    """Attach strace to a process."""
    tracer = subprocess.Popen(
        ["strace", "-f", "-qq", f"--output={os.devnull}", *options, f"--attach={pid}"]
    )
    while "TracerPid:\t0" in Path(f"/proc/{pid}/status").read_text(encoding="utf-8"):
        if tracer.poll() is not None:
            raise SystemExit(
                "strace can't attach to a process. Allow it (kernel.yama.ptrace_scope), or remove strace."
            )
        time.sleep(0.002)
    return tracer


def changes(log: Path, folder: Path) -> Iterator[str]:
    """The system calls in a log of strace that change something in a folder, such as "write 3" for the third write."""
    calls = Counter[str]()
    main = ""
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        match = re.match(r"(\d+) +(\w+)\(", line)
        main = main or (match[1] if match else "")
        if match and match[1] == main:
            calls[match[2]] += 1
            reads = match[2] == "openat" and not re.search("O_WRONLY|O_RDWR|O_CREAT", line)
            if str(folder) in line and not reads:
                yield f"{match[2]} {calls[match[2]]}"


def tree(folder: Path) -> dict[str, str]:
    """The hash of each file, or "" for folders and files that hold times, by relative path."""
    return {
        path.relative_to(folder).as_posix(): content(path) if path.is_file() else ""
        for path in folder.rglob("*")
    }


def compare(found: dict[str, str], expected: dict[str, str]) -> tuple[str, str]:
    """The outcome, and the first files that are different or too many."""
    if differing := sorted(name for name in expected if found.get(name) != expected[name]):
        return "differs", ", ".join(differing[:4])
    left = sorted(found.keys() - expected.keys())
    return ("leftover", ", ".join(left[:4])) if left else ("same", "")


def print_table(jobs: list[Job], results: list[dict[str, str]]) -> None:
    counts = Counter((each["job"], each["outcome"]) for each in results)
    print(f"| commands | kills | before a system call | {' | '.join(OUTCOMES)} |")
    print(f"| --- |{' --- |' * (len(OUTCOMES) + 2)}")
    for job in jobs:
        row = [counts[job.name, each] for each in OUTCOMES]
        calls = sum(
            each["job"] == job.name and not each["moment"].endswith(" s") for each in results
        )
        print(f"| {job.name} | {sum(row)} | {calls} | {' | '.join(map(str, row))} |")


def main(*, minutes: float = 30, seed: int = 1, kills: int = 1000) -> None:
    """Kill and repeat commands until the minutes or the kills are over, and print the table."""
    if not shutil.which("strace"):
        raise SystemExit("strace is not installed. Install it: apt install strace.")
    results = list[dict[str, str]]()
    draw = random.Random(f"{seed} 0")
    with tempfile.TemporaryDirectory() as temporary, serving(Site()) as site:
        place = Path(temporary)
        trial = Path(temporary) / "trial"
        (place / "tmp").mkdir()
        os.environ |= {
            "XDG_CACHE_HOME": str(trial / "cache"),
            "TMPDIR": str(place / "tmp"),
            "no_proxy": "*",
        }
        attack = Attack(place, trial)
        jobs = prepare_jobs(place, trial, site)
        end = time.monotonic() + 60 * minutes
        known = {}
        for job in jobs:
            calls, seconds, expected = attack.moments(job)
            print(
                f"{job.name}: {len(calls)} system calls change the disk, {seconds:.1f} s",
                flush=True,
            )
            known[job.name] = calls, draw.sample(calls, len(calls)), seconds, expected
        while time.monotonic() < end and len(results) < kills:
            [job] = draw.choices(jobs, [len(known[each.name][1]) + 20 for each in jobs])
            calls, todo, seconds, expected = known[job.name]
            timed = f"{draw.uniform(0, seconds):.3f} s"
            moments = [todo.pop() if todo and draw.random() > RANDOM_MOMENTS else timed]
            if draw.random() < AGAIN:
                moments.append(draw.choice(calls))
            killed, outcome, what = attack.attempt(job, moments, expected)
            if outcome != "same":
                print(
                    f"{outcome}: {job.name}, killed at {' and '.join(killed)}: {what}", flush=True
                )
            results += ({"job": job.name, "moment": each, "outcome": outcome} for each in killed)
    print_table(jobs, results)
    defects = sum(each["outcome"] != "same" for each in results)
    print(f"seed {seed}, {len(results):,} kills, {defects} defects")
    sys.exit(bool(defects))


if __name__ == "__main__":
    run_script(main, __doc__)
