"""The corrections of a translation memory that a model can learn."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from transduce.decoding.directions import directions_of
from transduce.model_folder import read_config
from transduce.text.languages import Direction
from transduce.text.pairs import Origin, Pair
from transduce.wings.learning.versions import Versions
from transduce.wings.memories.database import Database, Unit
from transduce.wings.memories.similarity import form, number_of

HELD_BACK = 5  # one correction of so many is for the test
MIN_NEW = 100


class Correction(NamedTuple):
    """A correction that a model can learn."""

    direction: Direction
    unit: Unit

    @property
    def is_tested(self) -> bool:
        """Whether the correction is for the test: always the same ones, and all of a source together."""
        return number_of(form(self.unit.source)) % HELD_BACK == 0

    def is_new(self, known: Collection[int]) -> bool:
        """Whether a model that has learnt the corrections `known` can learn this one."""
        return self.unit.number not in known and not self.is_tested

    @property
    def pair(self) -> Pair:
        """The correction as a pair of texts."""
        source, target, *_ = self.unit
        return Pair(source, target, Origin(self.unit.origin, 0), str(self.direction))


def corrections_of(
    memory: Database, directions: Sequence[Direction], owner: str = ""
) -> list[Correction]:
    """The accepted corrections of an owner, or of all."""
    by_name = {str(each): each for each in directions}
    return [
        Correction(by_name[name], unit)
        for name, its_owner, unit in memory.units()
        if name in by_name and unit.is_correction and owner in ("", its_owner)
    ]


def new_corrections(model: Path, memory: Database) -> int:
    """The number of accepted corrections that the model at a path can learn and has not learnt."""
    versions = Versions(model)
    known = versions.learnt(versions.current)
    corrections = corrections_of(memory, directions_of(read_config(versions.model).data))
    return sum(each.is_new(known) for each in corrections)
