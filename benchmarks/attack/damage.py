"""Damages the files of every kind of folder, one at a time, and tries to go on with the folder.

    python benchmarks/attack/damage.py --minutes 10 [--seed 1]

A small model of a toy language is trained, exported, and split into shards. Then the script repeats the following steps
with random choices: copy a folder, damage one of its files, and run a command on the folder. The outcome is
  named      the command ends with one sentence, or warns of damage to the folder
  harmless   the command succeeds, and its result is the same as without damage
  silent     the command succeeds with another result: a defect
  traceback  the command ends in another way: a defect
The table counts the outcomes. All defects are listed. The exit status is 1 if there are any.
"""

import contextlib
import io
import os
import random
import shutil
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from script import run_script
from toy import TINY, WORDS, cache, command, content, report, write_corpus

NAMES = ("damaged", "missing", " used")  # a new line with one of these words names the damage
OUTCOMES = ("named", "harmless", "silent", "traceback")


class Case(NamedTuple):
    """A kind of folder, and a command that reads it."""

    name: str
    folder: Path
    # Damaged copy of the folder -> what must not change; raises SystemExit.
    run: Callable[[Path], str]


class Undamaged(NamedTuple):
    """What a command does with an undamaged folder."""

    result: str
    warnings: set[str]


def prepare_cases(place: Path) -> list[Case]:
    """Make one folder of each kind."""
    source, target = write_corpus(place)
    short = place / "short.txt"
    short.write_text(
        "".join(source.read_text(encoding="utf-8").splitlines(keepends=True)[:8]), encoding="utf-8"
    )
    corpus = ("--train", source, target, "--from", "ka", "--to", "zu", "data.holdout=120")
    command("train", *corpus, "--out", place / "finished", *TINY, "train.steps=60")
    command("prepare", *corpus, "--out", place / "prepared", "data.vocab_size=300")
    command("export", place / "finished", "--to", "onnx", "--out", place / "onnx")
    shards = place / "shards"
    for shard in (1, 2):
        command(
            "translate",
            place / "finished",
            "--input",
            short,
            "--output",
            shards,
            "--shard",
            f"{shard}/2",
        )
    unfinished = place / "unfinished"
    shutil.copytree(place / "finished", unfinished)
    for name in ("manifest.json", "model.safetensors", "metrics.json"):
        (unfinished / name).unlink()
    prepared_shards = place / "prepared-shards"
    for shard in (1, 2):
        command(
            "prepare",
            *corpus,
            "--out",
            prepared_shards,
            "data.vocab_size=300",
            "--shard",
            f"{shard}/2",
        )

    begun = place / "begun"  # as if the command had been killed after the back-translation
    swapped = ("--train", target, source, "--from", "zu", "--to", "ka", "data.holdout=120")
    more = place / "more.txt"
    draw = random.Random(1)
    more.write_text(
        "".join(f"{' '.join(draw.choices([*WORDS], k=7))}\n" for _ in range(40)), encoding="utf-8"
    )
    command(
        "train", *corpus, "--out", place / "reverse", *TINY, "train.steps=600", "model.dropout=0"
    )
    again = (
        *swapped,
        "--monolingual",
        more,
        "--reverse",
        place / "reverse",
        *TINY,
        "train.steps=3",
    )
    command("train", *again, "--out", begun)
    for path in begun.iterdir():
        if path.name != "back-translation":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    table = place / "table.toml"
    compared = place / "compared"
    rows = 'one = "model.dropout=0.1"\ntwo = "model.dropout=0.2"\n'
    table.write_text(f"seeds = 1\noptions.train.steps = 3\n[rows]\n{rows}", encoding="utf-8")
    comparison = (
        "compare",
        table,
        *corpus[:7],
        "--valid",
        source,
        target,
        "--test",
        source,
        target,
        *TINY,
        "--out",
    )
    command(*comparison, compared, "--budget", "30")

    def back_translated(folder: Path) -> str:
        command("train", *again, "--out", folder)
        return content(folder / "model.safetensors")

    def translated(folder: Path, *options: str) -> str:
        return command("translate", folder, "--input", short, "decode.beam_size=2", *options)

    def merged(folder: Path) -> str:
        out = folder.parent / "merged"
        command("join", folder, "--output", out)
        for shard in (1, 2):
            command(
                "prepare", *corpus, "--out", folder, "data.vocab_size=300", "--shard", f"{shard}/2"
            )
        command("join", folder, "--output", out)
        return content(out)

    def engine(folder: Path) -> str:
        with cache(folder):
            return translated(place / "finished")

    def resumed(folder: Path) -> str:
        command("train", *corpus, "--out", folder, *TINY, "train.steps=64")
        return content(folder / "model.safetensors")

    def went_on(folder: Path) -> str:
        command("train", "--out", folder, "train.steps=64")
        return content(folder / "model.safetensors")

    def encoded(folder: Path) -> str:
        out = folder.parent / "out"
        command("prepare", *corpus, "--vocabulary", folder, "--out", out)
        return content(out)

    def trained(folder: Path) -> str:
        out = folder.parent / "out"
        command("train", "--train", folder, "--out", out, *TINY, "train.steps=3")
        return content(out / "model.safetensors")

    with cache(place / "cache"):
        translated(place / "finished")
    return [
        Case("model: translate", place / "finished", translated),
        Case(
            "model: torch", place / "finished", lambda path: translated(path, "--engine", "torch")
        ),
        Case(
            "model: info",
            place / "finished",
            lambda path: command("info", path).replace(str(path), ""),
        ),
        Case("model: average", place / "finished", lambda path: averaged(path)),
        Case("training: resume", place / "finished", resumed),
        Case("model: prepare with its vocabulary", place / "finished", encoded),
        Case("unfinished: translate", unfinished, translated),
        Case("unfinished: resume", unfinished, went_on),
        Case("back-translation: train", begun, back_translated),
        Case("table: compare", compared, lambda path: command(*comparison, path, "--budget", "30")),
        Case("corpus: train", place / "prepared", trained),
        Case("engine: translate", place / "cache", engine),
        Case("onnx: translate", place / "onnx", translated),
        Case("shards: join", shards, joined),
        Case("shards of a corpus: join twice", prepared_shards, merged),
    ]


def averaged(path: Path) -> str:
    out = path.parent / "average"
    command("average", path, "--last", 2, "--out", out)
    return content(out / "model.safetensors")


def joined(path: Path) -> str:
    out = path.parent / "joined.txt"
    command("join", path, "--output", out)
    return out.read_text(encoding="utf-8")


def flip(data: bytes, draw: random.Random) -> bytes:
    i = draw.randrange(len(data))
    return data[:i] + bytes([data[i] ^ 1 << draw.randrange(8)]) + data[i + 1 :]


def zero(data: bytes, draw: random.Random) -> bytes:
    i = draw.randrange(len(data))
    return data[:i] + bytes(len(data[i : i + 512])) + data[i + 512 :]


def truncate(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data))]


def extend(data: bytes, draw: random.Random) -> bytes:
    return data + draw.randbytes(draw.randint(1, 64))


def damage(folder: Path, draw: random.Random) -> tuple[str, str]:
    """Damage a random file. Returns the kind of damage and the file's name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size)
    path = draw.choice(files)
    kind = draw.choice(["flip", "zero", "truncate", "extend", "delete", "exchange"])
    if kind == "delete":
        path.unlink()
    elif kind == "exchange":
        other = draw.choice(files)
        one = path.read_bytes()
        two = other.read_bytes()
        path.write_bytes(two)
        other.write_bytes(one)
    else:
        path.write_bytes(globals()[kind](path.read_bytes(), draw))
    return kind, path.relative_to(folder).as_posix()


def undamaged(case: Case) -> Undamaged:
    """Run the command on a copy of the folder."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "copy"
        said = io.StringIO()
        shutil.copytree(case.folder, folder)
        with contextlib.redirect_stderr(said):
            return Undamaged(case.run(folder), warnings(said.getvalue(), folder))


def warnings(said: str, folder: Path) -> set[str]:
    """The lines that name the folder or a file in it, without the path of the folder."""
    return {line.replace(str(folder), "") for line in said.splitlines() if str(folder) in line}


def outcome(case: Case, expected: Undamaged, draw: random.Random) -> tuple[str, str]:
    """Damage a copy of the folder and run the command. Returns the outcome and its description."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "copy"
        shutil.copytree(case.folder, folder)
        kind, name = damage(folder, draw)
        what = f"{case.name}, {kind} {name}"
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                result = case.run(folder)
        except SystemExit as end:
            last = said.getvalue().strip().replace("\nhint: ", " ").splitlines()[-1:]
            if not end.code:
                return "traceback", f"{what}: exit status 0"
            named = (
                last and last[0].startswith("transduce: ") and "Traceback" not in said.getvalue()
            )
            return ("named", what) if named else ("traceback", f"{what}: {last}")
        except Exception:
            return "traceback", f"{what}: {traceback.format_exc().strip().splitlines()[-1]}"
        if result == expected.result:
            return "harmless", what
        new = warnings(said.getvalue(), folder) - expected.warnings
        is_named = "not finished" in result or any(word in line for word in NAMES for line in new)
        return ("named" if is_named else "silent"), what


def main(*, minutes: float = 10, seed: int = 1) -> None:
    """Damage folders until the minutes are over, and print the table."""
    draw = random.Random(seed)
    counts = Counter[tuple[str, str]]()
    defects = []
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["XDG_CACHE_HOME"] = str(Path(temporary) / "own-cache")
        cases = prepare_cases(Path(temporary))
        expected = {case.name: undamaged(case) for case in cases}
        print(f"{len(cases)} kinds of folders", flush=True)
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            case = draw.choice(cases)
            found, what = outcome(case, expected[case.name], draw)
            counts[case.name, found] += 1
            if found in ("silent", "traceback"):
                defects.append(f"{found}: {what}")
                print(defects[-1], flush=True)
    report("folder and command | cases", [case.name for case in cases], OUTCOMES, counts, defects)


if __name__ == "__main__":
    run_script(main, __doc__)
