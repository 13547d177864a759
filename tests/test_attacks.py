"""The attacks of `make attack` find no defect in a few cases, so they know what transduce does."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
QUICK = {"documents": ("--documents", "10", "--seed", "991")}
SLOW = dict.fromkeys(("damage", "kills", "texts", "server"), ("--minutes", "0.2"))


@pytest.mark.parametrize(
    "name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]
)
def test_attacks_find_no_defect(name: str) -> None:
    if name == "kills" and not shutil.which("strace"):
        pytest.skip("it needs strace")
    command = [sys.executable, f"benchmarks/attack/{name}.py", *(QUICK | SLOW)[name]]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
