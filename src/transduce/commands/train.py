"""`transduce train`."""

import shlex
from contextlib import nullcontext
from pathlib import Path

from transduce.commands.options import Assignments
from transduce.commands.profile import TRAIN_PHASES, print_training_speed, profiled
from transduce.commands.recipes import Files, FromCode, ToCode, gather, with_languages
from transduce.system.errors import UserError


def train(
    recipe: str | None = None,
    /,
    *,
    out: Path,
    train: Files = (),
    valid: Files = (),
    test: Files = (),
    source: FromCode = "",
    target: ToCode = "",
    init: Path | None = None,
    keep_optimizer: bool = False,
    tensorboard: bool = False,
    profile: bool = False,
    assignments: Assignments = (),
) -> None:
    """Train a model, or resume an interrupted training.

    Whatever neither the recipe nor an option sets is chosen by the size of the corpus, and printed.

    Args:
        recipe: A TOML file of options, or the name of a recipe that comes with transduce.
        out: The model folder; if it holds a training, that is resumed.
        train: The corpus: two line-aligned text files; bilingual files (.tsv, .jsonl, .tmx, .xlf, .po, .mrg) or a
            folder of them, each possibly compressed; two subtitle files or pages; or a folder written by `transduce
            prepare`.
        valid: Validation files; without them, pairs that share no sentence with the rest are split off the corpus.
        test: Test files, on which the finished model is scored.
        source: Language code of the source, such as en; by default from file names such as train.en and train.de.
        target: Language code of the target, such as de; by default as for the source.
        init: A model folder to continue from (fine-tuning), with its vocabulary and shape.
        keep_optimizer: With --init, continue from its newest checkpoint with the optimizer state, not from the average.
        tensorboard: Also write TensorBoard event files into the model folder.
        profile: Print a time profile at the end.
    """
    if keep_optimizer and not init:
        raise UserError("--keep-optimizer keeps the optimizer state of the model that --init names; give --init, too.")
    settings = gather(recipe, train=train, valid=valid, test=test, languages=(source, target), assignments=assignments)
    from transduce import model_folder

    if not init and not (out / model_folder.CONFIG).exists():  # where a model or a training knows its languages
        settings = with_languages(settings, train)
    from transduce.training.distributed import is_first
    from transduce.training.run import train as run  # torch: too slow for --help

    with profiled(TRAIN_PHASES) if profile else nullcontext() as measured:
        result = run(settings, out, init=init, keep_optimizer=keep_optimizer, tensorboard=tensorboard)
    if measured:
        print_training_speed(measured, model_folder.read_config(out))
    if result.reason == "interrupted":
        raise KeyboardInterrupt
    if not is_first():
        return
    command = "parse" if model_folder.read_config(out).data.symbols else "translate"
    print(f"{out} is ready: transduce {command} {shlex.quote(str(out))} --input FILE")
