"""ByteNet, with dilated convolutions for the source and the target (Kalchbrenner et al., 2016).

ByteNet has no attention. Position t of the target reads position t of the encoded source.

b = sentences, r = rows (hypotheses), s = source positions, u = positions of the encoded source (6/5 of s), t = target
positions, d = d_model / 2 channels inside a block.
"""

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config.schema import PAD, ModelConfig
from transduce.model.embedding import Dropout, Embedding
from transduce.model.seq2seq import Seq2Seq, State
from transduce_lab.families.gated_convolution import draw_convolution
from transduce_lab.options import KernelOptions

DILATIONS = (1, 2, 4, 8, 16)  # repeated over the blocks


class Block(nn.Module):
    """The residual block x + W3 relu(conv(relu(W1 relu(x)))) with layer norm before each relu (figure 3 of ByteNet)."""

    def __init__(self, config: ModelConfig, dilation: int):
        super().__init__()
        inner = config.d_model // 2
        kernel_size = KernelOptions.of(config).kernel_size
        self.span = (kernel_size - 1) * dilation
        self.norms = nn.ModuleList(nn.LayerNorm(width) for width in (config.d_model, inner, inner))
        self.enter = nn.Linear(config.d_model, inner)
        self.leave = nn.Linear(inner, config.d_model)
        self.conv = nn.Conv1d(inner, inner, kernel_size, dilation=dilation)
        self.dropout = Dropout(config.dropout)

    def draw_weights(self, generator: torch.Generator) -> None:
        """Draw the convolution's weights with variance 2 / fan-in."""
        draw_convolution(self.conv, 2, generator)

    def before(self, x: Tensor) -> Tensor:
        """(r, t, d_model) -> the input of the convolution (r, t, d)."""
        return F.relu(self.norms[1](self.enter(F.relu(self.norms[0](x)))))

    def after(self, x: Tensor, window: Tensor) -> Tensor:
        """x (r, t, d_model), window (r, t + span, d) -> (r, t, d_model)."""
        y = self.conv(window.transpose(1, 2)).transpose(1, 2)
        return x + self.dropout(self.leave(F.relu(self.norms[2](y))))


class ByteNet(Seq2Seq):
    """The ByteNet model.

    The decoding state holds the next position (r,), and the last `span` inputs of each decoder block's convolution.
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.embedding = Embedding(config.vocab_size, config.d_model)
        self.source_embedding = (
            Embedding(config.source_vocab_size, config.d_model)
            if config.source_vocab_size
            else None
        )
        self.dropout = Dropout(config.dropout)
        self.encoder, self.decoder = (
            nn.ModuleList(
                Block(config, DILATIONS[layer % len(DILATIONS)]) for layer in range(layers)
            )
            for layers in (config.num_encoder_layers, config.num_decoder_layers)
        )
        self.leave = nn.Linear(config.d_model, config.d_model)

    def encode(self, src: Tensor) -> Tensor:
        """src (b, s) -> the encoded source (b, u, d_model), with zeros after each sentence."""
        mask = src != PAD
        # Stretched by 6/5 with integer arithmetic: floating-point errors would make lengths depend on the batch.
        lengths = (mask.sum(1) * 6 + 4) // 5
        longest = (src.size(1) * 6 + 4) // 5
        real = (torch.arange(longest, device=src.device) < lengths[:, None])[..., None]  # (b, u, 1)
        embed = self.source_embedding or self.embedding
        x = F.pad(self.dropout(embed(src)) * mask[..., None], (0, 0, 0, longest - src.size(1)))
        for block in map(_block, self.encoder):
            left = block.span // 2
            x = block.after(x, F.pad(block.before(x) * real, (0, 0, left, block.span - left)))
        return x * real

    def decode(self, tgt: Tensor, memory: Tensor, state: State = None) -> tuple[Tensor, State]:
        """tgt (r, t) -> logits (r, t, v) of the next tokens, and the new state."""
        position, past = state or (tgt.new_zeros(len(tgt)), [None] * len(self.decoder))
        start = int(position[0])
        length = tgt.size(1)
        source = memory[:, start : start + length]
        source = F.pad(source, (0, 0, 0, length - source.size(1)))
        x = self.dropout(self.embedding(tgt)) + source.repeat_interleave(
            len(tgt) // len(source), dim=0
        )
        recent = []
        for block, history in zip(map(_block, self.decoder), past, strict=True):
            y = block.before(x)
            window = (
                F.pad(y, (0, 0, block.span, 0))
                if history is None
                else torch.cat((history, y), dim=1)
            )
            recent.append(window[:, window.size(1) - block.span :])
            x = block.after(x, window)
        return self.embedding.logits(self.dropout(F.relu(self.leave(F.relu(x))))), (
            position + length,
            recent,
        )


def _block(module: nn.Module) -> Block:
    return cast(Block, module)  # nn.ModuleList is not generic
