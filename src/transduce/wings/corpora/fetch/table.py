"""Reads the table of corpora and their downloads (see docs/guides/corpora.md).

    [NAME]                           title, licence, homepage, cite, recipe, languages (a list of pairs, or "any")
    [[NAME.train]] [[NAME.valid]] …  the parts of each split, in their order

A request has the form NAME or NAME:en-de, or for a collection NAME:CORPUS:en-de or NAME:CORPUS/VERSION:en-de.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from transduce.config.parse import read_toml
from transduce.system.errors import Hint, UserError

TEXT_FORMATS = ("text", "sgm", "ted")
ENTRY_KEYS = ("title", "licence", "homepage", "cite", "recipe", "languages", "catalogue")
FACTS = ENTRY_KEYS[:5]
PART_KEYS = ("url", "bytes", "checksum", "member", "source", "target", "format", "notes")
# Written as {source} and so on; parts may also use {language}.
URL_PLACEHOLDERS = (
    "source",
    "target",
    "first",
    "second",
    "corpus",
    "version",
)
CODE = r"[A-Za-z]{2,3}(?:_[A-Za-z0-9_]{1,8})?"
PAIR = re.compile(f"({CODE})-({CODE})")
CORPUS_NAME = re.compile(r"[\w][\w.-]*", re.ASCII)
SPLIT_NAME = re.compile(r"[a-z][a-z0-9_]*")
BY_LANGUAGE = ("bytes", "checksum")
LIST_KEYS = ("notes", "languages")
ADDRESS = r"(?=https?://[^/?#\[\]])", "an address that begins with https:// or http://"
# The valid values of a key, or of each item of a list or of a table of languages. All other keys may have any text.
VALUES = {
    "bytes": (r"\d+", "a number"),
    # Names may have the folder in the archive; the file name must be allowed by every file system.
    "notes": (r"(.*/)?\w([\w .,+()-]*[\w+)])?", "a list of file names"),
    "languages": (PAIR.pattern, '"any", or a list of pairs such as "en-de"'),
    "checksum": (
        "sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}|",
        "sha256: or md5: followed by hexadecimal digits",
    ),
    "format": ("|".join(TEXT_FORMATS), f"one of {', '.join(TEXT_FORMATS)}"),
}


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


class Corpus(NamedTuple):
    """A corpus to download, with its splits in the order of the table."""

    name: str
    languages: tuple[str, str]
    facts: dict[str, str]  # key of FACTS -> value; "" if the table lacks the key
    splits: dict[str, tuple[Part, ...]]

    def sides(self) -> list[Side]:
        """The sides of all parts."""
        parts = [part for split in self.splits.values() for part in split]
        return [side for part in parts for side in (part.source, part.target)]

    def downloads(self) -> list[Download]:
        """The files to download, without repetitions, in order of first use."""
        return list(dict.fromkeys(side.download for side in self.sides()))


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
    # Pairs of languages, each available in both directions; empty: any pair.
    pairs: list[tuple[str, str]]
    catalogue: str  # the address that lists a collection's versions; "" for a single corpus

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
            f"Write, for example, {entry.example}.",
        )
    else:
        languages = _pair(rest[0], text)
    if entry.pairs and not {languages, languages[::-1]} & set(entry.pairs):
        known = ", ".join("-".join(pair) for pair in entry.pairs)
        raise UserError(f"{name} has no {rest[0]}.", f"Choose one of {known}, in either direction.")
    if entry.catalogue and not all(map(CORPUS_NAME.fullmatch, (corpus, version or corpus))):
        raise UserError(
            f"'{text}' names no corpus of the collection {name}.",
            f"Write, for example, {entry.example}.",
        )
    first, second = sorted(languages)
    return entry, Request(text, corpus, version, languages, (first, second))


def choose(entry: Entry, request: Request) -> Corpus:
    """The corpus that a request names. Raises UserError if its entry is incomplete or uses a file twice."""
    values = request.placeholders()
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
            f"{entry.name} has no text for {languages}: `checksum` in its table entry lists the languages that it has."
        )
    facts = {fact: entry.facts.get(fact, "") for fact in FACTS}
    facts["title"] = facts["title"].format_map(values)
    if request.languages not in entry.pairs[:1]:
        facts["recipe"] = ""
    corpus = Corpus(request.text, request.languages, facts, splits)
    for file in corpus.downloads():
        texts = [side.member for side in corpus.sides() if side.download == file]
        if len(texts) > 1 and ("" in texts or len({*texts}) < len(texts)):  # "": the whole download
            raise UserError(f"In the table, {entry.name} uses a text of {file.url} twice.")
    return corpus


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
            f"{where}: '{text}' is not a pair of languages.", "Write a pair such as en-de."
        )
    return match[1], match[2]


def _entry(name: str, content: Any, file: str) -> Entry:
    where = f"{file}, [{name}]"
    if not isinstance(content, dict):
        raise UserError(f"{where}: a corpus must be a table.")
    if not CORPUS_NAME.fullmatch(name):
        raise UserError(
            f"{where}: '{name}' can't be the name of a corpus.",
            "Use letters, digits, dots, - and _, and begin with neither a dot nor -.",
        )
    splits = {
        key: value
        for key, value in content.items()
        if isinstance(value, list) and key not in ENTRY_KEYS
    }
    facts = {key: value for key, value in content.items() if key not in splits}
    _check_values(facts, ENTRY_KEYS, ("title", "licence", "languages"), URL_PLACEHOLDERS, where)
    if not splits:
        raise UserError(f"{where}: a table of files is missing.", f"Add [[{name}.train]].")
    for split, parts in splits.items():
        if not SPLIT_NAME.fullmatch(split):
            raise UserError(
                f"{where}: '{split}' can't be part of a file name.",
                "Use lower-case letters, digits and _.",
            )
        known = (*URL_PLACEHOLDERS, "language")
        for part in parts:
            _check_values(part, PART_KEYS, ("url",), known, f"{file}, [[{name}.{split}]]")
    named = [] if facts["languages"] == "any" else facts["languages"]
    pairs = [_pair(text, where) for text in named]
    return Entry(name, facts, splits, pairs, facts.get("catalogue", ""))


def _check_values(
    fields: Any, keys: Sequence[str], needed: Sequence[str], known: Sequence[str], where: str
) -> None:
    """Raise UserError if a TOML table lacks a needed key, or has a wrong key or value."""
    for key in needed:
        if not isinstance(fields, dict) or key not in fields:
            raise UserError(f"{where}: {key} is missing.")
    text = rf"([^{{}}]|{{({'|'.join(known)})}})*"
    hint = "with no placeholders other than " + ", ".join(f"{{{name}}}" for name in known)
    for key, value in fields.items():
        if key not in keys:
            raise UserError(f"{where}: there is no key {key}.", Hint.choose(key, keys))
        start, kind = ADDRESS if key in ("url", "catalogue") else ("", "a text")
        form, wanted = VALUES.get(key, (start + text, f"{kind}, {hint}"))
        for item in _items(key, value):
            is_right = type(item) is (int if key == "bytes" else str)
            if not is_right or not re.fullmatch(form, str(item)):
                raise UserError(f"{where}: {key} = {value!r} is wrong.", f"Write {wanted}.")


def _items(key: str, value: Any) -> Sequence[Any]:
    """The values to check; [None] if a list is needed but missing."""
    if key == "languages" and value == "any":
        return []
    if key in LIST_KEYS:
        return value if isinstance(value, list) and value else [None]
    return list(value.values()) if key in BY_LANGUAGE and isinstance(value, dict) else [value]
