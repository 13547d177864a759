"""Exports a folder for Marian: model.npz, the vocabularies and decoder.yml."""

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transduce.config.schema import ModelConfig
from transduce.model_folder import Bundle
from transduce.text.pairs import Pair
from transduce.tokens.vocabulary import SPACE, Vocabulary, open_model
from transduce.wings.ct2.convert import FORBIDDEN_LOGIT
from transduce.wings.export import huggingface, marian, marian_native
from transduce.wings.export.parity import Output, Runner
from transduce.wings.export.readme import fill

NATIVE_WEIGHTS, DESCRIPTION_FILE = "model.npz", f"model.npz.{marian_native.DESCRIPTION_SUFFIX}"
JOINT_VOCABULARY_FILE = "vocab.spm"
ABSENT = -1  # in place of our id for an id of Marian's that our vocabulary lacks
# Options of Marian that say nothing about these models, but that it looks for.
OTHER_OPTIONS = """\
bert-train-type-embeddings: true
bert-type-vocab-size: 2
dec-cell: gru
dec-cell-base-depth: 2
dec-cell-high-depth: 1
dim-rnn: 1024
enc-cell: gru
enc-cell-depth: 1
enc-type: bidirectional
factors-combine: sum
factors-dim-emb: 0
input-types:
  []
layer-normalization: false
lemma-dependency: ""
output-omit-bias: false
separator-symbol: "[eos]"
skip: false
tied-embeddings-src: false
transformer-aan-activation: swish
transformer-aan-depth: 2
transformer-aan-nogate: false
transformer-alibi-trainable: false
transformer-attention-mask: default
transformer-dim-aan: 2048
transformer-guided-alignment-layer: last
ulr-dim-emb: 0
ulr-trainable-transformation: false
version: v1.12.0
"""
DESCRIPTION = """\
relative-paths: true
models:
  - {model}
vocabs:
  - {vocabularies[0]}
  - {vocabularies[1]}
beam-size: {decode.beam_size}
normalize: {decode.length_penalty}
word-penalty: 0
"""


def usage(model: Bundle) -> str:
    """The Markdown text that explains how to use the folder."""
    return fill("marian", beam_size=model.config.decode.beam_size, description=DESCRIPTION_FILE)


def write(model: Bundle, folder: Path, compute_type: str) -> None:  # noqa: ARG001
    """Write the weights, the vocabularies and the descriptions to a folder."""
    tokenizer = model.tokenizer
    separate = model.config.model.source_vocab_size
    names = [marian.SOURCE_MODEL, marian.TARGET_MODEL] if separate else [JOINT_VOCABULARY_FILE] * 2
    for name, content in zip(names, tokenizer.models, strict=True):
        (folder / name).write_bytes(content)
    rows = [ids_by_marian(side) for side in (tokenizer.source, tokenizer.target)]
    options = _options(model.config.model, [len(ids) for ids in rows]).encode() + b"\0"
    weights = _weights(model, rows)
    weights[marian_native.OPTIONS_KEY] = np.frombuffer(options, dtype=np.int8)
    np.savez(folder / NATIVE_WEIGHTS, **weights)
    decode = model.config.decode
    text = DESCRIPTION.format(model=NATIVE_WEIGHTS, vocabularies=names, decode=decode)
    (folder / DESCRIPTION_FILE).write_bytes(text.encode())


def ids_by_marian(side: Vocabulary) -> list[int]:
    """Our id for each id of a SentencePiece model, which are Marian's; ABSENT for pieces that our vocabulary lacks."""
    processor = open_model(side.model)
    ids = {piece: token for token, piece in enumerate(side.all_pieces())}
    return [ids.get(processor.id_to_piece(i), ABSENT) for i in range(processor.get_piece_size())]


def _options(model: ModelConfig, sizes: list[int]) -> str:
    """The options of the model, as YAML. `sizes` are those of the vocabularies of source and target."""
    activations = {ours: theirs for theirs, ours in marian_native.NATIVE_ACTIVATIONS.items()}
    is_joint = not model.source_vocab_size
    own = {
        **{name: getattr(model, ours) for name, ours in marian_native.SIZE_OPTIONS.items()},
        "dim-vocabs": f"\n  - {sizes[0]}\n  - {sizes[1]}",
        "transformer-ffn-activation": activations[model.activation],
        "tied-embeddings-all": str(is_joint).lower(),
        "tied-embeddings": str(not is_joint).lower(),
    }
    lines = "".join(f"{name}: {value}\n" for name, value in own.items())
    return OTHER_OPTIONS + marian_native.FIXED_OPTIONS + lines


def _weights(model: Bundle, rows: list[list[int]]) -> dict[str, Any]:
    tables = {
        marian.SHARED_EMBEDDING: marian_native.SHARED_TABLE,
        marian.TARGET_EMBEDDING: marian_native.TARGET_TABLE,
        marian.SOURCE_EMBEDDING: marian_native.SOURCE_TABLE,
    }
    weights = dict[str, Tensor]()
    source, target = rows
    for name, weight in huggingface.weights(model).items():
        if name in tables:
            ids = source if name == marian.SOURCE_EMBEDDING else target
            weights[tables[name]] = _rows(weight, ids, 0.0)
        elif name == marian.OUTPUT_BIAS:
            weights[marian_native.NATIVE_BIAS] = _rows(weight.T, target, FORBIDDEN_LOGIT).T
        else:  # matrices are transposed, and vectors are matrices of one row
            native = weight.T if weight.dim() > 1 else weight[None]
            weights[marian_native.native_name(name)] = native
    return {name: weight.contiguous().numpy() for name, weight in weights.items()}


def _rows(matrix: Tensor, ids: list[int], absent: float) -> Tensor:
    """The rows of a matrix at `ids`, and the value `absent` for ABSENT."""
    return torch.cat((matrix, torch.full((1, matrix.size(1)), absent)))[ids]


def open_runner(folder: Path) -> Runner | None:
    """Open the folder in Marian for greedy translation; None if pymarian is not installed."""
    if find_spec("pymarian") is None:
        return None
    import pymarian

    [file] = folder.glob(f"*{marian_native.DESCRIPTION_SUFFIX}")
    described = marian_native.parse_yaml(file.read_text(encoding="utf-8"))
    vocabularies = [str(folder / name) for name in described["vocabs"]]
    # Marian itself splits and joins texts only with vocabularies of SentencePiece, and its pieces shall be compared.
    split = None
    models = vocabularies
    if not vocabularies[0].endswith(".spm"):
        models = [str(folder / name) for name in (marian.SOURCE_MODEL, marian.TARGET_MODEL)]
        split = open_model(Path(models[0]).read_bytes()).encode_as_pieces
    join = open_model(Path(models[-1]).read_bytes()).decode_pieces

    def translate(
        pairs: Sequence[Pair], tags: Sequence[Sequence[str]], max_tokens: int
    ) -> list[Output]:
        texts = [pair.source for pair in pairs]
        if split:
            texts = [" ".join(split(text)) for text in texts]
        tagged = [" ".join([*its, text]) for its, text in zip(tags, texts, strict=True)]
        shortest = min(len(text.split()) for text in tagged)
        translator = pymarian.Translator(
            models=[str(folder / name) for name in described["models"]],
            vocabs=vocabularies,
            beam_size=1,
            max_length=2 * max_tokens,
            max_length_factor=math.ceil(max_tokens / shortest),
            cpu_threads=1,
            quiet=True,
            no_spm_decode=True,
        )
        rows = [line.split(" ") if line else [] for line in translator.translate(tagged)]
        return [Output(row, join(row).replace(SPACE, " ").strip()) for row in rows]

    return Runner(translate, "float32")
