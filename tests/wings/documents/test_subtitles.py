"""Subtitles by hand: times, speakers, lines, and what surrounds the texts."""

import pytest

from documents import read
from transduce.wings.documents.subtitles import is_right_to_left, read_cues

SRT = """1
00:00:01,500 --> 00:00:03,000
- Hello <i>there</i>.
How are
you?
- Fine.

2
01:02:03.25 --> 01:02:04
One cue

that goes on.

3
00:00:09,000 --> 00:00:10,000

4
00:00:05,000 --> 00:00:06,000
\u200eFirst\u200f
"""


def test_cues_have_times_and_texts_of_speakers():
    cues = read_cues(SRT.encode(), "a.srt")
    assert [(cue.begin, cue.end, cue.slot.text) for cue in cues] == [
        (1.5, 3.0, "- Hello <i>there</i>. How are you?\n- Fine."),
        (5.0, 6.0, "First"),
        (3723.25, 3724.0, "One cue"),
        (3723.25, 3724.0, "that goes on."),
    ]
    assert read("a.srt", SRT).lines == [3, 10, 12, 19]


def test_translations_have_as_many_lines_as_their_speakers():
    document = read("a.srt", SRT)
    texts = [
        "- Hallo <i>dort</i>. Wie geht es dir heute?\n- Gut.",
        "Ein Text",
        "geht --> weiter",
        "Zuerst",
    ]
    filled = document.write(texts).decode()
    assert filled.splitlines()[2:6] == [
        "- Hallo <i>dort</i>.",
        "Wie geht es",
        "dir heute?",
        "- Gut.",
    ]
    assert "geht -> weiter" in filled and "\u200eZuerst\u200f" in filled
    changed = [line for line in filled.splitlines() if line not in SRT.splitlines()]
    assert len(changed) == 7
    other = document.write(["Alles anders.", "a", "b", "שלום"]).decode()
    assert "\nAlles anders.\n\n2" in other, "one line for another number of speakers"
    assert other.splitlines()[-1] == "שלום", "marks of direction stay with their script"
    blank = document.write(["x\n\ny", "a", "b", "c"]).decode()
    assert "x\ny\n\n2" in blank, "a blank line would end the cue"


@pytest.mark.parametrize(
    ("text", "translation", "lines"),
    [
        ("a\nb", "one two three four", ["one two", "three four"]),
        ("a\nb\nc", "one two three four", ["one two", "three", "four"]),
        ("a\nb", "word", ["word"]),
        ("a\nb", "<i>one two</i> {\\an8}three four", ["<i>one two</i>", "{\\an8}three four"]),
        ("a\nb", "这是第一句，这是第二句。", ["这是第一句，", "这是第二句。"]),
        ("a\nb", "日本語の文章です", ["日本語の", "文章です"]),
        ("a", "one two three", ["one two three"]),
    ],
)
def test_lines_have_about_the_same_length(text, translation, lines):
    document = read("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n")
    assert document.write([translation]).decode().splitlines()[2:] == lines


def test_signs_that_begin_or_end_no_line():
    document = read("a.srt", "1\n00:00:01,000 --> 00:00:02,000\na\nb\n")
    for sign in "、。，．・：；？！…ー」』）］｝】》〉”’ぁぃぅぇぉっゃゅょァィゥェォッャュョ":
        first, second = document.write([f"犬犬犬犬{sign}犬犬犬"]).decode().splitlines()[2:]
        assert not second.startswith(sign) and len(first) in (3, 5), sign
    for sign in "「『（［｛【《〈“‘":
        first, second = document.write([f"犬犬犬{sign}犬犬犬犬"]).decode().splitlines()[2:]
        assert not first.endswith(sign) and len(first) in (3, 5), sign
    for sign in "、。，：；？！…":  # a line ends after a pause, if there is one
        assert document.write([f"犬犬{sign}犬犬犬犬犬"]).decode().splitlines()[2] == f"犬犬{sign}"


def test_a_line_of_a_mark_alone_keeps_it():
    document = read("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n\u200e\n- A\u200f\n")
    assert document.texts == ["\n- A"]
    assert document.write(["b\n- C"]).decode().endswith("\n\u200eb\n- C\u200f\n")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\\N"])
def test_line_ends_are_kept(end):
    document = read("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\nab{end}cd\n")
    assert document.texts == ["ab cd"]
    assert f"ef{end}gh\n" in document.write(["ef gh"]).decode()


def test_notes_and_styles_of_webvtt_are_no_texts():
    text = (
        "WEBVTT\n\nNOTE a note\n\nSTYLE\n::cue {}\n\nname\n00:01.000 --> 00:02.000 align:left\nShown\n\n"
        "00:03.000 --> 00:04.000\nTwo\n00:05.000 --> 00:06.000\nThree\n\nNOTE\nmore\n"
    )
    assert read("a.vtt", text).texts == ["Shown", "Two", "Three"]
    assert read("a.vtt", f"\ufeff{text}").texts == ["Shown", "Two", "Three"]
    [cue] = read_cues(b"1\n17 --> 18\nNo times\n", "a.srt")
    assert (cue.begin, cue.end, cue.slot.text) == (0, 0, "No times")
    cues = read_cues(text.encode(), "a.vtt")
    assert [(cue.begin, cue.end) for cue in cues] == [(1, 2), (3, 4), (5, 6)]
    assert read("a.srt", text.removeprefix("WEBVTT")).texts[0] == "Shown"


def test_scripts_from_right_to_left():
    assert is_right_to_left("שלום a") and is_right_to_left("مرحبا")
    assert not is_right_to_left("a\u200f") and not is_right_to_left("")
