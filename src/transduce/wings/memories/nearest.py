"""A search that similar texts help: nearest neighbours of the decoder's outputs.

The model reads similar texts with their translations. Where the decoder's output is near to one of theirs, the token
that followed there becomes more likely (Khandelwal et al., 2021; for each text alone: Dai et al., 2023).

b = sentences, w = hypotheses per sentence, r = b * w, n = tokens of similar translations, v = vocabulary.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, cast

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transduce.config.schema import PAD
from transduce.decoding.stepper import ModelStepper
from transduce.decoding.types import Guide
from transduce.model.seq2seq import Seq2Seq, make_batch, select
from transduce.model.transformer import Transformer
from transduce.tokens.tokenizer import Tokenizer

MAX_NEIGHBOURS = 4
# Squared distances, as multiples of the squared length of the output.
TEMPERATURE = 0.03
MAX_DISTANCE = 0.6  # a neighbour as far away has no weight
# A neighbour's weight falls with the model's own certainty, the more the less similar its text is.
MODEL_TRUST = 3
MAX_WEIGHT = 0.95  # of the neighbours: a token that follows none of them stays possible
READ_TOGETHER = 64  # examples
MAX_EXAMPLE_TOKENS = 500
PADDING_DISTANCE = 1e4


class Example(NamedTuple):
    """Token ids of a text that is similar to another one, and of its translation."""

    source: list[int]
    target: list[int]
    score: float  # how similar it is, from 0 to 1


class Store(NamedTuple):
    """The outputs of a model's decoder for the translations of similar texts, and the tokens that follow."""

    outputs: Tensor  # (b, n, d_model)
    tokens: Tensor  # (b, n), PAD at padding
    scores: Tensor  # (b, n) how similar the texts are

    def mixed(self, output: Tensor, log_probs: Tensor) -> Tensor:
        """The log-probabilities (r, v) after outputs (r, d_model): those of the model mixed with the neighbours'."""
        queries = output.unflatten(0, (len(self.tokens), -1))
        size = queries.square().sum(-1, keepdim=True)
        distances = torch.cdist(queries, self.outputs).square() / size
        distances = distances.masked_fill((self.tokens == PAD)[:, None], PADDING_DISTANCE)
        near, places = distances.topk(min(MAX_NEIGHBOURS, distances.size(-1)), largest=False)
        of_hypotheses = (-1, queries.size(1), -1)
        tokens = self.tokens[:, None].expand(of_hypotheses).gather(-1, places)
        scores = self.scores[:, None].expand(of_hypotheses).gather(-1, places[..., :1])
        doubt = 1 - log_probs.amax(-1).exp().view_as(scores)
        weight = (1 - near[..., :1] / MAX_DISTANCE).clamp(0, MAX_WEIGHT)  # (b, w, 1)
        weight = weight * doubt ** (MODEL_TRUST * (1 - scores))
        shares = weight * (-near / TEMPERATURE).softmax(-1)
        own = log_probs + (1 - weight.flatten(0, 1)).log()
        probs = own.exp().scatter_add_(1, tokens.flatten(0, 1), shares.flatten(0, 1))
        # A prefix may demand a token whose probability is too small for a float32.
        return probs.log().maximum(own)


class NearestStepper(ModelStepper):
    """Mixes the next-token probabilities of each model with those of its nearest neighbours."""

    def __init__(
        self, models: Sequence[Seq2Seq], src: Tensor, examples: Sequence[Sequence[Example]]
    ):
        """`examples` holds similar texts for each sentence of `src` (b, s), and at least one in all."""
        super().__init__(models, src)
        self._stores = [_store(cast(Transformer, model), examples) for model in self.models]

    def log_probs(self, number: int, tokens: Tensor) -> Tensor:
        model = cast(Transformer, self.models[number])
        output, self.states[number] = model.decoder_output(
            tokens[:, None], self.memories[number], self.states[number]
        )
        log_probs = model.logits(output)[:, -1].float().log_softmax(dim=-1)
        return self._stores[number].mixed(output[:, -1].float(), log_probs)

    @torch.inference_mode()
    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> None:
        super().reorder(rows, sentences)
        if sentences is not None:
            self._stores = [select(store, sentences) for store in self._stores]


@torch.inference_mode()
def _store(model: Transformer, examples: Sequence[Sequence[Example]]) -> Store:
    """Let the model read the examples of all sentences."""
    every = list(chain.from_iterable(examples))
    outputs = list[Tensor]()
    tokens = list[Tensor]()
    for start in range(0, len(every), READ_TOGETHER):
        some = every[start : start + READ_TOGETHER]
        batch = make_batch([each.source for each in some], [each.target for each in some])
        src, tgt_in, tgt_out = batch.to(model.embedding.weight.device)[:3]
        output, _ = model.decoder_output(tgt_in, model.encode(src))
        is_token = tgt_out != PAD
        outputs.append(output[is_token].float())
        tokens.append(tgt_out[is_token])
    lengths = torch.tensor([len(each.target) + 1 for each in every])
    scores = torch.tensor([each.score for each in every]).repeat_interleave(lengths)
    sizes = [sum(len(each.target) + 1 for each in its) for its in examples]
    flat = (torch.cat(outputs), torch.cat(tokens), scores.to(outputs[0]))
    columns = (column.split(sizes) for column in flat)
    return Store(*(pad_sequence([*rows], batch_first=True, padding_value=PAD) for rows in columns))


def examples_of(
    tokenizer: Tokenizer, guides: Sequence[Guide], max_tokens: int | None
) -> list[list[Example]]:
    """The similar texts of each sentence with their translations, without long ones."""
    units = list(dict.fromkeys(unit for guide in guides for unit in guide.similar))
    sources = tokenizer.encode_source([unit.source for unit in units])
    targets = tokenizer.encode_target([unit.target for unit in units])
    limit = min(max_tokens or MAX_EXAMPLE_TOKENS, MAX_EXAMPLE_TOKENS)
    fitting = {
        unit: Example(source, target, unit.score)
        for unit, source, target in zip(units, sources, targets, strict=True)
        if max(len(source), len(target)) <= limit
    }
    return [[fitting[unit] for unit in guide.similar if unit in fitting] for guide in guides]


def helped_by(
    tokenizer: Tokenizer, guides: Sequence[Guide], max_tokens: int | None
) -> Callable[[Sequence[Seq2Seq], Tensor], ModelStepper]:
    """Make the stepper of sentences with these guides. `max_tokens` limits the length of a text."""
    examples = examples_of(tokenizer, guides, max_tokens)
    return partial(NearestStepper, examples=examples) if any(examples) else ModelStepper
