"""The first start of a training: corpus, sizes, model, and a checkpoint at step 0 from which any start goes on."""

import math
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from transduce import model_folder
from transduce.config import size_table
from transduce.config.schema import DataConfig, RunConfig, configure, differences, flatten, to_toml
from transduce.model.build import build, count_parameters
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared, is_prepared, open_prepared
from transduce.system.errors import UserError
from transduce.system.files import ASIDE, remove_leftovers, write_text
from transduce.system.journal import duration, say
from transduce.tokens.batching import padding_share
from transduce.tokens.tokenizer import JOINT, PIECES, SOURCE, TARGET, Tokenizer
from transduce.training.autobatch import Rehearsal, rehearse
from transduce.training.card import vocabulary
from transduce.training.checkpoint import TrainState, load_checkpoint, save_checkpoint
from transduce.training.distributed import ALONE, Ranks
from transduce.training.loop import micro_budget
from transduce.training.optimizer import make_optimizer

LEARNT = "data.tokenizer", "data.joint", "data.symbols"  # with the vocabulary
OPTIMIZER = "train.optimizer"


def start(
    given: Mapping[str, Any],
    out: Path,
    init: Path | None,
    keep_optimizer: bool,
    device: torch.device,
    ranks: Ranks = ALONE,
) -> None:
    """Prepare everything that a training needs in `out`, and say what is about to happen; rank 0 does it for all."""
    clear(out)
    origin = model_folder.load(init) if init else None
    if origin:
        _check_same(origin, given, keep_optimizer)
    known = flatten(origin.config) if origin else {}
    inherited = {name: value for name, value in known.items() if inherits(name, keep_optimizer)}
    threads = ranks.threads(configure(given).train.threads)
    torch.set_num_threads(threads)
    prepared = prepared_corpus(configure(inherited, given), given, out, origin.tokenizer if origin else None, threads)
    config = _shape(prepared, inherited, given, out, device, threads)
    _check_positions(prepared, config)
    model = build(config.model, config.train.seed)
    if not (config.train.shard and ranks.world > 1):  # which may be too large for one device
        model.to(device)
    if origin:
        model.load_state_dict(origin.model.state_dict())
    say("Trying how a batch fits, and how long an update takes …")
    rehearsal = rehearse(model, prepared.mixture, config, device, ranks)
    config = _length(config, given, prepared.facts.pairs, rehearsal, fine_tuning=init is not None)
    decided = {**inherited, **given}
    if origin or prepared.folder != out / model_folder.DATA:
        decided["data.vocab_size"] = config.data.vocab_size
    for line in _announce(prepared, config, decided, rehearsal, device, ranks):
        say(line)
    for line in _warnings(prepared, config, given, rehearsal):
        say(f"Warning     {line}")
    optimizer = make_optimizer(model.parameters(), config.train)
    if init and keep_optimizer:
        load_checkpoint(model_folder.newest_whole(init), model, optimizer)
    save_checkpoint(out / model_folder.CHECKPOINTS, model, optimizer, TrainState())
    prepared.tokenizer.save(out)
    write_text(out / model_folder.CONFIG, to_toml(config))


def clear(out: Path) -> None:
    """Remove what a start left that was killed before it had a configuration, but the prepared corpus.

    Raises UserError if `out` holds anything else.
    """
    found = {path.name for path in out.iterdir() if not path.name.startswith(".")} if out.is_dir() else set()
    begun = {path.name for path in (out / model_folder.CHECKPOINTS).glob("[!.]*")}
    ours = {model_folder.DATA} if is_prepared([str(out / model_folder.DATA)]) else set()
    if model_folder.CHECKPOINTS in found and begun <= {"step-00000000"}:
        ours |= {model_folder.CHECKPOINTS, JOINT, SOURCE, TARGET, PIECES}
    if found - ours or (out.exists() and not out.is_dir()):
        raise UserError(f"{out} exists and is not a training of transduce; give another folder with --out.")
    remove_leftovers(out)
    for name in found - {model_folder.DATA}:
        shutil.rmtree(out / name) if name == model_folder.CHECKPOINTS else (out / name).unlink()


def inherits(name: str, keep_optimizer: bool) -> bool:
    """Whether a model that is gone on from decides an option."""
    text = "data.source", "data.target", "data.bleu_tokenize", "data.placeholders"
    return name.startswith("model.") or name in (*text, *LEARNT) or (keep_optimizer and name == OPTIMIZER)


def place(config: RunConfig, device: torch.device, ranks: Ranks = ALONE) -> str:
    """What computes, for people."""
    times = f"{ranks.world} × " if ranks.world > 1 else ""
    if device.type == "cpu":
        threads = ranks.threads(config.train.threads) if ranks.world > 1 else config.train.threads
        return f"{times}{threads} CPU thread{'s' if threads > 1 else ''}"
    return times + torch.cuda.get_device_name(device)


def prepared_corpus(
    config: RunConfig, given: Mapping[str, Any], out: Path, tokenizer: Tokenizer | None, threads: int
) -> Prepared:
    """The prepared corpus: the folder that was given as one, or a new one in the run's folder."""
    if len(config.data.corpora) == 1 and is_prepared(config.data.corpora[0].files):
        prepared = open_prepared(Path(config.data.corpora[0].files[0]))
        facts = prepared.facts
        known = {**facts.options, "data.source": facts.source, "data.target": facts.target}
        for name, (was, now) in differences(configure(known), config).items():
            if name in known and name in given and now != "auto":
                raise UserError(f"{prepared.folder} was prepared with {name} = {was}; leave it out, or prepare again.")
        check_vocabulary(given, prepared.tokenizer.source_size, prepared.folder)
        if config.data.valid:
            raise UserError(
                f"{prepared.folder} brings its own validation text; leave out --valid, or prepare it again."
            )
        if tokenizer and not tokenizer.same_pieces(prepared.tokenizer):
            raise UserError(
                f"{prepared.folder} has another vocabulary than the model to go on from; give the text files."
            )
        return prepared
    if (out / model_folder.DATA).exists():  # of a start that was cut short before it had a configuration
        shutil.rmtree((out / model_folder.DATA).rename(out / f".{model_folder.DATA}{ASIDE}old"))
    size = given.get("data.vocab_size")
    say("Reading the corpus …" if tokenizer else "Reading the corpus, learning the vocabulary …")
    return prepare(
        config.data,
        out / model_folder.DATA,
        vocab_size=lambda pairs: size or size_table.sizes_for(pairs).vocab_size,
        tokenizer=tokenizer,
        threads=threads,
    )


def _shape(
    prepared: Prepared,
    inherited: Mapping[str, Any],
    given: Mapping[str, Any],
    out: Path,
    device: torch.device,
    threads: int,
) -> RunConfig:
    """The configuration with all sizes that the prepared corpus decides."""
    facts, tokenizer = prepared.facts, prepared.tokenizer
    found = {
        **facts.options,
        "data.vocab_size": tokenizer.target_size,
        "data.source": facts.source,
        "data.target": facts.target,
        "model.vocab_size": tokenizer.target_size,
        "model.source_vocab_size": 0 if tokenizer.joint else tokenizer.source_size,
        "train.threads": threads,
    }
    if prepared.folder.resolve().parent != out.resolve():  # another working directory must find it, too
        found["data.corpora"] = [{"files": [str(prepared.folder.resolve())]}]
    if configure(given).train.precision == "auto":
        found["train.precision"] = "bfloat16" if has_bfloat16(device) else "float32"
    return configure(size_table.model_options(facts.pairs), inherited, given, found)


def has_bfloat16(device: torch.device) -> bool:
    """Whether matrix products in bfloat16 are faster than in float32 there."""
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    names = "_is_avx512_bf16_supported", "_is_amx_tile_supported"
    return any(getattr(torch.cpu, name, lambda: False)() for name in names)


def _check_positions(prepared: Prepared, config: RunConfig) -> None:
    """Raise UserError for a sentence that learned positions can't encode, before training rather than on its way."""
    if config.model.positions != "learned":
        return
    data, most = prepared.mixture, config.model.max_positions - 1  # EOS, or BOS, takes one
    longest, length = data.longest()
    mend = f"raise model.max_positions ({config.model.max_positions})"
    if length > most:
        place = prepared.origin(longest)
        raise UserError(f"{place} has {length} tokens; {mend}, or lower data.max_length to {most}.")
    for pair in prepared.valid():
        rows = prepared.tokenizer.encode_source([pair.source]) + prepared.tokenizer.encode_target([pair.target])
        if max(map(len, rows)) > most:
            raise UserError(
                f"A pair to validate on has {max(map(len, rows))} tokens: '{pair.source}'; {mend}, or leave it out."
            )


def _check_same(origin: model_folder.Bundle, given: Mapping[str, Any], keep_optimizer: bool) -> None:
    """Raise UserError if another vocabulary, shape or optimiser is asked for than that of the model to go on from."""
    if keep_optimizer and not model_folder.checkpoints(origin.folder):
        raise UserError(f"{origin.folder} has no checkpoints, which hold the optimiser's state: no --keep-optimizer.")
    check_vocabulary(given, origin.tokenizer.source_size, origin.folder)
    for name, (was, now) in differences(origin.config, configure(flatten(origin.config), given)).items():
        shape = name.startswith("model.") and name not in ("model.dropout", "model.attention_dropout")
        if shape or name in LEARNT or (keep_optimizer and name == OPTIMIZER):
            raise UserError(f"{origin.folder} has {name} = {was}, which cannot become {now} on the way; leave it out.")


def check_vocabulary(given: Mapping[str, Any], pieces: int, folder: Path) -> None:
    """Raise UserError if fewer pieces are asked for than are learnt already; of more, the text had too few."""
    if given.get("data.vocab_size", pieces) < pieces:
        raise UserError(f"{folder} has a vocabulary of {pieces:,} pieces already: leave data.vocab_size out.")


def _length(
    config: RunConfig, given: Mapping[str, Any], pairs: int, rehearsal: Rehearsal, fine_tuning: bool
) -> RunConfig:
    """The configuration with what depends on the updates of an epoch."""
    per_epoch = rehearsal.updates_per_epoch
    found = {
        "train.accumulate": rehearsal.accumulate,
        "train.save_every": config.train.save_every or per_epoch,
        "train.validate_every": config.train.validate_every or per_epoch,
    }
    asked = min(given.get("train.steps", math.inf), _updates(config, rehearsal))
    automatic = size_table.training_options(
        pairs,
        per_epoch,
        config.model.d_model,
        given.get("train.warmup", 0),
        fine_tuning=fine_tuning,
        most=math.inf if "train.learning_rate" in given else asked,  # whose peak is higher after a shorter rise
    )
    chosen = {name: value for name, value in automatic.items() if name not in given}
    return configure(flatten(config), chosen, found)


def _announce(
    prepared: Prepared,
    config: RunConfig,
    given: Mapping[str, Any],
    rehearsal: Rehearsal,
    device: torch.device,
    ranks: Ranks,
) -> list[str]:
    """What is about to happen, and why so."""
    facts, data, model, run = prepared.facts, config.data, config.model, config.train
    row = size_table.sizes_for(facts.pairs)
    chosen = (
        f" (chosen for up to {row.up_to:,.0f} pairs)" if row.up_to < float("inf") else " (chosen for a large corpus)"
    )

    def why(*names: str) -> str:
        return "" if any(name in given for name in names) else chosen

    left_out = ", ".join(
        [f"{count:,} {rule}" for rule, count in facts.left_out.items()]
        + [f"{facts.dropped:,} related to what is validated on"] * bool(facts.dropped)
    )
    cut = f"in {run.accumulate} micro-batches" if run.accumulate > 1 else "in one micro-batch"
    budget = f", at most {run.minutes:g} minutes" if run.minutes else ""
    falls = f"cool-down {run.cooldown:,}, " if run.cooldown else ""
    per_epoch = rehearsal.updates_per_epoch
    seconds = min(run.steps * rehearsal.seconds_per_update, 60 * run.minutes or math.inf)
    return [
        f"Corpus      {facts.pairs:,} pairs {facts.source}-{facts.target}, {facts.target_tokens:,} target tokens; "
        f"{facts.held_out:,} more to validate on" + (f"; left out: {left_out}" if left_out else ""),
        *_untold(config),
        f"Vocabulary  {vocabulary(config)}" + why("data.vocab_size", "model.vocab_size"),
        f"Model       {model.shape}, dropout {model.dropout:g}: {count_parameters(model):,} parameters"
        + why("model.d_model", "model.num_encoder_layers"),
        f"Batches     up to {data.max_tokens:,} tokens on either side of an update, {cut}, "
        f"{_padding(prepared, config):.1%} padding; {per_epoch:,} updates an epoch" + why("data.max_tokens"),
        f"Training    {run.steps:,} updates ({run.steps / per_epoch:.1f} epochs){budget}, warm-up {run.warmup:,}, "
        f"{falls}{run.precision} on {place(config, device, ranks)}" + why("train.steps"),
        f"Time        about {duration(seconds)} (h:mm:ss) of updates, as it looks now"
        if math.isfinite(seconds)
        else "Time        shows once training has begun",
    ]


def _untold(config: RunConfig) -> list[str]:
    """A line if nobody has said which languages these are; a parser's target is none."""
    data, untold = config.data, DataConfig()
    if data.symbols or (data.source, data.target) != (untold.source, untold.target):
        return []
    return ["Languages   not named; with --from and --to (such as en, de) a server, documents and exports know them"]


def _warnings(prepared: Prepared, config: RunConfig, given: Mapping[str, Any], rehearsal: Rehearsal) -> Iterator[str]:
    """What was asked for and won't be: a rate that rises and falls in the updates that there will be, patience."""
    run, updates = config.train, _updates(config, rehearsal)
    limit = f"{run.minutes:g} minutes are enough for" if updates < run.steps else "There will be"
    updates = min(updates, run.steps)
    if updates <= 2 * run.warmup:
        yield (
            f"{limit} about {updates:,.0f} updates, and the learning rate rises for {run.warmup:,}: give more, or "
            "lower train.warmup and data.max_tokens."
        )
    elif run.cooldown and (updates < run.steps or run.cooldown > run.steps):
        yield (
            f"{limit} about {updates:,.0f} updates, and the learning rate falls in the last {run.cooldown:,} of "
            f"{run.steps:,}: set train.steps to what there will be, and train.cooldown to a part of it."
        )
    if given.get("train.patience") and not prepared.facts.held_out:
        yield f"There is nothing to validate on, so that train.patience ({run.patience}) ends nothing."


def _updates(config: RunConfig, rehearsal: Rehearsal) -> float:
    """Those that train.minutes leave time for; infinite where there is no limit, or it isn't known."""
    if not config.train.minutes or not math.isfinite(rehearsal.seconds_per_update):
        return math.inf
    return round(60 * config.train.minutes / rehearsal.seconds_per_update)


def _padding(prepared: Prepared, config: RunConfig) -> float:
    """The share of padding in the first block."""
    data, run = prepared.mixture, config.train
    plan = data.plan(0, 0, budget=micro_budget(config), accumulate=run.accumulate, seed=run.seed)
    return padding_share([data.lengths(batch) for batches in plan for batch in batches])
