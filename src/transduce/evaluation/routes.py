"""Compares the routes of a multilingual model for a direction: directly, or through a third language, the pivot."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from transduce.config.schema import DecodeConfig, RunConfig
from transduce.decoding.directions import DIRECT, directions_of, find_pivot, pivots_of
from transduce.decoding.loading import shared_tokenizer
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import PLAIN_SEARCH
from transduce.evaluation.scores import Comparison, compare, metrics
from transduce.model_folder import Bundle
from transduce.text.languages import Direction
from transduce.text.pairs import Pair, by_direction, usable

ROUTE_SENTENCES = 200  # validation sentences of each direction, for choosing a route
MIN_ROUTE_SENTENCES = (
    100  # fewer sentences can't tell whether a pivot is better than a trained direction
)


class Route(NamedTuple):
    """A route, its translations, and the comparison of the direct translations with them."""

    name: str  # DIRECT, or the language code of a pivot
    texts: list[str]
    comparisons: list[Comparison]  # empty for DIRECT


def measure_routes(
    model: Bundle, pairs: Sequence[Pair], quality: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """The chrF of greedy translations of each direction that has a pivot: direct, and through the best pivot.

    `pairs` may have directions that the model was not trained on. `quality` holds scores of the trained directions.
    """
    greedy = dataclasses.replace(model.config.decode, beam_size=1, **PLAIN_SEARCH)
    translator = _translator([model], model.config, greedy)
    chrf = metrics("13a")["chrF2"]
    routes = {}
    for name, its in by_direction(pairs).items():
        direction = Direction.parse(name)
        pivot = find_pivot(translator.directions, direction, quality)
        some = usable(its)[:ROUTE_SENTENCES]
        if (
            pivot
            and some
            and (direction not in translator.directions or len(some) >= MIN_ROUTE_SENTENCES)
        ):
            texts = {
                route: _translate(translator, direction, route, some) for route in (DIRECT, pivot)
            }
            references = [[pair.target for pair in some]]
            routes[name] = {
                route: float(chrf.corpus_score(its, references).score)
                for route, its in texts.items()
            }
    return routes


def compare_routes(
    models: Sequence[Bundle], pairs: Sequence[Pair], config: DecodeConfig, tokenize: str
) -> list[Route]:
    """Translate pairs of one direction by all routes, and compare each pivot with the direct translations."""
    translator = _translator(models, models[0].config, config)
    direction = Direction.parse(pairs[0].direction)
    references = [pair.target for pair in pairs]
    direct = _translate(translator, direction, DIRECT, pairs)
    routes = [Route(DIRECT, direct, [])]
    for pivot in pivots_of(translator.directions, direction):
        texts = _translate(translator, direction, pivot, pairs)
        routes.append(
            Route(
                pivot,
                texts,
                compare(direct, texts, references, tokenize=tokenize, language=direction.target),
            )
        )
    return routes


def _translator(models: Sequence[Bundle], config: RunConfig, decode: DecodeConfig) -> Translator:
    engine = TorchEngine([model.model for model in models])
    tokenizer = shared_tokenizer(
        [model.tokenizer for model in models], [model.folder for model in models]
    )
    return Translator(
        engine, tokenizer, decode, directions=directions_of(config.data), has_tags=True
    )


def _translate(
    translator: Translator, direction: Direction, route: str, pairs: Sequence[Pair]
) -> list[str]:
    chosen = (
        translator.direct(direction) if route == DIRECT else translator.through(route, direction)
    )
    return [translation.text for translation in chosen.translate([pair.source for pair in pairs])]
