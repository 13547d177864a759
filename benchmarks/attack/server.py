"""Attacks the server from the network.

    python benchmarks/attack/server.py [--minutes 10] [--seed 1] [--only slow,keys]

Trains a small model of a toy language. Then each attack in turn starts `transduce serve` in a process of its own and
attacks it, with random choices, until the minutes are over. The outcomes are
  answered   a request succeeded, with the translation of its own sentences
  refused    the server refused a request with the status that it should have
  ended      the server ended a connection that was too slow, or that asked only after SIGTERM
  defect     anything else: no answer, the answer to another request, another status, a connection that never ends, a
             header of the client's making, a connection of the server to somewhere else, a traceback, or no exit
The table counts the outcomes. All defects are listed. The exit status is 1 if there are any.
"""

import argparse
import asyncio
import contextlib
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import hostile
from wire import (
    PATIENCE,
    Answer,
    Server,
    Tally,
    connect,
    ended,
    get,
    post,
    prepare,
    raise_file_limit,
    receive,
    send,
    serving,
    table,
)

OUTCOMES = ("answered", "refused", "ended", "defect")
Attack = Callable[[Server, random.Random, Tally], Coroutine[Any, Any, None]]
SLOW_SECONDS, OVERLOAD_SECONDS, CONNECTIONS = 3, 10, 2_000
QUICK = tuple(f"--limit=limits.{name}_seconds={SLOW_SECONDS}" for name in ("body", "answer"))


def right(answer: Answer | None, expected: list[str]) -> bool:
    return answer is not None and answer.status == 200 and answer.json["translatedText"] == expected


async def translate(
    server: Server, draw: random.Random, tally: Tally, size: int = 1, *busy: int
) -> None:
    """Send a request for translations. It must be right, or refused with one of the statuses `busy`."""
    content, expected = server.ask(draw, size)
    answer = await send(server.port, content)
    if answer is not None and answer.status in busy:
        tally.add("refused")
    else:
        tally.check(right(answer, expected), "answered", f"{expected}: {answer}")


async def overload(server: Server, draw: random.Random, tally: Tally) -> None:
    """Ten times as many requests as the server can answer. Each has 8 sentences, so that the clients are faster."""
    began = time.monotonic()
    before = tally.counts["answered"]

    async def loop() -> None:
        while time.monotonic() - began < 5:
            await translate(server, draw, tally, 8)

    await asyncio.gather(*(loop() for _ in range(16)))
    rate = 10 * (tally.counts["answered"] - before) / (time.monotonic() - began)
    began = time.monotonic()
    tasks = list[asyncio.Task[None]]()
    while (now := time.monotonic() - began) < OVERLOAD_SECONDS:
        while len(tasks) < now * rate:
            tasks.append(asyncio.create_task(translate(server, draw, tally, 8, 503, 429)))
        await asyncio.sleep(0.005)
    await asyncio.gather(*tasks)


async def slow(server: Server, draw: random.Random, tally: Tally) -> None:
    """Clients that send bodies slowly, do not read, or close half of their connection. Others must be served meanwhile.

    Clients that send headers slowly, send nothing or read slowly are the business of a proxy.
    """
    loop = asyncio.get_running_loop()

    async def drip(connection: socket.socket, content: bytes) -> None:
        while True:
            await loop.sock_sendall(connection, content)
            content = b"a"
            await asyncio.sleep(0.3)

    async def flood(connection: socket.socket) -> None:
        while True:
            await loop.sock_sendall(connection, get("/page.js"))

    async def halve(connection: socket.socket) -> None:
        content = server.ask(draw)[0]
        await loop.sock_sendall(
            connection, content[: draw.choice([len(content), draw.randrange(len(content))])]
        )
        connection.shutdown(socket.SHUT_WR)
        await ended(connection)

    chunked = b"Transfer-Encoding: chunked"

    kinds: list[Callable[[socket.socket], Coroutine[Any, Any, object]]] = [
        lambda connection: drip(connection, post("/detect", b"a" * 999999)[:200]),
        lambda connection: drip(
            connection, post("/translate", b"").replace(b"Content-Length: 0", chunked)
        ),
        flood,
        halve,
    ]

    async def client(kind: int) -> None:
        with await connect(server.port) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            with contextlib.suppress(OSError):
                async with asyncio.timeout(PATIENCE):
                    await kinds[kind](connection)

    async def watched(kind: int) -> None:
        began = time.monotonic()
        await client(kind)
        tally.check(
            time.monotonic() - began < PATIENCE, "ended", f"slow client {kind} is never sent away"
        )

    tasks = [asyncio.create_task(watched(kind)) for kind in range(len(kinds)) for _ in range(40)]
    while not all(task.done() for task in tasks):
        await translate(server, draw, tally)
    await asyncio.gather(*tasks)


async def connections(server: Server, draw: random.Random, tally: Tally) -> None:
    """2,000 open connections, which are too many. The server must answer on each, and recover afterwards."""
    loop = asyncio.get_running_loop()

    async def client(connection: socket.socket) -> None:
        answer = None
        with contextlib.suppress(OSError):
            async with asyncio.timeout(PATIENCE):
                # The server may have refused the connection already.
                with contextlib.suppress(ConnectionError):
                    await loop.sock_sendall(connection, get("/health"))
                answer = await receive(connection)
        status = answer and answer.status
        tally.check(
            status in (200, 503),
            "answered" if status == 200 else "refused",
            f"connection: {answer}",
        )

    await translate(server, draw, tally)
    idle = server.usage()["files"]
    with contextlib.ExitStack() as stack:
        open_ones = list[socket.socket]()
        while len(open_ones) < CONNECTIONS:
            more = await asyncio.gather(*(connect(server.port) for _ in range(500)))
            open_ones += map(stack.enter_context, more)
        await asyncio.gather(*map(client, open_ones))
    until = time.monotonic() + PATIENCE
    while server.usage()["files"] > idle and time.monotonic() < until:
        await asyncio.sleep(0.1)
    files = server.usage()["files"]
    tally.check(
        files <= idle, "ended", f"open files: {idle} before the connections, {files} after them"
    )
    await translate(server, draw, tally)


async def sigterm(server: Server, draw: random.Random, tally: Tally) -> None:
    """SIGTERM under load. Each request that was sent before the signal must be answered."""
    loop = asyncio.get_running_loop()
    is_signalled = False
    answered = 0

    async def client(connection: socket.socket, is_kept: bool) -> None:
        nonlocal answered
        with connection:
            while not is_signalled:
                if not is_kept:
                    connection.close()
                    connection = await connect(server.port)
                content, expected = server.ask(draw)
                await loop.sock_sendall(connection, content)
                was_before = not is_signalled
                answer = await receive(connection)
                answered += 1
                fine = (
                    right(answer, expected)
                    or (answer and answer.status == 503)
                    or not (answer or was_before)
                )
                outcome = (
                    "ended" if answer is None else "answered" if answer.status == 200 else "refused"
                )
                tally.check(
                    fine,
                    outcome,
                    f"sent {'before' if was_before else 'after'} SIGTERM: {expected}, {answer}",
                )

    count = draw.choice([20, 100, 400])
    open_ones = [(await connect(server.port), draw.random() < 0.5) for _ in range(count)]
    tasks = [asyncio.create_task(client(*each)) for each in open_ones]
    while answered < 2 * count:
        await asyncio.sleep(draw.random() / 10)
    server.process.send_signal(signal.SIGTERM)
    is_signalled = True
    for done in await asyncio.gather(*tasks, return_exceptions=True):
        tally.check(done is None or isinstance(done, ConnectionError), "ended", repr(done))
    tally.check(await asyncio.to_thread(server.process.wait, PATIENCE) == 0, "ended", "exit status")


async def replacement(server: Server, draw: random.Random, tally: Tally) -> None:
    """The model's folder is replaced by a copy with another manifest, three times, while 64 clients translate."""
    is_over = False
    sentence = "requests now use the new version"

    async def client() -> None:
        while not is_over:
            await translate(server, draw, tally, 4)

    def switches() -> int:
        return " ".join(server.log.read_text("utf-8").split()).count(sentence)

    tasks = [asyncio.create_task(client()) for _ in range(64)]
    for count in range(3):
        new, old = (
            server.model.with_name(f"{name}-{draw.getrandbits(40):x}") for name in ("new", "old")
        )
        await asyncio.to_thread(shutil.copytree, server.model, new)
        with (new / "manifest.json").open("a") as manifest:
            manifest.write("\n")
        server.model.rename(old)
        new.rename(server.model)
        end = time.monotonic() + PATIENCE
        while switches() <= count and time.monotonic() < end:
            await asyncio.sleep(0.1)
        tally.check(
            switches() == count + 1,
            "ended",
            f"replacement {count} was not used: {server.log.read_text()}",
        )
    is_over = True
    await asyncio.gather(*tasks)


ATTACKS: dict[str, tuple[Attack, tuple[str, ...]]] = {  # functions, and options of their servers
    "overload": (overload, ("--limit=limits.wait=5",)),
    "slow": (slow, QUICK),
    "connections": (connections, ()),
    "injection": (hostile.injection, QUICK),
    "smuggling": (hostile.smuggling, QUICK),
    "rebinding": (hostile.rebinding, ()),
    "cross-site": (hostile.cross_site, ()),
    "entities": (hostile.entities, ()),
    "keys": (hostile.keys, ("--keys=KEYS",)),
    "sigterm": (sigterm, ()),
    "replacement": (replacement, ()),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=10, help="every attack runs at least once")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(ATTACKS), help="names of attacks")
    arguments = parser.parse_args()
    raise_file_limit()
    tallies = [Tally(name) for name in arguments.only.split(",")]
    draw = random.Random(arguments.seed)
    end = time.monotonic() + 60 * arguments.minutes
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["XDG_CACHE_HOME"] = str(Path(temporary) / "own-cache")
        target = prepare(Path(temporary))
        runs = 0
        while runs < len(tallies) or time.monotonic() < end:
            tally = tallies[runs % len(tallies)]
            attack, options = ATTACKS[tally.name]
            with serving(
                target, tally, *(each.replace("KEYS", str(target.keys)) for each in options)
            ) as server:
                asyncio.run(attack(server, draw, tally))
            runs += 1
            print(f"{tally.name}: {dict(tally.counts)}", flush=True)
    print(table(tallies, OUTCOMES))
    defects = sum(len(tally.defects) for tally in tallies)
    print(f"seed {arguments.seed}, {runs} attacks, {defects} defects")
    sys.exit(bool(defects))


if __name__ == "__main__":
    main()
