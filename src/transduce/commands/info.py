"""`transduce info`."""

import dataclasses
import json as json_format
from collections.abc import Mapping
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal

from transduce.commands.output import print_table
from transduce.config.schema import RunConfig, flatten
from transduce.config.settings import DEFAULT
from transduce.decoding.registry import EXPORT_FORMATS
from transduce.system.journal import duration
from transduce.training.card import perplexity_text, vocabulary

if TYPE_CHECKING:
    from transduce.model_folder import Description


def info(model: Path, /, *, json: bool = False) -> None:
    """Show a model's details: shape, training, scores, and each option with the source of its value.

    Args:
        model: A model folder.
        json: Print a JSON object with the whole configuration, for programs.
    """
    from transduce.model_folder import describe  # numpy: too slow for --help

    description = describe(model)
    config = description.config
    if json:
        details = {
            "config": flatten(config),
            "sources": config.sources,
            "metrics": description.metrics,
            "finished": description.finished,
        }
        print(json_format.dumps(details, ensure_ascii=False, indent=1, default=dataclasses.asdict))
        return
    print_table(_facts(description, model))
    if config.sources is not None:
        print()
        print_table([("option", "value", "source"), *_option_rows(config, config.sources)])


def _option_rows(config: RunConfig, sources: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Every option that something but its default decided."""
    rows = []
    for name, value in flatten(config).items():
        source = sources.get(name, DEFAULT)
        if source != DEFAULT:
            rows.append((name, json_format.dumps(value, ensure_ascii=False, default=dataclasses.asdict), source))
    return rows


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
        facts.append(("exports to", ", ".join(resolve_name(EXPORT_FORMATS)(folder, config)) or "nothing"))
    else:
        facts.append(("state", "not finished: this is the newest checkpoint; run the same `transduce train` to resume"))
    if config.sources is None:
        facts.append(("options", "sources of their values not recorded (model of an older transduce)"))
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
        facts.append(("validation", f"perplexity {perplexity_text(validation['perplexity'])}"))
    for score in metrics.get("test", {}).get("scores", []):
        interval = f"{score['value']:.1f} [{score['low']:.1f}, {score['high']:.1f}]"
        facts.append((f"test {score['name']}", f"{interval}  {score['signature']}"))
    return facts
