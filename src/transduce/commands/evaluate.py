"""`transduce evaluate`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.commands.options import Assignments
from transduce.commands.recipes import Files, FromCode, ToCode
from transduce.commands.test_sets import read_routes, read_test_set, read_translations
from transduce.config.commands import option
from transduce.config.parse import parse_assignments
from transduce.config.schema import DataConfig
from transduce.system.console import count, print_table
from transduce.system.errors import UserError
from transduce.system.files import to_json
from transduce.text.languages import Direction, language_of, target_of
from transduce.text.multilingual import is_multilingual
from transduce.text.pairs import are_trees, by_direction
from transduce.text.plain import check_output, write_lines

PAPER_BLEU = "evaluate --paper-bleu"
# JSON keys: the shares of translations and of references that look like another language.
OTHER_LANGUAGE_KEYS = (
    "other_language",
    "references_other_language",
)


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
        target: Language code of the reference, for a multilingual model, or if no file name contains it.
        routes: Compare direct translations with those through each third language, also in untrained directions.
        tokenize: sacreBLEU's tokenizer for BLEU: 13a, zh, ja-mecab, ko-mecab, intl, char or none (for tokenised text);
            by default, the model's data.bleu_tokenize, which follows the language of the reference.
        evalb: A parameter file of EVALB, for trees; by default COLLINS.prm plus three ignored labels: ROOT, S1, "".
        paper_bleu: Also print BLEU as in the paper (tokenised, compounds split), for this target language: de or fr.
        output: Write the translations or trees to this file.
        json: Print the scores as JSON.
    """
    languages = source, target
    _mode(
        Evaluation(
            arguments=arguments,
            hypothesis=hypothesis,
            against=against,
            slices=slices,
            training=training,
            ensemble=tuple(ensemble),
            languages=languages,
            routes=routes,
            tokenize=tokenize,
            evalb=evalb,
            paper_bleu=paper_bleu,
            output=output,
            json=json,
            assignments=tuple(assignments),
        )
    )


@dataclass(frozen=True)
class Evaluation:
    """The arguments of `transduce evaluate`."""

    arguments: tuple[str, ...]
    hypothesis: str
    against: str
    slices: bool
    training: str
    ensemble: tuple[str, ...]
    languages: tuple[str, str]  # codes of the source and of the target, or ""
    routes: bool
    tokenize: str
    evalb: Path | None
    paper_bleu: str
    output: Path | None
    json: bool
    assignments: tuple[str, ...]

    @property
    def model(self) -> str:
        """The model to evaluate."""
        return self.arguments[0]

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the test set: all arguments, without the model if there is one."""
        return self.arguments if self.hypothesis else self.arguments[1:]

    @property
    def has_trees(self) -> bool:
        """Whether parse trees are evaluated."""
        given = [*self.files, self.hypothesis] if self.hypothesis else self.files
        return bool(self.evalb) or are_trees(given)

    def exclude(self, reason: str, *names: str) -> None:
        """Raise UserError if one of these arguments is set."""
        excluded = [name for name in names if getattr(self, name)]
        flags = {"assignments": "section.key=value", "paper_bleu": "--paper-bleu"}
        if excluded:
            raise UserError(
                f"{reason}.",
                f"Leave out {' and '.join(flags.get(name, f'--{name}') for name in excluded)}.",
            )


def _mode(call: Evaluation) -> None:
    """Run the evaluation that the arguments ask for. Raises UserError if arguments exclude each other."""
    if call.has_trees:
        others = "against", "slices", "training", "tokenize", "paper_bleu", "routes"
        call.exclude("Parse trees are scored by brackets", *others)
        option("evaluate --evalb")(call)
        return
    if call.hypothesis:
        call.exclude("--hypothesis runs no model", "output", "ensemble", "routes", "assignments")
        if len(call.arguments) != 1:
            raise UserError(
                f"With --hypothesis, give exactly one argument (REFERENCE), not {len(call.arguments)}."
            )
    elif len(call.arguments) not in (2, 3) and not is_multilingual(call.files):
        raise UserError(
            "Give MODEL SOURCE REFERENCE, or MODEL PAIRS, or --hypothesis FILE REFERENCE.",
            "See --help.",
        )
    if (call.slices or call.training) and not call.against:
        raise UserError(
            "--slices and --training are for the comparison of two translations.",
            "Add --against.",
        )
    if call.against:
        call.exclude("--against compares two translations", "output", "paper_bleu", "routes")
        option("evaluate --against")(call)
    elif call.hypothesis:
        _evaluate_files(call)
    elif call.routes:
        call.exclude("--routes compares several translations", "output", "paper_bleu")
        _evaluate_routes(call)
    else:
        _evaluate_model(call)


def _evaluate_model(call: Evaluation) -> None:
    options = parse_assignments(call.assignments)
    from transduce import model_folder

    # Imports torch: too slow for --help.
    from transduce.decoding.loading import (
        decode_config,
        load_models,
        refuse_parser,
    )
    from transduce.evaluation.evaluate import as_json
    from transduce.evaluation.evaluate import evaluate as measure
    from transduce.text.identify import warn_of_language

    if call.output:
        check_output(call.output, call.files)
    # Before the translation, since it may raise UserError.
    score_as_paper = option(PAPER_BLEU)(call.paper_bleu) if call.paper_bleu else None
    data = model_folder.describe(call.model).config.data
    tokenize = call.tokenize or data.bleu_tokenize
    pairs = read_test_set(call.files, data, call.languages)
    models = load_models([call.model, *call.ensemble])
    for each in models:
        refuse_parser(each.tokenizer, each.folder)
    config = decode_config(models[0].config, options)
    directions = by_direction(pairs)
    for name, its in directions.items():
        languages = Direction.parse(name) if name else Direction(data.source, data.target)
        for code, texts in zip(languages, zip(*its, strict=True), strict=False):
            warn_of_language(f"the texts in {' and '.join(call.files)}", texts, code, languages)
    if len(directions) > 1:
        if call.output or call.paper_bleu:
            raise UserError(
                "--output and --paper-bleu are for one direction.",
                "Choose it with --from and --to.",
            )
        results = {}
        for name, its in directions.items():
            found = measure(models, its, config, tokenize=tokenize)
            texts = [each.text for each in found.translations], [pair.target for pair in its]
            shares = [_share_in_other_languages(each, name, data) for each in texts]
            results[name] = as_json(found) | dict(zip(OTHER_LANGUAGE_KEYS, shares, strict=True))
        _print_directions(results, call.json)
        return
    evaluation = measure(models, pairs, config, tokenize=tokenize)
    outputs = [translation.text for translation in evaluation.translations]
    if call.output:
        write_lines(call.output, outputs)
    facts = as_json(evaluation)
    perplexity = evaluation.perplexity
    if score_as_paper:
        facts["paper_bleu"] = score_as_paper(outputs, [pair.target for pair in pairs])
    _print_scores(facts, call.json)
    if not call.json:
        print(
            f"perplexity {perplexity.per_token:.3f} per token ({count(perplexity.num_tokens, 'token')}), "
            f"{perplexity.per_word:.2f} per word ({count(perplexity.num_words, 'word')})"
        )
        cut = f"; {facts['cut']:,} cut off at the length limit" if facts["cut"] else ""
        print(
            f"{count(len(pairs), 'sentence')} translated in {evaluation.seconds:.1f} s with beam "
            f"{config.beam_size}{cut}"
        )


def _share_in_other_languages(
    texts: Sequence[str], direction: str, data: DataConfig
) -> float | None:
    """The share of the translations of a direction that look like another language of the model."""
    from transduce.text.identify import (
        share_in_other_languages,  # imports numpy: too slow for --help
    )

    codes = {code for name in data.directions for code in name.split("-")}
    return share_in_other_languages(texts, target_of(direction), codes)


def _evaluate_routes(call: Evaluation) -> None:
    """Print the scores of all routes of each direction."""
    from transduce.decoding.loading import decode_config, load_models
    from transduce.evaluation.routes import compare_routes
    from transduce.evaluation.scores import score

    models = load_models([call.model, *call.ensemble])
    data = models[0].config.data
    config = decode_config(models[0].config, parse_assignments(call.assignments))
    if not data.directions:
        raise UserError(f"{call.model} has one direction, so there are no routes to compare.")
    tokenize = call.tokenize or data.bleu_tokenize
    facts: list[dict[str, Any]] = []
    for name, pairs in by_direction(read_routes(call.files, data, call.languages)).items():
        references = [pair.target for pair in pairs]
        target = target_of(name)
        for route, texts, comparisons in compare_routes(models, pairs, config, tokenize):
            facts.append(
                {
                    "direction": name,
                    "route": route,
                    "trained": name in data.directions,
                    "scores": [
                        each._asdict()
                        for each in score(texts, references, tokenize=tokenize, language=target)
                    ],
                    "p_values": {each.name: each.p_value for each in comparisons},
                    OTHER_LANGUAGE_KEYS[0]: _share_in_other_languages(texts, name, data),
                }
            )
    _print_routes(facts, call.json)


def _print_routes(facts: Sequence[dict[str, Any]], json: bool) -> None:
    if json:
        print(to_json(facts), end="")
        return
    rows = [
        (
            "direction",
            "route",
            *(each["name"] for each in facts[0]["scores"]),
            "p (BLEU)",
            "in another language",
        )
    ]
    for its in facts:
        direct = "direct" if its["trained"] else "direct, not trained"
        route = f"through {its['route']}" if its["p_values"] else direct
        p_value = f"{its['p_values']['BLEU']:.3f}".replace("nan", "–") if its["p_values"] else ""
        scores = [f"{each['value']:.2f}" for each in its["scores"]]
        share = _percent(its[OTHER_LANGUAGE_KEYS[0]])
        rows.append((its["direction"], route, *scores, p_value, share))
    print_table(rows)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.2f} %"


def _evaluate_files(call: Evaluation) -> None:
    from transduce.evaluation.scores import AUTO, score  # imports sacrebleu: too slow for --help

    [reference] = call.files
    references = read_translations(reference)
    output = read_translations(call.hypothesis)
    language = call.languages[1] or language_of(reference)
    scores = score(output, references, tokenize=call.tokenize or AUTO, language=language)
    facts: dict[str, Any] = {
        "sentences": len(references),
        "scores": [each._asdict() for each in scores],
    }
    if call.paper_bleu:
        facts["paper_bleu"] = option(PAPER_BLEU)(call.paper_bleu)(output, references)
    _print_scores(facts, call.json)


def _print_scores(facts: dict[str, Any], json: bool) -> None:
    # Imports sacrebleu: too slow for --help.
    from transduce.evaluation.scores import MIN_TESTED_SENTENCES

    if json:
        print(to_json(facts), end="")
        return
    rows = [("metric", "score", "95 %", "signature")]
    for each in facts["scores"]:
        interval = f"{each['low']:.2f} to {each['high']:.2f}"
        rows.append((each["name"], f"{each['value']:.2f}", interval, each["signature"]))
    print_table(rows)
    if facts["sentences"] < MIN_TESTED_SENTENCES:
        print(
            f"With fewer than {MIN_TESTED_SENTENCES} sentences, the intervals are too narrow. Use more text."
        )
    if "paper_bleu" in facts:
        print(
            f"BLEU as in the paper, tokenised and with compounds split: {facts['paper_bleu']:.2f}"
        )


def _print_directions(results: Mapping[str, dict[str, Any]], json: bool) -> None:
    """Print the scores of each direction, and the share of its translations that look like another language."""
    if json:
        print(to_json(results), end="")
        return
    names = [each["name"] for each in next(iter(results.values()))["scores"]]
    signatures = {name: facts["scores"][0]["signature"] for name, facts in results.items()}
    rows = {
        name: [each["value"] for each in facts["scores"]]
        + [facts[key] for key in OTHER_LANGUAGE_KEYS]
        for name, facts in results.items()
    }
    columns = list(zip(*rows.values(), strict=True))
    rows["mean"] = [None if None in column else sum(column) / len(column) for column in columns]
    headings = "in another language", "references in another language", "signature of BLEU"
    shown = [("direction", *names, *headings)]
    for name, values in rows.items():
        scores = [f"{score:.2f}" for score in values[: len(names)]]
        shares = map(_percent, values[len(names) :])
        shown.append((name, *scores, *shares, signatures.get(name, "")))
    print_table(shown)
