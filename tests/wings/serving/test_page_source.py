"""The web page as packaged: nothing that its Content-Security-Policy forbids, nothing that could become markup."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from transduce.decoding import types
from transduce.inline import plan

PAGE = Path(__file__).parents[3] / "src/transduce/wings/serving/page"
SCRIPTS = sorted(PAGE.glob("*.js"))
LAZY = {"drawing.js", "drawing.css"}  # of inspection/, which the server puts beside these


class Elements(HTMLParser):
    """What index.html holds: elements with their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed((PAGE / "index.html").read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_html_has_no_inline_scripts_styles_or_handlers_and_nothing_from_elsewhere() -> None:
    for tag, attributes in Elements().found:
        assert tag != "style" and (tag != "script" or attributes.get("src")), tag
        assert not [name for name in attributes if name == "style" or name.startswith("on")], attributes
        for name in ("src", "href"):
            address = attributes.get(name) or ""
            assert address.startswith(("data:image/", "#")) or not re.search(r"^\w+:|//|^/", address), address
            if re.fullmatch(r"[\w.-]+", address):
                assert (PAGE / address).is_file(), address


def test_ids_are_unique_and_what_refers_to_them_finds_them() -> None:
    elements = Elements().found
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in elements:
        for name in ("aria-controls", "aria-describedby", "aria-labelledby", "for"):
            assert set((attributes.get(name) or "").split()) <= set(ids)
    asked = {name for script in SCRIPTS for name in re.findall(r'element\("([^"]+)"\)', script.read_text("utf-8"))}
    assert asked and asked <= set(ids)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_make_no_markup_of_texts_and_fetch_only_what_is_there(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    forbidden = r"\b(innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|document\.write|eval|Function)\b"
    assert not re.search(forbidden, text)
    assert not re.search(r"""["'`]https?:""", text.replace('"http://www.w3.org/2000/svg"', ""))
    for address in re.findall(r'(?:from "\./|(?:href|src): ")([\w.-]+)"', text):
        assert (PAGE / address).is_file() or address in LAZY, address


def test_every_element_that_is_pressed_or_filled_has_a_name() -> None:
    text = (PAGE / "index.html").read_text(encoding="utf-8")
    for opening, content in re.findall(r"<button([^>]*)>(.*?)</button>", text, re.DOTALL):
        assert "aria-label" in opening or re.sub(r"<[^>]*>", "", content).strip() or "notice-action" in opening
    for opening in re.findall(r"<(?:input|textarea|progress)[^>]*>", text):
        assert "aria-label" in opening or re.search(rf"<label[^>]*>[^<]*{re.escape(opening)}", text), opening


def test_every_flag_is_told_in_words() -> None:
    flags = {types.CUT, types.LOOP, types.DETACHED, types.EMPTY, types.UNTRANSLATED, types.TERM}
    flags |= {plan.LOST, plan.GUESSED, plan.OTHER_NUMBERS, plan.IN_PARTS, plan.LONG}
    told = re.findall(r"^  (\w+): \[", (PAGE / "quality.js").read_text("utf-8"), re.MULTILINE)
    assert set(told) == flags


@pytest.mark.parametrize("file", [*SCRIPTS, PAGE / "page.css"], ids=lambda file: file.name)
def test_a_file_of_the_page_is_read_in_one_sitting(file: Path) -> None:
    assert file.read_text("utf-8").count("\n") <= 300
