"""The front end of the Transformer for sources that are vectors, such as parts of a picture or of a sound.

b = sentences, s = source values, p = positions, n = values in a vector.
"""

import torch.nn.functional as F
from torch import Tensor, nn

from transduce.config.schema import ModelConfig
from transduce.tokens.spelling import FIRST_VALUE
from transduce_lab.options import FrontEndOptions

LARGEST_VALUE = 255
KERNEL_POSITIONS = 3


class FrontEnd(nn.Module):
    """Projects each run of values to d_model channels, after convolutions that halve the number of positions.

    A picture is cut into patches as in Dosovitskiy et al. (2021); the frames of a sound are joined as in Dong et al.
    (2018, Speech-Transformer).
    """

    def __init__(self, config: ModelConfig):
        super().__init__()
        options = FrontEndOptions.of(config)
        self.vector = options.vector
        sizes = [options.vector, *[config.d_model] * options.halvings]
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, config.d_model, KERNEL_POSITIONS, stride=2, padding=1)
            for size in sizes[:-1]
        )
        self.project = nn.Linear(sizes[-1], config.d_model)
        # Embeddings of tokens have this variance, too.
        self.norm = nn.LayerNorm(config.d_model)

    def forward(self, src: Tensor) -> tuple[Tensor, Tensor]:
        """src (b, s), values, EOS and padding -> vectors (b, p, d_model), and their mask (b, p)."""
        # The first pass of a process in a distributed training has a source without a vector.
        src = F.pad(src, (0, max(0, self.vector - src.size(1))))
        length = src.size(1) - src.size(1) % self.vector
        values = src[:, :length].unflatten(1, (-1, self.vector))  # (b, p, n)
        mask = (values >= FIRST_VALUE).all(dim=-1)
        x = (values - FIRST_VALUE).to(self.project.weight) * (2 / LARGEST_VALUE) - 1
        for convolution in self.convolutions:
            # What lies behind a source must not change it.
            x = x.masked_fill(~mask[..., None], 0.0)
            x = F.relu(convolution(x.transpose(1, 2))).transpose(1, 2)
            mask = mask[:, ::2]
        return self.norm(self.project(x)), mask


def make_front_end(config: ModelConfig) -> FrontEnd | None:
    """Make the front end that the options choose; None: the sources are tokens."""
    return FrontEnd(config) if FrontEndOptions.of(config).vector else None
