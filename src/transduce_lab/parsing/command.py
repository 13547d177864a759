"""The commands `transduce parse` and, for parse trees, `transduce evaluate`."""

import math
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.commands.evaluate import Evaluation
from transduce.commands.options import Assignments
from transduce.commands.recipes import Files
from transduce.config.parse import parse_assignments
from transduce.system.console import count, log, print_table
from transduce.system.errors import UserError
from transduce.system.files import to_json
from transduce.text.pairs import are_trees, expand_folders
from transduce.text.plain import (
    STANDARD_OUTPUT,
    check_output,
    display_name,
    read_lines,
    without_byte_order_mark,
    write_lines,
)
from transduce_lab.parsing.trees import ROOTS, read_trees

if TYPE_CHECKING:
    from transduce_lab.parsing.brackets import BracketScores, Summary
    from transduce_lab.parsing.parser import Measured


def parse(
    model: Path,
    /,
    *,
    input: str = "-",
    output: Path = STANDARD_OUTPUT,
    ensemble: Files = (),
    assignments: Assignments = (),
) -> None:
    """Parse sentences, one per line, into constituency trees; blank lines stay blank.

    Words and punctuation marks must be separated by spaces, as in treebanks. All output trees are well-formed.

    Args:
        model: The folder of a model that was trained on trees (.mrg, .ptb, .tree, .parse).
        input: The file to parse, possibly compressed; - is standard input.
        output: The file to write, which appears only when it is complete; - is standard output.
        ensemble: More model folders with the same vocabulary; the probabilities of all models are averaged.
    """
    options = parse_assignments(assignments)
    # Imports torch: too slow for --help.
    from transduce.decoding.loading import decode_config, load_models
    from transduce_lab.parsing.parser import Parser

    check_output(output, [input])
    if not Path(input).is_dir() and are_trees([input]):
        command = shlex.join(["transduce", "evaluate", str(model), input])
        raise UserError(
            f"{input} is a file of trees. `{command}` parses its words and scores the parses."
        )
    models = load_models([model, *map(Path, ensemble)])
    parser = Parser(models, decode_config(models[0].config, options))
    if input == "-" and sys.stdin.isatty():
        log("Type sentences to parse; end with Ctrl-D.")
    parses = parser.parse(without_byte_order_mark(read_lines(input)))
    write_lines(output, (str(parse or "") for parse in parses))


def evaluate_trees(call: Evaluation) -> None:
    """Score parses by labelled brackets for `transduce evaluate`."""
    from transduce_lab.parsing.brackets import score_brackets
    from transduce_lab.parsing.evalb import Parameters, read_parameters

    parameters = read_parameters(str(call.evalb)) if call.evalb else Parameters()
    files = expand_folders(call.files)
    if not files:
        raise UserError("Give MODEL GOLD.mrg …, or --hypothesis FILE GOLD.mrg ….")
    gold = [tree for file in files for tree, _ in read_trees(file)]
    if not gold:
        raise UserError(f"{' '.join(files)} holds no trees.")
    measured = None
    if call.hypothesis:
        call.exclude("--hypothesis runs no model", "output", "ensemble", "assignments")
        lines = list(without_byte_order_mark(read_lines(call.hypothesis)))
        if len(lines) != len(gold):
            parses = count(len(lines), "line")
            golds = f"{' '.join(call.arguments)} has {count(len(gold), 'tree')}"
            raise UserError(
                f"{display_name(call.hypothesis)} has {parses}, but {golds}.",
                "Write one parse per line.",
            )
        scores = score_brackets(map(str, gold), lines, parameters)
    else:
        # Imports torch: too slow for --help.
        from transduce.decoding.loading import (
            decode_config,
            load_models,
        )
        from transduce_lab.parsing.parser import Parser, measure

        if call.output:
            check_output(call.output, files)
        # Parses have no roots.
        parameters = replace(parameters, deleted=parameters.deleted | set(ROOTS))
        models = load_models([call.model, *call.ensemble])
        parser = Parser(
            models, decode_config(models[0].config, parse_assignments(call.assignments))
        )
        measured = measure(parser, gold, parameters)
        scores = measured.scores
        if call.output:
            write_lines(call.output, measured.parses)
    if call.json:
        print(to_json(_json(scores, measured)), end="")
    else:
        _print(scores, measured)


def _shown(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _json(scores: "BracketScores", measured: "Measured | None") -> dict[str, Any]:
    def plain(summary: "Summary") -> dict[str, Any]:
        return summary._asdict() | summary.figures

    whole: dict[str, Any] = {
        "all": plain(scores.all),
        f"at most {scores.cutoff} words": plain(scores.short),
    }
    if measured:
        whole["all, with the gold trees' punctuation"] = plain(measured.agreed.all)
        whole["changed by the constraint"] = measured.changed
        whole["all, without the constraint"] = plain(measured.unconstrained.all)
    return whole


def _print(scores: "BracketScores", measured: "Measured | None") -> None:
    rows: list[tuple[str, ...]] = [("", "all", f"at most {scores.cutoff} words")]
    for name in ("sentences", "errors", "skipped", "valid"):
        rows.append((name, *(f"{getattr(each, name):,}" for each in (scores.all, scores.short))))
    short_figures = scores.short.figures
    for name, value in scores.all.figures.items():
        rows.append((name, _shown(value), _shown(short_figures[name])))
    print_table(rows)
    for number, row in enumerate(scores.rows, start=1):
        if row.status == "error":
            print(f"tree {number}: {row.reason}")
    if measured:
        agreed = _shown(measured.agreed.all.figures["F1"])
        print(
            f"F1 with punctuation tags copied from the gold trees, so that EVALB excludes no parse: {agreed}."
        )
        share = measured.changed / len(scores.rows)
        free = _shown(measured.unconstrained.all.figures["F1"])
        print(
            f"Ensuring well-formedness changed {measured.changed:,} of {len(scores.rows):,} parses ({share:.1%})."
        )
        print(
            f"Without it, F1 would be {free}, counting no brackets of a parse that is not a tree."
        )
