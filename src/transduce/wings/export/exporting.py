"""A finished model becomes a folder for another program: written aside, compared with the model, then kept."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from transduce import model_folder
from transduce.config.schema import RunConfig
from transduce.decoding.check_sentences import held_out
from transduce.decoding.engines.formats import Format, refuse
from transduce.decoding.types import Refusal
from transduce.model_folder import Bundle
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST, verify, write_folder
from transduce.text.pairs import Pair
from transduce.wings.export import argos, ctranslate2, huggingface, onnx
from transduce.wings.export.card import card
from transduce.wings.export.parity import SENTENCES, Peer, Proof, prove

FLOAT32 = "float32"


class Form(NamedTuple):
    """How a format is written, read again as its users do, and used."""

    write: Callable[[Bundle, Path, str], None]  # what it computes in, last
    open_peer: Callable[[Path], Peer]
    usage: Callable[[Bundle], str]  # Markdown
    quantises: bool = False  # whether it can compute in anything else than float32


FORMS: dict[Format, Form] = {
    "ctranslate2": Form(ctranslate2.write, ctranslate2.open_peer, ctranslate2.usage, quantises=True),
    "argos": Form(argos.write, argos.open_peer, argos.usage, quantises=True),
    "huggingface": Form(huggingface.write, huggingface.open_peer, huggingface.usage),
    "onnx": Form(onnx.write, onnx.open_peer, onnx.usage),
}


def refusal(form: Format, folder: Path, config: RunConfig) -> Refusal | None:
    """Why a model can't be exported to a format; None if it can."""
    if not (folder / MANIFEST).exists():
        return Refusal(f"the training of {folder} is not finished")
    return refuse(form, folder, config)


def export(folder: Path, form: Format, out: Path, compute_type: str = FLOAT32, pairs: Sequence[Pair] = ()) -> Proof:
    """Write the model of a folder into the new folder `out`, which isn't there unless it translates as the model does.

    pairs: sentences to compare on; by default what the training held out.
    Raises UserError if the format can't express the model, its package isn't installed, or it translates otherwise.
    """
    config = model_folder.read_config(folder)
    if why := refusal(form, folder, config):
        raise UserError(f"{folder} can't be exported to {form}: {why.reason}.")
    if compute_type != FLOAT32 and not FORMS[form].quantises:
        raise UserError(f"--compute-type is for ctranslate2 and argos; {form} is written in {FLOAT32}.")
    verify(folder, hashes=True, but=model_folder.CARD)
    model = model_folder.load(folder)
    needed = (folder / model_folder.WEIGHTS).stat().st_size if compute_type == FLOAT32 else 0
    with write_folder(out, needed) as aside:
        FORMS[form].write(model, aside, compute_type)
        proof = prove(
            model, pairs or held_out(folder, SENTENCES), FORMS[form].open_peer(aside), exact=compute_type == FLOAT32
        )
        (aside / model_folder.CARD).write_text(
            card(model, form, compute_type, FORMS[form].usage(model), proof), encoding="utf-8"
        )
    return proof
