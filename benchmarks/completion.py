"""Completion of typed prefixes: whether outputs begin with them, how long it takes, and the keys that it saves.

SOURCES and REFERENCES are two aligned text files. For each engine, the script prints:

* how many of COUNT outputs begin with a prefix that is cut at random from the reference, or from the model's own
  translation, in turn, and the mean score of the outputs;
* processor milliseconds a text, one at a time, with one thread, of free translations and of completions of these;
* keystrokes of a simulated translator who wants the reference. Typing a character is one key. Before each key, the
  model completes what is typed. If the completion continues with whole words of the reference, one key accepts all of
  them up to the first wrong word. A word is whole if a blank, which is accepted with it, or the end of the reference
  follows it. The ratio is that of keys to characters of the references.

    python benchmarks/completion.py MODEL SOURCES REFERENCES [--count 2000] [--timed 300] [--typed 200]
"""

import random
import time
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from measuring import run_script

import transduce
from transduce.decoding.translator import Translator
from transduce.text.plain import read_lines


def cut(text: str, draw: random.Random) -> str:
    """The beginning of a text, cut anywhere."""
    return text[: draw.randint(1, len(text))]


def accepted(completion: str, reference: str, typed: str) -> str:
    """What one key accepts of a completion of `typed`: whole words of the reference; "" if there are none."""
    pairs = zip(completion, f"{reference} ", strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    if completion == reference:
        return reference[len(typed) :]
    begin = f"{completion} "[: same + (same == len(completion))]
    end = begin.rfind(" ") + 1
    return reference[len(typed) : end] if end > len(typed) else ""


def keystrokes(translator: Translator, source: str, reference: str) -> int:
    """The keys that a simulated translator presses."""
    typed = ""
    keys = 0
    while typed != reference:
        [translation] = translator.translate([source], prefixes=[typed])
        more = accepted(translation.text, reference, typed)
        keys += 1
        typed += more or reference[len(typed)]
    return keys


def percentile(seconds: Sequence[float], share: float) -> float:
    """Milliseconds that this share of the measurements does not exceed."""
    return 1000 * sorted(seconds)[int(share * (len(seconds) - 1))]


def measure(translator: Translator, sources: Sequence[str], prefixes: Sequence[str]) -> None:
    """Print the time of free translations and of completions, measured in turn."""
    free: list[float] = []
    completed: list[float] = []
    for source, prefix in zip(sources, prefixes, strict=True):
        for seconds, its in ((free, ()), (completed, [prefix])):
            began = time.process_time()
            translator.translate([source], prefixes=its)
            seconds.append(time.process_time() - began)
    for name, share in (("median", 0.5), ("95th percentile", 0.95)):
        one = percentile(free, share)
        other = percentile(completed, share)
        print(f"  {name}: free {one:.1f} ms, completed {other:.1f} ms, ratio {other / one:.2f}")


def main(
    model: Path,
    sources: Path,
    references: Path,
    /,
    *,
    count: int = 2000,
    timed: int = 300,
    typed: int = 200,
    engines: tuple[str, ...] = ("ctranslate2", "torch"),
) -> None:
    """Print the figures of each engine."""
    pairs = list(zip(read_lines(str(sources)), read_lines(str(references)), strict=True))
    for name in engines:
        draw = random.Random(1)
        translator = transduce.load(model, engine=name, threads=1)
        print(translator.engine.name)
        texts = [pairs[i % len(pairs)][0] for i in range(count)]
        wanted = [pairs[i % len(pairs)][1] for i in range(count)]
        wanted[1::2] = [each.text for each in translator.translate(texts[1::2])]
        prefixes = [cut(text, draw) for text in wanted]
        outputs = translator.translate(texts, prefixes=prefixes)
        exact = sum(
            output.text.startswith(prefix) for output, prefix in zip(outputs, prefixes, strict=True)
        )
        print(f"  {exact:,} of {count:,} outputs begin with their prefix")
        score = sum(each.score for each in outputs) / count
        print(f"  mean score {score:.4f}")
        measure(translator, texts[:timed], prefixes[:timed])
        keys = sum(keystrokes(translator, *pair) for pair in pairs[:typed])
        characters = sum(len(reference) for _, reference in pairs[:typed])
        print(f"  {keys:,} keys for {characters:,} characters: {keys / characters:.1%}")


if __name__ == "__main__":
    run_script(main, __doc__)
