"""Makes the batches of an update from the pairs that its plan names."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch

from transduce.config.schema import RunConfig
from transduce.model.packing import pack
from transduce.model.seq2seq import Batch, Seq2Seq, make_batch
from transduce.system.errors import UserError
from transduce.tokens.batching import Indices
from transduce.tokens.mixture import Mixture

Item = TypeVar("Item")


def budget(config: RunConfig, accumulate: int = 0) -> int:
    """The tokens on each side of a micro-batch, for `accumulate` or train.accumulate of them in an update."""
    return -(-config.data.max_tokens // (accumulate or config.train.accumulate))


def assemble(
    data: Mixture, indices: Indices, config: RunConfig, device: torch.device, tokens: int
) -> Batch:
    """Make a micro-batch for up to `tokens` tokens on each side: with data.pack, of packed rows."""
    width = config.data.pack
    make = partial(pack, width=width, rows=tokens // width) if width else make_batch
    return make(data.sources(indices), data.targets(indices)).to(device)


def ahead(items: Iterator[Item], count: int) -> Iterator[Item]:
    """Yield endless `items`, while a thread makes the next `count`. 0: no thread."""
    if not count:
        yield from items
        return
    with ThreadPoolExecutor(1) as thread:
        waiting = deque(thread.submit(next, items) for _ in range(count))
        while True:
            waiting.append(thread.submit(next, items))
            yield waiting.popleft().result()


def check_packing(model: Seq2Seq, config: RunConfig, tokens: int, longest: int) -> None:
    """Raise UserError if data.pack is set for a training that can't pack its sentences, of up to `longest` tokens."""
    width = config.data.pack
    if 0 < width < longest:
        raise UserError(
            f"A sentence of {longest} tokens does not fit into a row of {width} tokens.",
            "Raise data.pack, or lower data.max_length.",
        )
    if width and (not model.packs or config.train.risk_steps):
        raise UserError(
            "Sentences can't be packed into rows for minimum-risk training, rotary positions, tags of target "
            "languages, and families other than the Transformer.",
            "Set data.pack=0.",
        )
    if width > tokens:
        raise UserError(
            f"A row of {width:,} tokens (data.pack) does not fit into a micro-batch of {tokens:,} tokens.",
            "Lower data.pack, or raise data.max_tokens.",
        )
