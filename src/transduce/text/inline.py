"""A text as a sequence of what is text and what isn't: tags that begin and end, placeholders that stand for words.

Every pattern is linear in the text, whatever the text is: possessive, or bounded.
"""

import re
from collections import Counter
from collections.abc import Iterator
from html import unescape
from typing import Literal, NamedTuple

from transduce.text.markup import ENTITY, Piece, attribute, decoded, pieces

LONGEST_CODE = 40  # characters of an element of code that a model may be able to copy
NATIVE = frozenset(
    ["bpt", "ept", "it", "ph", "ut", "script", "style", "svg", "math", "object", "textarea", "select"]
)  # elements without words
CODE = frozenset(["code", "kbd", "samp", "var", "tt"])
UNCLOSED = frozenset(["p", "li", "dt", "dd", "td", "th", "tr", "option"])  # ends where the next one begins
BEGINNINGS = {"ept": "bpt", "ex": "bx", "ec": "sc"}  # XLIFF's elements that end what another began
REFERENCES = ("startref", "rid", "i", "id")  # the attributes that say which

ENTITIES = ENTITY.pattern.replace("#", r"\#")  # which begins a comment in a verbose pattern
PLACEHOLDERS = rf"""
      \b(?:(?:https?|ftp)://|www\.)(?:(?!&(?:lt|gt|quot|apos|nbsp|\#\w+);)[^\s<>"'`\])}}])+(?<![.,;:!?])
    | (?<![\w.+-])[\w.+-]{{1,64}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}})+
    | \{{\{{[^{{}}\n]*+\}}\}} | \{{%[^%{{}}\n]*+%\}}     # Symfony, Jinja, Django
    | [$\#%]?\{{[^{{}}\s]*+\}}                       # str.format, shell, Ruby
    | %%
    | %(?:\([^()\s]++\)|\d++\$)?[-+\#0]*+(?:\d++|\*)?(?:\.(?:\d++|\*))?[hlLqjzt]{{0,2}}[diouxXeEfFgGcrsa@](?![A-Za-z])
    | %[A-Za-z_][\w.]*+%                             # Symfony
    | {ENTITIES}
"""
MARKED = r"""
      (?::[A-Za-z][\w.+-]{0,40}+){1,4}+:`[^`\n]++`   # reStructuredText: a role, perhaps of a domain
    | ``(?:[^`\n]|`(?!`))++``                          # code
    | `[^`\s][^`<\n]*+`_{0,2}                          # code in Markdown, a reference
    | \[\#?[\w*-]++\]_                               # a footnote
    | (?<![^\s(])\|[\w.-]++\|(?!\w)                  # a substitution
"""
TAG = r"""<(?P<slash>/?)(?P<name>[A-Za-z][\w:.-]*+)(?:\s(?:[^<>"'\n]|"[^"<>\n]*+"|'[^'<>\n]*+')*+)?/?>"""
LINK = r"(?P<link>`)[^`<>\s]++(?:\s++[^`<>\s]++)*+(?P<address>\s++<[^`<>]++>`_{1,2})"  # `text <address>`_
STRESS = r"(?<![\w*\\])(?P<stress>\*\*?)(?=[^\s*])[^*]++(?<=[^\s*\\])(?P<stressed>(?P=stress))(?![\w*])"  # not \*
IN_MARKUP = re.compile(PLACEHOLDERS, re.VERBOSE)
IN_PLAIN = re.compile(f"{LINK} | {STRESS} | {TAG} | {MARKED} | {PLACEHOLDERS}", re.VERBOSE)
BLANKS = re.compile(r"[ \t\r\n\f]+")


TextKind = Literal["plain", "markup", "preserved"]  # preserved: markup in which every blank counts
Kind = Literal["text", "character", "open", "close", "point", "word"]


class Event(NamedTuple):
    """A stretch of a text, in order; all raws together are the text."""

    kind: Kind  # a character: written as an entity
    raw: str
    shown: str = ""  # of a character and of a word: what it is in the text without markup
    name: str = ""  # of what begins and ends: what both have in common


def events(text: str, *, markup: bool) -> Iterator[Event]:
    """What a text consists of; markup: it is XML or HTML, otherwise it is plain and may hold tags all the same."""
    return _markup_events(text) if markup else _plain_events(text)


def _plain_events(text: str) -> Iterator[Event]:
    """A tag without a partner stands for a word (`Usage: <file>`)."""
    found = list(_plain_tokens(text))
    alone = {i for i, each in enumerate(found) if each.name.startswith("<")}
    opened, names = list[int](), Counter[str]()
    for i, event in enumerate(found):
        if event.kind == "open":
            opened.append(i)
            names[event.name] += 1
        elif event.kind == "close" and names[event.name]:
            while found[partner := opened.pop()].name != event.name:
                names[found[partner].name] -= 1
            names[event.name] -= 1
            alone -= {partner, i}
    for i, event in enumerate(found):
        yield Event("word", event.raw, event.raw) if i in alone else event


def _plain_tokens(text: str) -> Iterator[Event]:
    at, ends, found = 0, list[re.Match[str]](), IN_PLAIN.search(text)
    while found or ends:
        end = ends[-1].start(_closing(ends[-1])) if ends else len(text)
        if found is None or found.end() > end:
            mark = ends.pop()
            yield from _text(text[at:end])
            at = mark.end()
            yield Event("close", text[end:at], name=f"{mark.start()}")
        else:
            yield from _text(text[at : found.start()])
            at = found.end()
            if found["link"] or found["stress"]:
                ends.append(found)
                at = found.end("link" if found["link"] else "stress")
                yield Event("open", text[found.start() : at], name=f"{found.start()}")
            elif found["name"]:
                kind: Kind = "close" if found["slash"] else "word" if found.group().endswith("/>") else "open"
                yield Event(kind, found.group(), found.group() if kind == "word" else "", f"<{found['name']}")
            else:
                yield Event("word", found.group(), found.group())
        if found and found.start() < at:
            found = IN_PLAIN.search(text, at)
    yield from _text(text[at:])


def _closing(found: re.Match[str]) -> str:
    return "address" if found["link"] else "stressed"


def _text(text: str) -> Iterator[Event]:
    if text:
        yield Event("text", text)


def _markup_events(text: str) -> Iterator[Event]:
    """Elements of code are words, if they are short; what is no element is a point."""
    found = list(pieces(text, html=True))
    i = 0
    while i < len(found):
        piece, raw = found[i], text[found[i].begin : found[i].end]
        if piece.kind == "text":
            yield from _characters(raw)
        elif piece.kind == "open" and is_protected(piece, raw):
            i = last_piece(found, i)
            yield _protected(piece, text[piece.begin : found[i].end])
        elif piece.name in BEGINNINGS or piece.name in BEGINNINGS.values():  # those without content
            yield _end(piece, raw)
        elif piece.kind in ("open", "close"):
            yield Event("open" if piece.kind == "open" else "close", raw, name=piece.name)
        else:
            yield Event("point", raw)
        i += 1


def is_protected(piece: Piece, tag: str) -> bool:
    """Whether the content of an element isn't to be translated."""
    return (
        piece.name in NATIVE
        or piece.name in CODE
        or attribute(tag, "translate") == "no"
        or attribute(tag, "mtype") == "protected"
        or "notranslate" in (attribute(tag, "class") or "").split()
    )


def last_piece(found: list[Piece], first: int) -> int:
    """The place of the tag that ends an element, or of what comes last before something else ends it."""
    name = found[first].name
    inside, names = [name], Counter([name])
    for i in range(first + 1, len(found)):
        if found[i].kind == "open":
            if len(inside) == 1 and found[i].name == name and name in UNCLOSED:
                return i - 1
            inside.append(found[i].name)
            names[found[i].name] += 1
        elif found[i].kind == "close":
            if not names[found[i].name]:
                return i - 1
            while (closed := inside.pop()) != found[i].name:
                names[closed] -= 1
            names[closed] -= 1
            if not inside:
                return i
    return len(found) - 1


def _protected(piece: Piece, raw: str) -> Event:
    """An element whose content stays: one of a pair, a word if it is short, else a point."""
    if piece.name in ("bpt", "ept"):
        return _end(piece, raw)
    content = "".join(raw[each.begin : each.end] for each in pieces(raw, html=True) if each.kind == "text")
    shown = BLANKS.sub(" ", unescape(content)).strip()
    is_word = piece.name not in NATIVE and 0 < len(shown) <= LONGEST_CODE and "\n" not in shown
    return Event("word", raw, shown) if is_word else Event("point", raw)


def _end(piece: Piece, raw: str) -> Event:
    """An element that begins or ends something, as XLIFF's <bpt id="1"> and <ept id="1"> do."""
    reference = next((value for name in REFERENCES if (value := attribute(raw, name)) is not None), "")
    begins = piece.name not in BEGINNINGS
    return Event("open" if begins else "close", raw, name=f"{BEGINNINGS.get(piece.name, piece.name)} {reference}")


def _characters(text: str) -> Iterator[Event]:
    """Text, entities, and the placeholders that stand for words in it."""
    at = 0
    for found in IN_MARKUP.finditer(text):
        yield from _text(text[at : found.start()])
        raw, at = found.group(), found.end()
        character = decoded(raw) if ENTITY.fullmatch(raw) else None
        if character is not None:
            yield Event("character", raw, character)
        elif shown := unescape(raw):
            yield Event("word", raw, shown)
        else:  # such as &#1;, which stands for nothing
            yield Event("point", raw)
    yield from _text(text[at:])
