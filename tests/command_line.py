"""Commands as a user gives them, for the tests."""

import pytest

from transduce import cli


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a command."""
    capsys.readouterr()
    status = 0
    try:
        cli.main([str(argument) for argument in arguments])
    except SystemExit as error:
        status = int(error.code or 0)
    return status, *capsys.readouterr()
