"""Counts loops in the translations of a model, and how many of them `transduce` flags.

    python benchmarks/loops.py MODEL test.en

Use a model that was trained for a few minutes only. Two hundred of the sentences are also repeated three and five
times. Without the second search for loops, an output is called a loop here if a word occurs three times in a row, or a
group of two to four words three times. If the source is repeated, an output of groups that are at least half as long
as the sentence is not a loop.
"""

from collections.abc import Sequence
from pathlib import Path

from measuring import run_script

import transduce
from transduce.text.plain import read_lines

REPEATED, TIMES = 200, (3, 5)


def main(model: Path, source: Path) -> None:
    """Print the counts for the sentences, and for repeated sentences."""
    lines = list(read_lines(str(source)))
    once = transduce.load(model, {"decode.retry_loops": False})
    translator = transduce.load(model)
    for times in (1, *TIMES):
        sentences = lines if times == 1 else lines[:REPEATED]
        texts = [" ".join([sentence] * times) for sentence in sentences]
        outputs = [translation.text for translation in once.translate(texts)]
        translations = translator.translate(texts)
        flagged = ["loop" in translation.flags for translation in translations]
        least = [1 if times == 1 else (len(sentence.split()) + 1) // 2 for sentence in sentences]
        loops = [
            repeats(text.split(), words, times) for text, words in zip(outputs, least, strict=True)
        ]
        left = [
            repeats(each.text.split(), words, times)
            for each, words in zip(translations, least, strict=True)
        ]
        found = sum(a and b for a, b in zip(loops, flagged, strict=True))
        print(
            f"sources {times} times: {len(texts)}, loops {sum(loops)}, flagged {found}; "
            f"others flagged {sum(flagged) - found}; loops after the second search {sum(left)}"
        )
        for source, text, is_loop, is_flagged in zip(texts, outputs, loops, flagged, strict=True):
            if is_loop and not is_flagged:
                print(f"  not flagged: {source} | {text}")


def repeats(words: Sequence[str], least: int, times: int) -> bool:
    """Whether a group of one to four words occurs three times in a row, and more often than a repeated source does."""
    for size in range(1, 5):
        needed = 3 if times == 1 or size < least else times + 2
        for start in range(len(words) - size * needed + 1):
            if words[start : start + size * needed] == words[start : start + size] * needed:
                return True
    return False


if __name__ == "__main__":
    run_script(main, __doc__)
