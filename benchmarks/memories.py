"""The look-up in a large translation memory: milliseconds, bytes, and what it misses.

Makes units from the lines of TEXTS, each with some words replaced by others, asks for other such variants of the lines,
and compares some answers with those of an edit distance to every unit.

    python benchmarks/memories.py TEXTS [--units 1000000] [--questions 3000] [--compared 100]
"""

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from measuring import run_script
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from transduce.text.plain import read_lines
from transduce.wings.memories.database import MIN_SCORE, Database, Unit
from transduce.wings.memories.similarity import tokens

MAX_REPLACED = 0.5  # share of the words of a unit
MAX_ASKED = 0.34  # share of the words of a question


def variants(lines: Sequence[str], most: float, draw: random.Random) -> Iterator[str]:
    """Lines in which up to a share of the words are words of other lines."""
    words = [word for line in lines for word in line.split()]
    while True:
        its = draw.choice(lines).split()
        for _ in range(draw.randint(1, max(1, int(len(its) * most)))):
            its[draw.randrange(len(its))] = draw.choice(words)
        yield " ".join(its)


def main(
    texts: list[Path], /, *, units: int = 1_000_000, questions: int = 3000, compared: int = 100
) -> None:
    """Build the memory, and print the figures."""
    draw = random.Random(1)
    lines = [line for file in texts for line in read_lines(str(file)) if line.split()]
    sources = list(dict.fromkeys(lines))[:units]
    others = variants(lines, MAX_REPLACED, draw)
    sources += [next(others) for _ in range(units - len(sources))]
    asked = [
        text for text, _ in zip(variants(lines, MAX_ASKED, draw), range(questions), strict=False)
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memory.sqlite"
        began = time.perf_counter()
        Database(path).add((Unit(text, text, "made") for text in sources), "en-de")
        print(f"{units:,} units in {time.perf_counter() - began:.0f} s")
        texts_bytes = 2 * sum(len(text.encode()) for text in sources)
        print(
            f"{path.stat().st_size / units:.0f} bytes a unit, {texts_bytes / units:.0f} of them texts"
        )
        memory = Database(path)
        seconds = []
        answers = []
        for text in asked:
            began = time.perf_counter()
            answers.append(memory.matches([text], "en-de")[0])
            seconds.append(time.perf_counter() - began)
        seconds.sort()
        middle, late = (1000 * seconds[int(len(seconds) * share)] for share in (0.5, 0.99))
        print(f"look-up: median {middle:.1f} ms, 99th percentile {late:.1f} ms")
        print(
            f"{sum(map(bool, answers)) / len(asked):.1%} of {len(asked):,} questions have a match"
        )
        every = list(map(tokens, sources))
        best = missed = 0
        for text, answer in zip(asked[:compared], answers, strict=False):
            found = process.extractOne(
                tokens(text), every, scorer=Levenshtein.normalized_similarity
            )
            if found[1] >= MIN_SCORE:
                best += bool(answer) and answer[0].score >= min(found[1], 0.99) - 1e-9
                missed += not answer
        print(f"of {compared} questions: {best} get the most similar unit, {missed} wrongly none")


if __name__ == "__main__":
    run_script(main, __doc__)
