"""Model cards (README.md) for trained, averaged, imported and exported models."""

from collections.abc import Mapping, Sequence
from typing import Any

from transduce.config.schema import RunConfig
from transduce.system.console import markdown_table
from transduce.training.facts import measured_facts, model_facts


def card(config: RunConfig, *paragraphs: str, purpose: str = "") -> str:
    """A Markdown model card with the languages as its title, followed by `paragraphs`."""
    data = config.data
    title = f"# {', '.join(data.directions) or f'{data.source} → {data.target}'}"
    if purpose:
        title += f", for {purpose}"
    return "\n\n".join([title, *(paragraph.strip("\n") for paragraph in paragraphs)]) + "\n"


def code(lines: Sequence[str]) -> str:
    """A Markdown code block with these lines."""
    return "\n".join(["```", *lines, "```"])


def translate_command(config: RunConfig) -> str:
    """The command that translates a file with the model in the current folder."""
    data = config.data
    source = f"text.{data.source}"
    target = f"text.{data.target}"
    if data.directions:
        return (
            f"transduce translate . --from {data.source} --to {data.target} "
            f"--input {source} --output {target}"
        )
    return f"transduce translate . --input {source} --output {target}  # in this folder"


def model_card(config: RunConfig, metrics: Mapping[str, Any]) -> str:
    """The model card of a trained model, with its usage, shape, training data and scores."""
    if config.data.symbols:
        usage = ["transduce parse . --input sentences.txt  # in this folder"]
    else:
        target = f", target='{config.data.target}'" if config.data.directions else ""
        python = f"import transduce; print(transduce.load('.').translate(['…']{target})[0].text)"
        usage = [translate_command(config), f'python -c "{python}"']
    return card(
        config,
        "Trained with transduce.",
        code(usage),
        markdown_table(("", ""), [*model_facts(config), *measured_facts(metrics)]),
        "The model suits texts like those that it was trained on. Evaluate it on your own texts before you rely on it.",
    )
