"""Tests of transduce/inline/events.py: each syntax finds its own examples among all the others."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marked_texts import MESSAGES
from transduce.inline.events import (
    IN_ALL,
    IN_PLAIN_TEXT,
    SYNTAXES,
    WITH_BRANCHES,
    plain_events,
    unescape,
)
from transduce.text.formats import MESSAGE, PLAIN_TEXT, TextKind

EXAMPLES = {
    "reStructuredText: link": ["`text <https://a.b>`_"],
    "Markdown: stress, unless escaped": ["*text*", "**a text**"],
    "WebVTT: time, reading of a word": ["<00:01.000>", "<01:00:01.000>", "<rt>kan</rt>"],
    "WebVTT: voice": ["<v O'Neil>", "<v.loud Ann>"],
    "tag, also an escaped one": [
        *("<b>", "</a>", "<a href='x' id=y>", "<br/>", "<0>"),
        *("&lt;a id=&quot;x&quot;&gt;", "&lt;br/&gt;"),
    ],
    "reStructuredText: role, with or without a domain": [":func:`x`", ":py:meth:`~a.b`"],
    "code": ["``code``", "``a`b``"],
    "code in Markdown or a reference, but not `a' in GNU style": ["`ls -l`", "`x`_", "`x`__"],
    "reStructuredText: footnote": ["[1]_", "[#note]_", "[*]_"],
    "reStructuredText: substitution": ["|version|"],
    "web address": [
        *("https://a.b/c?d=e", "ftp://a.b/c_(d)", "www.例子.com", "http://a.b/{id}/中文"),
    ],
    "mail address": ["a.b+c@mail.example.org"],
    "Windows: path": ["C:\\new\\a.txt"],
    "i18next: other message": ["$t(key)", "$t(key, {(1)})"],
    "Handlebars, i18next: unescaped": ["{{{name}}}"],
    "Symfony, Jinja: variable": ["{{ limit }}"],
    "Django: tag": ["{% url %}"],
    "ERB, EJS, PHP": ["<%= name %>", "<?= $name ?>", "&lt;%- a > b %&gt;"],
    "ICU: message with branches": [
        "{n, plural, one {a {b}} other {#}}",
        "{n, select, a {b {c {d}}} other {}}",
    ],
    "ICU, Java: number, date": ["{0,number,#.#}", "{day, date, long}"],
    "C#, Python: date": [
        *("{0:yyyy-MM-dd HH:mm}", "{1,-5:N2}", "{day:dd. MM. yyyy}", "{day:%d. %B}"),
    ],
    "Aegisub: style": [r"{\fnComic Sans}", r"{\i1\b0}"],
    "str.format, shell, Ruby": ["{0}", "${HOME}", "#{name}", "%{count}"],
    "Fluent, and names between blanks": [
        *("{ $count }", "{ -brand-name }", "${ name }", '{ "" }'),
        "{ NUMBER($n, minimumFractionDigits: 2) }",
    ],
    "wiki: link": ["[[Main page]]", "[[File:A.png|thumb]]"],
    "Chrome: name": ["$PLACE$", "$user_name$"],
    "WordPress: name": ["%%title%%"],
    "escaped per cent sign": ["%%"],
    "iOS: plural": ["%#@days@"],
    "gettext: macro of C": ["%<PRIu64>", "%-5<PRId32>", "%&lt;PRIu64&gt;"],
    "C: grouped digits": ["%'d", "%'9f"],
    "Ruby: name": ["%<name>s", "%<rate>.2f"],
    "Python: name, C: number": ["%(name)s", "%1$d"],
    "C: conversion": ["%s", "%-5.2f", "%lld", "%@", "%*d"],
    "C: before a unit": ["%d", "%.1f"],
    "Symfony: name": ["%name%", "%user.id%"],
    "Java: date": ["%1$tY", "%2$B", "%tY"],
    "Windows: number": ["%1!s!", "%2!08x!"],
    "Drupal: emphasised": ["%name", "%node-type"],
    "C: before a word, unlike in 100 %sure": ["%s"],
    "Qt, unlike %50 in Turkish": ["%1", "%L2", "%n"],
    "strftime": ["%Y", "%-H"],
    "escaped entity": ["&amp;nbsp;", "&amp;amp;", "&amp;#160;"],
    "entity": ["&nbsp;", "&#160;", "&#xA0;"],
    "Drupal, Laravel, Vue, Autoconf": ["@site", "!url", ":name", "@:common.title", "@EMAIL@"],
    "MediaWiki: number, unlike a price": ["$1", "$2"],
    "shell, PHP: variable": ["$HOME", "$name"],
    "Mozilla: number": ["#1"],
    "Perl: number; Drupal: token": ["[_1]", "[site:name]"],
    "i18next, Chrome: name": ["__count__"],
    "Mailchimp: name": ["*|FNAME|*"],
    "escaped line break": [r"\n", r"\N"],
}
# What follows an example, if the pattern depends on it.
AFTER = {"C: before a unit": "px", "C: before a word, unlike in 100 %sure": "Files"}
ONLY_IN_MESSAGES = {
    *("Drupal: emphasised", "Drupal, Laravel, Vue, Autoconf", "MediaWiki: number, unlike a price"),
    *("shell, PHP: variable", "Mozilla: number", "Perl: number; Drupal: token"),
    *("i18next, Chrome: name", "Mailchimp: name", "escaped line break"),
}
# One group around each syntax, to see which one has matched.
NAMED = re.compile(
    " | ".join(f"(?P<syntax_{i}>{syntax.pattern})" for i, syntax in enumerate(SYNTAXES)),
    re.VERBOSE,
)


@pytest.mark.parametrize(
    ("name", "example"), [(name, each) for name, examples in EXAMPLES.items() for each in examples]
)
def test_a_syntax_finds_its_examples(name: str, example: str) -> None:
    text = example + AFTER.get(name, "")
    for is_message in (False, True):
        found = IN_ALL[is_message].search(text) and IN_PLAIN_TEXT[is_message].search(text)
        is_found = bool(found and found.group() == example)
        assert is_found == (is_message or name not in ONLY_IN_MESSAGES)
    groups = NAMED.search(text).groupdict()
    names = [syntax.name for i, syntax in enumerate(SYNTAXES) if groups[f"syntax_{i}"] is not None]
    assert names == [name]


def test_every_syntax_has_an_example() -> None:
    assert sorted(syntax.name for syntax in SYNTAXES) == sorted(EXAMPLES)


def test_branches_are_nested_up_to_three_deep() -> None:
    assert WITH_BRANCHES.fullmatch("{n, plural, other {1 {2 {3}}}}")
    assert not WITH_BRANCHES.match("{n, plural, other {1 {2 {3 {4}}}}}")


@given(st.text(alphabet="<>/ab:.@{}%$#&;`*|[]_w 1!\\N") | MESSAGES, st.booleans())
def test_quick_check_finds_every_placeholder(text: str, message: bool) -> None:
    assert IN_ALL[message].search(text) or not IN_PLAIN_TEXT[message].search(text)


def shown(text: str, kind: TextKind = PLAIN_TEXT) -> str:
    """The events of a text: (word), <open name>, </close name>, {point} and [character]; other text as it is."""
    forms = {
        "word": "({})",
        "open": "<{}>",
        "close": "</{}>",
        "point": "{{{}}}",
        "character": "[{}]",
    }
    events = [*plain_events(text, kind)]
    assert "".join(event.raw for event in events) == text
    assert all(event.raw for event in events)
    return "".join(
        forms.get(event.kind, "{}").format(event.name or event.shown or event.raw)
        for event in events
    )


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("", ""),
        ("a dog", "a dog"),
        ("a %s b", "a (%s) b"),
        ("%s%d", "(%s)(%d)"),
        # Tags, plain and escaped: a pair, or placeholders if they are not paired.
        ("a <b>c</b> d", "a <<b>c</<b> d"),
        ("a <b class='x'>c</b>", "a <<b>c</<b>"),
        ("&lt;b&gt;c&lt;/b&gt;", "<<b>c</<b>"),
        ("Usage: <file>, </file>", "Usage: <<file>, </<file>"),
        ("Usage: <file> or <br/>", "Usage: (<file>) or (<br/>)"),
        ("</b> <b>", "(</b>) (<b>)"),
        ("<b>a</b>b</b>", "<<b>a</<b>b(</b>)"),
        ("<b><b>a</b>", "(<b>)<<b>a</<b>"),
        ("<b>a<i>b</b>c</i>", "<<b>a(<i>)b</<b>c(</i>)"),
        ("<i><b>a<i>b</b>c</i>", "<<i><<b>a(<i>)b</<b>c</<i>"),
        ("<v Ann>Hi</v> <c.red>x</c>", "<<v>Hi</<v> <<c>x</<c>"),
        ("a<00:01.000>b", "a{<00:01.000>}b"),
        # Signs around a text have the place of the first one as their name.
        ("*a* b **c**", "<0>a</0> b <6>c</6>"),
        ("*a* b", "<0>a</0> b"),
        ("a *b %s*", "a <2>b (%s)</2>"),
        ("*%s b*%d", "<0>(%s) b</0>(%d)"),
        ("`a b <https://c.d>`_ e", "<0>a b</0> e"),
        ("`a %s <https://c.d>`_", "<0>a (%s)</0>"),
        ("*a `b <https://c.d>`_ %s*", "<0>a <3>b</3> (%s)</0>"),
        ("`*a* %s <https://c.d>`_", "<0><1>a</1> (%s)</0>"),
        ("*a `b* c` %s", "<0>a `b</0> c` (%s)"),
        ("*a `b* `c`", "<0>a `b</0> (`c`)"),
        ("*a* <b>*c*</b>", "<0>a</0> <<b><7>c</7></<b>"),
        # Entities of letters and of apostrophes are text, other ones are placeholders.
        ("don&#39;t caf&eacute;", "don[']t caf[é]"),
        ("don&rsquo;t &amp; &nbsp;&#1;", "don[’]t (&amp;) (&nbsp;)(&#1;)"),
        ("&quot;a&quot; 1&#50;", "(&quot;)a(&quot;) 1(&#50;)"),
    ],
)
def test_events_of_plain_text(text: str, events: str) -> None:
    assert shown(text) == events


@pytest.mark.parametrize(
    ("text", "events"),
    [
        ("It costs $5.", "It costs $5."),
        ("It costs $2.", "It costs $2."),
        ("$2 and $1", "($2) and ($1)"),
        ("$3 and $1", "$3 and ($1)"),
        ("$3, $2 and $1", "($3), ($2) and ($1)"),
        ("@site", "(@site)"),
    ],
)
def test_events_of_messages(text: str, events: str) -> None:
    assert shown(text, MESSAGE) == events
    assert shown(text) == text


def test_entities_are_unescaped_however_long_they_are() -> None:
    assert unescape("&lt;&#228;&auml;&amp;") == "<ää&"
    assert unescape(f"a &#{'1' * 5000}; b") == "a \ufffd b"


CONVERSIONS = [
    *(f"%{kind}" for kind in "diouxXeEfFgGcrsSa@"),
    *(f"%{size}d" for size in ("h", "hh", "l", "ll", "L", "q", "j", "z", "t", "I64", "I32")),
    *(f"%{flag}d" for flag in ("-", "+", "#", "0", "5", "*", ".2", "5.*", "-05.2")),
    *("{n, number}", "{n, date}", "{n, time}", "{n, spellout}", "{n, ordinal}", "{n, duration}"),
    *(f"{{n, {kind}, a {{b}}}}" for kind in ("plural", "select", "selectordinal", "choice")),
    *("http://a.b", "https://a.b", "ftp://a.b", "www.a.b"),
]


@pytest.mark.parametrize("placeholder", CONVERSIONS)
def test_all_forms_of_a_placeholder_are_found(placeholder: str) -> None:
    assert shown(f"a {placeholder}, b") == f"a ({placeholder}), b"


def test_a_unit_may_follow_a_conversion_but_no_other_letters() -> None:
    units = ["x", "px", "pt", "B", "kB", "KB", "KiB", "MB", "GB", "TB", "h", "m", "s"]
    for unit in [*units, "ms", "µs", "ns", "min", "sec", "th"]:
        assert shown(f"a %d{unit}, b") == f"a (%d){unit}, b"
    for word in ("py", "xs", "hours", "mm"):
        assert shown(f"a %d{word}, b") == f"a %d{word}, b"
