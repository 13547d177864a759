"""Reads the table of corpora and their downloads (see docs/guides/corpora.md).

    [NAME]                           title, licence, homepage, cite, recipe, languages (a list of pairs, or "any")
    [[NAME.train]] [[NAME.valid]] …  the parts of each split, in their order

A request has the form NAME or NAME:en-de, or for a collection NAME:CORPUS:en-de or NAME:CORPUS/VERSION:en-de.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from transduce.config.parse import read_toml
from transduce.system.errors import Hint, UserError

TEXT_FORMATS = ("text", "sgm", "ted")
ENTRY_KEYS = ("title", "licence", "homepage", "cite", "recipe", "languages", "catalogue")
PART_KEYS = ("url", "bytes", "checksum", "member", "source", "target", "format", "notes")
# As {source}; parts may use {language}.
URL_PLACEHOLDERS = (
    "source",
    "target",
    "first",
    "second",
    "corpus",
    "version",
)
PAIR = re.compile(r"([A-Za-z]{2,3}(?:_\w{1,8})?)-([A-Za-z]{2,3}(?:_\w{1,8})?)", re.ASCII)
CORPUS_NAME = re.compile(r"[\w][\w.-]*", re.ASCII)
# The folder in the archive, and a file name of every system.
NOTE_NAME = re.compile(r"(.*/)?\w([\w .,+()-]*[\w+)])?")
SPLIT_NAME = re.compile(r"[a-z][a-z0-9_]*")
CHECKSUM = re.compile(r"sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}|")


class Download(NamedTuple):
    """A file to download."""

    url: str
    size: int  # bytes; 0: unknown
    checksum: str  # "sha256:…" or "md5:…"; "": unknown


class Side(NamedTuple):
    """The text of a `Part` in one language. If `member` is "", the text is the whole download."""

    language: str
    download: Download
    member: str


class Part(NamedTuple):
    """Aligned texts in two languages. A split consists of one or more parts."""

    source: Side
    target: Side
    format: str
    notes: tuple[str, ...]  # members such as licences, copied if the archive has them

    @property
    def sides(self) -> tuple[Side, Side]:
        """Source and target."""
        return self.source, self.target


class Corpus(NamedTuple):
    """A corpus to download, with its splits in the order of the table."""

    name: str
    languages: tuple[str, str]
    title: str
    licence: str
    homepage: str
    cite: str
    recipe: str
    splits: dict[str, tuple[Part, ...]]

    def downloads(self) -> list[Download]:
        """The files to download, without repetitions, in order of first use."""
        parts = [part for split in self.splits.values() for part in split]
        return list(dict.fromkeys(side.download for part in parts for side in part.sides))


class Request(NamedTuple):
    """A parsed request for a corpus, such as "opus:Books/v1:en-de"."""

    text: str
    corpus: str
    version: str
    languages: tuple[str, str]
    stored: tuple[str, str]  # the languages, in their order in file names
    size: int = 0  # bytes of the download, from a catalogue; 0: unknown

    def placeholders(self) -> dict[str, str]:
        """The value of each placeholder in URL_PLACEHOLDERS."""
        return dict(
            zip(
                URL_PLACEHOLDERS,
                (*self.languages, *self.stored, self.corpus, self.version),
                strict=True,
            )
        )


class Entry(NamedTuple):
    """A table entry for a corpus or for a collection of corpora."""

    name: str
    facts: Mapping[str, Any]
    splits: Mapping[str, list[dict[str, Any]]]
    pairs: list[tuple[str, str]]  # of languages, each available in both directions; empty: any pair
    catalogue: str  # of a collection: the address that lists its versions; otherwise ""

    @property
    def pattern(self) -> str:
        """The form of a request for this entry, such as "opus:CORPUS:SOURCE-TARGET"."""
        corpus = ":CORPUS" if self.catalogue else ""
        pair = "" if self.pairs else ":SOURCE-TARGET"
        return f"{self.name}{corpus}{pair}"

    @property
    def example(self) -> str:
        """A complete request for this entry, such as "opus:Books:en-de"."""
        corpus = ":Books" if self.catalogue else ""
        pair = "-".join((*self.pairs, ("en", "de"))[0])
        return f"{self.name}{corpus}:{pair}"


def read_table(text: str, file: str) -> dict[str, Entry]:
    """Parse a table into entries by name. Raises UserError if the table has a mistake."""
    return {name: _entry(name, content, file) for name, content in read_toml(text, file).items()}


def find(entries: Mapping[str, Entry], text: str) -> tuple[Entry, Request]:
    """Parse a request such as "multi30k:en-fr", and find its entry. Raises UserError if the request is invalid."""
    name, *rest = text.split(":")
    if name not in entries:
        raise UserError(
            f"There is no corpus '{name}' in the table.", Hint.choose(name, list(entries))
        )
    entry = entries[name]
    corpus, _, version = (rest.pop(0) if entry.catalogue and rest else "").partition("/")
    if not rest and entry.pairs:
        languages = entry.pairs[0]
    elif len(rest) != 1:
        raise UserError(
            f"'{text}' doesn't name a corpus and its languages.",
            Hint(f"Write, for example, {entry.example}."),
        )
    else:
        languages = _pair(rest[0], text)
    if entry.pairs and not {languages, languages[::-1]} & set(entry.pairs):
        known = ", ".join("-".join(pair) for pair in entry.pairs)
        raise UserError(
            f"{name} has no {rest[0]}.", Hint(f"Choose one of {known}, in either direction.")
        )
    if (entry.catalogue and not corpus) or any(
        part and not CORPUS_NAME.fullmatch(part) for part in (corpus, version)
    ):
        raise UserError(
            f"'{text}' names no corpus of the collection {name}.",
            Hint(f"Write, for example, {entry.example}."),
        )
    first, second = sorted(languages)
    return entry, Request(text, corpus, version, languages, (first, second))


def choose(entry: Entry, request: Request) -> Corpus:
    """The corpus that a request names. Raises UserError if its entry is incomplete or uses a file twice."""
    values = request.placeholders()
    members = dict[Download, set[str]]()
    splits: dict[str, tuple[Part, ...]] = {}
    try:
        for split, parts in entry.splits.items():
            if available := [part for part in parts if _has(part, request.languages)]:
                splits[split] = tuple(_part(part, values, request.size) for part in available)
    except KeyError as error:
        raise UserError(
            f"In the table, `bytes` of {entry.name} has no value for the language {error}."
        ) from None
    if not splits:
        languages = "-".join(request.languages)
        raise UserError(
            f"{entry.name} has no text for {languages}, by the languages of `checksum` in the table."
        )
    for side in (side for parts in splits.values() for part in parts for side in part.sides):
        used = members.setdefault(side.download, set())
        if side.member in used or (used and "" in (*used, side.member)):  # "": the whole download
            raise UserError(
                f"In the table, {entry.name} uses {side.member or 'all'} of {side.download.url} twice."
            )
        used.add(side.member)
    title, licence, homepage, cite, recipe, *_ = (
        str(entry.facts.get(fact, "")) for fact in ENTRY_KEYS
    )
    if request.languages not in entry.pairs[:1]:
        recipe = ""
    return Corpus(
        request.text,
        request.languages,
        title.format_map(values),
        licence,
        homepage,
        cite,
        recipe,
        splits,
    )


def _has(part: Mapping[str, Any], languages: tuple[str, str]) -> bool:
    """Whether a part has both languages. If `checksum` is a table, it lists the languages of the part."""
    checksum = part.get("checksum", "")
    return not isinstance(checksum, dict) or set(languages) <= set(checksum)


def _part(fields: Mapping[str, Any], values: dict[str, str], size: int) -> Part:
    def side(which: str) -> Side:
        language = values[which]
        filled = values | {"language": language}
        bytes_, checksum = (
            value[language] if isinstance(value, dict) else value
            for value in (fields.get("bytes", size), fields.get("checksum", ""))
        )
        member = fields.get(which, fields.get("member", ""))
        return Side(
            language,
            Download(fields["url"].format_map(filled), bytes_, checksum),
            member.format_map(filled),
        )

    return Part(
        side("source"), side("target"), fields.get("format", "text"), tuple(fields.get("notes", ()))
    )


def _pair(text: str, where: str) -> tuple[str, str]:
    match = PAIR.fullmatch(text)
    if not match or match[1] == match[2]:
        raise UserError(
            f"{where}: '{text}' is not a pair of languages.", Hint("Write a pair such as en-de.")
        )
    return match[1], match[2]


def _entry(name: str, content: Any, file: str) -> Entry:
    where = f"{file}, [{name}]"
    if not isinstance(content, dict):
        raise UserError(f"{where}: a corpus must be a table.")
    if not CORPUS_NAME.fullmatch(name):
        raise UserError(
            f"{where}: '{name}' can't be the name of a corpus.",
            Hint("Use letters, digits, dots, - and _, and begin with neither a dot nor -."),
        )
    splits = {
        key: value
        for key, value in content.items()
        if isinstance(value, list) and key not in ENTRY_KEYS
    }
    facts = {key: value for key, value in content.items() if key not in splits}
    _check_values(facts, ENTRY_KEYS, ("title", "licence", "languages"), URL_PLACEHOLDERS, where)
    if not splits:
        raise UserError(f"{where}: a table of files is missing.", Hint(f"Add [[{name}.train]]."))
    for split, parts in splits.items():
        if not SPLIT_NAME.fullmatch(split):
            raise UserError(
                f"{where}: '{split}' can't be part of a file name.",
                Hint("Use lower-case letters, digits and _."),
            )
        for part in parts:
            _check_values(
                part,
                PART_KEYS,
                ("url",),
                (*URL_PLACEHOLDERS, "language"),
                f"{file}, [[{name}.{split}]]",
            )
    pairs = (
        [] if facts["languages"] == "any" else [_pair(text, where) for text in facts["languages"]]
    )
    return Entry(name, facts, splits, pairs, facts.get("catalogue", ""))


def _check_values(
    fields: Any, keys: Sequence[str], needed: Sequence[str], known: Sequence[str], where: str
) -> None:
    """Raise UserError if a TOML table lacks a needed key, or has a wrong key or value."""
    for key in needed:
        if not isinstance(fields, dict) or key not in fields:
            raise UserError(f"{where}: {key} is missing.")
    for key, value in fields.items():
        if key not in keys:
            raise UserError(f"{where}: there is no key {key}.", Hint.choose(key, keys))
        by_language = key in ("bytes", "checksum") and isinstance(value, dict)
        for each in value.values() if by_language else [value]:
            if wanted := _wanted(key, each, known):
                raise UserError(f"{where}: {key} = {each!r} is wrong.", Hint(f"Write {wanted}."))


def _wanted(key: str, value: Any, known: Sequence[str]) -> str:
    """A description of the valid values of `key` if `value` is invalid, otherwise ""."""
    if key in KINDS_OF_VALUES:
        is_right, wanted = KINDS_OF_VALUES[key]
        return "" if is_right(value) else wanted
    try:
        filled = value.format_map(dict.fromkeys(known, "x"))
    except (ValueError, LookupError, AttributeError, TypeError):
        return "a string with no placeholders other than " + ", ".join(
            f"{{{name}}}" for name in known
        )
    if key in ("url", "catalogue") and not re.match(r"https?://[^/?#\[\]]", filled):
        return "an address that begins with https:// or http://"
    return ""


def _are_texts(value: Any, pattern: re.Pattern[str]) -> bool:
    return isinstance(value, list) and all(
        isinstance(text, str) and pattern.fullmatch(text) for text in value
    )


KINDS_OF_VALUES: dict[str, tuple[Callable[[Any], object], str]] = {
    "bytes": (lambda value: type(value) is int and value >= 0, "a number"),
    "notes": (lambda value: _are_texts(value, NOTE_NAME), "a list of file names"),
    "languages": (
        lambda value: value == "any" or (value and _are_texts(value, PAIR)),
        '"any", or a list of pairs such as "en-de"',
    ),
    "checksum": (
        lambda value: _are_texts([value], CHECKSUM),
        "sha256: or md5: followed by hexadecimal digits",
    ),
    "format": (lambda value: value in TEXT_FORMATS, f"one of {', '.join(TEXT_FORMATS)}"),
}
