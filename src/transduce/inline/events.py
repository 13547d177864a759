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
    """A kind of markup or placeholder: a verbose regular expression, and examples that a test checks."""

    name: str
    pattern: str
    examples: tuple[str, ...]  # the pattern must match each example from its begin to its end
    after: str = ""  # what follows an example, if the pattern depends on it
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
        ("https://a.b/c?d=e", "ftp://a.b/c_(d)", "www.例子.com", "http://a.b/{id}/中文"),
    ),
    Syntax(
        "mail address",
        rf"""
        (?:(?<![\w.+-])|(?<=[{TOUCHING}]))(?:(?![{TOUCHING}])[\w.+-]){{1,64}}
        @(?:(?![{TOUCHING}])[\w-]){{1,63}}(?:\.(?:(?![{TOUCHING}])[\w-]){{1,63}})+""",
        ("a.b+c@mail.example.org",),
    ),
    Syntax(
        "Windows: path",
        r"(?<!\w)[A-Za-z]:\\[\w.$-]{2}[^\s\"'<>|]*+(?<![.,;:!?)])",
        ("C:\\new\\a.txt",),
    ),
    Syntax("i18next: other message", rf"\$t\({PARENTHESES}\)", ("$t(key)", "$t(key, {(1)})")),
    Syntax("Handlebars, i18next: unescaped", r"\{\{\{[^{}\n]*+\}\}\}", ("{{{name}}}",)),
    Syntax("Symfony, Jinja: variable", r"\{\{[^{}\n]*+\}\}", ("{{ limit }}",)),
    Syntax("Django: tag", r"\{%[^%{}\n]*+%\}", ("{% url %}",)),
    Syntax(
        "ERB, EJS, PHP",
        rf"{LT}(?P<code>[%?])(?:(?!(?P=code){GT})[^\n]){{0,200}}+(?P=code){GT}",
        ("<%= name %>", "<?= $name ?>", "&lt;%- a > b %&gt;"),
    ),
    Syntax("ICU: message with branches", BRANCHES, ("{n, plural, one {a {b}} other {#}}",)),
    Syntax(
        "ICU, Java: number, date",
        r"\{\s?\w++,\s?(?:number|date|time|spellout|ordinal|duration)(?:,[^{}\n]*+)?\}",
        ("{0,number,#.#}", "{day, date, long}"),
    ),
    Syntax(
        "C#, Python: date",
        r"""\{\d++(?:,[ ]?-?\d++(?::[^{}\n]*+)?|:[^{}\n]*+)\}
        | \{\w++:(?:[yMdHhmsfFtzKgG][yMdHhmsfFtzKgG:/.,'\s-]*+|[^{}\n%]*+%[^{}\n]*+)\}""",
        ("{0:yyyy-MM-dd HH:mm}", "{1,-5:N2}", "{day:dd. MM. yyyy}", "{day:%d. %B}"),
    ),
    Syntax(
        "str.format, shell, Ruby",
        r"[$\#%]?\{[^{}\s]*+\}",
        ("{0}", "${HOME}", "#{name}", "%{count}"),
    ),
    Syntax(
        "Fluent, and names between blanks",
        r"""[$\#%]?\{[ ]?(?:[$-]?[A-Za-z][\w.-]*+ | (?:[A-Z]++|-[\w-]++)\([^(){}\n]*+\) | "[^"{}\n]*+")[ ]?\}""",
        (
            "{ $count }",
            "{ -brand-name }",
            "${ name }",
            "{ NUMBER($n, minimumFractionDigits: 2) }",
            '{ "" }',
        ),
    ),
    Syntax("wiki: link", r"\[\[[^\[\]\n]++\]\]", ("[[Main page]]", "[[File:A.png|thumb]]")),
    Syntax("Chrome: name", r"\$[A-Za-z]\w*+\$(?!\w)", ("$PLACE$", "$user_name$")),
    Syntax("WordPress: name", r"%%\w++%%", ("%%title%%",)),
    Syntax("escaped per cent sign", "%%", ("%%",)),
    Syntax("iOS: plural", r"%\#@\w++@", ("%#@days@",)),
    Syntax("gettext: macro of C", rf"%[-+\#0]*+\d*+{LT}PRI\w++{GT}", ("%<PRIu64>", "%-5<PRId32>")),
    Syntax("C: grouped digits", r"(?<!\d)%'\d*+[diufF](?![A-Za-z])", ("%'d", "%'9f")),
    Syntax("Ruby: name", rf"(?<!\d)%{LT}\w++{GT}{PRINTF}(?![A-Za-z])", ("%<name>s", "%<rate>.2f")),
    Syntax("Python: name, C: number", rf"%(?:\([^()\s]++\)|\d++\$){PRINTF}", ("%(name)s", "%1$d")),
    Syntax("C: conversion", rf"%{PRINTF}(?![A-Za-z])", ("%s", "%-5.2f", "%lld", "%@")),
    Syntax(
        "C: before a unit",
        rf"(?<!\d)%{PRINTF}(?=(?:{UNITS})(?![A-Za-z]))",
        ("%d", "%.1f"),
        after="px",
    ),
    Syntax("Symfony: name", r"%[A-Za-z_][\w.]*+%", ("%name%", "%user.id%")),
    Syntax(
        "Java: date",
        r"%\d++\$[tT]?[A-Za-z] | (?<!\d)(?<!\d\s)%[tT][A-Za-z](?!\w)",
        ("%1$tY", "%2$B", "%tY"),
    ),
    Syntax("Windows: number", r"%\d++![^!\s]{1,20}!", ("%1!s!", "%2!08x!")),
    Syntax(
        "Drupal: emphasised",
        r"(?<![\w%])(?<!\d\s)%[a-z][a-z0-9_]++(?:-[a-z0-9_]++)*+",
        ("%name", "%node-type"),
        in_messages=True,
    ),
    Syntax(
        "C: before a word, unlike in 100 %sure",
        r"(?<!\S)(?<!\d\s)%s(?=[A-Za-z])",
        ("%s",),
        after="files",
    ),
    Syntax("Qt, unlike %50 in Turkish", r"(?<![\d%])%(?:L?\d|n)(?!\w)", ("%1", "%L2", "%n")),
    Syntax("strftime", r"(?<![\d%])%[-_0^\#]?[YmHMSBbAyIpjZz](?![A-Za-z])", ("%Y", "%-H")),
    Syntax(
        "escaped entity",
        ENTITIES.replace("&", "&(?:amp;){1,3}"),
        ("&amp;nbsp;", "&amp;amp;", "&amp;#160;"),
    ),
    Syntax("entity", ENTITIES, ("&nbsp;", "&#160;", "&#xA0;")),
    Syntax(
        "Drupal, Laravel, Vue, Autoconf",
        r"(?<![\w@!:./\\])(?:@\w++@|(?:[@!]|@?:)[A-Za-z_]\w*+(?:-\w++)*+(?:\.\w++)*+)",
        ("@site", "!url", ":name", "@:common.title", "@EMAIL@"),
        in_messages=True,
    ),
    Syntax(
        "MediaWiki: number, unlike a price",
        r"(?<![\w$])\$[1-9](?![.,]?\d|\s?(?:[kKMB]|[mb]illion|per|each|USD)\b|[ ]a[ ]|/)",
        ("$1", "$2"),
        in_messages=True,
    ),
    Syntax(
        "shell, PHP: variable", r"(?<![\w$])\$[A-Za-z_]\w*+", ("$HOME", "$name"), in_messages=True
    ),
    Syntax("Mozilla: number", r"(?<![\w#&])\#[1-9](?!\w)", ("#1",), in_messages=True),
    Syntax(
        "Perl: number; Drupal: token",
        r"\[(?:_\d|[a-z][\w-]*+(?::[\w-]++)++)\]",
        ("[_1]", "[site:name]"),
        in_messages=True,
    ),
    Syntax(
        "i18next, Chrome: name", r"(?<!\w)__[A-Za-z]\w*?__(?!\w)", ("__count__",), in_messages=True
    ),
    Syntax("Mailchimp: name", r"\*\|\w++\|\*", ("*|FNAME|*",), in_messages=True),
    Syntax(
        "escaped line break",
        r"(?<![:\\])\\(?:[nN]|[rt](?![a-z]))(?!\w*+\\)",
        (r"\n", r"\N"),
        in_messages=True,
    ),
]
LIGHT_MARKUP = [
    Syntax(
        "reStructuredText: role, with or without a domain",
        r"(?::[A-Za-z][\w.+-]{0,40}+){1,4}+:`[^`\n]++`",
        (":func:`x`", ":py:meth:`~a.b`"),
    ),
    Syntax("code", r"``(?:[^`\n]|`(?!`))++``", ("``code``", "``a`b``")),
    Syntax(
        "code in Markdown or a reference, but not `a' in GNU style",
        r"(?<!\w)`[^`\s](?:[^`<\n]*[^`<\s])?+`_{0,2}(?!\w)",
        ("`ls -l`", "`x`_", "`x`__"),
    ),
    Syntax("reStructuredText: footnote", r"\[\#?[\w*-]++\]_", ("[1]_", "[#note]_", "[*]_")),
    Syntax("reStructuredText: substitution", r"(?<![^\s(])\|[\w.-]++\|(?!\w)", ("|version|",)),
]
INLINE_TAGS = [
    Syntax(
        "WebVTT: time, reading of a word",
        r"(?P<time><(?:\d{2,6}+:)?\d\d:\d\d\.\d{3}>|<rt(?:\.[^\s<>]++)?+>[^<>\n]*+(?:</rt>|(?=</ruby>)))",
        ("<00:01.000>", "<01:00:01.000>", "<rt>kan</rt>"),
    ),
    Syntax(
        "WebVTT: voice",
        r"(?P<voice><v(?:\.[^\s<>]++)*+[ \t][^<>\n]*+>)",
        ("<v O'Neil>", "<v.loud Ann>"),
    ),
    Syntax(
        "tag, also an escaped one",
        rf"""(?:<|(?P<escaped>&(?:amp;)?lt;))(?P<slash>/?){TAG_NAME}(?(escaped){ESCAPED_END}
        |(?:[ \t](?:[^<>"'\n]|"[^"<>\n]*+"|'[^'<>\n]*+')*+)?/?>)""",
        (
            "<b>",
            "</a>",
            "<a href='x' id=y>",
            "<br/>",
            "<0>",
            "&lt;a id=&quot;x&quot;&gt;",
            "&lt;br/&gt;",
        ),
    ),
]
PAIRED_SIGNS = [
    Syntax(
        "reStructuredText: link",
        r"(?P<link>`)[^`<>\s]++(?:\s++[^`<>\s]++)*+(?P<address>\s++<[^`<>]++>`_{1,2})",
        ("`text <https://a.b>`_",),
    ),
    Syntax(
        "Markdown: stress, unless escaped",
        r"(?<![\w*\\])(?P<stress>\*\*?)(?=[^\s*.|])[^*]++(?<=[^\s*\\])(?P<stressed>(?P=stress))(?![\w*])",
        ("*text*", "**a text**"),
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
        return (
            Event("word", raw, raw, name)
            if EMPTY_TAG.search(raw)
            else Event("open", raw, name=name)
        )
    shown = unescape(raw)
    if shown in ("'", "’") or (shown != raw and shown.isalpha()):
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
