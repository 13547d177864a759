"""Training pairs with the translation of a similar source (Bulté and Tezcan, 2019): data.translation_memory."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from transduce.system.console import count, log
from transduce.system.machine import cores
from transduce.text.languages import Direction
from transduce.text.pairs import chunks
from transduce.tokens.store import Encoded, StoreView
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import pack
from transduce.wings.memories.database import Database, Unit

LOOKED_UP_TOGETHER = 200  # pairs
MAX_WAITING = 100  # such blocks in memory


def pairs_with_matches(
    pairs: StoreView, tokenizer: Tokenizer, direction: Direction
) -> Iterator[Encoded]:
    """Copies of the pairs that have a similar one: behind the source stand the mark and the other translation.

    No source gets a translation of itself.
    """
    name = str(direction)
    log(f"Looking for similar sources among {count(pairs.pairs, 'pair')} {name} …")
    with (
        TemporaryDirectory() as folder,
        closing(Database(Path(folder) / "pairs.sqlite")) as memory,
        ThreadPoolExecutor(cores()) as threads,
    ):
        memory.add((unit for block in pairs.blocks() for unit in _units(block, tokenizer)), name)

        def copied(block: Encoded) -> Encoded:
            sources = tokenizer.source.decode(block.source.lists())
            return _copied(block, memory.similar(sources, name), tokenizer)

        for some in chunks(pairs.blocks(LOOKED_UP_TOGETHER), MAX_WAITING):
            yield from threads.map(copied, some)


def _units(block: Encoded, tokenizer: Tokenizer) -> Iterator[Unit]:
    sources = tokenizer.source.decode(block.source.lists())
    return map(Unit, sources, tokenizer.target.decode(block.target.lists()))


def _copied(block: Encoded, translations: list[str], tokenizer: Tokenizer) -> Encoded:
    """The pairs of a block for which there is a translation of a similar source."""
    chosen = block.where(np.array([bool(each) for each in translations]))
    behind = tokenizer.source.encode(list(filter(None, translations))).lists()
    mark = tokenizer.source.match_mark
    rows = zip(chosen.source.lists(), behind, strict=True)
    return chosen._replace(source=pack([[*source, mark, *match] for source, match in rows]))
