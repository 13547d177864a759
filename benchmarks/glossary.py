"""Where the terms of a glossary end up in translations.

    python benchmarks/glossary.py MODEL SOURCE REFERENCE TERMS [--sentences 2000] [--beam-size 4] [--show 0]

Each line of TERMS has a source term, a TAB, a target term that the model would hardly choose itself, a TAB, and a
regular expression for the usual translations: dog, Köter, Hund. Only sentences with a source term are translated. In a
translation, the term is placed (it is there, and no usual translation), added (beside a usual translation), or missing.
The time with terms includes both searches: without and with terms.
"""

import re
import time
from collections import Counter
from pathlib import Path

import sacrebleu
import torch
from measuring import run_script

import transduce
from transduce.text.plain import read_lines
from transduce.wings.terms.glossary import Glossary, contains


def main(
    model: Path,
    source: str,
    reference: str,
    terms: str,
    *,
    sentences: int = 2000,
    beam_size: int = 4,
    show: int = 0,
) -> None:
    """Translate without and with the terms, and count what became of the terms."""
    torch.set_num_threads(1)
    rows = [line.split("\t") for line in read_lines(terms)]
    asked = [transduce.Term(*row[:2]) for row in rows]
    usual = {row[1]: re.compile(row[2]) for row in rows}
    translator = transduce.load(model, {"decode.beam_size": beam_size}, engine="torch")
    glossary = Glossary(asked)
    pairs = dict(zip(read_lines(source), read_lines(reference), strict=True))
    sources = [text for text in pairs if glossary.matches(text)][:sentences]
    references = [pairs[text] for text in sources]
    began = time.monotonic()
    free = [each.text for each in translator.translate(sources)]
    freely = time.monotonic() - began
    began = time.monotonic()
    found = translator.translate(sources, glossary=asked)
    seconds = time.monotonic() - began
    counts = Counter[str]()
    for text, before, after in zip(sources, free, found, strict=True):
        for target in {match.target for match in glossary.matches(text)}:
            outcome = "placed" if contains(after.text, target) else "missing"
            if outcome == "placed" and usual[target].search(after.text.replace(target, "")):
                outcome = "added"
            flagged = " with a flag" if "term" in after.flags else ""
            counts[outcome + flagged] += 1
            if counts[outcome + flagged] <= show:
                print(f"{outcome}{flagged}: {target}\n  {text}\n  {before}\n  {after.text}")
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
    run_script(main, __doc__)
