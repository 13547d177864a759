"""Splits XML and HTML into tags, comments and text.

Joining these pieces gives the input, even for invalid markup. Possessive quantifiers keep the run time linear.
"""

import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from transduce.inline.events import ENTITY, unescape

PieceKind = Literal["open", "close", "empty", "text", "other"]

ATTRIBUTES = (
    r"""(?:[^\s"'=>/]++|/(?!>)|\s++|=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'>][^\s>]*+)?+|["'])*+"""
)
TAG_PATTERN = re.compile(
    rf"<(?P<close>/?)(?P<name>[A-Za-z_][^\s/>]*+)(?P<attributes>{ATTRIBUTES})(?P<empty>/?)>"
)
NO_TAG = re.compile(  # comments, CDATA, instructions and declarations
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|<![^>]*+(?:>|\Z)|</(?=[^A-Za-z_])[^>]*+(?:>|\Z)",
    re.DOTALL,
)
MARKUP_START = re.compile(r"<(?=[A-Za-z_/!?])")
ATTRIBUTE_PATTERN = re.compile(
    r"""(=?[^\s=>/]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'>][^\s>]*+))?+"""
)
# HTML's elements without content.
VOID_ELEMENTS = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
    ]
)
# HTML's elements whose content has no tags.
RAW_ELEMENTS = frozenset(
    ["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "plaintext"]
)


class Piece(NamedTuple):
    """A tag, a text, or other markup such as a comment."""

    kind: PieceKind
    begin: int
    end: int
    name: str = ""  # name of a tag, in lower case for HTML


def pieces(text: str, *, html: bool = False) -> Iterator[Piece]:
    """Split XML, or HTML if `html` is true, into pieces."""
    at = 0
    while at < len(text):
        start = MARKUP_START.search(text, at)
        if not start:
            yield Piece("text", at, len(text))
            return
        if start.start() > at:
            yield Piece("text", at, start.start())
        piece = _markup(text, start.start(), html)
        yield piece
        at = piece.end
        if html and piece.kind == "open" and piece.name in RAW_ELEMENTS:
            end = re.compile(rf"</{piece.name}(?=[\s/>])", re.IGNORECASE).search(text, at)
            raw_end = end.start() if end else len(text)
            if raw_end > at:
                yield Piece("text" if piece.name in ("title", "textarea") else "other", at, raw_end)
            at = raw_end


def _markup(text: str, at: int, html: bool) -> Piece:
    """The piece that begins with the `<` at index `at`."""
    if tag := TAG_PATTERN.match(text, at):
        name = tag["name"].lower() if html else tag["name"]
        if tag["close"]:
            return Piece("close", at, tag.end(), name)
        empty = tag["empty"] or (html and name in VOID_ELEMENTS)
        return Piece("empty" if empty else "open", at, tag.end(), name)
    other = NO_TAG.match(text, at)
    return Piece("other", at, other.end() if other else len(text))


def attributes(tag: str) -> dict[str, tuple[int, int]]:
    """The span of each attribute's value in a tag, without quotes, by attribute name in lower case."""
    values: dict[str, tuple[int, int]] = {}
    name = re.match(r"<[^\s/>]++", tag)
    for match in ATTRIBUTE_PATTERN.finditer(tag, name.end() if name else 0):
        if match[2]:
            quote = 1 if match[2][0] in "\"'" else 0
            values.setdefault(match[1].lower(), (match.start(2) + quote, match.end(2) - quote))
    return values


def attribute(tag: str, name: str) -> str | None:
    """The value of an attribute, or None if the tag lacks the attribute; `name` must be in lower case."""
    if name not in tag.lower():
        return None  # the usual case, much faster than parsing the tag
    span = attributes(tag).get(name)
    return None if span is None else unescape(tag[slice(*span)])


def decoded(entity: str) -> str | None:
    """The characters that an entity represents, or None for an unknown or invalid entity."""
    text = unescape(entity)
    return None if text in (entity, "", "\ufffd") else text


def speller(fragment: str) -> Callable[[str], str]:
    """Return a function that escapes text for markup, with the entities that `fragment` uses."""
    texts = [
        fragment[piece.begin : piece.end]
        for piece in pieces(fragment, html=True)
        if piece.kind == "text"
    ]
    table = {"&": "&amp;", "<": "&lt;"} | (
        {} if any(">" in text for text in texts) else {">": "&gt;"}
    )
    for text in texts:
        for entity in ENTITY.finditer(text):
            character = decoded(entity.group())
            if character is not None and len(character) == 1 and character != " ":
                table[character] = entity.group()
    translation = str.maketrans(table)
    # XML forbids "]]>" in text.
    return lambda text: text.translate(translation).replace("]]>", "]]&gt;")
