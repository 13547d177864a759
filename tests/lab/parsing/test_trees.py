"""Trees: read, written and simplified without losing a word."""

import gzip
import re

import pytest
from hypothesis import given

from transduce.system.errors import UserError
from transduce.text.pairs import are_trees, read_pairs
from transduce_lab.parsing.trees import (
    TRACE,
    MalformedTreeError,
    Tree,
    category,
    delinearise,
    linearise,
    marked_tags,
    marked_words,
    parse_trees,
    read_trees,
    simplify,
    without_marks,
)
from trees import trees


def parse(*lines: str) -> list[Tree]:
    return [tree for tree, _ in parse_trees(lines)]


@given(trees)
def test_parsed_trees_print_as_their_text(tree):
    assert parse(str(tree)) == [tree]
    assert parse(*str(tree).replace(" (", "\n(").split("\n")) == [tree], "on many lines"


@given(trees)
def test_simplifying_keeps_the_words_and_is_done_once(tree):
    simple = simplify(tree)
    wanted = [leaf for leaf in tree.leaves() if leaf.label != TRACE]
    if simple is None:
        assert not wanted
        return
    assert list(simple.leaves()) == wanted
    assert simplify(simple) == simple
    assert all(node.children and node.label == category(node.label) for node in inner_nodes(simple))


def inner_nodes(tree: Tree) -> list[Tree]:
    found, stack = [], [tree]
    while stack:
        node = stack.pop()
        if node.word is None:
            found.append(node)
            stack += node.children
    return found


@given(trees)
def test_linearised_trees_come_back(tree):
    symbols = linearise(tree)
    assert delinearise(symbols, tree.words()) == tree
    assert without_marks(marked_tags(symbols)) == symbols
    marks = [symbol for symbol in marked_tags(symbols).split(" ") if symbol not in symbols]
    assert marks == marked_words(tree.words()).split(" ")[::2], "the same on both sides"
    opened = [symbol for symbol in symbols if symbol.startswith("(")]
    assert opened == [f"({node.label}" for node in tree.walk() if node and node.word is None]


@given(trees)
def test_one_symbol_closes_many_brackets(tree):
    runs = re.findall(r"(?:\)\d* )+", f"{' '.join(linearise(tree))} ")
    assert all(run == ") " * (len(run) // 2) or re.fullmatch(r"\)\d+ ", run) for run in runs)
    depth = closed = 0
    for symbol in linearise(tree):
        closed = closed + 1 if symbol == ")" else 0
        depth += symbol.startswith("(") - (symbol == ")")
        depth = int(symbol[1:]) if re.fullmatch(r"\)\d+", symbol) else depth
        assert closed <= depth, "more brackets close than remain open"
    assert depth == 0


@pytest.mark.parametrize(
    ("symbols", "words", "why"),
    [
        ("(S NN )", "a b", "numbers of tags and words differ"),
        ("(S NN NN )", "a", "numbers of tags and words differ"),
        ("(S NN", "a", "never closed"),
        ("(S NN ) )", "a", "no opening bracket"),
        ("(S NN )0 )", "a", "no opening bracket"),
        ("(S (NP NN )1", "a", "never closed"),
        ("(S NN ) (S NN )", "a b", "exactly one root"),
        ("", "", "exactly one root"),
    ],
)
def test_malformed_symbol_sequences_are_refused(symbols, words, why):
    with pytest.raises(MalformedTreeError, match=why):
        delinearise(symbols.split(), words.split())


def test_a_symbol_that_closes_nothing_is_ignored():
    tree = delinearise(["(S", "NN", ")1", "(NP", "NN", ")3", ")0", ")0"], ["a", "b"])
    assert str(tree) == "(S (NN a) (NP (NN b)))"


def test_trees_by_hand():
    text = "( (S (NP-SBJ-1 (PRP It)) (VP (VBD seemed) (S (NP-SBJ (-NONE- *-1)) (VP (-NONE- *?*)))) (-RRB- -RRB-)) )"
    (tree,) = parse(text)
    assert tree.label == "" and tree.words() == ["It", "seemed", "*-1", "*?*", "-RRB-"]
    assert (
        str(tree)
        == "( (S (NP-SBJ-1 (PRP It)) (VP (VBD seemed) (S (NP-SBJ (-NONE- *-1)) (VP (-NONE- *?*)))) (-RRB- -RRB-)))"
    )
    assert str(simplify(tree)) == "(S (NP (PRP It)) (VP (VBD seemed)) (-RRB- -RRB-))"
    assert simplify(parse("(S (NP (-NONE- *)))")[0]) is None
    assert parse("(NN a\u2009b\u00a0c)")[0].word == "a\u2009b\u00a0c"


def test_deep_trees_need_no_stack():
    deep = "(X " * 5000 + "(NN word)" + ")" * 5000
    assert str(parse(deep)[0]) == deep
    assert simplify(parse(deep)[0]).words() == ["word"]


@pytest.mark.parametrize("symbol", [")A", ")²", ")-1", ")" + "9" * 5000])
def test_a_symbol_that_is_spelt_is_refused(symbol):
    with pytest.raises(MalformedTreeError, match="is no symbol"):
        delinearise(["(S", "NN", symbol], ["x"])


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("(S (NN a))\n(S (NN b)", 1, "a bracket that opens here is never closed"),
        ("(S (NN a)))", 0, "a closing bracket has no opening bracket"),
        ("(S\n(NN a b))", 1, "'b' has no tag of its own"),
        ("(S (NN a) b)", 0, "'b' has no tag of its own"),
        ("(S a (NN b))", 0, "a bracket follows the word 'a'"),
        ("a (NN b)", 0, "'a' stands outside all brackets"),
    ],
)
def test_malformed_trees_are_refused_with_their_line(text, line, why, tmp_path):
    with pytest.raises(MalformedTreeError, match=why) as raised:
        parse(*text.split("\n"))
    assert raised.value.line == line
    check_refused_in_files(text, line, why, tmp_path)


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("(S (NN a))\n(S ( dog)\n(VP (V x)))", 1, "'(dog)' lacks a tag or a word"),
        ("(S (NN a))\n(S\n(NP))", 2, "'(NP)' lacks a tag or a word"),
        ("(word)", 0, "'(word)' lacks a tag or a word"),
        ("(S (NP (-NONE-)) (NN a))", 0, "'(-NONE-)' lacks a tag or a word"),
    ],
)
def test_a_label_without_a_word_is_refused_in_files_only(text, line, why, tmp_path):
    assert parse(*text.split("\n")), "EVALB scores such parses"
    check_refused_in_files(text, line, re.escape(why), tmp_path)
    (tmp_path / "good.mrg").write_text("( (S (NP (-NONE- *T*)) (NN a)) )\n(())")
    assert [tree.words() for tree, _ in read_trees(str(tmp_path / "good.mrg"))] == [
        ["*T*", "a"],
        [],
    ]


def check_refused_in_files(text, line, why, tmp_path):
    (tmp_path / "bad.mrg").write_text(text)
    with pytest.raises(UserError, match=rf"bad.mrg, line {line + 1}: .*{why}"):
        list(read_trees(str(tmp_path / "bad.mrg")))


def test_trees_record_their_first_line(tmp_path):
    (tmp_path / "a.mrg").write_text("\n( (S\n  (NN a)) )\n\n(X (NN b)) (Y (NN c))\n")
    assert [(line, tree.words()) for tree, line in read_trees(str(tmp_path / "a.mrg"))] == [
        (2, ["a"]),
        (5, ["b"]),
        (5, ["c"]),
    ]


def test_a_treebank_is_a_folder_or_several_files(tmp_path):
    names = "a.mrg", "b.ptb", "c.tree.gz", "more/d.parse"
    (tmp_path / "more").mkdir()
    for name in names:
        with (gzip.open if name.endswith(".gz") else open)(tmp_path / name, "wt") as file:
            file.write(f"(X (NN {name}))")
    files = [str(tmp_path / name) for name in names]
    for some, expected in ([str(tmp_path)], names), (files, names), (files[:2], names[:2]):
        assert are_trees(some) and [pair.source for pair in read_pairs(some)] == [
            f"0) {name}" for name in expected
        ]
