"""A file lock that only one process can hold, even if several computers share the file system."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from transduce.system.errors import UserError

LOCK = ".lock"


@contextmanager
def file_lock(path: Path, busy: str, remedy: str = "Wait until it ends.") -> Iterator[bool]:
    """Lock the file `path` during the block, and remove the file afterwards.

    Creates missing parent folders, and removes them afterwards if they are empty. Yields False if the folder is
    read-only or the file system has no locks, otherwise True. Raises UserError with `busy` and `remedy` if another
    process holds the lock.
    """
    from filelock import FileLock, Timeout  # takes 10 ms, too slow for --help

    made = [folder for folder in path.parents if not folder.exists()]
    # Time for two attempts: the first one fails if another process releases the lock and removes the file meanwhile.
    lock = FileLock(path, timeout=0.1, fallback_to_soft=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise UserError(busy, remedy) from None
    except OSError:  # no lock is possible
        pass
    try:
        yield lock.is_locked
    finally:
        with suppress(OSError):
            if lock.is_locked:
                path.unlink()  # before the release, since afterwards another process may lock the file
            for folder in made:
                folder.rmdir()
        lock.release()
