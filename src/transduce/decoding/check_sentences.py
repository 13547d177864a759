"""The sentences that two engines are compared on: what a model's training held out."""

from itertools import islice
from pathlib import Path

from transduce import model_folder
from transduce.preparation.prepared import VALID
from transduce.text.pairs import Origin, Pair, read_pairs
from transduce.wings.demo.phrasebook.sampling import sentences

PHRASEBOOK = "the phrasebook"


def held_out(folder: Path, most: int) -> list[Pair]:
    """What the training of a model held out; where that is gone, sentences of the phrasebook, English to German."""
    file = folder / model_folder.DATA / VALID
    if file.is_file() and file.stat().st_size:
        return list(islice(read_pairs([str(file)]), most))
    return phrases(most)


def phrases(count: int) -> list[Pair]:
    """Sentences of the phrasebook, always the same."""
    return [
        Pair(example.english, example.german, Origin(PHRASEBOOK, number))
        for number, example in enumerate(sentences(count, seed=1), start=1)
    ]
