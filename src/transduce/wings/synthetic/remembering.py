"""Makes the corpus that a fine-tuning repeats so that the model keeps what it knows (`transduce train --remember`).

OUT/remembered/    text.jsonl          pairs: the lines of a text with the model's own translations
                   translations.jsonl  the journal of an interrupted call
                   data/               the prepared corpus
"""

import dataclasses
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from transduce import model_folder
from transduce.config.schema import CorpusConfig, DataConfig
from transduce.config.settings import COMMAND_LINE, FROM_SIZES, Settings
from transduce.decoding.loading import load
from transduce.preparation.passes import check_rereadable, read_corpus
from transduce.preparation.prepare import prepare
from transduce.preparation.replay import GENERAL_PAIRS
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.system.file_lock import LOCK, file_lock
from transduce.system.files import digest, make_folder, write_text
from transduce.system.journal import Value
from transduce.system.machine import cores
from transduce.text.formats import format_of
from transduce.text.languages import Direction, languages_of
from transduce.text.pairs import Origin, Pair
from transduce.text.plain import read_lines, without_byte_order_mark
from transduce.training.distributed import check_single_process
from transduce.training.origin import with_origin
from transduce.training.start import leftovers, with_known_languages
from transduce.wings.synthetic.translations import begin, translated

TEXT_PAIRS, TEXT_JOURNAL = "text.jsonl", "translations.jsonl"
MIN_TRANSLATED = 3_000  # lines; at least as many as there are new pairs
# Share of the similarity to its own translations that a model may lose. Other good translations lower it, too.
MAX_CHANGED = 0.15


def with_remembered(settings: Settings, out: Path, init: Path, files: Sequence[str]) -> Settings:
    """Add the text `files` to `settings` as data.remember. An interrupted call is resumed.

    The files are pairs, or plain texts in the source language, which the model `init` translates. Raises UserError if
    the files are unusable.
    """
    check_single_process("a fine-tuning that repeats other text")
    leftovers(out)
    inherited, origin = with_origin(with_known_languages(settings, init), init, False)
    data = inherited.config().data
    check_rereadable(files, "repeated")
    folder = out / model_folder.REMEMBERED
    make_folder(folder)
    is_text = not languages_of(files) and not any(format_of(file).is_bilingual for file in files)
    with file_lock(folder / LOCK, f"Another process works in {folder}."):
        corpora: list[tuple[str, ...]] = [(each,) for each in files]
        if is_text:
            corpora = [(str(_translate(files, data, init, folder)),)]
        elif languages_of(files):
            corpora = [tuple(files)]
        own = dataclasses.replace(
            data,
            corpora=tuple(CorpusConfig(each, **_direction(data)._asdict()) for each in corpora),
            valid=(),
            test=(),
            rules=(),
            holdout=GENERAL_PAIRS,
        )
        prepared = folder / model_folder.DATA
        shutil.rmtree(prepared, ignore_errors=True)  # of an interrupted call
        facts = prepare(
            own,
            prepared,
            vocab_size=lambda _: 0,
            tokenizer=origin.tokenizer if origin else None,
            threads=cores(),
        ).facts
    if not facts.held_out:
        log(
            f"Warning: {' and '.join(files)}: {count(facts.pairs, 'pair')} are too few to measure what the model loses."
        )
    limit = {"train.max_forgotten": MAX_CHANGED} if is_text else {}
    return settings.over(COMMAND_LINE, {"data.remember": str(prepared.resolve())}).under(
        FROM_SIZES, limit
    )


def _direction(data: DataConfig) -> Direction:
    """The direction of the fine-tuning. Raises UserError if it has several."""
    if len(data.directions) > 1:
        raise UserError(
            f"Text to repeat needs a fine-tuning in one direction, not in several ({data.languages}).",
            "Fine-tune one direction, or leave this text out.",
            "remember",
        )
    if data.directions:
        return Direction.parse(data.directions[0])
    return Direction(data.source, data.target)


def _translate(files: Sequence[str], data: DataConfig, init: Path, folder: Path) -> Path:
    """Write the model's translations of lines of `files`, at equal distances, to a file of pairs."""
    path = folder / TEXT_PAIRS
    lines = [*dict.fromkeys(filter(str.strip, chain.from_iterable(map(_lines, files))))]
    if not lines:
        raise UserError(f"{' and '.join(files)}: no line has text.", "Name other text.", "remember")
    pairs = sum(1 for corpus in data.corpora for _ in read_corpus(corpus, data))
    number = min(len(lines), max(MIN_TRANSLATED, pairs))
    some = [lines[place * len(lines) // number] for place in range(number)]
    direction = _direction(data)
    journal = folder / TEXT_JOURNAL
    call: dict[str, Value] = {
        "weights": digest(model_folder.describe(init).weights),
        "text": hashlib.sha256("\n".join(some).encode()).hexdigest(),
        "direction": str(direction),
    }
    begun = begin(journal, call)
    translator = load(init, source=direction.source, target=direction.target)
    log(f"Translating {number:,} lines to repeat, with {translator.engine.name}")
    sources = (Pair(line, "", Origin("", 0)) for line in some)
    events = translated(sources, translator.translate, begun, journal, call)
    records = [
        {"source": pair.source, "target": event["text"]}
        for pair, event in events
        if event["text"].strip() and not event["bad"]
    ]
    write_text(path, "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in records))
    return path


def _lines(file: str) -> Iterator[str]:
    return without_byte_order_mark(read_lines(file))
