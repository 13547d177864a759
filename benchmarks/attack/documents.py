"""Translates random valid documents of every format, and damaged ones.

    python benchmarks/attack/documents.py --documents 2000 --minutes 60 [--seed 1] [--only PO]

Half of the documents are valid (document_kinds.py); the others are valid documents with one to three random mutations.
The function of `transduce translate` translates each, with an engine that writes a text in capitals, in half of the
documents with signs that formats must escape behind it. The outcome is
  translated  the output has the same bytes as the input outside the places of translations, each place has the
              translation of its source, an independent parser (polib, lxml, html.parser) finds the same structure in
              both, and transduce can read the output
  refused     the command ends with one sentence and writes nothing; for valid documents only if the encoding lacks a
              character of the translation
  defect      anything else
The table counts the outcomes. All defects are listed. The exit status is 1 if there are any. With --keep, the input and
the output of every defect are kept in a folder.
"""

import argparse
import codecs
import html
import os
import random
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polib
from document_kinds import KINDS, Kind, Part, Place, Style
from lxml import etree
from toy import TINY, attempt, command, loaded_call, write_corpus

from transduce.config.schema import DecodeConfig
from transduce.decoding.loading import load
from transduce.decoding.registry import ENGINES
from transduce.decoding.translator import Translator
from transduce.decoding.types import Feature, Hypothesis, ModelToOpen, NBestLists, Request
from transduce.system.errors import UserError
from transduce.text.formats import read_document
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.documents.translate_command import run

OUTCOMES = ("valid: translated", "valid: refused", "damaged: translated", "damaged: refused", "defect")
SECONDS = 120  # of computing for one document
CAPITALS = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
ODD = ["<", "&", '"', "]]>", "\\", "'", "ł😀", "</p>", "\\n", "%s", "&amp;", "\x01", "<b>", "\u2028", "\t", "{0}"]
LINE_BREAK = re.compile(r"\r\n|\r|\n")
SPOKEN = {"alt", "title", "placeholder", "aria-label", "value", "content"}
TOKENS = {
    "po": ['msgid ""\n', 'msgid "x"\n', 'msgstr ""\n', 'msgstr "', '"', "#, fuzzy\n", "#~ ", "\\", 'msgstr[1] ""\n', '"\n"', "\n\n"],
    "xml": ["<![CDATA[", "]]>", "<!--", "-->", "<source>", "</source>", "<target/>", "</target>", "<seg/>", "<tuv>", "&", "&nbsp;",
            "&#0;", "<?x", "?>", "/>", ' translate="no"', "<x/>", "<!DOCTYPE x [<!ENTITY a 'b'>]>", "<unit>", "<tu>", "<trans-unit>"],
    "html": ["<", ">", "<!--", "-->", "<p", "</p>", "<script>", "</script", "<title>", '"', "'", "=", "<b", "</b>", "&", "<![CDATA[",
             "<img alt=x", "<pre>", "<code>", "<plaintext>", "<svg>", "<br", " translate=no", "\0", "<a title='", "<textarea>", "<?x"],
    "lines": ["\n", "\n\n", "\r", "-->", "00:01.000 --> 00:02.000", "\n1\n00:00:01,000 --> 00:00:02,000\n", "- ", "WEBVTT", "NOTE\n",
              "<i>", "\x85", "\u2028", "\0", "\x0c", " ", "\t"],
}  # fmt: skip


class CapitalsEngine:
    """An engine that translates a text into capitals, with a suffix."""

    name, max_positions = "capitals", None
    supports: frozenset[Feature] = frozenset({"attention", "constraints", "positions"})
    suffix = ""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def budget(self, _config: DecodeConfig, _total: int) -> int:
        return 10_000

    def search(self, requests: Sequence[Request], _config: DecodeConfig, _n_best: int) -> Iterator[NBestLists]:
        for request in requests:
            texts = [text.translate(CAPITALS) + self.suffix for text in request.texts]
            yield [[Hypothesis(-1.0, tokens)] for tokens in self._tokenizer.encode_target(texts)]

    def log_probs(self, _sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[float]:
        return [-1.0] * len(targets)

    def attention(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Any]:
        """Attention along the diagonal."""
        return [
            np.eye(len(source), dtype=np.float32)[np.arange(len(target)) * len(source) // max(1, len(target))]
            for source, target in zip(sources, targets, strict=True)
        ]


def open_engine(model: ModelToOpen) -> CapitalsEngine:
    """The engine, as the registry of engines opens it."""
    return CapitalsEngine(model.tokenizer)


# -- what a document must be after its translation --------------------------------------------------------


def check_bytes(parts: Sequence[Part], output: str, suffix: str) -> None:
    """Raise AssertionError unless the parts that must stay did so and each place has the translation of its text."""
    at = 0
    for i, part in enumerate(parts):
        if isinstance(part, str):
            assert output.startswith(part, at), f"{output[at : at + 60]!r} instead of {part[:60]!r}"
            at += len(part)
            continue
        behind = "".join(each if isinstance(each, str) else each.before for each in parts[i + 1 : i + 2])
        match = re.compile(
            f"{part.after}(?={re.escape(behind)})" if behind else part.after + r"\Z" * (i + 1 == len(parts)), re.DOTALL
        ).match(output, at)
        assert match, f"{output[at : at + 100]!r} for {part.source[:60]!r}"
        assert part.word.translate(CAPITALS) in match["text"], (
            f"{match['text'][:100]!r} is no translation of {part.source[:60]!r}"
        )
        missing = characters(part.source) - characters(match["text"])
        assert not missing, f"{match['text']!r} lacks {missing} of {part.source!r}"
        more = characters(match["text"]) - characters(part.source)
        assert suffix or not more, f"{match['text']!r} has {more} more than {part.source!r}"
        at = match.end()
    assert at == len(output), f"{output[at : at + 60]!r} at the end"
    before = "".join(part if isinstance(part, str) else part.before for part in parts)
    breaks = {each: set(LINE_BREAK.findall(text)) or {"\n"} for each, text in (("in", before), ("out", output))}
    assert breaks["out"] <= breaks["in"], f"line breaks {breaks}"


def characters(raw: str) -> Counter[str]:
    """The characters of a text in any case without white space; placeholders may have other places than in the source."""
    if raw.startswith('"'):  # PO
        lines = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', raw))
        raw = re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), lines)
    else:
        raw = html.unescape(raw)
    return Counter("".join(raw.lower().split()))


def check_slots(name: str, content: bytes, output: bytes, redo: bool) -> None:
    """Raise AssertionError unless the content around the slots is in the output, in order and at both ends."""
    document: Any = read_document(content, name, "ka", "zu", redo=redo)
    text, slots = output.decode(document.codec), [slot for slot in document.slots if slot.within is None]
    ends = [0, *(slot.end for slot in slots)]
    kept = [
        document.content[a:b]
        for a, b in zip(ends, [*(slot.begin for slot in slots), len(document.content)], strict=True)
    ]
    assert text.startswith(kept[0]) and text.endswith(kept[-1]), "the beginning or the end changed"
    at = len(kept[0])
    for piece in kept[1:]:
        found = text.find(piece, at)
        assert found >= 0, f"{piece[:60]!r} is gone after {text[at : at + 60]!r}"
        at = found + len(piece)


def structure(name: str, content: bytes) -> list[Any] | None:
    """What an independent parser finds in a document, without its translations. None: it cannot read the document."""
    suffix = name.rpartition(".")[2]
    if suffix in ("po", "pot"):
        return po_structure(content)
    if suffix in ("xlf", "xliff", "tmx"):
        return xml_structure(content)
    text = content.decode("utf-16" if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "utf-8", "replace")
    if suffix in ("html", "xhtml"):
        page = Page()
        try:
            page.feed(text)
        except AssertionError:  # for declarations that html.parser does not know
            return None
        return sorted(page.found.items(), key=str)
    if suffix in ("srt", "vtt"):
        return [line for line in re.split(r"\r\n|\r|\n", text) if re.search(r"^\s*\d[\d:.,]*\s*-->", line)]
    return [not line.strip(" \t\r\ufeff\u00a0") for line in text.split("\n")]


def po_structure(content: bytes) -> list[Any] | None:
    """The messages that polib finds, without their translations unless these must stay."""
    declared = re.search(rb"charset=([\w-]+)", content)
    codec = declared[1].decode() if declared and declared[1] != b"CHARSET" else "utf-8"
    with tempfile.NamedTemporaryFile() as file:  # polib splits strings at other line breaks, too
        file.write(content.removeprefix(codecs.BOM_UTF8))
        file.flush()
        try:
            found = polib.pofile(file.name, encoding=codec)
        except (OSError, ValueError, LookupError, AttributeError):
            return None
    messages = [
        (
            e.msgid,
            e.msgid_plural,
            e.msgctxt,
            e.flags,
            e.comment,
            e.tcomment,
            e.occurrences,
            e.obsolete,
            e.previous_msgid,
        )
        for e in found
    ]
    stays = [(e.msgstr, e.msgstr_plural) for e in found if e.fuzzy or e.obsolete]
    return [(found.header, found.metadata), *messages, *stays]


def xml_structure(content: bytes) -> list[Any] | None:
    """The elements, attributes and texts of a file without targets and white space."""
    try:
        root = etree.fromstring(content, etree.XMLParser(resolve_entities=False, huge_tree=True))
    except (etree.XMLSyntaxError, ValueError):
        return None
    for element in [*root.iter("{*}target", "{*}tuv")]:
        language = element.get("{http://www.w3.org/XML/1998/namespace}lang") or element.get("lang") or "zu"
        parent = etree.QName(element.getparent()).localname if element.getparent() is not None else ""
        if parent in ("trans-unit", "segment") or (parent == "tu" and language.lower().startswith("zu")):
            tail, before = element.tail or "", element.getprevious()
            if before is not None:
                before.tail = (before.tail or "") + tail
            else:
                element.getparent().text = (element.getparent().text or "") + tail
            element.getparent().remove(element)
    return [(str(e.tag), dict(e.attrib), (e.text or "").strip(), (e.tail or "").strip()) for e in root.iter()]


class Page(HTMLParser):
    """Counts the tags, comments and declarations of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.found = Counter[object]()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found[tag, *((name, None if name in SPOKEN else value) for name, value in attrs)] += 1

    def handle_endtag(self, tag: str) -> None:
        self.found["/", tag] += 1

    def handle_comment(self, data: str) -> None:
        self.found["!--", data] += 1

    def handle_decl(self, decl: str) -> None:
        self.found["!", decl] += 1


# -- damage -----------------------------------------------------------------------------------------------


def damaged(data: bytes, suffix: str, draw: random.Random) -> bytes:
    """The document with one to three mutations."""
    family = {
        "po": "po",
        "pot": "po",
        "html": "html",
        "xhtml": "html",
        "srt": "lines",
        "vtt": "lines",
        "txt": "lines",
    }.get(suffix, "xml")
    codec = (
        "utf-16-le" if data[:2] == codecs.BOM_UTF16_LE else "utf-16-be" if data[:2] == codecs.BOM_UTF16_BE else "utf-8"
    )
    for _ in range(draw.randint(1, 3)):
        kind, at = draw.randrange(9), draw.randint(0, len(data))
        lines, end = data.split(b"\n"), at + draw.choice([1, 2, 5, 20, 100])
        i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
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
            data = draw.choice(
                [data.replace(b"\r\n", b"\n"), data.replace(b"\n", b"\r\n", 3), data.replace(b"\n", b"\r")]
            )
        elif kind == 6 and draw.random() < 0.3:
            data = data[:at]
        else:
            at -= at % 2 if codec != "utf-8" else 0
            token = draw.choice([*TOKENS[family] * 2, "\ufeff", "\u2028", "\xe4", "\r"])
            data = data[:at] + token.encode(codec) + data[at:]
    return data


class Document(NamedTuple):
    """A document to translate."""

    name: str
    content: bytes
    style: Style
    parts: list[Part] | None  # None: a damaged one


def make(kind: Kind, draw: random.Random) -> Document:
    style = Style(draw.choice(kind.codecs), draw.choice(kind.newlines), draw.random() < 0.3)
    parts = [part for part in kind.make(draw, style) if part != ""]
    text = "".join(part.before if isinstance(part, Place) else part for part in parts)
    mark = "\ufeff" if style.codec.startswith("utf-16") else ""
    content = (mark + text).encode(style.codec)
    if draw.random() < 0.5:
        return Document(f"in{kind.suffix}", content, style, parts)
    return Document(f"in{kind.suffix}", damaged(content, kind.suffix[1:], draw), style, None)


def check(translator: Translator, place: Path, document: Document, suffix: str) -> str:
    """Translate a document. Returns the outcome; raises AssertionError with a defect."""
    name, content, style, parts = document
    file, output = place / name, place / f"out{Path(name).suffix}"
    file.write_bytes(content)
    output.unlink(missing_ok=True)
    state = "valid" if parts is not None else "damaged"
    if message := attempt(run, loaded_call(translator, place / "model", file, output, redo=style.redo), SECONDS):
        assert parts is None or ("lacks" in message and suffix), f"refused: {message}"
        return f"{state}: refused"
    written = output.read_bytes()
    if parts is not None:
        text = written.decode(style.codec)
        if style.codec.startswith("utf-16"):
            assert text[:1] == "\ufeff", "no byte order mark"
            text = text[1:]
        assert text.encode(style.codec) in written, "another byte order mark"
        check_bytes(parts, text, suffix)
    check_slots(name, content, written, style.redo)
    try:
        read_document(written, name, "ka", "zu", redo=True)
    except UserError as error:
        raise AssertionError(f"the output can't be read: {error}") from None
    if before := structure(name, content):
        after = structure(name, written) or []
        different = [pair for pair in zip_longest(before, after) if pair[0] != pair[1]]
        assert before == after, f"a parser finds another structure: {different[:1]}"
    return f"{state}: translated"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=2000, help="of each format")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--first", type=int, default=0, help="number of the first document")
    parser.add_argument("--keep", type=Path)
    arguments = parser.parse_args()
    counts, defects = Counter[tuple[str, str]](), list[str]()
    ENGINES["capitals"] = f"{__name__}:open_engine"
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")
        source, target = write_corpus(place)
        command(
            "train",
            "--train",
            source,
            target,
            "--from",
            "ka",
            "--to",
            "zu",
            "--out",
            place / "model",
            *TINY,
            "train.steps=3",
        )
        translator = load(place / "model", {"decode.capitals": False, "decode.retry_loops": False}, engine="capitals")
        end, kinds = time.monotonic() + 60 * arguments.minutes, [arguments.only] if arguments.only else [*KINDS]
        for number in range(arguments.first, arguments.first + arguments.documents):
            for kind in kinds if time.monotonic() < end else ():
                draw = random.Random(f"{arguments.seed} {kind} {number}")
                document = make(KINDS[kind], draw)
                CapitalsEngine.suffix = draw.choice(ODD) if draw.random() < 0.5 else ""
                try:
                    found = check(translator, place, document, CapitalsEngine.suffix)
                except Exception as error:
                    found, reason = "defect", str(error) or traceback.format_exc()
                    name = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
                    state = "valid" if document.parts is not None else "damaged"
                    defects.append(f"{kind} {number}, {state}, suffix {CapitalsEngine.suffix!r}: {name}{reason[:600]}")
                    print(defects[-1], flush=True)
                    if arguments.keep:
                        for file in place.glob("*.*"):
                            (arguments.keep / f"{kind}-{number}-{file.name}").write_bytes(file.read_bytes())
                counts[kind, found] += 1
    print(f"| format | documents | {' | '.join(OUTCOMES)} |\n| --- |{' --- |' * (len(OUTCOMES) + 1)}")
    for kind in kinds:
        row = [counts[kind, each] for each in OUTCOMES]
        print(f"| {kind} | {sum(row):,} | {' | '.join(f'{n:,}' for n in row)} |")
    print(f"seed {arguments.seed}, {sum(counts.values()):,} documents, {len(defects)} defects")
    sys.exit(bool(defects))


if __name__ == "__main__":
    main()
