"""Asks a server with a translation memory with two keys at the same time: no key may see what the other has written.

    python benchmarks/attack/memory_leaks.py [--requests 10000] [--clients 16] [--seed 1]

Clients of both keys translate the same texts, while accepted corrections of these texts arrive for either key, so that
each text soon has an exact or a similar correction of both. Each key's corrections hold a word that only this key uses.
A leak is an answer with the other key's word in its translation or in a match. Prints the numbers of requests,
corrections, and answers in which the key saw its own word; fails if one leaks.
"""

import json
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from script import run_script

sys.path.append(str(Path(__file__).parents[2] / "tests"))

from corpora import reverse_texts
from models import make_model
from transduce.wings.memories.database import Database, Unit

OWNERS = {"anna": "annawort", "bert": "bertwort"}
SHARE_OF_CORRECTIONS = 0.05


class Client:
    """A client with a key."""

    def __init__(self, port: int, owner: str, key: str) -> None:
        self.address = f"http://127.0.0.1:{port}"
        self.owner = owner
        self.key = key

    def send(self, path: str, **fields: str) -> dict[str, object]:
        body = json.dumps(fields | {"source": "en", "target": "de", "api_key": self.key}).encode()
        request = urllib.request.Request(f"{self.address}/{path}", body)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            found: dict[str, object] = json.load(answer)
        return found


def new_key(owner: str, file: Path) -> str:
    command = [sys.executable, "-m", "transduce", "serve", "--new-key", owner, "--keys", str(file)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.findall(r"\S{20,}", printed)[-1]


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def ask(client: Client, memory: Database, texts: list[str], seed: int) -> Counter[str]:
    """One correction or one request; what the answer shows."""
    draw = random.Random(seed)
    text = draw.choice(texts)
    own = OWNERS[client.owner]
    if draw.random() < SHARE_OF_CORRECTIONS:
        words = text.split()
        words.insert(draw.randrange(len(words) + 1), own)
        unit = Unit(text, " ".join(words), "correction")
        return Counter({"corrections": memory.add([unit], "en-de", client.owner)})
    shown = json.dumps(client.send("translate", q=text))
    counted = Counter({"requests": 1, "own word": own in shown})
    counted["leaks"] += any(word in shown for word in OWNERS.values() if word != own)
    return counted


def main(*, requests: int = 10_000, clients: int = 16, seed: int = 1) -> None:
    """Start the server, send the requests, and print the counts."""
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        model = make_model(place / "model", {})
        keys = {owner: new_key(owner, place / "keys.tsv") for owner in OWNERS}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [sys.executable, "-m", "transduce", "serve", str(model), "--port", str(port)]
        command += ["--memory", str(place / "memory.sqlite"), "--keys", str(place / "keys.tsv")]
        command += ["--limit", "limits.per_key=1000000", "--limit", "limits.per_address=1000000"]
        with subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}) as process:
            try:
                while not is_ready(port):
                    assert process.poll() is None, "the server has not started"
                    time.sleep(0.2)
                asking = [Client(port, owner, key) for owner, key in keys.items()]
                texts = reverse_texts(60, seed)[0]
                memory = Database(place / "memory.sqlite")
                with ThreadPoolExecutor(clients) as threads:
                    answers = threads.map(
                        lambda number: ask(
                            asking[number % 2], memory, texts, seed * requests + number
                        ),
                        range(requests),
                    )
                    found = sum(answers, Counter[str]())
            finally:
                process.terminate()
    print(", ".join(f"{name}: {number:,}" for name, number in sorted(found.items())))
    print(f"leaks: {found['leaks']}")
    sys.exit(1 if found["leaks"] or not found["own word"] else 0)


if __name__ == "__main__":
    run_script(main, __doc__)
