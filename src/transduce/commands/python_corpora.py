"""The corpora of `transduce.train` and `transduce.evaluate`: names of files, or Python objects that hold pairs."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from transduce import model_folder
from transduce.config.commands import option
from transduce.system.errors import UserError
from transduce.system.files import make_folder
from transduce.text.pairs import Pair
from transduce.text.plain import read_lines, write_lines
from transduce.training.distributed import check_single_process
from transduce.training.start import leftovers

Corpus = str | Path | Iterable[Any]


def names_of(corpus: Corpus) -> tuple[str, ...] | None:
    """The names of the files of a corpus, or None if it holds pairs."""
    if isinstance(corpus, str | Path):
        return (str(corpus),)
    are_names = isinstance(corpus, Sequence) and all(
        isinstance(each, str | Path) for each in corpus
    )
    return tuple(map(str, corpus)) if are_names else None


def corpus_files(
    out: Path, corpora: Mapping[str, Corpus], languages: tuple[str, str]
) -> tuple[dict[str, tuple[str, ...]], tuple[str, str]]:
    """The files of corpora for the training in `out`, and the languages, as far as they are known.

    Pairs are written to files in the model folder. Raises UserError for records that are not pairs, and for other pairs
    than those with which the training began.
    """
    files: dict[str, tuple[str, ...]] = {}
    for name, corpus in corpora.items():
        names = names_of(corpus)
        if names is None:
            languages, pairs = option("pairs of Python objects")(corpus, languages, name)
            names = (_write_pairs(out, name, pairs),)
        files[name] = names
    return files, languages


def _write_pairs(out: Path, name: str, pairs: Iterable[Pair]) -> str:
    """Write pairs to a file in the model folder, and return the name of the file."""
    check_single_process("a training run on Python objects")
    path = out / model_folder.GIVEN_PAIRS / f"{name}.jsonl"
    lines = (json.dumps({"source": pair.source, "target": pair.target}) for pair in pairs)
    if not (out / model_folder.CONFIG).exists():
        leftovers(out)
        make_folder(path.parent)
        write_lines(path, lines)
    elif not path.exists() or any(
        new != old for new, old in zip_longest(lines, read_lines(str(path)))
    ):
        raise UserError(
            f"{out} is a training run that was started with other pairs.",
            "To resume it, leave the pairs out. To learn from them, train into a new folder.",
            "init",
        )
    return str(path)
