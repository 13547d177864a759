"""Translates a test set in capitals, in title case, without final stops and with a typing error in each sentence.

    python benchmarks/noise.py MODEL test.en test.de [--seed 1]

For each form of the source it prints chrF of lower-cased text, and its share of the chrF of the unchanged source. The
references stay as they are. data.augment contains the forms with a star; decode.capitals is for capitals and title
case.
"""

import random
import re
from pathlib import Path

from measuring import run_script
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

import transduce
from transduce.augmentation import texts as augment
from transduce.text.plain import read_lines

STOP = re.compile(r"[.!?…]+$")


def main(model: Path, source: Path, target: Path, *, seed: int = 1) -> None:
    """Print a line for each form of the source."""
    sources, references = (list(read_lines(str(file))) for file in (source, target))
    draw = random.Random(seed)
    augment.MAX_TYPOS = 1
    forms = {
        "unchanged": sources,
        "capitals": [source.upper() for source in sources],
        "title case": [source.title() for source in sources],
        "lower case *": [source.lower() for source in sources],
        "no final stop": [STOP.sub("", source) for source in sources],
        "a typing error *": [augment.misspell(source, draw) for source in sources],
    }
    translator = transduce.load(model)
    clean = 0.0
    lower = [reference.lower() for reference in references]
    for name, texts in forms.items():
        found = [translation.text for translation in translator.translate(texts)]
        chrf = CHRF().corpus_score([text.lower() for text in found], [lower]).score
        clean = clean or chrf
        bleu = BLEU().corpus_score(found, [references]).score
        print(f"{name:<17} chrF {chrf:.2f} ({chrf / clean:.1%} of unchanged)  BLEU {bleu:.2f}")


if __name__ == "__main__":
    run_script(main, __doc__)
