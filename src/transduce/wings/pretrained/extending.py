"""Extends the vocabulary of an imported model by the tags and the unknown characters of new languages.

It gets no longer pieces: they would replace pieces whose weights are trained. So every text that the model could read
is still split into the same pieces.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from sentencepiece.sentencepiece_model_pb2 import ModelProto  # type: ignore[attr-defined]

from transduce.config.schema import PLACEHOLDER_TOKENS
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.learning import CHARACTER_COVERAGE, RESERVED
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import LANGUAGE_TAG, OWN_TAG
from transduce.wings.pretrained.trimming import Type, piece_counts, splitting

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
    protos = {model: splitting(model, listed) for model in sides}
    counts = [piece_counts(proto.SerializeToString(), texts) for proto in protos.values()]
    unknown = chain.from_iterable(_unknown(each, {*listed}) for each in counts)
    characters = [*dict.fromkeys(unknown)][:extra]
    pieces = [*dict.fromkeys([*listed, *tags, *characters])]
    made = {
        model: ImportedVocabulary(_with_characters(proto, characters), pieces, sides[model])
        for model, proto in protos.items()
    }
    target, source = (made[side.model] for side in (tokenizer.target, tokenizer.source))
    return Tokenizer(target, None if source is target else source, tokenizer.quotes)


def _unknown(counts: Counter[str], listed: Collection[str]) -> Iterator[str]:
    """The characters of pieces that are not listed, beginning with the most frequent; without very rare ones."""
    characters = Counter[str]()
    for name, number in counts.items():
        for character in name:
            characters[character] += number
    unspelt = {*"".join(counts.keys() - listed)} - {*RESERVED, *PLACEHOLDER_TOKENS}
    before = 0
    for character, number in characters.most_common():
        if character in unspelt and before < CHARACTER_COVERAGE * characters.total():
            yield character
        before += number


def _with_characters(proto: ModelProto, characters: Iterable[str]) -> bytes:
    """The model with a piece for each of these characters."""
    known = {piece.piece: piece for piece in proto.pieces}
    score = min(piece.score for piece in known.values() if piece.type == Type.NORMAL) - BELOW_ALL
    for character in characters:
        piece = known.get(character)
        if piece is None:
            proto.pieces.add(piece=character, score=score, type=Type.NORMAL)
        elif piece.type == Type.UNUSED:
            piece.type = Type.NORMAL
            piece.score = score
    model: bytes = proto.SerializeToString()
    return model
