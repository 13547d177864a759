"""XML and HTML as they stand, character by character: where tags, comments and entities are, and what lies between.

Nothing is checked here and nothing is left out: the pieces put together are the text again. `documents/xml.py` checks.
Every pattern is linear in the text (possessive quantifiers), whatever the text is.
"""

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Literal, NamedTuple

Kind = Literal["open", "close", "empty", "text", "other"]

ATTRIBUTES = r"""(?:[^\s"'=>/]++|/(?!>)|\s++|=\s*+(?:"[^"]*+"|'[^']*+'|[^\s"'>][^\s>]*+)?+|["'])*+"""
TAG = re.compile(rf"<(?P<close>/?)(?P<name>[A-Za-z_][^\s/>]*+)(?P<attributes>{ATTRIBUTES})(?P<empty>/?)>")
OTHER = re.compile(  # comments, CDATA, instructions and declarations
    r"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<\?.*?(?:\?>|\Z)|<![^>]*+(?:>|\Z)|</(?=[^A-Za-z_])[^>]*+(?:>|\Z)",
    re.DOTALL,
)
STARTS = re.compile(r"<(?=[A-Za-z_/!?])")
ATTRIBUTE = re.compile(r"""([^\s"'=<>/]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'>][^\s>]*+))?+""")
ENTITY = re.compile(r"&(?:#[0-9]{1,7}+|#[xX][0-9a-fA-F]{1,6}+|[A-Za-z][A-Za-z0-9]{0,31}+);")
VOID = frozenset(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"]
)  # HTML's
RAW = frozenset(
    ["script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "plaintext"]
)  # hold no tags in HTML


class Piece(NamedTuple):
    """A stretch of markup."""

    kind: Kind
    begin: int
    end: int
    name: str = ""  # of a tag, in small letters for HTML


def pieces(text: str, *, html: bool = False) -> Iterator[Piece]:
    """All of the text in pieces, in order; html: names in small letters, elements that are always empty, raw ones."""
    at = 0
    while at < len(text):
        start = STARTS.search(text, at)
        if not start:
            yield Piece("text", at, len(text))
            return
        if start.start() > at:
            yield Piece("text", at, start.start())
        piece = _markup(text, start.start(), html)
        yield piece
        at = piece.end
        if html and piece.kind == "open" and piece.name in RAW:
            end = re.compile(rf"</{piece.name}(?=[\s/>])", re.IGNORECASE).search(text, at)
            raw_end = end.start() if end else len(text)
            if raw_end > at:
                yield Piece("text" if piece.name in ("title", "textarea") else "other", at, raw_end)
            at = raw_end


def _markup(text: str, at: int, html: bool) -> Piece:
    """What begins at a `<`; what isn't closed goes on to the end of the text."""
    if tag := TAG.match(text, at):
        name = tag["name"].lower() if html else tag["name"]
        if tag["close"]:
            return Piece("close", at, tag.end(), name)
        empty = tag["empty"] or (html and name in VOID)
        return Piece("empty" if empty else "open", at, tag.end(), name)
    other = OTHER.match(text, at)
    return Piece("other", at, other.end() if other else len(text))


def attributes(tag: str) -> dict[str, tuple[int, int]]:
    """The attributes of a tag by name in small letters: where their values begin and end in it, without quotes."""
    found: dict[str, tuple[int, int]] = {}
    name = re.match(r"<[^\s/>]++", tag)
    for each in ATTRIBUTE.finditer(tag, name.end() if name else 0):
        if each[2]:
            quoted = each[2][0] in "\"'"
            found.setdefault(each[1].lower(), (each.start(2) + quoted, each.end(2) - quoted))
    return found


def attribute(tag: str, name: str) -> str | None:
    """The value of an attribute of a tag, or None; its name is in small letters."""
    if name not in tag.lower():
        return None  # as nearly always, and much faster
    span = attributes(tag).get(name)
    return None if span is None else unescape(tag[slice(*span)])


def decoded(entity: str) -> str | None:
    """The characters that an entity stands for, or None if it is unknown or stands for none."""
    text = unescape(entity)
    return None if text in (entity, "", "\ufffd") else text


def speller(fragment: str) -> Callable[[str], str]:
    """What writes a text as markup, with the entities that the fragment uses."""
    texts = [fragment[piece.begin : piece.end] for piece in pieces(fragment, html=True) if piece.kind == "text"]
    table = (
        {"&": "&amp;", "<": "&lt;"} if any(">" in text for text in texts) else {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
    )
    for text in texts:
        for entity in ENTITY.finditer(text):
            character = decoded(entity.group())
            if character is not None and len(character) == 1 and character != " ":
                table[character] = entity.group()
    translation = str.maketrans(table)
    return lambda text: text.translate(translation)
