"""The wheel works outside the checkout, with its recipes and the phrasebook."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with what the wheel holds, as pip would unpack it."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def run(installed: Path, *arguments: str) -> subprocess.CompletedProcess:
    code = "import transduce, sys; assert transduce.__file__.startswith(sys.argv.pop(1)), transduce.__file__; "
    code += "from transduce.cli import main; main()"
    environment = os.environ | {"PYTHONPATH": str(installed)}
    command = [sys.executable, "-c", code, str(installed), *arguments]
    return subprocess.run(command, cwd=installed.parent, env=environment, capture_output=True, text=True)


def test_it_runs(installed):
    done = run(installed, "--version")
    assert (done.returncode, done.stdout.split()[0]) == (0, "transduce"), done.stderr


@pytest.mark.parametrize("recipe", sorted(path.name for path in (ROOT / "src/transduce/recipes").glob("*.toml")))
def test_its_recipes_are_found(installed, recipe):
    done = run(installed, "train", f"recipes/{recipe}", "--out", "model")
    assert "nothing to train on" in done.stderr and done.returncode == 2  # the recipe was read


def test_its_table_of_corpora_is_found(installed):
    done = run(installed, "fetch")
    assert (done.returncode, "multi30k" in done.stdout) == (0, True), done.stderr


def test_its_phrasebook_is_there(installed):
    code = "from transduce.wings.phrasebook.examples import examples as e; print(next(e('train')), next(e('test')))"
    environment = os.environ | {"PYTHONPATH": str(installed)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=installed.parent, env=environment, capture_output=True, text=True)
    assert done.stdout.strip(), done.stderr


def test_its_drawing_is_there(installed):
    assert {"drawing.js", "drawing.css"} <= {path.name for path in (installed / "transduce/wings/inspection").iterdir()}


def test_its_web_page_is_whole(installed):
    page = Path("transduce/wings/serving/page")
    found, wanted = ({file.name for file in (root / page).iterdir()} for root in (installed, ROOT / "src"))
    assert found == wanted and "index.html" in found
