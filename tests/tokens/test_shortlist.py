"""What goes with a piece is learnt from pairs, and a search with a shortlist proposes nothing else."""

import random

import pytest

from corpora import blocks
from transduce.system.errors import UserError
from transduce.tokens.mixture import Mixture
from transduce.tokens.store import TokenStore, write_store
from transduce.wings.ct2 import shortlist
from transduce.wings.ct2.shortlist import learn

SIZE = 40
OF = {piece: 4 + (7 * piece) % (SIZE - 4) for piece in range(4, SIZE)}  # its translation
EVERYWHERE = SIZE + 1  # a piece of all targets


@pytest.fixture
def mixture(tmp_path):
    """Word for word, in another order, with a word in front that nothing in the source is for."""
    choice = random.Random(1)
    sources = [choice.sample(range(4, SIZE - 2), k=choice.randint(1, 6)) for _ in range(400)]
    rows = [(row, [EVERYWHERE, *sorted(OF[piece] for piece in row)], 0, line) for line, row in enumerate(sources, 1)]
    write_store(tmp_path / "store", blocks([*rows, ([], [4], 0, 401), ([4] * 101, [5], 0, 402), ([4], [], 0, 403)]))
    return Mixture([TokenStore(tmp_path / "store")], [1.0])


def test_the_translation_of_a_piece_is_found(mixture, monkeypatch):
    monkeypatch.setattr(shortlist, "COMMON_PIECES", 1)
    monkeypatch.setattr(shortlist, "MAX_CANDIDATES", 1)
    found = learn(mixture, SIZE, joint=False)
    assert found.common == [EVERYWHERE]
    taught = [piece for piece in range(SIZE) if found.pieces[piece]]
    assert taught == list(range(4, SIZE - 2))
    assert all(found.pieces[piece] == [OF[piece]] for piece in taught)


def test_shared_pieces_may_be_copied(mixture):
    assert all(piece in each for piece, each in enumerate(learn(mixture, SIZE, joint=True).pieces))


@pytest.mark.parametrize(("name", "value"), [("ENOUGH_OCCURRENCES", 5), ("MAX_MEETINGS", 1500)])
def test_as_many_pairs_are_read_as_the_pieces_need(mixture, monkeypatch, name, value):
    monkeypatch.setattr(shortlist, "READ_BLOCK_PAIRS", 10)
    every = len(list(shortlist._pairs(mixture, SIZE)))
    monkeypatch.setattr(shortlist, name, value)
    assert every == 400 and 10 <= len(list(shortlist._pairs(mixture, SIZE))) < 200


def test_corpus_without_usable_pairs_is_reported(tmp_path):
    write_store(tmp_path / "store", blocks([([4] * 101, [5], 0, 1), ([4], [], 0, 2)]))
    with pytest.raises(UserError, match="at most 100 tokens per side, but the corpus has none"):
        learn(Mixture([TokenStore(tmp_path / "store")], [1.0]), SIZE, joint=False)
