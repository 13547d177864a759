"""The vocabularies of Marian models in Hugging Face's format.

Marian starts decoding with its padding piece, so this piece becomes both PAD and BOS in our vocabulary.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transduce.config.schema import BOS, EOS, PAD
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.tokens.imported_vocabulary import language_of
from transduce.tokens.vocabulary import is_tag
from transduce.wings.export import marian
from transduce.wings.pretrained.reading import checked_ids, read_json

SPECIAL_PIECES = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}  # by default
SPECIAL_NAMES = (
    "<pad>",
    "<s>",
    "</s>",
    "<unk>",
)  # of PAD, BOS, EOS and UNK, where the model has none


class Vocabulary(NamedTuple):
    """The pieces in the order of our ids, and each piece's row in Marian's embedding matrix."""

    pieces: list[str]
    rows: list[int]


def directions_of(
    described: Mapping[str, Any], sources: Vocabulary, source: str, target: str
) -> list[Direction]:
    """The directions of a multilingual model, which has a token such as >>de<< for each target; empty for other models.

    `source` and `target` are codes that the user named, separated by commas; empty: those in `described`.
    """
    tags = [language_of(piece) for piece in sources.pieces if is_tag(piece)]
    if not tags:
        return []
    if not source and not target and (names := described.get(marian.DIRECTIONS)):
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise UserError(
                f"{marian.TOKENIZER_FILE}: {marian.DIRECTIONS} is not a list of texts.",
                "Name the languages.",
                "data.source",
                "data.target",
            )
        return list(map(Direction.parse, names))
    named = source or str(described.get("source_lang") or "src")
    known = [tag.replace("-", "_") for tag in tags]
    wanted = target.replace("-", "_").split(",") if target else known
    for code in wanted:
        if code not in known:
            raise UserError(
                f"The model has no target language '{code}'. It has {', '.join(tags)}.",
                "Choose one of them.",
                "data.target",
            )
    directions = [
        Direction(one, tag)
        for one in named.replace("-", "_").split(",")
        for tag in known
        if tag in wanted and tag != one
    ]
    if not directions:
        raise UserError(
            f"The source language '{named}' is the only target language.",
            "Name another.",
            "data.target" if len(tags) > 1 else "data.source",
        )
    return directions


def vocabularies(
    folder: Path, config: Mapping[str, Any], described: Mapping[str, Any]
) -> tuple[Vocabulary, Vocabulary | None]:
    """The target vocabulary, and the source vocabulary or None if both languages share one vocabulary."""
    # Strings or objects.
    values = [described.get(token) or piece for token, piece in SPECIAL_PIECES.items()]
    names = [str(value.get("content") if isinstance(value, dict) else value) for value in values]
    file = folder / marian.VOCABULARY_FILE
    sources = checked_ids(file, read_json(file), names)
    shared = config.get("share_encoder_decoder_embeddings", True)
    file = folder / marian.TARGET_VOCABULARY_FILE
    has_own = not shared and file.exists()
    targets = checked_ids(file, read_json(file), names) if has_own else sources
    pad, eos, unk = (targets[name] for name in names)
    start = config.get("decoder_start_token_id", pad)
    for name, token in (("eos_token_id", eos), ("pad_token_id", pad)):
        if config.get(name, token) != token:
            raise UserError(
                f"{folder / marian.CONFIG_FILE}: {name} is {config[name]}, but {token} in the vocabulary."
            )
    target = vocabulary_of(targets, [pad, start, eos, unk])
    if shared:
        return target, None
    pad, eos, unk = (sources[name] for name in names)
    return target, vocabulary_of(sources, [pad, sources.get(target.pieces[BOS], pad), eos, unk])


def vocabulary_of(ids: Mapping[str, int], special: Sequence[int]) -> Vocabulary:
    """Our vocabulary, with the special pieces before the other pieces."""
    pieces = {token: piece for piece, token in ids.items()}
    others = sorted(pieces.keys() - {*special})
    first = [pieces.get(token, name) for token, name in zip(special, SPECIAL_NAMES, strict=True)]
    if special[BOS] in (special[PAD], special[EOS]):
        first[BOS] = SPECIAL_NAMES[BOS]
        while first[BOS] in ids:
            first[BOS] = f"<{first[BOS]}>"
    return Vocabulary([*first, *(pieces[token] for token in others)], [*special, *others])
