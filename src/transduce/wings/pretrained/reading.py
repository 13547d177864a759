"""Reads the files of a model."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor

from transduce.system.errors import Hint, UserError
from transduce.tokens.vocabulary import open_model

ANOTHER_COPY = Hint("Use another copy.")  # the hint for a damaged file


def read_bytes(file: Path) -> bytes:
    """The content of a file. Raises UserError if it is missing or can't be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise UserError(
            f"{file} can't be read: {error.strerror}.",
            "Name a folder with all files of the model.",
        ) from None


def read_json(file: Path, *, is_needed: bool = True) -> dict[str, Any]:
    """The object in a JSON file; an empty one if the file is missing and not needed. Raises UserError otherwise."""
    if not is_needed and not file.exists():
        return {}
    try:
        value = json.loads(read_bytes(file))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} can't be read: {error}.", ANOTHER_COPY) from None
    if not isinstance(value, dict):
        raise UserError(f"{file} is damaged: expected a JSON object.", ANOTHER_COPY)
    return value


def read_model(file: Path) -> tuple[bytes, SentencePieceProcessor]:
    """The content of a SentencePiece model, and the opened model. Raises UserError if it can't be read."""
    content = read_bytes(file)
    try:
        return content, open_model(content)
    except ValueError as error:
        raise UserError(f"{file} can't be read: {error}.", ANOTHER_COPY) from None


def files_in(folder: Path, names: Iterable[object], source: Path) -> list[Path]:
    """The files with these names in a folder. Raises UserError if one is missing, which the file `source` names."""
    files = [folder / Path(str(name)).name for name in names]
    for file in files:
        if not file.exists():
            raise UserError(
                f"{file} is missing: {source.name} names it.", Hint("Copy all files of the model.")
            )
    return files


def checked_ids(file: Path, ids: dict[str, int], special: Iterable[str] = ()) -> dict[str, int]:
    """The ids of the pieces in a file. Raises UserError unless each has its own, and all special pieces have one."""
    numbers = list(ids.values())
    if any(type(token) is not int or token < 0 for token in numbers) or len({*numbers}) < len(ids):
        raise UserError(
            f"{file}: two pieces share an id, or an id is not a whole number.", ANOTHER_COPY
        )
    for name in special:
        if name not in ids:
            raise UserError(f"{file}: the piece {name} is missing.", ANOTHER_COPY)
    return ids
