"""A Transformer as two ONNX graphs: the encoder, and one step of the decoder; their inputs: `onnx_engine.py`.

Written node by node: torch.onnx.export needs two more packages and a hundred times as long (24 s for a small model).

b = sentences, r = rows (hypotheses), h = heads, s, t = positions, d = channels of a head, v = vocabulary.
"""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from transduce.config.schema import PAD, ModelConfig
from transduce.model.attention import MultiHeadAttention
from transduce.model.embedding import Embedding, LearnedPositions, SinusoidalPositions
from transduce.model.transformer import DecoderLayer, EncoderLayer, FeedForward, Residual, Transformer
from transduce.wings.export.onnx_engine import LOG_PROBS, MASK, SOURCE_INPUT, TOKENS, after, memory_names, state_names

OPSET, IR_VERSION = 17, 8  # the first with LayerNormalization; every later runtime reads them
FLOAT_TYPE = 1  # onnx.TensorProto.FLOAT
MAX_WEIGHT_BYTES = 2**31 - 2**20  # of a graph


class Graph:
    """A graph under construction: nodes and weights; a tensor is referred to by its name."""

    def __init__(self, config: ModelConfig):
        self.config = config
        self._nodes: list[Any] = []
        self._weights: dict[str, Any] = {}
        self._alive: list[Tensor] = []  # keeps their addresses, which identify weights, from being reused

    def add(self, operation: str, *inputs: str, named: str = "", **attributes: Any) -> str:
        """Add a node with one output and return the output's name."""
        from onnx import helper

        name = named or f"t{len(self._nodes)}"
        self._nodes.append(helper.make_node(operation, inputs, [name], **attributes))
        return name

    def weight(self, value: Tensor | float | list[int]) -> str:
        """Add a constant (float32, or int64 for a list) and return its name; a tensor is stored once."""
        from onnx import numpy_helper

        if isinstance(value, Tensor):
            self._alive.append(value)
            array = value.detach().float().cpu().contiguous().numpy()
        else:
            array = np.array(value, dtype=np.int64 if isinstance(value, list) else np.float32)
        key = f"w{value.data_ptr()}x{tuple(value.shape)}" if isinstance(value, Tensor) else f"c{value}"
        if key not in self._weights:
            self._weights[key] = numpy_helper.from_array(array, key)
        return key

    def serialised(self, inputs: list[Any], outputs: list[Any]) -> bytes:
        """The content of an .onnx file; raises ValueError if it exceeds 2 GiB."""
        from onnx import checker, helper

        size = sum(len(weight.raw_data) for weight in self._weights.values())
        if size > MAX_WEIGHT_BYTES:
            raise ValueError(f"it has {size:,} bytes; an ONNX file holds 2 GiB")
        graph = helper.make_graph(self._nodes, "transduce", inputs, outputs, list(self._weights.values()))
        opset = helper.make_opsetid("", OPSET)
        model = helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="transduce")
        checker.check_model(model)
        return bytes(model.SerializeToString())

    def linear(self, x: str, layer: nn.Module) -> str:
        """(…, in) -> (…, out)."""
        assert isinstance(layer, nn.Linear)
        product = self.add("MatMul", x, self.add("Transpose", self.weight(layer.weight), perm=[1, 0]))
        return self.add("Add", product, self.weight(layer.bias))

    def norm(self, x: str, norm: nn.Module) -> str:
        """Layer normalisation; the identity where the model has none."""
        if isinstance(norm, nn.Identity):
            return x
        assert isinstance(norm, nn.LayerNorm)
        return self.add("LayerNormalization", x, self.weight(norm.weight), self.weight(norm.bias), epsilon=norm.eps)

    def enter(self, x: str, residual: nn.Module) -> str:
        """The input of a sublayer."""
        assert isinstance(residual, Residual)
        return self.norm(x, residual.norm) if residual.pre else x

    def leave(self, x: str, y: str, residual: nn.Module) -> str:
        """The output of a residual connection around a sublayer: x was its input, y its result."""
        assert isinstance(residual, Residual)
        total = self.add("Add", x, y)
        return total if residual.pre else self.norm(total, residual.norm)

    def embed(self, tokens: str, embedding: Embedding, start: str, length: str, positions: nn.Module) -> str:
        """tokens (r, t), the first at position `start` -> (r, t, d_model)."""
        vectors = self.add("Gather", self.weight(embedding.weight), tokens)
        scaled = self.add("Mul", vectors, self.weight(embedding.scale))
        return self.add("Add", scaled, self._positions(start, length, positions))

    def _positions(self, start: str, length: str, positions: nn.Module) -> str:
        """(t, d_model): learned vectors, or sinusoids computed in the graph, so that no length is too long."""
        end = self.add("Add", start, length)
        indices = self.add("Range", start, end, self.add("Squeeze", self.weight([1])))
        if isinstance(positions, LearnedPositions):
            return self.add("Gather", self.weight(positions.weight), indices)
        assert isinstance(positions, SinusoidalPositions)
        d_model = self.config.d_model
        rate = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        column = self.add("Unsqueeze", self.add("Cast", indices, to=FLOAT_TYPE), self.weight([1]))
        angle = self.add("Unsqueeze", self.add("Mul", column, self.weight(rate)), self.weight([2]))
        both = self.add("Concat", self.add("Sin", angle), self.add("Cos", angle), axis=2)
        return self.add("Reshape", both, self.weight([0, d_model]))

    def feed_forward(self, x: str, layer: nn.Module) -> str:
        """x (r, t, d_model) -> the same shape."""
        assert isinstance(layer, FeedForward)
        inner = self.linear(x, layer.inner)
        if self.config.activation == "relu":
            active = self.add("Relu", inner)
        elif self.config.activation == "silu":
            active = self.add("Mul", inner, self.add("Sigmoid", inner))
        else:
            error = self.add("Erf", self.add("Mul", inner, self.weight(math.sqrt(0.5))))
            half = self.add("Mul", inner, self.weight(0.5))
            active = self.add("Mul", half, self.add("Add", error, self.weight(1.0)))
        return self.linear(active, layer.out)

    def split(self, x: str, attention: MultiHeadAttention) -> str:
        """(r, t, h * d) -> (r, h, t, d)."""
        heads = self.add("Reshape", x, self.weight([0, 0, attention.num_heads, -1]))
        return self.add("Transpose", heads, perm=[0, 2, 1, 3])

    def join(self, x: str) -> str:
        """(r, h, t, d) -> (r, t, h * d)."""
        return self.add("Reshape", self.add("Transpose", x, perm=[0, 2, 1, 3]), self.weight([0, 0, -1]))

    def attend(self, q: str, k: str, v: str, attention: MultiHeadAttention, mask: str = "") -> str:
        """(b, h, t, d) of queries, (b, h, s, d) of keys and values -> (b, h, t, d)."""
        d_k = attention.query.out_features // attention.num_heads
        scale = 1 / math.sqrt(d_k) if attention.scale is None else attention.scale
        keys = self.add("Transpose", k, perm=[0, 1, 3, 2])
        scores = self.add("MatMul", self.add("Mul", q, self.weight(scale)), keys)
        if mask:
            scores = self.add("Where", mask, scores, self.weight(-math.inf))
        return self.add("MatMul", self.add("Softmax", scores, axis=-1), v)


def encoder(model: Transformer, config: ModelConfig) -> bytes:
    """The encoder's graph."""
    graph = Graph(config)
    real = graph.add("Not", graph.add("Equal", SOURCE_INPUT, graph.weight([PAD])))
    mask = graph.add("Unsqueeze", real, graph.weight([1, 2]), named=MASK)
    length = graph.add("Squeeze", graph.add("Shape", SOURCE_INPUT, start=1))
    start = graph.add("Squeeze", graph.weight([0]))
    x = graph.embed(SOURCE_INPUT, model.source_embedding or model.embedding, start, length, model.source_positions)
    for layer in model.encoder:
        assert isinstance(layer, EncoderLayer)
        attention, (first, second) = layer.attention, layer.residual
        read = graph.enter(x, first)
        q, k, v = (
            graph.split(graph.linear(read, projection), attention)
            for projection in (attention.query, attention.key, attention.value)
        )
        x = graph.leave(x, graph.linear(graph.join(graph.attend(q, k, v, attention, mask)), attention.out), first)
        x = graph.leave(x, graph.feed_forward(graph.enter(x, second), layer.feed_forward), second)
    x = graph.norm(x, model.encoder_norm)
    names = iter(memory_names(config.num_decoder_layers))
    for layer in model.decoder:
        assert isinstance(layer, DecoderLayer)
        attention = layer.source_attention
        for projection in (attention.key, attention.value):
            graph.add("Identity", graph.split(graph.linear(x, projection), attention), named=next(names))
    return graph.serialised([_info(SOURCE_INPUT, "INT64", "b", "s")], [_mask(), *_memory(model)])


def decoder(model: Transformer, config: ModelConfig) -> bytes:
    """The graph of one decoding step."""
    graph = Graph(config)
    memory = iter(memory_names(config.num_decoder_layers))
    states = state_names(config.num_decoder_layers)
    state = iter(states)
    start = graph.add("Squeeze", graph.add("Shape", states[0], start=2, end=3))
    one = graph.add("Squeeze", graph.weight([1]))
    tokens = graph.add("Unsqueeze", TOKENS, graph.weight([1]))
    x = graph.embed(tokens, model.embedding, start, one, model.target_positions)
    for layer in model.decoder:
        assert isinstance(layer, DecoderLayer)
        first, second, third = layer.residual
        y = _attend_to_self(graph, graph.enter(x, first), layer.attention, next(state), next(state))
        x = graph.leave(x, y, first)
        y = _attend_to_source(graph, graph.enter(x, second), layer.source_attention, next(memory), next(memory))
        x = graph.leave(x, y, second)
        x = graph.leave(x, graph.feed_forward(graph.enter(x, third), layer.feed_forward), third)
    x = graph.add("Squeeze", graph.norm(x, model.decoder_norm), graph.weight([1]))
    logits = graph.add("MatMul", x, graph.add("Transpose", graph.weight(model.embedding.weight), perm=[1, 0]))
    if model.output_bias is not None:
        logits = graph.add("Add", logits, graph.weight(model.output_bias))
    graph.add("LogSoftmax", logits, named=LOG_PROBS, axis=-1)
    outputs = [_info(LOG_PROBS, "FLOAT", "r", config.vocab_size), *_states(model, "t + 1", returned=True)]
    return graph.serialised([_info(TOKENS, "INT64", "r"), _mask(), *_memory(model), *_states(model, "t")], outputs)


def _attend_to_self(graph: Graph, x: str, attention: MultiHeadAttention, keys: str, values: str) -> str:
    """x (r, 1, d_model), keys and values (r, h, t, d) of the tokens before it -> (r, 1, d_model)."""
    q, k, v = (
        graph.split(graph.linear(x, projection), attention)
        for projection in (attention.query, attention.key, attention.value)
    )
    k = graph.add("Concat", keys, k, axis=2, named=after(keys))
    v = graph.add("Concat", values, v, axis=2, named=after(values))
    return graph.linear(graph.join(graph.attend(q, k, v, attention)), attention.out)


def _attend_to_source(graph: Graph, x: str, attention: MultiHeadAttention, keys: str, values: str) -> str:
    """x (r, 1, d_model) -> the same shape; the rows of a sentence become queries of one sequence and share its keys."""
    d_model = graph.config.d_model
    sentences = graph.add("Shape", MASK, end=1)
    queries = graph.add("Reshape", x, graph.add("Concat", sentences, graph.weight([-1, d_model]), axis=0))
    q = graph.split(graph.linear(queries, attention.query), attention)
    y = graph.linear(graph.join(graph.attend(q, keys, values, attention, MASK)), attention.out)
    return graph.add("Reshape", y, graph.weight([-1, 1, d_model]))


def _info(name: str, kind: str, *shape: str | int) -> Any:
    """Describe an input or output; kind: ONNX's name of the number type."""
    from onnx import TensorProto, helper

    return helper.make_tensor_value_info(name, getattr(TensorProto, kind), shape)


def _mask() -> Any:
    return _info(MASK, "BOOL", "b", 1, 1, "s")


def _memory(model: Transformer) -> list[Any]:
    widths = _widths([layer.source_attention for layer in model.decoder if isinstance(layer, DecoderLayer)])
    names = memory_names(len(model.decoder))
    return [_info(name, "FLOAT", "b", h, "s", d) for name, (h, d) in zip(names, widths, strict=True)]


def _states(model: Transformer, length: str, *, returned: bool = False) -> list[Any]:
    widths = _widths([layer.attention for layer in model.decoder if isinstance(layer, DecoderLayer)])
    names = state_names(len(model.decoder))
    return [
        _info(after(name) if returned else name, "FLOAT", "r", h, length, d)
        for name, (h, d) in zip(names, widths, strict=True)
    ]


def _widths(attentions: list[MultiHeadAttention]) -> list[tuple[int, int]]:
    """(heads, channels per head) of the keys and values of each attention."""
    return [
        (attention.num_heads, projection.out_features // attention.num_heads)
        for attention in attentions
        for projection in (attention.key, attention.value)
    ]
