"""Hand-computed values of transduce/wings/documents/other_subtitles.py."""

from pathlib import Path

import pytest

from transduce.system.errors import UserError
from transduce.text.formats import read_document
from transduce.text.pairs import read_pairs
from transduce.wings.documents.other_subtitles import cues_of

EVENTS = "[Events]\nFormat: {}\nDialogue: {}\n"


def test_the_section_of_events_declares_the_columns() -> None:
    content = EVENTS.format("End, Start, Text", "0:00:02.50,0:00:01.00,One, two")
    [cue] = cues_of(content.encode(), "a.ass")
    assert (cue.begin, cue.end, cue.slot.text) == (1.0, 2.5, "One, two")
    assert not cues_of(EVENTS.format("Start, Text", "broken").encode(), "a.ass")
    with pytest.raises(UserError, match=r"a.ssa is not a file of Aegisub"):
        read_document(b"A dog.\n", "a.ssa", "en", "de")


@pytest.mark.parametrize(
    ("times", "begin", "end"),
    [
        ('begin="1s" end="2.5s"', 1.0, 2.5),
        ('begin="00:01:02.500" dur="1500ms"', 62.5, 64.0),
        ('begin="1m" dur="1h"', 60.0, 3660.0),
        ("", 0.0, 0.0),
        ('begin=".s"', 0.0, 0.0),
    ],
)
def test_times_of_ttml(times: str, begin: float, end: float) -> None:
    [cue] = cues_of(f"<tt><p {times}>a</p></tt>".encode(), "a.ttml")
    assert (cue.begin, cue.end) == (begin, end)


def test_subtitles_of_two_formats_are_a_corpus(tmp_path: Path) -> None:
    files = [tmp_path / "a.ass", tmp_path / "b.sbv"]
    files[0].write_text(EVENTS.format("Start, End, Text", r"0:00:01.00,0:00:02.00,A\Ndog"))
    files[1].write_text("0:00:01.000,0:00:02.000\nEin\nHund\n")
    [pair] = read_pairs(list(map(str, files)), ("en", "de"))
    assert pair[:2] == ("A dog", "Ein Hund")
