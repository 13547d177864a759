"""A pytest plugin: list the messages for users that the tests provoke, as a Markdown table.

    PYTHONPATH=tests pytest -p messages --messages=messages.md tests

Every UserError counts: its text, the line that raises it, and the test. Of a test that provokes one line several times,
the first text is listed. Processes that a test starts are not seen.
"""

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from transduce.system.errors import UserError

PACKAGE = Path(__file__).parents[1] / "src/transduce"
TEMPORARY = re.compile(r"/\S*?pytest-of-\w+/pytest-\d+/(popen-\w+/)?[^\s/:;,']+|/tmp/tmp\w+")
PORT = re.compile(r"(127\.0\.0\.1[:_])\d+")
Rows = dict[tuple[str, str], str]  # (place, test) -> text


class Messages:
    """The rows of this process, and on the controller of pytest-xdist those of its workers."""

    def __init__(self, file: str) -> None:
        self.file, self.rows, self.test = Path(file), Rows(), ""

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.test = nodeid.removeprefix("tests/")

    def record(self, *arguments: Any) -> None:
        """Called for every UserError, by the function that stands in for its __init__."""
        frame = sys._getframe(2)
        file = Path(frame.f_code.co_filename)
        if file.is_relative_to(PACKAGE):
            place = f"{file.relative_to(PACKAGE)}:{frame.f_lineno}"
            self.rows.setdefault((place, self.test), PORT.sub(r"\1PORT", TEMPORARY.sub("DIR", str(arguments[0]))))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.rows |= {tuple(key): text for key, text in node.workeroutput["messages"]}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["messages"] = [[list(key), text] for key, text in self.rows.items()]
            return
        cells = sorted({(place, text, test.split("[")[0]) for (place, test), text in self.rows.items()})
        lines = ["| raised in | message | test |", "| --- | --- | --- |"]
        for row in cells:
            lines.append("| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |")
        self.file.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="backslashreplace")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--messages", metavar="FILE", help="list the messages for users that the tests provoke")


def pytest_configure(config: pytest.Config) -> None:
    if file := config.getoption("--messages"):
        messages = Messages(file)
        config.pluginmanager.register(messages)
        plain = UserError.__init__

        def recorded(error: UserError, *arguments: Any, **options: Any) -> None:
            messages.record(*arguments)
            plain(error, *arguments, **options)

        UserError.__init__ = recorded  # type: ignore[method-assign]
