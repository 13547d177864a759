"""Makes the corpus that a training repeats so that the model keeps what it knows (`transduce train --remember`).

OUT/remembered/    en-de.jsonl               pairs: the lines of a text with the model's own translations
                   en-de.translations.jsonl  the journal of the translation
                   data/                     the prepared corpus
"""

import dataclasses
import shutil
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from transduce import model_folder
from transduce.config.schema import CorpusConfig, DataConfig
from transduce.config.settings import COMMAND_LINE, FROM_SIZES, Settings
from transduce.decoding.directions import directions_of, with_known_codes
from transduce.preparation.passes import check_rereadable, read_corpus, text_files
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared
from transduce.preparation.replay import GENERAL_PAIRS
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.system.file_lock import LOCK, file_lock
from transduce.system.files import make_folder, write_text
from transduce.system.machine import cores
from transduce.text.formats import format_of
from transduce.text.languages import Direction, nearest_code
from transduce.text.multilingual import (
    BilingualCorpus,
    bilingual_corpora,
    is_multilingual,
    split_name,
    without_labels,
)
from transduce.text.pairs import spread
from transduce.text.plain import read_lines, without_byte_order_mark
from transduce.tokens.tokenizer import Tokenizer
from transduce.training.distributed import check_single_process
from transduce.training.origin import with_origin
from transduce.training.start import leftovers
from transduce.wings.synthetic.translations import check_plain, to_jsonl, translate_lines

MIN_TRANSLATED = 3_000  # lines; at least as many as there are new pairs
# Share of the similarity to its own translations that a model may lose. Other good translations lower it, too.
MAX_CHANGED = 0.1


def with_remembered(settings: Settings, out: Path, init: Path, files: Sequence[str]) -> Settings:
    """Add the text `files` to `settings` as data.remember. An interrupted call is resumed.

    See `_repeated` for the files. Raises UserError if they are unusable.
    """
    inherited = with_origin(settings, init, False)[0]
    prepared, is_translated = _repeated(inherited, inherited.config().data, out, init, files)
    facts = prepared.facts
    if not facts.held_out:
        log(
            f"Warning: {' and '.join(files)}: {count(facts.pairs, 'pair')} are too few to measure what the model loses."
        )
    limit = {"train.max_forgotten": MAX_CHANGED} if is_translated else {}
    return settings.over(COMMAND_LINE, {"data.remember": str(prepared.folder.resolve())}).under(
        FROM_SIZES, limit
    )


def remembered_directions(
    settings: Settings, out: Path, init: Path, files: Sequence[str], new: Sequence[str]
) -> Prepared:
    """Prepare the text `files` to repeat while languages are added to the model `init`; an interrupted call is resumed.

    See `_repeated` for the files. Directions of the model that neither the result nor `new`, the directions of the new
    corpus, cover are named in a warning. Raises UserError if the files are unusable.
    """
    Tokenizer.load(init).check_joint()
    trained = model_folder.read_config(init).data
    prepared, _ = _repeated(settings, trained, out, init, files)
    kept = {*prepared.facts.directions, *new}
    lost = [each for each in map(str, directions_of(trained)) if each not in kept]
    if lost:
        log(
            f"Warning: the new model will lack the directions {', '.join(lost)}, for which no text is repeated. "
            "To keep them, name text in their languages, too (--remember)."
        )
    return prepared


def _repeated(
    settings: Settings, data: DataConfig, out: Path, init: Path, files: Sequence[str]
) -> tuple[Prepared, bool]:
    """Prepare the text `files` in the directions of `data`; also returns whether the model translated some of it.

    Files whose names differ only in the language are pairs, as are bilingual files. The model translates the lines of
    other files into each language that it translates their language into. `settings` name the new corpus.
    """
    check_single_process("a training that repeats other text")
    leftovers(out)
    check_rereadable(without_labels(files), "repeated")
    known = directions_of(data)
    corpora, texts = _sorted(files, known, settings.get("data.source", ""))
    to_translate = [each for each in known if each.source in texts]
    folder = out / model_folder.REMEMBERED
    make_folder(folder)
    with file_lock(folder / LOCK, f"Another process works in {folder}."):
        if to_translate:
            new = settings.config().data
            check_rereadable(text_files(new), "read twice")  # now, and by the training
            pairs = sum(1 for corpus in new.corpora for _ in read_corpus(corpus, new))
            number = max(MIN_TRANSLATED, pairs // len(to_translate))
            corpora += [
                _translate(texts[each.source], each, number, init, folder) for each in to_translate
            ]
        ways = {way for _, each in corpora for way in (each, each.reverse)}
        covered = tuple(str(each) for each in known if each in ways)
        own = dataclasses.replace(
            data,
            directions=covered if data.directions else (),
            corpora=tuple(CorpusConfig(its, **each._asdict()) for its, each in corpora),
            valid=(),
            test=(),
            rules=(),
            holdout=GENERAL_PAIRS,
            replay="",
            remember="",
        )
        place = folder / model_folder.DATA
        shutil.rmtree(place, ignore_errors=True)  # of an interrupted call
        tokenizer = Tokenizer.load(init)
        prepared = prepare(own, place, vocab_size=lambda _: 0, tokenizer=tokenizer, threads=cores())
    return prepared, bool(to_translate)


def _sorted(
    files: Sequence[str], known: Sequence[Direction], default: str
) -> tuple[list[BilingualCorpus], dict[str, list[str]]]:
    """The pairs that have a direction in `known`, and the plain texts in each source language.

    `default` is the language of texts whose names have none. Raises UserError for unknown languages.
    """
    ways = [*known, *(each.reverse for each in known)]
    languages = ",".join(known[0])
    is_clear = {*ways} == {known[0], known[0].reverse}
    names = Counter(split_name(file)[0] for file in files)
    aligned = list[str]()
    texts: dict[str, list[str]] = {}
    for file in files:
        name, code = split_name(file)
        if is_multilingual([file]) or names[name] > 1:
            aligned.append(file)
        elif format_of(file).is_bilingual or Path(file).is_dir():
            aligned.append(f"{languages}={file}" if is_clear else file)
        else:
            check_plain([file], "remember")
            source = _source(code or default, [each.source for each in known], file)
            texts.setdefault(source, []).append(file)
    corpora = []
    for its, codes in bilingual_corpora(aligned):
        own = with_known_codes(ways, *codes)
        if own not in ways:
            log(
                f"{' and '.join(its)}: not repeated, since the model has no direction {own} or {own.reverse}."
            )
            continue
        if own not in known and not format_of(its[0]).is_bilingual:  # two texts can change places
            own, its = own.reverse, its[::-1]
        corpora.append(BilingualCorpus(its, own))
    if not corpora and not texts:
        raise UserError(
            f"{' and '.join(files)}: no pair is in a direction of the model.",
            f"Name text for its directions: {', '.join(map(str, known))}.",
            "remember",
        )
    return corpora, texts


def _source(code: str, sources: Sequence[str], file: str) -> str:
    """The source language that a code stands for; raises UserError if there is none."""
    if not code:
        raise UserError(
            f"The language of {file} is unknown.", "Write it into the name, as in text.en."
        )
    found = nearest_code(code, sources)
    if not found:
        raise UserError(
            f"{file}: text to repeat in '{code}', which is none of the model's languages "
            f"{', '.join(dict.fromkeys(sources))}.",
            "Name text in one of these.",
            "remember",
        )
    return found


def _translate(
    files: Sequence[str], direction: Direction, number: int, init: Path, folder: Path
) -> BilingualCorpus:
    """Write the model's translations of `number` lines of `files`, at equal distances, to a file of pairs."""
    texts = chain.from_iterable(without_byte_order_mark(read_lines(file)) for file in files)
    lines = [*dict.fromkeys(filter(str.strip, texts))]
    if not lines:
        raise UserError(f"{' and '.join(files)}: no line has text.", "Name other text.", "remember")
    some = spread(lines, number)
    journal = folder / f"{direction}.translations.jsonl"
    task = (
        f"Translating {len(some):,} lines to repeat from {direction.source} to {direction.target},"
    )
    pairs = translate_lines(some, init, direction, journal, task)
    if not pairs:
        raise UserError(
            f"{init} translates no line of {' and '.join(files)} without a fault from {direction.source} to "
            f"{direction.target}.",
            "Name other text or pairs, or train the model first.",
            "remember",
        )
    path = folder / f"{direction}.jsonl"
    write_text(path, to_jsonl(pairs))
    return BilingualCorpus((str(path),), direction)
