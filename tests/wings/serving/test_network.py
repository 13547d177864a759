"""Tests of transduce/wings/serving/network.py."""

import asyncio
from typing import Any

import pytest

from servers import Echo
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from starlette.datastructures import URL, Headers

from requests_of_tests import WORDED, client, guard
from transduce.wings.serving import network
from transduce.wings.serving.addresses import public_url
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
        ({"X-Forwarded-Host": "t.example"}, "http://t.example"),
        ({"X-Forwarded-Host": "t.example", "X-Forwarded-Proto": "HTTPS"}, "https://t.example"),
        ({"X-Forwarded-Proto": "https, http"}, "https://localhost:5000"),
        ({"X-Forwarded-Host": "[2001:db8::1]:81"}, "http://[2001:db8::1]:81"),
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
        (
            {"Forwarded": "for=203.0.113.7;proto=https;host=t.example, for=192.0.2.8;proto=http"},
            "https://t.example",
        ),
        ({"Forwarded": 'For="[2001:db8::1]:99"; Host="t.example:81"'}, "http://t.example:81"),
        ({"Forwarded": "host=a.example", "X-Forwarded-Host": "t.example"}, "http://t.example"),
        *(({"X-Forwarded-Host": host}, "http://localhost:5000") for host in HOSTILE),
        *(({"Forwarded": f'host="{host}"'}, "http://localhost:5000") for host in HOSTILE),
    ],
)
def test_documents_are_downloaded_from_the_address_that_the_client_uses(
    headers: dict[str, str], expected: str
) -> None:
    sent = {**({} if "Forwarded" in headers else FOR), **headers, "Host": "localhost:5000"}
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in sent.items()]
    for address, found in (("192.0.2.9", expected), ("192.0.2.77", "http://localhost:5000")):
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

        asyncio.run(network._only_from(["192.0.2.8/31"], app)(scope, None, None))  # type: ignore[arg-type]
        assert urls == [f"{found}/a"]
