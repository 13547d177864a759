"""Finds ONNX Runtime for browsers, the npm package onnxruntime-web, and copies its files into an export.

The package is searched in a folder that the user names, in node_modules, and in the user's cache; else npm fetches it.
"""

import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from transduce.system.cache import cache_folder
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.files import digest

NPM_NAME = "onnxruntime-web"
RUNTIME_VERSION = "1.30.0"
NPM_PACKAGE = f"{NPM_NAME}@{RUNTIME_VERSION}"
# Its files for a processor, with one thread; name -> SHA-256.
RUNTIME_FILES = {
    "ort.wasm.min.mjs": "219e6a1fc8a9938268d18efca3c91d310bd2f4a59bbd13744df5b2b7fc6cee3b",
    "ort-wasm-simd-threaded.mjs": "e13f7f94fc51b4ca72b12faeb1ee95f4ace6dfbc8939bc718aabdc0a27c4299b",
    "ort-wasm-simd-threaded.wasm": "3398c10d07d229bd91b364548e130e0e51a8e5704b88c7c083ebbeb78842dee2",
}
NPM_SECONDS = 600


def add_runtime(folder: Path, given: Path | None) -> None:
    """Copy the runtime into an export. Raises UserError if it is nowhere, or if `given` is another version."""
    source = find_runtime(given) or _fetch()
    for name in RUNTIME_FILES:
        shutil.copy(source / name, folder / name)


def find_runtime(given: Path | None = None) -> Path | None:
    """The folder of the runtime's files on this machine, or None; raises UserError if `given` lacks them."""
    found = next((place for place in _places(given) if _is_runtime(place)), None)
    if given and not found:
        raise UserError(
            f"{given} does not hold the files of {NPM_PACKAGE}.",
            f"Run `npm pack {NPM_PACKAGE}`, unpack the archive, and name its folder package.",
        )
    return found


def _places(given: Path | None) -> Iterator[Path]:
    if given:
        packages = [given, given / "package", given / "node_modules" / NPM_NAME]
        yield from (place for package in packages for place in (package, package / "dist"))
        return
    here = Path.cwd()
    for parent in (here, *here.parents):
        yield parent / "node_modules" / NPM_NAME / "dist"
    yield _cached()


def _cached() -> Path:
    return cache_folder() / f"{NPM_NAME}-{RUNTIME_VERSION}"


def _is_runtime(folder: Path) -> bool:
    """Whether a folder has the files in the right version."""
    return all(
        (folder / name).is_file() and digest(folder / name) == expected
        for name, expected in RUNTIME_FILES.items()
    )


def _fetch() -> Path:
    """Fetch the runtime with npm into the user's cache. Raises UserError if npm is missing or fails."""
    advice = f"Run `npm install {NPM_PACKAGE}` in this folder, or unpack the package and name its folder."
    npm = shutil.which("npm")
    if not npm:
        raise UserError(f"The page needs the npm package {NPM_PACKAGE}.", advice, "onnxruntime")
    log(f"npm fetches {NPM_PACKAGE}, which the page needs")
    with tempfile.TemporaryDirectory() as temporary:
        command = [npm, "pack", NPM_PACKAGE, "--silent"]
        try:
            subprocess.run(
                command, cwd=temporary, check=True, capture_output=True, timeout=NPM_SECONDS
            )
            [package] = Path(temporary).glob("*.tgz")
            contents = _read(package)
        except (
            OSError,
            subprocess.SubprocessError,
            ValueError,
            KeyError,
            tarfile.TarError,
        ) as error:
            raise UserError(
                f"npm could not fetch {NPM_PACKAGE}: {error}.", advice, "onnxruntime"
            ) from None
    place = _cached()
    place.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        (place / name).write_bytes(content)
    return place


def _read(package: Path) -> dict[str, bytes]:
    """The contents of the runtime's files in a package of npm; raises ValueError if they are not those we know."""
    contents: dict[str, bytes] = {}
    with tarfile.open(package) as archive:
        for name, expected in RUNTIME_FILES.items():
            file = archive.extractfile(f"package/dist/{name}")
            contents[name] = file.read() if file else b""
            if sha256(contents[name]).hexdigest() != expected:
                raise ValueError(f"{name} is not the file that this version of transduce knows")
    return contents
