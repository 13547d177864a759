"""Tests of transduce_lab/comparing/unknown_words.py."""

import torch

from transduce.config.parse import configure
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import Link, Translation
from transduce.model.build import build
from transduce.model_folder import Bundle
from transduce.text.pairs import Origin, Pair
from transduce.tokens.tokenizer import Tokenizer
from transduce_lab.comparing.unknown_words import dictionary_of, fill_unknown, with_known_words
from transduce_lab.words import UNKNOWN_WORD


def test_unknown_words_are_looked_up_or_copied():
    source = "Anna sees Ulm."
    links = (Link((0, 4), (0, 1), 0.9), Link((10, 13), (0, 1), 0.1), Link((10, 13), (6, 7), 0.6))
    translation = Translation(f"{UNKNOWN_WORD} sah {UNKNOWN_WORD}.", 0.0, (), links=links)
    assert fill_unknown(source, translation, {"Ulm": "Ulma"}) == "Anna sah Ulma."
    assert fill_unknown(source, Translation(f"ja {UNKNOWN_WORD}", 0.0, ()), {}) == "ja "


def test_the_dictionary_has_the_words_that_occur_together():
    words = [("house", "Haus"), ("tree", "Baum"), ("dog", "Hund")]
    frequent = "abcdefghijklmnopqrstuvwxyz"
    fillers = [(f"{one}{other}", f"{other}{one}") for one in frequent for other in "xyz"]
    pairs = [(f"{s} {a}", f"{t} {b}") for s, t in fillers for a, b in words] * 2
    assert dictionary_of(pairs).get("house", "Haus") == "Haus"


def test_each_unknown_word_of_a_translation_becomes_a_word_of_its_source(tmp_path):
    corpus = tmp_path / "corpus.tsv"
    corpus.write_text("a dog\tein Hund\na cat\teine Katze\n", encoding="utf-8")
    tokenizer = Tokenizer.train(
        ["a dog"], ["ein Hund"], vocab_size=20, kind="word", joint=False, quotes=""
    )
    options = {
        "data.corpora": [{"files": [str(corpus)]}],
        "data.tokenizer": "word",
        "data.joint": False,
        "decode.retry_loops": False,
        "decode.max_extra_tokens": 1,
        "model.kind": "deep_att",
        "model.d_model": 8,
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "model.vocab_size": tokenizer.target.size,
        "model.source_vocab_size": tokenizer.source.size,
    }
    config = configure(options)
    model = build(config.model).eval()
    [[unknown]] = tokenizer.target.encode(["Xaver"]).lists()
    with torch.no_grad():
        model.embedding.weight[unknown] = 9  # always the most probable
        model.leave.weight.zero_()
        model.leave.bias.fill_(1)
    pairs = [Pair("Xaver dog", "Xaver", Origin("test", 1)), Pair("a", "ein", Origin("test", 2))]
    translator = Translator(TorchEngine([model]), tokenizer, config.decode)
    translations = translator.translate([pair.source for pair in pairs])
    assert all(UNKNOWN_WORD in translation.text for translation in translations)
    first, second = with_known_words(
        [Bundle(tmp_path, config, tokenizer, model)], pairs, translations
    )
    assert {*first.split()} <= {"Xaver", "dog"} and {*second.split()} == {"a"}
