"""Exports a folder with two ONNX graphs for `transduce translate` and other programs.

The folder contains encoder.onnx, decoder.onnx, config.toml and the tokenizer (see `onnx_engine.py` for the graphs).
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from transduce import model_folder
from transduce.config.schema import BOS, EOS, PAD, UNK
from transduce.model.transformer import Transformer
from transduce.model_folder import Bundle
from transduce.system.errors import UserError, needing
from transduce.system.files import to_json
from transduce.system.machine import cores
from transduce.text.pairs import Pair
from transduce.tokens.tokenizer import JOINT, SOURCE, TARGET, Tokenizer
from transduce.training.card import translate_command
from transduce.wings.export import graph
from transduce.wings.export.onnx_engine import DECODER, ENCODER, OnnxEngine
from transduce.wings.export.parity import Output, Runner, greedy
from transduce.wings.export.readme import about_tags, fill

INT8 = "int8"


def usage(model: Bundle) -> str:
    """The Markdown text that explains how to use the folder."""
    text = fill("onnx", command=translate_command(model.config))
    tokenizer = model.tokenizer
    # The Python example takes ids from SentencePiece, which numbers these pieces differently.
    if tokenizer.is_imported:
        return text
    names = json.dumps((JOINT, JOINT) if tokenizer.joint else (SOURCE, TARGET))
    shape = model.config.model
    most = f"ids.size + {model.config.decode.max_extra_tokens}"
    most = f"min({most}, {shape.max_positions})" if shape.positions == "learned" else most
    special = {"begin": BOS, "end": EOS, "never": [PAD, BOS, UNK]}
    tags = about_tags(tokenizer.source.tags, "[{1}] + ")
    example = fill("onnx_python", names=names, **special, most=most, **tags)
    return f"{text}\n{example}"


def write(
    model: Bundle, folder: Path, compute_type: str, *, alignment_layer: int | None = None
) -> None:
    """Write the folder's files; raises UserError if onnx is not installed or a graph exceeds 2 GiB.

    With the compute type INT8, matrices are stored in 8 bits. `alignment_layer`: see `graph.decoder`.
    """
    network = model.model
    config = model.config.model
    assert isinstance(network, Transformer)
    in_bytes = compute_type == INT8
    try:
        with needing("export", "This export"):
            (folder / ENCODER).write_bytes(graph.encoder(network, config, in_bytes=in_bytes))
            decoder = graph.decoder(
                network, config, in_bytes=in_bytes, alignment_layer=alignment_layer
            )
            (folder / DECODER).write_bytes(decoder)
    except ValueError as error:
        raise UserError(f"The model can't be written as ONNX: {error}.") from None
    model.tokenizer.save(folder)
    model_folder.write_config(folder, replace(model.config, sources=None))
    if (model.folder / model_folder.CONFIDENCE).exists():
        shutil.copy(model.folder / model_folder.CONFIDENCE, folder)
    # Routes and pivots need these scores.
    if model.config.data.directions and (model.folder / model_folder.METRICS).exists():
        metrics = model_folder.read_metrics(model.folder)
        kept = {key: metrics[key] for key in ("directions", "routes") if key in metrics}
        (folder / model_folder.METRICS).write_bytes(to_json(kept).encode())


def open_runner(folder: Path) -> Runner:
    """Open an exported folder for greedy translation by ONNX Runtime and our own search."""
    config = model_folder.read_config(folder)
    translator = greedy(OnnxEngine(folder, config.model, cores()), Tokenizer.load(folder), config)

    def translate(pairs: Sequence[Pair], *_: object) -> list[Output]:
        return [Output(list(each.tokens), each.text) for each in translator.translate_pairs(pairs)]

    return Runner(translate, "float32")
