"""Self-contained HTML pages, for phone and desktop, light and dark mode, offline."""

import base64
import hashlib
import html
from functools import cache
from importlib.resources import files

from transduce.wings.inspection.picture import Picture

# Symbols (␀ ␁ …) for characters that XML forbids, and U+FFFD for lone surrogates; tab and line feed are allowed.
_SYMBOLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
_SYMBOLS |= {127: 0x2421, 0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD} | dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)

DRAW = 'transduce.draw(document.getElementById("drawing"), JSON.parse(document.getElementById("data").textContent));\n'


def shown(text: str) -> str:
    """Escape a text for HTML and SVG, with symbols for control characters."""
    return html.escape(drawable(text))


def drawable(text: str) -> str:
    """Replace control characters by symbols, and lone surrogates by U+FFFD."""
    return text.translate(_SYMBOLS)


def section(heading: str, content: str) -> str:
    """A section of a page: heading as text, content as HTML; "" without content."""
    return f"<section><h2>{shown(heading)}</h2>\n{content}\n</section>" if content else ""


@cache
def packaged(name: str) -> str:
    """Read a file of this folder."""
    return (files("transduce.wings.inspection") / name).read_text(encoding="utf-8")


def drawing(picture: Picture) -> str:
    """The HTML element in which the script of `document` draws a picture."""
    data = picture.json().replace("<", "\\u003c")  # a text could contain </script>
    return (
        '<div id="drawing"><noscript><p>This page draws the picture with a script. Please allow scripts.</p>'
        f'</noscript></div>\n<script type="application/json" id="data">{data}</script>'
    )


def document(title: str, body: str, style: str = "", *, draws: bool = False, inline_styles: bool = False) -> str:
    """A whole page. Its Content-Security-Policy forbids all requests and all scripts but the one that draws pictures.

    title: text; body: HTML. draws: include that script. inline_styles: allow style attributes, which matplotlib's
    drawings have.
    """
    style = packaged("drawing.css") + PAGE_STYLE + style
    script = packaged("drawing.js") + DRAW if draws else ""
    styles = "'unsafe-inline'" if inline_styles else _hash(style)
    scripts = _hash(script) if draws else "'none'"
    policy = f"default-src 'none'; style-src {styles}; script-src {scripts}; base-uri 'none'; form-action 'none'"
    return PAGE.format(
        title=shown(title),
        policy=policy,
        style=style,
        body=body,
        script=f"<script>{script}</script>" if draws else "",
    )


def picture_page(picture: Picture) -> str:
    """The page about one sentence."""
    head = (
        f'<header><h1 dir="auto">{shown(picture.source)}</h1><p dir="auto" class="translation">'
        f"{shown(picture.translation)}</p></header>"
    )
    return document(f"Attention: {picture.source}", f"{head}\n{drawing(picture)}", draws=True)


def _hash(text: str) -> str:
    """The hash by which a Content-Security-Policy allows an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
{script}
</body>
</html>
"""

PAGE_STYLE = """
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 58rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .4rem; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.6rem 0 .3rem; }
figure { margin: 0; background: var(--card); border: 1px solid var(--line); border-radius: .6rem; padding: 1rem; }
ul { padding-left: 1.2rem; margin: 0; }
.note { color: var(--soft); font-size: .875rem; }
header p { font-size: 1.1rem; color: var(--soft); margin: 0; overflow-wrap: anywhere; }
.translation { font-size: 1.5rem; color: var(--accent); }
@media (max-width: 640px) { main { padding: 1.5rem .8rem 3rem; } h1 { font-size: 1.5rem; } }
"""
