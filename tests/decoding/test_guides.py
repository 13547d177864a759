"""What guides a search: the translation of a similar text."""

from dataclasses import replace
from pathlib import Path

import pytest

from corpora import reverse_texts
from models import make_model
from transduce.config.schema import PLACEHOLDER_TOKENS
from transduce.decoding.loading import load
from transduce.decoding.plan import Plan
from transduce.decoding.translator import Translator
from transduce.decoding.types import Guide, MemoryMatch, Request, TranslationOptions
from transduce.tokens.vocabulary import MATCH_MARK
from transduce.wings.memories.nearest import helped_by

TEXTS = reverse_texts(12, seed=8)[0]
SIMILAR = [MemoryMatch(f"{text} ka", f"zu {text}", 0.7, "m:1") for text in TEXTS]
GUIDES = [Guide((unit,)) for unit in SIMILAR]


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = tmp_path_factory.mktemp("guides") / "model"
    options = {"decode.retry_loops": False}
    return load(make_model(folder, {}, marks=[MATCH_MARK]), options, engine="torch")


def test_the_model_reads_the_translation_of_a_similar_text_behind_the_mark(translator) -> None:
    vocabulary = translator.tokenizer.source
    for text, guide in zip(TEXTS, GUIDES, strict=True):
        [source], [match] = (
            vocabulary.encode([each]).lists() for each in (text, guide.similar[0].target)
        )
        assert translator.guided(source, guide, text) == [*source, vocabulary.match_mark, *match]
        assert translator.guided(source, Guide(), text) == source


def test_no_text_contains_the_mark(translator) -> None:
    mark = translator.tokenizer.source.match_mark
    assert mark and translator.tokenizer.source.tags == {}
    ids = translator.encode([f"ka {MATCH_MARK} lo", MATCH_MARK])
    assert mark not in [*ids[0], *ids[1]]
    assert translator.tokenizer.decode([[mark, *ids[0]]]) == [f"ka {MATCH_MARK} lo"]


def test_a_similar_text_is_left_out_where_it_does_not_fit(translator) -> None:
    [source], [match] = (translator.encode([each]) for each in (TEXTS[0], SIMILAR[0].target))
    size = len(source) + 1 + len(match)
    for limit, expected in ((size, size), (size - 1, len(source))):
        short = replace(translator, max_length=limit)
        assert len(short.guided(source, GUIDES[0], TEXTS[0])) == expected


def test_translations_are_those_of_the_longer_sources(translator) -> None:
    sources = translator.encode(TEXTS)
    inputs = list(map(translator.guided, sources, GUIDES, TEXTS))
    limits = list(map(translator.limit, sources))
    engine = translator.engine
    stepper = helped_by(translator.tokenizer, GUIDES, translator.max_tokens)
    request = Request(TEXTS, inputs, limits, stepper=stepper)
    [best] = engine.search([request], translator.config, 1)
    texts = translator.tokenizer.decode([hypotheses[0].tokens for hypotheses in best])
    found = translator.translate_sentences(TEXTS, guides=GUIDES)
    assert [each.text for each in found] == texts
    plain = translator.translate_sentences(TEXTS)
    assert sum(one.text != other.text for one, other in zip(found, plain, strict=True)) > 6
    some = [guide if i % 2 else Guide() for i, guide in enumerate(GUIDES)]
    mixed = translator.translate_sentences([*TEXTS, *TEXTS], guides=[*some, *GUIDES])
    for i, each in enumerate(mixed[: len(TEXTS)]):
        assert each.text == (found if i % 2 else plain)[i].text
    assert [each.text for each in mixed[len(TEXTS) :]] == texts


def test_words_are_linked_to_the_text_alone(translator) -> None:
    options = TranslationOptions(align=True)
    for text, each in zip(
        TEXTS, translator.translate_sentences(TEXTS, options, guides=GUIDES), strict=True
    ):
        assert each.links and all(link.source[1] <= len(text) for link in each.links)


def test_a_model_without_the_mark_reads_the_text_alone(tmp_path: Path) -> None:
    plain = load(make_model(tmp_path / "model", {}), engine="torch")
    assert not plain.tokenizer.source.match_mark
    for text, source, guide in zip(TEXTS, plain.encode(TEXTS), GUIDES, strict=True):
        assert plain.guided(source, guide, text) == source


def test_placeholders_of_a_similar_text_become_the_same_tokens() -> None:
    match = MemoryMatch("See {0} or %s.", "Siehe %s oder {0}.", 0.7, "m:1")
    plan = Plan(["Get {1} or {2} now."], guides=[Guide((match,))], placeholder_tokens=True)
    one, other = PLACEHOLDER_TOKENS[:2]
    assert plan.sentences == [f"Get {one} or {other} now.", "Get or now."]
    [similar] = plan.guides[0].similar
    assert similar.source == f"See {one} or {other}."
    assert similar.target == f"Siehe {other} oder {one}."
    assert plan.guides[1] == Guide()
    odd = match._replace(target="Siehe %s.")
    plan = Plan(["Get {1} now."], guides=[Guide((odd,))], placeholder_tokens=True)
    assert plan.guides == [Guide(), Guide()]
    kept = Plan(["Get {1} now."], guides=[Guide((match,))])
    assert kept.guides[0].similar == (match,)


def test_a_guide_belongs_to_its_text() -> None:
    texts = ["a dog", "a cat", "a dog"]
    matches = [MemoryMatch("x", str(i), 0.6, "m:1") for i in range(3)]
    plan = Plan(texts, guides=[Guide((match,)) for match in matches])
    targets = [guide.similar[0].target for guide in plan.guides]
    assert list(zip(plan.sentences, targets, strict=True)) == [
        ("a dog", "0"),
        ("a cat", "1"),
        ("a dog", "2"),
    ]
    several = Plan(["A dog. A cat."], "en", guides=[Guide((matches[0],))])
    assert several.sentences == ["A dog.", "A cat."]
    assert several.guides == [Guide(), Guide()], "the unit is similar to the whole text"
