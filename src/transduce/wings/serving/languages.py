"""Lists the languages of a server's models, and detects the language of a text."""

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
    """The codes of a source language and a target language."""

    source: str
    target: str


class Detected(NamedTuple):
    """A possible language of a text, and its probability."""

    language: str
    confidence: float  # per cent


class Served(NamedTuple):
    """A model that the server offers."""

    folder: str
    direction: Direction
    translator: Translator

    @property
    def can_align(self) -> bool:
        """Whether the engine can align words."""
        return "attention" in self.translator.engine.supports


def by_direction(served: Iterable[Served]) -> dict[Direction, Served]:
    """Map language pairs to models. Raises UserError if two models have the same language pair."""
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
    """The language codes of all pairs, source languages first."""
    sources, targets = zip(*directions, strict=True)
    return list(dict.fromkeys(sources + targets))


def without_markup(text: str) -> str:
    """Return the beginning of an HTML text without tags, for language detection."""
    text = text[:DETECTION_MARKUP_CHARACTERS]
    words = (text[piece.begin : piece.end] for piece in pieces(text, html=True) if piece.kind == "text")
    return unescape(" ".join(words))


class Detector:
    """Detects the language of a text with py3langid. Ignores `languages` that py3langid does not know."""

    def __init__(self, languages: Sequence[str]):
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        labels = set(self._identifier.labels)
        self._labels = {code: label for code in languages if (label := re.split("[-_]", code.lower())[0]) in labels}
        if self._labels:
            self._identifier.set_languages(sorted(set(self._labels.values())))

    def detect(self, text: str, among: Sequence[str]) -> list[Detected]:
        """Rank the languages in `among` by their probability for the text."""
        known = [code for code in among if code in self._labels]
        if len(among) == 1 or not known:
            return [Detected(among[0], 100.0)]
        probabilities = {label: float(value) for label, value in self._identifier.rank(text[:DETECTION_CHARACTERS])}
        by_code = {code: probabilities[self._labels[code]] for code in known}
        total = sum(by_code.values()) or 1.0
        ranked = sorted(by_code, key=lambda code: -by_code[code])
        return [Detected(code, round(100 * by_code[code] / total, 1)) for code in ranked]
