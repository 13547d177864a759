"""`transduce fetch`."""

import shlex
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from rich.filesize import decimal

from transduce.commands.output import print_table
from transduce.system.errors import UserError
from transduce.system.journal import say
from transduce.wings.corpora.fetch.table import Corpus, Entry, Request, choose, find, read_table

if TYPE_CHECKING:
    from transduce.wings.corpora.fetch.corpus import Fetched

SPLITS = {"train": "--train", "valid": "--valid", "test": "--test"}  # what `transduce train` calls them


def fetch(
    name: str | None = None,
    /,
    *,
    out: Path | None = None,
    downloads: Path | None = None,
    table: Path | None = None,
) -> None:
    """Download a known corpus as aligned text files.

    Without a name, list what is known; with a name alone, say what would be downloaded, and from where. An interrupted
    download goes on by the same command. Proxies are those of the environment.

    Args:
        name: multi30k, multi30k:en-fr, tatoeba:en-de, opus:Books:en-de, opus:Books/v1:en-de and so on.
        out: The folder to write.
        downloads: A folder for what is downloaded, which is kept; what lies there already is used. Without it,
            OUT.downloads, which goes when OUT is there.
        table: A TOML file with corpora of your own instead of those that come with transduce (docs/guides/corpora.md).
    """
    entries = _entries(table)
    if name is None:
        _print_entries(entries)
        return
    entry, request = find(entries, name)
    from transduce.wings.corpora.fetch import corpus as fetching  # urllib, ssl: too slow for --help

    if out and (there := fetching.already_fetched(name, out)):
        say(f"{out} holds {name} already.")
        _print_fetched(there)
        return
    corpus = _look_up(entry, request)
    _say_plan(corpus, out, downloads)
    if out:
        _print_fetched(fetching.fetch(corpus, out, downloads))
    else:
        print(f"Fetch it by: transduce fetch {shlex.quote(name)} --out DIR")


def _entries(table: Path | None) -> dict[str, Entry]:
    """The entries of a table, or of the one that comes with transduce."""
    if table is None:
        return read_table(
            (files("transduce.wings.corpora.fetch") / "corpora.toml").read_text(encoding="utf-8"), "corpora.toml"
        )
    try:
        return read_table(table.read_text(encoding="utf-8"), str(table))
    except OSError as error:
        raise UserError(f"--table {table} can't be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        raise UserError(f"--table {table} is not UTF-8 at byte {error.start}; save it as UTF-8.") from None


def _look_up(entry: Entry, request: Request) -> Corpus:
    """The corpus; only a collection of which no version is named is asked what the newest is."""
    if not entry.catalogue or request.version:
        return choose(entry, request)
    from transduce.wings.corpora.fetch.opus import look_up

    return choose(entry, request, look_up(entry, request))


def _print_entries(entries: dict[str, Entry]) -> None:
    rows = [("name", "languages", "download", "licence")]
    for entry in entries.values():
        languages = " ".join("-".join(pair) for pair in entry.pairs) or "any"
        size = _size(choose(entry, find(entries, entry.name)[1])) if entry.pairs else "depends"
        rows.append((entry.pattern, languages, size, str(entry.facts["licence"])))
    print_table(rows)


def _size(corpus: Corpus) -> str:
    """How large its downloads are, as far as that is known."""
    sizes = [each.size for each in corpus.downloads()]
    known = decimal(sum(sizes))
    return known if all(sizes) else f"more than {known}" if any(sizes) else "not known"


def _say_plan(corpus: Corpus, out: Path | None, downloads: Path | None) -> None:
    """What is about to be downloaded: everything that one would want to know before."""
    print_table(
        [
            ("corpus", f"{corpus.title}, {corpus.languages[0]} to {corpus.languages[1]}"),
            ("licence", corpus.licence),
            *([("homepage", corpus.homepage)] if corpus.homepage else []),
            *([("to be cited", corpus.cite)] if corpus.cite else []),
            ("download", _size(corpus)),
            *(("", f"{each.url}  {decimal(each.size) if each.size else ''}") for each in corpus.downloads()),
            *([("to", f"{out}, by way of {downloads or f'{out}.downloads'}")] if out else []),
        ]
    )


def _print_fetched(fetched: "Fetched") -> None:
    """What there is, and the command that uses it."""
    for split, pairs in fetched.pairs.items():
        print(f"{pairs:,} pairs in {' and '.join(str(file) for file in fetched.files(split))}")
    if fetched.repaired:
        print(f"{fetched.repaired:,} lines were not UTF-8; their bad bytes became U+FFFD")
    words = ["transduce", "train", *([fetched.recipe] if fetched.recipe else [])]
    for split, option in SPLITS.items():
        if split in fetched.pairs:
            words += [option, *map(str, fetched.files(split))]
    source, target = fetched.languages
    print(f"Train on it by: {shlex.join([*words, '--from', source, '--to', target, '--out', 'MODEL'])}")
