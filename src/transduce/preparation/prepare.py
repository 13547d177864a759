"""From corpus to token store: read, clean, hold out, learn the vocabulary, encode.

folder/   tokenizer.model  corpus-0/ corpus-1/ …  (token stores)
          valid.jsonl      (what is held out, as text)
          left-out.jsonl   (rule, file and line of what cleaning left out)
          preparation.json (what was done, with counts)
"""

import dataclasses
import json
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from transduce.config.schema import STAND_INS, DataConfig
from transduce.system.errors import UserError
from transduce.system.files import verify, write_folder
from transduce.text.clean import TOO_LONG, Cleaning, clean
from transduce.text.holdout import DROPPED, HELD_OUT, TRAIN, hold_out
from transduce.text.pairs import TREES, Origin, Pair, are_documents, read_pairs
from transduce.text.placeholder_tokens import stand_in_pairs
from transduce.text.plain import suffixes
from transduce.text.rules import Rules
from transduce.text.staging import Spool, Texts
from transduce.text.tree_symbols import ALL_MARKS
from transduce.tokens.mixture import Mixture
from transduce.tokens.store import Encoded, TokenStore, write_store
from transduce.tokens.tokenizer import SENTENCES, Tokenizer

PREPARED = (
    *("data.tokenizer", "data.joint", "data.symbols", "data.placeholders", "data.max_length", "data.max_ratio"),
    *("data.deduplicate", "data.rules", "data.holdout"),
)
FACTS, VALID, LEFT_OUT = "preparation.json", "valid.jsonl", "left-out.jsonl"
SPOOL = "spool"
READ_TO_LEARN = 8  # times as many texts as a vocabulary is learnt from are read for that, at least


@dataclass(frozen=True)
class Facts:
    """What a preparation did."""

    source: str  # language codes
    target: str
    options: dict[str, Any]  # those of PREPARED
    corpora: list[list[str]]  # the files of every corpus
    files: list[list[str]]  # the same as the origins in the stores number them
    weights: list[float]
    pairs: int  # that are trained on
    held_out: int
    dropped: int  # related to what is held out
    left_out: dict[str, int]  # pairs, by rule
    source_tokens: int  # EOS counted
    target_tokens: int
    seconds: float


@dataclass(frozen=True)
class Prepared:
    """A corpus, ready to be trained on."""

    folder: Path
    facts: Facts
    tokenizer: Tokenizer
    mixture: Mixture

    def valid(self) -> list[Pair]:
        """The pairs to validate on."""
        return list(read_pairs([str(self.folder / VALID)])) if (self.folder / VALID).stat().st_size else []

    def origin(self, index: int) -> str:
        """File and line of a pair."""
        store, file, line = self.mixture.origin(index)
        return f"{self.facts.files[store][file]}:{line}"


def is_prepared(files: Sequence[str]) -> bool:
    """Whether what is given as a corpus is a folder that `prepare` wrote."""
    return len(files) == 1 and (Path(files[0]) / FACTS).is_file()


def prepare(
    data: DataConfig,
    folder: Path,
    *,
    vocab_size: Callable[[int], int],
    tokenizer: Tokenizer | None = None,
    threads: int = 1,
    rewrite: Callable[[Iterator[Pair], Cleaning], Iterator[Pair]] | None = None,
) -> Prepared:
    """Write a prepared corpus into the new `folder`.

    vocab_size: pairs -> the size of the vocabulary; not asked if there is a tokenizer already. rewrite: what becomes of
    the pairs of a corpus that are trained on. The text passes through files in the folder that is being written; memory
    is needed for its hashes, about 20 bytes a pair.
    Raises UserError for an empty corpus and for what the readers refuse.
    """
    began = time.monotonic()
    cleaning = Cleaning()
    data = with_placeholders(data, tokenizer)
    with write_folder(folder) as aside:
        spools = spool_corpora(data, aside / SPOOL, cleaning)
        held_out, dropped = split_off(data, spools, cleaning)
        kept = sum(spool.count() for spool in spools)
        if not kept:
            raise UserError(nothing_left(data, cleaning))
        if rewrite:
            for number, spooled in enumerate(spools):
                again = Cleaning(cleaning.counts, cleaning.lines)  # what is left out of the same pairs that were read
                pairs = clean(rewrite(spooled.pairs(), cleaning), rules_of(data), again)
                spools[number] = Spool(aside / SPOOL / f"rewritten-{number}", pairs, hashed=False)
        if not tokenizer:
            every = read_to_learn(sum(map(len, spools)))
            sources, targets = Texts(spools, 0, every), Texts(spools, 1, 1 if data.symbols else every)
            tokenizer = learn_vocabulary(data, sources, targets, vocab_size(kept))
        tokenizer.save(aside)
        tokenizer = Tokenizer.load(aside, threads)  # that encodes with them
        for number, spooled in enumerate(spools):
            write_store(aside / f"corpus-{number}", encoded(spooled, tokenizer, data.max_length, cleaning))
        shutil.rmtree(aside / SPOOL)
        write_valid(aside, held_out)
        conclude(
            aside,
            data,
            files=[spool.files for spool in spools],
            held_out=len(held_out),
            dropped=dropped,
            cleaning=cleaning,
            seconds=time.monotonic() - began,
        )
    return open_prepared(folder)


def write_valid(folder: Path, held_out: Iterable[Pair]) -> None:
    """Write the pairs to validate on."""
    _write_lines(folder / VALID, ({"source": pair.source, "target": pair.target} for pair in held_out))


def conclude(
    folder: Path,
    data: DataConfig,
    *,
    files: list[list[str]],
    held_out: int,
    dropped: int,
    cleaning: Cleaning,
    seconds: float,
) -> None:
    """Write what was done into a folder with the tokenizer and the stores; raises UserError if they are empty."""
    stores = [TokenStore.open(folder / f"corpus-{number}") for number in range(len(files))]
    facts = Facts(
        source=data.source,
        target=data.target,
        options={name: getattr(data, name.removeprefix("data.")) for name in PREPARED}
        | {"data.joint": Tokenizer.load(folder).joint},
        corpora=[list(corpus.files) for corpus in data.corpora],
        files=files,
        weights=[corpus.weight for corpus in data.corpora],
        pairs=sum(map(len, stores)),
        held_out=held_out,
        dropped=dropped,
        left_out=dict(cleaning.counts),
        source_tokens=sum(int(store.source_lengths.sum()) + len(store) for store in stores),
        target_tokens=sum(int(store.target_lengths.sum()) + len(store) for store in stores),
        seconds=round(seconds, 3),
    )
    if not facts.pairs:
        raise UserError(nothing_left(data, cleaning))
    (folder / FACTS).write_text(json.dumps(dataclasses.asdict(facts), indent=1, ensure_ascii=False), encoding="utf-8")
    _write_lines(
        folder / LEFT_OUT,
        ({"rule": rule, **origin._asdict()} for rule, origins in cleaning.lines.items() for origin in origins),
    )


def open_prepared(folder: Path) -> Prepared:
    """What `prepare` wrote; raises UserError that names what is damaged."""
    verify(folder)
    facts = read_facts(folder)
    stores = [TokenStore.open(folder / f"corpus-{number}") for number in range(len(facts.corpora))]
    return Prepared(folder, facts, Tokenizer.load(folder), Mixture(stores, facts.weights))


def read_facts(folder: Path) -> Facts:
    """What a preparation did; raises UserError if the file that says so is damaged."""
    try:
        return Facts(**json.loads((folder / FACTS).read_bytes()))
    except (OSError, ValueError, TypeError):
        raise UserError(f"{folder / FACTS} is damaged; prepare the corpus again.") from None


def check_corpora(data: DataConfig) -> None:
    """Raise UserError for what can't be prepared, before anything is read."""
    if not data.corpora:
        raise UserError("There is nothing to train on: give --train with two text files or one bilingual file.")
    for corpus in data.corpora:
        if is_prepared(corpus.files):
            raise UserError(f"{corpus.files[0]} is prepared already: give it to `transduce train`, as the only corpus.")
        if suffixes(corpus.files[0])[0] == TREES and not data.symbols:
            raise UserError(
                f"{corpus.files[0]} holds trees: train with a recipe for parsers, such as craft-parsing, or with "
                "data.symbols=true data.joint=false."
            )


def spool_corpora(data: DataConfig, folder: Path, cleaning: Cleaning) -> list[Spool]:
    """The clean pairs of every corpus; a pair that repeats one of an earlier corpus is kept, for weights to count."""
    check_corpora(data)
    languages = data.source, data.target
    spools = []
    for number, corpus in enumerate(data.corpora):
        pairs = clean(read_pairs(corpus.files, languages), rules_of(data), cleaning)
        spools.append(spool(folder / str(number), pairs, data, cleaning))
    return spools


def spool(folder: Path, pairs: Iterator[Pair], data: DataConfig, cleaning: Cleaning) -> Spool:
    """Write the clean pairs of a corpus as the model sees them."""
    return Spool(folder, _as_seen(pairs, data, cleaning), hashed=not data.valid and data.holdout > 0)


def rules_of(data: DataConfig) -> Rules:
    """What is left out."""
    return Rules(data.max_ratio, data.deduplicate, data.rules, (data.source, data.target), data.test)


def with_placeholders(data: DataConfig, tokenizer: Tokenizer | None) -> DataConfig:
    """What becomes of placeholders is decided: by the vocabulary if it is there already, else by the corpus."""
    known: Literal["masked", "kept"] | None = None
    if tokenizer:
        known = "masked" if tokenizer.has_stand_ins else "kept"
    if data.placeholders == "auto":
        files = [corpus.files for corpus in data.corpora if not is_prepared(corpus.files)]  # which is refused later
        documents = not data.symbols and any(map(are_documents, files))
        return dataclasses.replace(data, placeholders=known or ("masked" if documents else "kept"))
    if data.placeholders != (known or data.placeholders):
        raise UserError(f"The vocabulary was learnt with data.placeholders={known}; leave the option out.")
    if data.placeholders == "masked" and data.symbols:
        raise UserError("data.symbols is for trees, which have no placeholders: leave data.placeholders out.")
    return data


def _as_seen(pairs: Iterator[Pair], data: DataConfig, cleaning: Cleaning) -> Iterator[Pair]:
    """The pairs as the model sees them."""
    return stand_in_pairs(pairs, cleaning) if data.placeholders == "masked" else pairs


def split_off(data: DataConfig, spools: Sequence[Spool], cleaning: Cleaning) -> tuple[list[Pair], int]:
    """The validation pairs: read, or split off the corpora, which lose them, and how many else they lose."""
    if data.valid:
        return list(_as_seen(read_pairs(data.valid, (data.source, data.target)), data, cleaning)), 0
    if not data.holdout or not any(map(len, spools)):
        return [], 0
    ends = np.cumsum([spool.count() for spool in spools])
    parts = hold_out(lambda: chain.from_iterable(spool.sentences() for spool in spools), data.holdout, seed=1)
    for spool, its_parts in zip(spools, np.split(parts, ends[:-1]), strict=True):
        spool.parts[spool.parts == TRAIN] = its_parts
    return [pair for spool in spools for pair in spool.pairs(HELD_OUT)], sum(s.count(DROPPED) for s in spools)


def read_to_learn(pairs: int) -> int:
    """Of how many blocks of text one is read to learn a vocabulary of a corpus of so many pairs.

    What the tokenizer takes of a very large corpus is taken of a part of it: each of its passes reads all texts.
    """
    return max(1, pairs // (READ_TO_LEARN * SENTENCES))


def learn_vocabulary(data: DataConfig, sources: Collection[str], targets: Collection[str], size: int) -> Tokenizer:
    """The vocabulary of what is trained on."""
    if any(suffixes(corpus.files[0])[0] == TREES for corpus in data.corpora):
        targets = [*targets, ALL_MARKS]  # a tree to come may be longer than any of these
    return Tokenizer.train(
        sources,
        targets,
        vocab_size=size,
        kind=data.tokenizer,
        joint=data.joint,
        symbols=data.symbols,
        stand_ins=STAND_INS if data.placeholders == "masked" else "",
    )


def encoded(spool: Spool, tokenizer: Tokenizer, max_length: int, cleaning: Cleaning) -> Iterator[Encoded]:
    """What is trained on, as ids, without what is too long."""
    for block in spool.blocks():
        sources, targets = tokenizer.pack_source(block.sources), tokenizer.pack_target(block.targets)
        long = np.maximum(sources.lengths, targets.lengths) > max_length
        for place in np.flatnonzero(long):
            cleaning.count(TOO_LONG, Origin(spool.files[block.files[place]], int(block.lines[place])))
        yield Encoded(sources, targets, block.files, block.lines).where(~long)


def _write_lines(path: Path, values: Iterator[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(value, ensure_ascii=False) + "\n" for value in values)


def nothing_left(data: DataConfig, cleaning: Cleaning) -> str:
    files = ", ".join(file for corpus in data.corpora for file in corpus.files)
    if not cleaning.read:
        return f"The corpus is empty: {files} holds no lines; check that --train names the right files."
    rules = "; ".join(cleaning.sentences())
    return f"Nothing is left to train on of {files}: {rules}."
