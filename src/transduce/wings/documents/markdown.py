"""Reads Markdown (CommonMark): paragraphs, headings, list items and cells, with stress, links and code as tags.

markdown-it-py finds the blocks and their inline elements. HTML blocks are read as in `html.py`, except in lists and
quotes. Code, front matter, definitions of links and the addresses of links stay.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from html import escape
from typing import Any

from transduce.inline.events import unescape
from transduce.inline.markup import TAG_PATTERN, Piece
from transduce.inline.markup_events import is_protected
from transduce.inline.placeholder_removal import is_text
from transduce.inline.placeholders import mask
from transduce.system.errors import needing
from transduce.text.formats import MARKUP_TEXT, DocumentFile
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.documents.document import Document, Slot, decode
from transduce.wings.documents.html import html_slots
from transduce.wings.documents.paragraphs import Kept, Token, as_markup, from_markup

# A rule of markdown-it-py: whether the text goes on with an element of its kind. The argument `silent` forbids tokens.
InlineRule = Callable[[Any, bool], bool]
FRONT_MATTER = re.compile(
    r"\A\ufeff?(?:---[ \t]*\r?\n.*?^(?:---|\.\.\.)|\+\+\+[ \t]*\r?\n.*?^\+\+\+)[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
MARKDOWN_LINE = re.compile(r"[^\r\n]*+(?:\r\n|\r|\n|\Z)")
# Lines of other programs: containers, admonitions, templates and LaTeX.
DIRECTIVES = (":::", "!!!", "???", "{%", "{{<", "[TOC]", "\\begin{")
# Not in CommonMark, and each begins a new line: footnotes, abbreviations and definitions; the kinds of notes, the ends
# of containers, attributes and formulas.
OTHER_LINES = re.compile(
    r"""^(?P<begin>[ \t>]*)(?:
        (?P<item>(?:\[\^[^\]\s]++\]|\*\[[^\]\n]++\]):|:(?=[ \t]))
        |\[![\w-]+\][-+]?
        |(?::::+|\{:[^}\n]*\}|\$\$(?:(?!\n[ \t\r>]*(?:\n|```|~~~))[^$])*\$\$)[ \t\r]*$
    )""",
    re.MULTILINE | re.VERBOSE,
)
# Not in CommonMark: footnotes, boxes of tasks, links of wikis, formulas, attributes, symbols.
EXTENSION = re.compile(
    r"\[\^[^\]\s]++\]:?|\A\[[ xX]\](?=\s)|\[\[[^\]\n]++\]\](?![(\[])"
    r"|(?<![\w$\\])\$\$?(?![\s$])[^$`]++(?<!\s)\$\$?(?![\w$])"
    r"|\{[:.\#][^}\n]*\}|(?<![\w:]):[a-z][\w+-]*:(?![\w:])"
)
# What would be markup in a text.
LOOKS_LIKE_MARKUP = re.compile(
    r"[\\`*\[\]]|<(?=[A-Za-z/!?])|&(?=#?\w+;)|(?<!\w)_|_(?!\w)|~(?=~)|(?<=~)~|\$"
    r"|\A(?:#(?=#{0,5}(?:\s|\Z))|>|[-+](?=\s|\Z|-)|=)|#(?=#*\s*\Z)"
)
BLANK_BEHIND_OPENING = re.compile(r"(<r\d+>)(\s+)")
BLANK_BEFORE_CLOSING = re.compile(r"(\s+)(</r\d+>)")
PIPE_IN_CELL = "\\|"  # also in code
NUMBER_OF_ITEM = re.compile(r"\A(\s*\d{1,9})([.)])(?=\s|\Z)")
TAGS_OF_PAIRS = ("em", "strong", "s", "link")


def read_markdown(file: DocumentFile) -> Document:
    """The paragraphs, headings, list items, cells of tables and HTML blocks."""
    text, codec = decode(file.content, file.name)
    lines = MARKDOWN_LINE.findall(text)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))
    front = FRONT_MATTER.match(text)
    hidden = len(MARKDOWN_LINE.findall(front.group())) - 1 if front else 0  # number of its lines
    shown = "".join(["\n" * hidden, *lines[hidden:]]).removeprefix(BYTE_ORDER_MARK)
    shown = OTHER_LINES.sub(_line_of_commonmark, shown)
    slots = list[Slot]()
    in_table = False
    done = 0  # the end of the last cell
    for block in _parser().parse(shown):
        in_table = (in_table or block.type == "table_open") and block.type != "table_close"
        if block.type == "html_block" and not block.level:
            begin, end = (begins[line] for line in block.map)
            its = html_slots(text[begin:end], file.source)
            slots += [_moved(slot, begin, block.map[0], len(slots)) for slot in its]
        if block.type != "inline" or block.map is None:
            continue
        first = block.map[0]
        shown_lines = block.content.split("\n")
        if in_table:
            places = list(
                _place_of_cell(block.content, text, max(done, begins[first]), begins[first + 1])
            )
            done = places[0][1] if places else begins[first + 1]
        else:
            places = list(_places(shown_lines, lines[first:], begins[first:]))
        if len(places) == len(shown_lines) and not block.content.startswith(DIRECTIVES):
            slots += _slots(block, text, places, first + 1, PIPE_IN_CELL if in_table else "|")
    return Document(file.name, text, codec, tuple(slots))


@cache
def _parser() -> Any:
    with needing("documents", "Reading Markdown"):
        from markdown_it import MarkdownIt, rules_inline

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    for name, rule in {
        "link": rules_inline.link,
        "image": rules_inline.image,
        "backticks": rules_inline.backtick,
        "autolink": rules_inline.autolink,
        "html_inline": rules_inline.html_inline,
    }.items():
        parser.inline.ruler.at(name, _recording(rule))
    parser.inline.ruler.before("escape", "extension", _extension)
    parser.inline.ruler.before("html_inline", "protected", _protected)
    return parser


def _line_of_commonmark(line: re.Match[str]) -> str:
    """A line that begins a list item or is a heading, and as many lines, instead of a line of OTHER_LINES."""
    return line["begin"] + ("- " if line["item"] else "# ") + "\n" * line[0].count("\n")


def _extension(state: Any, silent: bool) -> bool:
    """A rule for EXTENSION. Backslashes and stars in a formula are no markup."""
    match = EXTENSION.match(state.src, state.pos, state.posMax)
    if match and not silent:
        state.push("extension", "", 0).meta["raw"] = match[0]
    state.pos = match.end() if match else state.pos
    return bool(match)


def _protected(state: Any, silent: bool) -> bool:
    """A rule for an element of HTML that must not be translated, such as <kbd>."""
    tag = TAG_PATTERN.match(state.src, state.pos, state.posMax)
    if not tag or tag["close"] or tag["empty"]:
        return False
    name = tag["name"].lower()
    if not is_protected(Piece("open", *tag.span(), name), tag[0]):
        return False
    closing = re.compile(rf"</{re.escape(name)}\s*>", re.IGNORECASE)
    end = closing.search(state.src, tag.end(), state.posMax)
    if end and not silent:
        content = unescape(TAG_PATTERN.sub("", state.src[tag.end() : end.start()])).strip()
        element = state.push("code_inline" if content else "extension", "", 0)
        element.content = content.replace("\n", " ")
        element.meta["raw"] = state.src[state.pos : end.end()]
    state.pos = end.end() if end else state.pos
    return bool(end)


def _recording(
    rule: InlineRule,
) -> InlineRule:
    """Let a rule record the characters of its elements in their field `meta`."""

    def recorded(state: Any, silent: bool) -> bool:
        begin = state.pos
        count = len(state.tokens)
        if not rule(state, silent):
            return False
        new = [] if silent else [each for each in state.tokens[count:] if each.type != "text"]
        if new:
            new[0].meta["raw"] = state.src[begin : state.pos]
            if new[0].type == "link_open" and not new[0].info:
                label_end = state.md.helpers.parseLinkLabel(state, begin, True)
                new[0].meta["raw"] = "["
                new[-1].meta["raw"] = _target(
                    state.src[begin:label_end], state.src[label_end : state.pos]
                )
        return True

    return recorded


def _target(label: str, raw: str) -> str:
    """What stands behind the text of a link. If the text was also the name of its definition, the name stays."""
    return f"]{label}]" if raw in ("]", "][]") else raw


def _places(
    shown: Sequence[str], lines: Sequence[str], begins: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """The place of each line of a block in the file; stops at a line that is not found."""
    for content, line, begin in zip(shown, lines, begins, strict=False):
        stripped = content.strip()
        column = line.rfind(stripped)
        if column < 0:
            return
        yield begin + column, begin + column + len(stripped)


def _moved(slot: Slot, characters: int, lines: int, slots: int) -> Slot:
    """A slot of a part of the file, behind so many characters, lines and slots."""
    return slot._replace(
        line=slot.line + lines,
        begin=slot.begin + characters,
        end=slot.end + characters,
        within=None if slot.within is None else slot.within + slots,
        tag=(slot.tag[0] + characters, slot.tag[1] + characters),
    )


def _place_of_cell(content: str, text: str, done: int, end: int) -> Iterator[tuple[int, int]]:
    """The place of a table's cell behind text[:done], if it is found."""
    raw = content.replace("|", PIPE_IN_CELL)
    begin = text.find(raw, done, end)
    if begin >= 0:
        yield begin, begin + len(raw)


def _slots(
    block: Any, text: str, places: Sequence[tuple[int, int]], line: int, pipe: str
) -> Iterator[Slot]:
    """The slot of a block, if the block has a text. `pipe` is how the block writes `|`."""
    markup, kept = as_markup(_paired(_tokens(block.children or [], text, places)), _escaped)
    if is_text(mask(markup, MARKUP_TEXT)):
        yield Slot(
            markup,
            markup,
            line,
            places[0][0],
            places[-1][1],
            partial(_written, kept=kept, pipe=pipe),
            MARKUP_TEXT,
        )


def _tokens(
    elements: Sequence[Any], text: str, places: Sequence[tuple[int, int]]
) -> Iterator[Token]:
    """The tokens of a block; those of HTML are points."""
    line = 0
    is_address = False  # whether the text is that of <https://example.org>
    for element in elements:
        raw = element.meta.get("raw", element.markup).replace("\n", " ")
        kind, _, side = element.type.partition("_")
        if element.info == "auto":
            is_address = side == "open"
            if is_address:
                yield Token("code", 0, 0, raw, escape(raw[1:-1], quote=False))
        elif element.type == "text" and not is_address:
            yield Token("text", 0, 0, escape(element.content, quote=False))
        elif element.type == "softbreak":
            yield Token("text", 0, 0, " ")
        elif element.type == "hardbreak":
            _, end = places[line]
            end -= text[end - 1] == "\\"
            yield Token("break", 0, 0, text[end : places[line + 1][0]])
        elif element.type == "code_inline":
            yield Token("code", 0, 0, raw, escape(element.content, quote=False))
        elif kind in TAGS_OF_PAIRS:
            yield Token("open" if side == "open" else "close", 0, 0, raw)
        elif element.type != "text":
            yield Token("point", 0, 0, raw)
        line += element.type.endswith("break") + element.meta.get("raw", "").count("\n")


def _paired(tokens: Iterable[Token]) -> list[Token]:
    """Make pairs of the tags of HTML that open and close an element; <br> is a break."""
    done = list[Token]()
    opened = list[tuple[str, int]]()
    for token in tokens:
        tag = TAG_PATTERN.fullmatch(token.raw) if token.kind == "point" else None
        name = tag["name"].lower() if tag else ""
        if name == "br":
            token = token._replace(kind="break")
        elif tag and not tag["close"] and not tag["empty"]:
            opened.append((name, len(done)))
        elif tag and opened and opened[-1][0] == name:
            begin = opened.pop()[1]
            done[begin] = done[begin]._replace(kind="open")
            token = token._replace(kind="close")
        elif token.kind == "open":
            opened.append(("", 0))
        elif token.kind == "close":
            while opened.pop()[0]:
                pass  # the tags in a pair that are not closed there
        done.append(token)
    return done


def _written(translation: str, kept: Sequence[Kept], pipe: str) -> str:
    # Stress may not begin or end with a blank, and two codes need a blank between them.
    marked = BLANK_BEHIND_OPENING.sub(r"\2\1", BLANK_BEFORE_CLOSING.sub(r"\2\1", translation))
    apart = marked.replace("</code><code", "</code> <code")
    return from_markup(apart, kept, _escaped).strip().replace("|", pipe)


def _escaped(text: str, _style: str) -> str:
    """Write a text so that nothing in it is markup."""
    plain = " ".join(unescape(text).split("\n"))
    return NUMBER_OF_ITEM.sub(r"\1\\\2", LOOKS_LIKE_MARKUP.sub(r"\\\g<0>", plain))
