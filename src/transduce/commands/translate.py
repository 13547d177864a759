"""`transduce translate`."""

import dataclasses
import json as json_format
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.commands.options import Assignments
from transduce.commands.output import STANDARD_OUTPUT, check_output, write_lines
from transduce.commands.profile import TRANSLATE, profiled, say_search
from transduce.commands.recipes import Files
from transduce.config import parse_assignments
from transduce.decoding.engines.engine import Choice
from transduce.journal import say, telling
from transduce.profiling import phase

if TYPE_CHECKING:
    from transduce.decoding.translator import Translation


def translate(
    model: Path,
    /,
    *,
    input: str = "-",
    output: Path = STANDARD_OUTPUT,
    ensemble: Files = (),
    beam_size: int | None = None,
    length_penalty: float | None = None,
    n_best: int = 1,
    engine: Choice = "auto",
    json: bool = False,
    profile: bool = False,
    assignments: Assignments = (),
) -> None:
    """Translate a file, or the standard input, line by line.

    Lines in are lines out, in order; a blank line stays blank.

    Args:
        model: A model folder.
        input: The file to translate, possibly compressed; - is the standard input.
        output: The file to write, which is there when all of it is; - is the standard output.
        ensemble: More model folders with the same vocabulary, whose probabilities are averaged.
        beam_size: Hypotheses kept per sentence; 1 is greedy.
        length_penalty: Alpha of the length penalty; more prefers longer translations.
        n_best: Translations per line, best first; more than one is written as JSON lines.
        engine: What searches: torch is ours, for every model; int8 is ours with products in 8 bits, for every model on
            a CPU; ctranslate2 is faster, for Transformers on a CPU; auto is that where it is installed, knows the model
            and translates it as well, otherwise torch.
        json: Write a JSON object per line, with scores, pieces and flags.
        profile: Tell in the end where the time went.
    """
    given = parse_assignments(assignments)
    given |= {} if beam_size is None else {"decode.beam_size": beam_size}
    given |= {} if length_penalty is None else {"decode.length_penalty": length_penalty}
    from transduce import bundle
    from transduce.corpus.plain import read_lines, without_byte_order_mark
    from transduce.decoding.loading import load  # too slow for --help

    check_output(output, [input])
    folders = [model, *map(Path, ensemble)]
    with profiled(profile, TRANSLATE) as found:
        with phase("start", whole=True):
            translator = load(folders, given, engine=engine)
        say(f"Engine: {translator.engine.name}")
        if input == "-" and sys.stdin.isatty():
            say("Type the lines to translate; Ctrl-D behind the last one.")
        with phase("files"):
            translations = translator.translate_lines(without_byte_order_mark(read_lines(input)), n_best=n_best)
            write_lines(output, _texts(translations, json or n_best > 1))
    if found:
        say_search(found, [bundle.read_config(folder).model for folder in folders])


def _texts(translations: "Iterable[Translation]", json: bool) -> Iterator[str]:
    """The lines to write, while telling how far it is and at the end how many were cut off."""
    cut = 0
    for translation in telling(translations, "lines translated"):
        cut += "cut" in translation.flags
        yield json_format.dumps(dataclasses.asdict(translation), ensure_ascii=False) if json else translation.text
    if cut:
        say(f"{cut:,} translations were cut off at the length limit (decode.max_extra_tokens); --json marks them.")
