"""Splits texts, also in XML and HTML, into events such as text, tags and entities (`events.py`)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from transduce.inline.events import (
    EMPTY_TAG,
    ENTITY,
    ESCAPED_END,
    IN_ALL,
    MARKUP_BLANKS,
    PLACEHOLDERS,
    TAG_NAME,
    Event,
    EventKind,
    any_of,
    is_placeholder,
    plain_events,
    text_event,
    unescape,
    with_unpaired_words,
)
from transduce.inline.markup import Piece, attribute, decoded, pieces
from transduce.text.formats import PLAIN_TEXT, TextKind

# A code element of up to this length stays in the text as a word, for the model to copy.
MAX_INLINE_CODE_CHARACTERS = 40
# Elements whose content is not text, or the reading of a word (rt).
WITHOUT_TEXT = frozenset(
    [
        "bpt",
        "ept",
        "it",
        "ph",
        "ut",
        "script",
        "style",
        "svg",
        "math",
        "textarea",
        "rp",
        "rt",
        "rtc",
    ]
)
CODE_ELEMENTS = frozenset(["code", "kbd", "samp", "var", "tt", "pre"])
MAY_BE_PROTECTED = re.compile(
    rf"(?:<|lt;)(?:{'|'.join(CODE_ELEMENTS | WITHOUT_TEXT)})\b|translate|mtype", re.IGNORECASE
)
# Elements that the next element of the same name closes, as in HTML.
MAY_BE_UNCLOSED = frozenset(["p", "li", "dt", "dd", "td", "th", "tr", "option"])
# XLIFF has an empty element for each end of a pair.
OPENED_BY = {
    "ept": "bpt",
    "ex": "bx",
    "ec": "sc",
}
PAIR_ATTRIBUTES = ("startref", "rid", "i", "id")  # equal in both elements of a pair

ESCAPED_TAG = rf"&(?:amp;)?lt;(?P<slash>/?){TAG_NAME}{ESCAPED_END}"
IN_MARKUP = {  # the pattern by TextKind.message
    messages: re.compile(f"{ESCAPED_TAG} | {any_of(PLACEHOLDERS, messages=messages)}", re.VERBOSE)
    for messages in (False, True)
}


def events(text: str, kind: TextKind = PLAIN_TEXT) -> Iterator[Event]:
    """Split a text into events. Escaped tags count as tags, since many programs write HTML into XLIFF and PO."""
    found = markup_events(text, kind) if kind.markup else plain_events(text, kind)
    has_tags = "<" in text or "&" in text
    return _with_protected(list(found)) if has_tags and MAY_BE_PROTECTED.search(text) else found


def markup_events(text: str, kind: TextKind) -> Iterator[Event]:
    """Split XML or HTML into events."""
    return with_unpaired_words(list(_tokens(text, kind.message)))


def _tokens(text: str, is_message: bool) -> Iterator[Event]:
    elements = [*_with_content(list(pieces(text, html=True)), text)]
    i = 0
    while i < len(elements):
        piece = elements[i]
        raw = text[piece.begin : piece.end]
        if piece.kind == "text":
            yield from _characters(raw, is_message)
        elif piece.kind == "open" and is_protected(piece, raw):
            i = last_piece(elements, i)
            yield _protected(piece, text[piece.begin : elements[i].end])
        elif (
            piece.name in OPENED_BY or piece.name in OPENED_BY.values()
        ):  # an element without content
            yield _half_of_pair(piece, raw)
        elif piece.kind in ("open", "close"):
            yield Event("open" if piece.kind == "open" else "close", raw, name=piece.name)
        else:
            yield Event("point", raw)
        i += 1


def _with_content(elements: Sequence[Piece], text: str) -> Iterator[Piece]:
    """In XML, make pairs of elements named like HTML's empty elements, if all of them have closing tags."""
    is_empty = [piece.kind == "empty" and text[piece.end - 2] != "/" for piece in elements]
    opened = Counter(piece.name for piece, empty in zip(elements, is_empty, strict=True) if empty)
    closed = Counter(piece.name for piece in elements if piece.kind == "close")
    for piece, empty in zip(elements, is_empty, strict=True):
        yield (
            piece._replace(kind="open")
            if empty and opened[piece.name] == closed[piece.name]
            else piece
        )


def is_protected(piece: Piece, tag: str) -> bool:
    """Whether the content of an element must not be translated."""
    return (
        piece.name in WITHOUT_TEXT
        or piece.name in CODE_ELEMENTS
        or attribute(tag, "mtype") == "protected"
        or is_kept(tag)
    )


def is_kept(tag: str) -> bool:
    """Whether a tag says that its element must not be translated."""
    classes = (attribute(tag, "class") or "").split()
    return "notranslate" in classes or (attribute(tag, "translate") or "").lower() == "no"


def last_piece(markup: list[Piece], first: int) -> int:
    """The index of the last piece of an element, normally the closing tag."""
    name = markup[first].name
    opened = [name]
    names = Counter([name])
    for i in range(first + 1, len(markup)):
        piece = markup[i]
        if piece.kind == "open":
            if len(opened) == 1 and piece.name == name and name in MAY_BE_UNCLOSED:
                return i - 1
            opened.append(piece.name)
            names[piece.name] += 1
        elif piece.kind == "close":
            if not names[piece.name]:
                return i - 1
            while (closed := opened.pop()) != piece.name:
                names[closed] -= 1
            names[closed] -= 1
            if not opened:
                return i
    return len(markup) - 1


def _with_protected(tokens: Sequence[Event]) -> Iterator[Event]:
    """Join the content of each element that must not be translated, such as `<code>`, plain or escaped."""
    closing = dict[int, int]()  # index of an opening event -> index of its closing event
    opened: dict[str, list[int]] = {}
    for i, event in enumerate(tokens):
        if event.kind == "open":
            opened.setdefault(event.name, []).append(i)
        elif event.kind == "close" and opened.get(event.name):
            closing[opened[event.name].pop()] = i
    i = 0
    while i < len(tokens):
        tag = unescape(tokens[i].raw)
        piece = Piece("open", 0, len(tag), tokens[i].name.removeprefix("<").lower())
        if i in closing and closing[i] > i + 1 and is_protected(piece, tag):
            raw = "".join(event.raw for event in tokens[i : closing[i] + 1])
            yield _protected(piece, raw)
            i = closing[i]
        else:
            yield tokens[i]
        i += 1


def _protected(piece: Piece, raw: str) -> Event:
    """The event of an element that must not be translated, such as "open" for <bpt> or "word" for a short <code>."""
    if piece.name in ("bpt", "ept"):
        return _half_of_pair(piece, raw)
    markup = raw if raw.startswith("<") else unescape(unescape(raw))
    content = "".join(
        markup[inner.begin : inner.end]
        for inner in pieces(markup, html=True)
        if inner.kind == "text"
    )
    shown = MARKUP_BLANKS.sub(" ", unescape(content)).strip()
    is_word = (
        piece.name not in WITHOUT_TEXT
        and 0 < len(shown) <= MAX_INLINE_CODE_CHARACTERS
        and "\n" not in shown
    )
    return Event("word", raw, shown) if is_word else Event("point", raw)


def _half_of_pair(piece: Piece, raw: str) -> Event:
    """The event of an element that opens or closes a pair, such as XLIFF's <bpt id="1"> and <ept id="1">."""
    reference = next(
        (value for name in PAIR_ATTRIBUTES if (value := attribute(raw, name)) is not None), ""
    )
    return Event(
        "close" if piece.name in OPENED_BY else "open",
        raw,
        name=f"{OPENED_BY.get(piece.name, piece.name)} {reference}",
    )


def _characters(text: str, is_message: bool) -> Iterator[Event]:
    """Split the text between tags into events for plain text, entities and placeholders."""
    done = 0
    found = IN_MARKUP[is_message].finditer(text) if IN_ALL[is_message].search(text) else ()
    for match in found:
        yield from text_event(text[done : match.start()])
        raw = match.group()
        done = match.end()
        if match["name"]:
            kind: EventKind = "word" if EMPTY_TAG.search(raw) else "open"
            kind = "close" if match["slash"] else kind
            yield Event(kind, raw, unescape(raw), f"<{match['name']}")
            continue
        character = decoded(raw) if ENTITY.fullmatch(raw) else None
        # A page may explain how to write &eacute;, but a program's message hardly does.
        inner = unescape(unescape(raw)) if is_message and raw.startswith("&amp;") else ""
        if inner in ("'", "’") or inner.isalpha():
            character = inner
        if not is_placeholder(match):
            yield from text_event(raw)
        elif character is not None:
            yield Event("character", raw, character)
        elif shown := unescape(raw):
            yield Event("word", raw, shown)
        else:  # an entity without a character, such as &#1;
            yield Event("point", raw)
    yield from text_event(text[done:])
