"""`transduce parse`."""

import shlex
import sys
from pathlib import Path

from transduce.commands.options import Assignments
from transduce.commands.output import STANDARD_OUTPUT, check_output, write_lines
from transduce.commands.recipes import Files
from transduce.config.schema import parse_assignments
from transduce.system.errors import UserError
from transduce.system.journal import say
from transduce.text.pairs import TREES
from transduce.text.plain import suffixes


def parse(
    model: Path,
    /,
    *,
    input: str = "-",
    output: Path = STANDARD_OUTPUT,
    ensemble: Files = (),
    assignments: Assignments = (),
) -> None:
    """Write the constituency tree of every sentence, one a line; a blank line stays blank.

    The words of a sentence are separated by blanks, punctuation too, as in treebanks. The tree is always well-formed.

    Args:
        model: The folder of a model that was trained on trees (.mrg).
        input: The file to parse, possibly compressed; - is the standard input.
        output: The file to write, which is there when all of it is; - is the standard output.
        ensemble: More model folders with the same vocabulary.
    """
    given = parse_assignments(assignments)
    from transduce.decoding.loading import decode_config, load_models  # torch: too slow for --help
    from transduce.text.plain import read_lines, without_byte_order_mark
    from transduce.wings.parsing.parser import Parser

    check_output(output, [input])
    if suffixes(input)[0] == TREES:
        command = shlex.join(["transduce", "evaluate", str(model), input])
        raise UserError(f"{input} holds trees by its suffix; `{command}` parses their words.")
    models = load_models([model, *map(Path, ensemble)])
    parser = Parser(models, decode_config(models[0].config, given))
    if input == "-" and sys.stdin.isatty():
        say("Type the sentences to parse; Ctrl-D behind the last one.")
    found = parser.parse_lines(without_byte_order_mark(read_lines(input)))
    write_lines(output, (str(each.tree) if each.tree else "" for each in found))
