"""Tests of transduce/wings/export/parity.py."""

from dataclasses import replace

import pytest

from corpora import reverse_texts
from exports import greedy
from transduce import model_folder
from transduce.system.errors import UserError
from transduce.text.pairs import Origin, Pair
from transduce.wings.export import parity
from transduce.wings.export.exporting import export
from transduce.wings.export.parity import Output, Runner
from transduce.wings.phrasebook.examples import PHRASEBOOK


def says(outputs: list[Output]) -> Runner:
    """Another program, whatever it is asked."""
    return Runner(lambda *_: outputs, "float32")


def test_outputs_may_differ_only_where_scores_tie(models, monkeypatch):
    model, texts = model_folder.load(models("gelu and a bias")), reverse_texts(100, seed=3)[0]
    pairs = [Pair(text, text, Origin("a test", 1)) for text in texts]
    ours = greedy(model, texts)
    assert parity.check_parity(model, pairs, says(ours), exact=True).identical == 100
    place = next(i for i, output in enumerate(ours) if len(output.pieces) > 3)
    pieces, text = ours[place]
    for other in ([*pieces[:-1], "<s>"], pieces[:-1], ["no piece"], [], ["<s>", *pieces]):
        outputs = [*ours[:place], Output(other, text), *ours[place + 1 :]]
        with pytest.raises(UserError, match="differ in 1 of 100 sentences"):
            parity.check_parity(model, pairs, says(outputs), exact=True)
    retold = [output._replace(text="x") for output in ours]
    # The same pieces, put together otherwise.
    with pytest.raises(UserError, match="differ in 100 of 100 sentences"):
        parity.check_parity(model, pairs, says(retold), exact=True)
    monkeypatch.setattr(parity, "MAX_TIE_NATS", 1e9)
    outputs = [*ours[:place], Output([*pieces[:-1], "<s>"], text), *ours[place + 1 :]]
    assert parity.check_parity(model, pairs, says(outputs), exact=True).identical == 99
    with pytest.raises(UserError, match="differ in 1 of 50 sentences"):  # fewer than 99 %
        parity.check_parity(
            model, pairs[place : place + 50], says(outputs[place : place + 50]), exact=True
        )


def test_inexact_exports_are_compared_by_bleu(models):
    model, texts = model_folder.load(models("post")), reverse_texts(200, seed=3)[0]
    ours = greedy(model, texts)
    pairs = [
        Pair(text, output.text, Origin("a test", 1))
        for text, output in zip(texts, ours, strict=True)
    ]
    found = parity.check_parity(model, pairs, says(ours), exact=False)
    assert found.bleu and found.bleu.first.value == found.bleu.second.value == pytest.approx(100)
    assert (
        "BLEU is 100.00, the model's 100.00" in found.report()[1]
        and "at least 1,000" in found.report()[2]
    )
    with pytest.raises(
        UserError, match="Nothing was written, since the export translates worse: BLEU"
    ):
        parity.check_parity(
            model, pairs, says([Output(["x"], "x y z")] * 20 + ours[20:]), exact=False
        )
    gone = [pair._replace(origin=Origin(PHRASEBOOK, 1)) for pair in pairs]
    for changes in (
        {"target": "fr"},
        {"source": "en", "target": "de", "directions": ("en-de", "en-fr")},
    ):
        other = model._replace(
            config=replace(model.config, data=replace(model.config.data, **changes))
        )
        with pytest.raises(UserError, match="Name a validation text with its translations"):
            parity.check_parity(other, gone, says(ours), exact=False)


def test_search_options_do_not_affect_the_comparison(models):
    model, texts = model_folder.load(models("post")), reverse_texts(100, seed=3)[0]
    decode = replace(model.config.decode, no_repeat_ngram=1, beam_size=2, mbr="chrf")
    other = model._replace(config=replace(model.config, decode=decode))
    pairs = [Pair(text, text, Origin("a test", 1)) for text in texts]
    assert (
        parity.check_parity(other, pairs, says(greedy(model, texts)), exact=True).identical == 100
    )


def test_an_export_in_8_bits_says_what_it_lost(models, tmp_path, monkeypatch):
    monkeypatch.setattr(parity, "MAX_BLEU_LOSS", 100.0)  # a toy model may lose much
    monkeypatch.setattr(parity, "MAX_P_VALUE", 0.0)
    sizes = []
    for compute_type in ("float32", "int8"):
        out = tmp_path / compute_type
        export(models("silu"), "ctranslate2", out, compute_type)
        sizes.append((out / "model.bin").stat().st_size)
    assert sizes[1] < sizes[0]
    card = (tmp_path / "int8" / "README.md").read_text(encoding="utf-8")
    assert "weights in int8" in card and "BLEU" in card
