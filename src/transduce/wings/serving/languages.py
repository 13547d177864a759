"""The languages of a server's models, and language detection."""

import re
from collections.abc import Iterable, Sequence
from html import unescape
from typing import NamedTuple

from transduce.decoding.translator import Translator
from transduce.system.errors import UserError
from transduce.wings.documents.markup import pieces

DETECTION_CHARACTERS = 10_000  # read from the start of a text, in some milliseconds
DETECTION_MARKUP_CHARACTERS = 1 << 16  # read from the start of a text with markup


class Direction(NamedTuple):
    """A language pair, as two language codes."""

    source: str
    target: str


class Detected(NamedTuple):
    """A candidate language of a text."""

    language: str
    confidence: float  # per cent


class Served(NamedTuple):
    """A model that the server offers."""

    folder: str
    direction: Direction
    translator: Translator

    @property
    def can_align(self) -> bool:
        """Whether the engine returns the attention that word alignment needs."""
        return "attention" in self.translator.engine.supports


def by_direction(served: Iterable[Served]) -> dict[Direction, Served]:
    """The models by language pair; raises UserError if two models have the same language pair."""
    models: dict[Direction, Served] = {}
    for model in served:
        if model.direction in models:
            source, target = model.direction
            raise UserError(
                f"{models[model.direction].folder} and {model.folder} both translate {source} to {target}. Serve one "
                "of them, or correct the languages in a model's config.toml (data.source, data.target)."
            )
        models[model.direction] = model
    return models


def codes(directions: Iterable[Direction]) -> list[str]:
    """The languages of all pairs, source languages first."""
    sources, targets = zip(*directions, strict=True)
    return list(dict.fromkeys(sources + targets))


def without_markup(text: str) -> str:
    """The start of a text, without markup, since the English names of tags would mislead the language detection."""
    text = text[:DETECTION_MARKUP_CHARACTERS]
    words = (text[piece.begin : piece.end] for piece in pieces(text, html=True) if piece.kind == "text")
    return unescape(" ".join(words))


class Detector:
    """Detects the language of a text with py3langid; considers only those `languages` that py3langid knows."""

    def __init__(self, languages: Sequence[str]):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        labels = set(self._identifier.labels)
        self._labels = {code: label for code in languages if (label := re.split("[-_]", code.lower())[0]) in labels}
        if self._labels:
            self._identifier.set_languages(sorted(set(self._labels.values())))

    def detect(self, text: str, among: Sequence[str]) -> list[Detected]:
        """Return the languages in `among` with their probabilities for the text, most probable first."""
        known = [code for code in among if code in self._labels]
        if len(among) == 1 or not known:
            return [Detected(among[0], 100.0)]
        probabilities = {label: float(value) for label, value in self._identifier.rank(text[:DETECTION_CHARACTERS])}
        by_code = {code: probabilities[self._labels[code]] for code in known}
        total = sum(by_code.values()) or 1.0
        ranked = sorted(by_code, key=lambda code: -by_code[code])
        return [Detected(code, round(100 * by_code[code] / total, 1)) for code in ranked]
