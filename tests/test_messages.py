"""The plugin that lists messages for users finds them, and where they are raised."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def test_messages_are_listed(tmp_path: Path) -> None:
    listed = tmp_path / "messages.md"
    tests = TESTS / "system/test_file_lock.py"
    command = [sys.executable, "-m", "pytest", "-p", "messages", f"--messages={listed}", str(tests)]
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    subprocess.run(command, check=True, capture_output=True, cwd=TESTS.parent, env=os.environ | {"PYTHONPATH": path})
    row = next(row for row in listed.read_text(encoding="utf-8").splitlines() if "another one writes" in row)
    place, message, test = row.strip("| ").split(" | ")
    assert place.startswith("system/file_lock.py:") and message == "another one writes"
    assert test == "system/test_file_lock.py::test_a_killed_process_frees_its_lock"
