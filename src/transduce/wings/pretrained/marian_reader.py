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
from torch import Tensor

from transduce.system.errors import UserError
from transduce.wings.export import marian, marian_native
from transduce.wings.pretrained.conversion import NO_ROW, Table, converted
from transduce.wings.pretrained.families import MARIAN
from transduce.wings.pretrained.marian_vocabulary import Vocabulary, directions_of, vocabulary_of
from transduce.wings.pretrained.original import Original, configured, tokenizer_of
from transduce.wings.pretrained.reading import (
    ANOTHER_COPY,
    checked_ids,
    files_in,
    read_bytes,
    read_model,
)

NATIVE = MARIAN._replace(title="native Marian", program="pymarian")


def description_of(folder: Path) -> Path | None:
    """The file that names the model and the vocabularies; None if the folder holds no model of Marian's own format."""
    return next(iter(sorted(folder.glob(f"*{marian_native.DESCRIPTION_SUFFIX}"))), None)


def read(folder: Path, source: str, target: str) -> Original:
    """Read a model from a folder with a file such as model.npz.decoder.yml.

    Raises UserError for missing or damaged files, and for models that can't be imported.
    """
    file = description_of(folder)
    assert file
    described = marian_native.parse_yaml(read_bytes(file).decode(errors="replace"))
    [weights_file, *others] = _files(file, described, "models")
    if others or weights_file.suffix != ".npz":
        raise UserError(
            f"{file} names {', '.join(path.name for path in (weights_file, *others))}; "
            "only one model as a .npz file can be imported."
        )
    vocabularies = _files(file, described, "vocabs")
    if len(vocabularies) != 2:
        raise UserError(f"{file} names {len(vocabularies)} vocabularies, not 2.")
    arrays = _read_arrays(weights_file)
    options = _options(weights_file, arrays)
    is_joint = marian_native.SHARED_TABLE in arrays
    sides = [_side(path) for path in vocabularies]
    if is_joint and sides[0] != sides[1]:
        raise UserError(f"{folder} has one embedding, but two vocabularies.", ANOTHER_COPY)
    # Vocabularies as YAML come with source.spm and target.spm, as OPUS-MT's do.
    names = (marian.SOURCE_MODEL, marian.TARGET_MODEL)
    models = [
        read_bytes(path if path.suffix == ".spm" else folder / name)
        for path, name in zip(vocabularies, names, strict=True)
    ]
    source_side, target_side = [sides[1]] * 2 if is_joint else sides
    tokenizer = tokenizer_of(
        folder, (models[1], target_side.pieces), (models[0], source_side.pieces)
    )
    directions = directions_of({}, source_side, source, target)
    languages = (source or "src", target or "tgt")
    config = configured(folder, NATIVE, options, tokenizer, languages, directions)
    tables = {
        "embedding.weight": Table([marian_native.TARGET_TABLE], target_side.rows),
        "source_embedding.weight": Table([marian_native.SOURCE_TABLE], source_side.rows),
    }
    if is_joint:
        tables = {"embedding.weight": Table([marian_native.SHARED_TABLE], target_side.rows)}
    layers = [
        entry._replace(theirs=marian_native.native_name(entry.theirs))
        for entry in marian.layers(config.model)
    ]
    theirs = _tensors(weights_file, arrays)
    weights = converted(
        weights_file, config.model, theirs, layers, tables, marian_native.NATIVE_BIAS
    )
    return Original(NATIVE, config, tokenizer, weights, target_side.rows)


def _files(file: Path, described: marian_native.Yaml, key: str) -> list[Path]:
    """The files that a description names, in its folder; raises UserError if one is missing."""
    names = described.get(key)
    if not isinstance(names, list) or not names:
        raise UserError(f"{file} is damaged: it has no {key}.", ANOTHER_COPY)
    return files_in(file.parent, names, file)


def _read_arrays(file: Path) -> dict[str, Any]:
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


def _tensors(file: Path, arrays: Mapping[str, Any]) -> dict[str, Tensor]:
    """The weights in the shapes of Hugging Face's format. Raises UserError for arrays of other values."""
    tables = {
        marian_native.SHARED_TABLE,
        marian_native.SOURCE_TABLE,
        marian_native.TARGET_TABLE,
        marian_native.NATIVE_BIAS,
    }
    tensors = dict[str, Tensor]()
    for name, array in arrays.items():
        if name == marian_native.OPTIONS_KEY:
            continue
        if array.ndim != 2 or array.dtype.kind != "f":
            raise UserError(f"{file}: {name} is not a matrix of numbers.", ANOTHER_COPY)
        row_or_matrix = array[0] if len(array) == 1 else array.T
        tensors[name] = torch.from_numpy(array if name in tables else row_or_matrix).float()
    return tensors


def _options(file: Path, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Our options of the model. Raises UserError for a model that ours can't express."""
    if marian_native.OPTIONS_KEY not in arrays:
        raise UserError(f"{file} has no {marian_native.OPTIONS_KEY}.", ANOTHER_COPY)
    text = arrays[marian_native.OPTIONS_KEY].tobytes().decode(errors="replace")
    options = marian_native.parse_yaml(text)
    for name, needed in marian_native.parse_yaml(marian_native.FIXED_OPTIONS).items():
        value = options.get(name, needed) or ""
        if value not in (needed or "", marian_native.SYNONYMS.get(name, needed)):
            raise UserError(f"{file}: {name} is {value!r}; only {needed!r} can be imported.")
    activation = str(options.get("transformer-ffn-activation"))
    if activation not in marian_native.NATIVE_ACTIVATIONS:
        known = " and ".join(marian_native.NATIVE_ACTIVATIONS)
        raise UserError(
            f"{file}: transformer-ffn-activation is {activation}; only {known} can be imported."
        )
    sizes = {}
    for theirs, ours in marian_native.SIZE_OPTIONS.items():
        size = options.get(theirs)
        if not isinstance(size, str) or not size.isdecimal():
            raise UserError(f"{file}: {theirs} is missing or not a whole number.", ANOTHER_COPY)
        sizes[f"model.{ours}"] = int(size)
    return {
        **sizes,
        "model.activation": marian_native.NATIVE_ACTIVATIONS[activation],
        "model.positions": "t2t",
        "model.zero_start": True,
    }


def _side(file: Path) -> Vocabulary:
    """The pieces of a vocabulary in the order of our ids, and their rows. Our PAD and BOS have none."""
    if file.suffix == ".spm":
        _, processor = read_model(file)
        ids = {processor.id_to_piece(i): i for i in range(processor.get_piece_size())}
    else:
        ids = _read_ids(file)
    checked_ids(file, ids, ("</s>", "<unk>"))
    others = {piece: row for piece, row in ids.items() if piece not in ("<pad>", "<s>")}
    return vocabulary_of(others, [NO_ROW, NO_ROW, ids["</s>"], ids["<unk>"]])


def _read_ids(file: Path) -> dict[str, int]:
    """The pieces of a vocabulary as YAML, one per line, such as "the": 12."""
    ids = dict[str, int]()
    lines = read_bytes(file).removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            piece, _, value = line.decode().rpartition(": ")
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
