"""Reads JSON lines such as {"source": "A dog runs.", "target": "Ein Hund läuft."}."""

import json
import re
from collections.abc import Iterator
from typing import Any

from transduce.system.errors import UserError
from transduce.text.encoding_errors import UNDECODED, readable
from transduce.text.formats import CorpusFile, TextPair
from transduce.text.json_objects import objects
from transduce.text.plain import display_name, read_lines, without_byte_order_mark

PAIR_KEYS = (("source", "target"), ("src", "tgt"))
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
# The first line of an array, or of an object that is written on several lines.
BEGINNING = re.compile(r"\s*(\[|\{\s*$)")
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

    The keys are the language codes, "source" and "target", or "src" and "tgt". A blank line is a pair of empty texts,
    and null is an empty text. Reads arrays of such objects, too. Raises UserError if another line lacks a text. If
    `file.lenient` is true, escaped lone surrogates become NO_BYTE.
    """
    for number, line in read_objects(file.path, lenient=file.lenient):
        if not line.strip():
            yield "", "", number
            continue
        name = display_name(file.path)
        place = f"{name}:{number}"
        record = pair_object(_parse(line, name, number), place)
        source, target = pair_keys(record, file.languages, place)
        texts = record[source] or "", record[target] or ""
        if not file.lenient:
            if half := LONE_SURROGATE.search("".join(texts)):
                raise UserError(
                    f"{place}: \\u{ord(half[0]):04x} is only half of a surrogate pair.",
                    "Write both halves.",
                )
        else:  # undecoded bytes are lone surrogates, too, so only other surrogates are faults of the JSON
            plain = (
                pair_object(_parse(readable(line), name, number), place)
                if UNDECODED.search(line)
                else record
            )
            if any(LONE_SURROGATE.search(plain[key] or "") for key in (source, target)):
                texts = (
                    LONE_SURROGATE.sub(NO_BYTE, texts[0]),
                    LONE_SURROGATE.sub(NO_BYTE, texts[1]),
                )
        yield *texts, number


def read_objects(path: str, *, lenient: bool = False) -> Iterator[tuple[int, str]]:
    """Yield the line number and the JSON of each object.

    Only objects in arrays or pretty-printed objects are not lines.
    """
    numbered = enumerate(without_byte_order_mark(read_lines(path, lenient=lenient)), start=1)
    for number, line in numbered:
        if BEGINNING.match(line):
            yield from objects(number, [line, *(more for _, more in numbered)])
        else:
            yield number, line


def _parse(text: str, name: str, number: int) -> Any:
    """Parse the JSON that begins in line `number` of the file `name`."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"{name}:{number + error.lineno - 1}"
        reason = f"{error.msg} at column {error.colno}"
        raise UserError(f"{place}: not valid JSON: {reason}.") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name}:{number}: not valid JSON: {error}.") from None


def pair_object(record: Any, place: str) -> dict[str, Any]:
    """The object under the key "translation" of `record`, or `record` itself if it has no such object."""
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise UserError(f'{place}: not a JSON object such as {{"source": "…", "target": "…"}}.')
    return record


def pair_keys(record: dict[str, Any], languages: tuple[str, str], place: str) -> tuple[str, str]:
    # pt_BR and pt-BR.
    respelt = ((languages[0].replace(*two), languages[1].replace(*two)) for two in ("_-", "-_"))
    for keys in (languages, *respelt, *PAIR_KEYS):
        if all(isinstance(record.get(key, 0), str | None) for key in keys):
            return keys
    expected = " or ".join(
        f'"{source}" and "{target}"' for source, target in dict.fromkeys((languages, *PAIR_KEYS))
    )
    present = ", ".join(
        f'"{key}" ({JSON_TYPES.get(type(value), "null")})' for key, value in record.items()
    )
    raise UserError(f"{place}: expected strings under {expected}, found {present or 'no keys'}.")
