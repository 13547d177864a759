"""A sentence in capitals or in title case is read in the case that the model knows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.decoding.capitals import capitalised, case_folding, is_in_capitals, readable
from transduce.decoding.types import Link, Translation
from transduce.tokens.tokenizer import Tokenizer

CORPUS = ["The red dog sees the house of NATO.", "the cat sleeps", "Cats sleep in the house."] * 20


@pytest.fixture(scope="module")
def lengths():
    tokenizer = Tokenizer.train(CORPUS, CORPUS, vocab_size=420)
    return lambda texts: list(map(len, tokenizer.encode_source(texts)))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("THE RED DOG SEES.", "The red dog sees."),
        ("DOG SLEEPS", "dog sleeps"),
        ("CATS", "Cats"),
        ("THE HOUSE OF NATO.", "The house of NATO."),
        ("The Red Dog Sleeps In The House Of NATO.", "The red dog sleeps in the house of NATO."),
        ("The Dog Sees Cats Sleep in the House", "The dog sees Cats sleep in the house"),
        (
            "The Dog Sleeps, Sees {ID} <B> In The “House”.",
            "The dog sleeps, sees {ID} <B> in the “house”.",
        ),
        ("THE HOUSE OF %S.", "The house of %S."),
        ("NATO", "NATO"),  # in the vocabulary
        ("The red DOG", "The red DOG"),
        ("The House Sleeps", "The House Sleeps"),  # two long words: no title
        ("A 3 \ufdd0", "A 3 \ufdd0"),
        ("", ""),
    ],
)
def test_readable_form_has_the_fewest_tokens(lengths, text, read):
    assert readable([text], lengths) == [read]


@given(
    texts=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("AaBbİǅßÉ ")), max_size=4
    )
)
def test_only_the_case_changes(lengths, texts):
    read = readable(texts, lengths)
    assert list(map(len, read)) == list(map(len, texts))
    assert all(new.lower() == old.lower() for new, old in zip(read, texts, strict=True))
    assert all(new <= old for new, old in zip(lengths(read), lengths(texts), strict=True))


@pytest.mark.parametrize(
    "text", ["我喜欢NBA", "한국의 KBS 뉴스", "هذا NATO جديد", "यह BBC है", "ฉันดู CNN"]
)
def test_an_acronym_among_letters_without_case_is_no_sentence_in_capitals(text):
    assert readable([text], lambda texts: [sum(map(str.isupper, each)) for each in texts]) == [text]


def test_turkish_has_two_letters_i_and_greek_a_final_sigma():
    def lengths(texts):
        return [sum(map(str.isupper, text)) for text in texts]

    assert readable(["KIRMIZI IŞIK İYİ."], lengths, "tr") == ["kırmızı ışık iyi."]
    assert readable(["KIRMIZI IŞIK"], lengths, "az_Latn") == ["kırmızı ışık"]
    assert readable(["IN CITIES"], lengths, "en") == ["in cities"]
    assert readable(["TO İZMİR"], lengths, "en") == ["to İzmİr"], "a lower i would need two letters"
    link = Link((0, 1), (6, 9), 1.0)
    assert readable(["ΟΔΟΣ ΑΓΓΕΛΟΣ."], lengths, "el") == ["οδος αγγελος."]
    result = capitalised(Translation("ışık, iyi", -1.0, (), links=(link,)), "tr")
    assert result.text == "IŞIK, İYİ" and result.links == (link,)
    assert capitalised(Translation("ışık, iyi", -1.0, ()), "en").text == "IŞIK, IYI"


@pytest.mark.parametrize("language", ["tr", "az", "tur", "aze", "azj", "TR", "az_Latn", "tr-TR"])
def test_all_forms_of_a_turkish_text_have_its_letters_i(language):
    other = Translation("ısı iş", -2.0, ())
    result = capitalised(Translation("ışık, iyi", -1.0, (), (other,)), language)
    assert (result.text, result.alternatives[0].text) == ("IŞIK, İYİ", "ISI İŞ")
    fold = case_folding(language)
    assert fold("IŞIK İYİ") == fold("ışık iyi") == "ışık iyi" and fold("STRAẞE") == "strasse"
    assert fold("Iİ") != fold("ii")

    def lengths(texts):
        return [sum(map(str.isupper, text)) for text in texts]

    assert readable(["Kırmızı Işık İyidir Bugün", "KISA İYİ"], lengths, language) == [
        "kırmızı ışık iyidir bugün",
        "kısa iyi",
    ]


def test_other_languages_fold_case_as_unicode_does():
    assert case_folding("de")("IŞIK Straße") == "işik strasse"
    assert case_folding("")("ΟΔΟΣ") == case_folding("el")("οδος")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AB", True),
        ("A", False),
        ("A1B", True),
        ("Ab", False),
        ("AB 語", False),
        ("ÀÉ!", True),
        ("", False),
    ],
)
def test_a_sentence_in_capitals_has_two_of_them_and_no_other_letters(text, expected):
    assert is_in_capitals(text) is expected


def test_a_text_that_becomes_no_shorter_stays():
    assert readable(["AB CD", "Dogs Like Cats"], lambda texts: [1] * len(texts)) == [
        "AB CD",
        "Dogs Like Cats",
    ]


def test_of_several_texts_only_those_that_become_shorter_are_rewritten():
    """Each word is measured by itself, and each text as a whole."""

    def lengths(texts):
        return [sum(map(str.isupper, text)) + 9 * text.count("y") for text in texts]

    texts = ["plain text", "AB CD", "XY", "The Dogs Like Cats", "", "EF-GH"]
    read = ["plain text", "ab cd", "XY", "the dogs like cats", "", "ef-gh"]
    assert readable(texts, lengths) == read
    # The case of a sentence comes first at its beginning, the lower case elsewhere.
    assert readable(["AB CD"], lambda texts: [text.isupper() for text in texts]) == ["Ab cd"]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("Dogs Like Cats", "dogs like cats"),  # three capitals, three long words
        ("Dogs Like Cat", "Dogs Like Cat"),
        ("Dogs Like Cats today", "Dogs Like Cats today"),
        ("Dogs Like Cats now", "dogs like cats now"),
        ("“Dogs «Like ¿Cats", "“dogs «like ¿cats"),
        ("Dogs Like Cats 1234", "dogs like cats 1234"),
        ("DOGS LIKE <B> A_B.C", "dogs like <B> A_B.C"),
        ("DOG'S IT’S CO-OP A.B./C", "dog's it’s co-op A.B./C"),
    ],
)
def test_titles_have_capitals_at_all_long_words(text, read):
    assert readable([text], lambda texts: [sum(map(str.isupper, each)) for each in texts]) == [read]


def test_spans_follow_the_capitals():
    text = "die große Maß fließt"
    words = {word: (text.index(word), text.index(word) + len(word)) for word in text.split()}
    links = tuple(Link((0, 1), span, 1.0) for span in words.values())
    other = Translation("Straße", -2.0, ())
    result = capitalised(Translation(text, -1.0, ("a",), (other,), ("cut",), links))
    assert result.text == "DIE GROSSE MASS FLIESST" and result.alternatives[0].text == "STRASSE"
    assert [result.text[slice(*link.target)] for link in result.links] == [
        word.upper() for word in words
    ]
    assert (result.score, result.tokens, result.flags) == (-1.0, ("a",), ("cut",))
