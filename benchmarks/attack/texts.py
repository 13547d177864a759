"""Translates files of hostile lines with every engine.

    python benchmarks/attack/texts.py --files 10000 --minutes 60 [--seed 1] [--first 0]

A small model of a toy language is trained and exported. Each engine opens it once. Then the script repeats the
following steps: write a file of random hostile lines (see LINES), translate it with each engine through the function of
`transduce translate`, and translate one of its lines alone. The outcome is
  translated  every line has one line, blank lines are blank, and the line alone gets the same translation
  refused     the file is not UTF-8; the message names the file, the line and the byte, and there is no output
  defect      anything else: another number of lines, another translation, a traceback, or no end
The table counts the outcomes. All defects are listed. The exit status is 1 if there are any.
"""

import gzip
import json
import os
import random
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from script import run_script
from toy import TINY, WORDS, attempt, command, loaded_call, report, write_corpus

from transduce.commands.translate import LineFormat, translate_lines
from transduce.decoding.loading import load
from transduce.decoding.translator import Translator
from transduce.decoding.types import TranslationOptions

OUTCOMES = ("translated", "refused", "defect")
SECONDS = 300  # of computing for one file
TIE = 1e-3  # two translations whose scores differ less are a tie: the size of a batch changes the rounding
# Folders.
ENGINES = {
    "torch": "model",
    "ctranslate2": "model",
    "auto": "onnx",
    "blockwise": "blocks",
}
Draw = random.Random


def words(draw: Draw) -> str:
    return " ".join(draw.choices([*WORDS], k=draw.randint(1, 6)))


def among(characters: str, most: int = 6) -> Callable[[Draw], str]:
    """Make lines of toy words between the given characters."""

    def line(draw: Draw) -> str:
        parts = [
            *draw.choices(characters, k=draw.randint(1, most)),
            *draw.choices([*WORDS, " "], k=3),
        ]
        return "".join(draw.sample(parts, len(parts)))

    return line


SPECIAL = (
    "<s>",
    "</s>",
    "<unk>",
    "<pad>",
    "<0x0A>",
    "<0x00>",
    "▁",
    "▁▁ka",
    "<2de>",
    "__en__",
    "[MASK]",
    "<|endoftext|>",
    "<b>",
    "</b>",
    "<br/>",
    "<b",
    "<!--",
    "-->",
    "<![CDATA[",
    "]]>",
    "<?xml?>",
    "&amp;",
    "&#10;",
    "&#x0A;",
    "&nbsp;",
    "{0}",
    "{",
    "}}",
    "{{ ka }}",
    "%s",
    "%(lo)s",
    "%",
    "${x}",
    "\\n",
    "\\",
    "`ka`",
    "**lo**",
    "[ka](http://lo)",
    "http://ka.example/?lo=1",
    "ka@lo.example",
    ":ref:`ka`",
    "|lo|",
    '"',
    "'",
    "\ue000",
    "\uf8ff",
    "- ",
    "1. ",
    "# ",
)
LINES: dict[str, Callable[[Draw], str]] = {
    "words": words,
    "empty": lambda _: "",
    "blank": among(" \t\u00a0\u3000\u2003\x0b\x0c\x1c\u2028"),
    "tabs": among("\t"),
    "carriage returns": among("\r"),
    "line separators": among("\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"),
    "controls": among("\0\x01\x07\x08\x1b\x1f\x7f\x80\x9f"),
    "byte order marks": among("\ufeff\ufffe\uffff\U0010ffff\ufffd"),
    "combining": lambda draw: "".join(
        word + "".join(draw.choices("\u0300\u0308\u0338\u20dd\u0e38\u3099", k=9)) for word in WORDS
    ),
    "directions": among(
        "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c\u05d0\u0645"
    ),
    "emoji": among("👩\u200d👩\u200d👧🏽🇩🇪🏴\ufe0f\u20e3☠😀"),
    "scripts": among("ßſıİŉǅΣςﬁＡ你好ａ한안ไทย𝔄\U0001d173ﷺ\u00ad\u200b\u2060"),
    "special": lambda draw: "".join(draw.choices([*SPECIAL, *WORDS, " "], k=draw.randint(1, 8))),
    "capitals": lambda draw: words(draw).upper(),
    "repeated": lambda draw: draw.choice([*WORDS, "a", ".", " ", "́", "ka. "]) * draw.randint(2, 80),
    "digits": lambda draw: "".join(draw.choices("0123456789.,- ", k=draw.randint(1, 60))),
    "any": lambda draw: "".join(
        chr(draw.choice([draw.randrange(0xD800), draw.randrange(0xE000, 0x110000)]))
        for _ in range(8)
    ).replace("\n", " "),
}
LONG_LINES: dict[str, Callable[[Draw], str]] = {
    "thousands of digits": lambda draw: "".join(
        draw.choices("0123456789", k=draw.randint(1000, 6000))
    ),
    "long word": lambda draw: draw.choice("aé你😀\u0301<[{&%`*") * draw.randint(1000, 6000),
    "long sentence": lambda draw: " ".join(
        draw.choices([*WORDS, *SPECIAL], k=draw.randint(500, 2500))
    ),
    "many sentences": lambda draw: " ".join(
        words(draw) + draw.choice([".", "?", "。", ""]) for _ in range(300)
    ),
}
NOT_UTF8 = [
    b"\xed\xa0\x80",
    b"\xed\xbf\xbf",
    b"\xff",
    b"\xc0\xaf",
    b"\xe4\xbd",
    b"\xf4\x90\x80\x80",
    b"\x80",
    b"k\xe9",
    b"\xff\xfek\0",
]


def hostile_file(draw: Draw) -> bytes:
    """A file of up to ten hostile lines, or of a long one."""
    if draw.random() < 0.004:
        lines = [words(draw), draw.choice([*LONG_LINES.values()])(draw), words(draw)]
    else:
        kinds = draw.sample([*LINES.values()], draw.randint(1, 4))
        lines = [draw.choice(kinds)(draw) for _ in range(draw.randint(0, 10))]
    if lines and draw.random() < 0.2:
        lines += draw.choices(lines, k=3)
    ends = draw.choice([["\n"], ["\n"], ["\r\n"], ["\n", "\r\n"], ["\n", "\r\n", "\r\r\n"]])
    text = "".join(line + draw.choice(ends) for line in lines)
    text = text.rstrip("\r\n") if draw.random() < 0.3 else text
    mark = "\ufeff" if draw.random() < 0.1 else ""
    data = f"{mark}{text}".encode()
    if draw.random() < 0.08:
        at = draw.randint(0, len(data))
        data = data[:at] + draw.choice(NOT_UTF8) + data[at:]
    return data


def lines_of(data: bytes) -> list[str]:
    """The lines that the documentation promises; raises UnicodeDecodeError."""
    text = data.decode()
    lines = text.removesuffix("\n").split("\n") if text else []
    has_crlf = all(line.endswith("\r") for line in (lines if text.endswith("\n") else lines[:-1]))
    lines = [line.removesuffix("\r") if has_crlf else line for line in lines]
    return [line.removeprefix("\ufeff") if i == 0 else line for i, line in enumerate(lines)]


def check(translator: Translator, folder: Path, place: Path, data: bytes, draw: Draw) -> str:
    """Translate a file. Returns the outcome; raises AssertionError with a defect."""
    form = LineFormat(sentences=draw.random() < 0.25, json=draw.random() < 0.5)
    file = place / draw.choice(["in.txt", "in", "in.txt.gz"])
    output = place / "out"
    file.write_bytes(gzip.compress(data) if file.suffix == ".gz" else data)
    output.unlink(missing_ok=True)
    message = attempt(translate_lines, loaded_call(translator, folder, file, output, form), SECONDS)
    try:
        lines = lines_of(data)
    except UnicodeDecodeError as error:
        line = 1 + data.count(b"\n", 0, error.start)
        where = f"{file}:{line}: byte 0x{data[error.start]:02X}"
        assert message and message.startswith(where), f"{where} expected, said {message}"
        return "refused"
    assert message is None, f"refused: {message}"
    written = output.read_bytes().decode().split("\n")
    assert written.pop() == "" and len(written) == len(lines), (
        f"{len(lines)} lines in, {len(written)} out"
    )
    results: list[dict[str, Any]] = [
        json.loads(line) if form.json else {"text": line} for line in written
    ]
    for n, (text, result) in enumerate(zip(lines, results, strict=True), 1):
        assert text.strip() or not result["text"].strip(), (
            f"line {n}, blank, became {result['text']!r}"
        )
    if lines and draw.random() < 0.4:
        i = draw.randrange(len(lines))
        [alone] = translator.translate_lines(
            [lines[i]], TranslationOptions(sentences=form.sentences)
        )
        score = results[i].get("score", alone.score)
        is_tie = form.json and abs(alone.score - score) < TIE
        assert abs(alone.score - score) < 10 * TIE, (
            f"line {i + 1} scores {score}, alone {alone.score}"
        )
        same = alone.text == results[i]["text"] or is_tie
        assert same, f"line {i + 1} became {results[i]['text']!r}, alone {alone.text!r}"
    return "translated"


def main(*, files: int = 10_000, minutes: float = 10, seed: int = 1, first: int = 0) -> None:
    """Translate files from number `first` on, and print the table."""
    counts = Counter[tuple[str, str]]()
    defects = list[str]()
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")
        source, target = write_corpus(place)
        corpus = ("--train", source, target, "--from", "ka", "--to", "zu", "data.holdout=120")
        command("train", *corpus, "--out", place / "model", *TINY, "train.steps=600")
        command(
            "train",
            *corpus,
            "--out",
            place / "blocks",
            *TINY,
            "train.steps=600",
            "model.block_size=3",
        )
        command("export", place / "model", "--to", "onnx", "--out", place / "onnx")
        options = {"decode.max_extra_tokens": 5}
        beams = {"decode.beam_size": 2}
        engines = {
            name: load(
                place / folder, options if name == "blockwise" else options | beams, engine=name
            )
            for name, folder in ENGINES.items()
        }
        print(f"engines: {', '.join(each.engine.name for each in engines.values())}", flush=True)
        end = time.monotonic() + 60 * minutes
        for number in range(first, first + files):
            if time.monotonic() > end:
                break
            data = hostile_file(random.Random(f"{seed} {number}"))
            for name, translator in engines.items():
                draw = random.Random(f"{seed} {number} {name}")
                try:
                    found = check(translator, place / ENGINES[name], place, data, draw)
                except Exception as error:
                    found = "defect"
                    reason = str(error) or traceback.format_exc()
                    kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
                    defects.append(
                        f"{translator.engine.name}, file {number}: {kind}{reason[:300]!r}"
                    )
                    print(defects[-1], flush=True)
                counts[translator.engine.name, found] += 1
            if number % 500 == 499:
                print(f"file {number + 1:,}", flush=True)
    names = [translator.engine.name for translator in engines.values()]
    report("engine | files", names, OUTCOMES, counts, defects)


if __name__ == "__main__":
    run_script(main, __doc__)
