"""Kills a process that makes a version of a model and a process that adds corrections, at random moments.

    python benchmarks/attack/learning_kills.py [--kills 200] [--seed 1] [--again 0.1]

Both processes are killed (SIGKILL) at the same moment: half of the time at any moment of the learning, otherwise in its
last fifth, in which the version is compared, added and used. Afterwards,
  lost      a correction whose addition had been confirmed is not in the database: a defect
  broken    the model does not translate, or a version lacks a file or has a damaged one: a defect
  stuck     `learn` does not run to its end after the kill, which is tried with the probability --again: a defect
The last line counts the kills, the confirmed corrections, and how often the new version was in use already.
"""

import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from script import run_script

sys.path.append(str(Path(__file__).parents[2] / "tests"))
# Imported before the processes are forked, so that a trial takes the time of the work alone.
import torch._dynamo  # noqa: F401
from sacrebleu.metrics.chrf import CHRF  # noqa: F401

import transduce
from corpora import WORD_BY_WORD, texts_in_order
from transduce import model_folder
from transduce.system.files import MANIFEST, verify
from transduce.wings.learning.learning import learn
from transduce.wings.learning.versions import Versions
from transduce.wings.memories.database import Database, Unit

LEARNING = {
    "train.steps": 120,
    "train.warmup": 20,
    "train.threads": 1,
    "train.precision": "float32",
    "train.label_smoothing": 0.1,
}
LAST_PART = 0.8  # of the learning's time
DIRECTION = "src-tgt"

Process = multiprocessing.Process


def forked(target: Callable[..., object], *arguments: object) -> Process:
    process = multiprocessing.get_context("fork").Process(target=target, args=arguments)
    process.start()
    return process  # type: ignore[return-value]


def succeeds(target: Callable[..., object], *arguments: object) -> bool:
    """Whether a function ends without an error in a process of its own."""
    process = forked(target, *arguments)
    process.join()
    return process.exitcode == 0


def quiet(target: Callable[..., object], *arguments: object, **named: object) -> None:
    with Path(os.devnull).open("w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 2)
    target(*arguments, **named)


def train(folder: Path) -> None:
    corpus = folder / "train.tsv"
    lines = (f"{source}\t{target}\n" for source, target in texts_in_order(600, 3))
    corpus.write_text("".join(lines), encoding="utf-8")
    transduce.train(folder / "model", train=corpus, options=WORD_BY_WORD)


def fill(memory: Path) -> None:
    pairs = texts_in_order(300, 11)
    units = [Unit(f"{one} so so", f"{other} zu fe", "correction") for one, other in pairs]
    Database(memory).add(units, DIRECTION, "anna")


def run_learning(model: Path, memory: Path) -> None:
    quiet(learn, model, memory, options=LEARNING)


def correct(memory: Path, confirmed: int) -> None:
    """Add corrections, and write the number of each to a file descriptor after it was added."""
    database = Database(memory)
    number = 0
    while True:
        database.add([Unit(f"ka {number}", f"zu {number}", "correction")], DIRECTION, "bert")
        os.write(confirmed, f"{number}\n".encode())
        number += 1
        time.sleep(0.005)


def check_corrections(memory: Path, confirmed: list[str]) -> None:
    kept = {unit.source for *_, unit in Database(memory).units()}
    assert {f"ka {number}" for number in confirmed} <= kept


def check_model(model: Path) -> None:
    versions = Versions(model)
    for number in versions.numbers:
        verify(versions.path(number), hashes=True)
    assert (model / MANIFEST).exists() and model_folder.read_config(model)
    [found] = transduce.load(model, engine="torch").translate(["ka lo mi"])
    assert found.text
    sys.exit(0)


def is_new(model: Path) -> bool:
    return model.is_symlink()


def main(*, kills: int = 200, seed: int = 1, again: float = 0.1) -> None:
    """Kill both processes again and again, and print the defects."""
    draw = random.Random(seed)
    counts = Counter[str]()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")
        assert succeeds(quiet, train, place)
        trial = place / "trial"
        model = trial / "model"
        memory = trial / "memory.sqlite"

        def begin() -> None:
            shutil.rmtree(trial, ignore_errors=True)
            trial.mkdir()
            shutil.copytree(place / "model", model)
            assert succeeds(fill, memory)

        begin()
        began = time.monotonic()
        assert succeeds(run_learning, model, memory) and is_new(model)
        seconds = time.monotonic() - began
        print(f"without a kill: {seconds:.1f} s, and the new version is used", flush=True)
        for number in range(kills):
            begin()
            reading, writing = os.pipe()
            both = [forked(correct, memory, writing), forked(run_learning, model, memory)]
            os.close(writing)
            earliest = draw.choice((0, LAST_PART))
            time.sleep(draw.uniform(earliest, 1.05) * seconds)
            for process in both:
                process.kill()
                process.join()
            with os.fdopen(reading) as pipe:
                confirmed = pipe.read().split()
            counts["confirmed"] += len(confirmed)
            counts["new version"] += is_new(model)
            defects = {
                "lost": not succeeds(check_corrections, memory, confirmed),
                "broken": not succeeds(check_model, model),
            }
            if draw.random() < again and not is_new(model):
                counts["again"] += 1
                defects["stuck"] = not succeeds(run_learning, model, memory)
            for name, is_true in defects.items():
                if is_true:
                    counts[name] += 1
                    print(f"{name}: kill {number}", flush=True)
    found = {name: counts[name] for name in ("lost", "broken", "stuck")}
    print(
        f"seed {seed}, {kills} kills, {counts['confirmed']:,} confirmed corrections, new version in use "
        f"{counts['new version']} times, learnt again {counts['again']} times; {found}"
    )
    sys.exit(bool(sum(found.values())))


if __name__ == "__main__":
    run_script(main, __doc__)
