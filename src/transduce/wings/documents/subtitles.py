"""Subtitles: SubRip (.srt) and WebVTT (.vtt). The lines of a cue are one text, unless a dash begins each speaker's."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from transduce.wings.documents.document import Document, Slot, decode

END = r"(?:\r\n|\n|\r|\Z)"  # of a line
BLOCK = re.compile(rf"(?:[^\r\n]++{END})++")  # lines without a blank one between them
TIMING = re.compile(  # with the number before it
    rf"(?<![^\r\n])(?:\d++[ \t]*+{END})?[ \t\ufeff]*+\d[\d:.,]*+[ \t]*+-->[^\r\n]*+{END}"
)
LINE_END = re.compile(r"\r\n|\n|\r")
TIME = re.compile(r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2}(?:[.,]\d{1,9})?)")
SPEAKER = re.compile(r"\s*[-–—]")


class Cue(NamedTuple):
    """A text and when it is shown."""

    begin: float  # seconds
    end: float
    slot: Slot


def read_subtitles(content: bytes, name: str) -> Document:
    """The texts of the cues; numbers, times, notes and styles stay as they are."""
    text, codec = decode(content, name)
    return Document(name, text, codec, tuple(cue.slot for cue in _cues(text)))


def read_cues(content: bytes, name: str) -> list[Cue]:
    """The same with their times, in the order in which they are shown."""
    return sorted(_cues(decode(content, name)[0]), key=lambda cue: cue.begin)


def _cues(text: str) -> Iterator[Cue]:
    line, at = 1, 0
    for block in BLOCK.finditer(text):
        timings = list(TIMING.finditer(text, *block.span()))  # several where blank lines have been lost
        if timings and len(LINE_END.findall(text, block.start(), timings[0].start())) > 1:
            continue  # a note or a style
        ends = [*(timing.start() for timing in timings[1:]), block.end()]
        for timing, end in zip(timings, ends, strict=False):
            raw = text[timing.end() : end]
            if shown := raw.strip():
                begin = timing.end() + len(raw) - len(raw.lstrip())
                line, at = line + len(LINE_END.findall(text, at, begin)), begin
                first, _, last = timing.group().partition("-->")
                yield Cue(_seconds(first), _seconds(last), _slot(shown, line, begin))


def _seconds(time: str) -> float:
    found = TIME.search(time)
    hours, minutes, seconds = (
        (float((each or "0").replace(",", ".")) for each in found.groups()) if found else (0, 0, 0)
    )
    return 3600 * hours + 60 * minutes + seconds


def _slot(raw: str, line: int, begin: int) -> Slot:
    paragraphs: list[list[str]] = []
    for each in LINE_END.split(raw):
        if paragraphs and not SPEAKER.match(each):
            paragraphs[-1].append(each.strip())
        else:
            paragraphs.append([each.strip()])
    text = "\n".join(" ".join(lines) for lines in paragraphs)
    found = LINE_END.search(raw)
    heights = [len(lines) for lines in paragraphs]

    def write(translation: str) -> str:
        lines = [line for line in translation.split("\n") if line.strip()]  # a blank one would end the cue
        as_high = heights if len(lines) == len(heights) else [1] * len(lines)
        wrapped = [part for each, height in zip(lines, as_high, strict=True) for part in _wrap(each, height)]
        return (found.group() if found else "\n").join(wrapped)

    return Slot(text, text, line, begin, begin + len(raw), write)


def _wrap(text: str, height: int) -> list[str]:
    """The text in at most `height` lines of about the same length."""
    lines, rest = list[str](), text
    for left in range(height, 1, -1):
        wanted = len(rest) / left
        cuts = [found.start() for found in re.finditer(r"(?<=\S) (?=\S)", rest)]
        if not cuts:
            break
        at = min(cuts, key=lambda cut: abs(cut - wanted))
        lines.append(rest[:at])
        rest = rest[at + 1 :]
    return [*lines, rest]
