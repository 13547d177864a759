"""Writes a Transformer as two ONNX graphs, one for the encoder and one for a decoding step.

Adds nodes one by one, because torch.onnx.export takes 100 times as long and needs two more packages.

b = sentences, r = sentences or hypotheses, h = heads, s and t = positions, d = channels of a head, v = vocabulary.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from transduce.config.schema import PAD, ModelConfig
from transduce.model.attention import MultiHeadAttention
from transduce.model.embedding import Embedding, LearnedPositions, NoPositions
from transduce.model.transformer import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Residual,
    Transformer,
)
from transduce.wings.export.onnx_engine import (
    ATTENTION,
    LOG_PROBS,
    MASK,
    SOURCE_INPUT,
    TOKENS,
    after,
    cache_names,
)

OPSET, IR_VERSION = 17, 8  # opset 17 is the first with LayerNormalization; newer runtimes read both
MAX_BYTE = 127  # 8 bits hold the numbers from -127 to 127
MAX_WEIGHT_BYTES = 2**31 - 2**20  # maximum size of the weights in a graph


class Graph:
    """An ONNX graph under construction, with methods that take and return names of tensors."""

    def __init__(self, config: ModelConfig, *, in_bytes: bool = False):
        """`in_bytes`: store each matrix in 8 bits. Raises ImportError if onnx is not installed."""
        import onnx

        self.config = config
        self._in_bytes = in_bytes
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._weights: dict[str, Any] = {}
        self._matrices: dict[str, str] = {}  # of weights in 8 bits, as floats
        # Kept so that their addresses, which identify weights, aren't reused.
        self._alive: list[Tensor] = []
        # Sines and cosines (t, d_k / 2, 1) of rotary positions.
        self._rotation: tuple[str, str] | None = None

    def add(self, operation: str, *inputs: str, named: str = "", **attributes: Any) -> str:
        """Add a node with one output and return the output's name."""
        name = named or f"t{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(operation, inputs, [name], **attributes))
        return name

    def weight(self, value: Tensor | float | list[int]) -> str:
        """Add a float32 constant, or an int64 constant for a list, and return its name."""
        if isinstance(value, Tensor):
            self._alive.append(value)
            array = value.detach().float().cpu().contiguous().numpy()
        else:
            array = np.array(value, dtype=np.int64 if isinstance(value, list) else np.float32)
        key = (
            f"w{value.data_ptr()}x{tuple(value.shape)}"
            if isinstance(value, Tensor)
            else f"c{value}"
        )
        if key not in self._weights:
            self._weights[key] = self._onnx.numpy_helper.from_array(array, key)
        return key

    def matrix(self, value: Tensor) -> str:
        """Add a matrix (rows, columns) and return its name; in 8 bits, each row has its own scale.

        A runtime computes the floats once, since `Cast` and `Mul` of constants are constants.
        """
        key = self.weight(value)
        if not self._in_bytes:
            return key
        if key not in self._matrices:
            rows = value.detach().float().cpu()
            scale = rows.abs().amax(dim=1, keepdim=True).clamp_min(1e-12) / MAX_BYTE
            self._weights[key] = self._onnx.numpy_helper.from_array(
                (rows / scale).round().to(torch.int8).numpy(), key
            )
            floats = self.add("Cast", key, to=self._onnx.TensorProto.FLOAT)
            self._matrices[key] = self.add("Mul", floats, self.weight(scale))
        return self._matrices[key]

    def serialised(self, inputs: list[Any], outputs: list[Any]) -> bytes:
        """The graph as the content of an .onnx file; raises ValueError if the weights exceed 2 GiB."""
        size = sum(len(weight.raw_data) for weight in self._weights.values())
        if size > MAX_WEIGHT_BYTES:
            raise ValueError(f"a graph has {size:,} bytes, but an ONNX file holds at most 2 GiB")
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes, "transduce", inputs, outputs, list(self._weights.values())
        )
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(
            graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="transduce"
        )
        self._onnx.checker.check_model(model)
        return bytes(model.SerializeToString())

    def tensor(self, name: str, kind: str, *shape: str | int) -> Any:
        """Describe an input or output of the graph; `kind` is an ONNX type such as FLOAT."""
        return self._onnx.helper.make_tensor_value_info(
            name, getattr(self._onnx.TensorProto, kind), shape
        )

    def caches(
        self, names: Iterable[str], attentions: list[MultiHeadAttention], rows: str, length: str
    ) -> list[Any]:
        """Describe the keys and values (rows, h, length, d) of each attention layer."""
        sizes = [
            (each.num_kv_heads, kind.out_features)
            for each in attentions
            for kind in (each.key, each.value)
        ]
        return [
            self.tensor(name, "FLOAT", rows, heads, length, width // heads)
            for name, (heads, width) in zip(names, sizes, strict=True)
        ]

    def memory(self, model: Transformer) -> list[Any]:
        """Describe the tensors that the encoder passes to the decoder."""
        attentions = [layer.source_attention for layer in _decoder(model)]
        names = cache_names(len(attentions), "source_")
        return [
            self.tensor(MASK, "BOOL", "b", 1, 1, "s"),
            *self.caches(names, attentions, "b", "s"),
        ]

    def linear(self, x: str, layer: nn.Module) -> str:
        """Apply a linear layer: (…, in) -> (…, out)."""
        assert isinstance(layer, nn.Linear)
        product = self.add(
            "MatMul", x, self.add("Transpose", self.matrix(layer.weight), perm=[1, 0])
        )
        return product if layer.bias is None else self.add("Add", product, self.weight(layer.bias))

    def norm(self, x: str, norm: nn.Module) -> str:
        """Apply layer normalisation or RMSNorm; return `x` unchanged if `norm` is the identity."""
        if isinstance(norm, nn.Identity):
            return x
        if isinstance(norm, nn.RMSNorm):
            mean = self.add("ReduceMean", self.add("Mul", x, x), axes=[-1])
            root = self.add("Sqrt", self.add("Add", mean, self.weight(norm.eps or 0.0)))
            return self.add("Mul", self.add("Div", x, root), self.weight(norm.weight))
        assert isinstance(norm, nn.LayerNorm)
        weights = [self.weight(each) for each in (norm.weight, norm.bias) if each is not None]
        return self.add("LayerNormalization", x, *weights, epsilon=norm.eps)

    def residual(self, x: str, residual: nn.Module, sublayer: Callable[[str], str]) -> str:
        """Apply a sublayer with its residual connection and norm, as `Residual.forward` does."""
        assert isinstance(residual, Residual)
        if residual.pre:
            return self.add("Add", x, sublayer(self.norm(x, residual.norm)))
        return self.norm(self.add("Add", x, sublayer(x)), residual.norm)

    def embed(
        self, tokens: str, embedding: Embedding, start: str, length: str, positions: nn.Module
    ) -> str:
        """Embed tokens (r, t) -> (r, t, d_model); `start` is the position of the first token."""
        vectors = self.add("Gather", self.matrix(embedding.weight), tokens)
        scaled = self.add("Mul", vectors, self.weight(embedding.scale))
        indices = self.add(
            "Range", start, self.add("Add", start, length), self.add("Squeeze", self.weight([1]))
        )
        if isinstance(positions, LearnedPositions):
            return self.add(
                "Add", scaled, self.add("Gather", self.matrix(positions.weight), indices)
            )
        if isinstance(positions, NoPositions):
            self._rotation = self._waves(
                indices, self.config.d_k or self.config.d_model // self.config.num_heads
            )
            return scaled
        both = self.add("Concat", *self._waves(indices, self.config.d_model), axis=2)
        return self.add(
            "Add", scaled, self.add("Reshape", both, self.weight([0, self.config.d_model]))
        )

    def _waves(self, indices: str, width: int) -> tuple[str, str]:
        """The sines and the cosines (t, width / 2, 1) of sinusoidal or rotary positions."""
        rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        column = self.add(
            "Unsqueeze",
            self.add("Cast", indices, to=self._onnx.TensorProto.FLOAT),
            self.weight([1]),
        )
        angle = self.add("Unsqueeze", self.add("Mul", column, self.weight(rate)), self.weight([2]))
        return self.add("Sin", angle), self.add("Cos", angle)

    def _rotated(self, x: str, attention: MultiHeadAttention) -> str:
        """Rotate queries or keys (r, h, t, d_k), if the attention has rotary positions."""
        if not attention.positions or not self._rotation:
            return x
        sines, cosines = self._rotation
        pairs = self.add("Reshape", x, self.weight([0, 0, 0, -1, 2]))
        even, odd = (self.add("Gather", pairs, self.weight([place]), axis=4) for place in (0, 1))
        first = self.add("Sub", self.add("Mul", even, cosines), self.add("Mul", odd, sines))
        second = self.add("Add", self.add("Mul", even, sines), self.add("Mul", odd, cosines))
        return self.add(
            "Reshape", self.add("Concat", first, second, axis=4), self.weight([0, 0, 0, -1])
        )

    def feed_forward(self, x: str, layer: nn.Module) -> str:
        """Apply a feed-forward layer: x (r, t, d_model) -> the same shape."""
        assert isinstance(layer, FeedForward)
        inner = self.linear(x, layer.inner)
        if self.config.activation == "relu":
            active = self.add("Relu", inner)
        elif self.config.activation in ("silu", "swiglu"):
            active = self.add("Mul", inner, self.add("Sigmoid", inner))
        else:
            error = self.add("Erf", self.add("Mul", inner, self.weight(math.sqrt(0.5))))
            half = self.add("Mul", inner, self.weight(0.5))
            active = self.add("Mul", half, self.add("Add", error, self.weight(1.0)))
        return self.linear(
            active if layer.gate is None else self.add("Mul", active, self.linear(x, layer.gate)),
            layer.out,
        )

    def split(self, x: str, projection: nn.Module, heads: int) -> str:
        """Project x (r, t, d_model) to vectors for the heads (r, h, t, d)."""
        parts = self.add("Reshape", self.linear(x, projection), self.weight([0, 0, heads, -1]))
        return self.add("Transpose", parts, perm=[0, 2, 1, 3])

    def keys_values(self, x: str, attention: MultiHeadAttention) -> list[str]:
        """Project x (r, t, d_model) to keys and values (r, g, t, d) of g = h heads, or fewer."""
        keys, values = (
            self.split(x, each, attention.num_kv_heads) for each in (attention.key, attention.value)
        )
        return [self._rotated(keys, attention), values]

    def attend(
        self,
        x: str,
        attention: MultiHeadAttention,
        keys: str,
        values: str,
        mask: str = "",
        mean: str = "",
    ) -> str:
        """Attend from x (r, t, d_model) to keys and values (r, g, s, d) -> (r, t, d_model).

        `mean` names an output for the mean weights (r, t, s) of the heads.
        """
        heads = attention.num_heads
        groups = attention.num_kv_heads
        d_k = attention.query.out_features // heads
        d_v = attention.out.in_features // heads
        scale = 1 / math.sqrt(d_k) if attention.scale is None else attention.scale
        queries = self._rotated(self.split(x, attention.query, heads), attention)
        queries = self.add("Mul", queries, self.weight(scale))
        if groups < heads:  # the queries of heads that share keys become one sequence
            queries = self.add("Reshape", queries, self.weight([0, groups, -1, d_k]))
        scores = self.add("MatMul", queries, self.add("Transpose", keys, perm=[0, 1, 3, 2]))
        if mask:
            scores = self.add("Where", mask, scores, self.weight(-math.inf))
        weights = self.add("Softmax", scores, axis=-1)
        if mean:
            by_head = (
                self.add("Reshape", weights, self.weight([0, heads, -1, 0]))
                if groups < heads
                else weights
            )
            self.add("ReduceMean", by_head, named=mean, axes=[1], keepdims=0)
        read = self.add("MatMul", weights, values)
        if groups < heads:
            read = self.add("Reshape", read, self.weight([0, heads, -1, d_v]))
        joined = self.add(
            "Reshape", self.add("Transpose", read, perm=[0, 2, 1, 3]), self.weight([0, 0, -1])
        )
        return self.linear(joined, attention.out)

    def attend_to_source(
        self, x: str, attention: MultiHeadAttention, keys: str, values: str, mean: str = ""
    ) -> str:
        """Attend from the last token x (r, 1, d_model) to the keys and values of its sentence -> the same shape."""
        width = self.config.d_model
        sentences = self.add("Shape", MASK, end=1)
        shape = self.add("Concat", sentences, self.weight([-1, width]), axis=0)
        y = self.attend(self.add("Reshape", x, shape), attention, keys, values, MASK, mean)
        return self.add("Reshape", y, self.weight([-1, 1, width]))

    def log_probs(self, x: str, model: Transformer) -> None:
        """Compute LOG_PROBS (r, v) from the output of the last layer, x (r, 1, d_model)."""
        x = self.add("Squeeze", self.norm(x, model.decoder_norm), self.weight([1]))
        projection = self.add("Transpose", self.matrix(model.embedding.weight), perm=[1, 0])
        logits = self.add("MatMul", x, projection)
        if model.output_bias is not None:
            logits = self.add("Add", logits, self.weight(model.output_bias))
        self.add("LogSoftmax", logits, named=LOG_PROBS, axis=-1)


def encoder(model: Transformer, config: ModelConfig, *, in_bytes: bool = False) -> bytes:
    """The content of encoder.onnx; with `in_bytes`, its matrices are stored in 8 bits."""
    graph = Graph(config, in_bytes=in_bytes)
    real = graph.add("Not", graph.add("Equal", SOURCE_INPUT, graph.weight([PAD])))
    mask = graph.add("Unsqueeze", real, graph.weight([1, 2]), named=MASK)
    length = graph.add("Squeeze", graph.add("Shape", SOURCE_INPUT, start=1))
    start = graph.add("Squeeze", graph.weight([0]))
    x = graph.embed(
        SOURCE_INPUT,
        model.source_embedding or model.embedding,
        start,
        length,
        model.source_positions,
    )

    def to_self(x: str, attention: MultiHeadAttention) -> str:
        keys, values = graph.keys_values(x, attention)
        return graph.attend(x, attention, keys, values, mask)

    def encode(x: str, layer: EncoderLayer) -> str:
        x = graph.residual(x, layer.residual[0], lambda x: to_self(x, layer.attention))
        return graph.residual(
            x, layer.residual[1], lambda x: graph.feed_forward(x, layer.feed_forward)
        )

    for layer in model.encoder:
        x = encode(x, cast(EncoderLayer, layer))
    x = graph.norm(x, model.encoder_norm)
    projected = [
        name for layer in _decoder(model) for name in graph.keys_values(x, layer.source_attention)
    ]
    for name, known_as in zip(
        projected, cache_names(config.num_decoder_layers, "source_"), strict=True
    ):
        graph.add("Identity", name, named=known_as)
    return graph.serialised([graph.tensor(SOURCE_INPUT, "INT64", "b", "s")], graph.memory(model))


def decoder(
    model: Transformer,
    config: ModelConfig,
    *,
    in_bytes: bool = False,
    alignment_layer: int | None = None,
) -> bytes:
    """The content of decoder.onnx, the graph of one decoding step; with `in_bytes`, its matrices are stored in 8 bits.

    `alignment_layer` is the layer whose attention to the source becomes the output ATTENTION (b, r / b, s).
    """
    graph = Graph(config, in_bytes=in_bytes)
    layers = iter(range(config.num_decoder_layers))
    memory = iter(cache_names(config.num_decoder_layers, "source_"))
    states = cache_names(config.num_decoder_layers)
    state = iter(states)
    start = graph.add("Squeeze", graph.add("Shape", states[0], start=2, end=3))
    one = graph.add("Squeeze", graph.weight([1]))
    tokens = graph.add("Unsqueeze", TOKENS, graph.weight([1]))
    x = graph.embed(tokens, model.embedding, start, one, model.target_positions)

    def to_self(x: str, attention: MultiHeadAttention) -> str:
        """Apply self-attention, x (r, 1, d_model) -> the same shape, and append x's keys and values to the cache."""
        new = [(next(state), name) for name in graph.keys_values(x, attention)]
        return graph.attend(
            x,
            attention,
            *(graph.add("Concat", *pair, axis=2, named=after(pair[0])) for pair in new),
        )

    def to_source(x: str, attention: MultiHeadAttention) -> str:
        mean = ATTENTION if next(layers) == alignment_layer else ""
        return graph.attend_to_source(x, attention, next(memory), next(memory), mean)

    def decode(x: str, layer: DecoderLayer) -> str:
        x = graph.residual(x, layer.residual[0], lambda x: to_self(x, layer.attention))
        x = graph.residual(x, layer.residual[1], lambda x: to_source(x, layer.source_attention))
        return graph.residual(
            x, layer.residual[2], lambda x: graph.feed_forward(x, layer.feed_forward)
        )

    for layer in _decoder(model):
        x = decode(x, layer)
    graph.log_probs(x, model)
    attentions = [layer.attention for layer in _decoder(model)]
    log_probs = graph.tensor(LOG_PROBS, "FLOAT", "r", config.vocab_size)
    outputs = [log_probs, *graph.caches(map(after, states), attentions, "r", "t + 1")]
    if alignment_layer is not None:
        outputs.append(graph.tensor(ATTENTION, "FLOAT", "b", "r / b", "s"))
    before = graph.caches(states, attentions, "r", "t")
    return graph.serialised(
        [graph.tensor(TOKENS, "INT64", "r"), *graph.memory(model), *before], outputs
    )


def _decoder(model: Transformer) -> list[DecoderLayer]:
    return [cast(DecoderLayer, layer) for layer in model.decoder]
