"""Inputs that fuzzing has kept: formats in small, and what once failed. benchmarks/attack/fuzz.py finds others."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
pytest.importorskip("sentencex", reason="pip install 'transduce[documents]'")

from fuzz_targets import TARGETS

from transduce.system.errors import UserError

INPUTS = Path(__file__).parents[1] / "benchmarks" / "attack" / "inputs"
KEPT = [path.relative_to(INPUTS).as_posix() for path in sorted(INPUTS.rglob("*")) if path.is_file()]
UNIT = "<tmx><body><tu><tuv lang='en'><seg>a{}</seg></tuv><tuv lang='de'><seg>b</seg></tuv></tu></body></tmx>"
LARGE: dict[str, tuple[str, Callable[[], str]]] = {  # what once took quadratic time or a deep stack
    "nested tags": ("markup", lambda: f"a {'<b>' * 1100}x{'</b>' * 1100}"),
    "blanks in a sentence": ("sentences", lambda: f"en\n=====\na{' ' * 2_000_000}b."),
    "lines of a cue": ("srt", lambda: "00:00:01,000 --> 00:00:02,000\n" + "Hello\n" * 100_000),
    "nested formatting": ("tmx", lambda: UNIT.format("<it>" * 30_000 + "x" + "</it>" * 30_000)),
    "quotation marks of a message": ("ftl", lambda: "a = " + '\\"' * 200_000),
    "open strings of a message": ("ftl", lambda: "a = { " + '"\\' * 200_000),
    "styles of a subtitle": (
        "ass",
        lambda: f"[Events]\nFormat: Text\nDialogue: {'{a' * 20_000}" + "{b} " * 20_000 + "c",
    ),
    "tags of a sentence": ("html", lambda: "<p>" + "word " * 100 + "<wbr>" * 20_000),
}


@pytest.mark.parametrize("name", KEPT)
def test_kept_inputs_give_a_value_or_an_error_message(name: str) -> None:
    with contextlib.suppress(UserError):
        TARGETS[Path(name).parts[0]]((INPUTS / name).read_bytes())


def test_every_target_has_inputs() -> None:
    assert {Path(name).parts[0] for name in KEPT} == set(TARGETS)
    assert sum((INPUTS / name).stat().st_size for name in KEPT) <= 100_000


@pytest.mark.parametrize("name", LARGE)
def test_time_grows_linearly_with_the_input(name: str) -> None:
    target, make = LARGE[name]
    with contextlib.suppress(UserError):
        TARGETS[target](make().encode())
