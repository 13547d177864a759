"""Something that was looked at."""

from typing import Literal, NamedTuple


class Fact(NamedTuple):
    """What was looked at, how it is, and the line that mends it, if there is one."""

    what: str
    state: Literal["good", "lacking", "damaged"]
    says: str
    mend: str = ""
