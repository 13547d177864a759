"""Tests of transduce/wings/serving/api.py, beside those of keys, limits, models and the server."""

import asyncio
import json
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np
import pytest

from servers import Echo, store_of
from transduce.tokens.tokenizer import Tokenizer
from waiting import PATIENCE

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")

from requests_of_tests import NOBODY, WORDED, client, guard, translator_of
from served import Store
from transduce.wings.serving.api import application
from transduce.wings.serving.limits import Limits
from transduce.wings.serving.payload import FORM, MULTIPART


def several(store: Any, **limits: int) -> Any:
    return client(application(store, NOBODY, Limits(**limits), local=True))


# -- the description


@pytest.fixture(scope="module")
def described(tokenizer: Tokenizer) -> dict[str, Any]:
    with client(guard(tokenizer, Echo())) as asking:
        found: dict[str, Any] = asking.get("/openapi.json").json()
    return found


def test_the_description_is_of_this_server(
    described: dict[str, Any], tokenizer: Tokenizer, engine: Echo
) -> None:
    info = described["info"]
    assert (info["title"], info["version"]) == ("transduce", metadata.version("transduce"))
    assert "LibreTranslate" in info["description"]
    assert {
        (method, path) for path, methods in described["paths"].items() for method in methods
    } == {
        *(("post", f"/{name}") for name in ("translate", "detect", "attention", "translate_file")),
        *(("get", f"/{name}") for name in ("languages", "health", "metrics", "frontend/settings")),
        ("get", "/download_file/{kept}"),
    }
    with client(guard(tokenizer, engine)) as asking:
        for path in ("/redoc", "/docs/", "/translate/", "/docs/oauth2-redirect"):
            answer = asking.get(path, follow_redirects=False)
            assert answer.json() == {"error": "Not found. See /docs."}, path


def test_each_route_is_described(described: dict[str, Any]) -> None:
    for path, methods in described["paths"].items():
        for route in methods.values():
            # FastAPI makes one of the function's name.
            assert route["summary"] != route["summary"].title(), path
            error = route["responses"]["default"]
            assert error["description"] == "An error"
            assert error["content"]["application/json"]["schema"] == {
                "type": "object",
                "properties": {"error": {"type": "string"}},
            }
    answers = {
        path: next(iter(methods.values()))["responses"]["200"].get("content", {})
        for path, methods in described["paths"].items()
    }
    assert answers["/download_file/{kept}"] == {}, "no JSON"
    kept = described["paths"]["/download_file/{kept}"]["get"]["parameters"]
    assert kept == [{"name": "kept", "in": "path", "required": True, "schema": {"type": "string"}}]


def test_bodies_are_described_for_each_content_type(described: dict[str, Any]) -> None:
    worded = {"q": "A dog runs.", "source": "en", "target": "de"}
    german = {"q": "Ein Hund rennt."}
    for path, required, example in (
        ("/translate", ["q", "target"], worded),
        ("/detect", ["q"], german),
        ("/attention", ["q", "source", "target"], worded),
    ):
        contents = described["paths"][path]["post"]["requestBody"]["content"]
        assert contents.keys() == {"application/json", FORM, MULTIPART}
        for each in contents.values():
            assert each["schema"]["required"] == required and each["example"] == example
    body = described["paths"]["/translate_file"]["post"]["requestBody"]
    assert body["required"] is True and body["content"].keys() == {MULTIPART}
    content = body["content"][MULTIPART]
    assert content["example"] == {"file": "@messages.po", "source": "en", "target": "de"}
    schema = content["schema"]
    assert (schema["type"], schema["required"]) == ("object", ["file", "target"])
    file, *others = schema["properties"].items()
    assert file == (
        "file",
        {"type": "string", "format": "binary", "description": "a document with a file name"},
    )
    assert [name for name, _ in others] == [
        "source",
        "target",
        "glossary",
        "glossary_exact",
        "model",
        "memory",
    ]


def test_settings_are_those_of_libretranslate(tokenizer: Tokenizer, engine: Echo) -> None:
    translators = [translator_of(engine, tokenizer, "de", each) for each in ("pt_BR", "en")]
    with several(store_of(*translators), characters=9, document=99) as asking:
        found = asking.get("/frontend/settings").json()
        assert {".po", ".txt", ".html"} < {*found.pop("supportedFilesFormat")}
        assert found == {
            "apiKeys": False,
            "keyRequired": False,
            "charLimit": 9,
            "frontendTimeout": 300,
            "suggestions": False,
            "filesTranslation": True,
            "fileLimit": 99,
            "language": {
                "source": {"code": "auto", "name": "Detect language"},
                "target": {"code": "pt-BR", "name": "Portuguese (Brazil)"},
            },
        }
        assert asking.get("/languages").json() == [
            {"code": "de", "name": "German", "targets": ["pt-BR", "en"]},
            {"code": "pt-BR", "name": "Portuguese (Brazil)", "targets": []},
            {"code": "en", "name": "English", "targets": []},
        ]
        kind = asking.get("/metrics").headers["content-type"]
        assert kind.startswith("text/plain; version=0.0.4")


def test_keys_are_announced(tokenizer: Tokenizer, engine: Echo, tmp_path: Any) -> None:
    from transduce.wings.serving.keys import Keys, add_key

    add_key(tmp_path / "keys", "alice")
    with client(guard(tokenizer, engine, Keys(tmp_path / "keys"))) as asking:
        found = asking.get("/frontend/settings").json()
        assert found["apiKeys"] is found["keyRequired"] is True


# -- pages on other sites


def test_what_pages_of_other_sites_may_send_and_read(tokenizer: Tokenizer, engine: Echo) -> None:
    store = store_of(translator_of(engine, tokenizer, "ka", "zu"))
    page = {"Origin": "https://a.example"}
    app = application(store, NOBODY, Limits(), local=True, origins=["https://a.example"])
    with client(app) as asking:
        answer = asking.post("/translate", json=WORDED, headers=page)
        assert answer.headers["access-control-allow-origin"] == "https://a.example"
        exposed = answer.headers["access-control-expose-headers"].lower().split(", ")
        assert {*exposed} == {"x-model", "retry-after", "content-disposition"}
        for name in ("authorization", "x-api-key", "content-type", "x-model", "x-other"):
            for method in ("GET", "POST", "DELETE"):
                asked = page | {
                    "Access-Control-Request-Method": method,
                    "Access-Control-Request-Headers": name,
                }
                answer = asking.options("/translate", headers=asked)
                assert (answer.status_code == 200) == (method != "DELETE"), (name, method)


# -- models


def test_an_answer_tells_the_models_and_languages_of_its_route() -> None:
    store = Store("lo", "mi", directions=("ka-va", "va-zu"))
    with several(store) as asking:
        direct = asking.post("/translate", json=WORDED | {"target": "va", "model": "mi"})
        assert direct.headers["x-model"] == "mi" and "route" not in direct.json()
        both = WORDED | {"q": ["ka", "mi"], "scores": True}
        pivoted = asking.post("/translate", json=both)
        assert pivoted.headers["x-model"] == "lo", "each name once"
        assert pivoted.json()["route"] == [["ka", "va", "zu"]] * 2
        assert [[hop["text"] for hop in hops] for hops in pivoted.json()["hops"]] == [
            [f"{text} lo", f"{text} lo lo"] for text in both["q"]
        ]
        one = asking.post("/translate", json=WORDED).json()
        assert one == {"translatedText": "ka lo lo lo", "route": ["ka", "va", "zu"]}
        same = asking.post("/translate", json=WORDED | {"target": "ka"})
        assert "x-model" not in same.headers and same.json() == {"translatedText": "ka lo"}
        for target in ("zu", "ka"):
            answer = asking.post("/attention", json=WORDED | {"target": target})
            sentence = (
                f"No single model translates 'ka' to '{target}', so attention can't be shown."
            )
            assert (answer.status_code, answer.json()) == (400, {"error": sentence})


def test_texts_of_several_languages_have_routes_of_their_own(
    tokenizer: Tokenizer, engine: Echo
) -> None:
    translators = (
        translator_of(engine, tokenizer, "en", "de"),
        translator_of(engine, tokenizer, "de", "fr"),
    )
    english, german = "A dog runs over the street.", "Ein Hund rennt über die Straße."
    q = [german, english, "12", german]
    with several(store_of(*translators)) as asking:
        answer = asking.post("/translate", json={"q": q, "source": "auto", "target": "fr"}).json()
        assert answer["translatedText"] == q
        assert [each["language"] for each in answer["detectedLanguage"]] == [
            "de",
            "en",
            "und",
            "de",
        ]
        assert answer["route"][0] == answer["route"][3] == ["de", "fr"]
        assert answer["route"][1] == ["en", "de", "fr"]
        asked = {"q": [german, english], "source": "auto", "target": "de"}
        engine.searched.clear()
        answer = asking.post("/translate", json=asked).json()
        assert "route" not in answer and engine.searched
        assert not any(german in batch for batch in engine.searched)


class Aligning(Echo):
    """An engine that links each token with the one at its place."""

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[Any]:
        return [np.eye(len(b), len(a)) for a, b in zip(sources, targets, strict=True)]


def test_words_are_aligned_if_all_models_of_an_answer_align_them(tokenizer: Tokenizer) -> None:
    engines = Aligning(supports=frozenset({"attention"})), Echo()
    for engine in engines:
        engine.gate.set()
    translators = [
        translator_of(engine, tokenizer, source, "zu")
        for engine, source in zip(engines, ("en", "de"), strict=True)
    ]
    english, german = "A dog runs over the street.", "Ein Hund rennt über die Straße."
    with several(store_of(*translators)) as asking:

        def aligned(q: object, **fields: object) -> bool:
            asked = {"q": q, "source": "auto", "target": "zu", "alignment": True} | fields
            answer = asking.post("/translate", json=asked)
            assert answer.status_code == 200, answer.text
            return "alignment" in answer.json()

        assert aligned([english]) and not aligned([german]) and not aligned([english, german])
        assert not aligned([english], format="html") and not aligned([english], alignment=False)


# -- requests


def test_a_long_body_is_read_as_a_short_one(tokenizer: Tokenizer, engine: Echo) -> None:
    with client(guard(tokenizer, engine, depth=2)) as asking:
        for blanks in (0, 1 << 14):
            for body, kind, status in (
                (json.dumps(WORDED), "application/json", 200),
                ("q=ka+lo&source=ka", FORM, 200),
                ('{"q": [["ka"]]}', "application/json", 400),
                ('{"q": ["ka"]}', "application/json", 200),
            ):
                answer = asking.post(
                    "/translate?target=zu&source=ka",
                    content=" " * blanks + body if kind != FORM else body + "&x=" + "y" * blanks,
                    headers={"Content-Type": kind},
                )
                assert answer.status_code == status, answer.text


def test_an_upload_is_one_file_with_few_fields(tokenizer: Tokenizer, engine: Echo) -> None:
    with client(guard(tokenizer, engine)) as asking:

        def status(fields: dict[str, Any], *files: str) -> int:
            sent = [(name, ("a.txt", b"ka lo")) for name in files]
            return asking.post("/translate_file", data=fields, files=sent).status_code

        assert status(WORDED, "file") == 200
        assert status(WORDED, "other") == status(WORDED, "file", "file") == 400
        more = {f"field{number}": "x" for number in range(13)}
        assert status(WORDED | more, "file") == 200, "sixteen fields"
        assert status(WORDED | more | {"seventeenth": "x"}, "file") == 400
        assert status(WORDED | {"target": ["zu", "zu"]}, "file") == 400, "twice"
        kind = {"Content-Type": "Multipart/Form-Data"}
        answer = asking.post("/translate_file", content=b"x", headers=kind)
        assert answer.json() == {"error": "The form's Content-Type names no boundary."}


def test_a_document_is_forgotten_although_nobody_asks_for_it(
    tokenizer: Tokenizer, engine: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[tuple[float, Any]] = []
    call_later = asyncio.BaseEventLoop.call_later

    def recorded(loop: Any, delay: float, call: Any, *arguments: Any, **options: Any) -> Any:
        later.append((delay, call))
        return call_later(loop, delay, call, *arguments, **options)

    monkeypatch.setattr(asyncio.BaseEventLoop, "call_later", recorded)
    with client(guard(tokenizer, engine, document_seconds=77)) as asking:
        files = {"file": ("a.txt", b"ka lo")}
        answer = asking.post("/translate_file", data=WORDED, files=files)
        download = asking.get(answer.json()["translatedFileUrl"])
        assert download.headers["cache-control"] == "no-store"
        unknown = asking.get("/download_file/unknown.txt")
        sentence = "The document is unknown or has expired. Translate it again."
        assert (unknown.status_code, unknown.json()) == (404, {"error": sentence})
    [(delay, expire)] = [(delay, call) for delay, call in later if "expire" in repr(call)]
    downloads = expire.__self__
    [kept] = downloads.kept.values()
    monkeypatch.setattr(downloads, "clock", lambda: kept.expires - 77 + delay)
    expire()
    assert not downloads.kept


def test_mistakes_are_not_logged(
    tokenizer: Tokenizer, engine: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    with client(guard(tokenizer, engine, body=99)) as asking:
        for answer in (
            asking.post("/translate", json=WORDED | {"target": "xx"}),
            asking.get("/nowhere"),
            asking.post("/detect", content=b"x" * 100),
        ):
            assert answer.status_code in (400, 404, 413)
    assert "wings.serving" not in caplog.text


def test_a_client_that_has_gone_is_not_logged(
    tokenizer: Tokenizer, engine: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    """Its request is cancelled, and counted with a status of its own."""
    app = guard(tokenizer, engine)
    engine.gate.clear()
    sent: list[Any] = []
    body = json.dumps(WORDED).encode()
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/translate",
        "raw_path": b"/translate",
        "query_string": b"",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
        "scheme": "http",
        "http_version": "1.1",
        "root_path": "",
    }

    async def receive() -> Any:
        while not messages and not engine.began.is_set():
            await asyncio.sleep(0.001)
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    async def body_of_test() -> None:
        app.service.batcher.start()
        await asyncio.wait_for(app(scope, receive, send), PATIENCE)
        for _ in range(100):
            await asyncio.sleep(0)
        assert app.service.batcher.requests == app.service.batcher.tokens == 0
        engine.gate.set()
        await app.service.batcher.stop()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(body_of_test())
    assert sent[0]["status"] == 499 and "wings.serving" not in caplog.text
