"""Reads the JSON files of a model in Hugging Face's format."""

import json
from pathlib import Path
from typing import Any

from transduce.system.errors import Hint, UserError

ANOTHER_COPY = Hint("Use another copy.")  # the hint for a damaged file


def read_json(file: Path, *, is_needed: bool = True) -> dict[str, Any]:
    """The object in a JSON file; an empty one if the file is missing and not needed. Raises UserError otherwise."""
    if not is_needed and not file.exists():
        return {}
    try:
        value = json.loads(file.read_bytes())
    except OSError as error:
        raise UserError(
            f"{file} can't be read: {error.strerror}.",
            "Name a folder with a model in Hugging Face's format.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{file} can't be read: {error}.", ANOTHER_COPY) from None
    if not isinstance(value, dict):
        raise UserError(f"{file} is damaged: expected a JSON object.", ANOTHER_COPY)
    return value
