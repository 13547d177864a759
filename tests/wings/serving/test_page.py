"""The web page of `transduce serve`, in a real browser."""

import itertools
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip(
    "selenium", reason="the page is tested in a browser: pip install selenium (it is in the extra `dev`)"
)

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from web_page import MISSING, WITHOUT, Page

pytestmark = pytest.mark.skipif(bool(MISSING), reason=WITHOUT)

HOSTILE = '<img src=x onerror="document.title=1"><script>document.title=2</script>'


def test_typing_gives_a_translation(page: Page) -> None:
    page.type("ka lo mi")
    page.translates("ka lo mi")
    assert page.text("#count").startswith("8 / ")
    assert [page.one(f"#{side}-text").get_attribute("lang") for side in ("source", "target")] == ["ka", "zu"]
    page.type(Keys.BACKSPACE * 3)
    page.translates("ka lo")
    page.wait(lambda: page.text("#announcement") == page.served("ka lo"))  # read out once it has settled
    page.click("#clear")
    page.wait(lambda: page.text("#target-text") == "" and not page.shows("#copy"))
    page.click("#clear")  # which is Undo now
    page.translates("ka lo")
    assert page.complaints() == []


def test_a_change_that_is_taken_back_leaves_everything_as_it_was(page: Page) -> None:
    page.type("ka lo")
    page.translates("ka lo")
    page.type("x" + Keys.BACKSPACE)
    page.wait(lambda: page.all("#mirror .word"))
    page.translates("ka lo")


def test_lines_stay_lines(page: Page) -> None:
    page.type("ka lo\n\n  mi\n")
    page.translates("ka lo\n\n  mi\n")
    assert page.text("#target-text").count("\n") == 3 and len(page.all(".passage")) == 2


def test_the_newest_text_wins_over_an_older_answer_that_comes_late(page: Page) -> None:
    page.later(
        "const late = calls++ === 0; const answer = await next(path, {...options, signal: undefined});"
        "if (late) await held(); return answer;"
    )
    page.run("document.execCommand('insertText', false, 'ka lo')")  # not letter by letter
    page.wait(lambda: page.run("return Boolean(window.release)"))
    page.type(" mi")
    page.translates("ka lo mi")
    page.watch("#target-text")
    page.release()
    time.sleep(0.2)
    assert page.seen() == []
    page.translates("ka lo mi")


def test_a_request_that_is_overtaken_is_cancelled(page: Page) -> None:
    page.later(
        "options.signal.addEventListener('abort', () => window.cancelled ??= JSON.parse(options.body).q);"
        "if (calls++ === 0) await held(); return next(path, options);"
    )
    page.run("document.execCommand('insertText', false, 'ka lo')")  # not letter by letter
    page.wait(lambda: page.run("return Boolean(window.release)"))
    assert page.one("#target-text").get_attribute("aria-busy") == "true"
    page.type(" mi")
    page.translates("ka lo mi")
    assert page.run("return window.cancelled") == "ka lo"


def test_what_an_input_method_composes_is_not_translated_before_it_is_done(page: Page) -> None:
    page.later("(window.asked ??= []).push(JSON.parse(options.body).q); return next(path, options);")
    for text in ("k", "ka", "ka l"):
        composed = {"text": text, "selectionStart": len(text), "selectionEnd": len(text)}
        page.browser.execute_cdp_cmd("Input.imeSetComposition", composed)
    time.sleep(0.5)
    assert page.run("return window.asked ?? []") == []
    page.browser.execute_cdp_cmd("Input.insertText", {"text": "ka lo"})
    page.translates("ka lo")
    assert page.run("return window.asked") == ["ka lo"]


TWO_WAYS = """
    if (path === 'languages') return new Response(JSON.stringify([
      {code: 'ka', name: 'Ka', targets: ['ka', 'zu']}, {code: 'zu', name: 'Zu', targets: ['ka', 'zu']}]));
    if (path !== 'translate') return next(path, options);
    const {q, source, target} = JSON.parse(options.body);
    const answer = {translatedText: `${source} ${target} ${q.length}`, alignment: []};
    if (source === 'auto') answer.detectedLanguage = {language: 'ka', confidence: 87};
    return new Response(JSON.stringify(answer));
"""


def test_languages_are_detected_swapped_and_remembered(page: Page) -> None:
    with page.from_the_start(TWO_WAYS):
        assert page.one("#source-language").get_property("value") == "auto"
        assert not page.one("#swap").is_enabled()  # from what?
        page.type("ka lo")
        page.wait(lambda: page.text("#target-text") == "auto zu 5")
        assert page.text("#source-language option").startswith("Ka")
        page.click("#swap")
        page.wait(lambda: page.text("#target-text") == "zu ka 9")
        assert page.one("#source-text").get_property("value") == "auto zu 5"
        page.open()
        chosen = [page.one(f"#{side}-language").get_property("value") for side in ("source", "target")]
        assert chosen == ["zu", "ka"]


REFUSES = """
    if (path !== 'translate') return next(path, options);
    const {q} = JSON.parse(options.body);
    if (q.includes('Hund')) return new Response(JSON.stringify({error: 'This is German.'}), {status: 400});
    const detectedLanguage = {language: 'ka', confidence: 87};
    return new Response(JSON.stringify({translatedText: `${q.length}`, alignment: [], detectedLanguage}));
"""


def test_a_translation_of_another_text_is_not_copied(page: Page) -> None:
    with page.from_the_start(REFUSES):
        page.type("ka lo")
        page.wait(lambda: page.text("#target-text") == "5" and page.one("#copy").is_enabled())
        page.type(" Hund")
        page.wait(lambda: page.text("#notice-text") == "This is German.")
        assert not page.one("#copy").is_enabled()
        assert page.text("#source-language option") == "Detect language"


WANTS_KEY = """
    if (new Headers(options.headers).get('Authorization') === 'Bearer secret') return next(path, options);
    return new Response('{"error": "This server wants a key."}', {status: 401})
"""


def test_a_server_that_wants_a_key_gets_it(page: Page) -> None:
    page.later(WANTS_KEY)
    page.type("ka lo mi")
    page.wait(lambda: page.shows("#key"))
    assert page.text("#key-sentence") == "This server requires an API key."
    page.click("#key-cancel")
    page.wait(lambda: page.text("#notice-text") == "This server requires an API key.")
    page.type(" nu")  # it doesn't ask again at every letter
    time.sleep(0.6)
    assert not page.shows("#key")
    page.click("#notice-action")
    for key in ("ключ", "secret"):  # after the first, which can't be one, it asks again
        page.wait(lambda: page.shows("#key"))
        page.one("#key-value").send_keys(key, Keys.ENTER)
    page.translates("ka lo mi nu")
    assert page.run("return [sessionStorage['transduce.key'], localStorage['transduce.key']]") == ["secret", None]
    assert not page.shows("#notice")


def test_a_server_without_keys_is_not_asked_for_one(page: Page) -> None:
    page.later('return new Response(\'{"error": "No other websites."}\', {status: 403});')
    page.type("ka lo mi")
    page.wait(lambda: page.text("#notice-text") == "No other websites.")
    assert not page.shows("#key") and not page.shows("#notice-action")


KNOWS_ONE_KEY = """
    const sent = new Headers(options.headers).get('Authorization');
    if (!sent || sent === 'Bearer secret') return next(path, options);
    return new Response('{"error": "Unknown API key."}', {status: 403});
"""


def test_a_stored_key_that_the_server_no_longer_knows_can_be_replaced(page: Page) -> None:
    with page.from_the_start(KNOWS_ONE_KEY):
        page.run("sessionStorage['transduce.key'] = 'revoked'")
        page.browser.refresh()
        page.wait(lambda: page.shows("#key"))
        page.one("#key-value").send_keys("secret", Keys.ENTER)
        page.type("ka lo mi")
        page.translates("ka lo mi")


@pytest.mark.parametrize("status", [404, 413, 500])
def test_a_proxys_page_becomes_a_sentence(page: Page, status: int) -> None:
    page.later(f"return new Response('<html>nginx</html>', {{status: {status}}});")
    page.type("ka lo mi")
    page.wait(lambda: page.text("#notice-text").endswith(f". (Status {status})"))


def test_the_focus_goes_to_the_text_when_the_pressed_button_goes(page: Page) -> None:
    page.later("return calls++ ? next(path, options) : new Response('{}', {status: 401});")
    page.type("ka lo mi")
    page.wait(lambda: page.shows("#key"))
    page.click("#key-cancel")
    page.wait(lambda: page.shows("#notice-action"))
    page.one("#notice-action").send_keys(Keys.ENTER)
    page.wait(lambda: page.shows("#key"))
    page.one("#key-value").send_keys("secret", Keys.ENTER)
    page.translates("ka lo mi")
    assert page.run("return document.activeElement.id") == "source-text"


def test_a_key_is_remembered_on_the_device_if_asked(page: Page) -> None:
    page.later(WANTS_KEY)
    page.type("ka lo mi")
    page.wait(lambda: page.shows("#key"))
    page.click("#key-keep")
    page.one("#key-value").send_keys("secret", Keys.ENTER)
    page.translates("ka lo mi")
    assert page.run("return [sessionStorage['transduce.key'], localStorage['transduce.key']]") == [None, "secret"]


def test_control_and_enter_translate_without_the_pause(page: Page) -> None:
    page.run("window.setTimeout = () => 0")  # so the pause never ends
    page.type("ka lo mi")
    page.one("#source-text").send_keys(Keys.CONTROL, Keys.ENTER)
    page.translates("ka lo mi")


def test_words_light_up_with_what_they_are_aligned_to(page: Page) -> None:
    page.type("ka lo mi")
    page.translates("ka lo mi")
    word = page.one("#target-text .word")
    ActionChains(page.browser).move_to_element(word).perform()
    page.wait(lambda: page.all("#mirror .lit"))
    assert page.all("#target-text .lit") == [word]
    linked = page.all("#mirror .lit")
    lit = [page.run("return arguments[0].textContent", word) for word in linked]
    assert lit and set(lit) <= {"ka", "lo", "mi"}
    assert len(page.all("#threads path")) == len(lit)
    place = linked[0].rect
    over = ActionChains(page.browser)
    over.w3c_actions.pointer_action.move_to_location(int(place["x"]) + 4, int(place["y"]) + 8)
    over.perform()  # over the text area, in front of a word that is linked
    page.wait(
        lambda: [page.run("return arguments[0].textContent", word) for word in page.all("#mirror .lit")] == lit[:1]
    )


def test_the_keyboard_goes_from_word_to_word(page: Page) -> None:
    page.type("ka lo mi")
    page.translates("ka lo mi")
    words = page.all("#target-text .word")
    for word in words[:2]:
        page.one("#target-text").send_keys(Keys.ARROW_RIGHT)
        assert page.all("#target-text .lit") == [word]
        linked = page.text("#mirror .lit")
        said = f"{page.text('#target-text .lit')}: {linked}"
        page.wait(lambda said=said: page.text("#announcement").startswith(said))
    page.one("#target-text").send_keys(Keys.ENTER)
    page.wait(lambda: page.all(".alternative"))
    page.one(".alternative").send_keys(Keys.ESCAPE)
    assert not page.shows("#alternatives")
    page.one("#source-text").send_keys(Keys.HOME, *[Keys.ARROW_RIGHT] * ("ka lo mi".index(linked) + 1))
    page.wait(lambda: page.all("#mirror .lit") and page.text("#mirror .lit") == linked)


def test_a_word_that_the_keyboard_reaches_is_in_sight_and_stays_lit(page: Page) -> None:
    page.run("document.execCommand('insertText', false, arguments[0])", text := "ka lo mi\n" * 40 + "nu re")
    page.translates(text)
    page.one("#target-text").send_keys(Keys.ARROW_LEFT)  # the last word
    below = "const below = (one) => document.querySelector(one).getBoundingClientRect().bottom;"
    page.wait(lambda: page.run(f"{below} return below('#target-text .lit') <= below('#target-field')"))
    time.sleep(0.1)  # what hears of the scrolling
    assert page.all("#target-text .lit") == page.all("#target-text .word")[-1:]


# Blanks, line ends, signs, right to left, letters beyond 16 bits, an accent of its own, an alphabet without spaces.
TEXTS = st.lists(st.text(alphabet="ab .!?\n\t'-שم😀𝄞\u0301漢。", max_size=30), min_size=2, max_size=40)


@settings(max_examples=8)
@given(texts=TEXTS)
def test_passages_keep_order_and_leave_out_only_blanks(page: Page, texts: list[str]) -> None:
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
            said = ["".join((a + b).split()) for a, b in lines if a.strip() and b.strip()]
            assert sorted("".join(said)) == sorted("".join("".join((p[0] + p[1]).split()) for p in passages))


@settings(max_examples=8)
@given(texts=TEXTS)
def test_differences_are_the_text_and_none_of_it_is_marked_beside_itself(page: Page, texts: list[str]) -> None:
    pairs = [("ka lo mi", "ka zu mi"), *((text, other) for text in texts for other in texts)]
    found = page.module("text", "given[0].map((pair) => it.differences(...pair))", pairs)
    assert [part["text"] for part in found[0] if part["marked"]] == ["lo"]
    for (text, other), parts in zip(pairs, found, strict=True):
        assert "".join(part["text"] for part in parts) == text
        assert text != other or not any(part["marked"] for part in parts)
        rest = iter(other)
        unmarked = "".join(part["text"] for part in parts if not part["marked"])
        assert all(character in rest for character in unmarked if character.strip()), "a common subsequence"


def test_offsets_are_code_points(page: Page) -> None:
    page.later(
        "const alignment = [{source: [3, 5], target: [3, 5], weight: 1}];"
        "return new Response(JSON.stringify({translatedText: '𝄞𝄞 wi', alignment}))"
    )
    page.run("document.execCommand('insertText', false, '😀😀 re')")
    page.wait(lambda: page.all("#mirror .word"))
    assert (page.text("#mirror .word"), page.text("#target-text .word")) == ("re", "wi")


def test_an_alternative_is_taken_and_stays(page: Page) -> None:
    page.type("ka lo. mi nu")
    page.translates("ka lo. mi nu")
    page.click("#other")
    offered = page.wait(lambda: page.all(".alternative"))
    assert len(offered) > 1 and all(each.find_elements(By.CSS_SELECTOR, ".score") for each in offered[:1])
    assert offered[0].get_attribute("aria-pressed") == "true"
    wanted = page.run("return arguments[0].querySelector('.words').textContent", offered[1])
    offered[1].click()
    assert wanted in page.text("#target-text") and not page.shows("#alternatives")
    page.type("\nso")  # another line is translated; what was taken stays
    page.wait(lambda: len(page.all(".passage")) == 2 and not page.all(".stale"))
    assert wanted in page.text("#target-text") and page.all(".preferred")


def test_alternatives_that_are_refused_are_said(page: Page) -> None:
    page.later(
        "if (!JSON.parse(options.body).alternatives) return next(path, options);"
        'return new Response(\'{"error": "At most 2."}\', {status: 400})'
    )
    page.type("ka lo mi")
    page.translates("ka lo mi")
    page.click("#other")
    page.wait(lambda: page.all("#alternatives [role=alert]"))
    assert page.text("#alternatives") == "At most 2."


def test_copying_keeps_the_focus(page: Page) -> None:
    page.run("navigator.clipboard.writeText = () => Promise.reject()")  # as over plain HTTP
    page.type("ka lo mi")
    page.translates("ka lo mi")
    page.watch("#copy")
    page.click("#copy")
    page.wait(page.seen)
    assert page.run("return document.activeElement.id") == "copy"


def test_a_sentence_that_the_server_sees_otherwise_is_taken_with_its_line(page: Page) -> None:
    page.later(
        "const {q, alternatives} = JSON.parse(options.body); (window.asked ??= []).push(q);"
        "const translatedText = q.replace('Mr. Ka. Lo.', 'Zu zu. Fe fe. Po.').replace(/^Mr[.]$/, 'alone');"
        "return new Response(JSON.stringify({translatedText, alignment: [], alternatives: [translatedText + '?']}))"
    )
    page.type("Mr. Ka. Lo.\nMi.")
    page.wait(lambda: len(page.all(".passage")) == 4)
    page.click("#other")
    page.wait(lambda: page.all(".alternative"))
    assert page.run("return window.asked.slice(-2)") == ["Mr.", "Mr. Ka. Lo."]
    page.all(".alternative")[1].click()
    assert page.text("#target-text") == "Zu zu. Fe fe. Po.?\nMi."
    page.type(" Nu.")  # behind the second line
    page.wait(lambda: page.text("#target-text").endswith("Nu."))
    assert page.text("#target-text") == "Zu zu. Fe fe. Po.?\nMi. Nu."


def test_the_mirror_lies_exactly_behind_the_text(page: Page) -> None:
    text = "ka lo mi\tnu  " * 400 + "\n" + "va" * 300 + "\n\n"
    page.run("document.execCommand('insertText', false, arguments[0])", text)
    sizes = page.run(
        "const [a, b] = ['#mirror', '#source-text'].map((name) => document.querySelector(name));"
        "return [a.clientWidth, b.clientWidth, a.clientHeight, b.clientHeight, a.scrollHeight, b.scrollHeight]"
    )
    assert sizes[0] == sizes[1] and sizes[2] == sizes[3] and abs(sizes[4] - sizes[5]) <= 1
    field = "document.querySelector('#source-field')"
    bottom = page.run(f"return {field}.scrollHeight - {field}.clientHeight")
    assert bottom > 500
    page.type("x")
    page.wait(lambda: page.run(f"return {field}.scrollTop") > bottom - 60)  # the caret is in sight


def test_a_document_goes_up_and_comes_down(page: Page, tmp_path: Path) -> None:
    document = tmp_path / "a.txt"
    document.write_text("ka lo mi\n\nnu re\n", encoding="utf-8")
    page.run("sessionStorage['transduce.key'] = 'secret'")  # this server asks for none, but the page sends it
    page.later("(window.sent ??= []).push([path, options.headers.Authorization]); return next(path, options);")
    page.one("#document-file").send_keys(str(document))
    page.wait(lambda: page.shows("#document-link"))
    assert page.text("#document-state") == "is translated."
    ((path, sent),) = page.run("return window.sent")
    assert path.startswith("download_file/") and sent == "Bearer secret"
    page.click("#document-link")
    found = page.wait(lambda: list(page.browser.downloads.glob("*.txt")))
    page.wait(lambda: found[0].stat().st_size)
    assert found[0].read_text(encoding="utf-8") == page.served("ka lo mi\n\nnu re\n")
    assert found[0].name == "a.zu.txt"


def test_a_document_that_is_ready_does_not_disturb_who_writes(page: Page, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ka lo\n", encoding="utf-8")
    page.one("#document-file").send_keys(str(tmp_path / "a.txt"))
    page.type("ka")
    page.wait(lambda: page.shows("#document-link"))
    assert page.run("return document.activeElement.id") == "source-text"


def test_a_document_that_is_overtaken_is_cancelled(page: Page, tmp_path: Path) -> None:
    for name in ("a.txt", "b.exe", "c.txt"):
        (tmp_path / name).write_text("ka lo\n", encoding="utf-8")
    page.run(
        "const of = XMLHttpRequest.prototype; window.cancelled = 0; of.send = () => {};"
        "const abort = of.abort; of.abort = function () { window.cancelled++; abort.call(this); }"
    )
    page.one("#document-file").send_keys(str(tmp_path / "a.txt"))
    page.wait(lambda: page.shows("#document-cancel"))
    page.one("#document-file").send_keys(str(tmp_path / "b.exe"))
    page.wait(lambda: "can't be translated" in page.text("#document-refused"))
    assert page.run("return window.cancelled") == 0 and page.shows("#document-cancel")
    page.one("#document-file").send_keys(str(tmp_path / "c.txt"))
    page.wait(lambda: page.text("#document-name") == "c.txt")
    assert page.run("return window.cancelled") == 1 and page.text("#document-refused") == ""


def test_a_document_that_comes_while_the_key_is_asked_for_is_the_one(page: Page, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("ka lo\n", encoding="utf-8")
    page.run(
        "let sent = 0; XMLHttpRequest.prototype.send = function () { if (!sent++) setTimeout(() => this.onload()); };"
        "Object.defineProperty(XMLHttpRequest.prototype, 'status', {value: 401});"
    )
    page.one("#document-file").send_keys(str(tmp_path / "a.txt"))
    page.wait(lambda: page.shows("#key"))
    page.one("#document-file").send_keys(str(tmp_path / "b.txt"))
    page.one("#key-value").send_keys("secret", Keys.ENTER)
    page.wait(lambda: not page.shows("#key"))
    assert page.text("#document-name") == "b.txt" and page.text("#document-refused") == ""


def drop(page: Page, *names: str) -> None:
    page.run(
        "const given = new DataTransfer(); for (const each of arguments) given.items.add(new File(['ka lo\\n'], each));"
        "for (const name of ['dragenter', 'dragover', 'drop'])"
        "  document.body.dispatchEvent(new DragEvent(name, {dataTransfer: given, bubbles: true, cancelable: true}))",
        *names,
    )


def test_a_document_can_be_dropped(page: Page) -> None:
    drop(page, 'b "c".txt')
    page.wait(lambda: page.shows("#document-link"))
    assert (page.text("#document-name"), page.shows("#drop")) == ('b "c".txt', False)
    assert page.one("#document-link").get_attribute("download") == 'b "c".zu.txt'
    drop(page, "d.txt", "e.txt")
    assert page.text("#document-refused").strip() == "Drop one document at a time."
    drop(page, "f.exe")
    assert page.text("#document-refused").startswith("f.exe Files of this type can't be translated")
    assert page.shows("#document-link")


def test_a_document_of_another_kind_is_refused_by_a_sentence(page: Page, tmp_path: Path) -> None:
    (tmp_path / "a.exe").write_bytes(b"MZ")
    page.one("#document-file").send_keys(str(tmp_path / "a.exe"))
    page.wait(lambda: "can't be translated" in page.text("#document-refused"))
    assert not page.shows("#document-link") and not page.shows("#document-progress")


def test_a_document_that_is_too_large_is_not_sent(page: Page, tmp_path: Path) -> None:
    page.run("XMLHttpRequest.prototype.send = () => { window.sent = true; }")
    (tmp_path / "a.txt").write_bytes(b"ka\n" * (2 << 20))
    page.one("#document-file").send_keys(str(tmp_path / "a.txt"))
    page.wait(
        lambda: (
            page.text("#document-refused")
            == "a.txt This document has 6,291,456 bytes; this server accepts at most 4,194,304."
        )
    )
    assert not page.run("return window.sent") and not page.shows("#document-progress")


def test_a_broken_document_shows_the_servers_sentence(page: Page, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"ka \xff lo\n")
    page.one("#document-file").send_keys(str(tmp_path / "a.txt"))
    page.wait(lambda: "UTF-8" in page.text("#document-refused"))
    assert not page.shows("#document")


@pytest.mark.parametrize("seconds", [1, 0])  # 0: as of a proxy's date that is over
def test_a_server_that_is_busy_is_asked_again(page: Page, seconds: int) -> None:
    page.later(
        "if (calls++ > 0) return next(path, options);"
        'return new Response(\'{"error": "Too many requests."}\','
        f"{{status: 429, headers: {{'Retry-After': '{seconds}'}}}})"
    )
    page.watch("#notice")
    page.type("ka lo mi")
    page.translates("ka lo mi")
    assert any("Too many requests." in said and "Trying again in" in said for said in page.seen())
    assert not page.shows("#notice") and page.one("#source-text").get_property("value") == "ka lo mi"


def test_a_server_that_is_busy_at_first_is_not_asked_at_once(page: Page) -> None:
    script = (
        "(window.times ??= []).push(performance.now()); if (calls++ > 1) return next(path, options);"
        "return new Response('{}', {status: 429, headers: {'Retry-After': '1'}})"
    )
    with page.from_the_start(script):
        first, _, third = page.run("return window.times.slice(0, 3)")
    assert third - first >= 900  # milliseconds


def test_an_answer_that_makes_no_sense_is_not_waited_for(page: Page) -> None:
    page.later("return new Response('null')")
    page.run("document.execCommand('insertText', false, 'ka lo')")  # not letter by letter
    page.wait(lambda: any("TypeError" in said for said in page.complaints()))
    assert page.one("#target-text").get_attribute("aria-busy") == "false" and page.text("#state") == ""


def test_nothing_is_lost_offline(page: Page) -> None:
    page.browser.execute_cdp_cmd("Network.enable", {})
    there = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
    page.browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": True, **there})
    try:
        page.type("ka lo mi")
        page.wait(lambda: "offline" in page.text("#notice-text"))
    finally:
        page.browser.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": False, **there})
    page.translates("ka lo mi")
    page.open()  # again: what was written is still there
    page.translates("ka lo mi")


def test_an_error_is_the_servers_sentence(page: Page) -> None:
    page.later("return new Response(JSON.stringify({error: 'Text 1 <b>is</b> odd.'}), {status: 400})")
    page.type("ka lo mi")
    page.wait(lambda: page.text("#notice-text") == "Text 1 <b>is</b> odd.")
    assert not page.shows("#notice-action")


def test_a_text_that_is_too_long_is_not_sent(page: Page) -> None:
    limit = page.run("return fetch('frontend/settings').then((answer) => answer.json()).then((all) => all.charLimit)")
    page.run("document.execCommand('insertText', false, 'ka '.repeat(arguments[0]))", limit // 3 + 2)
    page.wait(lambda: "characters too long" in page.text("#notice-text"))
    assert page.text("#target-text") == "" and "over" in page.one("#count").get_attribute("class")
    page.run("document.querySelector('#source-text').select()")
    page.type("ka lo mi")
    page.translates("ka lo mi")
    assert not page.shows("#notice")


def test_hostile_text_is_text_everywhere(page: Page) -> None:
    page.later(
        "if (path !== 'translate') return next(path, options);"
        f"const text = {HOSTILE!r}, detectedLanguage = {{language: 'ka', confidence: 50}};"
        "return new Response(JSON.stringify("
        "{translatedText: text, alternatives: [text + '!'], alignment: [], detectedLanguage}))"
    )
    page.type(HOSTILE)
    page.wait(lambda: page.text("#target-text") == HOSTILE)
    page.click("#other")
    page.wait(lambda: page.all(".alternative"))
    page.click("#attention summary")
    page.wait(lambda: page.all("#attention-drawing > *"))
    assert page.run("return document.querySelectorAll('img, main script').length") == 0
    assert page.run("return document.title").startswith("Translate")


def test_the_attention_panel(page: Page) -> None:
    assert not page.all("script[src*=drawing]")  # it is loaded when it is wanted
    page.type("ka lo mi.\nnu re")
    page.translates("ka lo mi.\nnu re")
    page.click("#attention summary")
    page.wait(lambda: page.all("#attention-drawing svg"))
    assert page.text("#attention-text") == "ka lo mi."
    page.click("#attention-next")
    page.wait(lambda: page.text("#attention-text") == "nu re" and page.all("#attention-drawing svg"))
    assert page.complaints() == []


def test_what_the_model_saw_of_an_older_text_is_not_drawn(page: Page) -> None:
    page.later(
        "if (path !== 'attention') return next(path, options);"
        "options.signal.addEventListener('abort', () => window.cancelled = true);"
        "const answer = await next(path, {...options, signal: undefined}); await held(); return answer;"
    )
    page.type("ka lo mi")
    page.translates("ka lo mi")
    page.click("#attention summary")
    page.wait(lambda: page.text("#attention-state").startswith("Loading"))
    page.click("#clear")
    page.release()
    time.sleep(0.2)
    assert page.run("return window.cancelled")
    assert page.text("#attention-state").startswith("Write a text") and not page.all("#attention-drawing > *")


def test_a_translation_into_another_language_is_old_at_once(page: Page) -> None:
    slow = "if (path === 'translate' && calls++ > 0) await held();"
    with page.from_the_start(slow + TWO_WAYS):
        page.run("document.execCommand('insertText', false, 'ka lo')")  # not letter by letter
        page.wait(lambda: page.text("#target-text") == "auto zu 5")
        page.run(
            "arguments[0].value = 'ka'; arguments[0].dispatchEvent(new Event('change'))", page.one("#target-language")
        )
        assert page.all("#target-text.stale")
        page.release()
        page.wait(lambda: page.text("#target-text") == "auto ka 5" and not page.all(".stale"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(page: Page, scheme: str) -> None:
    try:
        size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
        page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        page.type(text := "ka lo mi nu re so ti va " + "va" * 60)
        page.translates(text)
        page.click("#other")
        page.wait(lambda: page.all(".alternative"))
        page.click("#attention summary")
        page.wait(lambda: page.all("#attention-drawing svg"))
        assert page.run("return document.documentElement.scrollWidth") <= 360
        assert page.run("return innerWidth") == 360
    finally:
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
