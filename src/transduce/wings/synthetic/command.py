"""`transduce distill`."""

from pathlib import Path

from transduce.commands.options import Assignments
from transduce.commands.prepare import say_prepared, vocabulary_options
from transduce.commands.recipes import Files, FromCode, ToCode, gather
from transduce.config.schema import configure, flatten
from transduce.decoding.registry import EngineName
from transduce.system.journal import say
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
    """Prepare a corpus for a smaller, faster model: its targets are this model's translations.

    Train the student by `transduce train --train DATA`. It has the teacher's vocabulary; what is held out to validate
    on stays as people wrote it. An interrupted distillation goes on by the same command.

    Args:
        model: The teacher, a model folder.
        out: The folder to write.
        train: The corpus: two line-aligned text files, or one bilingual file, each possibly compressed.
        valid: Held-out files; without them a leak-free part of the corpus is split off.
        source: Language code of the source; the model's, unless given.
        target: Language code of the target; the model's, unless given.
        ensemble: More model folders with the same vocabulary: all of them are the teacher.
        keep_original: Train on the pairs as they were, too.
        engine: What searches, as for `transduce translate`.
    """
    given = gather(None, train=train, valid=valid, test=(), languages=(source, target), assignments=assignments)
    from transduce import model_folder
    from transduce.decoding.loading import load
    from transduce.wings.synthetic.distill import distill as run

    learnt = vocabulary_options(model, given)
    folders = [model, *map(Path, ensemble)]
    search = {name: value for name, value in given.items() if not name.startswith("data.")}
    translator = load(folders, search, engine=engine)
    say(f"Engine: {translator.engine.name}")
    known = flatten(model_folder.read_config(model))
    languages = {name: known[name] for name in ("data.source", "data.target")}
    data = configure(languages, given, learnt).data
    prepared = run(translator, folders, data, out, keep_original=keep_original, threads=cores())
    say_prepared(prepared)
