"""One checked property of a machine or a folder."""

from typing import Literal, NamedTuple


class Fact(NamedTuple):
    """A checked property, its state, and the command or advice that improves it, if any."""

    what: str
    state: Literal["good", "lacking", "damaged"]
    says: str
    mend: str = ""
