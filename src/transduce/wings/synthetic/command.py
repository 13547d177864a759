"""`transduce distill`."""

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.commands.options import Assignments
from transduce.commands.prepare import print_prepared, vocabulary_options
from transduce.commands.recipes import Files, FromCode, ToCode, corpus_languages, gather
from transduce.config.parse import configure
from transduce.config.schema import DataConfig
from transduce.config.settings import Settings
from transduce.decoding.registry import EngineName
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.machine import cores
from transduce.text.languages import Direction, language_of, nearest_code

if TYPE_CHECKING:
    from transduce.decoding.translator import Translator

CHECKED_LINES = 1000  # lines of a text whose language is identified


def distill(
    model: Path,
    /,
    *,
    out: Path,
    train: Files = (),
    valid: Files = (),
    source: FromCode = "",
    target: ToCode = "",
    texts: Files = (),
    ensemble: Files = (),
    own_vocabulary: bool = False,
    teacher_vocabulary: bool = False,
    keep_original: bool = False,
    engine: EngineName = "auto",
    assignments: Assignments = (),
) -> None:
    """Prepare a corpus to train a smaller model, the student, on translations by MODEL, the teacher.

    `transduce train --train OUT` trains the student. The validation set keeps its original translations. Repeat the
    command to resume an interrupted distillation.

    Args:
        model: The model folder of the teacher.
        out: The folder to write.
        train: The corpus, in any form that `transduce prepare` accepts.
        valid: Validation files; by default, held-out pairs of the corpus that share no sentence with training pairs.
        source: Language code of the source, or several codes such as en,fr; by default, by the files or the teacher.
        target: Language code of the target, or several codes such as de,cs; by default, by the files or the teacher.
        texts: Plain text files with more sources to translate. For a student of several source languages, the names
            must have a language code, such as more.en.
        ensemble: Additional teachers with the vocabulary of MODEL; the probabilities of all teachers are averaged.
        own_vocabulary: Learn a vocabulary from the sources and the translations. This is the default if the teacher
            was imported.
        teacher_vocabulary: Use the teacher's vocabulary. This is the default if transduce trained the teacher.
        keep_original: Add the original pairs to the prepared corpus.
        engine: The translation engine; `transduce translate --help` describes the choices.
    """
    if own_vocabulary and teacher_vocabulary:
        raise UserError(
            "A student has one vocabulary.", "Choose its own or the teacher's, not both."
        )
    given = gather(
        None, train=train, valid=valid, test=(), languages=(source, target), assignments=assignments
    )
    from transduce.decoding.loading import load
    from transduce.wings.synthetic.distill import distill as run
    from transduce.wings.synthetic.translations import licence_of

    folders = [model, *map(Path, ensemble)]
    search = {name: value for name, value in given.items() if not name.startswith("data.")}
    translator = load(folders, search, engine=engine)
    log(f"Engine: {translator.engine.name}")
    is_imported = translator.tokenizer.is_imported
    has_own = own_vocabulary or (is_imported and not teacher_vocabulary)
    learnt = {} if has_own else vocabulary_options(model, given)
    directions = _directions(translator, given, train)
    translators = {name: _teacher(model, translator, each) for name, each in directions.items()}
    taught = next(iter(translators.values())).require_direction()
    teachers = {
        "data.source": taught.source,
        "data.target": taught.target,
        "data.licence": licence_of(folders),
    }
    prepared = run(
        translators,
        folders,
        configure(teachers, given, learnt).data,
        out,
        own_vocabulary=has_own,
        vocab_size=given.get("data.vocab_size", 0),
        keep_original=keep_original,
        texts=_texts(texts, translators),
        threads=cores(),
    )
    print_prepared(prepared)


def _directions(
    translator: "Translator", given: Settings, train: Sequence[str]
) -> dict[str, Direction]:
    """The directions of the student, by their names in data.directions, or by "" if it has only one."""
    if several := given.get("data.directions"):
        return {name: Direction.parse(name) for name in several}
    unnamed = DataConfig()
    has_codes = Direction(unnamed.source, unnamed.target) not in translator.directions
    return {"": corpus_languages(given, train if has_codes else ())}


def _teacher(model: Path, translator: "Translator", wanted: Direction) -> "Translator":
    """The teacher for a direction, without a pivot. Raises UserError if the teacher has no such direction."""
    from transduce.decoding.directions import choose_direction, with_known_codes

    known = with_known_codes(translator.directions, *wanted)
    if all(wanted) and known not in translator.directions:
        raise UserError(
            f"{model} has no direction {wanted}: a teacher must translate directly.",
            f"Choose one of {', '.join(map(str, translator.directions))}.",
            "data.source",
            "data.target",
        )
    return translator.direct(choose_direction(translator.directions, *wanted))


def _texts(files: Sequence[str], translators: Mapping[str, "Translator"]) -> dict[str, str]:
    """The language of each plain text file. Raises UserError for a file that no direction of the student can read."""
    from transduce.preparation.passes import check_rereadable
    from transduce.text.identify import warn_of_language
    from transduce.text.plain import read_lines
    from transduce.wings.synthetic.translations import check_plain

    check_plain(files, "texts")
    check_rereadable(files, "read several times")
    directions = [
        Direction.parse(name) if name else each.require_direction()
        for name, each in translators.items()
    ]
    languages = {*chain.from_iterable(directions)}
    codes = sorted({direction.source for direction in directions})
    found = {}
    for file in files:
        source = codes[0] if len(codes) == 1 else nearest_code(language_of(file), codes)
        if not source:
            raise UserError(
                f"The name of {file} has none of the source languages {', '.join(codes)}.",
                "Name the file with its language code, such as more.en.",
                "texts",
            )
        lines = list(islice(read_lines(file), CHECKED_LINES))
        warn_of_language(f"the lines of {file}", lines, source, languages)
        found[file] = source
    return found
