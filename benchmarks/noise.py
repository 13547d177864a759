"""Translates a test set in capitals, in title case, without final stops and with a typing error in each sentence.

    python benchmarks/noise.py MODEL test.en test.de [--seed 1]

For each form of the source it prints chrF of lower-cased text, and its share of the chrF of the unchanged source. The
references stay as they are. data.augment contains the forms with a star; decode.capitals is for capitals and title
case.
"""

import argparse
import random
import re
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

import transduce
from transduce.augmentation import texts as augment

STOP = re.compile(r"[.!?…]+$")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sources, references = (
        file.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        for file in (arguments.source, arguments.target)
    )
    draw = random.Random(arguments.seed)
    augment.MAX_TYPOS = 1
    forms = {
        "unchanged": sources,
        "capitals": [source.upper() for source in sources],
        "title case": [source.title() for source in sources],
        "lower case *": [source.lower() for source in sources],
        "no final stop": [STOP.sub("", source) for source in sources],
        "a typing error *": [augment.misspell(source, draw) for source in sources],
    }
    translator = transduce.load(arguments.model)
    clean = 0.0
    lower = [reference.lower() for reference in references]
    for name, texts in forms.items():
        found = [translation.text for translation in translator.translate(texts)]
        chrf = CHRF().corpus_score([text.lower() for text in found], [lower]).score
        clean = clean or chrf
        bleu = BLEU().corpus_score(found, [references]).score
        print(f"{name:<17} chrF {chrf:.2f} ({chrf / clean:.1%} of unchanged)  BLEU {bleu:.2f}")


if __name__ == "__main__":
    main()
