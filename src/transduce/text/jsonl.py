"""Pairs as JSON, one object per line: {"source": "A dog runs.", "target": "Ein Hund läuft."}."""

import json
import re
from collections.abc import Iterator
from typing import Any

from transduce.system.errors import UserError
from transduce.text.encoding_errors import UNDECODED, readable
from transduce.text.plain import display_name, read_lines, without_byte_order_mark

KEYS = (("source", "target"), ("src", "tgt"))
HALF = re.compile("[\ud800-\udfff]")


def read_jsonl(file: str, languages: tuple[str, str], *, lenient: bool = False) -> Iterator[tuple[str, str]]:
    """The two texts of every object: under the codes of the languages, "source" and "target", or "src" and "tgt".

    They may lie one level deeper, under "translation". Other keys are not read. A blank line is a
    pair of two empty texts. Raises UserError for a line that is not such an object. lenient: as for `read_lines`, and
    half a character is U+FFFD.
    """
    for line, text in enumerate(without_byte_order_mark(read_lines(file, lenient=lenient)), start=1):
        if not text.strip():
            yield "", ""
            continue
        record = _pair_in(_parse(file, line, text), file, line)
        source, target = _keys(record, languages, file, line)
        texts = record[source], record[target]
        if not lenient:
            _check_encodable("".join(texts), file, line)
        else:  # a byte that isn't UTF-8 is told from half a character by reading without such bytes
            plain = _pair_in(_parse(file, line, readable(text)), file, line) if UNDECODED.search(text) else record
            if HALF.search(plain[source] + plain[target]):
                texts = HALF.sub("\ufffd", plain[source]), HALF.sub("\ufffd", plain[target])
        yield texts


def with_target(text: str, target: str, languages: tuple[str, str]) -> str:
    """A line that `read_jsonl` has read, with another target."""
    outer = json.loads(text)
    record = _pair_in(outer, "", 0)
    record[_keys(record, languages, "", 0)[1]] = target
    return HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", json.dumps(outer, ensure_ascii=False))


def _parse(file: str, line: int, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        what = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise UserError(f"{display_name(file)}, line {line} is not valid JSON: {what}.") from None


def _pair_in(record: Any, file: str, line: int) -> dict[str, Any]:
    """The object that holds the texts."""
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise UserError(
            f'{display_name(file)}, line {line} is not a JSON object such as {{"source": "…", "target": "…"}}.'
        )
    return record


def _keys(record: dict[str, Any], languages: tuple[str, str], file: str, line: int) -> tuple[str, str]:
    """Under which the texts are."""
    for keys in (languages, *KEYS):
        if all(isinstance(record.get(key), str) for key in keys):
            return keys
    wanted = " or ".join(f'"{source}" and "{target}"' for source, target in dict.fromkeys((languages, *KEYS)))
    found = ", ".join(f'"{key}" ({_kind(value)})' for key, value in record.items()) or "no keys"
    raise UserError(f"{display_name(file)}, line {line}: a pair needs texts under {wanted}; this object has {found}.")


def _check_encodable(text: str, file: str, line: int) -> None:
    """JSON can say half a character (a lone surrogate, "\\ud83d"), which no text file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise UserError(f"{display_name(file)}, line {line} has half a character, {half}; write both halves.") from None


def _kind(value: Any) -> str:
    kinds = {
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    return kinds.get(type(value), "null")
