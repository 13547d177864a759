"""Reads and writes run.json: the inputs of a training run, and the code, command and machine of each session.

A session begins when the training starts or resumes. If neither code nor command nor machine nor options have changed,
a resumption belongs to the previous session.
"""

import hashlib
import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import torch

from transduce import model_folder
from transduce.config.schema import DataConfig, RunConfig
from transduce.config.settings import Settings
from transduce.preparation.prepared import is_prepared
from transduce.system.cache import remembered_digest
from transduce.system.command_line import command_line
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST, digest, read_manifest, to_json, write_text
from transduce.system.machine import cores, processor
from transduce.system.revision import code_hash, revision
from transduce.text.multilingual import without_labels
from transduce.text.pairs import expand_folders
from transduce.training.distributed import ALONE, Ranks


class Session(NamedTuple):
    """The code, command and machine of a training run from update `step` on."""

    code: str  # code_hash()
    revision: str
    command: list[str] | None  # None: started from Python
    versions: dict[str, str]
    machine: dict[str, Any]
    changes: dict[str, list[Any]]  # option -> [old value, new value]
    step: int
    date: str  # date and time in UTC


class RunCard(NamedTuple):
    """The content of run.json."""

    # Option -> name of a file -> SHA-256, see `fingerprint`.
    inputs: dict[str, dict[str, str | None]]
    keep_optimizer: bool
    vocab_size: int | None  # the size that was asked for; the vocabulary may be smaller
    sessions: list[Session]

    def to_json(self) -> str:
        """The text of run.json."""
        return to_json(
            {**self._asdict(), "sessions": [session._asdict() for session in self.sessions]}
        )


def read_run_card(folder: Path) -> RunCard | None:
    """The run card in a folder, or None if it is missing or damaged."""
    try:
        content = json.loads((folder / model_folder.RUN).read_bytes())
        return RunCard(
            **{**content, "sessions": [Session(**session) for session in content["sessions"]]}
        )
    except FileNotFoundError:  # folders of older versions have no run card
        return None
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        log(f"Warning: {folder / model_folder.RUN} is damaged, so how the training ran is unknown.")
        return None


def asked_vocabulary_size(folder: Path) -> int:
    """The data.vocab_size with which the user started the training in a folder; 0 if it is unknown."""
    card = read_run_card(folder)
    return (card.vocab_size or 0) if card else 0


def warn_of_changed_text(out: Path) -> None:
    """Warn of files of the corpus and the validation set that have changed since the first start."""
    if changed := _changed(out, "data.corpora", "data.valid"):
        log(
            f"Warning: {changed} changed after this training began. The training uses the earlier text. "
            "To learn from the new text, train in another folder; you can continue from this model there."
        )


def warn_of_changed_test(out: Path) -> None:
    """Warn of files of the test set that have changed since the first start."""
    if changed := _changed(out, "data.test"):
        log(f"Warning: {changed} changed. The model will be tested on the present text.")


def _changed(out: Path, *options: str) -> str:
    """The names of the files of these options that have other content than the run card in `out` says."""
    inputs = card.inputs if (card := read_run_card(out)) else {}
    files = {name: known for option in options for name, known in inputs.get(option, {}).items()}
    return " and ".join(file for file, known in files.items() if _has_changed(file, known))


def _has_changed(file: str, known: str | None) -> bool:
    """Whether a file of text has other content. A training does not need its files, so they may be missing."""
    try:
        return not is_prepared([file]) and fingerprint(file) not in (None, known)
    except (UserError, OSError):
        return False


def begin_run_card(out: Path, settings: Settings, init: Path | None, keep_optimizer: bool) -> None:
    """Write the run card of a new training with the user's `settings`. The card has no sessions yet."""
    data = settings.config().data
    own = (
        str(init / model_folder.DATA) if init else ""
    )  # data.replay or data.remember is this path, made absolute
    named = {
        "data.corpora": [file for corpus in data.corpora for file in corpus.files],
        "data.valid": data.valid,
        "data.test": data.test,
        **{
            f"data.{name}": [own if own and Path(own).resolve() == Path(path) else path]
            for name, path in (("replay", data.replay), ("remember", data.remember))
        },
        "init": [str(init or "")],
    }
    inputs = {option: _fingerprints(files) for option, files in named.items() if any(files)}
    card = RunCard(inputs, keep_optimizer, settings.get("data.vocab_size"), [])
    write_text(out / model_folder.RUN, card.to_json())


def add_session(out: Path, session: Session, data: DataConfig) -> None:
    """Update the run card in `out`, if any: the test files, and a new session unless the last one is equal."""
    if card := read_run_card(out):
        before = card.to_json()
        if "data.test" in session.changes or _changed(out, "data.test"):
            card.inputs["data.test"] = _fingerprints(data.test)
        if session.changes or not card.sessions or session[:5] != card.sessions[-1][:5]:
            card.sessions.append(session)
        if (now := card.to_json()) != before:
            write_text(out / model_folder.RUN, now)


def current_session(
    config: RunConfig,
    device: torch.device,
    ranks: Ranks = ALONE,
    changes: Mapping[str, Any] | None = None,
    step: int = 0,
) -> Session:
    """The session of this process."""
    command = command_line.get()
    libraries = ("torch", "numpy", "sentencepiece")
    machine = {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": f"{processor()}, {torch.backends.cpu.get_cpu_capability()}",
        "cores": cores(),
        "device": "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device),
        "precision": config.train.precision,
        "threads": ranks.threads(config.train.threads),
        "processes": ranks.world,
    }
    return Session(
        code_hash(),
        revision(),
        list(command) if command else None,
        {"python": platform.python_version(), **{name: version(name) for name in libraries}},
        machine,
        {name: list(values) for name, values in (changes or {}).items()},
        step,
        datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _fingerprints(files: Any) -> dict[str, str | None]:
    return {file: fingerprint(file) for file in without_labels(files)}


def fingerprint(name: str) -> str | None:
    """The SHA-256 of a file; None if there is no regular file or folder of this name.

    For a model folder, the SHA-256 of its weights. For a prepared corpus, the SHA-256 of its manifest. For a folder of
    bilingual files, the SHA-256 of the list of the files' hashes and names. Raises UserError for a damaged folder.
    """
    path = Path(name)
    if (path / model_folder.CONFIG).is_file():
        weights = model_folder.describe(path).weights
        return read_manifest(weights.parent)[weights.name].sha256
    if (path / MANIFEST).is_file():
        return digest(path / MANIFEST)
    if path.is_dir():
        files = map(Path, expand_folders([name]))
        lines = [
            f"{remembered_digest(file)}  {file.relative_to(path).as_posix()}\n" for file in files
        ]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    return remembered_digest(path) if path.is_file() else None
