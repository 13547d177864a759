"""Which words belong together: pieces tile their text, links are spans of words, all engines look at the same."""

import json
import threading
import unicodedata
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from command_line import run
from models import publish_model
from transduce import model_folder
from transduce.config.families import families
from transduce.config.schema import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig, RunConfig
from transduce.decoding.alignment import LINK_SHARE, find_links, starts
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
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import BLANK_TRANSLATION, Link, TranslationOptions
from transduce.decoding.words import words
from transduce.model.build import build
from transduce.model.recording import record_attention
from transduce.model.seq2seq import Seq2Seq, make_batch
from transduce.model_folder import Bundle
from transduce.system.errors import UserError
from transduce.text.pairs import Origin, Pair
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.ct2.convert import convert
from transduce.wings.ct2.engine import CTranslate2Engine
from transduce.wings.phrasebook.examples import examples

EXAMPLES = list(examples("train", 400))
CONFIG = DecodeConfig(beam_size=3, max_extra_tokens=4, max_tokens=256)


@pytest.fixture(scope="module", params=["bpe", "unigram", "separate"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    english, german = [each.english for each in EXAMPLES], [each.german for each in EXAMPLES]
    german += ["die Katze läuft 漢字 かな", "l’eau, e\u0301te\u0301"]
    kind = "unigram" if request.param == "unigram" else "bpe"
    return Tokenizer.train(
        english, german, vocab_size=600, kind=kind, joint=request.param != "separate"
    )


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return Tokenizer.train(
        [each.english for each in EXAMPLES],
        [each.german for each in EXAMPLES],
        vocab_size=500,
        kind="bpe",
    )


def model_config(tokenizer: Tokenizer, **options: object) -> ModelConfig:
    small = ModelConfig(
        vocab_size=tokenizer.target.size,
        d_model=32,
        d_ff=64,
        num_heads=4,
        num_encoder_layers=2,
        num_decoder_layers=3,
        dropout=0.0,
    )
    return replace(small, **options)  # type: ignore[arg-type]


def lively(config: ModelConfig, seed: int = 0) -> Seq2Seq:
    """A model whose attention is anything but even."""
    model, generator = build(config, seed=seed), torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        weight.data.mul_(1.6).add_(torch.randn(weight.shape, generator=generator), alpha=0.1)
    return model.eval()


# -- pieces -----------------------------------------------------------------------------------------------

odd = st.text(
    st.sampled_from(
        " a\u2581\u0301\u00e9漢字か😀\u200d\ufe0f\u00a0\u2028\r\t.'-ßKatze\ud800\U0001f468"
    ),
    max_size=20,
)
texts = st.one_of(odd, st.text(st.characters(exclude_characters="\n"), max_size=20))


@given(text=texts)
@example(text="Ein Mann  mit\u2581Hut 漢字 e\u0301 😀x ")
@example(text="\u2581")
@example(text="\ud800\udc00 \udfff")
@example(text="")
def test_the_spans_of_pieces_tile_their_text(tokenizer, text):
    [ids] = tokenizer.source.encode([text]).lists()
    spans = tokenizer.source.spans_in(text, ids)
    assert len(spans) == len(ids)
    assert [0, *(end for _, end in spans)] == [
        *(begin for begin, _ in spans),
        len(text) if ids else 0,
    ]
    for (begin, end), piece in zip(spans, tokenizer.source.pieces(ids), strict=True):
        if not piece.startswith("<0x"):  # its own characters stand there
            assert text[begin:end] in (
                piece.replace("\u2581", " "),
                piece[1:].replace("\u2581", " "),
            )
        else:
            assert end - begin <= 1


@given(data=st.data())
def test_spans_of_any_token_ids_tile_their_text(tokenizer, data):
    size = tokenizer.target.size
    ids = data.draw(
        st.lists(
            st.one_of(st.integers(0, size - 1), st.integers(0, min(size - 1, 262))), max_size=24
        )
    )
    spans = tokenizer.target.spans(ids)
    [text] = tokenizer.decode([ids])
    assert [0, *(end for _, end in spans)] == [*(begin for begin, _ in spans), len(text)]
    for token, (begin, end) in zip(ids, spans, strict=True):
        if token in (PAD, BOS, EOS, UNK):
            assert begin == end


def test_a_character_in_bytes_stands_at_its_last_byte_and_a_tag_nowhere():
    vocabulary = Tokenizer.train(["a b"], ["a b"], vocab_size=300, languages=["de"]).target
    a, b, tag = map(vocabulary.processor.piece_to_id, ("\u2581a", "\u2581b", ">>de<<"))
    e, kanji, no_character = (
        [vocabulary.processor.piece_to_id(f"<0x{byte:02X}>") for byte in some]
        for some in ("é".encode(), "漢".encode(), b"\xe2\x96")
    )
    assert vocabulary.spans([a, *e, b, *kanji]) == [
        (0, 1),
        (1, 1),
        (1, 2),
        (2, 4),
        (4, 4),
        (4, 4),
        (4, 5),
    ]
    assert vocabulary.spans([*no_character, tag, b, *e[:1]]) == [
        (0, 1),
        (1, 2),
        (2, 2),
        (2, 4),
        (4, 5),
    ]


# -- words ------------------------------------------------------------------------------------------------


@given(text=texts)
def test_words_are_disjoint_and_hold_every_character_but_spaces(tokenizer, text):
    found = words(text, starts(tokenizer.source.spans_in(text, tokenizer.encode_source([text])[0])))
    places = [place for begin, end in found for place in range(begin, end)]
    assert places == sorted(set(places))
    assert not any(text[begin:end].isspace() for begin, end in found)
    rest = set(range(len(text))) - set(places)
    assert all(
        text[place].isspace() or unicodedata.category(text[place])[0] in "ZC" for place in rest
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The dog's tail, isn't it?", ["The", "dog's", "tail", ",", "isn't", "it", "?"]),
        ("'So' – E-Mail -x", ["'", "So", "'", "–", "E-Mail", "-", "x"]),
        ("e\u0301te\u0301 हिन्दी", ["e\u0301te\u0301", "हिन्दी"]),
        ("snake_case 3.5 €", ["snake_case", "3", ".", "5", "€"]),
        ("a\u00a0b\u2028c\tx", ["a", "b", "c", "x"]),
        ("👨\u200d👩 \u2581", ["👨\u200d", "👩", "\u2581"]),
        ("  ", []),
        ("", []),
    ],
)
def test_words_by_hand(text, expected):
    assert [text[begin:end] for begin, end in words(text, ())] == expected


def test_words_without_spaces_are_pieces():
    text = "漢字かなABC語。"
    spans = [(0, 2), (2, 4), (4, 7), (7, 8), (8, 9)]
    assert [text[b:e] for b, e in words(text, starts(spans))] == ["漢字", "かな", "ABC", "語", "。"]
    assert [text[b:e] for b, e in words("漢字", {0, 1})] == ["漢", "字"]


# -- links ------------------------------------------------------------------------------------------------


def links_of(weights, source: str, source_spans, target: str, target_spans) -> tuple[Link, ...]:
    source_words, target_words = (
        words(source, starts(source_spans)),
        words(target, starts(target_spans)),
    )
    return find_links(weights, source_words, source_spans, target_words, target_spans)


def test_links_by_hand():
    # Three source pieces, of which two are one word; two target words, the second of two pieces.
    source, target = "ab cd", "x yz"
    weights = np.array([[0.1, 0.2, 0.5], [0.6, 0.2, 0.1], [0.5, 0.3, 0.1]])
    links = links_of(weights, source, [(0, 1), (1, 2), (2, 5)], target, [(0, 1), (1, 3), (3, 4)])
    assert links == (
        Link((0, 2), (0, 1), 0.3),
        Link((3, 5), (0, 1), 0.5),
        Link((0, 2), (2, 4), 0.8),
    )
    assert 0.3 / 0.8 > LINK_SHARE > 0.1 / 0.9
    assert links_of(np.zeros((1, 1)), "a", [(0, 1)], "b", [(0, 1)]) == ()
    assert links_of(np.zeros((0, 1)), "a", [(0, 1)], "", []) == ()


@pytest.mark.parametrize("kind", families())
def test_every_word_of_a_translation_is_linked_to_words_of_its_source(bpe, kind):
    translator = Translator(TorchEngine([lively(model_config(bpe, kind=kind))]), bpe, CONFIG)
    texts = ["", *(each.english for each in EXAMPLES[:5]), " ", "漢 字", EXAMPLES[0].english]
    plain = translator.translate(texts, n_best=2)
    if kind == "bytenet":
        with pytest.raises(UserError, match="torch can't align words with this model"):
            translator.translate(texts, align=True)
        return
    found = translator.translate(texts, n_best=2, align=True)
    assert found[0] == BLANK_TRANSLATION and found[1] == found[-1]
    # Nothing else changes, and nobody who didn't ask has links.
    assert plain == [without_links(each) for each in found]
    assert (
        list(translator.translate_lines(texts, TranslationOptions(n_best=2, align=True))) == found
    )
    for text, best in zip(texts, found, strict=True):
        for translation in (best, *best.alternatives):
            tracked = bpe.normalizer.tracked(text)
            cuts = starts(bpe.source.spans_in(tracked.text, bpe.encode_source([text])[0]))
            source_words = map(tracked.original, words(tracked.text, cuts))
            linked = Counter(link.target for link in translation.links)
            assert {link.source for link in translation.links} <= set(source_words)
            assert all(0 <= link.weight <= 1.0001 for link in translation.links)
            assert [link.target for link in translation.links] == sorted(
                link.target for link in translation.links
            )
            for begin, end in linked:
                assert translation.text[begin:end] == translation.text[begin:end].strip() != ""
            is_copied = not translation.tokens
            if any(map(str.isprintable, translation.text.strip())) and not is_copied:
                assert linked  # control characters are no words


def without_links(translation):
    return replace(
        translation, links=(), alternatives=tuple(map(without_links, translation.alternatives))
    )


def pairs_of(tokenizer: Tokenizer, count: int) -> tuple[list[list[int]], list[list[int]]]:
    chosen = EXAMPLES[:count]
    return tokenizer.encode_source([e.english for e in chosen]), tokenizer.encode_target(
        [e.german for e in chosen]
    )


@pytest.mark.parametrize("layer", [0, 1, 2])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_ctranslate2_attention_equals_torch(bpe, tmp_path, norm, layer):
    config = model_config(bpe, norm=norm)
    model = lively(config)
    convert(model, config, tmp_path, "float32", layer)
    theirs = CTranslate2Engine(tmp_path, "float32", config, threads=1)
    sources, targets = pairs_of(bpe, 20)
    sources, targets = [*sources, sources[0], [20]], [*targets, [], [21, 22, 23] * 20]
    expected = TorchEngine([model], layers=lambda: [layer]).attention(sources, targets)
    for one, other, source, target in zip(
        expected, theirs.attention(sources, targets), sources, targets, strict=True
    ):
        assert one.shape == other.shape == (len(target), len(source))
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_attention_does_not_depend_on_the_batch_(bpe):
    model = lively(model_config(bpe))
    engine = TorchEngine([model])
    sources, targets = pairs_of(bpe, 8)
    together = engine.attention(sources, targets)
    for i in range(8):
        np.testing.assert_allclose(
            engine.attention([sources[i]], [targets[i]])[0], together[i], atol=1e-5
        )


def test_ensemble_attention_is_the_mean_over_each_model_s_layer(bpe):
    models = [lively(model_config(bpe), seed=seed) for seed in (1, 2)]
    sources, targets = pairs_of(bpe, 5)
    both = TorchEngine(models, layers=lambda: [0, 2]).attention(sources, targets)
    alone = [
        TorchEngine([m], layers=lambda n=n: [n]).attention(sources, targets)
        for m, n in zip(models, (0, 2), strict=True)
    ]
    for mean, one, other in zip(both, *alone, strict=True):
        np.testing.assert_allclose(mean, (one + other) / 2, atol=1e-6)


def test_threads_do_not_share_recorded_attention(bpe):
    translator = Translator(TorchEngine([lively(model_config(bpe))]), bpe, CONFIG)
    texts = [each.english for each in EXAMPLES[:3]]
    expected, found = translator.translate(texts, align=True), {}

    def work(number: int) -> None:
        found[number] = translator.translate(texts, align=number % 2 == 0)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number] for number in (0, 2, 4)] == [expected] * 3
    assert [found[number] for number in (1, 3, 5)] == [
        [without_links(each) for each in expected]
    ] * 3


# -- the layer --------------------------------------------------------------------------------------------


def test_information_by_hand():
    # Two kinds that are always linked, eight times each: half of the links is left to either, without the judged one.
    assert information(Counter({(1, 1): 8, (2, 2): 8})) == pytest.approx(np.log(7 * 16 / 64))
    assert information(Counter({(1, 1): 4, (1, 2): 4, (2, 1): 4, (2, 2): 4})) < 0
    assert information(Counter()) == 0
    # What is linked once says little, though plain mutual information is highest there: ln 50.
    assert information(Counter({(i, i): 1 for i in range(50)})) == pytest.approx(np.log(50 / 10))


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


@pytest.mark.parametrize("kind", families())
def test_attention_rows_are_distributions_over_the_source(bpe, kind):
    sources, targets = pairs_of(bpe, 5)
    layers = source_attention(lively(model_config(bpe, kind=kind)), make_batch(sources, targets))
    assert bool(layers) == (kind != "bytenet")
    for layer in layers:
        assert layer.shape == (5, max(map(len, targets)) + 1, max(map(len, sources)) + 1)
        torch.testing.assert_close(layer.sum(-1), torch.ones(layer.shape[:2]))
        for row, source in zip(layer, sources, strict=True):
            assert (
                row[:, len(source) + 1 :].abs().max() < 1e-6
                if len(source) + 1 < layer.size(2)
                else True
            )
