"""Cleans a part of a corpus, and encodes its training pairs.

`aggregate` runs between the two steps, because repetitions and the vocabulary depend on all parts.
"""

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from transduce.config.families import TEXT_SOURCES, kind_of
from transduce.config.schema import CorpusConfig, DataConfig
from transduce.inline.placeholder_tokens import with_shared_tokens
from transduce.preparation.copies import marks
from transduce.preparation.prepared import is_prepared
from transduce.preparation.staging import Parts, StagedPairs, StagingWriter
from transduce.system.console import log
from transduce.system.errors import UserError
from transduce.text.clean import CHUNK, TOO_LONG, Cleaning
from transduce.text.hashes import SeenHashes
from transduce.text.holdout import Part
from transduce.text.languages import Direction, nearest_code, target_of
from transduce.text.multilingual import without_labels
from transduce.text.pair_batch import PairBatch
from transduce.text.pairs import (
    Origin,
    Pair,
    are_documents,
    are_trees,
    chunks,
    expand_folders,
    read_pairs,
)
from transduce.text.plain import STANDARD_INPUT, read_pieces
from transduce.text.rules import (
    ALL,
    DUPLICATE,
    IN_TEST_SET,
    NEAR_DUPLICATE,
    OTHERS,
    Checker,
    Flags,
    Rules,
    first_rule,
)
from transduce.text.tree_symbols import CLOSE, OPEN, are_of_trees
from transduce.tokens.normalization import CURLY_QUOTES, Normalizer, composed
from transduce.tokens.spelling import normalizer_of
from transduce.tokens.store import Encoded
from transduce.tokens.tokenizer import Tokenizer


def checked(
    data: DataConfig, tokenizer: Tokenizer | None = None, replayed: Collection[str] = ()
) -> DataConfig:
    """The options `data`, in which each corpus of a multilingual model gets its languages.

    `replayed` are the directions of the corpus data.replay or data.remember. Raises UserError if `data` has no corpora,
    or has corpora that can't be prepared.
    """
    if not data.corpora:
        raise UserError(
            "There is nothing to train on.",
            "Name two text files or a bilingual file.",
            "data.corpora",
        )
    if data.directions:
        named = (languages_in(data, corpus)._asdict() for corpus in data.corpora)
        corpora = tuple(
            dataclasses.replace(each, **its) for each, its in zip(data.corpora, named, strict=True)
        )
        data = dataclasses.replace(data, corpora=corpora)
        _check_multilingual(data, replayed)
    known = {
        code
        for code in (data.source, data.target)
        if code not in (DataConfig().source, DataConfig().target)
    }
    for corpus in data.corpora:
        languages = languages_in(data, corpus)
        both = zip(languages, (data.source, data.target), strict=True)
        if not data.directions and any(
            model in known and not nearest_code(code, [model]) for code, model in both
        ):
            raise UserError(
                f"{' + '.join(corpus.files)} is {' to '.join(languages)}, but the model is {data.languages}.",
                "Correct the languages of this corpus or of the model. A model "
                "with several directions needs data.directions.",
                "data.corpora",
            )
        if is_prepared(corpus.files):
            raise UserError(
                f"{corpus.files[0]} is prepared already.",
                "Give it to `transduce train`, as the only corpus.",
            )
    _check_trees(data, tokenizer)
    _check_source_kind(data, tokenizer)
    for name, its in marks(data).items():
        if tokenizer and not tokenizer.source.marks.keys() >= {*its}:
            raise UserError(
                f"The vocabulary of the model lacks the marks of {name}: {' '.join(its)}.",
                f"Train a new model with {name}.",
                name,
            )
    for file in text_files(data):
        if file not in STANDARD_INPUT and not Path(file).exists():
            # Raises UserError now: reading a large corpus before this file could take minutes.
            next(read_pieces(file))
    return data


def _check_trees(data: DataConfig, tokenizer: Tokenizer | None) -> None:
    """Raise UserError if only some files hold trees, or if the files don't fit the vocabulary or data.symbols."""
    files = expand_folders(text_files(data))
    trees = [file for file in files if are_trees([file])]
    of_trees = are_of_trees(tokenizer.target_symbols().values()) if tokenizer else bool(trees)
    if odd := [file for file in files if are_trees([file]) != of_trees]:
        other = "the corpus of the model" if tokenizer else trees[0]
        what = f"{odd[0]} holds {'no trees' if of_trees else 'trees'}, unlike {other}"
        raise UserError(
            f"{what}.",
            "Train and validate a parser on trees only, and any other model without trees.",
        )
    if of_trees and not data.symbols:
        options = "a recipe for parsers, such as craft-parsing, or with data.symbols=true data.joint=false"
        raise UserError(f"{files[0]} holds trees.", f"Train with {options}.")
    if data.symbols and data.augment != "none":
        raise UserError("data.symbols does not support data.augment.", "Leave data.augment out.")
    for name in marks(data) if data.symbols else ():
        raise UserError(f"data.symbols does not support {name}.", f"Leave {name} out.")
    if data.symbols and not of_trees:
        log(f"{files[0]} holds no trees, so the model will not be a parser.")


def _check_source_kind(data: DataConfig, tokenizer: Tokenizer | None) -> None:
    """Raise UserError if sources that are not text don't fit the vocabulary or other options."""
    if tokenizer and tokenizer.source_kind != data.source_kind:
        raise UserError(
            f"The model reads sources of the kind {tokenizer.source_kind}, not {data.source_kind}.",
            "Leave it out, or train a new model.",
            "data.source_kind",
        )
    if data.source_kind == TEXT_SOURCES:
        return
    kind_of(data.source_kind)
    only_for_texts = {
        "data.directions": bool(data.directions),
        "data.symbols": data.symbols,
        "data.augment": data.augment != "none",
        "data.placeholders": data.placeholders == "masked",
        "data.remember": bool(data.remember),
        **dict.fromkeys(marks(data), True),
    }
    for name, is_set in only_for_texts.items():
        if is_set:
            raise UserError(
                f"data.source_kind={data.source_kind} does not support {name}.", "Leave it out."
            )


def text_files(data: DataConfig) -> list[str]:
    """The files of the corpora and of the validation set."""
    return [
        *chain.from_iterable(corpus.files for corpus in data.corpora),
        *without_labels(data.valid),
    ]


def check_rereadable(files: Iterable[str], purpose: str) -> None:
    """Raise UserError for standard input and pipes, which can be read only once."""
    for file in files:
        if file in STANDARD_INPUT or (
            Path(file).exists() and not (Path(file).is_file() or Path(file).is_dir())
        ):
            name = "Standard input" if file in STANDARD_INPUT else file
            raise UserError(
                f"{name} can't be {purpose}.", "Save the input to a file, and name the file."
            )


def _check_multilingual(data: DataConfig, replayed: Collection[str]) -> None:
    """Raise UserError if the corpora of a multilingual model don't fit its directions."""
    if data.symbols or not data.joint:
        raise UserError(
            "A multilingual model has one vocabulary for all texts.",
            "Leave out data.joint and data.symbols.",
        )
    known = {*replayed}
    for corpus in data.corpora:
        files = " + ".join(corpus.files)
        languages = Direction(corpus.source, corpus.target)
        if corpus.synthetic:
            raise UserError(
                f"{files}: a synthetic corpus needs a model with one direction.",
                "Leave out the synthetic corpus.",
                "data.corpora",
            )
        if not {str(languages), str(languages.reverse)} & {*data.directions}:
            raise UserError(
                f"{files} has the languages '{corpus.source}' and '{corpus.target}', but "
                f"the directions of the model are {data.languages}.",
                "Correct the source and the target of this corpus, or leave the corpus out.",
                "data.corpora",
            )
        known |= {str(languages), str(languages.reverse)}
    for direction in data.directions:
        if direction not in known:
            raise UserError(
                f"No corpus has texts for the direction {direction}.",
                "Leave this direction out, or name a corpus for it.",
                "data.directions",
            )


def check_vocabulary(
    settings: Mapping[str, Any], size: int, folder: Path, asked: int | None = None
) -> None:
    """Raise UserError if data.vocab_size is not `size`, the size of the existing vocabulary.

    The size `asked`, which the user chose for the existing vocabulary, is accepted, too. If `asked` is None (unknown),
    a larger size only causes a warning.
    """
    wanted = settings.get("data.vocab_size", size)
    if wanted > size and asked is None:
        log(
            f"Warning: {folder} has a vocabulary of {size:,} tokens. It does not grow to {wanted:,}."
        )
    elif wanted not in (size, asked):
        raise UserError(
            f"{folder} has a vocabulary of {size:,} tokens already.",
            "Leave data.vocab_size out.",
        )


def check_tags(data: DataConfig, tokenizer: Tokenizer | None) -> None:
    """Raise UserError if an existing vocabulary lacks the tag of a target language."""
    for direction in data.directions:
        if tokenizer and not tokenizer.tag_of(target_of(direction)):
            raise UserError(
                f"The vocabulary has no tag for {target_of(direction)}, so it can't be "
                f"used for the direction {direction}.",
                "Train a new model for these languages.",
            )


def data_of(data: DataConfig, corpus: CorpusConfig) -> DataConfig:
    """The options for one corpus, with its languages as data.source and data.target."""
    source, target = languages_in(data, corpus)
    return dataclasses.replace(data, source=source, target=target)


def languages_in(data: DataConfig, corpus: CorpusConfig) -> Direction:
    """The language codes of the two texts of each pair of a corpus."""
    return Direction(corpus.source or data.source, corpus.target or data.target)


def read_corpus(corpus: CorpusConfig, data: DataConfig) -> Iterator[Pair]:
    """Read the pairs of a corpus."""
    return read_pairs(corpus.files, languages_in(data, corpus))


def with_normalised_texts(
    pairs: Iterable[Pair], data: DataConfig, tokenizer: Tokenizer | None
) -> Iterator[Pair]:
    """The pairs with the texts that the vocabulary is learnt from, or that the existing `tokenizer` encodes."""
    learnt = tokenizer.normalizer if tokenizer else Normalizer(CURLY_QUOTES)
    in_source = normalizer_of(data.source_kind, learnt)
    for chunk in chunks(pairs, CHUNK):
        sources = [pair.source for pair in chunk]
        if data.source_kind != TEXT_SOURCES:
            sources = [_spelled(pair, in_source) for pair in chunk]
        # A multilingual model also learns sources as targets, and a parser has a tag for each word.
        is_composed = data.directions or data.symbols
        sources = composed(sources) if is_composed else in_source(sources)
        targets = composed([pair.target for pair in chunk])
        for pair, source, target in zip(chunk, sources, targets, strict=True):
            is_same = pair.source is source and pair.target is target
            yield pair if is_same else pair._replace(source=source, target=target)


def _spelled(pair: Pair, normalizer: Normalizer) -> str:
    """The source of a pair, the path of a file, spelled. Raises UserError with the place of the pair."""
    try:
        return normalizer([pair.source])[0]
    except UserError as error:
        place = f"{pair.origin.file}:{pair.origin.line}"
        raise UserError(f"{place}: {error.cause}", error.hint) from None


def with_placeholders(data: DataConfig, tokenizer: Tokenizer | None) -> DataConfig:
    """Replace "auto" in data.placeholders by "masked" or "kept". Raises UserError for contradicting options."""
    learnt: Literal["masked", "kept"] | None = None
    if tokenizer:
        learnt = "masked" if tokenizer.has_placeholder_tokens else "kept"
    if data.placeholders == "auto":
        documents = not data.symbols and any(are_documents(corpus.files) for corpus in data.corpora)
        return dataclasses.replace(data, placeholders=learnt or ("masked" if documents else "kept"))
    if data.placeholders != (learnt or data.placeholders):
        raise UserError(
            f"The vocabulary was learnt with data.placeholders={learnt}.",
            "Leave data.placeholders out.",
        )
    if data.placeholders == "masked" and data.symbols:
        raise UserError(
            "data.symbols is for trees, which have no placeholders.",
            "Leave data.placeholders out.",
        )
    return data


def rules_of(data: DataConfig) -> Rules:
    """The cleaning rules that the options in `data` select."""
    others = tuple(rule for rule in data.rules if rule != ALL)
    if ALL in data.rules:
        others += tuple(rule for rule in OTHERS if data.test or rule != IN_TEST_SET)
    return Rules(data.max_ratio, data.deduplicate, others, (data.source, data.target), data.test)


def reads_test(rules: Collection[str]) -> bool:
    """Whether data.rules names a rule that compares the corpus with the test set."""
    return ALL in rules or IN_TEST_SET in rules


def read_part(
    pairs: Iterable[Pair],
    data: DataConfig,
    folder: Path,
    checker: Checker | None = None,
    *,
    tag: str = "",
) -> StagedPairs:
    """Clean a part of a corpus, and write its remaining pairs to the new staging folder `folder`.

    For the second and later parts, `checker` must be made from the first pairs of the corpus. `tag` is the tag of the
    corpus.
    """
    rules = rules_of(data)
    seen = SeenHashes()
    read = 0
    with StagingWriter(
        folder,
        tag=tag,
        with_sentences=bool(data.replay or data.remember) or (not data.valid and data.holdout > 0),
    ) as writer:
        for chunk in chunks(pairs, CHUNK):
            batch = PairBatch([pair.source for pair in chunk], [pair.target for pair in chunk])
            checker = checker or Checker(rules, [column.texts for column in batch.columns])
            _stage(chunk, batch, checker.check(batch), data, seen, writer)
            read += len(chunk)
    return writer.finish(read)


def encode_part(
    staged: StagedPairs,
    files: Sequence[str],
    tokenizer: Tokenizer,
    max_length: int,
    cleaning: Cleaning,
) -> Iterator[Encoded]:
    """Encode the training pairs, except pairs with a side of more than `max_length` tokens.

    For each pair, the result contains the index of its file in `files`.
    """
    numbers = np.array(
        [files.index(name) if name in files else 0 for name in staged.files], dtype=np.int32
    )
    symbols = {*tokenizer.target_symbols().values()}
    known = symbols if are_of_trees(symbols) else set()  # empty: the targets are no trees
    for block in staged.blocks():
        for row, target in enumerate(block.targets if known else ()):
            new = [
                symbol
                for symbol in target.split(" ")
                if symbol not in known and not symbol.startswith(CLOSE)
            ]
            if new:
                label = new[0].removeprefix(OPEN)
                place = f"{staged.files[block.files[row]]}, line {block.lines[row]}"
                raise UserError(
                    f"{place}: the label '{label}' is not in the parser's vocabulary.",
                    "Train a new parser, or rename the label.",
                )
        sources = tokenizer.source.encode(block.sources)
        targets = tokenizer.target.encode(block.targets)
        is_long = targets.lengths > max_length
        # The readers of other kinds have limits of their own.
        if tokenizer.source_kind == TEXT_SOURCES:
            is_long |= sources.lengths > max_length
        for row in np.flatnonzero(is_long).tolist():
            cleaning.count(TOO_LONG, Origin(staged.files[block.files[row]], int(block.lines[row])))
        yield Encoded(sources, targets, numbers[block.files], block.lines).where(~is_long)


def _stage(
    chunk: Sequence[Pair],
    batch: PairBatch,
    flags: Flags,
    data: DataConfig,
    seen: SeenHashes,
    writer: StagingWriter,
) -> None:
    """Write the clean pairs of a chunk, and record the pairs that break a rule."""
    rows = np.flatnonzero(flags == 0)
    hashes = {}
    broken = {row: first_rule(int(flags[row])) for row in np.flatnonzero(flags).tolist()}
    if data.deduplicate:
        exact = batch.exact_hashes(rows.tolist())
        is_new = seen.add(exact)
        broken |= dict.fromkeys(rows[~is_new].tolist(), DUPLICATE)
        rows = rows[is_new]
        hashes[DUPLICATE] = exact[is_new]
    if NEAR_DUPLICATE in rules_of(data).others:
        hashes[NEAR_DUPLICATE] = batch.near_hashes(rows.tolist())
    for row, rule in sorted(broken.items()):
        writer.leave_out(rule, writer.length + int(np.searchsorted(rows, row)), chunk[row].origin)
    writer.append(*_as_seen([chunk[row] for row in rows.tolist()], data), hashes)


def _as_seen(pairs: Sequence[Pair], data: DataConfig) -> tuple[Sequence[Pair], Parts]:
    """Apply `with_shared_tokens` if data.placeholders is "masked". Returns the pairs and the `Part` of each pair."""
    parts = np.full(len(pairs), Part.TRAIN, dtype=np.int8)
    if data.placeholders != "masked":
        return pairs, parts
    texts = [with_shared_tokens(pair.source, pair.target) for pair in pairs]
    parts[[number for number, text in enumerate(texts) if text is None]] = Part.PLACEHOLDERS_DIFFER
    return [
        Pair(*(text or ("", "")), pair.origin) for pair, text in zip(pairs, texts, strict=True)
    ], parts


def directed(pairs: Iterable[Pair], languages: Direction, data: DataConfig) -> Iterator[Pair]:
    """In a multilingual model, yield the pairs once for each of its directions between two languages."""
    if not data.directions:
        yield from pairs
        return
    forward = str(languages)
    backward = str(languages.reverse)
    for pair in pairs:
        if forward in data.directions:
            yield pair._replace(direction=forward)
        if backward in data.directions:
            yield Pair(pair.target, pair.source, pair.origin, backward)
