"""Model cards (README.md) for trained, averaged, imported and exported models."""

from collections.abc import Mapping, Sequence
from typing import Any

from transduce.config.schema import RunConfig
from transduce.evaluation.perplexity import shown
from transduce.system.console import duration, markdown_table


def card(config: RunConfig, *paragraphs: str, purpose: str = "") -> str:
    """A Markdown model card with the languages as its title, followed by `paragraphs`."""
    data = config.data
    title = f"# {', '.join(data.directions) or f'{data.source} → {data.target}'}" + (
        f", for {purpose}" if purpose else ""
    )
    return "\n\n".join([title, *(paragraph.strip("\n") for paragraph in paragraphs)]) + "\n"


def code(lines: Sequence[str]) -> str:
    """A Markdown code block with these lines."""
    return "\n".join(["```", *lines, "```"])


def translate_command(config: RunConfig) -> str:
    """The command that translates a file with the model in the current folder."""
    data = config.data
    source = data.source
    target = data.target
    if data.directions:
        return f"transduce translate . --from {source} --to {target} --input text.{source} --output text.{target}"
    return f"transduce translate . --input text.{source} --output text.{target}  # in this folder"


def model_card(config: RunConfig, metrics: Mapping[str, Any]) -> str:
    """The model card of a trained model, with its shape, usage, training data and scores."""
    if config.data.symbols:
        usage = ["transduce parse . --input sentences.txt  # in this folder"]
    else:
        target = f", target='{config.data.target}'" if config.data.directions else ""
        python = f"import transduce; print(transduce.load('.').translate(['…']{target})[0].text)"
        usage = [translate_command(config), f'python -c "{python}"']
    rows = [("vocabulary", vocabulary(config)), *figures(metrics)]
    return card(
        config,
        f"Trained with transduce: {config.model.shape}; {metrics['parameters']:,} parameters.",
        code(usage),
        markdown_table(("", ""), rows),
        "The model suits texts like those that it was trained on. Evaluate it on your own texts before you rely on it.",
    )


def figures(metrics: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Table rows (name, text) about the corpus, the training and the scores in `metrics`."""
    rows = []
    if corpus := metrics.get("corpus"):
        rows.append(("corpus", "; ".join(" + ".join(files) for files in corpus["corpora"])))
        rows.append(("pairs", f"{corpus['pairs']:,} ({corpus['target_tokens']:,} target tokens)"))
    if training := metrics.get("training"):
        size = f"{training['steps']:,} updates, {training['target_tokens']:,} target tokens"
        rows.append(
            ("training", f"{size}, {duration(training['seconds'])} on {training['device']}")
        )
        if by := training.get("revision"):
            rows.append(("trained by", f"transduce {by}, torch {training['torch']}"))
    if validation := metrics.get("validation"):
        perplexity = validation["perplexity"]  # None if it was not finite
        rows.append(
            (
                "validation",
                f"perplexity {'not finite' if perplexity is None else shown(perplexity)}",
            )
        )
    if confidence := metrics.get("confidence"):
        error = f"calibration error {confidence['calibration_error']:.3f}"
        rows.append(("confidence", f"area under the ROC curve {confidence['area']:.2f}, {error}"))
    for score in metrics.get("test", {}).get("scores", []):
        rows.append((f"test {score['name']}", f"{_interval(score)}, {score['signature']}"))
    for direction, its in metrics.get("directions", {}).items():
        results = []
        if (validation := its.get("validation")) and validation["bleu"] is not None:
            results.append(
                f"validation BLEU {validation['bleu']:.1f}, chrF {validation['chrf']:.1f} (greedy)"
            )
        if before := its.get("before"):
            results[-1] += f"; BLEU {before['bleu']:.1f} before languages were added"
        for score in its.get("test", {}).get("scores", []):
            results.append(f"test {score['name']} {_interval(score)}, {score['signature']}")
        if results:
            rows.append((direction, "; ".join(results)))
    return rows


def _interval(score: Mapping[str, Any]) -> str:
    return f"{score['value']:.1f} [{score['low']:.1f}, {score['high']:.1f}]"


def vocabulary(config: RunConfig) -> str:
    """A short description of the sizes and the types of the vocabularies."""
    model = config.model
    data = config.data
    if not model.source_vocab_size:
        return f"{model.vocab_size:,} joint {data.tokenizer} tokens"
    if data.symbols:
        return (
            f"{model.source_vocab_size:,} {data.tokenizer} tokens and {model.vocab_size:,} symbols"
        )
    return f"{model.source_vocab_size:,} + {model.vocab_size:,} separate {data.tokenizer} tokens"
