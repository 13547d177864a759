"""Scores by hand, and what makes them comparable: signatures, intervals, unchanged input."""

import contextlib
import math
import runpy
from importlib.util import find_spec

import pytest
from sacrebleu.metrics.bleu import BLEU

from transduce.evaluation import scores
from transduce.evaluation.scores import _recommended, compare, metrics, score
from transduce.system.errors import UserError

REFERENCES = ["the cat sat on the mat", "a dog runs in the garden", "she reads a very long book"]


GOOD = ["the cat sat on the mat", "a dog runs in a garden", "she reads a long book"]


BAD = ["cat the", "garden dog in a", "book"]


def by_name(hypotheses, references, **options):
    return {found.name: found for found in score(hypotheses, references, **options)}


def test_bleu_by_hand():
    found = by_name(["the cat sat on mat"], ["the cat sat on the mat"])["BLEU"]
    # n-grams found / n-grams there: 5/5, 3/4, 2/3, 1/2; five words for six.
    precision = (5 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** (1 / 4)
    assert found.value == pytest.approx(100 * math.exp(1 - 6 / 5) * precision)
    assert "tok:13a" in found.signature
    assert "version:" in found.signature


def test_ter_by_hand():
    assert by_name(["the cat sat on mat"], ["the cat sat on the mat"])[
        "TER"
    ].value == pytest.approx(100 / 6)


def test_chrf_by_hand():
    # One of two characters and none of one pair; neither side has anything longer.
    assert by_name(["ab"], ["ac"])["chrF2"].value == pytest.approx((50 + 0) / 2)


def test_a_tokenised_text_is_scored_without_a_warning(caplog):
    lines = ["the cat sat ."] * 100
    assert by_name(lines, lines, tokenize="none")["BLEU"].value == pytest.approx(100)
    assert not caplog.records
    assert by_name(lines, lines)["BLEU"].value == pytest.approx(100)
    assert "tokenized period" in caplog.text


def test_perfect_output_has_the_best_scores():
    found = by_name(REFERENCES, REFERENCES)
    assert [
        (name, round(s.value, 9), round(s.low, 4), round(s.high, 4)) for name, s in found.items()
    ] == [
        ("BLEU", 100, 100, 100),
        ("chrF2", 100, 100, 100),
        ("TER", 0, 0, 0),
    ]


def test_intervals_hold_the_score_and_are_the_same_again(monkeypatch):
    monkeypatch.setattr(scores, "MAX_RESAMPLES", 1000)
    hypotheses, references = GOOD * 20 + BAD * 20, REFERENCES * 40
    found = score(hypotheses, references)
    assert all(s.low < s.value < s.high for s in found)
    assert all("bs:1000" in s.signature for s in found)
    assert score(hypotheses, references) == found


def test_a_bootstrap_has_a_thousand_resamples():
    """The other tests have fewer, so this one reads the module again."""
    as_written = runpy.run_path(str(scores.__file__))
    assert "bs:1000" in as_written["score"](GOOD, REFERENCES)[0].signature


def test_intervals_stay_within_the_range_of_the_score():
    hypotheses, references = ["a b c d e", "x", "y z w q v"], ["a b c d e", "u", "y z w q v"]
    found = by_name(hypotheses, references)
    assert all(0 <= each.low <= each.high for each in found.values())
    assert found["BLEU"].high == found["chrF2"].high == 100


def test_a_ter_above_100_lies_in_its_interval():
    """Each hypothesis needs more edits than its reference has words; scores below 0 or BLEU above 100 don't exist."""
    hypotheses, references = ["a b c d e f g", "x y z"] * 20, ["u v", "x"] * 20
    found = by_name(hypotheses, references)["TER"]
    assert found.value == pytest.approx(100 * (7 + 2) / 3)
    assert 100 < found.low < found.value < found.high


def test_the_tokenisation_is_in_the_signature_and_counts():
    hypotheses, references = ["Yes, he said so."], ["Yes , he said so ."]
    tokenised, plain = (
        by_name(hypotheses, references, tokenize=name)["BLEU"] for name in ("13a", "none")
    )
    assert (tokenised.value, "tok:none" in plain.signature) == (pytest.approx(100), True)
    assert plain.value < 60
    assert by_name(["abcd"], ["abcd"], tokenize="char")["BLEU"].value == pytest.approx(100)


@pytest.mark.parametrize(
    ("language", "package", "tokenisation"),
    [
        ("de", "", "13a"),
        ("", "", "13a"),
        ("zh_Hant", "", "zh"),
        ("cmn", "", "zh"),
        ("yue", "", "zh"),
        *((code, "", "zh") for code in ("zho", "wuu")),
        *((code, "", "char") for code in ("th", "lo", "km", "my", "bo", "dz")),
        ("jpn", "MeCab", "ja-mecab"),
        ("kor", "mecab_ko", "ko-mecab"),
        ("ja", "MeCab", "ja-mecab"),
        ("ko-KR", "mecab_ko", "ko-mecab"),
    ],
)
def test_the_tokenisation_follows_the_language(language, package, tokenisation):
    expected = tokenisation if not package or find_spec(package) else "char"
    texts = ["我们明天去北京看朋友。"]
    assert f"|tok:{expected}|" in by_name(texts, texts, language=language)["BLEU"].signature
    assert f"|tok:{expected}|" in compare(texts, texts, texts, language=language)[0].first.signature
    assert (
        "|tok:intl|" in by_name(texts, texts, language=language, tokenize="intl")["BLEU"].signature
    )


@pytest.mark.skipif(find_spec("MeCab") is not None, reason="the package for Japanese is installed")
def test_a_missing_package_is_named_once(capsys):
    _recommended.cache_clear()
    for _ in range(2):
        by_name(["猫"], ["猫"], language="ja")
    assert capsys.readouterr().err.count("pip install 'sacrebleu[ja]'") == 1


@pytest.mark.parametrize("error", [ImportError, OSError, RuntimeError])
def test_a_tokenisation_that_can_not_be_used_is_named(monkeypatch, error):
    class Unusable(BLEU):
        def __init__(self, tokenize: str = "13a", **options: object) -> None:
            if tokenize == "flores200":
                raise error("no  model\nhere")
            super().__init__(tokenize=tokenize, **options)

    monkeypatch.setattr(scores, "BLEU", Unusable)
    with pytest.raises(
        UserError, match=r"The tokenisation 'flores200' can't be used: no model here"
    ):
        metrics("flores200")
    monkeypatch.setitem(scores.TOKENISATIONS, "xx", "flores200")
    _recommended.cache_clear()
    assert _recommended("xx") == "char" and _recommended("de") == "13a"
    _recommended.cache_clear()


def test_comparison_finds_the_better_output():
    found = compare(GOOD * 10, BAD * 10, REFERENCES * 10)
    assert [c.name for c in found] == ["BLEU", "chrF2", "TER"]
    assert all(c.p_value < 0.05 for c in found)
    alone = by_name(GOOD * 10, REFERENCES * 10)
    assert [c.first.value for c in found] == pytest.approx([alone[c.name].value for c in found])
    assert [c.second.value for c in found] == pytest.approx(
        [s.value for s in score(BAD * 10, REFERENCES * 10)]
    )


def test_the_slow_metric_may_be_left_out():
    found = compare(GOOD * 10, BAD * 10, REFERENCES * 10, ter=False)
    assert [c.name for c in found] == ["BLEU", "chrF2"]


@pytest.mark.parametrize(
    ("count", "resamples"), [(3, 150), (60_000, 150), (80_000, 125), (200_000, 100)]
)
def test_many_sentences_have_fewer_resamples(monkeypatch, count, resamples):
    monkeypatch.setattr(scores, "MAX_RESAMPLES", 150)
    asked = []

    def paired_test(*_: object, n_samples: int, **__: object) -> type[dict]:
        asked.append(n_samples)
        return dict

    monkeypatch.setattr(scores, "PairedTest", paired_test)
    with contextlib.suppress(ValueError):
        score(["a"] * count, ["a"] * count)
    assert asked == [resamples]


def test_a_decomposed_text_equals_a_composed_one():
    texts = ["Ha\u0308user sind gro\u00df"], ["H\u00e4user sind gro\u00df"]
    for hypotheses, references in (texts, texts[::-1]):
        found = by_name(hypotheses, references)
        assert found["chrF2"].value == pytest.approx(100) and found["TER"].value == 0


def test_an_output_does_not_differ_from_itself():
    assert [c.p_value for c in compare(GOOD * 10, GOOD * 10, REFERENCES * 10)] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("count", "is_tested"), [(29, False), (30, True)])
def test_fewer_than_thirty_sentences_are_not_tested(count, is_tested):
    good, bad, references = ((texts * 10)[:count] for texts in (GOOD, BAD, REFERENCES))
    for found in compare(good, bad, references), compare(good, good, references):
        assert [math.isnan(each.p_value) for each in found] == [not is_tested] * 3


def test_wrong_inputs_are_refused():
    with pytest.raises(UserError, match="There are 2 hypotheses but 3 references"):
        score(GOOD[:2], REFERENCES)
    with pytest.raises(UserError, match="2 hypotheses of the second output but 3 references"):
        compare(GOOD, GOOD[:2], REFERENCES)
    with pytest.raises(UserError, match="no tokenisation '13b'"):
        score(GOOD, REFERENCES, tokenize="13b")
    with pytest.raises(UserError, match="nothing to score"):
        score([], [])
