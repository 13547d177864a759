"""`transduce distill`."""

from pathlib import Path

from transduce.commands.options import Assignments
from transduce.commands.prepare import print_prepared, vocabulary_options
from transduce.commands.recipes import Files, FromCode, ToCode, gather
from transduce.config.parse import configure
from transduce.decoding.registry import EngineName
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.machine import cores


def distill(
    model: Path,
    /,
    *,
    out: Path,
    train: Files = (),
    valid: Files = (),
    source: FromCode = "",
    target: ToCode = "",
    ensemble: Files = (),
    keep_original: bool = False,
    engine: EngineName = "auto",
    assignments: Assignments = (),
) -> None:
    """Prepare a corpus to train a smaller model, the student, on translations by MODEL, the teacher.

    `transduce train --train OUT` trains the student, with the teacher's vocabulary. The validation set keeps its
    original translations. Repeat the command to resume an interrupted distillation.

    Args:
        model: The model folder of the teacher.
        out: The folder to write.
        train: The corpus, in any form that `transduce prepare` accepts.
        valid: Validation files; by default, held-out pairs of the corpus that share no sentence with training pairs.
        source: Language code of the source; by default the teacher's source language.
        target: Language code of the target; by default the teacher's target language.
        ensemble: Additional teachers with the vocabulary of MODEL; the probabilities of all teachers are averaged.
        keep_original: Add the original pairs to the prepared corpus.
        engine: The translation engine; `transduce translate --help` describes the choices.
    """
    given = gather(
        None, train=train, valid=valid, test=(), languages=(source, target), assignments=assignments
    )
    from transduce.decoding.loading import load
    from transduce.wings.synthetic.distill import distill as run

    if directions := given.get("data.directions"):
        raise UserError(
            f"A student learns one direction, but these languages have several: {', '.join(directions)}.",
            "Name one language with --from and one with --to, and only their files.",
            "train",
        )
    learnt = vocabulary_options(model, given)
    folders = [model, *map(Path, ensemble)]
    search = {name: value for name, value in given.items() if not name.startswith("data.")}
    translator = load(folders, search, engine=engine, source=source, target=target)
    log(f"Engine: {translator.engine.name}")
    direction = translator.require_direction()
    if direction in translator.directions:
        translator = translator.direct(direction)  # without a pivot, even if one is better
    if translator.pivot:
        known = ", ".join(map(str, translator.directions))
        raise UserError(
            f"{model} has no direction {direction}: a teacher must translate directly.",
            f"Choose one of {known}.",
            "data.source",
            "data.target",
        )
    data = configure(
        {"data.source": direction.source, "data.target": direction.target}, given, learnt
    ).data
    prepared = run(translator, folders, data, out, keep_original=keep_original, threads=cores())
    print_prepared(prepared)
