"""Starts a training run by preparing the corpus, choosing options and saving the initial model."""

import math
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from transduce import model_folder
from transduce.config import size_table
from transduce.config.parse import configure
from transduce.config.schema import DataConfig, RunConfig, differences, flatten
from transduce.config.settings import CORPUS, FROM_SIZES, MACHINE, MODEL, TRIAL, Settings
from transduce.model.build import build
from transduce.model.device import set_threads
from transduce.model.seq2seq import Seq2Seq
from transduce.preparation.passes import check_vocabulary
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared, is_prepared, open_prepared, read_facts
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.system.files import ASIDE, remove_leftovers
from transduce.text.languages import nearest_code, target_of
from transduce.tokens.tokenizer import JOINT, PIECES, SOURCE, TARGET, Tokenizer
from transduce.tokens.vocabulary import SPACE
from transduce.training.announce import announcement, updates_in_budget
from transduce.training.autobatch import Trial, check_memory, has_fast_bfloat16, try_batches
from transduce.training.checkpoint import TrainState, load_checkpoint, save_checkpoint
from transduce.training.distributed import ALONE, Ranks
from transduce.training.run_card import begin_run_card
from transduce.training.schedule import check_risk
from transduce.training.update import make_optimizer

VOCABULARY_OPTIONS = "data.tokenizer", "data.joint", "data.symbols"  # fixed once the vocabulary is learned
INHERITED = (  # from the model that training continues from, unless the user chooses otherwise
    *("model.", "decode.", "data.source", "data.target", "data.directions", "data.bleu_tokenize", "data.placeholders"),
    *VOCABULARY_OPTIONS,
)
Fit = Callable[[float], Mapping[str, Any]]  # measured seconds per update -> options


def with_known_languages(settings: Settings, init: Path | None) -> Settings:
    """Add the languages of a prepared corpus, and those of the model `init`, by which a test set is read."""
    for corpus in settings.config().data.corpora:
        if is_prepared(corpus.files):
            facts = read_facts(Path(corpus.files[0]))
            languages = {"data.source": facts.source, "data.target": facts.target}
            settings = settings.under(CORPUS, languages | {"data.directions": facts.options["data.directions"]})
    if init and (init / model_folder.CONFIG).is_file():
        data, names = model_folder.read_config(init).data, ("source", "target", "directions")
        settings = settings.under(MODEL, {f"data.{name}": getattr(data, name) for name in names})
    return settings


def start(
    settings: Settings,
    out: Path,
    init: Path | None,
    keep_optimizer: bool,
    device: torch.device,
    ranks: Ranks = ALONE,
    fit: Fit | None = None,
) -> None:
    """Write the initial files of a training run to `out`, and print the chosen options. Only rank 0 may call this."""
    clear(out)
    given, (settings, origin) = settings, with_origin(settings, init, keep_optimizer)
    set_threads(threads := ranks.threads(wanted := settings.config().train.threads))
    prepared = prepare_corpus(settings, out, origin.tokenizer if origin else None, threads)
    if not origin:
        check_size(settings, prepared.facts.pairs)
    settings = _with_corpus(settings, prepared, out, has_origin=origin is not None)
    machine: dict[str, Any] = {"train.threads": wanted or threads * ranks.local_world}  # of all processes together
    if settings.config().train.precision == "auto":
        machine["train.precision"] = "bfloat16" if has_fast_bfloat16(device) else "float32"
    settings = settings.over(MACHINE, machine)
    sizes = size_table.model_options(prepared.facts.pairs, settings.config().model.activation)
    config = (settings := settings.under(FROM_SIZES, sizes)).config()
    _check_positions(prepared, config)
    if not (config.train.shard and ranks.world > 1):
        check_memory(config, device)
    model = build(config.model, config.train.seed)
    if not (config.train.shard and ranks.world > 1):  # a sharded model may be too large for one device
        model.to(device)
    if origin:
        model.load_state_dict(_extended(origin, prepared.tokenizer, model))
    log("Measuring memory and speed …")
    trial = try_batches(model, prepared.drawn(config), config, device, ranks)
    if fit:
        settings = settings.under(TRIAL, fit(trial.seconds_per_update))
    settings = _with_length(settings, prepared, trial, fine_tuning=bool(init) and not config.data.replay)
    config = settings.config()
    check_risk(config.train, init, bool(prepared.valid()))
    for line in announcement(prepared, settings, config, trial, device, ranks, from_scratch=not init):
        log(line)
    optimizer = make_optimizer(model.parameters(), config.train)
    if init and keep_optimizer:
        load_checkpoint(model_folder.newest_intact(init), model, optimizer)
    save_checkpoint(out / model_folder.CHECKPOINTS, model, optimizer, TrainState())
    prepared.tokenizer.save(out)
    begin_run_card(out, given, init, keep_optimizer)
    model_folder.write_config(out, config)


def with_origin(
    settings: Settings, init: Path | None, keep_optimizer: bool
) -> tuple[Settings, model_folder.Bundle | None]:
    """The settings with those of the model to continue from, and this model. Raises UserError for conflicts."""
    data = settings.config().data
    may_validate = bool(data.valid or data.holdout or any(is_prepared(corpus.files) for corpus in data.corpora))
    check_risk(settings.config().train, init, may_validate)
    if not init:
        if keep_optimizer:
            raise UserError("An optimizer state needs a model to continue from. Name this model, too.", option="init")
        return settings, None
    origin = model_folder.load(init)
    check_origin(origin, settings, keep_optimizer)
    inherited = (*INHERITED, "train.optimizer") if keep_optimizer else INHERITED
    values = {**flatten(origin.config), "decode.shortlist": False}  # it would lack the words of the first corpus
    settings = settings.under(MODEL, {name: value for name, value in values.items() if name.startswith(inherited)})
    risk = settings.get("train.risk_steps")
    only_risk = {"train.steps": risk} if risk and not settings.get("data.replay") else {}
    return settings.under(FROM_SIZES, only_risk), origin


@torch.no_grad()
def _extended(origin: model_folder.Bundle, tokenizer: Tokenizer, model: Seq2Seq) -> dict[str, torch.Tensor]:
    """The weights of `origin`, with a row for each token that its vocabulary lacks, as in the new `model`.

    The row is the mean of the rows of the tokens that spell the new token. For a tag, these are all older tags.
    """
    weights, old, size = origin.model.state_dict(), origin.tokenizer.target, origin.tokenizer.target.size
    tags, new = [*old.tags.values()] or list(range(size)), range(size, tokenizer.target.size)
    texts = [piece.replace(SPACE, " ") for piece in tokenizer.target.pieces(new)]
    spelt = [tags if text in tokenizer.target.tags else old.encode_behind(text) for text in texts]
    for name, weight in model.state_dict().items():
        if weight.shape != weights[name].shape:
            rows = torch.stack([weights[name][tokens].mean(0) for tokens in spelt])
            weights[name] = torch.cat([weights[name], rows])
    return weights


def leftovers(out: Path) -> set[str]:
    """The names of what an interrupted start left in `out`. Raises UserError for other files."""
    names = {path.name for path in out.iterdir() if not path.name.startswith(".")} if out.is_dir() else set()
    steps = {path.name for path in (out / model_folder.CHECKPOINTS).glob("[!.]*")}
    ours = {model_folder.BACK_TRANSLATION}
    ours |= {model_folder.DATA} if is_prepared([str(out / model_folder.DATA)]) else set()
    if model_folder.CHECKPOINTS in names and steps <= {"step-00000000"}:
        ours |= {model_folder.CHECKPOINTS, model_folder.SOURCES, model_folder.RUN, JOINT, SOURCE, TARGET, PIECES}
    if names - ours or (out.exists() and not out.is_dir()):
        raise UserError(
            f"{out} exists and is not a training run of transduce; choose another output folder.", option="out"
        )
    return names


def clear(out: Path) -> None:
    """Delete what an interrupted start left in `out`, except corpora. Raises UserError for other files."""
    names = leftovers(out)
    remove_leftovers(out, sole_writer=True)
    for name in names - {model_folder.DATA, model_folder.BACK_TRANSLATION}:
        shutil.rmtree(out / name) if name == model_folder.CHECKPOINTS else (out / name).unlink()


def check_origin(origin: model_folder.Bundle, settings: Settings, keep_optimizer: bool) -> None:
    """Raise UserError if `settings` conflict with the vocabulary, the shape or the optimizer of the model `origin`."""
    if keep_optimizer and settings.get("data.replay"):
        raise UserError("A model with a new language needs a new optimizer state.", option="keep_optimizer")
    if keep_optimizer and not model_folder.checkpoints(origin.folder):
        reason = "has no checkpoints, so its optimizer state is gone: train with a new optimizer."
        raise UserError(f"{origin.folder} {reason}", option="keep_optimizer")
    check_vocabulary(settings, origin.tokenizer.source.size, origin.folder)
    for name, (was, now) in differences(origin.config, configure(flatten(origin.config), settings)).items():
        is_shape = name.startswith("model.") and name not in ("model.dropout", "model.attention_dropout")
        if is_shape or name in VOCABULARY_OPTIONS or (keep_optimizer and name == "train.optimizer"):
            raise UserError(f"{origin.folder} has {name} = {was}, which can't change to {now}; leave {name} out.")


def check_size(settings: Settings, pairs: int) -> None:
    """Raise UserError if a corpus is too small to train on, unless the user chose train.steps."""
    if pairs < size_table.MIN_TRAINING_PAIRS and not settings.is_chosen("train.steps"):
        raise UserError(
            f"The corpus has {count(pairs, 'pair')} to train on, too few to learn from. A training run needs at least "
            f"{size_table.MIN_TRAINING_PAIRS}, and useful translations need about {size_table.USEFUL_PAIRS:,}. "
            "Add pairs, or set train.steps to train all the same."
        )


def prepare_corpus(settings: Settings, out: Path, tokenizer: Tokenizer | None, threads: int) -> Prepared:
    """Open the corpus in data.corpora if it is prepared already, else prepare the corpus in `out`."""
    data, own = settings.config().data, out / model_folder.DATA
    is_given = len(data.corpora) == 1 and is_prepared(data.corpora[0].files)
    if own.exists() and not (is_given and own.samefile(data.corpora[0].files[0])):  # of a first start that was killed
        shutil.rmtree(own.rename(out / f".{model_folder.DATA}{ASIDE}old"))
    if is_given:
        return _check_prepared(open_prepared(Path(data.corpora[0].files[0])), settings, tokenizer)
    size = settings.get("data.vocab_size")
    log("Reading the corpus …" if tokenizer else "Reading the corpus, learning the vocabulary …")
    return prepare(
        data,
        own,
        vocab_size=lambda pairs: size or (0 if tokenizer else size_table.sizes_for(pairs).vocab_size),
        tokenizer=tokenizer,
        threads=threads,
    )


def _check_prepared(prepared: Prepared, settings: Settings, tokenizer: Tokenizer | None) -> Prepared:
    """Return the prepared corpus. Raises UserError if its options or its vocabulary don't fit the training."""
    facts, folder, config = prepared.facts, prepared.folder, settings.config()
    options = {**facts.options, "data.source": facts.source, "data.target": facts.target}
    for name, (was, now) in differences(configure(options), config).items():
        if name in options and settings.is_chosen(name) and now != "auto":
            raise UserError(f"{folder} was prepared with {name} = {was}; leave {name} out, or prepare again.")
        is_new = name in ("data.source", "data.target") and nearest_code(was, [now]) is None
        is_named = {was, now}.isdisjoint((DataConfig.source, DataConfig.target))
        if tokenizer and is_new and is_named and not config.data.directions:
            raise UserError(f"{folder} has {name} = {was}, the model {now}. To add a language, name text files.")
    check_vocabulary(settings, prepared.tokenizer.source.size, folder)
    if config.data.corpora[0].weight != 1 or config.data.corpora[0].synthetic:
        raise UserError(f"{folder} is prepared already: leave out the weight of this corpus, and synthetic.")
    if config.data.valid:
        raise UserError(f"{folder} has its own validation text; leave out the validation files.", option="data.valid")
    if tokenizer and not tokenizer.same_pieces(prepared.tokenizer):
        raise UserError(f"{folder} has another vocabulary than the model to continue from; name text files instead.")
    if tokenizer and tokenizer.tag_of(facts.target) and not facts.options["data.directions"]:
        raise UserError(f"The model reads language tags, but {folder} has none; name text files instead.")
    return prepared


def _with_corpus(settings: Settings, prepared: Prepared, out: Path, *, has_origin: bool) -> Settings:
    """Add the options and the vocabulary sizes of the prepared corpus to the settings."""
    facts, tokenizer = prepared.facts, prepared.tokenizer
    is_own = prepared.folder.resolve().parent == out.resolve()
    values: dict[str, Any] = {**facts.options, "data.source": facts.source, "data.target": facts.target}
    if not is_own:  # an absolute path, since a later start may have another working directory
        values["data.corpora"] = [{"files": [str(prepared.folder.resolve())]}]
    sizes = {
        "data.vocab_size": tokenizer.target.size,
        "model.vocab_size": tokenizer.target.size,
        "model.source_vocab_size": 0 if tokenizer.joint else tokenizer.source.size,
    }
    source = MODEL if has_origin else FROM_SIZES if is_own and not settings.is_chosen("data.vocab_size") else CORPUS
    return settings.over(CORPUS, values).over(source, sizes)


def _with_length(settings: Settings, prepared: Prepared, trial: Trial, *, fine_tuning: bool) -> Settings:
    """Add all options that depend on the number of updates per epoch to the settings."""
    config, facts = settings.config(), prepared.facts
    per_epoch = trial.updates_per_epoch
    risk = config.train.risk_steps
    steps = settings.get("train.steps", 0)
    if only_risk := fine_tuning and 0 < steps == risk:
        per_epoch = -(-steps // size_table.RISK_VALIDATIONS)
    has_schedule = "train.learning_rate" in settings  # its options stay as the user or a recipe chose them
    is_planned = not only_risk and not config.data.symbols and not has_schedule
    automatic = size_table.training_options(
        facts.pairs,
        per_epoch,
        config.model.d_model,
        steps=0 if has_schedule else steps if only_risk else steps - risk if steps > risk else steps,
        warmup=settings.get("train.warmup", 0),
        rate_divisor=size_table.FINE_TUNING_DIVISOR if fine_tuning and not only_risk else 1,
        max_updates=math.inf if has_schedule else updates_in_budget(config, trial),
        cooldown=is_planned,
    )
    interval, steps = per_epoch, settings.get("train.steps", automatic["train.steps"])
    automatic = {**automatic, **({"train.patience": 0} if 0 < risk < steps else {})}
    if is_planned:
        automatic = {**automatic, **size_table.text_options(facts.pairs)}
        interval = size_table.validation_interval(prepared.mixture.pairs_per_epoch, facts.held_out, per_epoch, steps)
    longest = max(size_table.MIN_INTERVAL, steps // 5)
    measured = {
        "train.accumulate": trial.accumulate,
        "train.save_every": config.train.save_every or min(per_epoch, longest),
        "train.validate_every": config.train.validate_every or min(interval, longest),
    }
    return settings.over(TRIAL, measured).under(FROM_SIZES, automatic)


def _check_positions(prepared: Prepared, config: RunConfig) -> None:
    """Raise UserError if a sentence is too long for the learned position embeddings."""
    if config.model.positions != "learned":
        return
    data, limit = prepared.mixture, config.model.max_positions - 1  # one position is for EOS or BOS
    longest, length = data.longest()
    remedy = f"raise model.max_positions ({config.model.max_positions})"
    if length > limit:
        raise UserError(
            f"{prepared.origin(longest)} has {length} tokens; {remedy}, or lower data.max_length to {limit}."
        )
    for pair in prepared.valid():
        tokenizer = prepared.tokenizer.into(target_of(pair.direction))
        rows = tokenizer.encode_source([pair.source]) + tokenizer.encode_target([pair.target])
        length = max(map(len, rows))
        if length > limit:
            raise UserError(
                f"A pair of the validation set has {length} tokens: '{pair.source}'; {remedy}, or remove the pair."
            )
