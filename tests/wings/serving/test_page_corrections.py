"""Corrections on the web page: tests of transduce/wings/serving/page/correction.js."""

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("selenium", reason="pip install selenium (in the extra `dev`)")
from selenium.webdriver.common.keys import Keys

if TYPE_CHECKING:
    from web_page import Page


def choose_language(page: "Page") -> None:
    """Choose the source language, since other texts than those of the other tests look like other languages."""
    page.run(
        "const field = document.querySelector('#source-language');"
        "field.value = 'ka'; field.dispatchEvent(new Event('change'))"
    )


def test_a_corrected_sentence_is_translated_as_corrected_from_then_on(page: "Page") -> None:
    choose_language(page)
    page.translate("ka mi lo lo.")
    page.click("#other")
    words = page.wait(lambda: page.all(".alternative .words"))
    other = words[1].get_property("textContent")  # the model finds it likely
    assert page.value(".correction textarea") == page.text(".passage.opened")
    page.fill(".correction textarea", f"  {other} ")
    page.press(Keys.TAB, Keys.ENTER)
    page.wait(lambda: page.shows("#notice"))
    assert "uses it for this sentence" in page.text("#notice-text")
    assert page.text("#target-text") == other
    assert not page.shows("#alternatives")
    page.run("sessionStorage.clear()")
    page.open()
    choose_language(page)
    page.fill("#source-text", "ka mi lo lo.")
    page.wait(lambda: page.text("#target-text") == other)
    page.fill("#source-text", "so\nka mi lo lo.")
    page.wait(lambda: page.text("#target-text").endswith(f"\n{other}"))


def test_a_doubtful_correction_waits_for_a_person(page: "Page") -> None:
    choose_language(page)
    page.translate("ka mi mi lo.")
    page.click("#other")
    page.wait(lambda: page.all(".correction textarea"))
    page.fill(".correction textarea", "qwxyz " * 20)
    page.click(".correction button")
    page.wait(lambda: page.shows("#notice"))
    assert "until a person has checked it" in page.text("#notice-text")


def test_a_refused_correction_says_why_and_keeps_the_text(page: "Page") -> None:
    choose_language(page)
    page.translate("ka ka mi")
    page.click("#other")
    page.wait(lambda: page.all(".correction textarea"))
    page.intercept("return new Response(JSON.stringify({error: 'Not so.'}), {status: 400})")
    page.fill(".correction textarea", "another text")
    page.click(".correction button")
    page.wait(lambda: page.text(".correction .wrong") == "Not so.")
    assert page.value(".correction textarea") == "another text"
    assert page.one(".correction button").is_enabled()
    page.press(Keys.ARROW_DOWN, Keys.ESCAPE)
    assert not page.shows("#alternatives")
