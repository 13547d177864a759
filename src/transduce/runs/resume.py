"""A training where its newest whole checkpoint has it, and what may have changed since."""

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from transduce import bundle
from transduce.config import DataConfig, RunConfig, configure, differences, flatten, to_toml
from transduce.errors import UserError
from transduce.files import MANIFEST, remove_leftovers, write_text
from transduce.journal import Journal, say
from transduce.model.build import build, count_parameters
from transduce.model.seq2seq import Seq2Seq
from transduce.preparation import Prepared, is_prepared, open_prepared
from transduce.runs.evaluate import validation
from transduce.runs.start import place
from transduce.tokens.tokenizer import Tokenizer
from transduce.training import checkpoint
from transduce.training.checkpoint import TrainState, load_checkpoint
from transduce.training.loop import Training
from transduce.training.optimizer import make_optimizer

TEXT = ("data.corpora", "data.valid", "data.source", "data.target")
FOUND = (*TEXT, "data.vocab_size", "model.vocab_size", "model.source_vocab_size")
LEFT_OPEN = {  # by these values
    "train.accumulate": 0,
    "train.save_every": 0,
    "train.validate_every": 0,
    "train.threads": 0,
    "train.precision": "auto",
}

# What a training cannot change on its way, and what changes nothing that it learns.
FIXED = ("model.", "data.", "train.seed", "train.accumulate", "train.optimizer")
FREE = ("model.dropout", "model.attention_dropout", "data.test")
HARMLESS = ("train.steps", "train.minutes", "train.patience", "train.keep_last", "data.test", "decode.")


def resume(given: Mapping[str, Any], out: Path, journal: Journal, device: torch.device) -> tuple[Training, Prepared]:
    """The training where its newest whole checkpoint has it."""
    old = bundle.read_config(out)
    # Sizes that were found out at the first start may have been asked for differently, or left to be found; the corpus
    # is the one that was prepared then, wherever its files are now.
    fixed = [*FOUND, *(name for name, left in LEFT_OPEN.items() if given.get(name, left) == left)]
    asked = configure({name: given[name] for name in TEXT if name in given}).data
    found = {name: value for name, value in flatten(old).items() if name in fixed}
    config = configure(flatten(old), given, found)
    for line in [*other_text(old.data, asked, out), *changes(old, config, out)]:
        say(line)
    if config != old:
        (out / MANIFEST).unlink(missing_ok=True)  # if it was finished, it is not any more
        write_text(out / bundle.CONFIG, to_toml(config))
    torch.set_num_threads(config.train.threads)
    prepared = open_data(config.data, asked, out)
    model = build(config.model, config.train.seed).to(device)
    optimizer = make_optimizer(model.parameters(), config.train)
    for folder in (out, out / bundle.CHECKPOINTS):
        remove_leftovers(folder)
    state = newest(out / bundle.CHECKPOINTS, model, optimizer)
    journal.truncate(state.journal_size)
    if state.step:
        say(f"Going on at step {state.step:,} of {config.train.steps:,}, epoch {state.epoch + 1}.")
    journal.write(
        "start",
        step=state.step,
        steps=config.train.steps,
        pairs=prepared.facts.pairs,
        parameters=count_parameters(config.model),
        device=place(config, device),
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
        folder=out / bundle.CHECKPOINTS,
        validate=validation(prepared.tokenizer, prepared.valid(), config),
        device=device,
    )
    return training, prepared


def other_text(was: DataConfig, asked: DataConfig, out: Path) -> list[str]:
    """A line if another corpus is asked for than the one that the training was started with, and goes on with.

    A prepared corpus may have moved; `open_data` looks at what it is.
    """
    names = [name.removeprefix("data.") for name in TEXT]
    given = [name for name in names if getattr(asked, name) != getattr(DataConfig(), name)]
    other = [name for name in given if getattr(asked, name) != getattr(was, name)]
    if not other or any(is_prepared(corpus.files) for corpus in asked.corpora):
        return []
    return [
        f"{out} goes on with the text that it was started with, whatever data.{' and data.'.join(other)} are now. To "
        f"learn from other text: transduce train --init {out} --train FILES --out ANOTHER."
    ]


def changes(old: RunConfig, new: RunConfig, out: Path) -> list[str]:
    """A line for each option that differs from the last start; raises UserError for one that may not."""
    lines = []
    for name, (was, now) in differences(old, new).items():
        if name.startswith(FIXED) and name not in FREE:
            raise UserError(
                f"{out} was started with {name} = {was}, which cannot become {now} on the way; leave it "
                "out, or train into a new folder."
            )
        harmless = name.startswith(HARMLESS) and not (name == "train.steps" and new.train.cooldown)
        meaning = "" if harmless else "; from here on this is another training than it would have been"
        lines.append(f"Changed: {name} is {now}, was {was}{meaning}.")
    return lines


def open_data(was: DataConfig, asked: DataConfig, out: Path) -> Prepared:
    """The prepared corpus of a run: its own, or the one that it was given, wherever that lies now.

    Raises UserError for one with another vocabulary.
    """
    own = out / bundle.DATA
    if own.is_dir():
        return open_prepared(own)
    files = next((corpus.files for corpus in asked.corpora if is_prepared(corpus.files)), was.corpora[0].files)
    prepared = open_prepared(Path(files[0]))
    if not prepared.tokenizer.same_pieces(Tokenizer.load(out)):
        raise UserError(f"{prepared.folder} has another vocabulary than {out} was started with; give the same corpus.")
    return prepared


def newest(folder: Path, model: Seq2Seq, optimizer: torch.optim.Optimizer) -> TrainState:
    """Load the newest checkpoint that is whole; a damaged one is named and set aside."""
    for path in reversed(checkpoint.checkpoints(folder)):
        try:
            return load_checkpoint(path, model, optimizer)
        except UserError as error:
            say(f"{error} The checkpoint before it is used.")
            path.rename(path.with_name(f"damaged-{path.name}"))
    raise UserError(f"{folder} holds no whole checkpoint; train into a new folder.")
