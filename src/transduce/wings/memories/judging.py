"""Holds back corrections that may be garbage, by what the model finds likely, and by lengths.

Each correction is scored by forced decoding, with its source and with other sources: a translation is more likely with
its own source. The weights of the evidence come from a logistic regression (benchmarks/garbage.py).
"""

import re
from collections.abc import Sequence
from math import log
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.decoding.translator import Translator
from transduce.inline.blocks import spaced
from transduce.inline.placeholder_tokens import with_shared_tokens, with_tokens
from transduce.inline.placeholders import mask
from transduce.model_folder import CONFIG, DATA, read_config
from transduce.preparation.prepared import VALID_FILE, prepared_corpora, read_general, read_valid
from transduce.system.errors import UserError
from transduce.text.identify import identifier
from transduce.text.pairs import Pair
from transduce.tokens.normalization import composed
from transduce.wings.memories.similarity import tokens

Floats = NDArray[np.float64]

MAX_KNOWN_PAIRS = 120
MIN_KNOWN_PAIRS = 30
OTHER_SOURCES = 2
LONG_WORDS = 3  # a text with as many words shows its language
WINDOW_TOKENS = 6
FREE_CHARACTERS = 5  # so that short texts may differ in length
END_MARK = re.compile(r"[.!?…:;](?=\s|$)|[。！？]")


class Evidence(NamedTuple):
    """What tells a translation from garbage. Probabilities are natural logarithms."""

    end: float  # probability that the translation ends where it does, at least -8
    gain: float  # of the mean probability of a token, by the source in the place of other texts
    last_gain: float  # the same for the last six tokens
    worst: float  # the lowest mean probability of six tokens in a row
    shorter: float  # logarithm of the share of its usual length, if it is shorter than usual
    longer: float  # the same if it is longer, with the opposite sign
    sentences: float  # ends of sentences that the source lacks, with the opposite sign

    @property
    def score(self) -> float:
        """The logarithm of the odds that it is a good translation."""
        return float(np.dot(self, EVIDENCE_WEIGHTS)) + BIAS

    @property
    def doubt(self) -> str:
        """What differs most from a typical translation."""
        lacks = np.multiply(np.subtract(self, TYPICAL), EVIDENCE_WEIGHTS)
        return DOUBTS[self._fields[lacks.argmin()]]


EVIDENCE_WEIGHTS = Evidence(0.88, 1.29, 0.97, 0.64, 7.1, 6.75, 5.51)
BIAS = 2.85
TYPICAL = Evidence(-0.1, 3.0, 2.6, -5.0, 0.0, 0.0, 0.0)
DOUBTS = {
    "end": "it seems to be incomplete",
    "gain": "it seems to translate another text",
    "last_gain": "its end seems to translate nothing",
    "worst": "the model finds a part of it very unlikely",
    "shorter": "it is much shorter than usual",
    "longer": "it is much longer than usual",
    "sentences": "it has more sentences than the text",
}
DOUBTFUL = 0.5  # a lower score is doubtful, unless one of KNOWN_DOUBTFUL known pairs is lower
KNOWN_DOUBTFUL = 25


def held_out_pairs(folder: Path) -> list[Pair]:
    """The validation pairs of a model, and those of the text that its fine-tunings repeated; [] if they are gone."""
    if not (folder / CONFIG).is_file():
        return []
    places = prepared_corpora(folder / DATA, read_config(folder).data)[:1]
    known = (place for place in places if (place / VALID_FILE).is_file())
    return [pair for place in known for pair in (*read_valid(place), *read_general(place))]


def _with_tokens(text: str) -> str:
    return spaced(with_tokens(mask(text)))


class Judge:
    """Judges corrections of a model's translations in one direction."""

    def __init__(self, translator: Translator, known: Sequence[tuple[str, str]]) -> None:
        """`known` are good translations, such as units of a memory, or held-out pairs of the model."""
        self._translator = translator
        step = max(1, len(known) // MAX_KNOWN_PAIRS)
        self.known = [self.masked(*pair) for pair in known[::step][:MAX_KNOWN_PAIRS]]
        self._usual = median(map(_length, self.known or [("", "")]))
        self._least = DOUBTFUL
        if len(self.known) >= MIN_KNOWN_PAIRS:
            scores = sorted(each.score for each in self.evidence(self.known))
            self._least = min(DOUBTFUL, scores[len(scores) // KNOWN_DOUBTFUL])

    def doubt(self, source: str, correction: str, machine: str) -> str:
        """Why a person should look at a correction first, or "". `machine` is the model's translation."""
        if correction.strip().casefold() == source.strip().casefold():
            return self._doubt_copy(source, machine)
        try:
            [evidence] = self.evidence([(source, correction)])
        except UserError:
            return "it is too long for the model to judge"
        return evidence.doubt if evidence.score < self._least else ""

    def _doubt_copy(self, source: str, machine: str) -> str:
        """A text of few words or of code may rightly stay as it is, as may one that the model copies, too."""
        words = sum(token.isalnum() for token in tokens(source))
        if machine.strip() == source.strip() or words < LONG_WORDS:
            return ""
        own, other = (identifier().label(code) for code in self._translator.require_direction())
        is_foreign = own and other and identifier().among([source], [own, other]) == [own]
        return "it is the text itself" if is_foreign else ""

    def evidence(self, pairs: Sequence[tuple[str, str]]) -> list[Evidence]:
        """The evidence for each pair. Raises UserError if a text is too long."""
        masked = [self.masked(*pair) for pair in pairs]
        sources = [source for source, _ in masked]
        targets = composed([target for _, target in masked])
        rows = self._log_probs(sources, targets)
        others = [
            self._log_probs([self._other(source, place) for source in sources], targets)
            for place in range(OTHER_SOURCES if self.known else 0)
        ]
        return [
            evidence_of(pair, np.array(row), np.array([each[i] for each in others]), self._usual)
            for i, (pair, row) in enumerate(zip(masked, rows, strict=True))
        ]

    def masked(self, source: str, target: str) -> tuple[str, str]:
        """A pair as the model was trained on it, with tokens for placeholders, even for one that a person changed."""
        if not self._translator.tokenizer.has_placeholder_tokens:
            return source, target
        return with_shared_tokens(source, target) or (_with_tokens(source), _with_tokens(target))

    def _other(self, source: str, place: int) -> str:
        """A known source that is another text."""
        begin = sum(map(ord, source)) + place * (len(self.known) // OTHER_SOURCES)
        for step in range(len(self.known)):
            other = self.known[(begin + step) % len(self.known)][0]
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


def evidence_of(pair: tuple[str, str], row: Floats, others: Floats, usual: float) -> Evidence:
    """The evidence from the log-probabilities of the tokens, with the source and with others.

    `usual` is the usual logarithm of the ratio of the lengths.
    """
    gain = TYPICAL.gain
    last_gain = TYPICAL.last_gain
    if len(others):
        # Without the end: it is more likely with any source of the right length.
        gains = (row - np.mean(others, axis=0))[: max(1, len(row) - 1)]
        gain = float(gains.mean())
        last_gain = float(gains[-WINDOW_TOKENS:].mean())
    windows = np.lib.stride_tricks.sliding_window_view(row, min(WINDOW_TOKENS, len(row)))
    longer = _length(pair) - usual
    source, target = (len(END_MARK.findall(text)) for text in pair)
    found = Evidence(
        max(row[-1], -8.0),
        gain,
        last_gain,
        float(windows.mean(axis=1).min()),
        longer,
        -longer,
        max(-3.0, source - target),
    )
    # What is better than typical must not excuse what is bad.
    return Evidence(*map(min, found, TYPICAL))


def _length(pair: tuple[str, str]) -> float:
    """The logarithm of the ratio of the lengths of a target and a source."""
    source, target = (len(text) + FREE_CHARACTERS for text in pair)
    return log(target / source)
