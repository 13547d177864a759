"""The vocabularies of M2M-100, NLLB-200, SMaLL-100 and mBART-50, of which chosen languages are kept."""

import difflib
import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from transduce.system.console import count
from transduce.system.errors import Hint, UserError
from transduce.text.languages import Direction, main_language, nearest_code
from transduce.tokens.vocabulary import LANGUAGE_TAG, OWN_TAG
from transduce.wings.pretrained.marian_vocabulary import SPECIAL_NAMES, Vocabulary
from transduce.wings.pretrained.reading import checked_ids, read_json, read_model

PIECES_MODEL, VOCABULARY_FILE = "sentencepiece.bpe.model", "vocab.json"
SPECIAL_ROWS = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
# __de__ in M2M-100 and SMaLL-100, deu_Latn in NLLB-200, de_DE in mBART-50
LANGUAGE_PIECE = re.compile(r"__(\w+)__|([a-z]{2,3}_[A-Z][A-Za-z]{1,3})")
SHOWN_CODES = 10


def choose_languages(
    folder: Path, title: str, first: int, sources: str, targets: str
) -> tuple[list[Direction], dict[str, int]]:
    """The directions between languages, and the languages' rows; `sources` and `targets` name them, with commas.

    `title` is that of the family. `first` is the row of the first language where no file says it. Raises UserError if
    no languages are named, or if the model lacks one.
    """
    rows = _rows_of_codes(folder, title, first)
    if not sources or not targets:
        raise UserError(
            f"The model has {count(len(rows), 'language')}: {_shown(rows)}. Choose those that you need.",
            "Separate their codes by commas, as in de,fr.",
            "" if sources else "data.source",
            "" if targets else "data.target",
        )
    chosen: list[dict[str, int]] = []
    for names in (sources, targets):
        codes = [_code(name, rows) for name in names.split(",") if name]
        chosen.append({_ours(code, rows): rows[code] for code in codes})
    directions = [
        Direction(source, target)
        for source in chosen[0]
        for target in chosen[1]
        if source != target
    ]
    if not directions:
        raise UserError(
            f"'{sources}' is the source and the target.", "Name another.", "data.target"
        )
    return directions, {**chosen[0], **chosen[1]}


def _code(name: str, rows: Mapping[str, int]) -> str:
    code = nearest_code(name.strip(), rows)
    if code is None:
        alike = difflib.get_close_matches(name, rows, 1)
        hint = f"Did you mean {alike[0]}?" if alike else f"Choose from {_shown(rows)}."
        raise UserError(f"The model lacks the language '{name}'.", Hint(hint))
    return code


def _ours(code: str, known: Iterable[str]) -> str:
    """Our code of a language: eng_Latn is en; with a script or region if the language has several codes."""
    plain = main_language(code)
    alike = [other for other in known if main_language(other) == plain]
    return plain if len(alike) == 1 else "_".join([plain, *code.split("_")[1:]])


def _shown(rows: Mapping[str, int]) -> str:
    codes = list(rows)
    return ", ".join(codes[:SHOWN_CODES]) + (", …" if len(codes) > SHOWN_CODES else "")


def _rows_of_codes(folder: Path, title: str, first: int) -> dict[str, int]:
    """The row of each language, by its code in the model."""
    fast = read_json(folder / "tokenizer.json", is_needed=False)
    described = read_json(folder / "tokenizer_config.json", is_needed=False)
    numbered: list[tuple[Any, Any]] = [
        (each.get("content"), each.get("id"))
        for each in fast.get("added_tokens") or ()
        if isinstance(each, dict)
    ]
    numbered += [
        (each.get("content"), int(row))
        for row, each in (described.get("added_tokens_decoder") or {}).items()
        if isinstance(each, dict) and row.isdecimal()
    ]
    rows = {
        found[1] or found[2]: row
        for piece, row in numbered
        if (found := LANGUAGE_PIECE.fullmatch(str(piece))) and type(row) is int
    }
    return rows or {code: first + place for place, code in enumerate(usual_codes(title))}


def usual_codes(title: str) -> list[str]:
    """The codes of the languages of a family, in the order of their rows."""
    text = files(__package__).joinpath("languages.txt").read_text(encoding="utf-8")
    return next(part for part in text.split("[") if title in part).partition("]")[2].split()


def read_pieces(folder: Path) -> tuple[bytes, dict[str, int]]:
    """The SentencePiece model, and the row of each piece in the embedding."""
    file = folder / PIECES_MODEL
    if not file.exists():
        raise UserError(
            f"{file} is missing.",
            "Copy it from the original model: newer programs don't write it when they save a model.",
        )
    model, processor = read_model(file)
    vocabulary_file = folder / VOCABULARY_FILE
    if vocabulary_file.exists():
        rows = checked_ids(vocabulary_file, read_json(vocabulary_file))
        return model, {
            piece: row for piece, row in rows.items() if not LANGUAGE_PIECE.fullmatch(piece)
        }
    others = range(
        len(SPECIAL_ROWS) - 1, processor.get_piece_size()
    )  # the model itself has no padding
    return model, SPECIAL_ROWS | {processor.id_to_piece(token): token + 1 for token in others}


def vocabulary(
    pieces: Mapping[str, int], languages: Mapping[str, int], start: int, *, own: bool
) -> Vocabulary:
    """Our vocabulary, with the chosen languages' tags behind the special pieces.

    `start` is the row that begins a translation. `own`: each side begins with the tag of its own language.
    """
    tag = OWN_TAG if own else LANGUAGE_TAG
    special = [SPECIAL_ROWS["<pad>"], start, SPECIAL_ROWS["</s>"], SPECIAL_ROWS["<unk>"]]
    taken = {*SPECIAL_ROWS.values()}
    others = {piece: row for piece, row in pieces.items() if row not in taken}
    names = [*SPECIAL_NAMES, *map(tag.format, languages), *others]
    return Vocabulary(names, [*special, *languages.values(), *others.values()])
