"""`transduce average`."""

from pathlib import Path

from transduce.system.errors import UserError
from transduce.system.files import write_folder


def average(
    model: Path, other: Path | None = None, /, *, out: Path, last: int = 5, weight: float = 0.5
) -> None:
    """Average the last checkpoints of a training run into a new model folder, or two models.

    Args:
        model: The folder of a training run; the run need not be finished.
        other: A second model with the same shape and vocabulary, such as a fine-tuned one: both are averaged.
        out: The model folder to write.
        weight: The share of the second model, from 0 to 1: between an old model and a fine-tuned one, more of the
            second is better on the new texts, and less of it is better on others.
        last: Number of checkpoints to average. Only the newest checkpoint, and checkpoints at multiples of
            train.save_every updates, are used.
            The paper averages 5 checkpoints for the base model and 20 for the big model.
    """
    from transduce import model_folder  # imports torch: too slow for --help
    from transduce.decoding.alignment_layer import ALIGNMENT_LAYER
    from transduce.model.build import count_parameters
    from transduce.tokens.tokenizer import Tokenizer
    from transduce.training.card import card
    from transduce.training.checkpoint import regular

    if other:
        _interpolate(model, other, out, weight)
        return
    if last < 1:
        raise UserError(f"--last must be at least 1, not {last}.")
    config = model_folder.read_config(model)
    # The other checkpoints, saved at an interruption or because they were the best, don't belong in an average.
    paths = regular(model / model_folder.CHECKPOINTS, config.train.save_every)
    checkpoints = [path for path in paths if model_folder.step_of(path)]
    if len(checkpoints) < last:
        raise UserError(
            f"{model} has {len(checkpoints)} checkpoints to average, not {last}.",
            "Lower --last, or name the folder of a training run.",
        )
    steps = [model_folder.step_of(path) for path in checkpoints[-last:]]
    metrics = {"parameters": count_parameters(config.model), "averaged_steps": steps}
    known = model_folder.describe(model)
    metrics |= {
        name: known.metrics[name] for name in (ALIGNMENT_LAYER, "routes") if name in known.metrics
    }
    hidden = {"perplexity": None, "bleu": None}
    scores = {
        name: {"validation": each["validation"] | hidden}
        for name, each in known.metrics.get("directions", {}).items()
        if "validation" in each
    }
    # A translator needs the chrF to choose routes; other scores of the old weights are dropped.
    if scores:
        metrics["directions"] = scores
    names = ", ".join(f"{step:,}" for step in steps)
    text = card(
        config, f"The average of the checkpoints at steps {names}, made by transduce average."
    )
    with write_folder(out, known.size) as aside:
        weights = model_folder.average(checkpoints[-last:])
        model_folder.fill(aside, config, Tokenizer.load(model), weights, metrics, text)
    print(f"{out}: the average of the checkpoints at steps {names}")


def _interpolate(first: Path, second: Path, out: Path, weight: float) -> None:
    """Write the weighted average of two models."""
    from transduce import model_folder
    from transduce.config.schema import differences
    from transduce.decoding.loading import load_models
    from transduce.model.build import count_parameters
    from transduce.training.card import card

    if not 0 <= weight <= 1:
        raise UserError(f"The weight must be from 0 to 1, not {weight:g}.")
    one, two = load_models([first, second])
    for name, (was, now) in differences(one.config, two.config).items():
        if name.startswith("model.") and not name.endswith("dropout"):
            raise UserError(f"{first} has {name} = {was}, and {second} has {now}.")
    if not one.tokenizer.same_pieces(two.tokenizer):
        raise UserError(f"{first} and {second} have different vocabularies.")
    weights = two.model.state_dict()
    for name, old in one.model.state_dict().items():
        weights[name] = old.lerp(weights[name], weight)
    shares = (
        f"{1 - weight:.0%} of {first.resolve().name} and {weight:.0%} of {second.resolve().name}"
    )
    text = card(two.config, f"The average of {shares}, made by transduce average.")
    metrics = {"parameters": count_parameters(two.config.model)}
    with write_folder(out, model_folder.describe(second).size) as aside:
        model_folder.fill(aside, two.config, two.tokenizer, weights, metrics, text)
    print(f"{out}: the average of {shares}")
