"""A folder of two ONNX graphs, which `transduce translate` reads as it reads a model, and any ONNX runtime.

encoder.onnx  decoder.onnx      see decoding/engines/onnx.py
config.toml  tokenizer.model    ours
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from transduce import model_folder
from transduce.config.parse import to_toml
from transduce.config.schema import BOS, EOS, PAD, UNK
from transduce.decoding.engines.support import DECODER, ENCODER
from transduce.decoding.translator import Translator
from transduce.model.transformer import Transformer
from transduce.model_folder import Bundle
from transduce.system.errors import UserError
from transduce.system.machine import cores
from transduce.tokens.tokenizer import JOINT, SOURCE, TARGET, Tokenizer
from transduce.wings.export import graph
from transduce.wings.export.onnx_engine import OnnxEngine
from transduce.wings.export.parity import EXTRA, Output, Peer

PROGRAM = """
In Python, greedily, with the packages onnxruntime, sentencepiece and numpy:

```python
import sys
import numpy as np, onnxruntime, sentencepiece

source, target = (sentencepiece.SentencePieceProcessor(model_file=name) for name in {names})
encoder, decoder = (onnxruntime.InferenceSession(f"{{name}}.onnx") for name in ("encoder", "decoder"))
state = [each for each in decoder.get_inputs() if each.name.startswith(("keys_", "values_"))]
for line in sys.stdin:
    ids = np.array([source.encode(line.rstrip("\\n")) + [{end}]])
    memory = dict(zip([each.name for each in encoder.get_outputs()], encoder.run(None, {{"source": ids}})))
    past = {{each.name: np.zeros((1, each.shape[1], 0, each.shape[3]), np.float32) for each in state}}
    tokens = [{begin}]
    while tokens[-1] != {end} and len(tokens) < {most}:
        log_probs, *after = decoder.run(None, {{"tokens": np.array(tokens[-1:]), **memory, **past}})
        past = dict(zip(past, after))
        log_probs[:, {never}] = -np.inf  # what stands for padding, a beginning and what is unknown
        tokens.append(int(log_probs.argmax()))
    print(target.decode([token for token in tokens if token != {end} and token != {begin}]))
```
"""


def usage(model: Bundle) -> str:
    """How it is used, as Markdown."""
    data, tokenizer = model.config.data, model.tokenizer
    command = f"transduce translate . --input text.{data.source} --output text.{data.target}  # in this folder"
    text = f"With our beam search, transduce and the package onnxruntime:\n\n```\n{command}\n```\n"
    if tokenizer.is_foreign:  # whose ids are not SentencePiece's
        return text
    names = json.dumps((JOINT, JOINT) if tokenizer.joint else (SOURCE, TARGET))
    shape, most = model.config.model, f"ids.size + {model.config.decode.max_extra_tokens}"
    most = f"min({most}, {shape.max_positions})" if shape.positions == "learned" else most
    return text + PROGRAM.format(names=names, begin=BOS, end=EOS, never=[PAD, BOS, UNK], most=most)


def write(model: Bundle, folder: Path, compute_type: str) -> None:  # noqa: ARG001
    """Write both graphs; raises UserError if onnx isn't installed or a graph is too large for its format."""
    network, config = model.model, model.config.model
    assert isinstance(network, Transformer)
    try:
        (folder / ENCODER).write_bytes(graph.encoder(network, config))
        (folder / DECODER).write_bytes(graph.decoder(network, config))
    except ImportError:
        raise UserError("The package onnx is needed: pip install 'transduce[export]'.") from None
    except ValueError as error:
        raise UserError(f"The model can't be written as ONNX: {error}.") from None
    model.tokenizer.save(folder)
    (folder / model_folder.CONFIG).write_text(to_toml(model.config), encoding="utf-8")


def open_peer(folder: Path) -> Peer:
    """ONNX Runtime under our search, greedily."""
    config = model_folder.read_config(folder)
    tokenizer = Tokenizer.load(folder)
    decode = replace(config.decode, beam_size=1, max_extra_tokens=EXTRA)
    translator = Translator(OnnxEngine(folder, config.model, cores()), tokenizer, decode)

    def translate(texts: Sequence[str], longest: int) -> list[Output]:  # noqa: ARG001
        return [Output(list(each.tokens), each.text) for each in translator.translate(texts)]

    return Peer(translate, "float32")
