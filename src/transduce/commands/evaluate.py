"""`transduce evaluate`."""

import json as json_format
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.commands.options import Assignments
from transduce.commands.output import check_output, print_table, write_lines
from transduce.commands.recipes import Files
from transduce.config import parse_assignments
from transduce.errors import UserError

if TYPE_CHECKING:
    from transduce.evaluation.scores import Comparison, Score


def evaluate(
    *arguments: str,
    hypothesis: str = "",
    against: str = "",
    ensemble: Files = (),
    tokenize: str = "",
    output: Path | None = None,
    json: bool = False,
    assignments: Assignments = (),
) -> None:
    """Score a model's translations, or output that is there already: BLEU, chrF and TER, with signatures.

    With MODEL SOURCE REFERENCE, or MODEL and one bilingual file, translate the source and compare with the reference;
    with `--hypothesis FILE REFERENCE` score a file that is there already; with `--hypothesis FILE --against FILE2
    REFERENCE` compare two, by paired bootstrap. Of BLEU and chrF more is better, of TER and perplexity less.

    Args:
        arguments: MODEL SOURCE REFERENCE, MODEL PAIRS (as .tsv or .jsonl), or with --hypothesis the REFERENCE alone.
        hypothesis: A file of translations to score.
        against: Another file of translations of the same sentences, to compare with.
        ensemble: More model folders with the same vocabulary.
        tokenize: How sacreBLEU splits words for BLEU: 13a, intl, char, none (the text is tokenised already); by
            default as the model's data.bleu_tokenize says, and without a model 13a.
        output: Write the translations to this file.
        json: Print a JSON object, for programs.
    """
    if hypothesis:
        if output or ensemble or assignments:
            raise UserError("--hypothesis scores what is there: leave out --output, --ensemble and section.key=value.")
        _evaluate_files(arguments, hypothesis, against, tokenize or "13a", json)
        return
    if against:
        raise UserError("--against compares with the file that --hypothesis names; give both, and the REFERENCE.")
    if len(arguments) not in (2, 3):
        raise UserError(
            "Give MODEL SOURCE REFERENCE, MODEL PAIRS, or --hypothesis FILE REFERENCE, not "
            f"{len(arguments)} arguments; see 'transduce evaluate --help'."
        )
    model, *files = arguments
    given = parse_assignments(assignments)
    from transduce.corpus.pairs import read_pairs
    from transduce.decoding.loading import decode_config, load_models  # torch: too slow for --help
    from transduce.runs.evaluate import as_json
    from transduce.runs.evaluate import evaluate as measure

    if output:
        check_output(output, files)
    models = load_models([model, *ensemble])
    data = models[0].config.data
    pairs = list(read_pairs(files, (data.source, data.target)))
    config = decode_config(models[0].config, given)
    found = measure(models, pairs, config, tokenize=tokenize or data.bleu_tokenize)
    if output:
        write_lines(output, [translation.text for translation in found.translations])
    facts, perplexity = as_json(found), found.perplexity
    if json:
        _print_json(facts)
        return
    _print_scores(found.scores)
    print(f"perplexity {perplexity.per_token:.3f} per token ({perplexity.num_tokens:,}), ", end="")
    print(f"{perplexity.per_word:.2f} per word ({perplexity.num_words:,})")
    print(f"{len(pairs):,} sentences translated in {found.seconds:.1f} s with beam {config.beam_size}", end="")
    print(f"; {facts['cut']:,} cut off at the length limit" if facts["cut"] else "")


def _evaluate_files(arguments: Sequence[str], hypothesis: str, against: str, tokenize: str, json: bool) -> None:
    if len(arguments) != 1:
        raise UserError(f"With --hypothesis give one more file, the REFERENCE, not {len(arguments)}.")
    from transduce.corpus.plain import read_lines, without_byte_order_mark
    from transduce.evaluation.scores import compare, score  # sacrebleu: too slow for --help

    def read(file: str) -> list[str]:
        return list(without_byte_order_mark(read_lines(file)))

    reference, output = read(arguments[0]), read(hypothesis)
    if against:
        comparisons = compare(output, read(against), reference, tokenize=tokenize)
        if json:
            _print_json([_comparison_json(each) for each in comparisons])
        else:
            _print_comparisons(comparisons, hypothesis, against)
        return
    scores = score(output, reference, tokenize=tokenize)
    if json:
        _print_json({"sentences": len(reference), "scores": [each._asdict() for each in scores]})
    else:
        _print_scores(scores)


def _print_scores(scores: "Sequence[Score]") -> None:
    rows = [(each.name, f"{each.value:.2f}", f"{each.low:.2f} to {each.high:.2f}", each.signature) for each in scores]
    print_table([("metric", "score", "95 %", "signature"), *rows])


def _print_comparisons(comparisons: "Sequence[Comparison]", first: str, second: str) -> None:
    rows = [("metric", first, second, "difference", "p", "signature")]
    for name, one, two, p in comparisons:
        verdict = f"{p:.3f}" + (" (significant)" if p < 0.05 else "")
        figures = f"{one.value:.2f}", f"{two.value:.2f}", f"{two.value - one.value:+.2f}"
        rows.append((name, *figures, verdict, one.signature))
    print_table(rows)


def _print_json(value: Any) -> None:
    print(json_format.dumps(_finite(value), ensure_ascii=False, indent=1, allow_nan=False))


def _finite(value: Any) -> Any:
    """The same with null for the numbers that JSON does not know."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _comparison_json(comparison: "Comparison") -> dict[str, Any]:
    return {
        "name": comparison.name,
        "first": comparison.first._asdict(),
        "second": comparison.second._asdict(),
        "p_value": comparison.p_value,
    }
