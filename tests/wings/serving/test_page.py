"""The web page of `transduce serve` in a browser: translating while typing, errors, keys, documents, attention."""

import itertools
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servers import serving
from web_page import Page, complaints

pytest.importorskip("selenium")

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
OFFLINE = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
FOCUSED = "return document.activeElement.id"
# A server for two languages in both directions, whose translation says what it was asked for.
TWO_WAYS = """
    if (path === 'languages') return new Response(JSON.stringify([
      {code: 'ka', name: 'Ka', targets: ['ka', 'zu']}, {code: 'zu', name: 'Zu', targets: ['ka', 'zu']}]));
    if (path !== 'translate') return next(path, options);
    const {q, source, target} = JSON.parse(options.body);
    const answer = {translatedText: `${source} ${target} ${q.length}`, alignment: []};
    if (source === 'auto') answer.detectedLanguage = {language: 'ka', confidence: 87};
    return new Response(JSON.stringify(answer));
"""
WANTS_KEY = """
    if (new Headers(options.headers).get('Authorization') === 'Bearer secret') return next(path, options);
    return new Response('{"error": "This server wants a key."}', {status: 401})
"""
# A key that the server has revoked is refused; without a key, it translates.
KNOWS_ONE_KEY = """
    const sent = new Headers(options.headers).get('Authorization');
    if (!sent || sent === 'Bearer secret') return next(path, options);
    return new Response('{"error": "Unknown API key."}', {status: 403});
"""
# Blanks, line ends, signs, right to left, letters beyond 16 bits, an accent of its own, an alphabet without spaces.
TEXTS = st.lists(
    st.text(alphabet="ab .!?\n\t'-שם😀𝄞\u0301漢。", max_size=30), min_size=2, max_size=40
)


# ---- translating ---------------------------------------------------------------------------------


def test_typed_text_is_translated_and_a_cleared_one_comes_back(page: Page) -> None:
    page.type("ka lo mi")
    page.translates("ka lo mi")
    assert page.text("#count").startswith("8 / ")
    page.type("x" + Keys.BACKSPACE)  # restores the alignment, too
    page.wait(lambda: page.all("#mirror .word"))
    page.wait(lambda: page.text("#announcement") == page.served("ka lo mi"))  # for screen readers
    page.translate("ka lo\n\n  mi\n")
    assert page.text("#target-text").count("\n") == 3
    page.click("#clear")
    page.wait(lambda: page.text("#target-text") == "" and not page.shows("#copy"))
    page.click("#clear")  # its label is Undo now
    page.translates("ka lo\n\n  mi\n")


def test_a_late_answer_does_not_replace_a_newer_one(page: Page) -> None:
    page.intercept(
        "const late = calls++ === 0; const answer = await next(path, {...options, signal: undefined});"
        "if (late) await held(); return answer;"
    )
    page.fill("#source-text", "ka lo")
    page.wait(lambda: page.run("return Boolean(window.release)"))
    page.translate("ka lo mi")
    page.watch("#target-text")
    page.release()
    time.sleep(0.2)
    assert page.seen() == []


def test_input_method_text_is_translated_when_it_is_complete(page: Page) -> None:
    page.intercept(
        "(window.asked ??= []).push(JSON.parse(options.body).q); return next(path, options);"
    )
    for text in ("k", "ka", "ka l"):
        composed = {"text": text, "selectionStart": len(text), "selectionEnd": len(text)}
        page.browser.execute_cdp_cmd("Input.imeSetComposition", composed)
    time.sleep(0.5)
    page.browser.execute_cdp_cmd("Input.insertText", {"text": "ka lo"})
    page.translates("ka lo")
    assert page.run("return window.asked") == ["ka lo"]


def test_languages_are_detected_swapped_and_remembered(page: Page) -> None:
    with page.intercepted("if (path === 'translate' && calls++ === 1) await held();" + TWO_WAYS):
        assert page.value("#source-language") == "auto" and not page.one("#swap").is_enabled()
        page.fill("#source-text", "ka lo")
        page.wait(lambda: page.text("#target-text") == "auto zu 5")
        assert page.text("#source-language option").startswith("Ka")
        page.click("#swap")
        assert page.all("#target-text.stale")  # until the answer arrives
        page.release()
        page.wait(lambda: page.text("#target-text") == "zu ka 9" and not page.all(".stale"))
        assert page.value("#source-text") == "auto zu 5"
        page.open()
        assert (page.value("#source-language"), page.value("#target-language")) == ("zu", "ka")


def test_control_enter_translates_without_a_pause(page: Page) -> None:
    page.run("window.setTimeout = () => 0")  # so the pause never ends
    page.type("ka lo mi", Keys.CONTROL, Keys.ENTER)
    page.translates("ka lo mi")


# ---- aligned words -------------------------------------------------------------------------------


def test_pointing_at_a_word_highlights_the_aligned_words(page: Page) -> None:
    page.translate("ka lo mi")
    word = page.one("#target-text .word")
    page.point(word)
    linked = page.wait(lambda: page.all("#mirror .lit"))
    assert page.all("#target-text .lit") == [word]
    assert {each.get_property("textContent") for each in linked} <= {"ka", "lo", "mi"}
    over = ActionChains(page.browser)
    over.w3c_actions.pointer_action.move_to_location(
        int(linked[0].rect["x"]) + 4, int(linked[0].rect["y"]) + 8
    )
    over.perform()  # over the text area, in front of a highlighted word
    page.wait(lambda: page.all("#mirror .lit") == linked[:1])


def test_arrow_keys_highlight_one_word_after_another(page: Page) -> None:
    page.translate("ka lo mi")
    words = page.all("#target-text .word")
    for word in words[:2]:
        page.one("#target-text").send_keys(Keys.ARROW_RIGHT)
        assert page.all("#target-text .lit") == [word]
        said = f"{page.text('#target-text .lit')}: {page.text('#mirror .lit')}"
        page.wait(lambda said=said: page.text("#announcement").startswith(said))
    page.one("#target-text").send_keys(Keys.ENTER)
    page.wait(lambda: page.all(".alternative"))
    page.one(".alternative").send_keys(Keys.ESCAPE)
    assert not page.shows("#alternatives")
    page.translate("ka lo mi\n" * 40 + "nu re")
    page.one("#target-text").send_keys(Keys.ARROW_LEFT)  # the last word, out of sight
    below = "const bottom = (one) => document.querySelector(one).getBoundingClientRect().bottom;"
    page.wait(
        lambda: page.run(f"{below} return bottom('#target-text .lit') <= bottom('#target-field')")
    )


def test_highlights_lie_behind_their_words(page: Page) -> None:
    text = "ka lo mi\tnu  " * 400 + "\n" + "va" * 300 + "\n\n"
    page.fill("#source-text", text)
    mirror, area = page.run(
        "return ['#mirror', '#source-text'].map((name) => document.querySelector(name))"
        ".map((each) => [each.clientWidth, each.clientHeight, each.scrollHeight])"
    )
    assert mirror[:2] == area[:2] and abs(mirror[2] - area[2]) <= 1


def test_emoji_do_not_shift_highlights(page: Page) -> None:
    page.intercept(
        "const alignment = [{source: [3, 5], target: [3, 5], weight: 1}];"
        "return new Response(JSON.stringify({translatedText: '𝄞𝄞 wi', alignment}))"
    )
    page.fill("#source-text", "😀😀 re")
    page.wait(lambda: page.all("#mirror .word"))
    assert (page.text("#mirror .word"), page.text("#target-text .word")) == ("re", "wi")


@settings(max_examples=8)
@given(texts=TEXTS)
def test_passages_keep_order_and_omit_only_blanks(page: Page, texts: list[str]) -> None:
    pairs = [(texts[i], texts[i - 1]) for i in range(len(texts))]
    found = page.module(
        "text",
        "given[0].map(([a, b]) => it.passages(a, b, 'en', 'de').map((each) => ["
        "a.slice(...each.source), b.slice(...each.target), each.source, each.target]))",
        pairs,
    )
    for pair, passages in zip(pairs, found, strict=True):
        for side in (0, 1):
            spans = [passage[2 + side] for passage in passages]
            assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
        if pair[0].count("\n") == pair[1].count("\n"):
            lines = zip(pair[0].split("\n"), pair[1].split("\n"), strict=True)
            translated = "".join(a + b for a, b in lines if a.strip() and b.strip())
            shown = "".join(passage[0] + passage[1] for passage in passages)
            assert sorted("".join(translated.split())) == sorted("".join(shown.split()))


# ---- alternatives --------------------------------------------------------------------------------


def test_a_chosen_alternative_stays_while_the_text_grows(page: Page) -> None:
    page.translate("ka lo. mi nu")
    page.click("#other")
    first, second = page.wait(lambda: page.all(".alternative"))[:2]
    assert first.get_attribute("aria-pressed") == "true"
    chosen = second.find_element(By.CSS_SELECTOR, ".words").get_property("textContent")
    second.click()
    assert chosen in page.text("#target-text") and not page.shows("#alternatives")
    page.type(Keys.END, "\nso")
    page.wait(lambda: len(page.all(".passage")) == 2 and not page.all(".stale"))
    assert chosen in page.text("#target-text")


def test_a_sentence_that_the_server_splits_otherwise_has_alternatives_for_its_line(
    page: Page,
) -> None:
    page.intercept(
        "const {q, alternatives} = JSON.parse(options.body);"
        "const translatedText = q.replace('Mr. Ka. Lo.', 'Zu zu. Fe fe. Po.').replace(/^Mr[.]$/, 'alone');"
        "return new Response(JSON.stringify({translatedText, alignment: [], alternatives: [translatedText + '?']}))"
    )
    page.fill("#source-text", "Mr. Ka. Lo.\nMi.")
    page.wait(lambda: len(page.all(".passage")) == 4)
    page.click("#other")
    page.wait(lambda: page.all(".alternative"))[1].click()
    assert page.text("#target-text") == "Zu zu. Fe fe. Po.?\nMi."
    page.type(Keys.END, " Nu.")
    page.wait(lambda: page.text("#target-text") == "Zu zu. Fe fe. Po.?\nMi. Nu.")


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", ["too long", "refused"])
def test_an_outdated_translation_says_so_and_is_not_copied(page: Page, reason: str) -> None:
    limit = page.run(
        "return fetch('frontend/settings').then((answer) => answer.json()).then((all) => all.charLimit)"
    )
    page.translate("ka lo")
    error = "Text 1 <b>is</b> odd."
    page.intercept(f"return new Response(JSON.stringify({{error: {error!r}}}), {{status: 400}});")
    page.fill("#source-text", "ka " * (limit // 3 + 1) if reason == "too long" else "ka lo mi")
    page.wait(lambda: page.text("#state") == "The translation of an earlier text")
    assert error == page.text("#notice-text") or "characters too long" in page.text("#notice-text")
    assert not page.one("#copy").is_enabled()
    page.fill("#source-text", "ka lo")
    page.wait(
        lambda: (
            page.text("#state") == ""
            and page.one("#copy").is_enabled()
            and not page.shows("#notice")
        )
    )


@pytest.mark.parametrize(
    ("answer", "status", "sentence"),
    [
        (
            "<html>nginx</html>",
            413,
            "This is too large for the server. Send it in parts. (Status 413)",
        ),
        ('{"error": "No other websites."}', 403, "No other websites."),
    ],
)
def test_errors_of_servers_and_proxies_are_sentences(
    page: Page, answer: str, status: int, sentence: str
) -> None:
    page.intercept(f"return new Response({answer!r}, {{status: {status}}});")
    page.fill("#source-text", "ka lo mi")
    page.wait(lambda: page.text("#notice-text") == sentence)
    assert not page.shows("#key") and not page.shows("#notice-action")


def test_a_busy_server_is_asked_again_after_the_time_that_it_names(page: Page) -> None:
    page.intercept(
        "(window.times ??= []).push(performance.now()); if (calls++ > 0) return next(path, options);"
        "return new Response('{\"error\": \"Too many requests.\"}', {status: 429, headers: {'Retry-After': '1'}})"
    )
    page.watch("#notice")
    page.translate("ka lo mi")
    first, second = page.run("return window.times")
    assert second - first >= 900  # milliseconds
    assert any("Too many requests." in said and "Trying again in" in said for said in page.seen())
    assert not page.shows("#notice")


def test_a_slow_server_is_called_slow_and_can_be_asked_again(page: Page) -> None:
    page.translate("ka lo")
    page.intercept("if (calls++ === 0) await held(); return next(path, options);")
    page.run(
        "const real = setTimeout;"
        "window.setTimeout = (work, pause, ...rest) => real(work, pause === 30000 ? 300 : pause, ...rest)"
    )
    page.fill("#source-text", "ka lo mi")
    page.wait(lambda: page.text("#notice-text") == "The server is slow: no answer for 30 seconds.")
    assert page.text("#state") == "Translating …"
    page.click("#notice-action")
    page.translates("ka lo mi")
    assert not page.shows("#notice")


def test_text_written_offline_is_translated_later_and_survives_a_reload(page: Page) -> None:
    page.browser.execute_cdp_cmd("Network.enable", {})
    page.browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, **OFFLINE})
    try:
        page.fill("#source-text", "ka lo mi")
        page.wait(lambda: "offline" in page.text("#notice-text"))
    finally:
        page.browser.execute_cdp_cmd(
            "Network.emulateNetworkConditions", {"offline": False, **OFFLINE}
        )
    page.translates("ka lo mi")
    page.open()
    page.translates("ka lo mi")


def test_hostile_text_never_becomes_markup(page: Page) -> None:
    page.intercept(
        "if (path !== 'translate') return next(path, options);"
        f"const text = {HOSTILE!r}, detectedLanguage = {{language: 'ka', confidence: 50}};"
        "return new Response(JSON.stringify("
        "{translatedText: text, alternatives: [text + '!'], alignment: [], detectedLanguage}))"
    )
    page.fill("#source-text", HOSTILE)
    page.wait(lambda: page.text("#target-text") == HOSTILE)
    page.click("#other")
    page.wait(lambda: page.all(".alternative"))
    page.click("#attention summary")
    page.wait(lambda: page.all("#attention-drawing > *"))
    assert page.run("return document.querySelectorAll('img, main script').length") == 0
    assert page.run("return document.title").startswith("Translate")


# ---- API keys ------------------------------------------------------------------------------------


def test_an_api_key_is_asked_for_and_kept_for_the_session(page: Page) -> None:
    page.intercept(WANTS_KEY)
    page.fill("#source-text", "ka lo mi")
    page.wait(lambda: page.shows("#key"))
    page.click("#key-cancel")
    page.wait(lambda: page.text("#notice-text") == "This server requires an API key.")
    page.type(" nu")
    time.sleep(0.6)
    assert not page.shows("#key")  # it does not ask at every letter
    page.one("#notice-action").send_keys(Keys.ENTER)
    for key in ("ключ", "secret"):  # the server refuses the first one
        page.wait(lambda: page.shows("#key"))
        page.one("#key-value").send_keys(key, Keys.ENTER)
    page.translates("ka lo mi nu")
    assert page.run("return [sessionStorage['transduce.key'], localStorage['transduce.key']]") == [
        "secret",
        None,
    ]
    assert not page.shows("#notice") and page.run(FOCUSED) == "source-text"


def test_a_revoked_key_is_replaced_and_kept_on_the_device_on_request(page: Page) -> None:
    with page.intercepted(KNOWS_ONE_KEY):
        page.run("sessionStorage['transduce.key'] = 'revoked'")
        page.browser.refresh()
        page.wait(lambda: page.shows("#key"))
        page.click("#key-keep")
        page.one("#key-value").send_keys("secret", Keys.ENTER)
        page.wait(lambda: page.all("#target-language option"))
        page.translate("ka lo mi")
        assert page.run(
            "return [sessionStorage['transduce.key'], localStorage['transduce.key']]"
        ) == [None, "secret"]


# ---- documents -----------------------------------------------------------------------------------


def choose(page: Page, path: Path, content: bytes = b"ka lo\n") -> None:
    """Write a document and choose it on the page."""
    path.write_bytes(content)
    page.one("#document-file").send_keys(str(path))


def test_a_document_is_translated_and_downloaded_while_the_user_types(
    page: Page, tmp_path: Path
) -> None:
    # This server asks for none, but the page sends it.
    page.run("sessionStorage['transduce.key'] = 'secret'")
    page.intercept(
        "(window.sent ??= []).push([path, options.headers.Authorization]); return next(path, options);"
    )
    page.click("#glossary summary")
    page.fill("#glossary-text", "lo = wi")
    choose(page, tmp_path / "a.txt", b"ka lo mi\n\nnu re\n")
    assert page.shows("#document") and not page.shows("#source-text")
    page.click("label:has(#tab-text)")
    page.type("ka")
    page.wait(lambda: page.text("#document-state") == "is translated.")
    assert page.run(FOCUSED) == "source-text" and not page.shows("#document")
    page.click("label:has(#tab-documents)")
    downloads = {
        path: key
        for path, key in page.run("return window.sent")
        if path.startswith("download_file/")
    }
    assert list(downloads.values()) == ["Bearer secret"]
    page.click("#document-link")
    (found,) = page.wait(lambda: list(page.browser.downloads.glob("*.txt")))
    page.wait(lambda: found.stat().st_size)
    assert (found.name, found.read_text("utf-8")) == (
        "a.zu.txt",
        page.served("ka lo mi\n\nnu re\n", {"lo": "wi"}),
    )


def test_a_document_can_be_dropped(page: Page) -> None:
    def drop(*names: str) -> None:
        page.run(
            "const given = new DataTransfer();"
            "for (const each of arguments) given.items.add(new File(['ka lo\\n'], each));"
            "for (const name of ['dragenter', 'dragover', 'drop']) document.body.dispatchEvent("
            "  new DragEvent(name, {dataTransfer: given, bubbles: true, cancelable: true}))",
            *names,
        )

    drop('b "c".txt')
    page.wait(lambda: page.shows("#document-link"))
    assert (
        not page.shows("#drop")
        and page.one("#document-link").get_attribute("download") == 'b "c".zu.txt'
    )
    drop("d.txt", "e.txt")
    assert page.text("#document-refused").strip() == "Drop one document after the other."
    assert not page.shows("#document")  # it would be taken for the refused one


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("a.exe", b"MZ", "can't be translated. Save it as one of these: .txt"),
        (
            "a.txt",
            b"ka\n" * (2 << 20),
            "has 6,291,456 bytes; this server accepts at most 4,194,304. Split it.",
        ),
        ("a.txt", b"ka \xff lo\n", "UTF-8"),
    ],
)
def test_a_refused_document_says_why(
    page: Page, tmp_path: Path, name: str, content: bytes, sentence: str
) -> None:
    choose(page, tmp_path / name, content)
    page.wait(lambda: sentence in page.text("#document-refused"))
    assert not page.shows("#document-link") and not page.shows("#document-progress")


def test_a_second_document_replaces_the_first_even_while_a_key_is_asked_for(
    page: Page, tmp_path: Path
) -> None:
    page.run(
        "const of = XMLHttpRequest.prototype, abort = of.abort; let sent = 0; window.cancelled = 0;"
        "of.send = function () { if (sent++ === 1) setTimeout(() => this.onload()); };"
        "of.abort = function () { window.cancelled++; abort.call(this); };"
        "Object.defineProperty(of, 'status', {value: 401});"
    )
    choose(page, tmp_path / "a.txt")
    page.wait(lambda: page.shows("#document-cancel"))
    choose(page, tmp_path / "b.exe")
    assert page.run("return window.cancelled") == 1 and not page.shows("#document")
    choose(page, tmp_path / "c.txt")
    page.wait(lambda: page.shows("#key"))
    choose(page, tmp_path / "d.txt")
    page.one("#key-value").send_keys("secret", Keys.ENTER)
    page.wait(lambda: not page.shows("#key"))
    assert page.text("#document-name") == "d.txt" and page.text("#document-refused") == ""


# ---- attention, and pages of other sites ---------------------------------------------------------


def test_the_attention_panel_draws_each_sentence_of_the_current_text(page: Page) -> None:
    page.translate("ka lo mi.\nnu re")
    page.click("#attention summary")
    page.wait(lambda: page.all("#attention-drawing svg"))
    assert page.text("#attention-text") == "ka lo mi."
    page.intercept(
        "const answer = await next(path, {...options, signal: undefined}); await held(); return answer;"
    )
    page.click("#attention-next")
    page.wait(lambda: page.text("#attention-state").startswith("Loading"))
    assert page.text("#attention-text") == "nu re"
    page.click("#clear")
    page.release()  # the answer for a text that is gone
    time.sleep(0.2)
    assert page.text("#attention-state").startswith("Write a text") and not page.all(
        "#attention-drawing > *"
    )


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The origin of another site with a page."""
    (tmp_path / "index.html").write_text("<!doctype html><title>Another site</title>")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_pages_of_listed_sites_may_translate(
    site: str, model: Path, page: Page, tmp_path: Path
) -> None:
    translate = """
        const [address, done] = arguments, body = JSON.stringify({q: 'ka lo', source: 'ka', target: 'zu'});
        fetch(address + 'translate', {method: 'POST', headers: {'Content-Type': 'application/json'}, body})
            .then(async (answer) => done(await answer.json()), (error) => done(error.name));
    """
    with serving(model, tmp_path / "log", "--cors", site) as server:
        page.browser.get(site)
        assert page.browser.execute_async_script(translate, server.address)["translatedText"]
        # It does not list the site.
        assert page.browser.execute_async_script(translate, page.address) == "TypeError"
    assert complaints(page.browser)
