"""`transduce info`."""

import dataclasses
import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal

from transduce.commands.output import print_table
from transduce.config.schema import flatten
from transduce.decoding.engines.formats import formats
from transduce.system.journal import duration
from transduce.training.card import vocabulary

if TYPE_CHECKING:
    from transduce.model_folder import Description


def info(model: Path, /, *, json: bool = False) -> None:
    """Show a model's details: architecture, training and scores.

    Args:
        model: A model folder.
        json: Print a JSON object with the whole configuration, for programs.
    """
    from transduce.model_folder import describe  # numpy: too slow for --help

    description = describe(model)
    if json:
        whole = {
            "config": flatten(description.config),
            "metrics": description.metrics,
            "finished": description.finished,
        }
        print(json_format.dumps(whole, ensure_ascii=False, indent=1, default=dataclasses.asdict))
        return
    print_table(_facts(description, model))


def _facts(description: "Description", folder: Path) -> list[tuple[str, str]]:
    config, metrics = description.config, description.metrics
    model, data = config.model, config.data
    facts = [
        ("languages", f"{data.source} to {data.target}"),
        ("model", model.shape),
        ("vocabulary", vocabulary(config)),
        ("weights", f"{decimal(description.size)} in {description.weights}"),
    ]
    if description.finished:
        facts.append(("exports to", ", ".join(formats(folder, config)) or "nothing"))
    if not description.finished:
        facts.append(("state", "not finished, the newest checkpoint; the same `transduce train` command goes on"))
    return facts + _metric_facts(metrics)


def _metric_facts(metrics: dict[str, Any]) -> list[tuple[str, str]]:
    facts = []
    if "parameters" in metrics:
        facts.append(("parameters", f"{metrics['parameters']:,}"))
    averaged = metrics.get("averaged_steps", [])
    if averaged:
        which = "average of steps" if len(averaged) > 1 else "step"
        facts.append(("checkpoint", f"{which} " + ", ".join(f"{step:,}" for step in averaged)))
    if corpus := metrics.get("corpus"):
        facts.append(
            ("corpus", f"{corpus['pairs']:,} pairs: " + "; ".join(" + ".join(files) for files in corpus["corpora"]))
        )
    if training := metrics.get("training"):
        facts.append(
            (
                "training",
                f"{training['steps']:,} updates, {training['target_tokens']:,} target tokens, "
                f"{duration(training['seconds'])} on {training['device']}",
            )
        )
    if validation := metrics.get("validation"):
        facts.append(("validation", f"perplexity {validation['perplexity']:.2f}"))
    for score in metrics.get("test", {}).get("scores", []):
        interval = f"{score['value']:.1f} [{score['low']:.1f}, {score['high']:.1f}]"
        facts.append((f"test {score['name']}", f"{interval}  {score['signature']}"))
    return facts
