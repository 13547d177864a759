"""Trains a new version of a model on corrections, and uses it if it is better.

A fifth of the corrections is never trained on. A version is used if it translates these better, by Koehn's paired
bootstrap test (2004), and general text, the model's own validation pairs, not worse.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from transduce.commands.python_train import train
from transduce.decoding.directions import directions_of
from transduce.decoding.loading import load
from transduce.evaluation.scores import MIN_TESTED_SENTENCES, Comparison, compare
from transduce.model_folder import DATA, read_config
from transduce.preparation.prepared import VALID_FILE, read_valid
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.system.files import write_text
from transduce.text.languages import Direction
from transduce.text.pairs import Pair, spread
from transduce.wings.learning.corrections import MIN_NEW, Correction, corrections_of
from transduce.wings.learning.versions import Versions
from transduce.wings.memories.database import Database

GENERAL_TESTED = 300  # pairs
SIGNIFICANT = 0.05
# The test decides, not an early validation; validations would take more time than the updates.
BRIEF = {"train.patience": 0, "train.validate_every": 1_000_000, "train.average": 1}
NEXT = "next"  # the folder of a version that is being made


class Verdict(NamedTuple):
    """A comparison of two versions on corrections and on general text."""

    corrections: Comparison
    general: Comparison | None  # None if the model has no text of its own

    @property
    def refusal(self) -> str:
        """Why the new version is not used, or ""."""
        own = self.corrections
        if own.second.value <= own.first.value or not own.p_value < SIGNIFICANT:
            return "it does not translate corrections that it has not seen significantly better"
        other = self.general
        is_worse = other is not None and other.second.value < other.first.value
        if other and is_worse and not other.p_value >= SIGNIFICANT:  # nan: too few pairs
            return "it translates general text significantly worse"
        return ""

    def figures(self) -> dict[str, Any]:
        """The scores before and after, for the trail."""
        both = {"corrections": self.corrections, "general": self.general}
        return {
            f"{name} scores": [
                round(each.first.value, 2),
                round(each.second.value, 2),
                round(each.p_value, 4),
            ]
            for name, each in both.items()
            if each
        }


def learn(
    model: Path,
    memory: Path,
    *,
    options: Mapping[str, Any] = MappingProxyType({}),
    remember: Sequence[str] = (),
    owner: str = "",
) -> bool:
    """Train a new version of the model at a path on the corrections of a memory, and return whether it is used now.

    `options` are options of the training, such as train.minutes. `remember` is text to repeat, for a model without a
    corpus of its own. Raises UserError if there are too few new corrections.
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
        tested = [each for each in corrections if each.is_tested]
        new = [each for each in corrections if each.is_new(known)]
        if len(new) < MIN_NEW or len(tested) < MIN_TESTED_SENTENCES:
            raise UserError(
                f"{memory} has {count(len(new), 'correction')} that {model} has not learnt, and {len(tested):,} "
                f"to test a new version; at least {MIN_NEW} and {MIN_TESTED_SENTENCES} are needed."
            )
        made = versions.folder / NEXT
        shutil.rmtree(made, ignore_errors=True)
        _train(made, before, new, directions, options, remember)
        verdict = _compare(before, made, [each.pair for each in tested])
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
    given = {"data.corpora": corpora, **BRIEF, **more, **options}
    train(made, init=before, remember=[*remember], options=given)
    shutil.rmtree(folder)


def _compare(before: Path, after: Path, tested: Sequence[Pair]) -> Verdict:
    data = before / DATA
    general = spread(read_valid(data), GENERAL_TESTED) if (data / VALID_FILE).is_file() else []
    outputs = []
    for folder in (before, after):
        translator = load(folder)
        pairs = [*tested, *general]
        if not translator.has_tags:
            pairs = [pair._replace(direction="") for pair in pairs]
        outputs.append([each.text for each in translator.translate_pairs(pairs)])
    size = len(tested)
    found = []
    for its, part in ((tested, slice(size)), (general, slice(size, None))):
        if its:
            first, second = (texts[part] for texts in outputs)
            targets = [pair.target for pair in its]
            found.append(compare(first, second, targets, ter=False)[1])
    return Verdict(found[0], found[1] if len(found) > 1 else None)


def _report(verdict: Verdict, tested: int) -> None:
    for what, its in (
        (f"{count(tested, 'correction')} kept for the test", verdict.corrections),
        ("general text", verdict.general),
    ):
        if its:
            log(
                f"{its.name} on {what}: {its.first.value:.1f} → {its.second.value:.1f} (p = {its.p_value:.3f})"
            )
