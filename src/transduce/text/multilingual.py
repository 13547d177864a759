"""Divides the files of a multilingual corpus into bilingual corpora.

train.en train.de train.fr            three line-aligned files: corpora en-de, en-fr and de-fr
a.en a.de b.en b.fr                   two corpora, because the names differ in more than the language
en,de=memory.tsv en,de,fr=other.tmx   files that hold several languages, which the names do not tell
en,de,fr=locale                       a folder with locale/de/….po and locale/fr/….po: corpora en-de and en-fr
"""

import re
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from transduce.system.errors import Hint, UserError
from transduce.text.formats import format_of
from transduce.text.languages import LANGUAGE_CODE, Direction
from transduce.text.pairs import expand_folders

LABEL = re.compile(r"(\w[\w-]*(?:,\w[\w-]*)+)=(.+)")


class BilingualCorpus(NamedTuple):
    """The files of a corpus, and the languages of the two texts of each pair."""

    files: tuple[str, ...]
    languages: Direction


def bilingual_corpora(files: Sequence[str]) -> list[BilingualCorpus]:
    """The corpora in the files of a multilingual corpus.

    Raises UserError if the languages of a file are unknown, or if a text file has no counterpart.
    """
    corpora: list[BilingualCorpus] = []
    aligned: dict[str, dict[str, str]] = {}  # name without language -> language -> file
    for file in files:
        if label := LABEL.fullmatch(file):
            corpora += _labelled(list(map(_code, label[1].split(","))), label[2])
            continue
        name, code = split_name(file)
        if not code:
            raise UserError(f"The language of {file} is unknown.", _how_to_name_languages(file))
        if code in aligned.setdefault(name, {}):
            raise UserError(
                f"{aligned[name][code]} and {file} are files of the same text and language.",
                "Name only one.",
            )
        aligned[name][code] = file
    for texts in aligned.values():
        if len(texts) == 1:
            raise UserError(
                f"{next(iter(texts.values()))}: there is no file of the same text in another language."
            )
        corpora += [
            BilingualCorpus((texts[a], texts[b]), Direction(a, b))
            for a, b in combinations(texts, 2)
        ]
    return corpora


def without_labels(files: Iterable[str]) -> list[str]:
    """The names of files or folders without the languages before them."""
    return [label[2] if (label := LABEL.fullmatch(file)) else file for file in files]


def is_multilingual(files: Sequence[str]) -> bool:
    """Whether file names need `bilingual_corpora`: they have labels, or name more than two texts of known languages."""
    if any(map(LABEL.fullmatch, files)):
        return True
    return len(files) > 2 and all(
        split_name(file)[1] and not format_of(file).is_bilingual for file in files
    )


def directions_in(
    corpora: Iterable[BilingualCorpus], sources: Sequence[str] = (), targets: Sequence[str] = ()
) -> list[Direction]:
    """The directions of the corpora, both ways, with a source in `sources` and a target in `targets`; empty: all.

    Raises UserError if there are no directions, or if no corpus has a language.
    """
    both = [each for corpus in corpora for each in (corpus.languages, corpus.languages.reverse)]
    languages = dict.fromkeys(code for direction in both for code in direction)
    wanted = [list(map(_code, codes)) or [*languages] for codes in (sources, targets)]
    for code in (*wanted[0], *wanted[1]):
        if code not in languages:
            raise UserError(
                f"No corpus has the language '{code}'.", Hint.choose(code, [*languages])
            )
    chosen = [
        direction
        for direction in both
        if direction.source in wanted[0] and direction.target in wanted[1]
    ]
    if not chosen:
        raise UserError(
            f"No corpus has a pair from {', '.join(wanted[0])} to {', '.join(wanted[1])}."
        )
    return list(dict.fromkeys(chosen))


def _how_to_name_languages(file: str) -> Hint:
    """The hint that says where to write a file's language codes."""
    if Path(file).is_dir() or format_of(file).is_bilingual:
        return Hint("Write its language codes first, such as en,de=train.tsv.")
    return Hint(
        "The name of a text file must have a language code, such as train.en or train.pt_BR."
    )


def _code(text: str) -> str:
    """A language code without hyphens, which separate the two codes of a direction."""
    return text.replace("-", "_")


def split_name(file: str) -> tuple[str, str]:
    """The name of a file without its language code, and this code, or "" if the name has none."""
    first, *parts = Path(file).name.split(".")
    for i in reversed(range(len(parts))):
        if LANGUAGE_CODE.fullmatch(parts[i]):
            return str(
                Path(file).with_name(".".join([first, *parts[:i], "", *parts[i + 1 :]]))
            ), _code(parts[i])
    return file, ""


def _parts(file: str, folder: str) -> tuple[str, ...]:
    """The names of the folders between `folder` and `file`, and the parts of the file's name."""
    path = Path(file)
    return (*path.parent.relative_to(folder).parts, *path.name.split("."))


def _labelled(codes: list[str], file: str) -> list[BilingualCorpus]:
    """The corpora in a file or in a folder that holds the languages `codes`."""
    if len(set(codes)) < len(codes):
        raise UserError(f"{','.join(codes)}={file} names a language twice.")
    if not Path(file).is_dir():
        return [BilingualCorpus((file,), Direction(a, b)) for a, b in combinations(codes, 2)]
    files = expand_folders([file])
    corpora = []
    for code in codes[1:]:
        own = tuple(each for each in files if code in map(_code, _parts(each, file)))
        if not own and len(codes) > 2:
            raise UserError(
                f"{file} has no bilingual files in a folder {code}, and no files {code}.po or the like."
            )
        corpora.append(BilingualCorpus(own or (file,), Direction(codes[0], code)))
    return corpora
