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

import os
import random
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from document_checks import CAPITALS, check_bytes, check_slots, completed_header, structure
from document_damage import damaged
from document_kinds import KINDS, Kind
from document_parts import Part, Place, Style
from script import run_script
from toy import TINY, attempt, command, loaded_call, report, write_corpus

from transduce.config.schema import DecodeConfig
from transduce.decoding.loading import load
from transduce.decoding.registry import ENGINES
from transduce.decoding.translator import Translator
from transduce.decoding.types import Feature, Hypothesis, ModelToOpen, NBestLists, Request
from transduce.system.errors import UserError
from transduce.text.formats import read_document
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.documents.translate_command import run

OUTCOMES = (
    "valid: translated",
    "valid: refused",
    "damaged: translated",
    "damaged: refused",
    "defect",
)
SECONDS = 120  # of computing for one document
ODD = [
    "<",
    "&",
    '"',
    "]]>",
    "\\",
    "'",
    "ł😀",
    "</p>",
    "\\n",
    "%s",
    "&amp;",
    "\x01",
    "<b>",
    "\u2028",
    "\t",
    "{0}",
]


class CapitalsEngine:
    """An engine that translates a text into capitals, with a suffix."""

    name = "capitals"
    max_positions = None
    supports: frozenset[Feature] = frozenset({"attention", "constraints", "positions"})
    suffix = ""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def budget(self, _config: DecodeConfig, _total: int) -> int:
        return 10_000

    def search(
        self, requests: Sequence[Request], _config: DecodeConfig, _n_best: int
    ) -> Iterator[NBestLists]:
        for request in requests:
            texts = [text.translate(CAPITALS) + self.suffix for text in request.texts]
            yield [[Hypothesis(-1.0, tokens)] for tokens in self._tokenizer.encode_target(texts)]

    def log_probs(
        self, _sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[float]:
        return [-1.0] * len(targets)

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[Any]:
        """Attention along the diagonal."""
        return [
            np.eye(len(source), dtype=np.float32)[
                np.arange(len(target)) * len(source) // max(1, len(target))
            ]
            for source, target in zip(sources, targets, strict=True)
        ]


def open_engine(model: ModelToOpen) -> CapitalsEngine:
    """The engine, as the registry of engines opens it."""
    return CapitalsEngine(model.tokenizer)


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
    file = place / name
    output = place / f"out{Path(name).suffix}"
    file.write_bytes(content)
    output.unlink(missing_ok=True)
    state = "valid" if parts is not None else "damaged"
    if message := attempt(
        run, loaded_call(translator, place / "model", file, output, redo=style.redo), SECONDS
    ):
        assert parts is None or ("lacks" in message and suffix), f"refused: {message}"
        return f"{state}: refused"
    written = output.read_bytes()
    if parts is not None:
        codec = style.codec
        if file.suffix in (".po", ".pot"):
            codec = codec.replace("ascii", "utf-8")
            if written != content:
                parts[:1] = [completed_header(name, content, str(parts[0]))]
        text = written.decode(codec)
        if style.codec.startswith("utf-16"):
            assert text[:1] == "\ufeff", "no byte order mark"
            text = text[1:]
        assert style.codec != "utf-8-sig" or written == text.encode(style.codec), (
            "no byte order mark"
        )
        check_bytes(parts, text, name, exact=not suffix)
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


def main(
    *,
    documents: int = 2000,
    minutes: float = 10,
    seed: int = 1,
    only: str = "",
    first: int = 0,
    keep: Path | None = None,
) -> None:
    """Translate so many documents of each format, from number `first` on, and print the table."""
    counts = Counter[tuple[str, str]]()
    defects = list[str]()
    ENGINES["capitals"] = f"{__name__}:open_engine"
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")
        source, target = write_corpus(place)
        corpus = ("--train", source, target, "--from", "ka", "--to", "zu")
        command("train", *corpus, "--out", place / "model", *TINY, "train.steps=3")
        translator = load(
            place / "model",
            {"decode.capitals": False, "decode.retry_loops": False},
            engine="capitals",
        )
        end = time.monotonic() + 60 * minutes
        kinds = [only] if only else [*KINDS]
        for number in range(first, first + documents):
            for kind in kinds if time.monotonic() < end else ():
                draw = random.Random(f"{seed} {kind} {number}")
                document = make(KINDS[kind], draw)
                CapitalsEngine.suffix = draw.choice(ODD) if draw.random() < 0.5 else ""
                try:
                    found = check(translator, place, document, CapitalsEngine.suffix)
                except Exception as error:
                    found = "defect"
                    reason = str(error) or traceback.format_exc()
                    name = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
                    state = "valid" if document.parts is not None else "damaged"
                    defects.append(
                        f"{kind} {number}, {state}, suffix {CapitalsEngine.suffix!r}: {name}{reason[:600]}"
                    )
                    print(defects[-1], flush=True)
                    if keep:
                        for file in place.glob(f"*{KINDS[kind].suffix}"):
                            (keep / f"{kind}-{number}-{file.name}").write_bytes(file.read_bytes())
                counts[kind, found] += 1
    report("format | documents", kinds, OUTCOMES, counts, defects)


if __name__ == "__main__":
    run_script(main, __doc__)
