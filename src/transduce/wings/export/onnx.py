"""Export to a folder of two ONNX graphs, for `transduce translate` and any ONNX runtime.

encoder.onnx  decoder.onnx      inputs and outputs: `onnx_engine.py`
config.toml  tokenizer.model    as in a model folder
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from transduce import model_folder
from transduce.config.parse import to_toml
from transduce.config.schema import BOS, EOS, PAD, UNK
from transduce.decoding.translator import Translator
from transduce.model.transformer import Transformer
from transduce.model_folder import Bundle
from transduce.system.errors import UserError
from transduce.system.machine import cores
from transduce.tokens.tokenizer import JOINT, SOURCE, TARGET, Tokenizer
from transduce.wings.export import graph
from transduce.wings.export.onnx_engine import DECODER, ENCODER, OnnxEngine
from transduce.wings.export.parity import EXTRA_TOKENS, Output, Runner

PYTHON_EXAMPLE = """
In Python, greedily, with the packages onnxruntime, sentencepiece and numpy:

```python
import sys
import numpy as np, onnxruntime, sentencepiece

source, target = (sentencepiece.SentencePieceProcessor(model_file=name) for name in {names})
encoder, decoder = (onnxruntime.InferenceSession(f"{{name}}.onnx") for name in ("encoder", "decoder"))
state = [entry for entry in decoder.get_inputs() if entry.name.startswith(("keys_", "values_"))]
for line in sys.stdin:
    ids = np.array([source.encode(line.rstrip("\\n")) + [{end}]])
    memory = dict(zip([entry.name for entry in encoder.get_outputs()], encoder.run(None, {{"source": ids}})))
    past = {{entry.name: np.zeros((1, entry.shape[1], 0, entry.shape[3]), np.float32) for entry in state}}
    tokens = [{begin}]
    while tokens[-1] != {end} and len(tokens) < {most}:
        log_probs, *after = decoder.run(None, {{"tokens": np.array(tokens[-1:]), **memory, **past}})
        past = dict(zip(past, after))
        log_probs[:, {never}] = -np.inf  # PAD, BOS and UNK
        tokens.append(int(log_probs.argmax()))
    print(target.decode([token for token in tokens if token != {end} and token != {begin}]))
```
"""


def usage(model: Bundle) -> str:
    """Markdown: how to use the folder."""
    data, tokenizer = model.config.data, model.tokenizer
    command = f"transduce translate . --input text.{data.source} --output text.{data.target}  # in this folder"
    text = f"With our beam search, transduce and the package onnxruntime:\n\n```\n{command}\n```\n"
    if tokenizer.is_imported:  # its ids are not those of SentencePiece
        return text
    names = json.dumps((JOINT, JOINT) if tokenizer.joint else (SOURCE, TARGET))
    shape, most = model.config.model, f"ids.size + {model.config.decode.max_extra_tokens}"
    most = f"min({most}, {shape.max_positions})" if shape.positions == "learned" else most
    return text + PYTHON_EXAMPLE.format(names=names, begin=BOS, end=EOS, never=[PAD, BOS, UNK], most=most)


def write(model: Bundle, folder: Path, compute_type: str) -> None:  # noqa: ARG001
    """Write both graphs; raises UserError if onnx is not installed or a graph exceeds 2 GiB."""
    network, config = model.model, model.config.model
    assert isinstance(network, Transformer)
    try:
        (folder / ENCODER).write_bytes(graph.encoder(network, config))
        (folder / DECODER).write_bytes(graph.decoder(network, config))
    except ImportError:
        raise UserError("This export needs the package onnx: pip install 'transduce[export]'.") from None
    except ValueError as error:
        raise UserError(f"The model can't be written as ONNX: {error}.") from None
    model.tokenizer.save(folder)
    (folder / model_folder.CONFIG).write_text(to_toml(model.config), encoding="utf-8")


def open_runner(folder: Path) -> Runner:
    """Open an export with ONNX Runtime and our search."""
    config = model_folder.read_config(folder)
    tokenizer = Tokenizer.load(folder)
    decode = replace(config.decode, beam_size=1, max_extra_tokens=EXTRA_TOKENS)
    translator = Translator(OnnxEngine(folder, config.model, cores()), tokenizer, decode)

    def translate(texts: Sequence[str], max_tokens: int) -> list[Output]:  # noqa: ARG001
        translations = translator.translate_sentences(texts)
        return [Output(list(translation.tokens), translation.text) for translation in translations]

    return Runner(translate, "float32")
