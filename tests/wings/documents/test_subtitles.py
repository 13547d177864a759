"""Subtitles by hand: times, speakers, lines, and what surrounds the texts."""

import pytest

from documents import SRT, VTT, by, read, written
from transduce.decoding.plan import Plan
from transduce.wings.documents.subtitles import is_right_to_left, read_cues

CUES = """1
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
    cues = read_cues(CUES.encode(), "a.srt")
    assert [(cue.begin, cue.end, cue.slot.text) for cue in cues] == [
        (1.5, 3.0, "- Hello <i>there</i>. How are you?\n- Fine."),
        (5.0, 6.0, "First"),
        (3723.25, 3724.0, "One cue"),
        (3723.25, 3724.0, "that goes on."),
    ]
    assert read("a.srt", CUES).lines == [3, 10, 12, 19]


def test_translations_have_as_many_lines_as_their_speakers():
    document = read("a.srt", CUES)
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
    changed = [line for line in filled.splitlines() if line not in CUES.splitlines()]
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


def test_the_lines_of_a_cue_are_one_text() -> None:
    document = read("a.srt", SRT)
    assert document.texts == ["<i>A first line and its end.</i>", "- Hello.\n- Yes?"]
    filled = document.write(
        ["<i>Eine erste Zeile, und das war ihr Ende.</i>", "- Hallo.\n- Ja?"]
    ).decode()
    expected = SRT.replace("A first line\nand its end.", "Eine erste Zeile, und\ndas war ihr Ende.")
    assert filled == expected.replace("- Hello.\n- Yes?", "- Hallo.\n- Ja?")
    assert document.write(["x", "\n- Ja?"]).decode().endswith("00:00:04,000\n- Ja?\n")
    assert read("a.vtt", VTT).texts == ["Hello there."]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_blank_line_between_cues_may_be_lost(line_end: str, mark: str) -> None:
    text = (
        SRT.replace("\n\n", "\n")
        .replace("Hello.", "17 --> 18 4\n2")
        .replace(" -->", "\u00a0-->", 1)
    )
    document = read("a.srt", (mark + text).replace("\n", line_end))
    assert document.texts == ["<i>A first line and its end.</i>", "- 17 --> 18 4 2\n- Yes?"]
    assert [slot.line for slot in document.slots] == [3, 7]


@pytest.mark.parametrize(
    ("cue", "expected"),
    [
        (
            "<i>- Hi. How are you\ndoing today?</i>\n<i>- Good.</i>",
            ["<i>- Hi. How are you doing today?</i>", "<i>- Good.</i>"],
        ),
        ("{\\an8}- Hi.\n{\\an8}- Good.", ["{\\an8}- Hi.", "{\\an8}- Good."]),
        ("♪ Hello my friend\n♪ How are you ♪", ["♪ Hello my friend", "♪ How are you ♪"]),
        ("<i>One\nsentence</i>", ["<i>One sentence</i>"]),
        ("\u200f- נכון.\n\u200f- לא.", ["- נכון.", "- לא."]),
        (
            "<i>\u202b- نعم.\u202c</i>\n<i>\u202b- لا.\u202c</i>",
            ["<i>\u202b- نعم.\u202c</i>", "<i>\u202b- لا.\u202c</i>"],
        ),
        ("－你好\n－再见", ["－你好", "－再见"]),
    ],
)
def test_each_speaker_has_a_line(cue: str, expected: list[str]) -> None:
    (text,) = read("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{cue}\n").texts
    assert text.split("\n") == expected


@pytest.mark.parametrize("reading", ["<rt>kan</rt>", "<rt.big>kan</rt>", "<rt>kan"])
def test_readings_in_subtitles_stay(reading: str) -> None:
    cue = f"WEBVTT\n\n00:01.000 --> 00:02.000\nA <ruby>dog{reading}</ruby> runs.\n"
    document = read("a.vtt", cue)
    plan = Plan(document.texts, "en")
    assert plan.sentences == ["A dog runs."]
    made = plan.assemble(by(str.upper, plan.sentences))[0].text
    assert made == f"A <ruby>DOG{reading}</ruby> RUNS."


def test_marks_of_direction_stay_in_the_file_and_out_of_the_text() -> None:
    cue = "\u202b- Yes, here\u202c\r\n\u202bwe are now.\u202c\r\n\u202b- No.\u202c\u200f"
    document = read("a.srt", f"1\r\n00:00:01,000 --> 00:00:02,000\r\n{cue}\r\n")
    assert document.texts == ["- Yes, here we are now.\n- No."]
    assert written(document, str.lower).endswith(f"\r\n{cue.lower()}\r\n")
    assert (
        document.write(["A\nB\nC\nD"])
        .decode()
        .endswith("\u202bC\u202c\u200f\r\n\u202bD\u202c\u200f\r\n")
    )
    hebrew = read("a.srt", "1\n00:00:01,000 --> 00:00:02,000\n\u202bשלום.\u202c\n")
    assert hebrew.write(["Hello."]).decode().endswith("\nHello.\n")


def test_text_behind_a_blank_line_belongs_to_the_cue() -> None:
    cues = "1\n00:00:01,000 --> 00:00:02,000\nA dog.\n\nA cat.\n\n2\n\n00:00:03,000 --> 00:00:04,000\nA bird.\n"
    document = read("a.srt", cues)
    assert document.texts == ["A dog.", "A cat.", "A bird."]
    assert written(document, str.upper) == cues.upper()
    assert read("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nA dog.\n\nA note\n").texts == [
        "A dog."
    ]


def test_lines_of_subtitles_end_between_words_that_are_shown() -> None:
    cue = '<font face="Arial" size="24" color="#ff0000">Let us go.\nCome on!</font>'
    document = read("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{cue}\n")
    assert written(document, str).endswith(f"\n{cue}\n")
    voice = read("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n<v Roger Bingham>Come\nin</v>\n")
    assert written(voice, str.lower).endswith("\n<v roger bingham>come\nin</v>\n")


@pytest.mark.parametrize("text", ["One\\Ntwo", "One\\N\ntwo"])
def test_a_written_line_end_of_a_subtitle_is_a_line_end(text: str) -> None:
    document = read("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n")
    assert document.texts == ["One two"]
    assert written(document, lambda _: "Eins zwei").endswith(
        text.replace("One", "Eins").replace("two", "zwei") + "\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("是的，", "我们昨天在那里看见了他"),  # after a pause
        ("我们昨天在那里看见了", "他和他最好的朋友。」"),
        ("彼はきのう「ちょっと", "待って」と言いました"),
        ("<i>これは", "テストです</i>"),
    ],
)
def test_lines_of_chinese_and_japanese_subtitles_need_no_blanks(lines: tuple[str, str]) -> None:
    document = read("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nOne\ntwo\n")
    assert document.write(["".join(lines)]).decode().splitlines()[2:] == [*lines]
