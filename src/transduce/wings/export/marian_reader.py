"""Reads a Marian model in Hugging Face's format, but never opens pickles.

Marian starts decoding with its padding piece, so this piece becomes both PAD and BOS in our vocabulary.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from transduce.config.parse import configure
from transduce.config.schema import BOS, EOS, PAD, RunConfig
from transduce.model.embedding import sinusoids
from transduce.model.transformer import Transformer
from transduce.system.console import count
from transduce.system.errors import Hint, UserError
from transduce.text.languages import Direction
from transduce.tokens.imported_vocabulary import ImportedVocabulary, is_code, language_of
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.export import marian

ANOTHER_COPY = Hint("Use another copy.")  # the hint for a damaged file
PICKLED_WEIGHTS = "pytorch_model.bin"
# Entries of config.json and their supported values, the first of which is Marian's default except for NEVER_DEFAULT.
SUPPORTED_VALUES: dict[str, tuple[object, ...]] = {
    **{name: (value,) for name, value in marian.FIXED_VALUES.items()},
    "add_final_layer_norm": (False,),
    "quantization_config": (None,),
    "activation_function": tuple(marian.MARIAN_ACTIVATIONS),
    "share_encoder_decoder_embeddings": (True, False),
}
# Entries whose absence means another value than the one that is supported.
NEVER_DEFAULT = ("model_type", "scale_embedding", "activation_function")
SPECIAL_PIECES = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}  # by default
POSITION_TABLES = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
TARGET_EMBEDDINGS = (marian.TARGET_EMBEDDING, marian.OUTPUT_PROJECTION)
SHARED_EMBEDDINGS = (marian.SHARED_EMBEDDING, *TARGET_EMBEDDINGS, marian.SOURCE_EMBEDDING)
MIN_BIAS = -30.0  # finite stand-in for -inf, which label smoothing would turn into an infinite loss


class Vocabulary(NamedTuple):
    """The pieces in the order of our ids, and each piece's row in Marian's embedding matrix."""

    pieces: list[str]
    rows: list[int]


class Marian(NamedTuple):
    """The configuration, tokenizer and weights of a Marian model in our format."""

    config: RunConfig
    tokenizer: Tokenizer
    weights: dict[str, Tensor]
    target_rows: list[int]  # Marian's id for each of our target ids


def read(folder: Path, source: str, target: str) -> Marian:
    """Read a Marian model from a folder; empty language codes are read from tokenizer_config.json.

    Raises UserError for missing or damaged files and for unsupported models.
    """
    config = _read_json(folder / marian.CONFIG_FILE)
    _check(folder / marian.CONFIG_FILE, config)
    described = (
        _read_json(folder / marian.TOKENIZER_FILE)
        if (folder / marian.TOKENIZER_FILE).exists()
        else {}
    )
    targets, sources = _vocabularies(folder, config, described)
    directions = _directions(described, sources or targets, source, target)
    run = configure(
        {
            **{f"model.{ours}": config[theirs] for theirs, ours in marian.SIZES.items()},
            "model.activation": marian.MARIAN_ACTIVATIONS[config["activation_function"]],
            "model.dropout": config.get("dropout", 0.1),
            "model.attention_dropout": config.get("attention_dropout", 0.0),
            "model.output_bias": True,
            "model.vocab_size": len(targets.pieces),
            "model.source_vocab_size": len(sources.pieces) if sources else 0,
            "data.source": directions[0].source
            if directions
            else source or described.get("source_lang") or "src",
            "data.target": directions[0].target
            if directions
            else target or described.get("target_lang") or "tgt",
            "data.directions": tuple(map(str, directions)),
            "data.joint": sources is None,
            "data.vocab_size": len(targets.pieces),
            "data.tokenizer": "unigram",
        }
    )
    return Marian(
        run,
        _tokenizer(folder, targets, sources),
        _weights(folder, run, targets, sources),
        targets.rows,
    )


def _directions(
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


def _check(file: Path, config: Mapping[str, Any]) -> None:
    """Raise UserError for a configuration that our model can't express."""
    for name, supported in SUPPORTED_VALUES.items():
        value = config.get(name, None if name in NEVER_DEFAULT else supported[0])
        if value not in supported:
            known = ", ".join(map(str, supported))
            raise UserError(f"{file}: {name} is {value}; only {known} can be imported.")
    for name in marian.SIZES:
        if type(config.get(name)) is not int:
            raise UserError(
                f"{file}: {name} is missing or not a whole number.",
                "Use another copy of the model.",
            )
    for name in ("attention_heads", "ffn_dim"):
        if config[f"encoder_{name}"] != config[f"decoder_{name}"]:
            raise UserError(
                f"{file}: encoder_{name} and decoder_{name} differ; they must be equal."
            )


def _vocabularies(
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
    vocabulary = _read_json(file)
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


def _tokenizer(folder: Path, target: Vocabulary, source: Vocabulary | None) -> Tokenizer:
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


def _weights(
    folder: Path, config: RunConfig, target: Vocabulary, source: Vocabulary | None
) -> dict[str, Tensor]:
    """Marian's weights in our format; raises UserError if weights are missing, unknown or of the wrong shape."""
    file = folder / marian.WEIGHTS_FILE
    theirs = _read_weights(folder)
    layers = list(marian.layers(config.model))
    with torch.device("meta"):
        own = Transformer(config.model).state_dict()
    _check_weights(
        file,
        theirs,
        {layer.theirs: own[layer.ours].shape for layer in layers},
        config.model.d_model,
    )
    embedding = _tied(file, theirs, TARGET_EMBEDDINGS if source else SHARED_EMBEDDINGS)
    embeddings = {"embedding.weight": (embedding, target)}
    if source is not None:
        embeddings["source_embedding.weight"] = (
            _tied(file, theirs, [marian.SOURCE_EMBEDDING]),
            source,
        )
    ours = {layer.ours: marian.to_ours(theirs[layer.theirs], layer.channels) for layer in layers}
    for name, (matrix, vocabulary) in embeddings.items():
        if (last := max(vocabulary.rows)) >= len(matrix):
            where = folder / marian.VOCABULARY_FILE
            raise UserError(
                f"{where} has the id {last}, but the embedding has {count(len(matrix), 'row')}.",
                ANOTHER_COPY,
            )
        ours[name] = marian.to_ours(matrix, 1)[vocabulary.rows]
    none = torch.zeros(1, len(embedding))
    bias = theirs.get(marian.OUTPUT_BIAS, none)
    if bias.shape != none.shape:
        raise UserError(
            f"{file}: {marian.OUTPUT_BIAS} has the shape {tuple(bias.shape)}, not {tuple(none.shape)}."
        )
    ours["output_bias"] = _output_bias(bias[0], target.rows)
    return {name: weight.contiguous() for name, weight in ours.items()}


def _output_bias(bias: Tensor, rows: list[int]) -> Tensor:
    """Marian's output bias in the order of our ids, with finite values."""
    ours = bias[rows].clone()
    for first, second in ((PAD, BOS), (BOS, EOS)):
        # One Marian piece became two of ours: allow only the second.
        if rows[first] == rows[second]:
            ours[first] = MIN_BIAS
    return ours.clamp(min=MIN_BIAS)


def _check_weights(
    file: Path, theirs: Mapping[str, Tensor], shapes: Mapping[str, Sequence[int]], width: int
) -> None:
    """Raise UserError for missing, unknown or misshapen weights, and for position vectors that are not sinusoids."""
    for name in sorted(shapes.keys() - theirs.keys()):
        raise UserError(f"{file}: the weight {name} is missing.", ANOTHER_COPY)
    tables = {*SHARED_EMBEDDINGS, *POSITION_TABLES}
    for name in sorted(theirs.keys() - shapes.keys() - tables - {marian.OUTPUT_BIAS}):
        raise UserError(
            f"{file}: the weight {name} has no counterpart in transduce; the model can't be imported."
        )
    expected = {name: (*theirs[name].shape[:1], width) for name in sorted(tables & theirs.keys())}
    for name, shape in {**shapes, **expected}.items():
        if theirs[name].shape != shape:
            sizes = [" x ".join(map(str, size)) for size in (theirs[name].shape, shape)]
            raise UserError(
                f"{file}: {name} is {sizes[0]}, but {sizes[1]} by {marian.CONFIG_FILE}.",
                ANOTHER_COPY,
            )
    for name in theirs.keys() & POSITION_TABLES:
        table = marian.to_ours(theirs[name], 1)
        if not torch.allclose(table, sinusoids(*table.shape), atol=1e-3):
            raise UserError(
                f"{file}: {name} is not a table of sinusoids; only sinusoidal positions can be imported."
            )


def _tied(file: Path, theirs: Mapping[str, Tensor], names: Sequence[str]) -> Tensor:
    """The matrix stored under at least one of `names`; raises UserError if it is missing or its copies differ."""
    known = [name for name in names if name in theirs]
    if not known:
        raise UserError(f"{file}: the weight {names[0]} is missing.", ANOTHER_COPY)
    for name in known[1:]:
        if not torch.equal(theirs[known[0]], theirs[name]):
            raise UserError(f"{file}: {known[0]} and {name} differ; they must be equal.")
    return theirs[known[0]]


def _read_weights(folder: Path) -> dict[str, Tensor]:
    file = folder / marian.WEIGHTS_FILE
    if not file.exists() and (folder / PICKLED_WEIGHTS).exists():
        program = (
            "from transformers import MarianMTModel as Model, MarianTokenizer as Tokenizer; "
            f"[kind.from_pretrained('{folder}').save_pretrained('NEW') for kind in (Model, Tokenizer)]"
        )
        raise UserError(
            f"{folder} holds {PICKLED_WEIGHTS}, a pickle, which can run any program and is never opened here.",
            f'If you trust the file, convert it to {marian.WEIGHTS_FILE} in a folder NEW: python -c "{program}"',
        )
    try:
        weights = load_file(file)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{file} can't be read: {error}.", ANOTHER_COPY) from None
    for name, weight in weights.items():
        if not weight.is_floating_point():
            raise UserError(
                f"{file}: {name} has the type {weight.dtype}; quantised weights can't be imported."
            )
    return {name: weight.float() for name, weight in weights.items()}


def _read_json(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_bytes())
    except OSError as error:
        raise UserError(
            f"{file} can't be read: {error.strerror}.",
            "Name a folder with a Marian model in Hugging Face's format.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} can't be read: {error}.", ANOTHER_COPY) from None
    if not isinstance(value, dict):
        raise UserError(f"{file} is damaged: expected a JSON object.", ANOTHER_COPY)
    return value
