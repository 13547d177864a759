"""Reads subtitles of Aegisub (.ass, .ssa), of YouTube (.sbv) and in TTML (.ttml)."""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from transduce.inline.markup import attribute
from transduce.system.errors import UserError
from transduce.text.formats import MARKUP_TEXT, DocumentFile
from transduce.text.plain import suffixes
from transduce.wings.documents.document import Document, decode
from transduce.wings.documents.subtitles import Cue, cue_slot, read_cues, seconds
from transduce.wings.documents.xml import UnitReader, as_content, decode_xml

# A line of an event, up to its text. The section declares the columns, of which the text is the last one.
ASS_LINE = re.compile(r"(?m)^(?P<name>Format|Dialogue):[ \t]*(?P<fields>[^\r\n]*)")
ASS_LINE_BREAK = re.compile(r"\\[Nn]")
# Styles before and behind a text.
ASS_STYLES = r"(?:\s|\{[^{}]*+\})*+"
ASS_TEXT = re.compile(rf"{ASS_STYLES}(?P<text>.*?){ASS_STYLES}\Z")
ASS_DRAWING = re.compile(r"\\p[1-9]")
SBV_CUE = re.compile(
    r"(?m)^\ufeff?(?P<begin>\d+:\d\d:\d\d\.\d+),(?P<end>\d+:\d\d:\d\d\.\d+)[ \t]*\r?\n"
    r"(?P<text>[^\r\n]++(?:\r?\n[^\r\n]++)*+)"
)
TTML_LINE_BREAK = re.compile(r"\s*<(?:\w+:)?br\b[^<>]*/>\s*")
TTML_OFFSET = re.compile(r"([\d.]+)(h|ms|m|s)")
OFFSET_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


class _Subtitles(NamedTuple):
    content: str
    codec: str
    cues: list[Cue]


def read_other_subtitles(file: DocumentFile) -> Document:
    """The texts of the subtitles, without comments, drawings and the styles around a text."""
    content, codec, cues = READERS_OF_SUBTITLES[suffixes(file.name)[0]](file.content, file.name)
    return Document(file.name, content, codec, tuple(cue.slot for cue in cues))


def cues_of(content: bytes, name: str) -> list[Cue]:
    """The cues of subtitles in any format, sorted by start time."""
    read = READERS_OF_SUBTITLES.get(suffixes(name)[0])
    if read is None:
        return read_cues(content, name)
    return sorted(read(content, name).cues, key=lambda cue: cue.begin)


def _read_ass(content: bytes, name: str) -> _Subtitles:
    text, codec = decode(content, name)
    if "[Events]" not in text:
        raise UserError(f"{name} is not a file of Aegisub: it has no section [Events].")
    return _Subtitles(text, codec, list(_ass_cues(text)))


def _ass_cues(content: str) -> Iterator[Cue]:
    columns = list[str]()
    line = 1
    counted = 0
    for event in ASS_LINE.finditer(content):
        if event["name"] == "Format":
            columns = [column.strip() for column in event["fields"].split(",")]
            continue
        *fields, shown = event["fields"].split(",", max(0, len(columns) - 1))
        text = ASS_TEXT.fullmatch(shown)
        if (
            len(fields) < len(columns) - 1
            or not text
            or ASS_DRAWING.search(shown)
            or not text["text"]
        ):
            continue
        begin = event.end() - len(shown) + text.start("text")
        line += content.count("\n", counted, begin)
        counted = begin
        times = dict(zip(columns, fields, strict=False))
        slot = cue_slot(text["text"], line, begin, ASS_LINE_BREAK, r"\N")
        yield Cue(seconds(times.get("Start", "")), seconds(times.get("End", "")), slot)


def _read_sbv(content: bytes, name: str) -> _Subtitles:
    text, codec = decode(content, name)
    cues = list[Cue]()
    line = 1
    counted = 0
    for cue in SBV_CUE.finditer(text):
        begin = cue.start("text")
        line += text.count("\n", counted, begin)
        counted = begin
        if shown := cue["text"].rstrip():
            slot = cue_slot(shown, line, begin)
            cues.append(Cue(seconds(cue["begin"]), seconds(cue["end"]), slot))
    return _Subtitles(text, codec, cues)


def _read_ttml(content: bytes, name: str) -> _Subtitles:
    text, codec = decode_xml(content, name)
    cues = list[Cue]()
    for unit in UnitReader(name, "tt", ("p",), 0, lambda *_: None).read([content]):
        inner = unit.content.decode()[len(unit.opening) :]
        shown = inner.strip()
        if not shown:
            continue
        first = unit.begin + len(unit.opening) + len(inner) - len(inner.lstrip())
        on_one_line = re.sub(r"\s*\n\s*", " ", shown)
        slot = cue_slot(on_one_line, unit.line, first, TTML_LINE_BREAK, "<br/>")
        write = _ttml_writer(slot.write)
        begin = _ttml_seconds(unit.opening, "begin")
        end = _ttml_seconds(unit.opening, "end") or begin + _ttml_seconds(unit.opening, "dur")
        slot = slot._replace(end=first + len(shown), write=write, kind=MARKUP_TEXT)
        cues.append(Cue(begin, end, slot))
    return _Subtitles(text, codec, cues)


def _ttml_writer(write: Callable[[str], str]) -> Callable[[str], str]:
    return lambda translation: as_content(write(translation), "")


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
