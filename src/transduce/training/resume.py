"""A training where its newest whole checkpoint has it, and what may have changed since."""

import os
import platform
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transduce import model_folder
from transduce.config.schema import DataConfig, RunConfig, configure, differences, flatten, to_toml
from transduce.evaluation.evaluate import validation
from transduce.model.build import build, count_parameters
from transduce.model.seq2seq import Seq2Seq
from transduce.preparation.prepared import Prepared, is_prepared, open_prepared
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST, remove_leftovers, write_text
from transduce.system.journal import Journal, say
from transduce.tokens.tokenizer import Tokenizer
from transduce.training import checkpoint
from transduce.training.checkpoint import TrainState, load_checkpoint
from transduce.training.distributed import ALONE, Ranks, spread
from transduce.training.loop import Training
from transduce.training.optimizer import make_optimizer
from transduce.training.start import check_vocabulary, place

TEXT = ("data.corpora", "data.valid", "data.source", "data.target")
FOUND = (*TEXT, "data.vocab_size", "model.vocab_size", "model.source_vocab_size")
LEFT_OPEN = {  # by these values
    "train.accumulate": 0,
    "train.save_every": 0,
    "train.validate_every": 0,
    "train.threads": 0,
    "train.precision": "auto",
    "data.placeholders": "auto",
}

# What a training cannot change on its way, and what changes nothing that it learns.
FIXED = ("model.", "data.", "train.seed", "train.accumulate", "train.optimizer")
FREE = ("model.dropout", "model.attention_dropout", "data.test")
HARMLESS = ("train.steps", "train.minutes", "train.patience", "train.keep_last", "train.shard", "data.test", "decode.")


class Continued(NamedTuple):
    """A training that goes on."""

    config: RunConfig
    asked: DataConfig  # the text that was given, if any
    changes: dict[str, tuple[Any, Any]]  # options by name, as they were and as they are now


def continued(given: Mapping[str, Any], out: Path) -> Continued:
    """What the training in `out` would go on with; raises UserError for what it can't become on its way."""
    old = model_folder.read_config(out)
    # Sizes that were found out at the first start may have been asked for differently, or left to be found; the corpus
    # is the one that was prepared then, wherever its files are now.
    fixed = [*FOUND, *(name for name, left in LEFT_OPEN.items() if given.get(name, left) == left)]
    asked = configure({name: given[name] for name in TEXT if name in given}).data
    found = {name: value for name, value in flatten(old).items() if name in fixed}
    config = configure(flatten(old), given, found)
    refuse_other_text(old.data, asked, out)
    check_vocabulary(given, old.model.source_vocab_size or old.model.vocab_size, out)
    changes = differences(old, config)
    for name, (was, now) in changes.items():
        if name.startswith(FIXED) and name not in FREE:
            raise UserError(
                f"{out} was started with {name} = {was}, which cannot become {now} on the way; leave it "
                "out, or train into a new folder."
            )
    return Continued(config, asked, changes)


def resume(
    going: Continued, out: Path, journal: Journal, device: torch.device, ranks: Ranks = ALONE
) -> tuple[Training, Prepared]:
    """The training where its newest whole checkpoint has it; a finished one is finished no more."""
    config = going.config
    for name, change in going.changes.items():
        say(meaning(name, change, config))
    torch.set_num_threads(ranks.threads(config.train.threads))
    prepared = open_data(config.data, going.asked, out)
    sharded = config.train.shard and ranks.world > 1
    model = build(config.model, config.train.seed).to("cpu" if sharded else device)
    learner = ranks.wrap(model, shard=sharded, sparse=config.model.experts > 0, device=device)
    optimizer = make_optimizer(learner.parameters(), config.train)
    if ranks.first:
        for folder in (out, out / model_folder.CHECKPOINTS):
            remove_leftovers(folder)
    state = newest(out / model_folder.CHECKPOINTS, model, optimizer, ranks)
    spread(model, learner, ranks)
    if state.step > config.train.steps:
        raise UserError(f"{out} has {state.step:,} updates behind it; train.steps cannot be {config.train.steps:,}.")
    if going.changes and ranks.first:  # not before all that may be missing is there
        (out / MANIFEST).unlink(missing_ok=True)
        write_text(out / model_folder.CONFIG, to_toml(config))
    journal.truncate(state.journal_size)
    if config.train.accumulate < ranks.world:
        say(
            f"Warning: an update has {config.train.accumulate} micro-batches (train.accumulate), so that of "
            f"{ranks.world} processes some do nothing; start anew with them, or go on with fewer."
        )
    if state.step:
        say(f"Going on at step {state.step:,} of {config.train.steps:,}, epoch {state.epoch + 1}.")
    journal.write(
        "start",
        step=state.step,
        steps=config.train.steps,
        pairs=prepared.facts.pairs,
        parameters=count_parameters(config.model),
        device=place(config, device, ranks),
        torch=torch.__version__,
        python=platform.python_version(),
    )
    training = Training(
        config=config,
        model=model,
        optimizer=optimizer,
        data=prepared.mixture,
        origin=prepared.origin,
        state=state,
        journal=journal,
        folder=out / model_folder.CHECKPOINTS,
        validate=validation(prepared.tokenizer, prepared.valid(), config),
        device=device,
        ranks=ranks,
        wrapped=learner,
    )
    return training, prepared


def refuse_other_text(was: DataConfig, asked: DataConfig, out: Path) -> None:
    """Raise UserError if other text is asked for than the training was started with: it may be another's folder.

    A prepared corpus may have moved; `open_data` looks at what it is.
    """

    def values(data: DataConfig) -> dict[str, Any]:
        corpora = [(tuple(map(os.path.abspath, corpus.files)), corpus.weight) for corpus in data.corpora]
        texts = {"--train": corpora, "--valid": tuple(map(os.path.abspath, data.valid))}
        return texts | {"--from": data.source, "--to": data.target}

    moved = not (out / model_folder.DATA).is_dir() and any(is_prepared(corpus.files) for corpus in asked.corpora)
    none, now, before = values(DataConfig()), values(asked), values(was)
    other = [name for name in now if now[name] not in (none[name], before[name]) and not (name == "--train" and moved)]
    if other:
        raise UserError(
            f"{out} is a training that was started with other text than {' and '.join(other)} say; to go on with it, "
            f"leave them out. To learn from other text: {_anew(out)}."
        )


def _anew(out: Path) -> str:
    """The command that goes on from a model, as a shell reads it."""
    return f"transduce train --init {shlex.quote(str(out))} --train FILES --out ANOTHER"


def meaning(name: str, change: tuple[Any, Any], config: RunConfig) -> str:
    """A line about an option that differs from the last start."""
    was, now = change
    harmless = name.startswith(HARMLESS) and not (name == "train.steps" and config.train.cooldown)
    other = "" if harmless else "; from here on this is another training than it would have been"
    return f"Changed: {name} is {now}, was {was}{other}."


def open_data(was: DataConfig, asked: DataConfig, out: Path) -> Prepared:
    """The prepared corpus of a run: its own, or the one that it was given, wherever that lies now.

    Raises UserError for one with another vocabulary.
    """
    own = out / model_folder.DATA
    if own.is_dir():
        return open_prepared(own)
    files = next((corpus.files for corpus in asked.corpora if is_prepared(corpus.files)), was.corpora[0].files)
    if not is_prepared(files):
        raise UserError(f"The prepared text of {out} is gone, neither {own} nor {files[0]} has it; {instead(out)}.")
    prepared = open_prepared(Path(files[0]))
    if not prepared.tokenizer.same_pieces(Tokenizer.load(out)):
        raise UserError(f"{prepared.folder} has another vocabulary than {out} was started with; give the same corpus.")
    return prepared


def instead(out: Path) -> str:
    """What to do where a training can't go on."""
    if not (out / MANIFEST).exists():
        return "train into a new folder"
    return f"to go on from the model, with a fresh optimiser: {_anew(out)}"


def newest(folder: Path, model: Seq2Seq, optimizer: torch.optim.Optimizer, ranks: Ranks = ALONE) -> TrainState:
    """Load the newest checkpoint that is whole; a damaged one is named and set aside. Rank 0 chooses for all."""
    if not ranks.first:
        return load_checkpoint(folder / ranks.agree(""), model, optimizer)
    for path in reversed(checkpoint.checkpoints(folder)):
        try:
            state = load_checkpoint(path, model, optimizer)
        except UserError as error:
            say(f"{error} The checkpoint before it is used.")
            damaged = path.with_name(f"damaged-{path.name}")
            shutil.rmtree(damaged, ignore_errors=True)  # of an earlier time that it was reached
            path.rename(damaged)
        else:
            ranks.agree(path.name)
            return state
    raise UserError(f"{folder} holds no whole checkpoint; {instead(folder.parent)}.")
