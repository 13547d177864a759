"""The sentences on which two engines are compared: held out from the model's training."""

from itertools import islice
from pathlib import Path

from transduce import model_folder
from transduce.preparation.prepared import VALID_FILE
from transduce.text.pairs import Origin, Pair, read_pairs

PHRASEBOOK = "the phrasebook"
SENTENCES = Path(__file__).with_suffix(".tsv")  # 1,000 pairs, English and German: sentences(1000, seed=1) of the demo


def held_out(folder: Path, count: int) -> list[Pair]:
    """Pairs that a model's training held out; where they are gone, pairs of the phrasebook."""
    file = folder / model_folder.DATA / VALID_FILE
    if file.is_file() and file.stat().st_size:
        return list(islice(read_pairs([str(file)]), count))
    return phrases(count)


def phrases(count: int) -> list[Pair]:
    """Up to 1,000 pairs of the phrasebook, English to German, always the same."""
    return [
        pair._replace(origin=Origin(PHRASEBOOK, pair.origin.line))
        for pair in islice(read_pairs([str(SENTENCES)]), count)
    ]
