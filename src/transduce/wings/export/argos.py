"""Exports a package for Argos Translate and LibreTranslate, such as translate-en_de-1_0.argosmodel.

The package is a zip archive of one folder with metadata.json, sentencepiece.model, README.md and model/.
"""

import json
import tempfile
import zipfile
from pathlib import Path

from transduce.model_folder import CARD, Bundle
from transduce.system.files import to_json
from transduce.text.languages import Direction, language_name
from transduce.wings.export import ctranslate2
from transduce.wings.export.parity import Runner
from transduce.wings.export.readme import fill

SUFFIX = ".argosmodel"
PACKAGE_VERSION = "1.0"
MIN_ARGOS_VERSION = "1.9.0"


def usage(model: Bundle) -> str:
    """The Markdown text that explains how to use the package."""
    data = model.config.data
    return fill("argos", file=f"{_name(model)}{SUFFIX}", source=data.source, target=data.target)


def write(model: Bundle, folder: Path, compute_type: str) -> None:
    """Write the package; raises UserError if ctranslate2 is missing or doesn't support `compute_type`."""
    name = _name(model)
    data = model.config.data
    tokenizer = model.tokenizer
    direction = Direction(data.source, data.target) if data.directions else None
    metadata = {
        "package_version": PACKAGE_VERSION,
        "argos_version": MIN_ARGOS_VERSION,
        "from_code": data.source,
        "from_name": language_name(data.source),
        "to_code": data.target,
        "to_name": language_name(data.target),
        "type": "translate",
    }
    tags = tokenizer.source.pieces(tokenizer.toward(str(direction)).tags) if direction else []
    if len(tags) > 1:  # the first is for the decoder
        metadata["target_prefix"] = tags[0]
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        root = Path(temporary)
        (root / "model").mkdir()
        ctranslate2.write(model, root / "model", compute_type)
        if tags:  # Argos Translate adds none, but CTranslate2 begins each source with this piece
            file = root / "model" / "config.json"
            config = json.loads(file.read_bytes())
            config |= {"add_source_bos": True, "bos_token": tags[-1]}
            file.write_bytes(to_json(config).encode())
        (root / "model" / ctranslate2.JOINT_MODEL).rename(root / ctranslate2.JOINT_MODEL)
        (root / "metadata.json").write_bytes(to_json(metadata).encode())
        title = f"# {metadata['from_name']} - {metadata['to_name']}"
        card = f"{title}\n\nTrained with and exported by transduce.\n"
        (root / CARD).write_bytes(card.encode())
        with zipfile.ZipFile(folder / f"{name}{SUFFIX}", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(root.rglob("*")):
                archive.write(path, f"{name}/{path.relative_to(root).as_posix()}")


def open_runner(folder: Path) -> Runner:
    """Open the package in `folder` with CTranslate2 and SentencePiece, as Argos Translate does."""
    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        [package] = folder.glob(f"*{SUFFIX}")
        with zipfile.ZipFile(package) as archive:
            archive.extractall(unpacked)
        [root] = Path(unpacked).iterdir()
        pieces = root / ctranslate2.JOINT_MODEL
        # Reads all files before they are deleted.
        return ctranslate2.runner(root / "model", pieces, pieces, adds_tags=True)


def _name(model: Bundle) -> str:
    """The package's name, in the style of Argos Translate's own packages."""
    data = model.config.data
    return f"translate-{data.source}_{data.target}-{PACKAGE_VERSION.replace('.', '_')}"
