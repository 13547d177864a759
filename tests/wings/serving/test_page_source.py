"""The web page as packaged: nothing that its Content-Security-Policy forbids, nothing that could become markup."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from transduce.decoding import plan, types

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


def test_html_has_no_inline_code_and_loads_only_packaged_files() -> None:
    for tag, attributes in Elements().found:
        assert tag != "style" and (tag != "script" or attributes.get("src")), tag
        assert not [name for name in attributes if name == "style" or name.startswith("on")], (
            attributes
        )
        for name in ("src", "href"):
            address = attributes.get(name) or ""
            assert address.startswith(("data:image/", "#")) or not re.search(
                r"^\w+:|//|^/", address
            ), address
            if re.fullmatch(r"[\w.-]+", address) and address != "docs":
                assert (PAGE / address).is_file(), address


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_insert_no_markup_and_import_only_packaged_files(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    forbidden = r"\b(innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|document\.write|eval|Function)\b"
    assert not re.search(forbidden, text)
    assert not re.search(r"""["'`]https?:""", text.replace('"http://www.w3.org/2000/svg"', ""))
    for address in re.findall(r'(?:from "\./|(?:href|src): ")([\w.-]+)"', text):
        assert (PAGE / address).is_file() or address in LAZY, address


def test_every_flag_is_explained_in_words() -> None:
    flags = {types.CUT, types.LOOP, types.DETACHED, types.EMPTY, types.UNTRANSLATED, types.TERM}
    flags |= {plan.LOST, plan.GUESSED, plan.OTHER_NUMBERS, plan.IN_PARTS, plan.LONG}
    told = re.findall(r"^  (\w+): \[", (PAGE / "quality.js").read_text("utf-8"), re.MULTILINE)
    assert set(told) == flags
