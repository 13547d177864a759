"""Tests of transduce/wings/documents/markdown.py, with the pages of our documentation as real files."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from office_files import FOLDER, read, translated

ROOT = Path(__file__).parents[3]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs/guides").glob("*.md")),
    *sorted(FOLDER.glob("*.md")),
]
# Types of inline tokens that the words of a text do not change.
KEPT = {"code_inline", "link_open", "image", "html_inline", "strong_open", "em_open", "hardbreak"}


def blocks(text: str) -> list[Token]:
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)


def shape(text: str) -> Iterator[object]:
    """What translating may not change: the blocks and code, and the elements in each text."""
    for block in blocks(text):
        yield block.type, block.tag, block.markup, block.info
        if block.type == "html_block":
            yield [tag.partition(" ")[0] for tag in re.findall("<[^>]*>", block.content)]
            continue
        if block.type != "inline":
            yield block.content
            continue
        yield sorted(
            (each.type, each.content, str(each.attrs))
            for each in block.children or []
            if each.type in KEPT
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_keep_everything_but_their_words(page: Path) -> None:
    content = page.read_bytes()
    document = read("a.md", content)
    assert document.texts
    assert document.write(document.texts) == content
    assert document.write([""] * len(document.texts)) == content
    translations = translated(document, str.swapcase)
    written = document.write(translations).decode()
    assert list(shape(written)) == list(shape(content.decode()))
    again = read("a.md", written.encode()).texts
    assert [without_tags(text) for text in again] == [without_tags(text) for text in translations]


def without_tags(text: str) -> str:
    return "".join(re.sub("<[^>]*>", "", text).split())


def shown(markdown: str) -> str:
    """The text that a reader of one paragraph or cell sees."""
    [inline] = [block for block in blocks(markdown) if block.type == "inline"]
    return "".join(each.content for each in inline.children or [] if each.type == "text")


@given(st.text(alphabet="ab1 .#>*_`[]()<>&;!\\~+-=$|{}:", min_size=1, max_size=30))
@example("# a")
@example("1. a")
@example("- a")
@example("=")
@example("a ##")
@example("&amp; [x](y)")
def test_any_translation_stays_one_paragraph_or_cell_of_text(text: str) -> None:
    text = " ".join(f"{text} x".split())
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for content in (b"A dog", b"|A dog|\n|-|"):
        assert shown(read("a.md", content).write([escaped]).decode()) == text


def test_cells_stay_cells() -> None:
    content = b"| A dog | `x\\|y` runs |\n|---|:--|\n|  It   | It | \n"
    translations = ["Ein|Hund", '<code n="1">x|y</code> l\u00e4uft', "- Es", "es"]
    assert read("a.md", content).write(translations).decode() == (
        "| Ein\\|Hund | `x\\|y` l\u00e4uft |\n|---|:--|\n|  \\- Es   | es | \n"
    )


TEXTS = {
    "# A heading #": ["A heading"],
    "Two\nlines\n=====": ["Two lines"],
    "> A quote\n> of *two\n> lines*": ["A quote of <r1>two lines</r1>"],
    "> A quote\nthat is lazy": ["A quote that is lazy"],
    "* One\n  goes on\n* Two": ["One goes on", "Two"],
    "A [link](x 'Title') and [another].\n\n[another]: y": ["A <r1>link</r1> and <r2>another</r2>."],
    "Call `f(x)` ![now](b.png).": ['Call <code n="1">f(x)</code> <x2/>.'],
    "See <https://example.org>.": ['See <code n="1">https://example.org</code>.'],
    "A <b>bold</b> <br> word <i>here": ['A <r1>bold</r1> <br n="2"/> word <x3/>here'],
    "A\\\nbreak  \nhere": ['A<br n="1"/>break<br n="2"/>here'],
    "A &lt; B &amp; \\*C": ["A &lt; B &amp; *C"],
    "A note[^1] for $a^2$, 5 $.\n\n[^1]: It says *so*.": [
        "A note<x1/> for <x2/>, 5 $.",
        "It says <r1>so</r1>.",
    ],
    "- [ ] A task": ["<x1/> A task"],
    "---\ntitle: A b\n---\nText": ["Text"],
    "+++\na = 1\n+++\n\nText": ["Text"],
    "```\ncode\n```\n\n    code\n\n<!-- html -->\n\n12\n\n---\n": [],
    '# A\n\n<p align="center">\n  <img src="a" alt="b" />\n  <b>c</b>: d\n</p>\n\ne\n<i>f</i>': [
        "A",
        '<img src="a" alt="b" />\n  <b>c</b>: d',
        "b",
        "e <r1>f</r1>",
    ],
    "---\na: b\n---\n<details>\n<summary>c</summary>\n\nd\n\n</details>": ["c", "d"],
    "- <div>\n  a\n  </div>": [],
    "<kbd>C</kbd>, <code>a\nb_c_</code>, <Span translate=no>c <b>d</b></span>, <var></var>, <kbd>e": [
        '<code n="1">C</code>, <code n="2">a b_c_</code>, <code n="3">c d</code>, <x4/>, <x5/>e'
    ],
    "| a | *b* \\| `x\\|y` |\n|---|---|\n| b |\n|  | 1 | b | b |": [
        "a",
        '<r1>b</r1> | <code n="2">x|y</code>',
        "b",
    ],
    "> * | a | b |\n>   |-|-|\n>   | b | b |": ["a", "b", "b", "b"],
    ":::note\ntext\n:::": [],
    "\ufeffText\r\nmore\r\n": ["Text more"],
}


# Lines that have a meaning for other programs -> the texts.
LINES = {
    "> [!NOTE]\n> A dog\n> runs\n": ["A dog runs"],
    "> [!tip]- A title\n> A dog\n": ["A title", "A dog"],
    "A dog\n\n[^1]: One *note*\n[^b]: two\n\n    More\n": [
        "A dog",
        "One <r1>note</r1>",
        "two",
        "More",
    ],
    "A dog\n: what runs\n: An animal\n\n*[ab]: abbreviation\n": [
        "A dog",
        "what runs",
        "An animal",
        "abbreviation",
    ],
    "::: tip\n\nA dog\n:::\n": ["A dog"],
    "A dog\n{: .class }\n": ["A dog"],
    "It is\n$$\nx = \\frac{a}{b} \\\\\n  + c\n$$\nnow\n": ["It is", "now"],
    "> It is\r\n> $$\r\n> x$$\r\n": ["It is"],
    "```\n$$\n```\n\nA dog\n\n```\n$$\n```\n": ["A dog"],
    "\\begin{align}\na\n\\end{align}\n\nA dog\n": ["A dog"],
}


@pytest.mark.parametrize("content", LINES)
def test_lines_of_other_programs_stay_lines(content: str) -> None:
    document = read("a.md", content.encode())
    assert document.texts == LINES[content]
    assert document.write(document.texts).decode() == content
    written = document.write(translated(document, str.swapcase)).decode()
    marks = re.compile(r"^(?:> )?(?:\*?\[.*?\]|[:\\{`$x]|  \+).*$", re.MULTILINE)
    assert marks.findall(written.lower()) == marks.findall(content.lower())


def test_markup_in_a_formula_is_none() -> None:
    content = b"In $\\{a*b*c\\}$ a :smile: and [[A page|it]] {: .b_c_d } here [[1]](x)"
    document = read("a.md", content)
    assert document.texts == ["In <x1/> a <x2/> and <x3/> <x4/> here <r5>[1]</r5>"]
    written = document.write(["<x1/>: <x2/>, <x3/> <x4/> hier <r5>[1]</r5>"])
    assert written == b"$\\{a*b*c\\}$: :smile:, [[A page|it]] {: .b_c_d } hier [\\[1\\]](x)"


@pytest.mark.parametrize("content", TEXTS)
def test_texts(content: str) -> None:
    assert read("a.md", content.encode()).texts == TEXTS[content]


def test_a_translation_is_spelt_as_markdown() -> None:
    content = "> A [dog] runs  \n> *fast* here.\n\n[dog]: x"
    document = read("a.md", content.encode())
    assert document.texts == ['A <r1>dog</r1> runs<br n="2"/><r3>fast</r3> here.']
    written = document.write(['Hier *läuft* <r3>schnell</r3><br n="2"/>ein <r1>Hund</r1>.'])
    assert written.decode() == "> Hier \\*läuft\\* *schnell*  \n> ein [Hund][dog].\n\n[dog]: x"
    assert document.lines == [1]
