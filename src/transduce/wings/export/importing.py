"""A Marian model in Hugging Face's form becomes a model folder: written aside, compared with it, then kept."""

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from transduce import model_folder
from transduce.config.schema import PAD, UNK
from transduce.decoding.check_sentences import phrases
from transduce.model.build import build, count_parameters, load_weights
from transduce.model_folder import Bundle
from transduce.system.errors import UserError
from transduce.system.files import write_folder
from transduce.text.pairs import Pair
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.export import huggingface
from transduce.wings.export.foreign import Marian, read
from transduce.wings.export.parity import SENTENCES, Proof, prove


class Imported(NamedTuple):
    """What became of it."""

    parameters: int
    proof: Proof | None  # None: transformers isn't installed


def import_model(folder: Path, out: Path, source: str = "", target: str = "", pairs: Sequence[Pair] = ()) -> Imported:
    """Write the model of a folder into the new model folder `out`, which isn't there unless both translate the same.

    source, target: codes of the languages, where the folder doesn't say them. pairs: sentences to compare on; by
    default those of the phrasebook. Raises UserError that says what can't be read or imported, or how it differs.
    """
    theirs = read(folder, source, target)
    parameters = count_parameters(theirs.config.model)
    metrics = {"parameters": parameters, "imported": folder.resolve().name}
    with write_folder(out, sum(each.numel() * each.element_size() for each in theirs.weights.values())) as aside:
        model_folder.fill(aside, theirs.config, theirs.tokenizer, theirs.weights, metrics, "")
        proof = _compare(aside, folder, theirs, pairs) if find_spec("transformers") else None
        (aside / model_folder.CARD).write_text(_card(folder, theirs, proof), encoding="utf-8")
    return Imported(parameters, proof)


def _compare(written: Path, original: Path, theirs: Marian, pairs: Sequence[Pair]) -> Proof:
    """What was written, read again, against the original, which may not say what ours never says."""
    model = build(theirs.config.model)
    load_weights(model, written / model_folder.WEIGHTS)
    imported = Bundle(written, theirs.config, Tokenizer.load(written), model.eval())
    never = sorted({theirs.target_rows[token] for token in (PAD, UNK)})
    german = theirs.config.data.source.startswith("de")
    texts = pairs or [pair._replace(source=pair.target) if german else pair for pair in phrases(SENTENCES)]
    try:
        return prove(imported, texts, huggingface.open_peer(original, never), exact=True)
    except UserError:
        raise
    except Exception as error:  # of any class that transformers, or what it uses, has for a folder that it can't use
        raise UserError(
            f"{original} can't be used by transformers, so that nothing was compared, nor written: "
            f"{type(error).__name__}: {' '.join(str(error).split())}"
        ) from None


def _card(folder: Path, theirs: Marian, proof: Proof | None) -> str:
    data, model = theirs.config.data, theirs.config.model
    compared = " ".join(proof.report()) if proof else "It was not compared: transformers was not installed."
    return f"""\
# {data.source} → {data.target}

Imported by transduce from {folder.resolve().name}, a Marian model in Hugging Face's form: {model.shape}. What its card
says, its licence too, holds for this one.

```
transduce translate . --input text.{data.source} --output text.{data.target}  # in this folder
```

{compared}
"""
