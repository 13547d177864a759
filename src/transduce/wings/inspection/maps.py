"""Translates a sentence and records the model's attention."""

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from transduce.config.schema import DecodeConfig
from transduce.decoding.beam import Expansion
from transduce.decoding.capitals import readable
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import PLAIN_SEARCH, Translation, TranslationOptions
from transduce.model.recording import Record, recording
from transduce.model.seq2seq import Seq2Seq, make_batch
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.inspection.tree import SearchTree, search_tree

SHOWN_BOS, SHOWN_EOS = "↦", "⏎"  # how pages show BOS and EOS


class AttentionUse(NamedTuple):
    """The weights of encoder self-attention, decoder self-attention or cross-attention (section 3.2.3 of the paper)."""

    weights: Tensor  # (layers, heads, t, s)
    queries: list[str]  # t pieces
    keys: list[str]  # s pieces


class Attention(NamedTuple):
    """The attention weights and the beam search for one translated sentence."""

    # "source", and "encoder" and "decoder" if the model has self-attention.
    uses: dict[str, AttentionUse]
    text: str
    translation: Translation
    search: SearchTree  # the search that found the translation


@torch.inference_mode()
def attention_of(
    model: Seq2Seq, tokenizer: Tokenizer, text: str, config: DecodeConfig, language: str = ""
) -> Attention:
    """Translate a text in a language, then run the model on the translation and record its attention.

    Raises UserError if the text is blank, if the model has no attention, or if the text can't be translated.
    """
    text = tokenizer.normalizer([text])[0]
    if not text.strip():
        raise UserError("The sentence is blank.", "Enter a sentence with words.")
    steps: list[Expansion] = []
    translator = Translator(
        TorchEngine([model], on_step=steps.append), tokenizer, replace(config, **PLAIN_SEARCH)
    )
    (text,) = readable([text], translator.lengths, language) if config.capitals else [text]
    (translation,) = translator.translate_sentences([text], TranslationOptions(config.beam_size))
    search = search_tree(steps, tokenizer, config, SHOWN_EOS)
    source = tokenizer.encode_source([text])[0]
    target = search.path(search.complete[0])
    batch = make_batch([source], [target]).to(next(model.parameters()).device)
    with recording() as record:
        model(batch.src, batch.tgt_in)
    uses = _uses(model, record, tokenizer.source.pieces(source), tokenizer.target.pieces(target))
    if "source" not in uses:
        raise UserError("This kind of model has no attention to show.")
    return Attention(uses, text, translation, search)


def _uses(
    model: Seq2Seq, record: Record, source: list[str], target: list[str]
) -> dict[str, AttentionUse]:
    """The recorded attention of one sentence with the pieces `source`, translated by the pieces `target`."""
    if model.target_tag:  # the decoder reads it
        target = [source[0], *target]
        source = source[1:]
    source = [*source, SHOWN_EOS]
    decoder_input = [SHOWN_BOS, *target]
    decoder_output = [*target, SHOWN_EOS]
    uses = {}
    for use, prefix, suffix, queries, keys in (
        ("encoder", "encoder.", ".attention", source, source),
        ("decoder", "decoder.", ".attention", decoder_input, decoder_input),
        ("source", "", "source_attention", decoder_output, source),
    ):
        layers = [
            # Recurrent models record attention once per position.
            torch.cat(record.of(module), dim=2)[0]
            for name, module in model.named_modules()
            if name.startswith(prefix) and name.endswith(suffix) and record.of(module)
        ]
        if layers:
            uses[use] = AttentionUse(torch.stack(layers).float().cpu(), queries, keys)
    return uses
