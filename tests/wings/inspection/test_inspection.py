"""Drawings: they hold the numbers that were given, whatever the text in them, and need nothing from outside."""

import math
import re
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.evaluation.scores import Score
from transduce.system.errors import UserError
from transduce.system.journal import Event
from transduce.wings.inspection.curves import learning_curve
from transduce.wings.inspection.page import ABOUT, shown
from transduce.wings.inspection.picture import Maps, Picture
from transduce.wings.inspection.report import Example, Report, mark_differences, write_report
from transduce.wings.inspection.tree import SearchTree

SVG = "{http://www.w3.org/2000/svg}"
texts = st.text()


def event(name: str, **values: float) -> Event:
    return {"event": name, "time": 1.7e9, **values}


def texts_of(svg: str) -> list[str]:
    return [
        "".join(element.itertext()) for element in ElementTree.fromstring(svg).iter(SVG + "text")
    ]


def points(svg: str, colour: str) -> list[tuple[float, float]]:
    """The corners of the line drawn in a colour."""
    path = re.search(rf'<path d="([^"]*)" [^>]*style="fill: none; stroke: {colour}', svg)
    assert path
    numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", path[1])]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def test_a_learning_curve_draws_its_points_to_scale() -> None:
    training = [
        event("update", step=step, nll=loss) for step, loss in [(0, 4.0), (10, 2.0), (40, 1.0)]
    ]
    (x0, y0), (x1, y1), (x2, y2) = points(learning_curve(training), "#4c8bd6")
    assert (x2 - x0) / (x1 - x0) == pytest.approx(4, rel=1e-3)
    assert (y2 - y0) / (y1 - y0) == pytest.approx(1.5, rel=1e-3)
    assert y2 > y0  # down the page


def test_a_learning_curve_shows_what_was_recorded() -> None:
    events = [event("update", step=step, nll=9 - step) for step in range(1, 6)] + [
        event("save", step=5)
    ]
    events += [
        event("validation", step=step, perplexity=math.exp(9.5 - step), bleu=step)
        for step in (3, 5)
    ]
    svg = learning_curve(events)
    assert {"training", "validation", "nats per token", "BLEU", "updates"} <= set(texts_of(svg))
    assert ElementTree.fromstring(svg).attrib["aria-label"] == (
        "Learning curve: training from 8 to 4; validation from 6.5 to 4.5; BLEU from 3 to 5"
    )
    assert svg == learning_curve(events)
    assert "BLEU" not in texts_of(learning_curve(events[:5]))


def test_a_learning_curve_can_be_drawn_before_the_first_update() -> None:
    assert "updates" in texts_of(learning_curve([]))


@given(texts, texts)
def test_marking_differences_loses_no_word(text: str, other: str) -> None:
    for marked, plain in zip(mark_differences(text, other), (text, other), strict=True):
        assert re.sub("</?mark>", "", marked) == shown(plain.lstrip())


@given(texts)
def test_equal_texts_have_no_marks(text: str) -> None:
    assert mark_differences(text, text) == (shown(text.lstrip()),) * 2


@pytest.mark.parametrize(
    ("text", "other", "marked"),
    [
        ("a dog runs.", "a cat runs.", ("a <mark>dog</mark> runs.", "a <mark>cat</mark> runs.")),
        ("a dog", "a dog!", ("a dog", "a dog<mark>!</mark>")),
        ("a <b> c", "a c", ("a <mark>&lt;b&gt;</mark> c", "a c")),
        ("我看书", "我看报", ("我看<mark>书</mark>", "我看<mark>报</mark>")),
        ("", "all", ("", "<mark>all</mark>")),
    ],
)
def test_marked_differences_by_hand(text: str, other: str, marked: tuple[str, str]) -> None:
    assert mark_differences(text, other) == marked


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def picture(source: str, translation: str) -> Picture:
    """Of one piece each."""
    maps = [Maps("source", [translation], [source], [[[[1000]]]])]
    return Picture(source, translation, -1.0, [], maps, SearchTree(1, 0.6, [], []), [])


EVIL = "<script>alert('\"&amp;{x}')</script>"


def test_report_has_every_part_and_no_script(tmp_path: Path) -> None:
    report = Report(
        title=EVIL + "1",
        summary=EVIL + "2",
        facts=[(EVIL + "3", EVIL + "4")],
        scores=[Score("BLEU", 31.26, 29.04, 33.46, "nrefs:1|" + EVIL + "5")],
        curve=learning_curve([event("update", step=1, nll=2.0)]),
        picture=picture(EVIL + "6", EVIL + "7"),
        examples=[Example(EVIL + "8", EVIL + "9", EVIL + "10")],
        next_steps=[(EVIL + "11", EVIL + "12")],
    )
    write_report(tmp_path / "report.html", report)
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    for number in range(1, 13):
        assert EVIL + str(number) in "".join(page.texts)
    assert page.texts.index("Next steps") < page.texts.index("Scores")
    assert {"BLEU", "31.3", "29.0–33.5", "nats per token"} <= set(page.texts)
    assert page.tags.count("script") == 2  # what is drawn, and what draws it
    assert not {"link", "img", "iframe", "object"} & set(page.tags)


def test_a_report_needs_nothing_from_outside(tmp_path: Path) -> None:
    curve = learning_curve([event("update", step=1, nll=2.0)])
    write_report(
        tmp_path / "report.html",
        Report("A run", "It went well.", curve=curve, picture=picture("a", "b")),
    )
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert "@import" not in text
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))
    linked = [
        value for name, value in Page(text).attributes if name in ("href", "src", "xlink:href")
    ]
    assert all(value and value.startswith("#") for value in linked)


def test_a_report_leaves_out_what_is_empty(tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", Report("A run", "It went well."))
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.tags.count("h1") == 1
    assert not {"h2", "script"} & set(page.tags)
    assert page.texts.index(ABOUT) < page.texts.index("It went well.")
    with pytest.raises(UserError, match=r"absent/report\.html can't be written"):
        write_report(tmp_path / "absent/report.html", Report("A run", "It went well."))
