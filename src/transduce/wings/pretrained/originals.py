"""Opens a multilingual model in transformers, to compare it with its import."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from transduce.config.schema import BOS, EOS, PAD, UNK
from transduce.system.errors import needing
from transduce.text.pairs import Pair
from transduce.wings.export.huggingface import in_batches
from transduce.wings.export.parity import Output, Runner
from transduce.wings.pretrained.families import SMALL_100
from transduce.wings.pretrained.original import Original


def open_original(folder: Path, imported: Original) -> Runner:
    """Open the original, which then predicts only pieces that the import kept.

    Its own tokenizer splits the texts, and ours adds the tags, for which the programs have different functions.
    """
    with needing("export", "The comparison"):
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, M2M100Tokenizer
        from transformers.utils import logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    # SMaLL-100's own tokenizer is a program in its folder, which is not run.
    opener = M2M100Tokenizer if imported.family is SMALL_100 else AutoTokenizer
    splitter = opener.from_pretrained(str(folder), local_files_only=True)
    network = AutoModelForSeq2SeqLM.from_pretrained(
        str(folder), local_files_only=True, torch_dtype=torch.float32
    ).eval()
    rows = imported.target_rows
    tokenizer = imported.tokenizer
    ours = {row: token for token, row in enumerate(rows) if token not in (PAD, BOS, UNK)}
    never = sorted({*range(network.config.vocab_size)} - ours.keys())

    ids = {piece: token for token, piece in enumerate(tokenizer.source.all_pieces())}

    def translate(
        pairs: Sequence[Pair], tags: Sequence[Sequence[str]], max_tokens: int
    ) -> list[Output]:
        sources = []
        for pair, its in zip(pairs, tags, strict=True):
            before = [rows[ids[tag]] for tag in its]
            text = splitter(pair.source, add_special_tokens=False).input_ids
            if not ours.keys() >= {*text}:  # pieces that the import left out
                [own] = tokenizer.encode_source([pair.source])
                text = [rows[token] for token in own]
            sources.append([*before, *text, rows[EOS]])

        def generate(batch: Sequence[int]) -> list[list[int]]:
            return _generate(network, [sources[i] for i in batch], imported, never, max_tokens)

        def pieces(row: list[int]) -> list[str]:
            return tokenizer.target.pieces([ours[each] for each in row])

        return in_batches([*map(len, sources)], generate, splitter, pieces)

    return Runner(translate, "float32")


@torch.inference_mode()
def _generate(
    network: Any, sources: list[list[int]], imported: Original, never: list[int], max_tokens: int
) -> list[list[int]]:
    """Search greedily and return the ids of each translation, without the tag and the end."""
    tags = int(imported.config.model.target_tag)
    longest = max(map(len, sources))
    start = imported.target_rows[BOS]
    end = imported.target_rows[EOS]
    padding = network.config.pad_token_id
    padded = [[*row[tags:], *[padding] * (longest - len(row))] for row in sources]
    inputs = torch.tensor(padded)
    generated = network.generate(
        input_ids=inputs,
        attention_mask=(inputs != padding).long(),
        decoder_input_ids=torch.tensor([[start, *row[:tags]] for row in sources]),
        suppress_tokens=never,
        forced_bos_token_id=None,
        forced_eos_token_id=None,
        num_beams=1,
        do_sample=False,
        max_new_tokens=max_tokens + 1,
    )
    found = [row[1 + tags :] for row in generated.tolist()]
    return [row[: row.index(end)] if end in row else row for row in found]
