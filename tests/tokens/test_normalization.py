"""Tests of transduce/tokens/normalization.py."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.tokens.normalization import (
    FOLDED,
    Normalizer,
    Tracked,
    common_quotes,
    composed,
)
from transduce.tokens.tokenizer import Tokenizer

normalise = Normalizer()
ODD = [
    *FOLDED,
    "e\u0301",
    "\u1100\u1161\u11a8",
    "\u200d",
    "\u200c",
    "\u200b",
    "\ufe0f",
    "  ",
    "👩",
    "می",
]
odd_texts = st.lists(
    st.sampled_from(ODD) | st.characters(exclude_characters="\n", exclude_categories=["Cs"])
).map("".join)


@pytest.mark.parametrize(
    ("text", "normalised"),
    [
        ("Ha\u0308user", "Häuser"),  # decomposed
        ("\u1112\u1161\u11ab", "한"),
        ("Å", "Å"),  # the sign of Ångström
        ("10\u202f000 €", "10 000 €"),
        ("a\u00a0b\u2009c\u3000d\te", "a b c d e"),
        ("  two   dogs ", "two dogs"),
        ("Donau\u00addampf\u200bschiff", "Donaudampfschiff"),
        ("\ufeffone\ufeff", "one"),
        ("\u202bשלום\u202c\u200f", "שלום"),
        ("Auf\u200clage", "Auflage"),
        ("no\u2060break", "nobreak"),
        ("a\x00b\x7f", "ab"),
        ("x\ufe0f y\u200d", "x y"),
        ("Ｈｅｌｌｏ，　ｗｏｒｌｄ！", "Hello, world!"),
        ("你好，Ｗｏｒｌｄ１！", "你好，World1！"),
        ("ｶﾞｷﾞ ﾃﾞｽ｡", "ガギ デス。"),
        ("￥５００", "¥500"),
        ("ﬁnd oﬃce Ĳsland", "find office IJsland"),
        ("non\u2011stop, non\u2010stop", "non-stop, non-stop"),
        ("“Hi”, she’s", '"Hi", she\'s'),
        ("„Hi‟ ‚x‛ ‘y", "\"Hi\" 'x' 'y"),
        ("\u2329\u200d", "\u3008"),  # not a picture any more once it is composed
        ("\u2190\u0338\u200d", "\u219a\u200d"),  # a picture only once it is composed
        ("e\u200b\u0301", "é"),
    ],
)
def test_equal_and_invisible_characters_are_unified(text, normalised):
    assert normalise([text]) == [normalised]


@pytest.mark.parametrize(
    "text",
    [
        "x² ½ № ™ …",  # less than NFKC
        "«Oui» – 5′",
        "می\u200cخواهم",  # Persian
        "क\u094d\u200dष",  # Hindi
        "ന\u0d4d\u200d",  # Malayalam, at the end of a word
        "👩\u200d🚀 ❤\ufe0f 👍🏽 1\ufe0f\u20e3",
        "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "ភាសា\u200bខ្មែរ",  # Khmer separates words so
        "你好，世界！",
    ],
)
def test_characters_with_a_meaning_stay(text):
    assert normalise([text]) == [text]


@given(st.lists(odd_texts, max_size=4))
def test_a_normalised_text_stays_as_it_is(texts):
    normalised = normalise(texts)
    assert normalise(normalised) == normalised == composed(normalised)


@given(st.lists(odd_texts, max_size=4))
def test_a_text_is_normalised_the_same_alone_and_together(texts):
    assert normalise(texts) == [normalise([text])[0] for text in texts]


@given(odd_texts)
def test_each_character_knows_its_origin(text):
    tracked = normalise.tracked(text)
    assert [tracked.text] == normalise([text])
    assert len(tracked.origins) == len(tracked.text)
    assert all(0 <= begin < end <= len(text) for begin, end in tracked.origins)
    assert tracked.origins == sorted(tracked.origins)


@given(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])))
def test_composition_is_that_of_unicode(text):
    assert composed([text]) == [unicodedata.normalize("NFC", text)]


def test_the_origin_of_a_word_by_hand():
    tracked = normalise.tracked("\ufeffDie  Ha\u0308u\u00adser")
    assert tracked.text == "Die Häuser"
    assert tracked.original((0, 3)) == (1, 4)
    assert tracked.original((4, 10)) == (6, 14)


def test_a_model_keeps_what_its_training_text_had():
    texts = ["“Yes” 10\u00a0€"] * 20
    older = Tokenizer.train(texts, texts, vocab_size=300)
    assert older.normalizer(["“a”\u00a0b\u202fc ‘d’"]) == ["“a”\u00a0b c 'd'"]
    newer = Tokenizer.train(texts, texts, vocab_size=300, quotes=common_quotes(texts))
    assert newer.normalizer(["“a”\u00a0b\u202fc ‘d’"]) == ["“a” b c 'd'"]


def test_the_normalization_is_saved_with_the_vocabulary(tmp_path):
    texts = ["a b c"] * 20
    Tokenizer.train(texts, texts, vocab_size=300, quotes="“”").save(tmp_path)
    assert Tokenizer.load(tmp_path).normalizer.keep == {"“", "”"}


def test_rare_quotes_are_unknown():
    assert common_quotes(["“a"] + ["b"] * 20_000) == ""
    assert common_quotes(["“a", "b’s"]) == "’“"


def test_characters_are_unknown_if_their_normalised_forms_are():
    texts = ["a b c - 12"] * 20
    tokenizer = Tokenizer.train(texts, texts, vocab_size=300, quotes="")
    assert tokenizer.unknown(["a\u00a0b \u201cc\u201d ♪ \uff11 \u2011 \u200b"]) == {
        "\u201c",
        "\u201d",
        "♪",
    }


def test_a_decomposed_letter_that_the_vocabulary_has_is_known():
    tokenizer = Tokenizer.train(["a é b"] * 20, ["a é b"] * 20, vocab_size=300, quotes="")
    assert tokenizer.unknown(["e\u0301", "o\u0302"]) == {"ô"}


@given(odd_texts)
def test_a_normalised_source_is_encoded_without_loss(text):
    words = ["a b c d e f"] * 20
    tokenizer = Tokenizer.train(words, words, vocab_size=280, quotes="")
    [normalised] = tokenizer.normalizer([text])
    assert tokenizer.source.decode(tokenizer.encode_source([text])) == [normalised]


def test_texts_of_parsers_are_only_composed():
    composing = Normalizer(only_composed=True)
    text = "\ufeffHa\u0308user  “x”\u00a0 "
    assert composing([text, "a"]) == ["\ufeffHäuser  “x”\u00a0 ", "a"]
    assert composing.tracked(text).origins[2] == (2, 4)


@pytest.mark.parametrize(
    "texts", [["a", " b"], ["a ", "b"], ["a", "b  c"], ["a", "b", "e\u0301"], [" a"], ["a", "b "]]
)
def test_one_text_of_a_batch_needs_normalisation(texts):
    assert normalise(texts) == [composed([text.strip().replace("  ", " ")])[0] for text in texts]


def test_a_quote_of_one_in_ten_thousand_sources_is_known():
    assert common_quotes(["“a"] + ["b"] * 9_999) == "“"
    assert common_quotes(["“a““"] + ["b"] * 10_000) == "", "of a text it counts once"
    assert common_quotes([]) == ""


def test_texts_are_replaced_by_shorter_and_longer_ones():
    tracked = Tracked("abcdef", [(i, i + 1) for i in range(6)])
    found = tracked.replaced([(1, 3), (4, 5)], {"bc": "X", "e": "YZ"}.__getitem__)
    assert found.text == "aXdYZf"
    assert found.origins == [(0, 1), (1, 3), (3, 4), (4, 5), (4, 5), (5, 6)]
    assert found.original((1, 4)) == (1, 5) and found.original((0, 1)) == (0, 1)
    same = tracked.replaced([(1, 3)], str.upper)
    assert (same.text, same.origins) == ("aBCdef", tracked.origins)


def test_a_model_may_know_all_characters_that_are_usually_replaced():
    keeping = Normalizer(FOLDED)
    assert keeping([" “a”\u00a0ﬁ  \uff01 b\u00ad "]) == ["“a”\u00a0ﬁ \uff01 b"]


def test_all_spaces_become_blanks_and_no_control_character_stays():
    for character in map(chr, range(0x10000)):
        category = unicodedata.category(character)
        if category in ("Zs", "Zl", "Zp") or (category == "Cc" and character.isspace()):
            assert normalise([f"a{character}b"]) == ["a b"] or character == "\n", repr(character)
        elif category == "Cc":
            assert normalise([f"a{character}b"]) == ["ab"], repr(character)


def test_marks_that_nobody_sees_are_removed_and_their_neighbours_stay():
    """Both ends of each range, and what lies beside them."""
    invisible = (
        "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202e\u2060\u206f\u3164"
        "\ufe00\ufe0f\ufeff\uffa0\ufff9\ufffb\U0001d173\U0001d17a\U000e0001\U000e0020\U000e007f\U000e0100\U000e01ef"
    )
    for character in invisible:
        assert normalise([f"a{character}b"]) == ["ab"], repr(character)
    visible = "\xac\xae\u034e\u0350\u061b\u061d\u17b3\u17b6\u180d\u2027\u2030\u2070\u3163\u3165\ufdff\ufe10\ufffc\ufffd"
    for character in f"{visible}\U0001d172\U0001d17b\U000e00ff\U000e01f0":
        assert normalise([f"a{character}b"]) == [f"a{character}b"], repr(character)


def test_wide_and_narrow_forms_become_the_usual_ones():
    forms = [chr(code) for code in range(0xFF01, 0xFFEF) if unicodedata.decomposition(chr(code))]
    for form in forms:
        usual = unicodedata.normalize("NFKC", form)
        [found] = normalise([f"a{form}b"])
        assert found == ("ab" if form == "\uffa0" else f"a{form if ' ' in usual else usual}b"), form
    # Beside Chinese, punctuation stays wide, and letters and digits don't.
    assert normalise(["漢！（Ａ１）～"]) == ["漢！（A1）～"]
    assert normalise(["ｱ！", "あ！", "㐀！", "𠀀！", "한！", "я！"]) == [
        "ア！",
        "あ！",
        "㐀！",
        "𠀀！",
        "한!",
        "я!",
    ]


@pytest.mark.parametrize("picture", "©®‼⁉™ℹ←⇿⌀➿⤀⥿⬀⯿〰〽㊗㊙🀀🫿")
def test_pictures_keep_their_joiners_and_variants(picture):
    for text in (
        f"{picture}\ufe0f",
        f"{picture}\u200d{picture}",
        f"{picture}\ufe0f\u200d{picture}",
    ):
        assert normalise([text]) == [text]
    assert normalise([f"x\ufe0f\u200d{picture}"]) == [f"x{picture}"]


def test_joiners_stay_in_the_scripts_that_need_them():
    for letter in "\u0600\u0dff\u0f00\u109f\u1780\u18a9\u1a20\u1cf0\ua800\uabff\ufb50\ufdcf\ufdf0\ufdff\ufe70\ufefc":
        for joiner in "\u200c\u200d":
            text = unicodedata.normalize("NFC", letter) + joiner
            assert normalise([text]) == [text], repr(text)
    for letter in "\u05ff\u0e01\u0e7f\u0fff\u1000\u109f\u1780\u17ff\u10a0":
        text = f"{letter}\u200b{letter}"
        stays = letter not in "\u05ff\u10a0"
        assert normalise([text]) == [text if stays else letter * 2], repr(text)
        assert normalise([f"a\u200b{letter}", f"{letter}\u200ba"]) == [f"a{letter}", f"{letter}a"]
