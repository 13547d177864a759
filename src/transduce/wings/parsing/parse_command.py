"""`transduce parse`."""

import shlex
import sys
from pathlib import Path

from transduce.commands.options import Assignments
from transduce.commands.output import STANDARD_OUTPUT, check_output, write_lines
from transduce.commands.recipes import Files
from transduce.config.parse import parse_assignments
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
    """Parse sentences into constituency trees, one per line; a blank line stays blank.

    Words and punctuation must be separated by blanks, as in treebanks. Every tree is well-formed.

    Args:
        model: The folder of a model that was trained on trees (.mrg).
        input: The file to parse, also compressed; - is standard input.
        output: The file to write, once complete; - is standard output.
        ensemble: More model folders with the same vocabulary.
    """
    options = parse_assignments(assignments)
    from transduce.decoding.loading import decode_config, load_models  # torch: too slow for --help
    from transduce.text.plain import read_lines, without_byte_order_mark
    from transduce.wings.parsing.parser import Parser

    check_output(output, [input])
    if suffixes(input)[0] == TREES:
        command = shlex.join(["transduce", "evaluate", str(model), input])
        raise UserError(f"{input} is a file of trees. `{command}` parses its words and scores the parses.")
    models = load_models([model, *map(Path, ensemble)])
    parser = Parser(models, decode_config(models[0].config, options))
    if input == "-" and sys.stdin.isatty():
        say("Type the sentences to parse, then Ctrl-D.")
    parses = parser.parse_lines(without_byte_order_mark(read_lines(input)))
    write_lines(output, (str(parse.tree) if parse.tree else "" for parse in parses))
