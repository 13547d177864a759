"""Tests of transduce/wings/serving/addresses.py."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from starlette.datastructures import URL, Headers

from transduce.wings.serving import network
from transduce.wings.serving.addresses import as_forwarded, host_of, public_url


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("LocalHost", "localhost"),
        ("localhost:5000", "localhost"),
        ("localhost:", "localhost"),
        ("[2001:DB8::1]:80", "2001:db8::1"),
        ("a-b_c.9", "a-b_c.9"),
        ("", None),
        ("a:b", None),
        ("a:123456", None),
        ("[::1]b", None),
        ("a b", None),
        ("u@a", None),
    ],
)
def test_the_host_of_an_authority(authority: str, host: str | None) -> None:
    assert host_of(authority) == host


FOR = {"X-Forwarded-For": "203.0.113.7"}
CHAIN = {"X-Forwarded-For": "198.51.100.1, 203.0.113.7, 192.0.2.8"}  # the first one may be invented
HOSTILE = (
    'evil"<>',
    "a b",
    "a/b",
    "a@b",
    "a?b",
    "a#b",
    "a:b",
    "a:123456",
    "[::1]b",
    "\u00e4",
    "a\\b",
    "",
)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, "http://localhost:5000"),
        ({"Host": "localhost:443"}, "http://localhost:443"),
        ({"X-Forwarded-Host": "t.example"}, "http://t.example"),
        ({"X-Forwarded-Host": "t.example", "X-Forwarded-Proto": "HTTPS"}, "https://t.example"),
        ({"X-Forwarded-Proto": "https, http"}, "https://localhost:5000"),
        ({"X-Forwarded-Host": "[2001:db8::1]:81"}, "http://[2001:db8::1]:81"),
        ({"X-Forwarded-Host": "T.example:80"}, "http://T.example"),
        ({"X-Forwarded-Host": "t.example:"}, "http://t.example"),
        ({"X-Forwarded-Host": "t.example", "X-Forwarded-Port": "8443"}, "http://t.example:8443"),
        ({"X-Forwarded-Host": "t.example:81", "X-Forwarded-Port": "82"}, "http://t.example:82"),
        ({"X-Forwarded-Proto": "https", "X-Forwarded-Port": "443"}, "https://localhost"),
        ({"X-Forwarded-Proto": "https,http", "X-Forwarded-Port": "80"}, "https://localhost"),
        ({"X-Forwarded-Proto": "gopher"}, "http://localhost:5000"),
        ({"X-Forwarded-Port": "a"}, "http://localhost:5000"),
        ({"X-Forwarded-Prefix": "/a/, /b"}, "http://localhost:5000/a/b"),
        ({"X-Forwarded-Prefix": "//evil.example"}, "http://localhost:5000"),
        ({"X-Forwarded-Prefix": "/a/../b"}, "http://localhost:5000"),
        (CHAIN | {"X-Forwarded-Proto": "http, https, http"}, "https://localhost:5000"),
        (CHAIN | {"X-Forwarded-Host": "evil.example, t.example, inner"}, "http://t.example"),
        (CHAIN | {"X-Forwarded-Host": "t.example, inner"}, "http://t.example"),
        (
            {"X-Forwarded-For": "192.0.2.8, 192.0.2.9:80", "X-Forwarded-Proto": "https, http"},
            "https://localhost:5000",
        ),
        *(
            ({"X-Forwarded-For": f"192.0.2.1, {proxy}", "X-Forwarded-Proto": "https, http"}, url)
            for proxy, url in (
                ("2001:db8::9", "https://localhost:5000"),
                ("[2001:DB8::9]:80", "https://localhost:5000"),
                ("2001:db8::7", "http://localhost:5000"),
                ("unknown", "http://localhost:5000"),
            )
        ),
        (
            {"Forwarded": "for=203.0.113.7;proto=https;host=t.example, for=192.0.2.8;proto=http"},
            "https://t.example",
        ),
        ({"Forwarded": 'For="[2001:db8::1]:99"; Host="t.example:81"'}, "http://t.example:81"),
        ({"Forwarded": "host=a.example", "X-Forwarded-Host": "t.example"}, "http://t.example"),
        ({"Forwarded": "host=a.example", "X-Forwarded-Host": " , "}, "http://a.example"),
        *(({"X-Forwarded-Host": host}, "http://localhost:5000") for host in HOSTILE),
        *(({"Forwarded": f'host="{host}"'}, "http://localhost:5000") for host in HOSTILE),
    ],
)
def test_documents_are_downloaded_from_the_address_that_the_client_uses(
    headers: dict[str, str], expected: str
) -> None:
    sent = {"Host": "localhost:5000"} | ({} if "Forwarded" in headers else FOR) | headers
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in sent.items()]
    for address, found in (("192.0.2.9", expected), ("192.0.2.77", f"http://{sent['Host']}")):
        scope = {
            "type": "http",
            "headers": raw,
            "client": (address, 1),
            "raw_path": b"/a",
            "path": "/a",
            "scheme": "http",
        }
        urls = []

        async def app(scope: Any, *_: object) -> None:
            url = URL(scope=scope)
            urls.append(public_url(url, Headers(scope=scope)))  # noqa: B023

        asyncio.run(network._only_from(["192.0.2.8/31", "2001:db8::9"], app)(scope, None, None))  # type: ignore[arg-type]
        assert urls == [f"{found}/a"]


def test_the_port_of_an_address_that_cannot_be_read_is_left() -> None:
    headers = Headers({"x-forwarded-port": "81"})
    assert public_url(URL("http://::1:80/a"), headers) == "http://::1:80/a"


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ([("forwarded", "for=192.0.2.7;host=a;by=x")], [("for", "192.0.2.7"), ("host", "a")]),
        (
            [("x-forwarded-for", "192.0.2.1"), ("x-forwarded-for", " , 192.0.2.2,")],
            [("for", "192.0.2.1, 192.0.2.2")],
        ),
        (
            [("x-forwarded-for", "\u00e4"), ("forwarded", "for=b;proto=HTTP")],
            [("for", "\u00e4"), ("proto", "http")],
        ),
        (
            [("x-forwarded-prefix", "/a/"), ("x-forwarded-port", "80"), ("x-forwarded-user", "x")],
            [("port", "80"), ("prefix", "/a")],
        ),
        ([("x-forwarded-for", " "), ("x-forwarded-port", "123456")], []),
    ],
)
def test_headers_of_proxies_are_checked_and_those_of_others_removed(
    sent: list[tuple[str, str]], kept: list[tuple[str, str]]
) -> None:
    first, last = (b"host", b"localhost"), (b"x-forwarded", b"stays")
    raw = [first, *((name.encode(), value.encode("latin-1")) for name, value in sent), last]
    scope = {"type": "http", "path": "/", "headers": raw}
    forwarded = [(f"x-forwarded-{name}".encode(), value.encode("latin-1")) for name, value in kept]
    for client, expected in (
        (("192.0.2.9", 1), forwarded),
        (("192.0.2.3", 1), []),
        (None, []),  # of a local socket
    ):
        found = as_forwarded(scope | {"client": client}, ["192.0.2.9"])
        assert found == scope | {"client": client, "headers": [first, last, *expected]}
    assert as_forwarded(scope, ["192.0.2.9"])["headers"] == [first, last]
