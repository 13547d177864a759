"""`transduce translate`."""

import dataclasses
import json as json_format
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.commands.options import Assignments
from transduce.commands.recipes import Files
from transduce.config import parse_assignments
from transduce.errors import UserError
from transduce.journal import say

if TYPE_CHECKING:
    from transduce.decoding.translator import Translation


def translate(
    model: Path,
    /,
    *,
    input: str = "-",
    output: Path | None = None,
    ensemble: Files = (),
    beam_size: int | None = None,
    length_penalty: float | None = None,
    n_best: int = 1,
    json: bool = False,
    assignments: Assignments = (),
) -> None:
    """Translate a file, or the standard input, line by line.

    Lines in are lines out, in order; a blank line stays blank.

    Args:
        model: A model folder.
        input: The file to translate, possibly compressed; - is the standard input.
        output: The file to write; without it, the standard output.
        ensemble: More model folders with the same vocabulary, whose probabilities are averaged.
        beam_size: Hypotheses kept per sentence; 1 is greedy.
        length_penalty: Alpha of the length penalty; more prefers longer translations.
        n_best: Translations per line, best first; more than one is written as JSON lines.
        json: Write a JSON object per line, with scores, pieces and flags.
    """
    given = parse_assignments(assignments)
    given |= {} if beam_size is None else {"decode.beam_size": beam_size}
    given |= {} if length_penalty is None else {"decode.length_penalty": length_penalty}
    from transduce.corpus.plain import read_lines
    from transduce.decoding.loading import load  # torch: too slow for --help

    if output is not None and output.exists() and Path(input).exists() and output.samefile(input):
        raise UserError(f"--output {output} is the file that is read; give another one.")
    translator = load([model, *map(Path, ensemble)], given)
    lines = _texts(translator.translate_lines(read_lines(input), n_best=n_best), json or n_best > 1)
    if output is None:
        for line in lines:
            print(line)
    else:
        _write(output, lines)


def _texts(translations: "Iterator[Translation]", json: bool) -> Iterator[str]:
    cut = 0
    for translation in translations:
        cut += "cut" in translation.flags
        yield json_format.dumps(dataclasses.asdict(translation), ensure_ascii=False) if json else translation.text
    if cut:
        say(f"{cut:,} translations were cut off at the length limit (decode.max_extra_tokens); --json marks them.")


def _write(output: Path, lines: Iterator[str]) -> None:
    """Line by line into a file beside `output`, which takes its place when all is there."""
    aside = output.with_name(f".{output.name}.aside")
    try:
        with aside.open("w", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(line + "\n")
        aside.replace(output)
    except OSError as error:
        raise UserError(f"{output} can't be written: {error.strerror}.") from None
    finally:
        aside.unlink(missing_ok=True)
