"""Glossary terms that a model inflects (data.terms), beside free translation and constrained search.

    python benchmarks/terms.py MODEL --train train.en train.de --test test.en test.de [--sentences 0] [--beam-size 4]
        [--engine torch]

The terms come from the word alignments of the training pairs: a word of a test source and the dictionary form of a word
of its reference are a term if they were aligned MIN_ALIGNED times in training. Each sentence gets at most MAX_TERMS
terms, drawn at random, as its own glossary, and is translated alone. A term is present if a word of the translation
has the same dictionary form (simplemma). Times are CPU seconds on one thread.
"""

import time
from collections import Counter
from pathlib import Path
from random import Random

import sacrebleu
import torch
from measuring import run_script

import transduce
from transduce.text.plain import read_lines
from transduce.wings.terms.glossary import spans_of
from transduce.wings.terms.lemmas import Lemmas
from transduce.wings.terms.lexicon import Lexicon, Words, words_in

MIN_ALIGNED = 5
MAX_TERMS = 3


def main(
    model: Path,
    *,
    train: tuple[str, str],
    test: tuple[str, str],
    sentences: int = 0,
    beam_size: int = 4,
    engine: str = "torch",
    show: int = 0,
) -> None:
    """Translate test sentences freely, with terms to inflect, and with constrained search."""
    torch.set_num_threads(1)
    options = {"decode.beam_size": beam_size}
    translator = transduce.load(model, options, engine=engine, threads=1)
    direction = translator.require_direction()
    both = [Lemmas(code) for code in direction]
    cases = list(_cases(train, test, both))[: sentences or None]
    terms = sum(len(glossary) for *_, glossary in cases)
    print(f"{len(cases)} sentences with {terms} terms; {translator.engine.name}, beam {beam_size}")
    references = [reference for _, reference, _ in cases]
    base = 0.0
    for name in ("free", "terms", "constrained"):
        began = time.process_time()
        found = []
        for text, _, glossary in cases:
            its = {} if name == "free" else glossary
            found += translator.translate([text], glossary=its, glossary_exact=name != "terms")
        seconds = time.process_time() - began
        base = base or seconds
        present = 0
        states = Counter(term.state for each in found for term in each.terms)
        for (text, reference, glossary), each in zip(cases, found, strict=True):
            forms = {both[1].of(each.text[slice(*span)]).casefold() for span in spans_of(each.text)}
            for source, target in glossary.items():
                is_present = target.casefold() in forms
                present += is_present
                if not is_present and name == "terms" and show:
                    show -= 1
                    print(f"{source} → {target}\n  {text}\n  {each.text}\n  {reference}")
        bleu = sacrebleu.corpus_bleu([each.text for each in found], [references]).score
        print(
            f"{name}: {present / terms:.1%} of the terms present, BLEU {bleu:.2f}, "
            f"{seconds:.1f} s ({seconds / base:.2f} times the free translation), {dict(states)}"
        )


def _cases(
    train: tuple[str, str], test: tuple[str, str], lemmas: list[Lemmas]
) -> list[tuple[str, str, dict[str, str]]]:
    """The test pairs with terms, and their terms."""
    aligned = Counter[tuple[str, str]]()
    pairs = _words(train, lemmas)
    lexicon = Lexicon(pairs)
    for source, target in pairs:
        aligned.update((source[i].lemma, target[j].lemma) for i, j in lexicon.align(source, target))
    cases = []
    texts = list(zip(*map(read_lines, test), strict=True))
    for (text, reference), (source, target) in zip(texts, _words(test, lemmas), strict=True):
        terms = [
            (text[slice(*source[i].span)], target[j].lemma)
            for i, j in lexicon.align(source, target)
            if aligned[source[i].lemma, target[j].lemma] >= MIN_ALIGNED
        ]
        chosen = Random(text).sample(terms, min(MAX_TERMS, len(terms)))
        if chosen:
            cases.append((text, reference, dict(chosen)))
    return cases


def _words(files: tuple[str, str], lemmas: list[Lemmas]) -> list[tuple[Words, Words]]:
    sides = [
        [words_in(line, its) for line in read_lines(file)]
        for file, its in zip(files, lemmas, strict=True)
    ]
    return list(zip(*sides, strict=True))


if __name__ == "__main__":
    run_script(main, __doc__)
