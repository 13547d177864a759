"""A text as events: stretches of text, tags that open and close, placeholders that stand for words.

Every pattern takes time linear in the text: its quantifiers are possessive or bounded.
"""

import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from typing import Literal, NamedTuple

from transduce.text.markup import ENTITY, Piece, attribute, decoded, pieces

MAX_CODE_CHARACTERS = 40  # of an element of code that stays in the text as a word, for a model to copy
WITHOUT_TEXT = frozenset(
    ["bpt", "ept", "it", "ph", "ut", "script", "style", "svg", "math", "object", "textarea", "select"]
)  # elements whose content is no text
CODE_ELEMENTS = frozenset(["code", "kbd", "samp", "var", "tt"])
MAY_BE_UNCLOSED = frozenset(["p", "li", "dt", "dd", "td", "th", "tr", "option"])  # the next one ends it
OPENED_BY = {"ept": "bpt", "ex": "bx", "ec": "sc"}  # XLIFF has an empty element for each end of a pair
PAIR_ATTRIBUTES = ("startref", "rid", "i", "id")  # equal in both of them

ENTITIES = ENTITY.pattern.replace("#", r"\#")  # "#" begins a comment in a verbose pattern
PLACEHOLDER = rf"""
      \b(?:(?:https?|ftp)://|www\.)(?:(?!&(?:lt|gt|quot|apos|nbsp|\#\w+);)[^\s<>"'`\])}}])+(?<![.,;:!?])
    | (?<![\w.+-])[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}})+
    | \{{\{{[^{{}}\n]*+\}}\}} | \{{%[^%{{}}\n]*+%\}}     # Symfony, Jinja, Django
    | [$\#%]?\{{[^{{}}\s]*+\}}                       # str.format, shell, Ruby
    | %%
    | %(?:\([^()\s]++\)|\d++\$)?[-+\#0]*+(?:\d++|\*)?(?:\.(?:\d++|\*))?[hlLqjzt]{{0,2}}[diouxXeEfFgGcrsa@](?![A-Za-z])
    | %[A-Za-z_][\w.]*+%                             # Symfony
    | {ENTITIES}
"""
LIGHT_MARKUP = r"""
      (?::[A-Za-z][\w.+-]{0,40}+){1,4}+:`[^`\n]++`   # reStructuredText: a role, perhaps of a domain
    | ``(?:[^`\n]|`(?!`))++``                          # code
    | `[^`\s][^`<\n]*+`_{0,2}                          # code in Markdown, a reference
    | \[\#?[\w*-]++\]_                               # a footnote
    | (?<![^\s(])\|[\w.-]++\|(?!\w)                  # a substitution
"""
PLAIN_TAG = r"""<(?P<slash>/?)(?P<name>[A-Za-z][\w:.-]*+)(?:\s(?:[^<>"'\n]|"[^"<>\n]*+"|'[^'<>\n]*+')*+)?/?>"""
LINK = r"(?P<link>`)[^`<>\s]++(?:\s++[^`<>\s]++)*+(?P<address>\s++<[^`<>]++>`_{1,2})"  # `text <address>`_
STRESS = r"(?<![\w*\\])(?P<stress>\*\*?)(?=[^\s*])[^*]++(?<=[^\s*\\])(?P<stressed>(?P=stress))(?![\w*])"  # not \*
IN_MARKUP = re.compile(PLACEHOLDER, re.VERBOSE)
IN_PLAIN_TEXT = re.compile(f"{LINK} | {STRESS} | {PLAIN_TAG} | {LIGHT_MARKUP} | {PLACEHOLDER}", re.VERBOSE)
MARKUP_BLANKS = re.compile(r"[ \t\r\n\f]+")


TextKind = Literal["plain", "markup", "preserved"]  # preserved: markup in which every blank counts
EventKind = Literal["text", "character", "open", "close", "point", "word"]


class Event(NamedTuple):
    """A stretch of a text; the `raw` of all events, joined, are the text."""

    kind: EventKind  # character: an entity for one; point: between words; word: a placeholder
    raw: str
    shown: str = ""  # a character or a word as it is in the text without markup
    name: str = ""  # equal in an opening and its closing event


def events(text: str, *, markup: bool) -> Iterator[Event]:
    """The events of a text: of XML or HTML (`markup`), or of plain text, which may hold tags too."""
    return _markup_events(text) if markup else _plain_events(text)


def _plain_events(text: str) -> Iterator[Event]:
    """The events of plain text; a tag without its other half stands for a word (`Usage: <file>`)."""
    tokens = list(_plain_tokens(text))
    unpaired = {i for i, event in enumerate(tokens) if event.name.startswith("<")}
    opened, names = list[int](), Counter[str]()
    for i, event in enumerate(tokens):
        if event.kind == "open":
            opened.append(i)
            names[event.name] += 1
        elif event.kind == "close" and names[event.name]:
            while tokens[partner := opened.pop()].name != event.name:
                names[tokens[partner].name] -= 1
            names[event.name] -= 1
            unpaired -= {partner, i}
    for i, event in enumerate(tokens):
        yield Event("word", event.raw, event.raw) if i in unpaired else event


def _plain_tokens(text: str) -> Iterator[Event]:
    done, open_pairs, match = 0, list[re.Match[str]](), IN_PLAIN_TEXT.search(text)
    while match or open_pairs:
        close = open_pairs[-1].start(_closing_group(open_pairs[-1])) if open_pairs else len(text)
        if match is None or match.end() > close:
            pair = open_pairs.pop()
            yield from _text(text[done:close])
            done = pair.end()
            yield Event("close", text[close:done], name=f"{pair.start()}")
        else:
            yield from _text(text[done : match.start()])
            done = match.end()
            if match["link"] or match["stress"]:
                open_pairs.append(match)
                done = match.end("link" if match["link"] else "stress")
                yield Event("open", text[match.start() : done], name=f"{match.start()}")
            elif match["name"]:
                kind: EventKind = "close" if match["slash"] else "word" if match.group().endswith("/>") else "open"
                yield Event(kind, match.group(), match.group() if kind == "word" else "", f"<{match['name']}")
            else:
                yield Event("word", match.group(), match.group())
        if match and match.start() < done:
            match = IN_PLAIN_TEXT.search(text, done)
    yield from _text(text[done:])


def _closing_group(pair: re.Match[str]) -> str:
    return "address" if pair["link"] else "stressed"


def _text(text: str) -> Iterator[Event]:
    if text:
        yield Event("text", text)


def _markup_events(text: str) -> Iterator[Event]:
    """The events of markup: short elements of code are words, comments and the like are points."""
    elements = list(pieces(text, html=True))
    i = 0
    while i < len(elements):
        piece, raw = elements[i], text[elements[i].begin : elements[i].end]
        if piece.kind == "text":
            yield from _characters(raw)
        elif piece.kind == "open" and is_protected(piece, raw):
            i = last_piece(elements, i)
            yield _protected(piece, text[piece.begin : elements[i].end])
        elif piece.name in OPENED_BY or piece.name in OPENED_BY.values():  # without content
            yield _half_of_pair(piece, raw)
        elif piece.kind in ("open", "close"):
            yield Event("open" if piece.kind == "open" else "close", raw, name=piece.name)
        else:
            yield Event("point", raw)
        i += 1


def is_protected(piece: Piece, tag: str) -> bool:
    """Whether the content of an element must not be translated."""
    return (
        piece.name in WITHOUT_TEXT
        or piece.name in CODE_ELEMENTS
        or attribute(tag, "translate") == "no"
        or attribute(tag, "mtype") == "protected"
        or "notranslate" in (attribute(tag, "class") or "").split()
    )


def last_piece(markup: list[Piece], first: int) -> int:
    """The index of an element's closing tag, or of its last piece if another tag ends it."""
    name = markup[first].name
    opened, names = [name], Counter([name])
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


def _protected(piece: Piece, raw: str) -> Event:
    """The event of an element whose content stays: half of a pair, a word if it is short, else a point."""
    if piece.name in ("bpt", "ept"):
        return _half_of_pair(piece, raw)
    content = "".join(raw[inner.begin : inner.end] for inner in pieces(raw, html=True) if inner.kind == "text")
    shown = MARKUP_BLANKS.sub(" ", unescape(content)).strip()
    is_word = piece.name not in WITHOUT_TEXT and 0 < len(shown) <= MAX_CODE_CHARACTERS and "\n" not in shown
    return Event("word", raw, shown) if is_word else Event("point", raw)


def _half_of_pair(piece: Piece, raw: str) -> Event:
    """The event of an element that opens or closes a pair, such as XLIFF's <bpt id="1"> and <ept id="1">."""
    reference = next((value for name in PAIR_ATTRIBUTES if (value := attribute(raw, name)) is not None), "")
    opens = piece.name not in OPENED_BY
    return Event("open" if opens else "close", raw, name=f"{OPENED_BY.get(piece.name, piece.name)} {reference}")


def _characters(text: str) -> Iterator[Event]:
    """The events of text between tags: text, entities and placeholders."""
    done = 0
    for match in IN_MARKUP.finditer(text):
        yield from _text(text[done : match.start()])
        raw, done = match.group(), match.end()
        character = decoded(raw) if ENTITY.fullmatch(raw) else None
        if character is not None:
            yield Event("character", raw, character)
        elif shown := unescape(raw):
            yield Event("word", raw, shown)
        else:  # an entity for nothing, such as &#1;
            yield Event("point", raw)
    yield from _text(text[done:])
