"""Makes a corpus with a teacher's translations for sequence-level distillation (Kim and Rush, 2016)."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path

from transduce import model_folder
from transduce.config.schema import DataConfig
from transduce.decoding.translator import CHUNK_LINES, Translator
from transduce.decoding.types import CUT, Translation
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared
from transduce.system.console import with_progress
from transduce.system.errors import UserError
from transduce.system.file_lock import file_lock
from transduce.system.files import digest
from transduce.system.journal import Event, Journal, Value, read_events
from transduce.text.clean import CHUNK, CUT_OFF, TOO_LONG, Cleaning
from transduce.text.pairs import Pair
from transduce.text.rules import PLACEHOLDERS_DIFFER
from transduce.wings.inline.placeholder_tokens import have_same_tokens


def distill(
    translator: Translator,
    teachers: Sequence[Path],
    data: DataConfig,
    out: Path,
    *,
    keep_original: bool = False,
    threads: int = 1,
) -> Prepared:
    """Prepare a corpus of the teachers' translations in the new folder `out`, with the teachers' vocabulary.

    `translator` runs the models in the folders `teachers`. The validation set is not translated. Cleaning rules
    leave out faulty translations. If `keep_original` is true, the corpus also contains the original pairs. A repeated
    call resumes an interrupted one. Raises UserError as `prepare` does, and if the interrupted call had other settings.
    """
    path = out.parent / f".{out.name}.translations.jsonl"
    call: dict[str, Value] = {
        "teachers": " ".join(map(str, teachers)),
        "weights": " ".join(digest(model_folder.describe(folder).weights) for folder in teachers),
        "engine": translator.engine.name,
        **dataclasses.asdict(translator.config),
    }

    def rewrite(pairs: Iterator[Pair], cleaning: Cleaning) -> Iterator[Pair]:
        fitting = _fitting(pairs, translator, data.max_length, cleaning)
        for pair, event in _translated(fitting, translator, begun, path, call):
            if keep_original:
                yield pair
            if event["cut"]:
                cleaning.count(CUT_OFF, pair.origin)
            elif not have_same_tokens(pair.source, event["text"]):
                cleaning.count(PLACEHOLDERS_DIFFER, pair.origin)
            else:
                yield pair._replace(target=event["text"])

    with file_lock(path.with_suffix(".lock"), f"Another process is distilling into {out}. Wait until it ends."):
        begun = _begun(path, call)
        prepared = prepare(
            data,
            out,
            vocab_size=lambda _: translator.tokenizer.target_size,
            tokenizer=translator.tokenizer,
            threads=threads,
            rewrite=rewrite,
        )
        path.unlink(missing_ok=True)
        return prepared


def _fitting(pairs: Iterator[Pair], translator: Translator, max_length: int, cleaning: Cleaning) -> Iterator[Pair]:
    """The pairs whose sources are short enough for data.max_length and for the teachers."""
    max_tokens = min(max_length, (translator.engine.max_positions or max_length + 1) - 1)
    while chunk := list(islice(pairs, CHUNK)):
        lengths = translator.tokenizer.source.encode([pair.source for pair in chunk]).lengths.tolist()
        for pair, length in zip(chunk, lengths, strict=True):
            if length > max_tokens:
                cleaning.count(TOO_LONG, pair.origin)
            else:
                yield pair


def _translated(
    pairs: Iterator[Pair], translator: Translator, begun: Iterator[Event], path: Path, call: Mapping[str, Value]
) -> Iterator[tuple[Pair, Event]]:
    """Yield each pair with the journal event of its translation; reuses the translations of an interrupted call."""
    for pair in pairs:
        event = next(begun, None)
        if event is None:
            pairs = chain((pair,), pairs)
            break
        if event["source"] != pair.source:
            raise UserError(f"{path} holds translations of another corpus. Remove the file to start again.")
        yield pair, event
    with Journal(path) as journal:
        if not journal.size:
            journal.write("distillation", **call)
        for pair, translation in with_progress(_translations(pairs, translator), "lines translated"):
            event = {"source": pair.source, "text": translation.text, "cut": CUT in translation.flags}
            journal.write("translation", **event)
            yield pair, event


def _translations(pairs: Iterator[Pair], translator: Translator) -> Iterator[tuple[Pair, Translation]]:
    """Yield each pair with a translation of its source."""
    while chunk := list(islice(pairs, CHUNK_LINES)):
        yield from zip(chunk, translator.translate_sentences([pair.source for pair in chunk]), strict=True)


def _begun(path: Path, call: Mapping[str, Value]) -> Iterator[Event]:
    """The translations of an interrupted call; raises UserError if its settings differ from `call`."""
    if not path.exists():
        return iter(())
    events = read_events(path)
    if not call.items() <= next(events, call).items():
        raise UserError(f"{path} was made with another model, engine or options. Use them again, or remove the file.")
    return events
