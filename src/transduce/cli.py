"""Lists the commands, reads the command line and reports errors.

The module of a command is imported only when the command is called (see `config/commands.py`).
"""

import errno
import inspect
import io
import os
import re
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import cyclopts
from cyclopts.exceptions import CycloptsError, MissingArgumentError, UnusedCliTokensError

from transduce.config.commands import GROUPS, commands
from transduce.system.command_line import command_line
from transduce.system.errors import UserError
from transduce.system.machine import let_segments_grow, sleep_soon
from transduce.system.registry import load
from transduce.system.wrapping import fit
from transduce.system.write_errors import is_full

FILES_FOLLOW = {
    "--train": "Put --train before the corpus files.",
    "--input": "Put --input before the file to read.",
}
# Options that read several files; `--train=a b` would read only the file a.
SEVERAL_FILES = ("--train", "--valid", "--test")
FLAGS = {  # options whose flags have other names
    "data.corpora": "--train",
    "data.valid": "--valid",
    "data.test": "--test",
    "data.source": "--from",
    "data.target": "--to",
}
MIN_COLUMNS = 20  # formatting a help page in fewer columns takes minutes
ASSIGNMENT = re.compile(r"[A-Za-z]\w*(\.\w+)*=")  # a file name of this form can be written as ./a=b


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `transduce` with `arguments` (default: `sys.argv[1:]`).

    The exit status is 2 after a printed error message, 130 after Ctrl-C, and 141 if the output pipe is closed.
    """
    _open_streams()
    sleep_soon()
    let_segments_grow()
    arguments = sys.argv[1:] if arguments is None else arguments
    before = command_line.set(["transduce", *arguments])
    try:
        application(bare=not commands().keys() & set(arguments[:1]))(_for_cyclopts(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # Otherwise, Python's flush at exit would print an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (UserError, CycloptsError, OSError, MemoryError, RuntimeError) as error:
        message = _failure(error, arguments)
        if not message:
            raise
        print(fit(f"transduce: {message}", sys.stderr), file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        command_line.reset(before)
        try:
            sys.stderr.flush()
        except OSError:
            # Otherwise, a failed flush at exit would change the exit status.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _open_streams() -> None:
    """Prepare the standard streams for any environment.

    A closed stream is replaced by a device; otherwise the next opened file, such as a model file, would get its
    descriptor. Writing to the replaced standard output fails, so that no translation is lost without an error.
    Characters that the encoding of the standard output lacks are printed as escapes. The variable COLUMNS is at least
    MIN_COLUMNS.
    """
    for number, (name, mode) in enumerate({"stdin": "r", "stdout": "w", "stderr": "w"}.items()):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_RDWR), number)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, closefd=False, errors="backslashreplace"))
    # Python uses surrogateescape in the locale C.
    is_fatal = getattr(sys.stdout, "errors", "") in ("strict", "surrogateescape")
    if is_fatal and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if (columns := os.environ.get("COLUMNS", "")).isdecimal() and int(columns) < MIN_COLUMNS:
        os.environ["COLUMNS"] = str(MIN_COLUMNS)


def application(*, bare: bool = False) -> cyclopts.App:
    """Make the cyclopts application with all commands; the application raises errors instead of printing them.

    If `bare` is true, `--help` describes each command by its summary instead of its docstring.
    """
    app = cyclopts.App(
        name="transduce",
        help="transduce trains Transformer translation models on your parallel text, evaluates them and serves them.",
        usage="Usage: transduce COMMAND\nExample: transduce demo --out DEMO",
        version=lambda: f"transduce {version('transduce')}",
        default_parameter=cyclopts.Parameter(negative=(), show_default=_shown_default),
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
    )
    app["--help"].group = app["--version"].group = cyclopts.Group("Options")
    groups = {title: cyclopts.Group.create_ordered(title) for title in GROUPS}
    for place, (name, command) in enumerate(commands().items()):
        summary = command.summary if bare else None
        app.command(
            command.function,
            name=name,
            help=summary,
            group=groups[command.group],
            sort_key=place,
            usage=f"Usage: transduce {name} {command.usage}" if command.usage else None,
        )
    return app


def _for_cyclopts(arguments: Sequence[str]) -> list[str]:
    """Rewrite arguments of the forms `section.key=value` and `-`, because cyclopts can't read them."""
    parameters = _parameters(arguments[0]) if arguments else {}
    flags = {
        f"--{name.replace('_', '-')}"
        for name, each in parameters.items()
        if each.annotation is bool
    }
    spelt: list[str] = []
    for argument in arguments:
        before = spelt[-1] if spelt else ""
        is_value = (
            before.startswith("--")
            and "=" not in before
            and before not in {"--", *SEVERAL_FILES, *flags}
        )
        if argument == "-" and is_value:
            spelt[-1] = f"{before}=-"
        elif argument == "-":  # cyclopts would take it for an option
            spelt.append("/dev/stdin")
        elif (
            "assignments" in parameters
            and _is_assignment(argument)
            and not is_value
            and "--" not in spelt
        ):
            spelt += ["--set", argument]
        else:
            spelt.append(argument)
    return spelt


def _is_assignment(argument: str) -> bool:
    """Whether an argument sets an option. Also true for `steps=10`, so that the error can suggest `train.steps`."""
    name = argument.partition("=")[0]
    if not ASSIGNMENT.match(argument) or "." in name:
        return bool(ASSIGNMENT.match(argument))
    # Imported only here, since it reads the types of all options, which takes milliseconds.
    from transduce.config.parse import is_key

    return is_key(name)


def _parameters(command: str) -> Mapping[str, inspect.Parameter]:
    """The parameters of a command's function; empty for an unknown command."""
    found = commands().get(command)
    return inspect.signature(load(found.function)).parameters if found else {}


def _failure(error: Exception, arguments: Sequence[str]) -> str:
    """The message for an error, and on a second line the hint if there is one; empty for a bug in transduce."""
    if isinstance(error, CycloptsError):
        error = _usage(error, arguments)
    if isinstance(error, UserError):
        hint = error.hint
        if not hint:
            return error.cause
        text = hint.text
        if hint.options:
            text = f"{text.removesuffix('.')} ({_flags(hint.options)})."
        return f"{error.cause}\nhint: {text}"
    if isinstance(error, OSError):
        if error.errno == errno.EBADF and not error.filename:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return "The standard output is closed. Name a file, or open it."
        if is_full(error):
            return f"The disk is full: {error}. Free some space and run the command again."
        return f"{error.filename}: {error.strerror}." if error.filename else ""
    options = "data.max_tokens or decode.max_tokens"
    if type(error).__name__ == "OutOfMemoryError":  # torch's; this module does not import torch
        return f"The memory of the GPU is full. Lower {options}."
    if isinstance(error, MemoryError) or "allocate memory" in str(error):
        return f"The memory is full. Free some, or lower {options}."
    return ""


def _usage(error: CycloptsError, arguments: Sequence[str]) -> UserError:
    """The message for a mistake in a command line, and the hint."""
    command = " ".join(error.command_chain or ())
    see_help = f"See 'transduce {command + ' ' if command else ''}--help'."
    if isinstance(error, MissingArgumentError) and error.argument:
        missing = (
            f"{error.keyword} needs a value"
            if error.keyword
            else f"{command} needs {error.argument.name}"
        )
        return UserError(f"{missing}.", see_help)
    if not isinstance(error, UnusedCliTokensError):
        return UserError(" ".join(str(error).split()), see_help)
    unused = error.unused_tokens or []
    parameters = _parameters(command)
    remedies = [
        text
        for flag, text in FILES_FOLLOW.items()
        if flag[2:] in parameters and flag not in arguments
    ]
    if "--" in arguments and any(map(_is_assignment, unused)):
        remedies = ["Leave out `--`: arguments after it are not read as options."]
    return UserError(f"Unexpected argument {' '.join(unused)}.", " ".join([*remedies, see_help]))


def _flags(options: Sequence[str]) -> str:
    """The flags of configuration options and parameters on the command line."""
    return ", ".join(
        FLAGS.get(name) or (name if "." in name else f"--{name.replace('_', '-')}")
        for name in options
    )


def _shown_default(default: Any) -> str | None:
    """The text of a default value in `--help`; None if the default is empty."""
    return None if default in ((), None, "", False) else str(default)
