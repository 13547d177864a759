"""Trains a new version of a model on corrections, and uses it if it is better.

A fifth of the corrections is never trained on. A version is used if these are more probable than before, by a paired
bootstrap test, and its translations closer to them by chrF; and if it translates general text, the model's own
validation pairs, not worse than the first version by Koehn's paired bootstrap test (2004). Probabilities tell earlier
than the scores of a few dozen translations that a version has learnt something.
"""

import json
import math
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from transduce.commands.python_train import train
from transduce.decoding.directions import directions_of
from transduce.decoding.loading import load
from transduce.decoding.translator import Translator
from transduce.evaluation.scores import MIN_TESTED_SENTENCES, Comparison, compare
from transduce.model_folder import read_config
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.system.files import write_text
from transduce.text.languages import Direction
from transduce.text.pairs import Pair, spread
from transduce.wings.learning.corrections import MIN_NEW, Correction, corrections_of
from transduce.wings.learning.versions import Versions
from transduce.wings.memories.database import Database
from transduce.wings.memories.judging import held_out_pairs

GENERAL_TESTED = 200  # pairs
MAX_TESTED = 400  # corrections; the test takes the newest
SIGNIFICANT = 0.05
RESAMPLES = 1000  # of the bootstrap test
# The test decides, not an early validation. Validations with searches would take more time than the updates, and say
# little for so few corrections.
BRIEF = {
    "train.patience": 0,
    "train.validate_every": 1_000_000,
    "train.average": 1,
    "train.select_by": "perplexity",
    "train.max_forgotten": 0.004,  # of a log-probability: about 1% of perplexity on general text
}
MINUTES_A_CORRECTION = 0.0025  # about five epochs of a small model on two cores
NEXT = "next"  # the folder of a version that is being made


class Verdict(NamedTuple):
    """A comparison of two versions on corrections and on general text."""

    corrections: Comparison
    p_value: float  # of corrections that are not more probable now
    general: Comparison | None  # None if the model has no text of its own

    @property
    def refusal(self) -> str:
        """Why the new version is not used, or ""."""
        own = self.corrections
        if own.second.value <= own.first.value:
            return "it does not translate corrections that it has not seen better"
        if self.p_value >= SIGNIFICANT:
            return "corrections that it has not seen are not significantly more probable"
        other = self.general
        is_worse = other is not None and other.second.value < other.first.value
        if other and is_worse and not other.p_value >= SIGNIFICANT:  # nan: too few pairs
            return "it translates general text significantly worse than the first version"
        return ""

    def figures(self) -> dict[str, Any]:
        """The scores before and after, for the trail."""
        both = {"corrections": self.corrections, "general": self.general}
        scores = {
            f"{name} scores": [
                round(each.first.value, 2),
                round(each.second.value, 2),
                round(each.p_value, 4),
            ]
            for name, each in both.items()
            if each
        }
        return {**scores, "p-value": round(self.p_value, 4)}


def learn(
    model: Path,
    memory: Path,
    *,
    options: Mapping[str, Any] = MappingProxyType({}),
    remember: Sequence[str] = (),
    owner: str = "",
) -> bool:
    """Train a new version of the model at a path on the corrections of a memory, and return whether it is used now.

    `options` are options of the training, such as train.minutes; by default, its time is proportional to the number of
    new corrections. `remember` is text to repeat, for a model without a corpus of its own. Raises UserError if there
    are too few new corrections.
    """
    versions = Versions(model)
    directions = directions_of(read_config(versions.model).data)
    with versions.locked():
        begun = versions.current
        before = versions.path(begun)
        known = versions.learnt(begun)
        corrections = corrections_of(Database(memory), directions, owner)
        gone = known - {each.unit.number for each in corrections}
        if gone:
            log(
                f"Warning: version {begun} has learnt {count(len(gone), 'correction')} that the memory lacks now."
            )
        tested = [each for each in corrections if each.is_tested][-MAX_TESTED:]
        new = [each for each in corrections if each.is_new(known)]
        if len(new) < MIN_NEW or len(tested) < MIN_TESTED_SENTENCES:
            raise UserError(
                f"{memory} has {count(len(new), 'correction')} that {model} has not learnt, and {len(tested):,} "
                f"to test a new version; at least {MIN_NEW} and {MIN_TESTED_SENTENCES} are needed."
            )
        made = versions.folder / NEXT
        shutil.rmtree(made, ignore_errors=True)
        _train(made, before, new, directions, options, remember)
        first = versions.path(1)
        verdict = compare_versions(
            before,
            made,
            [each.pair for each in tested],
            first=first if first.is_dir() else before,  # a user may have deleted it
        )
        entry = {
            "from": begun,
            "memory": str(memory.resolve()),
            "corrections": [each.unit.number for each in new],
            **verdict.figures(),
        }
        _report(verdict, len(tested))
        if verdict.refusal:
            shutil.rmtree(made)
            versions.note("refused", **entry, refused=verdict.refusal)
            log(f"The new version is not used: {verdict.refusal}.")
            return False
        number = max(versions.numbers) + 1
        # Before the version exists, so that none is without a trail.
        versions.note("version", **entry, version=number)
        versions.add(made)
        versions.switch(number)
        log(
            f"{model} is version {number} now. `transduce rollback {model}` goes back to version {begun}."
        )
        return True


def _train(
    made: Path,
    before: Path,
    new: Sequence[Correction],
    directions: Sequence[Direction],
    options: Mapping[str, Any],
    remember: Sequence[str],
) -> None:
    folder = made.with_name(f"{NEXT}-corpora")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    corpora = []
    for direction in dict.fromkeys(each.direction for each in new):
        file = folder / f"{direction}.jsonl"
        texts = (each.unit[:2] for each in new if each.direction == direction)
        records = (json.dumps(dict(zip(direction, its, strict=True))) for its in texts)
        write_text(file, "".join(f"{record}\n" for record in records))
        corpora.append({"files": [str(file)], **direction._asdict()})
    more = {"data.directions": tuple(map(str, directions))} if len(directions) > 1 else {}
    log(f"Learning from {count(len(new), 'correction')}")
    brief = {**BRIEF, "train.minutes": MINUTES_A_CORRECTION * len(new)}
    given = {"data.corpora": corpora, **brief, **more, **options}
    train(made, init=before, remember=[*remember], options=given)
    shutil.rmtree(folder)


def compare_versions(before: Path, after: Path, tested: Sequence[Pair], *, first: Path) -> Verdict:
    """Compare a version with the one before on corrections, and with the first one on that one's own text.

    If each version could lose a little against the one before, many versions would lose much.
    """
    general = spread(held_out_pairs(first), GENERAL_TESTED)
    pairs = [*tested, *general]
    old, probable = _results(before, tested, len(tested))
    old += _results(first, general, 0)[0] if general else []
    new, more_probable = _results(after, pairs, len(tested))
    targets = [pair.target for pair in pairs]
    found = [
        compare(old[part], new[part], targets[part], ter=False)[1]
        for part in (slice(len(tested)), slice(len(tested), None))
        if targets[part]
    ]
    gains = np.subtract(more_probable, probable)
    drawn = np.random.default_rng(1).choice(gains, (RESAMPLES, len(gains)))
    p_value = float(np.mean(drawn.sum(axis=1) <= 0))
    return Verdict(found[0], p_value, found[1] if len(found) > 1 else None)


def _results(folder: Path, pairs: Sequence[Pair], tested: int) -> tuple[list[str], list[float]]:
    """The translations of all pairs, and the log-probabilities of the first ones."""
    # Greedy search tells versions apart as well, and sooner. A version that is refused needs no engine of its own.
    translator = load(folder, {"decode.beam_size": 1}, engine="torch")
    texts = dict[int, str]()
    log_probs = dict.fromkeys(range(tested), 0.0)
    for name in dict.fromkeys(pair.direction for pair in pairs):
        places = [i for i, pair in enumerate(pairs) if pair.direction == name]
        its = translator.direct(Direction.parse(name)) if translator.has_tags else translator
        found = its.translate([pairs[i].source for i in places], sentences=True)
        texts |= {i: each.text for i, each in zip(places, found, strict=True)}
        known = [i for i in places if i < tested and _is_readable(its, pairs[i])]
        scored = its.score([pairs[i].source for i in known], [pairs[i].target for i in known])
        log_probs |= {i: each.log_prob for i, each in zip(known, scored, strict=True)}
    return [texts[i] for i in range(len(pairs))], [log_probs[i] for i in range(tested)]


def _is_readable(translator: Translator, pair: Pair) -> bool:
    """Whether both texts are short enough for forced decoding."""
    rows = translator.encode([pair.source]) + translator.tokenizer.encode_target([pair.target])
    return max(map(len, rows)) <= (translator.max_tokens or math.inf)


def _report(verdict: Verdict, tested: int) -> None:
    for what, its in (
        (f"{count(tested, 'correction')} kept for the test", verdict.corrections),
        ("general text", verdict.general),
    ):
        if its:
            log(
                f"{its.name} on {what}: {its.first.value:.1f} → {its.second.value:.1f} (p = {its.tested()})"
            )
