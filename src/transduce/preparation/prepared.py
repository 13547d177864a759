"""A prepared corpus is a folder that `prepare` writes and that training reads.

folder/   tokenizer.model  corpus-0/ corpus-1/ …  (token stores)
          valid.jsonl      (the validation pairs, as text)
          general.jsonl    (the validation pairs of data.remember)
          left-out.jsonl   (the rule, file and line of each left-out pair)
          preparation.json (options, files and counts)
"""

import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from transduce.augmentation.pairs import changes
from transduce.config.schema import DataConfig, RunConfig
from transduce.preparation.copies import COPYING, copies
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.system.files import read_manifest, verify
from transduce.text.clean import Cleaning
from transduce.text.languages import Direction
from transduce.text.pairs import Origin, Pair, usable
from transduce.text.plain import read_lines
from transduce.tokens.mixture import Mixture, SampledMixture
from transduce.tokens.store import StoreView, TokenStore, write_store
from transduce.tokens.tokenizer import Tokenizer

LARGE_BYTES = 4 * 10**9  # the hashes of so much data take seconds to check
FACTS_FILE, VALID_FILE, LEFT_OUT_FILE = "preparation.json", "valid.jsonl", "left-out.jsonl"
GENERAL_FILE = "general.jsonl"
ONE_WAY = "one-way"  # see Facts.languages
# Adds corpora to the facts of a corpus with these token stores.
Extend = Callable[["Facts", Sequence[TokenStore]], "Facts"]
PREPARED = (
    "data.tokenizer",
    "data.joint",
    "data.source_kind",
    "data.symbols",
    "data.placeholders",
    "data.max_length",
    "data.max_ratio",
    "data.deduplicate",
    "data.rules",
    "data.holdout",
    "data.directions",
    "data.temperature",
    *COPYING,
)


@dataclass(frozen=True)
class Facts:
    """The options, files and counts of a prepared corpus, as FACTS_FILE stores them."""

    source: str  # language code
    target: str  # language code
    options: dict[str, Any]  # the options that PREPARED names, and data.licence if it is known
    corpora: list[list[str]]  # the files of every corpus
    # The files of every corpus, in the order in which its store numbers them.
    files: list[list[str]]
    weights: list[float]
    pairs: int  # pairs to train on
    held_out: int  # pairs
    dropped: int  # pairs linked to a held-out pair by shared sentences
    left_out: dict[str, int]  # pairs, by rule
    source_tokens: int  # with EOS
    target_tokens: int  # with EOS
    seconds: float
    # For every corpus, the language codes of a pair's two texts; then ONE_WAY if only this direction is trained.
    languages: list[list[str]] = field(default_factory=list)

    @property
    def pair_languages(self) -> list[list[str]]:
        """The codes of the two texts of each pair of every corpus, in models with one direction, too."""
        own = Direction(self.source, self.target).as_codes
        return [
            [source or own.source, target or own.target, *way]
            for source, target, *way in self.languages
        ]

    @property
    def directions(self) -> list[str]:
        """The directions that a model learns from the corpus."""
        return self.options.get("data.directions") or [
            str(Direction(self.source, self.target).as_codes)
        ]

    def extended(
        self,
        other: "Facts",
        corpora: Sequence[int],
        *,
        factor: float = 1.0,
        languages: Sequence[list[str]] | None = None,
    ) -> "Facts":
        """These facts and the facts of other corpora: their numbers in `other`, and a factor on their weights.

        By default, they have the `languages` that they have in `other`.
        """

        def chosen(values: Sequence[Any]) -> list[Any]:
            return [values[corpus] for corpus in corpora]

        return dataclasses.replace(
            self,
            corpora=self.corpora + chosen(other.corpora),
            files=self.files + chosen(other.files),
            weights=self.weights + [weight * factor for weight in chosen(other.weights)],
            languages=self.languages + list(languages or chosen(other.pair_languages)),
        )


@dataclass(frozen=True)
class Prepared:
    """A prepared corpus."""

    folder: Path
    facts: Facts
    tokenizer: Tokenizer
    mixture: Mixture
    numbers: Sequence[int]  # the number of each store's corpus

    def valid(self) -> list[Pair]:
        """The validation pairs."""
        return read_valid(self.folder)

    def drawn(self, config: RunConfig) -> Mixture:
        """The training pairs with the changes that data.augment and train.sample_source, train.sample_target choose."""
        change = changes(config, self.tokenizer)
        return SampledMixture(self.mixture, change) if change else self.mixture

    def origin(self, index: int) -> str:
        """The origin of a training pair as "file:line"."""
        store, file, line = self.mixture.origin(index)
        return f"{self.facts.files[self.numbers[store]][file]}:{line}"


def is_prepared(files: Sequence[str]) -> bool:
    """Whether a corpus consists of a single folder that `prepare` wrote."""
    return len(files) == 1 and (Path(files[0]) / FACTS_FILE).is_file()


def prepared_corpora(own: Path, data: DataConfig) -> list[Path]:
    """The folder of a training run's prepared corpus: the run's folder `own`, or the folder that `data` names."""
    places = [str(own), *(corpus.files[0] for corpus in data.corpora)]
    return [Path(place) for place in places if is_prepared([place])]


def open_prepared(folder: Path, *, hashes: bool = True) -> Prepared:
    """Open a prepared corpus. Raises UserError if a file is missing or damaged, or if the vocabulary lacks a token id.

    If `hashes` is false, only the sizes of the files are checked.
    """
    size = sum(entry.size for entry in read_manifest(folder).values())
    if hashes and size > LARGE_BYTES:
        log(f"Checking {folder} for damage ({decimal(size)}) …")
    verify(folder, hashes=hashes)
    facts = read_facts(folder)
    stores = [TokenStore(store_path(folder, number)) for number in range(len(facts.corpora))]
    tokenizer = Tokenizer.load(folder)
    sides = [(s.source.ids, tokenizer.source) for s in stores] + [
        (s.target.ids, tokenizer.target) for s in stores
    ]
    if hashes and any(ids.size and ids.max() >= vocabulary.size for ids, vocabulary in sides):
        raise UserError(
            f"{folder} has token ids that are not in its vocabulary.",
            "Prepare the corpus again.",
        )
    if facts.options.get("data.directions"):
        return Prepared(folder, facts, tokenizer, *_multilingual(stores, facts, tokenizer))
    mixture = Mixture(stores, facts.weights, tokenizer.values_per_position)
    return Prepared(folder, facts, tokenizer, mixture, range(len(stores)))


def _multilingual(
    stores: Sequence[TokenStore], facts: Facts, tokenizer: Tokenizer
) -> tuple[Mixture, list[int]]:
    """The pairs of all directions, with the weights of data.temperature, and the number of the corpus of each store."""
    found: list[tuple[str, int, StoreView]] = []
    for (number, store), swapped in product(enumerate(stores), (False, True)):
        codes = facts.languages[number]
        source, target = codes[:2][:: -1 if swapped else 1]
        name = str(Direction(source, target))
        if name in facts.options["data.directions"] and not (swapped and ONE_WAY in codes):
            view = StoreView(store, swapped, tokenizer.into(target, source).tags)
            found.append((name, number, view))
    pairs: dict[str, float] = {}
    for name, number, view in found:
        pairs[name] = pairs.get(name, 0) + facts.weights[number] * view.pairs
    shares = {
        name: count ** (1 / facts.options["data.temperature"]) for name, count in pairs.items()
    }
    # An epoch has as many pairs as without the temperature.
    scale = sum(pairs.values()) / (sum(shares.values()) or 1)
    factors = {name: scale * share / (pairs[name] or 1) for name, share in shares.items()}
    weights = [facts.weights[number] * factors[name] for name, number, _ in found]
    return Mixture([view for *_, view in found], weights), [number for _, number, _ in found]


def read_valid(folder: Path, name: str = VALID_FILE) -> list[Pair]:
    """The validation pairs of a prepared corpus, with their directions. Raises UserError if they are damaged."""
    file = str(folder / name)
    try:
        records = list(map(json.loads, read_lines(file)))
        return usable(
            Pair(
                record["source"], record["target"], Origin(file, line), record.get("direction", "")
            )
            for line, record in enumerate(records, 1)
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise UserError(f"{file} is damaged.", "Prepare the corpus again.") from None


def read_general(folder: Path) -> list[Pair]:
    """The validation pairs of data.remember, if any."""
    return read_valid(folder, GENERAL_FILE) if (folder / GENERAL_FILE).exists() else []


def read_facts(folder: Path) -> Facts:
    """Read FACTS_FILE. Raises UserError if the file is missing or damaged."""
    try:
        return Facts(**json.loads((folder / FACTS_FILE).read_bytes()))
    except (OSError, ValueError, TypeError, RecursionError):
        raise UserError(f"{folder / FACTS_FILE} is damaged.", "Prepare the corpus again.") from None


def store_path(folder: Path, corpus: int) -> Path:
    """The folder of the token store of corpus number `corpus`."""
    return folder / f"corpus-{corpus}"


def write_valid(folder: Path, held_out: Iterable[Pair], name: str = VALID_FILE) -> None:
    _write_lines(
        folder / name,
        (
            {"source": pair.source, "target": pair.target}
            | ({"direction": pair.direction} if pair.direction else {})
            for pair in held_out
        ),
    )


def write_facts(
    folder: Path,
    data: DataConfig,
    *,
    files: list[list[str]],
    held_out: int,
    dropped: int,
    cleaning: Cleaning,
    seconds: float,
    extend: Extend | None = None,
) -> None:
    """Write FACTS_FILE, changed by `extend`, and LEFT_OUT_FILE. See `check_pairs`.

    `files`, `held_out` and `dropped` are fields of `Facts`.
    """
    number = len([*folder.glob("corpus-*")])
    every = [TokenStore(store_path(folder, corpus)) for corpus in range(number)]
    own = every[: len(data.corpora)]
    tokenizer = Tokenizer.load(folder)
    began = time.monotonic()
    copied = list[int]()
    ways = list[list[str]]()
    for corpus, direction, pairs in copies(data, own, tokenizer):
        write_store(store_path(folder, number + len(copied)), pairs)
        copied.append(corpus)
        ways.append([*direction, ONE_WAY])
    # The corpora of data.replay count, too, but those of data.remember don't: the new pairs determine the training.
    stores = own if data.remember else every
    facts = Facts(
        source=data.source,
        target=data.target,
        options={name: getattr(data, name.removeprefix("data.")) for name in PREPARED}
        | {"data.joint": tokenizer.joint}
        | ({"data.licence": data.licence} if data.licence else {}),
        corpora=[list(corpus.files) for corpus in data.corpora],
        files=files,
        weights=[corpus.weight for corpus in data.corpora],
        pairs=sum(map(len, stores)),
        held_out=held_out,
        dropped=dropped,
        left_out=dict(cleaning.counts),
        source_tokens=sum(int(store.source.lengths.sum()) + len(store) for store in stores),
        target_tokens=sum(int(store.target.lengths.sum()) + len(store) for store in stores),
        seconds=round(seconds + (time.monotonic() - began if copied else 0), 3),
        languages=[[corpus.source, corpus.target] for corpus in data.corpora],
    )
    facts = extend(facts, every) if extend else facts
    facts = facts.extended(facts, copied, languages=ways)
    check_pairs(data, [*map(len, own)], cleaning)
    (folder / FACTS_FILE).write_text(
        json.dumps(dataclasses.asdict(facts), indent=1, ensure_ascii=False), encoding="utf-8"
    )
    _write_lines(
        folder / LEFT_OUT_FILE,
        (
            {"rule": rule, **origin._asdict()}
            for rule, origins in cleaning.lines.items()
            for origin in origins
        ),
    )


def check_pairs(data: DataConfig, pairs: Sequence[int], cleaning: Cleaning) -> None:
    """Raise UserError if no training pairs are left; in a multilingual model, also if a single corpus has none left.

    `pairs` are the numbers of the training pairs of each corpus.
    """
    for corpus, number in zip(data.corpora, pairs, strict=True):
        if number or (any(pairs) and not data.directions):
            continue
        files = ", ".join(corpus.files)
        if not cleaning.read:
            raise UserError(
                f"The corpus is empty: there are no lines in {files}.",
                "Check that this is the right corpus.",
            )
        raise UserError(f"No training pairs are left in {files}. {' '.join(cleaning.sentences())}")


def _write_lines(path: Path, values: Iterable[Mapping[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
