"""Imports a Marian model in Hugging Face's format, and compares the imported model with the original."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from transduce import model_folder
from transduce.config.schema import PAD, UNK
from transduce.model.build import build, count_parameters, load_weights
from transduce.model_folder import Bundle
from transduce.system.errors import UserError
from transduce.system.files import write_folder
from transduce.text.pairs import Pair, first_of_each_direction
from transduce.tokens.tokenizer import Tokenizer
from transduce.training.card import card, code, translate_command
from transduce.wings.export import huggingface
from transduce.wings.export.marian_reader import Marian, read
from transduce.wings.export.parity import MAX_COMPARED_SENTENCES, Parity, check_parity
from transduce.wings.phrasebook.examples import phrases


class Imported(NamedTuple):
    """The result of an import."""

    parameters: int
    parity: Parity | None  # None: transformers is not installed, so nothing was compared


def import_model(
    folder: Path, out: Path, source: str = "", target: str = "", pairs: Sequence[Pair] = ()
) -> Imported:
    """Import the Marian model in `folder` as the model folder `out`, and compare the translations of both models.

    Empty language codes are read from `folder`. Without `pairs`, the comparison uses short English or German sentences.
    Raises UserError if the model can't be imported or if the translations differ.
    """
    theirs = read(folder, source, target)
    parameters = count_parameters(theirs.config.model)
    metrics = {"parameters": parameters, "imported": folder.resolve().name}
    with write_folder(
        out, sum(weight.numel() * weight.element_size() for weight in theirs.weights.values())
    ) as aside:
        model_folder.fill(aside, theirs.config, theirs.tokenizer, theirs.weights, metrics, "")
        parity = _compare(aside, folder, theirs, pairs) if find_spec("transformers") else None
        text = card(
            theirs.config,
            f"Imported by transduce from {folder.resolve().name}, a Marian model in Hugging Face's format: "
            f"{theirs.config.model.shape}. The original's model card and licence apply to this model, too.",
            code([translate_command(theirs.config)]),
            " ".join(parity.report())
            if parity
            else "Not compared with the original: transformers was not installed.",
        )
        (aside / model_folder.CARD).write_bytes(text.encode())
    return Imported(parameters, parity)


def _compare(written: Path, original: Path, theirs: Marian, pairs: Sequence[Pair]) -> Parity:
    """Compare the translations of the imported and the original model, both without PAD and UNK."""
    model = build(theirs.config.model)
    load_weights(model, written / model_folder.WEIGHTS)
    imported = Bundle(written, theirs.config, Tokenizer.load(written), model.eval())
    forbidden = sorted({theirs.target_rows[token] for token in (PAD, UNK)})
    data = theirs.config.data
    count = MAX_COMPARED_SENTENCES
    texts = first_of_each_direction(pairs, count) or phrases(data, count)
    if (directions := data.directions) and not texts[0].direction:
        texts = [
            pair._replace(direction=directions[i % len(directions)]) for i, pair in enumerate(texts)
        ]
    try:
        return check_parity(
            imported, texts, huggingface.open_runner(original, forbidden), exact=True
        )
    except UserError:
        raise
    except (
        Exception
    ) as error:  # transformers raises exceptions of many classes for a damaged folder
        raise UserError(
            f"transformers can't open {original}, so nothing was compared or written: "
            f"{type(error).__name__}: {' '.join(str(error).split())}"
        ) from None
