"""Exports a folder for Marian: model.npz, the vocabularies and decoder.yml."""

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transduce.config.schema import BOS, PAD, RunConfig
from transduce.model.transformer import Transformer
from transduce.model_folder import Bundle
from transduce.text.pairs import Pair
from transduce.tokens.vocabulary import SPACE, Vocabulary, open_model
from transduce.wings.ct2.convert import FORBIDDEN_LOGIT
from transduce.wings.export import marian, marian_native
from transduce.wings.export.parity import Output, Runner
from transduce.wings.export.readme import fill

NATIVE_WEIGHTS, DESCRIPTION_FILE = "model.npz", f"model.npz.{marian_native.DESCRIPTION_SUFFIX}"
JOINT_VOCABULARY_FILE = "vocab.spm"
ABSENT = -1  # in place of our id for an id of Marian's that our vocabulary lacks
# Options of Marian that say nothing about these models, but that it looks for.
OTHER_OPTIONS: dict[str, object] = {
    "bert-train-type-embeddings": "true",
    "bert-type-vocab-size": 2,
    "dec-cell": "gru",
    "dec-cell-base-depth": 2,
    "dec-cell-high-depth": 1,
    "dim-rnn": 1024,
    "enc-cell": "gru",
    "enc-cell-depth": 1,
    "enc-type": "bidirectional",
    "factors-combine": "sum",
    "factors-dim-emb": 0,
    "input-types": [],
    "layer-normalization": "false",
    "lemma-dependency": '""',
    "output-omit-bias": "false",
    "separator-symbol": '"[eos]"',
    "skip": "false",
    "tied-embeddings-src": "false",
    "transformer-aan-activation": "swish",
    "transformer-aan-depth": 2,
    "transformer-aan-nogate": "false",
    "transformer-alibi-trainable": "false",
    "transformer-attention-mask": "default",
    "transformer-dim-aan": 2048,
    "transformer-guided-alignment-layer": "last",
    "ulr-dim-emb": 0,
    "ulr-trainable-transformation": "false",
    "version": "v1.12.0",
}


def usage(model: Bundle) -> str:
    """The Markdown text that explains how to use the folder."""
    return fill("marian", beam_size=model.config.decode.beam_size, description=DESCRIPTION_FILE)


def write(model: Bundle, folder: Path, compute_type: str) -> None:  # noqa: ARG001
    """Write the weights, the vocabularies and the descriptions to a folder."""
    tokenizer = model.tokenizer
    config = model.config
    rows = [ids_by_marian(side) for side in (tokenizer.source, tokenizer.target)]
    names = _names(config)
    for name, content in zip(names, tokenizer.models, strict=True):
        (folder / name).write_bytes(content)
    options = "".join(_yaml(_options(config, [len(ids) for ids in rows]))).encode() + b"\0"
    weights = _weights(model, rows)
    weights[marian_native.OPTIONS_KEY] = np.frombuffer(options, dtype=np.int8)
    np.savez(folder / NATIVE_WEIGHTS, **weights)
    decode = config.decode
    described = {
        "relative-paths": "true",
        "models": [NATIVE_WEIGHTS],
        "vocabs": names,
        "beam-size": decode.beam_size,
        "normalize": decode.length_penalty,
        "word-penalty": 0,
    }
    (folder / DESCRIPTION_FILE).write_bytes("".join(_yaml(described)).encode())


def ids_by_marian(side: Vocabulary) -> list[int]:
    """Our id for each id of a SentencePiece model, which are Marian's; ABSENT for pieces that our vocabulary lacks."""
    processor = open_model(side.model)
    ids = {piece: token for token, piece in enumerate(side.all_pieces())}
    return [ids.get(processor.id_to_piece(i), ABSENT) for i in range(processor.get_piece_size())]


def _names(config: RunConfig) -> list[str]:
    separate = [marian.SOURCE_MODEL, marian.TARGET_MODEL]
    return (
        separate
        if config.model.source_vocab_size
        else [JOINT_VOCABULARY_FILE, JOINT_VOCABULARY_FILE]
    )


def _options(config: RunConfig, sizes: list[int]) -> dict[str, object]:
    model = config.model
    activations = {ours: theirs for theirs, ours in marian_native.NATIVE_ACTIVATIONS.items()}
    is_joint = not model.source_vocab_size
    fixed = {
        name: '""' if allowed[0] == "" else allowed[0]
        for name, allowed in marian_native.FIXED_OPTIONS.items()
    }
    sizes_of_model = {
        name: getattr(model, ours) for name, ours in marian_native.SIZE_OPTIONS.items()
    }
    return {
        **OTHER_OPTIONS,
        **fixed,
        **sizes_of_model,
        "dim-vocabs": sizes,
        "transformer-ffn-activation": activations[model.activation],
        "tied-embeddings-all": str(is_joint).lower(),
        "tied-embeddings": str(not is_joint).lower(),
    }


def _yaml(options: dict[str, Any]) -> list[str]:
    lines = []
    for name, value in sorted(options.items()):
        if isinstance(value, list):
            items = [f"  - {item}\n" for item in value] or ["  []\n"]
            lines += [f"{name}:\n", *items]
        else:
            lines.append(f"{name}: {value}\n")
    return lines


def _weights(model: Bundle, rows: list[list[int]]) -> dict[str, Any]:
    network = model.model
    assert isinstance(network, Transformer)
    own = {name: weight.detach().float().cpu() for name, weight in network.state_dict().items()}
    weights = {
        entry.theirs: marian_native.to_native(marian.to_theirs(own[entry.ours], entry.channels))
        for entry in marian_native.layers(model.config.model)
    }
    source, target = rows
    tables = {marian_native.SHARED_TABLE: ("embedding.weight", target)}
    if network.source_embedding is not None:
        tables = {
            marian_native.TARGET_TABLE: ("embedding.weight", target),
            marian_native.SOURCE_TABLE: ("source_embedding.weight", source),
        }
    for name, (ours, ids) in tables.items():
        weights[name] = _rows(marian.to_theirs(own[ours], 1), ids, 0.0).numpy()
    bias = own.get("output_bias", torch.zeros(len(own["embedding.weight"])))[:, None].clone()
    bias[[PAD, BOS]] = FORBIDDEN_LOGIT  # they are no part of a translation
    weights[marian_native.NATIVE_BIAS] = _rows(bias, target, FORBIDDEN_LOGIT).T.contiguous().numpy()
    return weights


def _rows(matrix: Tensor, ids: list[int], absent: float) -> Tensor:
    """The rows of a matrix at `ids`, and the value `absent` for ABSENT."""
    return torch.cat((matrix, torch.full((1, matrix.size(1)), absent)))[ids].contiguous()


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
