"""Opens a multilingual model in transformers, to compare it with its import."""

from collections.abc import Sequence
from pathlib import Path

from transduce.config.schema import BOS, EOS, PAD, UNK
from transduce.text.pairs import Pair
from transduce.wings.export.huggingface import greedy, load
from transduce.wings.export.parity import Output, Runner
from transduce.wings.pretrained.families import SMALL_100
from transduce.wings.pretrained.original import Original


def open_original(folder: Path, imported: Original) -> Runner:
    """Open the original, which then predicts only pieces that the import kept.

    Its own tokenizer splits the texts, and ours adds the tags, for which the programs have different functions.
    """
    # SMaLL-100's own tokenizer is a program in its folder, which is not run.
    is_small = imported.family is SMALL_100
    network, splitter = load(folder, "M2M100Tokenizer" if is_small else "AutoTokenizer")
    rows = imported.target_rows
    tokenizer = imported.tokenizer
    ours = {row: token for token, row in enumerate(rows) if token not in (PAD, BOS, UNK)}
    never = sorted({*range(network.config.vocab_size)} - ours.keys())
    target_tags = int(imported.config.model.target_tag)

    def pieces(row: list[int]) -> list[str]:
        return tokenizer.target.pieces([ours[each] for each in row])

    def translate(
        pairs: Sequence[Pair], tags: Sequence[Sequence[str]], max_tokens: int
    ) -> list[Output]:
        sources = []
        for pair, its in zip(pairs, tags, strict=True):
            before = [rows[tokenizer.source.tags[tag]] for tag in its]
            text = splitter(pair.source, add_special_tokens=False).input_ids
            if not ours.keys() >= {*text}:  # pieces that the import left out
                [own] = tokenizer.encode_source([pair.source])
                text = [rows[token] for token in own]
            begun = [rows[BOS], *before[:target_tags]]
            sources.append(([*before[target_tags:], *text, rows[EOS]], begun))
        return greedy(network, sources, never, max_tokens, splitter, pieces)

    return Runner(translate, "float32")
