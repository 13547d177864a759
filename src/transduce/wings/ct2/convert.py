"""Converts a Transformer to the format of CTranslate2, an inference library for CPUs."""

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from transduce.config.schema import BOS, EOS, PAD, UNK, ModelConfig
from transduce.model.attention import MultiHeadAttention
from transduce.model.seq2seq import Seq2Seq
from transduce.model.transformer import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Residual,
    Transformer,
)
from transduce.wings.formats import max_positions

# Names in CTranslate2.
ACTIVATIONS = {
    "relu": "RELU",
    "gelu": "GELU",
    "silu": "SWISH",
    "swiglu": "SWISH",
}
# Added to the logits of tokens that must not be predicted; it fits into float16.
FORBIDDEN_LOGIT = -1e4


class Pieces(NamedTuple):
    """The pieces of the source and target vocabularies, in the order of their ids."""

    source: list[str]
    target: list[str]


def convert(
    model: Seq2Seq,
    config: ModelConfig,
    folder: Path,
    compute_type: str,
    alignment_layer: int = -1,
    *,
    pieces: Pieces | None = None,
) -> None:
    """Write a model to a folder in CTranslate2's format, in a compute type such as "int8" or "float32".

    CTranslate2 returns the attention of the decoder layer `alignment_layer`. The vocabularies hold `pieces` or, by
    default, ids as text. With `pieces`, CTranslate2 adds EOS to each source and never predicts PAD, BOS or UNK.
    """
    assert isinstance(model, Transformer)
    spec = _empty_spec(config, alignment_layer)
    _fill_model(spec, model, config)
    if pieces or model.output_bias is not None:
        spec.decoder.projection.bias = _array(output_bias(model, forbid=pieces is not None))
    spec.config.add_source_eos = pieces is not None
    embeddings = (model.source_embedding or model.embedding, model.embedding)
    pieces = pieces or Pieces(*(list(map(str, range(len(each.weight)))) for each in embeddings))
    spec.register_source_vocabulary(pieces.source)
    spec.register_target_vocabulary(pieces.target)
    spec.config.decoder_start_token = spec.config.bos_token = pieces.target[BOS]
    spec.config.eos_token = pieces.target[EOS]
    spec.config.unk_token = pieces.target[UNK]
    spec.validate()
    spec.optimize(quantization=None if compute_type == "float32" else compute_type)
    spec.save(str(folder))


def _empty_spec(config: ModelConfig, alignment_layer: int) -> Any:
    """CTranslate2's description of a Transformer, without weights."""
    from ctranslate2.specs import TransformerSpec, common_spec, transformer_spec

    options: dict[str, Any] = {
        "pre_norm": config.norm == "pre",
        "activation": common_spec.Activation[ACTIVATIONS[config.activation]],
        "ffn_glu": config.activation == "swiglu",
        "rms_norm": config.rms_norm,
        "num_heads_kv": config.num_kv_heads or None,
        "rotary_dim": 0 if config.positions == "rotary" else None,  # 0: all channels
        "layernorm_embedding": config.embedding_norm,
    }
    encoder = transformer_spec.TransformerEncoderSpec(
        config.num_encoder_layers, config.num_heads, **options
    )
    # CTranslate2 then returns the mean over the heads.
    options |= {
        "alignment_layer": alignment_layer,
        "alignment_heads": config.num_heads,
    }
    decoder = transformer_spec.TransformerDecoderSpec(
        config.num_decoder_layers, config.num_heads, **options
    )
    return TransformerSpec(encoder, decoder)


def _fill_model(spec: Any, model: Transformer, config: ModelConfig) -> None:
    """Set all weights except the output bias."""
    source = model.source_embedding or model.embedding
    spec.encoder.embeddings[0].weight = _array(source.weight)
    weight = _array(model.embedding.weight)
    if config.zero_start:
        weight[BOS] = 0
    spec.decoder.embeddings.weight = spec.decoder.projection.weight = weight
    if config.positions == "rotary":
        del spec.encoder.position_encodings
    else:  # CTranslate2's own table has sines in one half of the channels and cosines in the other
        length = max_positions(config)
        spec.encoder.position_encodings.encodings = _array(model.source_positions(0, length))
        spec.decoder.position_encodings.encodings = _array(model.target_positions(0, length))
    if config.embedding_norm:
        _fill_norm(spec.encoder.layernorm_embedding, model.source_norm)
        _fill_norm(spec.decoder.layernorm_embedding, model.target_norm)
    for side, stack in ((spec.encoder, model.encoder), (spec.decoder, model.decoder)):
        for layer_spec, layer in zip(side.layer, stack, strict=True):
            assert isinstance(layer, EncoderLayer | DecoderLayer)
            _fill_layer(layer_spec, layer)
    if config.norm == "pre":
        _fill_norm(spec.encoder.layer_norm, model.encoder_norm)
        _fill_norm(spec.decoder.layer_norm, model.decoder_norm)


def output_bias(model: Transformer, *, forbid: bool) -> Tensor:
    """The bias of the logits (v,), with low values for PAD, BOS and UNK if `forbid` is true."""
    weight = model.embedding.weight
    bias = (
        torch.zeros(len(weight))
        if model.output_bias is None
        else model.output_bias.detach().float().cpu().clone()
    )
    if forbid:
        bias[[PAD, BOS, UNK]] = FORBIDDEN_LOGIT
    return bias


def _fill_layer(spec: Any, layer: EncoderLayer | DecoderLayer) -> None:
    norms = iter(layer.residual)
    _fill_attention(spec.self_attention, layer.attention, next(norms), to_self=True)
    if isinstance(layer, DecoderLayer):
        _fill_attention(spec.attention, layer.source_attention, next(norms), to_self=False)
    assert isinstance(layer.feed_forward, FeedForward)
    _fill_linear(spec.ffn.linear_0, layer.feed_forward.inner)
    if layer.feed_forward.gate:
        _fill_linear(spec.ffn.linear_0_noact, layer.feed_forward.gate)
    _fill_linear(spec.ffn.linear_1, layer.feed_forward.out)
    _fill_norm(spec.ffn.layer_norm, next(norms))


def _fill_attention(
    spec: Any, attention: MultiHeadAttention, residual: nn.Module, *, to_self: bool
) -> None:
    query = attention.query
    key = attention.key
    value = attention.value
    groups = [[query, key, value]] if to_self else [[query], [key, value]]
    for linear, layers in zip(spec.linear, [*groups, [attention.out]], strict=True):
        _fill_linear(linear, *layers)
    _fill_norm(spec.layer_norm, residual)


def _fill_linear(spec: Any, *layers: nn.Module) -> None:
    weights, biases = zip(*([layer.weight, layer.bias] for layer in layers), strict=True)
    spec.weight = _array(torch.cat(weights))
    if biases[0] is not None:
        spec.bias = _array(torch.cat(biases))


def _fill_norm(spec: Any, norm: nn.Module) -> None:
    layer = norm.norm if isinstance(norm, Residual) else norm
    assert isinstance(layer, nn.LayerNorm | nn.RMSNorm)
    spec.gamma = _array(layer.weight)
    if isinstance(layer, nn.LayerNorm):
        spec.beta = _array(torch.zeros_like(layer.weight) if layer.bias is None else layer.bias)


def _array(tensor: Tensor) -> Any:
    return tensor.detach().float().cpu().numpy().copy()  # CTranslate2 changes its arrays in place
