"""Write the numbers of one sentence in a trained model, which the pages about the paper show in every section.

The model is that of `transduce demo`: `python docs/sentence.py demo/model docs/paper/beside/sentence.json`.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transduce import model_folder
from transduce.config.schema import BOS, DecodeConfig
from transduce.decoding.beam import beam_search
from transduce.decoding.stepper import ModelStepper
from transduce.model.seq2seq import Seq2Seq, make_batch, source_tensor
from transduce.model_folder import Bundle
from transduce.tokens.tokenizer import Tokenizer
from transduce.training.losses import smoothed_cross_entropy
from transduce.wings.inspection.maps import SHOWN_BOS, SHOWN_EOS, attention_of
from transduce.wings.inspection.picture import picture_of

TEXT = "Today every child is bringing the woman this key."
REFERENCE = "Heute bringt jedes Kind der Frau diesen Schlüssel."
SMOOTHING = 0.1
BEAM_SIZES = range(1, 9)  # of the search that the page runs itself
ALPHAS = (0.0, 0.2, 0.6, 1.0)
NUM_CONTINUATIONS = 2 * BEAM_SIZES[-1]  # a step looks at no more of one hypothesis
NUM_SHOWN = 4  # channels of a vector, and most probable tokens
MAX_EXTRA_TOKENS = 10  # the search needs fewer: keeps the file small


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path, help="a model folder of `transduce demo`")
    parser.add_argument("out", type=Path, help="the JSON file to write")
    arguments = parser.parse_args()
    numbers = sentence(model_folder.load(arguments.model), TEXT, REFERENCE)
    lines = [
        f"{json.dumps(key)}:{json.dumps(value, ensure_ascii=False)}"
        for key, value in numbers.items()
    ]
    arguments.out.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


@torch.inference_mode()
def sentence(loaded: Bundle, text: str, reference: str) -> dict[str, Any]:
    """The numbers of a sentence and its reference translation."""
    model = loaded.model.eval()
    tokenizer = loaded.tokenizer
    [source] = tokenizer.encode_source([text])
    [target] = tokenizer.encode_target([reference])
    recorded = attention_of(model, tokenizer, text, DecodeConfig(beam_size=4, length_penalty=0.6))
    return {
        "text": text,
        "reference": reference,
        "model": {
            name: getattr(loaded.config.model, name)
            for name in (
                "vocab_size",
                "d_model",
                "d_ff",
                "num_heads",
                "num_encoder_layers",
                "num_decoder_layers",
            )
        },
        "source": {
            "pieces": [*tokenizer.source.pieces(source), SHOWN_EOS],
            "ids": source_tensor([source])[0].tolist(),
        },
        "target": {"pieces": [*tokenizer.target.pieces(target), SHOWN_EOS], "ids": target},
        "decoder_input": [SHOWN_BOS, *tokenizer.target.pieces(target)],
        "vectors": vectors(model, source),
        "heads": heads(model, source),
        "losses": losses(model, tokenizer, source, target),
        "search": search(model, tokenizer, source),
        "picture": json.loads(picture_of(model, recorded).json()),
    }


def vectors(model: Any, source: list[int]) -> dict[str, Any]:
    """The first channels of the embeddings, the positions and their sums, and what one encoder layer does to them."""
    src = source_tensor([source])
    embedded = model.embedding(src)[0]
    places = model.source_positions(0, src.size(1))
    x = embedded + places
    layer = model.encoder[0]
    mask = torch.ones(1, 1, 1, src.size(1), dtype=torch.bool)
    y = x[None] + layer.attention(x[None], layer.attention.project(x[None]), mask)
    z = layer.residual[0].norm(y)
    inner = layer.feed_forward.inner(z).relu()
    return {
        "embedding": rounded(embedded[:, :NUM_SHOWN]),
        "position": rounded(places[:, :NUM_SHOWN]),
        "sum": rounded(x[:, :NUM_SHOWN]),
        "residual": [rounded(sums) for sums in (y[0].mean(-1), y[0].std(-1, correction=0))],
        "normalised": rounded(z[0, :, :NUM_SHOWN]),
        "before": rounded(y[0, :, :NUM_SHOWN]),
        "gain": rounded(layer.residual[0].norm.weight[:NUM_SHOWN]),
        "shift": rounded(layer.residual[0].norm.bias[:NUM_SHOWN]),
        "active": (inner[0] > 0).sum(-1).tolist(),
    }


def heads(model: Any, source: list[int]) -> dict[str, Any]:
    """The scores q k / sqrt(d_k) and weights of each head of the first encoder layer, by query and key."""
    src = source_tensor([source])
    x = model.embedding(src) + model.source_positions(0, src.size(1))
    attention = model.encoder[0].attention
    q = attention._split(attention.query(x), attention.num_heads)
    k, _ = attention.project(x)
    scores = attention.scores(q, k)[0]
    return {"scores": rounded(scores, 2), "weights": rounded(scores.softmax(-1))}


def losses(
    model: Seq2Seq, tokenizer: Tokenizer, source: list[int], target: list[int]
) -> dict[str, Any]:
    """The probability and the smoothed loss of each token of the reference, and the most probable tokens."""
    batch = make_batch([source], [target])
    logits = model(batch.src, batch.tgt_in)
    probabilities = logits[0].softmax(-1)
    top = probabilities.topk(NUM_SHOWN)
    right = batch.tgt_out[0]
    smoothed = [
        smoothed_cross_entropy(
            logits[:, t : t + 1], batch.tgt_out[:, t : t + 1], SMOOTHING
        ).loss.item()
        for t in range(len(right))
    ]
    return {
        "probability": rounded(probabilities.gather(1, right[:, None])[:, 0], 4),
        "smoothed": [round(loss, 3) for loss in smoothed],
        "best": [
            [
                [piece_of(tokenizer)(token), round(p, 4)]
                for token, p in zip(tokens, values, strict=True)
            ]
            for tokens, values in zip(top.indices.tolist(), top.values.tolist(), strict=True)
        ],
    }


def search(model: Seq2Seq, tokenizer: Tokenizer, source: list[int]) -> dict[str, Any]:
    """The most probable continuations of each prefix that a search can reach, and the result of each search."""
    recorder = Recorder()
    results = {}
    limit = len(source) + MAX_EXTRA_TOKENS
    for beam_size in BEAM_SIZES:
        for alpha in ALPHAS:
            stepper = ModelStepper([model], source_tensor([source]))
            [[best]] = beam_search(
                stepper,
                [limit],
                beam_size=beam_size,
                length_penalty=alpha,
                n_best=1,
                token_filter=recorder,
            )
            [text] = tokenizer.decode([best.tokens])
            results[f"{beam_size} {alpha}"] = [text, round(best.score, 3)]
    tokens = sorted({token for row in recorder.continuations.values() for token, _ in row})
    return {
        "limit": limit,
        "sizes": list(BEAM_SIZES),
        "alphas": list(ALPHAS),
        "pieces": {str(token): piece_of(tokenizer)(token) for token in tokens},
        "continuations": {
            " ".join(map(str, prefix)): row for prefix, row in recorder.continuations.items()
        },
        "results": results,
    }


class Recorder:
    """Records the continuations of each open hypothesis, as a token filter that forbids nothing."""

    def __init__(self) -> None:
        self.continuations: dict[tuple[int, ...], list[tuple[int, float]]] = {}

    def __call__(self, tokens: Tensor, log_probs: Tensor) -> None:
        """The open hypotheses (1, w, n) with BOS, and the log-probabilities (1, w, v) of the next token."""
        allowed = log_probs[0].clone()
        allowed[:, [0, BOS, 3]] = -torch.inf  # as `forbid` in beam.py
        best = allowed.topk(NUM_CONTINUATIONS)
        for hypothesis, values, indices in zip(
            tokens[0].tolist(), best.values.tolist(), best.indices.tolist(), strict=True
        ):
            row = [(token, round(value, 5)) for token, value in zip(indices, values, strict=True)]
            self.continuations[tuple(hypothesis[1:])] = row

    def select(self, sentences: Tensor) -> None:
        """Keep the filter: there is one sentence."""


def piece_of(tokenizer: Tokenizer) -> Callable[[int], str]:
    """A function from a target token to its piece."""
    return lambda token: SHOWN_EOS if token == 2 else tokenizer.target.pieces([token])[0]


def rounded(values: Tensor, digits: int = 3) -> Any:
    """Nested lists of the values of a tensor, rounded."""
    scale = 10**digits
    return ((values.double() * scale).round() / scale).tolist()


if __name__ == "__main__":
    main()
