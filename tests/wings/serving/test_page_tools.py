"""The page's quality estimates, glossary, history, links, colours and help."""

import json
import re

import pytest

pytest.importorskip(
    "selenium", reason="the page is tested in a browser: pip install selenium (it is in the extra `dev`)"
)

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from variants import slow
from web_page import MISSING, WITHOUT, Page

pytestmark = pytest.mark.skipif(bool(MISSING), reason=WITHOUT)

BLOCKED = """return next(path, options); };
    Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('blocked', 'SecurityError'); }});
    Object.defineProperty(window, 'sessionStorage', {get() { throw new DOMException('blocked', 'SecurityError'); }});
    { """
ANSWERS = """
    if (path !== 'translate') return next(path, options);
    (window.asked ??= []).push(JSON.parse(options.body));
    return new Response(JSON.stringify({translatedText: 'Zu fe.', alignment: [], ...%s}));
"""

FULL = """
    for (let size = 1 << 22; size >= 1; )
      try { localStorage.filler = (localStorage.filler ?? '') + 'x'.repeat(size); } catch { size >>= 1; }
"""


def history(page: Page) -> list[tuple[str, str]] | None:
    """The stored entries, the newest first; None if nothing is stored."""
    stored = page.run("return localStorage['transduce.history'] ?? null")
    return None if stored is None else [(entry["q"], entry["translation"]) for entry in json.loads(stored)]


def translate(page: Page, text: str) -> None:
    """Translate a text, and wait until its translation is in the history if that is on."""
    page.fill("#source-text", text)
    page.translates(text)
    page.click("#copy")


# -- a translation of another text -----------------------------------------------------------------


@pytest.mark.parametrize("reason", [slow("too long"), "offline", slow("refused")])
def test_a_translation_of_an_earlier_text_says_so(page: Page, reason: str) -> None:
    limit = page.run("return fetch('frontend/settings').then((answer) => answer.json()).then((all) => all.charLimit)")
    page.later(
        "if (path !== 'translate' || JSON.parse(options.body).q === 'ka lo') return next(path, options);"
        + ("throw new TypeError();" if reason == "offline" else "return new Response('{}', {status: 400});")
    )
    page.fill("#source-text", "ka lo")
    page.translates("ka lo")
    assert page.text("#state") == "" and page.one("#copy").is_enabled()
    page.fill("#source-text", "ka " * (limit // 3 + 1) if reason == "too long" else "ka lo mi")
    page.wait(lambda: page.text("#state") == "The translation of an earlier text")
    assert page.shows("#notice") and not page.one("#copy").is_enabled() and page.all("#target-text.stale")
    page.fill("#source-text", "ka lo")
    page.wait(lambda: page.text("#state") == "" and page.one("#copy").is_enabled())


def test_a_slow_server_is_called_slow_and_the_translation_outdated(page: Page) -> None:
    page.fill("#source-text", "ka lo")
    page.translates("ka lo")
    page.later("if (calls++ === 0) await held(); return next(path, options);")
    page.run(
        "const real = setTimeout;"
        "window.setTimeout = (work, pause, ...rest) => real(work, pause === 30000 ? 1500 : pause, ...rest)"
    )
    page.fill("#source-text", "ka lo mi")
    page.wait(lambda: page.text("#state") == "The translation of an earlier text")
    page.wait(lambda: page.text("#notice-text") == "The server is slow: no answer for 30 seconds.")
    page.click("#notice-action")
    page.translates("ka lo mi")
    assert page.text("#state") == "" and not page.shows("#notice")


# -- quality ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "label", "notes"),
    [
        ("{confidence: 0.81, flags: [], scores: -0.4}", "Better than usual (81 %)", ["50 % is average", "−0.40"]),
        ("{confidence: 0.5, flags: [], scores: -0.4}", "May need changes (50 %)", ["negations"]),
        ("{confidence: 0.02, flags: []}", "Probably needs changes (2 %)", ["2 %"]),
        ("{confidence: null, flags: ['numbers', 'cut']}", "Check: numbers differ and 1 more", ["other numbers", "end"]),
        ("{confidence: 0.9, flags: ['new']}", "Check: new (90 %)", ["“new”"]),
    ],
)
def test_the_quality_is_told_in_words(page: Page, answer: str, label: str, notes: list[str]) -> None:
    page.later(ANSWERS % answer)
    page.fill("#source-text", "ka lo")
    page.wait(lambda: page.text("#quality-label") == label)
    assert not page.one("#quality-note").is_displayed()
    page.one("#quality-label").send_keys(Keys.ENTER)  # by keyboard; a click is a touch
    assert page.one("#quality-note").is_displayed()
    assert all(note in page.text("#quality-note") for note in notes)


def test_without_an_estimate_nothing_is_claimed(page: Page) -> None:
    page.later(ANSWERS % "{confidence: null, flags: [], scores: -0.4}")
    page.fill("#source-text", "ka lo")
    page.wait(lambda: page.text("#target-text") == "Zu fe.")
    assert not page.shows("#quality")


def test_an_estimate_is_only_of_the_servers_own_translation(page: Page) -> None:
    page.later(
        ANSWERS % "{confidence: 0.9, flags: [], alternatives: ['Zu po.'], scores: -1, alternativeScores: [-1.6]}"
    )
    page.fill("#source-text", "ka lo")
    page.wait(lambda: page.shows("#quality"))
    page.click("#other")
    page.wait(lambda: page.all(".alternative"))
    assert "Better than usual (90 %)" in page.text("#alternatives")
    assert [one.text for one in page.all(".score")] == ["best (−1.00)", "less likely (−1.60)"]
    page.all(".alternative")[1].click()
    page.wait(lambda: page.text("#target-text") == "Zu po." and not page.shows("#quality"))


# -- the glossary ----------------------------------------------------------------------------------


def test_the_glossary_is_sent_and_kept(page: Page) -> None:
    page.later(
        "if (path === 'translate') (window.asked ??= []).push(JSON.parse(options.body)); return next(path, options);"
    )
    sent = "return window.asked?.at(-1)?.glossary ?? null"
    page.fill("#source-text", "ka lo mi")
    page.translates("ka lo mi")
    page.click("#glossary summary")
    page.fill("#glossary-text", "lo = po\nka\twi")
    terms = {"lo": "po", "ka": "wi"}
    page.wait(lambda: page.run(sent) == terms)
    page.wait(lambda: page.text("#target-text") == page.served("ka lo mi", terms))
    assert page.text("#glossary-count") == "(2 terms)"
    page.run("window.asked = []")
    page.click("#other")
    page.wait(lambda: page.all(".alternative"))
    assert page.run(sent) == terms
    page.open()
    page.wait(lambda: page.text("#target-text") == page.served("ka lo mi", terms))
    page.click("#glossary summary")
    page.fill("#glossary-text", "")
    page.translates("ka lo mi")


def test_another_tabs_terms_appear_here_and_none_is_lost(page: Page) -> None:
    page.fill("#source-text", "ka lo mi")
    page.translates("ka lo mi")
    first = page.browser.current_window_handle
    page.browser.switch_to.new_window("tab")
    try:
        page.open()
        page.click("#glossary summary")
        page.fill("#glossary-text", "lo = po\n")
    finally:
        page.browser.close()
        page.browser.switch_to.window(first)
    page.wait(lambda: page.text("#target-text") == page.served("ka lo mi", {"lo": "po"}))
    page.click("#glossary summary")
    page.one("#glossary-text").send_keys(Keys.CONTROL, Keys.END)
    page.one("#glossary-text").send_keys("ka = wi")
    page.wait(lambda: page.text("#target-text") == page.served("ka lo mi", {"lo": "po", "ka": "wi"}))
    assert "lo = po\\nka = wi" in page.run("return localStorage['transduce.glossaries']")


def test_a_line_without_a_translation_is_named_when_the_user_leaves_it(page: Page) -> None:
    page.click("#glossary summary")
    page.fill("#glossary-text", "lo = Fufu\nmi")
    assert page.text("#glossary-error") == ""
    page.one("#glossary-text").send_keys(Keys.TAB)
    assert page.text("#glossary-error") == "Line 2 is not used: write a term, = and its translation."
    assert page.one("#glossary-text").get_attribute("aria-invalid") == "true"
    read = page.module("glossary", "JSON.stringify(it.readTerms('a = b = c\\n\\n =x\\ny=\\n__proto__\\tz\\tw'))")
    assert json.loads(read) == {"terms": {"a": "b = c", "__proto__": "z"}, "wrong": [3, 4]}


@pytest.mark.parametrize(
    "glossary", [slow("lo = " + "x" * 2000), slow("\n".join(f"lo {i} = x" for i in range(65))), "lo = " + "Fufu " * 40]
)
def test_an_error_of_the_glossary_stands_beside_it(page: Page, glossary: str) -> None:
    page.fill("#source-text", "ka lo mi")
    page.translates("ka lo mi")
    page.click("#glossary summary")
    page.fill("#glossary-text", glossary)
    page.wait(lambda: page.text("#glossary-error"))
    assert "term" in page.text("#glossary-error") or "glossary" in page.text("#glossary-error")
    assert page.text("#notice-text") == "The text is not translated: the glossary has an error."
    page.click("#notice-action")
    assert page.run("return document.activeElement.id") == "glossary-text"
    assert not page.one("#copy").is_enabled()
    page.fill("#glossary-text", "")
    page.wait(lambda: page.text("#glossary-error") == "" and not page.shows("#notice"))
    assert page.one("#copy").is_enabled()


# -- the history -----------------------------------------------------------------------------------


def test_the_history_is_off_and_then_holds_nothing(page: Page) -> None:
    translate(page, "ka lo mi")
    assert history(page) is None
    page.click("#history summary")
    assert not page.one("#history-keep").is_selected()
    page.click("#history-keep")
    page.wait(lambda: history(page) == [("ka lo mi", page.served("ka lo mi"))])  # what is on the page
    page.click("#history-keep")
    assert history(page) is None and not page.all(".entry")


def test_a_text_that_was_cleared_while_the_history_was_off_is_not_stored_later(page: Page) -> None:
    translate(page, "ka lo mi")
    page.fill("#source-text", "")
    page.wait(lambda: page.text("#target-text") == "")
    page.click("#history summary")
    page.click("#history-keep")
    assert history(page) == []


def test_the_history_keeps_texts_and_not_their_drafts(page: Page) -> None:
    page.click("#history summary")
    page.click("#history-keep")
    for text in ("ka lo", "ka lo mi", "ka lo mi nu", "so ti va re"):
        translate(page, text)
    texts = ["so ti va re", "ka lo mi nu"]
    assert [text for text, _ in history(page) or []] == texts
    page.open()
    page.click("#history summary")
    assert [entry.find_element(By.CSS_SELECTOR, ".words").text for entry in page.all(".entry")] == texts
    assert re.search(r"^Georgian to Zulu, .*\d{4}, \d+:\d\d [AP]M$", page.text(".entry .soft"))
    page.click("#history-clear")
    assert history(page) == [] and page.one("#history-keep").is_selected()


def test_a_similar_text_is_another_text(page: Page) -> None:
    page.click("#history summary")
    page.click("#history-keep")
    translate(page, "so ti va re")
    page.click("#clear")
    translate(page, "so ti va ka")
    page.run("document.querySelector('#source-text').select()")
    paste = {"type": "rawKeyDown", "commands": ["paste"]}
    page.run("return navigator.clipboard.writeText('so ti va mi')")
    page.browser.execute_cdp_cmd("Input.dispatchKeyEvent", paste)
    page.translates("so ti va mi")
    take_alternative(page)
    translate(page, "so ti va mi nu")
    assert [text[9:] for text, _ in history(page) or []] == ["mi nu", "mi", "ka", "re"]


def test_an_entry_of_the_history_comes_back_without_a_server(page: Page) -> None:
    page.click("#history summary")
    page.click("#history-keep")
    for text in ("ka lo mi", "so ti va re"):
        translate(page, text)
    page.later("throw new TypeError();")
    page.all(".entry")[1].click()
    page.wait(lambda: page.shows("#notice"))
    assert page.one("#source-text").get_property("value") == "ka lo mi"
    assert page.text("#target-text") == page.served("ka lo mi") and page.one("#copy").is_enabled()


def test_a_stored_translation_is_replaced_only_on_request(page: Page) -> None:
    entry = {"q": "ka lo", "source": "ka", "target": "zu", "translation": "As I like it.", "time": 0}
    page.run("localStorage['transduce.history'] = arguments[0]", json.dumps([entry]))
    page.open()
    page.click("#history summary")
    page.click(".entry")
    page.wait(lambda: "from the history" in page.text("#notice-text"))
    assert page.text("#target-text") == "As I like it."
    page.click("#notice-action")
    page.translates("ka lo")


def take_alternative(page: Page) -> str:
    page.click("#other")
    page.wait(lambda: len(page.all(".alternative")) > 1)
    shown, other = page.text("#target-text"), page.all(".alternative")[1]
    other.click()
    page.wait(lambda: page.text("#target-text") != shown)
    return page.text("#target-text")


def test_a_chosen_translation_outlives_the_page_and_later_answers(page: Page) -> None:
    page.click("#history summary")
    page.click("#history-keep")
    translate(page, "ka lo")
    chosen = take_alternative(page)
    page.click("#copy")
    page.open()
    page.wait(lambda: page.text("#target-text") == chosen)
    page.run("sessionStorage.clear()")  # as in another tab
    page.open()
    translate(page, "so ti")
    translate(page, "ka lo")
    assert (history(page) or [])[0] == ("ka lo", chosen)


def test_a_chosen_translation_does_not_hide_a_term(page: Page) -> None:
    page.fill("#source-text", "ka lo")
    page.translates("ka lo")
    shown = page.text("#target-text")
    take_alternative(page)
    page.later(f"return new Response(JSON.stringify({{translatedText: {json.dumps(shown)}, alignment: []}}))")
    page.click("#glossary summary")
    page.fill("#glossary-text", "mi = fe")
    page.one("#glossary-text").send_keys(Keys.TAB)
    page.wait(lambda: page.text("#target-text") == shown)


def test_a_translation_into_another_language_is_not_shown_as_one_of_this_server(page: Page) -> None:
    entry = {"q": "ka lo", "source": "ka", "target": "fr", "translation": "Il pleut.", "time": 0}
    page.run("localStorage['transduce.history'] = arguments[0]", json.dumps([entry]))
    page.open()
    page.click("#history summary")
    page.click(".entry")
    page.translates("ka lo")
    page.click("#copy")
    assert (history(page) or [])[-1] == ("ka lo", "Il pleut.")


def test_the_history_is_limited(page: Page) -> None:
    many = [{"q": f"{i} re", "source": "ka", "target": "zu", "translation": "x", "time": i} for i in range(60)]
    page.run("localStorage['transduce.history'] = arguments[0]", json.dumps(many))
    translate(page, "ka lo mi")
    texts = [text for text, _ in history(page) or []]
    assert texts == ["ka lo mi", *(f"{i} re" for i in range(49))]


def test_a_full_storage_costs_old_entries_and_no_translation(page: Page) -> None:
    long = "so " * 30_000
    old = [{"q": f"{i} {long}", "source": "ka", "target": "zu", "translation": "x", "time": i} for i in range(8)]
    page.run("localStorage['transduce.history'] = arguments[0]", json.dumps(old))
    page.run(FULL)
    translate(page, "ka lo mi")
    texts = [text for text, _ in history(page) or []]
    assert texts[0] == "ka lo mi" and 1 < len(texts) < 9
    page.run("localStorage['transduce.history'] = '[]'; localStorage.filler = ''")
    page.run(FULL)
    page.click("#history summary")
    translate(page, "nu re")
    assert history(page) == [] and "storage is full" in page.text("#history-state")


@pytest.mark.parametrize("stored", ["{", "{}", "1", '[null, 1, {"q": 2}]', '[{"q": "a", "translation": "b"}]'])
def test_a_damaged_storage_is_no_error(page: Page, stored: str) -> None:
    page.run(
        "for (const name of ['history', 'glossaries', 'languages', 'theme'])"
        "localStorage['transduce.' + name] = arguments[0]",
        stored,
    )
    page.open()
    page.fill("#source-text", "ka lo")
    page.translates("ka lo")


def test_without_storage_everything_else_works(page: Page) -> None:
    with page.from_the_start(BLOCKED):
        page.fill("#source-text", "ka lo")
        page.wait(lambda: page.text("#target-text") == page.served("ka lo"))
        page.click("#glossary summary")
        page.fill("#glossary-text", "lo = wi")
        page.wait(lambda: page.text("#target-text") == page.served("ka lo", {"lo": "wi"}))
        assert "doesn't store it" in page.text("#glossary-kept")
        page.click("#history summary")
        page.click("#history-keep")
        assert "refuses to store" in page.text("#history-state") and not page.one("#history-keep").is_selected()
        page.one("#theme").send_keys("Dark")
        assert page.run("return document.documentElement.dataset.theme") == "dark"
        page.click("#link")
        page.wait(lambda: "#source=" in page.browser.current_url)
    page.open()


# -- links -----------------------------------------------------------------------------------------

TEXT = "ka & lo=mi #1 + 100 % <b>\nné 😀"


def test_a_link_holds_the_text_and_the_languages(page: Page) -> None:
    page.run("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    page.fill("#source-text", TEXT)
    page.translates(TEXT)
    assert page.browser.current_url == page.address
    page.click("#link")
    page.wait(lambda: page.text("#link") == "Copied")
    link = page.run("return window.copied")
    assert link == page.browser.current_url and link.startswith(page.address + "#source=auto&target=zu&q=ka%20%26")
    page.run("sessionStorage.clear()")
    page.browser.get("about:blank")
    page.browser.get(link)
    page.translates(TEXT)
    assert page.one("#source-text").get_property("value") == TEXT
    page.type("x")
    assert page.browser.current_url == page.address  # it is another text now


def test_half_a_surrogate_pair_has_a_link(page: Page) -> None:
    half = page.module("link", "it.writeLink({q: 'ka\\ud83d', source: 'ka', target: 'zu'})")
    assert half.endswith("q=ka%EF%BF%BD")


def test_a_link_that_is_opened_in_the_same_tab_can_be_undone(page: Page) -> None:
    page.fill("#source-text", "ka lo")
    page.translates("ka lo")
    page.run("location.hash = '#source=xx&target=zu&q=mi%20nu%'")
    page.wait(lambda: page.one("#source-text").get_property("value") == "mi nu%")
    page.translates("mi nu%")
    page.type(Keys.CONTROL + "z")
    page.translates("ka lo")


def test_a_text_of_many_lines_is_put_in_at_once_and_as_text(page: Page) -> None:
    page.fill("#source-text", "ka lo")
    page.translates("ka lo")
    page.run("window.inputs = 0; document.addEventListener('input', () => window.inputs++)")
    for text in ("ka\n" * 200, " <img src=x onerror=document.title=1> &lt;b&gt;\n\n\t  ka  lo \n\n"):
        page.run("location.hash = '#source=ka&target=zu&q=' + encodeURIComponent(arguments[0])", text)
        page.wait(lambda text=text: page.one("#source-text").get_property("value") == text)
    assert page.run("return [window.inputs, document.title]") == [2, "Translate · transduce"]
    page.type(Keys.CONTROL + "zz")
    page.translates("ka lo")


# -- colours and help ------------------------------------------------------------------------------


def test_the_colours_are_chosen_and_remembered(page: Page) -> None:
    def paper() -> str:
        return page.run("return getComputedStyle(document.body).backgroundColor")

    def drawing() -> str:
        return page.run("return document.querySelector('#attention-drawing canvas').toDataURL()")

    with page.on(1280, 800, scheme="light"):
        light = paper()
        page.fill("#source-text", "ka lo mi")
        page.translates("ka lo mi")
        page.click("#attention summary")
        page.wait(lambda: page.all("#attention-drawing canvas[style*=color]"))  # they are drawn
        bright = drawing()
        page.one("#theme").send_keys("Dark")
        dark = paper()
        assert dark != light
        assert drawing() != bright
        page.open()
        assert paper() == dark and page.one("#theme").get_property("value") == "dark"
        page.browser.get(page.address + "docs")
        page.wait(lambda: paper() == dark)
        page.open()
        page.one("#theme").send_keys("System")
        page.open()
        assert paper() == light


def test_the_help_is_for_the_device(page: Page) -> None:
    assert "Ctrl Enter" in page.one(".bottom").text
    with page.on(390, 844, touch=True):
        assert "Enter" not in page.one(".bottom").text and "Tap" in page.one(".bottom").text
        assert not page.one("#target-text").get_attribute("aria-describedby")
    agent = page.run("return navigator.userAgent")
    try:
        page.browser.execute_cdp_cmd("Emulation.setUserAgentOverride", {"userAgent": agent, "platform": "MacIntel"})
        page.open()
        assert "⌘ Enter" in page.one(".bottom").text
    finally:
        page.browser.execute_cdp_cmd("Emulation.setUserAgentOverride", {"userAgent": agent})
