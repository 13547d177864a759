"""Which words belong together: pieces tile their text, links are spans of words, all engines look at the same."""

import threading

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from aligned import CONFIG, EXAMPLES, lively, model_config, texts, without_links
from transduce.config.families import families
from transduce.config.schema import BOS, EOS, PAD, UNK
from transduce.decoding.alignment import LINK_SHARE, _shares, align, find_links, starts
from transduce.decoding.alignment_layer import (
    source_attention,
)
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import Hypothesis, Link, Translation
from transduce.decoding.words import words
from transduce.model.seq2seq import make_batch
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.ct2.convert import convert
from transduce.wings.ct2.engine import CTranslate2Engine


@given(text=texts)
@example(text="Ein Mann  mit\u2581Hut 漢字 e\u0301 😀x ")
@example(text="\u2581")
@example(text="\ud800\udc00 \udfff")
@example(text="")
def test_the_spans_of_pieces_tile_their_text(aligning_tokenizer, text):
    [ids] = aligning_tokenizer.source.encode([text]).lists()
    spans = aligning_tokenizer.source.spans_in(text, ids)
    assert len(spans) == len(ids)
    assert [0, *(end for _, end in spans)] == [
        *(begin for begin, _ in spans),
        len(text) if ids else 0,
    ]
    for (begin, end), piece in zip(spans, aligning_tokenizer.source.pieces(ids), strict=True):
        if not piece.startswith("<0x"):  # its own characters stand there
            assert text[begin:end] in (
                piece.replace("\u2581", " "),
                piece[1:].replace("\u2581", " "),
            )
        else:
            assert end - begin <= 1


@given(data=st.data())
def test_spans_of_any_token_ids_tile_their_text(aligning_tokenizer, data):
    size = aligning_tokenizer.target.size
    ids = data.draw(
        st.lists(
            st.one_of(st.integers(0, size - 1), st.integers(0, min(size - 1, 262))), max_size=24
        )
    )
    spans = aligning_tokenizer.target.spans(ids)
    [text] = aligning_tokenizer.decode([ids])
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


def test_shares_of_pieces_by_hand():
    """A piece in two words, a byte at the place of its character, a space, and a piece over all."""
    spans = [(0, 1), (1, 4), (4, 4), (4, 5), (2, 3), (1, 7)]
    assert _shares([(0, 2), (3, 5)], spans).T.tolist() == pytest.approx(
        np.array([[1, 0], [1 / 2, 1 / 2], [0, 1], [0, 1], [0, 0], [1 / 3, 2 / 3]])
    )
    assert _shares([(0, 2)], []).shape == (1, 0)


def test_which_words_are_linked_by_hand():
    """The strongest, all of equal weight, and those with a share of the attention to all words."""
    spans = [(0, 1), (2, 3), (4, 5)]

    def linked(*row: float, **share: float) -> list[float]:
        links = find_links(np.array([row]), spans, spans, spans[:1], spans[:1], **share)
        assert all(target == (0, 1) for _, target, _ in links)
        return [spans.index(source) for source, *_ in links]

    assert linked(0.5, 0.25, 0.25) == [0] and linked(0.5, 0.25, 0.25, share=0.25) == [0, 1, 2]
    assert linked(0.1, 0.2, 0.3) == [1, 2] and linked(0.2, 0.2, 0.0) == [0, 1]
    assert linked(0.0, 0.0, 0.0) == linked(0.0, 0.0, 0.0, share=0.0) == []
    assert linked(0.2, 0.01, 0.0, share=0.0) == [0, 1]
    assert find_links(np.ones((1, 0)), [], [], spans[:1], spans[:1]) == ()
    assert find_links(np.ones((0, 1)), spans[:1], spans[:1], [], []) == ()
    # A word without pieces attends to nothing.
    [link] = find_links(np.array([[0.12345]]), spans[:1], spans[:1], spans[:2], spans[:1])
    assert link == ((0, 1), (0, 1), 0.1235)


@pytest.mark.parametrize("language", ["", "de"])
def test_a_tag_before_the_source_is_no_word_and_alternatives_have_their_own_links(language):
    languages = [language] if language else []
    tokenizer = Tokenizer.train(["ka lo"] * 9, ["Xa Yo"] * 9, vocab_size=280, languages=languages)
    tokenizer, tags = tokenizer.into(language), len(languages)
    texts, targets = ["ka lo", "lo"], [["Xa Yo", "Yo Xa"], ["Yo"]]
    sources = tokenizer.encode_source(texts)
    ranked, words_of = [], {"ka": "Xa", "lo": "Yo"}
    for best, *others in targets:
        rows = tokenizer.encode_target([best, *others])
        translation = Translation(best, -1.0, (), tuple(Translation(o, -2.0, ()) for o in others))
        ranked.append((translation, [Hypothesis(-1.0, row) for row in rows]))

    def attention(given, wanted):
        """Everything attends to the tag, and a bit to the pieces of its word."""
        for source, target in zip(given, wanted, strict=True):
            assert source[:tags] == [*tokenizer.tags]
            [text] = tokenizer.decode([target])
            spans = tokenizer.target.spans(target)
            [other] = [
                each for each in texts if len(tokenizer.encode_source([each])[0]) == len(source)
            ]
            weights = np.zeros((len(target), len(source)), np.float32)
            weights[:, :tags] = 0.8
            for i, (_, last) in enumerate(spans):
                for j, (_, end) in enumerate(tokenizer.source.spans_in(other, source[tags:]), tags):
                    same = words_of[other[:end].split()[-1]] == text[:last].split()[-1]
                    weights[i, j] = 0.2 * same
            yield weights

    found = align(tokenizer, texts, sources, ranked, attention)
    for text, translation in zip(texts, found, strict=True):
        for each in (translation, *translation.alternatives):
            linked = {each.text[slice(*to)]: text[slice(*of)] for of, to, _ in each.links}
            assert linked == {words_of[word]: word for word in text.split()}
    assert [each.text for each in found[0].alternatives] == ["Yo Xa"]
    assert found[0].score == -1.0 and found[1].alternatives == ()


def pairs_of(aligning_tokenizer: Tokenizer, count: int) -> tuple[list[list[int]], list[list[int]]]:
    chosen = EXAMPLES[:count]
    return aligning_tokenizer.encode_source(
        [e.english for e in chosen]
    ), aligning_tokenizer.encode_target([e.german for e in chosen])


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


@pytest.mark.parametrize("kind", families())
def test_attention_rows_are_distributions_over_the_source(bpe, kind):
    sources, targets = pairs_of(bpe, 5)
    layers = source_attention(lively(model_config(bpe, kind=kind)), make_batch(sources, targets))
    assert bool(layers) == (kind not in ("bytenet", "neural_gpu"))
    for layer in layers:
        assert layer.shape == (5, max(map(len, targets)) + 1, max(map(len, sources)) + 1)
        torch.testing.assert_close(layer.sum(-1), torch.ones(layer.shape[:2]))
        for row, source in zip(layer, sources, strict=True):
            assert (
                row[:, len(source) + 1 :].abs().max() < 1e-6
                if len(source) + 1 < layer.size(2)
                else True
            )
