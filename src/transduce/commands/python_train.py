"""`transduce.train`, the command `train` as a function."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from transduce.commands.python_corpora import Corpus, corpus_files
from transduce.commands.train import settings_of
from transduce.training.run import Result
from transduce.training.run import train as run

Paths = str | Path | Sequence[str | Path]


def train(
    out: str | Path,
    *,
    recipe: str | Path | None = None,
    train: Corpus = (),
    valid: Corpus = (),
    test: Corpus = (),
    source: str = "",
    target: str = "",
    monolingual: Paths = (),
    reverse: str | Path | None = None,
    init: str | Path | None = None,
    keep_optimizer: bool = False,
    remember: Paths = (),
    forget: bool = False,
    like: str = "",
    tensorboard: bool = False,
    options: Mapping[str, Any] = MappingProxyType({}),
    stop: Callable[[], bool] | None = None,
) -> Result:
    """Train a model in the folder `out`, or resume the training there, as `transduce train` does.

    The arguments have the names of the command's options. `train`, `valid` and `test` are names of files, or pairs: a
    pandas.DataFrame, a datasets.Dataset, or any iterable of (source, target) or of dictionaries such as {"en": …, "de":
    …}. Pairs are written to the folder `pairs` of `out`; to resume the training, give the same pairs or none. `options`
    maps names such as "train.steps" to values. `stop` is called before every update, and returns True to save and end
    the training; it is not called while a reverse model is trained. A process trains one model at a time. Meanwhile,
    other threads must not load models or draw random numbers from torch: they would change the weights. Raises
    UserError for invalid options, files or pairs, and KeyboardInterrupt if Ctrl-C or SIGTERM ended the training; both
    save it first.
    """
    out = Path(out)
    init = Path(init) if init else None
    files, languages = corpus_files(
        out, {"train": train, "valid": valid, "test": test}, (source, target)
    )
    settings = settings_of(
        out,
        str(recipe) if recipe else None,
        **files,
        languages=languages,
        monolingual=_names(monolingual),
        reverse=Path(reverse) if reverse else None,
        init=init,
        keep_optimizer=keep_optimizer,
        remember=_names(remember),
        forget=forget,
        like=like,
        options=options,
    )
    is_stopped = False

    def check() -> bool:
        nonlocal is_stopped
        is_stopped = stop is not None and stop()
        return is_stopped

    result = run(
        settings,
        out,
        init=init,
        keep_optimizer=keep_optimizer,
        tensorboard=tensorboard,
        stop=check,
    )
    if result.reason == "interrupted" and not is_stopped:
        raise KeyboardInterrupt
    return result


def _names(paths: Paths) -> tuple[str, ...]:
    return (str(paths),) if isinstance(paths, (str, Path)) else tuple(map(str, paths))
