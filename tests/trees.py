"""Random trees for the tests."""

from hypothesis import strategies as st

from transduce_lab.parsing.trees import TRACE, Tree

labels = st.sampled_from(["S", "", "TOP", "NP", "NP-SBJ", "VP", "PP=2", "ADVP", "PRT", "X"])
tags = st.sampled_from(["NN", "DT", "VBZ", ",", ".", "-LRB-", "``"])
words = st.text(
    st.characters(codec="utf-8", exclude_characters=" \t\n\r\f\v()"), min_size=1, max_size=4
)
leaves = st.builds(lambda tag, word: Tree(tag, word=word), tags, words)
traces = st.builds(lambda word: Tree(TRACE, word=word), st.sampled_from(["*", "0", "*T*-1"]))


def inner(children: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.builds(
        lambda label, below: Tree(label, tuple(below)),
        labels,
        st.lists(children, min_size=1, max_size=4),
    )


trees = inner(st.recursive(leaves | traces, inner, max_leaves=25))
