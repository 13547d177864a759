"""`transduce train`."""

import shlex
from pathlib import Path

from transduce.commands.options import Assignments
from transduce.commands.profile import TRAIN_PHASES, profiled, say_training
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
    """Train a model, or go on with one that was interrupted.

    What neither the recipe nor an option fixes is chosen from the size of the corpus and printed.

    Args:
        recipe: A TOML file of options, or the name of one that comes with transduce.
        out: The model folder; if a training is there already, it goes on.
        train: The corpus: two line-aligned text files, or bilingual files (.tsv, .jsonl, .tmx, .xlf, .po, .mrg) or a
            folder of them, each possibly compressed; or two subtitle files or pages; or a folder that `transduce
            prepare` wrote.
        valid: Held-out files; without them a leak-free part of the corpus is split off.
        test: Files that the finished model is scored on.
        source: Language code of the source, such as en; without it, from names such as train.en and train.de.
        target: Language code of the target, such as de; without it, as for the source.
        init: A model folder to go on from (fine-tuning), with its vocabulary and shape.
        keep_optimizer: With --init, go on from its newest checkpoint, not the average, with the optimiser's state.
        tensorboard: Also write TensorBoard event files into the model folder.
        profile: Tell in the end where the time went.
    """
    if keep_optimizer and not init:
        raise UserError("--keep-optimizer goes on with the optimiser of the model that --init names; give --init, too.")
    settings = gather(recipe, train=train, valid=valid, test=test, languages=(source, target), assignments=assignments)
    from transduce import model_folder

    if not init and not (out / model_folder.CONFIG).exists():  # where a model or a training knows its languages
        settings = with_languages(settings, train)
    from transduce.training.distributed import is_first
    from transduce.training.run import train as run  # torch: too slow for --help

    with profiled(profile, TRAIN_PHASES) as found:
        result = run(settings, out, init=init, keep_optimizer=keep_optimizer, tensorboard=tensorboard)
    if found:
        say_training(found, model_folder.read_config(out))
    if result.reason == "interrupted":
        raise KeyboardInterrupt
    if not is_first():
        return
    command = "parse" if model_folder.read_config(out).data.symbols else "translate"
    print(f"{out} is ready: transduce {command} {shlex.quote(str(out))} --input FILE")
