"""The directions of multilingual models: names, choice, and the encoding of pairs with different directions."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from transduce.config.schema import DataConfig
from transduce.system.errors import UserError
from transduce.text.languages import Direction, nearest_code
from transduce.text.pairs import Pair
from transduce.tokens.tokenizer import Tokenizer

DIRECT = "direct"  # the name of a route without a pivot
PIVOT_MARGIN = 1.0  # a pivot takes twice the time, so its chrF must be higher by this much


class Scores(NamedTuple):
    """The chrF of a model's directions and routes on the validation set, as far as they are known."""

    quality: Mapping[str, float] = MappingProxyType({})  # chrF of each direction, such as "en-de"
    # Direction -> DIRECT or pivot -> chrF.
    routes: Mapping[str, Mapping[str, float]] = MappingProxyType({})


def directions_of(data: DataConfig) -> list[Direction]:
    """All directions of a model."""
    if data.directions:
        return [Direction.parse(direction) for direction in data.directions]
    return [Direction(data.source, data.target).as_codes]


def with_known_codes(directions: Sequence[Direction], source: str, target: str) -> Direction:
    """The languages in the most similar codes of `directions`; codes of unknown languages don't change.

    Of several codes for the source, a code that the model translates into the target is preferred.
    """
    sources = [each.source for each in directions if nearest_code(target, [each.target])]
    source = (
        nearest_code(source, sources)
        or nearest_code(source, [each.source for each in directions])
        or source
    )
    targets = [each.target for each in directions if each.source == source]
    target = (
        nearest_code(target, targets)
        or nearest_code(target, [each.target for each in directions])
        or target
    )
    return Direction(source, target)


def matching(directions: Sequence[Direction], source: str, target: str) -> list[Direction]:
    """The directions with these languages, or with similar codes; an empty code stands for any language.

    Raises UserError if there is none.
    """
    source, target = with_known_codes(directions, source, target)
    found = [
        each for each in directions if source in ("", each.source) and target in ("", each.target)
    ]
    if not found:
        wanted = " ".join(
            f"{side} {code}" for side, code in (("from", source), ("to", target)) if code
        )
        raise UserError(
            f"The model does not translate {wanted}.",
            f"Choose one of its directions: {', '.join(map(str, directions))}.",
            "data.source",
            "data.target",
        )
    return found


def choose_direction(directions: Sequence[Direction], source: str, target: str) -> Direction:
    """The first direction with these languages.

    Raises UserError if there is no such direction, or if these directions have several targets.
    """
    found = matching(directions, source, target)
    if len({each.target for each in found}) > 1:
        where = f" from {source}" if source else ""
        raise UserError(
            f"The model has several directions{where}: {', '.join(map(str, found))}.",
            "Choose the target language.",
            "data.target",
        )
    return found[0]


def choose_pivot(
    directions: Sequence[Direction],
    wanted: Direction,
    scores: Mapping[str, float],
    routes: Mapping[str, Mapping[str, float]],
) -> str | None:
    """The pivot to translate through, or None for a direct translation.

    `routes` holds the chrF of the routes of some directions. For other directions, a pivot is chosen by `find_pivot` if
    the model lacks the direction.
    """
    if not (route := routes.get(str(wanted))):
        return None if wanted in directions else find_pivot(directions, wanted, scores)
    pivot = max((each for each in route if each != DIRECT), key=lambda each: route[each])
    return pivot if route[pivot] > route[DIRECT] + PIVOT_MARGIN else None


def find_pivot(
    directions: Sequence[Direction], wanted: Direction, scores: Mapping[str, float]
) -> str | None:
    """The pivot through which `directions` lead to `wanted`, or None. `scores` holds the quality of directions.

    Of several pivots, returns the pivot whose lower score of the two hops is highest.
    """

    def quality(pivot: str) -> float:
        return min(
            scores.get(f"{wanted.source}-{pivot}", 0.0), scores.get(f"{pivot}-{wanted.target}", 0.0)
        )

    return max(pivots_of(directions, wanted), key=quality, default=None)


def pivots_of(directions: Sequence[Direction], wanted: Direction) -> list[str]:
    """The languages through which `directions` lead from one language to another."""
    if wanted.source == wanted.target:
        return []
    first = {each.target for each in directions if each.source == wanted.source}
    return [
        each.source for each in directions if each.target == wanted.target and each.source in first
    ]


def encode_sources(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[list[int]]:
    """The ids of the sources of pairs that may have different directions."""
    tokenizers = {name: tokenizer.toward(name) for name in {pair.direction for pair in pairs}}
    return [tokenizers[pair.direction].encode_source([pair.source])[0] for pair in pairs]
