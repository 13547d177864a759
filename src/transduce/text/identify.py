"""Whether texts are in the language that they should be in, by py3langid."""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from transduce.system.errors import UserError

SAMPLE = 200  # characters of a text that are looked at


class Identifier:
    """Naive Bayes over byte sequences, of about 140 languages: right even for most sentences of a few words."""

    def __init__(self) -> None:
        """Raises UserError where py3langid is not installed."""
        try:
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        except ImportError:
            raise UserError(
                "Telling languages apart needs a package: pip install 'transduce[doctor]'; or leave its rules out: "
                "swapped, source-language, target-language."
            ) from None
        self._model = LanguageIdentifier.from_model_file(MODEL_FILE)
        self._known = frozenset(self._model.labels)

    def label(self, code: str) -> str:
        """What the model calls a language given by a code such as "pt-BR"; "" for one that it doesn't know."""
        plain = code.replace("_", "-").partition("-")[0].lower()
        return plain if plain in self._known else ""

    def likeliest(self, texts: Sequence[str]) -> list[str]:
        """The label of the likeliest language of each text."""
        return [self._model.classify(text[:SAMPLE])[0] for text in texts]

    def behind(self, texts: Sequence[str], label: str) -> NDArray[np.float64]:
        """How many nats the language is behind the likeliest one, for each text: 0 where it is that, inf if unknown."""
        found = np.zeros(len(texts))
        for place, text in enumerate(texts):
            best, score = self._model.classify(text[:SAMPLE])
            if best != label:
                found[place] = score - dict(self._model.rank(text[:SAMPLE])).get(label, -np.inf)
        return found


@cache
def identifier() -> Identifier:
    """One for the process: it takes 100 MB, and half a second to read."""
    return Identifier()
