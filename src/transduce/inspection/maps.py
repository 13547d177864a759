"""What a model attended to while it translated a sentence."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from transduce.decoding.beam import beam_search
from transduce.decoding.stepper import ModelStepper
from transduce.errors import UserError
from transduce.model.batch import make_batch, source_tensor
from transduce.model.recording import recording
from transduce.model.seq2seq import Seq2Seq
from transduce.tokens.tokenizer import Tokenizer

BEGIN, END = "↦", "⏎"  # shown for the begin and the end of a sentence


class AttentionUse(NamedTuple):
    """One of the three uses of attention (section 3.2.3 of the paper)."""

    weights: Tensor  # (layers, h, t, s)
    queries: list[str]  # t pieces
    keys: list[str]  # s pieces


class Attention(NamedTuple):
    """All three; of models without self-attention, those two are None."""

    encoder: AttentionUse | None
    decoder: AttentionUse | None
    source: AttentionUse  # the decoder's over the source


@torch.inference_mode()
def attention_of(model: Seq2Seq, tokenizer: Tokenizer, text: str, beam_size: int = 4) -> Attention:
    """Translate `text`, then force the translation through the model and keep where each piece looked.

    Raises UserError for a blank text and for a kind of model that attends to nothing.
    """
    if not text.strip():
        raise UserError("A blank sentence has no attention to look at; give one with words.")
    source = tokenizer.encode_source([text])[0]
    device = next(model.parameters()).device
    stepper = ModelStepper([model], source_tensor([source]).to(device))
    limit = len(source) + 50 if model.max_positions is None else min(len(source) + 50, model.max_positions - 1)
    target = beam_search(stepper, [limit], beam_size=beam_size)[0][0].tokens
    batch = make_batch([source], [target]).to(device)
    with recording() as record:
        model(batch.src, batch.tgt_in)
    read = [*tokenizer.source_pieces(source), END]
    fed, written = ([BEGIN, *(pieces := tokenizer.target_pieces(target))], [*pieces, END])

    def use(wanted: Callable[[str], bool], queries: list[str], keys: list[str]) -> AttentionUse | None:
        layers = [
            torch.cat(record.of(module), dim=2)[0]  # recurrent models ask once for every position
            for name, module in model.named_modules()
            if wanted(name) and record.of(module)
        ]
        return AttentionUse(torch.stack(layers).float().cpu(), queries, keys) if layers else None

    over_source = use(lambda name: name.endswith("source_attention"), written, read)
    if over_source is None:
        raise UserError("This kind of model attends to nothing; there is no attention to show.")
    return Attention(
        use(lambda name: name.startswith("encoder.") and name.endswith(".attention"), read, read),
        use(lambda name: name.startswith("decoder.") and name.endswith(".attention"), fed, fed),
        over_source,
    )
