"""The vocabularies of Marian models in Hugging Face's format.

Marian starts decoding with its padding piece, so this piece becomes both PAD and BOS in our vocabulary.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from transduce.config.schema import BOS, EOS, PAD
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.tokens.imported_vocabulary import ImportedVocabulary, is_code, language_of
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.export import marian
from transduce.wings.pretrained.reading import ANOTHER_COPY, read_json

SPECIAL_PIECES = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}  # by default


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
    tags = [language_of(piece) for piece in sources.pieces if is_code(piece)]
    if tags and not source and not target and (names := described.get(marian.DIRECTIONS)):
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise UserError(
                f"{marian.TOKENIZER_FILE}: {marian.DIRECTIONS} is not a list of texts.",
                "Name the languages.",
                "data.source",
                "data.target",
            )
        return list(map(Direction.parse, names))
    named = source.split(",") if source else [str(described.get("source_lang") or "src")]
    pairs = [(one.replace("-", "_"), tag.replace("-", "_")) for one in named for tag in tags]
    wanted = target.replace("-", "_").split(",") if target else [tag for _, tag in pairs]
    for code in wanted:
        if tags and code not in {tag for _, tag in pairs}:
            raise UserError(
                f"The model has no target language '{code}'. It has {', '.join(tags)}.",
                "Choose one of them.",
                "data.target",
            )
    directions = [Direction(one, tag) for one, tag in pairs if tag in wanted and tag != one]
    if tags and not directions:
        raise UserError(
            f"The source language '{','.join(named)}' is the only target language.",
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
    sources = _read_vocabulary(folder / marian.VOCABULARY_FILE, names)
    file = folder / marian.TARGET_VOCABULARY_FILE
    shared = config.get("share_encoder_decoder_embeddings", True)
    targets = _read_vocabulary(file, names) if not shared and file.exists() else sources
    pad, eos, unk = (targets[name] for name in names)
    start = config.get("decoder_start_token_id", pad)
    if type(start) is not int or start < 0:
        raise UserError(
            f"{folder / marian.CONFIG_FILE}: decoder_start_token_id is {start}; expected a token id."
        )
    for name, token in (("eos_token_id", eos), ("pad_token_id", pad)):
        if config.get(name, token) != token:
            raise UserError(
                f"{folder / marian.CONFIG_FILE}: {name} is {config[name]}, but {token} in the vocabulary."
            )
    target = _vocabulary(targets, [pad, start, eos, unk])
    if shared:
        return target, None
    pad, eos, unk = (sources[name] for name in names)
    return target, _vocabulary(sources, [pad, sources.get(target.pieces[BOS], pad), eos, unk])


def _read_vocabulary(file: Path, special: Iterable[str]) -> dict[str, int]:
    """Read the id of each piece; raises UserError unless all ids are unique and all special pieces are present."""
    vocabulary = read_json(file)
    ids = list(vocabulary.values())
    if any(type(token) is not int or token < 0 for token in ids) or len({*ids}) < len(ids):
        raise UserError(
            f"{file}: two pieces share an id, or an id is not a whole number.",
            ANOTHER_COPY,
        )
    for name in special:
        if name not in vocabulary:
            raise UserError(f"{file}: the piece {name} is missing.", ANOTHER_COPY)
    return vocabulary


def _vocabulary(vocabulary: Mapping[str, int], special: Sequence[int]) -> Vocabulary:
    """Our vocabulary, with the special pieces before the other pieces."""
    pieces = {token: piece for piece, token in vocabulary.items()}
    others = sorted(pieces.keys() - {*special})
    rows = [*special, *others]
    first = [pieces.get(token, "<s>") for token in special]
    if rows[BOS] in (rows[PAD], rows[EOS]):
        first[BOS] = "<s>"
        while first[BOS] in vocabulary:
            first[BOS] = f"<{first[BOS]}>"
    return Vocabulary([*first, *(pieces[token] for token in others)], rows)


def tokenizer_of(folder: Path, target: Vocabulary, source: Vocabulary | None) -> Tokenizer:
    sides = ((marian.TARGET_MODEL, target), (marian.SOURCE_MODEL, source or target))
    try:
        of_target, of_source = (
            ImportedVocabulary((folder / name).read_bytes(), side.pieces) for name, side in sides
        )
        return Tokenizer(of_target, of_source)
    except OSError as error:
        raise UserError(
            f"{error.filename} can't be read: {error.strerror}.", ANOTHER_COPY
        ) from None
    except ValueError as error:
        raise UserError(
            f"The vocabulary of {folder} can't be used: {error}.", ANOTHER_COPY
        ) from None
