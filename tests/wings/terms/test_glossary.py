"""Tests of transduce/wings/terms/glossary.py."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from terms import BOUNDARIES, CONFIG, CONSTRAINTS, EXAMPLES, PIECES, TERMS, TEXTS, Chance, text_of
from transduce.config.schema import BOS, EOS
from transduce.decoding.beam import beam_search
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import (
    TERM,
    Hypothesis,
    Match,
    Term,
    TranslationOptions,
)
from transduce.model.build import build
from transduce.system.errors import UserError
from transduce.tokens.imported_vocabulary import ImportedVocabulary
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.terms.constraints import MAX_HYPOTHESES, ConstraintSelector
from transduce.wings.terms.glossary import (
    Glossary,
    _boundaries,
    contains,
    read_glossary,
    segment,
    word_boundaries,
)

ODD = [
    "漢字",
    "かな",
    "„Hut“",
    "ét",
    "ß",
    "Haus-Tür",
    ".",
    "😀",
    "3,5 kg",
    "a\u2581b",
    "\u00a0x".strip(),
    "กา",
]


targets = st.one_of(
    st.sampled_from(
        sorted({word for each in EXAMPLES for word in each.german.rstrip(".?!").split()})
    ),
    st.sampled_from(ODD),
    st.sampled_from([" ".join(each.german.split()[:2]).rstrip(",") for each in EXAMPLES]),
    st.text("abHTä漢か .-„(", min_size=1, max_size=4).map(str.strip).filter(bool),
)


@given(
    asked=st.lists(st.lists(targets, max_size=3, unique=True), min_size=1, max_size=4),
    spare=st.integers(0, 6),
    beam_size=st.integers(1, 3),
    sharpness=st.sampled_from([0.5, 3.0, 10.0]),
)
def test_every_translation_holds_its_terms_and_batching_changes_nothing(
    tokenizer, asked, spare, beam_size, sharpness
):
    constraints = [[segment(tokenizer, target) for target in row] for row in asked]
    limits = [sum(len(each.segmentations[0]) for each in row) + spare for row in constraints]
    boundaries = word_boundaries(tokenizer.target)

    def search(places: list[int]) -> list[list[Hypothesis]]:
        return beam_search(
            Chance(places, tokenizer.target.size, sharpness),
            [limits[i] for i in places],
            beam_size=beam_size,
            selector=ConstraintSelector(
                [constraints[i] for i in places], boundaries, [limits[i] for i in places], beam_size
            ),
        )

    together = search(list(range(len(asked))))
    for i, hypotheses in enumerate(together):
        assert 1 <= len(hypotheses) <= beam_size
        assert [each.score for each in hypotheses] == sorted(
            (each.score for each in hypotheses), reverse=True
        )
        assert len({tuple(each.tokens) for each in hypotheses}) == len(hypotheses)
        for each, text in zip(
            hypotheses, tokenizer.decode([each.tokens for each in hypotheses]), strict=True
        ):
            assert len(each.tokens) <= limits[i]
            assert all(contains(text, target) for target in asked[i]), (text, asked[i])
        assert search([i])[0] == hypotheses


def test_many_terms_have_few_hypotheses(tokenizer):
    wanted = [
        f"{word} {number}" for number, word in enumerate(["Hund", "Katze", "漢字", "Tür"] * 5)
    ]
    constraints = [segment(tokenizer, target) for target in wanted]
    limit = sum(len(each.segmentations[0]) for each in constraints) + 3
    selector = ConstraintSelector([constraints], word_boundaries(tokenizer.target), [limit], 4)
    assert selector.beam_size == MAX_HYPOTHESES < 4 * len(wanted)
    [found] = beam_search(
        Chance([1], tokenizer.target.size), [limit], beam_size=4, selector=selector
    )
    assert found and all(
        contains(text, target) for text in tokenizer.decode([found[0].tokens]) for target in wanted
    )


def test_a_term_does_not_end_inside_a_word():
    """The most probable continuation of "a" is "b", and of "ab" the end; "a" is wanted."""

    class Joining(Chance):
        def log_probs(self, row: tuple[int, ...]) -> Tensor:
            likely = 4 if row[-1] == BOS else 5 if row[-1] == 4 else EOS
            return torch.full((len(PIECES),), -5.0).index_fill(0, torch.tensor([likely]), -0.1)

    def best(*asked: str) -> str:
        selector = ConstraintSelector([[CONSTRAINTS[each] for each in asked]], BOUNDARIES, [6], 4)
        return text_of(
            beam_search(Joining([0], len(PIECES)), [6], beam_size=4, selector=selector)[0][0].tokens
        )

    assert best() == "ab"
    assert best("ab") == "ab"
    assert contains(best("a"), "a") and best("a") != "ab"


@pytest.mark.parametrize(
    ("terms", "text", "expected"),
    [
        ([("dog", "Hund")], "The DOG's dogs", ["Hund"]),
        ([("dog", "Hund")], "hotdog doghouse dog1 do g", []),
        ([("Apple", "Apple")], "an apple", []),
        ([("Apple", "Apple")], "Apple's", ["Apple"]),
        ([("apple", "Apfel"), ("Apple", "Apple")], "Apple apple", ["Apple", "Apfel"]),
        ([("house", "Haus"), ("white house", "Weißes Haus")], "white  house", ["Weißes Haus"]),
        (
            [("house", "Haus"), ("white house", "Weißes Haus")],
            "White house, house",
            ["Weißes Haus", "Haus"],
        ),
        ([("house", "Haus"), ("house", "Heim")], "house", ["Heim"]),
        (
            [("new york", "NY"), ("york city hall", "Rathaus")],
            "New York City Hall, New York",
            ["Rathaus", "NY"],
        ),
        ([("straße", "street")], "STRASSE", ["street"]),
        ([("e-mail", "Mail"), ("U.S.", "USA")], "E-Mail to the U.S. now", ["Mail", "USA"]),
        ([("漢字", "kanji")], "この漢字は", ["kanji"]),
        ([("user's guide", "x"), ("l’œuf", "egg")], "the user’s guide, l'œuf", ["x", "egg"]),
        ([("cafe", "x")], "cafe\u0301", []),
        (
            [("café", "x"), ("שלום", "y")],
            "\u200fשלום\u200f cafe\u0301 \u2066ca\u00adfé\u2069",
            ["y", "x", "x"],
        ),
        ([("\u200f", "x")], "\u200e dog", []),
        ([], "dog", []),
        ([("dog", "Hund")], "", []),
    ],
)
def test_where_terms_are_found(terms, text, expected):
    assert [
        match.target for match in Glossary([Term(*each) for each in terms]).matches(text)
    ] == expected


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("white  house, house", [("white  house", "W"), ("house", "H")]),
        ("house house", [("house", "H"), ("house", "H")]),
        ("The white house white house", [("white house", "W"), ("white house", "W")]),
        ("new york city hall house", [("york city hall", "R"), ("house", "H")]),
        ("dog's house", [("dog's", "D"), ("house", "H")]),
    ],
)
def test_terms_have_the_spans_of_their_words(text, spans):
    terms = {"house": "H", "white house": "W", "new york": "N", "york city hall": "R", "dog's": "D"}
    found = Glossary([Term(*each) for each in terms.items()]).matches(text)
    assert [(text[slice(*match.span)], match.target) for match in found] == spans
    assert [match.span for match in found] == sorted({match.span for match in found})


@pytest.mark.parametrize(
    ("piece", "first", "opens"),
    [
        ("\u2581Haus", "space", False),
        ("Haus", "letter", False),
        ("\u0301", "mark", False),
        ("漢", "unspaced", False),
        ("(", "sign", True),
        ("a(", "letter", True),
        ("„", "sign", True),
        ("–", "sign", True),
        ("/", "sign", True),
        ("«", "sign", True),
        ("a/", "letter", True),
        ("«a", "sign", False),
        (")", "sign", False),
        (".", "sign", False),
        ("<0x41>", "letter", False),
        ("<0x28>", "sign", True),
        ("<0x20>", "space", False),
        ("<0x7F>", "space", False),
        ("<0x80>", "mark", False),
        ("<0xE3>", "mark", False),
        ("<0xE4>", "unspaced", False),
        ("<0xE9>", "unspaced", False),
        ("<0xEA>", "mark", False),
        ("<0xFF>", "mark", False),
        ("<0xABC>", "sign", False),
        ("a0xAB>", "letter", False),
        ("<0xAB-", "sign", True),
    ],
)
def test_the_boundaries_of_pieces(piece, first, opens):
    found = _boundaries(piece)
    assert found == (first, opens)


def test_a_constraint_has_its_spellings_after_a_space_and_without_one(tokenizer):
    [spaced] = tokenizer.encode_target(["Hund, 漢"])
    behind = tokenizer.target.encode_behind("Hund, 漢")
    found = segment(tokenizer, "Hund, 漢")
    assert found == ("Hund, 漢", (tuple(spaced), tuple(behind)), "letter", "unspaced")
    assert spaced != behind
    pieces = tokenizer.target.all_pieces()
    imported = ImportedVocabulary(tokenizer.target.model, pieces)
    one = segment(Tokenizer(imported), "Hund")
    assert one.segmentations == (tuple(tokenizer.encode_target(["Hund"])[0]),)
    fewer = ImportedVocabulary(tokenizer.target.model, pieces[:260])
    with pytest.raises(UserError, match="vocabulary can't spell the term Hund"):
        segment(Tokenizer(fewer), "Hund")


def test_a_longer_term_does_not_match_at_the_end_of_a_text():
    glossary = Glossary([Term("a dog", "x"), Term("a dog runs", "y")])
    assert glossary.matches("see a dog") == [Match((4, 9), "x")]


def test_terms_of_turkish_have_two_letters_i():
    glossary = Glossary(
        [Term("ilaç", "drug"), Term("sinir", "nerve"), Term("sınır", "border")], "tr"
    )
    assert [match.target for match in glossary.matches("İlaç, SINIR")] == ["drug", "border"]


@pytest.mark.parametrize(
    ("text", "target", "expected"),
    [
        ("Das Haus.", "Haus", True),
        ("„Haus“-Tür", "Haus", True),
        ("Das Hausboot", "Haus", False),
        ("Das haus", "Haus", False),
        ("das rote Haus", "rote Haus", True),
        ("das rote  Haus", "rote Haus", False),
        ("cafe\u0301", "cafe", False),
        ("この漢字は", "漢字", True),
        ("a.b", ".", True),
        ("", "a", False),
        ("", "\x7f", False),
    ],
)
def test_whether_a_text_holds_a_term(text, target, expected):
    assert contains(text, target) == expected


def test_mistakes_in_glossaries_are_named(tmp_path):
    file = tmp_path / "terms.tsv"
    file.write_text("dog\tHund\n\ncat\tKatze\tnoun\n", encoding="utf-8")
    assert read_glossary(str(file), ("en", "de")) == [Term("dog", "Hund"), Term("cat", "Katze")]
    file.write_text(
        "# Glossary in tab-separated format -*- coding: utf-8 -*-\ndog\tHund\t\n", encoding="utf-8"
    )
    assert read_glossary(str(file), ("en", "de")) == [Term("dog", "Hund")]  # OmegaT's
    file.write_text("dog\tHund\n \t \n", encoding="utf-8")
    assert read_glossary(str(file), ("en", "de")) == [Term("dog", "Hund")]
    for line in ("cat\t ", " \tKatze", "cat\t", "\tKatze"):
        file.write_text(f"dog\tHund\n{line}\n", encoding="utf-8")
        with pytest.raises(UserError, match=r"terms.tsv:2: expected a source term and its transl"):
            read_glossary(str(file), ("en", "de"))
    file.write_text("\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"terms.tsv has no terms\. Write one in each line of a"):
        read_glossary(str(file), ("en", "de"))
    for term in (
        Term("", "x"),
        Term("x", " "),
        Term("x", "a\nb"),
        Term("\x7f", "x"),
        Term("x", "\x01"),
    ):
        with pytest.raises(UserError, match="Term 2 of the glossary"):
            Glossary([Term("dog", "Hund"), term])


TERMBASE = """<tmx version="1.4"><header srclang="en"/><body><tu>
<tuv xml:lang="en"><seg>dog</seg></tuv><tuv xml:lang="de"><seg>Hund</seg></tuv><tuv xml:lang="fr"><seg>chien</seg></tuv>
</tu></body></tmx>"""


@pytest.mark.parametrize(
    ("direction", "term"), [("en de", "dog Hund"), ("de en", "Hund dog"), ("fr de", "chien Hund")]
)
def test_a_termbase_is_read_in_the_direction_of_the_translation(tmp_path, direction, term):
    (tmp_path / "terms.tmx").write_text(TERMBASE)
    (tmp_path / "terms.jsonl").write_text('{"en": "dog", "fr": "chien", "de": "Hund"}\n')
    for name in ("terms.tmx", "terms.jsonl"):
        assert read_glossary(str(tmp_path / name), tuple(direction.split())) == [
            Term(*term.split())
        ]


def test_translations_hold_the_terms_of_their_texts(model, tokenizer):
    translator, glossary = Translator(TorchEngine([model]), tokenizer, CONFIG), Glossary(TERMS)
    free = translator.translate(TEXTS, n_best=3)
    assert translator.translate(TEXTS, n_best=3, glossary=[]) == free
    found = translator.translate(TEXTS, n_best=3, glossary=TERMS)
    changed = 0
    for text, plain, best in zip(TEXTS, free, found, strict=True):
        asked = [match.target for match in glossary.matches(text)]
        for each in (best, *best.alternatives):
            assert (TERM in each.flags) == (
                not all(contains(each.text, target) for target in asked)
            )
        if TERM in best.flags:
            assert replace(plain, flags=(), alternatives=()) == replace(
                best, flags=(), alternatives=()
            )
        scores = [each.score for each in (best, *best.alternatives)]
        assert scores == sorted(scores, reverse=True)
        changed += plain.text != best.text
        assert asked or plain == best
    assert changed >= 4
    assert found[5] == found[-1]
    assert (
        list(translator.translate_lines(TEXTS, TranslationOptions(n_best=3, glossary=tuple(TERMS))))
        == found
    )
    for text, best in zip(TEXTS, found, strict=True):
        [alone] = translator.translate([text], n_best=3, glossary=TERMS)
        assert (alone.text, alone.tokens) == (best.text, best.tokens)
        assert alone.score == pytest.approx(best.score, abs=1e-4)


def test_terms_in_the_best_translation_change_nothing(model, tokenizer):
    translator = Translator(TorchEngine([model]), tokenizer, CONFIG)
    for text, plain in zip(TEXTS, translator.translate(TEXTS), strict=True):
        words = [word for word in plain.text.split() if contains(plain.text, word)]
        for word in words[:3]:
            [found] = translator.translate([text], glossary=[Term(text.split()[0], word)])
            assert (found.text, found.tokens) == (plain.text, plain.tokens)


def test_terms_work_with_links_and_ensembles(model, config, tokenizer):
    other = build(replace(config, d_model=16), seed=3)
    translator = Translator(TorchEngine([model, other]), tokenizer, CONFIG)
    [found] = translator.translate(["The dog sleeps."], glossary=TERMS, align=True)
    linked = {found.text[begin:end] for _, (begin, end), _ in found.links}
    assert "Rüde" in linked and contains(found.text, "der")
