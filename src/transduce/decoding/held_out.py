"""The sentences that two engines are compared on: what a model's training held out."""

from itertools import islice
from pathlib import Path

from transduce import bundle
from transduce.corpus.pairs import Origin, Pair, read_pairs
from transduce.corpus.phrasebook.sampling import sentences
from transduce.preparation import VALID

PHRASEBOOK = "the phrasebook"


def held_out(folder: Path, most: int) -> list[Pair]:
    """What the training of a model held out; where that is gone, sentences of the phrasebook, English to German."""
    file = folder / bundle.DATA / VALID
    if file.is_file() and file.stat().st_size:
        return list(islice(read_pairs([str(file)]), most))
    return phrases(most)


def phrases(count: int) -> list[Pair]:
    """Sentences of the phrasebook, always the same."""
    return [
        Pair(example.english, example.german, Origin(PHRASEBOOK, number))
        for number, example in enumerate(sentences(count, seed=1), start=1)
    ]
