"""Errors, keys and limits of a protocol beside LibreTranslate's."""

from dataclasses import replace
from pathlib import Path

import pytest

from servers import Echo
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")

from requests_of_tests import client, guard
from transduce.wings.serving.keys import Keys, add_key
from transduce.wings.serving.protocols import LIBRETRANSLATE, Protocol, protocol_of

OWN = Protocol(
    ("/own/", "/v9/"),
    lambda status, sentence, error: {
        "said": sentence,
        "status": status,
        "kind": type(error).__name__,
    },
    scheme="Own-Key",
    key_field="own_key",
    status_without_key=403,
    status_of_unknown_key=401,
    queued=("/own/texts",),
    uploads=("/own/file",),
)


def test_the_prefix_of_a_path_decides() -> None:
    assert protocol_of("/own/texts", [OWN]) is protocol_of("/v9/", [OWN]) is OWN
    assert protocol_of("/own", [OWN]) is protocol_of("/translate", [OWN]) is LIBRETRANSLATE


def test_errors_before_and_in_the_application_have_the_protocols_form(
    tokenizer: Tokenizer, engine: Echo
) -> None:
    app = replace(guard(tokenizer, engine, body=9), protocols=(OWN,))
    with client(app) as asking:
        for path, form in (("/own/texts", {"said", "status", "kind"}), ("/translate", {"error"})):
            long = asking.post(path, content=b"0123456789")
            assert (long.status_code, {*long.json()}) == (413, form)
            foreign = asking.post(path, headers={"Origin": "https://a.example"})
            assert (foreign.status_code, {*foreign.json()}) == (403, form)
        upload = asking.post("/own/file", content=b"0123456789")
        assert upload.status_code == 404, "as large as a document"


def test_keys_are_sent_and_refused_as_the_protocol_says(
    tokenizer: Tokenizer, engine: Echo, tmp_path: Path
) -> None:
    key = add_key(tmp_path / "keys", "alice")
    app = replace(guard(tokenizer, engine, Keys(tmp_path / "keys")), protocols=(OWN,))
    with client(app) as asking:

        def status(path: str, scheme: str, key: str) -> int:
            return asking.get(path, headers={"Authorization": f"{scheme} {key}"}).status_code

        assert [status("/own/x", each, key) for each in ("Own-Key", "bearer")] == [404, 404]
        assert asking.get(f"/own/x?own_key={key}").status_code == 404
        assert asking.post("/own/x", json={"own_key": key}).status_code == 404
        assert status("/own/x", "Own-Key", "wrong") == 401
        nothing = asking.get(f"/own/x?api_key={key}")
        assert (nothing.status_code, nothing.headers["www-authenticate"]) == (403, "Own-Key")
        assert "Authorization: Own-Key KEY" in nothing.json()["said"]
        assert status("/x", "Own-Key", key) == 401, "not LibreTranslate's"
        assert status("/x", "Bearer", "wrong") == 403


def test_waiting_requests_of_all_protocols_are_counted_together(
    tokenizer: Tokenizer, engine: Echo
) -> None:
    app = replace(guard(tokenizer, engine, queue=1), protocols=(OWN,))
    with client(app) as asking, app.service.batcher.place():
        assert asking.post("/own/texts").status_code == 503
        assert asking.post("/own/other").status_code == 404
    counted = app.service.metrics.text().decode()
    assert 'transduce_requests_total{route="/own/texts",status="503"} 1.0' in counted
    assert 'transduce_requests_total{route="other",status="404"} 1.0' in counted
