"""`transduce translate` for files whose lines may not be texts."""

from transduce.system.errors import UserError
from transduce.wings.documents.foreign_files import BINARY_FORMATS, foreign_format


def check_lines(file: str) -> None:
    """Raise UserError if the lines of a file are not texts, by its suffix or by its first lines."""
    if found := foreign_format(file):
        form, is_certain = found
        looks = "is" if is_certain else "looks like"
        plain = " To translate its lines as they are, add --plain."
        raise UserError(
            f"{file} {looks} {form.name}.", form.advice + ("" if form in BINARY_FORMATS else plain)
        )
