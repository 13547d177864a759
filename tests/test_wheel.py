"""The wheel works outside the checkout, with its recipes and the phrasebook."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def build(folder: Path) -> Path:
    """Build the wheel into a folder."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel):
    """A folder with what the wheel holds, as pip would unpack it."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(wheel.parent / "site")
    return wheel.parent / "site"


def python(installed: Path, code: str, *arguments: str) -> str:
    """What a program prints in which `transduce` is that of the wheel."""
    checked = f"import transduce; assert transduce.__file__.startswith({str(installed)!r}); {code}"
    command, environment = [sys.executable, "-c", checked, *arguments], os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run(command, cwd=installed.parent, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def transduce(installed: Path, *arguments: str) -> str:
    return python(installed, "from transduce.cli import main; main()", *arguments)


def test_two_builds_have_the_same_bytes(wheel, tmp_path):
    os.utime(ROOT / "src/transduce/__init__.py")
    assert build(tmp_path).read_bytes() == wheel.read_bytes()


def test_it_runs(installed):
    assert transduce(installed, "--version").split()[0] == "transduce"


def test_its_recipes_are_found(installed):
    names = sorted(path.name for path in (ROOT / "src/transduce/recipes").glob("*.toml"))
    code = (
        "import sys; from transduce.commands.recipes import read_text; from transduce.config.parse import read_recipe; "
    )
    code += "print(*(name for name in sys.argv[1:] if read_recipe(*read_text(f'recipes/{name}'))))"
    assert names and python(installed, code, *names).split() == names


def test_its_table_of_corpora_is_found(installed):
    assert "multi30k" in transduce(installed, "fetch")


def test_its_phrasebook_is_there(installed):
    code = "from transduce.wings.phrasebook.examples import examples; "
    code += "print([len(list(examples(part, 9))) for part in ('train', 'valid', 'test')])"
    assert python(installed, code).strip() == "[9, 9, 9]"


def test_its_drawing_is_there(installed):
    assert {"drawing.js", "drawing.css"} <= {path.name for path in (installed / "transduce/wings/inspection").iterdir()}


def test_its_web_page_is_whole(installed):
    page = Path("transduce/wings/serving/page")
    found, wanted = ({file.name for file in (root / page).iterdir()} for root in (installed, ROOT / "src"))
    assert found == wanted and "index.html" in found
