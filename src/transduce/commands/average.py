"""`transduce average`."""

from pathlib import Path

from transduce.errors import UserError


def average(model: Path, /, *, out: Path, last: int = 5) -> None:
    """Average the last checkpoints of a training into a new model folder.

    Args:
        model: The folder of a training, finished or not.
        out: The model folder to write.
        last: How many checkpoints; the paper takes 5 for the base model and 20 for the big one.
    """
    from transduce import bundle  # torch: too slow for --help
    from transduce.model.build import count_parameters
    from transduce.runs.card import averaged_card
    from transduce.tokens.tokenizer import Tokenizer

    if out.exists():
        raise UserError(f"{out} exists already; give another folder with --out.")
    config = bundle.read_config(model)
    chosen = bundle.checkpoints(model)[-last:]
    if len(chosen) < last:
        raise UserError(
            f"{model} has {len(chosen)} checkpoints, not {last}; set --last {len(chosen)} or train.keep_last higher."
        )
    steps = [bundle.step_of(path) for path in chosen]
    metrics = {"parameters": count_parameters(config.model), "averaged_steps": steps}
    bundle.publish_model(
        out, config, Tokenizer.load(model), bundle.average(chosen), metrics, averaged_card(config, steps)
    )
    print(f"{out}: the average of steps {', '.join(f'{step:,}' for step in steps)}")
