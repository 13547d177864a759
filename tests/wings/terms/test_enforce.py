"""A sentence whose translation lacks a term is searched again, and keeps its translation if this does not help."""

from types import SimpleNamespace

import pytest

from terms import CONFIG, EXAMPLES, TERMS
from transduce.config.schema import ModelConfig
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import (
    TERM,
    Constraints,
    Hypothesis,
    Match,
    Request,
    Sentences,
    Term,
)
from transduce.model.build import build
from transduce.system.errors import UserError
from transduce.wings.terms import enforce, searching
from transduce.wings.terms.constraints import ConstraintSelector
from transduce.wings.terms.glossary import Constraint, Glossary, contains, segment

SIZES = {
    "d_model": 32,
    "d_ff": 64,
    "num_heads": 4,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
}


def test_a_sentence_has_the_terms_of_the_form_that_holds_more():
    """Of the rewritten sentence and of the sentence as the user wrote it; of equally many, of the rewritten one."""
    glossary = Glossary([Term("dog", "Hund"), Term("DOG", "Köter"), Term("Cat", "Katze")])
    texts = ["the dog", "a cat", "dog and cat", "none", "dog dog"]
    originals = ["THE DOG", "A Cat", "DOG and Cat", "NONE", "DOG"]
    hund, katze = Match((4, 7), "Hund"), Match((2, 5), "Katze")
    assert searching._matches(glossary, texts, originals) == {
        0: [hund],
        1: [katze],
        2: [Match((0, 3), "Köter"), Match((8, 11), "Katze")],
        4: [Match((0, 3), "Hund"), hund],
    }


def test_of_two_lists_the_best_distinct_hypotheses_are_kept():
    some = [Hypothesis(-1.0, [1]), Hypothesis(-3.0, [2])]
    others = [Hypothesis(-2.0, [3]), Hypothesis(-1.5, [1])]
    assert enforce._merged(some, others, 9) == [some[0], others[0], some[1]]
    assert enforce._merged(some, others, 2) == [some[0], others[0]]
    assert enforce._merged([], others, 1) == [others[1]]


def test_a_search_has_the_terms_and_the_forbidden_tokens_of_each_sentence(model, tokenizer):
    """The results keep the sentences' indices, whatever sentences share a request."""
    requests: list[Request] = []
    asked: list[Constraints] = []

    class Engine(TorchEngine):
        def search(self, some, config, n_best):
            requests.extend(some)
            return super().search(some, config, n_best)

    class Searcher(Translator):
        def search(self, engine, sentences, n_best, constraints=None):
            asked.append(constraints)
            return super().search(engine, sentences, n_best, constraints) if engine else [[]]

    translator = Searcher(Engine([model]), tokenizer, CONFIG)
    texts = [each.english for each in EXAMPLES[:4]]
    sentences = Sentences(texts, tokenizer.encode_source(texts), [1, 2, 3, 4])
    sees, cat = (segment(tokenizer, target) for target in ("sieht", "rote Katze"))
    long = segment(tokenizer, "ein sehr langer Name für einen Hund " * 3 + "und eine Katze")
    constraints = {3: [sees], 0: [sees, cat], 2: [cat]}
    banned = {0: [(260, 261)], 3: []}
    found = enforce._search(translator, translator.engine, sentences, constraints, banned, 2)
    assert [*found] == [3, 0, 2] and all(1 <= len(best) <= 2 for best in found.values())
    for i, best in found.items():
        for text in tokenizer.decode([each.tokens for each in best]):
            assert all(contains(text, term.text) for term in constraints[i])
    for request in requests:
        selector = request.selector(3)
        assert isinstance(selector, ConstraintSelector)
        for text, limit, its in zip(request.texts, request.limits, selector.sentences, strict=True):
            i = texts.index(text)
            assert (its.constraints, its.forbidden) == (constraints[i], banned.get(i, ()))
            assert (its.limit, its.beam_size) == (limit, 3)
    # As many beams as tokens after a space, and one; at most 64 hypotheses, with the three of a plain beam.
    sizes = [len(each.segmentations[0]) for each in (sees, cat, long)]
    assert asked[0].beams == [1 + sizes[0], 1 + sizes[0] + sizes[1], 1 + sizes[1]]
    assert sizes[2] > 64 // 3 and len({*map(len, sees.segmentations)}) == 2
    for beam_size, beams in ((3, 21), (100, 1)):
        wider = translator.with_beam_size(beam_size)
        enforce._search(wider, None, sentences, {0: [long]}, {}, 1)
        assert asked[-1].beams == [beams]


def test_what_is_free_of_rivals_is_found_by_the_second_search(monkeypatch):
    """The second sentence has no rival to forbid, the third has no result, the fourth has a rival again."""
    rivals = {0: {"Pudel": "Hund"}, 1: {}, 2: {"Pudel": "Hund"}, 3: {"Pudel": "Hund"}}
    found = {0: ["best", "other"], 2: [], 3: ["rival", "free"]}
    asked = []

    def search(*arguments):
        asked.append(arguments[3:])
        return found

    def find_rivals(_translator, _engine, _sentences, best, _matches):
        assert best == {0: "best", 3: "rival"}
        return {0: {}, 3: {"Pudel": "Köter"}}

    monkeypatch.setattr(enforce, "_search", search)
    monkeypatch.setattr(enforce, "find_rivals", find_rivals)
    monkeypatch.setattr(
        enforce, "forbidden", lambda _, its, terms: [(*its.values(), terms)] if its else []
    )
    translator = SimpleNamespace(tokenizer=None)
    terms = {i: f"terms {i}" for i in range(5)}
    again = enforce._without_rivals(translator, None, None, {}, terms, rivals, 2)
    assert again == {0: ["best", "other"]}
    wanted = {i: terms[i] for i in (0, 2, 3)}
    banned = {i: [("Hund", terms[i])] for i in (0, 2, 3)} | {1: []}
    assert asked == [(wanted, banned, 2)]


DOG = "A dog runs."
BOTH = "A dog sees a cat."
# Source, free translations, result of the first and of the second search, expected translation, whether it is missed.
ENFORCED = [
    (
        DOG,
        ["Ein Hund läuft."],
        "Ein Hund läuft. Pudel.",
        "Der Pudel läuft.",
        "Der Pudel läuft.",
        False,
    ),
    (DOG, ["Ein Hund läuft."], "Ein Hund läuft. Pudel.", "Hund Pudel.", "Ein Hund läuft.", True),
    (DOG, ["Ein Hund läuft."], "Ein Pudel läuft.", None, "Ein Pudel läuft.", False),
    (DOG, ["Ein Pudel läuft."], None, None, "Ein Pudel läuft.", False),
    (DOG, ["Ein Tier läuft."], "Ein Tier läuft. Pudel.", None, "Ein Tier läuft.", True),
    (
        BOTH,
        ["Hund sieht Katze."],
        "Pudel sieht Katze Kater.",
        "Pudel sieht Kater.",
        "Pudel sieht Kater.",
        False,
    ),
    (DOG, ["Ein Pudel läuft.", "Ein Hund."], "Hund Pudel.", None, "Ein Pudel läuft.", False),
    ("A cat runs?", ["Katze?"], "Kater?", None, "Kater?", False),
    ("A bird.", ["Vogel."], None, None, "Vogel.", False),
]


def test_a_term_replaces_its_rival_or_the_free_translation_is_kept(tokenizer, monkeypatch):
    def hypotheses(*texts, score=-1.0):
        return [Hypothesis(score - i, row) for i, row in enumerate(tokenizer.encode_target(texts))]

    def text_of(hypothesis):
        return tokenizer.decode([hypothesis.tokens])[0]

    def search(_translator, _engine, _sentences, constraints, banned, _n_best):
        return {
            i: hypotheses(ENFORCED[i][3 if i in banned else 2], score=-1.5) for i in constraints
        }

    def find_rivals(_translator, _engine, _sentences, some, _matches):
        rivals = {"Pudel": "Hund", "Kater": "Katze"}
        return {
            i: {term: rival for term, rival in rivals.items() if rival in text_of(each)}
            for i, each in some.items()
        }

    monkeypatch.setattr(enforce, "_search", search)
    monkeypatch.setattr(enforce, "find_rivals", find_rivals)
    engine = SimpleNamespace(supports={"attention"})
    translator = SimpleNamespace(
        tokenizer=tokenizer,
        limit=lambda _: 99,
        engine_for=lambda _: engine,
        by_risk=lambda its: its,
    )
    texts = [each[0] for each in ENFORCED]
    sentences = Sentences(texts, tokenizer.encode_source(texts), [*range(len(texts))])
    free = [hypotheses(*each[1]) for each in ENFORCED]
    glossary = Glossary([Term("dog", "Pudel"), Term("cat", "Kater")], "en")
    matches = searching._matches(glossary, texts, texts)
    found = enforce.enforce(translator, matches, sentences, free, 2)
    assert [text_of(best[0]) for best in found] == [each[4] for each in ENFORCED]
    missed = [
        not all(contains(text_of(found[i][0]), match.target) for match in matches.get(i, ()))
        for i in range(len(texts))
    ]
    assert missed == [each[5] for each in ENFORCED]
    assert [text_of(each) for each in found[6]] == ["Ein Pudel läuft.", "Hund Pudel."]
    assert found[8] is free[8] and found[3] is free[3]
    assert enforce.enforce(translator, {}, sentences, free, 1) is free


def test_a_model_without_attention_obeys_a_glossary(tokenizer):
    """It can't tell terms that were only added."""
    config = ModelConfig(kind="bytenet", vocab_size=tokenizer.target.size, **SIZES)
    translator = Translator(TorchEngine([build(config)]), tokenizer, CONFIG)
    assert "attention" not in translator.engine.supports
    [found] = translator.translate(["The dog sleeps."], glossary=TERMS)
    assert all(contains(found.text, term) for term in ("Rüde", "der", "漢字"))
    assert TERM not in found.flags


def test_only_sentences_whose_term_was_added_are_searched_again(monkeypatch):
    """The term of the first sentence stands beside its rival; that of the second replaced it."""
    texts = {(1,): "Ein Hund Köter läuft.", (2,): "Ein Hund läuft.", (3,): "Ein Köter läuft."}
    decode = SimpleNamespace(decode=lambda rows: [texts[row] for row in rows])
    rivals = {0: {"Köter": "Hund"}, 1: {"Köter": "Hund"}}
    monkeypatch.setattr(enforce, "find_rivals", lambda *_: rivals)
    translator = SimpleNamespace(tokenizer=decode)
    matches = {i: [SimpleNamespace(target="Köter")] for i in (0, 1)}
    free = {i: SimpleNamespace(tokens=(2,)) for i in (0, 1)}
    found = {i: [SimpleNamespace(tokens=(at,))] for i, at in ((0, 1), (1, 3))}
    assert enforce._added(translator, None, None, matches, free, found) == {0: rivals[0]}


def test_terms_are_no_longer_than_a_translation():
    """Two terms have three tokens behind a space; their other spellings do not count."""
    terms = [
        Constraint(text, spelt, "letter", "letter")
        for text, spelt in (("ab", ((1, 2), (3,))), ("c", ((4,), (5, 6, 7))))
    ]
    sentences = SimpleNamespace(sources=[[1]], numbers=[5])
    for limit, most, hint in (
        (3, None, None),
        (2, None, "Shorten the terms or raise decode.max_extra_tokens."),
        (2, 3, "Shorten the terms or raise decode.max_extra_tokens."),
        (2, 2, "Shorten the terms."),
    ):
        translator = SimpleNamespace(limit=lambda _, limit=limit: limit, max_tokens=most)
        if hint:
            with pytest.raises(UserError, match=r"Text 5: the terms .* \(ab, c\)") as error:
                enforce._check_limits(translator, sentences, {0: terms})
            assert str(error.value).endswith(f"of the translation. {hint}")
        else:
            enforce._check_limits(translator, sentences, {0: terms})
