"""The effect of a glossary: the number of terms in the translations, BLEU, and decoding time.

    python benchmarks/glossary.py MODEL SOURCE REFERENCE [--terms 1] [--sentences 1000] [--beam-size 4] [--show 0]

The terms of a sentence are up to --terms random words of its reference that the translation without a glossary lacks;
they have three or more letters. As terms come from the reference, BLEU should rise; if it does not, they have damaged
the rest of the sentences. The time with terms includes both searches: without and with terms.
"""

import argparse
import random
import time

import sacrebleu
import torch

import transduce
from transduce.decoding.words import words
from transduce.text.plain import read_lines
from transduce.wings.terms.glossary import Glossary, contains


class OfSentences(Glossary):
    """A glossary with separate target terms for each text."""

    def __init__(self, of: dict[str, list[str]]):
        self.of = of

    def targets(self, text: str) -> list[str]:
        return self.of[text]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("source")
    parser.add_argument("reference")
    parser.add_argument("--terms", type=int, default=1)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--show", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    translator = transduce.load(arguments.model, {"decode.beam_size": arguments.beam_size}, engine="torch")
    pairs = dict(zip(read_lines(arguments.source), read_lines(arguments.reference), strict=True))
    sources, references = list(pairs)[: arguments.sentences], list(pairs.values())[: arguments.sentences]
    began = time.monotonic()
    free = [each.text for each in translator.translate(sources)]
    freely = time.monotonic() - began
    choice = random.Random(1)
    terms = {
        source: sample(choice, missing(reference, text), arguments.terms)
        for source, reference, text in zip(sources, references, free, strict=True)
    }
    began = time.monotonic()
    found = [each.text for each in translator._translate(sources, 1, 1, False, OfSentences(terms))]
    kept = [contains(text, term) for source, text in zip(sources, found, strict=True) for term in terms[source]]
    print(
        f"{len(sources)} sentences, {sum(map(bool, terms.values()))} of them with terms, {len(kept)} terms; "
        f"{sum(kept)} are in the translations; "
        f"BLEU {bleu(free, references):.1f} freely, {bleu(found, references):.1f} with terms; "
        f"{freely:.1f} s freely, {time.monotonic() - began:.1f} s with terms"
    )
    for source, before, after in list(zip(sources, free, found, strict=True))[: arguments.show]:
        print(f"\n{source}\n{before}\n{after}  {terms[source]}\n{pairs[source]}")


def missing(reference: str, text: str) -> list[str]:
    """The words of the reference that the translation lacks."""
    found = dict.fromkeys(reference[begin:end] for begin, end in words(reference, (), inside=""))
    return [word for word in found if word.isalpha() and len(word) > 2 and not contains(text, word)]


def sample(choice: random.Random, of: list[str], most: int) -> list[str]:
    return choice.sample(of, min(most, len(of)))


def bleu(texts: list[str], references: list[str]) -> float:
    return sacrebleu.corpus_bleu(texts, [references]).score


if __name__ == "__main__":
    main()
