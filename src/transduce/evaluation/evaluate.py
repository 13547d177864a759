"""Evaluate a model on text that it was not trained on."""

import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from transduce.config.schema import DataConfig, DecodeConfig, RunConfig
from transduce.decoding.loading import shared_tokenizer
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import CUT, PLAIN_SEARCH, Scored, Translation
from transduce.evaluation.perplexity import Perplexity, Validation, perplexity
from transduce.evaluation.scores import AUTO, Score, metrics, score
from transduce.model.seq2seq import Seq2Seq
from transduce.model_folder import Bundle
from transduce.text.languages import Direction
from transduce.text.pairs import Pair, by_direction, spread
from transduce.tokens.tokenizer import Tokenizer

# Validation sentences translated during training; their BLEU is accurate to about 1.5.
GREEDY_SENTENCES = 500
MIN_GREEDY_SENTENCES = 50  # minimum for each direction of a multilingual model


class Evaluation(NamedTuple):
    """The translations of a test set, their scores, and the perplexity of the references."""

    translations: list[Translation]
    scores: list[Score]
    scored: list[Scored]  # the references
    perplexity: Perplexity
    seconds: float  # spent on translating


def evaluate(
    models: Sequence[Bundle], pairs: Sequence[Pair], config: DecodeConfig, *, tokenize: str = AUTO
) -> Evaluation:
    """Translate the sources with a model or an ensemble, and score the translations against the targets.

    All pairs have the same direction.

    Raises UserError if the models' vocabularies differ, if there are no pairs, if the tokenisation for BLEU is unknown,
    or if a sentence is too long.
    """
    direction = direction_of(pairs, models[0].config.data)
    metrics(tokenize, direction.target)
    tokenizer = shared_tokenizer(
        [model.tokenizer for model in models], [model.folder for model in models]
    )
    tokenizer = tokenizer.toward(pairs[0].direction if pairs else "")
    translator = Translator(
        TorchEngine([model.model for model in models]), tokenizer, config, directions=[direction]
    )
    sources = [pair.source for pair in pairs]
    references = [pair.target for pair in pairs]
    scored = translator.score(sources, references)
    began = time.monotonic()
    translations = translator.translate(sources)
    seconds = time.monotonic() - began
    outputs = [translation.text for translation in translations]
    scores = score(outputs, references, tokenize=tokenize, language=direction.target)
    return Evaluation(translations, scores, scored, _perplexity(scored, references), seconds)


def as_json(evaluation: Evaluation) -> dict[str, Any]:
    """The results of an evaluation, as written to metrics.json."""
    return {
        "sentences": len(evaluation.translations),
        "scores": [each._asdict() for each in evaluation.scores],
        "perplexity": evaluation.perplexity._asdict(),
        "cut": sum(CUT in translation.flags for translation in evaluation.translations),
        "seconds": round(evaluation.seconds, 2),
    }


def validations(
    tokenizer: Tokenizer,
    pairs: Sequence[Pair],
    config: RunConfig,
    *,
    is_final: bool = False,
    searched: bool = True,
) -> Callable[[Seq2Seq], dict[str, Validation]]:
    """Make a function that validates a model in each direction of the pairs ("" if the model is not multilingual).

    The number of translated sentences is divided among the directions, unless `is_final` is true. None are translated
    if `searched` is false.
    """
    directions = by_direction(pairs)
    shares = 1 if is_final else max(1, len(directions))
    sentences = max(MIN_GREEDY_SENTENCES, GREEDY_SENTENCES // shares) if searched else 0
    each = {
        name: _validation(tokenizer.toward(name), its, config, sentences)
        for name, its in directions.items()
    }
    return lambda model: {
        name: result for name, validate in each.items() if (result := validate(model))
    }


def _validation(
    tokenizer: Tokenizer, pairs: Sequence[Pair], config: RunConfig, sentences: int
) -> Callable[[Seq2Seq], Validation | None]:
    """Make a function that validates a model in one direction. `sentences` of the pairs are translated."""
    sources = [pair.source for pair in pairs]
    references = [pair.target for pair in pairs]
    some = spread(pairs, sentences)  # so that all corpora are represented
    greedy = dataclasses.replace(config.decode, beam_size=1, **PLAIN_SEARCH)

    def validate(model: Seq2Seq) -> Validation | None:
        translator = Translator(TorchEngine([model]), tokenizer, greedy)
        measured = _perplexity(translator.score(sources, references, masked=True), references)
        # A diverged model can't be searched.
        if config.data.symbols or not some or math.isinf(measured.per_token):
            return Validation(measured.per_token)
        outputs = [
            translation.text
            for translation in translator.translate_sentences([pair.source for pair in some])
        ]
        by_name = metrics(config.data.bleu_tokenize, direction_of(pairs, config.data).target)
        wanted = [[pair.target for pair in some]]
        scores = (by_name[name].corpus_score(outputs, wanted).score for name in ("BLEU", "chrF2"))
        return Validation(measured.per_token, *map(float, scores))

    return validate


def direction_of(pairs: Sequence[Pair], data: DataConfig) -> Direction:
    """The common direction of all pairs."""
    name = pairs[0].direction if pairs else ""
    return Direction.parse(name) if name else Direction(data.source, data.target)


def _perplexity(scored: Sequence[Scored], references: Sequence[str]) -> Perplexity:
    return perplexity(
        [each.log_prob for each in scored], [each.num_tokens for each in scored], references
    )
