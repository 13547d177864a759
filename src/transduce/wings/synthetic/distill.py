"""Makes a corpus with a teacher's translations for sequence-level distillation (Kim and Rush, 2016)."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import repeat
from pathlib import Path
from types import MappingProxyType

from transduce import model_folder
from transduce.config import size_table
from transduce.config.schema import DataConfig
from transduce.decoding.translator import Translator
from transduce.decoding.types import Translation
from transduce.inline.placeholder_tokens import have_same_tokens
from transduce.preparation.prepared import Prepared, is_prepared
from transduce.system.errors import UserError
from transduce.system.file_lock import file_lock
from transduce.system.files import digest
from transduce.system.journal import Value
from transduce.text.clean import CHUNK, TOO_LONG, Cleaning
from transduce.text.formats import PLAIN_TEXT
from transduce.text.pairs import Pair, chunks
from transduce.text.rules import PLACEHOLDERS_DIFFER
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.synthetic.rewriting import prepare_rewritten
from transduce.wings.synthetic.translations import begin, translated


def distill(
    translators: Mapping[str, Translator],
    teachers: Sequence[Path],
    data: DataConfig,
    out: Path,
    *,
    own_vocabulary: bool = False,
    vocab_size: int = 0,
    keep_original: bool = False,
    texts: Mapping[str, str] = MappingProxyType({}),
    threads: int = 1,
) -> Prepared:
    """Prepare a corpus of the teachers' translations in the new folder `out`.

    `translators` run the models in the folders `teachers`, one for each of data.directions, or for "" without
    directions. The corpus has the teachers' vocabulary, or an own vocabulary of `vocab_size` pieces, learnt from the
    sources and the translations (0: by the number of pairs). The validation set is not translated. Faulty translations
    are left out. If `keep_original` is true, the corpus also contains the original pairs. `texts` maps
    plain text files with more sources to their languages. A repeated call resumes an interrupted one. Raises UserError
    as `prepare` does, and if the interrupted call had other settings.
    """
    first = next(iter(translators.values()))
    data = _checked(data, first.tokenizer, own_vocabulary=own_vocabulary)
    path = out.parent / f".{out.name}.translations.jsonl"
    call: dict[str, Value] = {
        "teachers": " ".join(map(str, teachers)),
        "weights": " ".join(digest(model_folder.describe(folder).weights) for folder in teachers),
        "engine": first.engine.name,
        "direction": " ".join(str(each.direction or "") for each in translators.values()),
        **dataclasses.asdict(first.config),
    }

    def rewrite(
        translator: Translator, pairs: Iterator[Pair], cleaning: Cleaning
    ) -> Iterator[Pair]:
        fitting = _fitting(pairs, translator, data.max_length, cleaning)
        run = partial(_translate, translator)
        for pair, event in translated(fitting, run, begun, path, call):
            if keep_original and pair.target:
                yield pair
            if event["bad"]:
                cleaning.count(event["bad"], pair.origin)
            elif not have_same_tokens(pair.source, event["text"]):
                cleaning.count(PLACEHOLDERS_DIFFER, pair.origin)
            else:
                yield pair._replace(target=event["text"])

    with file_lock(path.with_suffix(".lock"), f"Another process is distilling into {out}."):
        if is_prepared([str(out)]):  # an earlier call was killed when the corpus was complete
            path.unlink(missing_ok=True)
        begun = begin(path, call)
        prepared = prepare_rewritten(
            data,
            out,
            {name: partial(rewrite, each) for name, each in translators.items()},
            vocab_size=lambda pairs: vocab_size or size_table.sizes_for(pairs).vocab_size,
            tokenizer=None if own_vocabulary else first.tokenizer,
            texts=texts,
            threads=threads,
        )
        path.unlink(missing_ok=True)
        return prepared


def _checked(data: DataConfig, teacher: Tokenizer, *, own_vocabulary: bool) -> DataConfig:
    """The options of the student's corpus. Raises UserError for options that contradict distillation."""
    for name in ("symbols", "replay", "remember"):
        if getattr(data, name):
            raise UserError(
                f"data.{name} is not for distillation.", f"Leave data.{name} out.", f"data.{name}"
            )
    if not own_vocabulary and teacher.has_own_tags:
        raise UserError(
            "The teacher's vocabulary has tags for the languages of both texts, which only imported models read.",
            "Let the student learn its own, and leave the teacher's out.",
            "teacher_vocabulary",
        )
    if data.placeholders == "auto" and teacher.has_placeholder_tokens:
        return dataclasses.replace(data, placeholders="masked")
    return data


def _translate(translator: Translator, texts: Sequence[str]) -> list[Translation]:
    """Translate texts as those of documents, so that lost placeholders are flagged."""
    return list(translator.translate_lines(texts, kinds=repeat(PLAIN_TEXT)))


def _fitting(
    pairs: Iterator[Pair], translator: Translator, max_length: int, cleaning: Cleaning
) -> Iterator[Pair]:
    """The pairs whose sources are short enough for data.max_length and for the teachers."""
    max_tokens = min(max_length, translator.max_tokens or max_length)
    for chunk in chunks(pairs, CHUNK):
        for pair, length in zip(
            chunk, translator.lengths([pair.source for pair in chunk]), strict=True
        ):
            if length > max_tokens:
                cleaning.count(TOO_LONG, pair.origin)
            else:
                yield pair
