"""`transduce evaluate`."""

import json as json_format
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from transduce.commands.options import Assignments
from transduce.commands.recipes import Files
from transduce.config import configure, flatten, parse_assignments
from transduce.errors import UserError

if TYPE_CHECKING:
    from transduce.evaluation.scores import Comparison, Score


def evaluate(
    *arguments: str,
    hypothesis: str = "",
    against: str = "",
    ensemble: Files = (),
    tokenize: str = "13a",
    output: Path | None = None,
    json: bool = False,
    assignments: Assignments = (),
) -> None:
    """Score a model's translations, or output that is there already: BLEU, chrF and TER, with signatures.

    `transduce evaluate MODEL SOURCE REFERENCE` translates and scores; `transduce evaluate --hypothesis FILE REFERENCE`
    scores a file; with --against a second file, the two are compared by paired bootstrap.

    Args:
        arguments: MODEL SOURCE REFERENCE, or with --hypothesis the REFERENCE alone.
        hypothesis: A file of translations to score.
        against: Another file of translations of the same sentences, to compare with.
        ensemble: More model folders with the same vocabulary.
        tokenize: How sacreBLEU splits words for BLEU: 13a, intl, char, none (the text is tokenised already).
        output: Write the translations to this file.
        json: Print a JSON object, for programs.
    """
    if hypothesis:
        _evaluate_files(arguments, hypothesis, against, tokenize, json)
        return
    if len(arguments) != 3 or against:
        raise UserError(
            "Give MODEL SOURCE REFERENCE, or --hypothesis FILE REFERENCE (see 'transduce evaluate --help')."
        )
    model, source, reference = arguments
    given = parse_assignments(assignments)
    from transduce import bundle  # torch: too slow for --help
    from transduce.corpus.pairs import read_pairs
    from transduce.files import write_text
    from transduce.runs.evaluate import as_json
    from transduce.runs.evaluate import evaluate as measure

    pairs = list(read_pairs([source, reference]))
    models = [bundle.load(folder) for folder in (model, *ensemble)]
    config = configure(flatten(models[0].config), given).decode
    found = measure(models, pairs, config, tokenize=tokenize)
    if output:
        write_text(output, "".join(f"{translation.text}\n" for translation in found.translations))
    if json:
        print(json_format.dumps(as_json(found), ensure_ascii=False, indent=1))
        return
    _print_scores(found.scores)
    perplexity = found.perplexity
    print(f"perplexity {perplexity.per_token:.3f} per token ({perplexity.num_tokens:,}), ", end="")
    print(f"{perplexity.per_word:.2f} per word ({perplexity.num_words:,})")
    print(f"{len(pairs):,} sentences translated in {found.seconds:.1f} s with beam {config.beam_size}")


def _evaluate_files(arguments: Sequence[str], hypothesis: str, against: str, tokenize: str, json: bool) -> None:
    if len(arguments) != 1:
        raise UserError("With --hypothesis give one more file, the REFERENCE.")
    from transduce.corpus.plain import read_lines
    from transduce.evaluation.scores import compare, score  # sacrebleu: too slow for --help

    reference = list(read_lines(arguments[0]))
    first = list(read_lines(hypothesis))
    if against:
        comparisons = compare(first, list(read_lines(against)), reference, tokenize=tokenize)
        if json:
            print(json_format.dumps([_comparison_json(each) for each in comparisons], indent=1))
        else:
            _print_comparisons(comparisons, hypothesis, against)
        return
    scores = score(first, reference, tokenize=tokenize)
    if json:
        print(json_format.dumps({"sentences": len(first), "scores": [each._asdict() for each in scores]}, indent=1))
    else:
        _print_scores(scores)


def _print_scores(scores: "Sequence[Score]") -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("metric", "score", "95 %", "signature"):
        table.add_column(heading, overflow="fold")
    for each in scores:
        table.add_row(each.name, f"{each.value:.2f}", f"{each.low:.2f} to {each.high:.2f}", each.signature)
    Console(highlight=False, markup=False, soft_wrap=True).print(table)


def _print_comparisons(comparisons: "Sequence[Comparison]", first: str, second: str) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("metric", first, second, "difference", "p", "signature"):
        table.add_column(heading, overflow="fold")
    for name, one, two, p in comparisons:
        verdict = f"{p:.3f}" + (" (significant)" if p < 0.05 else "")
        table.add_row(
            name, f"{one.value:.2f}", f"{two.value:.2f}", f"{two.value - one.value:+.2f}", verdict, one.signature
        )
    Console(highlight=False, markup=False, soft_wrap=True).print(table)


def _comparison_json(comparison: "Comparison") -> dict[str, Any]:
    return {
        "name": comparison.name,
        "first": comparison.first._asdict(),
        "second": comparison.second._asdict(),
        "p_value": comparison.p_value,
    }
