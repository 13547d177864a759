"""Tests of transduce/wings/serving/store.py."""

import asyncio
import contextlib
import shutil
from pathlib import Path

import pytest

from transduce.decoding.loading import load
from transduce.system.errors import UserError
from waiting import PATIENCE

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from served import Store, ask, copy_into, until
from transduce.wings.serving import store as stores
from transduce.wings.serving.models import Model, State
from transduce.wings.serving.store import ModelStore


def test_models_are_loaded_when_they_are_needed_and_the_least_recently_used_one_is_dropped():
    store = Store("a", "b", "c", limit=2)

    async def body() -> None:
        assert store.in_memory == []
        for name in "aaba":
            await ask(store, name)
        assert store.reads == ["a", "b"]
        await ask(store, "c")
        assert store.in_memory == ["a", "c"]  # b was used before a
        await ask(store, "b", "c")
        assert store.in_memory == ["b", "c"]
        assert store.reads == ["a", "b", "c", "b"]

    asyncio.run(body())


def test_a_model_in_use_is_not_dropped():
    store = Store("a", "b", "c", limit=2)

    async def body() -> None:
        async with contextlib.AsyncExitStack() as using:
            await using.enter_async_context(
                store.open([store.catalogues.choose(name).route("ka", "zu") for name in "ab"])
            )
            other = asyncio.create_task(ask(store, "c"))
            late = asyncio.create_task(ask(store, "a"))  # doesn't overtake, or c would wait forever
            for _ in range(100):
                await asyncio.sleep(0)
            assert (
                store.in_memory == ["a", "b"]
                and sorted(store.reads) == ["a", "b"]
                and not late.done()
            )
        await asyncio.gather(other, late)
        assert store.reads.count("c") == 1

    asyncio.run(asyncio.wait_for(body(), PATIENCE))


def test_other_requests_go_on_while_a_model_is_loaded():
    store = Store("a", "b", limit=2)

    async def body() -> None:
        await ask(store, "a")
        store.may_read.clear()
        waiting = [asyncio.create_task(ask(store, "b")) for _ in range(3)]
        await until(lambda: store.models[1].loading)
        await ask(store, "a")
        waiting[0].cancel()  # others wait for the same model
        store.may_read.set()
        await asyncio.gather(*waiting[1:])
        assert store.reads == ["a", "b"]

    asyncio.run(asyncio.wait_for(body(), PATIENCE))


def test_more_models_than_fit_are_refused():
    store = Store("a", "b", "c", limit=2)
    with pytest.raises(UserError, match="more than the memory limit of 2 bytes"):
        asyncio.run(ask(store, "a", "b", "c"))
    with pytest.raises(
        UserError, match="/nowhere/a need 1 bytes, which is more than the memory limit"
    ):
        Store("a", limit=0.5)


def test_models_that_need_less_than_their_files_fit_together():
    store = Store("a", "b", limit=2)
    for model in store.models:
        model.weight_bytes = 2  # until its engine has been loaded
    asyncio.run(ask(store, "a", "b"))
    assert store.in_memory == ["a", "b"] and store.reads == ["a", "b", "a"]


@pytest.mark.parametrize(
    ("loaded", "kept", "effect"),
    [
        (True, False, "so the old version stays"),
        (False, True, "so requests load the old version again"),
        (False, False, "and the old version, which was not in memory, is gone"),
    ],
)
def test_log_says_what_happens_to_the_old_version(
    loaded: bool,
    kept: bool,
    effect: str,
    versions: list[Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(versions[0], tmp_path / "old")
    folder.symlink_to("old")
    store = ModelStore([Model.read("model", folder)], lambda path: load(path, engine="torch"), 1e9)
    if loaded:
        store.load_all()
    if kept:
        folder.unlink()
        folder.mkdir()
    copy_into(folder.resolve(), versions[1])
    (folder / "model.safetensors").write_bytes(b"damaged")
    capsys.readouterr()
    asyncio.run(store._replace(store.models[0], State.of(folder)))
    assert f"can't be used, {effect}" in " ".join(capsys.readouterr().err.split())


def test_unexpected_error_does_not_stop_watching_for_versions(
    versions, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / "model"
    shutil.copytree(versions[0], folder)
    store = ModelStore([Model.read("model", folder)], lambda path: load(path, engine="torch"), 1e9)
    store.load_all()
    copy_into(folder, versions[1])
    monkeypatch.setattr(stores, "summarize", lambda _: None)  # has no attribute
    asyncio.run(store._replace(store.models[0], State.of(folder)))
    assert "so the old version stays: AttributeError" in capsys.readouterr().err
