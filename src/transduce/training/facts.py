"""The facts about a model and its training, as rows of a name and a text, for `train`, `info` and model cards."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from transduce.config.schema import RunConfig
from transduce.evaluation.perplexity import shown
from transduce.system.console import duration


class Fact(NamedTuple):
    """A row of a table."""

    name: str
    text: str


def vocabulary(config: RunConfig) -> str:
    """The sizes and the types of the vocabularies."""
    model = config.model
    data = config.data
    if not model.source_vocab_size:
        return f"{model.vocab_size:,} joint {data.tokenizer} tokens"
    if data.symbols:
        return (
            f"{model.source_vocab_size:,} {data.tokenizer} tokens and {model.vocab_size:,} symbols"
        )
    return f"{model.source_vocab_size:,} + {model.vocab_size:,} separate {data.tokenizer} tokens"


def licence(config: RunConfig) -> list[Fact]:
    """The licence of a model, if it is known."""
    name = config.data.licence
    note = ": not for commercial use" if "-nc" in name.lower() else ""
    return [Fact("licence", f"{name}{note}")] if name else []


def model_facts(config: RunConfig) -> list[Fact]:
    """The languages, the licence, the shape and the vocabulary of a model."""
    return [
        Fact("languages", config.data.languages),
        *licence(config),
        Fact("model", config.model.shape),
        Fact("vocabulary", vocabulary(config)),
    ]


def measured_facts(metrics: Mapping[str, Any]) -> Iterator[Fact]:
    """The weights, the corpus, the training and the scores in `metrics`."""
    if "imported" in metrics:
        yield Fact("imported", f"from {metrics['imported']}")
    if "parameters" in metrics:
        yield Fact("parameters", f"{metrics['parameters']:,}")
    if averaged := metrics.get("averaged_steps"):
        which = "average of steps" if len(averaged) > 1 else "step"
        yield Fact("checkpoint", f"{which} " + ", ".join(f"{step:,}" for step in averaged))
    if corpus := metrics.get("corpus"):
        yield Fact("corpus", "; ".join(" + ".join(files) for files in corpus["corpora"]))
        yield Fact("pairs", f"{corpus['pairs']:,} ({corpus['target_tokens']:,} target tokens)")
    if training := metrics.get("training"):
        size = f"{training['steps']:,} updates, {training['target_tokens']:,} target tokens"
        yield Fact("training", f"{size}, {duration(training['seconds'])} on {training['device']}")
        if by := training.get("revision"):
            yield Fact("trained by", f"transduce {by}, torch {training['torch']}")
    if tuning := metrics.get("tuning"):
        for name, text in (("chrf", "the new text"), ("general", "other text")):
            scores = [tuning[side][name] for side in ("before", "after")]
            if None not in scores:
                changed = " → ".join(f"{score:.1f}" for score in scores)
                yield Fact("fine-tuning", f"chrF {changed} on {text}")
    yield from _score_facts(metrics)


def _score_facts(metrics: Mapping[str, Any]) -> Iterator[Fact]:
    """The scores of the validation set and the test set, of the confidence, and of each direction."""
    if validation := metrics.get("validation"):
        perplexity = validation["perplexity"]  # None if it was not finite
        yield Fact(
            "validation", f"perplexity {'not finite' if perplexity is None else shown(perplexity)}"
        )
    if confidence := metrics.get("confidence"):
        error = f"calibration error {confidence['calibration_error']:.3f}"
        yield Fact("confidence", f"area under the ROC curve {confidence['area']:.2f}, {error}")
    yield from _test_facts(metrics)
    for direction, its in metrics.get("directions", {}).items():
        results = [*_validation_scores(its), *map(" ".join, _test_facts(its))]
        if results:
            yield Fact(direction, "; ".join(results))


def _test_facts(metrics: Mapping[str, Any]) -> Iterator[Fact]:
    for score in metrics.get("test", {}).get("scores", []):
        interval = f"[{score['low']:.1f}, {score['high']:.1f}]"
        yield Fact(
            f"test {score['name']}", f"{score['value']:.1f} {interval}, {score['signature']}"
        )


def _validation_scores(direction: Mapping[str, Any]) -> Iterator[str]:
    validation = direction.get("validation")
    if validation and validation["bleu"] is not None:
        yield f"validation BLEU {validation['bleu']:.1f}, chrF {validation['chrf']:.1f} (greedy)"
        if before := direction.get("before"):
            yield f"BLEU {before['bleu']:.1f} before languages were added"
