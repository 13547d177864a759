"""The command line of the scripts in this folder, and the ratios that their tables show."""

import statistics
from collections.abc import Callable, Iterable

import cyclopts


def run_script(main: Callable[..., None], description: str | None) -> None:
    """Run a script, whose arguments are the parameters of `main`."""
    parameter = cyclopts.Parameter(consume_multiple=True, negative=())
    app = cyclopts.App(help=description, help_format="plaintext", default_parameter=parameter)
    app.default(main)
    app()


def ratio(these: Iterable[float], those: Iterable[float]) -> str:
    """The ratio of these measurements to those of the same rounds: the median, the smallest and the largest."""
    ratios = sorted(this / that for this, that in zip(these, those, strict=True))
    return f"{statistics.median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]"
