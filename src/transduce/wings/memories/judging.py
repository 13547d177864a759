"""Holds back corrections that may be garbage: what the model finds far less likely than translations known to be good.

Each correction is scored by forced decoding. Its figures are compared with the lowest of known translations, so that a
model that knows little of a domain does not hold back everything in it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from transduce.decoding.translator import Translator
from transduce.system.errors import UserError
from transduce.text.identify import identifier
from transduce.tokens.normalization import composed
from transduce.wings.memories.similarity import tokens

MAX_KNOWN_PAIRS = 120
MIN_KNOWN_PAIRS = 30
OTHER_SOURCES = 2
LONG_WORDS = 3  # a text with as many words shows its language
# Of the lengths of a correction and of the machine's translation.
MAX_RATIO = 3
FREE_CHARACTERS = 20


class Evidence(NamedTuple):
    """How likely a model finds a translation, in natural logarithms."""

    mean: float  # of the probability of a token
    tail: float  # the same for the last third of the tokens
    end: float  # of the probability that the translation ends where it does
    gain: float  # of the mean, by the source in the place of sources of other texts


# Nothing above is held back; without known pairs, everything below.
CLEARLY_GOOD = Evidence(-3.0, -4.0, -1.0, 0.3)
CLEARLY_BAD = Evidence(-6.5, -7.5, -3.0, 0.0)
DOUBTS = (  # in the order of Evidence
    "the model finds it very unlikely",
    "the model finds its end very unlikely",
    "it seems to be incomplete",
    "it seems to translate another text",
)


class Judge:
    """Judges corrections of a model's translations in one direction."""

    def __init__(self, translator: Translator, known: Sequence[tuple[str, str]]) -> None:
        """`known` are good translations, such as units of a memory, or held-out pairs of the model."""
        self._translator = translator
        step = max(1, len(known) // MAX_KNOWN_PAIRS)
        self._known = known[::step][:MAX_KNOWN_PAIRS]
        self._limits = CLEARLY_BAD
        if len(self._known) >= MIN_KNOWN_PAIRS:
            found = self._evidence(self._known)
            # The second lowest: about one of a hundred.
            lowest = (sorted(column)[1] for column in zip(*found, strict=True))
            self._limits = Evidence(*map(min, lowest, CLEARLY_GOOD))

    def doubt(self, source: str, correction: str, machine: str) -> str:
        """Why a person should look at a correction first, or "". `machine` is the model's translation."""
        if correction.strip().casefold() == source.strip().casefold():
            return self._doubt_copy(source, machine)
        longer, shorter = sorted((len(correction), len(machine)), reverse=True)
        if longer > MAX_RATIO * shorter + FREE_CHARACTERS:
            return "its length differs much from that of the translation"
        try:
            [evidence] = self._evidence([(source, correction)])
        except UserError:
            return "it is too long for the model to judge"
        reasons = zip(evidence, self._limits, DOUBTS, strict=True)
        return next((reason for value, limit, reason in reasons if value < limit), "")

    def _doubt_copy(self, source: str, machine: str) -> str:
        """A text of few words or of code may rightly stay as it is, as may one that the model copies, too."""
        words = sum(token.isalnum() for token in tokens(source))
        if machine.strip() == source.strip() or words < LONG_WORDS:
            return ""
        own, other = (identifier().label(code) for code in self._translator.require_direction())
        is_foreign = own and other and identifier().among([source], [own, other]) == [own]
        return "it is the text itself" if is_foreign else ""

    def _evidence(self, pairs: Sequence[tuple[str, str]]) -> list[Evidence]:
        """The evidence for each pair. Raises UserError if a text is too long."""
        targets = composed([target for _, target in pairs])
        sources = [source for source, _ in pairs]
        log_probs = self._log_probs(sources, targets)
        unrelated = [np.full(len(pairs), -np.inf)] * OTHER_SOURCES
        for place in range(OTHER_SOURCES if self._known else 0):
            others = [self._other(source, place) for source in sources]
            unrelated[place] = np.array(
                [np.mean(each) for each in self._log_probs(others, targets)]
            )
        found = []
        for own, other in zip(log_probs, np.mean(unrelated, axis=0), strict=True):
            tail = own[-max(2, len(own) // 3) :]
            mean = float(np.mean(own))
            found.append(Evidence(mean, float(np.mean(tail)), own[-1], mean - float(other)))
        return found

    def _other(self, source: str, place: int) -> str:
        """A known source that is another text."""
        begin = sum(map(ord, source)) + place * (len(self._known) // OTHER_SOURCES)
        for step in range(len(self._known)):
            other = self._known[(begin + step) % len(self._known)][0]
            if other != source:
                return other
        return source

    def _log_probs(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[float]]:
        """The log-probability of each token of each target, and of its end."""
        translator = self._translator
        rows = translator.encode(translator.tokenizer.normalizer(sources))
        wanted = translator.tokenizer.encode_target(targets)
        numbers = range(1, len(rows) + 1)
        translator.check_lengths("Source", rows, numbers)
        translator.check_lengths("Target", wanted, numbers)
        return translator.forced(translator.engine, translator.engine.log_probs, rows, wanted)
