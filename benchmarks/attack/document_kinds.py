"""Random valid documents of each format, for the attack on documents.

A document is a list of parts: text that must stay, and places where a translation is written. A generator knows by
itself which texts are translated, so that it can judge the readers of transduce.
"""

import html
import random
import re
from collections.abc import Callable
from typing import NamedTuple

Draw = random.Random
Elements = list[tuple[str, str]]  # opening and closing tags
WORDS = ["open", "the", "file", "close", "all", "windows", "now", "press", "key", "no", "yes", "please"]
LATIN = ["schön", "ß", "é", "¿qué", "naïve", "«là»", "½", "\u00a0"]
UNICODE = [
    *LATIN,
    "你好。",
    "नमस्ते",
    "مرحبا",
    "e\u0301",
    "👩\u200d👧",
    "\u200f",
    "\u2028",
    "\u0085",
    "ŉ",
    "…",
    "\ufffd",
    "𝔄",
    "𐍈",
]
CONTEXTS = ["menu", "", 'a "b"']
PLACEHOLDERS = ["%s", "%(name)s", "{0}", "{{ x }}", "${y}", "https://example.org/a?b=1", "12", "3.5", "%d"]
SIGNS = [
    "&",
    "<",
    ">",
    '"',
    "'",
    "\\",
    "--",
    "&amp;",
    "<b>",
    "</b>",
    "<br>",
    "`code`",
    "**x**",
    "]",
    "{",
    "%",
    "|",
    "#",
    "~",
]


class Place(NamedTuple):
    """A place where a translation is written."""

    before: str  # what the document has there
    after: str  # what it has afterwards, as a regular expression whose group `text` is the translation
    source: str  # the text that is translated, in the syntax of the file
    word: str  # a word of the source that occurs nowhere else


Part = str | Place
ANY = "(?P<text>.*?)"


class Text(NamedTuple):
    """A random text with a word that occurs nowhere else."""

    plain: str
    word: str


class Style(NamedTuple):
    """What a document of any format may vary."""

    codec: str
    newline: str
    redo: bool

    @property
    def characters(self) -> list[str]:
        return {"ascii": ["a"], "iso-8859-1": LATIN, "cp1252": LATIN}.get(self.codec, UNICODE)

    @property
    def declared(self) -> str:
        return re.sub("-(le|be|sig)$", "", self.codec)


def unique_word(draw: Draw) -> str:
    """A word that occurs nowhere else in the document."""
    return f"q{''.join(draw.choices('bcdfghjklmnprstvwxyz', k=6))}a"


def text(draw: Draw, style: Style, signs: bool = True) -> Text:
    """A text of one to three sentences, rarely a long one."""
    word, pieces = unique_word(draw), list[str]()
    for _ in range(draw.choice([1, 1, 2, 3])):
        for _ in range(draw.randint(0, 60 if draw.random() < 0.03 else 6)):
            kind = draw.random()
            more = style.characters if kind < 0.15 else PLACEHOLDERS if kind < 0.25 else WORDS
            pieces.append(draw.choice(SIGNS if signs and kind > 0.9 else more))
        pieces.append(draw.choice(["it. The", "so! no", "key", "well;"]))
    pieces.insert(draw.randint(0, len(pieces)), word)
    return Text(draw.choice([" ", " ", "  "]).join(pieces), word)


# -- PO ---------------------------------------------------------------------------------------------------

PO_STRING = r'(?P<text>"(?:[^"\\\r\n]|\\.)*"(?:\r?\n"(?:[^"\\\r\n]|\\.)*")*)'
RULES = ["nplurals=1; plural=0;", "nplurals=2; plural=(n != 1);", "nplurals=3; plural=n==1 ? 0 : n<5 ? 1 : 2;"]


def po_string(draw: Draw, plain: str, style: Style, indent: str = "") -> str:
    """A string in one line, or wrapped at random places."""
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t").replace("\n", "\\n")
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
    edges = [draw.choice(["", "", "", "\n", " ", "\t"]), draw.choice(["", "", "", "\n", " ", "\n\n"])]
    plain = plain.replace(" ", "\n", 1) if draw.random() < 0.2 else plain
    return Text(plain.join(edges), word)


def po_comments(draw: Draw, style: Style, fuzzy: bool, word: str) -> list[str]:
    flags = draw.sample(["python-format", "no-wrap", "c-format", "range: 0..9"], draw.randint(0, 2)) + ["fuzzy"] * fuzzy
    draw.shuffle(flags)
    lines = [
        "#",
        "# a note, fuzzy?",
        f"# {word}",
        "#. extracted",
        '#. msgid "x"',
        "#: a.py:1 b.py:2",
        '#, x "fuzzy"'[:4],
    ]
    lines = draw.sample(lines, draw.randint(0, 3))
    flag_lines = [f"#, {', '.join(flags)}"] if flags else []
    if len(flags) > 1 and draw.random() < 0.3:
        flag_lines = [f"#, {flag}" for flag in flags]
    previous = (
        [f"#| msgid {po_string(draw, 'old one', style, '#| ')}"] if draw.random() < (0.7 if fuzzy else 0.1) else []
    )
    return [*sorted(lines, reverse=draw.random() < 0.5), *flag_lines, *previous]


def po_header(draw: Draw, style: Style, rule: str, template: bool) -> str:
    charset = "CHARSET" if template and style.codec in ("utf-8", "ascii") else style.declared.upper()
    fields = [
        "Project-Id-Version: x",
        f"Content-Type: text/plain; charset={charset}",
        "Content-Transfer-Encoding: 8bit",
    ]
    fields += draw.choice([["Language: zu"], ["Language: zu_ZA"], ["Language: "], []]) + [
        f"Plural-Forms: {rule}"
    ] * bool(rule)
    lines = [f'"{field}\\n"' for field in fields]
    comments = draw.choice([[], ["# Title"], ["# Title", "#, fuzzy"], ["#, fuzzy"]])
    return style.newline.join([*comments, 'msgid ""', 'msgstr ""', *lines, "", ""])


def po(draw: Draw, style: Style, template: bool = False) -> list[Part]:
    """Messages with contexts, plural forms, comments; fuzzy, obsolete and translated ones; wrapped and escaped strings."""
    end, rule = style.newline, draw.choice([*RULES, ""])
    forms = int(rule[9]) if rule else 2
    parts: list[Part] = [po_header(draw, style, rule, template)]
    for _ in range(draw.randint(0, 8)):
        said, fuzzy = po_text(draw, style), not template and draw.random() < 0.25
        head = po_comments(draw, style, fuzzy, said.word)
        context = [f"msgctxt {po_string(draw, draw.choice(CONTEXTS), style)}"] if draw.random() < 0.3 else []
        if draw.random() < 0.15:  # obsolete
            lines = [*context, f"msgid {po_string(draw, said.plain, style)}", 'msgstr ""']
            old = end.join(lines).replace(end, f"{end}#~ ")
            parts.append(end.join([*(line for line in head if line[1:2] != "|"), f"#~ {old}", "", ""]))
            continue
        gap = draw.choice([" ", " ", "  ", "\t"])
        parts.append(end.join([*head, *context, f"msgid{gap}"]))
        singular = po_string(draw, said.plain, style)
        other = po_text(draw, style) if draw.random() < 0.3 else None
        if other is None:
            parts += [f"{singular}{end}msgstr{gap}", *po_target(draw, style, singular, said.word, fuzzy, template)]
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


def po_target(draw: Draw, style: Style, source: str, word: str, stays: bool, template: bool) -> list[Part]:
    is_empty = template or draw.random() < 0.6
    before = (
        draw.choice(['""', '""', f'""{style.newline}""'])
        if is_empty
        else po_string(draw, text(draw, style).plain, style)
    )
    return [before] if stays or not (is_empty or style.redo) else [Place(before, PO_STRING, source, word)]


# -- XML --------------------------------------------------------------------------------------------------


def xml_escaped(draw: Draw, plain: str) -> str:
    """Characters as entities, as references or as they are, where XML allows it."""
    table = {
        "&": ["&amp;", "&#38;"],
        "<": ["&lt;", "&#x3C;"],
        ">": ["&gt;", ">"],
        '"': ['"', "&quot;"],
        "'": ["'", "&apos;"],
    }
    plain = plain.replace("]]>", "]] >")
    return "".join(draw.choice(table[each]) if each in table else each for each in plain)


def inline(draw: Draw, escaped: str, elements: Elements, end: str) -> str:
    """A text with inline elements around its words or between them."""
    words = escaped.split(" ")
    for number in range(1, 1 + draw.choice([0, 0, 1, 2, 4])):
        opening, closing = (each.replace("#", str(number)) for each in draw.choice(elements))
        first = draw.randrange(len(words))
        last = min(len(words) - 1, first + draw.randint(0, 2))
        if not any("<" in word for word in words[first : last + 1]):
            words[first] = opening + words[first]
            words[last] += closing
    return draw.choice([" ", " ", " ", f"{end}   "]).join(words)


XLIFF1_INLINE = [
    *(
        ('<g id="#">', "</g>"),
        ('<g id="#" ctype="x-b">', "</g>"),
        ('<x id="#"/>', ""),
        ('<x id="#" equiv-text="a > b" />', ""),
    ),
    *(
        ('<bpt id="#">&lt;b></bpt>', '<ept id="#">&lt;/b></ept>'),
        ('<bx id="#"/>', '<ex id="#"/>'),
        ('<ph id="#">%s</ph>', ""),
    ),
    *(
        ('<it id="#" pos="open">[</it>', ""),
        ('<mrk mtype="protected">name</mrk>', ""),
        ('<mrk mtype="seg" mid="#">', "</mrk>"),
    ),
    *(("<!-- a note -->", ""), ("<?pi data?>", ""), ('<ph id="#"><sub>sub</sub></ph>', "")),
]
XLIFF2_INLINE = [
    *(
        ('<pc id="#">', "</pc>"),
        ('<pc id="#" dataRefStart="d" >', "</pc>"),
        ('<ph id="#"/>', ""),
        ('<ph id="#" equiv="a>b"/>', ""),
    ),
    *(
        ('<sc id="#"/>', '<ec startRef="#"/>'),
        ('<mrk id="#" translate="no">name</mrk>', ""),
        ('<mrk id="#" type="term">', "</mrk>"),
    ),
    *(('<sm id="#"/>', '<em startRef="#"/>'), ('<cp hex="001A"/>', ""), ("<!-- a note -->", "")),
]
TMX_INLINE = [
    *(('<bpt i="#">&lt;b></bpt>', '<ept i="#">&lt;/b></ept>'), ('<ph x="#">code</ph>', ""), ('<ph x="#"/>', "")),
    *(('<hi type="b">', "</hi>"), ('<it pos="begin">[</it>', ""), ("<ut>{</ut>", ""), ("<!-- a note -->", "")),
]


def fragment(draw: Draw, style: Style, elements: Elements, *, cdata: bool = True) -> Text:
    """A text as XML, with inline elements or as CDATA."""
    plain, word = text(draw, style)
    if cdata and draw.random() < 0.1:
        return Text(f"<![CDATA[{plain.replace(']]>', '')}]]>", word)
    raw = inline(draw, xml_escaped(draw, plain), elements, style.newline)
    return Text(draw.choice(["", "", "", " ", style.newline + "  "]).join(["", raw, ""]), word)


def prefixed(prefix: str, raw: str) -> str:
    return re.sub(r"(</?)(?=[a-zA-Z])", rf"\1{prefix}", raw) if prefix and "<![CDATA[" not in raw else raw


def declaration(draw: Draw, style: Style) -> str:
    need = style.codec in ("iso-8859-1", "cp1252", "ascii")
    named = {"cp1252": "windows-1252", "ascii": "US-ASCII"}.get(style.declared, style.declared)
    quote = draw.choice("\"'")
    encoding = f" encoding={quote}{named}{quote}" if need or draw.random() < 0.6 else ""
    head = f"<?xml version={quote}1.0{quote}{encoding}?>{style.newline}" if need or draw.random() < 0.8 else ""
    extra = [f"<!-- before -->{style.newline}", f"<?xml-stylesheet href='a'?>{style.newline}", ""]
    return head + draw.choice(extra)


def filled(draw: Draw, name: str, attributes: str, content: str, source: Text) -> list[Part]:
    """An element that gets a translation; `content` is what it has."""
    if not content and draw.random() < 0.5:
        blank = draw.choice(["", " "])
        return [f"<{name}{attributes}", Place(f"{blank}/>", f">{ANY}</{name}>", source.plain, source.word), ""]
    return [f"<{name}{attributes}>", Place(content, ANY, source.plain, source.word), f"</{name}>"]


def target(draw: Draw, style: Style, name: str, source: Text, elements: Elements, pad: str, stays: bool) -> list[Part]:
    """No target, an empty one, one to translate again or a translated one."""
    kind = draw.choice(["none", "none", "empty", "new", "translated", "translated"])
    old = prefixed(name.removesuffix("target"), fragment(draw, style, elements).plain)
    states = ["", ' state="translated"', ' state="final" xml:lang="zu"', " o:note='a > b'"]
    state = draw.choice(states if elements is XLIFF1_INLINE else ["", ' xml:lang="zu"', ' order="1"'])
    if stays:
        return [f"{pad}<{name}{state}>{old}</{name}>" if kind == "translated" else ""]
    if kind == "none":
        after = rf"\s*<{name}(?: xml:lang=\"zu\")?>{ANY}</{name}>"
        return [Place("", after, source.plain, source.word), ""]
    if kind == "new" and elements is XLIFF1_INLINE:
        return [pad, *filled(draw, name, draw.choice([' state="new"', " state='needs-translation'"]), old, source)]
    if kind != "empty" and not style.redo:
        return [f"{pad}<{name}{state}>{old}</{name}>"]
    return [pad, *filled(draw, name, state, "" if kind == "empty" else old, source)]


def xliff(draw: Draw, style: Style, version: int = 1) -> list[Part]:
    """Units with inline elements, CDATA, prefixes, notes, states, alternatives and existing targets."""
    prefix, end = draw.choice(["", "", "", "x:"]), style.newline
    elements = XLIFF1_INLINE if version == 1 else XLIFF2_INLINE
    pad = draw.choice(["", end + "  ", end + "\t"])
    name = f"urn:oasis:names:tc:xliff:document:{'1.2' if version == 1 else '2.0'}"
    xmlns = f'xmlns{":x" if prefix else ""}="{name}" xmlns:o="urn:o" o:note="1 > 0"'
    languages = ["source-language", "target-language"] if version == 1 else ["srcLang", "trgLang"]
    spoken = f' {languages[0]}="ka"' + draw.choice([f' {languages[1]}="zu"', f" {languages[1]}='zu-ZA'", ""])
    root, file = ("", spoken) if version == 1 else (spoken, "")
    parts: list[Part] = [declaration(draw, style)]
    parts.append(
        f'<{prefix}xliff {xmlns} version="{name[-3:]}"{root}>{pad}<{prefix}file original="a" id="f"{file}>{pad}'
    )
    parts.append(f"<{prefix}body>" if version == 1 else "")
    for i in range(draw.randint(0, 7)):
        no_group = draw.random() < 0.1
        group = (
            draw.choice(["", f'<{prefix}group id="g{i}">'])
            if not no_group
            else f'<{prefix}group id="g{i}" translate="no">'
        )
        parts += [
            pad,
            group,
            *xliff_unit(draw, style, prefix, elements, pad, no_group),
            f"</{prefix}group>" if group else "",
        ]
    return [*parts, f"{pad}</{prefix}body>" if version == 1 else "", f"</{prefix}file>{end}</{prefix}xliff>{end}"]


def xliff_unit(draw: Draw, style: Style, prefix: str, elements: Elements, pad: str, no_group: bool) -> list[Part]:
    said = fragment(draw, style, elements)
    said = Text(prefixed(prefix, said.plain), said.word)
    stays = (no_group or draw.random() < 0.1) and draw.random() < 0.9
    flag = (
        draw.choice(['translate="no"', "translate='no' "])
        if stays and not no_group
        else 'translate="yes"'
        if no_group and not stays
        else ""
    )
    flag += draw.choice(["", ' xml:space="preserve"', ' o:x="a/>b"'])
    language = draw.choice(["", ' xml:lang="ka"'])
    source = f"{pad}<{prefix}source{language}>{said.plain}</{prefix}source>"
    note = draw.choice(
        ["", f"{pad}<{prefix}note>the {unique_word(draw)}</{prefix}note>", f"{pad}<!-- {unique_word(draw)} -->"]
    )
    if elements is XLIFF1_INLINE:
        seg = (
            f"{pad}<{prefix}seg-source>{said.plain}</{prefix}seg-source>"
            if draw.random() < 0.1 and "CDATA" not in said.plain
            else ""
        )
        alternative = f"{pad}<{prefix}alt-trans><{prefix}source>x</{prefix}source><{prefix}target>y</{prefix}target></{prefix}alt-trans>"
        tail = note + draw.choice(["", "", alternative, f"{pad}<o:other><o:target>z</o:target></o:other>"])
        middle = target(draw, style, f"{prefix}target", said, elements, pad, stays)
        return [
            f'<{prefix}trans-unit id="{said.word}" {flag}>{source}{seg}',
            *middle,
            f"{tail}{pad}</{prefix}trans-unit>",
        ]
    data = f'{pad}<{prefix}originalData><{prefix}data id="d">&lt;b></{prefix}data></{prefix}originalData>'
    notes = f"{pad}<{prefix}notes><{prefix}note>n</{prefix}note></{prefix}notes>" if draw.random() < 0.2 else ""
    ignorable = f"{pad}<{prefix}ignorable><{prefix}source> </{prefix}source></{prefix}ignorable>"
    state = draw.choice(["", ' state="initial"', ' state="translated"', ' id="s"'])
    begin = (
        f'<{prefix}unit id="{said.word}" {flag}>{notes}{draw.choice(["", data])}{pad}<{prefix}segment{state}>{source}'
    )
    ending = f"{pad}</{prefix}segment>{draw.choice(['', ignorable])}</{prefix}unit>"
    return [begin, *target(draw, style, f"{prefix}target", said, elements, pad, stays), ending]


def tmx(draw: Draw, style: Style) -> list[Part]:
    """Units with several languages, notes, properties and inline elements."""
    end, key = style.newline, draw.choice(["xml:lang", "xml:lang", "lang"])
    pad, code = draw.choice(["", end + "  "]), draw.choice(["zu", "ZU", "zu-ZA"])
    doctype = draw.choice(["", f'<!DOCTYPE tmx SYSTEM "tmx14.dtd">{end}'])
    head = f'<tmx version="1.4"><header srclang="{draw.choice(["ka", "*all*"])}" datatype="xml"/>{end}<body>{end}'
    parts: list[Part] = [declaration(draw, style), doctype, head]
    for _ in range(draw.randint(0, 7)):
        said = fragment(draw, style, TMX_INLINE)
        other = f'{pad}<tuv {key}="fr"><seg>{fragment(draw, style, TMX_INLINE).plain}</seg></tuv>'
        date = draw.choice(["", ' creationdate="20200101T000000Z"', " o='a > b'"])
        prop = draw.choice(["", '<prop type="x">p</prop>', "<note>n</note>"])
        head = f'<tu tuid="{said.word}">{prop}{draw.choice(["", other])}'
        spoken = f'{pad}<tuv {key}="ka"{date}>{prop}<seg>{said.plain}</seg></tuv>'
        kind = draw.choice(["none", "none", "empty", "translated", "other"])
        if kind == "other":
            parts.append(f"{head}{other}{end}</tu>{end}")
            continue
        old = "" if kind == "empty" else fragment(draw, style, TMX_INLINE).plain
        is_place = kind == "empty" or style.redo
        seg = filled(draw, "seg", "", old, said) if is_place else [f"<seg>{old}</seg>"]
        written = [f'{pad}<tuv {key}="{code}">', *seg, "</tuv>"]
        new = [Place("", rf'\s*<tuv {key}="\w+(?:-ZA)?"><seg>{ANY}</seg></tuv>', said.plain, said.word), ""]
        translated = new if kind == "none" else written
        if kind != "none" and draw.random() < 0.2:
            parts += [head, *written, spoken, f"{end}</tu>{end}"]
        else:
            parts += [head, spoken, *translated, f"{pad if draw.random() < 0.5 else end}</tu>{end}"]
    return [*parts, f"</body></tmx>{end}"]


# -- HTML -------------------------------------------------------------------------------------------------

HTML_INLINE = [
    *(
        ("<b>", "</b>"),
        ("<A HREF='x?a=1&amp;b=2'>", "</A>"),
        ('<span class="a > b">', "</span>"),
        ("<br>", ""),
        ("<br/>", ""),
    ),
    *(
        ("<!-- a note -->", ""),
        ("<img src=a.png alt='a dog'>", ""),
        ("<a title=\"the 'docs'\" href=x>", "</a>"),
        ("<wbr>", ""),
        ("<i><u>", "</u></i>"),
        ("<code>x &lt; y</code>", ""),
    ),
]
FIXED = [
    *(
        "<script>if (a < b) { x = '<p>no</p>' }</script>",
        "<style>p > a { content: 'no' }</style>",
        "<pre>keep <b>it</b>\n x</pre>",
    ),
    *(
        "<textarea>no</textarea>",
        "<!-- <p>no</p> -->",
        "<!--[if IE]><p>no</p><![endif]-->",
        "<p translate=no>Not <b>it</b></p>",
    ),
    *(
        "<hr>",
        "<p>12</p>",
        "<p></p>",
        "<svg><text>no</text></svg>",
        '<div class="x notranslate">no</div>',
        "<template><p>no</p></template>",
    ),
    *("<p>&nbsp;</p>", "<table><tr><td>3.5</td></tr></table>", "<script>//<![CDATA[\n x</p> \n//]]></script>"),
]


def html_page(draw: Draw, style: Style, strict: bool = False) -> list[Part]:
    """Blocks with inline elements, attributes that are read aloud, and elements whose content stays."""
    end, parts = style.newline, list[Part]()
    is_legacy = style.codec in ("iso-8859-1", "cp1252", "ascii")
    charset = {"cp1252": "windows-1252", "ascii": "us-ascii"}.get(style.declared, style.declared)
    meta = draw.choice(
        [f'<meta charset="{charset}">', f"<META http-equiv=Content-Type content='text/html; charset={charset}'>"]
    )
    if strict:
        parts.append(f'<?xml version="1.0" encoding="{charset}"?>{end}')
        meta = ""
    if strict or is_legacy or draw.random() < 0.6:
        parts += [f"<!DOCTYPE html>{end}<html lang=ka><head>{meta if is_legacy or draw.random() < 0.7 else ''}"]
        parts += [f"{end}<title>", *run(draw, style, []), f"</title></head>{end}<body class=title>"]
    for _ in range(draw.randint(1, 8)):
        kind = draw.random()
        name = draw.choice(["p", "div", "li", "h1", "td", "P", "dd", "blockquote"])
        if kind < 0.25:
            parts.append(draw.choice(FIXED))
        elif kind < 0.35:
            said = text(draw, style, signs=False)
            quote = draw.choice("\"'")
            value = (
                html.escape(said.plain).replace("&#x27;", "&#39;")
                if draw.random() < 0.5
                else said.plain.replace(quote, "")
            )
            attribute = draw.choice(["alt", "title", "aria-label", "placeholder", "TITLE"])
            parts += [
                f"<hr class=x {attribute} = {quote}",
                Place(value, f"(?P<text>[^{quote}]*)", value, said.word),
                f"{quote} data-x=y>",
            ]
        else:
            closing = f"</{name}>" if draw.random() < 0.8 or strict else ""
            parts += [f"{end}<{name} class='a b'>{draw.choice(['', end, '  '])}", *run(draw, style, HTML_INLINE)]
            parts.append(f"{draw.choice(['', end, ' '])}{closing}{end}<hr>")
    return [*parts, draw.choice(["", f"</body></html>{end}"])]


def run(draw: Draw, style: Style, elements: Elements) -> list[Part]:
    """The text of a block."""
    plain, word = text(draw, style)
    raw = plain.replace("&", "&amp;") if draw.random() < 0.5 or "&" in plain else plain
    raw = raw.replace("<", "&lt;").strip()
    raw = inline(draw, raw, elements, style.newline) if elements else raw
    return [Place(raw, ANY, raw, word)]


# -- subtitles and lines ----------------------------------------------------------------------------------


def spoken_lines(draw: Draw, style: Style, signs: list[str]) -> Text:
    """The lines of a cue: one speaker, or two with dashes."""
    plain, word = text(draw, style, signs=False)
    words = re.split(r"[ \u2028\x85]+", plain.strip())
    for _ in range(draw.choice([0, 0, 1, 2])):
        words.insert(draw.randint(0, len(words)), draw.choice(signs))
    raw = "".join(each + draw.choice([" ", " ", " ", style.newline]) for each in words[:-1]) + words[-1]
    return Text(raw if draw.random() < 0.8 else f"- {raw}{style.newline}- yes", word)


def srt(draw: Draw, style: Style) -> list[Part]:
    parts, end = list[Part](), style.newline
    for i in range(draw.randint(0, 8)):
        said = spoken_lines(
            draw, style, ["<i>so</i>", "{\\an8}", "♪", "<font color='#fff'>x</font>", "[noise]", "12:30", "a - b"]
        )
        position = draw.choice(["", "", "  X1:1 X2:2 Y1:3 Y2:4", " "])
        parts.append(f"{i + 1}{end}00:00:{i:02},000 --> 00:00:{i:02},900{position}{end}")
        parts += [
            Place(said.plain, ANY, said.plain, said.word),
            f"{draw.choice(['', ' '])}{end}{draw.choice(['', end, end])}{end}",
        ]
    return parts


def vtt(draw: Draw, style: Style) -> list[Part]:
    end = style.newline
    parts: list[Part] = [
        draw.choice(["WEBVTT", "WEBVTT - a title", f"WEBVTT{end}Kind: captions{end}Language: ka"]),
        end,
        end,
    ]
    for i in range(draw.randint(0, 8)):
        block = [
            f"NOTE{end}no text{end}here{end}{end}",
            f"STYLE{end}::cue {{ color: red }}{end}{end}",
            f"NOTE no{end}{end}",
        ]
        parts.append(draw.choice([*block, "", "", "", "", ""]))
        said = spoken_lines(
            draw,
            style,
            ["<v Roger Bo>so", "<c.loud>x</c>", "<00:00:05.000>", "&amp;", "&lt;3", "<b>x</b>", "<lang en>y</lang>"],
        )
        name, settings = (
            draw.choice(["", f"intro {i}{end}", f"{i}{end}"]),
            draw.choice(["", " align:start line:0%", "\tposition:10%"]),
        )
        hours = draw.choice(["", "00:"])
        parts.append(f"{name}{hours}00:{i:02}.000 --> {hours}00:{i:02}.900{settings}{end}")
        parts += [Place(said.plain, ANY, said.plain, said.word), f"{end}{end}{draw.choice(['', end])}"]
    return parts


def txt(draw: Draw, style: Style) -> list[Part]:
    parts = list[Part]()
    for _ in range(draw.randint(0, 9)):
        if draw.random() < 0.25:
            parts.append(draw.choice(["", " ", "\t", "  \t"]) + style.newline)
            continue
        said = text(draw, style)
        inner = said.plain.strip(" \t\u00a0\ufeff").replace(" ", draw.choice([" ", " ", "\t", "\x0b"]), 1)
        parts += [draw.choice(["", "  ", "\t", "\u00a0" if style.codec.startswith("utf") else ""])]
        parts += [Place(inner, ANY, inner, said.word), draw.choice(["", " ", "\t"]) + style.newline]
    return parts


class Kind(NamedTuple):
    """A format and its variants."""

    suffix: str
    make: Callable[[Draw, Style], list[Part]]
    codecs: tuple[str, ...]
    newlines: tuple[str, ...] = ("\n", "\n", "\r\n")


UTF = ("utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16-le", "utf-16-be")
LEGACY = (*UTF, "iso-8859-1", "cp1252", "ascii")
KINDS = {
    "PO": Kind(".po", po, ("utf-8", "utf-8", "utf-8", "utf-8-sig", "iso-8859-1", "cp1252", "ascii")),
    "POT": Kind(".pot", lambda draw, style: po(draw, style, template=True), ("utf-8", "utf-8", "utf-8-sig")),
    "XLIFF 1.2": Kind(".xlf", xliff, LEGACY),
    "XLIFF 2.0": Kind(".xliff", lambda draw, style: xliff(draw, style, version=2), LEGACY),
    "TMX": Kind(".tmx", tmx, LEGACY),
    "HTML": Kind(".html", html_page, LEGACY),
    "XHTML": Kind(
        ".xhtml", lambda draw, style: html_page(draw, style, strict=True), ("utf-8", "utf-8-sig", "iso-8859-1")
    ),
    "SubRip": Kind(".srt", srt, UTF, ("\n", "\n", "\r\n", "\r")),
    "WebVTT": Kind(".vtt", vtt, UTF, ("\n", "\n", "\r\n", "\r")),
    "plain text": Kind(".txt", txt, UTF),
}
