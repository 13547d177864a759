"""Reads subtitles of Aegisub (.ass, .ssa), of YouTube (.sbv) and in TTML (.ttml)."""

import re
from collections.abc import Callable, Iterator
from functools import partial
from operator import attrgetter

from transduce.inline.markup import attribute
from transduce.system.errors import UserError
from transduce.text.formats import MARKUP_TEXT, DocumentFile
from transduce.text.plain import suffixes
from transduce.wings.documents.document import Document, LineCounter
from transduce.wings.documents.subtitles import Cue, cue_slot, cues, read_cues, seconds
from transduce.wings.documents.xml import UnitReader, as_content, decode_xml

# A line of an event, up to its text. The section declares the columns, of which the text is the last one.
ASS_LINE = re.compile(r"(?m)^(?P<name>Format|Dialogue):[ \t]*(?P<fields>[^\r\n]*)")
ASS_LINE_BREAK = re.compile(r"\\[Nn]")
# Styles before and behind a text.
ASS_STYLES = r"(?:\s|\{[^{}]*+\})*+"
ASS_TEXT = re.compile(rf"{ASS_STYLES}(?P<text>(?:{ASS_STYLES}\S)*+){ASS_STYLES}\Z")
ASS_DRAWING = re.compile(r"\\p[1-9]")
SBV_TIMING = re.compile(r"(?m)^\ufeff?\d+:\d\d:\d\d\.\d+,\d+:\d\d:\d\d\.\d+[ \t]*(?:\r\n|\n|\r|\Z)")
TTML_LINE_BREAK = re.compile(r"\s*<(?:\w+:)?br\b[^<>]*/>\s*")
TTML_OFFSET = re.compile(r"(\d+(?:\.\d*)?)(h|ms|m|s)")
OFFSET_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def read_other_subtitles(file: DocumentFile) -> Document:
    """The texts of the subtitles, without comments, drawings and the styles around a text."""
    text, codec = decode_xml(file.content, file.name)
    read = READERS_OF_SUBTITLES[suffixes(file.name)[0]]
    slots = tuple(cue.slot for cue in read(text, file.content, file.name))
    return Document(file.name, text, codec, slots)


def cues_of(content: bytes, name: str) -> list[Cue]:
    """The cues of subtitles in any format, sorted by start time."""
    read = READERS_OF_SUBTITLES.get(suffixes(name)[0])
    if read is None:
        return read_cues(content, name)
    return sorted(read(decode_xml(content, name)[0], content, name), key=attrgetter("begin"))


def _read_ass(text: str, _content: bytes, name: str) -> Iterator[Cue]:
    if "[Events]" not in text:
        raise UserError(f"{name} is not a file of Aegisub: it has no section [Events].")
    lines = LineCounter(text)
    columns = list[str]()
    for event in ASS_LINE.finditer(text):
        fields = event["fields"].split(",", len(columns) - 1)
        if event["name"] == "Format":
            columns = list(map(str.strip, event["fields"].split(",")))
        elif len(fields) == len(columns) and not ASS_DRAWING.search(fields[-1]):
            shown = ASS_TEXT.fullmatch(fields[-1])
            if shown and shown["text"]:
                begin = event.end() - len(fields[-1]) + shown.start("text")
                slot = cue_slot(shown["text"], lines.line(begin), begin, ASS_LINE_BREAK, r"\N")
                times = dict(zip(columns, fields, strict=True))
                yield Cue(seconds(times.get("Start", "")), seconds(times.get("End", "")), slot)


def _read_sbv(text: str, _content: bytes, _name: str) -> Iterator[Cue]:
    return cues(text, SBV_TIMING, ",")


def _read_ttml(_text: str, content: bytes, name: str) -> Iterator[Cue]:
    for unit in UnitReader(name, "tt", ("p",), 0).read([content]):
        inner = unit.content.decode()[len(unit.opening) :]
        shown = inner.strip()
        if shown:
            first = unit.begin + len(unit.opening) + inner.index(shown)
            on_one_line = re.sub(r"\s*\n\s*", " ", shown)
            slot = cue_slot(on_one_line, unit.line, first, TTML_LINE_BREAK, "<br/>")
            write = partial(_ttml_content, slot.write)
            begin = _ttml_seconds(unit.opening, "begin")
            end = _ttml_seconds(unit.opening, "end") or begin + _ttml_seconds(unit.opening, "dur")
            slot = slot._replace(end=first + len(shown), write=write, kind=MARKUP_TEXT)
            yield Cue(begin, end, slot)


def _ttml_content(write: Callable[[str], str], translation: str) -> str:
    return as_content(write(translation), "")


def _ttml_seconds(tag: str, name: str) -> float:
    """The seconds of an attribute, without frames; 0 if it is missing."""
    value = attribute(tag, name) or ""
    offset = TTML_OFFSET.fullmatch(value)
    return float(offset[1]) * OFFSET_SECONDS[offset[2]] if offset else seconds(value)


READERS_OF_SUBTITLES = {
    ".ass": _read_ass,
    ".ssa": _read_ass,
    ".sbv": _read_sbv,
    ".ttml": _read_ttml,
}
