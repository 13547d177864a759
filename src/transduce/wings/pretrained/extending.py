"""Extends the vocabulary of an imported model by the tags and the unknown characters of new languages.

It gets no longer pieces: they would replace pieces whose weights are trained. So every text that the model could read
is still split into the same pieces.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import accumulate, chain

from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from transduce.config.schema import PLACEHOLDER_TOKENS
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.learning import CHARACTER_COVERAGE, RESERVED
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import LANGUAGE_TAG, OWN_TAG
from transduce.wings.pretrained.trimming import piece_counts

Type = ModelProto.SentencePiece
# A unigram model scores unknown characters 10 below all pieces. If new pieces score less, no other text is split
# differently. BPE never merges them, so their scores don't matter there.
BELOW_ALL = 11.0


def extended(
    tokenizer: Tokenizer, texts: Collection[str], extra: int, languages: Sequence[str]
) -> Tokenizer:
    """A tokenizer with the same ids, the missing tags of languages, and pieces for unknown characters of texts.

    At most `extra` characters get pieces; very rare ones stay unknown. Source and target share their list of pieces.
    """
    form = OWN_TAG if tokenizer.has_own_tags else LANGUAGE_TAG
    tags = [form.format(language) for language in languages if not tokenizer.tag_of(language)]
    listed = tokenizer.target.all_pieces()
    sides = {side.model: side.threads for side in (tokenizer.target, tokenizer.source)}
    spelling = {model: _Spelling(model, texts, {*listed}) for model in sides}
    unknown = chain.from_iterable(map(_Spelling.unknown, spelling.values()))
    characters = [*dict.fromkeys(unknown)][:extra]
    pieces = [*dict.fromkeys([*listed, *tags, *characters])]
    made = {
        model: ImportedVocabulary(its.with_characters(characters), pieces, sides[model])
        for model, its in spelling.items()
    }
    target, source = (made[side.model] for side in (tokenizer.target, tokenizer.source))
    return Tokenizer(target, None if source is target else source, tokenizer.quotes)


class _Spelling:
    """How a SentencePiece model spells texts with `listed` pieces."""

    def __init__(self, model: bytes, texts: Collection[str], listed: Collection[str]) -> None:
        """Also lets the model split pieces of the texts that are not listed."""
        self.proto = ModelProto.FromString(model)
        self.pieces = {piece.piece: piece for piece in self.proto.pieces}
        self.listed = listed
        while True:
            self.counts = piece_counts(self.proto.SerializeToString(), texts)
            unlisted = [
                self.pieces[name]
                for name in self.counts.keys() & self.pieces.keys() - listed
                if len(name) > 1 and self.pieces[name].type == Type.NORMAL
            ]
            if not unlisted:
                break
            for piece in unlisted:
                piece.type = Type.UNUSED

    def unknown(self) -> Iterator[str]:
        """The characters of the texts that are not spelt, beginning with the most frequent; without very rare ones."""
        counts = Counter[str]()
        for name, number in self.counts.items():
            for character in name:
                counts[character] += number
        ordered = counts.most_common()
        unspelt = {*"".join(self.counts.keys() - self.listed)} - {*RESERVED, *PLACEHOLDER_TOKENS}
        limit = CHARACTER_COVERAGE * counts.total()
        before = accumulate((number for _, number in ordered), initial=0)
        for (character, _), number in zip(ordered, before, strict=False):
            if character in unspelt and number < limit:
                yield character

    def with_characters(self, characters: Iterable[str]) -> bytes:
        """The model with a piece for each of these characters."""
        normal = (piece.score for piece in self.proto.pieces if piece.type == Type.NORMAL)
        score = min(normal) - BELOW_ALL
        for character in characters:
            piece = self.pieces.get(character)
            if piece is None:
                self.proto.pieces.add(piece=character, score=score, type=Type.NORMAL)
            elif piece.type == Type.UNUSED:
                piece.type = Type.NORMAL
                piece.score = score
        model: bytes = self.proto.SerializeToString()
        return model
