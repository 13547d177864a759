"""The model card: README.md of a model folder, for whoever finds it later."""

from collections.abc import Mapping, Sequence
from typing import Any

from transduce.config.schema import RunConfig
from transduce.system.journal import duration


def _usage(config: RunConfig) -> list[str]:
    if config.data.symbols:
        return ["transduce parse . --input sentences.txt  # in this folder"]
    return [
        f"transduce translate . --input text.{config.data.source} --output text.{config.data.target}  # in this folder",
        "python -c \"import transduce; print(transduce.load('.').translate(['…'])[0].text)\"",
    ]


def vocabulary(config: RunConfig) -> str:
    """The sizes of the vocabularies and what is in them."""
    model, data = config.model, config.data
    if not model.source_vocab_size:
        return f"{model.vocab_size:,} joint {data.tokenizer} pieces"
    if data.symbols:
        return f"{model.source_vocab_size:,} {data.tokenizer} pieces and {model.vocab_size:,} symbols"
    return f"{model.source_vocab_size:,} + {model.vocab_size:,} separate {data.tokenizer} pieces"


def model_card(config: RunConfig, metrics: Mapping[str, Any]) -> str:
    """Markdown: what the model is, what it was trained on, what it scored, how to use it."""
    model, training, corpus = config.model, metrics["training"], metrics["corpus"]
    files = "; ".join(" + ".join(files) for files in corpus["corpora"])
    lines = [
        f"# {config.data.source} → {config.data.target}",
        "",
        f"Trained with transduce: {model.shape}; {metrics['parameters']:,} parameters.",
        "",
        "```",
        *_usage(config),
        "```",
        "",
        "| | |",
        "| --- | --- |",
        f"| corpus | {files} |",
        f"| pairs | {corpus['pairs']:,} ({corpus['target_tokens']:,} target tokens) |",
        f"| vocabulary | {vocabulary(config)} |",
        f"| training | {training['steps']:,} updates, {training['target_tokens']:,} target tokens, "
        f"{duration(training['seconds'])} on {training['device']} |",
    ]
    if "validation" in metrics:
        lines.append(f"| validation | perplexity {metrics['validation']['perplexity']:.2f} |")
    for score in metrics.get("test", {}).get("scores", []):
        interval = f"{score['value']:.1f} [{score['low']:.1f}, {score['high']:.1f}]"
        signature = score["signature"].replace("|", "\\|")  # which ends a cell, in a code span, too
        lines.append(f"| test {score['name']} | {interval}, `{signature}` |")
    lines += ["", "The model knows the kind of text it was trained on; measure it on yours before you rely on it."]
    return "\n".join(lines) + "\n"


def averaged_card(config: RunConfig, steps: Sequence[int]) -> str:
    """The card of a model that is the average of checkpoints."""
    which = ", ".join(f"{step:,}" for step in steps)
    return (
        f"# {config.data.source} → {config.data.target}\n\nThe average of the checkpoints at steps {which}, made by "
        "transduce average.\n"
    )
