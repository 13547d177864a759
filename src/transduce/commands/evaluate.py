"""`transduce evaluate`."""

from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from transduce.commands.options import Assignments
from transduce.commands.output import check_output, print_table, write_lines
from transduce.commands.recipes import Files
from transduce.config.parse import parse_assignments
from transduce.system.errors import UserError
from transduce.system.files import to_json
from transduce.text.pairs import TREES, read_pairs
from transduce.text.plain import read_lines, suffixes, without_byte_order_mark

if TYPE_CHECKING:
    from transduce.evaluation.scores import Comparison, Score

# What wings add, imported when it is used.
EVALUATIONS = {TREES: "transduce.wings.parsing.command:evaluate_trees"}  # by the suffix of the files
PAPER_BLEU = "transduce.wings.paper.paper_bleu:paper_bleu"


def evaluate(
    *arguments: str,
    hypothesis: str = "",
    against: str = "",
    ensemble: Files = (),
    tokenize: str = "",
    evalb: Path | None = None,
    paper_bleu: str = "",
    output: Path | None = None,
    json: bool = False,
    assignments: Assignments = (),
) -> None:
    """Score a model's translations, or output that is there already: BLEU, chrF and TER, with signatures.

    With MODEL SOURCE REFERENCE, or MODEL and one bilingual file, translate the source and compare with the reference;
    with `--hypothesis FILE REFERENCE` score a file that is there already; with `--hypothesis FILE --against FILE2
    REFERENCE` compare two, by paired bootstrap. Of BLEU and chrF more is better, of TER and perplexity less.

    Trees are scored by labelled brackets, as EVALB does, for all and for short sentences: MODEL GOLD.mrg, or
    `--hypothesis PARSES GOLD.mrg` with one parse a line.

    Args:
        arguments: MODEL SOURCE REFERENCE, MODEL PAIRS (.tsv, .tmx, .po …), or with --hypothesis the REFERENCE alone.
        hypothesis: A file of translations to score.
        against: Another file of translations of the same sentences, to compare with.
        ensemble: More model folders with the same vocabulary.
        tokenize: How sacreBLEU splits words for BLEU: 13a, intl, char, none (the text is tokenised already); by
            default as the model's data.bleu_tokenize says, and without a model 13a.
        evalb: A parameter file of EVALB for trees; by default what COLLINS.prm says, and roots don't count.
        paper_bleu: A language (de, fr): also print BLEU as the paper's authors counted it, with compounds split.
        output: Write the translations, or trees, to this file.
        json: Print a JSON object, for programs.
    """
    kinds = [suffixes(argument)[0] for argument in (*arguments, hypothesis)]
    kind = TREES if evalb else next((kind for kind in kinds if kind in EVALUATIONS), None)
    if kind:
        if against or tokenize or paper_bleu:
            raise UserError("Trees are scored by brackets: leave out --against, --tokenize and --paper-bleu.")
        resolve_name(EVALUATIONS[kind])(arguments, hypothesis, ensemble, evalb, output, json, assignments)
        return
    if hypothesis:
        if output or ensemble or assignments:
            raise UserError("--hypothesis scores what is there: leave out --output, --ensemble and section.key=value.")
        _evaluate_files(arguments, hypothesis, against, tokenize or "13a", paper_bleu, json)
        return
    if against:
        raise UserError("--against compares with the file that --hypothesis names; give both, and the REFERENCE.")
    if len(arguments) not in (2, 3):
        raise UserError(
            "Give MODEL SOURCE REFERENCE, MODEL PAIRS, or --hypothesis FILE REFERENCE, not "
            f"{len(arguments)} arguments; see 'transduce evaluate --help'."
        )
    _evaluate_model(arguments[0], arguments[1:], ensemble, tokenize, paper_bleu, output, json, assignments)


def _evaluate_model(
    model: str,
    files: Sequence[str],
    ensemble: Sequence[str],
    tokenize: str,
    paper_bleu: str,
    output: Path | None,
    json: bool,
    assignments: Sequence[str],
) -> None:
    given = parse_assignments(assignments)
    from transduce import model_folder
    from transduce.decoding.loading import decode_config, load_models, refuse_parser  # torch: too slow for --help
    from transduce.evaluation.evaluate import as_json
    from transduce.evaluation.evaluate import evaluate as measure

    if output:
        check_output(output, files)
    score_as_paper = resolve_name(PAPER_BLEU)(paper_bleu) if paper_bleu else None  # or says what is missing
    data = model_folder.describe(model).config.data
    pairs = list(read_pairs(files, (data.source, data.target)))
    models = load_models([model, *ensemble])
    for each in models:
        refuse_parser(each.tokenizer, each.folder)
    config = decode_config(models[0].config, given)
    found = measure(models, pairs, config, tokenize=tokenize or data.bleu_tokenize)
    outputs = [translation.text for translation in found.translations]
    if output:
        write_lines(output, outputs)
    facts, perplexity = as_json(found), found.perplexity
    if score_as_paper:
        facts["paper_bleu"] = score_as_paper(outputs, [pair.target for pair in pairs])
    if json:
        print(to_json(facts), end="")
        return
    _print_scores(found.scores)
    _print_paper_bleu(facts)
    print(f"perplexity {perplexity.per_token:.3f} per token ({perplexity.num_tokens:,}), ", end="")
    print(f"{perplexity.per_word:.2f} per word ({perplexity.num_words:,})")
    print(f"{len(pairs):,} sentences translated in {found.seconds:.1f} s with beam {config.beam_size}", end="")
    print(f"; {facts['cut']:,} cut off at the length limit" if facts["cut"] else "")


def _evaluate_files(
    arguments: Sequence[str], hypothesis: str, against: str, tokenize: str, paper_bleu: str, json: bool
) -> None:
    if len(arguments) != 1:
        raise UserError(f"With --hypothesis give one more file, the REFERENCE, not {len(arguments)}.")
    from transduce.evaluation.scores import compare, score  # sacrebleu: too slow for --help

    def read(file: str) -> list[str]:
        return list(without_byte_order_mark(read_lines(file)))

    reference, output = read(arguments[0]), read(hypothesis)
    if against:
        if paper_bleu:
            raise UserError("--paper-bleu is for one output: leave out --against.")
        comparisons = compare(output, read(against), reference, tokenize=tokenize)
        if json:
            print(to_json([_comparison_json(each) for each in comparisons]), end="")
        else:
            _print_comparisons(comparisons, hypothesis, against)
        return
    scores = score(output, reference, tokenize=tokenize)
    facts: dict[str, Any] = {"sentences": len(reference), "scores": [each._asdict() for each in scores]}
    if paper_bleu:
        facts["paper_bleu"] = resolve_name(PAPER_BLEU)(paper_bleu)(output, reference)
    if json:
        print(to_json(facts), end="")
    else:
        _print_scores(scores)
        _print_paper_bleu(facts)


def _print_paper_bleu(facts: dict[str, Any]) -> None:
    if "paper_bleu" in facts:
        print(f"BLEU as the paper's authors counted it, tokenised and with compounds split: {facts['paper_bleu']:.2f}")


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


def _comparison_json(comparison: "Comparison") -> dict[str, Any]:
    return {
        "name": comparison.name,
        "first": comparison.first._asdict(),
        "second": comparison.second._asdict(),
        "p_value": comparison.p_value,
    }
