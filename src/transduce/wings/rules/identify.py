"""Language identification with py3langid."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import UserError

SAMPLE_CHARACTERS = 200  # only the first characters of a text are classified


class Identifier:
    """Identifies about 140 languages by naive Bayes over byte sequences; a few words are usually enough."""

    def __init__(self) -> None:
        """Raises UserError if py3langid is not installed."""
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError:
            raise UserError(
                "The rules 'swapped', 'source-language' and 'target-language' need the package py3langid. Install it "
                "with pip install 'transduce[doctor]', or leave these rules out."
            ) from None
        self._model = LanguageIdentifier.from_model_file(MODEL_FILE)
        self._known = frozenset(self._model.labels)

    def label(self, code: str) -> str:
        """The model's label for a language code, such as "pt" for "pt-BR", or "" for an unknown language."""
        plain = code.replace("_", "-").partition("-")[0].lower()
        return plain if plain in self._known else ""

    def likeliest(self, texts: Sequence[str]) -> list[str]:
        """The label of the likeliest language of each text."""
        return [self._model.classify(text[:SAMPLE_CHARACTERS])[0] for text in texts]

    def gaps(self, texts: Sequence[str], label: str) -> NDArray[np.float64]:
        """For each text, the log-probability of the likeliest language minus that of the language `label`."""
        gaps = np.zeros(len(texts))
        for place, text in enumerate(texts):
            best, score = self._model.classify(text[:SAMPLE_CHARACTERS])
            if best != label:
                gaps[place] = score - dict(self._model.rank(text[:SAMPLE_CHARACTERS])).get(label, -np.inf)
        return gaps


@cache
def identifier() -> Identifier:
    """The identifier, loaded once per process, since loading takes 100 MB of memory and half a second."""
    return Identifier()
