"""`transduce train`."""

import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from transduce.commands.options import Assignments
from transduce.commands.profile import TRAIN_PHASES, print_speed, profiled
from transduce.commands.recipes import (
    Files,
    FromCode,
    ToCode,
    as_begun,
    gather,
    with_direction,
    with_languages,
    with_new_languages,
)
from transduce.config.commands import option
from transduce.config.schema import DataConfig
from transduce.config.settings import FROM_SIZES, MODEL, Settings
from transduce.system.console import log
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
    monolingual: Files = (),
    reverse: Path | None = None,
    init: Path | None = None,
    keep_optimizer: bool = False,
    remember: Files = (),
    forget: bool = False,
    like: str = "",
    tensorboard: bool = False,
    profile: bool = False,
    assignments: Assignments = (),
) -> None:
    """Train a model, or resume an interrupted training run.

    The size of the corpus determines model size, batch size and learning-rate schedule, unless an option sets them.

    Args:
        recipe: A TOML file of options, or the name of a built-in recipe.
        out: The model folder. If the folder holds an interrupted training run, the training is resumed.
        train: The corpus: two line-aligned text files, two subtitle files or two HTML pages; bilingual files (.tsv,
            .jsonl, .tmx, .xlf, .po, .mrg …) or folders of such files; or a folder written by `transduce prepare`.
            Text and bilingual files may be compressed. For several languages: train.en train.de train.fr, or
            bilingual files with the languages before their names, such as en,de=a.tsv en,fr=b.tsv.
        valid: Validation files; by default, held-out pairs of the corpus that share no sentence with training pairs.
        test: Test files, on which the finished model is scored.
        source: Language code of the source, or several codes such as en,fr; by default, read from the file names.
        target: Language code of the target, or several codes such as de,cs; by default, read from the file names.
        monolingual: Text files in the target language. They are translated back, as additional pairs to train on.
        reverse: With --monolingual, the model that translates back; by default, it is trained first on the same corpus.
        init: Fine-tune this model: the training starts with the model's weights, vocabulary and shape. Each
            epoch repeats parts of the model's own corpus, so that the model keeps what it knows.
        remember: With --init, text of other kinds to repeat instead of the model's corpus: a plain text in the source
            language, which the model translates first, or pairs. If a language is added: in any languages of the model.
        forget: With --init, train on the new corpus only; the model may lose most of what it knows.
        like: With --init and a corpus in a new language, a similar language of the model: the embedding of the new
            language's tag begins as that of its tag.
        keep_optimizer: With --init, start from the newest checkpoint and optimizer state, not from averaged weights.
        tensorboard: Also write TensorBoard event files into the model folder.
        profile: Print a time profile at the end.
    """
    settings = settings_of(
        out,
        recipe,
        train=train,
        monolingual=monolingual,
        reverse=reverse,
        init=init,
        keep_optimizer=keep_optimizer,
        remember=remember,
        forget=forget,
        like=like,
        valid=valid,
        test=test,
        languages=(source, target),
        assignments=assignments,
    )
    from transduce import model_folder
    from transduce.training.run import train as run  # imports torch: too slow for --help

    with profiled(TRAIN_PHASES) if profile else nullcontext() as measured:
        result = run(
            settings, out, init=init, keep_optimizer=keep_optimizer, tensorboard=tensorboard
        )
    if measured:
        print_speed("train", measured, model_folder.read_config(out))
    if result.reason == "interrupted":
        raise KeyboardInterrupt
    _print_command(out)


def settings_of(
    out: Path,
    recipe: str | None,
    *,
    train: Sequence[str],
    monolingual: Sequence[str],
    reverse: Path | None,
    init: Path | None,
    keep_optimizer: bool,
    remember: Sequence[str],
    forget: bool,
    **more: Any,
) -> Settings:
    """The options of a training run.

    Also makes the back-translations that the options need. `more` holds further arguments of `gather`.
    """
    from transduce import model_folder

    settings = gather(recipe, train=train, **more)
    begun = None if monolingual else _data_of(out)
    trained = None if begun else _data_of(init)
    if remember and (forget or keep_optimizer or not init):
        raise UserError(
            "A training repeats other text only if it fine-tunes a model with a new optimizer.",
            "Leave the other text out.",
            "remember",
        )
    if begun and begun.replay:
        settings = as_begun(settings, train, begun)
    elif begun and len(begun.directions) == 1:
        settings = with_direction(settings, train, begun.directions)
    elif init and trained:
        if trained.directions:
            settings = with_direction(settings, train, trained.directions)
        settings = with_new_languages(settings, train, out, init, trained, remember)
    elif not (begun or init):
        settings = with_languages(settings, train)
    if forget and (not init or settings.get("data.replay")):
        raise UserError(
            "Only the fine-tuning of a model in its own languages can leave out what the model knows.",
            "Leave this flag out.",
            "forget",
        )
    is_missing = init and not trained  # which the training reports
    if not is_missing and settings.get("data.like") and not settings.get("data.replay"):
        raise UserError(
            "A tag begins as that of another language only if a language is added to a model.",
            "Leave this language out.",
            "like",
        )
    is_begun = (out / model_folder.CONFIG).exists()
    if init and trained and not (forget or keep_optimizer or is_begun):
        settings = _with_memory(settings, out, init, trained, remember)
    if monolingual or reverse:
        settings = option("train --monolingual")(
            settings, out, monolingual, reverse, init, keep_optimizer
        )
    return settings


def _data_of(folder: Path | None) -> DataConfig | None:
    """The options of the model in a folder, if there is one."""
    from transduce import model_folder

    is_there = folder and (folder / model_folder.CONFIG).is_file()
    return model_folder.read_config(folder).data if folder and is_there else None


def _with_memory(
    settings: Settings, out: Path, init: Path, trained: DataConfig, remember: Sequence[str]
) -> Settings:
    """Let the fine-tuning of the model `init` repeat the text `remember` or the corpus of this model.

    Adding a language, minimum-risk training, parsers and prepared corpora are left alone.
    """
    from transduce import model_folder
    from transduce.config import size_table
    from transduce.preparation.prepared import is_prepared, prepared_corpora

    data = settings.config().data
    is_given = any(is_prepared(corpus.files) for corpus in data.corpora)
    if data.replay or settings.get("train.risk_steps") or trained.symbols or is_given:
        return settings
    places = prepared_corpora(init / model_folder.DATA, trained)
    if remember:
        settings = option("train --remember")(settings, out, init, remember)
    elif places:
        settings = settings.under(MODEL, {"data.remember": str(places[0].resolve())})
    else:
        log(
            f"Warning: {init} has no corpus to repeat, so the new model may lose much of what it knows. "
            "Name other text in the source language after --remember."
        )
    return settings.under(FROM_SIZES, {"train.max_forgotten": size_table.MAX_FORGOTTEN})


def _print_command(out: Path) -> None:
    """Print the command that uses the model, on rank 0."""
    from transduce import model_folder
    from transduce.text.languages import Direction
    from transduce.text.tree_symbols import are_of_trees
    from transduce.tokens.tokenizer import Tokenizer
    from transduce.training.distributed import is_first

    if is_first():
        data = model_folder.read_config(out).data
        model = shlex.quote(str(out))
        options = "".join(
            " --from {} --to {}".format(*Direction.parse(first)) for first in data.directions[:1]
        )
        symbols = Tokenizer.load(out).target_symbols() if data.symbols else {}
        command = "parse" if are_of_trees(symbols.values()) else "translate"
        print(f"{out} is ready: transduce {command} {model}{options} --input FILE")
