"""A folder that is written whole or not at all, and the manifest that tells whether it still is.

    name/               its files, and manifest.json: the size and SHA-256 of each, written last
    .name.aside-3f9c/   the same while it is being written, and locked for so long; what a killed process left is
                        removed when `name` is written again, or by `remove_leftovers`

Whatever interrupts a writing (an exception, `kill -9`, a full disk, a power cut), what was there before is still there.
"""

import errno
import glob
import hashlib
import json
import math
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from transduce.system.errors import UserError
from transduce.system.file_lock import alone

MANIFEST = "manifest.json"
FORMAT = 1  # of the manifest; a newer one is refused
ASIDE = ".aside-"
YOUNG = 60.0  # seconds in which a folder that was made aside is surely locked, if it is to be
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # disk, quota, and what `ulimit -f` allows


class Entry(NamedTuple):
    """What the manifest says of a file: bytes, and a hexadecimal digest."""

    size: int
    sha256: str


@contextmanager
def write_folder(path: Path | str, needed: int = 0) -> Iterator[Path]:
    """Give a folder to write into, which becomes `path` when the block ends, or vanishes when it raises.

    `needed` is the bytes it will take, if known, for the message about a full disk. Raises UserError if `path` exists
    or can't be written to, or the disk is full.
    """
    path = Path(path)
    _refuse_existing(path)
    remove_leftovers(path.parent, YOUNG, path.name)
    with _folder_aside(path.parent, path, needed) as aside:
        yield aside
        _seal(aside)
        _refuse_existing(path)
        aside.rename(path)
        _sync(path.parent)


@contextmanager
def publish(folder: Path | str, needed: int = 0) -> Iterator[Path]:
    """Give a folder to write into, whose files are moved into `folder` when the block ends.

    `folder` may hold other things; only the files given are in its manifest. Files of the same name are replaced, and
    there is no manifest while they are being moved. If the block raises, `folder` stays as it was. Raises UserError if
    `folder` can't be written to or the disk is full.
    """
    folder = Path(folder)
    with _folder_aside(folder, folder, needed) as aside:
        yield aside
        _seal(aside)
        (folder / MANIFEST).unlink(missing_ok=True)
        _sync(folder)
        for name in _names(aside):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (aside / name).replace(folder / name)
        for changed in {(folder / name).parent for name in _names(aside)} | {folder}:
            _sync(changed)
        (aside / MANIFEST).replace(folder / MANIFEST)
        _sync(folder)
        shutil.rmtree(aside)


def write_text(path: Path | str, text: str) -> None:
    """Write one file, as UTF-8, whole or not at all; it replaces an older one.

    Raises UserError if it can't be written or the disk is full.
    """
    path, content = Path(path), text.encode("utf-8")
    try:
        _write(path, content)
    except OSError as error:
        raise (_no_room(path, len(content), error) if is_full(error) else _no_access(path, error)) from error


@contextmanager
def write_file(path: Path | str) -> Iterator[BinaryIO]:
    """Give a file to write into, which takes the place of `path` when the block ends, or vanishes when it raises.

    Raises UserError if it can't be written or the disk is full.
    """
    path, written = Path(path), 0
    try:
        with _file_aside(path) as file:
            try:
                yield file
            finally:
                written = file.tell()
    except OSError as error:
        raise (_no_room(path, written, error) if is_full(error) else _no_access(path, error)) from error


def to_json(value: Any) -> str:
    """A line of JSON text, indented; numbers that JSON does not know (nan, inf) become null."""
    return json.dumps(_finite(value), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_manifest(folder: Path | str) -> dict[str, Entry]:
    """What a whole folder holds, by name; raises UserError if it has no manifest or one that can't be read."""
    path = Path(folder) / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        version = manifest["format"]
        if version == FORMAT:
            return {name: Entry(int(file["size"]), str(file["sha256"])) for name, file in manifest["files"].items()}
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{folder} is not whole: {path} is missing; write it again or use another copy.") from None
    except (OSError, ValueError, LookupError, ArithmeticError, TypeError, AttributeError):
        raise UserError(f"{path} is damaged; write {folder} again or use another copy.") from None
    raise UserError(f"{path} has format {version}, this transduce reads format {FORMAT}; install a newer transduce.")


def verify(folder: Path | str, *, hashes: bool = False, but: str = "") -> None:
    """Compare every file, but one that people may edit, with the manifest: its size, and its content if `hashes`.

    Raises UserError that names the first damaged or missing one; files without an entry are not looked at.
    """
    for name, entry in read_manifest(folder).items():
        if name == but:
            continue
        path = Path(folder) / name
        mend = f"write {folder} again or use another copy"
        if not path.is_file():
            raise UserError(f"{path} is missing; {mend}.")
        if path.stat().st_size != entry.size:
            raise UserError(f"{path} is damaged: it has {path.stat().st_size} bytes instead of {entry.size}; {mend}.")
        if hashes and digest(path) != entry.sha256:
            raise UserError(f"{path} is damaged: its SHA-256 is not that of the manifest; {mend}.")


def remove_leftovers(parent: Path | str, age: float = 0.0, name: str = "") -> list[Path]:
    """Remove what killed processes left of their writing in `parent`, and return it; what can't be removed stays.

    age: only what has not changed for so many seconds; where that is 0, nobody may begin to write there meanwhile.
    name: only what would have become that.
    """
    removed = []
    for path in sorted(Path(parent).glob(f".{glob.escape(name) or '*'}{ASIDE}*")):
        with suppress(OSError, UserError):  # others remove the same, or write to it
            if age and time.time() - path.lstat().st_mtime < age:
                continue
            if path.is_symlink() or not path.is_dir():
                path.unlink()
            else:
                with alone(path, f"{path} is being written.") as is_held:
                    if age and not is_held:  # somebody may be writing: it can't be told
                        continue
                    shutil.rmtree(path)
            removed.append(path)
    return removed


def is_full(error: BaseException) -> bool:
    """Whether an exception says that there is no room on the disk."""
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno in FULL
    # Libraries written in Rust, such as safetensors, have an exception of their own and say it in its text.
    return any(f"(os error {code})" in str(error) for code in FULL)


@contextmanager
def _folder_aside(parent: Path, path: Path, needed: int) -> Iterator[Path]:
    """A hidden folder in `parent`, locked, that is removed if the block raises; messages are about `path`."""
    aside = _aside(parent, path.name)
    made = [folder for folder in aside.parents if not folder.exists()]
    try:
        aside.mkdir(parents=True)
    except OSError as error:
        raise (_no_room(path, needed, error) if is_full(error) else _no_access(path, error)) from error
    try:
        with alone(aside, f"{path} is being written by another process; start again."):
            yield aside
    except BaseException as error:
        written = sum(file.stat().st_size for file in aside.rglob("*") if file.is_file())
        shutil.rmtree(aside, ignore_errors=True)
        with suppress(OSError):  # something else lies there by now
            for folder in made:
                folder.rmdir()
        if is_full(error):
            raise _no_room(path, max(needed, written), error) from error
        raise


def _aside(parent: Path, name: str) -> Path:
    return parent / f".{name}{ASIDE}{secrets.token_hex(4)}"


def _refuse_existing(path: Path) -> None:
    if os.path.lexists(path):
        raise UserError(f"{path} exists already and is never overwritten; choose another name, or remove it.")


def _seal(folder: Path) -> None:
    """Write the manifest of all files in `folder`, when they are safely on the disk."""
    files = {}
    umask = os.umask(0)
    os.umask(umask)
    for name in _names(folder):
        (folder / name).chmod(0o666 & ~umask)  # safetensors makes files that nobody else may read
        _sync(folder / name)
        files[name] = Entry((folder / name).stat().st_size, digest(folder / name))._asdict()
    for inner in folder.rglob("*"):
        if inner.is_dir():
            _sync(inner)
    _write(folder / MANIFEST, (json.dumps({"format": FORMAT, "files": files}, indent=1) + "\n").encode())


def _write(path: Path, content: bytes) -> None:
    with _file_aside(path) as file:
        file.write(content)


@contextmanager
def _file_aside(path: Path) -> Iterator[BinaryIO]:
    """A hidden file beside `path`, moved into its place when the block ends."""
    aside = _aside(path.parent, path.name)
    try:
        with aside.open("wb") as file:
            yield file
        _sync(aside)
        aside.replace(path)
        _sync(path.parent)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def _names(folder: Path) -> list[str]:
    """The files below `folder`, with slashes, without its own manifest."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return sorted(name for name in names if name != MANIFEST)


def digest(path: Path, algorithm: str = "sha256") -> str:
    """The hexadecimal digest of a file, which is not held in memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _sync(path: Path) -> None:
    """Have a file's content, or a folder's names, on the disk before anything that follows."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _no_room(path: Path, needed: int, error: BaseException) -> UserError:
    place = next(folder for folder in path.absolute().parents if folder.exists())
    free = shutil.disk_usage(place).free
    return UserError(
        f"There is no room for {path}: it needs at least {needed:,} bytes, {free:,} are free ({error}); "
        "make room or write elsewhere."
    )


def _no_access(path: Path, error: OSError) -> UserError:
    return UserError(f"{path} can't be written: {error.strerror or error}; choose another place.")
