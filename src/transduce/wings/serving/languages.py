"""Lists the languages of a server's models, and detects the language of a text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple
from unicodedata import normalize

from transduce.inline.events import unescape
from transduce.inline.markup import pieces
from transduce.system.errors import UserError
from transduce.text.identify import CODES, label_of
from transduce.text.languages import Direction, language_name

DETECTION_CHARACTERS = 10_000  # read from the start of a text, in some milliseconds
DETECTION_MARKUP_CHARACTERS = 1 << 16  # read from the start of a text with markup
# A language is much likelier than another from this probability and ratio on. With these values, none of 4,000
# sentences of Tatoeba (English, German) and Multi30k (Czech, French) is taken for another language, and 98 % of the
# German sentences are not taken for English.
MIN_LIKELIEST, MIN_RATIO = 0.2, 5
# A text clearly is in a language that no model translates, from this ratio and number of words on. With these values, a
# server for one of English, German and French refuses none of 6,000 sentences of Tatoeba in its language, and 91 % of
# the sentences in the other two languages (48 % of those with up to 20 characters).
MIN_FOREIGN_RATIO, MIN_FOREIGN_WORDS = 50, 4
WORDS = re.compile(
    r"[A-Za-z\u00c0-\u02af\u1e00-\u1eff]+|[^\W\d_]"
)  # a letter of another script is a word, too
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

        Languages that the server does not translate are left out, unless they are much likelier than those that it
        translates.
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

    def choose(self, texts: Sequence[str], among: Sequence[str], kept: str = "") -> list[Detected]:
        """Choose the language of each text from the codes `among`, or `kept` if all texts together look like it.

        A text without words is UNDETERMINED. A text gets the language of all texts together unless another language is
        much likelier. A single language of `among` that py3langid does not know is chosen for texts that look like none
        of the others. Raises UserError if each text clearly is in a language that is not in `among`, or if py3langid
        knows none of several languages.
        """
        ranks = list(map(self._rank, texts))
        worded = [i for i, ranked in enumerate(ranks) if ranked]
        own = [i for i in worded if not self._is_foreign(texts[i], ranks[i], among, kept)]
        whole = "\n".join(texts[i] for i in own or worded)
        ranked = self._rank(whole) if len(worded) > 1 else ranks[worded[0]] if worded else {}
        if worded and not own:
            raise self._refusal(ranked, among)
        found = self._choose(whole, ranked, among, kept=kept)
        if len(texts) == 1:
            return [found]
        usual = found.language
        kept = kept if usual == kept else ""
        return [
            self._choose(text, each, among, usual=usual, kept=kept)
            for text, each in zip(texts, ranks, strict=True)
        ]

    def _choose(
        self,
        text: str,
        probabilities: Mapping[str, float],
        among: Sequence[str],
        *,
        usual: str = "",
        kept: str = "",
    ) -> Detected:
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
        other, value = self._likeliest_other(probabilities, among)
        if _much_likelier(value, by_code[code]):
            if other == self._labels.get(kept):
                return Detected(kept, round(100 * value, 1))
            if not usual and len(unknown) == 1:
                return Detected(unknown[0], 0.0)
        offered = {self._labels[each] for each in known}
        total = sum(probabilities.get(label, 0.0) for label in offered) + value
        return Detected(code, round(100 * by_code[code] / total, 1))

    def _is_foreign(
        self, text: str, probabilities: Mapping[str, float], among: Sequence[str], kept: str
    ) -> bool:
        """Whether a text clearly is in a language that is neither in `among` nor `kept`."""
        labels = [self._labels.get(code, "") for code in among]
        other, value = self._likeliest_other(probabilities, among)
        best = max(probabilities.get(label, 0.0) for label in labels)
        return (
            any(labels)
            and labels.count("") != 1
            and other != self._labels.get(kept)
            and len(WORDS.findall(text)) >= MIN_FOREIGN_WORDS
            and value >= MIN_LIKELIEST
            and value >= MIN_FOREIGN_RATIO * best
        )

    def _refusal(self, probabilities: Mapping[str, float], among: Sequence[str]) -> UserError:
        other, value = self._likeliest_other(probabilities, among)
        return UserError(
            f"The text looks like {language_name(other)} ({100 * value:.0f} %), but "
            f"this server translates {', '.join(map(language_name, among))}.",
            "If this is wrong, choose the source language.",
        )

    def _likeliest_other(
        self, probabilities: Mapping[str, float], among: Sequence[str]
    ) -> tuple[str, float]:
        """The likeliest label that belongs to no language of `among`, and its probability."""
        offered = {self._labels.get(code) for code in among}
        return next((each for each in probabilities.items() if each[0] not in offered), ("", 0.0))

    def _rank(self, text: str) -> dict[str, float]:
        """The probability of each language that py3langid knows, likeliest first; empty if only codes have letters."""
        text = normalize("NFC", CODES.sub("", text[:DETECTION_CHARACTERS]))
        if not any(map(str.isalpha, text)):
            return {}
        return {label: float(value) for label, value in self._identifier.rank(text)}


def _much_likelier(one: float, other: float) -> bool:
    return one >= MIN_LIKELIEST and one >= MIN_RATIO * other
