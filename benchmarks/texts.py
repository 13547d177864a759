"""What a model's translations keep of texts as people have them.

Changes the sentences of a file in ways that should not change their translation, such as NFD, no-break spaces and
invisible characters; inserts symbols; and writes messages with two placeholders each as PO and XLIFF. Prints a table.

    python benchmarks/texts.py demo/model demo/text/test.en
"""

import random
import re
import unicodedata
from collections.abc import Callable
from html import escape
from pathlib import Path

from measuring import run_script

from transduce import Translator, load
from transduce.decoding.plan import LOST
from transduce.inline.events import PLACEHOLDERS, WITH_BRANCHES
from transduce.text.formats import read_document
from transduce.wings.documents.document import translate_document

SENTENCES = 150
MESSAGES = 200
SYMBOLS = [
    "😀",
    "👍🏽",
    "👩\u200d🚀",
    "❤️",
    "🇩🇪",
    "♪",
    "→",
    "★",
    "東京",
    "Москва",
    "½",
    "1️⃣",
    "™",
    "☎",
    "🎉🎉",
]
INVISIBLE = {
    "soft hyphens": "\u00ad",
    "zero-width spaces": "\u200b",
    "zero-width non-joiners": "\u200c",
    "zero-width joiners": "\u200d",
    "word joiners": "\u2060",
    "right-to-left marks": "\u200f",
    "byte order marks": "\ufeff",
    "variation selectors": "\ufe0f",
    "control characters": "\x01",
}
LIGATURES = {"ffi": "ﬃ", "fi": "ﬁ", "fl": "ﬂ", "ff": "ﬀ"}
PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\nPlural-Forms: nplurals=2; plural=(n != 1);\\n"\n'
XLIFF = '<xliff version="1.2"><file source-language="{}" target-language="{}"><body>{}</body></file></xliff>'


def wide(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def ligatures(text: str) -> str:
    for letters, ligature in LIGATURES.items():
        text = text.replace(letters, ligature)
    return text


def variants(draw: random.Random) -> dict[str, Callable[[str], str]]:
    """Changes of a text that a reader does not see, or hardly."""

    def with_sign(sign: str) -> Callable[[str], str]:
        return lambda text: re.sub(
            r"[^\W\d_]", lambda letter: letter[0] + sign * (draw.random() < 0.2), text
        )

    return {
        "NFD": lambda text: unicodedata.normalize("NFD", text),
        "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
        "thin spaces": lambda text: text.replace(" ", "\u2009"),
        "doubled blanks": lambda text: text.replace(" ", "  "),
        "TABs": lambda text: text.replace(" ", "\t", 1),
        "full-width Latin": wide,
        "ligatures": ligatures,
        "isolates": lambda text: f"\u2066{text}\u2069",
        **{name: with_sign(sign) for name, sign in INVISIBLE.items()},
    }


def translations(translator: Translator, texts: list[str]) -> list[str]:
    return [each.text for each in translator.translate(texts)]


def inserted(sentence: str, symbols: list[str], draw: random.Random) -> str:
    """The sentence with each symbol between two of its words."""
    words = sentence.split(" ")
    for symbol in symbols:
        words.insert(draw.randrange(1, len(words)), symbol)
    return " ".join(words)


def messages(sentences: list[str], draw: random.Random) -> list[tuple[str, list[str]]]:
    """Sentences with two placeholders each, and the placeholders."""
    # Not $2, which is a price without $1, and not a message with branches.
    found = [each for syntax in PLACEHOLDERS for each in syntax.examples]
    examples = [each for each in found if each != "$2" and not WITH_BRANCHES.match(each)]
    drawn = (draw.sample(examples, 2) for _ in range(MESSAGES))
    return [(inserted(draw.choice(sentences), pair, draw), pair) for pair in drawn]


def as_file(name: str, texts: list[str], source: str, target: str) -> bytes:
    if name == "a.po":
        quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in texts)
        content = PO + "".join(f'\nmsgid "{text}"\nmsgstr ""\n' for text in quoted)
    else:
        units = (
            f"<trans-unit><source>{escape(each, quote=False)}</source></trans-unit>\n"
            for each in texts
        )
        content = XLIFF.format(source, target, "".join(units))
    return content.encode()


def measure_file(translator: Translator, name: str, drawn: list[tuple[str, list[str]]]) -> str:
    """How many texts of a file keep both placeholders, and how many lose one without a flag."""
    languages = ("en", "de")  # any, the same in the file
    content = as_file(name, [text for text, _ in drawn], *languages)
    before = read_document(content, name, *languages)
    done = translate_document(translator, content, name, *languages)
    flagged = {line for line, flags in done.flagged if LOST in flags}
    slots = read_document(done.content, name, *languages, redo=True).slots  # type: ignore
    kept = silent = 0
    for slot, line, (text, pair) in zip(slots, before.lines, drawn, strict=True):
        written = slot.present if name == "a.po" else unescaped(slot.present)
        is_kept = all(written.count(each) == text.count(each) for each in pair)
        kept += is_kept
        silent += not is_kept and line not in flagged
    return f"{kept} of {len(drawn)}, {silent} lost without a flag"


def unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def main(model: Path, file: Path, /, *, seed: int = 1) -> None:
    """Measure a model with the first sentences of a file in its source language."""
    translator = load(model)
    draw = random.Random(seed)
    sentences = file.read_text("utf-8").splitlines()[:SENTENCES]
    clean = translations(translator, sentences)
    print("| texts | translated as the clean text, or kept |\n| --- | --- |")
    for name, change in variants(draw).items():
        found = translations(translator, [change(each) for each in sentences])
        print(f"| {name} | {sum(map(str.__eq__, found, clean))} of {len(clean)} |")
    symbols = [draw.choice(SYMBOLS) for _ in sentences]
    with_symbols = [
        inserted(*each, draw) for each in zip(sentences, [[s] for s in symbols], strict=True)
    ]
    found = translations(translator, with_symbols)
    kept = sum(text.count(symbol) == 1 for text, symbol in zip(found, symbols, strict=True))
    print(f"| symbols | {kept} of {len(symbols)} |")
    drawn = messages(sentences, draw)
    for name in ("a.po", "a.xlf"):
        print(f"| two placeholders in {name[2:]} | {measure_file(translator, name, drawn)} |")


if __name__ == "__main__":
    run_script(main, __doc__)
