"""Chooses the models that translate a request, by its languages and by the name of a model."""

import re
from collections.abc import Iterable, Sequence
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

from transduce.decoding.directions import choose_pivot, find_pivot, with_known_codes
from transduce.system.errors import UserError
from transduce.text.languages import Direction, nearest_code
from transduce.wings.serving.languages import UNDETERMINED, codes
from transduce.wings.serving.models import Model
from transduce.wings.serving.payload import MAX_NAME_CHARACTERS

NAME = re.compile(rf"[A-Za-z0-9._-]{{1,{MAX_NAME_CHARACTERS}}}")


class Hop(NamedTuple):
    """A model, and the direction in which it translates."""

    model: Model
    direction: Direction


Route = tuple[Hop, ...]  # the hops translate a text one after the other


class Catalogue:
    """The directions of some models, also those through a pivot. The first model of a direction translates it.

    A model also translates directions that it was not trained on, if a direct translation was measured to be better
    than a pivot.
    """

    def __init__(self, models: Sequence[Model], name: str = ""):
        """`name` is the name by which requests choose these models, or "" for the default models."""
        self._name = name
        self._models: dict[Direction, Model] = {}
        for model in models:
            self._models |= {each: model for each in model.directions if each not in self._models}
        trained = dict(self._models)
        for model in models:
            untrained = sorted({*map(Direction.parse, model.scores.routes)} - {*self._models})
            self._models |= {each: model for each in untrained if _pivot(model, each) is None}
        quality = {
            str(each): model.scores.quality.get(str(each), 0.0) for each, model in trained.items()
        }
        missing = [
            Direction(*pair) for pair in permutations(self.codes, 2) if pair not in self._models
        ]
        pivots = {each: find_pivot([*trained], each, quality) for each in missing}
        pivots |= {each: _pivot(model, each) for each, model in trained.items()}
        self._pivots = {each: pivot for each, pivot in pivots.items() if pivot}

    @property
    def codes(self) -> list[str]:
        """The codes of all languages, source languages first."""
        return codes(self._models)

    @property
    def directions(self) -> list[Direction]:
        """All directions, also those through a pivot."""
        return list(dict.fromkeys([*self._models, *self._pivots]))

    def sources(self, target: str) -> list[str]:
        """The languages that are translated to `target`. Raises UserError if there are none."""
        known = nearest_code(target, [each.target for each in self.directions])
        if known is None:
            raise self._error(f"translates into {target!r}", "languages")
        return [each.source for each in self.directions if each.target == known]

    def kept(self, target: str) -> str:
        """The code of `target` if a model translates from it, else ""."""
        return nearest_code(target, [each.source for each in self.directions]) or ""

    def route(self, source: str, target: str) -> Route:
        """The models that translate `source` to `target`: none for the same language, two with a pivot, else one.

        If no model has these codes, models with similar codes are chosen. Raises UserError if there are none.
        """
        if source.replace("_", "-").casefold() == target.replace("_", "-").casefold():
            return ()
        hops: list[Direction] = []
        known = with_known_codes(self.directions, source, target).source
        if source == UNDETERMINED:  # a text without words: nearly every model copies it
            into = nearest_code(target, [each.target for each in self._models])
            hops = [each for each in self._models if each.target == into][:1]
        elif known in [each.source for each in self._models]:
            direct = nearest_code(
                target, [each.target for each in self._models if each.source == known]
            )
            through = nearest_code(
                target, [each.target for each in self._pivots if each.source == known]
            )
            if nearest_code(target, [known]) and not direct and not through:
                return ()  # another variant of the same language
            if found := direct or through:
                pivot = self._pivots.get(Direction(known, found))
                hops = (
                    [Direction(known, pivot), Direction(pivot, found)]
                    if pivot
                    else [Direction(known, found)]
                )
        if not hops:
            raise self._error(f"translates {source!r} to {target!r}", "language pairs")
        return tuple(Hop(self._models[each], each) for each in hops)

    def _error(self, what: str, listed: str) -> UserError:
        if self._name:
            return UserError(
                f"No model with the name {self._name} {what}.",
                f"Choose one of its directions: {', '.join(map(str, self._models))}.",
            )
        return UserError(f"No model {what}.", f"GET /languages lists the {listed}.")


def _pivot(model: Model, direction: Direction) -> str | None:
    """The pivot for a direction that a single model translates, or None if the model translates directly."""
    return choose_pivot(model.directions, direction, *model.scores)


class Catalogues:
    """The default models, and all models by their names."""

    def __init__(self, models: Sequence[Model]):
        """Raises UserError if two models have the same name and a common direction."""
        self.default = Catalogue(models)
        by_name: dict[str, dict[Direction, Model]] = {}
        for model in models:
            known = by_name.setdefault(model.name, {})
            for direction in model.directions:
                if (other := known.setdefault(direction, model)) is not model:
                    source, target = direction
                    raise UserError(
                        f"{other.folder} and {model.folder} both translate {source} to {target}, "
                        f"and have the name {model.name}.",
                        f"Give one of them another name, such as new={model.folder}.",
                    )
        self._by_name = {
            name: Catalogue(list(dict.fromkeys(known.values())), name)
            for name, known in by_name.items()
        }
        counts = [each for model in models for each in model.directions]
        self.has_choice = len(set(counts)) < len(counts)  # whether a direction has several models

    @property
    def names(self) -> list[str]:
        """The names of all models."""
        return list(self._by_name)

    def choose(self, name: str) -> Catalogue:
        """The models with this name, or the default models for "". Raises UserError if the name is unknown."""
        if name and name not in self._by_name:
            unknown = name[:MAX_NAME_CHARACTERS]
            raise UserError(
                f"There is no model with the name {unknown!r}.",
                f"Choose one of {', '.join(self.names)}.",
            )
        return self._by_name[name] if name else self.default


def named_folders(arguments: Iterable[str]) -> list[tuple[str, Path]]:
    """Split arguments of the form FOLDER or NAME=FOLDER. By default, a model has the name of its folder.

    Raises UserError for a name that a request can't send.
    """
    found = []
    for argument in arguments:
        name, equals, folder = argument.partition("=")
        if not equals or Path(argument).exists():
            name = Path(argument).absolute().name[:MAX_NAME_CHARACTERS]
            folder = argument
        elif not NAME.fullmatch(name) or not folder:
            remedy = (
                "Write a folder after the equals sign."
                if NAME.fullmatch(name)
                else f"Use a name of at most {MAX_NAME_CHARACTERS} letters from a to z, digits, dots, _ and -."
            )
            raise UserError(f"'{argument}' is neither a folder nor NAME=FOLDER.", remedy)
        found.append((name, Path(folder)))
    return found
