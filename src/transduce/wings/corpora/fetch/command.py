"""`transduce fetch`."""

import shlex
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from rich.filesize import decimal

from transduce.system.console import count, log, print_table
from transduce.system.errors import Hint, UserError
from transduce.text.plain import read_lines
from transduce.wings.corpora.fetch.table import Corpus, Entry, choose, find, read_table

if TYPE_CHECKING:
    from transduce.wings.corpora.fetch.corpus import Facts

# Options of `transduce train`.
SPLIT_OPTIONS = {
    "train": "--train",
    "valid": "--valid",
    "test": "--test",
}


def fetch(
    name: str | None = None,
    /,
    *,
    out: Path | None = None,
    downloads: Path | None = None,
    table: Path | None = None,
) -> None:
    """Download a known corpus as aligned text files.

    Without a name, the command lists the known corpora. Without --out, the command shows the planned downloads.
    Repeat the command to resume an interrupted download. Environment variables such as HTTPS_PROXY set the proxy.

    Args:
        name: The corpus, such as multi30k, multi30k:en-fr, tatoeba:en-de, opus:Books:en-de or opus:Books/v1:en-de.
        out: The folder to write.
        downloads: A folder in which downloaded files are kept for reuse. By default, files are downloaded to
            OUT.downloads, which is removed when OUT is complete.
        table: A TOML file that describes your own corpora and replaces transduce's list (docs/guides/corpora.md).
    """
    entries = _entries(table)
    if name is None:
        _print_entries(entries)
        return
    entry, request = find(entries, name)
    try:
        # Imports httpx2, ssl: too slow for --help.
        from transduce.wings.corpora.fetch import (
            corpus as fetching,
        )
    except ModuleNotFoundError as error:
        raise UserError(
            f"Downloads need the package {error.name}.", Hint.install("fetch")
        ) from None

    if out and (facts := fetching.already_fetched(name, out, downloads)):
        log(f"{out} already holds {name}.")
        _print_fetched(facts, out)
        return
    if entry.catalogue and not request.version:
        from transduce.wings.corpora.fetch.opus import look_up

        request = look_up(entry, request)
    corpus = choose(entry, request)
    _print_plan(corpus, out, downloads)
    if out:
        _print_fetched(fetching.fetch(corpus, out, downloads), out)
    else:
        print(f"To download: transduce fetch {shlex.quote(name)} --out DIR")


def _entries(table: Path | None) -> dict[str, Entry]:
    """Read a table of corpora, by default the table that comes with transduce."""
    if table:
        return read_table("\n".join(read_lines(str(table))), str(table))
    own = files("transduce.wings.corpora.fetch") / "corpora.toml"
    return read_table(own.read_text(encoding="utf-8"), "corpora.toml")


def _print_entries(entries: dict[str, Entry]) -> None:
    rows = [("name", "languages", "download", "licence")]
    for entry in entries.values():
        languages = " ".join("-".join(pair) for pair in entry.pairs) or "any"
        size = (
            _size(choose(entry, find(entries, entry.name)[1]))
            if entry.pairs and not entry.catalogue
            else "depends"
        )
        rows.append((entry.pattern, languages, size, str(entry.facts["licence"])))
    print_table(rows)


def _size(corpus: Corpus) -> str:
    """The total download size as text, such as "more than 5 MB" if some sizes are unknown."""
    sizes = [file.size for file in corpus.downloads()]
    known = decimal(sum(sizes))
    return known if all(sizes) else f"more than {known}" if any(sizes) else "not known"


def _print_plan(corpus: Corpus, out: Path | None, downloads: Path | None) -> None:
    source, target = corpus.languages
    rows = [
        ("corpus", f"{corpus.facts['title']}, {source} to {target}"),
        *((name, corpus.facts[name]) for name in ("licence", "homepage", "cite")),
        ("download", _size(corpus)),
    ]
    for file in corpus.downloads():
        rows.append(("", f"{file.url}  {decimal(file.size) if file.size else ''}"))
    rows.append(("to", f"{out}, through {downloads or f'{out}.downloads'}" if out else ""))
    print_table([row for row in rows if row[1]])


def _print_fetched(facts: "Facts", out: Path) -> None:
    source, target = facts["languages"]
    words = ["transduce", "train", *filter(None, [facts["recipe"]])]
    for split, pairs in facts["pairs"].items():
        files = [str(out / f"{split}.{language}") for language in (source, target)]
        print(f"{count(pairs, 'pair')} in {' and '.join(files)}")
        if split in SPLIT_OPTIONS:
            words += [SPLIT_OPTIONS[split], *files]
    if facts["repaired"]:
        print(f"Lines that were not UTF-8: {facts['repaired']:,}; invalid bytes became U+FFFD")
    if "train" in facts["pairs"]:
        words += ["--from", source, "--to", target, "--out", "MODEL"]
        print(f"To train on this corpus: {shlex.join(words)}")
