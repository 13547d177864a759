"""Reads a model in Marian's own format: a .npz file, and vocabularies of SentencePiece or as YAML.

Marian starts decoding with a vector of zeros, which becomes the embedding of our BOS.
"""

import json
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.config.parse import configure
from transduce.config.schema import RunConfig
from transduce.model.transformer import Transformer
from transduce.system.errors import Hint, UserError
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import open_model
from transduce.wings.export import marian, marian_native
from transduce.wings.pretrained import marian_vocabulary
from transduce.wings.pretrained.families import MARIAN
from transduce.wings.pretrained.marian_vocabulary import Vocabulary
from transduce.wings.pretrained.original import MIN_BIAS, Original, output_bias
from transduce.wings.pretrained.reading import ANOTHER_COPY

NATIVE = MARIAN._replace(title="native Marian", program="pymarian")
Arrays = Mapping[str, NDArray[Any]]


def description_of(folder: Path) -> Path | None:
    """The file that names the model and the vocabularies; None if the folder holds no model of Marian's own format."""
    return next(iter(sorted(folder.glob(f"*{marian_native.DESCRIPTION_SUFFIX}"))), None)


def read(folder: Path, source: str, target: str) -> Original:
    """Read a model from a folder with a file such as model.npz.decoder.yml.

    Raises UserError for missing or damaged files, and for models that can't be imported.
    """
    file = description_of(folder)
    assert file
    described = marian_native.parse_yaml(_read_text(file))
    [weights_file, *others] = _files(folder, described, "models")
    if others or weights_file.suffix != ".npz":
        raise UserError(
            f"{file} names {', '.join(path.name for path in (weights_file, *others))}; "
            "only one model as a .npz file can be imported."
        )
    vocabularies = _files(folder, described, "vocabs")
    if len(vocabularies) != 2:
        raise UserError(f"{file} names {len(vocabularies)} vocabularies, not 2.")
    arrays = _read_arrays(weights_file)
    options = _options(weights_file, arrays)
    is_joint = marian_native.SHARED_TABLE in arrays
    sides = [_side(path) for path in vocabularies]
    tokenizer = _tokenizer(folder, vocabularies, sides, is_joint=is_joint)
    directions = marian_vocabulary.directions_of({}, sides[0], source, target)
    data = {"data.source": source or "src", "data.target": target or "tgt"}
    if directions:
        data = {
            "data.source": directions[0].source,
            "data.target": directions[0].target,
            "data.directions": tuple(map(str, directions)),  # type: ignore[dict-item]
        }
    config = configure(
        {
            **options,
            **data,
            "model.vocab_size": tokenizer.target.size,
            "model.source_vocab_size": 0 if is_joint else tokenizer.source.size,
            "data.joint": is_joint,
            "data.vocab_size": tokenizer.target.size,
            "data.tokenizer": "unigram",
        }
    )
    weights = _weights(weights_file, config, arrays, sides)
    return Original(NATIVE, config, tokenizer, weights, sides[1].rows)


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"{file} can't be read: {error}.", ANOTHER_COPY) from None


def _files(folder: Path, described: marian_native.Yaml, key: str) -> list[Path]:
    """The files that a description names, in `folder`; raises UserError if one is missing."""
    names = described.get(key)
    if not isinstance(names, list) or not names:
        raise UserError(
            f"{folder} is damaged: its {marian_native.DESCRIPTION_SUFFIX} has no {key}."
        )
    files = [folder / Path(name).name for name in names]
    for file in files:
        if not file.exists():
            raise UserError(f"{file} is missing.", Hint("Copy all files of the model."))
    return files


def _read_arrays(file: Path) -> dict[str, NDArray[Any]]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (
        OSError,
        ValueError,
        EOFError,
        MemoryError,
        zipfile.BadZipFile,
        NotImplementedError,
    ) as error:
        raise UserError(f"{file} can't be read: {error}.", ANOTHER_COPY) from None


def _options(file: Path, arrays: Arrays) -> dict[str, Any]:
    """Our options of the model. Raises UserError for a model that ours can't express."""
    if marian_native.OPTIONS_KEY not in arrays:
        raise UserError(f"{file} has no {marian_native.OPTIONS_KEY}.", ANOTHER_COPY)
    options = marian_native.parse_yaml(
        arrays[marian_native.OPTIONS_KEY].tobytes().decode(errors="replace")
    )
    for name, allowed in marian_native.FIXED_OPTIONS.items():
        value = options.get(name, allowed[0]) or type(allowed[0])()
        if value not in allowed:
            raise UserError(f"{file}: {name} is {value!r}; only {allowed[0]!r} can be imported.")
    activation = str(options.get("transformer-ffn-activation"))
    if activation not in marian_native.NATIVE_ACTIVATIONS:
        known = " and ".join(marian_native.NATIVE_ACTIVATIONS)
        raise UserError(
            f"{file}: transformer-ffn-activation is {activation}; only {known} can be imported."
        )
    sizes = {}
    for theirs, ours in marian_native.SIZE_OPTIONS.items():
        value = options.get(theirs)
        if not isinstance(value, str) or not value.isdecimal():
            raise UserError(f"{file}: {theirs} is missing or not a whole number.", ANOTHER_COPY)
        sizes[f"model.{ours}"] = int(value)
    return {
        **sizes,
        "model.activation": marian_native.NATIVE_ACTIVATIONS[activation],
        "model.positions": "t2t",
        "model.zero_start": True,
        "model.output_bias": True,
    }


def _side(file: Path) -> Vocabulary:
    """The pieces of a vocabulary in the order of our ids, and their rows. Our PAD and BOS have the row -1: zeros."""
    if file.suffix == ".spm":
        try:
            processor = open_model(_read_bytes(file))
        except ValueError as error:
            raise UserError(f"{file} can't be used: {error}.", ANOTHER_COPY) from None
        ids = {processor.id_to_piece(i): i for i in range(processor.get_piece_size())}
    else:
        ids = _read_ids(file)
    for piece in ("</s>", "<unk>"):
        if piece not in ids:
            raise UserError(f"{file}: the piece {piece} is missing.", ANOTHER_COPY)
    others = sorted(ids.keys() - {"</s>", "<unk>", "<pad>", "<s>"}, key=lambda piece: ids[piece])
    rows = [-1, -1, ids["</s>"], ids["<unk>"], *(ids[piece] for piece in others)]
    return Vocabulary(["<pad>", "<s>", "</s>", "<unk>", *others], rows)


def _read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UserError(f"{file} can't be read: {error.strerror}.", ANOTHER_COPY) from None


def _read_ids(file: Path) -> dict[str, int]:
    """The pieces of a vocabulary as YAML, one per line, such as "the": 12."""
    ids = dict[str, int]()
    lines = _read_text(file).removesuffix("\n").split("\n")  # a piece may be another line break
    for number, line in enumerate(lines, start=1):
        piece, _, value = line.rpartition(": ")
        try:
            if piece.startswith('"'):
                # YAML's escapes, except this one, are also JSON's.
                piece = json.loads(re.sub(r"(?<!\\)\\x([0-9a-fA-F]{2})", r"\\u00\1", piece))
            elif piece.startswith("'"):
                piece = piece[1:-1].replace("''", "'")
            ids[piece] = int(value)
        except ValueError:
            raise UserError(
                f"{file}:{number}: expected a piece and its id.", ANOTHER_COPY
            ) from None
    return ids


def _tokenizer(
    folder: Path, files: list[Path], sides: list[Vocabulary], *, is_joint: bool
) -> Tokenizer:
    """The tokenizer of a model. YAML vocabularies come with source.spm and target.spm, as OPUS-MT's do."""
    names = (marian.SOURCE_MODEL, marian.TARGET_MODEL)
    models = [
        _read_bytes(file if file.suffix == ".spm" else folder / name)
        for file, name in zip(files, names, strict=True)
    ]
    try:
        source, target = (
            ImportedVocabulary(model, side.pieces)
            for model, side in zip(models, sides, strict=True)
        )
    except ValueError as error:
        raise UserError(
            f"The vocabulary of {folder} can't be used: {error}.", ANOTHER_COPY
        ) from None
    if is_joint and sides[0] != sides[1]:
        raise UserError(f"{folder} has one embedding, but two vocabularies.", ANOTHER_COPY)
    return Tokenizer(target, None if is_joint and models[0] == models[1] else source)


def _weights(
    file: Path, config: RunConfig, arrays: Arrays, sides: list[Vocabulary]
) -> dict[str, Tensor]:
    """The weights in our format; raises UserError if weights are missing, unknown or of the wrong shape."""
    with torch.device("meta"):
        own = Transformer(config.model).state_dict()
    names = {entry.ours: entry for entry in marian_native.layers(config.model)}
    is_joint = marian_native.SHARED_TABLE in arrays
    tables = (
        {"embedding.weight": (marian_native.SHARED_TABLE, sides[1])}
        if is_joint
        else {
            "embedding.weight": (marian_native.TARGET_TABLE, sides[1]),
            "source_embedding.weight": (marian_native.SOURCE_TABLE, sides[0]),
        }
    )
    known = {entry.theirs for entry in names.values()} | {name for name, _ in tables.values()}
    known |= {marian_native.NATIVE_BIAS, marian_native.OPTIONS_KEY}
    for name in sorted(arrays.keys() - known):
        raise UserError(
            f"{file}: the weight {name} has no counterpart in transduce; the model can't be imported."
        )
    weights = dict[str, Tensor]()
    for ours, entry in names.items():
        matrix = _array(file, arrays, entry.theirs)
        weight = matrix[0] if own[ours].dim() == 1 else matrix.T
        if weight.shape != own[ours].shape:
            raise UserError(f"{file}: {entry.theirs} has the wrong shape.", ANOTHER_COPY)
        weights[ours] = marian.to_ours(weight, entry.channels)
    for ours, (name, side) in tables.items():
        matrix = _array(file, arrays, name)
        if len(matrix) <= max(side.rows) or matrix.size(1) != config.model.d_model:
            raise UserError(f"{file}: {name} has fewer rows than the vocabulary.", ANOTHER_COPY)
        zeros = torch.zeros(1, matrix.size(1))
        weights[ours] = marian.to_ours(torch.cat((matrix, zeros)), 1)[side.rows]
    bias = torch.zeros(len(matrix)) if marian_native.NATIVE_BIAS not in arrays else None
    if bias is None:
        bias = _array(file, arrays, marian_native.NATIVE_BIAS)[0]
    weights["output_bias"] = output_bias(torch.cat((bias, torch.tensor([MIN_BIAS]))), sides[1].rows)
    return {name: weight.contiguous() for name, weight in weights.items()}


def _array(file: Path, arrays: Arrays, name: str) -> Tensor:
    if name not in arrays or arrays[name].ndim != 2 or arrays[name].dtype.kind != "f":
        raise UserError(f"{file}: the weight {name} is missing.", ANOTHER_COPY)
    return torch.from_numpy(arrays[name]).float()
