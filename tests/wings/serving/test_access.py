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
from starlette.types import ASGIApp, Message, Send

from requests_of_tests import guard
from transduce.system.errors import UnusableModelError, UserError
from transduce.text.languages import nearest_code
from transduce.wings.serving.access import AccessControl, RateLimit, answer, is_local
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
    assert not any(rates.wait(str(number)) for number in range(9_999))
    assert rates.wait("first") == 60, "as many are known as fit"
    assert rates.wait("last") == 0, "one more"
    assert len(rates.buckets) == 10_000
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
    body: bytes | Sequence[bytes] = b"",
    host: str = "localhost",
    address: str | None = "127.0.0.1",
    query: str = "",
    raw: str = "",
) -> tuple[int, dict[str, str], str]:
    """The status, headers and sentence of an answer to a request that no client would send.

    A body may consist of several messages. A request without an address comes through a local socket.
    """
    sent: list[Message] = []
    parts = [body] if isinstance(body, bytes) else body
    messages = [
        {"type": "http.request", "body": part, "more_body": number < len(parts)}
        for number, part in enumerate(parts, 1)
    ]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": (raw or path).encode(),
        "query_string": query.encode(),
        "headers": [(b"host", host.encode()), *((a.encode(), b.encode()) for a, b in headers)],
        "client": address and (address, 1),
        "server": ("localhost", 80),
        "scheme": "http",
        "http_version": "1.1",
        "root_path": "",
    }

    async def receive() -> Message:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def answered() -> None:
        await app(scope, receive, send)
        assert asyncio.all_tasks() == {asyncio.current_task()}, "a request leaves no task behind"

    asyncio.run(answered())
    start, *rest = sent
    assert [each["type"] for each in sent].count("http.response.start") == 1
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
        ([("content-encoding", "identity, GZip")], 415),
        ([("content-encoding", "identity"), ("content-encoding", "br")], 415),
        ([("content-length", "0"), ("content-encoding", "identity")], 200),
        ([("transfer-encoding", "chunked")], 200),
        *(
            ([("content-encoding", coding)], 415)
            for coding in ("aes128gcm", "dcb", "dcz", "exi", "pack200-gzip")
        ),
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
    "name", ["host", "origin", "sec-fetch-site", "content-type", "content-length", "authorization"]
)
def test_a_header_that_a_proxy_may_understand_in_another_way_comes_once(
    tokenizer: Tokenizer, engine: Echo, name: str
) -> None:
    app = guard(tokenizer, engine)
    headers = [] if name == "host" else [(name, "1")]
    assert ask(app, headers=headers)[0] == 200
    status, _, text = ask(app, headers=[*headers, (name, "1")])
    assert status == 400 and f"several headers {name.title()}" in text
    assert ask(app, headers=[("x-api-key", "1")] * 2)[0] == 400
    assert ask(app, headers=[("accept", "1")] * 2)[0] == 200


@pytest.mark.parametrize(
    ("host", "raw", "status"),
    [
        ("localhost:80", "http://LOCALHOST:81/languages", 200),
        ("localhost", "http://127.0.0.1/languages", 400),
        ("localhost", "http:///languages", 400),
        ("localhost", "http://u@localhost/languages", 400),
        ("", "http://localhost/languages", 400),
        ("u@localhost", "", 400),
    ],
)
def test_the_hosts_of_a_request_are_the_same(
    tokenizer: Tokenizer, engine: Echo, host: str, raw: str, status: int
) -> None:
    assert ask(guard(tokenizer, engine, local=False), host=host, raw=raw)[0] == status


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
        for parts in (body, [body[:5], body[5:]], [b"", *(bytes([each]) for each in body), b""]):
            found, _, text = ask(app, "/detect", method="POST", body=parts)
            assert found == status and ("exceeds 12 bytes" in text) == (status == 413)
    for path, limit in (("/translate_file", 20), ("/translate", 12), ("/detect", 12)):
        length = [("content-length", str(limit + 1))]
        found, _, text = ask(app, path, length, method="POST")
        assert found == 413 and f"exceeds {limit} bytes" in text
        length = [("content-length", str(limit))]
        assert ask(app, path, length, method="POST", body=b"x" * limit)[0] == 400


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
    whole = json.dumps({"q": "x", "api_key": key}).encode()
    for size, status in ((128 << 10, 200), ((128 << 10) + 1, 401)):
        large = whole.ljust(size)
        for headers in ([("content-length", str(size))], [("transfer-encoding", "chunked")]):
            for parts in (large, [large[:10], large[10:99], large[99:]]):
                found, _, text = ask(app, "/detect", headers, body=parts, **post)
                assert found == status and ("language" in text) == (status == 200)
    # A body that ends with the connection.
    assert ask(app, "/detect", body=[], **post)[0] == 401


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
    assert statuses("nonsense", 3) + statuses("other", 1) == [200, 200, 429, 200]
    assert [ask(app, "/health", address="192.0.2.1")[0] for _ in range(3)] == [200] * 3
    assert [ask(app, address=None)[0] for _ in range(3)] == [200] * 3, "a local socket"


def test_requests_are_counted_by_route(tokenizer: Tokenizer, engine: Echo) -> None:
    app = guard(tokenizer, engine)
    for path, status, route in (
        *((path, 400, path) for path in ("/translate", "/translate_file", "/attention", "/detect")),
        *((path, 200, path) for path in ("/", "/health", "/languages", "/page.js")),
        *((path, 200, "other") for path in ("/metrics", "/docs", "/openapi.json")),
        ("/secret", 404, "other"),
    ):
        before = app.service.metrics.text().decode().split("\n")
        assert ask(app, path, method="POST" if status == 400 else "GET")[0] == status
        new = [
            line for line in app.service.metrics.text().decode().split("\n") if line not in before
        ]
        counts = f'transduce_requests_total{{route="{route}",status="{status}"}}'
        seconds = f'transduce_request_seconds_sum{{route="{route}"}}'
        assert any(line.startswith(f"{counts} ") for line in new), path
        assert [0 < float(line.split()[1]) < 60 for line in new if line.startswith(seconds)] == [
            True
        ]


def test_what_an_application_raises_is_answered_once_and_logged_without_its_message(
    tokenizer: Tokenizer, engine: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    app = guard(tokenizer, engine)

    def failing(begins: bool, error: BaseException | None) -> ASGIApp:
        async def fail(_: object, __: object, send: Send) -> None:
            if begins:
                await send({"type": "http.response.start", "status": 200})
            if error:
                raise error

        return fail

    for error, status, logged in (
        (HTTPException(418, "Tea."), 418, ""),
        (asyncio.CancelledError(), 503, ""),
        (UserError("secret"), 400, "UserError in test_access.py, line "),
        (ValueError("secret"), 500, "ValueError in test_access.py, line "),
    ):
        for begins in (False, True):
            caplog.clear()
            app.app = failing(begins, error)
            found, headers, _ = ask(app)
            assert found == (200 if begins else status)
            assert headers["x-content-type-options"] == "nosniff"
            assert len(caplog.records) == bool(logged)
            assert logged in caplog.text and "secret" not in caplog.text
    app.app = failing(begins=False, error=None)
    with pytest.raises(ValueError, match="not enough values to unpack"):
        ask(app)  # without an answer; uvicorn answers with status 500
    assert 'route="/languages",status="500"} 2.0' in app.service.metrics.text().decode()


def test_only_uploads_wait_for_the_place_of_an_upload(tokenizer: Tokenizer, engine: Echo) -> None:
    app = guard(tokenizer, engine, uploads=1, queue=1)
    with app.service.batcher.place():
        for path, method, status in (
            ("/translate", "POST", 503),
            ("/translate_file", "POST", 503),
            ("/attention", "POST", 503),
            ("/translate", "GET", 405),
            ("/detect", "POST", 400),
            ("/languages", "GET", 200),
        ):
            found, headers, _ = ask(app, path, method=method)
            assert found == status and ("retry-after" in headers) == (status == 503)

    async def upload() -> list[int]:
        statuses = list[int]()
        async with app.uploads:
            for path, method in (
                ("/translate_file", "POST"),
                ("/translate_file", "GET"),
                ("/translate", "POST"),
            ):
                found = await asyncio.to_thread(ask, app, path, method=method)
                statuses.append(found[0])
                if found[0] == 503:
                    assert found[1]["retry-after"] == "5" and "other documents" in found[2]
        return statuses

    assert asyncio.run(upload()) == [503, 405, 400]


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
def test_answers_to_errors(
    error: BaseException, status: int, sentence: str, caplog: pytest.LogCaptureFixture
) -> None:
    found = answer(error)
    assert (found.status_code, json.loads(found.body)) == (status, {"error": sentence})
    retry = "5" if isinstance(error, asyncio.CancelledError) else None
    assert found.headers.get("retry-after") == retry
    logged = ["Secret."] if isinstance(error, UnusableModelError) else []
    assert [each.getMessage() for each in caplog.records] == logged


def test_headers_of_a_refusal_are_sent() -> None:
    assert answer(HTTPException(503, "No.", {"Retry-After": "7"})).headers["retry-after"] == "7"


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
