"""Random damage to documents, for the attack on documents."""

import codecs
import random

TOKENS = {  # by suffixes
    "po pot": [
        'msgid ""\n',
        'msgid "x"\n',
        'msgstr ""\n',
        'msgstr "',
        '"',
        "#, fuzzy\n",
        "#~ ",
        "\\",
        'msgstr[1] ""\n',
        '"\n"',
        "\n\n",
    ],
    "xlf xliff tmx": [
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "<source>",
        "</source>",
        "<target/>",
        "</target>",
        "<seg/>",
        "<tuv>",
        "&",
        "&nbsp;",
        "&#0;",
        "<?x",
        "?>",
        "/>",
        ' translate="no"',
        "<x/>",
        "<!DOCTYPE x [<!ENTITY a 'b'>]>",
        "<unit>",
        "<tu>",
        "<trans-unit>",
    ],
    "html xhtml": [
        "<",
        ">",
        "<!--",
        "-->",
        "<p",
        "</p>",
        "<script>",
        "</script",
        "<title>",
        '"',
        "'",
        "=",
        "<b",
        "</b>",
        "&",
        "<![CDATA[",
        "<img alt=x",
        "<pre>",
        "<code>",
        "<plaintext>",
        "<svg>",
        "<br",
        " translate=no",
        "\0",
        "<a title='",
        "<textarea>",
        "<?x",
    ],
    "srt vtt txt": [
        "\n",
        "\n\n",
        "\r",
        "-->",
        "00:01.000 --> 00:02.000",
        "\n1\n00:00:01,000 --> 00:00:02,000\n",
        "- ",
        "WEBVTT",
        "NOTE\n",
        "<i>",
        "\x85",
        "\u2028",
        "\0",
        "\x0c",
        " ",
        "\t",
    ],
}


def damaged(data: bytes, suffix: str, draw: random.Random) -> bytes:
    """The document with one to three mutations."""
    tokens = next(tokens for suffixes, tokens in TOKENS.items() if suffix in suffixes.split())
    codec = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}.get(
        data[:2], "utf-8"
    )
    for _ in range(draw.randint(1, 3)):
        kind = draw.randrange(9)
        at = draw.randint(0, len(data))
        lines = data.split(b"\n")
        end = at + draw.choice([1, 2, 5, 20, 100])
        i = draw.randrange(len(lines))
        j = draw.randrange(len(lines))
        if kind == 0 and at < len(data):
            data = data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + data[end:]
        elif kind == 2:
            data = data[:end] + data[at:]
        elif kind == 3:
            lines[i], lines[j] = lines[j], lines[i]
            data = b"\n".join(lines)
        elif kind == 4:
            data = b"\n".join([*lines[:i], *lines[j:]])
        elif kind == 5:
            unix = data.replace(b"\r\n", b"\n")
            data = draw.choice([unix, data.replace(b"\n", b"\r\n", 3), data.replace(b"\n", b"\r")])
        elif kind == 6 and draw.random() < 0.3:
            data = data[:at]
        else:
            at -= at % 2 if codec != "utf-8" else 0
            token = draw.choice([*tokens * 2, "\ufeff", "\u2028", "\xe4", "\r"])
            data = data[:at] + token.encode(codec) + data[at:]
    return data
