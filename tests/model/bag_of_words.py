"""A minimal family of models, as CONTRIBUTING.md shows it: the next token from the last one and a mean of the source.

b = sentences, r = rows (hypotheses), s = source positions, t = target positions, v = vocabulary.
"""

import torch
from torch import Tensor, nn

from transduce.config.schema import PAD, ModelConfig
from transduce.model.embedding import Embedding
from transduce.model.seq2seq import Seq2Seq, State


class BagOfWords(Seq2Seq):
    """It has no state, because the next token depends on the last token only."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.embedding = Embedding(config.vocab_size, config.d_model)
        self.hidden = nn.Linear(2 * config.d_model, config.d_model)

    def encode(self, src: Tensor) -> Tensor:
        """src (b, s) -> the mean of its embeddings (b, d_model)."""
        mask = (src != PAD)[..., None]
        return (self.embedding(src) * mask).sum(1) / mask.sum(1)

    def decode(self, tgt: Tensor, memory: Tensor, state: State = None) -> tuple[Tensor, State]:
        """tgt (r, t) -> logits (r, t, v) of the next tokens, and the state, which stays None."""
        x = self.embedding(tgt)
        source = memory.repeat_interleave(len(tgt) // len(memory), dim=0)[:, None].expand_as(x)
        return self.embedding.logits(self.hidden(torch.cat((x, source), dim=-1)).tanh()), state
