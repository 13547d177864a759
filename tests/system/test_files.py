"""A folder is there whole or not at all, whatever interrupts its writing; damage has a name."""

import errno
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forked import Forked
from transduce.system.errors import UserError
from transduce.system.files import (
    publish,
    read_manifest,
    remove_leftovers,
    verify,
    write_file,
    write_folder,
    write_text,
)
from transduce.system.write_errors import is_full, write_error
from variants import slow

OLD = {"config.toml": b"old", "weights": b"o" * 10_000}
NEW = {"config.toml": b"newer", "weights": b"n" * 20_000, "deep/er/notes": b""}


def fill(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def content(folder: Path) -> dict[str, bytes]:
    """The files that the manifest names."""
    return {name: (folder / name).read_bytes() for name in read_manifest(folder)}


IMPORTS = """
import os, signal, sys
from pathlib import Path
from transduce.system.errors import UserError
from transduce.system.files import publish, verify, write_file, write_folder, write_text
"""


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `code` in another process."""
    command = [sys.executable, "-c", IMPORTS + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


names = st.from_regex(r"[a-z]{1,3}(\.[a-z]{1,3})?", fullmatch=True)


@settings(max_examples=30)
@given(files=st.dictionaries(names, st.binary(max_size=50)))
def test_written_folder_is_verified(files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parent") / "a" / "folder"
    with write_folder(folder) as aside:
        assert not folder.exists()
        fill(aside, files)
    verify(folder, hashes=True)
    assert content(folder) == files
    assert [path.name for path in folder.parent.iterdir()] == ["folder"]


def test_the_manifest_by_hand(tmp_path):
    with write_folder(tmp_path / "folder") as aside:
        fill(aside, {"deep/er": b"abc"})
    assert json.loads((tmp_path / "folder/manifest.json").read_text()) == {
        "format": 1,
        "files": {
            "deep/er": {
                "size": 3,
                "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            }
        },
    }


def test_an_inner_folder_is_part_of_the_outer(tmp_path):
    with write_folder(tmp_path / "outer") as aside, write_folder(aside / "inner") as inner:
        fill(inner, OLD)
    verify(tmp_path / "outer/inner", hashes=True)
    assert set(read_manifest(tmp_path / "outer")) == {
        "inner/config.toml",
        "inner/weights",
        "inner/manifest.json",
    }


def test_permissions_are_those_of_a_usual_folder(tmp_path):
    (tmp_path / "usual").mkdir()
    with write_folder(tmp_path / "folder"):
        pass
    assert (tmp_path / "folder").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_nothing_is_overwritten(tmp_path):
    with write_folder(tmp_path / "folder") as aside:
        fill(aside, OLD)
    with (
        pytest.raises(UserError, match="exists already"),
        write_folder(tmp_path / "folder") as aside,
    ):
        pass
    # A race, lost.
    with (
        pytest.raises(UserError, match="exists already"),
        write_folder(tmp_path / "other") as aside,
    ):
        fill(tmp_path / "other", OLD)
        fill(aside, NEW)
    assert content(tmp_path / "folder") == OLD
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "other"]


def test_exception_keeps_the_previous_content(tmp_path):
    fill(tmp_path / "run", {"journal.jsonl": b"{}"})
    with publish(tmp_path / "run") as aside:
        fill(aside, OLD)
    for write in (write_folder, publish):
        with (
            pytest.raises(KeyboardInterrupt),
            write(tmp_path / ("run" if write is publish else "new")) as aside,
        ):
            fill(aside, NEW)
            raise KeyboardInterrupt
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    verify(tmp_path / "run", hashes=True)
    assert content(tmp_path / "run") == OLD


def test_an_exception_takes_the_folders_above_with_it(tmp_path):
    (tmp_path / "there").mkdir()
    with pytest.raises(RuntimeError), write_folder(tmp_path / "there/new/newer/run"):
        raise RuntimeError
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]
    with pytest.raises(RuntimeError), write_folder(tmp_path / "new/run"):
        (tmp_path / "new/other").touch()
        raise RuntimeError
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["new", "other", "there"]


def test_publishing_replaces_only_its_own_files(tmp_path):
    fill(tmp_path, {"journal.jsonl": b"{}", "checkpoints/step-1/weights": b"w"})
    for files in (OLD, NEW):
        with publish(tmp_path) as aside:
            fill(aside, files)
        verify(tmp_path, hashes=True)
        assert content(tmp_path) == files
    assert (tmp_path / "journal.jsonl").read_bytes() == b"{}"
    assert (tmp_path / "checkpoints/step-1/weights").read_bytes() == b"w"
    assert not remove_leftovers(tmp_path)


def test_names_may_be_as_long_as_the_file_system_allows(tmp_path):
    name = "\U0001f600" * 63
    for write in write_folder, publish:
        with write(tmp_path / name) as aside:
            fill(aside, NEW)
        assert content(tmp_path / name) == NEW
    write_text(tmp_path / name / name, "a")
    assert not remove_leftovers(tmp_path) and not remove_leftovers(tmp_path / name, name)


DEATHS = ["os._exit(9)", "os.kill(os.getpid(), signal.SIGKILL)"]


@pytest.mark.parametrize("death", DEATHS)
def test_a_process_killed_while_writing_leaves_a_leftover(death, tmp_path):
    code = f"with write_folder(sys.argv[1]) as aside:\n (aside / 'weights').write_bytes(b'w' * 100)\n {death}"
    assert python(code, tmp_path / "folder").returncode in (9, -signal.SIGKILL)
    left, lock = sorted(tmp_path.iterdir())
    assert left.name.startswith(".folder.aside-") and lock.name == f"{left.name}.lock"
    assert remove_leftovers(tmp_path) == [left]
    assert not list(tmp_path.iterdir())


def test_leftovers_are_removed_when_no_process_writes_to_them(tmp_path):
    with (
        pytest.raises(UserError, match="exists already"),
        write_folder(tmp_path / "folder") as aside,
    ):
        os.utime(aside, (0, 0))
        assert not remove_leftovers(tmp_path)
        with write_folder(tmp_path / "folder"):
            assert aside.is_dir()
    (tmp_path / "folder").rename(tmp_path / ".folder.aside-left")
    for name in ("other", "folder"):
        assert (tmp_path / ".folder.aside-left").is_dir()
        with write_folder(tmp_path / name):
            pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "other"]


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("is_complete", [False, True])
def test_repeated_command_removes_leftovers_of_a_killed_process(death, is_complete, tmp_path):
    """Also the lock that remains if a process is killed just after it has renamed what it wrote."""
    when = f"os.unlink = lambda _: {death}" if is_complete else ""
    for write, name in (("write_file", "text"), ("write_folder", "folder")):
        code = f"{when}\nwith {write}(sys.argv[1]) as aside:\n {'pass' if is_complete else death}"
        assert python(code, tmp_path / name).returncode in (9, -signal.SIGKILL)
        assert (tmp_path / name).exists() == is_complete
    assert len([*tmp_path.glob(".*.lock")]) == 2
    write_text(tmp_path / "text", "")
    with suppress(UserError), write_folder(tmp_path / "folder"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "text"]


def test_a_file_that_is_being_written_is_no_leftover(tmp_path):
    with write_file(tmp_path / "text") as file:
        write_text(tmp_path / "text", "another one's")
        assert not remove_leftovers(tmp_path, sole_writer=True)
        file.write(b"ours")
    assert (tmp_path / "text").read_bytes() == b"ours"
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


# Kill a process at its n-th system call that changes something, as seen by the interpreter's audit hooks.
KILLED_AT = """
left = int(sys.argv[2])
def hook(event, arguments):
    global left
    if event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "open"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
write, files = eval(sys.argv[3]), eval(sys.argv[4])
sys.addaudithook(hook)
with write(sys.argv[1]) as aside:
    for name, content in files.items():
        (aside / name).parent.mkdir(parents=True, exist_ok=True)
        (aside / name).write_bytes(content)
"""


@pytest.mark.parametrize("write", [slow("write_folder"), "publish"])
def test_killed_at_any_moment_a_folder_is_whole_or_says_that_it_is_not(write, tmp_path):
    seen, returncode, moment = set(), -signal.SIGKILL, 0
    while returncode == -signal.SIGKILL:
        moment += 1
        folder = tmp_path / str(moment) / "folder"
        if write == "publish":
            with write_folder(folder) as aside:
                fill(aside, OLD)
        returncode = Forked(IMPORTS + KILLED_AT, folder, moment, write, NEW).wait()
        try:
            verify(folder, hashes=True)
            seen.add(
                "new" if content(folder) == NEW else "old" if content(folder) == OLD else "mixed"
            )
        except UserError as error:
            assert "manifest.json is missing" in str(error)
            assert write == "publish" or not folder.exists()
            seen.add("none")
    assert returncode == 0
    assert moment > 10
    assert seen == {"none", "new"} | ({"old"} if write == "publish" else set())


@pytest.mark.parametrize("write", ["write_text", "write_folder", "publish"])
def test_each_step_is_on_the_disk_before_the_next_one(write, tmp_path, monkeypatch):
    """Otherwise a power cut can leave a renamed file without content, or an old manifest beside new files."""
    # Inodes: of flushed files, and of folders whose changes are not flushed.
    synced, changed = (
        set(),
        set(),
    )
    sync, rename, unlink = os.fsync, os.rename, os.unlink

    def record_sync(descriptor):
        sync(descriptor)
        synced.add(os.fstat(descriptor).st_ino)
        changed.discard(os.fstat(descriptor).st_ino)

    def record_rename(old, new):
        moved = [Path(old), *Path(old).rglob("*")]
        assert {path.stat().st_ino for path in moved} <= synced
        assert not changed or (
            Path(new).name != "manifest.json" and not (tmp_path / "manifest.json").exists()
        )
        rename(old, new)
        changed.add(Path(new).parent.stat().st_ino)

    def record_unlink(path, *arguments, **keywords):
        unlink(path, *arguments, **keywords)
        if path == tmp_path / "manifest.json":
            unlinked.append(path)
            changed.add(tmp_path.stat().st_ino)

    unlinked = []
    if write == "publish":
        with publish(tmp_path) as aside:
            fill(aside, OLD)
    for name, function in {
        "fsync": record_sync,
        "rename": record_rename,
        "replace": record_rename,
    }.items():
        monkeypatch.setattr(os, name, function)
    monkeypatch.setattr(os, "unlink", record_unlink)
    if write == "write_text":
        write_text(tmp_path / "text", "new")
    else:
        with (
            write_folder(tmp_path / "folder")
            if write == "write_folder"
            else publish(tmp_path) as aside
        ):
            fill(aside, NEW)
    assert synced and not changed
    assert bool(unlinked) == (write == "publish")


@settings(max_examples=40)
@given(data=st.data())
def test_any_damage_is_found_and_named(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("parent") / "folder"
    with write_folder(folder) as aside:
        fill(aside, {name: content or b"x" for name, content in NEW.items()})
    path = folder / data.draw(st.sampled_from(sorted(NEW)))
    old = path.read_bytes()
    at = data.draw(st.integers(0, len(old) - 1))
    new = data.draw(
        st.sampled_from([old[:at], old + b"x", old[:at] + bytes([old[at] ^ 1]) + old[at + 1 :]])
    )
    path.write_bytes(new)
    with pytest.raises(UserError, match=f"{re.escape(str(path))} is damaged"):
        verify(folder, hashes=True)
    if len(new) == len(old):
        verify(folder)  # which looks at sizes alone
    else:
        with pytest.raises(UserError, match=f"has {len(new)} bytes instead of {len(old)}"):
            verify(folder)
    path.unlink()
    with pytest.raises(UserError, match=f"{re.escape(str(path))} is missing"):
        verify(folder)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "null", '{"format": 1, "files": {"a": {"size": 1}}}', "\udcff"]
)
def test_a_damaged_manifest_is_named(text, tmp_path):
    (tmp_path / "manifest.json").write_text(text, errors="surrogateescape")
    with pytest.raises(UserError, match=r"manifest\.json is damaged"):
        verify(tmp_path)


def test_a_newer_or_missing_manifest_is_named(tmp_path):
    for folder in (tmp_path, tmp_path / "absent"):
        with pytest.raises(UserError, match=r"manifest\.json is missing"):
            verify(folder)
    (tmp_path / "manifest.json").write_text('{"format": 2, "files": []}')
    with pytest.raises(UserError, match="format 2"):
        verify(tmp_path)


def test_a_text_is_replaced_whole(tmp_path):
    path = tmp_path / "notes.txt"
    for text in ("first\r\n", "secönd"):
        write_text(path, text)
        assert path.read_bytes() == text.encode()
    with pytest.raises(UserError, match=r"absent/notes\.txt can't be written: No such file"):
        write_text(tmp_path / "absent/notes.txt", "")
    assert list(tmp_path.iterdir()) == [path]


def test_a_replaced_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "private.txt"
    path.touch(0o600)
    write_text(path, "new")
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_can_not_be_renamed_because_it_is_mounted_is_written(tmp_path, monkeypatch):
    path = tmp_path / "mounted.txt"
    path.write_text("a longer old text")

    def busy(_: Path, to: Path) -> Path:
        raise OSError(errno.EBUSY, "Device or resource busy", str(to))

    monkeypatch.setattr(Path, "replace", busy)
    write_text(path, "new")
    assert path.read_text() == "new" and list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "file").touch()
    for write in (write_folder, publish):
        with (
            pytest.raises(UserError, match="can't be written: Not a directory"),
            write(tmp_path / "file/folder"),
        ):
            pass


# Room for the old folder, not for the new one: what each way of writing says, and what it leaves.
FULL = """
parent = Path(sys.argv[1])
with write_folder(parent / "old") as aside:
    (aside / "weights").write_bytes(b"o" * 50_000)
def new():
    with write_folder(parent / "new", needed=10_000_000) as aside:
        for i in range(20):
            (aside / f"{i}").write_bytes(b"n" * int(sys.argv[2]))
def again():
    with publish(parent / "old") as aside:
        (aside / "weights").write_bytes(b"n" * 400_000)
def text():
    write_text(parent / "old" / "weights", "n" * 400_000)
def rust():
    from safetensors.numpy import save_file
    import numpy
    with write_folder(parent / "new") as aside:
        save_file({"w": numpy.zeros(100_000)}, aside / "weights")
def stream():
    with write_file(parent / "old" / "weights") as file:
        for _ in range(8):
            file.write(b"n" * 100_000)
for write in (new, again, text, rust, stream):
    try:
        write()
    except UserError as error:
        print(error)
verify(parent / "old", hashes=True)
assert [path.name for path in parent.iterdir()] == ["old"], list(parent.iterdir())
"""


def check_full(result: subprocess.CompletedProcess[str], parent: Path, reason: str) -> None:
    assert result.returncode == 0, result.stderr
    said = result.stdout.splitlines()
    assert [line.split(":")[0] for line in said] == [
        f"There is no room for {parent / name}"
        for name in ("new", "old", "old/weights", "new", "old/weights")
    ]
    assert "needs at least 10,000,000 bytes" in said[0]
    assert "needs at least 400,000 bytes" in said[2]
    assert "needs at least 0 bytes" not in said[4]
    assert all(re.search(reason, line) for line in said)


def test_full_disk_is_reported_and_changes_nothing(tmp_path):
    namespace = ["unshare", "--user", "--map-root-user", "--mount"]
    mount = f"mount -t tmpfs -o size=256k none {tmp_path}"
    try:
        subprocess.run([*namespace, "sh", "-c", mount], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this system lets nobody mount a small file system")
    command = [
        *namespace,
        "sh",
        "-c",
        f'{mount} && exec "$0" -c "$1" {tmp_path} 20000',
        sys.executable,
        IMPORTS + FULL,
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    check_full(result, tmp_path, r"bytes are free \(.*No space left on device.*Free more space")


def test_a_used_up_quota_is_a_full_disk(tmp_path):
    full = write_error(tmp_path / "new", 10, OSError(errno.EDQUOT, "Disk quota exceeded"))
    assert is_full(OSError(errno.EDQUOT, "")) and "Disk quota exceeded)" in full.cause
    assert full.hint and "a quota" in full.hint.text


def test_a_file_size_limit_is_a_full_disk(tmp_path):
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
    check_full(
        python(limit + FULL, tmp_path, 200_000),
        tmp_path,
        r"\(.*File too large.*raise your limit: a quota, or `ulimit -f`",
    )
