"""The messages for files that can't be written."""

import errno
import re
import shutil
from pathlib import Path

from transduce.system.errors import UserError

# A full disk, a used-up quota, a file over `ulimit -f`.
FULL = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
)


def write_error(path: Path, needed: int, error: BaseException) -> UserError:
    """The UserError for a failed write of `path`, with an expected size of `needed` bytes (0 if unknown)."""
    if not is_full(error):
        reason = error.strerror if isinstance(error, OSError) else None
        return UserError(f"{path} can't be written: {reason or error}.", "Choose another place.")
    size = f"it needs at least {needed:,} bytes, " if needed else ""
    folder = next(folder for folder in path.absolute().parents if folder.exists())
    free = shutil.disk_usage(folder).free
    return UserError(
        f"There is no room for {path}: {size}{free:,} bytes are free ({error}).",
        "Free more space, or raise your limit: a quota, or `ulimit -f`.",
    )


def is_full(error: BaseException) -> bool:
    """Whether an exception means that the disk is full."""
    return _error_number(error) in FULL


def _error_number(error: BaseException) -> int:
    """The number of an operating system's error, or 0."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    # Libraries written in Rust, such as safetensors, raise other exceptions. Their messages contain the number.
    number = re.search(r"\(os error (\d+)\)", str(error))
    return int(number[1]) if number else 0
