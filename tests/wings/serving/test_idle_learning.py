"""Tests of transduce/wings/serving/idle_learning.py."""

import asyncio
import math
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from corpora import texts_in_order
from waiting import PATIENCE

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
pytest.importorskip("rapidfuzz", reason="pip install 'transduce[serve]'")
from transduce.wings.learning.versions import Versions
from transduce.wings.memories.database import Database, Unit
from transduce.wings.serving import idle_learning
from transduce.wings.serving.idle_learning import IdleLearner

UNITS = [
    Unit(f"{source} so so", f"{target} zu fe", "correction")
    for source, target in texts_in_order(600, 11)
]


@pytest.fixture
def memory(tmp_path: Path) -> Database:
    return Database(tmp_path / "memory.sqlite")


@pytest.fixture
def model(word_by_word: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(word_by_word, tmp_path / "model"))


def run_until(learner: IdleLearner, is_done: Callable[[], object]) -> None:
    async def run() -> None:
        learning = asyncio.create_task(learner.run())
        until = asyncio.get_running_loop().time() + PATIENCE
        while not is_done():
            assert not learning.done() and asyncio.get_running_loop().time() < until
            await asyncio.sleep(0.02)
        learning.cancel()
        await asyncio.gather(learning, return_exceptions=True)

    asyncio.run(run())


def test_a_version_is_tried_once_for_each_hundred_corrections(
    model: Path, memory: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = tmp_path / "calls"
    program = tmp_path / "refuses.sh"
    program.write_text(f'#!/bin/sh\necho "$@" >> {calls}\nexit 1\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr(idle_learning, "LOOK_SECONDS", 0.01)
    looks = 0
    idle = math.inf

    def idle_seconds() -> float:
        nonlocal looks
        looks += 1
        return idle

    def attempts() -> list[str]:
        return calls.read_text().splitlines() if calls.exists() else []

    learner = IdleLearner([model], memory, idle_seconds)

    def looked_again() -> None:
        until = looks + 5
        run_until(learner, lambda: looks >= until)

    memory.add(UNITS[:90], "src-tgt", "anna")
    looked_again()
    assert attempts() == []
    memory.add(UNITS[:200], "src-tgt", "anna")
    idle = 10.0
    looked_again()
    assert attempts() == [], "the server was used ten seconds ago"
    idle = math.inf
    run_until(learner, attempts)
    looked_again()
    assert attempts() == [f"-m transduce learn {model} --memory {memory.path}"]
    memory.add(UNITS[:250], "src-tgt", "anna")
    looked_again()
    assert len(attempts()) == 1
    memory.add(UNITS, "src-tgt", "bert")
    run_until(learner, lambda: len(attempts()) == 2)


def test_a_fault_does_not_end_the_learning(
    memory: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(idle_learning, "LOOK_SECONDS", 0.01)
    errors: list[str] = []

    def has_complained() -> bool:
        errors.append(capsys.readouterr().err)
        return "".join(errors).count("Can't learn corrections for") > 1

    run_until(IdleLearner([tmp_path / "none"], memory, lambda: math.inf), has_complained)


@pytest.mark.slow
def test_an_idle_server_makes_a_version(
    model: Path, memory: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory.add(UNITS[:300], "src-tgt", "anna")
    monkeypatch.setattr(idle_learning, "LOOK_SECONDS", 0.01)
    learner = IdleLearner([model], memory, lambda: math.inf)
    run_until(learner, lambda: Versions(model).current == 2)
