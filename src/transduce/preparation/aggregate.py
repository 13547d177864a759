"""Finds repeated pairs, splits off the validation pairs and learns the vocabulary."""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.config.schema import PLACEHOLDER_TOKENS, DataConfig
from transduce.inline.placeholder_tokens import with_shared_tokens
from transduce.preparation.check_corpus import check_corpora
from transduce.preparation.copies import marks
from transduce.preparation.passes import directed, rules_of
from transduce.preparation.prepared import check_pairs
from transduce.preparation.staging import Column, StagedPairs, StagedTexts
from transduce.system.console import count, log
from transduce.system.errors import UserError
from transduce.text.clean import LINES_KEPT, Cleaning
from transduce.text.hashes import Bits64, SeenHashes
from transduce.text.holdout import Part, hold_out, sentences, slices
from transduce.text.languages import Direction, target_of
from transduce.text.multilingual import bilingual_corpora
from transduce.text.pairs import Pair, are_trees, read_pairs, usable
from transduce.text.rules import DUPLICATE, NEAR_DUPLICATE, PLACEHOLDERS_DIFFER
from transduce.text.tree_symbols import ALL_MARKS
from transduce.tokens.learning import MAX_LEARNING_SENTENCES
from transduce.tokens.normalization import common_quotes
from transduce.tokens.tokenizer import Tokenizer

# The sample of a large corpus has at least this many times MAX_LEARNING_SENTENCES texts.
SAMPLE_FACTOR = 8
MIN_DIRECTION_PAIRS = 100  # minimum for a language pair without a warning
MAX_COPIES = 100  # maximum repetitions of a small language's texts when the vocabulary is learned

Corpora = Sequence[Sequence[StagedPairs]]  # the parts of every corpus
Numbers = NDArray[np.int64]


class Aggregate(NamedTuple):
    """The result of `aggregate`."""

    cleaning: Cleaning
    held_out: list[Pair]
    dropped: int  # pairs linked to a held-out pair by shared sentences
    pairs: int  # pairs to train on


def aggregate(data: DataConfig, corpora: Corpora, replayed: Sequence[Pair] = ()) -> Aggregate:
    """Decide which staged pairs are used for training and which for validation.

    `replayed` are the validation pairs of data.replay. Pairs that share a sentence with them are dropped. Uses about
    20 bytes of memory per pair. See `check_pairs`.
    """
    cleaning = Cleaning()
    for parts in corpora:
        leave_out(parts, data, cleaning)
    check_corpora(data, corpora)
    held_out, dropped = _hold_out(data, corpora, cleaning, replayed)
    numbers = [sum(part.count() for part in parts) for parts in corpora]
    check_pairs(data, numbers, cleaning)
    for corpus, number in zip(data.corpora, numbers, strict=True):
        if data.directions and number < MIN_DIRECTION_PAIRS:
            pairs = f"{count(number, 'pair')} from {corpus.source} to {corpus.target}"
            log(f"Warning: {' + '.join(corpus.files)} has only {pairs}.")
    return Aggregate(cleaning, held_out, dropped, sum(numbers))


def learn_vocabulary(data: DataConfig, corpora: Corpora, size: int) -> Tokenizer:
    """Learn the vocabulary from the training pairs."""
    kept = sum(
        int(np.count_nonzero(staged.parts <= Part.DROPPED)) for parts in corpora for staged in parts
    )
    every = max(1, kept // (SAMPLE_FACTOR * MAX_LEARNING_SENTENCES))
    sources = [(parts, 0) for parts in corpora]
    columns = [(parts, 1) for parts in corpora]
    if data.directions:
        sources = _balanced(data, corpora)
        columns = []
    targets: Collection[str] = StagedTexts(columns, 1 if data.symbols else every)
    if any(are_trees(corpus.files) for corpus in data.corpora):
        # Later trees may be longer than those of the corpus and need more marks.
        targets = [
            *targets,
            ALL_MARKS,
        ]
    is_normalised = not (data.directions or data.symbols)
    quotes = common_quotes(StagedTexts(sources, every)) if is_normalised else None
    return Tokenizer.train(
        StagedTexts(sources, every),
        targets,
        vocab_size=size,
        kind=data.tokenizer,
        joint=data.joint,
        symbols=data.symbols,
        placeholder_tokens=PLACEHOLDER_TOKENS if data.placeholders == "masked" else "",
        languages=list(dict.fromkeys(map(target_of, data.directions))),
        marks=list(chain.from_iterable(marks(data).values())),
        quotes=quotes,
        source_kind=data.source_kind,
    )


def extend_vocabulary(
    data: DataConfig,
    corpora: Corpora,
    tokenizer: Tokenizer,
    size: int,
    known: set[str],
    old_texts: Iterable[str] = (),
) -> Tokenizer:
    """Add pieces for the languages of the corpora that are not in `known`, and the missing tags.

    The new vocabulary has at most `size` pieces. If `size` is 0, each new language gets as many pieces as a known one
    has on average. `old_texts`: other texts in known languages.
    """
    columns = _columns(data, corpora)
    new = [its for language, its in columns.items() if language not in known]
    known_columns = [its for language, its in columns.items() if language in known]
    old = tokenizer.source.size
    tagged = [
        Direction.parse(name)[0 if tokenizer.has_own_tags else 1 :] for name in data.directions
    ]
    tags = list(dict.fromkeys(chain.from_iterable(tagged)))
    missing = sum(not tokenizer.tag_of(tag) for tag in tags)
    extra = size - old - missing if size else len(new) * old // len(known)
    if extra < 0:
        raise UserError(
            f"data.vocab_size must be at least {old + missing}: the old vocabulary and the new tags."
        )
    texts, known_texts = (StagedTexts([*chain.from_iterable(its)]) for its in (new, known_columns))
    return tokenizer.extended(texts, extra, tags, chain(known_texts, old_texts))


def _columns(data: DataConfig, corpora: Corpora) -> dict[str, list[Column]]:
    """The texts of each language of a multilingual corpus."""
    columns: dict[str, list[Column]] = {}
    for corpus, parts in zip(data.corpora, corpora, strict=True):
        columns.setdefault(corpus.source, []).append((parts, 0))
        columns.setdefault(corpus.target, []).append((parts, 1))
    return columns


def _balanced(data: DataConfig, corpora: Corpora) -> list[Column]:
    """All texts of a multilingual corpus. Small languages are repeated, by data.temperature."""
    columns = _columns(data, corpora)
    sizes = {
        language: sum(part.count() for parts, _ in its for part in parts)
        for language, its in columns.items()
    }
    largest = max(sizes.values())
    balanced = list[Column]()
    for language, its in columns.items():
        copies = (largest / max(1, sizes[language])) ** (1 - 1 / data.temperature)
        balanced += its * min(MAX_COPIES, round(copies))
    return balanced


def kept_files(parts: Sequence[StagedPairs]) -> list[str]:
    """The files that still have pairs after cleaning, in the order of the corpus."""
    names: dict[str, None] = {}
    for staged in parts:
        files = staged.file_numbers()
        for block in slices(len(staged)):
            numbers, first = np.unique(
                files[block][staged.parts[block] <= Part.DROPPED], return_index=True
            )
            names |= dict.fromkeys(
                staged.files[number] for number in numbers[np.argsort(first)].tolist()
            )
    return list(names)


def leave_out(parts: Sequence[StagedPairs], data: DataConfig, cleaning: Cleaning) -> None:
    """Mark pairs that repeat an earlier pair of the corpus, and count the pairs that each rule left out."""
    rules = {
        DUPLICATE: data.deduplicate and len(parts) > 1,
        NEAR_DUPLICATE: NEAR_DUPLICATE in rules_of(data).others,
    }
    # A single part has no duplicates.
    seen = {rule: SeenHashes() for rule, applies in rules.items() if applies}
    for staged in parts:
        cleaning.read += staged.read
        pairs = {rule: _mark_repeated(staged, rule, hashes) for rule, hashes in seen.items()}
        pairs[PLACEHOLDERS_DIFFER] = np.flatnonzero(staged.parts == Part.PLACEHOLDERS_DIFFER)
        _count(staged, pairs, cleaning)


def _mark_repeated(staged: StagedPairs, rule: str, seen: SeenHashes) -> Numbers:
    """Mark the pairs that repeat an earlier pair, and return their indices."""
    hashes = staged.hashes(rule)
    repeated = []
    compared = [Part.TRAIN]
    if rule == DUPLICATE:  # duplicates are found before masking
        compared.append(Part.PLACEHOLDERS_DIFFER)
    for block in slices(len(staged)):
        pairs = block.start + np.flatnonzero(np.isin(staged.parts[block], compared))
        repeated.append(pairs[~seen.add(hashes[pairs])])
        staged.parts[repeated[-1]] = Part.REPEATED
    return np.concatenate(repeated) if repeated else np.empty(0, dtype=np.int64)


def _count(staged: StagedPairs, pairs: Mapping[str, Numbers], cleaning: Cleaning) -> None:
    """Count the pairs that each rule left out. `pairs` contains the indices of the pairs left out after staging."""
    counts = {rule: left_out.number for rule, left_out in staged.left_out.items()}
    first = {rule: [*left_out.first] for rule, left_out in staged.left_out.items()}
    for rule, numbers in pairs.items():
        if len(numbers):
            counts[rule] = counts.get(rule, 0) + len(numbers)
            some = numbers[:LINES_KEPT].tolist()
            first.setdefault(rule, []).extend(zip(some, staged.origins(some), strict=True))
    # What was left out before staging stays before the pair at its place.
    for entries in first.values():
        entries.sort(key=itemgetter(0))
    for rule, entries in sorted(first.items(), key=lambda item: item[1][0][0]):
        cleaning.add(rule, counts[rule], [origin for _, origin in entries])


def _hold_out(
    data: DataConfig, corpora: Corpora, cleaning: Cleaning, replayed: Sequence[Pair]
) -> tuple[list[Pair], int]:
    """Return the validation pairs, and the number of pairs dropped because they share sentences with these.

    A pair is dropped if it shares a sentence with a pair of `replayed`. A pair of a synthetic corpus is also dropped if
    it shares a sentence with a held-out pair.
    """
    held_out = [] if data.valid else _split(data, corpora)
    old = sentences(replayed)
    dropped = 0
    linked = old, np.concatenate([old, sentences(held_out)])
    for corpus, parts in zip(data.corpora, corpora, strict=True):
        dropped += drop_linked(parts, linked[corpus.synthetic])
    if data.valid:
        held_out = usable(masked_pairs(read_directed(data.valid, data), data, cleaning))
        if not held_out:
            names = " and ".join(data.valid)
            raise UserError(
                f"No pair of {names} has one line of text on each side.",
                "Name other files.",
                "data.valid",
            )
    return held_out, dropped


def drop_linked(parts: Sequence[StagedPairs], hashes: Bits64) -> int:
    """Drop the training pairs with a sentence that has one of these hashes; returns the number of dropped pairs."""
    for part in parts if len(hashes) else ():
        shares = [np.isin(each, hashes).any(axis=1) for each in part.sentences()]
        pairs = np.flatnonzero(part.parts == Part.TRAIN)
        part.parts[pairs[np.concatenate([np.empty(0, bool), *shares])]] = Part.DROPPED
    return sum(part.count(Part.DROPPED) for part in parts)


def _split(data: DataConfig, corpora: Corpora) -> list[Pair]:
    """Hold out pairs of the corpora that are not synthetic, and drop the pairs that share sentences with them."""
    own = [
        parts for corpus, parts in zip(data.corpora, corpora, strict=True) if not corpus.synthetic
    ]
    staged = list(chain.from_iterable(own))
    ends = np.cumsum([sum(part.count() for part in parts) for parts in own])
    part_ends = np.cumsum([part.count() for part in staged])
    if not data.holdout or not staged or not part_ends[-1]:
        return []
    split = hold_out(
        lambda: chain.from_iterable(part.sentences() for part in staged),
        data.holdout,
        seed=1,
        ends=ends.tolist() if len(data.directions) > 1 else (),
    )
    for part, decided in zip(staged, np.split(split, part_ends[:-1]), strict=True):
        part.parts[part.parts == Part.TRAIN] = decided
    return [
        pair
        for corpus, parts in zip(data.corpora, corpora, strict=True)
        for part in parts
        for pair in directed(
            part.pairs(Part.HELD_OUT), Direction(corpus.source, corpus.target), data
        )
    ]


def read_directed(
    files: Sequence[str], data: DataConfig, *, untrained: bool = False
) -> Iterator[Pair]:
    """Read validation or test files. In a multilingual model, each pair gets the directions that the model has.

    If `untrained` is true, it gets both directions.
    """
    if not data.directions:
        yield from read_pairs(files, (data.source, data.target))
        return
    for corpus in bilingual_corpora(files):
        if untrained:
            data = dataclasses.replace(
                data, directions=tuple(map(str, (corpus.languages, corpus.languages.reverse)))
            )
        yield from directed(read_pairs(corpus.files, corpus.languages), corpus.languages, data)


def masked_pairs(pairs: Iterable[Pair], data: DataConfig, cleaning: Cleaning) -> Iterator[Pair]:
    """Apply `with_shared_tokens` if data.placeholders is "masked".

    Leaves out pairs for which `with_shared_tokens` returns None.
    """
    for pair in pairs:
        texts = (
            with_shared_tokens(pair.source, pair.target)
            if data.placeholders == "masked"
            else pair[:2]
        )
        if texts is None:
            cleaning.count(PLACEHOLDERS_DIFFER, pair.origin)
        else:
            yield pair._replace(source=texts[0], target=texts[1])
