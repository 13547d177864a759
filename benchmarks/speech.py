"""Make a corpus of spoken sentences with espeak-ng, in several voices and speeds, and measure word error rates.

    python benchmarks/speech.py make FOLDER SENTENCES [--hours 8] [--seed 1]
    python benchmarks/speech.py score MODEL FOLDER

SENTENCES is a file of sentences or of tab-separated pairs, of which the first column is spoken; those with words
outside the 2,000 commonest of the file are left out. `make` writes WAV files, train.tsv, valid.tsv, heard.tsv (unheard
sentences in heard voices) and unheard.tsv (unheard sentences in unheard voices): path, TAB, words in lower case.
`score` prints the word and the character error rate of both with their 95 % intervals over sentences. It needs the
program espeak-ng.
"""

import random
import re
import subprocess
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cyclopts
import numpy as np

import transduce

COMMON_WORDS = 2000
MAX_WORDS = 9
SPEEDS = (140, 155, 170, 185)  # words a minute
VOICES = ("en-us", "en-us+m3", "en-us+f2", "en-gb", "en-gb+m5", "en-gb+f4", "en-gb-scotland+m1")
UNHEARD_VOICES = ("en-us+f5", "en-gb+m7", "en-029+m2")
SECONDS_A_SENTENCE = 1.8  # about
TESTED = 500
RESAMPLES = 1000


def words_of(sentence: str) -> list[str]:
    """The words of a sentence in lower case, without punctuation."""
    return re.findall(r"[a-z']+", sentence.lower().replace("’", "'"))


def sentences_of(file: Path) -> list[str]:
    """The distinct short sentences of common words, without digits."""
    texts = [line.partition("\t")[0] for line in file.read_text(encoding="utf-8").split("\n")]
    counts = Counter(word for text in texts for word in words_of(text))
    common = {word for word, _ in counts.most_common(COMMON_WORDS)}
    found = dict[str, None]()
    for text in texts:
        words = words_of(text)
        is_spelled = text.isascii() and not re.search(r"[0-9&@%$]", text)
        if is_spelled and 2 <= len(words) <= MAX_WORDS and common.issuperset(words):
            found[" ".join(words)] = None
    return list(found)


def speak(text: str, voice: str, speed: int, path: Path) -> None:
    """Write a spoken text into a WAV file."""
    command = ["espeak-ng", "-v", voice, "-s", str(speed), "-w", str(path), text]
    subprocess.run(command, check=True)


def make(folder: Path, sentences: Path, *, hours: float = 8, seed: int = 1) -> None:
    """Speak the sentences, and write the corpora."""
    draw = random.Random(seed)
    texts = sentences_of(sentences)
    draw.shuffle(texts)
    count = min(len(texts) - 3 * TESTED, round(hours * 3600 / SECONDS_A_SENTENCE))
    parts = {
        "heard": (texts[:TESTED], VOICES),
        "unheard": (texts[TESTED : 2 * TESTED], UNHEARD_VOICES),
        "valid": (texts[2 * TESTED : 3 * TESTED], VOICES),
        "train": (texts[3 * TESTED : 3 * TESTED + count], VOICES),
    }
    for name, (its, voices) in parts.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        lines = list[str]()
        jobs = list[tuple[str, str, int, Path]]()
        for number, text in enumerate(its):
            path = folder / name / f"{number:06}.wav"
            jobs.append((text, draw.choice(voices), draw.choice(SPEEDS), path))
            lines.append(f"{path}\t{text}\n")
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: speak(*job), jobs))
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
        print(f"{name}: {len(its):,} sentences", flush=True)


def edits(found: Sequence[str], wanted: Sequence[str]) -> int:
    """The least number of insertions, deletions and replacements between two sequences."""
    row = list(range(len(wanted) + 1))
    for number, one in enumerate(found, 1):
        before = row[0]
        row[0] = number
        for place, other in enumerate(wanted, 1):
            best = min(before + (one != other), row[place] + 1, row[place - 1] + 1)
            before = row[place]
            row[place] = best
    return row[-1]


def rate(errors: Sequence[int], lengths: Sequence[int]) -> str:
    """An error rate with its interval, by a bootstrap over the sentences."""
    both = np.array([errors, lengths], dtype=np.float64)
    drawn = np.random.default_rng(1).integers(len(errors), size=(RESAMPLES, len(errors)))
    sums = both[:, drawn].sum(axis=2)
    low, high = np.quantile(sums[0] / sums[1], (0.025, 0.975))
    total = both.sum(axis=1)
    return f"{total[0] / total[1]:.1%} ({low:.1%} to {high:.1%})"


def score(model: Path, folder: Path) -> None:
    """Print the error rates."""
    translator = transduce.load(model)
    print("| test | sentences | word error rate | character error rate |")
    print("| --- | --- | --- | --- |")
    for name in ("heard", "unheard"):
        lines = (folder / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
        paths, texts = zip(*(line.split("\t") for line in lines), strict=True)
        found = [each.text for each in translator.translate(paths)]
        columns = list[str]()
        for split in (str.split, list):
            pairs = [(split(one), split(other)) for one, other in zip(found, texts, strict=True)]
            columns.append(rate([edits(*pair) for pair in pairs], [len(pair[1]) for pair in pairs]))
        print(f"| {name} voices | {len(texts):,} | {' | '.join(columns)} |")


if __name__ == "__main__":
    app = cyclopts.App(help=__doc__, help_format="plaintext")
    app.command(make)
    app.command(score)
    app()
