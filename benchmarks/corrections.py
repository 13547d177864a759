"""How much corrections help with the text that follows them, and how much garbage is held back.

    python benchmarks/corrections.py MODEL STREAM BEFORE [--after 200 2000] [--next 1000] [--step 200] [--minutes N]

STREAM is a bilingual file in the model's direction, whose pairs, also repeated ones, come one after the other as
corrections; after each --step of them, the model learns. BEFORE is held-out text of the kind that the model was trained
on. After as many corrections as --after says, the next 1,000 texts are translated by the first model, by the first
model with the corrections as its translation memory, and by what has learnt, without and with this memory. Prints how
many of the 1,000 texts, and of their words, have a match in the memory; TER, BLEU, and the share by which TER falls;
and BLEU and its paired test for BEFORE.
"""

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from measuring import run_script

import transduce
from transduce.evaluation.scores import compare, score
from transduce.text.pairs import read_pairs, usable
from transduce.wings.learning.learning import learn
from transduce.wings.memories.database import Database, Unit
from transduce.wings.serving.corrections import OwnMemory

Texts = Sequence[tuple[str, str]]
OWNER = "anna"
SCORES = (1.0, 0.7, 0.5)


def texts_of(file: str, direction: tuple[str, str]) -> Texts:
    pairs = usable(read_pairs([file], direction))
    return [(pair.source, pair.target) for pair in pairs]


def translated(folder: Path, texts: Texts, memory: OwnMemory | None = None) -> list[str]:
    translator = transduce.load(folder, device="cpu")
    found = translator.translate(
        [source for source, _ in texts], sentences=True, translation_memory=memory
    )
    return [each.text for each in found]


def say_matches(memory: Database, texts: Texts, direction: str) -> None:
    """Print the shares of texts and of their words that have a match with at least each of SCORES."""
    found = memory.matches([source for source, _ in texts], direction, OWNER)
    best = [matches[0].score if matches else 0.0 for matches in found]
    words = [len(target.split()) for _, target in texts]
    for least in SCORES:
        its = [count for count, score in zip(words, best, strict=True) if score >= least]
        shares = (
            f"{len(its) / len(texts):.1%} of the texts, {sum(its) / sum(words):.1%} of the words"
        )
        print(f"<!-- match of at least {least}: {shares} -->", flush=True)


def main(
    model: Path,
    stream: str,
    before: str,
    *,
    after: Sequence[int] = (200, 2000),
    next: int = 1000,
    step: int = 200,
    minutes: float | None = None,
) -> None:
    """Stream the corrections, and print the tables."""
    direction = transduce.load(model, device="cpu").require_direction()
    pairs = texts_of(stream, direction)
    general = texts_of(before, direction)
    references = [target for _, target in general]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        learning = Path(shutil.copytree(model, folder / "model"))
        memory = Database(folder / "memory.sqlite")
        first_general = translated(model, general)
        options = {} if minutes is None else {"train.minutes": minutes}
        print("| after | system | TER | falls by | BLEU | BLEU on text from before | p |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for number in range(step, max(after) + 1, step):
            units = [Unit(*pair, "correction") for pair in pairs[number - step : number]]
            memory.add(units, str(direction), OWNER)
            began = time.monotonic()
            is_better = learn(learning, memory.path, options=options)
            print(f"<!-- {number}: {time.monotonic() - began:.0f} s, {is_better} -->", flush=True)
            if number not in after:
                continue
            window = pairs[number : number + next]
            targets = [target for _, target in window]
            own = OwnMemory(memory, OWNER)
            say_matches(memory, window, str(direction))
            systems = {
                "first model": translated(model, window),
                "with the memory": translated(model, window, own),
                "learnt": translated(learning, window),
                "learnt, with the memory": translated(learning, window, own),
            }
            after_all = translated(learning, general)
            now = compare(first_general, after_all, references, ter=False)[0]
            base = 0.0
            for name, texts in systems.items():
                bleu, _, ter = (each.value for each in score(texts, targets)[:3])
                base = base or ter
                row = [f"{number:,}", name, f"{ter:.1f}", f"{1 - ter / base:.1%}", f"{bleu:.1f}"]
                if name.startswith("learnt"):
                    row += [f"{now.first.value:.1f} → {now.second.value:.1f}", f"{now.p_value:.3f}"]
                print(f"| {' | '.join([*row, '', ''][:7])} |", flush=True)


if __name__ == "__main__":
    run_script(main, __doc__)
