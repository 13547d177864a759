"""`transduce evaluate`."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from transduce.commands.options import Assignments
from transduce.commands.recipes import Files, FromCode, ToCode
from transduce.commands.test_sets import read_routes, read_test_set, read_translations
from transduce.config.parse import parse_assignments
from transduce.system.console import print_table
from transduce.system.errors import UserError
from transduce.system.files import to_json
from transduce.text.languages import SHARE_IN_OTHER_LANGUAGES, language_of, target_of
from transduce.text.multilingual import is_multilingual
from transduce.text.pairs import are_trees, by_direction
from transduce.text.plain import check_output, write_lines

# Functions of the wings, imported when they are needed.
EVALUATE_TREES = "transduce.wings.parsing.command:evaluate_trees"
OTHER_LANGUAGE_KEYS = "other_language", "references_other_language"  # shares of the translations, of the references
PAPER_BLEU = "transduce.wings.paper.paper_bleu:paper_bleu"
COMPARE = "transduce.wings.comparing.evaluate_command:compare_translations"


def evaluate(
    *arguments: str,
    hypothesis: str = "",
    against: str = "",
    slices: bool = False,
    training: str = "",
    ensemble: Files = (),
    source: FromCode = "",
    target: ToCode = "",
    routes: bool = False,
    tokenize: str = "",
    evalb: Path | None = None,
    paper_bleu: str = "",
    output: Path | None = None,
    json: bool = False,
    assignments: Assignments = (),
) -> None:
    """Score translations by BLEU, chrF and TER.

    MODEL SOURCE REFERENCE translates SOURCE with the model and scores the translations. MODEL PAIRS does the same with
    one bilingual file. Files such as test.en test.de test.fr evaluate all directions of a multilingual model.
    `--hypothesis FILE REFERENCE` scores a file of translations. `--against` compares the translations with others by
    paired bootstrap. BLEU and chrF should be high, TER and perplexity low.

    MODEL GOLD.mrg … parses the sentences of files or folders of trees and scores the parses by labelled brackets.
    `--hypothesis PARSES GOLD.mrg …` scores a file with one parse per line.

    Args:
        arguments: MODEL SOURCE REFERENCE; or MODEL PAIRS (.tsv, .tmx, .po …); or with --hypothesis, only REFERENCE.
        hypothesis: A file of translations to score.
        against: What to compare with: another model folder, or with --hypothesis, another file of translations.
        slices: With --against, also compare groups of sentences: by length, rare words, numbers and casing.
        training: A text in the target language for --slices: words that occur at most 5 times in it are rare. Without
            it, words that occur once in the references are rare.
        ensemble: More model folders with the same vocabulary; the probabilities of all models are averaged.
        source: Language code of the source, for a multilingual model.
        target: Language code of the reference, for a multilingual model, or if no file name tells it.
        routes: Compare direct translations with those through each third language, also in untrained directions.
        tokenize: sacreBLEU's tokenizer for BLEU: 13a, zh, ja-mecab, ko-mecab, intl, char or none (for tokenised text);
            by default, the model's data.bleu_tokenize, which follows the language of the reference.
        evalb: A parameter file of EVALB, for trees; by default COLLINS.prm plus three ignored labels: ROOT, S1, "".
        paper_bleu: Also print BLEU as in the paper (tokenised, compounds split), for this target language: de or fr.
        output: Write the translations or trees to this file.
        json: Print the scores as JSON.
    """
    given: dict[str, Any] = {"--against": against, "--slices": slices, "--training": training}
    given |= {"--routes": routes, "--tokenize": tokenize, "--output": output, "--paper-bleu": paper_bleu}
    given |= {"--ensemble": ensemble, "section.key=value": assignments}
    if _check(arguments, hypothesis, evalb, given):
        resolve_name(EVALUATE_TREES)(arguments, hypothesis, ensemble, evalb, output, json, assignments)
    elif against:
        compare, text = resolve_name(COMPARE), training if slices or training else None
        compare(arguments, hypothesis, against, text, tokenize, (source, target), json, ensemble, assignments)
    elif hypothesis:
        _evaluate_files(arguments[0], hypothesis, tokenize, target, paper_bleu, json)
    else:
        judge = _evaluate_routes if routes else partial(_evaluate_model, output=output, paper_bleu=paper_bleu)
        judge(arguments[0], arguments[1:], (source, target), ensemble, tokenize, json, assignments)


def _check(arguments: Sequence[str], hypothesis: str, evalb: Path | None, given: Mapping[str, Any]) -> bool:
    """Return whether parse trees are evaluated. Raises UserError if arguments exclude each other."""

    def exclude(reason: str, *names: str) -> None:
        if excluded := [name for name in names if given[name]]:
            raise UserError(f"{reason}: leave out {' and '.join(excluded)}.")

    if evalb or are_trees([*arguments[not hypothesis :], *filter(None, [hypothesis])]):
        others = "--against", "--slices", "--training", "--tokenize", "--paper-bleu", "--routes"
        exclude("Parse trees are scored by brackets", *others)
        return True
    if hypothesis:
        exclude("--hypothesis runs no model", "--output", "--ensemble", "--routes", "section.key=value")
        if len(arguments) != 1:
            raise UserError(f"With --hypothesis, give exactly one argument (REFERENCE), not {len(arguments)}.")
    elif len(arguments) not in (2, 3) and not is_multilingual(arguments[1:]):
        raise UserError("Give MODEL SOURCE REFERENCE, or MODEL PAIRS, or --hypothesis FILE REFERENCE. See --help.")
    if given["--against"]:
        exclude("--against compares two translations", "--output", "--paper-bleu", "--routes")
    elif given["--slices"] or given["--training"]:
        raise UserError("--slices and --training are for the comparison of two translations: add --against.")
    if given["--routes"]:
        exclude("--routes compares several translations", "--output", "--paper-bleu")
    return False


def _evaluate_model(
    model: str,
    files: Sequence[str],
    languages: tuple[str, str],
    ensemble: Sequence[str],
    tokenize: str,
    json: bool,
    assignments: Sequence[str],
    *,
    paper_bleu: str,
    output: Path | None,
) -> None:
    options = parse_assignments(assignments)
    from transduce import model_folder
    from transduce.decoding.loading import decode_config, load_models, refuse_parser  # torch: too slow for --help
    from transduce.evaluation.evaluate import as_json
    from transduce.evaluation.evaluate import evaluate as measure

    if output:
        check_output(output, files)
    score_as_paper = resolve_name(PAPER_BLEU)(paper_bleu) if paper_bleu else None  # first, since it may raise UserError
    data = model_folder.describe(model).config.data
    pairs = read_test_set(files, data, languages)
    models = load_models([model, *ensemble])
    for each in models:
        refuse_parser(each.tokenizer, each.folder)
    config = decode_config(models[0].config, options)
    if len(directions := by_direction(pairs)) > 1:
        if output or paper_bleu:
            raise UserError("--output and --paper-bleu are for one direction. Choose it with --from and --to.")
        results, codes = {}, {code for name in data.directions for code in name.split("-")}
        for name, its in directions.items():
            found, target = measure(models, its, config, tokenize=tokenize or data.bleu_tokenize), target_of(name)
            texts = [each.text for each in found.translations], [pair.target for pair in its]
            shares = [resolve_name(SHARE_IN_OTHER_LANGUAGES)(each, target, codes) for each in texts]
            results[name] = as_json(found) | dict(zip(OTHER_LANGUAGE_KEYS, shares, strict=True))
        _print_directions(results, json)
        return
    evaluation = measure(models, pairs, config, tokenize=tokenize or data.bleu_tokenize)
    outputs = [translation.text for translation in evaluation.translations]
    if output:
        write_lines(output, outputs)
    facts, perplexity = as_json(evaluation), evaluation.perplexity
    if score_as_paper:
        facts["paper_bleu"] = score_as_paper(outputs, [pair.target for pair in pairs])
    _print_scores(facts, json)
    if not json:
        print(f"perplexity {perplexity.per_token:.3f} per token ({perplexity.num_tokens:,} tokens), ", end="")
        print(f"{perplexity.per_word:.2f} per word ({perplexity.num_words:,} words)")
        print(f"{len(pairs):,} sentences translated in {evaluation.seconds:.1f} s with beam {config.beam_size}", end="")
        print(f"; {facts['cut']:,} cut off at the length limit" if facts["cut"] else "")


def _evaluate_routes(
    model: str,
    files: Sequence[str],
    languages: tuple[str, str],
    ensemble: Sequence[str],
    tokenize: str,
    json: bool,
    assignments: Sequence[str],
) -> None:
    """Print the scores of all routes of each direction."""
    from transduce.decoding.loading import decode_config, load_models
    from transduce.evaluation.routes import compare_routes
    from transduce.evaluation.scores import score

    models = load_models([model, *ensemble])
    data, config = models[0].config.data, decode_config(models[0].config, parse_assignments(assignments))
    if not data.directions:
        raise UserError(f"{model} has one direction, so there are no routes to compare.")
    codes = {code for name in data.directions for code in name.split("-")}
    tokenize, facts = tokenize or data.bleu_tokenize, list[dict[str, Any]]()
    for name, pairs in by_direction(read_routes(files, data, languages)).items():
        references, target = [pair.target for pair in pairs], target_of(name)
        for route, texts, comparisons in compare_routes(models, pairs, config, tokenize):
            share = resolve_name(SHARE_IN_OTHER_LANGUAGES)(texts, target, codes)
            facts.append(
                {
                    "direction": name,
                    "route": route,
                    "trained": name in data.directions,
                    "scores": [each._asdict() for each in score(texts, references, tokenize=tokenize, language=target)],
                    "p_values": {each.name: each.p_value for each in comparisons},
                    OTHER_LANGUAGE_KEYS[0]: share,
                }
            )
    if json:
        print(to_json(facts), end="")
        return
    rows = [("direction", "route", *(each["name"] for each in facts[0]["scores"]), "p (BLEU)", "in another language")]
    for its in facts:
        direct = "direct" if its["trained"] else "direct, not trained"
        route = f"through {its['route']}" if its["p_values"] else direct
        p_value = f"{its['p_values']['BLEU']:.3f}".replace("nan", "–") if its["p_values"] else ""
        share = its[OTHER_LANGUAGE_KEYS[0]]
        percent = "" if share is None else f"{100 * share:.2f} %"
        rows.append((its["direction"], route, *(f"{each['value']:.2f}" for each in its["scores"]), p_value, percent))
    print_table(rows)


def _evaluate_files(reference: str, hypothesis: str, tokenize: str, language: str, paper_bleu: str, json: bool) -> None:
    from transduce.evaluation.scores import AUTO, score  # sacrebleu: too slow for --help

    references, output = map(read_translations, (reference, hypothesis))
    scores = score(output, references, tokenize=tokenize or AUTO, language=language or language_of(reference))
    facts: dict[str, Any] = {"sentences": len(references), "scores": [each._asdict() for each in scores]}
    if paper_bleu:
        facts["paper_bleu"] = resolve_name(PAPER_BLEU)(paper_bleu)(output, references)
    _print_scores(facts, json)


def _print_scores(facts: dict[str, Any], json: bool) -> None:
    from transduce.evaluation.scores import MIN_TESTED_SENTENCES  # sacrebleu: too slow for --help

    if json:
        print(to_json(facts), end="")
        return
    rows = [("metric", "score", "95 %", "signature")]
    for each in facts["scores"]:
        interval = f"{each['low']:.2f} to {each['high']:.2f}"
        rows.append((each["name"], f"{each['value']:.2f}", interval, each["signature"]))
    print_table(rows)
    if facts["sentences"] < MIN_TESTED_SENTENCES:
        print(f"With fewer than {MIN_TESTED_SENTENCES} sentences, the intervals are too narrow. Use more text.")
    if "paper_bleu" in facts:
        print(f"BLEU as in the paper, tokenised and with compounds split: {facts['paper_bleu']:.2f}")


def _print_directions(results: Mapping[str, dict[str, Any]], json: bool) -> None:
    """Print the scores of each direction, and the share of its translations that look like another language."""
    if json:
        print(to_json(results), end="")
        return
    names = [each["name"] for each in next(iter(results.values()))["scores"]]
    bleu_signatures = {name: facts["scores"][0]["signature"] for name, facts in results.items()}
    rows = [
        [name, *(each["value"] for each in facts["scores"]), *(facts[key] for key in OTHER_LANGUAGE_KEYS)]
        for name, facts in results.items()
    ]
    columns = list(zip(*rows, strict=True))[1:]
    rows.append(["mean", *(None if None in column else sum(column) / len(column) for column in columns)])
    shown = []
    for name, *values in rows:
        scores, shares = values[: len(names)], values[len(names) :]
        percent = ("" if share is None else f"{100 * share:.2f} %" for share in shares)
        shown.append((name, *(f"{score:.2f}" for score in scores), *percent, bleu_signatures.get(name, "")))
    columns_of_text = "in another language", "references in another language", "signature of BLEU"
    print_table([("direction", *names, *columns_of_text), *shown])
