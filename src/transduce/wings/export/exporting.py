"""Exports a trained model to another format if the export translates like the model."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from transduce import model_folder
from transduce.config.schema import RunConfig
from transduce.model_folder import Bundle
from transduce.system.errors import Hint, UserError
from transduce.system.files import MANIFEST, verify, write_folder
from transduce.text.languages import Direction
from transduce.text.pairs import Pair, first_of_each_direction
from transduce.training.card import card
from transduce.wings.export import argos, ctranslate2, huggingface, marian_files, onnx, web
from transduce.wings.export.parity import MAX_COMPARED_SENTENCES, Parity, Runner, check_parity
from transduce.wings.export.readme import fill
from transduce.wings.export.runtime import add_runtime
from transduce.wings.formats import Format, formats, refuse
from transduce.wings.phrasebook.examples import held_out

FLOAT32 = "float32"


class Form(NamedTuple):
    """An export format, with functions that write, open and explain a folder in this format."""

    title: str
    write: Callable[[Bundle, Path, str], None]  # arguments: model, folder, compute type
    open_runner: Callable[[Path], Runner | None]  # None: the other program is not installed
    usage: Callable[[Bundle], str]  # Markdown
    quantises: bool = False  # supports compute types other than float32
    weights: str = ""  # the only compute type, if it is not float32


FORMS: dict[Format, Form] = {
    "ctranslate2": Form(
        "CTranslate2", ctranslate2.write, ctranslate2.open_runner, ctranslate2.usage, quantises=True
    ),
    "argos": Form(
        "Argos Translate and LibreTranslate",
        argos.write,
        argos.open_runner,
        argos.usage,
        quantises=True,
    ),
    "huggingface": Form(
        "Hugging Face transformers", huggingface.write, huggingface.open_runner, huggingface.usage
    ),
    "onnx": Form("ONNX Runtime", onnx.write, onnx.open_runner, onnx.usage),
    "marian": Form("Marian", marian_files.write, marian_files.open_runner, marian_files.usage),
    "web": Form("the web page", web.write, web.open_runner, web.usage, weights=onnx.INT8),
}


def export(
    folder: Path,
    form: Format,
    out: Path,
    compute_type: str = FLOAT32,
    pairs: Sequence[Pair] = (),
    direction: str = "",
    runtime: Path | None = None,
) -> Parity | None:
    """Export a model to the new folder `out`, and compare the translations of the model and the export.

    Without `pairs`, the comparison uses text held out from training. `direction`, such as en-de, chooses one of a
    multilingual model. `runtime` is a folder with the npm package onnxruntime-web, for "web". Returns None if the
    other program is not installed. Raises UserError if the model can't be exported or if the translations differ.
    """
    config = in_direction(model_folder.read_config(folder), direction)
    _check(folder, config, form, compute_type)
    other = FORMS[form]
    compute_type = other.weights or compute_type
    with write_folder(
        out, model_folder.describe(folder).size if compute_type == FLOAT32 else 0
    ) as aside:
        verify(folder, hashes=True, but=(model_folder.CARD,))
        model = model_folder.load(folder)._replace(config=config)
        if form == "web":
            add_runtime(aside, runtime)
        other.write(model, aside, compute_type)
        given = first_of_each_direction(pairs, MAX_COMPARED_SENTENCES)
        sentences = given or held_out(model, MAX_COMPARED_SENTENCES)
        if direction:
            sentences = [pair for pair in sentences if pair.direction == direction]
        runner = other.open_runner(aside)
        parity = None
        if runner:
            parity = check_parity(model, sentences, runner, exact=compute_type == FLOAT32)
        text = card(
            config,
            f"Exported by transduce {version('transduce')} from the model {folder.resolve().name}: "
            f"{config.model.shape}; weights in {compute_type}.",
            other.usage(model),
            *([fill("placeholders")] if model.tokenizer.has_placeholder_tokens else []),
            "## Comparison with the model\n\n" + " ".join(report(parity, other.title)),
            purpose=other.title,
        )
        (aside / model_folder.CARD).write_bytes(text.encode())
    return parity


def in_direction(config: RunConfig, direction: str) -> RunConfig:
    """The configuration of a multilingual model for one of its directions. Raises UserError if the model lacks it.

    Without a direction, the model keeps all of them, and names the first one if its recipe names none.
    """
    known = config.data.directions
    named = Direction(config.data.source, config.data.target).as_codes
    if not direction and (not known or str(named) in known):
        return config
    if direction and direction not in known:
        raise UserError(
            f"The model has no direction {direction}.",
            Hint(f"Choose one of {', '.join(known)}.")
            if known
            else Hint("Leave the direction out."),
        )
    source, target = Direction.parse(direction or known[0])
    directions = (direction,) if direction else known
    data = replace(config.data, directions=directions, source=source, target=target)
    return replace(config, data=data)


def report(parity: Parity | None, title: str) -> list[str]:
    """The result of a comparison in sentences."""
    return parity.report() if parity else [f"Not compared, since {title} is not installed."]


def _check(folder: Path, config: RunConfig, form: Format, compute_type: str) -> None:
    """Raise UserError if a model is not finished, or if a format does not support it or the compute type."""
    if not (folder / MANIFEST).exists():
        raise UserError(
            f"{folder} can't be exported: its training is not finished.",
            "Repeat the command of the training to resume it.",
        )
    if why := refuse(form, folder, config):
        others = formats(folder, config)
        raise UserError(
            f"{folder} can't be exported to {form}: {why.reason}.",
            why.hint or (Hint(f"Choose another format: {', '.join(others)}.") if others else None),
        )
    if compute_type not in (FLOAT32, FORMS[form].weights) and not FORMS[form].quantises:
        others = [each for each in formats(folder, config) if FORMS[each].quantises]
        raise UserError(
            f"{form} is written in {FORMS[form].weights or FLOAT32} only.",
            Hint(f"For other compute types, use {' or '.join(others)}.")
            if others
            else Hint.about(f"Export in {FLOAT32}.", "compute_type"),
        )
