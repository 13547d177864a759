"""Splits a text into plain text, tags and placeholders."""

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from transduce.text.formats import PLAIN_TEXT, TextKind

# Every pattern takes linear time, since its quantifiers are possessive or bounded.
ENTITY = re.compile(r"&(?:#[0-9]{1,7}+|#[xX][0-9a-fA-F]{1,6}+|[A-Za-z][A-Za-z0-9]{0,31}+);")
LONG_NUMBER = re.compile("&#[0-9]{4000,}+")  # int() refuses more than 4300 digits
ENTITIES = ENTITY.pattern.replace("#", r"\#")  # "#" begins a comment in a verbose pattern
PRINTF = r"[-+\#0]*+(?:\d++|\*)?(?:\.(?:\d++|\*))?(?:I64|I32|[hlLqjzt]{0,2})[diouxXeEfFgGcrsSa@]"
UNNUMBERED = re.compile(f"%{PRINTF}")
# Letters of scripts without spaces between words, in a set of characters of a regular expression.
IDEOGRAPHS = r"\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\U00020000-\U0003ffff"  # and kana
SPACELESS = rf"\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff{IDEOGRAPHS}"
TOUCHING = rf"{SPACELESS}\uac00-\ud7af"  # also Korean, which writes particles directly behind a foreign word
# Wide punctuation, such as the full stop and the comma of Chinese.
WIDE_SIGNS = r"\u3000-\u3004\u3008-\u303f\uff00-\uffef"
VOWEL_SIGNS = (  # and other marks that are part of words, but not of \w
    r"\u0300-\u036f\u0591-\u05bd\u064b-\u065f\u0900-\u0963\u0966-\u0dff"
    r"\u0e31-\u0e4e\u0eb1-\u0ece\u102b-\u103e\u17b4-\u17d3"
)
# ։ ، ؛ ؟ ۔ । ॥ ። and so on.
OTHER_STOPS = r"\u0589\u060c\u061b\u061f\u06d4\u0964\u0965\u1361-\u1368"
# A tag next to such a character needs no blank, but the tag's place in the translation may need a blank.
NO_BLANK = f"{SPACELESS}{WIDE_SIGNS}"
UNITS = "x|px|pt|[kKMGT]?i?B|[hms]|[mµn]s|min|sec|th"  # may follow a conversion such as %d directly
LT = "(?:<|&(?:amp;)?lt;)"  # plain or escaped
GT = "(?:>|&(?:amp;)?gt;)"
# Digits, too: <0>text</0> is usual in JavaScript.
TAG_NAME = rf"(?P<name>[A-Za-z][\w:.-]*+|\d{{1,3}}(?=/?{GT}))"
# The end of an escaped tag.
ESCAPED_END = r"(?:[ \t](?:(?!&(?:amp;)?[lg]t;)[^<>\n])*?)?/?&(?:amp;)?gt;"
PARENTHESES = r"(?:[^()\n]++|\([^()\n]*+\))*+"
BRACED = r"[^{}]*+"  # text with nested pairs of braces, up to three deep
for _ in range(3):
    BRACED = rf"(?:[^{{}}]++|\{{{BRACED}\}})*+"
BRANCHES = rf"\{{\s*+\w++\s*+,\s*+(?:plural|select|selectordinal|choice)\s*+,{BRACED}\}}"
WITH_BRANCHES = re.compile(BRANCHES)


class Syntax(NamedTuple):
    """A kind of markup or placeholder. tests/inline/test_events.py has examples of each."""

    name: str
    pattern: str  # a verbose regular expression
    in_messages: bool = False  # whether the pattern applies only to a program's messages


PLACEHOLDERS = [  # an earlier pattern takes precedence over a later one
    Syntax(
        "web address",  # may have a Chinese path, but ends before Chinese words that follow
        rf"""
        (?:\b|(?<=[{TOUCHING}]))(?:(?:https?|ftp)://|www\.)
        (?:\([^\s()<>"]*+\)|\[[^\s\[\]<>"]*+\]|\{{[^\s{{}}<>"]*+\}}
          |(?!&(?:lt|gt|quot|apos|nbsp|\#\w+);)(?:[^\s<>"'`“”„‘’‚«»‹›\])}}{TOUCHING}{WIDE_SIGNS}] | ’(?=\w)
            |(?:(?<=//)|(?<=www\.))[{TOUCHING}][\w{TOUCHING}-]*+(?:\.(?:(?:(?![{TOUCHING}])[\w-])++|[{TOUCHING}]++))++
            |(?<=[/=_{TOUCHING}-])[{TOUCHING}]))+
        (?<![.,;:!?…{OTHER_STOPS}])""",
    ),
    Syntax(
        "mail address",
        rf"""
        (?:(?<![\w.+-])|(?<=[{TOUCHING}]))(?:(?![{TOUCHING}])[\w.+-]){{1,64}}
        @(?:(?![{TOUCHING}])[\w-]){{1,63}}(?:\.(?:(?![{TOUCHING}])[\w-]){{1,63}})+""",
    ),
    Syntax("Windows: path", r"(?<!\w)[A-Za-z]:\\[\w.$-]{2}[^\s\"'<>|]*+(?<![.,;:!?)])"),
    Syntax("i18next: other message", rf"\$t\({PARENTHESES}\)"),
    Syntax("Handlebars, i18next: unescaped", r"\{\{\{[^{}\n]*+\}\}\}"),
    Syntax("Symfony, Jinja: variable", r"\{\{[^{}\n]*+\}\}"),
    Syntax("Django: tag", r"\{%[^%{}\n]*+%\}"),
    Syntax(
        "ERB, EJS, PHP", rf"{LT}(?P<code>[%?])(?:(?!(?P=code){GT})[^\n]){{0,200}}+(?P=code){GT}"
    ),
    Syntax("ICU: message with branches", BRANCHES),
    Syntax(
        "ICU, Java: number, date",
        r"\{\s?\w++,\s?(?:number|date|time|spellout|ordinal|duration)(?:,[^{}\n]*+)?\}",
    ),
    Syntax(
        "C#, Python: date",
        r"""\{\d++(?:,[ ]?-?\d++(?::[^{}\n]*+)?|:[^{}\n]*+)\}
        | \{\w++:(?:[yMdHhmsfFtzKgG][yMdHhmsfFtzKgG:/.,'\s-]*+|[^{}\n%]*+%[^{}\n]*+)\}""",
    ),
    Syntax("Aegisub: style", r"\{\\[^{}\n]*+\}"),
    Syntax("str.format, shell, Ruby", r"[$\#%]?\{[^{}\s]*+\}"),
    Syntax(
        "Fluent, and names between blanks",
        r"""[$\#%]?\{[ ]?(?:[$-]?[A-Za-z][\w.-]*+ | (?:[A-Z]++|-[\w-]++)\([^(){}\n]*+\) | "[^"{}\n]*+")[ ]?\}""",
    ),
    Syntax("wiki: link", r"\[\[[^\[\]\n]++\]\]"),
    Syntax("Chrome: name", r"\$[A-Za-z]\w*+\$(?!\w)"),
    Syntax("WordPress: name", r"%%\w++%%"),
    Syntax("escaped per cent sign", "%%"),
    Syntax("iOS: plural", r"%\#@\w++@"),
    Syntax("gettext: macro of C", rf"%[-+\#0]*+\d*+{LT}PRI\w++{GT}"),
    Syntax("C: grouped digits", r"(?<!\d)%'\d*+[diufF](?![A-Za-z])"),
    Syntax("Ruby: name", rf"(?<!\d)%{LT}\w++{GT}{PRINTF}(?![A-Za-z])"),
    Syntax("Python: name, C: number", rf"%(?:\([^()\s]++\)|\d++\$){PRINTF}"),
    Syntax("C: conversion", rf"%{PRINTF}(?![A-Za-z])"),
    Syntax("C: before a unit", rf"(?<!\d)%{PRINTF}(?=(?:{UNITS})(?![A-Za-z]))"),
    Syntax("Symfony: name", r"%[A-Za-z_][\w.]*+%"),
    Syntax("Java: date", r"%\d++\$[tT]?[A-Za-z] | (?<!\d)(?<!\d\s)%[tT][A-Za-z](?!\w)"),
    Syntax("Windows: number", r"%\d++![^!\s]{1,20}!"),
    Syntax(
        "Drupal: emphasised",
        r"(?<![\w%])(?<!\d\s)%[a-z][a-z0-9_]++(?:-[a-z0-9_]++)*+",
        in_messages=True,
    ),
    Syntax("C: before a word, unlike in 100 %sure", r"(?<!\S)(?<!\d\s)%s(?=[A-Za-z])"),
    Syntax("Qt, unlike %50 in Turkish", r"(?<![\d%])%(?:L?\d|n)(?!\w)"),
    Syntax("strftime", r"(?<![\d%])%[-_0^\#]?[YmHMSBbAyIpjZz](?![A-Za-z])"),
    Syntax("escaped entity", ENTITIES.replace("&", "&(?:amp;){1,3}")),
    Syntax("entity", ENTITIES),
    Syntax(
        "Drupal, Laravel, Vue, Autoconf",
        r"(?<![\w@!:./\\])(?:@\w++@|(?:[@!]|@?:)[A-Za-z_]\w*+(?:-\w++)*+(?:\.\w++)*+)",
        in_messages=True,
    ),
    Syntax(
        "MediaWiki: number, unlike a price",
        r"(?<![\w$])\$[1-9](?![.,]?\d|\s?(?:[kKMB]|[mb]illion|per|each|USD)\b|[ ]a[ ]|/)",
        in_messages=True,
    ),
    Syntax("shell, PHP: variable", r"(?<![\w$])\$[A-Za-z_]\w*+", in_messages=True),
    Syntax("Mozilla: number", r"(?<![\w#&])\#[1-9](?!\w)", in_messages=True),
    Syntax(
        "Perl: number; Drupal: token",
        r"\[(?:_\d|[a-z][\w-]*+(?::[\w-]++)++)\]",
        in_messages=True,
    ),
    Syntax("i18next, Chrome: name", r"(?<!\w)__[A-Za-z]\w*?__(?!\w)", in_messages=True),
    Syntax("Mailchimp: name", r"\*\|\w++\|\*", in_messages=True),
    Syntax(
        "escaped line break",
        r"(?<![:\\])\\(?:[nN]|[rt](?![a-z]))(?!\w*+\\)",
        in_messages=True,
    ),
]
LIGHT_MARKUP = [
    Syntax(
        "reStructuredText: role, with or without a domain",
        r"(?::[A-Za-z][\w.+-]{0,40}+){1,4}+:`[^`\n]++`",
    ),
    Syntax("code", r"``(?:[^`\n]|`(?!`))++``"),
    Syntax(
        "code in Markdown or a reference, but not `a' in GNU style",
        r"(?<!\w)`[^`\s](?:[^`<\n]*[^`<\s])?+`_{0,2}(?!\w)",
    ),
    Syntax("reStructuredText: footnote", r"\[\#?[\w*-]++\]_"),
    Syntax("reStructuredText: substitution", r"(?<![^\s(])\|[\w.-]++\|(?!\w)"),
]
INLINE_TAGS = [
    Syntax(
        "WebVTT: time, reading of a word",
        r"(?P<time><(?:\d{2,6}+:)?\d\d:\d\d\.\d{3}>|<rt(?:\.[^\s<>]++)?+>[^<>\n]*+(?:</rt>|(?=</ruby>)))",
    ),
    Syntax("WebVTT: voice", r"(?P<voice><v(?:\.[^\s<>]++)*+[ \t][^<>\n]*+>)"),
    Syntax(
        "tag, also an escaped one",
        rf"""(?:<|(?P<escaped>&(?:amp;)?lt;))(?P<slash>/?){TAG_NAME}(?(escaped){ESCAPED_END}
        |(?:[ \t](?:[^<>"'\n]|"[^"<>\n]*+"|'[^'<>\n]*+')*+)?/?>)""",
    ),
]
PAIRED_SIGNS = [
    Syntax(
        "reStructuredText: link",
        r"(?P<link>`)[^`<>\s]++(?:\s++[^`<>\s]++)*+(?P<address>\s++<[^`<>]++>`_{1,2})",
    ),
    Syntax(
        "Markdown: stress, unless escaped",
        r"(?<![\w*\\])(?P<stress>\*\*?)(?=[^\s*.|])[^*]++(?<=[^\s*\\])(?P<stressed>(?P=stress))(?![\w*])",
    ),
]
SYNTAXES = [*PAIRED_SIGNS, *INLINE_TAGS, *LIGHT_MARKUP, *PLACEHOLDERS]


def any_of(syntaxes: Sequence[Syntax], *, messages: bool) -> str:
    """A verbose regular expression for all syntaxes; those `in_messages` only if `messages` is true."""
    return " | ".join(each.pattern for each in syntaxes if messages or not each.in_messages)


MARKUP_BLANKS = re.compile(r"[ \t\r\n\f]+")
# By TextKind.message: the full pattern, and a quick test for characters that every match contains.
IN_PLAIN_TEXT = {
    messages: re.compile(any_of(SYNTAXES, messages=messages), re.VERBOSE)
    for messages in (False, True)
}
IN_ALL = {
    False: re.compile(r"[`*<\[|:@{%&$]|www\."),
    True: re.compile(r"[`*<\[|:@{%&$!#\\_]|www\."),
}

EMPTY_TAG = re.compile(f"/{GT}$")
EventKind = Literal["text", "character", "open", "close", "point", "word"]


class Event(NamedTuple):
    """A piece of a text, such as a tag or a placeholder. Joining the `raw` fields of all events gives the text."""

    kind: EventKind  # character: an entity for a character; point: a tag between words; word: a placeholder
    raw: str
    shown: str = ""  # the character or placeholder without markup
    name: str = ""  # the same in an opening event and its closing event


def plain_events(text: str, kind: TextKind = PLAIN_TEXT) -> Iterator[Event]:
    """Split plain text into events."""
    return with_unpaired_words(list(_plain_tokens(text, kind.message)))


def with_unpaired_words(tokens: Sequence[Event]) -> Iterator[Event]:
    """Unpaired tags in plain text, such as `<file>` in `Usage: <file>`, become placeholders."""
    unpaired = {i for i, event in enumerate(tokens) if event.name.startswith("<")}
    opened = list[int]()
    names = Counter[str]()
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
        yield Event("word", event.raw, event.shown or event.raw) if i in unpaired else event


def _plain_tokens(text: str, is_message: bool) -> Iterator[Event]:
    done = 0
    pattern = IN_PLAIN_TEXT[is_message]
    open_pairs = list[re.Match[str]]()
    match = IN_ALL[is_message].search(text) and pattern.search(text)
    while match or open_pairs:
        close = len(text)
        if open_pairs:
            close = open_pairs[-1].start("address" if open_pairs[-1]["link"] else "stressed")
        if match is None or match.end() > close:
            pair = open_pairs.pop()
            yield from text_event(text[done:close])
            done = pair.end()
            yield Event("close", text[close:done], name=f"{pair.start()}")
        else:
            yield from text_event(text[done : match.start()])
            done = match.end()
            if match["link"] or match["stress"]:
                open_pairs.append(match)
                done = match.end("link" if match["link"] else "stress")
                yield Event("open", text[match.start() : done], name=f"{match.start()}")
            else:
                yield _event(match) if is_placeholder(match) else Event("text", match.group())
        if match and match.start() < done:
            match = pattern.search(text, done)
    yield from text_event(text[done:])


def _event(match: re.Match[str]) -> Event:
    """The event of a tag, a placeholder or an entity."""
    raw = match.group()
    if match["voice"]:
        return Event("open", raw, name="<v")
    if match["name"]:
        name = f"<{match['name'].partition('.')[0]}"  # WebVTT: </c> closes <c.red>
        if match["slash"]:
            return Event("close", raw, name=name)
        return Event("word", raw, raw) if EMPTY_TAG.search(raw) else Event("open", raw, name=name)
    shown = unescape(raw)
    if shown in ("'", "’") or shown.isalpha():
        return Event("character", raw, shown)  # part of a word
    return Event("point" if match["time"] else "word", raw, raw)


def is_placeholder(match: re.Match[str]) -> bool:
    """Whether a match is a placeholder and no price such as `$5`: a message with `$2` must also have `$1`."""
    raw = match.group()
    lower = range(1, int(raw[1])) if re.fullmatch(r"\$\d", raw) else ()
    return all(f"${number}" in match.string for number in lower)


def unescape(text: str) -> str:
    """Replace entities by their characters, as HTML does."""
    # A shorter number that is also invalid.
    return html.unescape(LONG_NUMBER.sub("&#9999999", text))


def text_event(text: str) -> Iterator[Event]:
    """Yield a text event, unless the text is empty."""
    if text:
        yield Event("text", text)
