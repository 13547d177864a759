"""Reads a model in Hugging Face's format: Marian, M2M-100, NLLB-200, SMaLL-100 or mBART-50."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from transduce.config.parse import configure
from transduce.config.schema import RunConfig
from transduce.model.embedding import sinusoids
from transduce.model.transformer import Transformer
from transduce.system.console import count
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.export import marian
from transduce.wings.pretrained import marian_vocabulary, multilingual
from transduce.wings.pretrained.families import Family, check, family_of
from transduce.wings.pretrained.original import Original, output_bias
from transduce.wings.pretrained.reading import ANOTHER_COPY, read_json
from transduce.wings.pretrained.trimming import trimmed, unused
from transduce.wings.pretrained.weights import files_of, read_weights

POSITION_TABLES = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
OLD_POSITION_TABLES = tuple(name.replace(".weight", ".weights") for name in POSITION_TABLES)
TARGET_EMBEDDINGS = (marian.TARGET_EMBEDDING, marian.OUTPUT_PROJECTION)
SHARED_EMBEDDINGS = (marian.SHARED_EMBEDDING, *TARGET_EMBEDDINGS, marian.SOURCE_EMBEDDING)


def read(
    folder: Path, source: str, target: str, trim: int = 0, texts: Sequence[str] = ()
) -> Original:
    """Read a model from a folder.

    `source` and `target` are language codes, separated by commas. Empty codes are read from a Marian model's
    tokenizer_config.json. If `trim` is not 0, a multilingual model keeps about as many pieces, chosen by `texts`.
    Raises UserError for missing or damaged files, and for models that can't be imported.
    """
    file = folder / marian.CONFIG_FILE
    config = read_json(file)
    described = read_json(folder / marian.TOKENIZER_FILE, is_needed=False)
    family = family_of(folder, config, described)
    check(file, family, config)
    files_of(folder)  # if there are none, that should be said first
    wishes = _Wishes(source, target, described, trim, texts)
    read_vocabulary = _multilingual if family.is_multilingual else _marian
    tokenizer, rows, data = read_vocabulary(folder, family, config, wishes)
    data["data.licence"] = _licence(folder) or family.licence
    run = configure({**_model_options(family, config, tokenizer), **data})
    weights = _weights(folder, family, run, rows)
    return Original(family, run, tokenizer, weights, rows[0])


def _licence(folder: Path) -> str:
    """The licence in the front matter of the model's card; "" if it names none."""
    file = folder / "README.md"
    text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    found = re.search(r"\A---\n(?:.*\n)*?license: *[\"']?([\w.+-]+)", text)
    return found[1] if found else ""


class _Wishes(NamedTuple):
    """The languages that the user names, tokenizer_config.json, and how many pieces to keep by which texts."""

    source: str
    target: str
    described: Mapping[str, Any]
    trim: int
    texts: Sequence[str]


# The rows of target and source in the original's embeddings; only one list if they share an embedding.
_Vocabulary = tuple[Tokenizer, list[list[int]], dict[str, Any]]


def _marian(
    folder: Path,
    family: Family,  # noqa: ARG001
    config: Mapping[str, Any],
    wishes: _Wishes,
) -> _Vocabulary:
    targets, sources = marian_vocabulary.vocabularies(folder, config, wishes.described)
    directions = marian_vocabulary.directions_of(
        wishes.described, sources or targets, wishes.source, wishes.target
    )
    given = {"source": wishes.source, "target": wishes.target}
    data: dict[str, Any] = {
        f"data.{side}": given[side] or wishes.described.get(f"{side}_lang") or default
        for side, default in (("source", "src"), ("target", "tgt"))
    }
    if directions:
        data = {
            "data.source": directions[0].source,
            "data.target": directions[0].target,
            "data.directions": tuple(map(str, directions)),
        }
    tokenizer = marian_vocabulary.tokenizer_of(folder, targets, sources)
    return tokenizer, [each.rows for each in (targets, sources) if each], data


def _multilingual(
    folder: Path, family: Family, config: Mapping[str, Any], wishes: _Wishes
) -> _Vocabulary:
    model, pieces = multilingual.read_pieces(folder)
    languages = multilingual.choose_languages(
        folder, family.title, len(pieces), wishes.source, wishes.target
    )
    if wishes.trim:
        model = trimmed(model, wishes.texts, wishes.trim)
        never = {*unused(model)}
        pieces = {piece: row for piece, row in pieces.items() if piece not in never}
    start = config.get("decoder_start_token_id", multilingual.SPECIAL_ROWS["</s>"])
    try:
        vocabulary, rows = multilingual.vocabulary(
            model, pieces, languages.rows, start, own=bool(family.options["model.target_tag"])
        )
    except ValueError as error:
        raise UserError(
            f"The vocabulary of {folder} can't be used: {error}.", ANOTHER_COPY
        ) from None
    data = {
        "data.source": languages.directions[0].source,
        "data.target": languages.directions[0].target,
        "data.directions": tuple(map(str, languages.directions)),
    }
    return Tokenizer(vocabulary), [rows], data


def _model_options(
    family: Family, config: Mapping[str, Any], tokenizer: Tokenizer
) -> dict[str, Any]:
    separate = not tokenizer.joint
    is_learned = family.options.get("model.positions") == "learned"
    limit = {"model.max_positions": config.get("max_position_embeddings", 1024)}
    return {
        **(limit if is_learned else {}),
        **{f"model.{ours}": config[theirs] for theirs, ours in marian.SIZES.items()},
        **family.options,
        "model.output_bias": True,
        "model.activation": marian.MARIAN_ACTIVATIONS[config["activation_function"]],
        "model.dropout": config.get("dropout", 0.1),
        "model.attention_dropout": config.get("attention_dropout", 0.0),
        "model.vocab_size": tokenizer.target.size,
        "model.source_vocab_size": tokenizer.source.size if separate else 0,
        "data.joint": not separate,
        "data.vocab_size": tokenizer.target.size,
        "data.tokenizer": "unigram",
    }


def _weights(
    folder: Path, family: Family, config: RunConfig, rows: Sequence[list[int]]
) -> dict[str, Tensor]:
    """The weights in our format; raises UserError if weights are missing, unknown or of the wrong shape."""
    file = files_of(folder)[0]
    theirs = read_weights(folder)
    layers = list(marian.layers(config.model))
    with torch.device("meta"):
        own = Transformer(config.model).state_dict()
    shapes = {layer.theirs: own[layer.ours].shape for layer in layers}
    for name in POSITION_TABLES:
        if name in shapes and name in theirs:  # their first rows are never used
            theirs[name] = theirs[name][family.first_position :]
    _check_weights(file, theirs, shapes, config.model.d_model)
    if config.model.positions != "learned":
        _check_sinusoids(file, theirs, config.model.positions, family.first_position)
    is_joint = len(rows) == 1
    embedding = _tied(file, theirs, SHARED_EMBEDDINGS if is_joint else TARGET_EMBEDDINGS)
    embeddings = {"embedding.weight": (embedding, rows[0])}
    if not is_joint:
        source = _tied(file, theirs, [marian.SOURCE_EMBEDDING])
        embeddings["source_embedding.weight"] = (source, rows[1])
    ours = {layer.ours: marian.to_ours(theirs[layer.theirs], layer.channels) for layer in layers}
    for name, (matrix, chosen) in embeddings.items():
        if (last := max(chosen)) >= len(matrix):
            raise UserError(
                f"The vocabulary of {folder} has the id {last}, but the embedding has "
                f"{count(len(matrix), 'row')}.",
                ANOTHER_COPY,
            )
        ours[name] = marian.to_ours(matrix, 1)[chosen]
    none = torch.zeros(1, len(embedding))
    bias = theirs.get(marian.OUTPUT_BIAS, none)
    if bias.shape != none.shape:
        raise UserError(
            f"{file}: {marian.OUTPUT_BIAS} has the shape {tuple(bias.shape)}, not {tuple(none.shape)}."
        )
    ours["output_bias"] = output_bias(bias[0], rows[0])
    return {name: weight.contiguous() for name, weight in ours.items()}


def _check_weights(
    file: Path, theirs: Mapping[str, Tensor], shapes: Mapping[str, Sequence[int]], width: int
) -> None:
    """Raise UserError for missing, unknown or misshapen weights."""
    for name in sorted(shapes.keys() - theirs.keys()):
        raise UserError(f"{file}: the weight {name} is missing.", ANOTHER_COPY)
    tables = {*SHARED_EMBEDDINGS, *POSITION_TABLES, *OLD_POSITION_TABLES} - shapes.keys()
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


def _check_sinusoids(file: Path, theirs: Mapping[str, Tensor], kind: str, first: int) -> None:
    """Raise UserError for stored positions that are not sinusoids of this kind."""
    for name in theirs.keys() & {*POSITION_TABLES, *OLD_POSITION_TABLES}:
        table = marian.to_ours(theirs[name][first:], 1)
        if not torch.allclose(table, sinusoids(len(table), table.size(1), kind), atol=1e-3):
            raise UserError(
                f"{file}: {name} is not the table of sinusoids of this family, so it can't be imported."
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
