"""Tests of transduce/decoding/alignment_layer.py."""

import json
from collections import Counter

import numpy as np
import pytest
import torch

from aligned import EXAMPLES, lively, model_config
from command_line import run
from models import publish_model
from transduce import model_folder
from transduce.config.schema import UNK, RunConfig
from transduce.decoding.alignment_layer import (
    ALIGNMENT_LAYER,
    MAX_TOKENS,
    alignment_layer,
    choose_layer,
    guess_layer,
    information,
    piece_links,
    source_attention,
)
from transduce.decoding.loading import load
from transduce.model.build import build
from transduce.model.recording import record_attention
from transduce.model.seq2seq import Seq2Seq, make_batch
from transduce.model_folder import Bundle
from transduce.text.pairs import Origin, Pair
from transduce.tokens.tokenizer import Tokenizer


def test_information_by_hand():
    # Two kinds that are always linked, eight times each: half of the links is left to either, without the judged one.
    assert information(Counter({(1, 1): 8, (2, 2): 8})) == pytest.approx(np.log(7 * 16 / 64))
    assert information(Counter({(1, 1): 4, (1, 2): 4, (2, 1): 4, (2, 2): 4})) < 0
    assert information(Counter()) == 0
    # What is linked once says little, though plain mutual information is highest there: ln 50.
    assert information(Counter({(i, i): 1 for i in range(50)})) == pytest.approx(np.log(50 / 10))


@pytest.mark.parametrize("kind", ["transformer", "recurrent"])
def test_attention_is_the_mean_over_heads_for_each_position(bpe, kind):
    """Each target position, BOS included, divides its attention among the source and EOS."""
    batch = make_batch([[5, 6, 7], [8]], [[9, 10], [11]])
    layers = source_attention(lively(model_config(bpe, kind=kind)), batch)
    assert len(layers) == (3 if kind == "transformer" else 1)
    for layer in layers:
        torch.testing.assert_close(layer.sum(-1), torch.ones(2, 3))
        assert layer.shape == (2, 3, 4) and layer[1, :, 2:].max() < 1e-6


class Looking(Seq2Seq):
    """A model that does nothing but look: in one layer always at the piece that suits the next one, else anywhere."""

    def __init__(self, best: int):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.layers = torch.nn.ModuleList(
            torch.nn.ModuleDict({"source_attention": torch.nn.Identity()}) for _ in range(3)
        )
        self.best, self.generator = best, torch.Generator().manual_seed(best)

    def forward(self, src, tgt):
        following = tgt.roll(-1, dims=1)
        for number, layer in enumerate(self.layers):
            weights = torch.rand(*tgt.shape, src.size(1), generator=self.generator)
            if number == self.best:
                weights = -((src[:, None, :] * 7 - following[:, :, None]) % 101).float()
            record_attention(layer["source_attention"], weights[:, None])


def pairs(count: int) -> list[Pair]:
    return [Pair(each.english, each.german, Origin("", 1)) for each in EXAMPLES[:count]]


@pytest.mark.parametrize("best", [0, 1, 2])
def test_the_layer_that_aligns_is_found_without_alignments(bpe, best):
    assert choose_layer(Looking(best), bpe, pairs(200)) == best


def test_long_pairs_do_not_choose_the_layer():
    short, long = [5, 6, 7], [5] * MAX_TOKENS
    expected = piece_links(Looking(1), [short], [short])
    assert piece_links(Looking(1), [short, long, short], [short, short, long]) == expected


class Seeing(Looking):
    """Keeps the pairs that it has seen, as texts of their ids without padding, BOS and EOS."""

    max_positions = None

    def __init__(self):
        super().__init__(1)
        self.seen = []

    def forward(self, src, tgt):
        super().forward(src, tgt)
        for rows in zip(src.tolist(), tgt.tolist(), strict=True):
            self.seen.append([[token for token in row if token > UNK] for row in rows])


def test_pairs_that_fit_are_counted_once():
    """Not those without a source, nor those with as many tokens as there are positions, since EOS needs one."""
    pairs = [
        ([5, 6], [7]),
        ([], [8]),
        ([9] * 3, []),
        ([10] * 4, [5]),
        ([6], [7] * 4),
        ([11], [12] * 3),
    ]
    model = Seeing()
    model.max_positions = 4
    counts = piece_links(model, *zip(*pairs, strict=True))
    assert sorted(model.seen) == sorted([*each] for each in (pairs[0], pairs[2], pairs[5]))
    assert len(counts) == 3 and [each.total() for each in counts] == [4] * 3
    assert all(count[11, 12] == 3 for count in counts)
    model = Seeing()
    longest = [5] * (MAX_TOKENS - 1)
    assert piece_links(model, [longest, [6]], [[7], longest])[0].total() == MAX_TOKENS
    many = [[5 + i % 9] for i in range(70)]
    assert piece_links(model, many, many)[0].total() == 70


def test_the_layer_is_chosen_by_the_pairs_of_the_first_direction():
    texts = ["ka lo", "mi", "fe zu ka"]
    tokenizer = Tokenizer.train(texts * 9, texts, vocab_size=290, languages=["de", "fr"])
    names = ("en-fr", "en-de", "en-fr")
    pairs = [
        Pair(text, text[::-1], Origin("", 1), name) for text, name in zip(texts, names, strict=True)
    ]
    model = Seeing()
    assert choose_layer(model, tokenizer, pairs) in range(3)
    sources = tokenizer.into("fr").encode_source([texts[0], texts[2]])
    targets = tokenizer.encode_target([texts[0][::-1], texts[2][::-1]])
    assert sorted(model.seen) == sorted([*each] for each in zip(sources, targets, strict=True))
    assert choose_layer(Seeing(), tokenizer, []) == 0, "it has seen nothing"


def test_alignment_layer_is_read_from_metrics_or_chosen(bpe, tmp_path):
    config = model_config(bpe)
    model, run = lively(config), RunConfig(model=config)

    def published(name: str, metrics: dict[str, object]) -> Bundle:
        weights = {key: value.contiguous() for key, value in model.state_dict().items()}
        publish_model(tmp_path / name, run, bpe, weights, metrics, "")
        return model_folder.load(tmp_path / name)

    assert alignment_layer(published("told", {ALIGNMENT_LAYER: 0})) == 0
    assert alignment_layer(published("guessed", {})) == guess_layer(3) == 1
    # Whose layers share an attention.
    recurrent = model_config(bpe, kind="recurrent", num_decoder_layers=4)
    bundle = Bundle(tmp_path / "guessed", RunConfig(model=recurrent), bpe, build(recurrent))
    assert alignment_layer(bundle) == 0
    older = published("older", {})
    (older.folder / "data").mkdir()
    lines = [
        json.dumps({"source": pair.source, "target": pair.target}) + "\n" for pair in pairs(60)
    ]
    (older.folder / "data" / "valid.jsonl").write_text("".join(lines), encoding="utf-8")
    assert alignment_layer(older) == choose_layer(model, bpe, pairs(60))
    assert [guess_layer(number) for number in (1, 2, 3, 4, 6)] == [0, 1, 1, 2, 4]


def test_the_command_writes_links_where_they_are_asked_for(bpe, tmp_path, capsys):
    config = model_config(bpe)
    weights = {key: value.contiguous() for key, value in lively(config).state_dict().items()}
    publish_model(
        tmp_path / "model", RunConfig(model=config), bpe, weights, {ALIGNMENT_LAYER: 1}, ""
    )
    (tmp_path / "text").write_text("The dog sleeps.\n\nA cat drinks.\n", encoding="utf-8")
    command = [
        "translate",
        tmp_path / "model",
        "--input",
        tmp_path / "text",
        "--engine",
        "torch",
        "--n-best",
        2,
    ]
    status, output, _ = run(capsys, *command, "--alignment")
    assert status == 0
    found = [json.loads(line) for line in output.splitlines()]
    expected = load(tmp_path / "model", engine="torch").translate(
        ["The dog sleeps."], n_best=2, align=True
    )[0]
    assert (
        found[0]["alignment"]
        == [json.loads(json.dumps(link._asdict())) for link in expected.links]
        != []
    )
    assert len(found[0]["alternatives"][0]["alignment"]) == len(expected.alternatives[0].links) > 0
    assert found[1]["alignment"] == []
    _, output, _ = run(capsys, *command, "--json")
    for plain, full in zip(map(json.loads, output.splitlines()), found, strict=True):
        assert set(full) - set(plain) == {"alignment"}
        assert plain["text"] == full["text"]
