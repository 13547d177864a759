"""`transduce distill`."""

from pathlib import Path

from transduce.commands.options import Assignments
from transduce.commands.prepare import print_prepared, vocabulary_options
from transduce.commands.recipes import Files, FromCode, ToCode, gather
from transduce.config.parse import configure
from transduce.decoding.registry import EngineName
from transduce.system.console import log
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

    Train the student by `transduce train --train DATA`. It has the teacher's vocabulary. The validation set keeps its
    own targets. If the distillation is interrupted, the same command resumes it.

    Args:
        model: The teacher, a model folder.
        out: The folder to write.
        train: The corpus: two line-aligned text files, or one bilingual file, also compressed.
        valid: Validation files; without them, a part of the corpus that shares no sentence with the rest is held out.
        source: Language code of the source; by default the model's.
        target: Language code of the target; by default the model's.
        ensemble: More model folders with the same vocabulary, to translate as an ensemble.
        keep_original: Train on the original pairs, too.
        engine: The engine, as for `transduce translate`.
    """
    given = gather(None, train=train, valid=valid, test=(), languages=(source, target), assignments=assignments)
    from transduce import model_folder
    from transduce.decoding.loading import load
    from transduce.wings.synthetic.distill import distill as run

    learnt = vocabulary_options(model, given)
    folders = [model, *map(Path, ensemble)]
    search = {name: value for name, value in given.items() if not name.startswith("data.")}
    translator = load(folders, search, engine=engine)
    log(f"Engine: {translator.engine.name}")
    known = model_folder.read_config(model).data
    data = configure({"data.source": known.source, "data.target": known.target}, given, learnt).data
    prepared = run(translator, folders, data, out, keep_original=keep_original, threads=cores())
    print_prepared(prepared)
