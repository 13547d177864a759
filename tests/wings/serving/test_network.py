"""Tests of transduce/wings/serving/network.py."""

import asyncio
import logging
import signal
import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import h11
import pytest

from servers import Echo
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from starlette.exceptions import HTTPException

from requests_of_tests import WORDED, client, guard
from transduce.wings.serving import network
from transduce.wings.serving.limits import Limits


def test_a_proxy_says_under_which_path_it_serves(tokenizer: Tokenizer, engine: Echo) -> None:
    urls = []
    for address in ("192.0.2.9", "192.0.2.3"):
        app = network.server(
            guard(tokenizer, engine, proxied=True), Limits(), ["192.0.2.9"]
        ).config.app
        with client(app, address) as asking:
            headers = {
                "X-Forwarded-Prefix": "/tr/",
                "X-Forwarded-For": "192.0.2.1",
                "Host": "localhost",
            }
            answer = asking.post(
                "/translate_file", data=WORDED, files={"file": ("a.txt", b"ka lo")}, headers=headers
            )
            urls.append(answer.json()["translatedFileUrl"])
            assert asking.get(urls[-1].replace("/tr/", "/")).status_code == 200
    assert [url.startswith("http://localhost/tr/download_file/") for url in urls] == [True, False]


@pytest.mark.parametrize(
    ("wanted", "soft", "hard", "possible", "files"),
    [
        (10, 1024, 4096, 10, 1024),
        (400, 1024, 4096, 400, 1300),
        (400, 1024, -1, 400, 1300),
        (4000, 1024, 4096, 1332, 4096),
        (400, 1024, 1299, 399, 1299),
        (400, 99, 99, 1, 99),
        (400, -1, -1, 400, None),
    ],
)
def test_each_connection_may_need_three_files(
    wanted: int, soft: int, hard: int, possible: int, files: int | None, monkeypatch: Any
) -> None:
    raised: list[Any] = []
    fake = SimpleNamespace(
        RLIMIT_NOFILE="files",
        RLIM_INFINITY=-1,
        getrlimit=lambda _: (soft, hard),
        setrlimit=lambda *given: raised.append(given),
    )
    monkeypatch.setattr(network, "resource", fake)
    assert network._connections(wanted) == possible
    assert raised == ([("files", (files, hard))] if files else [])
    monkeypatch.setattr(network, "resource", None)
    assert network._connections(wanted) == wanted


def test_a_client_that_does_not_read_is_cut_off(monkeypatch: Any, capsys: Any) -> None:
    begun: list[Any] = []
    quiet = SimpleNamespace(run=lambda sockets: begun.append(sockets))
    monkeypatch.setattr(network, "server", lambda _, limits, __: begun.append(limits) or quiet)
    monkeypatch.setattr(network, "_connections", lambda _: 7)
    monkeypatch.setattr(network.signal, "signal", lambda *_: None)
    collector = SimpleNamespace(
        collect=lambda: begun.append("collect"), freeze=lambda: begun.append("freeze")
    )
    monkeypatch.setattr(network, "gc", collector)
    for seconds, milliseconds in ((5, 5000), (10**9, 2**31 - 1)):
        with socket.socket() as listening:
            limits = Limits(answer_seconds=seconds, connections=9)
            network.run(lambda *_: None, listening, limits, [])  # type: ignore[arg-type,return-value]
            option = socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT
            assert listening.getsockopt(*option) == milliseconds
            assert begun[-1] == [listening] and begun[-2].connections == 7
            assert begun[-4:-2] == ["collect", "freeze"]
    assert "Only 7 connections are possible" in capsys.readouterr().err
    network.run(lambda *_: None, socket.socket(), Limits(connections=7), [])  # type: ignore[arg-type,return-value]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("hangs_up", [True, False], ids=["SIGHUP", "nohup"])
def test_signals_end_the_server_of_the_main_thread(monkeypatch: Any, hangs_up: bool) -> None:
    handlers: dict[int, Any] = {}

    def interrupted(**_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(network, "server", lambda *_: SimpleNamespace(run=interrupted))
    monkeypatch.setattr(network, "gc", SimpleNamespace(collect=int, freeze=int))
    default = signal.SIG_DFL if hangs_up else signal.SIG_IGN
    fake = SimpleNamespace(
        SIG_DFL=signal.SIG_DFL,
        SIGTERM=signal.SIGTERM,
        SIGHUP=signal.SIGHUP,
        default_int_handler=signal.default_int_handler,
        signal=handlers.__setitem__,
        getsignal=lambda number: default if number == signal.SIGHUP else None,
        raise_signal=lambda number: number,
    )
    monkeypatch.setattr(network, "signal", fake)

    def run() -> None:
        with socket.socket() as listening:
            network.run(lambda *_: None, listening, Limits(), [])  # type: ignore[arg-type,return-value]

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not handlers, "only the main thread handles signals"
    run()
    hangup = handlers.pop(signal.SIGHUP, None)
    assert handlers == {signal.SIGTERM: signal.default_int_handler}
    assert hangup(signal.SIGHUP, None) == signal.SIGTERM if hangs_up else hangup is None


def test_uvicorn_is_configured_for_clients_that_are_not_trusted() -> None:
    closing: list[Any] = []

    async def app(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: Any) -> None:
        closing.extend(message.get("headers", []))

    limits = Limits(connections=9, drain_seconds=8, body_seconds=7)
    found = network.server(app, limits, [])
    config = found.config
    assert config.backlog == 9 and config.limit_concurrency == 10
    assert config.timeout_graceful_shutdown == 8
    assert config.h11_max_incomplete_event_size == 16 << 10
    assert (config.http, config.ws) == ("h11", "none")
    assert not (config.access_log or config.server_header or config.proxy_headers)
    # Neither uvicorn nor the reader of forms logs what clients send.
    for name in ("uvicorn.error", "python_multipart"):
        assert logging.getLogger(name).getEffectiveLevel() >= logging.ERROR
    assert logging.getLogger("python_multipart").level == logging.CRITICAL
    scope = {"type": "http", "headers": [], "raw_path": b"/", "client": None, "path": "/"}
    for found.should_exit in (False, True):
        asyncio.run(config.app(scope, None, send))
        assert closing == ([(b"connection", b"close")] if found.should_exit else [])


def conversation(
    messages: list[dict[str, Any]],
    *,
    late: float = 0,
    closing: bool = False,
    reads: int = 0,
    **headers: str,
) -> list[Any]:
    """What a client gets from an application that reads `reads` messages and then says "yes"."""
    sent: list[Any] = []
    arriving: Iterator[dict[str, Any]] = iter(messages)

    async def app(_: Any, receive: Any, send: Any) -> None:
        try:
            got = [(await receive())["type"] for _ in range(reads)]
            sent.append(got)
        except HTTPException as error:
            sent.append((error.status_code, error.detail, error.headers))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]})
        await send({"type": "http.response.body", "body": b"yes"})

    async def receive() -> Any:
        message = next(arriving, None)
        await asyncio.sleep(late if message else 60)
        return message

    async def send(message: Any) -> None:
        sent.append(message)

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    bodies = network._Bodies(app, 0.2, lambda: closing)  # type: ignore[arg-type]
    asyncio.run(bodies({"type": "http", "headers": raw}, receive, send))
    return sent


START = {"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]}
WHOLE = {"type": "http.response.body", "body": b"yes"}
PART, END = WHOLE | {"more_body": True}, {"type": "http.response.body"}


def body(more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": b"x", "more_body": more}


def test_an_answer_ends_when_the_body_has_arrived() -> None:
    read = ["http.request"] * 2
    assert conversation([body(True), body(False)], reads=2, content_length="2") == [
        read,
        START,
        WHOLE,
    ]
    assert conversation([body(True), body(False)], transfer_encoding="chunked") == [
        [],
        START,
        PART,
        END,
    ]
    assert conversation([body(True)], reads=1, content_length="2") == [read[:1], START, PART, END]
    assert conversation([]) == [[], START, WHOLE], "no body"
    closing = START | {"headers": [(b"a", b"b"), (b"connection", b"close")]}
    assert conversation([], closing=True) == [[], closing, WHOLE]


def test_an_answer_ends_when_the_server_does_not_wait_any_longer() -> None:
    sent: list[Any] = []

    async def app(_: Any, __: Any, send: Any) -> None:
        await send(WHOLE)

    async def receive() -> Any:
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        await asyncio.sleep(60)

    async def send(message: Any) -> None:
        sent.append(message)

    bodies = network._Bodies(app, 60, lambda: False)
    scope = {"type": "http", "headers": [(b"content-length", b"1")]}
    asyncio.run(bodies(scope, receive, send))
    assert sent == [PART, END]
    seen: list[Any] = []

    async def other(*arguments: Any) -> None:
        seen.extend(arguments)

    asyncio.run(network._Bodies(other, 60, lambda: False)({"type": "lifespan"}, receive, send))
    assert seen == [{"type": "lifespan"}, receive, send]


def test_a_late_body_is_refused() -> None:
    sentence = "The request did not arrive within 0.2 seconds. Send a shorter one."
    late = (408, sentence, {"Connection": "close"})
    assert conversation([body(True)], reads=2, content_length="2") == [late, START, PART, END]
    [first, *_] = conversation([body(False)], reads=1, late=0.3, content_length="1")
    assert first == late
    # Without a body, the next message says that the client has gone, however late.
    gone = {"type": "http.disconnect"}
    assert conversation([gone], reads=1, late=0.3)[0] == ["http.disconnect"]
    after = [body(False), gone]
    found = conversation(after, reads=2, late=0.15, content_length="1")
    assert found[0] == ["http.request", "http.disconnect"]


def test_errors_of_clients_are_not_logged() -> None:
    logged: list[Any] = []
    loop: Any = SimpleNamespace(default_exception_handler=logged.append)
    contexts = [
        {"exception": error} for error in (h11.RemoteProtocolError("x"), ValueError("y"), None)
    ]
    for context in [*contexts, {}]:
        network._log_unless_client(loop, context)
    assert logged == [*contexts[1:], {}]


def test_a_server_that_ends_accepts_who_waits(monkeypatch: Any) -> None:
    """As long as somebody waits, but no longer than ACCEPT_SECONDS."""
    ended: list[str] = []

    async def ends(*_: Any) -> None:
        ended.append("shutdown")

    async def passes(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(network.uvicorn.Server, "shutdown", ends)
    given: list[Any] = []
    monkeypatch.setattr(network, "asyncio", SimpleNamespace(sleep=passes))
    monkeypatch.setattr(network, "time", SimpleNamespace(monotonic=lambda: now))
    server: Any = network._Server.__new__(network._Server)
    server.servers = [SimpleNamespace(close=lambda: ended.append("close"))]
    for waiting, seconds in ((0, 0.2), (3, 0.23), (1000, 1.2)):
        now, left = 0.0, iter([True] * waiting)

        def waits(*arguments: Any, left: Any = left) -> list[Any]:
            given.append(arguments)
            return [next(left, False)]

        monkeypatch.setattr(network, "select", SimpleNamespace(select=waits))
        asyncio.run(server.shutdown(["socket"]))
        assert given[-1] == (["socket"], [], [], 0), "at once"
        assert now == pytest.approx(seconds, abs=0.011)
        assert ended[-2:] == ["close", "shutdown"]
    asyncio.run(server.shutdown())
    assert given[-1] == ([], [], [], 0)


def test_a_server_starts_with_a_handler_of_errors(monkeypatch: Any) -> None:
    begun: list[Any] = []

    async def begins(_: Any, sockets: Any) -> None:
        begun.append((sockets, asyncio.get_running_loop().get_exception_handler()))

    monkeypatch.setattr(network.uvicorn.Server, "startup", begins)
    server: Any = network._Server.__new__(network._Server)
    asyncio.run(server.startup(["socket"]))
    assert begun == [(["socket"], network._log_unless_client)]


def test_an_address_that_a_client_on_this_machine_claims_is_not_believed() -> None:
    seen: list[Any] = []

    async def app(scope: Any, *_: Any) -> None:
        seen.append(scope)

    config = network.server(app, Limits(), []).config
    config.load()
    scope = {
        "type": "http",
        "client": ("127.0.0.1", 9),
        "scheme": "http",
        "path": "/",
        "raw_path": b"/",
        "headers": [(b"x-forwarded-for", b"192.0.2.1"), (b"x-forwarded-proto", b"https")],
    }
    asyncio.run(config.loaded_app(scope, None, None))  # type: ignore[arg-type]
    assert [(each["client"], each["scheme"]) for each in seen] == [(("127.0.0.1", 9), "http")]


@pytest.mark.parametrize(
    ("sent", "path"),
    [
        ("/health", "/health"),
        ("http://localhost:5000/health", "/health"),
        ("HTTP://localhost", "/"),
        ("/http://localhost/health", "/http://localhost/health"),
    ],
)
def test_a_request_may_name_the_whole_address(sent: str, path: str) -> None:
    seen: list[Any] = []

    async def app(scope: Any, *_: Any) -> None:
        seen.append(scope)

    checked: Any = network._only_from([], app)
    scope = {"type": "http", "headers": [], "raw_path": sent.encode(), "path": sent}
    asyncio.run(checked(scope, None, None))
    asyncio.run(checked({"type": "lifespan"}, None, None))
    assert [each.get("path") for each in seen] == [path, None]
