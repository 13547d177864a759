"""One process at a time in a folder, on this computer and on others that share the file system."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from transduce.system.errors import UserError

LOCK = ".lock"


@contextmanager
def file_lock(path: Path, busy: str) -> Iterator[bool]:
    """Hold the lock file `path`, and remove it at the end; the system frees it when the process ends, even if killed.

    Makes the folder of `path`, and removes it if it is still empty at the end. Yields False where no lock is possible:
    in a read-only folder, or on a file system without locks. Raises UserError, with the sentence `busy`, if another
    process holds the lock.
    """
    from filelock import FileLock, Timeout  # 10 ms: too slow for --help

    made = [folder for folder in path.parents if not folder.exists()]
    # Two attempts: the process that just released the lock may have removed the file in between.
    lock = FileLock(path, timeout=0.1, fallback_to_soft=False)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        raise UserError(busy) from None
    except OSError:  # no lock is possible
        pass
    try:
        yield lock.is_locked
    finally:
        with suppress(OSError):
            if lock.is_locked:
                path.unlink()  # before the release, so that nobody locks a file that is about to vanish
            for folder in made:
                folder.rmdir()
        lock.release()
