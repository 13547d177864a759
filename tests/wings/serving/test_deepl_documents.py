"""Documents of DeepL's protocol: transduce/wings/serving/deepl_documents.py."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servers import Echo, store_of
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")

from deepl_requests import refused, served
from requests_of_tests import NOBODY, client, translator_of
from transduce.wings.serving import deepl_documents
from transduce.wings.serving.api import application
from transduce.wings.serving.keys import Keys, add_key
from transduce.wings.serving.limits import Limits

FIELDS = {"source_lang": "EN", "target_lang": "DE"}


@pytest.fixture
def asking(tokenizer: Tokenizer) -> Iterator[Any]:
    with served(tokenizer) as asking:
        yield asking


def upload(asking: Any, name: str = "a.txt", content: bytes = b"ka lo\nmi", **fields: str) -> Any:
    return asking.post("/v2/document", data=FIELDS | fields, files={"file": (name, content)})


def test_a_document_is_uploaded_translated_and_downloaded_once(asking: Any) -> None:
    handle = upload(asking).json()
    path = f"/v2/document/{handle['document_id']}"
    key = {"document_key": handle["document_key"]}
    done = asking.post(path, json=key).json()
    assert done == {
        "document_id": handle["document_id"],
        "status": "done",
        "billed_characters": 7,
    }
    assert asking.get(path, params=key).json() == done
    for wrong in ({}, {"document_key": "0" * 64}):
        refused(asking.post(path, json=wrong), 404, "no such document")
        refused(asking.post(f"{path}/result", json=wrong), 404, "no such document")
    for method in (
        "HEAD",
        "GET",
    ):  # what follows links does not make the server forget the document
        assert asking.request(method, f"{path}/result", params=key).status_code == 405
    answer = asking.post(f"{path}/result", json=key)
    assert answer.content == b"ka lo\nmi"
    assert "a.txt" in answer.headers["content-disposition"]
    refused(asking.post(f"{path}/result", json=key), 404, "downloaded")
    assert asking.get("/v2/usage").json()["character_count"] == 7


def test_a_document_is_forgotten_before_the_next_request(
    asking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def begin_too_late(*_: object) -> None:
        pass

    monkeypatch.setattr("starlette.background.run_in_threadpool", begin_too_late)
    handle = upload(asking).json()
    path = f"/v2/document/{handle['document_id']}"
    key = {"document_key": handle["document_key"]}
    assert asking.post(path, json=key).json()["status"] == "done"
    assert asking.post(f"{path}/result", json=key).status_code == 200
    refused(asking.post(f"{path}/result", json=key), 404, "downloaded")


def test_a_document_belongs_to_a_key(tokenizer: Tokenizer, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    alice, bob = (
        {"Authorization": f"DeepL-Auth-Key {add_key(keys, name)}"} for name in ("alice", "bob")
    )
    with served(tokenizer, keys=Keys(keys)) as asking:
        sent = {"data": FIELDS, "files": {"file": ("a.txt", b"ka lo")}}
        handle = asking.post("/v2/document", headers=alice, **sent).json()
        path = f"/v2/document/{handle['document_id']}"
        key = {"document_key": handle["document_key"]}
        refused(asking.post(path, json=key, headers=bob), 404, "no such document")
        assert asking.post(path, json=key, headers=alice).json()["status"] == "done"


@pytest.mark.parametrize(
    ("name", "fields", "part"),
    [
        ("a.xyz", {}, "a.xyz"),
        ("a", {}, "a"),
        ("a.txt", {"target_lang": "XX"}, "XX"),
        ("a.txt", {"formality": "less"}, "formality"),
        ("a.txt", {"output_format": "pdf"}, "output_format is not supported"),
        ("a.txt", {"filename": "b.xyz"}, "b.xyz"),
    ],
)
def test_documents_that_are_refused(
    asking: Any, name: str, fields: dict[str, str], part: str
) -> None:
    refused(upload(asking, name, **fields), 400, part)


def test_a_document_without_a_file(asking: Any) -> None:
    refused(asking.post("/v2/document", data=FIELDS), 400, "no document")
    refused(upload(asking, glossary_id="gone"), 404, "gone")


def test_errors_of_the_translation_are_told(tokenizer: Tokenizer) -> None:
    for name, content, part in (("a.po", b"msgid", "a.po"), ("a.txt", b"ka lo mi", "Quota")):
        with served(tokenizer, month_characters=7) as asking:
            handle = upload(asking, name, content).json()
            path = f"/v2/document/{handle['document_id']}"
            key = {"document_key": handle["document_key"]}
            told = asking.post(path, json=key).json()
            assert told["status"] == "error" and part in told["error_message"]
            status = 400 if name == "a.po" else 456
            refused(asking.post(f"{path}/result", json=key), status, part)
            assert asking.get("/v2/usage").json()["character_count"] == 0


def test_unexpected_errors_are_logged_without_the_text(
    asking: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("secret")

    monkeypatch.setattr("transduce.wings.serving.service.read_document", fail)
    handle = upload(asking).json()
    key = {"document_key": handle["document_key"]}
    told = asking.post(f"/v2/document/{handle['document_id']}", json=key).json()
    assert told["error_message"].endswith("The server has logged the error.")
    assert "ValueError in " in caplog.text and "secret" not in caplog.text


def test_a_document_can_take_its_time(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepl_documents, "STATUS_SECONDS", 0.01)
    engine = Echo()  # holds what it translates
    store = store_of(translator_of(engine, tokenizer, "en", "de"))
    with client(application(store, NOBODY, Limits(uploads=1), local=True)) as asking:
        handle = upload(asking).json()
        path = f"/v2/document/{handle['document_id']}"
        key = {"document_key": handle["document_key"]}
        assert asking.post(path, json=key).json()["status"] == "translating"
        refused(asking.post(f"{path}/result", json=key), 503, "not done")
        refused(upload(asking), 503, "busy")
        engine.gate.set()
        while asking.post(path, json=key).json()["status"] != "done":
            time.sleep(0.01)


def test_documents_expire(tokenizer: Tokenizer) -> None:
    with served(tokenizer, documents=1) as asking:
        first, second = (upload(asking).json() for _ in range(2))
        states = [
            asking.post(
                f"/v2/document/{each['document_id']}", json={"document_key": each["document_key"]}
            ).status_code
            for each in (first, second)
        ]
    assert states == [404, 200]
