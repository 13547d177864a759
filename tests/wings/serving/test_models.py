"""Several models: chosen by name, loaded when needed, dropped when memory is short, replaced while they work."""

import asyncio
import contextlib
import gc
import os
import shutil
import threading
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
from starlette.testclient import TestClient

from command_line import run
from corpora import reverse_texts
from forked import COMMAND
from models import make_model
from servers import Server, serving, store_of
from transduce.decoding.directions import Scores
from transduce.decoding.loading import load
from transduce.decoding.translator import Translator
from transduce.system.errors import UnusableModelError, UserError
from transduce.system.files import digest, read_manifest
from variants import slow
from waiting import PATIENCE, wait_for

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from served import KA_ZU, Store, ask, copy_into, until
from transduce.wings.serving.api import application
from transduce.wings.serving.catalogue import Catalogue
from transduce.wings.serving.keys import Keys
from transduce.wings.serving.limits import Limits, memory_from
from transduce.wings.serving.models import Model, State, Version, summarize
from transduce.wings.serving.store import ModelStore

ASKED = {"q": "ka lo", "source": "ka", "target": "zu"}


LOOK_OFTEN = f"from transduce.wings.serving import store; store.POLL_SECONDS = 0.05; {COMMAND}"


@contextlib.contextmanager
def client(store: ModelStore, **limits: int) -> Iterator[TestClient]:
    app = application(store, Keys(), Limits(**limits), local=True)
    with TestClient(app, base_url="http://localhost", client=("127.0.0.1", 1)) as client:
        yield client


# -- names


def test_a_request_chooses_a_model_by_its_name():
    store = Store("lo", "mi")
    with client(store) as asking:
        expected = {"": "lo", "lo": "lo", "mi": "mi"}
        for name, word in expected.items():
            answers = [
                asking.post("/translate", json=ASKED | {"model": name}),
                asking.post("/translate", data=ASKED, headers={"X-Model": name} if name else {}),
                asking.post(
                    "/translate", json=ASKED | {"model": name, "source": "auto", "format": "html"}
                ),
                asking.post("/translate", json=ASKED | {"model": name}, headers={"X-Model": "lo"}),
            ]
            assert [each.json()["translatedText"] for each in answers] == [f"ka lo {word}"] * 4
            assert {each.headers["x-model"] for each in answers} == {word}
            fields = {"source": "ka", "target": "zu", "model": name}
            answer = asking.post("/translate_file", data=fields, files={"file": ("a.txt", "ka lo")})
            assert asking.get(answer.json()["translatedFileUrl"]).text == f"ka lo {word}"
            assert answer.headers["x-model"] == word
        assert asking.get("/frontend/settings").json()["models"] == ["lo", "mi"]
        assert [each["code"] for each in asking.get("/languages").json()] == ["ka", "zu"]


def test_a_name_in_a_header_is_percent_encoded():
    with client(Store("lo", "n\u00e9o")) as asking:
        for name in ("n%C3%A9o", "lo"):
            answer = asking.post("/translate", json=ASKED, headers={"X-Model": name})
            assert (
                answer.headers["x-model"] == name
                and answer.json()["translatedText"] == f"ka lo {unquote(name)}"
            )


def test_an_unknown_name_is_refused_with_the_names_that_are_known():
    with client(Store("lo", "mi")) as asking:
        for answer in (
            asking.post("/translate", json=ASKED | {"model": "new"}),
            asking.post("/translate", json=ASKED, headers={"X-Model": "new"}),
            asking.post("/attention", json=ASKED | {"model": "new"}),
            asking.post(
                "/translate_file", data=ASKED | {"model": "new"}, files={"file": ("a.txt", "ka")}
            ),
        ):
            sentence = "There is no model with the name 'new'. Choose one of lo, mi."
            assert (answer.status_code, answer.json()) == (400, {"error": sentence})


def test_attention_is_drawn_for_the_language_that_is_detected(versions):
    folder = versions[0]
    store = ModelStore([Model.read("model", folder)], lambda path: load(path, engine="torch"), 1e9)
    with client(store) as asking:
        known, detected = (
            asking.post("/attention", json=ASKED | {"source": source}) for source in ("ka", "auto")
        )
        assert known.status_code == detected.status_code == 200
        assert known.json() == detected.json()


def test_models_without_a_choice_are_not_named():
    with client(Store("lo")) as asking:
        assert "x-model" not in asking.post("/translate", json=ASKED | {"model": "lo"}).headers
        assert "models" not in asking.get("/frontend/settings").json()


def test_an_idle_model_is_dropped_if_another_one_has_grown():
    """A model needs more memory if a request opens its second engine."""
    store = Store("a", "b", limit=2)
    with client(store) as asking:
        for name in ("a", "b"):
            assert asking.post("/translate", json=ASKED | {"model": name}).status_code == 200
        assert store.in_memory == ["a", "b"]
        engine = store.models[1].version.loaded.engine
        search = engine.search

        def growing(*request):
            engine.weight_bytes = 2
            return search(*request)

        engine.search = growing
        assert asking.post("/translate", json=ASKED | {"model": "b"}).status_code == 200
        asking.portal.call(asyncio.sleep, 0)
        assert store.in_memory == ["b"]


def test_answers_are_right_while_models_are_loaded_and_dropped():
    store = Store("lo", "mi", "nu", limit=1)
    with client(store) as asking, ThreadPoolExecutor(64) as clients:

        def translate(i: int) -> None:
            name, texts = ("lo", "mi", "nu")[i % 3], [f"ka {i}", f"{i} va"]
            answer = asking.post("/translate", json=ASKED | {"q": texts, "model": name})
            assert answer.json()["translatedText"] == [f"{text} {name}" for text in texts]

        list(clients.map(translate, range(192)))
    assert len(store.in_memory) == 1 and len(store.reads) > 2


def test_a_memory_limit_is_a_size(capsys, tmp_path):
    assert [memory_from(each) for each in ("1K", "500M", "1.5g")] == [1024, 500 << 20, 3 << 29]
    for wrong in ("4", "0G", "x", "-1G", "4 G", "4GB"):
        with pytest.raises(UserError, match="Write, for example, 500M or 4G"):
            memory_from(wrong)
    model = make_model(tmp_path / "model", {})
    status, _, error = run(capsys, "serve", model, "--memory-limit", "1K", "--port", 0)
    assert status == 2 and "which is more than the memory limit of 1,024 bytes" in " ".join(
        error.split()
    )
    (model / "model.safetensors").write_bytes(b"\0" * (model / "model.safetensors").stat().st_size)
    # Although nothing is loaded.
    status, _, error = run(capsys, "serve", model, "--memory-limit", "1G", "--port", 0)
    assert status == 2 and "is damaged" in " ".join(error.split())


TEXTS = reverse_texts(60, seed=8)[0]


def publish(current: Path, version: Path) -> None:
    """Let the symbolic link `current` point to a version."""
    new = current.with_name("new-link")
    new.symlink_to(version)
    new.rename(current)


def translations(version: Path, texts: Sequence[str]) -> list[str]:
    return [each.text for each in load(version, engine="torch").translate(texts, beam_size=1)]


def said(server: Server) -> str:
    return " ".join(server.log.read_text("utf-8").split())


@pytest.mark.parametrize("has_room", [slow(True), False], ids=["room for two", "room for one"])
def test_no_request_is_lost_or_mixed_while_a_model_is_replaced(versions, tmp_path, has_room):
    current = tmp_path / "current"
    publish(current, versions[0])
    old, new = (dict(zip(TEXTS, translations(each, TEXTS), strict=True)) for each in versions)
    texts = [text for text in TEXTS if old[text] != new[text]]
    assert len(texts) > 30
    # A request needs several batches.
    options = [
        "--limit=limits.batch_tokens=256",
        "--limit=limits.wait=600",
    ]
    if not has_room:
        options += [f"--memory-limit={(versions[1] / 'model.safetensors').stat().st_size // 1000}K"]
    with (
        serving(current, tmp_path / "log", *options, script=LOOK_OFTEN) as server,
        ThreadPoolExecutor(64) as clients,
    ):
        began = threading.Barrier(65)

        def loop(i: int) -> list[str]:
            """The version of each answer, up to two answers of the new version."""
            found, count = list[str](), 0
            while found.count("new") < 2:
                some = [texts[(i + count + j) % len(texts)] for j in range(4)]
                answer = server.post("/translate", ASKED | {"q": some, "beam_size": 1})
                assert answer.status == 200, answer
                by_version = {
                    "old": [old[text] for text in some],
                    "new": [new[text] for text in some],
                }
                found += [
                    name
                    for name, expected in by_version.items()
                    if expected == answer.json["translatedText"]
                ]
                count += 1
                assert len(found) == count, (answer, by_version)
                if count == 1:
                    began.wait(PATIENCE)
            return found

        loops = [clients.submit(loop, i) for i in range(64)]
        began.wait(PATIENCE)
        publish(current, versions[1])
        for each in loops:
            assert (found := each.result(PATIENCE)) == sorted(found, reverse=True) and found[
                0
            ] == "old"
        assert "requests now use the new version" in said(server)


def test_a_new_version_that_cannot_be_used_changes_nothing(versions, tmp_path):
    current = tmp_path / "current"
    publish(current, versions[0])
    damaged, other = tmp_path / "damaged", tmp_path / "other"
    shutil.copytree(versions[1], damaged)
    weights = (damaged / "model.safetensors").read_bytes()
    (damaged / "model.safetensors").write_bytes(weights[:-1] + bytes([weights[-1] ^ 1]))
    make_model(other, KA_ZU | {"data.target": "de"})
    asked, old = ASKED | {"q": TEXTS[:3], "beam_size": 1}, translations(versions[0], TEXTS[:3])
    with serving(current, tmp_path / "log", script=LOOK_OFTEN) as server:
        for wrong, reason in (
            (damaged, f"{damaged}/model.safetensors is damaged"),
            (other, "It translates ka-de"),
        ):
            publish(current, wrong)
            sentence = (
                f"The new version of {current} can't be used, so the old version stays: {reason}"
            )
            wait_for(lambda sentence=sentence: sentence in said(server))
            assert server.post("/translate", asked).json["translatedText"] == old
        publish(current, versions[1])
        wait_for(lambda: "requests now use the new version" in said(server))
        assert server.post("/translate", asked).json["translatedText"] == translations(
            versions[1], TEXTS[:3]
        )


def test_files_that_were_replaced_in_their_folder_are_tried_before_they_are_used(
    versions, tmp_path
):
    folder = tmp_path / "model"
    shutil.copytree(versions[0], folder)
    store = ModelStore([Model.read("model", folder)], lambda path: load(path, engine="torch"), 1e9)
    with client(store) as asking:
        answers = []
        for version in (versions[1], versions[0]):
            copy_into(folder, version)  # while the model is not in memory
            answers.append(asking.post("/translate", json=ASKED | {"q": TEXTS[:3], "beam_size": 1}))
            assert store.models[0].state == State.of(folder)  # so it is not replaced once more
            store.models[0].version = None
        assert [each.json()["translatedText"] for each in answers] == [
            translations(each, TEXTS[:3]) for each in (versions[1], versions[0])
        ]
        (folder / "model.safetensors").write_bytes(b"")
        answer = asking.post("/translate", json=ASKED)
        sentence = "The model model can't be loaded. The server has logged the reason."
        assert (answer.status_code, answer.json()) == (503, {"error": sentence})
        copy_into(folder, versions[1])
        assert asking.post("/translate", json=ASKED).status_code == 200


def test_version_is_used_when_all_files_of_its_manifest_have_arrived(versions, tmp_path, capsys):
    folder = tmp_path / "model"
    shutil.copytree(versions[0], folder)
    store = ModelStore([Model.read("model", folder)], lambda path: load(path, engine="torch"), 1e9)
    store.load_all()
    weights = (versions[1] / "model.safetensors").read_bytes()
    copy_into(folder, versions[1])

    async def body() -> None:
        for size in (0, 1000, 1000, 2000, len(weights)):
            assert store.models[0].state != State.of(folder)
            (folder / "model.safetensors").write_bytes(weights[:size])
            for _ in range(2):
                await store._replace(store.models[0], State.of(folder))
        assert store.models[0].state == State.of(folder)

    asyncio.run(body())
    assert capsys.readouterr().err.count("so the old version stays") == 1


def test_a_refused_version_is_loaded_once(versions, tmp_path):
    other, loads = make_model(tmp_path / "other", KA_ZU | {"data.target": "de"}), list[Path]()

    def read(path: Path) -> Translator:
        loads.append(path)
        return load(path, engine="torch")

    store = ModelStore([Model.read("model", versions[0])], read, 1e9)

    async def body() -> None:
        for _ in range(3):
            await store._replace(store.models[0], State.of(other))

    asyncio.run(body())
    assert loads == [other.resolve()]


def test_room_for_a_new_version_is_kept_while_another_model_is_loaded(versions, tmp_path):
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        shutil.copytree(versions[0], folder)
    may_load = {folder.resolve(): threading.Event() for folder in folders}

    def read(path: Path) -> Translator:
        assert may_load[path].wait(PATIENCE)
        return load(path, engine="torch")

    store = ModelStore([Model.read(folder.name, folder) for folder in folders], read, 1e9)
    a, b = store.models
    copy_into(a.folder, versions[1])

    async def body() -> None:
        request = asyncio.create_task(ask(store, "b"))
        await until(lambda: b.loading)
        replacement = asyncio.create_task(store._replace(a, State.of(a.folder)))
        await until(lambda: a.loading)
        may_load[b.state.path].set()
        await request
        size, expected = (
            store._weight_bytes(),
            a.weight_bytes + summarize(a.folder).weight_bytes + b.weight_bytes,
        )
        may_load[a.state.path].set()
        await replacement
        assert size == expected
        assert store._weight_bytes() == a.weight_bytes + b.weight_bytes

    asyncio.run(asyncio.wait_for(body(), PATIENCE))


def test_the_pivot_is_chosen_by_the_scores_of_the_new_version():
    store = Store("lo", directions=("ka-zu", "ka-va", "va-zu"))
    routes = {"ka-zu": {"direct": 1.0, "va": 9.0}}
    translator = store._load(Path("/nowhere/lo"))
    new = replace(translator, scores=Scores({}, routes))
    with client(store) as asking:
        assert asking.post("/translate", json=ASKED).json()["translatedText"] == "ka lo lo"
        store._use(store.models[0], Version(State(Path("/nowhere/lo"), "new"), new))
        assert asking.post("/translate", json=ASKED).json()["translatedText"] == "ka lo lo lo"


def test_a_link_to_itself_is_a_model_without_a_version(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert State.of(tmp_path / "loop") == (tmp_path / "loop", "")


def test_the_fallback_of_a_replaced_model_is_not_that_of_the_new_version(versions, tmp_path):
    pytest.importorskip("ctranslate2", reason="pip install 'transduce[fast]'")
    folder = tmp_path / "model"
    shutil.copytree(versions[0], folder)
    translator = load(folder, engine="ctranslate2")
    before = translator.weight_bytes
    copy_into(folder, versions[1])
    glossary = {"ka": "zu"}
    with pytest.raises(UnusableModelError, match="has changed since it was loaded"):
        translator.translate(["ka lo"], glossary=glossary)
    assert translator.weight_bytes == before
    with client(store_of(translator)) as asking:
        answer = asking.post("/translate", json=ASKED | {"q": "ka lo", "glossary": glossary})
        assert (
            answer.status_code == 503
            and str(tmp_path) not in answer.text
            and "has logged" in answer.text
        )
    copy_into(folder, versions[0])
    translator.translate(["ka lo"], glossary=glossary)
    assert translator.weight_bytes == before + load(folder, engine="torch").weight_bytes


def test_a_replaced_version_is_freed_after_its_last_request(versions, tmp_path):
    """Without a collection of reference cycles, since models that were loaded at the start are exempt from it."""
    current = tmp_path / "current"
    publish(current, versions[0])
    store = ModelStore([Model.read("current", current)], lambda path: load(path, engine="torch"))
    store.load_all()
    gc.collect()
    gc.disable()
    try:
        with client(store) as asking:
            old = weakref.ref(store.models[0].version.loaded.engine.models[0])
            assert asking.post("/translate", json=ASKED | {"alternatives": 2}).status_code == 200

            async def replace() -> None:
                async with store.open([Catalogue(store.models).route("ka", "zu")]) as opened:
                    publish(current, versions[1])
                    await store._replace(store.models[0], State.of(current))
                    assert opened[0][0].version.state.path == versions[0].resolve()
                    assert store.models[0].version.state.path == versions[1].resolve()
                    assert old()

            asking.portal.call(replace)
            wait_for(lambda: old() is None)
    finally:
        gc.enable()


def test_a_replaced_version_counts_until_its_last_request(versions, tmp_path):
    current = tmp_path / "current"
    publish(current, versions[0])
    store = ModelStore([Model.read("current", current)], lambda path: load(path, engine="torch"))
    store.load_all()
    route, size = Catalogue(store.models).route("ka", "zu"), store._weight_bytes()

    async def replace() -> None:
        async with store.open([route]):
            async with store.open([route]):
                publish(current, versions[1])
                await store._replace(store.models[0], State.of(current))
            assert store._weight_bytes() == size + store.models[0].version.weight_bytes
        assert store._weight_bytes() == store.models[0].version.weight_bytes

    with client(store) as asking:
        asking.portal.call(replace)


# -- versions


def test_a_version_counts_the_network_that_draws_attention(versions, tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(versions[0], folder)
    state = State.of(folder)
    version = Version(state, load(folder, engine="torch"))
    [direction] = version.loaded.directions
    before = version.weight_bytes
    assert before == version.loaded.weight_bytes > 0
    picture = version.attention(direction, "ka lo")
    assert version.weight_bytes == 2 * before, "a second copy of the weights"
    copy_into(folder, versions[1])
    assert version.attention(direction, "ka lo") == picture, "the network is kept"
    other = Version(state, version.loaded)
    with pytest.raises(UnusableModelError, match="has changed since it was loaded"):
        other.attention(direction, "ka lo")
    (folder / "model.safetensors").write_bytes(b"")
    damaged = Version(State.of(folder), version.loaded)
    with pytest.raises(UnusableModelError):
        damaged.attention(direction, "ka lo")


def test_translators_of_a_version_are_made_once(versions):
    version = Version(State.of(versions[0]), load(versions[0], engine="torch"))
    [direction] = version.loaded.directions
    first = version.translator(direction, 3)
    assert version.translator(direction, 3) is first and first.config.beam_size == 3
    other = version.translator(direction, 4)
    assert other.config.beam_size == 4 and other.engine is first.engine


def test_the_state_of_a_folder_changes_with_its_files(versions, tmp_path):
    folder, link = tmp_path / "model", tmp_path / "link"
    shutil.copytree(versions[0], folder)
    link.symlink_to("model")
    state = State.of(link)
    assert state == State.of(folder) == State(folder, digest(folder / "manifest.json"))
    files = {name: size for name, size, _ in state.files()}
    assert files["model.safetensors"] == (folder / "model.safetensors").stat().st_size
    assert files.keys() == read_manifest(folder).keys()
    before = state.files()
    os.utime(folder / "model.safetensors", (1, 1))
    [changed] = {*state.files()} - {*before}
    assert changed == ("model.safetensors", files["model.safetensors"], 10**9)
    (folder / "model.safetensors").unlink()
    assert len(state.files()) == len(before) - 1, "a file that has not arrived"
    (folder / "manifest.json").unlink()
    assert State.of(link) == State(folder, "")


def test_a_model_is_described_without_its_weights(versions):
    found = summarize(versions[0])
    assert [str(each) for each in found.directions] == ["ka-zu"] and found.scores == Scores()
    assert found.weight_bytes == (versions[0] / "model.safetensors").stat().st_size
