"""What a model attended to while it translated a sentence."""

from typing import NamedTuple

import torch
from torch import Tensor

from transduce.decoding.beam import beam_search
from transduce.decoding.stepper import ModelStepper
from transduce.model.attention import MultiHeadAttention
from transduce.model.batch import make_batch, source_tensor
from transduce.model.recording import recording
from transduce.model.seq2seq import Seq2Seq
from transduce.tokens.tokenizer import Tokenizer

END = "⏎"  # shown for the end of a sentence


class SourceAttention(NamedTuple):
    """The decoder's attention over the source (third use of attention in section 3.2.3 of the paper)."""

    weights: Tensor  # (layers, h, t, s)
    source_pieces: list[str]  # s, the end last
    target_pieces: list[str]  # t, the end last


@torch.inference_mode()
def source_attention(model: Seq2Seq, tokenizer: Tokenizer, text: str, beam_size: int = 4) -> SourceAttention:
    """Translate `text`, then force the translation through the model and keep where each piece looked."""
    source = tokenizer.encode_source([text])[0]
    device = next(model.parameters()).device
    stepper = ModelStepper([model], source_tensor([source]).to(device))
    target = beam_search(stepper, [len(source) + 50], beam_size=beam_size)[0][0].tokens
    batch = make_batch([source], [target]).to(device)
    with recording() as record:
        model(batch.src, batch.tgt_in)
    over_source = [
        record.of(module)[0][0]
        for name, module in model.named_modules()
        if isinstance(module, MultiHeadAttention) and name.endswith("source_attention")
    ]
    return SourceAttention(
        torch.stack(over_source).float().cpu(),
        [*tokenizer.source_pieces(source), END],
        [*tokenizer.target_pieces(target), END],
    )
