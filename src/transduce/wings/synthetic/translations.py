"""Translations that a journal keeps, so that an interrupted command resumes them."""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

from transduce import model_folder
from transduce.decoding.loading import load
from transduce.decoding.plan import GUESSED, LONG, LOST
from transduce.decoding.translator import CHUNK_LINES, Translator
from transduce.decoding.types import CUT, EMPTY, LOOP, UNTRANSLATED, Translation
from transduce.system.console import log, with_progress
from transduce.system.errors import UserError
from transduce.system.files import digest
from transduce.system.journal import Event, Journal, Value, read_events
from transduce.text import rules
from transduce.text.clean import CUT_OFF, TOO_LONG
from transduce.text.formats import format_of
from transduce.text.languages import Direction
from transduce.text.pairs import Origin, Pair, chunks
from transduce.training.corpus import joined_licences

FAULTS = {  # flag of a translation that is not trained on -> the rule for which it is counted
    CUT: CUT_OFF,
    LOOP: CUT_OFF,
    EMPTY: rules.EMPTY,
    LONG: TOO_LONG,
    UNTRANSLATED: rules.COPIED,
    LOST: rules.PLACEHOLDERS_DIFFER,
    GUESSED: rules.PLACEHOLDERS_DIFFER,
}
Translate = Callable[[Sequence[str]], list[Translation]]


def translate_lines(
    lines: Sequence[str], model: Path, direction: Direction, path: Path, task: str
) -> list[Pair]:
    """The lines with their translations by a model, without faulty translations.

    The journal `path` keeps the translations, so that a repeated call does not translate again. `task` is printed if
    something is left to translate. Raises UserError if the journal is of another model or of other lines.
    """
    call: dict[str, Value] = {
        "weights": digest(model_folder.describe(model).weights),
        "text": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
        "direction": str(direction),
    }

    @cache
    def translator() -> Translator:
        loaded = load(model, source=direction.source, target=direction.target)
        log(f"{task} with {loaded.engine.name}")
        return loaded

    sources = (Pair(line, "", Origin("", 0)) for line in lines)
    events = translated(
        sources, lambda texts: translator().translate(texts), begin(path, call), path, call
    )
    return [
        pair._replace(target=event["text"])
        for pair, event in events
        if event["text"].strip() and not event["bad"]
    ]


def to_jsonl(pairs: Iterable[Pair]) -> str:
    """The text of a JSONL file with these pairs."""
    records = ({"source": pair.source, "target": pair.target} for pair in pairs)
    return "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records)


def translated(
    pairs: Iterator[Pair],
    translate: Translate,
    begun: Iterator[Event],
    path: Path,
    call: Mapping[str, Value],
) -> Iterator[tuple[Pair, Event]]:
    """Yield each pair with the journal event of its translation; reuses the translations of an interrupted call.

    `bad` of an event is the rule by which the translation is left out, or "".
    """
    for pair in pairs:
        event = next(begun, None)
        if event is None:
            pairs = chain((pair,), pairs)
            break
        if event.get("source") != pair.source or event.get("check") != _check(event):
            raise UserError(
                f"{path} is damaged or of another corpus.", "Remove the file to start again."
            )
        yield pair, event
    with Journal(path) as journal:
        if not journal.size:
            journal.write("beginning", **call)
        for pair, translation in with_progress(_translations(pairs, translate), "Lines translated"):
            event = {
                "source": pair.source,
                "text": translation.text,
                "bad": next((FAULTS[flag] for flag in translation.flags if flag in FAULTS), ""),
            }
            journal.write("translation", **event, check=_check(event))
            yield pair, event


def _check(event: Event) -> int:
    """A checksum of a translation's event."""
    return zlib.crc32(json.dumps([event.get(name) for name in ("source", "text", "bad")]).encode())


def _translations(
    pairs: Iterator[Pair], translate: Translate
) -> Iterator[tuple[Pair, Translation]]:
    """Yield each pair with a translation of its source."""
    for chunk in chunks(pairs, CHUNK_LINES):
        yield from zip(chunk, translate([pair.source for pair in chunk]), strict=True)


def begin(path: Path, call: Mapping[str, Value]) -> Iterator[Event]:
    """The translations of an interrupted call; raises UserError if its settings differ from `call`."""
    if not path.exists():
        return iter(())
    events = read_events(path)
    if not call.items() <= next(events, call).items():
        raise UserError(
            f"{path} was made with another model, engine, text or options.",
            "Use the same, or remove it.",
        )
    return events


def licence_of(models: Sequence[Path]) -> str:
    """The licence of a corpus with translations by these models."""
    return joined_licences(model_folder.read_config(folder).data.licence for folder in models)


def check_plain(files: Sequence[str], option: str) -> None:
    """Raise UserError for a file of the option `option` that is not plain text."""
    for file in files:
        form = format_of(file)
        if form.is_bilingual or form.is_document or form.parallel:
            raise UserError(
                f"{file} is not plain text.", "Name a file with one sentence per line.", option
            )
