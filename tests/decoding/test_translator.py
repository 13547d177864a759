"""The laws of translation: lines in = lines out, in order, whatever the lines are."""

import copy
import itertools
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aligned import lively as small_and_lively
from phrases import CONFIG, SOURCES, TARGETS, WORDS, german, model_config, own, phrases
from transduce.config.schema import EOS, PLACEHOLDER_TOKENS, DataConfig, DecodeConfig
from transduce.decoding import translator as translator_module
from transduce.decoding.confidence import MIN_AREA, Confidence, Regression
from transduce.decoding.directions import Scores
from transduce.decoding.loading import check_directions, shared_tokenizer
from transduce.decoding.pivot import through
from transduce.decoding.repetition import is_loop
from transduce.decoding.searcher import Fallback
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import (
    BLANK_TRANSLATION,
    CUT,
    DETACHED,
    LOOP,
    Hypothesis,
    Scored,
    Term,
    TranslationOptions,
)
from transduce.evaluation.calibration import calibrate
from transduce.model.build import build
from transduce.system.errors import UserError
from transduce.text.formats import MARKUP_TEXT
from transduce.text.languages import Direction
from transduce.text.pairs import Origin, Pair
from transduce.tokens.batching import batches
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.ct2.convert import convert
from transduce.wings.ct2.engine import CTranslate2Engine


def test_requests_that_are_searched_at_the_same_time_find_the_same(model, tokenizer):
    translator, before = own([model], tokenizer, CONFIG), torch.get_num_threads()
    found = []
    for threads in (1, 2, 5):
        torch.set_num_threads(threads)
        try:
            found.append(translator.translate(SOURCES, n_best=3))
            assert torch.get_num_threads() == threads
        finally:
            torch.set_num_threads(before)
    texts = [
        [(each.text, *(other.text for other in each.alternatives)) for each in row] for row in found
    ]
    assert texts[0] == texts[1] == texts[2]


def test_forced_decoding_in_small_batches_finds_the_same(model, tokenizer, monkeypatch):
    translator = own([model], tokenizer, CONFIG)
    expected = translator.score(SOURCES[:40], TARGETS[:40])
    monkeypatch.setattr("transduce.decoding.torch_engine.MAX_FORCED_TOKENS", 5)
    found = translator.score(SOURCES[:40], TARGETS[:40])
    assert [each.score for each in found] == pytest.approx(
        [each.score for each in expected], abs=1e-4
    )


def test_searches_of_several_threads_leave_the_number_of_threads_alone(model, tokenizer):
    translator, before = own([model], tokenizer, CONFIG), torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(translator.translate, [SOURCES[:20]] * 12))
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(torch.get_num_threads).result() == 4, "of new threads"
    finally:
        torch.set_num_threads(before)
    texts = [[each.text for each in row] for row in found]
    assert all(row == texts[0] for row in texts)


def test_translator_translates_learned_sentences(translator):
    translations = translator.translate(SOURCES)
    right = sum(
        translation.text == text for translation, text in zip(translations, TARGETS, strict=True)
    )
    assert right >= 0.95 * len(SOURCES)
    assert {translation.flags for translation in translations} == {()}


blanks = st.sampled_from(["", " ", "   ", "\t", "\u3000", "\u2028", "\r"])


lines = st.one_of(
    blanks,
    st.sampled_from(SOURCES),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=8),
)


@settings(max_examples=25)
@given(texts=st.lists(lines, max_size=6))
@example(["\xad"])  # a soft hyphen
@example(["0\U00010000", "0eno"])  # of which one may be longer, and the other goes on to its limit
def test_lines_in_are_lines_out_in_order(translator, texts):
    together = translator.translate(texts, n_best=2)
    assert len(together) == len(texts)
    for text, translation in zip(texts, together, strict=True):
        [alone] = translator.translate([text], n_best=2)
        assert translation.text == alone.text
        assert translation.score == pytest.approx(alone.score, abs=1e-4)
        assert "\n" not in translation.text
        assert translation.text not in [other.text for other in translation.alternatives]
        [normalised] = translator.tokenizer.normalizer([text])
        assert (translation == BLANK_TRANSLATION) == (not normalised.strip())
    assert list(translator.translate_lines(iter(texts), TranslationOptions(n_best=2))) == together


def test_the_model_is_not_asked_for_blank_lines(tokenizer, model, monkeypatch):
    translator = own([model], tokenizer, CONFIG)
    monkeypatch.delattr(type(model), "encode")
    assert translator.translate(["", "  ", "\t\r", "\ufeff", " \u200b"]) == [BLANK_TRANSLATION] * 5
    scored = translator.score(["", " "], ["", "\t"])
    assert repr(scored) == repr([Scored(0.0, 0, 0.0)] * 2), "the number of tokens is an integer"
    with pytest.raises(NotImplementedError):
        translator.translate(["dog"])


def test_repeated_texts_are_searched_once(translator, monkeypatch):
    asked: list[str] = []
    search = translator.engine.search
    monkeypatch.setattr(
        translator.engine,
        "search",
        lambda requests, *rest: (
            [asked.extend(each.texts) for each in requests] and search(requests, *rest)
        ),
    )
    found = translator.translate(["dog", "red house", "", "dog", "dog "])
    assert sorted(asked) == ["dog", "red house"]
    assert found[0] == found[3] == found[4] and found[2] == BLANK_TRANSLATION


def test_a_stream_is_translated_as_it_comes(translator, monkeypatch):
    monkeypatch.setattr(translator_module, "CHUNK_LINES", 5)
    found = itertools.islice(translator.translate_lines(itertools.cycle(SOURCES)), 12)
    assert [translation.text for translation in found] == [
        t.text for t in translator.translate(SOURCES[:12])
    ]
    with pytest.raises(UserError, match="Text 7 "):
        list(translator.translate_lines(["dog"] * 6 + ["dog\ncat"]))


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
def test_the_score_of_a_translation_is_the_reported_one(model, tokenizer, alpha):
    translator = own([model], tokenizer, replace(CONFIG, length_penalty=alpha))
    texts = ["", *phrases(30, seed=4)]
    translations = translator.translate(texts)
    scores = translator.score(texts, [translation.text for translation in translations])
    assert [s.score for s in scores] == pytest.approx([t.score for t in translations], abs=1e-4)
    assert [s.num_tokens for s in scores[1:]] == [len(t.tokens) + 1 for t in translations[1:]]
    if alpha == 0:
        assert [s.log_prob for s in scores] == [s.score for s in scores]
    wrong = translator.score(texts[1:], ["Haus Haus Haus Haus"] * 30)
    assert all(
        bad.log_prob < good.log_prob - 1 for bad, good in zip(wrong, scores[1:], strict=True)
    )


def test_a_score_does_not_depend_on_the_pairs_beside_it(translator):
    sources, targets = phrases(60, seed=5), phrases(60, seed=6)
    alone = [
        translator.score([source], [target])[0]
        for source, target in zip(sources, targets, strict=True)
    ]
    together = translator.score(sources, targets)
    assert len({each.num_tokens for each in alone}) > 2, "scores at other places would be the same"
    assert [each.num_tokens for each in together] == [each.num_tokens for each in alone]
    assert [each.log_prob for each in together] == pytest.approx(
        [each.log_prob for each in alone], abs=0.01
    )


def test_a_pair_of_invisible_texts_has_probability_1(translator):
    assert [each.log_prob for each in translator.score(["\u200b", " "], ["\ufeff", ""])] == [
        0.0,
        0.0,
    ]


def test_alternatives_are_the_next_best(translator):
    [best] = translator.translate(["red house"], n_best=4)
    ranked = [best, *best.alternatives]
    assert [t.score for t in ranked] == sorted((t.score for t in ranked), reverse=True)
    assert len({t.text for t in ranked}) == 4
    assert not any(t.alternatives for t in best.alternatives)
    assert replace(best, alternatives=()) == translator.translate(["red house"])[0]


def test_a_translation_that_is_cut_says_so(model, tokenizer):
    texts = ["red house", "big dog sees"]
    short = own([model], tokenizer, replace(CONFIG, max_extra_tokens=-1))
    for translation, limit in zip(short.translate(texts), [1, 2], strict=True):
        assert translation.flags == (CUT,)
        assert len(translation.tokens) == limit


def test_dropout_is_off_although_the_model_was_training(tokenizer):
    torch.manual_seed(1)
    model = build(replace(model_config(tokenizer), dropout=0.5))
    translator = own([model], tokenizer, CONFIG)
    found = []
    for _ in range(2):
        model.train()
        found.append(
            (translator.translate(SOURCES[:3]), translator.score(SOURCES[:3], TARGETS[:3]))
        )
    assert found[0] == found[1]


def test_an_ensemble_is_the_mean_of_its_models(model, tokenizer):
    other = build(model_config(tokenizer), seed=9)
    both = own([model, other], tokenizer, CONFIG)
    alone = [own([each], tokenizer, CONFIG) for each in (model, other)]
    # The mean is taken token by token; an empty target has one, its end.
    log_probs = [translator.score(["red house"], [""])[0].log_prob for translator in alone]
    mean = torch.tensor(log_probs, dtype=torch.float64).exp().mean().log().item()
    assert both.score(["red house"], [""])[0].log_prob == pytest.approx(mean, abs=1e-5)
    twins = own([model, model], tokenizer, CONFIG)
    assert [t.text for t in twins.translate(SOURCES)] == [
        t.text for t in alone[0].translate(SOURCES)
    ]


def test_an_ensemble_needs_one_vocabulary(tokenizer):
    again = Tokenizer.train(SOURCES, TARGETS, vocab_size=340)
    assert shared_tokenizer([tokenizer, again], ["a", "b"]) is tokenizer
    other = Tokenizer.train(TARGETS, TARGETS, vocab_size=340)
    with pytest.raises(UserError, match=r"^models/b has another vocabulary than models/a"):
        shared_tokenizer([tokenizer, other], ["models/a", "models/b"])


def test_an_ensemble_has_the_same_directions():
    models = [DataConfig(source="en", target="de"), DataConfig(source="de", target="en")]
    check_directions([DataConfig(), models[0], DataConfig(directions=("en-de",))], ["a", "b", "c"])
    with pytest.raises(
        UserError,
        match=r"^b translates .*de.*en, and a translates .*en.*de\. Models of an ensemble",
    ):
        check_directions(models, ["a", "b"])


def test_a_text_that_is_too_long_is_split_without_a_sentence_splitter(tokenizer, monkeypatch):
    monkeypatch.setitem(sys.modules, "sentencex", None)
    config = replace(model_config(tokenizer), positions="learned", max_positions=4)
    short, split = own([build(config)], tokenizer, CONFIG).translate(
        ["red", "red house. dog sees red house dog red"]
    )
    assert (
        "split" not in short.flags
        and "split" in split.flags
        and len(split.tokens) > len(short.tokens)
    )


def test_a_text_that_is_too_long_is_split_and_does_not_change_the_others(tokenizer):
    config = replace(model_config(tokenizer), positions="learned", max_positions=4)
    translator = own([build(config)], tokenizer, CONFIG)
    texts = ["red", "red house. dog sees red house dog red", "", "dog", 9 * "house"]
    found = translator.translate(texts)
    for i in (0, 2, 3):
        assert (
            found[i].text == translator.translate([texts[i]])[0].text
            and "split" not in found[i].flags
        )
    for i in (1, 4):
        assert (
            found[i].text == translator.translate([texts[i]], sentences=True)[0].text
            and "split" in found[i].flags
        )
    assert list(translator.translate_lines(texts)) == found


def test_texts_beyond_learned_positions_are_refused_with_their_number(tokenizer):
    config = replace(model_config(tokenizer), positions="learned", max_positions=4)
    translator = own([build(config)], tokenizer, CONFIG)
    # Three tokens and EOS fill the positions, and so do BOS and three tokens.
    texts = [
        "red house dog",
        "red",
    ]
    assert all(len(translation.tokens) <= 3 for translation in translator.translate(texts))
    assert translator._too_long([*texts, "red house dog red"]) == {2: None}
    assert len(translator.score(texts, texts)) == 2
    for ask in (
        lambda: translator.score(["red", "", "red house dog sees"], ["", "", "red"]),
        lambda: translator.score(["red", "", "red"], ["", "", "rot Haus Hund sieht"]),
    ):
        with pytest.raises(UserError, match=r"text 3 has 4 tokens.* at most 3\."):
            ask()


@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_error_suggests_torch_if_it_supports_longer_texts(positions, tokenizer, tmp_path):
    config = replace(model_config(tokenizer), positions=positions, max_positions=4)
    model = build(config)
    convert(model, config, tmp_path, "float32")
    engine = CTranslate2Engine(tmp_path, "float32", config, threads=1)
    translator = Translator(
        engine, tokenizer, CONFIG, fallback=Fallback(lambda: TorchEngine([model]))
    )
    with pytest.raises(UserError, match="Split the text") as refused:
        translator.score(["red " * 5000], ["red"])
    assert ("the engine torch" in str(refused.value)) == (positions == "sinusoidal")


def test_wrong_arguments_are_refused(translator):
    with pytest.raises(UserError, match="Text 2 contains a line break"):
        translator.translate(["dog", "a\nb"])
    with pytest.raises(UserError, match=r"from 1 to decode.beam_size \(4\), not 5"):
        translator.translate(["dog"], n_best=5)
    with pytest.raises(UserError, match="2 sources but 1 targets"):
        translator.score(["dog", "cat"], ["Hund"])
    with pytest.raises(TypeError):
        translator.translate("dog")


def test_damaged_weights_are_named(tokenizer):
    model = build(model_config(tokenizer))
    next(model.parameters()).data.fill_(torch.nan)
    with pytest.raises(UserError, match="weights are damaged"):
        own([model], tokenizer, CONFIG).translate(["dog"])


@given(lengths=st.lists(st.integers(1, 30), max_size=40), budget=st.integers(0, 80))
def test_every_text_is_in_one_batch_within_the_budget(lengths, budget):
    found = list(batches(lengths, budget))
    assert sorted(itertools.chain.from_iterable(found)) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget


def test_a_budget_below_the_beam_is_one_sentence_at_a_time(model, tokenizer):
    small = own([model], tokenizer, replace(CONFIG, max_tokens=2))
    expected = own([model], tokenizer, CONFIG).translate(SOURCES[:5])
    assert [t.text for t in small.translate(SOURCES[:5])] == [t.text for t in expected]


def test_half_a_surrogate_pair_is_translated_alike_with_and_without_splitting(model, tokenizer):
    translator = Translator(TorchEngine([model]), tokenizer, CONFIG)
    assert (
        translator.translate(["big\ud800 dog"])[0]
        == translator.translate(["big\ud800 dog"], sentences=True)[0]
    )


def test_a_sentence_in_capitals(model, tokenizer):
    lower, upper = "big red dog", "BIG RED DOG"
    options = TranslationOptions(n_best=2, align=True)
    translator = Translator(TorchEngine([model]), tokenizer, CONFIG)
    plain, capital = (translator.translate_sentences([text], options)[0] for text in (lower, upper))
    assert capital.text == plain.text.upper() == "GROSS ROT HUND" and capital.score == plain.score
    assert [other.text for other in capital.alternatives] == [
        other.text.upper() for other in plain.alternatives
    ]
    assert [upper[slice(*link.source)].lower() for link in capital.links] == [
        lower[slice(*link.source)] for link in plain.links
    ]
    assert translator.translate([lower, upper, lower])[1].text == capital.text
    short = Translator(
        TorchEngine([model]), tokenizer, CONFIG, max_length=translator.lengths([lower])[0]
    )
    assert short.plan([upper], TranslationOptions(sentences=True)).sentences == [upper], (
        "it is not too long"
    )
    unchanged = Translator(TorchEngine([model]), tokenizer, replace(CONFIG, capitals=False))
    assert unchanged.translate([upper])[0].text != capital.text


def test_texts_are_read_by_the_rules_of_the_source_language(model, tokenizer):
    turkish = Translator(
        TorchEngine([model]), tokenizer, CONFIG, directions=[Direction("tr", "en")]
    )
    assert turkish.language == "tr"
    assert Translator(TorchEngine([model]), tokenizer, CONFIG).language == "en"


def test_the_translation_that_minimum_risk_prefers_is_checked_for_loops(model, tokenizer):
    class Looping(TorchEngine):
        """Finds one good hypothesis and three that repeat themselves, unless n-grams may not repeat."""

        def search(self, requests, config, _):
            (good,), *loops = (
                tokenizer.encode_target([text])
                for text in ("red", *("big dog " * n for n in (6, 7, 8)))
            )
            found = [Hypothesis(-0.1, good), *(Hypothesis(-0.2, ids) for (ids,) in loops)]
            for request in requests:
                yield [found[: 1 if config.no_repeat_ngram else 4] for _ in request.sources]

    translator = Translator(
        Looping([model]), tokenizer, replace(CONFIG, mbr="chrf", max_extra_tokens=60)
    )
    (found,) = translator.translate(["red dog"])
    assert found.text == "red" and LOOP in found.flags
    translator = replace(translator, config=replace(translator.config, retry_loops=False))
    assert translator.translate(["red dog"])[0].text.startswith("big dog big dog"), (
        "the loops resemble each other"
    )


def test_a_loop_is_searched_again(model, tokenizer):
    endless = copy.deepcopy(model)
    endless.embedding.weight.data[EOS] *= -5
    config = replace(CONFIG, beam_size=1, max_extra_tokens=40)
    sources = ["red dog", "big big big"]
    looping, other = (
        Translator(TorchEngine([each]), tokenizer, config).translate_sentences(sources)
        for each in (endless, model)
    )
    assert all(LOOP in translation.flags for translation in looping)
    assert not any(LOOP in translation.flags for translation in other)
    for source, translation in zip(sources, looping, strict=True):
        trigrams = list(zip(*(translation.tokens[i:] for i in range(3)), strict=False))
        assert len(set(trigrams)) == len(trigrams) > 5
        assert not is_loop(source.split(), translation.tokens)


def test_wrong_words_have_less_confidence_than_right_ones(model, tokenizer):
    misspelt = [text.replace("o", "u", 1) if i % 2 else text for i, text in enumerate(SOURCES)]
    pairs = [
        Pair(read, german(text), Origin("", 1))
        for read, text in zip(misspelt, SOURCES, strict=True)
    ]
    confidence = calibrate(model, tokenizer, pairs, CONFIG)
    translator = Translator(TorchEngine([model]), tokenizer, CONFIG, confidence=confidence)
    targets = list(map(german, SOURCES[:50]))
    for source, target, scored in zip(
        SOURCES, targets, translator.score(SOURCES[:50], targets), strict=False
    ):
        right = {target[slice(*word.span)]: word.confidence for word in scored.words}
        assert [*right] == [*dict.fromkeys(target.split())] and all(
            0 <= value <= 1 for value in right.values()
        )
        wrong, replaced = (
            next(word for word in WORDS.values() if word not in right),
            target.split()[0],
        )
        (spoilt,) = translator.score([source], [target.replace(replaced, wrong, 1)])
        assert spoilt.words[0].confidence < right[replaced]
    assert confidence.words.area > 0.6


def test_confidence_tells_translations_from_detached_ones(model, tokenizer):
    pairs = [
        Pair(*texts, Origin("", 1))
        for texts in zip(SOURCES, [german(text) for text in SOURCES], strict=True)
    ]
    spoilt = [
        pair._replace(target=pairs[-i].target) if i % 3 == 0 else pair
        for i, pair in enumerate(pairs)
    ]
    confidence = calibrate(model, tokenizer, spoilt, CONFIG)
    unreliable, reliable = (replace(confidence, area=area) for area in (MIN_AREA - 0.01, MIN_AREA))
    translator = Translator(TorchEngine([model]), tokenizer, CONFIG, confidence=unreliable)
    assert not any(each.confidence for each in translator.translate(SOURCES[:5]))
    translator = Translator(TorchEngine([model]), tokenizer, CONFIG, confidence=reliable)
    translations = translator.translate(SOURCES[:100])
    assert all(0 <= each.confidence <= 1 for each in translations)
    assert sum(DETACHED in each.flags for each in translations) <= 5
    targets = [each.text for each in translations]
    scored = translator.score(SOURCES[:100], targets)
    assert [each.confidence for each in scored] == pytest.approx(
        [each.confidence for each in translations], abs=0.01
    )
    others = [
        (source, target)
        for source in SOURCES[:20]
        for target in targets[:20]
        if german(source) != target
    ]
    assert sum(each.detached for each in translator.score(*zip(*others, strict=True))) > 0.95 * len(
        others
    )
    plain = Translator(TorchEngine([model]), tokenizer, CONFIG).translate(SOURCES[:1])
    assert plain[0].confidence is None and plain[0].text == targets[0]
    assert calibrate(model, tokenizer, pairs[:50], CONFIG) is None


def test_a_model_that_translates_everything_alike_has_no_confidence(model, tokenizer):
    pairs = [Pair(text, german(text), Origin("", 1)) for text in SOURCES]
    alike = copy.deepcopy(model)
    *_, norm = (module for module in alike.modules() if isinstance(module, torch.nn.LayerNorm))
    (token, *_) = tokenizer.encode_target([german(SOURCES[0])])[0]
    norm.weight.data.zero_()
    norm.bias.data.copy_(alike.embedding.weight[token])
    assert calibrate(alike, tokenizer, pairs, CONFIG) is None


@pytest.mark.parametrize(
    "text",
    [
        "-",
        "***",
        "12.50",
        "2024-11-29",
        "+49 30 1234567",
        "https://x.example/a",
        "bob@x.example",
        "😀",
    ],
)
def test_a_text_without_words_is_copied(translator, text):
    texts = ["dog", text, "red house"]
    found = translator.translate(texts)
    assert found[1].text == text and found[1].flags == ()
    assert [found[0], found[2]] == translator.translate([texts[0], texts[2]])


def test_links_lead_to_the_words_as_the_user_wrote_them(translator):
    written = "\u200bdog  re\u00add"
    [plain] = translator.translate(["dog red"], align=True)
    [odd] = translator.translate([written], align=True)
    assert odd.text == plain.text
    words = {"dog": "dog", "red": "re\u00add"}
    assert [written[slice(*link.source)] for link in odd.links] == [
        words["dog red"[slice(*link.source)]] for link in plain.links
    ]


LANGUAGES = ("de", "en", "fr", "it")
DIRECTIONS = [Direction.parse(name) for name in ("de-en", "en-fr", "de-it", "it-fr", "de-fr")]
PHRASES = ["ka zu", "lo fe", "mi ga", "zu fe ka"]


@pytest.fixture(scope="module")
def several() -> Translator:
    """An untrained translator with several directions."""
    tokenizer = Tokenizer.train(PHRASES * 9, [], vocab_size=290, languages=LANGUAGES)
    model = small_and_lively(model_config(tokenizer))
    config = DecodeConfig(beam_size=3, max_extra_tokens=2)
    engine = TorchEngine([model])
    return Translator(engine, tokenizer, config, directions=DIRECTIONS, has_tags=True)


def texts_by(several: Translator, texts: list[str], *hops: str) -> list[str]:
    for hop in hops:
        direct = several.direct(Direction.parse(hop))
        texts = [each.text for each in direct.translate(texts)]
    return texts


def test_a_direction_is_chosen_by_its_codes(several):
    german = several.toward("de-AT", "en")
    assert (
        german.direction == Direction("de", "en") and german.language == "de" and not german.pivot
    )
    assert [each.text for each in german.translate(PHRASES)] == texts_by(several, PHRASES, "de-en")
    assert several.translate(PHRASES, source="de", target="en") == german.translate(PHRASES)
    assert several.translate(PHRASES, target="en") == german.translate(PHRASES)
    assert texts_by(several, PHRASES, "de-fr") != texts_by(several, PHRASES, "de-en")
    assert several.direction is None and several.language == "de"
    assert replace(several, directions=DIRECTIONS[:2]).language == "de", "that of the first"
    assert repr(several) == "<Translator: de-en, en-fr, de-it, it-fr, de-fr, torch, beam 3>"
    assert repr(german.with_beam_size(2)) == "<Translator: de-en, torch, beam 2>"
    with pytest.raises(UserError, match="The model has several directions: de-en"):
        several.translate(["ka"])
    with pytest.raises(UserError, match="The model has several directions: de-en"):
        several.require_direction()
    assert german.require_direction() == Direction("de", "en")
    one = replace(several, has_tags=False, directions=DIRECTIONS[1:2])
    assert (
        one.direction == one.require_direction() == Direction("en", "fr") and one.language == "en"
    )
    assert replace(several, has_tags=False, directions=()).language == "en"
    assert repr(replace(several, directions=())) == "<Translator: texts, torch, beam 3>"


def test_a_missing_or_a_better_direction_is_translated_through_a_pivot(several):
    missing = replace(several, directions=DIRECTIONS[:4])
    scores = Scores({"de-en": 9.0, "en-fr": 9.0, "de-it": 8.0, "it-fr": 8.0})
    for its, pivot in ((missing, "en"), (replace(missing, scores=scores), "en")):
        route = its.toward("de", "fr")
        assert (route.pivot, route.direction) == (pivot, Direction("de", "fr"))
        assert [hop.direction for hop in route.hops] == [
            Direction("de", pivot),
            Direction(pivot, "fr"),
        ]
    italian = replace(missing, scores=Scores({"de-it": 2.0, "it-fr": 2.0})).toward("de", "fr")
    expected = texts_by(several, PHRASES, "de-it", "it-fr")
    found = italian.translate(PHRASES, n_best=2, align=True)
    assert [each.text for each in found] == expected != texts_by(several, PHRASES, "de-en", "en-fr")
    assert [each.hops[0].text for each in found] == texts_by(several, PHRASES, "de-it")
    between = italian.hops[0].translate_sentences(PHRASES)
    last = italian.hops[1].translate_sentences([each.text for each in between])
    joined = [through(*pair) for pair in zip(between, last, strict=True)]
    assert italian.translate_sentences(PHRASES) == joined
    assert repr(italian) == "<Translator: de-fr through it, torch, beam 3>"
    narrow = italian.with_beam_size(1)
    assert [hop.config.beam_size for hop in narrow.hops] == [1, 1] and narrow.config.beam_size == 1
    assert italian.direct(Direction("de", "fr")).hops == ()
    with pytest.raises(
        UserError, match=r"does not translate de-fr directly.*directions: de-en, en-fr"
    ):
        italian.score(["ka"], ["zu"])
    routes = {"de-fr": {"direct": 10.0, "en": 12.0}, "fr-de": {"direct": 5.0, "en": 5.0}}
    measured = replace(several, scores=Scores({}, routes))
    assert measured.toward("de", "fr").pivot == "en"
    assert measured.toward("de", "fr").score(["ka"], ["zu"]) == several.direct(
        Direction("de", "fr")
    ).score(["ka"], ["zu"]), "the model has the direction"
    untrained = measured.toward("fr", "de")
    assert (untrained.direction, untrained.pivot) == (Direction("fr", "de"), "")
    with pytest.raises(UserError, match="does not translate from fr to de"):
        several.toward("fr", "de")


def test_pairs_are_translated_in_their_directions(several):
    names = ["de-fr", "de-en", "de-fr", "de-it"]
    pairs = [Pair(text, "", Origin("", 1), name) for text, name in zip(PHRASES, names, strict=True)]
    expected = [
        texts_by(several, [text], name)[0] for text, name in zip(PHRASES, names, strict=True)
    ]
    assert [each.text for each in several.translate_pairs(pairs)] == expected


def test_probabilities_by_hand(several):
    """The sum of the tokens' log-probabilities, for sources with tags; blank pairs have probability 1."""
    translator = several.direct(Direction("de", "en"))
    sources, targets = ["ka  zu", " ", "lo", "\ufeffmi ga", ""], ["zu", "", "zu fe ka", "", "fe"]
    found = translator.score(sources, targets)
    for (source, target), each in zip(zip(sources, targets, strict=True), found, strict=True):
        if not (source + target).strip():
            assert each == (0.0, 0, 0.0, None, False, ())
            continue
        [tag] = translator.tokenizer.tags
        plain = source.removeprefix("\ufeff")
        ids = translator.tokenizer.encode_source([plain])[0]
        assert not ids or ids[0] == tag
        [wanted] = translator.tokenizer.encode_target([target])
        [log_probs] = translator.engine.log_probs([ids], [wanted])
        assert each.log_prob == pytest.approx(sum(log_probs), abs=1e-4)
        assert each.num_tokens == len(wanted) + 1 == len(log_probs)
        penalty = ((5 + len(log_probs)) / 6) ** translator.config.length_penalty
        assert each.score == pytest.approx(sum(log_probs) / penalty, abs=1e-4)
    with pytest.raises(UserError, match=r"There are 2 sources but 1 targets\. Give one target"):
        translator.score(["a", "b"], ["c"])
    with pytest.raises(UserError, match="Text 2 contains a line break"):
        translator.score(["a", "b"], ["c", "d\ne"])


def test_only_a_model_with_placeholder_tokens_scores_masked_texts(model, tokenizer):
    """A pair whose placeholders do not match is scored as it is, and so is what is masked already."""
    tokens = PLACEHOLDER_TOKENS
    masking = Tokenizer.train(
        SOURCES, TARGETS, vocab_size=340 + len(tokens), placeholder_tokens=tokens
    )
    translator = own([build(model_config(masking))], masking, CONFIG)
    pairs = [("dog {0}", "Hund {0}"), ("dog {0}", "Hund"), ("dog", "Hund")]
    plain = translator.score(*zip(*pairs, strict=True), masked=True)
    [shared] = translator.score([f"dog {tokens[0]}"], [f"Hund {tokens[0]}"], masked=True)
    found = translator.score(*zip(*pairs, strict=True))
    assert [each.num_tokens for each in found] == [
        shared.num_tokens,
        *(each.num_tokens for each in plain[1:]),
    ]
    assert [each.log_prob for each in found] == pytest.approx(
        [shared.log_prob, *(each.log_prob for each in plain[1:])], abs=1e-4
    )
    assert shared.log_prob != pytest.approx(plain[0].log_prob)
    unmasked = own([model], tokenizer, CONFIG)
    assert unmasked.score(["dog {0}"], ["Hund {0}"]) == unmasked.score(
        ["dog {0}"], ["Hund {0}"], masked=True
    )


def test_symbols_that_the_model_can_not_translate_are_carried_over(translator):
    """Beside words, and in a list of texts that have none."""
    texts = ["red ♪ dog", "dog", "-", "red house"]
    symbol, *others = translator.translate(texts)
    assert "♪" in symbol.text
    assert [symbol] == translator.translate(texts[:1])
    assert others == translator.translate(texts[1:])


def test_a_title_is_no_sentence_in_capitals(model, tokenizer):
    translator = Translator(TorchEngine([model]), tokenizer, CONFIG)
    title, plain = translator.translate(["House Sees House Sees", "house sees house sees"])
    assert title.text == plain.text != plain.text.upper()


def test_capitals_are_those_of_the_target_language(model, tokenizer):
    texts = ["BIG DOG SEES", "big dog sees"]
    for target, letter in (("tr", "İ"), ("de", "I")):
        directions = [Direction("en", target)]
        translator = Translator(TorchEngine([model]), tokenizer, CONFIG, directions=directions)
        capitals, plain = translator.translate(texts)
        assert "i" in plain.text and capitals.text == plain.text.replace("i", letter).upper()


def test_alternatives_have_links_to_the_words_as_the_user_wrote_them(model, tokenizer):
    written = "\u200bdog  re\u00add"
    translator = Translator(TorchEngine([model]), tokenizer, CONFIG)
    [found] = translator.translate([written], n_best=3, align=True)
    assert len(found.alternatives) == 2
    for each in found.alternatives:
        words = {written[slice(*link.source)] for link in each.links}
        assert words and words <= {"dog", "re\u00add"}


def test_words_of_a_text_that_was_composed_have_no_confidence(model, tokenizer):
    """Their spans would not be those of the user's text."""
    figures = {"pairs": 9, "area": 0.9, "calibration_error": 0.1}
    of_words = Regression((0.0,) * 2, (1.0,) * 2, (1.0,) * 2, 0.5, **figures)
    fitted = {"means": (0.0,) * 3, "scales": (1.0,) * 3, "weights": (1.0,) * 3, "bias": 0.5}
    confidence = Confidence(**fitted, **figures, min_chrf=50, min_log_prob=-9, words=of_words)
    translator = replace(own([model], tokenizer, CONFIG), confidence=confidence)
    composed, apart, blank = translator.score(
        ["big dog", "big dog", ""], ["gr\u00f6\u00df Hund", "gro\u0308\u00df Hund", "  "]
    )
    assert [word.span for word in composed.words] == [(0, 4), (5, 9)] and apart.words == ()
    assert apart.log_prob == pytest.approx(composed.log_prob, abs=1e-4)
    assert blank == Scored(0.0, 0, 0.0)


@pytest.mark.parametrize(("max_length", "positions", "most"), [(2, None, 2), (2, 9, 2), (9, 4, 3)])
def test_long_sentences_are_cut_at_the_smaller_limit(max_length, positions, most, tokenizer):
    """That of the model applies always, that of the training to texts that are split into sentences."""
    config = model_config(tokenizer)
    if positions:
        config = replace(config, positions="learned", max_positions=positions)
    translator = replace(own([build(config)], tokenizer, CONFIG), max_length=max_length)
    text = "red dog sees big cat"
    assert translator.lengths([text]) == [5]
    split = translator.plan([text], TranslationOptions(sentences=True)).sentences
    assert len(split) > 1 and max(translator.lengths(split)) == most
    whole = translator.plan([text]).sentences
    assert (len(whole) > 1) == (positions == 4)


def test_only_texts_of_several_sentences_are_split_into_them(model, tokenizer):
    translator = own([model], tokenizer, CONFIG)
    text = "Red dog. Big cat."
    assert translator.plan([text]).sentences[0] == text
    split = translator.plan([text], TranslationOptions(sentences=True)).sentences
    assert {"Red dog.", "Big cat."} <= {*split} and text not in split


def test_a_space_and_a_tag_count_for_the_length_of_a_text(several):
    """A text of two bytes with four tokens is cut, where three are the limit."""
    config = replace(model_config(several.tokenizer), positions="learned", max_positions=4)
    engine = TorchEngine([build(config)])
    translator = replace(several, engine=engine).direct(Direction("de", "en"))
    assert translator.lengths(["kz", "ka"]) == [4, 2]
    long, short = translator.translate(["kz", "ka"])
    assert "split" in long.flags and "split" not in short.flags


def test_kinds_and_numbers_of_a_stream_reach_both_hops(several):
    route = several.through("en", Direction("de", "fr"))
    for translator in (several.direct(Direction("de", "en")), route):
        with pytest.raises(UserError, match="Text 9 contains a line break"):
            list(translator.translate_lines(["ka", "zu\nlo"], numbers=[5, 9]))
        with pytest.raises(UserError, match="Text 9 contains a line break"):
            translator.translate_sentences(["ka", "zu\nlo"], numbers=[5, 9])
        [markup] = translator.translate_lines(["ka <b>zu</b>"], kinds=[MARKUP_TEXT])
        assert markup.text.count("<b>") == markup.text.count("</b>") == 1


def test_a_wider_beam_has_more_alternatives(model, tokenizer):
    translator = own([model], tokenizer, CONFIG)
    [found] = translator.translate(["red house"], n_best=6, beam_size=6)
    assert len(found.alternatives) == 5 and translator.config == CONFIG
    assert translator.translate(["red house"], beam_size=4) == translator.translate(["red house"])
    for beam_size in (0, 1):
        with pytest.raises(UserError, match=rf"from 1 to decode.beam_size \({beam_size}\), not 2"):
            translator.translate(["red house"], n_best=2, beam_size=beam_size)


def test_a_model_without_tags_has_its_direction_by_name(model, tokenizer):
    translator = replace(own([model], tokenizer, CONFIG), directions=[Direction("en", "de")])
    expected = translator.translate(SOURCES[:3])
    assert translator.translate(SOURCES[:3], source="en-GB", target="de") == expected
    assert translator.toward("en").translate_sentences(SOURCES[:3]) == expected
    pairs = [Pair(text, "", Origin("", 1)) for text in SOURCES[:3]]
    assert translator.translate_pairs(pairs) == expected
    with pytest.raises(UserError, match="does not translate from de"):
        translator.translate(["Hund"], source="de")


def test_a_model_of_signs_translates_signs():
    """It knows no letters, so that texts without words are not copied."""
    sources = ["1 2 3", "12 31", "3 2 + 1"]
    tokenizer = Tokenizer.train(sources * 9, sources, vocab_size=275)
    assert not tokenizer.has_letters
    translator = own([small_and_lively(model_config(tokenizer))], tokenizer, CONFIG)
    assert all(each.tokens for each in translator.translate(["12", "1 + 2"]))


@pytest.mark.parametrize(
    "lines", [["♪ dog", "red\ncat"], ["dog", "♪ red\ncat"], ["-", "♪", "a\nb"]]
)
def test_errors_have_the_numbers_of_their_texts(lines, model, tokenizer):
    """Also if only some of the texts are split."""
    numbers = range(5, 5 + 2 * len(lines), 2)
    with pytest.raises(UserError, match=f"Text {numbers[-1]} contains a line break"):
        list(own([model], tokenizer, CONFIG).translate_lines(lines, numbers=numbers))
    narrow = own([model], tokenizer, replace(CONFIG, max_extra_tokens=0))
    terms = TranslationOptions(glossary=(Term("cat", "Hund Katze Haus"),))
    with pytest.raises(UserError, match=f"Text {numbers[-1]}: the terms of the glossary"):
        list(narrow.translate_lines([*lines[:-1], "cat"], terms, numbers=numbers))
