"""Language identification with py3langid."""

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import UserError
from transduce.text.languages import main_language, script_of

SAME_LANGUAGE = {"nb": "no", "fil": "tl"}  # py3langid's labels
# Serial numbers and the like, whose letters belong to no language.
CODES = re.compile(r"\b\w*\d\w*", re.ASCII)
SAMPLE_CHARACTERS = 200  # only the first characters of a text are classified
# Of `share_of_wrong_texts`.
SHORT_TEXT, MIN_IDENTIFIED_TEXTS, IDENTIFIED_TEXTS, MAX_OTHER_SHARE = (
    20,
    20,
    500,
    0.9,
)


class Identifier:
    """Identifies about 140 languages by naive Bayes over byte sequences."""

    def __init__(self) -> None:
        """Raises UserError if py3langid is not installed."""
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError:
            raise UserError(
                "The rules 'swapped', 'source-language' and 'target-language' need the package py3langid.",
                "Install it with pip install 'transduce[doctor]', or leave these rules out.",
            ) from None
        self._model = LanguageIdentifier.from_model_file(MODEL_FILE)
        self._known = frozenset(self._model.labels)

    def label(self, code: str) -> str:
        """Return py3langid's label for a language code, or "" if the language or its script is unknown."""
        return label_of(code, self._known) if _has_usual_script(code) else ""

    def likeliest(self, texts: Sequence[str]) -> list[str]:
        """The label of each text's likeliest language."""
        return [self._model.classify(text[:SAMPLE_CHARACTERS])[0] for text in texts]

    def among(self, texts: Sequence[str], labels: Collection[str]) -> list[str]:
        """The likeliest of the `labels` of each text."""
        ranked = (self._model.rank(text[:SAMPLE_CHARACTERS]) for text in texts)
        return [next(label for label, _ in ranking if label in labels) for ranking in ranked]

    def gaps(self, texts: Sequence[str], label: str) -> NDArray[np.float64]:
        """The log-probability of each text's likeliest language minus the log-probability of `label`."""
        gaps = np.zeros(len(texts))
        for place, text in enumerate(texts):
            best, score = self._model.classify(text[:SAMPLE_CHARACTERS])
            if best != label:
                gaps[place] = score - dict(self._model.rank(text[:SAMPLE_CHARACTERS])).get(
                    label, -np.inf
                )
        return gaps


def label_of(code: str, known: Collection[str]) -> str:
    """The label among `known` for a language code, such as "pt" for "pt-BR" and "de" for "deu", or ""."""
    plain = main_language(code)
    return next((label for label in (plain, SAME_LANGUAGE.get(plain, "")) if label in known), "")


def _has_usual_script(code: str) -> bool:
    """Whether a code names no script, or Latin letters if Babel expects these, or other letters if it does not."""
    try:
        from babel.core import get_global
    except ImportError:
        return True
    usual = get_global("likely_subtags").get(main_language(code), "")
    script = script_of(code)
    return not (usual and script) or (script == "latn") == ("Latn" in usual)


def share_in_other_languages(
    texts: Sequence[str], code: str, codes: Collection[str]
) -> float | None:
    """The share of the texts, without blank ones, that look more like another language of `codes` than like `code`.

    Languages that py3langid does not know are left out. Returns None if it is not installed, does not know `code` or
    any other language, or has no room for its temporary file.
    """
    try:
        labels = {each: label for each in codes if (label := identifier().label(each))}
    except (UserError, OSError):
        return None
    texts = [text for text in texts if text.strip()]
    if code not in labels or len(labels) < 2 or not texts:
        return None
    return float(
        np.mean([label != labels[code] for label in identifier().among(texts, labels.values())])
    )


def share_of_wrong_texts(texts: Iterable[str], code: str, codes: Collection[str]) -> float:
    """The share of texts in other languages of `codes` than `code` if nearly all are, otherwise 0.

    Reads at most IDENTIFIED_TEXTS long texts. Returns 0 if there are few, or if nothing can be identified.
    """
    long = list(islice((text for text in texts if len(text) > SHORT_TEXT), IDENTIFIED_TEXTS))
    share = (
        share_in_other_languages(long, code, codes) if len(long) >= MIN_IDENTIFIED_TEXTS else None
    )
    return share if share is not None and share > MAX_OTHER_SHARE else 0.0


@cache
def identifier() -> Identifier:
    """The language identifier, loaded once per process."""
    return Identifier()
