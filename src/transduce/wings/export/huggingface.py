"""Exports a folder for `MarianMTModel.from_pretrained` and `MarianTokenizer.from_pretrained`.

The folder contains model.safetensors, source.spm, target.spm and JSON files.
"""

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch.nn.utils.rnn import pad_sequence

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
    save_file(weights(model), folder / marian.WEIGHTS_FILE, metadata={"format": "pt"})
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
    network, tokenizer = load(folder, "MarianTokenizer")
    start = network.config.decoder_start_token_id

    def translate(
        pairs: Sequence[Pair], tags: Sequence[Sequence[str]], max_tokens: int
    ) -> list[Output]:
        texts = ["".join(its) + pair.source for its, pair in zip(tags, pairs, strict=True)]
        sources = [(tokenizer(text).input_ids, [start]) for text in texts]
        pieces = tokenizer.convert_ids_to_tokens
        return greedy(network, sources, forbidden, max_tokens, tokenizer, pieces)

    return Runner(translate, "float32")


def load(folder: Path, tokenizer_class: str) -> tuple[Any, Any]:
    """The model in a folder and its tokenizer, in transformers. Raises UserError if transformers is missing."""
    with needing("export", "The comparison"):
        import transformers
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    opener = getattr(transformers, tokenizer_class)
    with warnings.catch_warnings(action="ignore"):  # silences the hint to install sacremoses
        tokenizer = opener.from_pretrained(str(folder), local_files_only=True)
    network = transformers.AutoModelForSeq2SeqLM.from_pretrained(
        str(folder), local_files_only=True, torch_dtype=torch.float32
    )
    return network.eval(), tokenizer


@torch.inference_mode()
def greedy(
    network: Any,
    sources: Sequence[tuple[list[int], list[int]]],
    forbidden: Sequence[int],
    max_tokens: int,
    tokenizer: Any,
    pieces: Callable[[list[int]], list[str]],
) -> list[Output]:
    """Translate by greedy search in transformers, without the ids `forbidden`.

    `sources` are the ids of each source and the ids that begin its translation. The tokenizer decodes the ids of
    translations, and `pieces` names their pieces.
    """
    outputs = [Output([], "")] * len(sources)
    padding = network.config.pad_token_id
    end = network.config.eos_token_id
    for batch in batches([len(source) for source, _ in sources], BATCH_TOKENS):
        rows = [torch.tensor(sources[i][0]) for i in batch]
        inputs = pad_sequence(rows, batch_first=True, padding_value=padding)
        begun = torch.tensor([sources[i][1] for i in batch])
        generated = network.generate(
            input_ids=inputs,
            attention_mask=(inputs != padding).long(),
            decoder_input_ids=begun,
            suppress_tokens=[*forbidden] or None,
            forced_bos_token_id=None,
            forced_eos_token_id=None,
            num_beams=1,
            do_sample=False,
            max_new_tokens=max_tokens + 1,
        )
        for i, row in zip(batch, generated[:, begun.size(1) :].tolist(), strict=True):
            ids = row[: row.index(end)] if end in row else row
            text = tokenizer.decode(
                ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
            )
            outputs[i] = Output(pieces(ids), text)
    return outputs


def weights(model: Bundle) -> dict[str, torch.Tensor]:
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
