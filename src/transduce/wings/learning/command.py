"""`transduce learn`, `transduce versions` and `transduce rollback`."""

import sys
import time
from pathlib import Path

from transduce.commands.recipes import Files
from transduce.system.console import count, log, print_table
from transduce.system.errors import UserError
from transduce.wings.learning.versions import Versions

NOT_USED = 1  # exit status if the new version is no better


def learn(
    model: Path,
    /,
    *,
    memory: Path,
    minutes: float | None = None,
    remember: Files = (),
    owner: str = "",
) -> None:
    """Train a new version of a model on corrections, and use it if it is better.

    A fifth of the corrections is kept for a test. The new version replaces the model, also on a server, if it
    translates these significantly better, and the model's own validation text not significantly worse than the first
    version; otherwise, the exit status is 1.

    Args:
        model: A model folder.
        memory: The database of a translation memory with corrections, such as memory.tmx.sqlite.
        minutes: The longest time for the training, by default 15 seconds for each 100 corrections; preparation and
            test take some more.
        remember: Text to repeat, for a model without a corpus of its own: plain text in the source language, or pairs.
        owner: Learn only from the corrections of this owner of a key.
    """
    from transduce.wings.learning.learning import learn as run

    _check_memory(memory)
    options = {} if minutes is None else {"train.minutes": minutes}
    if not run(model, memory, options=options, remember=remember, owner=owner):
        sys.exit(NOT_USED)


def learning_command(model: Path, memory: Path) -> list[str]:
    """The arguments of `transduce` with which a model learns the corrections of a memory."""
    return ["learn", str(model), "--memory", str(memory)]


def versions(model: Path, /, *, memory: Path | None = None) -> None:
    """List the versions of a model that has learnt from corrections.

    Args:
        model: A model folder.
        memory: A database of corrections: also show how many corrections a version has learnt that were deleted there.
    """
    known = Versions(model)
    headings = (
        "version",
        "made",
        "from",
        "corrections",
        "chrF on them",
        "chrF on general text",
        "",
    )
    rows: list[tuple[str, ...]] = [headings]
    if 1 in known.numbers:
        rows.append(("1", "", "", "", "", "", "in use" if known.current == 1 else ""))
    present = _numbers(memory) if memory else None
    for entry in known.trail():
        number = str(entry.get("version", "-"))
        made = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry["time"]))
        scores = [_shown(entry.get(name)) for name in ("corrections scores", "general scores")]
        states = [entry["refused"]] if "refused" in entry else []
        if "version" in entry:
            states += ["in use"] if number == str(known.current) else []
            deleted = known.learnt(entry["version"]) - present if present is not None else ()
            states += [f"has learnt {count(len(deleted), 'deleted correction')}"] if deleted else []
        learnt = f"{len(entry['corrections']):,}"
        rows.append((number, made, str(entry["from"]), learnt, *scores, ", ".join(states)))
    print_table(rows)


def _numbers(memory: Path) -> set[int]:
    """The numbers of the corrections in a database."""
    from transduce.wings.memories.database import Database

    _check_memory(memory)
    return {unit.number for *_, unit in Database(memory).units()}


def _check_memory(memory: Path) -> None:
    if not memory.is_file():
        raise UserError(
            f"{memory} is missing.", "`transduce serve MODEL --memory FILE` makes FILE.sqlite."
        )


def _shown(scores: list[float] | None) -> str:
    return f"{scores[0]:.1f} → {scores[1]:.1f}" if scores else ""


def rollback(model: Path, version: int = 0, /) -> None:
    """Use an earlier version of a model; a server changes to it, too.

    Args:
        model: A model folder.
        version: The version to use; by default, the one that the present version was made from.
    """
    known = Versions(model)
    with known.locked():
        made = {entry.get("version"): entry["from"] for entry in known.trail()}
        version = version or made.get(known.current, 0)
        if not version:
            raise UserError(f"{model} is at its first version.")
        known.path(version)
        known.switch(version)
    log(f"{model} is version {version} now.")
