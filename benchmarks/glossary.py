"""Where the terms of a glossary end up in translations.

    python benchmarks/glossary.py MODEL SOURCE REFERENCE TERMS [--sentences 2000] [--beam-size 4] [--show 0]

Each line of TERMS has a source term, a TAB, a target term that the model would hardly choose itself, a TAB, and a
regular expression for the usual translations: dog, Köter, Hund. Only sentences with a source term are translated. In a
translation, the term is placed (it is there, and no usual translation), added (beside a usual translation), or missing.
The time with terms includes both searches: without and with terms.
"""

import argparse
import re
import time
from collections import Counter

import sacrebleu
import torch

import transduce
from transduce.text.plain import read_lines
from transduce.wings.terms.glossary import Glossary, contains


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("source")
    parser.add_argument("reference")
    parser.add_argument("terms")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--show", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = [line.split("\t") for line in read_lines(arguments.terms)]
    terms = [transduce.Term(*row[:2]) for row in rows]
    usual = {row[1]: re.compile(row[2]) for row in rows}
    translator = transduce.load(
        arguments.model, {"decode.beam_size": arguments.beam_size}, engine="torch"
    )
    glossary = Glossary(terms)
    pairs = dict(zip(read_lines(arguments.source), read_lines(arguments.reference), strict=True))
    sources = [source for source in pairs if glossary.targets(source)][: arguments.sentences]
    references = [pairs[source] for source in sources]
    began = time.monotonic()
    free = [each.text for each in translator.translate(sources)]
    freely = time.monotonic() - began
    began = time.monotonic()
    found = translator.translate(sources, glossary=terms)
    seconds = time.monotonic() - began
    counts = Counter[str]()
    for source, before, after in zip(sources, free, found, strict=True):
        for target in glossary.targets(source):
            outcome = "placed" if contains(after.text, target) else "missing"
            if outcome == "placed" and usual[target].search(after.text.replace(target, "")):
                outcome = "added"
            flagged = " with a flag" if "term" in after.flags else ""
            counts[outcome + flagged] += 1
            if counts[outcome + flagged] <= arguments.show:
                print(f"{outcome}{flagged}: {target}\n  {source}\n  {before}\n  {after.text}")
    print(
        f"{len(sources)} sentences; terms: {', '.join(f'{count} {name}' for name, count in counts.most_common())}"
    )
    scores = [bleu(texts, references) for texts in (free, [each.text for each in found])]
    print(
        f"BLEU {scores[0]:.1f} freely, {scores[1]:.1f} with terms; {freely:.1f} s freely, {seconds:.1f} s with terms"
    )


def bleu(texts: list[str], references: list[str]) -> float:
    return sacrebleu.corpus_bleu(texts, [references]).score


if __name__ == "__main__":
    main()
