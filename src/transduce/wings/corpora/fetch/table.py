"""The table of corpora: what a name stands for.

    [NAME]                                   title, licence, homepage, cite, recipe; languages: pairs, or "any"
    [[NAME.train]] [[NAME.valid]] …          the parts of a split, one behind the other: where a text is, on both sides

A request is NAME, NAME:en-de, or NAME:TITLE:en-de and NAME:TITLE/VERSION:en-de for a collection of many corpora.
docs/guides/corpora.md describes all keys.
"""

import difflib
import re
import string
import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from transduce.system.errors import UserError

FORMATS = ("text", "sgm", "ted")
FACTS = ("title", "licence", "homepage", "cite", "recipe", "languages", "catalogue")
KEYS = ("url", "bytes", "checksum", "member", "source", "target", "format", "notes")
PLACES = ("source", "target", "first", "second", "corpus", "version")  # in braces; {language}, too, in parts
PAIR = re.compile(r"([A-Za-z]{2,3}(?:_\w{1,8})?)-([A-Za-z]{2,3}(?:_\w{1,8})?)", re.ASCII)
NAME = re.compile(r"[\w][\w.-]*", re.ASCII)
SPLIT = re.compile(r"[a-z][a-z0-9_]*")
CHECKSUM = re.compile(r"sha256:[0-9a-f]{64}|md5:[0-9a-f]{32}")


class Download(NamedTuple):
    """A file somewhere else."""

    url: str
    size: int  # bytes, as far as the table knows; 0: unknown
    checksum: str  # "sha256:…" or "md5:…"; "": unknown


class Side(NamedTuple):
    """One language of a part: a member of an archive, or the whole download if that is ""."""

    language: str
    download: Download
    member: str


class Part(NamedTuple):
    """Aligned text in two languages."""

    source: Side
    target: Side
    format: str
    notes: tuple[str, ...]  # members with licences and the like, kept beside the text if they are there


class Found(NamedTuple):
    """What a request leaves open, and the catalogue of a collection tells: version, order of the languages, bytes."""

    version: str
    first: str
    second: str
    size: int


class Corpus(NamedTuple):
    """What a request asks for; `splits` in the order of the table."""

    name: str
    title: str
    languages: tuple[str, str]
    licence: str
    homepage: str
    cite: str
    recipe: str
    splits: dict[str, tuple[Part, ...]]

    def downloads(self) -> list[Download]:
        """Every file once, in the order in which they are needed."""
        parts = [part for split in self.splits.values() for part in split]
        return list(dict.fromkeys(side.download for part in parts for side in (part.source, part.target)))


class Request(NamedTuple):
    """NAME[:CORPUS[/VERSION]][:SOURCE-TARGET]"""

    text: str
    name: str
    corpus: str
    version: str
    languages: tuple[str, str]


class Entry(NamedTuple):
    """A name of the table."""

    name: str
    facts: Mapping[str, Any]
    splits: Mapping[str, list[dict[str, Any]]]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The pairs of languages, of which the other direction can be had, too; none: any."""
        named = self.facts["languages"]
        return [] if named == "any" else [_pair(each, self.name) for each in named]

    @property
    def catalogue(self) -> str:
        """The address that tells the versions of a collection; "": no collection."""
        return str(self.facts.get("catalogue", ""))

    @property
    def pattern(self) -> str:
        """What to ask for, for people."""
        any_pair = not self.pairs
        return self.name + (":CORPUS" if self.catalogue else "") + (":SOURCE-TARGET" if any_pair else "")


def read_table(text: str, file: str) -> dict[str, Entry]:
    """The entries of a table by name; raises UserError that names what is wrong with it."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{file} is not TOML: {error}.") from None
    return {name: _entry(name, content, file) for name, content in tables.items()}


def find(entries: Mapping[str, Entry], text: str) -> tuple[Entry, Request]:
    """What a request such as "multi30k:en-fr" stands for; raises UserError if it stands for nothing."""
    name, *rest = text.split(":")
    if name not in entries:
        nearest = difflib.get_close_matches(name, entries, 1)
        hint = f"did you mean '{nearest[0]}'?" if nearest else f"there are {', '.join(entries)}."
        raise UserError(f"There is no corpus '{name}' in the table; {hint}")
    entry = entries[name]
    corpus, _, version = (rest.pop(0) if entry.catalogue and rest else "").partition("/")
    languages = _languages(entry, rest, text)
    if (entry.catalogue and not corpus) or any(each and not NAME.fullmatch(each) for each in (corpus, version)):
        raise UserError(f"'{text}' doesn't say which corpus of {name}; write {_example(entry)}.")
    return entry, Request(text, name, corpus, version, languages)


def choose(entry: Entry, request: Request, found: Found | None = None) -> Corpus:
    """The entry for a pair of languages, with every place filled in."""
    values = places(request)
    if found:
        values |= {"version": found.version, "first": found.first, "second": found.second}
    try:
        splits = {
            split: tuple(_part(fields, values, found) for fields in parts if _holds(fields, request.languages))
            for split, parts in entry.splits.items()
        }
    except KeyError as error:
        raise UserError(f"The table has no value of {entry.name} for the language {error}.") from None
    _check_once(entry.name, [part for parts in splits.values() for part in parts])
    facts = {name: str(entry.facts.get(name, "")) for name in FACTS}
    recipe = facts["recipe"] if request.languages in entry.pairs[:1] else ""
    known = {split: parts for split, parts in splits.items() if parts}
    title = facts["title"].format_map(values)
    return Corpus(
        request.text, title, request.languages, facts["licence"], facts["homepage"], facts["cite"], recipe, known
    )


def _check_once(name: str, parts: list[Part]) -> None:
    """Refuse what would be the same text twice, or a file that is an archive here and a text there."""
    seen: dict[Download, set[str]] = {}
    for side in (side for part in parts for side in (part.source, part.target)):
        members = seen.setdefault(side.download, set())
        if side.member in members or (members and "" in (*members, side.member)):
            raise UserError(f"The table takes {side.member or 'the whole'} of {side.download.url} twice for {name}.")
        members.add(side.member)


def places(request: Request) -> dict[str, str]:
    """What a request says of the places in the table, all but {language}."""
    first, second = sorted(request.languages)
    values = (*request.languages, first, second, request.corpus, request.version)
    return dict(zip(PLACES, values, strict=True))


def _languages(entry: Entry, rest: list[str], text: str) -> tuple[str, str]:
    if not rest and entry.pairs:
        return entry.pairs[0]
    if len(rest) != 1:
        raise UserError(f"'{text}' doesn't say which languages; write {_example(entry)}.")
    languages = _pair(rest[0], text)
    if entry.pairs and not {languages, languages[::-1]} & set(entry.pairs):
        known = ", ".join("-".join(pair) for pair in entry.pairs)
        raise UserError(f"{entry.name} has no {rest[0]}; it has {known}, and each the other way round.")
    return languages


def _pair(text: str, where: str) -> tuple[str, str]:
    match = PAIR.fullmatch(text)
    if not match or match[1] == match[2]:
        raise UserError(f"{where}: '{text}' is no pair of languages; write it like en-de.")
    return match[1], match[2]


def _example(entry: Entry) -> str:
    pair = "-".join(entry.pairs[0]) if entry.pairs else "en-de"
    return f"{entry.name}:Books:{pair}" if entry.catalogue else f"{entry.name}:{pair}"


def _holds(fields: Mapping[str, Any], languages: tuple[str, str]) -> bool:
    """Whether a part that is stored language by language has both."""
    checksum = fields.get("checksum", "")
    return isinstance(checksum, str) or set(languages) <= set(checksum)


def _part(fields: Mapping[str, Any], values: dict[str, str], found: Found | None) -> Part:
    def side(which: str) -> Side:
        language = values[which]
        here = values | {"language": language}
        checksum, size = (
            each[language] if isinstance(each, dict) else each
            for each in (fields.get("checksum", ""), fields.get("bytes", 0))
        )
        member = fields.get(which, fields.get("member", ""))
        url = fields["url"].format_map(here)
        return Side(language, Download(url, size or (found.size if found else 0), checksum), member.format_map(here))

    return Part(side("source"), side("target"), fields.get("format", "text"), tuple(fields.get("notes", ())))


def _entry(name: str, content: Any, file: str) -> Entry:
    """Check a table of the file; what it says is wrong is said here, not when it is used."""
    where = f"{file}, [{name}]"
    if not isinstance(content, dict) or not NAME.fullmatch(name):
        raise UserError(f"{where}: a corpus is a table whose name has letters, digits, - and _.")
    splits = {key: value for key, value in content.items() if isinstance(value, list) and key not in FACTS}
    facts = {key: value for key, value in content.items() if key not in splits}
    _refuse_unknown(facts, FACTS, where)
    for key in ("title", "licence", "languages"):
        if key not in facts:
            raise UserError(f"{where}: {key} is missing.")
    for key in (key for key in facts if key != "languages"):
        _check_pattern(facts[key], f"{where}: {key}", PLACES)
    if "catalogue" in facts:
        _check_address(facts["catalogue"], where)
    if facts["languages"] != "any":
        if not isinstance(facts["languages"], list):
            raise UserError(f'{where}: languages is a list of pairs, or "any".')
        for each in facts["languages"]:
            _pair(str(each), where)
    entry = Entry(name, facts, splits)
    if (not entry.pairs and facts["languages"] != "any") or not splits:
        raise UserError(f"{where}: a corpus has languages, and a part: [[{name}.train]].")
    for split, parts in splits.items():
        if not SPLIT.fullmatch(split):
            raise UserError(f"{where}: '{split}' can't be part of a file's name; use lower-case letters, digits and _.")
        for fields in parts:
            _check_part(fields, f"{file}, [[{name}.{split}]]")
    return entry


def _check_part(fields: Any, where: str) -> None:
    if not isinstance(fields, dict) or "url" not in fields:
        raise UserError(f"{where}: url is missing.")
    _refuse_unknown(fields, KEYS, where)
    for key in ("url", "member", "source", "target", "format"):
        _check_pattern(fields.get(key, ""), f"{where}: {key}", (*PLACES, "language"))
    _check_address(fields["url"], where)
    if fields.get("format", "text") not in FORMATS:
        raise UserError(f"{where}: format is one of {', '.join(FORMATS)}.")
    for each in _values(fields.get("checksum", "")):
        if each != "" and not CHECKSUM.fullmatch(str(each)):
            raise UserError(f"{where}: checksum {each} is not sha256: or md5: and so many hexadecimal digits.")
    if not all(type(each) is int and each >= 0 for each in _values(fields.get("bytes", 0))):
        raise UserError(f"{where}: bytes is a number.")
    notes = fields.get("notes", [])
    if not isinstance(notes, list) or not all(isinstance(each, str) for each in notes):
        raise UserError(f"{where}: notes is a list of names.")


def _check_address(url: str, where: str) -> None:
    try:
        known = urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
    except ValueError:
        known = False
    if not known:
        raise UserError(f"{where}: {url} is no address that begins with https:// or http://.")


def _check_pattern(pattern: Any, where: str, known: tuple[str, ...]) -> None:
    """Refuse what is no text, or has places that nothing can fill."""
    if not isinstance(pattern, str):
        raise UserError(f"{where} is a text.")
    try:
        found = {name for _, name, _, _ in string.Formatter().parse(pattern) if name is not None}
        pattern.format_map(dict.fromkeys(known, "x"))
    except (ValueError, LookupError, AttributeError):
        found = {pattern}
    if not found <= set(known):
        raise UserError(
            f"{where}, {pattern}, has something in braces that nothing is known of; there are {', '.join(known)}."
        )


def _values(of: Any) -> list[Any]:
    """One for all languages, or one for each."""
    return list(of.values()) if isinstance(of, dict) else [of]


def _refuse_unknown(fields: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in fields:
        if key not in known:
            (nearest,) = difflib.get_close_matches(key, known, 1, 0.0)
            raise UserError(f"{where}: there is no key {key}; did you mean {nearest}?")
