"""The page's quality estimates, glossary, history, links, colours and help, in a browser."""

import json
import re

import pytest

from web_page import Page

pytest.importorskip("selenium")

from selenium.webdriver.common.keys import Keys

BLOCKED = """return next(path, options); };
    Object.defineProperty(window, 'localStorage', {get() { throw new DOMException('blocked', 'SecurityError'); }});
    Object.defineProperty(window, 'sessionStorage', {get() { throw new DOMException('blocked', 'SecurityError'); }});
    { """
ANSWERS = "return new Response(JSON.stringify({translatedText: 'Zu fe.', alignment: [], ...%s}));"
FULL = """
    for (let size = 1 << 22; size >= 1; )
      try { localStorage.filler = (localStorage.filler ?? '') + 'x'.repeat(size); } catch { size >>= 1; }
"""


def history(page: Page) -> list[tuple[str, str]] | None:
    """The stored entries, the newest first; None if nothing is stored."""
    stored = page.run("return localStorage['transduce.history'] ?? null")
    return (
        None
        if stored is None
        else [(entry["q"], entry["translation"]) for entry in json.loads(stored)]
    )


def store(page: Page, name: str, text: str) -> None:
    """Put a text into the browser's storage."""
    page.run("localStorage['transduce.' + arguments[0]] = arguments[1]", name, text)


def translate_and_copy(page: Page, text: str) -> None:
    """Translate a text and copy the translation, which stores it if the history is on."""
    page.translate(text)
    page.click("#copy")


def choose_alternative(page: Page) -> str:
    """Choose another translation."""
    page.click("#other")
    page.wait(lambda: page.all(".alternative"))[1].click()
    page.wait(lambda: not page.shows("#alternatives"))
    return page.text("#target-text")


def keep_history(page: Page) -> None:
    page.click("#history summary")
    page.click("#history-keep")


# ---- quality -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "label", "notes"),
    [
        (
            "{confidence: 0.81, flags: [], scores: -0.4}",
            "Better than usual (81 %)",
            ["50 % is average", "−0.40"],
        ),
        (
            "{confidence: null, flags: ['numbers', 'cut']}",
            "Check: numbers differ and 1 more",
            ["other numbers", "end"],
        ),
        ("{confidence: 0.9, flags: ['new']}", "Check: new (90 %)", ["“new”"]),
    ],
)
def test_quality_is_explained_in_words(
    page: Page, answer: str, label: str, notes: list[str]
) -> None:
    page.intercept(ANSWERS % answer)
    page.fill("#source-text", "ka lo")
    page.wait(lambda: page.text("#quality-label") == label)
    page.one("#quality-label").send_keys(Keys.ENTER)
    assert page.one("#quality-note").is_displayed()
    assert all(note in page.text("#quality-note") for note in notes)


def test_doubtful_sentences_are_marked(page: Page) -> None:
    page.intercept(
        """
        if (path !== 'translate') return next(path, options);
        const { q } = JSON.parse(options.body), rates = [0.9, 0.1, 0.8];
        const answer = Array.isArray(q)
            ? {translatedText: ['Zu fe.', 'Po.', 'Wi.'], confidence: rates, flags: [[], ['numbers'], []]}
            : {translatedText: 'Zu fe. Po. Wi.', confidence: 0.1, flags: ['numbers']};
        return new Response(JSON.stringify({...answer, alignment: []}));
        """
    )
    page.fill("#source-text", "Ka lo. Mi. Nu.")
    page.wait(lambda: page.shows("#quality"))
    assert page.text("#quality-label") == "One of 3 sentences: Check: numbers differ (10 %)"
    page.wait(lambda: page.all(".doubtful"))
    [doubtful] = page.all(".doubtful")
    assert doubtful.text == "Po."
    assert page.text("#quality-label") == "Sentence 2: Check: numbers differ (10 %)"
    assert "10 % is the estimated probability that the worst sentence" in page.text("#quality-note")


def test_quality_is_shown_only_if_the_server_estimated_this_translation(page: Page) -> None:
    estimate = "scores: -1, alternatives: ['Zu po.'], alternativeScores: [-1.6]"
    page.intercept(ANSWERS % f"{{confidence: calls++ ? 0.9 : null, flags: [], {estimate}}}")
    page.fill("#source-text", "ka")
    page.wait(lambda: page.text("#target-text") == "Zu fe.")
    assert not page.shows("#quality")
    page.fill("#source-text", "ka lo")
    page.wait(lambda: page.shows("#quality"))
    page.click("#other")
    page.wait(lambda: page.all(".alternative"))
    assert [one.text for one in page.all(".score")] == ["best (−1.00)", "less likely (−1.60)"]
    page.all(".alternative")[1].click()
    page.wait(lambda: page.text("#target-text") == "Zu po." and not page.shows("#quality"))


# ---- the glossary --------------------------------------------------------------------------------


def test_the_glossary_is_applied_and_remembered(page: Page) -> None:
    page.intercept(
        "if (path === 'translate') window.asked = JSON.parse(options.body).glossary; return next(path, options);"
    )
    terms = {"lo": "po", "ka": "wi"}
    page.translate("ka lo mi")
    page.click("#glossary summary")
    page.fill("#glossary-text", "lo = po\nka\twi")
    page.translates("ka lo mi", terms)
    assert page.text("#glossary-count") == "(2 terms)"
    assert page.text("#glossary-used") == (
        "In this translation: ka = wi (as written), lo = po (as written)."
    )
    page.run("window.asked = null")
    page.click("#other")
    page.wait(lambda: page.all(".alternative"))
    assert page.run("return window.asked") == terms
    page.open()
    page.translates("ka lo mi", terms)


def test_terms_of_two_tabs_are_merged(page: Page) -> None:
    page.translate("ka lo mi")
    first = page.browser.current_window_handle
    page.browser.switch_to.new_window("tab")
    try:
        page.open()
        page.click("#glossary summary")
        page.fill("#glossary-text", "lo = po\n")
    finally:
        page.browser.close()
        page.browser.switch_to.window(first)
    page.translates("ka lo mi", {"lo": "po"})
    page.click("#glossary summary")
    page.one("#glossary-text").send_keys(Keys.CONTROL, Keys.END)
    page.one("#glossary-text").send_keys("ka = wi")
    page.translates("ka lo mi", {"lo": "po", "ka": "wi"})


def test_errors_of_the_glossary_are_shown_beside_it(page: Page) -> None:
    page.translate("ka lo mi")
    page.click("#glossary summary")
    page.fill("#glossary-text", "lo = Fufu\nmi")
    assert page.text("#glossary-error") == ""  # the user may still be writing the line
    page.one("#glossary-text").send_keys(Keys.TAB)
    assert (
        page.text("#glossary-error") == "Line 2 is not used: write a term, = and its translation."
    )
    page.fill("#glossary-text", "lo = " + "Fufu " * 40)
    page.wait(
        lambda: (
            page.text("#notice-text") == "The text is not translated: the glossary has an error."
        )
    )
    assert "term" in page.text("#glossary-error")
    page.click("#notice-action")
    assert (
        page.run("return document.activeElement.id") == "glossary-text"
        and not page.one("#copy").is_enabled()
    )
    page.fill("#glossary-text", "")
    page.wait(lambda: page.text("#glossary-error") == "" and not page.shows("#notice"))
    assert page.one("#copy").is_enabled()


# ---- the history ---------------------------------------------------------------------------------


def test_the_history_stores_nothing_until_it_is_switched_on(page: Page) -> None:
    translate_and_copy(page, "so ti")
    page.fill("#source-text", "")
    page.wait(lambda: page.text("#target-text") == "")
    assert history(page) is None
    keep_history(page)
    assert history(page) == []  # the text that was cleared while the history was off is not stored
    translate_and_copy(page, "ka lo mi")
    assert history(page) == [("ka lo mi", page.served("ka lo mi"))]
    page.click("#history-keep")
    assert history(page) is None and not page.all(".entry")


def test_the_history_replaces_drafts_and_keeps_similar_texts(page: Page) -> None:
    keep_history(page)
    for text in ("ka lo", "ka lo mi", "ka lo mi nu", "so ti va re"):
        translate_and_copy(page, text)
    page.click("#clear")
    translate_and_copy(page, "so ti va ka")
    page.run(
        "document.querySelector('#source-text').select(); return navigator.clipboard.writeText('so ti va mi')"
    )
    page.browser.execute_cdp_cmd(
        "Input.dispatchKeyEvent", {"type": "rawKeyDown", "commands": ["paste"]}
    )
    page.translates("so ti va mi")
    page.click("#copy")
    texts = ["so ti va mi", "so ti va ka", "so ti va re", "ka lo mi nu"]
    assert [text for text, _ in history(page) or []] == texts
    page.open()
    page.click("#history summary")
    assert [words.text for words in page.all(".entry .words:first-child")] == texts
    assert re.search(r"^Georgian to Zulu, .*\d{4}, \d+:\d\d [AP]M$", page.text(".entry .soft"))
    page.click("#history-clear")
    assert history(page) == [] and page.one("#history-keep").is_selected()


def test_an_entry_is_opened_without_a_server_and_replaced_only_on_request(page: Page) -> None:
    mine = {"q": "ka lo", "source": "ka", "target": "zu", "translation": "As I like it.", "time": 1}
    other = {"q": "so", "source": "ka", "target": "fr", "translation": "Il pleut.", "time": 0}
    store(page, "history", json.dumps([mine, other]))
    page.open()
    page.click("#history summary")
    page.intercept("if (calls++ === 0) throw new TypeError(); return next(path, options);")
    page.click(".entry")
    page.wait(lambda: "can't be reached" in page.text("#notice-text"))
    assert page.text("#target-text") == "As I like it." and page.one("#copy").is_enabled()
    page.click("#notice-action")
    page.wait(lambda: "from the history" in page.text("#notice-text"))
    page.click("#notice-action")
    page.translates("ka lo")
    page.all(".entry")[-1].click()  # a translation into a language that this server lacks
    page.translates("so")


def test_a_chosen_translation_outlives_the_page_and_later_answers(page: Page) -> None:
    keep_history(page)
    translate_and_copy(page, "ka lo")
    chosen = choose_alternative(page)
    page.click("#copy")
    page.open()
    page.wait(lambda: page.text("#target-text") == chosen)
    page.run("sessionStorage.clear()")  # as in another tab
    page.open()
    for text in ("so ti", "ka lo"):
        translate_and_copy(page, text)
    assert (history(page) or [])[0] == ("ka lo", chosen)


def test_a_chosen_translation_gives_way_to_a_new_term(page: Page) -> None:
    page.translate("ka lo")
    shown = page.text("#target-text")
    assert choose_alternative(page) != shown
    page.intercept(
        f"return new Response(JSON.stringify({{translatedText: {json.dumps(shown)}, alignment: []}}))"
    )
    page.click("#glossary summary")
    page.fill("#glossary-text", "mi = fe")
    page.one("#glossary-text").send_keys(Keys.TAB)
    page.wait(lambda: page.text("#target-text") == shown)


def test_old_entries_make_room_for_new_ones(page: Page) -> None:
    def entries(count: int, text: str) -> str:
        entry = {"source": "ka", "target": "zu", "translation": "x"}
        return json.dumps([{"q": f"{i} {text}", "time": i, **entry} for i in range(count)])

    store(page, "history", entries(60, "re"))
    translate_and_copy(page, "ka lo mi")
    assert [text for text, _ in history(page) or []] == [
        "ka lo mi",
        *(f"{i} re" for i in range(49)),
    ]
    store(page, "history", entries(8, "so " * 30_000))
    page.run(FULL)
    translate_and_copy(page, "nu re")
    texts = [text for text, _ in history(page) or []]
    assert texts[0] == "nu re" and 1 < len(texts) < 9


# ---- storage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", ["{", "1", '[null, 1, {"q": 2}]'])
def test_damaged_storage_does_not_disturb_translating(page: Page, stored: str) -> None:
    for name in ("history", "glossaries", "languages", "theme"):
        store(page, name, stored)
    page.open()
    page.translate("ka lo")


def test_everything_else_works_without_storage(page: Page) -> None:
    with page.intercepted(BLOCKED):
        page.translate("ka lo")
        page.click("#glossary summary")
        page.fill("#glossary-text", "lo = wi")
        page.translates("ka lo", {"lo": "wi"})
        assert "doesn't store it" in page.text("#glossary-kept")
        keep_history(page)
        assert (
            "refuses to store" in page.text("#history-state")
            and not page.one("#history-keep").is_selected()
        )
        page.one("#theme").send_keys("Dark")
        assert page.run("return document.documentElement.dataset.theme") == "dark"
    page.open()


# ---- links ---------------------------------------------------------------------------------------


def test_a_link_holds_the_text_and_the_languages(page: Page) -> None:
    text = "ka & lo=mi #1 + 100 % <b>\nné 😀"
    page.run(
        "navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }"
    )
    page.translate(text)
    assert page.browser.current_url == page.address
    page.click("#link")
    page.wait(lambda: page.text("#link") == "Copied")
    link = page.run("return window.copied")
    page.run("sessionStorage.clear()")
    page.browser.get("about:blank")
    page.browser.get(link)
    page.translates(text)
    assert page.value("#source-text") == text and page.browser.current_url == link
    page.type("x")
    assert page.browser.current_url == page.address  # it is another text now


def test_a_link_opened_in_the_same_tab_can_be_undone(page: Page) -> None:
    page.translate("ka lo")
    text = " <img src=x onerror=document.title=1> &lt;b&gt;\n\n\t  ka  lo \n\n" + "ka\n" * 200
    page.run("location.hash = '#source=xx&target=zu&q=' + encodeURIComponent(arguments[0])", text)
    page.wait(lambda: page.value("#source-text") == text)
    assert page.run("return document.title") == "Translate · transduce"
    page.type(Keys.CONTROL + "z")
    page.translates("ka lo")


# ---- the clipboard, colours and help -------------------------------------------------------------


def test_copying_keeps_the_focus_without_a_clipboard(page: Page) -> None:
    page.run("navigator.clipboard.writeText = () => Promise.reject()")  # as over plain HTTP
    page.translate("ka lo mi")
    page.watch("#copy")
    page.click("#copy")
    page.wait(page.seen)
    assert page.run("return document.activeElement.id") == "copy"


def test_colours_are_chosen_and_remembered(page: Page) -> None:
    def background() -> str:
        return page.run("return getComputedStyle(document.body).backgroundColor")

    def drawing() -> str:
        return page.run("return document.querySelector('#attention-drawing canvas').toDataURL()")

    light = background()
    page.translate("ka lo mi")
    page.click("#attention summary")
    page.wait(lambda: page.all("#attention-drawing canvas[style*=color]"))  # they are drawn
    bright = drawing()
    page.one("#theme").send_keys("Dark")
    dark = background()
    assert dark != light and drawing() != bright
    page.open()
    assert background() == dark
    page.browser.get(page.address + "docs")
    page.wait(lambda: background() == dark)
    page.open()
    page.one("#theme").send_keys("System")
    page.open()
    assert background() == light


def test_help_is_for_the_device(page: Page) -> None:
    page.click("a[href='#help-text']")
    assert "Ctrl Enter" in page.one("#help").text
    with page.on(390, 844, touch=True):
        page.click("#help summary")
        assert "Enter" not in page.one("#help").text and "Tap" in page.one("#help").text
