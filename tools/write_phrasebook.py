"""Write the examples that the package contains: `python tools/write_phrasebook.py`.

The package reads them in `wings/phrasebook/examples.py`. Each part is a compressed file. A line has the tree of the
English sentence, a TAB and the German sentence.
"""

import bz2
from collections.abc import Sequence
from pathlib import Path

from phrasebook import Example, split

FOLDER = Path(__file__).parents[1] / "src" / "transduce" / "wings" / "phrasebook"
TRAIN, VALID, TEST = 40_000, 300, 500  # examples
SEED = 1


def main() -> None:
    for part, text in texts().items():
        (FOLDER / f"{part}.tsv.bz2").write_bytes(bz2.compress(text.encode()))


def texts() -> dict[str, str]:
    """The text of each part; examples of valid and test have combinations of words that are not in train."""
    training, held_out = split(TRAIN, VALID + TEST, seed=SEED)
    return {
        "train": _lines(training),
        "valid": _lines(held_out[:VALID]),
        "test": _lines(held_out[VALID:]),
    }


def _lines(examples: Sequence[Example]) -> str:
    return "".join(f"{example.tree}\t{example.german}\n" for example in examples)


if __name__ == "__main__":
    main()
