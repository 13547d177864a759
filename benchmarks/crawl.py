"""A hundred million pairs: time, memory and quality of the shuffle for a corpus of the size of a crawl.

    python benchmarks/crawl.py DIR --text 1000000 10000000 --tokens 100000000
    python benchmarks/crawl.py DIR --report docs/images/crawl.png

A generator imitates the crawl: a pair has one to three of 20,000 sentences of the phrasebook after a number or a name,
so few pairs are equal. --text writes two text files for `transduce prepare` (1,000 pairs are held out, duplicates are
not removed). --tokens encodes the parts once and joins them as ids. That gives the same store as the text, which is
checked byte by byte, and saves time and disk space.

Then processes of their own measure the prepared folder: a training of a tiny model from its start to its first update,
then a few updates of every block of an epoch, with anonymous and mapped memory from /proc/self/smaps_rollup; the
places of each pair in two epochs; and all plans of an epoch, which must contain every pair once. The results are
appended to DIR/measured.jsonl; --report makes tables and a plot of them. Unless stated otherwise, times are CPU times,
which don't depend on the load of the machine.
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
from transduce.preparation.prepared import FACTS_FILE, LEFT_OUT_FILE, VALID_FILE, open_prepared, read_facts
from transduce.system.files import write_folder
from transduce.tokens import mixture
from transduce.tokens.batching import padding_share
from transduce.tokens.store import Encoded, write_store
from transduce.tokens.tokenizer import Tokenizer

CHECKED_PAIRS = 30_000  # prepared as text and as ids
OPTIONS = ("data.vocab_size=8000", "data.deduplicate=false")
TINY = [
    *("model.d_model=64", "model.d_ff=128", "model.num_heads=2", "model.num_encoder_layers=1"),
    *("model.num_decoder_layers=1", "data.max_tokens=4096", "train.threads=1", "train.accumulate=1"),
]
MAX_TOKENS = 4096  # as in data.max_tokens
MIB = 2**20
COMPARED_UPDATES = 200
TRAINED_BLOCKS = 8


# -- prepared folders ------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for sentences, corpora and what was measured")
    parser.add_argument("--text", type=int, nargs="+", default=[], metavar="PAIRS")
    parser.add_argument("--tokens", type=int, nargs="+", default=[], metavar="PAIRS")
    parser.add_argument("--learn", action="store_true", help="prepare text with a new vocabulary, too")
    parser.add_argument("--report", type=Path, metavar="PLOT")
    parser.add_argument("--step", choices=STEPS, help="what the script calls itself with, for a process of its own")
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
                row = {"how": make.__name__, "pairs": pairs, **make(crawl, pairs, data, vocabulary, arguments.learn)}
                row |= sizes_of(data)
                for step in STEPS:
                    row[step] = child(step, data)
                with (arguments.folder / "measured.jsonl").open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)
                shutil.rmtree(data)


def learnt(crawl: Crawl, folder: Path) -> Path:
    """Prepare a folder with a vocabulary from text, and check that joined ids give the same store."""
    text, ids = folder / "as-text", folder / "as-ids"
    for old in (text, ids):
        shutil.rmtree(old, ignore_errors=True)
    files = write_texts(crawl, CHECKED_PAIRS, folder)
    run([*TRANSDUCE, "--train", *files, "--from", "en", "--to", "de", "--out", str(text), *OPTIONS, "data.holdout=0"])
    from_ids(crawl, CHECKED_PAIRS, ids, text)
    for path in sorted((text / "corpus-0").iterdir()):
        if path.read_bytes() != (ids / "corpus-0" / path.name).read_bytes():
            raise SystemExit(f"{path} differs from what joined ids give.")
    return text


def from_text(crawl: Crawl, pairs: int, data: Path, vocabulary: Path, learn: bool) -> dict[str, Any]:
    """Write text and prepare it with the vocabulary; with `learn`, first with a new vocabulary."""
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


def from_ids(crawl: Crawl, pairs: int, data: Path, vocabulary: Path, _: bool = False) -> dict[str, Any]:
    """Write the store that preparing the text would write, without the text."""
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
    return {"generator": pairs / made[0], "written": pairs / (time.process_time() - began - made[0])}


def timed(blocks: Iterator[Encoded], seconds: list[float]) -> Iterator[Encoded]:
    """The same blocks; adds their CPU time to `seconds`."""
    while True:
        began = time.process_time()
        block = next(blocks, None)
        seconds[0] += time.process_time() - began
        if block is None:
            return
        yield block


def sizes_of(data: Path) -> dict[str, Any]:
    """Bytes of a store: its ids, and its other files."""
    files = {path.name: path.stat().st_size for path in (data / "corpus-0").iterdir()}
    ids = sum(size for name, size in files.items() if name.endswith(".ids"))
    return {"ids": ids, "beside": sum(files.values()) - ids}


# -- processes of their own -------------------------------------------------------------------------------------------


def child(step: str, data: Path) -> dict[str, Any]:
    """Run a step in a process of its own; returns its result."""
    command = [sys.executable, __file__, str(data), "--step", step, "--began", str(time.time())]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def training(data: Path, began: float) -> dict[str, Any]:
    """A training as by `transduce train`, with a few updates of every block of an epoch."""
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
    seconds, memory = {"imports": since(began)}, {"imports": memory_of_this()}
    given = gather(None, train=(str(data),), valid=(), test=(), languages=("", ""), assignments=TINY)
    start(given, out, None, False, torch.device("cpu"))
    seconds["start"], memory["start"] = since(began), memory_of_this()
    with Journal(out / "journal.jsonl") as journal:
        task, _ = resume(continued(given, out), out, journal, torch.device("cpu"))
        plan = updates(task)
        learn(task, next(plan))
        seconds["first update"], memory["first update"] = since(began), memory_of_this()
        planned, most = [], (0, 0)
        for block in range(min(task.data.blocks, TRAINED_BLOCKS)):
            task.state.block, task.state.position = block, 0
            wall, processor = time.perf_counter(), time.process_time()
            plan = updates(task)
            batches = [next(plan)]
            planned.append((time.perf_counter() - wall, time.process_time() - processor))
            for each in [*batches, *itertools.islice(plan, 20)]:
                learn(task, each)
            memory["block"] = memory_of_this()
            most = max(most, memory["block"])
    shutil.rmtree(out)
    return {"seconds": seconds, "memory": memory, "most": most, "planned": planned, "blocks": task.data.blocks}


def since(began: float) -> tuple[float, float]:
    """Seconds since a time, and CPU seconds of this process."""
    return time.time() - began, time.process_time()


def forget(data: Path) -> None:
    """Drop the files from the page cache, for the same start in every run."""
    for path in (data / "corpus-0").iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def memory_of_this() -> tuple[int, int]:
    """Bytes of this process: anonymous, and mapped from files."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    found = {name: int(value.split()[0]) * 1024 for name, value in (line.split(":") for line in lines)}
    return found["Anonymous"], found["Rss"] - found["Anonymous"]


def shuffle(data: Path, _: float) -> dict[str, Any]:
    """The quality of the shuffle in blocks, and of a shuffle of all pairs at once if memory suffices."""
    corpus = open_prepared(data).mixture
    found = {"blocks": mixed(corpus)}
    if mixture.BLOCK_PAIRS < len(corpus) <= 20_000_000:
        mixture.BLOCK_PAIRS = len(corpus)
        found["whole"] = mixed(corpus)
    return found


def epoch(data: Path, _: float) -> dict[str, Any]:
    """Time and memory of all plans of an epoch; checks that they contain every pair exactly once."""
    corpus = open_prepared(data).mixture
    seen, before, most = np.zeros(len(corpus), dtype=np.uint8), memory_of_this()[0], 0
    wall, processor = time.perf_counter(), time.process_time()
    for block in range(corpus.blocks):
        for batches in corpus.plan(0, block, budget=MAX_TOKENS, accumulate=1, seed=1):
            np.add.at(seen, np.concatenate(batches), 1)
        most = max(most, memory_of_this()[0] - before)
    if (seen != 1).any():
        raise SystemExit(f"{np.count_nonzero(seen != 1):,} pairs are not planned exactly once.")
    seconds = time.perf_counter() - wall, time.process_time() - processor
    return {"pairs": len(corpus), "blocks": corpus.blocks, "seconds": seconds, "anonymous": most}


def mixed(corpus: mixture.Mixture) -> dict[str, float]:
    """Correlations of the places of pairs in the corpus and in two epochs; of the second, an eighth is planned."""
    places = [np.full(len(corpus), -1, dtype=np.int32) for _ in range(2)]
    planning, stretches, mates, pairs, padding, means = 0.0, [], 0, 0, [], []
    for epoch, place in enumerate(places):
        update = 0
        for block in range(corpus.blocks if epoch == 0 else -(-corpus.blocks // 8)):
            before = time.process_time()
            plan = [batch for (batch,) in corpus.plan(epoch, block, budget=MAX_TOKENS, accumulate=1, seed=1)]
            planning += (time.process_time() - before) * (epoch == 0)
            for number, batch in enumerate(plan, start=update):
                place[batch] = number
            update += len(plan)
            if epoch == 0:
                drawn = np.concatenate(plan)
                stretches.append(np.bincount(drawn * 100 // len(corpus), minlength=100) / len(drawn))
                means.append(np.mean(corpus.lengths(drawn)))
                for batch in plan[:: max(1, len(plan) * corpus.blocks // COMPARED_UPDATES)]:
                    runs = np.bincount(np.unique(batch // mixture.RUN_PAIRS, return_inverse=True)[1])
                    mates, pairs = mates + int((runs * (runs - 1)).sum()), pairs + len(batch)
                    padding.append(corpus.lengths(batch))
    again = places[1] >= 0
    position = np.arange(len(corpus), dtype=np.float32)
    apart = {f"same update, {d} apart": float(np.mean(places[0][:-d] == places[0][d:])) for d in (1, 100, 10_000)}
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
    """Pearson's correlation, in parts to save memory."""
    sums = np.zeros(5)
    for start in range(0, len(one), 1_000_000):
        a, b = (each[start : start + 1_000_000].astype(np.float64) / len(one) for each in (one, other))
        sums += (a.sum(), b.sum(), (a * a).sum(), (b * b).sum(), (a * b).sum())
    a, b, aa, bb, ab = sums / len(one)
    return float((ab - a * b) / np.sqrt((aa - a * a) * (bb - b * b)))


STEPS = {"training": training, "shuffle": shuffle, "epoch": epoch}


# -- the report -------------------------------------------------------------------------------------------------------


def report(folder: Path, plot: Path) -> None:
    """Print the newest results of every size and kind as tables, and draw cost against size."""
    rows = [json.loads(line) for line in (folder / "measured.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = sorted({(row["how"], row["pairs"]): row for row in rows}.values(), key=lambda row: row["pairs"])
    for table in (made_and_stored, trained, shuffled):
        print("\n".join(table(rows)), end="\n\n")
    draw(rows, plot)


def made_and_stored(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The costs of preparing a store."""
    yield "| pairs | from | generator | prepared | written from ids | memory | bytes a token | beside, a pair |"
    yield "| --- " * 8 + "|"
    for row in rows:
        given = row.get("given")
        cells = [f"{row['pairs']:,}", "text" if given else "ids", f"{row['generator']:,.0f}/s"]
        cells += [f"{row['pairs'] / given['processor']:,.0f}/s" if given else ""]
        cells += [f"{row['written']:,.0f}/s" if "written" in row else ""]
        cells += [f"{given['memory'] / MIB:,.0f} MiB" if given else ""]
        yield "| " + " | ".join([*cells, "2", f"{row['beside'] / row['pairs']:.2f}"]) + " |"


def trained(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The costs of a training."""
    names = "first update, on the clock", "by one processor", "of it imports", "anonymous", "after 8 blocks", "mapped"
    yield f"| pairs | {' | '.join(names)} | an epoch |"
    yield "| --- " * 8 + "|"
    for row in rows:
        seconds, memory = row["training"]["seconds"], row["training"]["memory"]
        whole = row["shuffle"]["blocks"]["planning"]
        cells = [f"{row['pairs']:,}", *(f"{each:.1f} s" for each in seconds["first update"])]
        cells += [f"{seconds['imports'][1]:.1f} s", f"{memory['first update'][0] / MIB:,.0f} MiB"]
        cells += [f"{row['training']['most'][0] / MIB:,.0f} MiB", f"{memory['block'][1] / MIB:,.0f} MiB"]
        yield "| " + " | ".join([*cells, f"{whole:.1f} s in {row['training']['blocks']} blocks"]) + " |"


def shuffled(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The quality of the shuffle."""
    found = [(row["pairs"], how, values) for row in rows for how, values in row["shuffle"].items()]
    names = [name for name in found[0][2] if name != "planning"]
    yield "| | " + " | ".join(f"{pairs:,}{' as a whole' * (how == 'whole')}" for pairs, how, _ in found) + " |"
    yield "| --- " * (len(found) + 1) + "|"
    for name in names:
        yield f"| {name} | " + " | ".join(f"{values[name]:.2g}" for *_, values in found) + " |"


def draw(rows: Sequence[dict[str, Any]], plot: Path) -> None:
    """Draw each cost against the number of pairs; it should be proportional or constant."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(15, 3.4), layout="constrained")
    prepared = [row for row in rows if "given" in row]
    costs = [
        ("preparing, processor s", prepared, lambda row: row["given"]["processor"], True),
        ("planning an epoch, processor s", rows, lambda row: row["shuffle"]["blocks"]["planning"], True),
        ("start to first update, processor s", rows, lambda row: row["training"]["seconds"]["first update"][1], False),
        ("anonymous memory of a training, MiB", rows, lambda row: row["training"]["most"][0] / MIB, False),
    ]
    for axis, (title, some, cost, grows) in zip(axes, costs, strict=True):
        sizes, values = [row["pairs"] for row in some], [cost(row) for row in some]
        axis.plot(sizes, values, "o-")
        axis.set(title=title, xscale="log", xlabel="pairs", yscale="log" if grows else "linear")
        if grows:
            axis.plot(sizes, [values[0] * size / sizes[0] for size in sizes], ":", label="in proportion")
            axis.legend()
        else:
            axis.set_ylim(0, 1.3 * max(values))
    figure.savefig(plot, dpi=110)


if __name__ == "__main__":
    main()
