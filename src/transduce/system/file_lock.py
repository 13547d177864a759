"""One process at a time in a folder, on this machine and on others that share the file system."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from transduce.system.errors import UserError

LOCK = ".lock"


@contextmanager
def alone(lock: Path, busy: str) -> Iterator[bool]:
    """Hold `lock`, a folder, or a file that is there for as long; it is free again when the process ends, however.

    Gives whether it is held: nothing is where nothing can be written, or where the file system has no locks. Raises
    UserError, with the sentence `busy`, if another process holds it.
    """
    made = [each for each in lock.parents if not each.exists()]
    held = None
    try:
        held = _hold(lock)
    except BlockingIOError:
        raise UserError(busy) from None
    except OSError:  # a folder that can only be read, and may hold all that is needed; no locks, as in some clusters
        pass
    try:
        yield held is not None
    finally:
        if held is not None:
            with suppress(OSError):
                if not lock.is_dir():
                    lock.unlink()
                for each in made:  # if nothing has begun in it
                    each.rmdir()
            os.close(held)


def _hold(lock: Path) -> int:
    """A descriptor of the locked file, whose folder is made."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    while True:
        descriptor = os.open(lock, os.O_RDONLY if lock.is_dir() else os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), lock.stat()):
                    return descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)  # of a file that the one before has just removed
