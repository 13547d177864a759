"""Who may use a server, how often, and with how much; what it says while its engine is busy."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import run
from servers import Echo
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message

from requests_of_tests import guard
from transduce.system.errors import UnusableModelError, UserError
from transduce.text.languages import nearest_code
from transduce.wings.serving.access import (
    MAX_BUCKETS,
    AccessControl,
    RateLimit,
    answer,
    is_local,
)
from transduce.wings.serving.keys import Keys, add_key

# -- rates


@given(st.integers(1, 50), st.lists(st.floats(0, 100), max_size=100))
def test_rate_limit_is_never_exceeded(per_minute: int, pauses: list[float]) -> None:
    now = 0.0
    rates = RateLimit(per_minute, lambda: now)
    allowed: list[float] = []
    for pause in pauses:
        now += pause
        wait = rates.wait("alice")
        if not wait:
            allowed.append(now)
        else:
            before = now
            now += wait + 1e-6
            assert rates.wait("alice") == 0  # as promised
            allowed.append(now)
            assert now > before
    for begin in allowed:
        assert sum(begin <= each <= begin + 60 for each in allowed) <= 2 * per_minute
    assert rates.wait("bob") == 0


def test_a_rate_limit_by_hand() -> None:
    """Six requests a minute: a bucket of six, and one more every ten seconds."""
    now = 0.0
    rates = RateLimit(6, lambda: now)
    assert [rates.wait("alice") for _ in range(8)] == [0] * 6 + [10, 10]
    now = 2.5
    assert (rates.wait("alice"), rates.wait("bob")) == (8, 0)
    now = 9.5
    assert rates.wait("alice") == 1
    now = 10.0
    assert [rates.wait("alice") for _ in range(2)] == [0, 10]
    now = 35.0
    assert [rates.wait("alice") for _ in range(3)] == [0, 0, 5]
    now = 10_000.0
    assert [rates.wait("alice") for _ in range(7)] == [0] * 6 + [10]


def test_the_client_that_was_not_heard_of_for_longest_is_forgotten() -> None:
    rates = RateLimit(1, lambda: 0.0)
    assert rates.wait("first") == 0
    assert not any(rates.wait(str(number)) for number in range(MAX_BUCKETS - 1))
    assert rates.wait("first") == 60, "as many are known as fit"
    assert rates.wait("last") == 0, "one more"
    assert len(rates.buckets) == MAX_BUCKETS
    assert (rates.wait("last"), rates.wait("first"), rates.wait("1")) == (60, 60, 60)
    assert rates.wait("0") == 0, "it was forgotten"


@pytest.mark.parametrize(
    "origin", ["example.org", "https://a.b/c", "https://", "https://ü.de", "https://u@a.b"]
)
def test_an_origin_that_no_browser_sends_is_refused(
    origin: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, error = run(capsys, "serve", tmp_path, "--cors", origin, "--port", 0)
    assert status == 2 and f"'{origin}' is not an origin" in error


@given(st.sampled_from(["en", "de", "pt_BR", "pt-PT", "zh_Hans", "zh"]), st.data())
def test_the_nearest_code_is_of_the_same_language(code: str, data: st.DataObject) -> None:
    among = data.draw(
        st.lists(st.sampled_from(["en", "de", "pt", "pt_BR", "zh_Hant", "zh-Hans"]), max_size=4)
    )
    found = nearest_code(code, among)
    scripts = {"zh_Hans": "zh_Hant", "zh_Hant": "zh_Hans"}
    same = [
        each
        for each in among
        if each[:2] == code[:2] and each.replace("-", "_") != scripts.get(code)
    ]
    assert found in same if same else found is None
    if code in among:
        assert found == code


# -- requests


def ask(
    app: AccessControl,
    path: str = "/languages",
    headers: Sequence[tuple[str, str]] = (),
    *,
    method: str = "GET",
    body: bytes = b"",
    host: str = "localhost",
    address: str = "127.0.0.1",
    query: str = "",
) -> tuple[int, dict[str, str], str]:
    """The status, headers and sentence of an answer to a request that no client would send."""
    sent: list[Message] = []
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", host.encode()), *((a.encode(), b.encode()) for a, b in headers)],
        "client": (address, 1),
        "server": ("localhost", 80),
        "scheme": "http",
        "http_version": "1.1",
        "root_path": "",
    }

    async def receive() -> Message:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    start, *rest = sent
    found = {name.decode(): value.decode() for name, value in start["headers"]}
    text = b"".join(each.get("body", b"") for each in rest).decode()
    return start["status"], found, text


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ([], 200),
        ([("content-length", "0")], 200),
        ([("content-length", "0"), ("transfer-encoding", "chunked")], 400),
        ([("content-encoding", "gzip")], 415),
        ([("content-encoding", " X-GZIP ")], 415),
        ([("content-encoding", "zstd")], 415),
        ([("content-encoding", "br")], 415),
        ([("content-encoding", "deflate")], 415),
        ([("content-encoding", "compress")], 415),
        ([("content-encoding", "utf-8")], 200),
        ([("a", "")] * 99, 200),  # and the host
        ([("a", "")] * 100, 431),
        ([("a", "x" * ((16 << 10) - 14))], 200),  # with "host", "localhost" and "a"
        ([("a", "x" * ((16 << 10) - 13))], 431),
        ([("content-length", str(1 << 20))], 200),
        ([("content-length", str((1 << 20) + 1))], 413),
    ],
)
def test_headers_of_requests(
    tokenizer: Tokenizer, engine: Echo, headers: list[tuple[str, str]], status: int
) -> None:
    found, answered, _ = ask(guard(tokenizer, engine), headers=headers)
    assert found == status and answered["x-content-type-options"] == "nosniff"
    assert (answered.get("connection") == "close") == (status == 400)


@pytest.mark.parametrize(
    ("host", "local", "forwarded", "status"),
    [
        ("localhost:5000", True, False, 200),
        ("[::1]:5000", True, False, 200),
        ("LOCALHOST", True, False, 200),
        ("[::2]", True, False, 421),
        ("example.org", True, False, 421),
        ("example.org", True, True, 200),
        ("example.org", False, False, 200),
    ],
)
def test_a_local_server_has_local_names(
    tokenizer: Tokenizer, engine: Echo, host: str, local: bool, forwarded: bool, status: int
) -> None:
    headers = [("x-forwarded-for", "192.0.2.1")] if forwarded else []
    app = guard(tokenizer, engine, local=local, proxied=True)
    assert ask(app, headers=headers, host=host)[0] == status
    if forwarded:
        unproxied = guard(tokenizer, engine, local=local)
        assert ask(unproxied, headers=headers, host=host)[0] == 421


@pytest.mark.parametrize(
    ("headers", "refused", "refused_if_forwarded"),
    [
        ({}, False, False),
        ({"sec-fetch-site": "cross-site"}, True, True),
        ({"sec-fetch-site": "same-origin"}, False, False),
        ({"origin": "https://example.org"}, True, False),
        ({"origin": "http://localhost:1"}, False, False),
        ({"origin": "http://127.0.0.1"}, False, False),
        ({"origin": "null"}, True, False),
        ({"origin": "http://[x"}, True, False),
        ({"origin": "https://friend.org", "sec-fetch-site": "cross-site"}, False, False),
    ],
)
def test_a_local_server_refuses_other_pages(
    tokenizer: Tokenizer,
    engine: Echo,
    headers: dict[str, str],
    refused: bool,
    refused_if_forwarded: bool,
) -> None:
    app = guard(tokenizer, engine, proxied=True)
    app.origins = ["https://friend.org"]
    its = [*headers.items()]
    asked = {"method": "POST", "body": b'{"q": "x"}'}
    assert (ask(app, "/detect", its, **asked)[0] == 403) is refused
    assert ask(app, "/languages", its)[0] == 200, "only what changes something is refused"
    forwarded = [*its, ("x-forwarded-for", "192.0.2.1")]
    assert (ask(app, "/detect", forwarded, **asked)[0] == 403) is refused_if_forwarded
    app.origins = ["*"]
    assert ask(app, "/detect", its, **asked)[0] == 200
    anywhere = guard(tokenizer, engine, local=False)
    assert ask(anywhere, "/detect", its, **asked)[0] == 200


def test_bodies_are_counted_while_they_arrive(tokenizer: Tokenizer, engine: Echo) -> None:
    app = guard(tokenizer, engine, body=12, document=20)
    fits, long = b'{"q": "abc"}', b'{"q": "abcd"}'
    for body, status in ((fits, 200), (long, 413)):
        found, _, text = ask(app, "/detect", method="POST", body=body)
        assert found == status and ("exceeds 12 bytes" in text) == (status == 413)


def test_keys_come_in_headers_queries_and_small_bodies(
    tokenizer: Tokenizer, engine: Echo, tmp_path: Path
) -> None:
    key = add_key(tmp_path / "keys", "alice")
    app = guard(tokenizer, engine, Keys(tmp_path / "keys"), local=False)
    post = {"method": "POST", "address": "192.0.2.1"}
    for headers, query, body, status in (
        ([("authorization", f"Bearer {key}")], "", b'{"q": "x"}', 200),
        ([("authorization", f"bEARER  {key} ")], "", b'{"q": "x"}', 200),
        ([("authorization", f"Basic {key}")], "", b'{"q": "x"}', 401),
        ([("authorization", "Bearer ")], f"api_key={key}", b'{"q": "x"}', 200),
        ([("x-api-key", key)], "", b'{"q": "x"}', 200),
        ([("x-api-key", "")], f"api_key={key}", b'{"q": "x"}', 401),
        ([], f"api_key={key}&api_key=x", b'{"q": "x"}', 200),
        ([], "", json.dumps({"q": "x", "api_key": key}).encode(), 200),
        ([], "", json.dumps({"q": "x", "api_key": key + "x"}).encode(), 403),
        ([], "", b'{"q": "x"', 401),
        ([("x-api-key", "wrong")], "", b'{"q": "x"}', 403),
    ):
        found, answered, _ = ask(app, "/detect", headers, body=body, query=query, **post)
        assert found == status, (headers, query, body)
        assert ("www-authenticate" in answered) == (status == 401)
    for path, status in (
        ("/languages", 200),
        ("/frontend/settings", 200),
        ("/download_file/x", 404),
        ("/metrics", 401),
        ("/health", 200),
    ):
        assert ask(app, path, address="192.0.2.1")[0] == status, path
    large = json.dumps({"q": "x" * (128 << 10), "api_key": key}).encode()
    length = [("content-length", str(len(large)))]
    assert ask(app, "/detect", length, body=large, **post)[0] == 401


def test_addresses_and_keys_have_rates(tokenizer: Tokenizer, engine: Echo, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys", "alice")
    app = guard(tokenizer, engine, Keys(tmp_path / "keys"), local=False, per_address=2, per_key=3)

    def statuses(address: str, count: int, *headers: tuple[str, str]) -> list[int]:
        return [ask(app, "/languages", headers, address=address)[0] for _ in range(count)]

    assert statuses("192.0.2.1", 3) == [200, 200, 429]
    assert statuses("2001:db8::1", 2) + statuses("2001:db8::2", 1) == [200, 200, 429]
    assert statuses("2001:db8:0:1::1", 1) == [200] and statuses("::ffff:192.0.2.1", 1) == [429]
    assert statuses("127.0.0.1", 4) == [200] * 4 == statuses("::1", 4)
    own = ("x-api-key", key)
    assert statuses("127.0.0.1", 4, own) == [200, 200, 200, 429]
    assert statuses("127.0.0.1", 1) == [200]
    _, headers, text = ask(app, headers=[own])
    assert headers["retry-after"] == "20" and "Try again in 20 seconds" in text
    assert statuses("nonsense", 3) == [200, 200, 429]
    assert [ask(app, "/health", address="192.0.2.1")[0] for _ in range(3)] == [200] * 3


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (UserError("No.", "Yes."), 400, "No. Yes."),
        (
            UnusableModelError("Secret."),
            503,
            "The model can't be loaded. The server has logged the reason.",
        ),
        (HTTPException(404, "Not Found"), 404, "Not found. See /docs."),
        (HTTPException(405, "Method Not Allowed"), 405, "Method not allowed. See /docs."),
        (HTTPException(418, "Tea."), 418, "Tea."),
        (ClientDisconnect(), 499, "Client disconnected."),
        (
            asyncio.CancelledError(),
            503,
            "The server is shutting down; send the request again later.",
        ),
        (ValueError("secret"), 500, "Internal server error. The server has logged the error."),
    ],
)
def test_answers_to_errors(error: BaseException, status: int, sentence: str) -> None:
    found = answer(error)
    assert (found.status_code, json.loads(found.body)) == (status, {"error": sentence})
    assert ("retry-after" in found.headers) == isinstance(error, asyncio.CancelledError)


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("", False),
        ("0.0.0.0", False),
        ("localhost.x", False),
    ],
)
def test_local_hosts(host: str, local: bool) -> None:
    assert is_local(host) is local
