"""Translates text in the target language back, as more pairs to train on (Sennrich et al., 2016; Edunov et al., 2018).

OUT/back-translation/    reverse/     a model from the target language to the source language, unless one is given
                         reversed-0.jsonl …   the corpora that it is trained on
                         .translations.jsonl  the journal of the translation
                         pairs.jsonl  the translations with their targets
"""

import dataclasses
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from transduce import model_folder
from transduce.config.schema import CorpusConfig, DataConfig
from transduce.config.settings import CORPUS, Settings
from transduce.decoding.directions import directions_of, with_known_codes
from transduce.preparation.passes import (
    check_rereadable,
    checked,
    read_corpus,
    reads_test,
    text_files,
    with_placeholders,
)
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.file_lock import LOCK, file_lock
from transduce.system.files import MANIFEST, make_folder, write_text
from transduce.text.holdout import normalised
from transduce.text.identify import share_of_wrong_texts, warn_of_language
from transduce.text.languages import Direction
from transduce.text.multilingual import without_labels
from transduce.text.pairs import Pair
from transduce.text.plain import read_lines, without_byte_order_mark
from transduce.training.distributed import check_single_process
from transduce.training.origin import with_origin
from transduce.training.run import read_test, train
from transduce.training.start import leftovers, with_known_languages
from transduce.wings.synthetic.translations import (
    check_plain,
    licence_of,
    to_jsonl,
    translate_lines,
)

REVERSE, PAIRS, TRANSLATIONS = "reverse", "pairs.jsonl", ".translations.jsonl"
# Minimum share of distinct translations; a reverse model below it has learned nothing.
MIN_DISTINCT = 0.05


def with_back_translations(
    settings: Settings,
    out: Path,
    files: Sequence[str],
    reverse: Path | None,
    init: Path | None,
    keep_optimizer: bool,
) -> Settings:
    """Add the translated lines of `files` to the corpora of `settings`. An interrupted call is resumed.

    `init` is the model that the training continues from. `reverse` is a model from the target language to the source
    language. If it is None, this model is trained first. Raises UserError if the files or the model are unusable, and
    KeyboardInterrupt if the training is interrupted.
    """
    if not files:
        raise UserError(
            "The reverse model translates monolingual text.",
            "Give this text, too.",
            "monolingual",
        )
    check_single_process("a training run with monolingual text")
    config = with_known_languages(settings, init).config()
    folder = out / model_folder.BACK_TRANSLATION
    data = config.data
    checked(data)
    if data.symbols:
        raise UserError(
            "The targets of a parser are trees, so it can't learn from text.",
            "Leave the monolingual text out.",
            "monolingual",
        )
    if data.directions:
        raise UserError(
            f"Back-translation is not for multilingual models, which read language tags ({data.languages}).",
            "Leave the monolingual text out.",
            "monolingual",
        )
    if not (
        out / model_folder.CONFIG
    ).exists():  # now, since these errors would otherwise stop the training after hours of translation
        leftovers(out)
        with_origin(settings, init, keep_optimizer)
    elif not folder.exists():
        raise UserError(
            f"{out} is a training run without monolingual text.",
            "Choose another folder.",
            "out",
        )
    check_plain(files, "monolingual")
    check_rereadable([*files, *text_files(data), *without_labels(data.test)], "read several times")
    read_test(config)
    lines = _distinct(files, data)
    _check_language(lines, data, files)
    if reverse:
        _check_reverse(reverse, data)
    elif (folder / TRANSLATIONS).exists() and not (folder / REVERSE).exists():
        raise UserError(
            f"{folder} was made with a model in another folder.",
            "Name this model.",
            "reverse",
        )
    make_folder(folder)
    with file_lock(folder / LOCK, f"Another process works in {folder}."):
        pairs = _translate(lines, data, reverse or _train_reverse(settings, data, folder), folder)
    log("Step 3 of 3: the model")
    options: dict[str, Any] = {"data.corpora": _with_pairs(data, folder / PAIRS, pairs)}
    if reverse and not settings.is_chosen("data.licence"):
        options["data.licence"] = licence_of([init, reverse] if init else [reverse])
    return settings.over(CORPUS, options)


def _with_pairs(data: DataConfig, file: Path, pairs: int) -> list[dict[str, Any]]:
    """The corpora and `file`, the back-translated pairs; if these are too many, the other corpora are repeated."""
    real_corpora = [corpus for corpus in data.corpora if not corpus.synthetic]
    real = sum(corpus.weight * _num_distinct(corpus, data) for corpus in real_corpora)
    repeats = max(1.0, pairs / (data.synthetic_ratio * max(1, real)))
    log(
        f"An epoch has each of {pairs:,} back-translated pairs once, and the other pairs {repeats:.3g} times."
    )
    corpora = [
        dataclasses.asdict(corpus)
        | {"weight": corpus.weight * (1 if corpus.synthetic else repeats)}
        for corpus in data.corpora
    ]
    corpora.append({"files": [str(file)], "synthetic": True})
    return corpora


def _distinct(files: Sequence[str], data: DataConfig) -> list[str]:
    """The distinct lines that are no targets of the corpora, the validation set or the test set."""
    scored = _targets([CorpusConfig(files) for files in (data.valid, data.test) if files], data)
    known = scored | _targets(data.corpora, data)
    lines = dict[str, str]()
    read = 0
    leaks = 0
    for text in chain.from_iterable(without_byte_order_mark(read_lines(file)) for file in files):
        read += 1
        key = normalised(text)
        leaks += key in scored
        if key and key not in known:
            lines.setdefault(key, text)
    log(f"Monolingual text: {len(lines):,} of {read:,} lines are new and distinct.")
    if leaks:
        log(
            f"Warning: {leaks:,} monolingual lines are targets of the validation or test set; they are left out."
        )
    if not lines:
        raise UserError(
            f"{', '.join(files)}: no line is new.",
            "Name a file with other text than the corpus.",
            "monolingual",
        )
    return list(lines.values())


def _num_distinct(corpus: CorpusConfig, data: DataConfig) -> int:
    """The number of distinct pairs with two texts."""
    pairs = ((pair.source.strip(), pair.target.strip()) for pair in read_corpus(corpus, data))
    return len({hash(pair) for pair in pairs if all(pair)})


def _targets(corpora: Sequence[CorpusConfig], data: DataConfig) -> set[str]:
    """The normalised targets of corpora."""
    return {normalised(pair.target) for corpus in corpora for pair in read_corpus(corpus, data)}


def _check_language(lines: Sequence[str], data: DataConfig, files: Sequence[str]) -> None:
    """Raise UserError if nearly all lines are in the source language, and warn of many in a third language.

    Without py3langid, nothing is checked.
    """
    share = share_of_wrong_texts(lines, data.target, (data.source, data.target))
    if share:
        raise UserError(
            f"{', '.join(files)}: {share:.0%} of the lines look like '{data.source}', but the target language is "
            f"'{data.target}'.",
            "Name text in the target language.",
            "monolingual",
        )
    warn_of_language(f"the lines of {', '.join(files)}", lines, data.target, ())


def _train_reverse(settings: Settings, data: DataConfig, folder: Path) -> Path:
    """Train a model with the same options and swapped sides, or resume its training."""
    reverse = folder / REVERSE
    corpora: list[dict[str, Any]] = [
        {
            "files": [_swapped(corpus, data, folder / f"reversed-{number}.jsonl")],
            "weight": corpus.weight,
        }
        for number, corpus in enumerate(data.corpora)
        if not corpus.synthetic  # its sources may be machine-made
    ]
    swapped: dict[str, Any] = {
        "data.source": data.target,
        "data.target": data.source,
        "data.corpora": corpora,
        # The swapped files are no documents.
        "data.placeholders": with_placeholders(data, None).placeholders,
    }
    sets = {"valid": data.valid, "test": data.test if reads_test(data.rules) else ()}
    for name, files in sets.items():
        if files:
            path = folder / f"reversed-{name}.jsonl"
            swapped[f"data.{name}"] = (_swapped(CorpusConfig(files), data, path),)
    if (reverse / MANIFEST).exists():
        return reverse
    log(f"Step 1 of 3: a model from {data.target} to {data.source}, in {reverse}")
    # Minimum-risk training needs a model to start from, so the reverse model trains without it.
    only_risk = settings.get("train.risk_steps") == settings.get("train.steps")
    unused = ["data.test", "train.risk_steps", *(["train.steps"] if only_risk else [])]
    own = settings.without(*unused)
    if train(own.over(CORPUS, swapped), reverse).reason == "interrupted":
        raise KeyboardInterrupt
    return reverse


def _swapped(corpus: CorpusConfig, data: DataConfig, path: Path) -> str:
    """Write a corpus with its sides swapped; raises UserError if the reverse training has begun with another corpus."""
    text = to_jsonl(map(_turned, read_corpus(corpus, data)))
    if not (path.parent / REVERSE / model_folder.CONFIG).exists():
        write_text(path, text)
    elif path.read_bytes() != text.encode():
        raise UserError(
            f"{path} was made from other pairs than {' and '.join(corpus.files)} hold now.",
            "Choose another output folder.",
            "out",
        )
    return str(path)


def _check_reverse(reverse: Path, data: DataConfig) -> None:
    """Raise UserError if the model does not translate from the target language to the source language."""
    known = directions_of(model_folder.describe(reverse).config.data)
    needed = Direction(data.target, data.source)
    if with_known_codes(known, *needed) not in known:
        raise UserError(
            f"{reverse} translates {', '.join(map(str, known))}, but the reverse model must translate {needed}.",
            "Name another model.",
            "reverse",
        )


def _translate(lines: list[str], data: DataConfig, reverse: Path, folder: Path) -> int:
    """Write the translations of the lines to PAIRS, and return the number of pairs."""
    journal = folder / TRANSLATIONS
    direction = Direction(data.target, data.source)
    task = f"Step 2 of 3: translating {len(lines):,} lines"
    good = translate_lines(lines, reverse, direction, journal, task)
    if len({pair.target for pair in good}) <= MIN_DISTINCT * len(good):
        journal.unlink()
        raise UserError(
            f"{reverse} translates no line to its end, or all to a few texts, so it has hardly learned anything.",
            f"Train it longer (`transduce train --out {reverse} "
            "train.steps=…`) or on more text, or name another model.",
            "reverse",
        )
    log(
        f"{len(good):,} of {len(lines):,} lines are back-translated. "
        "Empty, cut-off and repetitive translations are left out."
    )
    write_text(folder / PAIRS, to_jsonl(map(_turned, good)))
    return len(good)


def _turned(pair: Pair) -> Pair:
    return pair._replace(source=pair.target, target=pair.source)
