"""The requests of Weblate's connector for LibreTranslate (Weblate 5.14.3), and what it needs from the answers.

It lists the languages without a key, and sends lists of texts with the key in the body. The statuses PAUSING make it
pause for half an hour. Another error only concerns the texts of one request.
"""

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from corpora import reverse_texts
from models import make_model
from servers import Answer, Server, request, serving
from transduce.wings.serving.keys import add_key
from variants import slow
from waiting import wait_for

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")

HEADERS = {
    "User-Agent": "Weblate/5.14.3",
    "Accept-Encoding": "gzip, deflate",
    "Accept": "application/json; charset=utf-8",
    "Connection": "keep-alive",
    "Referer": "https://weblate.example.org",
}
PAUSING = {401, 403, 429, 456, 503}
BATCH = 20  # units in one request of an automatic translation
SENTENCES = reverse_texts(BATCH, seed=3)[0]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("weblate") / "en-de", {})


@pytest.fixture(scope="module")
def server(model: Path) -> Iterator[Server]:
    with serving(model, model.parent / "server.log") as server:
        yield server


@pytest.fixture(scope="module")
def keyed(model: Path) -> Iterator[tuple[Server, str]]:
    """A server with keys, and a key."""
    key = add_key(model.parent / "keys", "weblate")
    with serving(model, model.parent / "keyed.log", f"--keys={model.parent / 'keys'}") as server:
        yield server, key


def languages(server: Server) -> list[str]:
    answer = server.get("/languages", **HEADERS)
    assert answer.status == 200, answer
    return [each["code"] for each in answer.json]


def translation(texts: Sequence[str], key: str, source: str, target: str) -> bytes:
    """The request as it goes over the wire. Python's json escapes all letters beyond ASCII."""
    body = json.dumps({"api_key": key, "q": texts, "source": source, "target": target}).encode()
    return request("POST", "/translate", body, "application/json", **HEADERS)


def ask(
    server: Server, texts: Sequence[str], key: str = "", source: str = "en", target: str = "de"
) -> Answer:
    return server.send(translation(texts, key, source, target))


def translated(answer: Answer) -> list[str]:
    """The n-th translation belongs to the n-th text."""
    assert answer.status == 200, answer
    found = answer.json["translatedText"]
    assert isinstance(found, list) and all(isinstance(text, str) for text in found)
    return found


def test_weblate_settings_work_without_a_key(server: Server) -> None:
    assert languages(server) == ["en", "de"]
    assert len(translated(ask(server, ["test"]))) == 1  # always English to German


def test_weblate_settings_work_with_a_key(keyed: tuple[Server, str]) -> None:
    server, key = keyed
    assert languages(server) == ["en", "de"]
    assert len(translated(ask(server, ["test"], key))) == 1


def test_a_batch_is_translated_in_its_order(server: Server) -> None:
    texts = [*SENTENCES[1:], "100 %", f"{SENTENCES[0]}\n\n{SENTENCES[1]}", " "]
    found = translated(ask(server, texts))
    assert found == [translated(ask(server, [text]))[0] for text in texts]
    assert len(set(found[: BATCH - 1])) > BATCH // 2  # so that the order shows
    assert found[-1] == " "


def test_a_batch_in_another_script_fits_into_a_request_with_a_key(
    keyed: tuple[Server, str],
) -> None:
    server, key = keyed
    texts = [f"{i} {'. '.join(['да'] * 250)}" for i in range(BATCH)]
    content = translation(texts, key, "en", "de")
    assert len(content) > 64 << 10
    assert len(translated(server.send(content))) == BATCH


@pytest.mark.parametrize(
    ("code", "text"),
    [
        slow("pt_BR", "Bom dia! Como você está hoje?"),
        ("zh_Hans", "你好，今天天气很好。"),
        slow("es-419", "Buenos días, ¿cómo está usted hoy?"),
    ],
)
def test_weblate_finds_languages_with_a_region_or_a_script(
    tmp_path: Path, code: str, text: str
) -> None:
    model = make_model(tmp_path / "model", {"data.source": code, "data.target": f"en_{code[-2:]}"})
    with serving(model, tmp_path / "log") as server:
        # As the connector writes Weblate's codes.
        source, target = (
            code.replace("_", "-"),
            f"en-{code[-2:]}",
        )
        assert languages(server) == [source, target]
        assert len(translated(ask(server, [text], source=source, target=target))) == 1
        # Other clients compare these codes with the listed ones, too.
        assert server.get("/frontend/settings").json["language"]["target"]["code"] == target
        assert server.get("/languages").json[0]["targets"] == [target]
        assert server.post("/detect", {"q": text}).json[0]["language"] == source
        found = server.post("/translate", {"q": text, "source": "auto", "target": target}).json
        assert found["detectedLanguage"]["language"] == source


def test_wrong_key_makes_weblate_pause(keyed: tuple[Server, str]) -> None:
    server, _ = keyed
    for key, status in (("", 401), ("wrong", 403)):
        answer = ask(server, SENTENCES, key)
        assert answer.status == status and status in PAUSING
        assert "API key" in answer.error


def test_too_many_requests_make_weblate_pause(model: Path) -> None:
    keys = model.parent / "keys of few"
    key = add_key(keys, "weblate")
    with serving(
        model, model.parent / "few.log", f"--keys={keys}", "--limit=limits.per_key=1"
    ) as server:
        assert languages(server)  # does not count, as it has no key
        assert translated(ask(server, ["test"], key))
        answer = ask(server, ["test"], key)
        assert answer.status == 429 in PAUSING and answer.error


def test_full_queue_makes_weblate_pause(model: Path) -> None:
    with (
        serving(model, model.parent / "full.log", "--limit=limits.queue=1") as server,
        contextlib.ExitStack() as held,
    ):
        texts = reverse_texts(100 * BATCH, seed=4)[0]
        long = translation(["\n".join(texts[i::BATCH]) for i in range(BATCH)], "", "en", "de")
        answers = list[Answer]()

        def is_full() -> bool:
            # Again, if the last one has its answer.
            held.enter_context(server.connect()).sendall(long)
            answers.append(ask(server, ["test"]))
            return answers[-1].status != 200

        wait_for(is_full)
        assert answers[-1].status == 503 in PAUSING and answers[-1].error


@pytest.mark.parametrize(
    ("texts", "source", "target", "reason"),
    [
        (["test"], "en", "xx", "xx"),
        (["test"], "de", "en", "de"),
        (["x" * 20_001], "en", "de", "20,000"),
        (["test"] * 257, "en", "de", "256"),
    ],
)
def test_other_errors_do_not_make_weblate_pause(
    server: Server, texts: list[str], source: str, target: str, reason: str
) -> None:
    answer = ask(server, texts, source=source, target=target)
    assert answer.status == 400 and answer.status not in PAUSING
    # Weblate shows this much of the field "error", which must be a text.
    assert reason in answer.error[:200]
