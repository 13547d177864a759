"""Language identification with py3langid."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import islice
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.text.languages import main_language, script_of

SAME_LANGUAGE = {"nb": "no", "fil": "tl"}  # py3langid's labels
# Serial numbers and the like, whose letters belong to no language.
CODES = re.compile(r"\b\w*\d\w*", re.ASCII)
# What most languages share: addresses, paths, names of variables, placeholders and tags.
NO_LANGUAGE = re.compile(r"<[^<>]*>|\{[^{}]*\}|\S*[/\\_@%`=]\S*|\b\w*\d\w*|&#?\w+;")
CLOSE_LANGUAGES = [  # labels that are hard to tell apart
    set(labels.split())
    for labels in (
        "no nb nn da sv fo is",
        "hr bs sr sl",
        "bg mk sr",
        "cs sk",
        "id ms jv ace",
        "gl pt es ca an ext oc",
        "fr oc wa gcf gcr ht",
        "it vec lij la",
        "de lb",
        "nl af fy",
        "en pcm",
        "ru uk be bg",
        "hi ne mr sa gom",
        "fa ps ur sdh ug tg",
        "ar ary arz",
        "zh yue wuu ja",
        "tl bcl",
        "et fi",
        "lv ltg lt",
        "tr az tk crh uz uzs",
        "kk ky tt ba",
        "xh zu nso st sn",
        "el grc",
        "he hbo",
        "gd ga",
    )
]
SAMPLE_CHARACTERS = 200  # only the first characters of a text are classified
# Parameters of `foreign_share`. Of 50 correct texts, at most 8 % have a gap above 0, and 6 % a gap above 8.
MIN_FOREIGN_SHARE, MIN_GAP = 0.3, 8
# Parameters of `share_of_wrong_texts`.
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
    """Whether a code names no script, or a script that is Latin exactly if Babel expects Latin."""
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
    """The share of the non-blank texts that look more like another language of `codes` than like `code`.

    Languages that py3langid does not know are left out. Returns None if py3langid is not installed, does not know
    `code` or any other language, or has no room for its temporary file.
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
    """The share of texts in other languages of `codes` than `code`; 0 unless nearly all texts are.

    Reads at most IDENTIFIED_TEXTS long texts. Returns 0 if there are few, or if nothing can be identified.
    """
    long = list(islice((text for text in texts if len(text) > SHORT_TEXT), IDENTIFIED_TEXTS))
    share = (
        share_in_other_languages(long, code, codes) if len(long) >= MIN_IDENTIFIED_TEXTS else None
    )
    return share if share is not None and share > MAX_OTHER_SHARE else 0.0


def foreign_share(texts: Iterable[str], code: str) -> tuple[float, str]:
    """The share of the texts that are in one other language than `code`, and the label of this language.

    Looks at up to IDENTIFIED_TEXTS long texts, spread over all. Languages that are hard to tell from `code` don't
    count. The share is 0 if it is below MIN_FOREIGN_SHARE, if few texts are long, or if nothing can be identified.
    """
    plain = (NO_LANGUAGE.sub(" ", text).strip() for text in texts)
    long = [text for text in plain if len(text) > SHORT_TEXT]
    try:
        label = identifier().label(code) if len(long) >= MIN_IDENTIFIED_TEXTS else ""
    except (UserError, OSError):  # as in `share_in_other_languages`
        return 0.0, ""
    if not label:
        return 0.0, ""
    long = long[:: -(-len(long) // IDENTIFIED_TEXTS)]
    close = set().union({label}, *(labels for labels in CLOSE_LANGUAGES if label in labels))
    found = zip(identifier().likeliest(long), identifier().gaps(long, label), strict=True)
    counts = Counter(best for best, gap in found if best not in close and gap > MIN_GAP)
    other, number = max(counts.items(), key=itemgetter(1), default=("", 0))
    share = number / len(long)
    return (share, other) if share >= MIN_FOREIGN_SHARE else (0.0, "")


def warn_of_language(what: str, texts: Sequence[str], code: str, others: Collection[str]) -> None:
    """Print a warning if texts are not in the language `code`; `others` are the other languages of the model."""
    share = share_of_wrong_texts(texts, code, {code, *others})
    other = " or ".join(each for each in others if each != code)
    if not share:
        share, other = foreign_share(texts, code)
    if share:
        log(f"Warning: {share:.0%} of {what} look like {other}, not {code}.")


@cache
def identifier() -> Identifier:
    """The language identifier, loaded once per process."""
    return Identifier()
