"""Makes a corpus with a teacher's translations for sequence-level distillation (Kim and Rush, 2016)."""

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from transduce import model_folder
from transduce.config.schema import DataConfig
from transduce.decoding.translator import Translator
from transduce.inline.placeholder_tokens import have_same_tokens
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared, is_prepared
from transduce.system.file_lock import file_lock
from transduce.system.files import digest
from transduce.system.journal import Value
from transduce.text.clean import CHUNK, CUT_OFF, TOO_LONG, Cleaning
from transduce.text.pairs import Pair
from transduce.text.rules import PLACEHOLDERS_DIFFER
from transduce.wings.synthetic.translations import begin, translated


def distill(
    translator: Translator,
    teachers: Sequence[Path],
    data: DataConfig,
    out: Path,
    *,
    keep_original: bool,
    threads: int,
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
        "direction": str(translator.direction or ""),
        **dataclasses.asdict(translator.config),
    }

    def rewrite(pairs: Iterator[Pair], cleaning: Cleaning) -> Iterator[Pair]:
        fitting = _fitting(pairs, translator, data.max_length, cleaning)
        for pair, event in translated(fitting, translator.translate_sentences, begun, path, call):
            if keep_original:
                yield pair
            if event["bad"]:
                cleaning.count(CUT_OFF, pair.origin)
            elif not have_same_tokens(pair.source, event["text"]):
                cleaning.count(PLACEHOLDERS_DIFFER, pair.origin)
            else:
                yield pair._replace(target=event["text"])

    with file_lock(path.with_suffix(".lock"), f"Another process is distilling into {out}."):
        begun = begin(path, call)
        if is_prepared([str(out)]):  # an earlier call was killed when the corpus was complete
            begun = iter(())  # closes the file
            path.unlink(missing_ok=True)
        prepared = prepare(
            data,
            out,
            vocab_size=lambda _: translator.tokenizer.target.size,
            tokenizer=translator.tokenizer,
            threads=threads,
            rewrite=rewrite,
        )
        path.unlink(missing_ok=True)
        return prepared


def _fitting(
    pairs: Iterator[Pair], translator: Translator, max_length: int, cleaning: Cleaning
) -> Iterator[Pair]:
    """The pairs whose sources are short enough for data.max_length and for the teachers."""
    max_tokens = min(max_length, translator.max_tokens or max_length)
    while chunk := list(islice(pairs, CHUNK)):
        for pair, length in zip(
            chunk, translator.lengths([pair.source for pair in chunk]), strict=True
        ):
            if length > max_tokens:
                cleaning.count(TOO_LONG, pair.origin)
            else:
                yield pair
