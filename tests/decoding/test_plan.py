"""Tests of transduce/decoding/plan.py."""

from texts_with_tokens import A, B
from transduce.decoding.plan import Plan
from transduce.decoding.types import Translation


def test_a_sentence_has_its_own_tokens() -> None:
    plan = Plan(["Open {0} with %s. Close {1}, {1}."], "en", placeholder_tokens=True)
    assert plan.sentences == [f"Open {A} with {B}.", "Open with.", f"Close {A}, {A}.", "Close,."]
    made = plan.assemble(
        [Translation(each, -1.0, ()) for each in (f"Mit {B} {A}.", "Auf.", f"{A}, {A} zu.", "Zu.")]
    )
    assert (made[0].text, made[0].flags) == ("Mit %s {0}. {1}, {1} zu.", ())


def test_a_text_that_holds_such_characters_keeps_them() -> None:
    plan = Plan([f"A {B} here. And {{0}} there."], "en", placeholder_tokens=True)
    assert plan.assemble([Translation(each, -1.0, ()) for each in plan.sentences])[
        0
    ].text.startswith(f"A {B} here.")


def test_unsplit_text_shares_its_tokens() -> None:
    plan = Plan(["  One. Two. {0} ", " ", ""], None, placeholder_tokens=True)
    assert plan.sentences == [f"One. Two. {A}", "One. Two."]
    assert [made.text for made in plan.assemble([Translation(f"{A} x", -1.0, ())] * 2)] == [
        "  {0} x ",
        " ",
        "",
    ]
