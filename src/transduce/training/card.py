"""Model cards: README.md of a model folder, an average, an import or an export."""

from collections.abc import Mapping, Sequence
from typing import Any

from transduce.config.schema import RunConfig
from transduce.system.journal import duration


def card(config: RunConfig, *paragraphs: str, purpose: str = "") -> str:
    """Markdown: the languages as the title, then the paragraphs."""
    title = f"# {config.data.source} → {config.data.target}" + (f", for {purpose}" if purpose else "")
    return "\n\n".join([title, *(paragraph.strip("\n") for paragraph in paragraphs)]) + "\n"


def code(lines: Sequence[str]) -> str:
    """A block of code."""
    return "\n".join(["```", *lines, "```"])


def translate_command(config: RunConfig) -> str:
    """The command that translates a file with the model in the current folder."""
    data = config.data
    return f"transduce translate . --input text.{data.source} --output text.{data.target}  # in this folder"


def model_card(config: RunConfig, metrics: Mapping[str, Any]) -> str:
    """What the model is, what it was trained on, what it scored, how to use it."""
    training, corpus = metrics["training"], metrics["corpus"]
    rows = [
        ("corpus", "; ".join(" + ".join(files) for files in corpus["corpora"])),
        ("pairs", f"{corpus['pairs']:,} ({corpus['target_tokens']:,} target tokens)"),
        ("vocabulary", vocabulary(config)),
        (
            "training",
            f"{training['steps']:,} updates, {training['target_tokens']:,} target tokens, "
            f"{duration(training['seconds'])} on {training['device']}",
        ),
    ]
    if "validation" in metrics:
        rows.append(("validation", f"perplexity {perplexity_text(metrics['validation']['perplexity'])}"))
    for score in metrics.get("test", {}).get("scores", []):
        signature = score["signature"].replace("|", "\\|")  # it would end the cell, in a code span, too
        interval = f"{score['value']:.1f} [{score['low']:.1f}, {score['high']:.1f}]"
        rows.append((f"test {score['name']}", f"{interval}, `{signature}`"))
    if config.data.symbols:
        usage = ["transduce parse . --input sentences.txt  # in this folder"]
    else:
        python = "import transduce; print(transduce.load('.').translate(['…'])[0].text)"
        usage = [translate_command(config), f'python -c "{python}"']
    return card(
        config,
        f"Trained with transduce: {config.model.shape}; {metrics['parameters']:,} parameters.",
        code(usage),
        "\n".join(["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in rows)]),
        "The model knows the kind of text it was trained on; measure it on yours before you rely on it.",
    )


def averaged_card(config: RunConfig, steps: Sequence[int]) -> str:
    """The card of an average of checkpoints."""
    which = ", ".join(f"{step:,}" for step in steps)
    return card(config, f"The average of the checkpoints at steps {which}, made by transduce average.")


def vocabulary(config: RunConfig) -> str:
    """The sizes and kinds of the vocabularies."""
    model, data = config.model, config.data
    if not model.source_vocab_size:
        return f"{model.vocab_size:,} joint {data.tokenizer} tokens"
    if data.symbols:
        return f"{model.source_vocab_size:,} {data.tokenizer} tokens and {model.vocab_size:,} symbols"
    return f"{model.source_vocab_size:,} + {model.vocab_size:,} separate {data.tokenizer} tokens"


def perplexity_text(perplexity: float | None) -> str:
    """A perplexity of metrics.json, which is null if it was not finite."""
    return "not finite" if perplexity is None else f"{perplexity:.2f}"
