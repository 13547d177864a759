"""Random valid documents of each format, for the attack on documents."""

import html
import re
from collections.abc import Callable
from typing import NamedTuple

from document_parts import ANY, Draw, Part, Place, Style, Text, text
from document_xml import Elements, elements, inline, tmx, xliff

CONTEXTS = ["menu", "", 'a "b"']
PO_STRING = r'(?P<text>"(?:[^"\\\r\n]|\\.)*"(?:\r?\n"(?:[^"\\\r\n]|\\.)*")*)'
RULES = [
    "nplurals=1; plural=0;",
    "nplurals=2; plural=(n != 1);",
    "nplurals=3; plural=n==1 ? 0 : n<5 ? 1 : 2;",
]


def po_string(draw: Draw, plain: str, style: Style, indent: str = "") -> str:
    """A string in one line, or wrapped at random places."""
    escaped = (
        plain.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("\n", "\\n")
    )
    if draw.random() < 0.6:
        return f'"{escaped}"'
    parts = [""] * draw.randint(0, 1)
    for each in re.findall(r"(?:[^\\ ]|\\.)*(?: +|$)", escaped):
        if not parts or draw.random() < 0.3:
            parts.append("")
        parts[-1] += each
    return f"{style.newline}{indent}".join(f'"{part}"' for part in parts)


def po_text(draw: Draw, style: Style) -> Text:
    plain, word = text(draw, style)
    edges = [
        draw.choice(["", "", "", "\n", " ", "\t"]),
        draw.choice(["", "", "", "\n", " ", "\n\n"]),
    ]
    plain = plain.replace(" ", "\n", 1) if draw.random() < 0.2 else plain
    return Text(plain.join(edges), word)


def po_comments(draw: Draw, style: Style, fuzzy: bool, word: str) -> list[str]:
    flags = draw.sample(["python-format", "no-wrap", "c-format", "range: 0..9"], draw.randint(0, 2))
    if fuzzy:
        flags.append("fuzzy")
    draw.shuffle(flags)
    lines = [
        "#",
        "# a note, fuzzy?",
        f"# {word}",
        "#. extracted",
        '#. msgid "x"',
        "#: a.py:1 b.py:2",
        "#, x",
    ]
    lines = draw.sample(lines, draw.randint(0, 3))
    flag_lines = [f"#, {', '.join(flags)}"] if flags else []
    if len(flags) > 1 and draw.random() < 0.3:
        flag_lines = [f"#, {flag}" for flag in flags]
    has_previous = draw.random() < (0.7 if fuzzy else 0.1)
    previous = [f"#| msgid {po_string(draw, 'old one', style, '#| ')}"] if has_previous else []
    return [*sorted(lines, reverse=draw.random() < 0.5), *flag_lines, *previous]


def po_header(draw: Draw, style: Style, rule: str, template: bool) -> str:
    charset = (
        "CHARSET" if template and style.codec in ("utf-8", "ascii") else style.declared.upper()
    )
    fields = ["Project-Id-Version: x", f"Content-Type: text/plain; charset={charset}"]
    fields += ["Content-Transfer-Encoding: 8bit"]
    fields += draw.choice([["Language: zu"], ["Language: zu_ZA"], ["Language: "], []])
    if rule:
        fields.append(f"Plural-Forms: {rule}")
    lines = [f'"{field}\\n"' for field in fields]
    comments = draw.choice([[], ["# Title"], ["# Title", "#, fuzzy"], ["#, fuzzy"]])
    return style.newline.join([*comments, 'msgid ""', 'msgstr ""', *lines, "", ""])


def po(draw: Draw, style: Style, template: bool = False) -> list[Part]:
    """Messages with contexts, plural forms and comments; fuzzy, obsolete and translated messages; wrapped strings."""
    end = style.newline
    rule = draw.choice([*RULES, ""])
    forms = int(rule[9]) if rule else 2
    parts: list[Part] = [po_header(draw, style, rule, template)]
    for _ in range(draw.randint(0, 8)):
        said = po_text(draw, style)
        fuzzy = not template and draw.random() < 0.25
        head = po_comments(draw, style, fuzzy, said.word)
        context = (
            [f"msgctxt {po_string(draw, draw.choice(CONTEXTS), style)}"]
            if draw.random() < 0.3
            else []
        )
        if draw.random() < 0.15:  # obsolete
            lines = [*context, f"msgid {po_string(draw, said.plain, style)}", 'msgstr ""']
            old = end.join(lines).replace(end, f"{end}#~ ")
            parts.append(
                end.join([*(line for line in head if line[1:2] != "|"), f"#~ {old}", "", ""])
            )
            continue
        gap = draw.choice([" ", " ", "  ", "\t"])
        parts.append(end.join([*head, *context, f"msgid{gap}"]))
        singular = po_string(draw, said.plain, style)
        other = po_text(draw, style) if draw.random() < 0.3 else None
        if other is None:
            parts += [
                f"{singular}{end}msgstr{gap}",
                *po_target(draw, style, singular, said.word, fuzzy, template),
            ]
        else:
            plural = po_string(draw, other.plain, style)
            parts.append(f"{singular}{end}msgid_plural {plural}")
            present = 2 if template else forms
            for i in range(present):
                one = (singular, said.word) if forms > 1 and i == 0 else (plural, other.word)
                beyond = fuzzy or i >= forms
                parts += [f"{end}msgstr[{i}] ", *po_target(draw, style, *one, beyond, template)]
            for i in range(present, 0 if fuzzy else forms):
                parts += [Place("", rf"\r?\nmsgstr\[{i}\] {PO_STRING}", plural, other.word), ""]
        parts.append(end * draw.choice([1, 2, 2, 3]))
    if draw.random() < 0.2:
        parts.append(draw.choice(["# the end", '#~ msgid "gone"' + end + '#~ msgstr "weg"', "#"]))
    return parts


def po_target(
    draw: Draw, style: Style, source: str, word: str, stays: bool, template: bool
) -> list[Part]:
    is_empty = template or draw.random() < 0.6
    if is_empty:
        before = draw.choice(['""', '""', f'""{style.newline}""'])
    else:
        before = po_string(draw, text(draw, style).plain, style)
    return (
        [before]
        if stays or not (is_empty or style.redo)
        else [Place(before, PO_STRING, source, word)]
    )


# -- HTML -------------------------------------------------------------------------------------------------

HTML_INLINE = elements(
    """<b>…</b> ; <A HREF='x?a=1&amp;b=2'>…</A> ; <span class="a > b">…</span> ; <br> ; <br/> ; <!-- a note --> ; """
    """<img src=a.png alt='a dog'> ; <a title="the 'docs'" href=x>…</a> ; <wbr> ; <i><u>…</u></i> ; """
    "<code>x &lt; y</code>"
)
FIXED = [
    "<script>if (a < b) { x = '<p>no</p>' }</script>",
    "<style>p > a { content: 'no' }</style>",
    "<pre>keep <b>it</b>\n x</pre>",
    "<textarea>no</textarea>",
    "<!-- <p>no</p> -->",
    "<!--[if IE]><p>no</p><![endif]-->",
    "<p translate=no>Not <b>it</b></p>",
    "<hr>",
    "<p>12</p>",
    "<p></p>",
    "<svg><text>no</text></svg>",
    '<div class="x notranslate">no</div>',
    "<template><p>no</p></template>",
    "<p>&nbsp;</p>",
    "<table><tr><td>3.5</td></tr></table>",
    "<script>//<![CDATA[\n x</p> \n//]]></script>",
]
SRT_SIGNS = [
    "<i>so</i>",
    "{\\an8}",
    "♪",
    "<font color='#fff'>x</font>",
    "[noise]",
    "12:30",
    "a - b",
]
VTT_SIGNS = [
    "<v Roger Bo>so",
    "<c.loud>x</c>",
    "<00:00:05.000>",
    "&amp;",
    "&lt;3",
    "<b>x</b>",
    "<lang en>y</lang>",
]


def html_page(draw: Draw, style: Style, strict: bool = False) -> list[Part]:
    """Blocks with inline elements, attributes that are read aloud, and elements whose content stays."""
    end = style.newline
    parts = list[Part]()
    is_legacy = style.codec in ("iso-8859-1", "cp1252", "ascii")
    charset = {"cp1252": "windows-1252", "ascii": "us-ascii"}.get(style.declared, style.declared)
    old_meta = f"<META http-equiv=Content-Type content='text/html; charset={charset}'>"
    meta = draw.choice([f'<meta charset="{charset}">', old_meta])
    if strict:
        parts.append(f'<?xml version="1.0" encoding="{charset}"?>{end}')
        meta = ""
    if strict or is_legacy or draw.random() < 0.6:
        parts += [
            f"<!DOCTYPE html>{end}<html lang=ka><head>{meta if is_legacy or draw.random() < 0.7 else ''}"
        ]
        parts += [f"{end}<title>", *run(draw, style, []), f"</title></head>{end}<body class=title>"]
    for _ in range(draw.randint(1, 8)):
        kind = draw.random()
        name = draw.choice(["p", "div", "li", "h1", "td", "P", "dd", "blockquote"])
        if kind < 0.25:
            parts.append(draw.choice(FIXED))
        elif kind < 0.35:
            said = text(draw, style, signs=False)
            quote = draw.choice("\"'")
            value = html.escape(said.plain).replace("&#x27;", "&#39;")
            value = value if draw.random() < 0.5 else said.plain.replace(quote, "")
            attribute = draw.choice(["alt", "title", "aria-label", "placeholder", "TITLE"])
            place = Place(value, f"(?P<text>[^{quote}]*)", value, said.word)
            parts += [f"<hr class=x {attribute} = {quote}", place, f"{quote} data-x=y>"]
        else:
            closing = f"</{name}>" if draw.random() < 0.8 or strict else ""
            parts += [
                f"{end}<{name} class='a b'>{draw.choice(['', end, '  '])}",
                *run(draw, style, HTML_INLINE),
            ]
            parts.append(f"{draw.choice(['', end, ' '])}{closing}{end}<hr>")
    return [*parts, draw.choice(["", f"</body></html>{end}"])]


def run(draw: Draw, style: Style, inner: Elements) -> list[Part]:
    """The text of a block."""
    plain, word = text(draw, style)
    raw = plain.replace("&", "&amp;") if draw.random() < 0.5 or "&" in plain else plain
    raw = raw.replace("<", "&lt;").strip()
    raw = inline(draw, raw, inner, style.newline) if inner else raw
    return [Place(raw, ANY, raw, word)]


# -- subtitles and lines ----------------------------------------------------------------------------------


def spoken_lines(draw: Draw, style: Style, signs: list[str]) -> Text:
    """The lines of a cue: one speaker, or two with dashes."""
    plain, word = text(draw, style, signs=False)
    words = re.split(r"[ \u2028\x85]+", plain.strip())
    for _ in range(draw.choice([0, 0, 1, 2])):
        words.insert(draw.randint(0, len(words)), draw.choice(signs))
    raw = (
        "".join(each + draw.choice([" ", " ", " ", style.newline]) for each in words[:-1])
        + words[-1]
    )
    return Text(raw if draw.random() < 0.8 else f"- {raw}{style.newline}- yes", word)


def srt(draw: Draw, style: Style) -> list[Part]:
    parts = list[Part]()
    end = style.newline
    for i in range(draw.randint(0, 8)):
        said = spoken_lines(draw, style, SRT_SIGNS)
        position = draw.choice(["", "", "  X1:1 X2:2 Y1:3 Y2:4", " "])
        parts.append(f"{i + 1}{end}00:00:{i:02},000 --> 00:00:{i:02},900{position}{end}")
        parts.append(Place(said.plain, ANY, said.plain, said.word))
        parts.append(f"{draw.choice(['', ' '])}{end}{draw.choice(['', end, end])}{end}")
    return parts


def vtt(draw: Draw, style: Style) -> list[Part]:
    end = style.newline
    heads = ["WEBVTT", "WEBVTT - a title", f"WEBVTT{end}Kind: captions{end}Language: ka"]
    parts: list[Part] = [draw.choice(heads), end, end]
    for i in range(draw.randint(0, 8)):
        blocks = [f"NOTE{end}no text{end}here", f"STYLE{end}::cue {{ color: red }}", "NOTE no"]
        parts.append(draw.choice([*(f"{block}{end}{end}" for block in blocks), "", "", "", "", ""]))
        said = spoken_lines(draw, style, VTT_SIGNS)
        name = draw.choice(["", f"intro {i}{end}", f"{i}{end}"])
        settings = draw.choice(["", " align:start line:0%", "\tposition:10%"])
        hours = draw.choice(["", "00:"])
        parts.append(f"{name}{hours}00:{i:02}.000 --> {hours}00:{i:02}.900{settings}{end}")
        parts += [
            Place(said.plain, ANY, said.plain, said.word),
            f"{end}{end}{draw.choice(['', end])}",
        ]
    return parts


def txt(draw: Draw, style: Style) -> list[Part]:
    parts = list[Part]()
    for _ in range(draw.randint(0, 9)):
        if draw.random() < 0.25:
            parts.append(draw.choice(["", " ", "\t", "  \t"]) + style.newline)
            continue
        said = text(draw, style)
        inner = said.plain.strip(" \t\u00a0\ufeff").replace(
            " ", draw.choice([" ", " ", "\t", "\x0b"]), 1
        )
        parts += [draw.choice(["", "  ", "\t", "\u00a0" if style.codec.startswith("utf") else ""])]
        parts += [Place(inner, ANY, inner, said.word), draw.choice(["", " ", "\t"]) + style.newline]
    return parts


def xhtml(draw: Draw, style: Style) -> list[Part]:
    return html_page(draw, style, strict=True)


class Kind(NamedTuple):
    """A format and its variants."""

    suffix: str
    make: Callable[[Draw, Style], list[Part]]
    codecs: tuple[str, ...]
    newlines: tuple[str, ...] = ("\n", "\n", "\r\n")


UTF = ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16-le", "utf-16-be")
LEGACY = (*UTF, "iso-8859-1", "cp1252", "ascii")
KINDS = {
    "PO": Kind(
        ".po", po, ("utf-8", "utf-8", "utf-8", "utf-8-sig", "iso-8859-1", "cp1252", "ascii")
    ),
    "POT": Kind(
        ".pot", lambda draw, style: po(draw, style, template=True), ("utf-8", "utf-8", "utf-8-sig")
    ),
    "XLIFF 1.2": Kind(".xlf", xliff, LEGACY),
    "XLIFF 2.0": Kind(".xliff", lambda draw, style: xliff(draw, style, version=2), LEGACY),
    "TMX": Kind(".tmx", tmx, LEGACY),
    "HTML": Kind(".html", html_page, LEGACY),
    "XHTML": Kind(".xhtml", xhtml, ("utf-8", "utf-8-sig", "iso-8859-1")),
    "SubRip": Kind(".srt", srt, UTF, ("\n", "\n", "\r\n", "\r")),
    "WebVTT": Kind(".vtt", vtt, UTF, ("\n", "\n", "\r\n", "\r")),
    "plain text": Kind(".txt", txt, UTF),
}
