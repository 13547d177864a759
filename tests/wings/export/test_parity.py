"""Tests of transduce/wings/export/parity.py."""

import contextlib
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from corpora import reverse_texts
from exports import greedy
from transduce import model_folder
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.types import CUT, Translation
from transduce.evaluation.scores import Comparison, Score
from transduce.system.errors import UserError
from transduce.text.pairs import Origin, Pair
from transduce.wings.export import parity
from transduce.wings.export.exporting import export
from transduce.wings.export.parity import Output, Runner
from transduce.wings.phrasebook.examples import PHRASEBOOK
from transduce.wings.pretrained.huggingface_reader import read


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
        assert parity.check_parity(other, pairs, says(ours), exact=False).bleu
    assert parity.check_parity(model, gone, says(ours), exact=False).bleu


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


def test_a_comparison_in_sentences():
    """Identical tokens of all, of some, and the BLEU of an export that is not in float32."""
    same = parity.Parity(200, "a text", 200, "float32", None)
    assert same.report() == [
        "200 of 200 sentences from a text produced identical tokens in both programs (float32, greedy)."
    ]
    [first, second] = same._replace(identical=199).report()
    assert first.startswith("199 of 200 sentences") and "rounding decided between them" in second
    ours, theirs = (Score("BLEU", value, value - 1, value + 1, "tok:x") for value in (30.0, 29.5))
    bleu = Comparison("BLEU", ours, theirs, 0.25)
    found = same._replace(bleu=bleu, sentences=999).report()
    assert found[1] == (
        "The export's BLEU is 29.50, the model's 30.00 (paired bootstrap: p = 0.250; tok:x)."
    )
    assert (
        "With only 999 sentences, the 95 % confidence interval of the model's BLEU is 29.0 to 31.0."
        in found[2]
    )
    many = same._replace(bleu=bleu._replace(p_value=math.nan), sentences=1000).report()
    assert len(many) == 2 and "(too few sentences for a test; tok:x)" in many[1]


@pytest.mark.parametrize(
    ("first", "second", "p", "is_refused"),
    [
        (30.0, 29.75, 0.5, False),
        (30.0, 29.6, 0.5, True),
        (30.0, 29.9, 0.04, True),
        (30.0, 29.9, 0.05, False),
        (29.0, 30.0, 0.01, False),
        (30.0, 30.0, 0.01, False),
    ],
)
def test_a_large_or_a_significant_loss_is_refused(
    models, monkeypatch, first, second, p, is_refused
):
    model = model_folder.load(models("post"))
    pairs = [Pair("a", "b", Origin("x", 1), direction) for direction in ("en-de", "fr-de")]
    asked = []

    def compared(*outputs, **options):
        asked.append((outputs, options))
        return [Comparison("BLEU", *(Score("BLEU", v, v, v, "s") for v in (first, second)), p)]

    monkeypatch.setattr(parity, "compare", compared)
    if is_refused:
        with pytest.raises(
            UserError, match=f"BLEU {second:.2f} instead of {first:.2f} on 2 sentences"
        ):
            parity._check_bleu(model, pairs, ["o", "p"], ["t", "u"])
    else:
        assert parity._check_bleu(model, pairs, ["o", "p"], ["t", "u"]).p_value == p
    options = {"tokenize": model.config.data.bleu_tokenize, "language": "de"}
    assert asked == [((["o", "p"], ["t", "u"], ["b", "b"]), options)]
    mixed = [*pairs, pairs[0]._replace(direction="en-fr")]
    plain = [pair._replace(direction="") for pair in pairs]
    for some, language in ((mixed, ""), (plain, model.config.data.target)):
        with contextlib.suppress(UserError):
            parity._check_bleu(model, some, [], [])
        assert asked[-1][1]["language"] == language


def test_only_sentences_that_both_programs_read_alike_are_compared(models):
    model = model_folder.load(models("post"))
    translator = parity.greedy(TorchEngine([model.model]), model.tokenizer, model.config)
    assert translator.config.beam_size == 1 and translator.config.max_extra_tokens == 50
    texts = [
        "ka  lo\u00a0",
        " ",
        "<s> ka",
        "ka </s>",
        "<pad>",
        "<unk>",
        ">>de<< ka",
        "ka >>de<<",
        "\u2581ka",
    ]
    pairs = [
        Pair(text, "x", Origin("f", i)) for i, text in enumerate([*texts, "ka " * 399, "ka " * 420])
    ]
    found = parity._fitting(translator, pairs)
    length = len(model.tokenizer.encode_source(["ka " * 399])[0])
    kept = [0, 7, 9] if length < 400 else [0, 7]
    assert [pair.origin.line for pair in found] == kept and found[0].source == "ka lo"
    with pytest.raises(UserError, match="needs a sentence of fewer than 400 tokens"):
        parity._fitting(translator, pairs[1:6])
    length = len(model.tokenizer.encode_source(["ka lo"])[0])
    for limit, kept in ((length + 1, ["ka", "ka lo"]), (length, ["ka"])):
        translator.engine.max_positions = limit
        some = [pairs[0]._replace(source="ka"), pairs[0]]
        assert [pair.source for pair in parity._fitting(translator, some)] == kept
    translator.engine.max_positions = 3
    words = [Pair(text, "x", Origin("f", i)) for i, text in enumerate(("ka", "ka lo mi nu so"))]
    assert [pair.source for pair in parity._fitting(translator, words)] == ["ka"]
    with pytest.raises(UserError, match="needs a sentence of fewer than 3 tokens"):
        parity._fitting(translator, words[1:])


@pytest.mark.parametrize(
    ("theirs", "gap", "is_tie"),
    [
        (["a", "b"], 0.0009, True),
        (["a", "b"], 0.0011, False),
        (["a", "b"], -0.0011, False),
        (["b", "x"], 0.0, False),  # the first tokens that differ decide
        (["a"], 0.0009, True),  # the end of the translation
        (["a"], 0.0011, False),
        (["a", "a", "b"], 0.0, False),  # the same
        (["a", "x"], 0.0, False),  # no piece of the vocabulary
    ],
)
def test_a_tie_by_hand(theirs, gap, is_tie):
    """Pieces that differ at the second place have log-probabilities with a small gap; all others differ by more."""
    asked = []

    def log_probs(sources, targets):
        asked.append((sources, targets))
        return [[-1.0, -2.0, -3.0, -9.0], [-1.5, -2.0 - gap, -8.0, -7.0]]

    vocabulary = SimpleNamespace(all_pieces=lambda: ["a", "b", "c"])
    translator = SimpleNamespace(
        tokenizer=SimpleNamespace(target=vocabulary), engine=SimpleNamespace(log_probs=log_probs)
    )
    ours = ["a", "a", "b"]
    assert parity._is_tie(translator, [7], ours, theirs) is is_tie
    if asked:
        places = [["abc".index(piece) for piece in pieces] for pieces in (ours, theirs)]
        assert asked == [([[7], [7]], places)]


@pytest.mark.parametrize("differing", [1, 2])
def test_99_of_100_translations_must_be_identical(differing, models, monkeypatch):
    model, texts = model_folder.load(models("post")), reverse_texts(100, seed=3)[0]
    pairs = [Pair(text, text, Origin("/home/ann/valid.jsonl", 1)) for text in texts]
    outputs = greedy(model, texts)
    for i in range(differing):
        outputs[i] = outputs[i]._replace(pieces=["x"])
    monkeypatch.setattr(parity, "_is_tie", lambda *_: True)
    if differing == 1:
        found = parity.check_parity(model, pairs, says(outputs), exact=True)
        assert found == (100, "the text held out from training", 99, "float32", None)
    else:
        with pytest.raises(UserError, match="differ in 2 of 100 sentences"):
            parity.check_parity(model, pairs, says(outputs), exact=True)


def test_an_imported_vocabulary_reads_the_sign_of_a_blank_as_sentencepiece_does(models, marians):
    model = model_folder.load(models("post"))
    pairs = [Pair("ka \u2581 lo", "x", Origin("f", 1)), Pair("ka", "x", Origin("f", 2))]
    for tokenizer, count in ((model.tokenizer, 1), (read(marians("relu"), "", "").tokenizer, 2)):
        translator = parity.greedy(TorchEngine([model.model]), tokenizer, model.config)
        assert len(parity._fitting(translator, pairs)) == count


def test_a_program_is_asked_for_the_longest_translation_and_may_write_more(models):
    model, texts = model_folder.load(models("post")), reverse_texts(40, seed=3)[0]
    pairs = [Pair(text, text, Origin("a test", 1)) for text in [*texts, "ka  lo"]]
    translator = parity.greedy(TorchEngine([model.model]), model.tokenizer, model.config)
    limits = [50 + len(ids) for ids in model.tokenizer.encode_source([p.source for p in pairs])]
    ours = translator.translate_pairs(pairs)
    asked = []

    def translate(*given):
        asked.append(given)
        return [
            Output([*each.tokens, *["x"] * (len(each.tokens) == limit)], each.text)
            for each, limit in zip(ours, limits, strict=True)
        ]

    found = parity.check_parity(model, pairs, Runner(translate, "int7"), exact=True)
    assert (found.identical, found.compute_type, found.origin) == (41, "int7", "a test")
    normalised = [*pairs[:-1], pairs[-1]._replace(source="ka lo")]
    assert asked == [(normalised, [[]] * 41, max(limits))]


def test_cut_translations_may_go_on_in_the_other_program():
    ours = Translation("a b", -1.0, ("x", "y"))
    assert parity._identical(ours, Output(["x", "y"], " a b\n"))
    assert parity._identical(replace(ours, text=" a b "), Output(["x", "y"], "a b"))
    assert not parity._identical(ours, Output(["x", "y"], "a b c"))
    assert not parity._identical(ours, Output(["x"], "a b"))
    assert parity._identical(replace(ours, flags=(CUT,)), Output(["x", "y"], "a b c"))
    assert not parity._identical(replace(ours, flags=(CUT,)), Output(["x", "z"], "a b"))
