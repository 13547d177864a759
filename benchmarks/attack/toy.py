"""A toy language, a tiny model of it, and commands that run in this process: for the attacks in this folder."""

import contextlib
import hashlib
import io
import os
import random
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from transduce.commands.translate import Call, LineFormat
from transduce.decoding.translator import Translator
from transduce.system.errors import UserError

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
TINY = [
    "data.vocab_size=300",
    "data.max_tokens=256",
    "model.num_encoder_layers=1",
    "model.num_decoder_layers=1",
    "model.d_model=16",
    "model.d_ff=32",
    "model.num_heads=2",
    "train.threads=1",
    "train.precision=float32",
    "train.learning_rate=1",
    "train.warmup=10",
    "train.save_every=20",
    "train.validate_every=20",
]
PLAIN_LINES = LineFormat()


def write_corpus(place: Path, pairs: int = 400) -> tuple[Path, Path]:
    """Write a parallel corpus of the toy language. Returns its two files."""
    draw = random.Random(0)
    source = place / "train.ka"
    target = place / "train.zu"
    lines = [draw.choices([*WORDS], k=draw.randint(2, 6)) for _ in range(pairs)]
    source.write_text("".join(f"{' '.join(line)}\n" for line in lines), encoding="utf-8")
    target.write_text(
        "".join(f"{' '.join(WORDS[word] for word in line)}\n" for line in lines), encoding="utf-8"
    )
    return source, target


def command(*arguments: object) -> str:
    """Run a command of transduce in this process. Returns its standard output."""
    from transduce import cli

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        cli.main([*map(str, arguments)])
    return out.getvalue()


TIMED = {
    "manifest.json",
    "metrics.json",
    "run.json",
    "journal.jsonl",
    "README.md",
    ".translations.jsonl",
}
SECONDS = re.compile(rb'"(seconds|journal_size)": [-+.e0-9]+')  # a resumed run writes more lines


def content(*files: Path) -> str:
    """The hash of the content of files and folders, without durations and the files that hold times or hashes."""
    paths = [
        path for file in files for path in (sorted(file.rglob("*")) if file.is_dir() else [file])
    ]
    parts = [
        SECONDS.sub(b"", path.read_bytes())
        for path in paths
        if path.is_file() and path.name not in TIMED
    ]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


@contextlib.contextmanager
def cache(folder: Path) -> Iterator[None]:
    """Let a folder be the user's cache."""
    before = os.environ["XDG_CACHE_HOME"]
    os.environ["XDG_CACHE_HOME"] = str(folder)
    try:
        yield
    finally:
        os.environ["XDG_CACHE_HOME"] = before


@dataclass(frozen=True)
class LoadedCall(Call):
    """The arguments of `transduce translate`, with a model that is loaded already."""

    loaded: Translator

    @contextlib.contextmanager
    def translator(self) -> Iterator[Translator]:
        yield self.loaded


def loaded_call(
    loaded: Translator,
    folder: Path,
    file: Path,
    output: Path,
    form: LineFormat = PLAIN_LINES,
    *,
    redo: bool = False,
) -> LoadedCall:
    """A call of `transduce translate` for one file. `folder` is the model's."""
    return LoadedCall(
        models=(folder,),
        input=str(file),
        output=output,
        options={},
        engine="auto",
        format=form,
        glossary=None,
        memory="",
        redo=redo,
        profile=False,
        shard="",
        on="",
        workers=None,
        direction=("", ""),
        texts=(),
        needs_review=False,
        plain=False,
        prefixes=None,
        suffixes=None,
        loaded=loaded,
    )


def attempt(run: Callable[[Any], None], call: LoadedCall, seconds: int) -> str | None:
    """Run a command's function. Returns the message if the command refuses its input.

    Raises TimeoutError after `seconds` of computing, and AssertionError if the message is no sentence or if a refused
    input leaves an output.
    """

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"no result after {seconds} s of computing")

    signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        with contextlib.redirect_stderr(io.StringIO()):
            run(call)
    except UserError as error:
        assert "\n" not in str(error) and str(error).endswith((".", "?")), f"no sentence: {error}"
        assert not call.output.exists(), f"an output beside the message {error}"
        return str(error)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


def report(
    title: str,
    names: Iterable[str],
    outcomes: Sequence[str],
    counts: Counter[tuple[str, str]],
    defects: Sequence[str],
) -> NoReturn:
    """Print the table of the outcomes. The exit status is 1 if there are defects."""
    print(f"| {title} | {' | '.join(outcomes)} |\n| --- |{' --- |' * (len(outcomes) + 1)}")
    for name in names:
        row = [counts[name, each] for each in outcomes]
        print(f"| {name} | {sum(row):,} | {' | '.join(f'{n:,}' for n in row)} |")
    print(f"{counts.total():,} cases, {len(defects)} defects")
    sys.exit(bool(defects))
