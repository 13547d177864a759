"""Converts text to token ids and back without loss, except that texts are normalised first.

Both sides share one SentencePiece vocabulary (BPE or unigram), or each side has its own. A character without a piece
is encoded as its UTF-8 bytes, so the unknown piece never occurs. Encoded texts don't include PAD, BOS or EOS.
"""

import copy
import json
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Self
from unicodedata import category

from transduce.config.commands import option
from transduce.config.families import TEXT_SOURCES, kind_of
from transduce.config.schema import WORD_TOKENIZERS
from transduce.system.errors import UserError
from transduce.system.files import MANIFEST, verify
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.learning import extend_model, learn_model, learn_symbols, value_symbols
from transduce.tokens.normalization import FOLDED, Normalizer, composed
from transduce.tokens.spelling import normalizer_of
from transduce.tokens.vocabulary import LANGUAGE_TAG, OWN_TAG, SPACE, Vocabulary

JOINT, SOURCE, TARGET = "tokenizer.model", "tokenizer.source.model", "tokenizer.target.model"
PIECES = "tokenizer.pieces.json"  # the pieces of an imported vocabulary, by id
# Only in models whose training normalised the sources.
NORMALIZATION = "tokenizer.normalization.json"
QUOTES_KEY = "curly_quotes"
KIND_KEY = "source_kind"  # only if the sources are not text
FILES = (JOINT, SOURCE, TARGET, PIECES, NORMALIZATION)


class Tokenizer:
    """The vocabularies of source and target. Without a `source` vocabulary, both sides use `target`."""

    tags: tuple[int, ...] = ()  # the ids that begin each encoded source; see `into`

    def __init__(
        self,
        target: Vocabulary,
        source: Vocabulary | None = None,
        quotes: str | None = None,
        source_kind: str = TEXT_SOURCES,
    ) -> None:
        """`quotes`: the curly quotes of the sources, if the training normalised the sources.

        `source_kind`: data.source_kind.
        """
        self.target = target
        self.source = source or target
        # Two imported SentencePiece models may share one list of pieces.
        self.joint = source is None or (
            target.listed is not None and source.listed is target.listed
        )
        self.quotes = quotes
        self.source_kind = source_kind
        # The number of source tokens that the model reads as one vector.
        self.values_per_position = 1 if source_kind == TEXT_SOURCES else kind_of(source_kind).vector
        usual = Normalizer(
            # Other models know the characters in their vocabulary.
            self.source.known(FOLDED) if quotes is None else quotes,
            # A parser's words must not change, since each has a tag.
            only_composed=bool(self.target_symbols()),
        )
        self.normalizer = normalizer_of(source_kind, usual)

    @classmethod
    def train(
        cls,
        sources: Collection[str],
        targets: Collection[str],
        *,
        vocab_size: int,
        kind: str = "bpe",
        joint: bool = True,
        symbols: bool = False,
        placeholder_tokens: str = "",
        languages: Sequence[str] = (),
        marks: Sequence[str] = (),
        quotes: str | None = None,
        source_kind: str = TEXT_SOURCES,
    ) -> Self:
        """Learn one joint vocabulary, or one vocabulary for each side, with at most `vocab_size` pieces each.

        `languages` are the target languages of a multilingual model. Each gets a tag in the joint vocabulary. `marks`
        are other pieces of sources that no text contains.

        If `symbols` is true, the targets are linearised trees, and every tree symbol becomes a piece. `vocab_size` does
        not limit these pieces. The characters in `placeholder_tokens` are always separate pieces. Raises UserError if
        there is no text, or if `vocab_size` leaves no room for the 256 byte pieces. `quotes`: see `Tokenizer`.
        Sources that are not text have a vocabulary of their values.
        """
        if source_kind != TEXT_SOURCES:
            targets_model = learn_model([targets], vocab_size, kind, placeholder_tokens)
            sources_model = value_symbols()
            return cls(Vocabulary(targets_model), Vocabulary(sources_model), "", source_kind)
        if kind in WORD_TOKENIZERS:
            if symbols or placeholder_tokens or languages or marks:
                raise UserError(
                    f"data.tokenizer={kind} is for plain text in two languages.",
                    "Use another tokenizer for trees, masked placeholders, several languages, terms and memories.",
                )
            learn = option("data.tokenizer=word")
            targets_model = learn([sources, targets] if joint else [targets], vocab_size, kind)
            own = None if joint else _vocabulary(learn([sources], vocab_size, kind))
            return cls(_vocabulary(targets_model), own, quotes)
        if symbols:
            targets_model = learn_symbols(targets)
        elif joint:
            tags = [LANGUAGE_TAG.format(language) for language in languages]
            tags += marks
            return cls(
                Vocabulary(
                    learn_model([sources, targets], vocab_size, kind, placeholder_tokens, tags)
                ),
                quotes=quotes,
            )
        else:
            targets_model = learn_model([targets], vocab_size, kind, placeholder_tokens)
        sources_model = learn_model([sources], vocab_size, kind, placeholder_tokens, marks)
        return cls(Vocabulary(targets_model), Vocabulary(sources_model), quotes)

    def extended(
        self,
        texts: Collection[str],
        extra: int,
        languages: Sequence[str],
        old_texts: Iterable[str] = (),
    ) -> Self:
        """A tokenizer with the same ids, at most `extra` pieces learnt from texts, and the tags of languages.

        An imported vocabulary gets no pieces that `old_texts` would often be split into. Raises UserError for separate
        vocabularies, and if there is no text.
        """
        self.check_joint()
        if self.is_imported:
            extend = option("extend an imported vocabulary")
            return extend(self, texts, extra, languages, old_texts)
        tags = [LANGUAGE_TAG.format(language) for language in languages]
        return type(self)(
            Vocabulary(extend_model(self.target.model, texts, extra, self.target.kind, tags))
        )

    def check_joint(self) -> None:
        """Raise UserError for separate vocabularies and those of words, which can't be extended."""
        if not self.joint or (not self.is_imported and self.target.kind in WORD_TOKENIZERS):
            raise UserError(
                "Languages can be added only to a model with one vocabulary for source and target."
            )

    @classmethod
    def load(cls, folder: Path | str, threads: int = 1) -> Self:
        """Load a tokenizer that encodes with `threads` threads. Raises UserError if a file is missing or damaged."""
        folder = Path(folder)
        for name in FILES if (folder / MANIFEST).exists() else ():
            verify(folder, hashes=True, only=name)
        lists = _read_pieces(folder / PIECES)
        separate = not (folder / JOINT).exists() and any(
            (folder / name).exists() for name in (SOURCE, TARGET)
        )
        target = _open(folder / (TARGET if separate else JOINT), lists[0], threads)
        quotes, kind = _read_normalization(folder / NORMALIZATION)
        if not separate and len(lists) == 1:
            return cls(target, quotes=quotes)
        source = _open(folder / (SOURCE if separate else JOINT), lists[-1], threads)
        return cls(target, source, quotes, kind)

    def save(self, folder: Path | str) -> list[str]:
        """Write the vocabularies into an existing folder and return the names of the files."""
        source, target = self.models
        # Separately learnt vocabularies stay separate, even if equal.
        one = self.joint or self.is_imported
        files = {JOINT: target} if one and source == target else {SOURCE: source, TARGET: target}
        if self.is_imported:
            lists = [self.target.listed] if self.joint else [self.target.listed, self.source.listed]
            files[PIECES] = json.dumps(lists, ensure_ascii=False, indent=0).encode()
        if self.quotes is not None:
            kind = {} if self.source_kind == TEXT_SOURCES else {KIND_KEY: self.source_kind}
            files[NORMALIZATION] = json.dumps({QUOTES_KEY: self.quotes, **kind}).encode()
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        return list(files)

    def into(self, target: str, source: str = "") -> Self:
        """A copy that begins each encoded source with the tag of the target language; for "", an equal copy.

        With own tags, the tag of the source language follows. Raises UserError for a language without a tag.
        """
        other = copy.copy(self)
        tags = list[int]()
        for language in [target, *([source] if self.has_own_tags else [])] if target else ():
            if not (tag := self.tag_of(language)):
                raise UserError(f"The vocabulary has no tag for the language '{language}'.")
            tags.append(self.source.tags[tag])
        other.tags = tuple(tags)
        return other

    def toward(self, direction: str) -> Self:
        """A copy for a direction, such as "en-de", of a multilingual model; for "", an equal copy."""
        source, _, target = direction.partition("-")
        return self.into(target, source)

    def tag_of(self, language: str) -> str:
        """The tag of a language, which imported vocabularies may spell with "-"; "" if there is none."""
        language = language.replace("-", "_")
        wanted = [tag.format(language) for tag in (LANGUAGE_TAG, OWN_TAG)]
        return next((tag for tag in self.source.tags if tag.replace("-", "_") in wanted), "")

    @cached_property
    def has_own_tags(self) -> bool:
        """Whether a tag names its text's own language, so that it also stands before each translation."""
        return any(tag.startswith(OWN_TAG[:2]) for tag in self.source.tags)

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each source text, or an empty list if its normalised form is empty."""
        rows = self.source.encode(self.normalizer(texts)).lists()
        return [[*self.tags, *row] if row else row for row in rows] if self.tags else rows

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each target text, or an empty list for an empty text."""
        return self.target.encode(composed(texts)).lists()

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Decode rows of target ids to texts. Raises IndexError for an id beyond the vocabulary.

        PAD, BOS, EOS and UNK are skipped, bytes that are not UTF-8 become U+FFFD, and a line break becomes a space.
        """
        return self.target.decode(rows)

    def unknown(self, texts: Sequence[str]) -> set[str]:
        """The characters of sources that the vocabulary has no pieces for, also after they were normalised."""
        if self.source_kind != TEXT_SOURCES:
            return set()
        characters = {each for each in set[str]().union(*composed(texts)) if category(each) != "Cs"}
        unknown = characters - self.source.known(characters)
        forms = {each: self.normalizer([each])[0] for each in unknown}
        known = self.source.known({*"".join(forms.values())})
        return {each for each, form in forms.items() if not known.issuperset(form)}

    @cached_property
    def has_letters(self) -> bool:
        """Whether the vocabulary of the sources has pieces of letters."""
        return any(piece.strip(SPACE).isalpha() for piece in self.source.all_pieces())

    def same_pieces(self, other: "Tokenizer") -> bool:
        """Whether every id stands for an identical piece in both tokenizers, as an ensemble requires."""
        return all(
            mine.all_pieces() == theirs.all_pieces()
            for mine, theirs in ((self.source, other.source), (self.target, other.target))
        )

    def target_symbols(self) -> dict[int, str]:
        """A map from target ids to tree symbols, empty unless the vocabulary was learnt with `symbols`."""
        return {} if self.is_imported or self.has_placeholder_tokens else self.target.symbols()

    @property
    def has_placeholder_tokens(self) -> bool:
        """Whether both vocabularies have a piece for each placeholder character."""
        return all(side.has_placeholder_tokens for side in (self.source, self.target))

    @property
    def models(self) -> tuple[bytes, bytes]:
        """The serialised SentencePiece models of source and target."""
        return self.source.model, self.target.model

    @property
    def is_imported(self) -> bool:
        """Whether the vocabulary was imported and its ids differ from those of its SentencePiece models."""
        return self.target.listed is not None


def _open(file: Path, listed: list[str] | None, threads: int) -> Vocabulary:
    """Open a vocabulary file. `listed` holds the pieces of an imported vocabulary in the order of their ids."""
    try:
        model = file.read_bytes()
        return ImportedVocabulary(model, listed, threads) if listed else _vocabulary(model, threads)
    except FileNotFoundError:
        raise UserError(
            f"{file} is missing.", "Restore it from another copy of this folder."
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(
            f"{file} can't be read: {error}.", "Restore it from another copy of this folder."
        ) from None


def _vocabulary(model: bytes, threads: int = 1) -> Vocabulary:
    """Open a vocabulary. That of words is JSON, which no SentencePiece model is."""
    if model.startswith(b"{"):
        vocabulary: Vocabulary = option("vocabulary of words")(model, threads)
        return vocabulary
    return Vocabulary(model, threads)


def _read_normalization(file: Path) -> tuple[str | None, str]:
    """The quotes and the kind of sources in `file`; (None, TEXT_SOURCES) if `file` does not exist.

    Raises UserError if `file` is damaged.
    """
    try:
        values = json.loads(file.read_bytes())
        quotes = values[QUOTES_KEY]
        kind = values.get(KIND_KEY, TEXT_SOURCES)
    except FileNotFoundError:
        return None, TEXT_SOURCES
    except (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        quotes = None
    if not (isinstance(quotes, str) and isinstance(kind, str)):
        raise UserError(f"{file} is damaged.", "Restore it from another copy of this folder.")
    return quotes, kind


def _read_pieces(file: Path) -> list[list[str]] | list[None]:
    """The lists of pieces in `file`, or [None] if `file` does not exist. Raises UserError if `file` is damaged."""
    try:
        lists = json.loads(file.read_bytes())
    except FileNotFoundError:
        return [None]
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(
            f"{file} can't be read: {error}.", "Restore it from another copy of this folder."
        ) from None
    if not (
        isinstance(lists, list)
        and 1 <= len(lists) <= 2
        and all(each and isinstance(each, list) for each in lists)
    ):
        raise UserError(
            f"{file} is damaged: it must hold one or two lists of pieces.",
            "Restore it from another copy of this folder.",
        )
    return lists
