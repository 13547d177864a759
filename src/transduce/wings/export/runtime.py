"""Finds ONNX Runtime for browsers, the npm package onnxruntime-web, and copies its files into an export.

The package is searched in the folder that the user names, and in node_modules.
"""

import shutil
from pathlib import Path

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


def add_runtime(folder: Path, given: Path | None) -> None:
    """Copy the runtime's files into an export. Raises UserError if they are in neither place."""
    here = Path.cwd()
    packages = [given, given / "package"] if given else []
    packages += [each / "node_modules" / NPM_NAME for each in (given or here, *here.parents)]
    source = next((each / "dist" for each in packages if _is_runtime(each / "dist")), None)
    if not source:
        raise UserError(
            f"{given or here} does not hold {NPM_PACKAGE}, with which the page computes.",
            f"Run `npm install {NPM_PACKAGE}` in this folder, or name the folder of the unpacked package.",
            "onnxruntime",
        )
    for name in RUNTIME_FILES:
        shutil.copy(source / name, folder / name)


def _is_runtime(folder: Path) -> bool:
    """Whether a folder has the files in the right version."""
    return all(
        (folder / name).is_file() and digest(folder / name) == expected
        for name, expected in RUNTIME_FILES.items()
    )
