"""A training from its first start, or from where it stands, to the model folder at its end."""

import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transduce import bundle
from transduce.config import RunConfig, configure, differences, flatten, to_toml
from transduce.corpus.pairs import read_pairs
from transduce.errors import UserError
from transduce.files import MANIFEST, remove_leftovers, write_text
from transduce.journal import Journal, say
from transduce.model.build import build, count_parameters
from transduce.model.seq2seq import Seq2Seq
from transduce.preparation import Facts, Prepared, open_prepared
from transduce.runs.card import model_card
from transduce.runs.evaluate import as_json, evaluate, validation
from transduce.runs.start import place, start
from transduce.training import checkpoint
from transduce.training.allocator import keep_memory
from transduce.training.checkpoint import TrainState, load_checkpoint
from transduce.training.loop import Reason, Training
from transduce.training.loop import train as run_loop
from transduce.training.optimizer import make_optimizer

EXAMPLES = 8  # translations kept in the metrics

# What a training cannot change on its way, and what changes nothing that it learns.
FIXED = ("model.", "data.", "train.seed", "train.accumulate", "train.optimizer")
FREE = ("model.dropout", "model.attention_dropout", "data.test")
HARMLESS = ("train.steps", "train.minutes", "train.patience", "train.keep_last", "data.test", "decode.")


class Result(NamedTuple):
    """What a training left behind."""

    folder: Path
    reason: Reason
    metrics: Mapping[str, Any]  # as in metrics.json; empty if the training was interrupted


def train(
    given: Mapping[str, Any],
    out: Path | str,
    *,
    init: Path | str | None = None,
    keep_optimizer: bool = False,
    device: torch.device | None = None,
    tensorboard: bool = False,
) -> Result:
    """Train a model into `out`, or go on with the training that is there.

    given: options by dotted name; the others are chosen from the size of the corpus. init: a model folder to go on
    from with its tokenizer and shape; keep_optimizer: with the optimiser's state of its newest checkpoint, too.
    Raises UserError for what can't be trained.
    """
    keep_memory()
    out, init = Path(out), Path(init) if init else None
    device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if not (out / bundle.CONFIG).is_file():
        start(given, out, init, keep_optimizer, device)
    with Journal(out / bundle.JOURNAL, tensorboard=tensorboard) as journal:
        training, prepared = resume(given, out, journal, device)
        if (out / MANIFEST).exists() and training.state.step >= training.config.train.steps:
            raise UserError(f"{out} is finished at {training.state.step:,} updates; set train.steps higher to go on.")
        reason = run_loop(training)
        journal.write("stop", step=training.state.step, reason=reason, seconds=training.state.seconds)
        if reason == "interrupted":
            say(f"Saved at step {training.state.step:,}; the same command goes on from there.")
            return Result(out, reason, {})
        return Result(out, reason, finish(training, prepared, out, reason))


def resume(given: Mapping[str, Any], out: Path, journal: Journal, device: torch.device) -> tuple[Training, Prepared]:
    """The training where its newest whole checkpoint has it."""
    old = bundle.read_config(out)
    # Sizes that were found out at the first start may have been asked for differently, or left to be found.
    fixed = FOUND + tuple(name for name in LEFT_OPEN if not given.get(name))
    found = {name: value for name, value in flatten(old).items() if name in fixed}
    config = configure(flatten(old), given, found)
    for line in changes(old, config, out):
        say(line)
    if config != old:
        write_text(out / bundle.CONFIG, to_toml(config))
    torch.set_num_threads(config.train.threads)
    prepared = open_data(config, out)
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


FOUND = ("data.vocab_size", "data.source", "data.target", "model.vocab_size", "model.source_vocab_size")
LEFT_OPEN = ("train.accumulate", "train.save_every", "train.validate_every", "train.threads")  # by 0


def changes(old: RunConfig, new: RunConfig, out: Path) -> list[str]:
    """A line for each option that differs from the last start; raises UserError for one that may not."""
    lines = []
    for name, (was, now) in differences(old, new).items():
        if name.startswith(FIXED) and name not in FREE:
            raise UserError(
                f"{out} was started with {name} = {was}, which cannot become {now} on the way; leave it "
                "out, or train into a new folder."
            )
        meaning = "" if name.startswith(HARMLESS) else "; from here on this is another training than it would have been"
        lines.append(f"Changed: {name} is {now}, was {was}{meaning}.")
    return lines


def open_data(config: RunConfig, out: Path) -> Prepared:
    """The prepared corpus of a run: its own, or the one that it was given."""
    own = out / bundle.DATA
    return open_prepared(own if own.is_dir() else Path(config.data.corpora[0].files[0]))


def newest(folder: Path, model: Seq2Seq, optimizer: torch.optim.Optimizer) -> TrainState:
    """Load the newest checkpoint that is whole; a damaged one is named and set aside."""
    for path in reversed(checkpoint.checkpoints(folder)):
        try:
            return load_checkpoint(path, model, optimizer)
        except UserError as error:
            say(f"{error} The checkpoint before it is used.")
            path.rename(path.with_name(f"damaged-{path.name}"))
    raise UserError(f"{folder} holds no whole checkpoint; train into a new folder.")


def finish(training: Training, prepared: Prepared, out: Path, reason: Reason) -> dict[str, Any]:
    """Average, measure and publish the model; returns what metrics.json holds."""
    config, model, state = training.config, training.model, training.state
    chosen = chosen_checkpoints(training)
    weights = bundle.average(chosen)
    model.load_state_dict(weights)
    model.eval()
    result = training.validate(model)
    steps = [checkpoint.step_of(path) for path in chosen]
    say(
        f"Model: the average of {len(chosen)} checkpoints, steps {steps[0]:,} to {steps[-1]:,}"
        + (f"; {result}" if result else "")
    )
    metrics: dict[str, Any] = {
        "training": {
            "reason": reason,
            "steps": state.step,
            "epochs": state.epoch,
            "target_tokens": state.tokens_seen,
            "seconds": round(state.seconds, 1),
            "device": place(config, training.device),
            "torch": torch.__version__,
            "averaged_steps": steps,
        },
        "corpus": corpus_facts(prepared.facts),
        "parameters": count_parameters(config.model),
    }
    if result:
        metrics["validation"] = {
            "perplexity": result.perplexity,
            "bleu_greedy": result.bleu,
            "sentences": prepared.facts.held_out,
        }
    if config.data.test:
        metrics["test"] = test(training, prepared, out)
    card = model_card(config, metrics)
    bundle.publish_model(out, config, prepared.tokenizer, weights, metrics, card)
    return metrics


def chosen_checkpoints(training: Training) -> list[Path]:
    """Those that the final model is the average of: the last of the training; or of best and last the better one."""
    config, state = training.config.train, training.state
    found = [path for path in checkpoint.regular(training.folder, config.save_every) if checkpoint.step_of(path)]
    best = training.folder / f"step-{state.best_step:08d}"
    if config.average == 1 and state.best is not None and best.exists():
        last = training.validate(training.model)
        return [best] if last is None or state.best < last.perplexity else found[-1:]
    return found[-config.average :]


def test(training: Training, prepared: Prepared, out: Path) -> dict[str, Any]:
    """Translate and score the test files, once."""
    config = training.config
    pairs = list(read_pairs(config.data.test, (config.data.source, config.data.target)))
    model = bundle.Bundle(out, config, prepared.tokenizer, training.model)
    evaluation = evaluate([model], pairs, config.decode, tokenize=config.data.bleu_tokenize)
    for each in evaluation.scores:
        say(f"{each.name:<6} {each.value:5.1f}  [{each.low:.1f}, {each.high:.1f}]  {each.signature}")
    examples = [
        {"source": pair.source, "translation": translation.text, "reference": pair.target}
        for pair, translation in list(zip(pairs, evaluation.translations, strict=True))[:EXAMPLES]
    ]
    return {"files": list(config.data.test), **as_json(evaluation), "examples": examples}


def corpus_facts(facts: Facts) -> dict[str, Any]:
    """What the metrics say of the corpus."""
    names = (
        "source",
        "target",
        "corpora",
        "pairs",
        "held_out",
        "left_out",
        "source_tokens",
        "target_tokens",
        "seconds",
    )
    return {name: getattr(facts, name) for name in names}
