"""The corpus of a training: prepared at its start or before, with the options that follow from it."""

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transduce import model_folder
from transduce.config import size_table
from transduce.config.families import TEXT_SOURCES
from transduce.config.parse import configure
from transduce.config.schema import DataConfig, RunConfig, differences
from transduce.config.settings import CORPUS, FROM_SIZES, MODEL, Settings
from transduce.preparation.passes import check_vocabulary
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared, is_prepared, open_prepared
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.system.files import ASIDE
from transduce.text.languages import nearest_code
from transduce.tokens.tokenizer import Tokenizer


def prepare_corpus(
    settings: Settings, out: Path, tokenizer: Tokenizer | None, threads: int
) -> Prepared:
    """Open the corpus in data.corpora if it is prepared already, else prepare the corpus in `out`.

    `tokenizer` is that of the model to continue from, if any.
    """
    data = settings.config().data
    own = out / model_folder.DATA
    is_given = len(data.corpora) == 1 and is_prepared(data.corpora[0].files)
    # A first start that was killed left this corpus.
    if own.exists() and not (is_given and own.samefile(data.corpora[0].files[0])):
        shutil.rmtree(own.rename(out / f".{model_folder.DATA}{ASIDE}old"))
    if is_given:
        prepared = open_prepared(Path(data.corpora[0].files[0]))
        check_prepared(prepared, settings, tokenizer)
        return prepared
    size = settings.get("data.vocab_size")
    log("Reading the corpus …" if tokenizer else "Reading the corpus, learning the vocabulary …")
    return prepare(
        data,
        own,
        vocab_size=lambda pairs: (
            size or (0 if tokenizer else size_table.sizes_for(pairs).vocab_size)
        ),
        tokenizer=tokenizer,
        threads=threads,
    )


def check_prepared(prepared: Prepared, settings: Settings, tokenizer: Tokenizer | None) -> None:
    """Raise UserError if the options or the vocabulary of a prepared corpus don't fit the training."""
    folder = prepared.folder
    data = settings.config().data
    _check_options(prepared, settings, has_origin=tokenizer is not None)
    check_vocabulary(settings, prepared.tokenizer.source.size, folder)
    if data.corpora[0].weight != 1 or data.corpora[0].synthetic:
        raise UserError(
            f"{folder} is prepared already.",
            "Leave out the weight of this corpus, and synthetic.",
        )
    if data.valid:
        raise UserError(
            f"{folder} has its own validation text.",
            "Leave out the validation files.",
            "data.valid",
        )
    if tokenizer and not tokenizer.same_pieces(prepared.tokenizer):
        raise UserError(
            f"{folder} has another vocabulary than the model to continue from.",
            "Name text files instead.",
        )
    if (
        tokenizer
        and tokenizer.tag_of(prepared.facts.target)
        and not prepared.facts.options["data.directions"]
    ):
        raise UserError(
            f"The model reads language tags, but {folder} has none.",
            "Name text files instead.",
        )


def _check_options(prepared: Prepared, settings: Settings, *, has_origin: bool) -> None:
    """Raise UserError if the user chose other options or the model has other languages than the prepared corpus."""
    folder = prepared.folder
    config = settings.config()
    options = options_of(prepared)
    for name, (was, now) in differences(configure(options), config).items():
        if name in options and settings.is_chosen(name) and now != "auto":
            raise UserError(
                f"{folder} was prepared with {name} = {was}.",
                f"Leave {name} out, or prepare again.",
            )
        is_new = name in ("data.source", "data.target") and nearest_code(was, [now]) is None
        is_named = {was, now}.isdisjoint((DataConfig.source, DataConfig.target))
        if has_origin and is_new and is_named and not config.data.directions:
            raise UserError(
                f"{folder} has {name} = {was}, but the model has {now}.",
                "To add a language, name text files.",
            )


def options_of(prepared: Prepared) -> dict[str, Any]:
    """The options that a prepared corpus fixes."""
    facts = prepared.facts
    return {**facts.options, "data.source": facts.source, "data.target": facts.target}


def check_size(settings: Settings, pairs: int) -> None:
    """Raise UserError if a corpus is too small to train on, unless the user chose train.steps."""
    if pairs < size_table.MIN_TRAINING_PAIRS and not settings.is_chosen("train.steps"):
        raise UserError(
            f"The corpus has {count(pairs, 'pair')} to train on, too few to learn "
            f"from. A training run needs at least {size_table.MIN_TRAINING_PAIRS}, "
            f"and useful translations need about {size_table.USEFUL_PAIRS:,}.",
            "Add pairs, or set train.steps to train all the same.",
        )


def check_tags(prepared: Prepared, config: RunConfig) -> None:
    """Raise UserError if the decoder would read tags that the vocabulary lacks, or lacks those that it has."""
    if config.model.target_tag != prepared.tokenizer.has_own_tags:
        raise UserError(
            "model.target_tag is for models that were imported with a tag for each language.",
            "Leave model.target_tag out.",
        )


def check_positions(prepared: Prepared, config: RunConfig) -> None:
    """Raise UserError if a sentence is too long for the learned position embeddings."""
    if config.model.positions != "learned":
        return
    limit = config.model.max_positions - 1  # one position is for EOS or BOS
    longest, length = prepared.mixture.longest()
    remedy = f"Raise model.max_positions ({config.model.max_positions})"
    if length > limit:
        raise UserError(
            f"{prepared.origin(longest)} has {length} tokens.",
            f"{remedy}, or lower data.max_length to {limit}.",
        )
    for pair in prepared.valid():
        tokenizer = prepared.tokenizer.toward(pair.direction)
        rows = tokenizer.encode_source([pair.source]) + tokenizer.encode_target([pair.target])
        length = max(map(len, rows))
        if length > limit:
            raise UserError(
                f"A pair of the validation set has {length} tokens: '{pair.source}'.",
                f"{remedy}, or remove the pair.",
            )


def with_corpus(settings: Settings, prepared: Prepared, out: Path, *, has_origin: bool) -> Settings:
    """Add the options and the vocabulary sizes of the prepared corpus to the settings."""
    tokenizer = prepared.tokenizer
    is_own = prepared.folder.resolve().parent == out.resolve()
    values = options_of(prepared)
    # A model is derived from the model that it continues from, and from the teacher that made its corpus.
    licences = [each.get("data.licence", "") for each in (settings, values)]
    values["data.licence"] = joined_licences(licences)
    if not is_own:  # an absolute path, since a later start may have another working directory
        values["data.corpora"] = [{"files": [str(prepared.folder.resolve())]}]
    sizes = {
        "data.vocab_size": tokenizer.target.size,
        "model.vocab_size": tokenizer.target.size,
        "model.source_vocab_size": 0 if tokenizer.joint else tokenizer.source.size,
    }
    if tokenizer.source_kind != TEXT_SOURCES:
        sizes["model.vector"] = tokenizer.values_per_position
        if settings.config().model.positions == "learned":
            raise UserError(
                "Sources that are not text need positions without a limit.",
                "Leave it out.",
                "model.positions",
            )
    source = CORPUS
    if has_origin:
        source = MODEL
    elif is_own and not settings.is_chosen("data.vocab_size"):
        source = FROM_SIZES
    return settings.over(CORPUS, values).over(source, sizes)


def joined_licences(licences: Iterable[str]) -> str:
    """The licence of a model that is derived from models with these licences, each named once."""
    names = " and ".join(filter(None, licences))
    return " and ".join(dict.fromkeys(names.split(" and ")))
