"""`transduce memory`."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from xml.sax.saxutils import escape, quoteattr

from transduce.commands.recipes import Files
from transduce.system.console import count, log, print_table
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.text.plain import STANDARD_OUTPUT, write_lines

if TYPE_CHECKING:
    from transduce.wings.memories.database import Database, State, Unit

Action = Literal["info", "review", "export", "delete"]
EVERY = "all"
NOT_IN_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def memory(
    action: Action,
    database: Path,
    /,
    *,
    accept: Files = (),
    reject: Files = (),
    output: Path = STANDARD_OUTPUT,
    owner: str = "",
) -> None:
    """Show, review, export or delete what a translation memory holds.

    `info` counts the units of each direction and owner. `review` lists the corrections that wait for a person, or
    decides on them. `export` writes the accepted units as TMX. `delete` deletes all units of an owner.

    Args:
        action: info, review, export or delete.
        database: The memory's database, such as memory.tmx.sqlite.
        accept: With review, numbers of corrections to accept, or all.
        reject: With review, numbers of corrections to reject, or all.
        output: With export, the TMX file to write; - is standard output.
        owner: With review and export, only the units of this owner of a key; with delete, whose units to delete.
    """
    from transduce.wings.memories.database import Database

    if not database.is_file():
        raise UserError(
            f"{database} is missing.", "`transduce serve MODEL --memory FILE` makes FILE.sqlite."
        )
    if action != "review" and (accept or reject):
        raise UserError("--accept and --reject can only be used with review.")
    if action == "delete" and not owner:
        raise UserError(
            "delete needs --owner NAME.", f"`transduce memory info {database}` lists the owners."
        )
    opened = Database(database)
    if action == "delete":
        log(f"{count(opened.delete(owner), 'unit')} of {owner} deleted from {database}.")
    elif action == "export":
        write_lines(output, _tmx(_of(opened, "accepted", owner)), keep=True)
    elif accept or reject:
        _decide(opened, accept, reject, owner)
    elif action == "review":
        _list(opened, owner)
    else:
        _count(opened)


def _of(memory: "Database", state: "State", owner: str) -> "Iterator[tuple[str, str, Unit]]":
    """The units of an owner, or of all, with their directions and owners."""
    return (each for each in memory.units(state) if owner in ("", each[1]))


def _decide(memory: "Database", accept: Sequence[str], reject: Sequence[str], owner: str) -> None:
    """Accept and reject corrections. Raises UserError, before any decision, for a number that does not wait."""
    waiting = {str(unit.number): unit for *_, unit in _of(memory, "waiting", owner)}
    decisions: dict[str, State] = {}
    wanted: list[tuple[State, Sequence[str]]] = [("accepted", accept), ("rejected", reject)]
    for state, numbers in wanted:
        if EVERY in numbers:
            decisions = dict.fromkeys(waiting, state) | decisions
        decisions |= dict.fromkeys((each for each in numbers if each != EVERY), state)
    for number in decisions:
        if number not in waiting:
            raise UserError(
                f"No correction {number} waits in {memory.path}.",
                f"`transduce memory review {memory.path}` lists those that wait.",
            )
    for number, state in decisions.items():
        memory.decide(waiting[number].id, state)
    states = [*decisions.values()]
    accepted = states.count("accepted")
    log(f"{count(accepted, 'correction')} accepted, {len(states) - accepted:,} rejected.")


def _list(memory: "Database", owner: str) -> None:
    """Print the corrections that wait, with the reasons."""
    waiting = [*_of(memory, "waiting", owner)]
    for direction, its_owner, unit in waiting:
        print(f"{unit.number}  {direction}  {its_owner or 'without a key'}  {unit.reason}")
        for name, text in (
            ("text", unit.source),
            ("machine", unit.machine),
            ("correction", unit.target),
        ):
            print(f"    {name:10}  {text}")
    log(f"{count(len(waiting), 'correction')} waiting.")
    if waiting:
        log(f"Decide by `transduce memory review {memory.path} --accept NUMBERS --reject NUMBERS`.")


def _count(memory: "Database") -> None:
    rows = [(*key, f"{number:,}") for *key, number in memory.counts()]
    print_table([("direction", "owner", "state", "units"), *rows])


def _tmx(units: "Iterable[tuple[str, str, Unit]]") -> Iterator[str]:
    """The lines of a TMX file."""
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield '<tmx version="1.4">'
    yield (
        f'<header creationtool="transduce" creationtoolversion="{version("transduce")}" segtype="sentence" '
        'o-tmf="transduce" adminlang="en" srclang="*all*" datatype="plaintext"/>'
    )
    yield "<body>"
    for direction, owner, unit in units:
        made = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(unit.created))
        by = f" creationid={quoteattr(owner)}" if owner else ""
        yield f'<tu creationdate="{made}"{by}>'
        if unit.origin:
            yield f'<prop type="origin">{_escaped(unit.origin)}</prop>'
        for code, text in zip(Direction.parse(direction), unit[:2], strict=True):
            code = code.replace("_", "-")
            yield f'<tuv xml:lang="{code}"><seg>{_escaped(text)}</seg></tuv>'
        yield "</tu>"
    yield "</body>"
    yield "</tmx>"


def _escaped(text: str) -> str:
    """A text in XML, without the control characters that XML can't hold."""
    return NOT_IN_XML.sub("", escape(text))
