"""Options of the model families and of the parts of the Transformer that the lab has."""

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from transduce.config.schema import ModelOptions, RunConfig, option
from transduce.system.errors import UserError

LAYERS_FORM = re.compile(r"[1-9]\d{0,2}x[1-9]\d{0,6}x[1-9]\d{0,3}")


@dataclass(frozen=True)
class BlockwiseOptions(ModelOptions):
    """Options of blockwise parallel decoding (Stern et al., 2018)."""

    families: ClassVar[tuple[str, ...]] = ("transformer",)
    # Exports and CTranslate2 work: other searches don't use the heads.
    has_own_layers: ClassVar[bool] = False
    block_size: int = option(
        1, "k, tokens predicted at once; 1: one token at a time", paper="1", least=1, below=100
    )

    def check(self, config: RunConfig) -> None:
        """Raise UserError for a loss that reads more than the next token."""
        if self.block_size > 1 and config.train.risk_steps:
            raise UserError("model.block_size does not support train.risk_steps.", "Leave it out.")


@dataclass(frozen=True)
class WindowOptions(ModelOptions):
    """Options of restricted self-attention (section 4 of the paper)."""

    families: ClassVar[tuple[str, ...]] = ("transformer",)
    window: int = option(
        0,
        "self-attention reaches fewer than this many positions to each side; 0: all",
        unit="tokens",
        paper="0",
    )


@dataclass(frozen=True)
class ExpertOptions(ModelOptions):
    """Options of mixtures of experts (Shazeer et al., 2017)."""

    families: ClassVar[tuple[str, ...]] = ("transformer", "recurrent")
    experts: int = option(
        0,
        "experts in a sparse feed-forward layer; 0: all layers are dense",
        paper="0",
        below=10_000,
    )
    experts_per_token: int = option(2, "number of experts that process each token", least=1)
    gate_noise: bool = option(False, "noise in the choice of experts, as in Shazeer et al. (2017)")
    expert_layers: tuple[int, ...] = option(
        (),
        "indices of the encoder and decoder layers that have experts, counted from 1; empty: all layers",
    )

    def has_experts(self, layer: int) -> bool:
        """Whether a layer, counted from 1, has experts."""
        return self.experts > 0 and layer in (self.expert_layers or [layer])

    @property
    def note(self) -> str:
        """The number of experts, for messages."""
        return f", {self.experts_per_token} of {self.experts} experts" if self.experts else ""

    def check(self, config: RunConfig) -> None:
        """Raise UserError for impossible numbers, and for a sharded model: FSDP needs all gradients."""
        if config.train.shard and self.experts:
            raise UserError("train.shard does not support experts.", "Leave train.shard out.")
        if self.experts and self.experts_per_token > self.experts:
            raise UserError(
                f"model.experts_per_token ({self.experts_per_token}) must not exceed model.experts ({self.experts})."
            )
        layers = max(config.model.num_encoder_layers, config.model.num_decoder_layers)
        if any(not 1 <= layer <= layers for layer in self.expert_layers):
            raise UserError(
                f"model.expert_layers must be numbers from 1 to {layers}, the number of layers."
            )


@dataclass(frozen=True)
class FrontEndOptions(ModelOptions):
    """Options of models whose sources are pictures or sounds (data.source_kind)."""

    families: ClassVar[tuple[str, ...]] = ("transformer",)
    vector: int = option(0, "source values that are read as one vector; 0: the sources are tokens")
    halvings: int = option(
        0, "convolutions that each halve the number of vectors of a source", below=10
    )

    @property
    def note(self) -> str:
        """The vectors, for messages."""
        joined = f", {2**self.halvings} joined" if self.halvings else ""
        return f", sources of {self.vector} values a vector{joined}" if self.vector else ""


@dataclass(frozen=True)
class RecurrentOptions(ModelOptions):
    """Options of recurrent models."""

    families: ClassVar[tuple[str, ...]] = ("recurrent",)
    cell: Literal["lstm", "gru"] = option("lstm", "type of recurrent cell")


@dataclass(frozen=True)
class KernelOptions(ModelOptions):
    """Options of convolutional models and ByteNet."""

    families: ClassVar[tuple[str, ...]] = ("convolutional", "bytenet")
    kernel_size: int = option(3, "kernel size of convolutions", unit="tokens", least=1)


@dataclass(frozen=True)
class ConvolutionOptions(ModelOptions):
    """Options of convolutional models."""

    families: ClassVar[tuple[str, ...]] = ("convolutional",)
    separable: bool = option(False, "depthwise separable convolutions")
    convolutions: tuple[str, ...] = option(
        (),
        "layers of a convolutional model as COUNTxCHANNELSxKERNEL; empty: all layers have d_model channels",
    )

    @property
    def note(self) -> str:
        """The layers of each side, for messages."""
        return f", layers {' '.join(self.convolutions)}" if self.convolutions else ""

    def check(self, config: RunConfig) -> None:  # noqa: ARG002
        """Raise UserError for layers of another form."""
        for text in self.convolutions:
            if not LAYERS_FORM.fullmatch(text):
                raise UserError(
                    f"model.convolutions: '{text}' is not of the form COUNTxCHANNELSxKERNEL, such as 9x512x3, or is "
                    "too large."
                )
