"""Commands as a user gives them, for the tests."""

import pytest

from transduce import cli


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command, with each hint behind its message."""
    capsys.readouterr()
    status = 0
    try:
        cli.main([str(argument) for argument in arguments])
    except SystemExit as error:
        status = int(error.code or 0)
    printed = capsys.readouterr()
    return status, printed.out, printed.err.replace("\nhint: ", " ")
