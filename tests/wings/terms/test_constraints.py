"""The laws of a glossary: every translation holds its terms, and nothing else changes."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from command_line import run
from corpora import reverse_texts
from models import make_model, publish_model
from transduce.config.schema import BOS, EOS, UNK, DecodeConfig, ModelConfig, RunConfig
from transduce.decoding.beam import beam_search
from transduce.decoding.loading import load
from transduce.decoding.repetition import is_loop
from transduce.decoding.searcher import Fallback
from transduce.decoding.torch_engine import TorchEngine
from transduce.decoding.translator import Translator
from transduce.decoding.types import (
    LOOP,
    TERM,
    Hypothesis,
    Link,
    Term,
    Translation,
    TranslationOptions,
    length_penalty,
)
from transduce.decoding.words import kind
from transduce.model.build import build
from transduce.model.seq2seq import Seq2Seq
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.ct2.convert import convert
from transduce.wings.ct2.engine import CTranslate2Engine
from transduce.wings.phrasebook.examples import examples
from transduce.wings.terms.constraints import MAX_HYPOTHESES, ConstraintSelector
from transduce.wings.terms.glossary import (
    Constraint,
    Glossary,
    Match,
    WordBoundaries,
    contains,
    read_glossary,
    segment,
    word_boundaries,
)
from transduce.wings.terms.placement import _rivals, forbidden, is_added

EXAMPLES = list(examples("train", 300))
CONFIG = DecodeConfig(beam_size=3, max_extra_tokens=8, max_tokens=256)
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


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    texts = [each.german for each in EXAMPLES] + [
        "漢字。かな「漢」" * 3,
        "„Der Hut“ (das Haus) 3,5 kg",
    ] * 5
    return Tokenizer.train([each.english for each in EXAMPLES], texts, vocab_size=480)


class Chance:
    """A stepper: any history of any sentence has random, but always the same, probabilities of what follows."""

    device = torch.device("cpu")

    def __init__(self, sentences: Sequence[int], vocab_size: int, sharpness: float = 3.0):
        self.sentences, self.vocab_size, self.sharpness = list(sentences), vocab_size, sharpness
        self.rows: list[tuple[int, ...]] = [(each,) for each in sentences]

    def __call__(self, tokens: Tensor) -> Tensor:
        self.rows = [(*row, token) for row, token in zip(self.rows, tokens.tolist(), strict=True)]
        return torch.stack([self.log_probs(row) for row in self.rows])

    def log_probs(self, row: tuple[int, ...]) -> Tensor:
        generator = torch.Generator().manual_seed(hash(row) % 2**40)
        return (self.sharpness * torch.randn(self.vocab_size, generator=generator)).log_softmax(
            dim=-1
        )

    def reorder(self, rows: Tensor, _: Tensor | None = None) -> None:
        self.rows = [self.rows[row] for row in rows.tolist()]


# -- search -----------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("beam_size", [1, 3])
def test_without_terms_the_best_is_that_of_the_free_search(tokenizer, beam_size):
    boundaries, limits = word_boundaries(tokenizer.target), [6, 9, 4]
    free = beam_search(Chance([1, 2, 3], tokenizer.target.size), limits, beam_size=beam_size)
    selector = ConstraintSelector([[], [], []], boundaries, limits, beam_size)
    assert selector.beam_size == beam_size
    found = beam_search(
        Chance([1, 2, 3], tokenizer.target.size), limits, beam_size=beam_size, selector=selector
    )
    assert [each[0].score >= other[0].score for each, other in zip(found, free, strict=True)] == [
        True
    ] * 3


PIECES = ["<pad>", "<s>", "</s>", "<unk>", "\u2581a", "b", ".", "\u2581"]
BOUNDARIES = WordBoundaries(
    tuple(kind(piece.replace("\u2581", " ")[0]) for piece in PIECES), opens=(False,) * len(PIECES)
)
CONSTRAINTS = {
    "a": Constraint("a", ((4,),), "letter", "letter"),
    "ab": Constraint("ab", ((4, 5),), "letter", "letter"),
    ".": Constraint(".", ((7, 6), (6,)), "sign", "sign"),
    "a .": Constraint("a .", ((4, 7, 6),), "letter", "sign"),
}


def text_of(tokens: Sequence[int]) -> str:
    return "".join(PIECES[token] for token in tokens).replace("\u2581", " ").removeprefix(" ")


@pytest.mark.parametrize("alpha", [0.0, 0.6])
@pytest.mark.parametrize(
    ("asked", "forbidden"),
    [
        *((asked, []) for asked in (["a"], ["ab"], ["."], ["a", "ab"], ["ab", "."], ["a ."])),
        (["."], [(4,)]),
        (["ab"], [(6,), (5, 5)]),
        (["a"], [(4, 5), (7, 7, 6)]),
    ],
)
def test_a_wide_beam_is_exhaustive(asked, forbidden, alpha):
    limit, stepper, ranking = 5, Chance([0], len(PIECES)), []
    for length in range(limit + 1):
        for tokens in itertools.product(range(UNK + 1, len(PIECES)), repeat=length):
            stretches = {tokens[i:j] for i, j in itertools.combinations(range(length + 1), 2)}
            if all(contains(text_of(tokens), target) for target in asked) and not stretches & set(
                forbidden
            ):
                rows = [(0, BOS, *tokens[:n]) for n in range(length + 1)]
                steps = zip(rows, (*tokens, EOS), strict=True)
                total = sum(stepper.log_probs(row)[token].item() for row, token in steps)
                ranking.append(Hypothesis(total / length_penalty(length + 1, alpha), list(tokens)))
    ranking.sort(reverse=True)
    constraints = [[CONSTRAINTS[target] for target in asked]]
    selector = ConstraintSelector(constraints, BOUNDARIES, [limit], 700, [forbidden])
    [found] = beam_search(
        stepper, [limit], beam_size=700, length_penalty=alpha, n_best=10, selector=selector
    )
    assert [each.tokens for each in found] == [each.tokens for each in ranking[:10]]
    assert [each.score for each in found] == pytest.approx(
        [each.score for each in ranking[:10]], abs=1e-4
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


# -- glossaries -------------------------------------------------------------------------------------------


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
        ([], "dog", []),
        ([("dog", "Hund")], "", []),
    ],
)
def test_where_terms_are_found(terms, text, expected):
    assert [
        match.target for match in Glossary([Term(*each) for each in terms]).matches(text)
    ] == expected


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
    file.write_text("dog\tHund\ncat\t \n", encoding="utf-8")
    with pytest.raises(UserError, match=r"terms.tsv:2: expected a source term and its translation"):
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


# -- translating ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def config(tokenizer) -> ModelConfig:
    return ModelConfig(
        vocab_size=tokenizer.target.size,
        d_model=32,
        d_ff=64,
        num_heads=4,
        num_encoder_layers=1,
        num_decoder_layers=1,
    )


@pytest.fixture(scope="module")
def model(config) -> Seq2Seq:
    model, generator = build(config), torch.Generator().manual_seed(0)
    for weight in model.parameters():
        weight.data.mul_(1.6).add_(torch.randn(weight.shape, generator=generator), alpha=0.1)
    return model.eval()


TEXTS = [
    "",
    *(each.english for each in EXAMPLES[:4]),
    "The dog sleeps.",
    " ",
    "A dog and a cat.",
    "The dog sleeps.",
]
TERMS = [Term("dog", "Rüde"), Term("the", "der"), Term("cat", "rote Katze"), Term("sleeps", "漢字")]


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


def test_a_term_may_have_the_capitals_of_a_sentence_in_capitals(model, tokenizer):
    translator = Translator(TorchEngine([model]), tokenizer, CONFIG)
    texts = ["THE DOG SLEEPS", "The Dog Sleeps By The Cat"]
    for term in (Term("DOG", "Rüde"), Term("Dog", "Rüde"), Term("dog", "Rüde")):
        for text, found in zip(texts, translator.translate(texts, glossary=[term]), strict=True):
            asked = term.source in (*text.split(), "dog")
            assert ("rüde" in found.text.lower() or TERM in found.flags) == asked


def test_a_term_may_repeat_tokens(model, tokenizer):
    translator = Translator(TorchEngine([model]), tokenizer, replace(CONFIG, no_repeat_ngram=1))
    [found] = translator.translate(["The dog sleeps."], glossary=[Term("dog", "ha ha ha ha")])
    assert "ha ha ha ha" in found.text or TERM in found.flags


def test_a_loop_behind_a_term_is_flagged(tmp_path):
    translator, loops = load(make_model(tmp_path / "model", {}), engine="torch"), 0
    texts, terms = reverse_texts(8, seed=5)[0], [Term("ka", "Fex"), Term("mi", "Grobbel")]
    for text, found in zip(texts, translator.translate(texts, glossary=terms), strict=True):
        loops += (loop := is_loop(translator.encode([text])[0], found.tokens))
        assert LOOP in found.flags or not loop
    assert loops
    translator = replace(translator, config=replace(translator.config, retry_loops=False))
    assert not any(LOOP in found.flags for found in translator.translate(texts, glossary=terms))


def link(text: str, source: str, target: str, weight: float, other: str) -> Link:
    """A link between words of a source and a translation."""
    begin, start = text.index(source), other.index(target)
    return Link((begin, begin + len(source)), (start, start + len(target)), weight)


@pytest.mark.parametrize(
    ("translation", "term", "rivals"),
    [
        ("Ein Hund läuft.", "Pudel", {"Pudel": "Hund"}),
        ("Ein Pudel läuft.", "Pudel", {}),
        ("Ein Hund läuft. Pudel.", "Pudel", {"Pudel": "Hund"}),
        ("Ein Hund läuft.", "kleiner Hund", {}),
        ("Hund Hund läuft.", "Pudel", {}),
    ],
)
def test_the_rival_of_a_term_is_the_word_that_is_linked_to_its_source(translation, term, rivals):
    source, main = "A dog runs.", "Pudel" if translation == "Ein Pudel läuft." else "Hund"
    links = [
        link(source, "A", translation.split()[0], 0.7, translation),
        link(source, "runs", "läuft", 0.9, translation),
    ]
    if translation.startswith("Hund Hund"):
        links.append(Link((2, 5), (5, 9), 0.8))
    else:
        links.append(link(source, "dog", main, 0.8, translation))
    if translation.endswith("Pudel."):
        links.append(link(source, "dog", "Pudel", 0.5, translation))
    assert (
        _rivals(Translation(translation, 0.0, (), links=tuple(links)), [Match((2, 5), term)])
        == rivals
    )


@pytest.mark.parametrize(
    ("text", "term", "rival", "added"),
    [
        ("Ein Pudel läuft.", "Pudel", "Hund", False),
        ("Ein Hund läuft. Pudel.", "Pudel", "Hund", True),
        ("Pudel Ein Hund läuft!", "Pudel", None, True),
        ("Ein Pudel läuft mit einem Hund.", "Pudel", "Hund", True),
        ("Ein kleiner Hund läuft.", "kleiner Hund", "Hund", False),
        ("Ein Tier läuft. Pudel.", "Pudel", "Hund", False),
    ],
)
def test_term_beside_its_rival_counts_as_added(text, term, rival, added):
    assert is_added(text, "Ein Hund läuft.", term, rival) == added


def test_the_spelling_of_a_rival_is_forbidden_unless_a_term_begins_with_it(tokenizer):
    spelt = forbidden(tokenizer, {"Pudel": "Hund"}, [segment(tokenizer, "Pudel")])
    assert spelt == [
        tuple(tokenizer.encode_target(["Hund"])[0]),
        tuple(tokenizer.target.encode_behind("Hund")),
    ]
    term = segment(tokenizer, "Hund und Herr")
    assert not any(
        tokens == term.segmentations[0][: len(tokens)]
        for tokens in forbidden(tokenizer, {"": "Hund"}, [term])
    )


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


def test_a_text_with_too_little_room_is_named(model, tokenizer):
    translator = Translator(TorchEngine([model]), tokenizer, replace(CONFIG, max_extra_tokens=1))
    terms = [Term("dog", "Ein sehr langer Name für einen Hund")]
    with pytest.raises(
        UserError,
        match=r"Text 2: the terms of the glossary \(Ein sehr.* or raise decode\.max_extra",
    ):
        translator.translate(["", "dog"], glossary=terms)
    translator.engine.max_positions = 6
    with pytest.raises(UserError, match=r"translation\. Shorten the terms\.$"):
        translator.translate(["", "dog"], glossary=terms)


def test_engine_without_constraints_falls_back_to_torch(model, config, tokenizer, tmp_path):
    convert(model, config, tmp_path, "float32")
    engine = CTranslate2Engine(tmp_path, "float32", config, threads=1)
    alone = Translator(engine, tokenizer, CONFIG)
    with pytest.raises(
        UserError, match="CTranslate2, float32 can't obey a glossary with this model"
    ):
        alone.translate(TEXTS, glossary=TERMS)
    assert alone.translate(TEXTS, glossary=[Term("zebra", "Zebra")]) == alone.translate(TEXTS)
    helped = Translator(engine, tokenizer, CONFIG, fallback=Fallback(lambda: TorchEngine([model])))
    ours = Translator(TorchEngine([model]), tokenizer, CONFIG)
    asked = [text for text in TEXTS if Glossary(TERMS).matches(text)]
    both = [each.translate(asked, glossary=TERMS) for each in (helped, ours)]
    assert [each.text for each in both[0]] == [each.text for each in both[1]]


@pytest.mark.parametrize("engine", ["torch", "auto"])
def test_the_command_takes_a_glossary(model, config, tokenizer, tmp_path, capsys, engine):
    weights = {key: value.contiguous() for key, value in model.state_dict().items()}
    publish_model(tmp_path / "model", RunConfig(model=config), tokenizer, weights, {}, "")
    (tmp_path / "text").write_text("The dog sleeps.\n\nA cat.\n", encoding="utf-8")
    (tmp_path / "terms.tsv").write_text("dog\tRüde\ncat\trote Katze\n", encoding="utf-8")
    arguments = [
        "--input",
        tmp_path / "text",
        "--engine",
        engine,
        "--glossary",
        tmp_path / "terms.tsv",
    ]
    status, output, _ = run(capsys, "translate", tmp_path / "model", *arguments)
    lines = output.split("\n")
    assert status == 0
    assert contains(lines[0], "Rüde") and lines[1] == "" and contains(lines[2], "rote Katze")
    status, _, error = run(
        capsys, "translate", tmp_path / "model", *arguments[:-1], tmp_path / "none.tsv"
    )
    assert status == 2 and "none.tsv" in error
