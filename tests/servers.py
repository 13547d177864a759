"""Servers for the tests: a process of `transduce serve`, and the same application around an engine that can be held."""

import contextlib
import json
import math
import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corpora import write_texts
from forked import COMMAND, Forked
from transduce import cli
from transduce.config.schema import DecodeConfig
from transduce.decoding.types import Feature, Hypothesis, NBestLists, Request
from transduce.system.errors import UserError
from waiting import PATIENCE

if TYPE_CHECKING:
    from transduce.decoding.translator import Translator
    from transduce.wings.serving.store import ModelStore

TRAINING = [
    "data.vocab_size=300",
    "data.max_tokens=256",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "model.d_model=32",
    "model.d_ff=64",
    "model.num_heads=2",
    "train.warmup=60",
    "train.learning_rate=1.0",
    "train.threads=1",
    "train.steps=150",
    "train.save_every=150",
    "train.validate_every=150",
    # What so few pairs get by default is for more updates.
    "train.precision=float32",
    "model.dropout=0.1",
    "train.label_smoothing=0.1",
    "train.word_dropout=0",
    "train.ema=0",
    "train.select_by=perplexity",
    "train.cooldown=0",
    "decode.max_extra_tokens=6",
]


def train(folder: Path) -> Path:
    """A small model of the toy language, ka -> zu."""
    files, valid = write_texts(folder, "train", 300, 0), write_texts(folder, "valid", 20, 1)
    corpus = ["--train", *files, "--valid", *valid, "--from", "ka", "--to", "zu"]
    cli.main(["train", *corpus, "--out", str(folder / "model"), *TRAINING])
    return folder / "model"


class Answer(NamedTuple):
    """What a server says."""

    status: int
    headers: dict[str, str]  # by names in lower case
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The sentence, if it is one."""
        assert self.headers["content-type"] == "application/json", self
        (sentence,) = self.json.values()
        assert list(self.json) == ["error"] and sentence.endswith("."), sentence
        return sentence


def request(
    method: str, path: str, body: bytes | None = None, kind: str = "", **headers: str
) -> bytes:
    """As it goes over the wire."""
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    lines += [f"Content-Type: {kind}"] if kind else []
    lines += [f"Content-Length: {len(body)}"] if body is not None else []
    return "\r\n".join([*lines, "", ""]).encode() + (body or b"")


@dataclass
class Server:
    """A process that serves."""

    process: Forked
    port: int
    log: Path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def send(self, content: bytes) -> Answer:
        """The answer to these bytes."""
        with self.connect() as connection:
            connection.sendall(content)
            return receive(connection)

    def get(self, path: str, **headers: str) -> Answer:
        return self.send(request("GET", path, **headers))

    def post(self, path: str, fields: object, **headers: str) -> Answer:
        """The fields are sent as JSON."""
        return self.send(
            request("POST", path, json.dumps(fields).encode(), "application/json", **headers)
        )


def receive(connection: socket.socket) -> Answer:
    """One answer. Without a length (as uvicorn's to a malformed request), its body lasts until the connection ends."""
    content, length = b"", None
    while length is None or len(content) < length:
        some = connection.recv(65536)
        if not some and length == math.inf:
            break
        if not some:
            raise ConnectionError(f"the answer ends after {content[:200]!r}")
        content += some
        if length is None and b"\r\n\r\n" in content:
            head, _, content = content.partition(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines)
            }
            length = int(headers["content-length"]) if "content-length" in headers else math.inf
    return Answer(int(first.split()[1]), headers, content)


def is_closed(connection: socket.socket, seconds: float = PATIENCE) -> bool:
    """Whether the server ends it before so many seconds are over; what it says before is thrown away."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        connection.settimeout(left)
        try:
            if not connection.recv(65536):
                return True
        except TimeoutError:
            return False
        except ConnectionError:
            return True
    return False


@contextlib.contextmanager
def serving(model: Path, log: Path, *options: str, script: str = COMMAND) -> Iterator[Server]:
    """A server of a model at a free port; it is ended with the block, if it still is there."""
    process = Forked(script, "serve", model, "--port", 0, "--engine", "torch", *options, log=log)
    try:
        while not (found := re.search(r"Listening on http://[^ ]*:(\d+)/", process.said)):
            assert process.poll() is None, process.said
            time.sleep(0.05)
        server = Server(process, int(found[1]), log)
        server.get("/health")  # it listens before it answers
        yield server
    finally:
        process.terminate()
        process.wait(PATIENCE)


def store_of(*translators: "Translator") -> "ModelStore":
    """A store with a model for each translator, in memory."""
    from transduce.wings.serving.models import Model, State
    from transduce.wings.serving.store import ModelStore

    folders = {Path(f"/nowhere/{i}"): each for i, each in enumerate(translators)}
    models = [
        Model(
            folder.name,
            folder,
            each.directions,
            each.scores,
            each.weight_bytes,
            State(folder, ""),
        )
        for folder, each in folders.items()
    ]
    store = ModelStore(models, folders.__getitem__)
    store.load_all()
    return store


@dataclass
class Echo:
    """An engine whose translation is the source. It refuses `ti ti`, and works on while `gate` is open."""

    gate: threading.Event = field(default_factory=threading.Event)
    began: threading.Event = field(default_factory=threading.Event)
    searched: list[list[str]] = field(default_factory=list)  # batch by batch
    name = "echo"
    weight_bytes = 1
    max_positions: int | None = None
    supports: frozenset[Feature] = frozenset({"constraints", "positions"})

    def budget(self, config: DecodeConfig, total: int) -> int:  # noqa: ARG002
        return total + 1000

    def search(
        self,
        requests: Sequence[Request],
        config: DecodeConfig,  # noqa: ARG002
        n_best: int,
    ) -> Iterator[NBestLists]:
        self.began.set()
        assert self.gate.wait(PATIENCE)
        for each in requests:
            self.searched.append(each.texts)
            if "ti ti" in each.texts:
                raise UserError("ti ti can't be translated.")
            yield [[Hypothesis(-1.0, source)] * n_best for source in each.sources]

    def log_probs(
        self,
        sources: Sequence[Sequence[int]],  # noqa: ARG002
        targets: Sequence[Sequence[int]],
    ) -> list[list[float]]:
        return [[-0.5] * (len(target) + 1) for target in targets]

    def attention(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> list[Any]:
        raise NotImplementedError
