"""Tests of transduce/model/seq2seq.py."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from small_models import SRC, TGT, close, every_kind, tiny
from transduce.config.schema import BOS, EOS, PAD
from transduce.model.seq2seq import make_batch, pad, select


@given(
    rows=st.lists(st.lists(st.integers(4, 99), max_size=5), min_size=1, max_size=6),
    ends=st.tuples(
        st.lists(st.integers(1, 3), max_size=2), st.lists(st.integers(1, 3), max_size=2)
    ),
)
def test_rows_are_padded_to_the_longest(rows, ends):
    before, after = ends
    whole = [[*before, *row, *after] for row in rows]
    longest = max(map(len, whole))
    expected = [row + [PAD] * (longest - len(row)) for row in whole]
    assert pad(rows, before=before, after=after).tolist() == expected
    assert (
        pad([np.array(row, dtype=np.uint16) for row in rows], before=before, after=after).tolist()
        == expected
    )


@every_kind
@torch.no_grad()
def test_rows_and_sentences_can_be_chosen_between_steps(kind):
    model, sentences = tiny(kind), torch.tensor([1, 1, 0])
    memory = model.encode(SRC)
    _, state = model.decode(TGT[:, :3], memory)
    chosen, _ = model.decode(
        TGT[sentences, 3:], select(memory, sentences), select(state, sentences)
    )
    close(chosen, model(SRC, TGT)[sentences, 3:])


def test_a_batch_by_hand():
    batch = make_batch([[5, 6], [7]], [[8], []])
    assert batch.src.tolist() == [[5, 6, EOS], [7, EOS, PAD]]
    assert batch.tgt_in.tolist() == [[BOS, 8], [BOS, PAD]]
    assert batch.tgt_out.tolist() == [[8, EOS], [EOS, PAD]]
    assert batch.num_tokens == 3
