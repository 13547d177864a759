"""The bracket scorer: laws, and EVALB's rules by hand."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from transduce.system.errors import UserError
from transduce_lab.parsing.brackets import (
    Row,
    agree_on_punctuation,
    compare,
    score_brackets,
    summarise,
)
from transduce_lab.parsing.evalb import Parameters, read_parameters
from transduce_lab.parsing.trees import TRACE, Tree, delinearise, linearise
from trees import trees

PLAIN = Parameters(equal_labels=frozenset())
GOLD = "(TOP (S (NP-SBJ (DT The) (NN dog)) (VP (VBZ sees) (NP (PRP it))) (. .)))"


def row(test: str, gold: str = GOLD, parameters: Parameters = PLAIN) -> Row:
    return compare(gold, test, parameters)


@given(trees)
def test_a_tree_compared_with_itself_has_no_mistake(tree):
    found = row(str(tree), str(tree))
    assume(found.status == "valid")
    assert (
        found.matched == found.gold == found.test
        and found.tags == found.words
        and not found.crossing
    )


@given(trees, st.randoms(use_true_random=False))
def test_with_the_gold_punctuation_every_parse_counts(gold, choice):
    words = [leaf.word for leaf in gold.leaves() if leaf.label != TRACE]
    assume(words)
    parse = Tree(
        "S", tuple(Tree(choice.choice([".", ",", "NN", "``"]), word=word) for word in words)
    )
    found = row(str(agree_on_punctuation(gold, parse, PLAIN)), str(gold))
    assert found.status == "valid" or (
        found.status == "skipped" and all(tag in PLAIN.deleted for tag in tags_of(gold))
    )
    same = Tree("S", tuple(leaf for leaf in gold.leaves() if leaf.label != TRACE))
    assert agree_on_punctuation(gold, same, PLAIN) == same


def tags_of(tree: Tree) -> list[str]:
    return [leaf.label for leaf in tree.leaves()]


@given(trees, trees)
def test_exchanging_the_sides_exchanges_recall_and_precision(one, other):
    words = max(len(one.words()), len(other.words()))
    leaf = Tree("NN", word="x")
    one, other = (
        Tree(tree.label, tree.children + (leaf,) * (words - len(tree.words())))
        for tree in (one, other)
    )
    # Over the same words: else they could not be compared.
    other = delinearise(linearise(other), one.words())
    there, back = row(str(one), str(other)), row(str(other), str(one))
    if there.status == back.status == "valid":
        assert (there.matched, there.gold, there.test) == (back.matched, back.test, back.gold)


@pytest.mark.parametrize(
    ("test", "matched", "brackets", "crossing", "tags"),
    [
        ("(S (NP (DT The) (NN dog)) (VP (VBZ sees) (NP (PRP it))) (. .))", 4, 4, 0, 4),
        ("(S (NP (DT The) (NN dog)) (VP (VBZ sees) (PP (PRP it))) (. .))", 3, 4, 0, 4),
        (
            "(S (NP (DT The) (NN dog)) (VP (NN sees) (NP (PRP it))))",
            4,
            4,
            0,
            3,
        ),  # punctuation may be missing
        ("(S (NP (DT The)) (VP (NN dog) (VBZ sees) (NP (PRP it))))", 2, 4, 1, 4),
        ("(S (NP (NP (DT The) (NN dog))) (VP (VBZ sees) (NP (NP (PRP it)))))", 4, 6, 0, 4),
        ("(DT The) (NN dog) (VBZ sees) (PRP it)", 0, 0, 0, 4),
    ],
)
def test_brackets_by_hand(test, matched, brackets, crossing, tags):
    assert row(test) == Row(5, "valid", matched, 4, brackets, crossing, 4, tags)


@pytest.mark.parametrize(
    ("test", "status", "reason"),
    [
        ("", "skipped", ""),
        ("(S (DT The) (NN dog))", "error", "the gold tree has 4 words, the parse 2"),
        (
            "(S (DT The) (NN cat) (VBZ sees) (PRP it))",
            "error",
            "'dog' in the gold tree is 'cat' in the parse",
        ),
        ("(S (DT The", "error", "a bracket that opens here is never closed"),
    ],
)
def test_uncomparable_parses_state_the_reason(test, status, reason):
    assert row(test) == Row(5, status, reason=reason)


def test_evalb_parameter_files_are_read(tmp_path):
    file = tmp_path / "my.prm"
    text = "# a comment\nDEBUG 0\nLABELED 0\nCUTOFF_LEN 3\nDELETE_LABEL TOP\nEQ_WORD  This this\nEQ_LABEL A B \n"
    file.write_text(text)
    found = read_parameters(str(file))
    assert found.deleted == {"TOP"} and found.cutoff == 3 and not found.labelled
    assert (
        found.same_word("this", "This")
        and found.same_label("B", "A")
        and not found.same_label("A", "C")
    )
    assert compare("(TOP (A (X This)))", "(TOP (C (Y this)))", found) == Row(
        1, "valid", 1, 1, 1, 0, 1, 0
    )
    file.write_text("DEBUG 1\nDELETE LABEL\n")
    with pytest.raises(UserError, match=r"my.prm, line 2: 'DELETE LABEL' is no parameter"):
        read_parameters(str(file))


def test_sums_and_averages_by_hand():
    scores = score_brackets(
        [GOLD, GOLD, GOLD, GOLD],
        [GOLD, "(S (NP (DT The)) (VP (NN dog) (VBZ sees) (NP (PRP it))))", "", "(X"],
    )
    found, figures = scores.all, scores.all.figures
    assert scores.short == found and len(scores.rows) == 4
    assert (found.valid, found.errors, found.skipped) == (2, 1, 1)
    assert figures["recall"] == figures["precision"] == 100 * 6 / 8 and figures[
        "F1"
    ] == pytest.approx(75)
    assert (
        figures["complete match"] == 50
        and figures["average crossing"] == 0.5
        and figures["no crossing"] == 50
    )
    assert figures["2 or less crossing"] == 100 and figures["tagging"] == 100
    assert all(map(math.isnan, summarise([]).figures.values()))


def test_bad_gold_trees_are_refused():
    with pytest.raises(UserError, match="Gold tree 2 is malformed"):
        score_brackets([GOLD, "(S"], [GOLD, GOLD])
