"""Exports a folder for `MarianMTModel.from_pretrained` and `MarianTokenizer.from_pretrained`.

The folder contains model.safetensors, source.spm, target.spm and JSON files.
"""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from transduce.config.schema import BOS, EOS, PAD, UNK, ModelConfig
from transduce.model.transformer import Transformer
from transduce.model_folder import Bundle
from transduce.system.errors import needing
from transduce.system.files import to_json
from transduce.text.pairs import Pair
from transduce.tokens.batching import batches
from transduce.wings.ct2.convert import output_bias
from transduce.wings.export import marian
from transduce.wings.export.parity import Output, Runner
from transduce.wings.export.readme import about_tags, fill

MARIAN_POSITIONS = 1024  # rows of the table of sinusoids
BATCH_TOKENS = 2048  # source tokens
SPECIAL_IDS = {
    "pad_token_id": PAD,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
    "decoder_start_token_id": BOS,
    "forced_eos_token_id": EOS,
}


def usage(model: Bundle) -> str:
    """The Markdown text that explains how to use the folder."""
    return fill("huggingface", **about_tags(model.tokenizer.source.tags, '"{0}" + '))


def write(model: Bundle, folder: Path, compute_type: str) -> None:  # noqa: ARG001
    """Write the weights, the configuration and the vocabulary to a folder."""
    save_file(_weights(model), folder / marian.WEIGHTS_FILE, metadata={"format": "pt"})
    for name, content in zip(
        (marian.SOURCE_MODEL, marian.TARGET_MODEL), model.tokenizer.models, strict=True
    ):
        (folder / name).write_bytes(content)
    decode = model.config.decode
    search = {"num_beams": decode.beam_size, "length_penalty": decode.length_penalty}
    descriptions = {
        marian.CONFIG_FILE: _config(model.config.model),
        marian.GENERATION_FILE: {**SPECIAL_IDS, **search, "max_length": MARIAN_POSITIONS},
        **_vocabularies(model),
    }
    for name, value in descriptions.items():
        (folder / name).write_bytes(to_json(value).encode())


def open_runner(folder: Path, forbidden: Sequence[int] = ()) -> Runner:
    """Open a Marian model that never predicts the ids `forbidden`; raises UserError if transformers is missing."""
    with needing("export", "The comparison"):
        from transformers import MarianMTModel, MarianTokenizer
        from transformers.utils import logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with warnings.catch_warnings(action="ignore"):  # silences the hint to install sacremoses
        tokenizer = MarianTokenizer.from_pretrained(str(folder), local_files_only=True)
    network = MarianMTModel.from_pretrained(
        str(folder), local_files_only=True, torch_dtype=torch.float32
    ).eval()

    def translate(
        pairs: Sequence[Pair], tags: Sequence[Sequence[str]], max_tokens: int
    ) -> list[Output]:
        texts = ["".join(its) + pair.source for its, pair in zip(tags, pairs, strict=True)]
        lengths = [len(tokenizer(text).input_ids) for text in texts]

        def generate(batch: Sequence[int]) -> list[list[int]]:
            inputs = tokenizer([texts[i] for i in batch], return_tensors="pt", padding=True)
            return _generate(network, inputs, max_tokens, forbidden)

        return in_batches(lengths, generate, tokenizer, tokenizer.convert_ids_to_tokens)

    return Runner(translate, "float32")


def in_batches(
    lengths: Sequence[int],
    generate: Callable[[Sequence[int]], list[list[int]]],
    tokenizer: Any,
    pieces: Callable[[list[int]], list[str]],
) -> list[Output]:
    """The translations of sources with these lengths. `generate` translates those at some indices.

    `tokenizer`, of transformers, decodes the ids, and `pieces` names their pieces.
    """
    outputs = [Output([], "")] * len(lengths)
    for batch in batches(lengths, BATCH_TOKENS):
        for i, row in zip(batch, generate(batch), strict=True):
            text = tokenizer.decode(
                row, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
            outputs[i] = Output(pieces(row), text)
    return outputs


@torch.inference_mode()
def _generate(
    network: Any, inputs: Any, max_tokens: int, forbidden: Sequence[int]
) -> list[list[int]]:
    """Search greedily and return the ids of each translation without the start and end tokens."""
    end = network.config.eos_token_id
    rows = network.generate(
        input_ids=inputs.input_ids,
        attention_mask=inputs.attention_mask,
        bad_words_ids=[[token] for token in forbidden] or None,
        num_beams=1,
        do_sample=False,
        max_new_tokens=max_tokens + 1,
    )
    generated = [row[1:] for row in rows.tolist()]
    return [row[: row.index(end)] if end in row else row for row in generated]


def _weights(model: Bundle) -> dict[str, torch.Tensor]:
    network = model.model
    own = {name: weight.detach().float().cpu() for name, weight in network.state_dict().items()}
    assert isinstance(network, Transformer)
    layers = marian.layers(model.config.model)
    weights = {entry.theirs: marian.to_theirs(own[entry.ours], entry.channels) for entry in layers}
    target = marian.to_theirs(own["embedding.weight"], 1)
    if network.source_embedding is None:
        weights[marian.SHARED_EMBEDDING] = target
    else:
        weights[marian.SOURCE_EMBEDDING] = marian.to_theirs(own["source_embedding.weight"], 1)
        weights[marian.TARGET_EMBEDDING] = target
    weights[marian.OUTPUT_BIAS] = output_bias(network, forbid=True)[None]
    return {name: weight.contiguous() for name, weight in weights.items()}


def _config(config: ModelConfig) -> dict[str, Any]:
    return {
        "architectures": ["MarianMTModel"],
        **marian.FIXED_VALUES,
        "is_encoder_decoder": True,
        **{theirs: getattr(config, ours) for theirs, ours in marian.SIZES.items()},
        "num_hidden_layers": config.num_encoder_layers,
        "vocab_size": config.source_vocab_size or config.vocab_size,
        "decoder_vocab_size": config.vocab_size,
        "max_position_embeddings": MARIAN_POSITIONS,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": 0.0,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        "static_position_embeddings": True,
        "share_encoder_decoder_embeddings": not config.source_vocab_size,
        "torch_dtype": "float32",
        **SPECIAL_IDS,
    }


def _vocabularies(model: Bundle) -> dict[str, dict[str, Any]]:
    """The contents of the tokenizer's JSON files, by file name."""
    tokenizer = model.tokenizer
    data = model.config.data
    source = tokenizer.source.all_pieces()
    target = tokenizer.target.all_pieces()
    files: dict[str, dict[str, Any]] = {
        marian.VOCABULARY_FILE: {piece: token for token, piece in enumerate(source)}
    }
    if not tokenizer.joint:
        files[marian.TARGET_VOCABULARY_FILE] = {piece: token for token, piece in enumerate(target)}
    files[marian.TOKENIZER_FILE] = {
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": not tokenizer.joint,
        "model_max_length": MARIAN_POSITIONS,
        "clean_up_tokenization_spaces": False,
        "source_lang": data.source,
        "target_lang": data.target,
        "unk_token": target[UNK],
        "eos_token": target[EOS],
        "pad_token": target[PAD],
    }
    if data.directions:  # no option of transformers; our import reads it
        files[marian.TOKENIZER_FILE][marian.DIRECTIONS] = list(data.directions)
    return files
