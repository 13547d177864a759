"""Extends the vocabulary of an imported model by the tags, the unknown characters and longer pieces of new languages.

New pieces are joined after all old ones, and those of old languages are left out. So nearly every text that the model
could read is still split into the same pieces, whose weights are trained.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from sentencepiece.sentencepiece_model_pb2 import (  # type: ignore[attr-defined]
    ModelProto,
    TrainerSpec,
)

from transduce.config.schema import PLACEHOLDER_TOKENS
from transduce.text.pairs import chunks
from transduce.tokens.imported_vocabulary import ImportedVocabulary, readable
from transduce.tokens.learning import CHARACTER_COVERAGE, RESERVED
from transduce.tokens.normalization import composed
from transduce.tokens.tokenizer import Tokenizer
from transduce.tokens.vocabulary import LANGUAGE_TAG, OWN_TAG, open_model
from transduce.wings.pretrained.merging import Split, SplitWords, longer_pieces
from transduce.wings.pretrained.trimming import TEXTS_AT_ONCE, Type, splitting

# A unigram model scores unknown characters 10 below all pieces. If new characters score less, no other text is split
# differently. BPE never merges them, so their scores don't matter there.
BELOW_ALL = 11.0
# A unigram model joins the pieces of a new piece, and splits nothing else differently, if the new piece scores slightly
# more than they together.
FAVOUR = 0.01

UNKNOWN = "\ufffd"  # in the place of a character without a piece; no letter

Words = Mapping[str, int]  # how often a text has each word


def extended(
    tokenizer: Tokenizer,
    texts: Iterable[str],
    extra: int,
    languages: Sequence[str],
    old_texts: Iterable[str],
) -> Tokenizer:
    """A tokenizer with the same ids, the missing tags of languages, and at most `extra` pieces for texts.

    The first of these are the unknown characters, except very rare ones. The others are longer pieces, except those
    that occur in `old_texts` more than rarely. Source and target share their list of pieces.
    """
    form = OWN_TAG if tokenizer.has_own_tags else LANGUAGE_TAG
    tags = [form.format(language) for language in languages if not tokenizer.tag_of(language)]
    listed = tokenizer.target.all_pieces()
    sides = {side.model: side.threads for side in (tokenizer.target, tokenizer.source)}
    protos = {model: splitting(model, listed) for model in sides}
    words = _words(texts)
    unknown = chain.from_iterable(_unknown(proto, words, {*listed}) for proto in protos.values())
    new = [*dict.fromkeys(unknown)][:extra]
    for proto in protos.values():
        _add(proto, new)
    longer = _longer(
        protos[tokenizer.target.model], words, old_texts, {*listed, *new}, extra - len(new)
    )
    for proto in protos.values():
        _add(proto, longer)
    pieces = [*dict.fromkeys([*listed, *tags, *new, *longer])]
    made = {
        model: ImportedVocabulary(proto.SerializeToString(), pieces, sides[model])
        for model, proto in protos.items()
    }
    target, source = (made[side.model] for side in (tokenizer.target, tokenizer.source))
    return Tokenizer(target, None if source is target else source, tokenizer.quotes)


def _words(texts: Iterable[str]) -> Words:
    words = Counter[str]()
    for some in chunks(texts, TEXTS_AT_ONCE):
        for text in composed(some):
            words.update(readable(text).split())
    return words


def _split(proto: ModelProto, words: Words) -> Counter[Split]:
    """How often a text has each word, split into pieces."""
    rows = open_model(proto.SerializeToString()).encode([*words], out_type=str)
    counts = Counter[Split]()
    for row, number in zip(rows, words.values(), strict=True):
        counts[tuple(row)] += number
    return counts


def _unknown(proto: ModelProto, words: Words, listed: Collection[str]) -> Iterator[str]:
    """The characters of pieces that are not listed, beginning with the most frequent; without very rare ones."""
    characters = Counter[str]()
    unlisted = set[str]()
    for row, number in _split(proto, words).items():
        unlisted.update(piece for piece in row if piece not in listed)
        for character in "".join(row):
            characters[character] += number
    unspelt = {*"".join(unlisted)} - {*RESERVED, *PLACEHOLDER_TOKENS}
    before = 0
    for character, number in characters.most_common():
        if character in unspelt and before < CHARACTER_COVERAGE * characters.total():
            yield character
        before += number


def _longer(
    proto: ModelProto, words: Words, old_texts: Iterable[str], used: Collection[str], limit: int
) -> list[str]:
    """At most `limit` longer pieces, in the order in which they are joined."""
    kind = proto.trainer_spec.model_type
    if limit <= 0 or kind not in (TrainerSpec.BPE, TrainerSpec.UNIGRAM):
        return []
    whole = ModelProto.FromString(proto.SerializeToString())
    if kind == TrainerSpec.BPE:  # BPE joins unused pieces, too, and divides them at the end
        for piece in whole.pieces:
            piece.type = Type.NORMAL if piece.type == Type.UNUSED else piece.type
    known = {piece.piece for piece in whole.pieces if piece.type == Type.NORMAL}
    new, old = (
        SplitWords(_known(_split(whole, its), known), used) for its in (words, _words(old_texts))
    )
    return longer_pieces(new, old, used, known if kind == TrainerSpec.BPE else (), limit)


def _known(words: Mapping[Split, int], known: Collection[str]) -> Counter[Split]:
    """The words, with U+FFFD for unknown characters."""
    counts = Counter[Split]()
    for word, number in words.items():
        counts[tuple(piece if piece in known else UNKNOWN for piece in word)] += number
    return counts


def _add(proto: ModelProto, names: Iterable[str]) -> None:
    """Add pieces to the model, or use them if they are unused. Each is joined after all pieces before it."""
    pieces = {piece.piece: piece for piece in proto.pieces}
    is_bpe = proto.trainer_spec.model_type == TrainerSpec.BPE
    scores = {name: piece.score for name, piece in pieces.items() if piece.type == Type.NORMAL}
    below = min(piece.score for piece in proto.pieces) - BELOW_ALL
    for rank, name in enumerate(names):
        parts = [
            scores[name[:cut]] + scores[name[cut:]]
            for cut in range(1, len(name))
            if name[:cut] in scores and name[cut:] in scores
        ]
        score = max(parts, default=below) + (FAVOUR if parts else 0)
        if is_bpe:
            score = below - rank
        piece = pieces.get(name)
        if piece is None:
            proto.pieces.add(piece=name, score=score, type=Type.NORMAL)
        else:
            piece.type = Type.NORMAL
            if not is_bpe:
                piece.score = score
        scores[name] = score
