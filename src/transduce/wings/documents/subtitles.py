"""Reads SubRip (.srt) and WebVTT (.vtt) subtitles. The text of a cue has one line per speaker."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple
from unicodedata import bidirectional

from transduce.text.formats import DocumentFile
from transduce.wings.documents.document import Document, Slot, decode

LINE_END_OR_EOF = r"(?:\r\n|\n|\r|\Z)"
LINES_WITHOUT_BLANK = re.compile(rf"(?:[^\r\n]++{LINE_END_OR_EOF})++")
TIMING = re.compile(  # a timing line, with the cue's number before it
    rf"(?<![^\r\n])(?:\d++[ \t]*+{LINE_END_OR_EOF})?[ \t\ufeff]*+\d[\d:.,]*+[^\S\r\n]*+-->[^\r\n]*+{LINE_END_OR_EOF}"
)
LINE_END = re.compile(r"\r\n|\n|\r")
SHOWN_LINE_END = re.compile(
    rf"\\N(?:{LINE_END.pattern})?|{LINE_END.pattern}"
)  # many programs write \N
TIME = re.compile(r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2}(?:[.,]\d{1,9})?)")
HIDDEN = r"<[^<>]*+>|\{\\[^{}]*+\}"  # tags, and styles such as {\an8}
INVISIBLE = "\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"  # around a line
SPEAKER = re.compile(rf"(?:[\s{INVISIBLE}]|{HIDDEN})*+[-‐-―－♪]")
# Signs that may not begin a line.
NEVER_FIRST = "、。，．・：；？！…ー」』）］｝】》〉”’ぁぃぅぇぉっゃゅょァィゥェォッャュョ"
NEVER_LAST = "「『（［｛【《〈“‘"  # signs that may not end a line
BREAKABLE = f"\u3000-\u30ff\u3400-\u9fff\uff00-\uff60{NEVER_LAST}{NEVER_FIRST}"  # a line may end between two of these
NO_WORD = "(?:(?<![\u30a1-\u30ff])|(?![\u30a1-\u30ff]))"  # not within a word in katakana
HIDDEN_OR_BREAK = re.compile(
    rf"{HIDDEN}|(?<=\S) (?=\S)|(?<=[{BREAKABLE}])(?<![{NEVER_LAST}])(?=[{BREAKABLE}])(?![{NEVER_FIRST}]){NO_WORD}"
)
PAUSES = "、。，：；？！…"  # lines end after these signs or at blanks, if a text has enough of both


class _Break(NamedTuple):
    """A place where a line may end."""

    end: int  # where the line ends
    next_begin: int  # where the next line begins
    column: int  # number of shown characters before this place


class Cue(NamedTuple):
    """A subtitle text and the time during which it is shown."""

    begin: float  # seconds
    end: float
    slot: Slot


def read_subtitles(file: DocumentFile) -> Document:
    """The texts of the subtitles, without numbers, times, notes and styles."""
    text, codec = decode(file.content, file.name)
    return Document(file.name, text, codec, tuple(cue.slot for cue in cues(text)))


def read_cues(content: bytes, name: str) -> list[Cue]:
    """The cues of a file, sorted by start time."""
    return sorted(cues(decode(content, name)[0]), key=lambda cue: cue.begin)


def cues(text: str, timing: re.Pattern[str] = TIMING, time_separator: str = "-->") -> Iterator[Cue]:
    """The cues of a text, whose lines with times match a pattern."""
    line = 1
    counted = 0  # line: the line number of the character at index `counted`
    times: tuple[float, float] | None = None  # times of the last cue
    is_webvtt = text.startswith(("WEBVTT", "\ufeffWEBVTT"))
    for block in LINES_WITHOUT_BLANK.finditer(text):
        # A block has several timings if the blank line between two cues is missing.
        timings = list(timing.finditer(text, *block.span()))
        if timings and len(LINE_END.findall(text, block.start(), timings[0].start())) > 1:
            continue  # a note or a style
        ends = [*(each.start() for each in timings[1:]), block.end()]
        spoken = [
            (each.end(), end, _times(each.group(), time_separator))
            for each, end in zip(timings, ends, strict=False)
        ]
        if times and not (timings or is_webvtt or block.group().strip().isdigit()):
            # SubRip has no notes, so this block is more text of the last cue.
            spoken = [(*block.span(), times)]
        for begin, end, times in spoken:
            raw = text[begin:end]
            if shown := raw.strip():
                begin += len(raw) - len(raw.lstrip())
                line = line + len(LINE_END.findall(text, counted, begin))
                counted = begin
                yield Cue(*times, cue_slot(shown, line, begin))


def _times(timing: str, separator: str) -> tuple[float, float]:
    first, _, last = timing.partition(separator)
    return seconds(first), seconds(last)


def seconds(time: str) -> float:
    """The seconds of a time such as 00:01:02.500; 0 for other texts."""
    match = TIME.search(time)
    if match is None:
        return 0.0
    hours, minutes, seconds = (float((part or "0").replace(",", ".")) for part in match.groups())
    return 3600 * hours + 60 * minutes + seconds


def is_right_to_left(text: str) -> bool:
    return any(bidirectional(each) in ("R", "AL") and each not in INVISIBLE for each in text)


def cue_slot(
    raw: str,
    line: int,
    begin: int,
    breaks: re.Pattern[str] = SHOWN_LINE_END,
    line_break: str = "\n",
) -> Slot:
    """The slot of a cue's text, whose lines end at `breaks`; `line_break` ends the lines if there is none."""
    speakers: list[list[str]] = []  # the lines of each speaker
    # Invisible characters around each line, such as marks of direction.
    edges: list[tuple[str, str]] = []
    for whole in map(str.strip, breaks.split(raw)):
        spoken = whole.strip(INVISIBLE)
        first = len(whole) - len(whole.lstrip(INVISIBLE))
        edges.append((whole[:first], whole[first + len(spoken) :]))
        if not speakers or SPEAKER.match(spoken):
            speakers.append([])
        speakers[-1].append(spoken.strip())
    text = "\n".join(" ".join(lines) for lines in speakers)
    line_end = breaks.search(raw)
    heights = [len(lines) for lines in speakers]

    def write(translation: str) -> str:
        wrapped = _wrapped(translation, heights)
        around = (
            edges if len(edges) == len(wrapped) else [(edges[0][0], edges[-1][1])] * len(wrapped)
        )
        if is_right_to_left(raw) != is_right_to_left(translation):
            around = [("", "")] * len(wrapped)
        marked = (
            f"{before}{part}{after}" for (before, after), part in zip(around, wrapped, strict=True)
        )
        return (line_end.group() if line_end else line_break).join(marked)

    return Slot(text, text, line, begin, begin + len(raw), write)


def _wrapped(translation: str, heights: list[int]) -> list[str]:
    """The lines of a cue's translation, with as many lines for each speaker as in the source if possible."""
    # A line with an arrow may be read as the time of a cue.
    text = re.sub("--+>", "->", translation)
    # A blank line would end the cue.
    spoken = [line for line in text.split("\n") if line.strip()]
    if len(spoken) != len(heights):
        heights = [1] * len(spoken)
    lines = list[str]()
    for line, height in zip(spoken, heights, strict=True):
        lines += _wrap(line, height)
    return lines


def _wrap(text: str, height: int) -> list[str]:
    """Wrap a text into at most `height` lines of about the same length."""
    breaks = _breaks(text, height)
    width = len(re.sub(HIDDEN, "", text))
    lines = list[str]()
    begin = 0
    first = 0  # index of the first break after `begin`
    column = 0
    for remaining in range(height, 1, -1):
        best = column + (width - column) / remaining
        near = bisect_left(breaks, best, first, key=attrgetter("column"))
        if first == len(breaks):
            break
        cut = min(
            range(max(first, near - 1), min(near + 1, len(breaks))),
            key=lambda i: abs(breaks[i].column - best),
        )
        end, next_begin, column = breaks[cut]
        lines.append(text[begin:end])
        begin = next_begin
        first = cut + 1
        column += next_begin - end
    return [*lines, text[begin:]]


def _breaks(text: str, height: int) -> list[_Break]:
    """The places where a line may end: at blanks and after pauses, or anywhere if there are too few of these."""
    breaks = list[_Break]()
    hidden = 0  # number of hidden characters so far
    for match in HIDDEN_OR_BREAK.finditer(text):
        if match.group() in ("", " "):
            breaks.append(_Break(*match.span(), match.start() - hidden))
        else:
            hidden += len(match.group())
    natural = [each for each in breaks if text[each.end] == " " or text[each.end - 1] in PAUSES]
    return natural if len(natural) >= height - 1 else breaks
