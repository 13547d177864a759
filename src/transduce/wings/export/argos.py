"""A package that Argos Translate and LibreTranslate install: a zip archive.

translate-en_de-1_0.argosmodel      translate-en_de-1_0/   metadata.json  sentencepiece.model  README.md
                                                           model/ (see `ctranslate2.py`)
"""

import tempfile
import zipfile
from pathlib import Path

from transduce.model_folder import CARD, Bundle
from transduce.system.files import to_json
from transduce.text.languages import language_name
from transduce.wings.export import ctranslate2
from transduce.wings.export.parity import Peer

SUFFIX = ".argosmodel"
VERSION, ARGOS = "1.0", "1.9.0"  # of the package; of the oldest Argos Translate that it is for


def usage(model: Bundle) -> str:
    """How it is used, as Markdown."""
    data, name = model.config.data, _name(model)
    return f"""\
With the package argostranslate, or under LibreTranslate, which is made of it:

```python
import argostranslate.package, argostranslate.translate

argostranslate.package.install_from_path("{name}{SUFFIX}")  # once
print(argostranslate.translate.translate("…", "{data.source}", "{data.target}"))
```

Argos Translate cuts text into sentences itself, and turns every underscore of a translation into a space.
"""


def write(model: Bundle, folder: Path, compute_type: str) -> None:
    """Write the package; raises UserError as `ctranslate2.write` does."""
    name, data = _name(model), model.config.data
    metadata = {
        "package_version": VERSION,
        "argos_version": ARGOS,
        "from_code": data.source,
        "from_name": language_name(data.source),
        "to_code": data.target,
        "to_name": language_name(data.target),
        "type": "translate",
    }
    with tempfile.TemporaryDirectory(dir=folder) as place:
        root = Path(place)
        (root / "model").mkdir()
        ctranslate2.write_model(model, root / "model", compute_type)
        (root / ctranslate2.JOINT).write_bytes(model.tokenizer.models[0])
        (root / "metadata.json").write_text(to_json(metadata), encoding="utf-8")
        title = f"{metadata['from_name']} - {metadata['to_name']}"
        (root / CARD).write_text(f"# {title}\n\nTrained with and exported by transduce.\n", encoding="utf-8")
        with zipfile.ZipFile(folder / f"{name}{SUFFIX}", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(root.rglob("*")):
                archive.write(path, f"{name}/{path.relative_to(root).as_posix()}")


def open_peer(folder: Path) -> Peer:
    """What is in the package, as CTranslate2 and SentencePiece use it, which is what Argos Translate does."""
    with tempfile.TemporaryDirectory() as place:
        [package] = folder.glob(f"*{SUFFIX}")
        with zipfile.ZipFile(package) as archive:
            archive.extractall(place)
        [root] = Path(place).iterdir()
        pieces = root / ctranslate2.JOINT
        return ctranslate2.peer(root / "model", pieces, pieces)  # which has read them by then


def _name(model: Bundle) -> str:
    """As Argos Translate's own packages are called."""
    data = model.config.data
    return f"translate-{data.source}_{data.target}-{VERSION.replace('.', '_')}"
