"""Reads and writes JSON lines such as {"source": "A dog runs.", "target": "Ein Hund läuft."}."""

import json
import re
from collections.abc import Iterator
from typing import Any

from transduce.system.errors import UserError
from transduce.text.encoding_errors import UNDECODED, readable
from transduce.text.formats import CorpusFile, TextPair
from transduce.text.plain import display_name, read_lines, without_byte_order_mark

PAIR_KEYS = (("source", "target"), ("src", "tgt"))
# Not UNDECODED.
LONE_SURROGATE, HALF = (
    re.compile("[\ud800-\udfff]"),
    re.compile("[\ud800-\udc7f\udd00-\udfff]"),
)
NO_BYTE = "\udc81"  # an undecoded byte that is undefined in Windows-1252, too
JSON_TYPES = {
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "an object",
}


def read_jsonl(file: CorpusFile) -> Iterator[TextPair]:
    """Read a pair from the JSON object in each line, or from the object under its key "translation".

    The keys are the language codes, "source" and "target", or "src" and "tgt". A blank line is a pair of empty texts.
    Raises UserError if another line lacks a text. If `file.lenient` is true, escaped lone surrogates become NO_BYTE.
    """
    lines = without_byte_order_mark(read_lines(file.path, lenient=file.lenient))
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            yield "", "", number
            continue
        place = f"{display_name(file.path)}:{number}"
        record = _pair_object(_parse(line, place), place)
        source, target = _pair_keys(record, file.languages, place)
        texts = record[source], record[target]
        if not file.lenient:
            if half := LONE_SURROGATE.search("".join(texts)):
                raise UserError(
                    f"{place}: \\u{ord(half[0]):04x} is only half of a surrogate pair.",
                    "Write both halves.",
                )
        else:  # undecoded bytes are lone surrogates, too: without them, any lone surrogate comes from the JSON
            plain = (
                _pair_object(_parse(readable(line), place), place)
                if UNDECODED.search(line)
                else record
            )
            if LONE_SURROGATE.search(plain[source] + plain[target]):
                texts = (
                    LONE_SURROGATE.sub(NO_BYTE, record[source]),
                    LONE_SURROGATE.sub(NO_BYTE, record[target]),
                )
        yield *texts, number


def with_target(line: str, target: str, languages: tuple[str, str], source: str = "") -> str:
    """Replace the target text in a JSON line, and the source text unless `source` is empty."""
    outer = json.loads(line)
    record = _pair_object(outer, "")
    keys = _pair_keys(record, languages, "")
    record |= {keys[0]: source or record[keys[0]], keys[1]: target}
    halves = HALF if UNDECODED.search(line) else LONE_SURROGATE  # bytes of other keys stay bytes
    return halves.sub(lambda half: f"\\u{ord(half[0]):04x}", json.dumps(outer, ensure_ascii=False))


def _parse(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = (
            f"{error.msg} at column {error.colno}"
            if isinstance(error, json.JSONDecodeError)
            else str(error)
        )
        raise UserError(f"{place}: not valid JSON: {reason}.") from None


def _pair_object(record: Any, place: str) -> dict[str, Any]:
    """The object under the key "translation" of `record`, or `record` itself if it has no such object."""
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise UserError(f'{place}: not a JSON object such as {{"source": "…", "target": "…"}}.')
    return record


def _pair_keys(record: dict[str, Any], languages: tuple[str, str], place: str) -> tuple[str, str]:
    # pt_BR and pt-BR.
    respelt = ((languages[0].replace(*two), languages[1].replace(*two)) for two in ("_-", "-_"))
    for keys in (languages, *respelt, *PAIR_KEYS):
        if all(isinstance(record.get(key), str) for key in keys):
            return keys
    expected = " or ".join(
        f'"{source}" and "{target}"' for source, target in dict.fromkeys((languages, *PAIR_KEYS))
    )
    present = ", ".join(
        f'"{key}" ({JSON_TYPES.get(type(value), "null")})' for key, value in record.items()
    )
    raise UserError(f"{place}: expected strings under {expected}, found {present or 'no keys'}.")
