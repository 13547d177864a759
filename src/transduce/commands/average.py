"""`transduce average`."""

from pathlib import Path

from transduce.system.errors import UserError
from transduce.system.files import write_folder


def average(model: Path, /, *, out: Path, last: int = 5) -> None:
    """Average the last checkpoints of a training run into a new model folder.

    Args:
        model: The folder of a training run; the run need not be finished.
        out: The model folder to write.
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
