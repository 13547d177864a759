"""Writes folders and files atomically, and checks folders against their manifests.

    name/                  the finished folder, with the size and SHA-256 of each file in manifest.json
    .name.aside-3f9c/      the staging folder (or the temporary file) while it is being written
    .name.aside-3f9c.lock  its lock, held by the process that writes

The manifest is written last, so a folder without a manifest is incomplete.
`remove_leftovers` removes the staging folders and temporary files of killed processes.
"""

import errno
import glob
import hashlib
import json
import math
import os
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from transduce.system.errors import DamagedError, UserError
from transduce.system.file_lock import LOCK, file_lock
from transduce.system.write_errors import is_full, write_error

MANIFEST = "manifest.json"
MANIFEST_FORMAT = 1  # version of the manifest; other versions are rejected
# Characters of a name in the names of its temporary versions: file systems allow 255 bytes.
MAX_STEM = 48
ASIDE = ".aside-"


class Entry(NamedTuple):
    """The size in bytes and the hexadecimal SHA-256 of a file in a manifest."""

    size: int
    sha256: str


@contextmanager
def write_folder(path: Path | str, needed: int = 0) -> Iterator[Path]:
    """Yield a temporary folder, and rename it to `path` if the block succeeds.

    `needed` is the expected size in bytes, or 0 if unknown. Raises UserError if `path` exists or can't be written.
    """
    path = Path(path)
    check_utf8(path)
    remove_leftovers(path.parent, path.name)
    _check_absent(path)
    with _staging_folder(path.parent, path, needed) as aside:
        yield aside
        _write_manifest(aside)
        _check_absent(path)
        aside.rename(path)
        _sync(path.parent)


@contextmanager
def publish(folder: Path | str, needed: int = 0) -> Iterator[Path]:
    """Yield a temporary folder, and move its files into `folder` if the block succeeds.

    New files replace old files of the same name. The manifest lists only the new files. Raises UserError if `folder`
    can't be written.
    """
    folder = Path(folder)
    with _staging_folder(folder, folder, needed) as aside:
        yield aside
        _write_manifest(aside)
        (folder / MANIFEST).unlink(missing_ok=True)
        _sync(folder)
        for name in (names := _names(aside)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (aside / name).replace(folder / name)
        for changed in {folder / parent for name in names for parent in Path(name).parents}:
            _sync(changed)
        (aside / MANIFEST).replace(folder / MANIFEST)
        _sync(folder)
        shutil.rmtree(aside)


def write_text(path: Path | str, text: str) -> None:
    """Write a UTF-8 file atomically. Raises UserError if the file can't be written."""
    content = text.encode("utf-8")
    with write_file(path, len(content)) as file:
        file.write(content)


@contextmanager
def write_file(path: Path | str, needed: int = 0) -> Iterator[BinaryIO]:
    """Yield a temporary file, and rename it to `path` if the block succeeds.

    `needed` is the expected size in bytes, or 0 if unknown. Raises UserError if `path` can't be written.
    """
    path = Path(path)
    remove_leftovers(path.parent, path.name)
    aside = _aside(path.parent, path.name)
    with _lock(aside, path) if path.parent.is_dir() else nullcontext():
        try:
            with aside.open("wb") as file:
                # There is no such file yet, or the file system has no permissions.
                with suppress(OSError):
                    shutil.copymode(path, aside)
                try:
                    yield file
                finally:
                    needed = max(needed, file.tell())
            _sync(aside)
            _replace(aside, path)
            _sync(path.parent)
        except BaseException as error:
            with suppress(OSError):
                aside.unlink()
            if isinstance(error, OSError):
                raise write_error(path, needed, error) from error
            raise


def _replace(aside: Path, path: Path) -> None:
    """Rename the temporary file to `path`."""
    try:
        aside.replace(path)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        shutil.copyfile(aside, path)  # the file itself is mounted, as by `docker run -v FILE:FILE`
        _sync(path)
        aside.unlink()


def to_json(value: Any) -> str:
    """The value as indented JSON with a final line feed. NaN and infinity become null."""
    return json.dumps(finite(value), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def finite(value: Any) -> Any:
    """A copy of the value in which None replaces NaN and infinity."""
    if isinstance(value, Mapping):
        return {name: finite(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def read_manifest(folder: Path | str) -> dict[str, Entry]:
    """The entries of a folder's manifest by file name.

    Raises DamagedError if the manifest is missing or damaged, otherwise UserError if it can't be read.
    """
    path = Path(folder) / MANIFEST
    try:
        manifest = json.loads(path.read_bytes())
        version = manifest["format"]
        if version == MANIFEST_FORMAT:
            return {
                name: Entry(int(file["size"]), str(file["sha256"]))
                for name, file in manifest["files"].items()
            }
    except (FileNotFoundError, NotADirectoryError):
        raise DamagedError(
            f"{folder} is incomplete: {path} is missing.", "Create it again or use a copy."
        ) from None
    except OSError as error:
        raise UserError(f"{path} can't be read: {error.strerror or error}.") from None
    except (ValueError, LookupError, ArithmeticError, TypeError, AttributeError, RecursionError):
        raise DamagedError(
            f"{path} is damaged.",
            f"Create {folder} again, or use another copy of this folder.",
        ) from None
    raise UserError(
        f"{path} has format {version}; this version reads {MANIFEST_FORMAT}.",
        "Install a newer transduce.",
    )


def digest(path: Path, algorithm: str = "sha256") -> str:
    """The hexadecimal digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def verify(
    folder: Path | str,
    *,
    hashes: bool = False,
    remembered: Callable[[Path], str] | None = None,
    but: Collection[str] = (),
    only: str = "",
) -> None:
    """Check the sizes of the files in a folder's manifest and, if `hashes` is true, their SHA-256.

    A file whose `remembered` SHA-256 is right is not read. The files named in `but` are not checked. If `only` is not
    empty, no other file is checked. Raises DamagedError for the first missing or damaged file.
    """
    restore = f"Create {folder} again, or use another copy of this folder."
    for name, entry in read_manifest(folder).items():
        if name in but or (only and name != only):
            continue
        path = Path(folder) / name
        if not path.is_file():
            raise DamagedError(f"{path} is missing.", restore)
        size = path.stat().st_size
        if size != entry.size:
            raise DamagedError(
                f"{path} is damaged: it has {size} bytes instead of {entry.size}.", restore
            )
        if (
            hashes
            and not (remembered and remembered(path) == entry.sha256)
            and digest(path) != entry.sha256
        ):
            raise DamagedError(
                f"{path} is damaged: its SHA-256 differs from the manifest.", restore
            )


def remove_leftovers(
    parent: Path | str, name: str = "", *, sole_writer: bool = False
) -> list[Path]:
    """Remove the temporary files and folders that killed processes left in `parent`, and return their paths.

    Skips what another process is writing. If the file system has no locks, nothing is removed, unless `sole_writer`
    says that no other process writes to `parent`. A `name` restricts this to temporary versions of that file or folder.
    """
    removed = []
    paths = sorted(Path(parent).glob(f".{glob.escape(name[:MAX_STEM]) or '*'}{ASIDE}*"))
    for path in dict.fromkeys(path.with_name(path.name.removesuffix(LOCK)) for path in paths):
        # Another process may remove or write the folder meanwhile.
        with (
            suppress(OSError, UserError),
            _lock(path, path) as is_held,
        ):
            if is_held or sole_writer:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)
                removed.append(path)
    return removed


def check_utf8(path: Path) -> None:
    """Raise UserError if the name of a folder is not UTF-8: safetensors can't open its files."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UserError(f"The name {str(path)!a} is not UTF-8.", "Use another name.") from None


def make_folder(path: Path) -> Path:
    """Make a folder and its parents; raises UserError if that is impossible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(path, 0, error) from None
    return path


@contextmanager
def _staging_folder(parent: Path, path: Path, needed: int) -> Iterator[Path]:
    """Yield a hidden, locked folder in `parent`, and remove it if the block raises."""
    aside = _aside(parent, path.name)
    with _lock(aside, path):
        try:
            aside.mkdir(parents=True)
        except OSError as error:
            raise write_error(path, needed, error) from error
        try:
            yield aside
        except BaseException as error:
            written = sum(file.stat().st_size for file in aside.rglob("*") if file.is_file())
            # Measured before the folder is removed.
            full = write_error(path, max(needed, written), error) if is_full(error) else None
            shutil.rmtree(aside, ignore_errors=True)
            if full:
                raise full from error
            raise


def _aside(parent: Path, name: str) -> Path:
    return parent / f".{name[:MAX_STEM]}{ASIDE}{secrets.token_hex(4)}"


def _lock(aside: Path, path: Path) -> AbstractContextManager[bool]:
    """Lock a temporary version of `path`, so that `remove_leftovers` knows that a process is writing it."""
    return file_lock(
        aside.with_name(aside.name + LOCK),
        f"Another process is writing {path}.",
        "Try again later.",
    )


def _check_absent(path: Path) -> None:
    if os.path.lexists(path):
        raise UserError(
            f"{path} exists already and is never overwritten.",
            "Choose another name, or remove it.",
        )


def _write_manifest(folder: Path) -> None:
    """Flush all files of `folder` to the disk, then write its manifest."""
    files = {}
    umask = os.umask(0)
    os.umask(umask)
    for name in _names(folder):
        (folder / name).chmod(0o666 & ~umask)  # safetensors makes files that other users can't read
        _sync(folder / name)
        files[name] = Entry((folder / name).stat().st_size, digest(folder / name))._asdict()
    (folder / MANIFEST).write_text(
        json.dumps({"format": MANIFEST_FORMAT, "files": files}, indent=1) + "\n"
    )
    for written in (folder / MANIFEST, folder, *filter(Path.is_dir, folder.rglob("*"))):
        _sync(written)


def _names(folder: Path) -> list[str]:
    """The relative paths of all files below `folder`, except its manifest."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return sorted(name for name in names if name != MANIFEST)


def _sync(path: Path) -> None:
    """Call fsync on a file or a folder."""
    if os.name == "nt" and path.is_dir():
        return  # Windows can't open folders; NTFS journals changes to them
    descriptor = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
