"""Tests of transduce/wings/rules/corpus_faults.py."""

import html
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text.pair_batch import TextColumn
from transduce.text.pairs import Origin
from transduce.wings.phrasebook.examples import examples
from transduce.wings.rules import corpus_faults
from transduce.wings.rules.corpus_faults import (
    CORPUS_FAULTS,
    Prevalence,
    faults_of_corpus,
    prevalences,
    repaired,
    repairs,
    sentences,
)

GERMAN = [f"{example.german} Ja, „früher“ schon." for example in examples("train", 60)]
CLEAN = [*GERMAN, *(example.english for example in examples("train", 60))]


def of_corpus(*sides: list[str]) -> set[str]:
    found = prevalences([TextColumn(side) for side in sides])
    return {each.fault for each in found if each.is_of_corpus}


def _tokenised(text: str) -> str:
    return re.sub(r"([.,?!“])", r" \1", text).replace("„", "„ ")


DAMAGE = {
    "quoted": lambda text: '"' + text.replace("„", '""').replace("“", '""') + '"',
    "doubled-quotes": lambda text: f'"{text[:9]} ""{text[9:]}"""' if text[0] in "DE" else text,
    "sentence-marks": lambda text: f"<s> {text} </s>",
    "language-tags": lambda text: f">>de<< {text}",
    "subwords": lambda text: re.sub(r"(\w\w)(?=\w)", r"\1@@ ", text),
    "word-pieces": lambda text: re.sub(r"(\w\w)(?=\w)", r"\1 ##", text),
    "joiners": lambda text: re.sub(r"([.,])", r" ￭\1", text),
    "sentencepiece": lambda text: re.sub(r"(\w\w\w)(?=\w)", r"\1 ", "▁" + text.replace(" ", " ▁")),
    "word-ends": lambda text: " ".join(f"{word[:2]} {word[2:]}</w>" for word in text.split()),
    "twice-escaped": lambda text: html.escape(html.escape(f"{text} It's")),
    "entities": lambda text: html.escape(f"{text} It's"),
    "hyphens": lambda text: text.replace("a", "a @-@ a"),
    "line-breaks": lambda text: text.replace(". ", ".\\n"),
    "escapes": lambda text: text.replace("ü", "\\u00fc").replace("„", '\\"'),
    "unknown-words": lambda text: text.replace("schon", "<unk>"),
    "invisible": lambda text: text.replace("s", "s\u200b\xad\ufeff"),
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
}
RESTORED = {  # if the repair is not the exact inverse of the damage
    "doubled-quotes": lambda text: f'{text[:9]} "{text[9:]}"' if text[0] in "DE" else text,
    "quoted": lambda text: text.replace("„", '"').replace("“", '"'),
    "twice-escaped": lambda text: f"{text} It's",
    "entities": lambda text: f"{text} It's",
    "hyphens": lambda text: text.replace("a", "a-a"),
    "escapes": lambda text: text.replace("„", '"'),
    "unknown-words": DAMAGE["unknown-words"],
}


def test_each_fault_is_tried() -> None:
    assert {*DAMAGE, "tokenised"} == CORPUS_FAULTS.keys()


@pytest.mark.parametrize("fault", DAMAGE)
def test_a_fault_is_found_and_its_repair_restores_the_texts(fault):
    damaged = list(map(DAMAGE[fault], GERMAN))
    more = {"doubled-quotes"} if fault == "quoted" else set()
    assert of_corpus(GERMAN, damaged) == {fault, *more}
    restored = [repaired(text, [fault], "de") for text in damaged]
    assert restored == list(map(RESTORED.get(fault, str), GERMAN))


# Of 1,000 texts, how many must have a fault, as docs/guides/doctor.md says.
LEAST = {
    "quoted": 500,
    "sentence-marks": 50,
    "language-tags": 50,
    "tokenised": 700,
    "decomposed": 1,
}
LEAST |= dict.fromkeys(("doubled-quotes", "hyphens", "twice-escaped"), 2)
LEAST |= dict.fromkeys(("entities", "escapes", "unknown-words"), 5)


@pytest.mark.parametrize("fault", CORPUS_FAULTS)
def test_a_fault_of_few_texts_is_none_of_the_corpus(fault):
    damage = DAMAGE.get(fault, _tokenised)
    one = next(
        text for text in map(damage, GERMAN) if len(CORPUS_FAULTS[fault].rows(TextColumn([text])))
    )
    least = LEAST.get(fault, 10)
    for number in (least - 1, least):
        texts = ["Ja."] * (1000 - number) + [one] * number
        others = ["Ja"] * 500 if fault == "tokenised" else []  # without full stops or commas
        assert (fault in of_corpus(GERMAN, [*texts, *others])) == (number == least)


def test_tokenised_texts_are_joined_again():
    pytest.importorskip("sacremoses")
    plain = [text.replace("„", "").replace("“", "") for text in GERMAN]
    damaged = list(map(_tokenised, plain))
    assert of_corpus(damaged, plain) == {"tokenised"}
    assert [repaired(text, ["tokenised"], "de") for text in damaged] == plain


def test_a_clean_corpus_has_no_fault_and_stays_as_it_is():
    assert of_corpus(CLEAN, GERMAN) == set()
    faults = [fault for fault in CORPUS_FAULTS if fault != "tokenised"]
    assert [repaired(text, faults, "de") for text in CLEAN] == CLEAN


@given(st.lists(st.text(alphabet='ab <s>/@&;#1"\\nu0▁￭.,\u200bu\u0308', max_size=12), max_size=6))
def test_texts_are_searched_together_as_alone(texts):
    texts = [text.replace("\n", " ") for text in texts]
    together = {each.fault: each.number for each in prevalences([TextColumn(texts)])}
    alone = [prevalences([TextColumn([text])]) for text in texts]
    for fault, number in together.items():
        assert number == sum(
            each.number for found in alone for each in found if each.fault == fault
        )


@pytest.mark.parametrize(
    ("fault", "text", "restored"),
    [
        ("quoted", '"He said ""Hi""."', 'He said "Hi".'),
        ("quoted", '"Hi," he said.', '"Hi," he said.'),
        ("entities", "a&#10;b&nbsp;&eacute; AT&T", "a b\xa0é AT&T"),
        ("escapes", r"\ud83d\ude00 and \ud83d", "😀 and \\ud83d"),
        ("escapes", r"\udfff or \ud800 \uffff", r"\udfff or \ud800" + " \uffff"),
        ("line-breaks", r"\nu and \neq stay, a\r\nb \n c", r"\nu and \neq stay, a b c"),
        ("quoted", '"', '"'),
        ("quoted", '"Hi', '"Hi'),
        ("entities", "&amp;lt; &lt;", "< <"),
        ("twice-escaped", "&amp;amp;lt;b", "<b"),
        ("sentencepiece", " no\tpieces ", " no\tpieces "),
        ("subwords", " a\t\nb@@ c ", "a bc"),
        ("sentencepiece", "▁a b ▁c", "ab c"),
        ("word-ends", "a b</w> c</w>", "ab c"),
        ("sentence-marks", "<s>Use <s> for sentences</s>", "Use <s> for sentences"),
    ],
)
def test_single_texts_are_repaired(fault, text, restored):
    assert repaired(text, [fault], "en") == restored


def test_a_side_that_is_not_quoted_stays_so():
    found = [Prevalence("quoted", 0, 9, 9, 0), Prevalence("invisible", 1, 9, 9, 0)]
    assert repairs(found) == (["quoted", "invisible"], ["invisible"])


@pytest.mark.parametrize("package", [None, "sacremoses"])
def test_faults_that_can_not_be_repaired_are_named(package, monkeypatch, capsys):
    monkeypatch.setattr(
        corpus_faults, "find_spec", lambda name: package if name == package else None
    )
    names = ["unknown-words", "escapes", "tokenised", "sentence-marks"]
    found = [
        Prevalence(name, side, 9, 9, 0) for side, name in zip((0, 0, 1, 1), names, strict=True)
    ]
    own = ["sentence-marks", "escapes"]
    assert repairs(found) == (own, [own[0], *["tokenised"] * bool(package), own[1]])
    said = " ".join(capsys.readouterr().err.split())
    assert "Words that were replaced by <unk> can't be restored." in said
    assert ("The tokenisation is kept." in said) is (not package)
    assert repairs(found[1:2]) == (["escapes"], ["escapes"]) and not capsys.readouterr().err


def test_a_sentence_names_shares_and_an_example():
    found = [(Prevalence("subwords", side, 1, 4, 0), Origin("a.tsv", 7)) for side in (0, 1)]
    assert list(sentences(found)) == [
        "25.0% of the sources and 25.0% of the targets are cut into pieces by BPE (@@), "
        "for example the source of a.tsv, line 7."
    ]
    columns = (
        TextColumn(["Yes.", "No."] * 2),
        TextColumn(["Ja.", "Ne@@ in.", "<s> Ja.", "<s> Ne@@ in."]),
    )
    assert list(faults_of_corpus(columns, [Origin("b.tsv", line) for line in range(1, 5)])) == [
        f"50.0% of the targets {CORPUS_FAULTS[fault].meaning}, for example the target of b.tsv, line {line}."
        for fault, line in (("sentence-marks", 3), ("subwords", 2))
    ]
    assert list(faults_of_corpus([TextColumn([])] * 2, [])) == []
    assert {each.first for each in prevalences([TextColumn(["Yes."])] * 2)} == {0}
