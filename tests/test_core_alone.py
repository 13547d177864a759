"""The core trains, prepares, translates and measures without the wings and the lab."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import transduce
from corpora import TINY, spelt, write_texts
from models import make_model

OTHER_RINGS = ("wings", "transduce_lab")
START = """
import sys
sys.path[:] = [sys.argv.pop(1), *(folder for folder in sys.path if folder != sys.argv[1])]
sys.argv.pop(1)
from transduce.cli import main
main()
"""


class Core:
    """A copy of the package that has only the core."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.source = Path(transduce.__file__).parents[1]
        ignored = shutil.ignore_patterns(*OTHER_RINGS, "__pycache__")
        shutil.copytree(self.source / "transduce", folder / "copy" / "transduce", ignore=ignored)

    def run(self, *arguments: object, text: str = "", status: int = 0) -> str:
        """Run a command, and return what it prints, errors included."""
        words = [sys.executable, "-c", START, self.folder / "copy", self.source, *arguments]
        done = subprocess.run(
            [str(word) for word in words],
            input=text,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )
        assert done.returncode == status, done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Core:
    return Core(tmp_path_factory.mktemp("core"))


@pytest.fixture(scope="module")
def model(core: Core) -> Path:
    """A model that the core has trained on a corpus that it has prepared, in two sessions."""
    train, out = write_texts(core.folder, "train", 300, 1), core.folder / "model"
    core.run(
        "prepare",
        "--train",
        *train,
        "--out",
        core.folder / "data",
        *spelt({"data.holdout": 20, **TINY}),
    )
    options = {name: value for name, value in TINY.items() if name != "data.vocab_size"}
    command = "train", "--train", core.folder / "data", "--out", out
    core.run(*command, *spelt({**options, "train.steps": 20}))
    core.run(*command, *spelt({**options, "train.steps": 40}))
    return out


def test_the_core_trains_and_resumes(model: Path) -> None:
    assert (model / "manifest.json").exists()
    assert '"step": 40' in (model / "journal.jsonl").read_text(encoding="utf-8")


def test_the_core_translates_with_the_default_engine(core: Core, model: Path) -> None:
    said = core.run("translate", model, text="ka lo\n\nmi {0} https://example.org\n")
    assert "Engine: torch" in said and len(said.splitlines()) >= 3
    assert '"text"' in core.run("translate", model, "ka. lo.", "--json")


def test_the_core_evaluates(core: Core, model: Path) -> None:
    assert "BLEU" in core.run("evaluate", model, *write_texts(core.folder, "test", 20, 2))


def test_the_core_shows_a_model(core: Core, model: Path) -> None:
    said = core.run("info", model)
    assert "engine" in said and "torch" in said


def test_the_core_lists_its_commands(core: Core) -> None:
    assert "Translate a document" in core.run("--help")


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (("serve",), "transduce[serve]"),
        (("doctor",), "transduce[doctor]"),
        (("translate", "MODEL", "--engine", "ctranslate2"), "transduce[fast]"),
        (("translate", "MODEL", "--input", "page.html"), "transduce[documents]"),
        (
            ("prepare", "--train", "a.src", "a.tgt", "--out", "shards", "--shard", "1/2"),
            "transduce[scale]",
        ),
    ],
)
def test_what_is_missing_says_which_extra_brings_it(
    core: Core, model: Path, arguments: tuple[str, ...], extra: str
) -> None:
    (core.folder / "page.html").write_text("<p>ka lo</p>", encoding="utf-8")
    said = core.run(
        *(str(model) if each == "MODEL" else each for each in arguments), text="ka\n", status=2
    )
    assert f"pip install '{extra}'" in said


def test_models_of_the_lab_are_refused_with_a_hint(core: Core) -> None:
    folder = make_model(core.folder / "recurrent", {"model.kind": "recurrent"})
    for command in ("info", "translate"):
        said = core.run(command, folder, text="ka\n", status=2)
        assert "must be one of transformer, not 'recurrent'" in said
        assert "pip install 'transduce[lab]'" in said


@pytest.mark.parametrize(
    ("option", "names_lab"),
    [
        ("model.kind=recurrent", True),
        ("model.attention=additive", True),
        ("model.experts=2", True),
        ("model.norm=both", False),
        ("train.step=2", False),
    ],
)
def test_an_option_of_the_lab_names_the_lab(core: Core, option: str, names_lab: bool) -> None:
    said = core.run("train", "--train", "a.src", "a.tgt", "--out", "none", option, status=2)
    assert ("pip install 'transduce[lab]'" in said) == names_lab
