"""A server of a toy model in a process, and clients that write bytes to it: for the attacks on the server."""

import asyncio
import contextlib
import json
import random
import re
import resource
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from toy import TINY, WORDS, command, write_corpus

LEARNS = (
    "model.d_model=32",
    "model.d_ff=64",
    "train.steps=400",
    "train.warmup=60",
    "train.validate_every=200",
)
NO_NOISE = (
    "model.dropout=0",
    "train.label_smoothing=0",
    "train.word_dropout=0",
    "train.ema=0",
    "train.cooldown=0",
)
PATIENCE = 120.0  # seconds; a request that has no answer until then is lost
SIZE = re.compile(rb"^content-length: *(\d+)\r?$", re.IGNORECASE | re.MULTILINE)


class Answer(NamedTuple):
    status: int
    head: bytes
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Tally:
    """The outcomes of an attack."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)

    def add(self, outcome: str) -> None:
        self.counts[outcome] += 1

    def check(self, right: object, outcome: str, what: object) -> None:
        """Count an outcome, or a defect if it is not right."""
        self.add(outcome if right else "defect")
        if not right:
            self.defects.append(f"{self.name}: {what}"[:500])
            print(f"defect: {self.defects[-1]}", flush=True)


class Target(NamedTuple):
    """What a server is started with."""

    model: Path
    expected: dict[str, str]  # sentences and their translations, which all differ
    keys: Path  # a file with the hash of `key`
    key: str


@dataclass
class Server:
    process: subprocess.Popen[bytes]
    port: int
    expected: dict[str, str]
    key: str
    model: Path
    log: Path

    def ask(self, draw: random.Random, size: int = 1, **fields: object) -> tuple[bytes, list[str]]:
        """A request to translate random sentences, and the right answer. Blanks at its end tell it from all others."""
        sentences = draw.choices([*self.expected], k=size)
        mark = "".join(draw.choices(" \t\n", k=40))
        body = json.dumps(
            {"q": [*sentences, mark], "source": "ka", "target": "zu", **fields}
        ).encode()
        return post("/translate", body), [*(self.expected[each] for each in sentences), mark]

    def usage(self) -> dict[str, int]:
        """The process's resident memory in KiB, its open files and its threads."""
        place = Path(f"/proc/{self.process.pid}")
        lines = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
        files = len([*(place / "fd").iterdir()])
        return {
            "KiB": int(lines["VmRSS"].split()[0]),
            "files": files,
            "threads": int(lines["Threads"]),
        }


def prepare(place: Path) -> Target:
    """Train a model of the toy language, and make a key."""
    import transduce

    source, target = write_corpus(place)
    corpus = ("--train", source, target, "--from", "ka", "--to", "zu", "data.holdout=50")
    command("train", *corpus, "--out", place / "model", *TINY, *LEARNS, *NO_NOISE)
    draw = random.Random(0)
    texts = [" ".join(draw.choices([*WORDS], k=draw.randint(2, 6))) for _ in range(400)]
    translations = transduce.load(place / "model", engine="torch").translate(texts)
    found = {each.text: text for text, each in zip(texts, translations, strict=True)}
    key = command("serve", "--new-key", "attack", "--keys", place / "keys").strip()
    return Target(
        place / "model",
        {text: translated for translated, text in found.items()},
        place / "keys",
        key,
    )


@contextlib.contextmanager
def serving(target: Target, tally: Tally, *options: str) -> Iterator[Server]:
    """A server at a free port. It must end with status 0 and without a traceback."""
    log = target.model.with_name("server.log")
    start = [
        sys.executable,
        "-m",
        "transduce",
        "serve",
        str(target.model),
        "--port",
        "0",
        "--engine",
        "torch",
    ]
    with (
        log.open("wb") as out,
        subprocess.Popen([*start, *options], stdout=out, stderr=out) as process,
    ):
        try:
            while not (
                found := re.search(r"Listening on http://[^ ]*:(\d+)/", log.read_text("utf-8"))
            ):
                if process.poll() is not None:
                    raise SystemExit(log.read_text("utf-8"))
                time.sleep(0.1)
            yield Server(process, int(found[1]), target.expected, target.key, target.model, log)
        finally:
            process.terminate()
    said = log.read_text("utf-8")
    tally.check(
        process.returncode == 0 and "Traceback" not in said,
        "",
        f"status {process.returncode}: {said[-300:]}",
    )
    del tally.counts[""]


def raise_file_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def post(
    path: str, body: bytes, *lines: str, kind: str = "application/json", host: str = "localhost"
) -> bytes:
    """A POST request. `lines` are further headers."""
    head = [
        f"POST {path} HTTP/1.1",
        f"Host: {host}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        *lines,
    ]
    return "\r\n".join([*head, "", ""]).encode("latin-1", "replace") + body


def get(path: str, *lines: str, host: str = "localhost") -> bytes:
    return "\r\n".join([f"GET {path} HTTP/1.1", f"Host: {host}", *lines, "", ""]).encode(
        "latin-1", "replace"
    )


def document(name: bytes, content: bytes, *lines: str) -> bytes:
    """An upload of a document."""
    parts = [
        (b'name="source"', b"ka"),
        (b'name="target"', b"zu"),
        (b'name="file"; filename="%s"' % name, content),
    ]
    body = b"".join(
        b"--XX\r\nContent-Disposition: form-data; %s\r\n\r\n%s\r\n" % part for part in parts
    )
    return post(
        "/translate_file", body + b"--XX--\r\n", *lines, kind="multipart/form-data; boundary=XX"
    )


async def connect(port: int) -> socket.socket:
    """A connection without a buffer on our side, so that the attack decides when it reads."""
    made = socket.socket()
    made.setblocking(False)
    await asyncio.get_running_loop().sock_connect(made, ("127.0.0.1", port))
    return made


async def receive(connection: socket.socket) -> Answer | None:
    """One answer, or None if the connection ends before or in it."""
    loop = asyncio.get_running_loop()
    content = b""
    with contextlib.suppress(ConnectionError):
        while b"\r\n\r\n" not in content:
            if not (some := await loop.sock_recv(connection, 65536)):
                return None
            content += some
        head, _, body = content.partition(b"\r\n\r\n")
        size = SIZE.search(head)
        while size and len(body) < int(size[1]):
            if not (some := await loop.sock_recv(connection, 65536)):
                return None
            body += some
        return Answer(int(head.split()[1]), head, body)
    return None


async def ended(connection: socket.socket) -> bytes:
    """All that the server sends until it ends the connection."""
    content = b""
    with contextlib.suppress(ConnectionError):
        while some := await asyncio.get_running_loop().sock_recv(connection, 65536):
            content += some
    return content


async def send(port: int, content: bytes) -> Answer | None:
    """The answer to a request on a connection of its own. None: there is none."""
    with contextlib.suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(PATIENCE):
            with await connect(port) as connection:
                with contextlib.suppress(ConnectionError):  # an answer may come before all is sent
                    await asyncio.get_running_loop().sock_sendall(connection, content)
                return await receive(connection)
    return None


def table(tallies: Iterable[Tally], outcomes: Iterable[str]) -> str:
    """A Markdown table of the outcomes."""
    lines = [f"| attack | {' | '.join(outcomes)} |", f"| --- |{' --- |' * len([*outcomes])}"]
    return "\n".join(
        [
            *lines,
            *(
                f"| {t.name} | {' | '.join(f'{t.counts[each]:,}' for each in outcomes)} |"
                for t in tallies
            ),
        ]
    )
