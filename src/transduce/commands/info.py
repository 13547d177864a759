"""`transduce info`."""

import dataclasses
import json as json_format
from pathlib import Path
from typing import TYPE_CHECKING

from rich.filesize import decimal

from transduce.config.commands import option
from transduce.config.schema import flatten
from transduce.config.settings import DEFAULT
from transduce.system.console import print_table
from transduce.system.errors import NotInstalledError
from transduce.training.facts import Fact, measured_facts, model_facts

if TYPE_CHECKING:
    from transduce.config.schema import RunConfig
    from transduce.model_folder import Description


def info(model: Path, /, *, json: bool = False) -> None:
    """Show a model's shape, training, scores and non-default options, and what set these options (such as a recipe).

    Args:
        model: A model folder.
        json: Print a JSON object that contains all options of the model.
    """
    from transduce.model_folder import describe  # imports numpy: too slow for --help

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
        rows = [("option", "source", "value")]  # the value is last because it may be long
        for name, value in flatten(config).items():
            if (source := config.sources.get(name, DEFAULT)) != DEFAULT:
                text = json_format.dumps(value, ensure_ascii=False, default=dataclasses.asdict)
                rows.append((name, source, text))
        print()
        print_table(rows)


def _facts(description: "Description", folder: Path) -> list[Fact]:
    weights = Fact("weights", f"{decimal(description.size)} in {description.weights}")
    unfinished = (
        "not finished; the newest checkpoint is shown; to resume, repeat `transduce train …`"
    )
    state = [Fact("state", unfinished)]
    if description.finished:
        state = _uses(folder, description.config)
    return [*model_facts(description.config), weights, *state, *measured_facts(description.metrics)]


def _uses(folder: Path, config: "RunConfig") -> list[Fact]:
    """The engine that translates with a model by default, and the formats to which it can be exported."""
    try:
        uses: list[Fact] = option("info")(folder, config)
    except NotInstalledError:
        return [Fact("engine", "torch")]
    return uses
