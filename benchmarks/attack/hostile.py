"""Attacks on the server by single requests: forged, ambiguous, foreign, or with a wrong key. server.py runs them."""

import asyncio
import contextlib
import json
import random
import re
import tempfile
from collections.abc import Coroutine, Iterable
from itertools import product
from typing import Any
from urllib.parse import quote, urlencode

from wire import PATIENCE, SIZE, Answer, Server, Tally, connect, document, ended, get, post, send

LINE_ENDS = (
    "\r\nX-Injected: 1\r\n",
    "\nX-Injected: 1",
    "\rX-Injected: 1",
    "%0d%0aX-Injected: 1",
    "\u010d\u010aX-Injected: 1",
)
OTHERS = (
    "\u2028",
    "%E5%98%8A%E5%98%8D",
    "\0",
    '"',
    ";",
    "\\",
    "é",
    "%00",
    "a",
    " ",
    "\x0b",
    "\x85",
)
FORBIDDEN = re.compile(rb"\r(?!\n)|(?<!\r)\n|\0|^x-injected", re.IGNORECASE | re.MULTILINE)

FRAMED, LONG, CHUNKED = b"2\r\n{}\r\n0\r\n\r\n", "Content-Length: 5", "Transfer-Encoding: chunked"
LENGTHS = ("5, 6", "+5", "-5", "0x5", "5 5", "5;", "5_0", "", "5\x0b", "1e1", "9" * 20)
CODINGS = (
    "identity",
    "xchunked",
    "chunked, identity",
    "chunked, chunked",
    "gzip, chunked",
    "chunked;a=b",
    "",
    "\x0bchunked",
)
HEADS = [
    (LONG, CHUNKED), (CHUNKED, LONG),
    (LONG, "Transfer-Encoding:\tchunked "), (LONG, "transfer-encoding:\r\n chunked"),
    *((LONG, f"Content-Length: {length}") for length in ("6", "05", "0", *LENGTHS)),
    *((f"Content-Length: {length}",) for length in LENGTHS),
    *((f"Transfer-Encoding: {coding}", *more) for coding, more in product(CODINGS, ((), (LONG,), (CHUNKED,)))),
    *((line.replace(":", f"{space}:"),) for line in (LONG, CHUNKED) for space in " \t\x0b\0\r\n"),
    *((f"{start}{LONG}",) for start in ("\x0b", "\r", "a\n", "X-A: a\r", "X-A: a\0")),
]  # fmt: skip
CHUNKS = (
    b"0x2\r\n{}\r\n0\r\n\r\n",
    b"+2\r\n{}\r\n0\r\n\r\n",
    b" 2\r\n{}\r\n0\r\n\r\n",
    b"2\n{}\r\n0\r\n\r\n",
    b"2\r\n{}XX0\r\n\r\n",
    b"2\r\n{}\n0\r\n\r\n",
    b"2\r\n{}0\r\n\r\n",
    b"2_0\r\n{}\r\n0\r\n\r\n",
    b"-1\r\n{}\r\n0\r\n\r\n",
    b"\r\n2\r\n{}\r\n0\r\n\r\n",
    b"2;\n\r\n{}\r\n0\r\n\r\n",
    b"f" * 21 + b"\r\n{}\r\n0\r\n\r\n",
)


LOCAL = ("localhost", "127.0.0.1", "[::1]", "127.9.9.9", "LocalHost")
FOREIGN = (
    "evil.example",
    "0.0.0.0",
    "[::]",
    "localhost.",
    "2130706433",
    "0x7f.1",
    "127.1",
    "0177.0.0.1",
    "192.0.2.1",
    "",
    "localhost@evil.example",
    "127.0.0.1%00.evil.example",
    "localhost,evil.example",
    "[::1]evil.example",
    "evil.example#localhost",
    *(
        f"{name}{suffix}"
        for name in LOCAL[:2]
        for suffix in (".evil.example", "-evil.example", "evil")
    ),
)
ORIGINS = (
    "http://evil.example",
    "null",
    "https://localhost.evil.example",
    "http://[::1",
    "http://[::1]evil.example",
    "http://localhost, http://evil.example",
    "",
    "file://",
    "localhost",
    "http://localhost@evil.example",
    "http://evil.example:127",
    "http://0.0.0.0",
    "http://127.0.0.1.evil.example:5000",
)
KINDS = (
    "application/json",
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=XX",
    "",
)

PROLOGUES = (
    "<!DOCTYPE a [<!ENTITY e SYSTEM '{0}'>]>",
    "<!DOCTYPE a [<!ENTITY % e SYSTEM '{0}'> %e;]>",
    "<!DOCTYPE a SYSTEM '{0}'>",
    "<!DOCTYPE a PUBLIC 'a' '{0}'>",
    "<!DOCTYPE a [<!ENTITY e PUBLIC 'a' '{0}'>]>",
    "<!DOCTYPE a SYSTEM '{0}' [<!ELEMENT a ANY>]>",
    "<!DOCTYPE a [<!NOTATION n SYSTEM '{0}'><!ENTITY e SYSTEM 'a' NDATA n>]>",
    "<?xml-stylesheet href='{0}'?>",
    "",
)
INSIDES = (
    "ka lo",
    "ka &e; lo",
    "<xi:include xmlns:xi='http://www.w3.org/2001/XInclude' parse='text' href='{0}'/>",
    "<img src='{0}'/><link rel='stylesheet' href='{0}'/><iframe src='{0}'></iframe><object data='{0}'/>",
)
FILES = {
    b".xlf": "<xliff version='1.2'><file original='{0}' source-language='ka' target-language='zu'><header><skl>"
    "<external-file href='{0}'/></skl></header><body><trans-unit id='1'><source>{1}</source></trans-unit></body>"
    "</file></xliff>",
    b".tmx": "<tmx version='1.4'><header srclang='ka' o-tmf='{0}'/><body><tu><tuv xml:lang='ka'><seg>{1}</seg></tuv>"
    "</tu></body></tmx>",
    b".xhtml": "<html xmlns='http://www.w3.org/1999/xhtml'><body><p>{1}</p></body></html>",
    b".srt": "1\n00:00:01,000 --> 00:00:02,000\n{1}\n",
}  # fmt: skip


async def in_groups(tasks: Iterable[Coroutine[Any, Any, None]], size: int = 16) -> None:
    """Run coroutines, so many at a time."""
    places = asyncio.Semaphore(size)

    async def one(task: Coroutine[Any, Any, None]) -> None:
        async with places:
            await task

    await asyncio.gather(*map(one, tasks))


async def answers(server: Server, content: bytes) -> list[Answer]:
    """All answers to these bytes until the server ends the connection. Status 0: something else than an answer.

    An answer without a length, as uvicorn's to a malformed request, is the last one.
    """
    with await connect(server.port) as connection:
        with contextlib.suppress(ConnectionError):
            await asyncio.get_running_loop().sock_sendall(connection, content)
        try:
            async with asyncio.timeout(PATIENCE):
                rest = await ended(connection)
        except TimeoutError:
            return [Answer(0, b"the connection does not end", b"")]
    found = list[Answer]()
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        size = SIZE.search(head)
        length = int(size[1]) if size else len(rest)
        if not head.startswith(b"HTTP/1.1 ") or FORBIDDEN.search(head) or len(rest) < length:
            return [*found, Answer(0, head, rest)]
        found.append(Answer(int(head[9:12]), head, rest[:length]))
        rest = rest[length:]
    return found


def download(answer: Answer) -> bytes:
    """The request for a translated document."""
    return get(answer.json["translatedFileUrl"].removeprefix("http://localhost"))


async def injection(server: Server, draw: random.Random, tally: Tally) -> None:
    """Line ends in whatever may come back. No answer may hold a header of the client's making."""

    async def one() -> None:
        value = "".join(draw.choices([*LINE_ENDS, *OTHERS], k=draw.randint(1, 5)))
        name = f"{value}.{draw.choice(['txt', 'txt', f'txt{value}', value])}"
        fields = {
            each: draw.choice(["ka", "zu", value]) for each in ("q", "source", "target", "format")
        }
        requests = [
            get(f"/{value}?{value}"),
            get(f"/download_file/{quote(value)}?{quote(value)}"),
            get("/health", f"X-A: {value}", f"Origin: {value}", host=f"localhost:{value}"),
            post("/translate", json.dumps(fields).encode()),
            post(
                "/translate",
                urlencode(fields).encode(),
                kind=f"application/x-www-form-urlencoded{value}",
            ),
            post(
                "/translate",
                b"ka",
                f"X-API-Key: {value}",
                f"Authorization: Bearer {value}",
                kind=value,
            ),
        ]
        uploaded = await answers(
            server, document(draw.choice([name, quote(name)]).encode(), b"ka lo")
        )
        found = uploaded + await answers(server, draw.choice(requests))
        if uploaded and uploaded[0].status == 200:
            found += await answers(server, download(uploaded[0]))
        tally.check(all(each.status for each in found), "refused", f"{value!r}: {found}")

    await in_groups((one() for _ in range(300)), 100)


async def smuggling(server: Server, draw: random.Random, tally: Tally) -> None:
    """Requests whose end is ambiguous, with another request behind. The server must refuse and end the connection."""

    async def one(lines: tuple[str, ...], body: bytes) -> None:
        first = draw.choice(
            ["POST /translate HTTP/1.1", "POST /detect HTTP/1.1", "GET /health HTTP/1.1"]
        )
        content = "\r\n".join([first, "Host: localhost", *lines, "", ""]).encode("latin-1") + body
        found = await answers(server, content + get("/languages"))
        tally.check(
            [each.status in (400, 413, 501) for each in found] == [True],
            "refused",
            f"{content!r}: {found}",
        )

    await in_groups(
        [one(lines, FRAMED) for lines in HEADS] + [one((CHUNKED,), body) for body in CHUNKS]
    )


async def rebinding(server: Server, draw: random.Random, tally: Tally) -> None:
    """Names of this machine that a foreign page has, as after DNS rebinding."""

    async def one(host: str, fine: bool) -> None:
        host += draw.choice(["", ":80", ":5000"])
        path = draw.choice(["/health", "/languages", "/", "/metrics"])
        more = ["X-Forwarded-Host: localhost", "X-Forwarded-For: 127.0.0.1"]
        found = await send(server.port, get(path, *draw.choice([[], more]), host=host))
        expected = (200,) if fine else (400, 421)
        tally.check(
            found and found.status in expected,
            "answered" if fine else "refused",
            f"{host!r}: {found}",
        )

    hosts = [(host, True) for host in LOCAL] + [(host, False) for host in FOREIGN]
    await in_groups(one(*host) for host in hosts for _ in range(5))


async def cross_site(server: Server, draw: random.Random, tally: Tally) -> None:
    """Requests of pages of other sites, also those that a browser sends without asking first."""
    content = server.ask(draw)[0].partition(b"\r\n\r\n")[2]

    async def one(path: str, mark: str, kind: str, status: int) -> None:
        found = await send(server.port, post(path, content, mark, kind=kind))
        outcome = "answered" if status == 200 else "refused"
        tally.check(found and found.status == status, outcome, f"{path} {mark} {kind}: {found}")

    paths = ("/translate", "/translate_file", "/detect", "/attention")
    foreign = (
        *(f"Origin: {origin}" for origin in ORIGINS),
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: Cross-Site",
    )
    own = (
        "Origin: http://localhost:3000",
        "Origin: http://127.0.0.1",
        "Sec-Fetch-Site: same-origin",
        "X-A: a",
    )
    await in_groups(
        one(path, mark, kind, 403) for path in paths for mark in foreign for kind in KINDS
    )
    await in_groups(one("/translate", mark, "application/json", 200) for mark in own)


async def entities(server: Server, draw: random.Random, tally: Tally) -> None:
    """Documents that name addresses and files. The server must not open any of them."""
    connected = list[asyncio.StreamWriter]()
    secret = f"secret{draw.random()}"
    listener = await asyncio.start_server(
        lambda _, writer: connected.append(writer), "127.0.0.1", 0
    )
    port = listener.sockets[0].getsockname()[1]
    (await connect(port)).close()  # to see that the listener sees connections
    place = f"127.0.0.1:{port}/a"

    async def one(name: bytes, content: str) -> None:
        found = await send(server.port, document(name, content.encode()))
        if found and found.status == 200:
            found = await send(server.port, download(found))
        fine = found and found.status in (200, 400) and secret.encode() not in found.body
        tally.check(
            fine, "answered" if found and found.status == 200 else "refused", f"{content}: {found}"
        )

    with tempfile.NamedTemporaryFile("w") as file:
        print(secret, file=file, flush=True)
        for address in (
            f"http://{place}",
            f"ftp://{place}",
            f"//{place}",
            file.name,
            f"file://{file.name}",
        ):
            contents = [
                (
                    b"a" + suffix,
                    prologue.format(address) + content.format(address, inside.format(address)),
                )
                for (suffix, content), prologue, inside in product(
                    FILES.items(), PROLOGUES, INSIDES
                )
            ]
            await in_groups(one(*content) for content in contents)
    await asyncio.sleep(1)
    tally.check(
        len(connected) == 1, "refused", f"the listener saw {len(connected) - 1} connections"
    )
    for writer in connected:
        writer.close()
    listener.close()


async def keys(server: Server, draw: random.Random, tally: Tally) -> None:
    """Keys that are nearly right, at every place where a key may be."""
    path = "/translate"
    kind = "application/x-www-form-urlencoded"

    async def one(key: str) -> None:
        fields = {"q": "ka lo", "source": "ka", "target": "zu"}
        plain, with_key = (
            json.dumps(each).encode() for each in (fields, fields | {"api_key": key})
        )
        requests = [
            post(path, plain, f"X-API-Key: {key}"),
            post(path, plain, f"Authorization: Bearer {key}"),
            post(f"{path}?{urlencode({'api_key': key})}", plain),
            post(path, with_key),
            post(path, urlencode(fields | {"api_key": key}).encode(), kind=kind),
            get("/languages", f"X-API-Key: {key}"),
        ]
        for content in requests:
            found = await send(server.port, content)
            is_public = content.startswith(b"GET") and not key.strip()  # no key at all
            is_right = key == server.key or is_public
            expected, outcome = ((200,), "answered") if is_right else ((401, 403), "refused")
            tally.check(found and found.status in expected, outcome, f"{content!r}: {found}")

    right = server.key
    wrong = [right[:i] + draw.choice("aA0-") + right[i + 1 :] for i in range(len(right))]
    wrong += [right[:i] for i in range(0, len(right), 5)] + [
        f"{right}a",
        f"a{right}",
        right.swapcase(),
        right[::-1],
    ]
    wrong += [
        "'",
        "\t",
        "*",
        "%",
        "null",
        "true",
        "0",
        "[]",
        "a" * 10_000,
        f"{right},{right}",
        f"{right};",
        f'"{right}"',
    ]
    await in_groups(one(key) for key in [right, *(key for key in wrong if key != right)])
