"""Random valid XLIFF and TMX files, for the attack on documents."""

import re

from document_parts import ANY, Draw, Part, Place, Style, Text, text, unique_word

Elements = list[tuple[str, str]]  # opening and closing tags


def elements(written: str) -> Elements:
    """Read elements that are separated by " ; "; "…" is the content of an element."""
    return [
        (opening, closing)
        for opening, _, closing in (each.partition("…") for each in written.split(" ; "))
    ]


XLIFF1_INLINE = elements(
    '<g id="#">…</g> ; <g id="#" ctype="x-b">…</g> ; <x id="#"/> ; <x id="#" equiv-text="a > b" /> ; '
    '<bpt id="#">&lt;b></bpt>…<ept id="#">&lt;/b></ept> ; <bx id="#"/>…<ex id="#"/> ; <ph id="#">%s</ph> ; '
    '<it id="#" pos="open">[</it> ; <mrk mtype="protected">name</mrk> ; <mrk mtype="seg" mid="#">…</mrk> ; '
    '<!-- a note --> ; <?pi data?> ; <ph id="#"><sub>sub</sub></ph>'
)
XLIFF2_INLINE = elements(
    '<pc id="#">…</pc> ; <pc id="#" dataRefStart="d" >…</pc> ; <ph id="#"/> ; <ph id="#" equiv="a>b"/> ; '
    '<sc id="#"/>…<ec startRef="#"/> ; <mrk id="#" translate="no">name</mrk> ; <mrk id="#" type="term">…</mrk> ; '
    '<sm id="#"/>…<em startRef="#"/> ; <cp hex="001A"/> ; <!-- a note -->'
)
TMX_INLINE = elements(
    '<bpt i="#">&lt;b></bpt>…<ept i="#">&lt;/b></ept> ; <ph x="#">code</ph> ; <ph x="#"/> ; <hi type="b">…</hi> ; '
    '<it pos="begin">[</it> ; <ut>{</ut> ; <!-- a note -->'
)
ESCAPES = {"&": "&amp; &#38;", "<": "&lt; &#x3C;", ">": "&gt; >", '"': '" &quot;', "'": "' &apos;"}


def escaped(draw: Draw, plain: str) -> str:
    """Characters as entities, as references or as they are, where XML allows it."""
    plain = plain.replace("]]>", "]] >")
    return "".join(
        draw.choice(ESCAPES[each].split()) if each in ESCAPES else each for each in plain
    )


def inline(draw: Draw, raw: str, inner: Elements, end: str) -> str:
    """A text with inline elements around its words or between them."""
    words = raw.split(" ")
    for number in range(1, 1 + draw.choice([0, 0, 1, 2, 4])):
        opening, closing = (each.replace("#", str(number)) for each in draw.choice(inner))
        first = draw.randrange(len(words))
        last = min(len(words) - 1, first + draw.randint(0, 2))
        if not any("<" in word for word in words[first : last + 1]):
            words[first] = opening + words[first]
            words[last] += closing
    return draw.choice([" ", " ", " ", f"{end}   "]).join(words)


def fragment(draw: Draw, style: Style, inner: Elements) -> Text:
    """A text as XML, with inline elements or as CDATA."""
    plain, word = text(draw, style)
    if draw.random() < 0.1:
        return Text(f"<![CDATA[{plain.replace(']]>', '')}]]>", word)
    raw = inline(draw, escaped(draw, plain), inner, style.newline)
    return Text(draw.choice(["", "", "", " ", style.newline + "  "]).join(["", raw, ""]), word)


def prefixed(prefix: str, raw: str) -> str:
    return (
        re.sub(r"(</?)(?=[a-zA-Z])", rf"\1{prefix}", raw)
        if prefix and "<![CDATA[" not in raw
        else raw
    )


def declaration(draw: Draw, style: Style) -> str:
    need = style.codec in ("iso-8859-1", "cp1252", "ascii")
    named = {"cp1252": "windows-1252", "ascii": "US-ASCII"}.get(style.declared, style.declared)
    quote = draw.choice("\"'")
    encoding = f" encoding={quote}{named}{quote}" if need or draw.random() < 0.6 else ""
    head = (
        f"<?xml version={quote}1.0{quote}{encoding}?>{style.newline}"
        if need or draw.random() < 0.8
        else ""
    )
    extra = [f"<!-- before -->{style.newline}", f"<?xml-stylesheet href='a'?>{style.newline}", ""]
    return head + draw.choice(extra)


def filled(draw: Draw, name: str, attributes: str, content: str, source: Text) -> list[Part]:
    """An element that gets a translation; `content` is what it has."""
    if not content and draw.random() < 0.5:
        blank = draw.choice(["", " "])
        return [
            f"<{name}{attributes}",
            Place(f"{blank}/>", f">{ANY}</{name}>", source.plain, source.word),
            "",
        ]
    return [f"<{name}{attributes}>", Place(content, ANY, source.plain, source.word), f"</{name}>"]


def target(
    draw: Draw, style: Style, name: str, source: Text, inner: Elements, pad: str, stays: bool
) -> list[Part]:
    """No target, an empty one, one to translate again or a translated one."""
    kind = draw.choice(["none", "none", "empty", "new", "translated", "translated"])
    old = prefixed(name.removesuffix("target"), fragment(draw, style, inner).plain)
    states = ["", ' state="translated"', ' state="final" xml:lang="zu"', " o:note='a > b'"]
    state = draw.choice(states if inner is XLIFF1_INLINE else ["", ' xml:lang="zu"', ' order="1"'])
    if stays:
        return [f"{pad}<{name}{state}>{old}</{name}>" if kind == "translated" else ""]
    if kind == "none":
        after = rf"\s*<{name}(?: xml:lang=\"zu(?:-ZA)?\")?>{ANY}</{name}>"
        return [Place("", after, source.plain, source.word), ""]
    if kind == "new" and inner is XLIFF1_INLINE:
        return [
            pad,
            *filled(
                draw, name, draw.choice([' state="new"', " state='needs-translation'"]), old, source
            ),
        ]
    if kind != "empty" and (not style.redo or "final" in state):
        return [f"{pad}<{name}{state}>{old}</{name}>"]
    return [pad, *filled(draw, name, state, "" if kind == "empty" else old, source)]


def xliff(draw: Draw, style: Style, version: int = 1) -> list[Part]:
    """Units with inline elements, CDATA, prefixes, notes, states, alternatives and existing targets."""
    prefix = draw.choice(["", "", "", "x:"])
    end = style.newline
    inner = XLIFF1_INLINE if version == 1 else XLIFF2_INLINE
    pad = draw.choice(["", end + "  ", end + "\t"])
    name = f"urn:oasis:names:tc:xliff:document:{'1.2' if version == 1 else '2.0'}"
    xmlns = f'xmlns{":x" if prefix else ""}="{name}" xmlns:o="urn:o" o:note="1 > 0"'
    languages = ["source-language", "target-language"] if version == 1 else ["srcLang", "trgLang"]
    spoken = f' {languages[0]}="ka"' + draw.choice(
        [f' {languages[1]}="zu"', f" {languages[1]}='zu-ZA'", ""]
    )
    root, file = ("", spoken) if version == 1 else (spoken, "")
    parts: list[Part] = [
        declaration(draw, style),
        f'<{prefix}xliff {xmlns} version="{name[-3:]}"{root}>',
    ]
    parts.append(f'{pad}<{prefix}file original="a" id="f"{file}>{pad}')
    parts.append(f"<{prefix}body>" if version == 1 else "")
    for i in range(draw.randint(0, 7)):
        no_group = draw.random() < 0.1
        group = f'<{prefix}group id="g{i}" translate="no">'
        if not no_group:
            group = draw.choice(["", f'<{prefix}group id="g{i}">'])
        parts += [pad, group, *xliff_unit(draw, style, prefix, inner, pad, no_group)]
        parts.append(f"</{prefix}group>" if group else "")
    return [
        *parts,
        f"{pad}</{prefix}body>" if version == 1 else "",
        f"</{prefix}file>{end}</{prefix}xliff>{end}",
    ]


def xliff_unit(
    draw: Draw, style: Style, prefix: str, inner: Elements, pad: str, no_group: bool
) -> list[Part]:
    said = fragment(draw, style, inner)
    said = Text(prefixed(prefix, said.plain), said.word)
    stays = (no_group or draw.random() < 0.1) and draw.random() < 0.9
    flag = 'translate="yes"' if no_group and not stays else ""
    if stays and not no_group:
        flag = draw.choice(['translate="no"', "translate='no' "])
    flag += draw.choice(["", ' xml:space="preserve"', ' o:x="a/>b"'])
    language = draw.choice(["", ' xml:lang="ka"'])
    source = f"{pad}<{prefix}source{language}>{said.plain}</{prefix}source>"
    one = unique_word(draw)
    other = unique_word(draw)
    note = draw.choice(
        ["", f"{pad}<{prefix}note>the {one}</{prefix}note>", f"{pad}<!-- {other} -->"]
    )
    if inner is XLIFF1_INLINE:
        has_segments = draw.random() < 0.1 and "CDATA" not in said.plain
        seg = f"{pad}<{prefix}seg-source>{said.plain}</{prefix}seg-source>" if has_segments else ""
        alternative = f"<{prefix}source>x</{prefix}source><{prefix}target>y</{prefix}target>"
        alternative = f"{pad}<{prefix}alt-trans>{alternative}</{prefix}alt-trans>"
        tail = note + draw.choice(
            ["", "", alternative, f"{pad}<o:other><o:target>z</o:target></o:other>"]
        )
        middle = target(draw, style, f"{prefix}target", said, inner, pad, stays)
        begin = f'<{prefix}trans-unit id="{said.word}" {flag}>{source}{seg}'
        return [begin, *middle, f"{tail}{pad}</{prefix}trans-unit>"]
    data = f'{pad}<{prefix}originalData><{prefix}data id="d">&lt;b></{prefix}data></{prefix}originalData>'
    notes = (
        f"{pad}<{prefix}notes><{prefix}note>n</{prefix}note></{prefix}notes>"
        if draw.random() < 0.2
        else ""
    )
    ignorable = f"{pad}<{prefix}ignorable><{prefix}source> </{prefix}source></{prefix}ignorable>"
    state = draw.choice(["", ' state="initial"', ' state="translated"', ' id="s"'])
    begin = f'<{prefix}unit id="{said.word}" {flag}>{notes}{draw.choice(["", data])}'
    begin += f"{pad}<{prefix}segment{state}>{source}"
    ending = f"{pad}</{prefix}segment>{draw.choice(['', ignorable])}</{prefix}unit>"
    # Such a target is translated again.
    style = style._replace(redo=style.redo or "initial" in state)
    return [begin, *target(draw, style, f"{prefix}target", said, inner, pad, stays), ending]


def tmx(draw: Draw, style: Style) -> list[Part]:
    """Units with several languages, notes, properties and inline elements."""
    end = style.newline
    key = draw.choice(["xml:lang", "xml:lang", "lang"])
    pad = draw.choice(["", end + "  "])
    code = draw.choice(["zu", "ZU", "zu-ZA"])
    doctype = draw.choice(["", f'<!DOCTYPE tmx SYSTEM "tmx14.dtd">{end}'])
    head = f'<tmx version="1.4"><header srclang="{draw.choice(["ka", "*all*"])}" datatype="xml"/>{end}<body>{end}'
    parts: list[Part] = [declaration(draw, style), doctype, head]
    for number in range(draw.randint(0, 7)):
        said = fragment(draw, style, TMX_INLINE)
        other = f'{pad}<tuv {key}="fr"><seg>{fragment(draw, style, TMX_INLINE).plain}</seg></tuv>'
        date = draw.choice(["", ' creationdate="20200101T000000Z"', " o='a > b'"])
        prop = draw.choice(["", '<prop type="x">p</prop>', "<note>n</note>"])
        head = f'<tu tuid="{said.word}">{prop}{draw.choice(["", other])}'
        spoken = f'{pad}<tuv {key}="ka"{date}>{prop}<seg>{said.plain}</seg></tuv>'
        kind = draw.choice(["none", "none", "empty", "translated", "other"])
        if kind == "other" and number:  # a file without the source language is refused
            parts.append(f"{head}{other}{end}</tu>{end}")
            continue
        kind = "none" if kind == "other" else kind
        old = "" if kind == "empty" else fragment(draw, style, TMX_INLINE).plain
        is_place = kind == "empty" or style.redo
        seg = filled(draw, "seg", "", old, said) if is_place else [f"<seg>{old}</seg>"]
        written = [f'{pad}<tuv {key}="{code}">', *seg, "</tuv>"]
        new = [
            Place(
                "", rf'\s*<tuv {key}="\w+(?:-ZA)?"><seg>{ANY}</seg></tuv>', said.plain, said.word
            ),
            "",
        ]
        translated = new if kind == "none" else written
        if kind != "none" and draw.random() < 0.2:
            parts += [head, *written, spoken, f"{end}</tu>{end}"]
        else:
            parts += [head, spoken, *translated, f"{pad if draw.random() < 0.5 else end}</tu>{end}"]
    return [*parts, f"</body></tmx>{end}"]
