"""The paragraphs of office documents as texts with tags, and back.

A format divides a paragraph into tokens: texts, pairs around texts, and other elements. The text to translate has a tag
such as `<r1>`, `<x1/>` or `<br n="1"/>` in the place of each token that is not a text. Most of the text of a paragraph,
or of a link in the paragraph, has the same style, and only the rest gets tags around it. After the translation, the
tags become what they stood for.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Literal, NamedTuple, Protocol

from transduce.inline.placeholder_removal import is_text
from transduce.inline.placeholders import mask
from transduce.text.formats import PRESERVED_TEXT
from transduce.wings.documents.document import Document, Edit, Slot
from transduce.wings.documents.xml import ILLEGAL_CHARACTER
from transduce.wings.documents.xml_tree import Node, find_elements

Write = Callable[[str, str], str]  # XML of a text in a style
TokenKind = Literal[
    "text", "open", "close", "point", "break", "code", "gone", "field", "instruction"
]
TOKEN_TAG = re.compile(
    r"""<(?P<slash>/?)(?:r|x|br[ ]n="|code[ ]n=")(?P<number>\d{1,9}+)"?/?>(?:(?<=">)[^<]*</code>)?"""
)
# One of the two marks of a range, in Word with a number, in OpenDocument with a name.
RANGE_MARK = re.compile(
    r"""<(?P<name>[\w:-]+?)-?(?P<side>[Ss]tart|[Ee]nd)\s(?:[^>]*\s)?"""
    r"""(?:w:id|text:(?:name|id|change-id))\s*=\s*["'](?P<id>[^"']*)"""
)
# Blanks and punctuation need no style of their own: tags around them would take a word of the translation.
SIGNS = " .,:;!?…'\"()[]/–—«»“”„‘’‚-"
NO_ENTITY = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)")


class Token(NamedTuple):
    """A part of a paragraph. `begin` and `end` are the place of its outermost element in the file."""

    kind: TokenKind
    begin: int
    end: int
    raw: str  # of a text, its characters as XML; of other tokens, what the file has
    style: str = ""  # of a text: what the format needs to write the text in its style
    inside: tuple[Node, ...] = ()  # elements that may contain other paragraphs


class Kept(NamedTuple):
    """What a tag stands for."""

    opening: str
    closing: str = ""
    style: str = ""  # the style of the text in a pair
    is_pair: bool = False


class Syntax(Protocol):
    """How a format writes paragraphs."""

    @property
    def paragraphs(self) -> Collection[str]: ...  # names of the elements
    @property
    def skipped(self) -> Collection[str]: ...  # names of elements in which nothing is translated
    def tokens(self, paragraph: Node) -> list[Token]: ...
    def write(self, text: str, style: str) -> str: ...  # XML of a text


def read_paragraphs(text: str, name: str, codec: str, syntax: Syntax) -> Document:
    """The paragraphs of an XML file, also those in text boxes and notes of other paragraphs."""
    reader = _Reader(text, syntax)
    for number, node in enumerate(find_elements(text, syntax.paragraphs, syntax.skipped, name), 1):
        reader.add(node, number, None, (0, 0))
    return Document(name, text, codec, tuple(reader.slots), tuple(reader.removals))


class _Reader:
    """Collects the slots of a file."""

    def __init__(self, text: str, syntax: Syntax) -> None:
        self.text = text
        self.syntax = syntax
        self.slots = list[Slot]()
        self.removals = list[Edit]()  # of deleted texts in paragraphs that are not translated

    def add(self, paragraph: Node, line: int, within: int | None, tag: tuple[int, int]) -> None:
        """Append the slot of a paragraph, and the slots of the paragraphs inside."""
        paired = _with_ranges(self.syntax.tokens(paragraph), self.text)
        tokens = _without_wordless_pairs(paired, self.syntax.write)
        first, last = trimmed(tokens)
        core = tokens[first:last]
        number = len(self.slots)
        has_text = any(any(map(str.isalpha, token.raw)) for token in core if token.kind == "text")
        if has_text:
            markup, kept = as_markup(core, self.syntax.write)
            has_text = is_text(mask(markup, PRESERVED_TEXT))
        if has_text:
            write = partial(from_markup, kept=kept, write=self.syntax.write)
            place = (core[0].begin, core[-1].end)
            self.slots.append(
                Slot(markup, markup, line, *place, write, PRESERVED_TEXT, within, tag)
            )
        elif within is None:
            self.removals += [Edit(*each[1:3], "") for each in core if each.kind == "gone"]
        for i, token in enumerate(tokens):
            for node in token.inside:
                inner = (
                    (number, (node.begin, node.end))
                    if has_text and first <= i < last
                    else (within, tag)
                )
                for each in _outermost(node, self.syntax):
                    self.add(each, line, *inner)


def _with_ranges(tokens: Iterable[Token], text: str) -> list[Token]:
    """Make a pair of the two marks of a bookmark, a comment or a change, so that it stays around its words."""
    done = list[Token]()
    begins = dict[tuple[str, str], int]()
    for token in tokens:
        done.append(token)
        node = token.inside[0] if token.kind == "point" and token.inside else None
        mark = RANGE_MARK.match(text, node.begin, node.content_begin) if node else None
        if mark and mark["side"].lower() == "start":
            begins[mark["name"], mark["id"]] = len(done) - 1
        elif mark:
            begin = begins.get((mark["name"], mark["id"]))
            if begin is not None and is_balanced(done[begin:]):
                done[begin] = done[begin]._replace(kind="open")
                done[-1] = token._replace(kind="close")
    return done


def is_balanced(tokens: Iterable[Token]) -> bool:
    """Whether each pair that begins in the tokens ends there, and the other way round."""
    levels = [0, *accumulate((each.kind == "open") - (each.kind == "close") for each in tokens)]
    return min(levels) == levels[-1] == 0


def _without_wordless_pairs(tokens: Iterable[Token], write: Write) -> list[Token]:
    """Join the tokens of a pair without words, such as a box to tick, which would get others in the translation."""
    done = list[Token]()
    begins = list[int]()
    for token in tokens:
        done.append(token)
        if token.kind == "open":
            begins.append(len(done) - 1)
        elif token.kind == "close":
            begin = begins.pop()
            pair = done[begin:]
            if not any(map(str.isalnum, "".join(each.raw for each in pair if each.kind == "text"))):
                done[begin:] = [joined(pair, write)]
    return done


def joined(tokens: Sequence[Token], write: Write) -> Token:
    """One token that stays, instead of several."""
    raw = "".join(
        write(each.raw, each.style) if each.kind == "text" else each.raw for each in tokens
    )
    inside = tuple(node for each in tokens for node in each.inside)
    return Token("point", tokens[0].begin, tokens[-1].end, raw, inside=inside)


def _outermost(node: Node, syntax: Syntax) -> Iterator[Node]:
    """The outermost paragraphs in a node."""
    if node.name in syntax.paragraphs:
        yield node
    elif node.name not in syntax.skipped:
        for child in node.children:
            yield from _outermost(child, syntax)


def trimmed(tokens: Sequence[Token]) -> tuple[int, int]:
    """The range of tokens without those at the edges that can stay where they are."""
    first = 0
    last = len(tokens)
    is_shorter = True
    while is_shorter and first < last:
        begin_is_free = first + 1 < last and tokens[first].end <= tokens[first + 1].begin
        end_is_free = last - 1 > first and tokens[last - 2].end <= tokens[last - 1].begin
        is_pair = tokens[first].kind == "open" and _closing(tokens, first) == last - 1
        is_shorter = True
        if tokens[first].kind in ("point", "break") and (begin_is_free or first + 1 == last):
            first += 1
        elif tokens[last - 1].kind in ("point", "break") and end_is_free:
            last -= 1
        elif is_pair and begin_is_free and end_is_free:
            first += 1
            last -= 1
        else:
            is_shorter = False
    return first, last


def _closing(tokens: Sequence[Token], opening: int) -> int:
    """The index of the token that closes a pair."""
    level = 0
    for i in range(opening, len(tokens)):
        level += (tokens[i].kind == "open") - (tokens[i].kind == "close")
        if level == 0:
            return i
    return -1


def as_markup(tokens: Sequence[Token], write: Write) -> tuple[str, list[Kept]]:
    """The text with tags, and what the tags stand for. The first of these is the text as a whole."""
    styles = _main_styles(tokens)
    kept = [Kept("", style=next(styles), is_pair=True)]
    opened = [0]  # numbers of the open pairs
    is_styled = False  # whether the innermost pair is one around a text in another style
    parts = list[str]()
    for token in tokens:
        needs_style = token.style != kept[opened[-1]].style
        if is_styled and (
            token.kind in ("open", "close")
            or (token.kind == "text" and needs_style and token.raw.strip())
        ):
            parts.append(f"</r{opened.pop()}>")
            is_styled = False
        needs_tags = token.style != kept[opened[-1]].style and token.raw.strip(SIGNS)
        if token.kind == "text" and needs_tags and not any(map(str.isalnum, token.raw)):
            token = joined([token], write)  # a symbol, which needs its font
        elif token.kind == "text" and needs_tags:
            opened.append(len(kept))
            kept.append(Kept("", style=token.style, is_pair=True))
            parts.append(f"<r{opened[-1]}>")
            is_styled = True
        if token.kind == "text":
            parts.append(token.raw)
        elif token.kind == "open":
            opened.append(len(kept))
            kept.append(Kept(token.raw, style=next(styles), is_pair=True))
            parts.append(f"<r{opened[-1]}>")
        elif token.kind == "close":
            number = opened.pop()
            kept[number] = kept[number]._replace(closing=token.raw)
            parts.append(f"</r{number}>")
        elif token.kind != "gone":
            number = len(kept)
            tags = {
                "break": f'<br n="{number}"/>',
                "code": f'<code n="{number}">{token.style}</code>',
            }
            parts.append(tags.get(token.kind, f"<x{number}/>"))
            kept.append(Kept(token.raw))
    if is_styled:
        parts.append(f"</r{opened.pop()}>")
    return "".join(parts), kept


def _main_styles(tokens: Iterable[Token]) -> Iterator[str]:
    """The style of most characters in the text as a whole, and in each pair, in the order of their beginnings."""
    counts = [Counter[str]()]
    opened = [0]
    for token in tokens:
        if token.kind == "open":
            opened.append(len(counts))
            counts.append(Counter())
        elif token.kind == "close":
            opened.pop()
        elif token.kind == "text":
            counts[opened[-1]][token.style] += len(token.raw.strip())
    return (max(count, key=lambda style: count[style], default="") for count in counts)


def from_markup(translation: str, kept: Sequence[Kept], write: Write) -> str:
    """Write a translation with the elements that its tags stand for.

    Every element occurs exactly once, even if the translation lacks its tag.
    """
    parts = list[str]()
    opened = [0]
    done = 0
    used = {0}

    def write_text(text: str) -> None:
        if text:
            parts.append(write(as_characters(text), kept[opened[-1]].style))

    for tag in TOKEN_TAG.finditer(translation):
        number = int(tag["number"])
        is_closing = bool(tag["slash"])
        if number >= len(kept) or (number not in opened[1:] if is_closing else number in used):
            continue
        write_text(translation[done : tag.start()])
        done = tag.end()
        used.add(number)
        while is_closing and number in opened:
            parts.append(kept[opened.pop()].closing)
        if not is_closing:
            parts.append(kept[number].opening)
            opened += [number] if kept[number].is_pair else []
    write_text(translation[done:])
    parts += [kept[number].closing for number in reversed(opened)]
    # An element without a text is not seen, unlike the stars of Markdown.
    missing = (
        each.opening + each.closing
        for i, each in enumerate(kept)
        if i not in used and (not each.is_pair or each.closing.startswith("<"))
    )
    return "".join([*parts, *missing])


def as_characters(text: str) -> str:
    """Make a text well-formed XML without tags."""
    escaped = NO_ENTITY.sub("&amp;", text).replace("<", "&lt;").replace("]]>", "]]&gt;")
    return ILLEGAL_CHARACTER.sub("", escaped)
