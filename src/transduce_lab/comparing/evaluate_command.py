"""`transduce evaluate --against`."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from transduce.commands.evaluate import Evaluation
from transduce.commands.test_sets import read_test_set, read_translations
from transduce.config.parse import parse_assignments
from transduce.config.schema import DataConfig
from transduce.system.console import print_table
from transduce.system.errors import UserError
from transduce.system.files import to_json
from transduce.text.languages import Direction, language_of, main_language
from transduce.text.pairs import by_direction
from transduce.text.plain import read_lines

if TYPE_CHECKING:
    from transduce.evaluation.perplexity import Perplexity
    from transduce.evaluation.scores import Comparison
    from transduce_lab.comparing.slices import Slice


class Systems(NamedTuple):
    """Two files of translations, or two models, and the references."""

    names: list[str]
    references: list[str]
    metrics: dict[str, Any]  # the tokenisation and the language for the metrics
    translate: Callable[[], tuple[list[list[str]], "list[Perplexity]"]]  # no perplexities for files


def compare_translations(call: Evaluation) -> None:
    """Compare two files of translations, or two models, and with --slices or --training groups of sentences."""
    # Imports sacrebleu: too slow for --help.
    from transduce.evaluation.scores import (
        MIN_TESTED_SENTENCES,
        compare,
    )
    from transduce_lab.comparing.slices import compare_slices, rare_words

    names, references, metrics, translate = (
        _read_files(call) if call.hypothesis else _load_models(call)
    )
    rare = None
    if call.slices or call.training:
        rare = rare_words(references, read_lines(call.training) if call.training else None)
    (one, two), perplexities = translate()  # slow, so all other files are read first
    scores = compare(one, two, references, **metrics)
    slices = None if rare is None else compare_slices(one, two, references, rare, **metrics)
    if call.json:
        facts: dict[str, Any] = {
            "sentences": len(references),
            "scores": list(map(_as_json, scores)),
        }
        if perplexities:
            facts["perplexity"] = dict(
                zip(("first", "second"), (each._asdict() for each in perplexities), strict=True)
            )
        if slices is not None:
            facts["slices"] = [
                each._asdict() | {"scores": list(map(_as_json, each.scores))} for each in slices
            ]
        print(to_json(facts), end="")
        return
    rows = [("metric", *names, "difference", "p", "signature")]
    for each in scores:
        values = _values(each.first.value, each.second.value)
        rows.append((each.name, *values, each.tested(), each.first.signature))
    if perplexities:
        per_word = _values(*(each.per_word for each in perplexities))
        rows.append(("perplexity per word", *per_word, "–", "of the references; lower is better"))
    print_table(rows)
    if len(references) < MIN_TESTED_SENTENCES:
        print(f"p: fewer than {MIN_TESTED_SENTENCES} sentences are too few for a test.")
    if slices is not None:
        _print_slices(slices, names, call.training)


def _read_files(call: Evaluation) -> Systems:
    from transduce.evaluation.scores import AUTO

    [reference] = call.files
    names = [call.hypothesis, call.against]
    references, *outputs = map(read_translations, (reference, *names))
    metrics = {
        "tokenize": call.tokenize or AUTO,
        "language": call.languages[1] or language_of(reference),
    }
    return Systems(names, references, metrics, lambda: (outputs, []))


def _load_models(call: Evaluation) -> Systems:
    options = parse_assignments(call.assignments)
    # Imports torch: too slow for --help.
    from transduce.decoding.loading import decode_config, load_models, refuse_parser
    from transduce.evaluation.evaluate import direction_of, evaluate

    if Path(call.against).is_file():
        raise UserError(
            f"{call.against} is a file.",
            "To compare files, use --hypothesis FILE --against FILE2 REFERENCE.",
        )
    sides = []
    directions = []
    for folders in ([call.model, *call.ensemble], [call.against]):
        models = load_models(folders)
        for each in models:
            refuse_parser(each.tokenizer, each.folder)
        config = models[0].config
        pairs = read_test_set(call.files, config.data, call.languages)
        if len(by_direction(pairs)) > 1:
            raise UserError(
                "--against compares translations in one direction.",
                "Choose it with --from and --to.",
            )
        sides.append((models, pairs, decode_config(config, options)))
        directions.append(direction_of(pairs, config.data))
    models, pairs, _ = sides[0]
    metrics = {
        "tokenize": call.tokenize or models[0].config.data.bleu_tokenize,
        "language": _common_direction(call, directions).target,
    }

    def translate() -> tuple[list[list[str]], "list[Perplexity]"]:
        found = [evaluate(*side, tokenize=metrics["tokenize"]) for side in sides]
        outputs = [[translation.text for translation in each.translations] for each in found]
        return outputs, [each.perplexity for each in found]

    names = [" + ".join([call.model, *call.ensemble]), call.against]
    return Systems(names, [pair.target for pair in pairs], metrics, translate)


def _common_direction(call: Evaluation, directions: Sequence[Direction]) -> Direction:
    """The direction of two models, one of which may have no language codes. Raises UserError if they differ."""
    unnamed = Direction(DataConfig().source, DataConfig().target)
    one, two = (
        direction if direction != unnamed else directions[1 - i]
        for i, direction in enumerate(directions)
    )
    if any(a and b and main_language(a) != main_language(b) for a, b in zip(one, two, strict=True)):
        raise UserError(
            f"{call.model} translates {one}, but {call.against} translates {two}. Both need the same languages."
        )
    return one


def _print_slices(slices: "Sequence[Slice]", names: Sequence[str], training: str) -> None:
    from transduce.evaluation.scores import MIN_TESTED_SENTENCES, describe_p
    from transduce_lab.comparing.slices import MAX_RARE

    columns = "chrF2: first", "second", "difference", "p", "BLEU: first", "second", "difference"
    rows: list[tuple[str, ...]] = [("slice", "sentences", *columns, "found: first", "second")]
    for before, each in zip([None, *slices], slices, strict=False):
        if not before or before.kind != each.kind:
            rows.append(("",) * len(rows[0]))
        bleu, chrf = (_values(score.first.value, score.second.value) for score in each.scores[:2])
        found = (
            f"{number:,} of {each.num_words:,}" if each.num_words else "" for number in each.found
        )
        p = describe_p(each.p_value, each.error)
        rows.append((each.name, f"{each.sentences:,}", *chrf, p, *bleu, *found))
    tests = sum(not math.isnan(each.p_value) for each in slices)
    corrected = f", corrected for {tests} tests by Holm's method" if tests else ""
    rarity = (
        f"at most {MAX_RARE} times in {training}"
        if training
        else "once in the references; see --training"
    )
    print(
        f"\nSlices of the test sentences by their references (first: {names[0]}, second: {names[1]})\n"
    )
    print_table(rows)
    print(f"""
difference  second minus first
p           probability of so large a difference of chrF2 by chance{corrected}, ± two standard errors;
            "–": fewer than {MIN_TESTED_SENTENCES} sentences are too few for a test
found       how many of these words (rare words, numbers, words in capitals) of the references the translation has, too
rare word   occurs {rarity}
words       without punctuation; in scripts without spaces, such as Chinese, each character is a word""")


def _as_json(score: "Comparison") -> dict[str, Any]:
    return score._asdict() | {"first": score.first._asdict(), "second": score.second._asdict()}


def _values(first: float, second: float) -> tuple[str, str, str]:
    return f"{first:.2f}", f"{second:.2f}", f"{second - first:+.2f}"
