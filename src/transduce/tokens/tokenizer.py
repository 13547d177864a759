"""Text to ids and back, without loss: decode(encode(text)) == text for every line of text.

SentencePiece (BPE or unigram), with one vocabulary for both sides or one for each. Characters without a piece are
spelled in bytes, so that the unknown piece never occurs. Ids never hold PAD, BOS or EOS: batches add them.
"""

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Literal, Self

from transduce.system.errors import UserError
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.learning import learn_model, learn_symbols
from transduce.tokens.spans import Span
from transduce.tokens.vocabulary import Vocabulary, open_model
from transduce.tokens.word_cache import Rows

JOINT, SOURCE, TARGET = "tokenizer.model", "tokenizer.source.model", "tokenizer.target.model"
PIECES = "tokenizer.pieces.json"  # of an imported vocabulary: its pieces by id


class Tokenizer:
    """The vocabularies of both sides, from serialised SentencePiece models; `source` is None if one serves both.

    threads: how many encode at once. pieces: for an imported vocabulary, the pieces by id of the target side, and of
    the source side if it has other ids. Raises ValueError for a model that `train` can't have made.
    """

    def __init__(
        self,
        target: bytes,
        source: bytes | None = None,
        threads: int = 1,
        pieces: Sequence[Sequence[str]] = (),
    ) -> None:
        self._target: Vocabulary | ImportedVocabulary
        self._source: Vocabulary | ImportedVocabulary
        self._imported_pieces = pieces
        if pieces:
            self.joint = len(pieces) == 1
            self._target = ImportedVocabulary(target, pieces[0], threads)
            self._source = ImportedVocabulary(target if source is None else source, pieces[-1], threads)
            return
        self.joint = source is None
        self._target = Vocabulary(target, threads)
        self._source = self._target if source is None else Vocabulary(source, threads)

    @classmethod
    def train(
        cls,
        sources: Collection[str],
        targets: Collection[str],
        *,
        vocab_size: int,
        kind: Literal["bpe", "unigram"] = "bpe",
        joint: bool = True,
        symbols: bool = False,
        placeholder_tokens: str = "",
    ) -> Self:
        """Learn vocabularies of `vocab_size` pieces, or of as many as the texts support (see `source_size`).

        symbols: every word of the targets is a piece, and they have no others (linearised trees).
        placeholder_tokens: characters that are always pieces of their own.
        The texts are iterated several times; the same texts give the same bytes. Raises UserError if there is
        no text, or if the vocabulary has no room for the 256 bytes.
        """
        if symbols:
            return cls(learn_symbols(targets), learn_model([sources], vocab_size, kind, placeholder_tokens))
        if joint:
            return cls(learn_model([sources, targets], vocab_size, kind, placeholder_tokens))
        target, source = (learn_model([side], vocab_size, kind, placeholder_tokens) for side in (targets, sources))
        return cls(target, source)

    @classmethod
    def load(cls, folder: Path | str, threads: int = 1) -> Self:
        """Open the files that `save` wrote; raises UserError that names a missing or damaged file."""
        folder = Path(folder)
        pieces = _read_pieces(folder / PIECES)
        joint = (folder / JOINT).exists() or not any((folder / name).exists() for name in (SOURCE, TARGET))
        models = []
        for name in [JOINT] if joint else [TARGET, SOURCE]:
            try:
                models.append((folder / name).read_bytes())
                open_model(models[-1], imported=bool(pieces))
            except FileNotFoundError:
                raise UserError(f"{folder / name} is missing; take it from another copy of this folder.") from None
            except (OSError, ValueError) as error:
                raise UserError(f"{folder / name} can't be read: {error}; take it from another copy.") from None
        try:
            return cls(models[0], None if joint else models[1], threads, pieces)
        except ValueError as error:
            raise UserError(f"The vocabulary in {folder} is damaged: {error}; take it from another copy.") from None

    def save(self, folder: Path | str) -> list[str]:
        """Write the vocabularies into an existing folder and return the names of the files."""
        source, target = self.models
        one = self.joint or self.is_imported  # two vocabularies of the same texts are still two
        files = {JOINT: target} if one and source == target else {SOURCE: source, TARGET: target}
        if self._imported_pieces:
            files[PIECES] = json.dumps(self._imported_pieces, ensure_ascii=False, indent=0).encode()
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        return list(files)

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of source texts; an empty text has none."""
        return self._source.encode(texts).lists()

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of target texts; an empty text has none."""
        return self._target.encode(texts).lists()

    def encode_target_behind(self, text: str) -> list[int]:
        """Ids of a target text that follows another one without a space between them."""
        return self._target.encode_behind(text)

    def pack_source(self, texts: Sequence[str]) -> Rows:
        """The same as `encode_source`, as arrays."""
        return self._source.encode(texts)

    def pack_target(self, texts: Sequence[str]) -> Rows:
        """The same as `encode_target`, as arrays."""
        return self._target.encode(texts)

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The texts of rows of target ids, which need not be valid.

        PAD, BOS and EOS are skipped, bytes that aren't UTF-8 become U+FFFD and a line break becomes a space. Raises
        IndexError for an id beyond the vocabulary.
        """
        return self._target.decode(rows)

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces of source ids, to show to people; U+2581 is a space."""
        return self._source.pieces(ids)

    def target_pieces(self, ids: Sequence[int]) -> list[str]:
        """The pieces of target ids, to show to people; U+2581 is a space."""
        return self._target.pieces(ids)

    def source_spans(self, text: str, ids: Sequence[int]) -> list[Span]:
        """Where in a source text its pieces stand; the spans tile the text, and some may be empty."""
        spans = self._source.spans(ids)
        if isinstance(self._source, ImportedVocabulary):  # text lost in encoding makes these approximate
            return [(min(begin, len(text)), min(end, len(text))) for begin, end in spans]
        if len(text) == (spans[-1][1] if spans else 0):
            return spans
        # Half of a surrogate pair has become three U+FFFD: it stands at the last of them.
        ends = [0]
        for character in text:
            ends += [ends[-1]] * 2 if "\ud800" <= character <= "\udfff" else []
            ends.append(ends[-1] + 1)
        return [(ends[begin], ends[end]) for begin, end in spans]

    def target_spans(self, ids: Sequence[int]) -> list[Span]:
        """Where pieces stand in the text that `decode` makes of target ids; the spans tile it."""
        return self._target.spans(ids)

    def same_pieces(self, other: "Tokenizer") -> bool:
        """Whether ids mean the same in both, so that their models can form an ensemble."""
        return all(
            mine.pieces(range(mine.size)) == theirs.pieces(range(theirs.size))
            for mine, theirs in ((self._source, other._source), (self._target, other._target))
        )

    def target_symbols(self) -> dict[int, str]:
        """The words of a target vocabulary that was made of symbols, by id; else none."""
        if isinstance(self._target, ImportedVocabulary) or self.has_placeholder_tokens:
            return {}
        return self._target.symbols()

    @property
    def has_placeholder_tokens(self) -> bool:
        """Whether the characters that stand for placeholders are pieces on both sides."""
        return all(side.has_placeholder_tokens for side in (self._source, self._target))

    @property
    def models(self) -> tuple[bytes, bytes]:
        """The serialised SentencePiece models of source and target, possibly the same one."""
        return self._source.model, self._target.model

    @property
    def is_imported(self) -> bool:
        """Whether the ids are not those of the SentencePiece models."""
        return bool(self._imported_pieces)

    @property
    def source_size(self) -> int:
        """Pieces in the source vocabulary."""
        return self._source.size

    @property
    def target_size(self) -> int:
        """Pieces in the target vocabulary."""
        return self._target.size


def _read_pieces(file: Path) -> list[list[str]]:
    """The pieces of an imported vocabulary, none for another one; raises UserError that names a damaged file."""
    try:
        pieces = json.loads(file.read_bytes())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise UserError(f"{file} can't be read: {error}; take it from another copy.") from None
    if not (isinstance(pieces, list) and 1 <= len(pieces) <= 2 and all(isinstance(each, list) for each in pieces)):
        raise UserError(f"{file} is damaged: it is not one or two lists of pieces; take it from another copy.")
    return pieces
