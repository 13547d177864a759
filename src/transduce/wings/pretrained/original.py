"""A model of another program in our format."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from transduce.config.parse import configure
from transduce.config.schema import RunConfig
from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.pretrained.families import Family
from transduce.wings.pretrained.reading import ANOTHER_COPY


class Original(NamedTuple):
    """Another program's model, in our format."""

    family: Family
    config: RunConfig
    tokenizer: Tokenizer
    weights: dict[str, Tensor]
    target_rows: list[int]  # the original's id for each of our target ids


def tokenizer_of(folder: Path, *sides: tuple[bytes, Sequence[str]]) -> Tokenizer:
    """The tokenizer with the SentencePiece models and the pieces of the target and, if it has its own, the source."""
    try:
        vocabularies = [ImportedVocabulary(model, pieces) for model, pieces in sides]
    except ValueError as error:
        raise UserError(
            f"The vocabulary of {folder} can't be used: {error}.", ANOTHER_COPY
        ) from None
    return Tokenizer(vocabularies[0], vocabularies[-1])


def configured(
    folder: Path,
    family: Family,
    options: Mapping[str, Any],
    tokenizer: Tokenizer,
    languages: tuple[str, str],
    directions: Sequence[Direction],
) -> RunConfig:
    """The configuration of a model with these options. `languages` are those of a model without directions."""
    source, target = directions[0] if directions else languages
    return configure(
        {
            **family.options,
            **options,
            "model.output_bias": True,
            "model.vocab_size": tokenizer.target.size,
            "model.source_vocab_size": 0 if tokenizer.joint else tokenizer.source.size,
            "data.joint": tokenizer.joint,
            "data.vocab_size": tokenizer.target.size,
            "data.tokenizer": "unigram",
            "data.source": source,
            "data.target": target,
            "data.directions": tuple(map(str, directions)),
            "data.licence": _licence(folder) or family.licence,
        }
    )


def _licence(folder: Path) -> str:
    """The licence in the front matter of the model's card; "" if it names none."""
    file = folder / "README.md"
    text = file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""
    found = re.search(r"\A---\n(?:.*\n)*?license: *[\"']?([\w.+-]+)", text)
    return found[1] if found else ""
