"""Pairs as JSON, one object per line: {"source": "A dog runs.", "target": "Ein Hund läuft."}."""

import json
from collections.abc import Iterator
from typing import Any

from transduce.corpus.plain import display_name, read_lines, without_byte_order_mark
from transduce.errors import UserError

KEYS = (("source", "target"), ("src", "tgt"))


def read_jsonl(file: str, languages: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """The two texts of every object: under the codes of the languages, "source" and "target", or "src" and "tgt".

    They may lie one level deeper, under "translation". Other keys are not read. A blank line is a
    pair of two empty texts. Raises UserError for a line that is not such an object.
    """
    for line, text in enumerate(without_byte_order_mark(read_lines(file)), start=1):
        yield _texts(_parse(file, line, text), languages, file, line) if text.strip() else ("", "")


def _parse(file: str, line: int, text: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        what = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise UserError(f"{display_name(file)}, line {line} is not valid JSON: {what}.") from None
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise UserError(
            f'{display_name(file)}, line {line} is not a JSON object such as {{"source": "…", "target": "…"}}.'
        )
    return record


def _texts(record: dict[str, Any], languages: tuple[str, str], file: str, line: int) -> tuple[str, str]:
    for keys in (languages, *KEYS):
        source, target = (record.get(key) for key in keys)
        if isinstance(source, str) and isinstance(target, str):
            _check_encodable(source + target, file, line)
            return source, target
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
