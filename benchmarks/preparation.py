"""The speed and memory of preparing a corpus, compared with eole's build_vocab and SentencePiece.

    python benchmarks/preparation.py [SOURCE TARGET] [--pairs 200000 2000000] [--rounds 3] [--threads 2] [--eole EOLE]

Without files, the text is generated: each pair joins two of 20,000 pairs of the phrasebook, so that few are equal. The
vocabulary is learnt from the first 100,000 pairs, which is not timed. Then `transduce prepare --vocabulary` reads,
cleans, finds repetitions, holds out 1,000 pairs, encodes and writes. EOLE is the eole command of an environment that
has eole: its build_vocab, with n_sample -1, reads, encodes and counts the same text with the same SentencePiece model,
but writes no ids. SentencePiece alone encodes both sides with the same number of threads. Memory is the largest
anonymous memory of a process and its children together, sampled every 50 ms.
"""

import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import sentencepiece
from measuring import run_script

from transduce.text.plain import read_lines
from transduce.tokens.tokenizer import JOINT
from transduce.wings.phrasebook.examples import examples

KNOWN = 100_000  # number of pairs for learning the vocabulary
COMMAND = [sys.executable, "-m", "transduce"]
JOINED = 20_000  # number of phrasebook pairs that generated pairs are joined from


def main(
    *files: str,
    pairs: list[int] | None = None,
    rounds: int = 3,
    threads: int = 2,
    eole: str = "",
    folder: Path | None = None,
) -> None:
    """Measure each number of pairs; if the two files are too short, generated text follows."""
    print("| pairs | | pairs/s | range | memory |")
    print("| --- | --- | --- | --- | --- |")
    for count in pairs or [200_000]:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            compare(files, count, Path(place), rounds, threads, eole)


def compare(
    given: Sequence[str], count: int, folder: Path, rounds: int, threads: int, eole: str
) -> None:
    """Measure transduce and eole in turns, then SentencePiece, and print a row for each."""
    files = write_texts(given, count, folder)
    known = folder / "known"
    known.mkdir()
    vocabulary = folder / "vocabulary"
    prepare = [*COMMAND, "prepare", "--from", "en", "--to", "de", f"train.threads={threads}"]
    learn = ["--train", *write_texts(given, KNOWN, known), "--out", str(vocabulary)]
    run([*prepare, *learn, "data.vocab_size=8000"])
    encode = ["--train", *files, "--vocabulary", str(vocabulary)]
    sides = {"transduce": [*prepare, *encode, "--out", str(folder / "data-TURN")]}
    if eole:
        sides["eole"] = eole_command(eole, files, vocabulary, folder, threads)
    rows: dict[str, list[tuple[float, int]]] = {name: [] for name in sides}
    for turn in range(rounds):
        for name, command in sides.items():
            rows[name].append(run([part.replace("TURN", str(turn)) for part in command]))
    for name, measured in rows.items():
        rates = [count / seconds for seconds, _ in measured]
        memory = max(size for _, size in measured) / 2**20
        line = f"| {count:,} | {name} | {statistics.median(rates):,.0f} "
        print(f"{line}| {min(rates):,.0f} to {max(rates):,.0f} | {memory:,.0f} MiB |", flush=True)
    seconds = encoding(files, vocabulary, threads)
    print(f"| {count:,} | SentencePiece alone | {count / seconds:,.0f} | | |", flush=True)


def write_texts(given: Sequence[str], count: int, folder: Path) -> list[str]:
    """Write pairs to two files, and return their names."""
    files = [folder / name for name in ("source", "target")]
    with (
        files[0].open("w", encoding="utf-8") as sources,
        files[1].open("w", encoding="utf-8") as targets,
    ):
        for source, target in itertools.islice(texts(given), count):
            sources.write(source + "\n")
            targets.write(target + "\n")
    return [*map(str, files)]


def texts(files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of the files, then generated pairs without end."""
    if files:
        yield from zip(*map(read_lines, files), strict=True)
    known = [(example.english, example.german) for example in examples("train", JOINED)]
    draw = random.Random(1)
    while True:
        (source, target), (source_too, target_too) = draw.choices(known, k=2)
        yield f"{source} {source_too}", f"{target} {target_too}"


def eole_command(
    command: str, files: Sequence[str], vocabulary: Path, folder: Path, threads: int
) -> list[str]:
    model = str(vocabulary / JOINT)
    corpus = {"path_src": files[0], "path_tgt": files[1], "transforms": ["sentencepiece"]}
    config = {
        "data": {"corpus": corpus},
        "transforms_configs": {
            "sentencepiece": {"src_subword_model": model, "tgt_subword_model": model}
        },
        "src_vocab": str(folder / "eole.vocab"),
        "tgt_vocab": str(folder / "eole.vocab"),
        "share_vocab": True,
        "overwrite": True,
        "n_sample": -1,
        "num_threads": threads,
        "save_data": str(folder / "eole"),
    }
    (folder / "eole.yaml").write_text(json.dumps(config), encoding="utf-8")
    return [command, "build_vocab", "--config", str(folder / "eole.yaml")]


def run(command: list[str]) -> tuple[float, int]:
    """Run a command; returns its seconds, and the peak anonymous memory in bytes, including child processes."""
    began = time.perf_counter()
    most = 0
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        done = threading.Event()

        def watch() -> None:
            nonlocal most
            while not done.wait(0.05):
                most = max(most, sum(map(anonymous, family(process.pid))))

        watcher = threading.Thread(target=watch)
        watcher.start()
        process.wait()
        seconds = time.perf_counter() - began
        done.set()
        watcher.join()
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(command)}: {said.read().decode()}")
    return seconds, most


def family(pid: int) -> list[int]:
    """The ids of a process and its descendants."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *itertools.chain.from_iterable(family(int(child)) for child in children)]


def anonymous(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next(
        (int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon")),
        0,
    )


def encoding(files: Sequence[str], vocabulary: Path, threads: int) -> float:
    """The seconds that SentencePiece needs to encode both files."""
    processor = sentencepiece.SentencePieceProcessor(model_file=str(vocabulary / JOINT))
    seconds = 0.0
    for file in files:
        lines = read_lines(file)
        while some := list(itertools.islice(lines, 10_000)):
            began = time.perf_counter()
            processor.encode(some, num_threads=threads)
            seconds += time.perf_counter() - began
    return seconds


if __name__ == "__main__":
    run_script(main, __doc__)
