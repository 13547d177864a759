"""The page for people who use a finger, a keyboard, a screen reader or large letters. axe-core checks every screen."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from web_page import Page

pytest.importorskip("selenium")

from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.slow

AXE = importlib.util.find_spec("selenium_axe_python")
REFUSAL = """
    if (path !== 'translate' || !JSON.parse(options.body).q.includes('!')) return next(path, options);
    return new Response(JSON.stringify({error: 'This text is odd.'}), {status: 400});
"""
FLAGGED = """
    const answer = await next(path, options);
    if (path !== 'translate') return answer;
    return new Response(JSON.stringify({...await answer.json(), confidence: 0.4, flags: ['numbers']}));
"""
# Controls that are too small for a finger. A checkbox is pressed by its label; skip links are for keyboards.
SMALL = """
    const all = 'button, a[href], select, summary, textarea, input, [role=option], [role=grid] td[tabindex]';
    return [...document.querySelectorAll(all)]
      .filter((each) => each.checkVisibility() && !each.closest('.unseen, .skip'))
      .map((each) => [each, (each.type === 'checkbox' ? each.closest('label') : each).getBoundingClientRect()])
      .filter(([, {width, height}]) => width < 43.9 || height < 43.9)
      .map(([each, {width, height}]) => `${each.outerHTML.slice(0, 80)}: ${width} x ${height}`)
"""
FOCUS = """
    const each = document.activeElement, style = getComputedStyle(each);
    const around = getComputedStyle(each.closest('.leaf') ?? each);
    const inside = [...each.children].map((child) => getComputedStyle(child).strokeWidth);
    const marked = style.outlineStyle !== 'none' || around.boxShadow !== 'none' || inside.includes('2px');
    return [[...document.querySelectorAll('*')].indexOf(each), marked, each.outerHTML.slice(0, 60)]
"""


def show_every_screen(page: Page, check: Callable[[str], None]) -> None:
    """Show every screen of the page, and call `check` with its name."""
    check("empty")
    page.intercept(FLAGGED)
    page.fill("#source-text", "ka lo mi nu. so ti " + "va" * 60)
    page.wait(lambda: page.all("#target-text .word") and page.shows("#quality"))
    check("translation")
    page.click("#quality-label")
    page.click("#other")
    page.wait(lambda: page.all(".alternative"))
    check("alternatives")
    page.click("#other")
    page.click("#history summary")
    page.click("#history-keep")
    page.wait(lambda: page.all(".entry"))
    check("history")
    page.click("#glossary summary")
    page.fill("#glossary-text", "lo = wi\nmi")
    page.one("#glossary-text").send_keys(Keys.TAB)
    page.wait(lambda: page.text("#glossary-count") == "(1 term)" and page.all("#target-text .word"))
    check("glossary")
    page.click("#attention summary")
    page.wait(lambda: page.all("#attention-drawing canvas"))
    check("attention")
    page.click("#attention summary")
    page.click("#help summary")
    page.click("label:has(#tab-documents)")
    check("documents")
    page.click("label:has(#tab-text)")
    page.intercept(REFUSAL)
    page.type("!")
    page.wait(lambda: page.shows("#notice") and page.all(".stale"))
    check("error")
    page.run("document.querySelector('#key').showModal()")
    check("key")
    page.browser.get(page.address + "docs")
    check("docs")


@pytest.mark.skipif(
    AXE is None, reason="axe-core is missing: pip install selenium-axe-python (in the extra `dev`)"
)
@pytest.mark.parametrize(
    ("width", "height", "touch", "scheme"), [(390, 844, True, "dark"), (320, 256, False, "light")]
)
def test_every_screen_is_accessible(
    page: Page, width: int, height: int, touch: bool, scheme: str
) -> None:
    """A phone, and 1280 x 1024 pixels enlarged to 400 %."""
    axe = (Path(str(AXE and AXE.origin)).parent / "axe-core" / "axe.min.js").read_text(
        encoding="utf-8"
    )
    faults = list[str]()

    def check(screen: str) -> None:
        page.run(axe)
        page.run("document.getAnimations().forEach((each) => each.finish())")
        violations = page.browser.execute_async_script(
            "axe.run().then((it) => arguments[0](it.violations))"
        )
        faults.extend(
            f"{screen}: {each['id']}: {node['html']}"
            for each in violations
            for node in each["nodes"]
        )
        if page.run("return document.documentElement.scrollWidth") > width:
            faults.append(f"{screen}: wider than the screen")
        if touch:
            faults.extend(f"{screen}: too small for a finger: {each}" for each in page.run(SMALL))

    with page.on(width, height, touch=touch, scheme=scheme):
        show_every_screen(page, check)
    assert faults == []


def test_a_notice_is_in_sight_on_a_small_screen(page: Page) -> None:
    with page.on(640, 400):  # 1280 x 800 pixels at 200 %
        page.intercept("return new Response('{}', {status: 400});")
        page.fill("#source-text", "ka lo mi\n" * 30)
        page.wait(lambda: page.shows("#notice"))
        assert page.run(
            "return document.querySelector('#notice').getBoundingClientRect().bottom <= innerHeight"
        )


def test_print_shows_both_whole_texts_and_no_buttons(page: Page) -> None:
    page.translate("ka lo mi\n" * 40)
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        for side in ("source", "target"):
            field = f"document.querySelector('#{side}-field')"
            assert page.run(f"return {field}.scrollHeight - {field}.clientHeight") <= 1
        assert page.shows("#mirror") and not any(
            page.shows(each) for each in ("#source-text", "button", ".panel")
        )
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_tab_reaches_every_control_in_order_and_shows_the_focus(page: Page) -> None:
    page.translate("ka lo mi")
    for panel in ("help", "glossary", "history", "attention"):
        page.click(f"#{panel} summary")
    page.click("#history-keep")
    page.wait(lambda: page.all("#attention-drawing canvas") and page.all(".entry"))
    page.run("document.querySelector('.skip').focus()")
    controls = page.run(
        "return [...document.querySelectorAll('button, a[href], select, summary, textarea, input, [tabindex=\"0\"]')]"
        ".filter((each) => each.checkVisibility() && each.tabIndex >= 0 && !each.disabled)"
        ".filter((each) => each.type !== 'radio' || each.checked).length"
    )
    places = []
    for _ in range(controls - 1):
        page.press(Keys.TAB)
        place, marked, html = page.run(FOCUS)
        assert marked and "<body" not in html, html
        places.append(place)
    assert len(set(places)) == controls - 1 and places == sorted(places)
