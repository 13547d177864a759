"""Tests of transduce/model/recording.py."""

import torch

from small_models import KINDS, SRC, TGT, close, every_kind, tiny
from transduce.model.recording import attention_record, recording, routing_record


def test_a_window_sees_its_neighbours_only():
    model = tiny("window")
    with recording() as record:
        model(SRC[:1], TGT[:1])
    near = (torch.arange(5)[:, None] - torch.arange(5)).abs() < 2
    assert ((record.attention[0].weights[0] > 0) == near).all()


@every_kind
@torch.no_grad()
def test_recording_attention_changes_no_output(kind):
    model, expected = tiny(kind), tiny(kind)(SRC, TGT)
    with recording() as record:
        close(model(SRC, TGT), expected)
    assert attention_record.get() is routing_record.get() is None
    uses = {
        "transformer": len(model.encoder) + 2 * len(model.decoder),
        "recurrent": TGT.size(1),
        "bytenet": 0,
        "deep_att": TGT.size(1),
        "neural_gpu": 0,
    }
    assert len(record.attention) == uses.get(KINDS[kind].kind, len(model.decoder))
    for kept in record.attention:
        close(kept.weights.sum(dim=-1), torch.ones(kept.weights.shape[:-1]))
    for name, module in model.named_modules():
        if name.endswith("source_attention"):
            to_source = torch.cat(record.of(module), dim=2)
            assert to_source.shape == (
                2,
                KINDS[kind].num_heads if KINDS[kind].kind == "transformer" else 1,
                6,
                5,
            )
            assert not to_source[1, :, :, 3:].any()  # padding
    if KINDS[kind].kind == "transformer":
        (to_self,) = record.of(model.decoder[0].attention)
        assert not to_self.triu(1).any()  # the future
