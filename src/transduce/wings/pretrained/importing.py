"""Imports a model of another program, and compares the imported model with the original."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from rich.filesize import decimal

from transduce import model_folder
from transduce.config.schema import PAD, UNK
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.evaluation.scores import compare
from transduce.model.build import build, count_parameters, load_weights
from transduce.model_folder import Bundle
from transduce.system.errors import UserError
from transduce.system.files import write_folder
from transduce.system.machine import free_memory
from transduce.text.pairs import Pair, first_of_each_direction
from transduce.tokens.tokenizer import Tokenizer
from transduce.training.card import card, code, translate_command
from transduce.training.facts import licence
from transduce.wings.export import huggingface, marian_files
from transduce.wings.export.parity import (
    MAX_COMPARED_SENTENCES,
    MAX_P_VALUE,
    Parity,
    Runner,
    check_parity,
)
from transduce.wings.phrasebook.examples import phrases
from transduce.wings.pretrained import huggingface_reader, marian_reader
from transduce.wings.pretrained.families import MARIAN
from transduce.wings.pretrained.original import Original
from transduce.wings.pretrained.originals import open_original

MEMORY_FACTOR = (
    3  # the weights as they are stored, their copy in our order, and the model that is compared
)


class Imported(NamedTuple):
    """The result of an import."""

    parameters: int
    parity: Parity | None  # None: the original's program is not installed, so nothing was compared
    positions: str  # how the rates of the positions were chosen, in words; "": there was no choice


def import_model(
    folder: Path,
    out: Path,
    source: str = "",
    target: str = "",
    pairs: Sequence[Pair] = (),
    *,
    trim: int = 0,
    texts: Sequence[str] = (),
) -> Imported:
    """Import the model in `folder` as the model folder `out`, and compare the translations of both models.

    `source` and `target` are language codes, separated by commas; empty codes are read from `folder`. Without `pairs`,
    the comparison uses short English or German sentences. If `trim` is not 0, a multilingual model keeps about as many
    pieces of its vocabulary, chosen by `texts` and `pairs`. Raises UserError if the model can't be imported or if the
    translations differ.
    """
    check_memory(folder)
    if marian_reader.description_of(folder):
        theirs = marian_reader.read(folder, source, target)
    else:
        both = [*texts, *(text for pair in pairs for text in pair[:2])]
        theirs = huggingface_reader.read(folder, source, target, trim, both)
    if trim and not theirs.family.is_multilingual:
        raise UserError(
            f"{folder} has a vocabulary for its own languages, which is not trimmed.",
            "Leave the number of pieces out.",
            "trim",
        )
    positions = ""
    original = theirs
    if theirs.family is MARIAN and pairs and pairs[0].target:
        theirs, positions = _with_better_positions(theirs, pairs)
    parameters = count_parameters(theirs.config.model)
    metrics = {"parameters": parameters, "imported": folder.resolve().name}
    with write_folder(
        out, sum(weight.numel() * weight.element_size() for weight in theirs.weights.values())
    ) as aside:
        model_folder.fill(aside, theirs.config, theirs.tokenizer, theirs.weights, metrics, "")
        parity = _compare(aside, folder, original, pairs)
        text = card(
            theirs.config,
            f"Imported by transduce from {folder.resolve().name}, a {theirs.family.title} model: "
            f"{theirs.config.model.shape}. The original's model card and licence apply to this model, too.",
            *(f"Licence: {fact.text}." for fact in licence(theirs.config)),
            code([translate_command(theirs.config)]),
            " ".join(filter(None, [*parity.report(), positions]))
            if parity
            else "Not compared with the original, whose program was not installed.",
        )
        (aside / model_folder.CARD).write_bytes(text.encode())
    return Imported(parameters, parity, positions)


def check_memory(folder: Path) -> None:
    """Raise UserError if the weights of a folder, their copy and their conversion hardly fit into memory."""
    suffixes = (".safetensors", ".bin", ".npz")
    stored = sum(file.stat().st_size for file in folder.iterdir() if file.suffix in suffixes)
    free = free_memory()
    if (needed := MEMORY_FACTOR * stored) > free:
        raise UserError(
            f"{folder} has {decimal(stored)} of weights, and their import needs about {decimal(needed)} of "
            f"memory; {decimal(int(free))} are free.",
            "Choose a smaller model, or a machine with more memory; with fewer pieces of its vocabulary, the "
            "imported model needs less.",
            "trim",
        )


def _with_better_positions(theirs: Original, pairs: Sequence[Pair]) -> tuple[Original, str]:
    """The model with the position rates that translate better, and the comparison in words.

    A model in Hugging Face's format that Marian trained was trained with other rates than transformers computes.
    """
    pairs = first_of_each_direction(pairs, MAX_COMPARED_SENTENCES)
    outputs = []
    models = []
    for kind in ("sinusoidal", "t2t"):
        config = replace(theirs.config, model=replace(theirs.config.model, positions=kind))
        network = build(config.model)
        network.load_state_dict(theirs.weights)
        translator = Translator(TorchEngine([network]), theirs.tokenizer, config.decode)
        outputs.append([each.text for each in translator.translate_pairs(pairs)])
        models.append(theirs._replace(config=config))
    chrf = compare(outputs[0], outputs[1], [pair.target for pair in pairs])[1]
    is_better = chrf.p_value < MAX_P_VALUE and chrf.second.value > chrf.first.value
    said = (
        f"Positions: chrF {chrf.second.value:.1f} with Marian's own rates, {chrf.first.value:.1f} with those of "
        f"transformers (p = {chrf.tested()}); {'Marian' if is_better else 'transformers'} is followed."
    )
    return models[is_better], said


def _compare(
    written: Path, original: Path, theirs: Original, pairs: Sequence[Pair]
) -> Parity | None:
    """Compare the translations of the imported and the original model, both without PAD and UNK."""
    model = build(theirs.config.model)
    load_weights(model, written / model_folder.WEIGHTS)
    imported = Bundle(written, theirs.config, Tokenizer.load(written), model.eval())
    data = theirs.config.data
    count = MAX_COMPARED_SENTENCES
    texts = first_of_each_direction(pairs, count) or phrases(data, count)
    if (directions := data.directions) and not texts[0].direction:
        texts = [
            pair._replace(direction=directions[i % len(directions)]) for i, pair in enumerate(texts)
        ]
    try:
        runner = _open_runner(original, theirs)
        return check_parity(imported, texts, runner, exact=True) if runner else None
    except UserError:
        raise
    except Exception as error:  # a program raises exceptions of many classes for a damaged folder
        raise UserError(
            f"{theirs.family.program} can't open {original}, so nothing was compared or written: "
            f"{type(error).__name__}: {' '.join(str(error).split())}"
        ) from None


def _open_runner(folder: Path, theirs: Original) -> Runner | None:
    """The original in its own program; None if this program is not installed."""
    if theirs.family is marian_reader.NATIVE:
        return marian_files.open_runner(folder)
    if find_spec("transformers") is None:
        return None
    if theirs.family.is_multilingual:
        return open_original(folder, theirs)
    return huggingface.open_runner(
        folder, sorted({theirs.target_rows[token] for token in (PAD, UNK)})
    )
