"""Tests of transduce/wings/completion/typed.py, with a model whose training masked placeholders."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models import make_model
from transduce.config.schema import PLACEHOLDER_TOKENS
from transduce.decoding.loading import load
from transduce.decoding.translator import Translator
from transduce.decoding.types import Guide, Link, Translation, TranslationOptions
from transduce.text.languages import Direction
from transduce.wings.completion.typed import translated_sentences, typed_texts

DIRECTION = Direction("en", "de")
SENTENCES = TranslationOptions(sentences=True)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = tmp_path_factory.mktemp("typed") / "model"
    make_model(folder, {"data.placeholders": "masked"}, placeholder_tokens=PLACEHOLDER_TOKENS)
    return load(folder, {"decode.max_extra_tokens": 20, "decode.beam_size": 3}, engine="torch")


TEXT = "A dog. A cat. A cow."


@pytest.mark.parametrize(
    ("prefix", "done", "head"),
    [
        ("", "", ""),
        ("Ein Hund.", "", ""),  # it may go on: "Ein Hund..."
        ("Ein Hund. ", "A dog. ", "Ein Hund. "),
        ("Ein Hund ", "", ""),
        ("Ein Hund. Ei", "A dog. ", "Ein Hund. "),
        ("Ein „Hund.“ Ei", "A dog. ", "Ein „Hund.“ "),
        ("Ein Hund.  Eine Katze. K", "A dog. A cat. ", "Ein Hund.  Eine Katze. "),
        ("Eins. Zwei. Drei. Vier.", "A dog. A cat. ", "Eins. Zwei. "),
        ("Eins. Zwei. Drei. ", "A dog. A cat. ", "Eins. Zwei. "),
    ],
)
def test_complete_sentences_translate_the_first_sentences(
    prefix: str, done: str, head: str
) -> None:
    found = translated_sentences(TEXT, prefix, DIRECTION)
    assert (TEXT[: found[0]], prefix[: found[1]]) == (done, head)
    assert translated_sentences("A dog", prefix, DIRECTION) == (0, 0)


def test_only_the_rest_is_translated() -> None:
    guides = [Guide(prefix="Ein Hund.  Ei"), Guide()]
    typed = typed_texts([TEXT, "A cow."], guides, [1, 2], SENTENCES, DIRECTION)
    assert typed.texts == ["A cat. A cow.", "A cow."]
    assert typed.guides == [Guide(prefix="Ei"), Guide()]
    link = Link((2, 5), (5, 10), 0.5)
    other = Translation("Eine Kuh. Kuh.", -2.0, ())
    free = Translation("Kuh.", -1.0, ())
    [found, same] = typed.finished(
        [Translation("Eine Katze. Kuh.", -1.0, (), (other,), links=(link,)), free]
    )
    assert found.text == "Ein Hund.  Eine Katze. Kuh." and same is free
    assert [each.text for each in found.alternatives] == ["Ein Hund.  Eine Kuh. Kuh."]
    [moved] = found.links
    assert TEXT[slice(*moved.source)] == "cat" and found.text[slice(*moved.target)] == "Katze"


def test_alternatives_that_do_not_fit_are_left_out() -> None:
    typed = typed_texts(["A cow."], [Guide(prefix="K")], [1], SENTENCES, DIRECTION)
    others = tuple(Translation(text, -2.0, ()) for text in ("Rind.", "Kalb."))
    [found] = typed.finished([Translation("Kuh.", -1.0, (), others)])
    assert [each.text for each in (found, *found.alternatives)] == ["Kuh.", "Kalb."]


TEXTS = [
    "ka lo",
    "  ka lo",
    "ka {0} lo",
    "{0} ka",
    "<b>ka</b> lo",
    "- ka lo. mi %s so.",
    "ka. lo mi. nu!",
    "12 + 3",
    "{0} %s",
    "🙂",
    "``a`` ka ``b`` " + "lo mi " * 12,
]
PREFIXES = [
    "z",
    " fe ",
    "{0} z",
    "zu {0",
    "<b>zu</b> f",
    "- ",
    "zu. fe",
    "zu. fe. x",
    "{0} ",
    "zu{0}",
    "zu {0}, {0} %s",
    "({0}",
    '"%s" ',
    "%s ya",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("sentences", [False, True])
def test_each_text_begins_and_ends_as_typed(
    translator: Translator, text: str, sentences: bool
) -> None:
    """Also texts with placeholders and tags, texts that are copied, and texts of several sentences."""
    found = translator.translate(
        [text] * len(PREFIXES), prefixes=PREFIXES, sentences=sentences, n_best=3
    )
    for prefix, each in zip(PREFIXES, found, strict=True):
        assert all(its.text.startswith(prefix) for its in (each, *each.alternatives))
    found = translator.translate([text] * 2, suffixes=[" {0}.", "zu"], sentences=sentences)
    assert found[0].text.endswith(" {0}.") and found[1].text.endswith("zu")


def test_a_typed_placeholder_is_that_of_the_source(translator: Translator) -> None:
    [found] = translator.translate(["ka lo {0}"], prefixes=["{0} f"])
    assert found.text.startswith("{0} f") and found.text.count("{0}") == 1
    assert "placeholders" not in found.flags


def test_parts_of_a_long_sentence_begin_and_end_as_typed(translator: Translator) -> None:
    short = replace(translator, max_length=8)
    guide = Guide(prefix="fe z", suffix=" ga.")
    [found] = short.translate(
        ["ka lo mi nu re " * 4], prefixes=["fe z"], suffixes=[" ga."], sentences=True
    )
    assert guide.fits(found.text) and "split" in found.flags


@settings(max_examples=15)
@given(
    source=st.lists(st.sampled_from(["ka lo.", "mi nu?", "so {0}!"]), min_size=1, max_size=3),
    typed=st.lists(st.sampled_from(["zu", "zu.", "fe {0}!", " ", "ga"]), max_size=4),
)
def test_any_number_of_sentences_is_continued(
    translator: Translator, source: list[str], typed: list[str]
) -> None:
    prefix = " ".join(typed)
    [found] = translator.translate([" ".join(source)], prefixes=[prefix], sentences=True)
    assert found.text.startswith(prefix)
