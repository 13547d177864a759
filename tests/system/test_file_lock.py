"""One process holds a lock file at a time, and a killed process frees it."""

import subprocess
import sys
from pathlib import Path

import pytest

from transduce.system.errors import UserError
from transduce.system.file_lock import file_lock

HOLD = """
import sys
from pathlib import Path
from transduce.system.file_lock import file_lock
with file_lock(Path(sys.argv[1]), "busy"):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_killed_process_frees_its_lock(tmp_path: Path) -> None:
    lock = tmp_path / "run/.lock"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLD, lock], text=True, **pipes) as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        with (
            pytest.raises(UserError, match=r"^Another one writes\. Wait\.$"),
            file_lock(lock, "Another one writes.", "Wait."),
        ):
            pass
        process.kill()
    with file_lock(lock, "busy") as is_held:
        assert is_held
        with pytest.raises(UserError, match="busy"), file_lock(lock, "busy"):
            pass
    assert list((tmp_path / "run").iterdir()) == []


def test_a_new_folder_goes_with_the_lock_if_it_stays_empty(tmp_path: Path) -> None:
    with file_lock(tmp_path / "new/run/.lock", "busy"):
        assert (tmp_path / "new/run/.lock").exists()
    with file_lock(tmp_path / "kept/.lock", "busy"):
        (tmp_path / "kept/file").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_file_systems_without_locks_are_supported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with file_lock(tmp_path / "file/.lock", "busy") as is_held:
        assert not is_held
