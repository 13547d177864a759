"""Tests of transduce/wings/serving/store.py."""

import asyncio
import contextlib
import json
import math
import os
import shutil
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.config.schema import DecodeConfig
from transduce.decoding.loading import load
from transduce.decoding.translator import Translator
from transduce.decoding.types import Translation
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from waiting import PATIENCE

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from starlette.exceptions import HTTPException

from served import TOKENIZER, Marking, Store, ask, copy_into, until
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


# -- memory


def test_the_largest_model_must_fit() -> None:
    models = Store("a", "b", "c").models
    for model, size in zip(models, (1, 3, 2), strict=True):
        model.weight_bytes = size
    with pytest.raises(UserError) as error:
        ModelStore(models, lambda _: None, 2)  # type: ignore[arg-type,return-value]
    assert str(error.value).startswith(
        "The weights of /nowhere/b need 3 bytes, which is more than the memory limit of 2 bytes."
    )
    ModelStore(models, lambda _: None, 3)  # type: ignore[arg-type,return-value]


@given(
    sizes=st.lists(st.integers(1, 4), min_size=2, max_size=5),
    asked=st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=3), max_size=12),
    limit=st.integers(4, 9),
)
def test_the_least_recently_used_models_are_dropped(
    sizes: list[int], asked: list[set[int]], limit: int
) -> None:
    store = Store(*"abcde"[: len(sizes)], limit=limit)
    read = store._load

    def load_with_size(path: Path) -> Translator:
        translator = read(path)
        translator.engine.weight_bytes = sizes["abcde".index(path.name)]  # type: ignore[misc]
        return translator

    store._load = load_with_size
    for model, size in zip(store.models, sizes, strict=True):
        model.weight_bytes = size
    requests = [sorted(places) for each in asked if (places := {i for i in each if i < len(sizes)})]

    async def body() -> None:
        kept: list[int] = []  # the least recently used first
        used: set[int] = set()
        for request in requests:
            names = [store.models[i].name for i in request]
            if sum(sizes[i] for i in request) > limit:
                # Models that were never loaded are measured first.
                unknown = [i for i in request if i not in used]
                with pytest.raises(UserError, match="of weights are needed at once, more than the"):
                    await ask(store, *names)
                steps = [[i] for i in unknown]
            else:
                await ask(store, *names)
                steps = [request]
            for step in steps:
                if not {*step} <= {*kept}:
                    idle = [i for i in kept if i not in step]
                    while sum(sizes[i] for i in {*idle, *step}) > limit:
                        idle.pop(0)
                    kept = [i for i in kept if i in idle or i in step]
                kept = [*(i for i in kept if i not in step), *step]
                used |= {*step}
            assert store.in_memory == [store.models[i].name for i in sorted(kept)]
            assert store._weight_bytes() == sum(sizes[i] for i in kept) <= limit
            assert not any(
                model.users or model.version.users for model in store.models if model.version
            )

    asyncio.run(asyncio.wait_for(body(), PATIENCE / 20))  # none waits for another one


def test_freed_memory_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    returned = threading.Event()
    monkeypatch.setattr(stores, "_return_memory", returned.set)
    store = Store("a", "b", limit=1)
    asyncio.run(ask(store, "a"))
    assert not returned.is_set()
    asyncio.run(ask(store, "b"))
    assert returned.wait(PATIENCE)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_models_are_loaded_with_a_lower_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    def look(_: Path) -> Translator:
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return Store("a")._load(Path("/nowhere/a"))

    usual = os.getpriority(os.PRIO_PROCESS, 0)
    ModelStore(Store("a").models, look).load_all()
    assert found in ([5], [max(5, usual)]), "of another user than root, it only becomes lower"
    monkeypatch.setattr(stores, "NICENESS", usual + 1)
    ModelStore(Store("a").models, look).load_all()
    assert found[1:] == [usual + 1]
    assert os.getpriority(os.PRIO_PROCESS, 0) == usual


# -- new versions


@pytest.fixture
def kept(versions: list[Path], tmp_path: Path) -> ModelStore:
    """A store of one model in memory."""
    shutil.copytree(versions[0], tmp_path / "model")
    store = ModelStore(
        [Model.read("model", tmp_path / "model")], lambda path: load(path, engine="torch"), 1e9
    )
    store.load_all()
    return store


def test_folders_are_looked_at_every_five_seconds(
    kept: ModelStore, versions: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    [model] = kept.models
    pauses: list[float] = []
    sleep = asyncio.sleep
    looks: list[State] = []

    async def pause(seconds: float) -> None:
        if seconds == 5:
            pauses.append(seconds)
        await sleep(0)

    replace = kept._replace

    async def recorded(model: Model, state: State) -> None:
        looks.append(state)
        await replace(model, state)

    monkeypatch.setattr(stores.asyncio, "sleep", pause)
    monkeypatch.setattr(kept, "_replace", recorded)

    async def body() -> None:
        watching = asyncio.create_task(kept.watch())
        await until(lambda: len(pauses) > 3)
        assert not looks, "nothing has changed"
        (model.folder / "manifest.json").rename(model.folder / "aside")
        count = len(pauses)
        await until(lambda: len(pauses) > count + 3)
        assert not looks, "an unfinished copy"
        before = model.state
        copy_into(model.folder, versions[1])
        await until(lambda: model.state != before)
        assert looks and {*looks} == {model.state} == {State.of(model.folder)}
        model.loading = asyncio.create_task(sleep(PATIENCE))  # type: ignore[assignment]
        count = len(looks)
        copy_into(model.folder, versions[0])
        rounds = len(pauses)
        await until(lambda: len(pauses) > rounds + 3)
        assert len(looks) == count, "a request loads the model"
        model.loading.cancel()
        watching.cancel()

    asyncio.run(asyncio.wait_for(body(), PATIENCE))


@pytest.mark.parametrize(
    ("directions", "score", "says", "reason"),
    [
        (["ka-zu", "zu-ka"], -1.0, True, ""),
        (["zu-ka", "ka-zu"], -1.0, True, ""),
        (["ka-zu"], -1.0, True, "It translates ka-zu instead of ka-zu, zu-ka."),
        (["ka-zu", "ka-va"], -1.0, True, "It translates ka-zu, ka-va instead of ka-zu, zu-ka."),
        (["ka-zu", "zu-ka"], math.nan, True, "to nothing (ka-zu)."),
        (["ka-zu", "zu-ka"], -math.inf, True, "to nothing (ka-zu)."),
        (["ka-zu", "zu-ka"], -1.0, False, "It translates 2026, A1 b2., 12:30 to nothing (ka-zu)."),
    ],
)
def test_a_new_version_must_translate_as_the_old_one(
    directions: list[str], score: float, says: bool, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store("a", directions=("ka-zu", "zu-ka"))
    [model] = store.models
    state = State(model.folder, "new")
    monkeypatch.setattr(State, "of", lambda _: state)

    def translate(texts: Sequence[str]) -> list[Translation]:
        assert list(texts) == ["2026", "A1 b2.", "12:30"]
        return [Translation(text if says else "", score, ()) for text in texts[:1]] + [
            Translation("", -1.0, ())
        ] * 2

    class Fake(Translator):
        """A translator with these translations."""

        def direct(self, direction: Direction) -> Any:
            asked.append(str(direction))
            return SimpleNamespace(translate=translate)

    asked: list[str] = []
    known = [Direction.parse(each) for each in directions]
    store._load = lambda _: Fake(Marking(), TOKENIZER, DecodeConfig(), directions=known)
    try:
        version = store._read(model, state)
        assert version.state == state and asked == ["ka-zu", "zu-ka"]
        said = ""
    except UserError as error:
        said = str(error)
    assert said.endswith(reason) and bool(said) == bool(reason)
    asked.clear()
    assert store._read(model, model.state).state == model.state and not asked, "the same files"
    monkeypatch.setattr(State, "of", lambda _: model.state)
    if not reason:
        with pytest.raises(UserError, match=r"Its files have changed while they were read\."):
            store._read(model, state)


def test_a_version_is_looked_at_again_if_a_request_was_loading_the_model(
    kept: ModelStore, versions: list[Path]
) -> None:
    [model] = kept.models
    copy_into(model.folder, versions[1])
    state = State.of(model.folder)

    async def body() -> None:
        model.loading = asyncio.create_task(asyncio.sleep(0))  # type: ignore[assignment]
        await kept._replace(model, state)
        assert model.state != state and not kept._incoming
        model.loading = None
        await kept._replace(model, state)

    asyncio.run(body())
    assert model.state == state and model.tried is model.refused is None and not kept._incoming


def test_a_version_is_tried_again_if_only_its_manifest_has_changed(
    kept: ModelStore, versions: list[Path]
) -> None:
    [model] = kept.models
    copy_into(model.folder, versions[1])
    manifest = model.folder / "manifest.json"
    right = manifest.read_text()
    digest = json.loads(right)["files"]["model.safetensors"]["sha256"]
    for content, is_used in ((right.replace(digest, "0" * 64), False), (right, True)):
        manifest.write_text(content)
        state = State.of(model.folder)
        asyncio.run(kept._replace(model, state))
        assert (model.state == state) == is_used


def test_a_version_that_is_too_large_is_refused_once(
    kept: ModelStore, versions: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    [model] = kept.models
    sizes = [(each / "model.safetensors").stat().st_size for each in versions]
    kept._limit = sizes[1] - 1
    copy_into(model.folder, versions[1])
    state = State.of(model.folder)

    async def body() -> None:
        for _ in range(2):
            await kept._replace(model, state)
            model.tried = None

    asyncio.run(body())
    said = " ".join(capsys.readouterr().err.split())
    needed = f"{sizes[1]:,} bytes of weights are needed at once, more than the memory limit of"
    reason = f"so the old version stays: {needed} {sizes[1] - 1:,} bytes."
    assert said.count(reason) == said.count("can't be used") == 1 and model.version
    kept._limit = sizes[1]
    asyncio.run(kept._replace(model, state))
    assert model.version and model.version.state == state, "in the place of the old one"
    said = " ".join(capsys.readouterr().err.split())
    assert f"{model.folder} was replaced; requests now use the new version." in said


@pytest.mark.parametrize("error", [UserError("No."), RuntimeError("no")])
def test_requests_wait_for_a_version_that_fails_and_get_the_old_one(
    error: Exception, versions: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With room for one version, the old one is dropped before the new one is loaded."""
    current = tmp_path / "current"
    current.symlink_to(versions[0])
    may_fail = threading.Event()

    def read(path: Path) -> Translator:
        if path == versions[1].resolve():
            assert may_fail.wait(PATIENCE)
            raise error
        return load(path, engine="torch")

    limit = (versions[1] / "model.safetensors").stat().st_size
    store = ModelStore([Model.read("model", current)], read, limit)
    store.load_all()
    [model] = store.models
    current.unlink()
    current.symlink_to(versions[1])

    async def body() -> None:
        replacement = asyncio.create_task(store._replace(model, State.of(current)))
        await until(lambda: model.loading)
        assert model.version is None
        request = asyncio.create_task(ask(store, "model"))
        for _ in range(20):
            await asyncio.sleep(0)
        may_fail.set()
        await replacement
        await request

    asyncio.run(asyncio.wait_for(body(), PATIENCE))
    assert model.version and model.version.state.path == versions[0].resolve()
    said = " ".join(capsys.readouterr().err.split())
    reason = "No." if isinstance(error, UserError) else "RuntimeError('no')"
    assert f"so requests load the old version again: {reason}" in said
    assert model.refused and model.refused[0].path == versions[1].resolve()


def test_a_model_that_cannot_be_loaded_is_an_error_of_the_server(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store("a")

    def fails(_: Path) -> Translator:
        raise ValueError("secret")

    monkeypatch.setattr(store, "_load", fails)
    with pytest.raises(HTTPException) as error:
        asyncio.run(ask(store, "a"))
    assert error.value.status_code == 503 and "The model a can't be loaded" in error.value.detail
    assert "/nowhere/a can't be loaded: ValueError('secret')" in capsys.readouterr().err
    monkeypatch.undo()
    asyncio.run(ask(store, "a"))
    assert store.in_memory == ["a"] and not store.models[0].users and not store.models[0].loading
