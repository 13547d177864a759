"""The command line: which commands there are, and what becomes of errors. Nothing else."""

import difflib
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import cyclopts
from cyclopts.exceptions import CycloptsError, MissingArgumentError, UnknownOptionError, UnusedCliTokensError

from transduce.commands.average import average
from transduce.commands.evaluate import evaluate
from transduce.commands.info import info
from transduce.commands.options import options
from transduce.commands.prepare import prepare
from transduce.commands.score import score
from transduce.commands.train import train
from transduce.commands.translate import translate
from transduce.system.errors import UserError
from transduce.system.files import is_full
from transduce.system.machine import sleep_soon
from transduce.wings.cluster.command import join
from transduce.wings.corpora.doctor.command import doctor
from transduce.wings.corpora.fetch.command import fetch
from transduce.wings.demo.command import demo
from transduce.wings.export.export_command import export
from transduce.wings.export.import_command import import_model
from transduce.wings.inspection.command import attention
from transduce.wings.paper.parse_command import parse
from transduce.wings.paper.reproduce_command import reproduce
from transduce.wings.serving.command import serve
from transduce.wings.synthetic.command import distill

COMMANDS: dict[str, Callable[..., None]] = {  # in the order of `transduce --help`
    "demo": demo,
    "train": train,
    "prepare": prepare,
    "translate": translate,
    "join": join,
    "serve": serve,
    "parse": parse,
    "score": score,
    "evaluate": evaluate,
    "attention": attention,
    "average": average,
    "distill": distill,
    "reproduce": reproduce,
    "info": info,
    "export": export,
    "import": import_model,
    "fetch": fetch,
    "options": options,
    "doctor": doctor,
}

FILES_FOLLOW = {"train": "the files of a corpus follow --train", "input": "the file to read follows --input"}
SEVERAL_FILES = ("--train", "--valid", "--test")  # which a value behind = would end
ASSIGNMENT = re.compile(r"[A-Za-z]\w*(\.\w+)*=")  # a file name that looks like one can be written ./a=b


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; `arguments` are the process's own unless given.

    Exits with status 2 and one sentence for a user's mistake, 130 after Ctrl-C and 141 when the reader of
    the output has gone.
    """
    sleep_soon()
    try:
        application()(_for_cyclopts(sys.argv[1:] if arguments is None else arguments))
        sys.stdout.flush()
    except (UserError, CycloptsError) as error:
        print(f"transduce: {_sentence(error)}", file=sys.stderr)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it flushes at exit
        sys.exit(141)
    except OSError as error:
        if not is_full(error):
            raise
        print(f"transduce: There is no room on the disk: {error}; free some and start again.", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def application() -> cyclopts.App:
    """The commands as cyclopts sees them; errors are raised, and flags have no --no- form."""
    app = cyclopts.App(
        name="transduce",
        help="The Transformer, from parallel text to translations.",
        version=lambda: f"transduce {version('transduce')}",
        default_parameter=cyclopts.Parameter(negative=(), show_default=_shown_default),
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
    )
    for place, (name, command) in enumerate(COMMANDS.items()):
        app.command(command, name=name, sort_key=place)
    return app


def _for_cyclopts(arguments: Sequence[str]) -> list[str]:
    """Spell out what it doesn't read by itself: bare section.key=value, and `--input -` for the standard input."""
    command = COMMANDS.get(arguments[0]) if arguments else None
    parameters: Mapping[str, inspect.Parameter] = inspect.signature(command).parameters if command else {}
    flags = {f"--{name.replace('_', '-')}" for name, each in parameters.items() if each.annotation is bool}
    spelt: list[str] = []
    for argument in arguments:
        before = spelt[-1] if spelt else ""
        if argument == "-" and before.startswith("--") and before not in {*SEVERAL_FILES, *flags}:
            spelt[-1] = f"{before}=-"
        elif argument == "-":  # else taken for an option
            spelt.append("/dev/stdin")
        elif "assignments" in parameters and ASSIGNMENT.match(argument) and before != "--set":
            spelt += ["--set", argument]
        else:
            spelt.append(argument)
    return spelt


def _sentence(error: UserError | CycloptsError) -> str:
    """What is wrong, on one line, and where help is to be found."""
    if isinstance(error, UserError):
        return str(error)
    command = " ".join(error.command_chain or ())
    if isinstance(error, MissingArgumentError) and error.argument:
        text = f"{error.keyword} needs a value." if error.keyword else f"{command} needs {error.argument.name}."
    elif isinstance(error, UnknownOptionError):
        text = f"Unknown option {_with_nearest(error)}"
    elif isinstance(error, UnusedCliTokensError):
        taken = inspect.signature(COMMANDS[command]).parameters if command in COMMANDS else ()
        hints = [hint for name, hint in FILES_FOLLOW.items() if name in taken]
        text = "; ".join([f"Unexpected argument {' '.join(error.unused_tokens or ())}", *hints]) + "."
    else:
        text = " ".join(str(error).split())
    return f"{text} See 'transduce {command + ' ' if command else ''}--help'."


def _with_nearest(error: UnknownOptionError) -> str:
    unknown = error.token.keyword or error.token.value
    known = [name for argument in error.argument_collection for name in argument.names if name.startswith("-")]
    nearest = difflib.get_close_matches(unknown, known, 1, 0.0)
    return f"{unknown}; did you mean {nearest[0]}?" if nearest else f"{unknown}."


def _shown_default(default: Any) -> str | None:
    """What `--help` says of a default; an empty one goes without saying."""
    return None if default in ((), None, "", False) else str(default)


if __name__ == "__main__":
    main()
