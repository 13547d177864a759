"""Reads a model in Hugging Face's format: Marian, M2M-100, NLLB-200, SMaLL-100 or mBART-50."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor

from transduce.config.schema import ModelConfig
from transduce.model.embedding import sinusoids
from transduce.system.errors import UserError
from transduce.wings.export import marian
from transduce.wings.pretrained import marian_vocabulary, multilingual
from transduce.wings.pretrained.conversion import Table, converted
from transduce.wings.pretrained.families import Family, check, family_of
from transduce.wings.pretrained.marian_vocabulary import Vocabulary
from transduce.wings.pretrained.original import Original, configured, tokenizer_of
from transduce.wings.pretrained.reading import read_bytes, read_json
from transduce.wings.pretrained.trimming import trimmed, unused
from transduce.wings.pretrained.weights import files_of, read_weights

# The sinusoids of old models are "weights".
POSITION_TABLES = [
    f"model.{stack}.embed_positions.{name}"
    for stack in ("encoder", "decoder")
    for name in ("weight", "weights")
]
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
    languages = ("", "")
    if family.is_multilingual:
        model, pieces = multilingual.read_pieces(folder)
        directions, codes = multilingual.choose_languages(
            folder, family.title, len(pieces), source, target
        )
        if trim:
            model = trimmed(model, texts, trim)
            never = {*unused(model)}
            pieces = {piece: row for piece, row in pieces.items() if piece not in never}
        start = config.get("decoder_start_token_id", multilingual.SPECIAL_ROWS["</s>"])
        targets = multilingual.vocabulary(
            pieces, codes, start, own=bool(family.options["model.target_tag"])
        )
        sources = None
        tokenizer = tokenizer_of(folder, (model, targets.pieces))
    else:
        targets, sources = marian_vocabulary.vocabularies(folder, config, described)
        directions = marian_vocabulary.directions_of(described, sources or targets, source, target)
        languages = (
            source or described.get("source_lang") or "src",
            target or described.get("target_lang") or "tgt",
        )
        tokenizer = tokenizer_of(
            folder,
            (read_bytes(folder / marian.TARGET_MODEL), targets.pieces),
            (read_bytes(folder / marian.SOURCE_MODEL), (sources or targets).pieces),
        )
    options = {
        **{f"model.{ours}": config[theirs] for theirs, ours in marian.SIZES.items()},
        "model.activation": marian.MARIAN_ACTIVATIONS[config["activation_function"]],
        "model.dropout": config.get("dropout", 0.1),
        "model.attention_dropout": config.get("attention_dropout", 0.0),
    }
    if family.options.get("model.positions") == "learned":
        options["model.max_positions"] = config.get("max_position_embeddings", 1024)
    run = configured(folder, family, options, tokenizer, languages, directions)
    weights = _weights(folder, family, run.model, targets, sources)
    return Original(family, run, tokenizer, weights, targets.rows)


def _weights(
    folder: Path,
    family: Family,
    config: ModelConfig,
    targets: Vocabulary,
    sources: Vocabulary | None,
) -> dict[str, Tensor]:
    theirs = read_weights(folder)
    for name in POSITION_TABLES:
        if name in theirs and theirs[name].dim():  # their first rows are never used
            theirs[name] = theirs[name][family.first_position :]
    tables = {"embedding.weight": Table(SHARED_EMBEDDINGS, targets.rows)}
    if sources:
        tables = {
            "embedding.weight": Table(TARGET_EMBEDDINGS, targets.rows),
            "source_embedding.weight": Table([marian.SOURCE_EMBEDDING], sources.rows),
        }
    file = files_of(folder)[0]
    layers = [*marian.layers(config)]
    others = (*SHARED_EMBEDDINGS, *POSITION_TABLES)
    weights = converted(file, config, theirs, layers, tables, marian.OUTPUT_BIAS, others)
    if config.positions != "learned":
        _check_sinusoids(file, theirs, config.positions)
    return weights


def _check_sinusoids(file: Path, theirs: Mapping[str, Tensor], kind: str) -> None:
    """Raise UserError for stored positions that are not sinusoids of this kind."""
    for name in theirs.keys() & {*POSITION_TABLES}:
        table = marian.to_ours(theirs[name], 1)
        if not torch.allclose(table, sinusoids(len(table), table.size(1), kind), atol=1e-3):
            raise UserError(
                f"{file}: {name} is not the table of sinusoids of this family, so it can't be imported."
            )
