"""The journal: whatever a crash leaves of the file, what was whole is read and what follows is whole again."""

import json
import math
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.system import console
from transduce.system.console import Display, duration, log
from transduce.system.errors import UserError
from transduce.system.journal import Journal, read_events

values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
events = st.lists(
    st.tuples(st.text(), st.dictionaries(st.sampled_from(["step", "loss", "note", "bleu"]), values))
)
LINE = "1,200/100,000  1:02:03 left  loss 4.210"


def told(path: Path) -> list[tuple[str, dict[str, object]]]:
    """The events of a journal without their times."""
    return [(event.pop("event"), event) for event in read_events(path) if event.pop("time") > 1.6e9]


@given(before=events, after=events, cut=st.integers(0, 400))
def test_whole_events_survive_a_crash(
    before: list[tuple[str, dict[str, object]]],
    after: list[tuple[str, dict[str, object]]],
    cut: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("run") / "journal.jsonl"
    with Journal(path) as log:
        for event, plain in before:
            log.write(event, **plain)
    assert told(path) == before
    path.write_bytes(path.read_bytes()[: path.stat().st_size - cut] if cut else path.read_bytes())
    survivors = told(path)
    assert survivors == before[: len(survivors)]
    with Journal(path) as log:
        for event, plain in after:
            log.write(event, **plain)
    assert told(path) == survivors + after


def test_resuming_drops_events_after_the_checkpoint(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl") as log:
        log.write("update", step=1)
        size = log.size
        log.write("update", step=2)
    with Journal(tmp_path / "journal.jsonl") as log:
        log.truncate(size)
        assert log.size == size
        log.write("update", step=20)
    assert told(tmp_path / "journal.jsonl") == [("update", {"step": 1}), ("update", {"step": 20})]


def test_journal_shorter_than_recorded_is_not_padded(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl") as log:
        log.write("update", step=1)
        log.truncate(log.size + 100)
        log.write("update", step=2)
    assert told(tmp_path / "journal.jsonl") == [("update", {"step": 1}), ("update", {"step": 2})]


def test_events_can_be_read_while_the_run_goes_on(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl") as log:
        log.write("update", loss=1.5, text="zwei\u2028Zeilen\n")
        assert told(tmp_path / "journal.jsonl") == [
            ("update", {"loss": 1.5, "text": "zwei\u2028Zeilen\n"})
        ]


@pytest.mark.parametrize(
    "line", ["{", "[]", '"event"', "{}", '{"evenu": "validation", "perplexity": 5.0}']
)
def test_a_line_without_an_event_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "journal.jsonl").write_text(f'{{"event": "start"}}\n{line}\n')
    with pytest.raises(UserError, match=r"journal\.jsonl:2: this line is damaged"):
        list(read_events(tmp_path / "journal.jsonl"))


def test_numbers_that_json_does_not_know_become_null(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl") as log:
        log.write("update", loss=math.nan, perplexity=math.inf, step=3)
    line = (tmp_path / "journal.jsonl").read_text(encoding="utf-8")
    assert '"loss": null, "perplexity": null, "step": 3' in line
    json.loads(line, parse_constant=pytest.fail)


def test_tensorboard_files_are_cut_back_like_the_journal(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    log = Journal(tmp_path / "journal.jsonl", tensorboard=True)
    log.write("update", step=10, loss=3.0)
    kept = log.size
    log.write("update", step=20, loss=2.0)
    log._writer.flush()  # and the process is killed
    with Journal(tmp_path / "journal.jsonl", tensorboard=True) as resumed:
        resumed.truncate(kept)
        resumed.write("update", step=15, loss=2.5)
    found = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [(each.step, each.value) for each in found.Scalars("update/loss")] == [
        (10, 3.0),
        (15, 2.5),
    ]
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1
    log.close()


def test_tensorboard_files_hold_the_same_numbers(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with Journal(tmp_path / "journal.jsonl", tensorboard=True) as log:
        log.write("update", step=10, loss=2.5, note="text is left out")
        log.write("update", step=20, loss=1.25)
    found = accumulator.EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert found.Tags()["scalars"] == ["update/loss"]
    assert [(scalar.step, scalar.value) for scalar in found.Scalars("update/loss")] == [
        (10, 2.5),
        (20, 1.25),
    ]


def test_log_writes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "[bold]no markup[/bold], no signs in opus:Books:en-de " + "a long line is not broken " * 10
    )
    log(text)
    assert capsys.readouterr() == ("", text + "\n")


def test_progress_without_a_terminal_is_printed_at_intervals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Display() as display:
        display.show(1, 100, "first")
        display.show(2, 100, "too early for another line")
        monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", 0.0)
        display.show(3, 100, "third")
    assert capsys.readouterr() == ("", "first\nthird\n")


def test_progress_on_a_terminal_is_one_moving_line() -> None:
    code = (
        "from transduce.system.console import *\n"
        f"with Display() as display:\n    display.show(1200, 100_000, {LINE!r})\n"
        "    log('validated')\n    print('a result')\n"
    )
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    command = [sys.executable, "-c", code]
    run = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=theirs, text=True, env=environment, check=True
    )
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    os.close(theirs)
    assert run.stdout == "a result\n"
    assert shown.count("validated") == 1
    before, after = shown.split("validated")
    assert "1,200/100,000  1:02:03 left  loss 4.210" in before
    assert "1,200/100,000" in after  # drawn again below


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0:00:00"),
        (59.6, "0:01:00"),
        (3723.4, "1:02:03"),
        (360_000, "100:00:00"),
        (math.inf, "?"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
