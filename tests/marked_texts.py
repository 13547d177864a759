"""Texts with tags and placeholders."""

import re

from hypothesis import strategies as st

from transduce.inline.placeholders import Masked, original

WORDS = ["a", "red", "Haus", "l'eau", "3.5", "Dr.", "x", "so,", "(yes)", "»Ja«", "你好", "end."]


PLACEHOLDERS = [
    "%(name)s",
    "{0}",
    "{{ limit }}",
    "%s",
    "%1$d",
    "%%",
    "${HOME}",
    "{% url %}",
    "%name%",
    "``code``",
]


OTHERS = [
    ":func:`x`",
    "`x`_",
    "https://a.b/c?d=e.",
    "mail@example.org",
    "<file>",
    "<br/>",
    "&nbsp;",
    "'{0}'",
    "({1})",
]
OTHERS += ["%'d", "%<PRIu64>", "%#@days@", "%<name>s", "<v O'Neil>"]
OTHERS += ["{{{x}}}", "{ $x }", "<%= x > 1 %>", "[[x]]", "$X$", "<code>x y</code>", "&amp;nbsp;"]

IN_MESSAGES = [
    "$1",
    "@site",
    "!x",
    ":name",
    "%node-type",
    "__x__",
    "[a:b]",
    "*|A|*",
    "#1",
    "$HOME",
    "\\N",
    "$5",
]


PAIRS = [
    ("<b>", "</b>"),
    ('<a href="x>y">', "</a>"),
    ("**", "**"),
    ("`", " <https://a.b>`_"),
    ("<i>", "</i>"),
    ("&lt;a href=&quot;x&quot;&gt;", "&lt;/a&gt;"),
    ("&amp;lt;u&amp;gt;", "&amp;lt;/u&amp;gt;"),
]


BLANKS = st.sampled_from([" ", " ", " ", "", "  ", "\n", ". "])


def inline(leaves: list[str], pairs: list[tuple[str, str]]) -> st.SearchStrategy[str]:
    """Words with markup among and around them, properly nested."""

    def around(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        joined = st.lists(st.tuples(inner, BLANKS), max_size=5).map(
            lambda each: "".join(a + b for a, b in each)
        )
        return (
            st.tuples(st.sampled_from(pairs), joined).map(
                lambda each: each[0][0] + each[1] + each[0][1]
            )
            | joined
        )

    return st.recursive(st.sampled_from(leaves), around, max_leaves=12)


PLAIN = inline([*WORDS, *PLACEHOLDERS, *OTHERS], PAIRS)
MESSAGES = inline([*WORDS, *PLACEHOLDERS, *OTHERS, *IN_MESSAGES], PAIRS)


TAGS = [
    "<br>",
    '<img src="a" alt=b>',
    '<x id="1"/>',
    "<code>ls -l</code>",
    "<ph id='2'>&lt;p></ph>",
    "<!-- no -->",
    "&amp;",
]


HTML_PAIRS = [
    *PAIRS[:2],
    ("<g id='1'>", "</g>"),
    ("&lt;b&gt;", "&lt;/b&gt;"),
    ('<bpt id="1">&lt;b></bpt>', '<ept id="1"/>'),
    ("<b>", ""),
    ("", "</i>"),
]


MARKUP = inline([*WORDS, "{0}", "&eacute;t&eacute;", "&quot;", *TAGS], HTML_PAIRS)


WEIGHTS = st.floats(0, 1)


@st.composite
def links(
    draw: st.DrawFn, source: str, target: str
) -> list[tuple[tuple[int, int], tuple[int, int], float]]:
    """Any links between the words of two texts, or between words and signs, as engines split them."""
    pattern = draw(st.sampled_from([r"\S+", r"\w+|[^\w\s]"]))
    words = [[found.span() for found in re.finditer(pattern, text)] for text in (source, target)]
    if not all(words):
        return []
    return draw(
        st.lists(
            st.tuples(st.sampled_from(words[0]), st.sampled_from(words[1]), WEIGHTS), max_size=8
        )
    )


def shown(masked: Masked) -> str:
    """A masked text with ‹point›, «half» and (placeholder); _ stands where a mark without text needs a blank."""
    forms = {"point": "‹{}›", "half": "«{}»", "word": "({})", "pair": "{}"}
    marks = [
        mark._replace(
            opening="_" * (mark.before and mark.kind in ("point", "half"))
            + forms[mark.kind].format(mark.opening)
            + "_" * mark.after,
            before=False,
            after=False,
        )
        for mark in masked.marks
    ]
    return original(Masked(masked.text, tuple(marks)))
