"""The command line of the attacks in this folder. It imports nothing of transduce, which `fuzz.py` instruments."""

from collections.abc import Callable

import cyclopts


def run_script(main: Callable[..., None], description: str | None) -> None:
    """Run a script, whose arguments are the parameters of `main`."""
    parameter = cyclopts.Parameter(consume_multiple=True)
    app = cyclopts.App(help=description, help_format="plaintext", default_parameter=parameter)
    app.default(main)
    app()
