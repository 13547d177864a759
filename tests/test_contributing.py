"""CONTRIBUTING.md: the examples, applied to a copy of the package, work as their own tests say."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SECTIONS = {
    title: re.findall(r"^```(python|diff)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    for title, text in re.findall(
        r"^## (Add .*?)\n(.*?)(?=^## |\Z)",
        (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
}


SLOW = ("Add an engine", "Add an option", "Add a format")  # others are like them


@pytest.mark.parametrize(
    "title",
    [pytest.param(title, marks=[pytest.mark.slow] if title in SLOW else []) for title in SECTIONS],
)
def test_example_works_in_a_copy_of_the_package(title: str, tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    lines, tests = 0, []
    for language, block in SECTIONS[title]:
        head, _, body = block.partition("\n")
        path = tmp_path / head.split()[1]
        lines += body.count("\n") if head.startswith("# src") or language == "diff" else 0
        if language == "diff":
            change(path, body)
            continue
        assert not (ROOT / head.split()[1]).exists(), "a new file"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block, encoding="utf-8")
        tests += [path] if head.startswith("# tests") else []
    assert tests and lines <= 30
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(tmp_path / "src"), str(ROOT / "tests")])
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        tmp_path,
        *tests,
    ]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def change(path: Path, body: str) -> None:
    """Apply a diff: lines after a space or a minus are in the file once, lines after a plus or a space replace them."""
    old, new = (
        "".join(f"{line[1:]}\n" for line in body.splitlines() if line[0] in signs)
        for signs in (" -", " +")
    )
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path.name} has changed: {old}"
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_every_registry_has_an_example() -> None:
    assert list(SECTIONS) == [
        "Add a format",
        "Add an engine",
        "Add a model family",
        "Add an option",
        "Add a command",
    ]
