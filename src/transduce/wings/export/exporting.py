"""Export a finished model: write it to a temporary folder, compare it with the model, keep it if both agree."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from transduce import model_folder
from transduce.config.schema import RunConfig
from transduce.decoding.types import Refusal
from transduce.model_folder import Bundle
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST, verify, write_folder
from transduce.text.pairs import Pair
from transduce.wings.export import argos, ctranslate2, huggingface, onnx
from transduce.wings.export.card import card
from transduce.wings.export.parity import MAX_COMPARED_SENTENCES, Parity, Runner, check_parity
from transduce.wings.formats import Format, refuse
from transduce.wings.phrasebook.examples import held_out

FLOAT32 = "float32"


class Form(NamedTuple):
    """The functions of one export format."""

    write: Callable[[Bundle, Path, str], None]  # model, folder, compute type
    open_runner: Callable[[Path], Runner]
    usage: Callable[[Bundle], str]  # Markdown
    quantises: bool = False  # can compute in other types than float32


FORMS: dict[Format, Form] = {
    "ctranslate2": Form(ctranslate2.write, ctranslate2.open_runner, ctranslate2.usage, quantises=True),
    "argos": Form(argos.write, argos.open_runner, argos.usage, quantises=True),
    "huggingface": Form(huggingface.write, huggingface.open_runner, huggingface.usage),
    "onnx": Form(onnx.write, onnx.open_runner, onnx.usage),
}


def refusal(form: Format, folder: Path, config: RunConfig) -> Refusal | None:
    """Why a model can't be exported to a format; None if it can."""
    if not (folder / MANIFEST).exists():
        return Refusal(f"the training of {folder} is not finished")
    return refuse(form, folder, config)


def export(folder: Path, form: Format, out: Path, compute_type: str = FLOAT32, pairs: Sequence[Pair] = ()) -> Parity:
    """Write a model in another format to the new folder `out`, unless the two translate differently.

    pairs: sentences to compare on; by default the held-out text of the training.
    Raises UserError if the format can't express the model, its package is not installed or the translations differ.
    """
    config = model_folder.read_config(folder)
    if why := refusal(form, folder, config):
        raise UserError(f"{folder} can't be exported to {form}: {why.reason}.")
    if compute_type != FLOAT32 and not FORMS[form].quantises:
        raise UserError(f"{form} is written in {FLOAT32} only; a compute type is for ctranslate2 and argos.")
    verify(folder, hashes=True, but=model_folder.CARD)
    model = model_folder.load(folder)
    needed = (folder / model_folder.WEIGHTS).stat().st_size if compute_type == FLOAT32 else 0
    with write_folder(out, needed) as aside:
        FORMS[form].write(model, aside, compute_type)
        sentences = pairs or held_out(folder, MAX_COMPARED_SENTENCES)
        parity = check_parity(model, sentences, FORMS[form].open_runner(aside), exact=compute_type == FLOAT32)
        (aside / model_folder.CARD).write_text(
            card(model, form, compute_type, FORMS[form].usage(model), parity), encoding="utf-8"
        )
    return parity
