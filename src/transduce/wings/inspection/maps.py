"""What a model attended to while it translated a sentence."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from transduce.config.schema import DecodeConfig
from transduce.decoding.beam import Expansion
from transduce.decoding.engines.torch import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import Translation, TranslationOptions
from transduce.model.batch import make_batch
from transduce.model.recording import recording
from transduce.model.seq2seq import Seq2Seq
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.inspection.tree import SearchTree, search_tree

BEGIN, END = "↦", "⏎"  # shown for the begin and the end of a sentence


class AttentionUse(NamedTuple):
    """One of the three uses of attention (section 3.2.3 of the paper)."""

    weights: Tensor  # (layers, h, t, s)
    queries: list[str]  # t pieces
    keys: list[str]  # s pieces


class Attention(NamedTuple):
    """All three; of models without self-attention, those two are None."""

    encoder: AttentionUse | None
    decoder: AttentionUse | None
    source: AttentionUse  # the decoder's over the source
    text: str
    translation: Translation
    search: SearchTree  # that found it

    @property
    def uses(self) -> dict[str, AttentionUse]:
        """Those that the model has, by name, in the order in which a sentence goes through them."""
        uses = {"encoder": self.encoder, "decoder": self.decoder, "source": self.source}
        return {name: use for name, use in uses.items() if use is not None}


@torch.inference_mode()
def attention_of(model: Seq2Seq, tokenizer: Tokenizer, text: str, config: DecodeConfig) -> Attention:
    """Translate `text`, then force the translation through the model and keep where each piece looked.

    Raises UserError as a Translator does, for a blank text, and for a kind of model that attends to nothing.
    """
    if not text.strip():
        raise UserError("A blank sentence has no attention to look at; give one with words.")
    steps: list[Expansion] = []
    translator = Translator(TorchEngine([model], on_step=steps.append), tokenizer, config)
    (translation,) = translator.translate_sentences([text], TranslationOptions(config.beam_size))
    search = search_tree(steps, tokenizer, config, END)
    source, target = tokenizer.encode_source([text])[0], search.path(search.complete[0])
    batch = make_batch([source], [target]).to(next(model.parameters()).device)
    with recording() as record:
        model(batch.src, batch.tgt_in)
    read = [*tokenizer.source_pieces(source), END]
    fed, written = [BEGIN, *(pieces := tokenizer.target_pieces(target))], [*pieces, END]

    def use(wanted: Callable[[str], bool], queries: list[str], keys: list[str]) -> AttentionUse | None:
        layers = [
            torch.cat(record.of(module), dim=2)[0]  # recurrent models ask once for every position
            for name, module in model.named_modules()
            if wanted(name) and record.of(module)
        ]
        return AttentionUse(torch.stack(layers).float().cpu(), queries, keys) if layers else None

    over_source = use(lambda name: name.endswith("source_attention"), written, read)
    if over_source is None:
        raise UserError("This kind of model attends to nothing; there is no attention to show.")
    return Attention(
        use(lambda name: name.startswith("encoder.") and name.endswith(".attention"), read, read),
        use(lambda name: name.startswith("decoder.") and name.endswith(".attention"), fed, fed),
        over_source,
        text,
        translation,
        search,
    )
