"""Tests of transduce/wings/terms/annotating.py, and of a model that learns from its copies."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

pytest.importorskip("simplemma", reason="pip install 'transduce[terms]'")
from transduce.config.parse import configure
from transduce.config.schema import CorpusConfig, DataConfig, DecodeConfig, ModelConfig
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import TERM, UsedTerm
from transduce.model.build import build
from transduce.model.seq2seq import make_batch
from transduce.preparation.prepare import prepare
from transduce.preparation.prepared import Prepared
from transduce.text.languages import Direction
from transduce.training.losses import smoothed_cross_entropy
from transduce.wings.terms import lexicon

THINGS = [
    "animal",
    "thing",
    "object",
    "item",
    "machine",
    "tool",
    "river",
    "shape",
    "figure",
    "piece",
    "part",
    "form",
]
PLURALS = {
    "Hund": "Hunde",
    "Katze": "Katzen",
    "Vogel": "Vögel",
    "Fisch": "Fische",
    "Kuh": "Kühe",
    "Pferd": "Pferde",
    "Haus": "Häuser",
    "Tisch": "Tische",
    "Lampe": "Lampen",
    "Buch": "Bücher",
    "Uhr": "Uhren",
    "Brief": "Briefe",
}
NOUNS = list(PLURALS)
VERBS = {"sees": "sieht", "has": "hat", "wants": "will", "knows": "kennt"}
PAIRS = [  # each noun has two translations, and each verb and number is frequent
    pair
    for i, thing in enumerate(THINGS)
    for noun in (NOUNS[i], NOUNS[i - 1])
    for verb, german in VERBS.items()
    for pair in (
        (f"he {verb} one {thing}", f"er {german} ein {noun}"),
        (f"he {verb} two {thing}s", f"er {german} zwei {PLURALS[noun]}"),
    )
]


@pytest.fixture(scope="module", autouse=True)
def _few_function_words():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lexicon, "NUM_FUNCTION_WORDS", len(VERBS) + 2)
        yield


def prepared(folder: Path, **options: object) -> Prepared:
    folder.mkdir(exist_ok=True)
    file = folder / "a.tsv"
    file.write_text("".join(f"{one}\t{other}\n" for one, other in PAIRS), encoding="utf-8")
    given = {"source": "en", "target": "de", "holdout": 0, "terms": True, **options}
    data = DataConfig(**given, corpora=(CorpusConfig((str(file),), source="en", target="de"),))
    return prepare(data, folder / "data", vocab_size=lambda _: 400)


def rows(found: Prepared, store: int) -> list[tuple[list[int], list[int]]]:
    its = found.mixture.stores[store]
    sides = [side.rows(np.arange(its.pairs)) for side in (its.source, its.target)]
    return [(one.tolist(), other.tolist()) for one, other in zip(*sides, strict=True)]


def plain(found: Prepared, source: list[int]) -> list[int]:
    """The source of a copy without its only term's translation."""
    begin, middle, end = map(source.index, found.tokenizer.source.term_marks)
    return source[:begin] + source[begin + 1 : middle] + source[end + 1 :]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepared(tmp_path_factory.mktemp("terms"))


def test_a_copy_has_the_dictionary_form_of_a_translation(corpus):
    """Behind the word that it translates. Some translations are replaced by others with the same form."""
    vocabulary = corpus.tokenizer.source
    copies = rows(corpus, 1)
    assert len(copies) == corpus.facts.pairs == len(PAIRS)
    replaced = 0
    for (source, target), (usual_source, original) in zip(copies, rows(corpus, 0), strict=True):
        begin, middle, end = map(source.index, vocabulary.term_marks)
        word, lemma = vocabulary.decode([source[begin + 1 : middle], source[middle + 1 : end]])
        assert word.removesuffix("s") in THINGS and lemma in NOUNS
        *before, number, form = vocabulary.decode([target])[0].split()
        assert form == (lemma if number == "ein" else PLURALS[lemma])
        *others, usual = vocabulary.decode([original])[0].split()
        assert [*before, number] == others and form[-1] == usual[-1]
        replaced += form != usual
        assert plain(corpus, source) == usual_source
    assert len(PAIRS) / 8 < replaced < len(PAIRS) / 2


def test_copies_depend_on_the_corpus_alone_and_never_hold_out(tmp_path, corpus):
    again = prepared(tmp_path / "again")
    assert rows(again, 1) == rows(corpus, 1)
    found = prepared(tmp_path / "held out", holdout=40)
    held_out = {pair.source for pair in found.valid()}
    decode = found.tokenizer.source.decode
    trained = {*decode([source for source, _ in rows(found, 0)])}
    copied = {*decode([plain(found, source) for source, _ in rows(found, 1)])}
    assert held_out and copied and copied <= trained and not copied & held_out


def test_each_direction_has_its_copies(tmp_path):
    found = prepared(tmp_path, directions=("en-de", "de-en"))
    assert found.facts.languages == [["en", "de"], ["en", "de", "one-way"], ["de", "en", "one-way"]]
    source, target = rows(found, 3)[0]
    begin, middle, end = map(source.index, found.tokenizer.source.term_marks)
    texts = found.tokenizer.source.decode([source[:begin], source[middle + 1 : end], target])
    assert texts[0].startswith("er") and texts[1] in THINGS and texts[2].startswith("he")


def test_augmentation_and_drawn_subwords_keep_the_marks(corpus):
    options = {"data.augment": "default", "train.sample_source": 0.1}
    drawn = corpus.drawn(configure(options))
    drawn.plan(0, 0, budget=500, accumulate=1, seed=1)
    marks = corpus.tokenizer.source.term_marks
    sources = drawn.sources(np.arange(len(drawn)))
    found = [[token for token in ids.tolist() if token in marks] for ids in sources]
    assert found == [[]] * len(PAIRS) + [marks] * len(PAIRS)


@pytest.fixture(scope="module")
def translator(corpus: Prepared) -> Translator:
    """A model that has learnt from the copies for a second or two."""
    torch.manual_seed(1)
    size = {"d_model": 48, "d_ff": 96, "num_heads": 4, "dropout": 0.0, "norm": "pre"}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    model = build(ModelConfig(vocab_size=corpus.tokenizer.target.size, **size, **layers))
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    random = Random(1)
    copies = rows(corpus, 1)
    for _ in range(160):
        batch = make_batch(*map(list, zip(*random.sample(copies, 32), strict=True)))
        loss = smoothed_cross_entropy(model(batch.src, batch.tgt_in), batch.tgt_out, 0.0).loss
        optimizer.zero_grad()
        (loss / batch.num_tokens).backward()
        optimizer.step()
    return Translator(
        engine=TorchEngine([model.eval()]),
        tokenizer=corpus.tokenizer,
        config=DecodeConfig(beam_size=2),
        directions=[Direction("en", "de")],
    )


def test_a_model_learns_to_inflect_terms(translator):
    """With translations that it has never seen for the word; the form follows from the sentence."""
    right = 0
    for i, noun in enumerate(NOUNS):
        thing = THINGS[i - 5]
        glossary = {thing: noun}
        one, two = translator.translate(
            [f"he knows one {thing}", f"he knows two {thing}s"], glossary=glossary
        )
        assert [term.source for each in (one, two) for term in each.terms] == [thing, f"{thing}s"]
        expected = [
            (f"er kennt ein {noun}", "kept"),
            (f"er kennt zwei {PLURALS[noun]}", "inflected"),
        ]
        for each, (text, state) in zip((one, two), expected, strict=True):
            right += each.text == text
            [term] = each.terms
            assert term.target == noun and (term.state == "missed") == (TERM in each.flags)
            assert term.state == state or each.text != text
    assert right >= 16  # of 24; without its terms, the model would know none


def test_exact_terms_are_enforced(translator):
    for noun in NOUNS[:4]:
        [found] = translator.translate(
            ["he knows two things"], glossary={"things": noun}, glossary_exact=True
        )
        state = "kept" if noun in found.text.split() else "missed"
        assert found.terms == (UsedTerm("things", noun, state),)
        assert (TERM in found.flags) == (state == "missed")
    [other] = translator.translate(
        ["he knows two things"], glossary={"thing": "Uhr"}, glossary_exact=True
    )
    assert other.terms == (), "only the form that the glossary has"
