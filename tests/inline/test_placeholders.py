"""What isn't text is found, taken out and put back: exactly once, properly nested, whatever a model says."""

import re
import time
from dataclasses import replace
from itertools import chain, pairwise

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from lxml import etree

from marked_texts import MARKUP, MESSAGES, PLAIN, WORDS, links, shown
from transduce.decoding.plan import LOST, Plan
from transduce.decoding.types import BLANK_TRANSLATION, TERM, Term, Translation, TranslationOptions
from transduce.inline import placeholders
from transduce.inline.markup import speller
from transduce.inline.placeholder_removal import is_text, without_words
from transduce.inline.placeholders import (
    Mark,
    Masked,
    Patch,
    cut,
    intact,
    mask,
    moved,
    original,
    weave,
)
from transduce.inline.placeholders import replace as replaced
from transduce.inline.placing import copied, restore
from transduce.inline.segments import split, whole_words
from transduce.inline.symbols import symbols_of
from transduce.text.formats import (
    MARKUP_TEXT,
    MESSAGE,
    PLAIN_TEXT,
    PRESERVED_TEXT,
    TextKind,
    read_document,
)
from transduce.wings.serving.languages import without_markup

TRANSLATION = st.lists(st.sampled_from([*WORDS, "<", "&", "das", "ist"]), max_size=8).map(" ".join)


@given(st.text() | MESSAGES, st.sampled_from([PLAIN_TEXT, MESSAGE]))
def test_masking_a_plain_text_is_undone(text: str, kind: TextKind) -> None:
    assert original(mask(text, kind)) == text


@given(MARKUP)
def test_masking_markup_is_undone_where_blanks_count(text: str) -> None:
    assert original(mask(text, PRESERVED_TEXT), speller(text)) == text


@given(
    PLAIN | st.lists(st.sampled_from(["<b>", "</b>", "<i>", "</i>", "a", " ", ". A"])).map("".join)
)
@example("<b><b><b></b>a </b> a </b>")
@example("<b>a <b>a<b></b></b></b> a")
@example('<a href="x>y"><b>Dr. </b> <b></b> %(name)s </a>')
def test_a_text_in_sentences_is_the_text(text: str) -> None:
    masked = mask(text)
    gaps, inside = cut(masked, whole_words(masked, split(masked.text, "en")))
    assert (
        "".join(
            gap + original(each) for gap, each in zip(gaps, [*inside, Masked("", ())], strict=True)
        )
        == text
    )


@given(st.data(), MARKUP)
def test_markup_comes_back_exactly_once_and_nested(data: st.DataObject, text: str) -> None:
    masked = without_words(mask(text, MARKUP_TEXT))
    translation = data.draw(TRANSLATION)
    restored = restore(
        masked, translation, data.draw(links(masked.text, translation)), speller(text)
    )
    assert intact(text, restored.text, MARKUP_TEXT)
    rest = iter(mask(restored.text, MARKUP_TEXT).text)
    assert all(character in rest for character in translation if not character.isspace())


@given(st.data(), MARKUP)
def test_copied_words_keep_their_place(data: st.DataObject, text: str) -> None:
    masked = mask(text, MARKUP_TEXT)
    assume(copied(masked, masked.text))  # not if it is part of a longer word
    restored = restore(
        masked, masked.text, data.draw(links(masked.text, masked.text)), speller(text)
    )
    assert intact(text, restored.text, MARKUP_TEXT)
    characters = [
        sorted("".join(each.split())) for each in (original(masked, speller(text)), restored.text)
    ]
    assert characters[0] == characters[1]


@pytest.mark.parametrize(
    ("source", "masked"),
    [
        ("A dog<sup>1</sup> runs.<sup><a href='#2'>[2]</a></sup> Yes.", "A dog runs. Yes."),
        ("A dog<sup><a>*</a></sup> runs <b>5</b> m<sup>2</sup>.", "A dog runs 5 m."),
        ("H<sub>2</sub>O, <sup>1</sup> and (<sup>2</sup>), all:<b>3</b>", "H2O, 1 and (2), all:3"),
        ("The 5<sup>th</sup> dog.<sup>1 2</sup> A<sub>n</sub>", "The 5th dog.1 2 An"),
    ],
)
def test_an_element_without_letters_behind_a_word_is_no_text(source: str, masked: str) -> None:
    for markup in (True, False):
        assert mask(source, TextKind(markup=markup)).text == masked
        assert original(mask(source, TextKind(markup=markup))) == source


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Hello %(name)s, it's {0} %.2f%% of 100% done", ["%(name)s", "{0}", "%.2f%%"]),
        ("Usage: <file> and <b>bold</b>", ["<file>", "<b>", "</b>"]),
        ("See :func:`open` or ``x`` at https://a.b/c.", [":func:`open`", "``x``", "https://a.b/c"]),
        ("a * b * c, 5 < 6 > 4 and x > 3", []),
        ("Write to me@example.org, 100 % sure", ["me@example.org"]),
        ("{{ limit }} or ${x} or {% if %}", ["{{ limit }}", "${x}", "{% if %}"]),
        ("%(width)sx%(height)s of %1$sx%2$s", ["%(width)s", "%(height)s", "%1$s", "%2$s"]),
        ("%dMB in %.2fms, 100 %des Umsatzes, 100%discount", ["%d", "%.2f"]),
        ("See https://a.b/c_(d) or www.a.b/{id}/x[0].", ["https://a.b/c_(d)", "www.a.b/{id}/x[0]"]),
        (
            "Read “https://a.b/”, «https://a.b/c» or https://a.b/d…",
            ["“https://a.b/”", "«https://a.b/c»", "https://a.b/d"],
        ),
        ("a scheme such as “https://”", []),
        ("A<00:00:01.500> dog <02:00.000>runs", ["<00:00:01.500>", "<02:00.000>"]),
        ("cannot move `%s' to `%s', it`s `x y`", ["%s", "%s", "`x y`"]),
        ("%sviminfo: %s, %sand 100 %sure, 50%sold", ["%s", "%s", "%s"]),
        ("%site_name% is %status%", ["%site_name%", "%status%"]),
        ("%'d or %<PRIu64> of %#@days@ in %<name>s", ["%'d", "%<PRIu64>", "%#@days@", "%<name>s"]),
        ("the 1%'s income, 50%<b>x</b> or 5 %<b>bold</b>", ["<b>", "</b>", "<b>", "</b>"]),
        ("Text files (*.txt)|*.txt", []),
        ("<v O'Brien>Hi</v>", ["<v O'Brien>", "</v>"]),
        ("访问https://a.b/c，或https://a.b/维基然后。", ["https://a.b/c", "https://a.b/维基然后"]),
        (
            "请看https://a.b/login然后 https://a.b/login에서",
            ["https://a.b/login", "https://a.b/login"],
        ),
        (
            "https://a.b/c، https://a.b/d؟ https://a.b/e। https://a.b/f۔",
            [f"https://a.b/{end}" for end in "cdef"],
        ),
        (
            "打开https://例子.测试/路径。或www.例子.中国, https://www.例.cn 然后",
            ["https://例子.测试/路径", "www.例子.中国", "https://www.例.cn"],
        ),
        ("请看https://a.org.然后", ["https://a.org"]),
        ("http://日本語.jpのサイトです。www.한국.kr에서", ["http://日本語.jp", "www.한국.kr"]),
        ("请联系a@b.org，谢谢 josé@b.org", ["a@b.org", "josé@b.org"]),
        ("Don&#8217;t, caf&eacute; &amp; bar", ["&amp;"]),
        ("Click <0>here</0> or <1/>, I <3 you> and 1 <2 3> 2", ["<0>", "</0>", "<1/>"]),
    ],
)
def test_placeholders_by_hand(text: str, masked: list[str]) -> None:
    marks = [
        raw for mark in without_words(mask(text)).marks for raw in (mark.opening, mark.closing)
    ]
    assert sorted(filter(None, marks)) == sorted(masked)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (
            "Hi @name of @site-name: !count new, %user-id (:url)",
            "@name @site-name !count %user-id :url",
        ),
        ("$1 of $2 costs $5 or $9.99", "$1 $2"),
        ("From $1 to $3: $PLACE$ in $HOME, costs $3", "$1 $PLACE$ $HOME"),
        ("It costs $1 million, US$1 or $10", ""),
        ("100 %sure, 20 % of, a:b at 12:30, a@b.org, Hello!you, so: \\o", "a@b.org"),
        ("See @FILE@, [site:name], [a] and [_1]. ::x", "@FILE@ [site:name] [_1]"),
        ("first\\nsecond C:\\new\\new", "\\n C:\\new\\new"),
        ("__count__ of *|NAME|* and #1, %%title%% %1!s!", "__count__ *|NAME|* #1 %%title%% %1!s!"),
    ],
)
def test_some_signs_are_placeholders_in_messages_only(text: str, masked: str) -> None:
    assert [mark.opening for mark in mask(text, MESSAGE).words] == masked.split()
    plain = {mark.opening for mark in mask(text).words}
    assert plain <= {"a@b.org", "$PLACE$", "C:\\new\\new", "%%title%%", "%1!s!"}


STAYS = [
    "<code>wp-config.php</code>",
    "&lt;kbd&gt;Enter&lt;/kbd&gt;",
    '<span translate="no">the <b>painter</b></span>',
    '<i class="a notranslate">painter</i>',
    "&amp;lt;var&amp;gt;x&amp;lt;/var&amp;gt;",
    "&lt;span translate=&quot;no&quot;&gt;painter&lt;/span&gt;",
    "<samp>a <samp>b</samp> c</samp>",
    "<ruby><rt>kan</rt></ruby>",
]


@pytest.mark.parametrize("kind", [PLAIN_TEXT, MESSAGE, PRESERVED_TEXT, MARKUP_TEXT])
@pytest.mark.parametrize("element", STAYS)
def test_the_content_of_an_element_that_stays_is_not_translated(
    element: str, kind: TextKind
) -> None:
    text = f"Every <b>painter</b> opens {element} now."
    masked = mask(text, kind)
    kept = [mark.opening for mark in masked.marks if mark.kind != "pair"]
    assert kept == [element]
    assert original(masked, speller(text) if kind.markup else str) == text
    assert without_words(masked).text == "Every painter opens now."


def test_entities_within_entities_stay() -> None:
    text = "painter&amp;nbsp;is &amp;amp; waiting, don&amp;#39;t caf&amp;eacute;"
    for kind in (MARKUP_TEXT, PRESERVED_TEXT, PLAIN_TEXT):
        found = [mark.opening for mark in mask(text, kind).words]
        assert found == ["&amp;nbsp;", "&amp;amp;", "&amp;#39;", "&amp;eacute;"], kind
    message = mask(text, PRESERVED_TEXT._replace(message=True))
    assert message.text == "painter&nbsp;is &amp; waiting, don't café"


@pytest.mark.parametrize("text", ["{n, plural, one {a} other {b}}", "Now {0,choice,0#a|1#{b}} go"])
def test_branches_in_a_text_stay_and_are_flagged(text: str) -> None:
    plan = Plan([text], "en")
    (translation,) = plan.assemble([Translation("x", 0.0, ()) for _ in plan.sentences])
    assert LOST in translation.flags
    assert text.removeprefix("Now ").removesuffix(" go") in translation.text


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a <link>b</link> c", ["pair"]),
        ("a<br>b<br/>c", ["point"] * 2),
        ("a<br>b<br>c</br>", ["point"] * 2 + ["half"]),
    ],
)
def test_in_xml_an_element_like_an_empty_one_of_html_may_have_text(
    text: str, kinds: list[str]
) -> None:
    assert [mark.kind for mark in mask(text, MARKUP_TEXT).marks] == kinds


CROSSING = (
    ('<sc id="1"/>', '<ec startRef="1"/>'),
    ("&lt;b&gt;", "&lt;/b&gt;"),
    ("<bx rid='2'/>", "<ex rid='2'/>"),
)


@given(
    st.sampled_from(CROSSING),
    st.lists(st.sampled_from(["one ", "{} ", "b.", "<u>x</u>"]), min_size=5, max_size=5),
)
def test_crossing_tags_do_not_split_an_element(tags: tuple[str, str], texts: list[str]) -> None:
    for order in ((tags[0], "<g>", tags[1], "</g>"), ("<g>", tags[0], "</g>", tags[1])):
        text = "".join(chain.from_iterable(zip(texts, [*order, ""], strict=True)))
        marks = mask(text, PRESERVED_TEXT).marks
        assert [mark.kind for mark in marks if mark.opening == "<g>"] in (["pair"], ["word"]), text
        plan = Plan([text], "en", kinds=[PRESERVED_TEXT])
        said = (" ".join(reversed(sentence.split())) for sentence in plan.sentences)
        (translation,) = plan.assemble([Translation(each, 0.0, ()) for each in said])
        etree.fromstring(f"<x>{translation.text}</x>")  # raises an error unless it is well-formed


@pytest.mark.parametrize(("most", "kinds"), [(1, ["half", "half", "pair"]), (2, ["pair", "pair"])])
def test_more_nested_tags_than_there_may_be_stay_unpaired(most, kinds, monkeypatch) -> None:
    monkeypatch.setattr(placeholders, "MAX_OPEN_TAGS", most)
    marks = mask("<b>red <i>dog and</i> cat</b>", MARKUP_TEXT).marks
    assert sorted(mark.kind for mark in marks) == kinds


@pytest.mark.parametrize(("depth", "halves"), [(100, 0), (101, 2)])
def test_up_to_a_hundred_nested_tags_are_paired(depth: int, halves: int) -> None:
    marks = mask("<b>a " * depth + " a</b>" * depth, MARKUP_TEXT).marks
    assert [mark.kind for mark in marks].count("pair") == 100
    assert len(marks) == 100 + halves


def test_escaped_tags_are_tags() -> None:
    masked = mask(
        "Click &lt;b&gt;here&lt;/b&gt; or &lt;1/&gt; &lt;name> &lt;me@a.org&gt; &lt; 3", MARKUP_TEXT
    )
    assert masked.text == "Click here or <1/> <name> <me@a.org> < 3"
    assert [mark.opening for mark in masked.marks] == ["&lt;b&gt;", "&lt;1/&gt;", "me@a.org"]
    assert not intact("a &lt;b&gt;b&lt;/b&gt;", "a &lt;b&gt;b", MARKUP_TEXT)


def test_a_word_in_the_place_of_a_comma_gets_a_blank() -> None:
    masked = mask("Hello <x id='1'/>, you have mail", MARKUP_TEXT)
    assert original(masked) == "Hello <x id='1'/>, you have mail"
    links = [((0, 5), (0, 5), 1.0), ((8, 11), (6, 9), 1.0)]
    assert restore(masked, "Hallo Sie haben", links, str).text == "Hallo <x id='1'/> Sie haben"


def test_words_are_taken_out_with_their_quotes_and_a_blank() -> None:
    assert without_words(mask('Method "{method}" not allowed.')).text == "Method not allowed."
    assert without_words(mask("{0} items, at most {1}.")).text == "items, at most."
    assert without_words(mask("From {a}/{b}: {c}, {d}")).text == "From:,"


@pytest.mark.parametrize("form", ["{0}", "{{{0}}}", "%({0})s", '<a title="{0}">', "[a]({0})"])
def test_a_number_with_thousands_of_digits_is_no_character(form: str) -> None:
    text = form.format(f"&#{'1' * 5000};")
    for markup in (True, False):
        masked = mask(text, TextKind(markup=markup))
        assert restore(masked, masked.text, ()).text == text
    assert without_markup(f"ka {text}")


def test_a_blank_after_a_tag_between_sentences_stays() -> None:
    masked = mask("One. <img> Two.", MARKUP_TEXT)
    assert cut(masked, split(masked.text, "en"))[0] == ["", " <img> ", ""]


def test_texts_without_letters_are_not_translated() -> None:
    assert not is_text(mask("{0} 12 <b>%s</b> ... https://a.b"))
    assert is_text(mask("{0} a"))


HOSTILE = [
    "<a ",
    "<!--",
    "<b>",
    "{{",
    "%(",
    "`",
    "``a",
    "*a ",
    "&#",
    "<code>",
    "[a",
    "a@",
    "http://.",
    "'{0}",
    "<b> ",
]
HOSTILE += ["&lt;a ", "`a '", "<v a", "%<a", "%#@a"]


@pytest.mark.parametrize(
    "part", [*HOSTILE, "<br> ", ":a", ":a-", "1:11", '<a b="', "<a aaaa", "<p>a", "a. "]
)
def test_hostile_texts_take_no_longer_than_others(part: str) -> None:
    began = time.process_time()
    for text in (part * 8_000, part * 2_000 + "</b>" * 2_000):
        for markup in (False, True):
            without_words(mask(text, TextKind(markup=markup)))
        for name in ("a.html", "a.srt", "a.txt"):
            read_document(text.encode(), name, "en", "de")
    # Seconds of this process; what others take does not count.
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "text",
    [
        'He said <x id="1"/> that',
        'He <x id="1"/> is <x id="2"/> it',
        'He <x id="1"/> <x id="2"/> said',
        'He <x id="1"/> <g id="2">said</g> it',
        'He <x id="1"/> &amp; she',
        'He <x id="1"/> – she',
        "He <b> </b> said",
        'the <x id="1"/> <x id="2"/> <x id="3"/> dog',
        "the <x/> <g>dog</g>",
    ],
)
def test_a_blank_behind_a_tag_stays_where_blanks_count(text: str) -> None:
    masked = mask(text, PRESERVED_TEXT)
    assert original(masked, speller(text)) == text
    shown = " ".join(masked.text.split())
    words = [[word.span() for word in re.finditer(r"\S+", form)] for form in (masked.text, shown)]
    same = [(*each, 1.0) for each in zip(*words, strict=True)]
    assert restore(masked, shown, same, speller(text)).text == text


def test_conversions_without_numbers_keep_their_order() -> None:
    assert intact("%d of %s", "%d von %s")
    assert not intact("%d of %s", "von %s %d"), "C reads its arguments in this order"
    assert intact("%1$d of %2$s", "von %2$s %1$d")
    assert intact("{0} of {1}, %% %d", "{1} von {0}, %d %%")


def test_a_changed_text_is_not_intact() -> None:
    assert intact("a <b>b</b> {0}", "{0} <b>a</b> b", MARKUP_TEXT)
    assert not intact("a <b>b</b>", "a b", MARKUP_TEXT)
    assert not intact("a", "a <x/>", MARKUP_TEXT)
    assert not intact("a {0}", "a {0} {0}")
    assert not intact("a <b>b</b>", "</b>a b<b>", MARKUP_TEXT), "the tags are not paired"
    assert intact("a &eacute;", "a é", MARKUP_TEXT)
    assert intact("a $1", "a") and not intact("a $1", "a", MESSAGE)
    notes = symbols_of({"♪"})
    assert intact("a ♪", "a") and not intact("a ♪", "a", symbols=notes)
    assert intact("a ♪ b", "♪ a b", symbols=notes)


@pytest.mark.parametrize("word", ["%1", "%L1", "%n", "%Y", "%-d", "%H", "<c.red>x</c>"])
def test_placeholders_of_qt_strftime_and_webvtt(word: str) -> None:
    (mark,) = mask(f"It is {word} now").marks
    assert mark.opening + "x" * (mark.kind == "pair") + mark.closing == word


@pytest.mark.parametrize(
    "text", ["20%1", "100%n", "It is 5 %Your", "%yes", "at 5%.", "%50 indirim"]
)
def test_percentages_are_text(text: str) -> None:
    assert mask(text).marks == ()


def test_repeated_texts_are_planned_once() -> None:
    plan = Plan(["A {0}.", "B", "A {0}."], kinds=[PLAIN_TEXT, PLAIN_TEXT, MARKUP_TEXT])
    again = Plan(["A {0}.", "B", "A {0}."])
    assert len(plan.sentences) > len(again.sentences) and {
        text for g in again.groups for text in g.texts
    } == {0, 1}
    translations = [replace(BLANK_TRANSLATION, text=each.swapcase()) for each in again.sentences]
    assert [each.text for each in again.assemble(translations)] == ["a {0}.", "b", "a {0}."]


@pytest.mark.parametrize(("source", "flags"), [("a@b.de", (TERM,)), ("Write", ()), ("b.de", ())])
def test_a_term_that_is_masked_is_flagged(source: str, flags: tuple[str, ...]) -> None:
    terms = Term(source, "c@b.de"), Term("now", "now")
    plan = Plan(["Write to a@b.de now."], options=TranslationOptions(glossary=terms))
    [translation] = plan.assemble(
        [replace(BLANK_TRANSLATION, text=each) for each in plan.sentences]
    )
    assert (translation.text, translation.flags) == ("Write to a@b.de now.", flags)


def test_two_insertions_in_one_place_need_one_blank() -> None:
    both = [Patch(1, 1, "X", before=True), Patch(1, 1, "Y", before=True)]
    assert weave("ab", both) == "a XYb"
    assert weave("a b", [Patch(1, 1, "X", before=True), Patch(3, 3, "Y", before=True)]) == "a X b Y"


def test_a_span_moves_with_its_text() -> None:
    tags = [Patch(0, 0, "<b>"), Patch(3, 3, "</b>", after=True)]
    assert moved("abc de & f", tags, (4, 6)) == (11, 13)
    assert moved("abcde", tags, (3, 5)) == (11, 13), "behind the blank"
    assert moved("a & b", [], (4, 5), lambda text: text.replace("&", "&amp;")) == (8, 9)
    assert moved("a & b", [], (2, 3), lambda text: text.replace("&", "&amp;")) == (2, 7)


def test_tags_around_a_sentence_stay_outside_it() -> None:
    masked = mask("<b>One dog.</b> <i>Two {0}</i> cats.", MARKUP_TEXT)
    assert masked.text == "One dog. Two {0} cats."
    gaps, [first, second] = cut(masked, [(0, 8), (9, 22)])
    assert gaps == ["<b>", "</b> ", ""]
    assert first.marks == () and [mark.kind for mark in second.marks] == ["pair", "word"]
    assert second.marks[0][1:3] == (0, 7)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        # A tag between words: a blank on each side in the translation, if there is one in the source.
        ("a <x/> b", "a _‹<x/>›_b"),
        ("a<x/>b", "a‹<x/>›b"),
        ("a <x/>", "a _‹<x/>›"),
        ("<x/>a", "‹<x/>›a"),
        ("a <x/>b", "a _‹<x/>›b"),
        ("a<x/> b", "a‹<x/>› b"),
        ("a <x/>, b", "a _‹<x/>›_, b"),
        ("a<x/>, b", "a‹<x/>›, b"),
        ("我<x/>你", "我_‹<x/>›_你"),
        ("a<x/>你", "a‹<x/>›_你"),
        ("a <x/> <y/> b", "a _‹<x/>›__‹<y/>›_b"),
        # A pair around words.
        ("a <b>c</b> d", "a <b>c</b> d"),
        ("a<b> </b>c", "a<b> </b>c"),
        ("<b>a <i>b</i></b>", "<b>a <i>b</i></b>"),
        # Around nothing, or around a blank of two: a tag between words.
        ("a <b></b> c", "a _‹<b></b>›_c"),
        ("a <b> </b> c", "a _‹<b> </b>›_c"),
        # The number of a footnote, and other numbers.
        ("a<sup>1</sup> b", "a‹<sup>1</sup>› b"),
        ("a.<sub>1</sub>", "a.‹<sub>1</sub>›"),
        ("a<sup><i>1</i>, <b>2</b></sup>", "a<sup><i>1</i>, <b>2</b></sup>"),
        ("a<sup><i>1</i>,<b>2</b></sup> b", "a‹<sup><i>1</i>,<b>2</b></sup>› b"),
        ("a<b>1</b> b", "a<b>1</b> b"),
        ("a <sup>1</sup> b", "a <sup>1</sup> b"),
        ("a<sup>1</sup>b", "a<sup>1</sup>b"),
        ("a<sup>b</sup> c", "a<sup>b</sup> c"),
        ("(<sup>1</sup> c", "(<sup>1</sup> c"),
        ("&lt;sup&gt;1&lt;/sup&gt; c", "&lt;sup&gt;1&lt;/sup&gt; c"),
        ("a&lt;sup&gt;1&lt;/sup&gt; c", "a‹&lt;sup&gt;1&lt;/sup&gt;› c"),
        # Around placeholders only: a placeholder.
        ("a <b>{}</b> c", "a (<b>{}</b>) c"),
        ("<b><i>{}</i></b>", "(<b><i>{}</i></b>)"),
        ("<b>({}, {})</b>", "(<b>({}, {})</b>)"),
        ("<b>{} a</b>", "<b>({}) a</b>"),
        ("<b>{}1</b>", "<b>({})1</b>"),
        ("<b> {}</b>", "<b> ({})</b>"),
        ("<b>.</b>", "<b>.</b>"),
        (f"<b>{{{'x' * 58}}}</b>", f"(<b>{{{'x' * 58}}}</b>)"),
        (f"<b>{{{'x' * 59}}}</b>", f"<b>({{{'x' * 59}}})</b>"),
        # Tags that are not paired, and tags that cross.
        ("a <b>c", "a _«<b>»c"),
        ("a</b> c", "a«</b>» c"),
        ("a <b>c</b></b> d", "a <b>c</b>«</b>» d"),
        ("<b>{}<i></b>", "<b>({})«<i>»</b>"),
        ("<b>a <i>b</b> c</i>", "<b>a _«<i>»b</b> c«</i>»"),
        ("<b>a<i>b</b>c<i>d</i></i>", "<b>a«<i>»b</b>c<i>d</i>«</i>»"),
        ('<g>a<sc id="1"/>b</g>c<ec id="1"/>', '<g>a«<sc id="1"/>»b</g>c«<ec id="1"/>»'),
        ('<sc id="1"/>a<g>b<ec id="1"/>c</g>', '«<sc id="1"/>»a<g>b«<ec id="1"/>»c</g>'),
        ('a<sc id="1"/>b<sc id="2"/>c<ec id="1"/>d', 'a<sc id="1"/>b«<sc id="2"/>»c<ec id="1"/>d'),
    ],
)
def test_marks_by_hand(text: str, masked: str) -> None:
    for kind in (MARKUP_TEXT, PRESERVED_TEXT):
        assert shown(mask(text, kind)) == masked
        assert original(mask(text, kind), speller(text)) == text


@pytest.mark.parametrize(
    ("text", "preserved", "collapsed"),
    [
        ("a  b\n c", "a  b\n c", "a b c"),
        ("a <b> c</b>", "a <b> c</b>", "a <b>c</b>"),
        ("a  <b>  c</b>", "a  <b>  c</b>", "a <b>c</b>"),
        ("a <x/>  b", "a _‹<x/>›_  b", "a _‹<x/>›_b"),
        ("a <x/> <b>c</b>", "a _‹<x/>›_<b>c</b>", "a _‹<x/>›_<b>c</b>"),
        ("a <x/> ", "a _‹<x/>›_ ", "a _‹<x/>›_"),
        ("a <x/> &amp;", "a _‹<x/>›_ &", "a _‹<x/>›_&"),
        ("a <x/> , b", "a _‹<x/>›_ , b", "a _‹<x/>›_, b"),
        ("<b>{}\n</b>", "<b>({})\n</b>", "<b>({}) </b>"),
        ("<b>{}\n{}</b>", "<b>({})\n({})</b>", "(<b>{}\n{}</b>)"),
    ],
)
def test_blanks_are_collapsed_in_markup_unless_they_count(
    text: str, preserved: str, collapsed: str
) -> None:
    assert shown(mask(text, PRESERVED_TEXT)) == preserved
    assert shown(mask(text, MARKUP_TEXT)) == collapsed
    assert mask("a  b\n c").text == "a  b\n c"


@pytest.mark.parametrize(
    ("text", "gaps", "parts"),
    [
        # Tags around sentences are outside of them, tags within a sentence are inside.
        ("<b>One dog. Two cats.</b>", ["<b>", " ", "</b>"], ["One dog.", "Two cats."]),
        ("<b>One dog.</b> Two cats.", ["<b>", "</b> ", ""], ["One dog.", "Two cats."]),
        ("One dog.<b> Two cats.</b>", ["", "<b> ", "</b>"], ["One dog.", "Two cats."]),
        ("<x/>One dog.<y/> Two cats.<z/>", ["<x/>", "<y/> ", "<z/>"], ["One dog.", "Two cats."]),
        ("<b>One</b> dog. Two.", ["", " ", ""], ["<b>One</b> dog.", "Two."]),
        ("One <b>dog.</b> Two.", ["", " ", ""], ["One <b>dog.</b>", "Two."]),
        ("One <x/> dog. Two.", ["", " ", ""], ["One _‹<x/>›_dog.", "Two."]),
        (
            "One. Two <b>red <i>{}</i> cats</b>.",
            ["", " ", ""],
            ["One.", "Two <b>red (<i>{}</i>) cats</b>."],
        ),
        ("{} One. Two {}", ["", " ", ""], ["({}) One.", "Two ({})"]),
        # A pair around the end of a sentence is cut into halves, each with the place of its tag.
        ("One <b>dog. Two</b> cats.", ["", " ", ""], ["One _«<b>»dog.", "Two«</b>» cats."]),
        ("<b>One dog. Two</b> cats.", ["<b>", " ", ""], ["One dog.", "Two«</b>» cats."]),
        ("One <b>dog. Two cats.</b>", ["", " ", "</b>"], ["One _«<b>»dog.", "Two cats."]),
        # At the border of a sentence, the order of the tags decides.
        ("<b><x/>One. Two</b> cats.", ["<b><x/>", " ", ""], ["One.", "Two«</b>» cats."]),
        ("<b><i>One</i> dog. Two</b> a.", ["<b>", " ", ""], ["<i>One</i> dog.", "Two«</b>» a."]),
        (
            "<i>One</i> dog. <b><i>Two</i></b>.",
            ["", " ", ""],
            ["<i>One</i> dog.", "<b><i>Two</i></b>."],
        ),
        ("One <b>dog.</b><i> Two.</i>", ["", "<i> ", "</i>"], ["One <b>dog.</b>", "Two."]),
        ("One <b>dog. <i>Two</i></b> a.", ["", " ", ""], ["One _«<b>»dog.", "<i>Two</i>«</b>» a."]),
        ("One. <b></b><i>Two</i> a.", ["", " <b></b>", ""], ["One.", "<i>Two</i> a."]),
        ("One <b>dog.<x/></b> Two.", ["", " ", ""], ["One <b>dog.‹<x/>›</b>", "Two."]),
    ],
)
def test_sentences_are_cut_out_of_their_text(text: str, gaps: list[str], parts: list[str]) -> None:
    masked = mask(text, MARKUP_TEXT)
    spans = split(masked.text, "en")
    found, inside = cut(masked, spans)
    assert found == gaps
    assert [shown(each) for each in inside] == parts
    in_capitals = cut(masked, [], str.upper)
    assert in_capitals == ([original(masked, str.upper)], [])


@pytest.mark.parametrize(
    ("text", "patches", "woven"),
    [
        ("ab", [(1, 1, "X")], "aXb"),
        ("abcd", [(1, 3, "X"), (3, 4, "")], "aX"),
        ("abcd", [(0, 1, "X"), (1, 1, "Y"), (4, 4, "Z")], "XYbcdZ"),
        # A blank before a replacement, after a word or punctuation.
        ("ab", [(1, 1, "_X")], "a Xb"),
        (".b", [(1, 1, "_X")], ". Xb"),
        ("(b", [(1, 1, "_X")], "(Xb"),
        ("a b", [(2, 2, "_X")], "a Xb"),
        ("我b", [(1, 1, "_X")], "我Xb"),
        ("ab", [(0, 0, "_X")], "Xab"),
        ("ab", [(2, 2, "_X")], "ab X"),
        # A blank after a replacement, except before punctuation.
        ("ab", [(1, 1, "X_")], "aX b"),
        ("a.b", [(1, 1, "X_")], "aX.b"),
        ("a(b", [(1, 1, "X_")], "aX (b"),
        ("a b", [(1, 1, "X_")], "aX b"),
        ("a我", [(1, 1, "X_")], "aX我"),
        ("ab", [(2, 2, "X_")], "abX"),
        ("ab", [(0, 1, "X_")], "X b"),
        # Between two replacements.
        ("ab", [(1, 1, "X_"), (1, 1, "Y")], "aX Yb"),
        ("ab", [(1, 1, "X"), (1, 1, "_Y")], "aX Yb"),
        ("ab", [(1, 1, "_X"), (1, 1, "_Y")], "a XYb"),
        ("ab", [(1, 1, "_X"), (1, 1, "_Y"), (1, 1, "_Z")], "a XYZb"),
        ("ab", [(1, 1, "_X_"), (1, 1, "_Y_")], "a X Y b"),
        ("abc", [(1, 1, "_X_"), (2, 2, "_Y_")], "a X b Y c"),
        ("a.c", [(1, 1, "X_"), (2, 2, "Y")], "aX.Yc"),
    ],
)
def test_replacements_have_blanks_where_they_need_them(
    text: str, patches: list[tuple[int, int, str]], woven: str
) -> None:
    made = [
        Patch(begin, end, raw.strip("_"), raw.startswith("_"), raw.endswith("_"))
        for begin, end, raw in patches
    ]
    assert weave(text, made) == woven
    # A part of a text is changed like the whole text, but needs no blank at its beginning.
    moved_by_two = [each._replace(begin=each.begin + 2, end=each.end + 2) for each in made]
    assert weave(f"xx{text}", moved_by_two, begin=2) == woven
    assert weave(f"{text}.x", made, end=len(text)) == woven
    assert weave(text, made, str.upper) == woven.upper()


def test_only_what_is_between_replacements_is_escaped() -> None:
    assert weave("abc", [Patch(1, 2, "xyz")], str.upper) == "AxyzC"
    assert weave("abc", [Patch(1, 1, "x", after=True)], lambda text: f"[{text}]") == "[a]x [bc]"


def test_marks_move_with_their_text() -> None:
    marks = [Mark("pair", begin, begin + 1, "<b>", "</b>") for begin in range(6)]
    found = replaced(Masked("abcdef", (*marks,)), [Patch(1, 3, "XYZ"), Patch(4, 5, "")])
    assert found.text == "aXYZdf"
    places = [0, 1, 1, 4, 5, 5, 6]
    assert [mark[1:3] for mark in found.marks] == [*pairwise(places)]


def test_a_span_within_a_replacement_is_moved_into_it() -> None:
    assert moved("abcdef", [Patch(2, 5, "XX")], (3, 4)) == (3, 4)
    assert moved("abcdef", [Patch(1, 4, "")], (2, 3)) == (2, 2), "nothing is left"
    assert moved("abcdef", [Patch(1, 2, "XXX"), Patch(3, 3, "Y")], (2, 3)) == (4, 5)
    assert moved("abcdef", [Patch(2, 2, "X"), Patch(3, 3, "Y")], (2, 3)) == (3, 4)
    assert moved("abcdef", [Patch(2, 2, "X", before=True)], (2, 6)) == (4, 8)
