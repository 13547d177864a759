"""Finishes a training run by choosing the final weights, scoring the model and publishing it."""

import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transduce import model_folder
from transduce.config.schema import RunConfig
from transduce.decoding.alignment_layer import ALIGNMENT_LAYER, choose_layer
from transduce.decoding.confidence import Confidence
from transduce.decoding.directions import directions_of
from transduce.evaluation.calibration import MIN_FITTED_PAIRS, calibrate
from transduce.evaluation.evaluate import as_json, evaluate, validations
from transduce.evaluation.perplexity import Validation
from transduce.evaluation.routes import measure_routes
from transduce.model.build import count_parameters
from transduce.model.seq2seq import Seq2Seq
from transduce.preparation.prepared import Prepared
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.system.files import publish, verify
from transduce.text.pairs import Pair, by_direction
from transduce.tokens.tokenizer import Tokenizer
from transduce.training import checkpoint
from transduce.training.announce import device_name
from transduce.training.card import model_card
from transduce.training.loop import Reason, Training, is_tuning
from transduce.training.run_card import RunCard, read_run_card

UNTRAINED_PERPLEXITY = 100  # a model with a higher perplexity can hardly translate
TUNED_SHARES = (
    0.9,
    0.8,
    0.7,
    0.5,
    0.3,
)  # of the tuned weights, in averages with the weights before
SPARED_GAIN = 0.05  # so much of the gain on the new text is given up to stay near the old weights
METRICS_EXAMPLES = 8  # translations kept in metrics.json


def finish(
    training: Training,
    prepared: Prepared,
    pairs: Sequence[Pair],
    untrained: Sequence[Pair],
    out: Path,
    reason: Reason,
) -> dict[str, Any]:
    """Choose the final weights, score them on the test set `pairs`, publish the model and return its metrics.

    `untrained` are validation pairs of directions that a multilingual model lacks.
    """
    config = training.config
    model = training.model.to(training.device)
    log("Choosing the final model …")
    chosen = choose(training)
    model.load_state_dict(chosen.weights)
    model.eval()
    log(f"The model is {chosen}.")
    result = chosen.validation
    run_card = read_run_card(out)
    init = run_card.inputs.get("init") if run_card else None
    before = Path(*init) if init else None
    metrics: dict[str, Any] = {
        "training": _course(training, reason, run_card),
        "corpus": {
            name: value
            for name, value in vars(prepared.facts).items()
            if name not in ("options", "files", "weights", "dropped")
        },
        "averaged_steps": chosen.steps,
        "parameters": count_parameters(config.model),
    }
    if result:
        if result.perplexity > UNTRAINED_PERPLEXITY:
            _warn_of_high_perplexity(training, result, reason)
        bleu = {} if result.bleu is None else {"bleu_greedy": result.bleu}
        metrics["validation"] = {"perplexity": result.perplexity, **bleu}
    if chosen.before and result:
        log(f"Before the fine-tuning: {chosen.before}.")
        course = {"before": chosen.before._asdict(), "after": result._asdict()}
        metrics["tuning"] = {"share": chosen.share, **course}
    valid = prepared.valid()
    layer, confidence = _fit(model, prepared.tokenizer, config, valid, before)
    if layer is not None:
        metrics[ALIGNMENT_LAYER] = layer
    bundle = model_folder.Bundle(out, config, prepared.tokenizer, model)
    if config.data.directions:
        metrics |= _directions(bundle, valid, untrained)
        # Other text than the model's corpus has other validation pairs.
        is_own = Path(config.data.replay).parent.name != model_folder.REMEMBERED
        if config.data.replay and is_own and before:
            _compare(metrics["directions"], before)
    if confidence:
        metrics["confidence"] = {
            "area": confidence.area,
            "calibration_error": confidence.calibration_error,
        }
    metrics |= _tests(bundle, pairs, metrics.get("directions", {}))
    made = {model_folder.CONFIDENCE: confidence, model_folder.RUN: run_card}
    more = {name: content.to_json() for name, content in made.items() if content}
    with publish(out, needed=sum(weight.nbytes for weight in chosen.weights.values())) as aside:
        model_folder.fill(
            aside,
            config,
            prepared.tokenizer,
            chosen.weights,
            metrics,
            model_card(config, metrics),
            more,
        )
    return model_folder.read_metrics(out)


def _fit(
    model: Seq2Seq,
    tokenizer: Tokenizer,
    config: RunConfig,
    valid: Sequence[Pair],
    before: Path | None,
) -> tuple[int | None, Confidence | None]:
    """The alignment layer and the confidence of a model; those of the model before a fine-tuning with few pairs."""
    layer = confidence = None
    if before and len(valid) < MIN_FITTED_PAIRS:
        layer = model_folder.read_metrics(before).get(ALIGNMENT_LAYER)
        try:
            confidence = Confidence.load(before)
        except UserError as error:  # a damaged file must not cost the training
            log(f"Warning: {error}")
    if valid and layer is None:
        log("Translating validation pairs, for alignments and confidences …")
        layer = choose_layer(model, tokenizer, valid)
    if not confidence and not config.data.symbols:
        confidence = calibrate(model, tokenizer, valid, config.decode)
    return layer, confidence


def _course(training: Training, reason: Reason, run_card: RunCard | None) -> dict[str, Any]:
    """The section "training" of the metrics."""
    state = training.state
    course = {
        "reason": reason,
        "steps": state.step,
        "epochs": state.epoch,
        "target_tokens": state.tokens_seen,
        "seconds": round(state.seconds, 1),
        "device": device_name(training.config, training.device, training.ranks),
        "torch": torch.__version__,
    }
    if run_card:
        course["revision"] = " and ".join(
            dict.fromkeys(each.revision for each in run_card.sessions)
        )
    return course


def _warn_of_high_perplexity(training: Training, result: Validation, reason: Reason) -> None:
    config = training.config
    names = (
        "train.minutes and train.steps"
        if config.train.minutes and reason != "patience"
        else f"train.{reason}"
    )
    remedy = f"Allow more ({names}), or train on much more text."
    if has_diverged(result.perplexity, config.model.vocab_size):
        remedy = "The training diverged: train again with a lower train.learning_rate."
    after = f"After {count(training.state.step, 'update')}"
    log(f"{after} the model can hardly translate text like the validation set. {remedy}")


def has_diverged(perplexity: float, vocab_size: int) -> bool:
    """Whether a model is far worse than equal probabilities of all tokens."""
    return perplexity > 10 * vocab_size


def _directions(
    bundle: model_folder.Bundle, valid: Sequence[Pair], untrained: Sequence[Pair]
) -> dict[str, dict[str, Any]]:
    """Validate each direction and its routes, and return the sections "directions" and "routes" of the metrics."""
    found = validations(bundle.tokenizer, valid, bundle.config, is_final=True)(bundle.model)
    metrics: dict[str, dict[str, Any]] = {
        "directions": {name: {"validation": each._asdict()} for name, each in found.items()}
    }
    chrf = {name: each.chrf or 0.0 for name, each in found.items()}
    if routes := measure_routes(bundle, [*valid, *untrained], chrf):
        metrics["routes"] = routes
    return metrics


def _tests(
    bundle: model_folder.Bundle, pairs: Sequence[Pair], directions: dict[str, Any]
) -> dict[str, Any]:
    """Score the test set. The scores of a multilingual model are added to `directions`."""
    scores: dict[str, Any] = {}
    for name, its in by_direction(pairs).items():
        try:
            (directions.setdefault(name, {}) if name else scores)["test"] = test(bundle, its)
        except UserError as error:  # a text that the model can't read must not cost the training
            log(f"The test set is not scored. {error}")
    return scores


def _compare(directions: dict[str, dict[str, Any]], init: Path) -> None:
    """Add and print the scores of the model `init`, to which languages were added, on the same validation pairs."""
    try:
        trained = model_folder.read_config(init).data
        metrics = model_folder.read_metrics(init)
    except UserError as error:  # the folder may have been removed since
        log(f"The scores before languages were added are unknown. {error}")
        return
    old = {name: its["validation"] for name, its in metrics.get("directions", {}).items()}
    if not old and (its := metrics.get("validation")):
        old = {str(directions_of(trained)[0]): {**its, "bleu": its.get("bleu_greedy")}}
    for name, its in directions.items():
        before = {score: old.get(name, {}).get(score) for score in ("perplexity", "bleu")}
        now = its["validation"]
        if None not in (now["bleu"], *before.values()):
            its["before"] = before
            log(
                f"{name}: BLEU {before['bleu']:.1f} → {now['bleu']:.1f} (greedy), perplexity "
                f"{before['perplexity']:.2f} → {now['perplexity']:.2f}"
            )


class Candidate(NamedTuple):
    """A checkpoint, or an average of several checkpoints, that may become the final model."""

    weights: dict[str, torch.Tensor]
    steps: list[int]
    validation: Validation | None
    is_moving: bool  # the moving average of train.ema
    share: float = 1.0  # share of these weights; the others are those before a fine-tuning
    before: Validation | None = None  # the validation before a fine-tuning

    def __str__(self) -> str:
        which = "checkpoint"
        if self.is_moving:
            which = "the moving average at step"
        elif len(self.steps) > 1:
            which = f"the average of {len(self.steps)} checkpoints, steps {self.steps[0]:,} to"
        of_before = "" if self.share == 1 else f"{1 - self.share:.0%} of the model before, and "
        return f"{of_before}{which} {self.steps[-1]:,}{f': {self.validation}' if self.validation else ''}"


def choose(training: Training) -> Candidate:
    """The best of the last and the best checkpoint, an average of several, and two moving averages, by train.select_by.

    The moving averages are taken at the last and at the best checkpoint.
    """
    config = training.config.train
    state = training.state
    regular = [
        path
        for path in checkpoint.regular(training.folder, config.save_every)
        if model_folder.step_of(path)
    ]
    last = regular[-1]
    best = training.folder / f"step-{state.best_step:08d}"
    if not (state.best_step and best.exists() and _is_intact(best)):
        best = last
    before = islice(filter(_is_intact, reversed(regular[:-1])), config.average - 1)
    last_few = () if config.average == 1 else ((*reversed([*before]), last),)
    candidates = []
    if config.ema:
        candidates += [
            _measured(training, [path], moving=True) for path in dict.fromkeys((best, last))
        ]
    candidates += [
        _measured(training, paths) for paths in dict.fromkeys((*last_few, (best,), (last,)))
    ]
    if is_tuning(config):
        return _balanced(training, candidates)
    return min(
        candidates,
        key=lambda each: each.validation.cost(config.select_by) if each.validation else 0.0,
    )


def _balanced(training: Training, candidates: Sequence[Candidate]) -> Candidate:
    """The candidate that is best on the new text, averaged with the weights before the fine-tuning.

    Of the averages that keep the score of other text (train.max_forgotten), the one nearest to the old weights is taken
    whose gain on the new text is hardly less than that of the best one (Wortsman et al., 2022).
    """

    config = training.config.train
    select_by = config.select_by
    first = training.folder / "step-00000000"
    tuned = max(
        candidates,
        key=lambda each: each.validation.qualities(select_by)[0] if each.validation else -math.inf,
    )
    if not (tuned.validation and _is_intact(first)):
        return tuned
    # Before the first update, the moving average is the weights.
    old = _measured(training, [first], moving=bool(config.ema))

    def shared(share: float) -> dict[str, torch.Tensor]:
        return {
            name: weight.lerp(tuned.weights[name], share) for name, weight in old.weights.items()
        }

    results = {1.0: tuned.validation}
    before = old.validation or tuned.validation
    own, general = before.qualities(select_by)
    forgotten = abs(general) * config.max_forgotten
    gains = dict[float, float]()  # of the averages that keep the score of other text
    enough = -math.inf
    for share in (1.0, *TUNED_SHARES):
        if share not in results:
            training.model.load_state_dict(shared(share))
            results[share] = training.validate(training.model.eval()) or tuned.validation
        new, other = results[share].qualities(select_by)
        if new - own < enough:
            break  # with less of the tuned weights, less of the gain is left
        if other >= general - forgotten or (not gains and share == TUNED_SHARES[-1]):
            gains[share] = new - own
            most = max(gains.values())
            enough = most - SPARED_GAIN * abs(most)
    share = min(share for share, gain in gains.items() if gain >= enough)
    return tuned._replace(
        weights=shared(share), validation=results[share], share=share, before=before
    )


def _measured(training: Training, paths: Sequence[Path], *, moving: bool = False) -> Candidate:
    """Validate the average of these checkpoints or, if `moving` is true, the moving average in the only one."""
    weights = checkpoint.moving_average(paths[0]) if moving else model_folder.average(paths)
    steps = [*map(model_folder.step_of, paths)]
    if (
        len(steps) == 1
        and moving == bool(training.config.train.ema)
        and steps[0] in training.validations
    ):
        return Candidate(weights, steps, training.validations[steps[0]], moving)
    training.model.load_state_dict(weights)
    return Candidate(weights, steps, training.validate(training.model.eval()), moving)


def _is_intact(path: Path) -> bool:
    try:
        verify(path, hashes=True)
    except UserError as error:
        log(f"Warning: {error} The other checkpoints are used.")
        return False
    return True


def test(model: model_folder.Bundle, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Translate and score the test set, and return the section "test" of metrics.json."""
    data = model.config.data
    evaluation = evaluate([model], pairs, model.config.decode, tokenize=data.bleu_tokenize)
    if pairs[0].direction:
        log(f"{pairs[0].direction}:")
    for score in evaluation.scores:
        log(
            f"{score.name:<6} {score.value:5.1f}  [{score.low:.1f}, {score.high:.1f}]  {score.signature}"
        )
    examples = [
        {"source": pair.source, "translation": translation.text, "reference": pair.target}
        for pair, translation in zip(
            pairs[:METRICS_EXAMPLES], evaluation.translations, strict=False
        )
    ]
    return {"files": list(data.test), **as_json(evaluation), "examples": examples}
