"""A folder that `MarianMTModel.from_pretrained` and `MarianTokenizer.from_pretrained` open.

model.safetensors  config.json  generation_config.json
source.spm  target.spm  vocab.json  tokenizer_config.json
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from transduce.config.schema import BOS, EOS, PAD, UNK, ModelConfig
from transduce.decoding.translator import batches
from transduce.model.transformer import Transformer
from transduce.model_folder import Bundle
from transduce.system.errors import UserError
from transduce.system.files import to_json
from transduce.wings.ct2.convert import output_bias
from transduce.wings.export import marian
from transduce.wings.export.parity import Output, Peer

POSITIONS = 1024  # that it has a table for
BATCH = 2048  # source tokens translated at once


def usage(model: Bundle) -> str:  # noqa: ARG001
    """How it is used, as Markdown."""
    return """\
In this folder, with the packages transformers, torch and sentencepiece:

```python
import sys
from transformers import MarianMTModel, MarianTokenizer

tokenizer, model = MarianTokenizer.from_pretrained("."), MarianMTModel.from_pretrained(".")
batch = tokenizer([line.rstrip("\\n") for line in sys.stdin], return_tensors="pt", padding=True)
for text in tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True):
    print(text)
```
"""


def write(model: Bundle, folder: Path, compute_type: str) -> None:  # noqa: ARG001
    """Write weights, configuration and vocabulary."""
    config = model.config.model
    save_file(_weights(model), folder / marian.WEIGHTS, metadata={"format": "pt"})
    _write_json(folder / marian.CONFIG, _config(config))
    _write_json(folder / marian.GENERATION, _generation(model))
    _write_tokenizer(model, folder)


def open_peer(folder: Path, never: Sequence[int] = ()) -> Peer:
    """The transformers library as others use it; raises UserError if it isn't installed.

    never: ids that must not come out.
    """
    try:
        from transformers import MarianMTModel, MarianTokenizer
        from transformers.utils import logging
    except ImportError:
        raise UserError("To prove it, the package transformers is needed: pip install 'transduce[export]'.") from None
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with warnings.catch_warnings(action="ignore"):  # it would like sacremoses, which it doesn't use here
        tokenizer = MarianTokenizer.from_pretrained(str(folder), local_files_only=True)
    network = MarianMTModel.from_pretrained(
        str(folder), local_files_only=True, torch_dtype=torch.float32
    ).eval()  # whatever it is stored in

    def translate(texts: Sequence[str], longest: int) -> list[Output]:
        lengths = [len(tokenizer(text).input_ids) for text in texts]
        outputs = [Output([], "")] * len(texts)
        for batch in batches(lengths, BATCH):
            inputs = tokenizer([texts[i] for i in batch], return_tensors="pt", padding=True)
            for i, row in zip(batch, _generate(network, inputs, longest, never), strict=True):
                pieces = tokenizer.convert_ids_to_tokens(row)
                text = tokenizer.decode(row, skip_special_tokens=True, clean_up_tokenization_spaces=False)
                outputs[i] = Output(pieces, text)
        return outputs

    return Peer(translate, "float32")


@torch.inference_mode()
def _generate(network: Any, inputs: Any, longest: int, never: Sequence[int]) -> list[list[int]]:
    """Greedily; the ids without what they begin and end with."""
    end = network.config.eos_token_id
    rows = network.generate(
        input_ids=inputs.input_ids,
        attention_mask=inputs.attention_mask,
        bad_words_ids=[[token] for token in never] or None,
        num_beams=1,
        do_sample=False,
        max_new_tokens=longest + 1,
    )
    found = [row[1:] for row in rows.tolist()]
    return [row[: row.index(end)] if end in row else row for row in found]


def _weights(model: Bundle) -> dict[str, torch.Tensor]:
    network = model.model
    own = {name: weight.detach().float().cpu() for name, weight in network.state_dict().items()}
    assert isinstance(network, Transformer)
    found = {
        entry.theirs: marian.to_theirs(own[entry.ours], entry.channels) for entry in marian.layers(model.config.model)
    }
    target = marian.to_theirs(own["embedding.weight"], 1)
    if network.source_embedding is None:
        found[marian.SHARED] = target
    else:
        found[marian.SOURCE_EMBEDDING] = marian.to_theirs(own["source_embedding.weight"], 1)
        found[marian.TARGET_EMBEDDING] = target
    found[marian.BIAS] = output_bias(network, forbid=True)[None]
    return {name: weight.contiguous() for name, weight in found.items()}


def _config(config: ModelConfig) -> dict[str, Any]:
    sizes = {
        "d_model": config.d_model,
        "encoder_layers": config.num_encoder_layers,
        "decoder_layers": config.num_decoder_layers,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "encoder_attention_heads": config.num_heads,
        "decoder_attention_heads": config.num_heads,
        "num_hidden_layers": config.num_encoder_layers,
        "vocab_size": config.source_vocab_size or config.vocab_size,
        "decoder_vocab_size": config.vocab_size,
        "max_position_embeddings": POSITIONS,
    }
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "is_encoder_decoder": True,
        **sizes,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": 0.0,
        "encoder_layerdrop": 0.0,
        "decoder_layerdrop": 0.0,
        "scale_embedding": True,
        "normalize_before": False,
        "normalize_embedding": False,
        "static_position_embeddings": True,
        "share_encoder_decoder_embeddings": not config.source_vocab_size,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
        **_special(),
    }


def _special() -> dict[str, int]:
    return {
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
        "forced_eos_token_id": EOS,
    }


def _generation(model: Bundle) -> dict[str, Any]:
    decode = model.config.decode
    return {
        **_special(),
        "num_beams": decode.beam_size,
        "length_penalty": decode.length_penalty,
        "max_length": POSITIONS // 2,
    }


def _write_tokenizer(model: Bundle, folder: Path) -> None:
    tokenizer, data = model.tokenizer, model.config.data
    for name, content in zip((marian.SOURCE, marian.TARGET), tokenizer.models, strict=True):
        (folder / name).write_bytes(content)
    source = tokenizer.source_pieces(range(tokenizer.source_size))
    target = tokenizer.target_pieces(range(tokenizer.target_size))
    _write_json(folder / marian.VOCABULARY, {piece: token for token, piece in enumerate(source)})
    if not tokenizer.joint:
        _write_json(folder / marian.TARGET_VOCABULARY, {piece: token for token, piece in enumerate(target)})
    names = {"unk_token": target[UNK], "eos_token": target[EOS], "pad_token": target[PAD]}
    languages = {"source_lang": data.source, "target_lang": data.target}
    _write_json(
        folder / marian.TOKENIZER,
        {
            "tokenizer_class": "MarianTokenizer",
            "separate_vocabs": not tokenizer.joint,
            "model_max_length": POSITIONS,
            "clean_up_tokenization_spaces": False,
            **languages,
            **names,
        },
    )


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(to_json(value), encoding="utf-8")
