"""The wheel works outside the checkout, with its recipes and the phrasebook."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
import zipfile
from pathlib import Path

import pytest

from models import make_model
from waiting import PATIENCE, wait_for

ROOT = Path(__file__).parents[1]


def build(folder: Path) -> Path:
    """Build the wheel into a folder."""
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(folder),
        str(ROOT),
    ]
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


def program(installed: Path, code: str, *arguments: str) -> dict:
    """A program in which `transduce` is that of the wheel, as arguments of subprocess.run or Popen."""
    checked = f"import transduce; assert transduce.__file__.startswith({str(installed)!r}); {code}"
    environment = os.environ | {"PYTHONPATH": str(installed)}
    return {
        "args": [sys.executable, "-c", checked, *arguments],
        "cwd": installed.parent,
        "env": environment,
    }


def python(installed: Path, code: str, *arguments: str) -> str:
    """What such a program prints."""
    done = subprocess.run(
        **program(installed, code, *arguments), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def transduce(installed: Path, *arguments: str) -> str:
    return python(installed, "from transduce.cli import main; main()", *arguments)


def test_two_builds_have_the_same_bytes(wheel, tmp_path):
    os.utime(ROOT / "src/transduce/__init__.py")
    assert build(tmp_path).read_bytes() == wheel.read_bytes()


def test_the_wheel_holds_every_file_of_the_source(installed):
    command = ["git", "ls-files", "src"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    wanted = {Path(name).relative_to("src") for name in listed.splitlines()}
    found = {path.relative_to(installed) for path in installed.rglob("*") if path.is_file()}
    assert wanted <= found
    (metadata,) = {path.parts[0] for path in found - wanted}
    assert metadata.endswith(".dist-info")


def test_the_wheel_of_the_source_archive_is_that_of_the_checkout(wheel, tmp_path):
    command = [
        sys.executable,
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True)  # the archive, and its wheel
    assert len(list(tmp_path.glob("*.tar.gz"))) == 1
    (built,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(built) as other:
        names = one.namelist()
        assert sorted(names) == sorted(other.namelist())
        assert all(one.read(name) == other.read(name) for name in names)


def test_installed_wheel_says_its_version(installed):
    assert transduce(installed, "--version").split()[0] == "transduce"


def test_installed_wheel_trains_and_translates(installed, tmp_path):
    code = """
import sys, transduce
from transduce.wings.phrasebook.examples import examples
pairs = [(each.english, each.german) for each in examples("train", 200)]
options = dict(zip(sys.argv[2::2], map(int, sys.argv[3::2])))
transduce.train(sys.argv[1], train=pairs, source="en", target="de", options=options)
translations = transduce.load(sys.argv[1], engine="torch").translate(iter(["It is raining now."]))
print(len(list(translations)), len(transduce.evaluate(sys.argv[1], pairs[:3]).scores))
"""
    sizes = {"data.vocab_size": 300, "model.d_model": 16, "model.d_ff": 16, "model.num_heads": 2}
    layers = {f"model.num_{side}_layers": 1 for side in ("encoder", "decoder")}
    length = {"train.steps": 2, "train.warmup": 1, "decode.max_extra_tokens": 2}
    options = [str(each) for pair in (sizes | layers | length).items() for each in pair]
    printed = python(installed, code, str(tmp_path / "model"), *options)
    assert printed.split()[-2:] == ["1", "3"]


def test_installed_wheel_has_the_recipes(installed):
    names = sorted(path.name for path in (ROOT / "src/transduce/recipes").glob("*.toml"))
    code = "import sys; from transduce.commands.recipes import read_text; "
    code += "from transduce.config.parse import read_recipe; "
    code += "print(*(name for name in sys.argv[1:] if read_recipe(*read_text(f'recipes/{name}'))))"
    assert names and python(installed, code, *names).split() == names


def test_installed_wheel_has_the_table_of_corpora(installed):
    assert "multi30k" in transduce(installed, "fetch")


def test_installed_wheel_has_the_phrasebook(installed):
    code = "from transduce.wings.phrasebook.examples import examples; "
    code += "print([len(list(examples(part, 9))) for part in ('train', 'valid', 'test')])"
    assert python(installed, code).strip() == "[9, 9, 9]"


def test_installed_wheel_has_the_attention_drawing(installed):
    assert {"drawing.js", "drawing.css"} <= {
        path.name for path in (installed / "transduce/wings/inspection").iterdir()
    }


def test_installed_wheel_has_the_whole_web_page(installed):
    page = Path("transduce/wings/serving/page")
    found, wanted = (
        {file.name for file in (root / page).iterdir()} for root in (installed, ROOT / "src")
    )
    assert found == wanted and "index.html" in found


def test_installed_wheel_serves(installed, tmp_path):
    command = ("serve", str(make_model(tmp_path / "model", {})), "--port", "0")
    log, code = tmp_path / "log", "from transduce.cli import main; main()"
    with (
        log.open("wb") as file,
        subprocess.Popen(**program(installed, code, *command), stderr=file) as process,
    ):
        try:
            address = wait_for(
                lambda: re.search(r"http://\S+:\d+/", log.read_text()), process.poll
            )[0]
            body = json.dumps({"q": "ba ka", "source": "en", "target": "de"}).encode()
            asked = urllib.request.Request(
                f"{address}translate", body, {"Content-Type": "application/json"}
            )
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                assert json.load(answer)["translatedText"]
            with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
                assert b"<html" in answer.read()
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0, log.read_text()
