"""The first start of a training: corpus, sizes, model, and a checkpoint at step 0 from which any start goes on."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from transduce import bundle, sizing
from transduce.config import RunConfig, configure, flatten, to_toml
from transduce.errors import UserError
from transduce.files import write_text
from transduce.journal import duration, say
from transduce.model.build import build, count_parameters, load_weights
from transduce.preparation import Prepared, is_prepared, open_prepared, prepare
from transduce.tokens.batching import padding_share
from transduce.tokens.tokenizer import Tokenizer
from transduce.training.checkpoint import TrainState, load_checkpoint, save_checkpoint
from transduce.training.loop import micro_budget
from transduce.training.optimizer import make_optimizer
from transduce.training.rehearsal import Rehearsal, rehearse


def start(given: Mapping[str, Any], out: Path, init: Path | None, keep_optimizer: bool, device: torch.device) -> None:
    """Prepare everything that a training needs in `out`, and say what is about to happen."""
    if out.exists() and any(path.name != bundle.DATA and not path.name.startswith(".") for path in out.iterdir()):
        raise UserError(f"{out} exists and is not a training of transduce; give another folder with --out.")
    origin = bundle.load(init) if init else None
    inherited = flatten(origin.config, ("model",)) if origin else {}
    threads = configure(given).train.threads or torch.get_num_threads()
    torch.set_num_threads(threads)
    prepared = prepared_corpus(configure(inherited, given), given, out, origin.tokenizer if origin else None, threads)
    config = _shape(prepared, inherited, given, threads)
    model = build(config.model, config.train.seed).to(device)
    if init:
        load_weights(model, bundle.describe(init).weights)
    rehearsal = rehearse(model, prepared.mixture, config, device)
    config = _length(config, given, prepared.facts.pairs, rehearsal)
    for line in _announce(prepared, config, given, rehearsal, device):
        say(line)
    optimizer = make_optimizer(model.parameters(), config.train)
    if init and keep_optimizer:
        load_checkpoint(bundle.newest_whole(init), model, optimizer)
    prepared.tokenizer.save(out)
    save_checkpoint(out / bundle.CHECKPOINTS, model, optimizer, TrainState())
    write_text(out / bundle.CONFIG, to_toml(config))


def place(config: RunConfig, device: torch.device) -> str:
    """What computes, for people."""
    if device.type == "cpu":
        return f"{config.train.threads} CPU thread{'s' if config.train.threads > 1 else ''}"
    return torch.cuda.get_device_name(device)


def prepared_corpus(
    config: RunConfig, given: Mapping[str, Any], out: Path, tokenizer: Tokenizer | None, threads: int
) -> Prepared:
    """The prepared corpus: the folder that was given as one, or a new one in the run's folder."""
    if len(config.data.corpora) == 1 and is_prepared(config.data.corpora[0].files):
        return open_prepared(Path(config.data.corpora[0].files[0]))
    if (out / bundle.DATA).exists():  # of a start that was cut short before it had a configuration
        shutil.rmtree(out / bundle.DATA)
    size = given.get("data.vocab_size")
    return prepare(
        config.data,
        out / bundle.DATA,
        vocab_size=lambda pairs: size or sizing.sizes_for(pairs).vocab_size,
        tokenizer=tokenizer,
        threads=threads,
    )


def _shape(prepared: Prepared, inherited: Mapping[str, Any], given: Mapping[str, Any], threads: int) -> RunConfig:
    """The configuration with all sizes that the prepared corpus decides."""
    facts, tokenizer = prepared.facts, prepared.tokenizer
    found = {
        "data.vocab_size": tokenizer.target_size,
        "data.source": facts.source,
        "data.target": facts.target,
        "model.vocab_size": tokenizer.target_size,
        "model.source_vocab_size": 0 if tokenizer.joint else tokenizer.source_size,
        "train.threads": threads,
    }
    return configure(sizing.model_options(facts.pairs), inherited, given, found)


def _length(config: RunConfig, given: Mapping[str, Any], pairs: int, rehearsal: Rehearsal) -> RunConfig:
    """The configuration with what depends on the updates of an epoch."""
    per_epoch = rehearsal.updates_per_epoch
    found = {
        "train.accumulate": rehearsal.accumulate,
        "train.save_every": config.train.save_every or per_epoch,
        "train.validate_every": config.train.validate_every or per_epoch,
    }
    return configure(flatten(config), sizing.training_options(pairs, per_epoch), given, found)


def _announce(
    prepared: Prepared, config: RunConfig, given: Mapping[str, Any], rehearsal: Rehearsal, device: torch.device
) -> list[str]:
    """What is about to happen, and why so."""
    facts, data, model, run = prepared.facts, config.data, config.model, config.train
    row = sizing.sizes_for(facts.pairs)
    chosen = (
        f" (chosen for up to {row.up_to:,.0f} pairs)" if row.up_to < float("inf") else " (chosen for a large corpus)"
    )

    def why(*names: str) -> str:
        return "" if any(name in given for name in names) else chosen

    left_out = ", ".join(f"{count:,} {rule}" for rule, count in facts.left_out.items())
    joint = "" if model.source_vocab_size else "joint "
    cut = f"in {run.accumulate} micro-batches" if run.accumulate > 1 else "in one micro-batch"
    budget = f", at most {run.minutes:g} minutes" if run.minutes else ""
    per_epoch = rehearsal.updates_per_epoch
    return [
        f"Corpus      {facts.pairs:,} pairs {facts.source}-{facts.target}, {facts.target_tokens:,} target tokens; "
        f"{facts.held_out:,} more to validate on" + (f"; left out: {left_out}" if left_out else ""),
        f"Vocabulary  {model.vocab_size:,} {joint}{data.tokenizer} pieces" + why("data.vocab_size"),
        f"Model       {model.kind}, {model.num_encoder_layers}+{model.num_decoder_layers} layers, d_model "
        f"{model.d_model}, d_ff {model.d_ff}, {model.num_heads} heads, {model.norm}-norm, dropout {model.dropout:g}: "
        f"{count_parameters(model):,} parameters" + why("model.d_model", "model.num_encoder_layers"),
        f"Batches     {data.max_tokens:,} tokens a side and update {cut}, {_padding(prepared, config):.1%} padding; "
        f"{per_epoch:,} updates an epoch" + why("data.max_tokens"),
        f"Training    {run.steps:,} updates ({run.steps / per_epoch:.1f} epochs){budget}, warm-up {run.warmup:,}, "
        f"{run.precision} on {place(config, device)}" + why("train.steps"),
        f"Time        about {duration(run.steps * rehearsal.seconds_per_update)} (h:mm:ss) of updates, as it looks now",
    ]


def _padding(prepared: Prepared, config: RunConfig) -> float:
    """The share of padding in the first epoch."""
    data, run = prepared.mixture, config.train
    plan = data.epoch(0, budget=micro_budget(config), accumulate=run.accumulate, seed=run.seed)
    return padding_share([batch for batches in plan for batch in batches], data.source_lengths, data.target_lengths)
