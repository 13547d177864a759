"""Second pass over a part of a corpus: encode the pairs to train on."""

from collections.abc import Iterator, Sequence

import numpy as np

from transduce.preparation.staging import StagedPairs
from transduce.text.clean import TOO_LONG, Cleaning
from transduce.text.pairs import Origin
from transduce.tokens.store import Encoded
from transduce.tokens.tokenizer import Tokenizer


def encode_part(
    staged: StagedPairs, files: Sequence[str], tokenizer: Tokenizer, max_length: int, cleaning: Cleaning
) -> Iterator[Encoded]:
    """The pairs to train on as ids; those with too many tokens are left out and counted.

    files: of the whole corpus, as the store numbers them.
    """
    numbers = np.array([files.index(name) if name in files else 0 for name in staged.files], dtype=np.int32)
    for block in staged.blocks():
        sources, targets = tokenizer.pack_source(block.sources), tokenizer.pack_target(block.targets)
        is_long = np.maximum(sources.lengths, targets.lengths) > max_length
        for row in np.flatnonzero(is_long).tolist():
            cleaning.count(TOO_LONG, Origin(staged.files[block.files[row]], int(block.lines[row])))
        yield Encoded(sources, targets, numbers[block.files], block.lines).where(~is_long)
