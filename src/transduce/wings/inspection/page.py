"""Self-contained HTML pages that work offline, on phones and desktops, in light and dark mode."""

import base64
import hashlib
import html
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from transduce.wings.inspection.picture import Picture

# Symbols (␀ ␁ …) for characters that XML forbids, and U+FFFD for lone surrogates; tab and line feed are allowed.
_SYMBOLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
_SYMBOLS |= {127: 0x2421, 0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD} | dict.fromkeys(
    range(0xD800, 0xE000), 0xFFFD
)

ABOUT = (
    "transduce trains, evaluates and serves models that translate. This page is one of its reports."
)
DRAW = 'transduce.draw(document.getElementById("drawing"), JSON.parse(document.getElementById("data").textContent));\n'


def shown(text: str) -> str:
    """Escape a text for HTML and SVG, and replace control characters by symbols."""
    return html.escape(drawable(text))


def drawable(text: str) -> str:
    """Replace control characters by symbols, and lone surrogates by U+FFFD."""
    return text.translate(_SYMBOLS)


def header(title: str, summary: str, steps: Sequence[tuple[str, str]]) -> str:
    """The beginning of a report: what transduce is, a summary, and what to do next, as pairs (purpose, command)."""
    items = "\n".join(
        f"<li>{shown(purpose)}{f'<pre>{shown(command)}</pre>' if command else ''}</li>"
        for purpose, command in steps
    )
    head = f'<p class="note">{ABOUT}</p><h1>{shown(title)}</h1><p>{shown(summary)}</p>'
    return f"<header>{head}</header>\n{section('Next steps', items and f'<ul>{items}</ul>')}"


def section(heading: str, content: str) -> str:
    """Make a section of a page from a plain-text heading and HTML content; returns "" if the content is empty."""
    return f"<section><h2>{shown(heading)}</h2>\n{content}\n</section>" if content else ""


@cache
def packaged(name: str) -> str:
    """The content of a text file in this package."""
    return (files("transduce.wings.inspection") / name).read_text(encoding="utf-8")


def drawing(picture: Picture) -> str:
    """The HTML element in which `drawing.js` draws a picture, and the picture's data."""
    data = picture.json().replace("<", "\\u003c")  # a text could contain </script>
    return (
        '<div id="drawing"><noscript><p>This page draws the picture with a script. Please allow scripts.</p>'
        f'</noscript></div>\n<script type="application/json" id="data">{data}</script>'
    )


def document(
    title: str, body: str, style: str = "", *, draws: bool = False, inline_styles: bool = False
) -> str:
    """A complete HTML page with a Content-Security-Policy that forbids requests.

    `title` is plain text, and `body` is HTML. `draws` adds `drawing.js`. `inline_styles` allows style attributes.
    """
    style = packaged("drawing.css") + packaged("page.css") + style
    script = packaged("drawing.js") + DRAW if draws else ""
    styles = "'unsafe-inline'" if inline_styles else _hash(style)
    scripts = _hash(script) if draws else "'none'"
    policy = f"default-src 'none'; style-src {styles}; script-src {scripts}; base-uri 'none'; form-action 'none'"
    script = f"<script>{script}</script>" if draws else ""
    return packaged("page.html").format(
        title=shown(title), policy=policy, style=style, body=body, script=script
    )


def picture_page(picture: Picture) -> str:
    """An HTML page with the attention maps and the beam search of one sentence."""
    head = (
        f'<header><h1 dir="auto">{shown(picture.source)}</h1><p dir="auto" class="translation">'
        f"{shown(picture.translation)}</p></header>"
    )
    return document(f"Attention: {picture.source}", f"{head}\n{drawing(picture)}", draws=True)


def _hash(text: str) -> str:
    """The hash of an inline script or style, for a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
