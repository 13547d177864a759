"""Lists the languages of a server's models, and detects the language of a text."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from transduce.inline.events import unescape
from transduce.inline.markup import pieces
from transduce.system.errors import UserError
from transduce.text.identify import CODES, label_of
from transduce.text.languages import Direction, language_name

DETECTION_CHARACTERS = 10_000  # read from the start of a text, in some milliseconds
DETECTION_MARKUP_CHARACTERS = 1 << 16  # read from the start of a text with markup
# When a language is much likelier than another. With these values, none of 4,000 sentences of Tatoeba (English, German)
# and Multi30k (Czech, French) is taken for another language, and 98 % of the German ones are not taken for English.
MIN_LIKELIEST, MIN_RATIO = 0.2, 5
MIN_LISTED = 0.01  # probability of a language that /detect lists
UNDETERMINED = "und"  # the language code of BCP 47 for texts without a language


class Detected(NamedTuple):
    """A possible language of a text, and its probability."""

    language: str
    confidence: float  # per cent


def codes(directions: Iterable[Direction]) -> list[str]:
    """The language codes of all pairs, source languages first."""
    return list(dict.fromkeys(chain(*zip(*directions, strict=True))))


def without_markup(text: str) -> str:
    """Return the beginning of an HTML text without tags, for language detection."""
    text = text[:DETECTION_MARKUP_CHARACTERS]
    words = (
        text[piece.begin : piece.end] for piece in pieces(text, html=True) if piece.kind == "text"
    )
    return unescape(" ".join(words))


class Detector:
    """Detects the language of a text with py3langid, among all languages that py3langid knows."""

    def __init__(self, languages: Sequence[str]):
        """`languages` holds the codes of the models' languages; languages that py3langid does not know are ignored."""
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        known = set(self._identifier.labels)
        labels = {code: label_of(code, known) for code in languages}
        self._labels = {code: label for code, label in labels.items() if label}

    def detect(self, text: str) -> list[Detected]:
        """Rank the likeliest languages of a text. A text without words is UNDETERMINED.

        Languages that the server does not translate are left out, unless they are much likelier than those it does.
        """
        code = {label: code for code, label in reversed(self._labels.items())}
        ranked = self._rank(text)
        best = max((ranked.get(label, 0.0) for label in code), default=0.0)
        likeliest = [
            (each, value)
            for each, value in ranked.items()
            if each in code or value >= MIN_RATIO * best
        ]
        found = [Detected(code.get(each, each), round(100 * value, 1)) for each, value in likeliest]
        listed = [each for each in found if each.confidence >= 100 * MIN_LISTED]
        return listed or found[:1] or [Detected(UNDETERMINED, 0.0)]

    def choose(self, text: str, among: Sequence[str], usual: str = "", kept: str = "") -> Detected:
        """Choose the language of a text from the codes `among`, or `kept` if that is much likelier.

        A text without words is UNDETERMINED. `usual` is chosen unless another language is much likelier. Raises
        UserError if a language that is not in `among` is much likelier; with `usual`, such languages are ignored. A
        single language of `among` that py3langid does not know is chosen instead.
        """
        probabilities = self._rank(text)
        known = [code for code in among if code in self._labels]
        unknown = [code for code in among if code not in self._labels]
        if not probabilities:
            return Detected(usual if usual and any(map(str.isalpha, text)) else UNDETERMINED, 0.0)
        if not known and len(unknown) == 1:
            return Detected(unknown[0], 0.0)
        if not known:
            names = ", ".join(map(language_name, unknown))
            raise UserError(f"This server can't tell {names} apart.", "Choose the source language.")
        by_code = {code: probabilities.get(self._labels[code], 0.0) for code in known}
        code = max(by_code, key=lambda code: by_code[code])
        if usual in by_code and not _much_likelier(by_code[code], by_code[usual]):
            code = usual
        offered = {self._labels[each] for each in known}
        other, value = next(
            (each for each in probabilities.items() if each[0] not in offered), ("", 0.0)
        )
        if other and other == self._labels.get(kept) and _much_likelier(value, by_code[code]):
            return Detected(kept, round(100 * value, 1))
        if not usual and _much_likelier(value, by_code[code]):
            if len(unknown) == 1:
                return Detected(unknown[0], 0.0)
            raise UserError(
                f"The text looks like {language_name(other)} ({100 * value:.0f} %), but "
                f"this server translates {', '.join(map(language_name, among))}.",
                "If this is wrong, choose the source language.",
            )
        total = sum(probabilities.get(label, 0.0) for label in offered) + value
        return Detected(code, round(100 * by_code[code] / (total or 1.0), 1))

    def _rank(self, text: str) -> dict[str, float]:
        """The probability of each language that py3langid knows, likeliest first; empty if only codes have letters."""
        text = CODES.sub("", text[:DETECTION_CHARACTERS])
        if not any(map(str.isalpha, text)):
            return {}
        return {label: float(value) for label, value in self._identifier.rank(text)}


def _much_likelier(one: float, other: float) -> bool:
    return one >= MIN_LIKELIEST and one >= MIN_RATIO * other
