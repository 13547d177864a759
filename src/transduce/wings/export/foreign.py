"""A Marian model in Hugging Face's form, read: its shape, its vocabularies, its weights in our places.

PAD, BOS, EOS and UNK come first in our vocabularies. Marian begins to decode with what it pads with, so that piece
becomes two of ours. Nothing is unpickled.
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
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.export import marian

PICKLED = "pytorch_model.bin"
MUST_BE = {  # what our model is; what a configuration doesn't say is as Marian's is
    "model_type": "marian",
    "scale_embedding": True,
    "tie_word_embeddings": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "quantization_config": None,
}
SIZES = (
    *("d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"),
    *("encoder_ffn_dim", "decoder_ffn_dim"),
)
SAID = ("model_type", "scale_embedding")  # has to be said, for it is otherwise if it isn't
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
VECTORS = {*POSITIONS, marian.SHARED, marian.SOURCE_EMBEDDING, marian.TARGET_EMBEDDING, marian.PREDICTING}
RARE = -30.0  # the least that is added to a logit: it never counts, and label smoothing can bear it


class Side(NamedTuple):
    """A vocabulary: for each of our ids its piece, and the row that it has in their matrices."""

    pieces: list[str]
    rows: list[int]


class Marian(NamedTuple):
    """What was read."""

    config: RunConfig
    tokenizer: Tokenizer
    weights: dict[str, Tensor]
    target_rows: list[int]  # their id of each of our target ids


def read(folder: Path, source: str, target: str) -> Marian:
    """Read a folder; source, target: codes of its languages, where "" is what the folder says.

    Raises UserError that says what is missing, damaged or has no place in our model.
    """
    config = _read_json(folder / marian.CONFIG)
    _check(folder, config)
    described = _read_json(folder / marian.TOKENIZER) if (folder / marian.TOKENIZER).exists() else {}
    weights = _read_weights(folder)
    target_side, source_side = _sides(folder, config, described)
    tokenizer = _tokenizer(folder, target_side, source_side)
    options = {
        **_shape(config),
        "model.vocab_size": len(target_side.pieces),
        "model.source_vocab_size": 0 if source_side is None else len(source_side.pieces),
        "data.source": source or described.get("source_lang") or "src",
        "data.target": target or described.get("target_lang") or "tgt",
        "data.joint": source_side is None,
        "data.vocab_size": len(target_side.pieces),
        "data.tokenizer": "unigram",
    }
    found = configure(options)
    return Marian(found, tokenizer, _weights(folder, found, weights, target_side, source_side), target_side.rows)


def _check(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise UserError for what would be another model as ours."""
    where = folder / marian.CONFIG
    for name, value in MUST_BE.items():
        found = config.get(name, None if name in SAID else value)
        if found != value:
            raise UserError(f"{where} has {name} = {found}, and only models with {value} can be imported.")
    for name in SIZES:
        if type(config.get(name)) is not int:
            raise UserError(f"{where} lacks {name}, a whole number; use another copy.")
    for name in ("attention_heads", "ffn_dim"):
        if config.get(f"encoder_{name}") != config.get(f"decoder_{name}"):
            raise UserError(f"{where} has another encoder_{name} than decoder_{name}; here they must be the same.")
    if config.get("activation_function") not in [*marian.ACTIVATIONS]:
        raise UserError(
            f"{where} has activation_function = {config.get('activation_function')}; "
            f"{', '.join(marian.ACTIVATIONS)} can be imported."
        )


def _shape(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model.d_model": config["d_model"],
        "model.d_ff": config["encoder_ffn_dim"],
        "model.num_heads": config["encoder_attention_heads"],
        "model.num_encoder_layers": config["encoder_layers"],
        "model.num_decoder_layers": config["decoder_layers"],
        "model.activation": marian.ACTIVATIONS[config["activation_function"]],
        "model.dropout": config.get("dropout", 0.1),
        "model.attention_dropout": config.get("attention_dropout", 0.0),
        "model.output_bias": True,
    }


def _sides(folder: Path, config: Mapping[str, Any], described: Mapping[str, Any]) -> tuple[Side, Side | None]:
    """The vocabularies of target and source; no source's if both have the same ids and the same matrix."""
    names = {name: _name(described, name) for name in ("pad_token", "eos_token", "unk_token")}
    vocabulary = _read_vocabulary(folder / marian.VOCABULARY, names.values())
    file = folder / marian.TARGET_VOCABULARY
    shared = config.get("share_encoder_decoder_embeddings", True)
    if type(shared) is not bool:
        raise UserError(f"{folder / marian.CONFIG}: share_encoder_decoder_embeddings is true or false, not {shared}.")
    targets = _read_vocabulary(file, names.values()) if not shared and file.exists() else vocabulary
    pad, eos, unk = (targets[name] for name in names.values())
    start = config.get("decoder_start_token_id", pad)
    if type(start) is not int or start < 0:
        raise UserError(f"{folder / marian.CONFIG} has decoder_start_token_id = {start}, which is no id.")
    for name, token in (("eos_token_id", eos), ("pad_token_id", pad)):
        if config.get(name, token) != token:
            raise UserError(f"{folder / marian.CONFIG} has {name} = {config[name]}, and its vocabulary {token}.")
    target = _side(targets, [pad, start, eos, unk])
    if shared:
        return target, None
    pad, eos, unk = (vocabulary[name] for name in names.values())
    return target, _side(vocabulary, [pad, vocabulary.get(target.pieces[BOS], pad), eos, unk])


def _read_vocabulary(file: Path, special: Iterable[str]) -> dict[str, int]:
    """Pieces with their ids; raises UserError for one without an id of its own, and if a special one is missing."""
    vocabulary = _read_json(file)
    ids = list(vocabulary.values())
    if any(type(token) is not int or token < 0 for token in ids) or len({*ids}) < len(ids):
        raise UserError(f"{file} must give each piece a number of its own; use another copy.")
    for name in special:
        if name not in vocabulary:
            raise UserError(f"{file} lacks the piece {name}; use another copy.")
    return vocabulary


def _side(vocabulary: Mapping[str, int], special: Sequence[int]) -> Side:
    """Ours first, then the others as they come."""
    pieces = {token: piece for piece, token in vocabulary.items()}
    others = sorted(pieces.keys() - {*special})
    rows = [*special, *others]
    first = [pieces.get(token, "<s>") for token in special]
    if rows[BOS] in (rows[PAD], rows[EOS]):
        first[BOS] = next(name for name in ("<s>", "<bos>", "<start>") if name not in vocabulary)
    return Side([*first, *(pieces[token] for token in others)], rows)


def _name(described: Mapping[str, Any], token: str) -> str:
    """How a special piece is called, which may be said in an object of its own."""
    usual = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    found = described.get(token) or usual[token]
    return str(found.get("content") if isinstance(found, dict) else found)


def _tokenizer(folder: Path, target: Side, source: Side | None) -> Tokenizer:
    models = []
    for name in (marian.SOURCE, marian.TARGET):
        try:
            models.append((folder / name).read_bytes())
        except OSError as error:
            raise UserError(f"{folder / name} can't be read: {error.strerror}; use another copy.") from None
    pieces = [target.pieces] if source is None else [target.pieces, source.pieces]
    try:
        return Tokenizer(models[1], models[0], pieces=pieces)
    except ValueError as error:
        raise UserError(f"The vocabulary of {folder} can't be used: {error}; use another copy.") from None


def _weights(
    folder: Path, config: RunConfig, theirs: Mapping[str, Tensor], target: Side, source: Side | None
) -> dict[str, Tensor]:
    """Their weights under our names; raises UserError for what is missing, left over or of another shape."""
    theirs = {name: weight.float() for name, weight in theirs.items()}
    layers = list(marian.layers(config.model))
    with torch.device("meta"):
        own = Transformer(config.model).state_dict()
    shapes = {layer.theirs: own[layer.ours].shape for layer in layers}
    _check_weights(folder / marian.WEIGHTS, theirs, shapes, config.model.d_model)
    one = [marian.TARGET_EMBEDDING, marian.PREDICTING]  # that must be one matrix
    embedding = _same(folder, theirs, one if source else [marian.SHARED, *one, marian.SOURCE_EMBEDDING])
    embeddings = {"embedding.weight": (embedding, target)}
    if source is not None:
        embeddings["source_embedding.weight"] = (_same(folder, theirs, [marian.SOURCE_EMBEDDING]), source)
    found = {layer.ours: marian.to_ours(theirs[layer.theirs], layer.channels) for layer in layers}
    for name, (matrix, side) in embeddings.items():
        if max(side.rows) >= len(matrix):
            file = folder / marian.VOCABULARY
            raise UserError(f"{file} has the id {max(side.rows)}, but there are {len(matrix)} vectors.")
        found[name] = marian.to_ours(matrix, 1)[side.rows]
    bias = theirs.get(marian.BIAS, torch.zeros(1, len(embedding)))
    if bias.shape != (1, len(embedding)):
        raise UserError(
            f"{folder / marian.WEIGHTS}: {marian.BIAS} isn't a number for each of {len(embedding)} pieces; "
            "it can't be imported."
        )
    bias = bias[0, target.rows].clone()
    for one_of_ours, other in ((PAD, BOS), (BOS, EOS)):
        if target.rows[one_of_ours] == target.rows[other]:  # one of theirs, which may count only once
            bias[one_of_ours] = RARE
    found["output_bias"] = bias.clamp(min=RARE)
    return {name: weight.contiguous() for name, weight in found.items()}


def _check_weights(file: Path, theirs: Mapping[str, Tensor], shapes: Mapping[str, Sequence[int]], width: int) -> None:
    """Raise UserError for what is missing, left over or of another shape, and for positions that aren't the sinusoid.

    shapes: of the layers. width: of the matrices that hold a vector for each piece or position.
    """
    for name in sorted(shapes.keys() - theirs.keys()):
        raise UserError(f"{file} lacks {name}; it can't be imported.")
    for name in sorted(theirs.keys() - shapes.keys() - VECTORS - {marian.BIAS}):
        raise UserError(f"{file} holds something that our model has no place for: {name}; it can't be imported.")
    vectors = {name: (*theirs[name].shape[:1], width) for name in sorted(VECTORS & theirs.keys())}
    for name, shape in {**shapes, **vectors}.items():
        if theirs[name].shape != shape:
            found = " x ".join(map(str, theirs[name].shape))
            raise UserError(
                f"{file}: {name} is {found}, and {marian.CONFIG} makes it {' x '.join(map(str, shape))}; "
                "it can't be imported."
            )
    for name in POSITIONS:
        if name in theirs and not _is_sinusoid(theirs[name]):
            raise UserError(f"{file}: {name} is not the sinusoid; it can't be imported.")


def _same(folder: Path, theirs: Mapping[str, Tensor], names: Sequence[str]) -> Tensor:
    """The matrix that has one of these names, or several, which must be equal."""
    found = {name: theirs[name] for name in names if name in theirs}
    if not found:
        raise UserError(f"{folder / marian.WEIGHTS} lacks {names[0]}; it can't be imported.")
    first, *others = found
    for other in others:
        if not torch.equal(found[first], found[other]):
            raise UserError(f"{folder / marian.WEIGHTS}: {first} and {other} differ; here they must be one matrix.")
    return found[first]


def _is_sinusoid(table: Tensor) -> bool:
    """table (length, d_model)."""
    return torch.allclose(marian.to_ours(table, 1), sinusoids(*table.shape), atol=1e-3)


def _read_weights(folder: Path) -> dict[str, Tensor]:
    file = folder / marian.WEIGHTS
    if not file.exists() and (folder / PICKLED).exists():
        program = (
            "from transformers import MarianMTModel as Model, MarianTokenizer as Tokenizer; "
            f"[each.from_pretrained('{folder}').save_pretrained('NEW') for each in (Model, Tokenizer)]"
        )
        raise UserError(
            f"{folder} holds {PICKLED}, which can run any program when it is opened, and isn't opened here. If you "
            f'trust it, let transformers write {marian.WEIGHTS} into a folder NEW: python -c "{program}"'
        )
    try:
        weights = load_file(file)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{file} can't be read: {error}; use another copy.") from None
    for name, weight in weights.items():
        if not weight.is_floating_point():
            raise UserError(f"{file}: {name} is of {weight.dtype}; quantised weights can't be imported.")
    return weights


def _read_json(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{file} can't be read: {error}; is this a Marian model in Hugging Face's form?") from None
    if not isinstance(value, dict):
        raise UserError(f"{file} is damaged: it is not an object; use another copy.")
    return value
