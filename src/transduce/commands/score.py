"""`transduce score`."""

import json as json_format
from pathlib import Path

from transduce.commands.options import Assignments
from transduce.commands.recipes import FromCode, ToCode
from transduce.commands.test_sets import named_languages
from transduce.config.parse import parse_assignments
from transduce.decoding.registry import EngineName


def score(
    model: Path,
    source: str,
    target: str,
    /,
    *,
    source_language: FromCode = "",
    target_language: ToCode = "",
    json: bool = False,
    assignments: Assignments = (),
) -> None:
    """Print the log-probability that a model gives to each translation in a file.

    Each log-probability is in nats and includes the end-of-sentence token. A pair of blank texts gives 0.

    Args:
        model: A model folder.
        source: A text file, one sentence per line.
        target: The translations of the source, line by line.
        source_language: With a multilingual model, the language code of the source, if no file name contains it.
        target_language: With a multilingual model, the language code of the translations, if no file name contains it.
        json: Print a JSON object per line: log_prob, num_tokens, score (log_prob / length penalty),
            confidence (the probability that the translation is good), detached (hardly related to the source), and
            words (the span of each word, and the probability that the word is right).
    """
    options = parse_assignments(assignments)
    from transduce.decoding.loading import export_engine, load  # imports numpy: too slow for --help
    from transduce.text.pairs import read_pairs

    engine: EngineName = "auto" if export_engine(model) else "torch"
    translator = load(model, options, engine=engine)
    given = (source_language, target_language)
    if any(given) or not translator.direction:
        translator = translator.toward(*named_languages(given, (source, target)))
    pairs = list(read_pairs([source, target], translator.require_direction()))
    for scored in translator.score(
        [pair.source for pair in pairs], [pair.target for pair in pairs]
    ):
        words = [word._asdict() for word in scored.words]
        print(
            json_format.dumps(scored._asdict() | {"words": words})
            if json
            else f"{scored.log_prob:.4f}"
        )
