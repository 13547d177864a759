"""Read a Marian model in Hugging Face's format: its shape, vocabularies and weights, under our names.

Our vocabularies begin with PAD, BOS, EOS and UNK. Marian starts decoding with its padding piece, so this piece becomes
two of ours, PAD and BOS. Nothing is unpickled.
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
from transduce.wings.export.imported_vocabulary import ImportedVocabulary

PICKLED_WEIGHTS = "pytorch_model.bin"
REQUIRED_VALUES = {  # of config.json; a missing entry has Marian's default, which is this value
    "model_type": "marian",
    "scale_embedding": True,
    "tie_word_embeddings": True,
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "quantization_config": None,
}
SIZE_NAMES = (
    *("d_model", "encoder_layers", "decoder_layers", "encoder_attention_heads", "decoder_attention_heads"),
    *("encoder_ffn_dim", "decoder_ffn_dim"),
)
NEVER_DEFAULT = ("model_type", "scale_embedding")  # entries whose default differs
POSITION_TABLES = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
EMBEDDINGS = {
    *POSITION_TABLES,
    marian.SHARED_EMBEDDING,
    marian.SOURCE_EMBEDDING,
    marian.TARGET_EMBEDDING,
    marian.OUTPUT_PROJECTION,
}
MIN_BIAS = -30.0  # finite stand-in for -inf, which label smoothing would turn into an infinite loss


class Vocabulary(NamedTuple):
    """Pieces by our id, and the row of each in Marian's embedding matrix."""

    pieces: list[str]
    rows: list[int]


class Marian(NamedTuple):
    """A Marian model under our names."""

    config: RunConfig
    tokenizer: Tokenizer
    weights: dict[str, Tensor]
    target_rows: list[int]  # Marian's id of each of our target ids


def read(folder: Path, source: str, target: str) -> Marian:
    """Read a folder; source, target: language codes, "" for those that the folder names.

    Raises UserError that names what is missing, damaged or unsupported.
    """
    config = _read_json(folder / marian.CONFIG_FILE)
    _check(folder, config)
    described = _read_json(folder / marian.TOKENIZER_FILE) if (folder / marian.TOKENIZER_FILE).exists() else {}
    weights = _read_weights(folder)
    target_vocabulary, source_vocabulary = _vocabularies(folder, config, described)
    tokenizer = _tokenizer(folder, target_vocabulary, source_vocabulary)
    options = {
        **_shape(config),
        "model.vocab_size": len(target_vocabulary.pieces),
        "model.source_vocab_size": 0 if source_vocabulary is None else len(source_vocabulary.pieces),
        "data.source": source or described.get("source_lang") or "src",
        "data.target": target or described.get("target_lang") or "tgt",
        "data.joint": source_vocabulary is None,
        "data.vocab_size": len(target_vocabulary.pieces),
        "data.tokenizer": "unigram",
    }
    run = configure(options)
    ours = _weights(folder, run, weights, target_vocabulary, source_vocabulary)
    return Marian(run, tokenizer, ours, target_vocabulary.rows)


def _check(folder: Path, config: Mapping[str, Any]) -> None:
    """Raise UserError for a configuration that our model can't express."""
    where = folder / marian.CONFIG_FILE
    for name, required in REQUIRED_VALUES.items():
        value = config.get(name, None if name in NEVER_DEFAULT else required)
        if value != required:
            raise UserError(f"{where}: {name} is {value}; only models with {required} can be imported.")
    for name in SIZE_NAMES:
        if type(config.get(name)) is not int:
            raise UserError(f"{where}: {name} is missing or no whole number; use another copy of the model.")
    for name in ("attention_heads", "ffn_dim"):
        if config.get(f"encoder_{name}") != config.get(f"decoder_{name}"):
            raise UserError(
                f"{where}: encoder_{name} and decoder_{name} differ; only models where they agree can be imported."
            )
    if config.get("activation_function") not in [*marian.MARIAN_ACTIVATIONS]:
        raise UserError(
            f"{where}: activation_function is {config.get('activation_function')}; only "
            f"{', '.join(marian.MARIAN_ACTIVATIONS)} can be imported."
        )


def _shape(config: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "model.d_model": config["d_model"],
        "model.d_ff": config["encoder_ffn_dim"],
        "model.num_heads": config["encoder_attention_heads"],
        "model.num_encoder_layers": config["encoder_layers"],
        "model.num_decoder_layers": config["decoder_layers"],
        "model.activation": marian.MARIAN_ACTIVATIONS[config["activation_function"]],
        "model.dropout": config.get("dropout", 0.1),
        "model.attention_dropout": config.get("attention_dropout", 0.0),
        "model.output_bias": True,
    }


def _vocabularies(
    folder: Path, config: Mapping[str, Any], described: Mapping[str, Any]
) -> tuple[Vocabulary, Vocabulary | None]:
    """The vocabularies of target and source; None for the source if both share ids and embedding."""
    names = {name: _name(described, name) for name in ("pad_token", "eos_token", "unk_token")}
    vocabulary = _read_vocabulary(folder / marian.VOCABULARY_FILE, names.values())
    file = folder / marian.TARGET_VOCABULARY_FILE
    shared = config.get("share_encoder_decoder_embeddings", True)
    if type(shared) is not bool:
        raise UserError(
            f"{folder / marian.CONFIG_FILE}: share_encoder_decoder_embeddings is {shared}; expected true or false."
        )
    targets = _read_vocabulary(file, names.values()) if not shared and file.exists() else vocabulary
    pad, eos, unk = (targets[name] for name in names.values())
    start = config.get("decoder_start_token_id", pad)
    if type(start) is not int or start < 0:
        raise UserError(f"{folder / marian.CONFIG_FILE}: decoder_start_token_id is {start}; expected a token id.")
    for name, token in (("eos_token_id", eos), ("pad_token_id", pad)):
        if config.get(name, token) != token:
            raise UserError(f"{folder / marian.CONFIG_FILE}: {name} is {config[name]}, but {token} in the vocabulary.")
    target = _vocabulary(targets, [pad, start, eos, unk])
    if shared:
        return target, None
    pad, eos, unk = (vocabulary[name] for name in names.values())
    return target, _vocabulary(vocabulary, [pad, vocabulary.get(target.pieces[BOS], pad), eos, unk])


def _read_vocabulary(file: Path, special: Iterable[str]) -> dict[str, int]:
    """Pieces with their ids; raises UserError unless ids are unique and every special piece is present."""
    vocabulary = _read_json(file)
    ids = list(vocabulary.values())
    if any(type(token) is not int or token < 0 for token in ids) or len({*ids}) < len(ids):
        raise UserError(f"{file}: two pieces share an id, or an id is no whole number; use another copy.")
    for name in special:
        if name not in vocabulary:
            raise UserError(f"{file}: the piece {name} is missing; use another copy.")
    return vocabulary


def _vocabulary(vocabulary: Mapping[str, int], special: Sequence[int]) -> Vocabulary:
    """The special pieces first, in our order, then the others in theirs."""
    pieces = {token: piece for piece, token in vocabulary.items()}
    others = sorted(pieces.keys() - {*special})
    rows = [*special, *others]
    first = [pieces.get(token, "<s>") for token in special]
    if rows[BOS] in (rows[PAD], rows[EOS]):
        first[BOS] = next(name for name in ("<s>", "<bos>", "<start>") if name not in vocabulary)
    return Vocabulary([*first, *(pieces[token] for token in others)], rows)


def _name(described: Mapping[str, Any], token: str) -> str:
    """The name of a special piece, which may be given as a string or an object."""
    usual = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    name = described.get(token) or usual[token]
    return str(name.get("content") if isinstance(name, dict) else name)


def _tokenizer(folder: Path, target: Vocabulary, source: Vocabulary | None) -> Tokenizer:
    models = []
    for name in (marian.SOURCE_MODEL, marian.TARGET_MODEL):
        try:
            models.append((folder / name).read_bytes())
        except OSError as error:
            raise UserError(f"{folder / name} can't be read: {error.strerror}; use another copy.") from None
    source_pieces = (source or target).pieces
    try:
        return Tokenizer(ImportedVocabulary(models[1], target.pieces), ImportedVocabulary(models[0], source_pieces))
    except ValueError as error:
        raise UserError(f"The vocabulary of {folder} can't be used: {error}; use another copy.") from None


def _weights(
    folder: Path, config: RunConfig, theirs: Mapping[str, Tensor], target: Vocabulary, source: Vocabulary | None
) -> dict[str, Tensor]:
    """Marian's weights under our names; raises UserError for missing, unknown or misshapen weights."""
    theirs = {name: weight.float() for name, weight in theirs.items()}
    layers = list(marian.layers(config.model))
    with torch.device("meta"):
        own = Transformer(config.model).state_dict()
    shapes = {layer.theirs: own[layer.ours].shape for layer in layers}
    _check_weights(folder / marian.WEIGHTS_FILE, theirs, shapes, config.model.d_model)
    tied = [marian.TARGET_EMBEDDING, marian.OUTPUT_PROJECTION]
    embedding = _tied(folder, theirs, tied if source else [marian.SHARED_EMBEDDING, *tied, marian.SOURCE_EMBEDDING])
    embeddings = {"embedding.weight": (embedding, target)}
    if source is not None:
        embeddings["source_embedding.weight"] = (_tied(folder, theirs, [marian.SOURCE_EMBEDDING]), source)
    ours = {layer.ours: marian.to_ours(theirs[layer.theirs], layer.channels) for layer in layers}
    for name, (matrix, vocabulary) in embeddings.items():
        if max(vocabulary.rows) >= len(matrix):
            file = folder / marian.VOCABULARY_FILE
            raise UserError(
                f"{file} has the id {max(vocabulary.rows)}, but the embedding has {len(matrix)} rows; use another copy."
            )
        ours[name] = marian.to_ours(matrix, 1)[vocabulary.rows]
    bias = theirs.get(marian.OUTPUT_BIAS, torch.zeros(1, len(embedding)))
    if bias.shape != (1, len(embedding)):
        expected = (1, len(embedding))
        raise UserError(f"{folder / marian.WEIGHTS_FILE}: {marian.OUTPUT_BIAS} is {tuple(bias.shape)}, not {expected}.")
    bias = bias[0, target.rows].clone()
    for first, second in ((PAD, BOS), (BOS, EOS)):
        if target.rows[first] == target.rows[second]:  # two of our pieces are one of Marian's: count it once
            bias[first] = MIN_BIAS
    ours["output_bias"] = bias.clamp(min=MIN_BIAS)
    return {name: weight.contiguous() for name, weight in ours.items()}


def _check_weights(file: Path, theirs: Mapping[str, Tensor], shapes: Mapping[str, Sequence[int]], width: int) -> None:
    """Raise UserError for missing, unknown or misshapen weights, and for positions other than the sinusoid.

    shapes: of the layers' weights. width: of the embeddings and position tables.
    """
    for name in sorted(shapes.keys() - theirs.keys()):
        raise UserError(f"{file}: the weight {name} is missing; use another copy.")
    for name in sorted(theirs.keys() - shapes.keys() - EMBEDDINGS - {marian.OUTPUT_BIAS}):
        raise UserError(f"{file}: the weight {name} has no counterpart in our model; the model can't be imported.")
    vectors = {name: (*theirs[name].shape[:1], width) for name in sorted(EMBEDDINGS & theirs.keys())}
    for name, shape in {**shapes, **vectors}.items():
        if theirs[name].shape != shape:
            actual, expected = (" x ".join(map(str, size)) for size in (theirs[name].shape, shape))
            raise UserError(f"{file}: {name} is {actual}, but {expected} by {marian.CONFIG_FILE}; use another copy.")
    for name in POSITION_TABLES:
        if name in theirs and not _is_sinusoid(theirs[name]):
            raise UserError(f"{file}: {name} is not the sinusoid; only sinusoidal positions can be imported.")


def _tied(folder: Path, theirs: Mapping[str, Tensor], names: Sequence[str]) -> Tensor:
    """The matrix under any of these names; several must be equal."""
    matrices = {name: theirs[name] for name in names if name in theirs}
    if not matrices:
        raise UserError(f"{folder / marian.WEIGHTS_FILE}: the weight {names[0]} is missing; use another copy.")
    first, *others = matrices
    for other in others:
        if not torch.equal(matrices[first], matrices[other]):
            raise UserError(f"{folder / marian.WEIGHTS_FILE}: {first} and {other} differ; they must be equal.")
    return matrices[first]


def _is_sinusoid(table: Tensor) -> bool:
    """table (length, d_model)."""
    return torch.allclose(marian.to_ours(table, 1), sinusoids(*table.shape), atol=1e-3)


def _read_weights(folder: Path) -> dict[str, Tensor]:
    file = folder / marian.WEIGHTS_FILE
    if not file.exists() and (folder / PICKLED_WEIGHTS).exists():
        program = (
            "from transformers import MarianMTModel as Model, MarianTokenizer as Tokenizer; "
            f"[kind.from_pretrained('{folder}').save_pretrained('NEW') for kind in (Model, Tokenizer)]"
        )
        raise UserError(
            f"{folder} holds {PICKLED_WEIGHTS}, a pickle, which can run any program. It is never opened here. If you "
            f'trust it, convert it to {marian.WEIGHTS_FILE} in a folder NEW: python -c "{program}"'
        )
    try:
        weights = load_file(file)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{file} can't be read: {error}; use another copy.") from None
    for name, weight in weights.items():
        if not weight.is_floating_point():
            raise UserError(f"{file}: {name} has the type {weight.dtype}; quantised weights can't be imported.")
    return weights


def _read_json(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{file} can't be read: {error}; is this a Marian model in Hugging Face's format?") from None
    if not isinstance(value, dict):
        raise UserError(f"{file} is damaged: expected a JSON object; use another copy.")
    return value
