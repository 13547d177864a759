"""Sends requests of all kinds to a server for long, and measures whether its process grows.

    python benchmarks/attack/endurance.py [--requests 200000] [--minutes 600] [--seed 1]

The server translates with a small model of a toy language and has a file of keys. 64 clients send translations,
batches, HTML, documents, downloads, pages, requests with mistakes, and wrong keys. Other requests are broken off. A
request that should succeed is *answered* with the translation of its own sentences. A request with a mistake or a wrong
key is *refused* with the status that it should have. Everything else is a defect: another answer or none. The process
is measured twenty times, while no connection is open. After the first tenth of the requests, memory may grow by
5 %, and the number of open files not at all. Python starts the threads of a pool when it needs them, so the number of
threads may grow until the pool is complete. All defects are listed. The exit status is 1 if there are any.
"""

import asyncio
import os
import random
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from script import run_script
from wire import (
    PATIENCE,
    Answer,
    Server,
    Tally,
    connect,
    document,
    get,
    post,
    prepare,
    raise_file_limit,
    receive,
    serving,
    table,
)

CLIENTS, MEASUREMENTS, MAX_GROWTH = 64, 20, 0.05
# Main, engine, long documents, and asyncio's pool.
MAX_THREADS = 3 + min(32, (os.cpu_count() or 1) + 4)
OPTIONS = ("--limit=limits.per_key=999999999",)
WEIGHTS = {
    "translation": 45,
    "html": 6,
    "file": 8,
    "page": 12,
    "mistake": 15,
    "wrong_key": 7,
    "broken": 7,
}
PAGES = (
    "/",
    "/page.js",
    "/docs",
    "/openapi.json",
    "/languages",
    "/frontend/settings",
    "/metrics",
    "/health",
)
DEEP = b'{"q": ' + b"[" * 2000
XML = b'<xliff version="1.2"><file source-language="ka" target-language="zu"><body>%s</body></file></xliff>'
UNIT = b'<trans-unit id="%d"><source>%s</source></trans-unit>'
SUBTITLE = b"%d\n00:00:0%d,000 --> 00:00:09,000\n%s\n\n"
FILES: dict[bytes, Callable[[list[bytes]], bytes]] = {  # makes a document of lines, by suffix
    b".txt": b"\n".join,
    b".srt": lambda lines: b"".join(SUBTITLE % (i, i, line) for i, line in enumerate(lines)),
    b".html": lambda lines: b"".join(b"<p>%s</p>" % line for line in lines),
    b".po": lambda lines: b"".join(
        b'msgid "%s"\nmsgstr ""\n\n' % line for line in dict.fromkeys(lines)
    ),
    b".xlf": lambda lines: XML % b"".join(UNIT % each for each in enumerate(lines)),
}


class Client:
    """Sends requests of random kinds, most of them on a connection that it keeps."""

    def __init__(self, server: Server, draw: random.Random, tally: Tally):
        self.server = server
        self.key = f"X-API-Key: {server.key}"
        self.draw = draw
        self.tally = tally
        self.connection: socket.socket | None = None

    async def once(self) -> None:
        kind = self.draw.choices([*WEIGHTS], [*WEIGHTS.values()])[0]
        await getattr(self, kind)()
        if self.draw.random() < 0.1:
            self.leave()

    def leave(self) -> None:
        if self.connection:
            self.connection.close()
        self.connection = None

    async def exchange(self, content: bytes, key: str | None = None) -> Answer | None:
        """The answer to a request. `key` is the line of its header."""
        self.connection = self.connection or await connect(self.server.port)
        first, _, rest = content.partition(b"\r\n")
        content = b"\r\n".join([first, (self.key if key is None else key).encode(), rest])
        answer = None
        try:
            async with asyncio.timeout(PATIENCE):
                await asyncio.get_running_loop().sock_sendall(self.connection, content)
                answer = await receive(self.connection)
        except (TimeoutError, ConnectionError):
            pass
        if answer is None or b"connection: close" in answer.head.lower():
            self.leave()
        return answer

    async def expect(
        self, status: int, content: bytes, outcome: str, key: str | None = None
    ) -> None:
        answer = await self.exchange(content, key)
        self.tally.check(
            answer and answer.status == status, outcome, f"{content[:150]!r}: {answer}"
        )

    async def translation(self) -> None:
        fields = {
            name: 1 for name in ("scores", "alignment", "alternatives") if self.draw.random() < 0.1
        }
        content, expected = self.server.ask(self.draw, self.draw.choice([1, 1, 1, 2, 8]), **fields)
        answer = await self.exchange(content)
        right = answer and answer.status == 200 and answer.json["translatedText"] == expected
        self.tally.check(right, "answered", f"{expected}: {answer}")

    async def html(self) -> None:
        text, translated = self.draw.choice([*self.server.expected.items()])
        number = self.draw.randrange(10**9)
        body = f'{{"q": "<i id={number}>{text}</i>", "source": "ka", "target": "zu", "format": "html"}}'.encode()
        answer = await self.exchange(post("/translate", body))
        right = (
            answer
            and answer.status == 200
            and answer.json["translatedText"] == f"<i id={number}>{translated}</i>"
        )
        self.tally.check(right, "answered", f"{body!r}: {answer}")

    async def file(self) -> None:
        texts = self.draw.choices([*self.server.expected], k=self.draw.randint(1, 9))
        suffix = self.draw.choice([*FILES])
        answer = await self.exchange(
            document(b"a" + suffix, FILES[suffix]([text.encode() for text in texts]))
        )
        if self.draw.random() < 0.8 and answer and answer.status == 200:
            address = answer.json["translatedFileUrl"].removeprefix("http://localhost")
            answer = await self.exchange(get(address), "X-A: a")
        right = answer is not None and answer.status == 200
        if answer and b"content-disposition" in answer.head.lower():
            right = right and all(
                self.server.expected[text].encode() in answer.body for text in texts
            )
        self.tally.check(right, "answered", f"{suffix!r} {texts}: {answer}")

    async def page(self) -> None:
        await self.expect(200, get(self.draw.choice(PAGES)), "answered")

    async def mistake(self) -> None:
        form = "application/x-www-form-urlencoded"
        status, content = self.draw.choice(
            [
                (400, post("/translate", b"{")),
                (400, post("/translate", DEEP)),
                (400, post("/translate", b'{"q": "ka", "source": "ka", "target": "xx"}')),
                (
                    400,
                    post(
                        "/translate",
                        b'{"q": "%s", "source": "ka", "target": "zu"}' % (b"ka " * 9000),
                    ),
                ),
                (400, post("/detect", b"q=%ff", kind=form)),
                (
                    400,
                    post(
                        "/attention", b'{"q": "%s", "source": "ka", "target": "zu"}' % (b"ka " * 99)
                    ),
                ),
                (
                    400,
                    post(
                        "/translate",
                        self.draw.randbytes(200),
                        kind="multipart/form-data; boundary=XX",
                    ),
                ),
                (400, document(b"a.xlf", b"<!DOCTYPE x [<!ENTITY a 'b'>]><xliff>&a;</xliff>")),
                (400, document(b"a.exe", self.draw.randbytes(2000))),
                (400, get("/health", "Content-Length: 1", "Content-Length: 2")),
                (413, get("/languages", "Content-Length: 99999999")),
                (404, get(f"/{self.draw.randrange(10**9)}")),
                (405, get("/translate")),
                (421, get("/health", host="evil.example")),
                (403, post("/translate", b"{}", "Origin: http://evil.example")),
                (431, get("/health", *[f"X-{i}: a" for i in range(100)])),
            ]
        )
        await self.expect(status, content, "refused")
        if status == 413:
            self.leave()  # its body never comes

    async def wrong_key(self) -> None:
        key = self.draw.choice(
            [
                "X-A: a",
                "X-API-Key: a",
                f"{self.key}a",
                f"Authorization: Bearer {self.draw.random()}",
            ]
        )
        content = self.server.ask(self.draw)[0]  # `/languages` is public
        await self.expect(401 if key == "X-A: a" else 403, content, "refused", key)

    async def broken(self) -> None:
        """Leave in the headers, in the body, or before the answer."""
        self.leave()
        content = self.draw.choice(
            [self.server.ask(self.draw, 20)[0], document(b"a.txt", b"ka lo\n" * 200)]
        )
        content = content.replace(b"\r\n", f"\r\n{self.key}\r\n".encode(), 1)
        with await connect(self.server.port) as connection:
            cut = self.draw.choice([len(content), self.draw.randrange(len(content))])
            await asyncio.get_running_loop().sock_sendall(connection, content[:cut])
            await asyncio.sleep(self.draw.choice([0, 0, 0.01]))
        self.tally.add("broken off")


async def endure(server: Server, tally: Tally, requests: int, minutes: float, seed: int) -> None:
    """Send the requests and compare the measurements."""
    clients = [Client(server, random.Random(f"{seed} {i}"), tally) for i in range(CLIENTS)]
    usages = list[dict[str, int]]()
    began = time.monotonic()

    async def part(client: Client) -> None:
        for _ in range(requests // CLIENTS // MEASUREMENTS):
            await client.once()
        client.leave()

    print(
        "| requests | minutes | resident KiB | open files | threads |\n| --- | --- | --- | --- | --- |"
    )
    while len(usages) < MEASUREMENTS and time.monotonic() - began < 60 * minutes:
        await asyncio.gather(*map(part, clients))
        await asyncio.sleep(1)  # until the server has closed the connections, too
        usages.append(server.usage())
        elapsed = (time.monotonic() - began) / 60
        print(
            f"| {tally.counts.total():,} | {elapsed:.1f} | {' | '.join(f'{x:,}' for x in usages[-1].values())} |",
            flush=True,
        )
    first = usages[MEASUREMENTS // 10 - 1]
    last = usages[-1]
    growth = last["KiB"] / first["KiB"] - 1
    tally.check(growth <= MAX_GROWTH, "", f"memory grew by {growth:.1%}")
    tally.check(
        last["files"] <= first["files"], "", f"open files: {first['files']}, then {last['files']}"
    )
    tally.check(
        last["threads"] <= MAX_THREADS,
        "",
        f"{last['threads']} threads, but only {MAX_THREADS} are needed",
    )
    del tally.counts[""]
    print(f"memory after the first tenth: {growth:+.1%}")


def main(*, requests: int = 200_000, minutes: float = 600, seed: int = 1) -> None:
    """Send the requests, or fewer if the minutes are over, and print the table."""
    tally = Tally("endurance")
    raise_file_limit()
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["XDG_CACHE_HOME"] = str(Path(temporary) / "own-cache")
        target = prepare(Path(temporary))
        with serving(target, tally, f"--keys={target.keys}", *OPTIONS) as server:
            asyncio.run(endure(server, tally, requests, minutes, seed))
    print(table([tally], ("answered", "refused", "broken off", "defect")))
    print(f"seed {seed}, {tally.counts.total():,} requests, {len(tally.defects)} defects")
    sys.exit(bool(tally.defects))


if __name__ == "__main__":
    run_script(main, __doc__)
