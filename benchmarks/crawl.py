"""Time, memory and quality of the shuffle for generated corpora of up to a hundred million pairs.

    python benchmarks/crawl.py DIR --text 1000000 10000000 --tokens 100000000
    python benchmarks/crawl.py DIR --report docs/images/crawl.png

The generator imitates a web crawl: a pair is a number or a name and one to three of 20,000 sentences of the phrasebook,
so few pairs are equal. --text writes two text files and runs `transduce prepare` (1,000 pairs are held out, duplicates
are not removed). --tokens encodes each sentence, number and name once and joins their ids. This saves time and disk
space, and a check on a small corpus shows that both ways write the same bytes.

Separate processes then measure the prepared folder: the training of a tiny model to its first update and through a few
updates of every block, with anonymous and mapped memory from /proc/self/smaps_rollup; the positions of each pair in two
epochs; and the batches of a whole epoch, which must contain every pair once. The results are appended to
DIR/measured.jsonl; --report prints them as tables and draws a plot. Unless stated otherwise, times are CPU
times, which hardly depend on the load of the machine.
"""

import argparse
import dataclasses
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from generated_crawl import SEED, Crawl, write_texts
from numpy.typing import NDArray

from preparation import TRANSDUCE, run
from transduce.preparation.prepared import (
    FACTS_FILE,
    LEFT_OUT_FILE,
    VALID_FILE,
    open_prepared,
    read_facts,
)
from transduce.system.files import write_folder
from transduce.tokens import mixture
from transduce.tokens.batching import padding_share
from transduce.tokens.store import Encoded, write_store
from transduce.tokens.tokenizer import Tokenizer

CHECKED_PAIRS = 30_000  # prepared both from text and from ids, for the check
OPTIONS = ("data.vocab_size=8000", "data.deduplicate=false")
TINY = [
    *("model.d_model=64", "model.d_ff=128", "model.num_heads=2", "model.num_encoder_layers=1"),
    *(
        "model.num_decoder_layers=1",
        "data.max_tokens=4096",
        "train.threads=1",
        "train.accumulate=1",
    ),
]
MAX_TOKENS = 4096  # as in data.max_tokens
MIB = 2**20
COMPARED_UPDATES = 200
TRAINED_BLOCKS = 8


# -- prepared folders ------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="folder for the corpora and the results")
    parser.add_argument("--text", type=int, nargs="+", default=[], metavar="PAIRS")
    parser.add_argument("--tokens", type=int, nargs="+", default=[], metavar="PAIRS")
    parser.add_argument(
        "--learn", action="store_true", help="with --text: also measure learning a vocabulary"
    )
    parser.add_argument("--report", type=Path, metavar="PLOT")
    parser.add_argument(
        "--step", choices=STEPS, help="internal: the measurement of a separate process"
    )
    parser.add_argument("--began", type=float, default=0.0)
    arguments = parser.parse_args()
    if arguments.step:
        print(json.dumps(STEPS[arguments.step](arguments.folder, arguments.began)))
    elif arguments.report:
        report(arguments.folder, arguments.report)
    else:
        crawl = Crawl()
        vocabulary = learnt(crawl, arguments.folder)
        for make, sizes in ((from_text, arguments.text), (from_ids, arguments.tokens)):
            for pairs in sizes:
                data = arguments.folder / f"{make.__name__}-{pairs}"
                shutil.rmtree(data, ignore_errors=True)
                row = {
                    "how": make.__name__,
                    "pairs": pairs,
                    **make(crawl, pairs, data, vocabulary, arguments.learn),
                }
                row |= sizes_of(data)
                for step in STEPS:
                    row[step] = child(step, data)
                with (arguments.folder / "measured.jsonl").open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)
                shutil.rmtree(data)


def learnt(crawl: Crawl, folder: Path) -> Path:
    """Prepare a folder with a new vocabulary from text, and check that `from_ids` writes the same store."""
    text = folder / "as-text"
    ids = folder / "as-ids"
    for old in (text, ids):
        shutil.rmtree(old, ignore_errors=True)
    files = write_texts(crawl, CHECKED_PAIRS, folder)
    run(
        [
            *TRANSDUCE,
            "--train",
            *files,
            "--from",
            "en",
            "--to",
            "de",
            "--out",
            str(text),
            *OPTIONS,
            "data.holdout=0",
        ]
    )
    from_ids(crawl, CHECKED_PAIRS, ids, text)
    for path in sorted((text / "corpus-0").iterdir()):
        if path.read_bytes() != (ids / "corpus-0" / path.name).read_bytes():
            raise SystemExit(f"{path} differs from the file written from ids.")
    return text


def from_text(
    crawl: Crawl, pairs: int, data: Path, vocabulary: Path, learn: bool
) -> dict[str, Any]:
    """Write text, prepare it with the vocabulary, and measure both; learn: first also with a new vocabulary."""
    began = time.process_time()
    files = write_texts(crawl, pairs, data.parent)
    found: dict[str, Any] = {"generator": pairs / (time.process_time() - began)}
    found["text"] = sum(Path(file).stat().st_size for file in files)
    command = [*TRANSDUCE, "--train", *files, "--from", "en", "--to", "de", "--out", str(data)]
    ways = {"learnt": OPTIONS, "given": ("--vocabulary", str(vocabulary), OPTIONS[1])}
    for name, options in ways.items() if learn else [("given", ways["given"])]:
        shutil.rmtree(data, ignore_errors=True)
        worked = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds, memory = run([*command, *options])
        now = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = now.ru_utime + now.ru_stime - worked.ru_utime - worked.ru_stime
        found[name] = {"seconds": seconds, "processor": processor, "memory": memory}
    for file in files:
        Path(file).unlink()
    return found


def from_ids(
    crawl: Crawl, pairs: int, data: Path, vocabulary: Path, _: bool = False
) -> dict[str, Any]:
    """Write the prepared folder of the generated corpus directly from ids, and measure that."""
    began = time.process_time()
    made = [0.0]
    with write_folder(data) as aside:
        tokenizer = Tokenizer.load(vocabulary)
        tokenizer.save(aside)
        write_store(aside / "corpus-0", timed(crawl.encoded(pairs, SEED, tokenizer), made))
        facts = dataclasses.replace(read_facts(vocabulary), pairs=pairs)
        (aside / FACTS_FILE).write_text(json.dumps(dataclasses.asdict(facts)))
        for name in (VALID_FILE, LEFT_OUT_FILE):
            shutil.copy(vocabulary / name, aside / name)
    return {
        "generator": pairs / made[0],
        "written": pairs / (time.process_time() - began - made[0]),
    }


def timed(blocks: Iterator[Encoded], seconds: list[float]) -> Iterator[Encoded]:
    """Pass the blocks on, and add the CPU time for making them to `seconds`."""
    while True:
        began = time.process_time()
        block = next(blocks, None)
        seconds[0] += time.process_time() - began
        if block is None:
            return
        yield block


def sizes_of(data: Path) -> dict[str, Any]:
    """The sizes in bytes of a store's ids and of its other files."""
    files = {path.name: path.stat().st_size for path in (data / "corpus-0").iterdir()}
    ids = sum(size for name, size in files.items() if name.endswith(".ids"))
    return {"ids": ids, "beside": sum(files.values()) - ids}


# -- separate processes -----------------------------------------------------------------------------------------------


def child(step: str, data: Path) -> dict[str, Any]:
    """Run a step in a separate process, and return its result."""
    command = [sys.executable, __file__, str(data), "--step", step, "--began", str(time.time())]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def training(data: Path, began: float) -> dict[str, Any]:
    """Measure a training as `transduce train` runs it, but with only a few updates of every block."""
    import torch

    from transduce.commands.recipes import gather
    from transduce.system.journal import Journal
    from transduce.system.machine import keep_memory
    from transduce.training.loop import learn, updates
    from transduce.training.resume import continued, resume
    from transduce.training.start import start

    forget(data)
    keep_memory()
    out = data.parent / "run"
    shutil.rmtree(out, ignore_errors=True)
    seconds = {"imports": since(began)}
    memory = {"imports": memory_of_this()}
    given = gather(
        None, train=(str(data),), valid=(), test=(), languages=("", ""), assignments=TINY
    )
    start(given, out, None, False, torch.device("cpu"))
    seconds["start"] = since(began)
    memory["start"] = memory_of_this()
    with Journal(out / "journal.jsonl") as journal:
        task, _ = resume(continued(given, out), out, journal, torch.device("cpu"))
        plan = updates(task)
        learn(task, next(plan))
        seconds["first update"] = since(began)
        memory["first update"] = memory_of_this()
        planned = []
        most = (0, 0)
        for block in range(min(task.data.blocks, TRAINED_BLOCKS)):
            task.state.block = block
            task.state.position = 0
            wall = time.perf_counter()
            processor = time.process_time()
            plan = updates(task)
            batches = [next(plan)]
            planned.append((time.perf_counter() - wall, time.process_time() - processor))
            for each in [*batches, *itertools.islice(plan, 20)]:
                learn(task, each)
            memory["block"] = memory_of_this()
            most = max(most, memory["block"])
    shutil.rmtree(out)
    return {
        "seconds": seconds,
        "memory": memory,
        "most": most,
        "planned": planned,
        "blocks": task.data.blocks,
    }


def since(began: float) -> tuple[float, float]:
    """The seconds since a time, and the CPU seconds of this process."""
    return time.time() - began, time.process_time()


def forget(data: Path) -> None:
    """Drop a corpus from the page cache, so that all runs start without it in memory."""
    for path in (data / "corpus-0").iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def memory_of_this() -> tuple[int, int]:
    """This process's anonymous memory and memory mapped from files, in bytes."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    found = {
        name: int(value.split()[0]) * 1024 for name, value in (line.split(":") for line in lines)
    }
    return found["Anonymous"], found["Rss"] - found["Anonymous"]


def shuffle(data: Path, _: float) -> dict[str, Any]:
    """Measure the shuffle in blocks and, for up to 20 million pairs, a shuffle of the whole corpus."""
    corpus = open_prepared(data).mixture
    found = {"blocks": mixed(corpus)}
    if mixture.BLOCK_PAIRS < len(corpus) <= 20_000_000:
        mixture.BLOCK_PAIRS = len(corpus)
        found["whole"] = mixed(corpus)
    return found


def epoch(data: Path, _: float) -> dict[str, Any]:
    """Measure planning the batches of an epoch; exits if a pair is not in exactly one batch."""
    corpus = open_prepared(data).mixture
    seen = np.zeros(len(corpus), dtype=np.uint8)
    before = memory_of_this()[0]
    most = 0
    wall = time.perf_counter()
    processor = time.process_time()
    for block in range(corpus.blocks):
        for batches in corpus.plan(0, block, budget=MAX_TOKENS, accumulate=1, seed=1):
            np.add.at(seen, np.concatenate(batches), 1)
        most = max(most, memory_of_this()[0] - before)
    if (seen != 1).any():
        raise SystemExit(f"{np.count_nonzero(seen != 1):,} pairs are not in exactly one batch.")
    seconds = time.perf_counter() - wall, time.process_time() - processor
    return {"pairs": len(corpus), "blocks": corpus.blocks, "seconds": seconds, "anonymous": most}


def mixed(corpus: mixture.Mixture) -> dict[str, float]:
    """Statistics of a shuffle, such as correlations of the positions of pairs in the corpus and in two epochs."""
    places = [np.full(len(corpus), -1, dtype=np.int32) for _ in range(2)]
    planning = 0.0
    stretches = []
    mates = 0
    pairs = 0
    padding = []
    means = []
    for epoch, place in enumerate(places):
        update = 0
        for block in range(corpus.blocks if epoch == 0 else -(-corpus.blocks // 8)):
            before = time.process_time()
            plan = [
                batch
                for (batch,) in corpus.plan(epoch, block, budget=MAX_TOKENS, accumulate=1, seed=1)
            ]
            planning += (time.process_time() - before) * (epoch == 0)
            for number, batch in enumerate(plan, start=update):
                place[batch] = number
            update += len(plan)
            if epoch == 0:
                drawn = np.concatenate(plan)
                stretches.append(
                    np.bincount(drawn * 100 // len(corpus), minlength=100) / len(drawn)
                )
                means.append(np.mean(corpus.lengths(drawn)))
                for batch in plan[:: max(1, len(plan) * corpus.blocks // COMPARED_UPDATES)]:
                    runs = np.bincount(
                        np.unique(batch // mixture.RUN_PAIRS, return_inverse=True)[1]
                    )
                    mates = mates + int((runs * (runs - 1)).sum())
                    pairs = pairs + len(batch)
                    padding.append(corpus.lengths(batch))
    again = places[1] >= 0
    position = np.arange(len(corpus), dtype=np.float32)
    apart = {
        f"same update, {d} apart": float(np.mean(places[0][:-d] == places[0][d:]))
        for d in (1, 100, 10_000)
    }
    return {
        "planning": planning,
        "position and place": correlation(position, places[0]),
        "places in two epochs": correlation(places[0][again], places[1][again]),
        "run mates in an update": mates / pairs,
        **apart,
        "uneven stretches": float(np.std(stretches) * 100),
        "uneven lengths": float(np.std(means) / np.mean(means)),
        "padding": padding_share(padding),
    }


def correlation(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Pearson's correlation, computed in parts to save memory."""
    sums = np.zeros(5)
    for start in range(0, len(one), 1_000_000):
        a, b = (
            each[start : start + 1_000_000].astype(np.float64) / len(one) for each in (one, other)
        )
        sums += (a.sum(), b.sum(), (a * a).sum(), (b * b).sum(), (a * b).sum())
    a, b, aa, bb, ab = sums / len(one)
    return float((ab - a * b) / np.sqrt((aa - a * a) * (bb - b * b)))


STEPS = {"training": training, "shuffle": shuffle, "epoch": epoch}


# -- the report -------------------------------------------------------------------------------------------------------


def report(folder: Path, plot: Path) -> None:
    """Print the newest results for each number of pairs as tables, and draw cost against the number of pairs."""
    rows = [
        json.loads(line)
        for line in (folder / "measured.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    rows = sorted(
        {(row["how"], row["pairs"]): row for row in rows}.values(), key=lambda row: row["pairs"]
    )
    for table in (made_and_stored, trained, shuffled):
        print("\n".join(table(rows)), end="\n\n")
    draw(rows, plot)


def made_and_stored(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A table of the costs of preparing a corpus."""
    yield "| pairs | source | generated | prepared | written from ids | memory | bytes a token | other bytes a pair |"
    yield "| --- " * 8 + "|"
    for row in rows:
        given = row.get("given")
        cells = [f"{row['pairs']:,}", "text" if given else "ids", f"{row['generator']:,.0f}/s"]
        cells += [f"{row['pairs'] / given['processor']:,.0f}/s" if given else ""]
        cells += [f"{row['written']:,.0f}/s" if "written" in row else ""]
        cells += [f"{given['memory'] / MIB:,.0f} MiB" if given else ""]
        yield "| " + " | ".join([*cells, "2", f"{row['beside'] / row['pairs']:.2f}"]) + " |"


def trained(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A table of the costs of a training."""
    names = (
        "first update, real time",
        "CPU time",
        "imports",
        "anonymous memory",
        "after 8 blocks",
        "mapped",
    )
    yield f"| pairs | {' | '.join(names)} | an epoch |"
    yield "| --- " * 8 + "|"
    for row in rows:
        seconds = row["training"]["seconds"]
        memory = row["training"]["memory"]
        whole = row["shuffle"]["blocks"]["planning"]
        cells = [f"{row['pairs']:,}", *(f"{each:.1f} s" for each in seconds["first update"])]
        cells += [f"{seconds['imports'][1]:.1f} s", f"{memory['first update'][0] / MIB:,.0f} MiB"]
        cells += [
            f"{row['training']['most'][0] / MIB:,.0f} MiB",
            f"{memory['block'][1] / MIB:,.0f} MiB",
        ]
        yield (
            "| "
            + " | ".join([*cells, f"{whole:.1f} s in {row['training']['blocks']} blocks"])
            + " |"
        )


def shuffled(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A table of the statistics of shuffles."""
    found = [(row["pairs"], how, values) for row in rows for how, values in row["shuffle"].items()]
    names = [name for name in found[0][2] if name != "planning"]
    yield (
        "| | "
        + " | ".join(
            f"{pairs:,}{' as a whole' if how == 'whole' else ''}" for pairs, how, _ in found
        )
        + " |"
    )
    yield "| --- " * (len(found) + 1) + "|"
    for name in names:
        yield f"| {name} | " + " | ".join(f"{values[name]:.2g}" for *_, values in found) + " |"


def draw(rows: Sequence[dict[str, Any]], plot: Path) -> None:
    """Draw the costs against the number of pairs; each should be proportional to it or constant."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(15, 3.4), layout="constrained")
    prepared = [row for row in rows if "given" in row]
    costs = [
        ("preparing, CPU s", prepared, lambda row: row["given"]["processor"], True),
        ("planning an epoch, CPU s", rows, lambda row: row["shuffle"]["blocks"]["planning"], True),
        (
            "start to first update, CPU s",
            rows,
            lambda row: row["training"]["seconds"]["first update"][1],
            False,
        ),
        (
            "anonymous memory of a training, MiB",
            rows,
            lambda row: row["training"]["most"][0] / MIB,
            False,
        ),
    ]
    for axis, (title, some, cost, grows) in zip(axes, costs, strict=True):
        sizes = [row["pairs"] for row in some]
        values = [cost(row) for row in some]
        axis.plot(sizes, values, "o-")
        axis.set(title=title, xscale="log", xlabel="pairs", yscale="log" if grows else "linear")
        if grows:
            axis.plot(
                sizes, [values[0] * size / sizes[0] for size in sizes], ":", label="in proportion"
            )
            axis.legend()
        else:
            axis.set_ylim(0, 1.3 * max(values))
    figure.savefig(plot, dpi=110)


if __name__ == "__main__":
    main()
