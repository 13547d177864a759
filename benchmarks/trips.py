"""The number of source files whose functions run in a task: a measure of how many files a reader must open.

    PYTHONPATH=src python benchmarks/trips.py [--files]

The script counts files under src/transduce with `sys.setprofile`. Imports don't count, since the bodies of modules and
classes are not functions.

    line      one line through `transduce translate` with the fast engine, from the command's function to its return
    server    POST /translate of one sentence, from the application to its answer, without the engine's thread
    document  a .po file with one text, from its bytes to the translated bytes; the model is loaded before
    update    one iteration of the training loop, from one optimizer step to the next; the minimum of all iterations

A model of a toy language is trained first. Each task runs twice, and only its second run is counted.
"""

import argparse
import asyncio
import contextlib
import inspect
import io
import json
import math
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from torch.optim.optimizer import register_optimizer_step_post_hook

import transduce
from transduce.training.run import train as run_training

ROOT = Path(transduce.__file__).parent
WORDS = {
    "ka": "zu",
    "lo": "fe",
    "mi": "ga",
    "nu": "po",
    "re": "wi",
    "so": "ya",
    "ti": "du",
    "va": "ce",
}
OPTIONS = {
    "data.vocab_size": 300,
    "data.max_tokens": 256,
    "data.holdout": 20,
    "data.source": "en",
    "data.target": "de",
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.d_model": 32,
    "model.d_ff": 64,
    "model.num_heads": 2,
    "train.steps": 150,
    "train.warmup": 50,
    "train.threads": 1,
}
PO = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "ka lo"\nmsgstr ""\n'
MAX_LOSS = 0.5  # accepted loss of a fast engine's score: the toy model has hardly learnt


@contextlib.contextmanager
def visited() -> Iterator[set[str]]:
    """Collect the files whose functions run in this thread inside the block."""
    files: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_flags & inspect.CO_OPTIMIZED
            and code.co_filename.startswith(str(ROOT))
        ):
            files.add(str(Path(code.co_filename).relative_to(ROOT)))

    sys.setprofile(note)
    try:
        yield files
    finally:
        sys.setprofile(None)


def second(task: Callable[[], object]) -> set[str]:
    """Run a task twice, and return the files of its second run."""
    task()
    with visited() as files:
        task()
    return files


def train(folder: Path) -> tuple[Path, set[str]]:
    """Train a model of the toy language; returns its folder and the files of an update."""
    choice = random.Random(0)
    sources = [" ".join(choice.choices(list(WORDS), k=choice.randint(2, 5))) for _ in range(300)]
    lines = [
        f"{source}\t{' '.join(WORDS[word] for word in reversed(source.split()))}\n"
        for source in sources
    ]
    (folder / "toy.tsv").write_text("".join(lines), encoding="utf-8")
    options = OPTIONS | {"data.corpora": [{"files": [str(folder / "toy.tsv")]}]}
    turns: list[set[str]] = []
    with visited() as files:

        def end_turn(*_: object) -> None:
            turns.append(set(files))
            files.clear()

        hook = register_optimizer_step_post_hook(end_turn)
        model = run_training(options, folder / "model").folder
        hook.remove()
    return model, min(turns[10:], key=len)


def translate_line(model: Path, folder: Path) -> Callable[[], None]:
    """The files of `transduce translate MODEL --input FILE`."""
    from transduce.commands.translate import translate

    (folder / "line.txt").write_text("ka lo\n", encoding="utf-8")

    def run() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            translate(model, input=str(folder / "line.txt"))

    return run


def translate_po(model: Path) -> Callable[[], object]:
    """The files that translating a .po file with one text visits."""
    try:
        from transduce.wings.documents.document import translate_document
    except ImportError:  # before documents were a wing
        from transduce.decoding.documents import translate_document
    translator = transduce.load(model)
    return lambda: translate_document(translator, PO.encode(), "toy.po", "en", "de")


def request(model: Path) -> set[str]:
    """Send POST /translate to the application, as an ASGI server does."""
    try:
        from transduce.wings.serving import api, command
        from transduce.wings.serving.keys import Keys
        from transduce.wings.serving.limits import Limits

        served: Any = command._store([("model", model)], "auto", math.inf)
        served.load_all()
    except ImportError:
        from transduce.serving import api
        from transduce.serving.keys import Keys
        from transduce.serving.languages import by_direction
        from transduce.serving.limits import Limits

        from transduce.commands import serve as command

        served = by_direction([command._load(model, "auto")])
    app: Any = api.application(served, Keys({}), Limits(), local=True)
    body = json.dumps({"q": "ka lo", "source": "en", "target": "de"}).encode()
    headers = {
        "host": "localhost",
        "content-type": "application/json",
        "content-length": str(len(body)),
    }
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "path": "/translate",
        "raw_path": b"/translate",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }

    async def post() -> None:
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            message = next(messages, None)
            return message if message else await asyncio.Event().wait()  # type: ignore[return-value]

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await app({**scope, "state": {}}, receive, send)
        assert sent[0]["status"] == 200, sent

    async def both() -> set[str]:
        events: asyncio.Queue[dict[str, str]] = asyncio.Queue()
        started = asyncio.Event()

        async def send(_: object) -> None:
            started.set()

        lifespan = asyncio.create_task(app({"type": "lifespan", "state": {}}, events.get, send))
        await events.put({"type": "lifespan.startup"})
        await started.wait()
        await post()
        with visited() as files:
            await post()
        await events.put({"type": "lifespan.shutdown"})
        await lifespan
        return files

    return asyncio.run(both())


def allow_worse_engines() -> None:
    """Accept the toy model's fast engine although its quality is lower: the model has hardly learnt."""
    from transduce.wings.ct2 import engine

    engine.MAX_SCORE_LOSS = MAX_LOSS


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", action="store_true", help="list the files, too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        model, update = train(folder)
        allow_worse_engines()
        trips = {
            "line": second(translate_line(model, folder)),
            "server": request(model),
            "document": second(translate_po(model)),
            "update": update,
        }
    for task, files in trips.items():
        print(f"{task:10} {len(files):3} files")
        if arguments.files:
            print("".join(f"    {file}\n" for file in sorted(files)), end="")


if __name__ == "__main__":
    main()
