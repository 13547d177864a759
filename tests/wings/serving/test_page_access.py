"""Who uses the page with a finger, a keyboard, a screen reader or large letters. axe-core checks every screen."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip(
    "selenium", reason="the page is tested in a browser: pip install selenium (it is in the extra `dev`)"
)

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

from web_page import MISSING, WITHOUT, Page

pytestmark = [pytest.mark.skipif(bool(MISSING), reason=WITHOUT), pytest.mark.slow]

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
# A checkbox is pressed by its label, and a skip link is seen only with a keyboard.
SMALL = """
    const all = 'button, a[href], select, summary, textarea, input, [role=option], [role=grid] td[tabindex]';
    return [...document.querySelectorAll(all)]
      .filter((each) => each.checkVisibility() && !each.closest('.unseen, .skip'))
      .map((each) => [each, (each.type === 'checkbox' ? each.closest('label') : each).getBoundingClientRect()])
      .filter(([, {width, height}]) => width < 43.9 || height < 43.9)
      .map(([each, {width, height}]) => `${each.outerHTML.slice(0, 80)}: ${width} x ${height}`)
"""


def screens(page: Page, check: Callable[[str], None]) -> None:
    """Show every screen of the page, and call `check` with its name."""
    check("empty")
    page.later(FLAGGED)
    page.fill("#source-text", "ka lo mi nu. so ti")
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
    page.later(REFUSAL)
    page.type("!")
    page.wait(lambda: page.shows("#notice") and page.all(".stale"))
    check("error")
    page.run("document.querySelector('#key').showModal()")
    check("key")
    page.browser.get(page.address + "docs")
    check("docs")


@pytest.mark.skipif(AXE is None, reason="axe-core is missing: pip install selenium-axe-python (in the extra `dev`)")
@pytest.mark.parametrize(
    ("width", "height", "touch", "scheme"),
    [
        (1280, 800, False, "light"),
        (1280, 800, False, "dark"),
        (390, 844, True, "light"),
        (390, 844, True, "dark"),
        (320, 256, False, "light"),  # 1280 x 1024 pixels at 400 %
    ],
)
def test_axe_finds_nothing(page: Page, width: int, height: int, touch: bool, scheme: str) -> None:
    script = Path(str(AXE and AXE.origin)).parent / "axe-core" / "axe.min.js"
    axe, found = script.read_text(encoding="utf-8"), list[str]()

    def check(screen: str) -> None:
        page.run(axe)
        page.run("document.getAnimations().forEach((each) => each.finish())")
        violations = page.browser.execute_async_script("axe.run().then((it) => arguments[0](it.violations))")
        found.extend(f"{screen}: {each['id']}: {node['html']}" for each in violations for node in each["nodes"])
        if page.run("return document.documentElement.scrollWidth") > width:
            found.append(f"{screen}: wider than the screen")

    with page.on(width, height, touch=touch, scheme=scheme):
        screens(page, check)
    assert found == []


def test_a_finger_hits_every_target(page: Page) -> None:
    small = list[str]()
    with page.on(390, 844, touch=True):
        screens(page, lambda screen: small.extend(f"{screen}: {each}" for each in page.run(SMALL)))
    assert small == []


def test_a_notice_is_in_sight_on_a_small_screen(page: Page) -> None:
    with page.on(640, 400):  # 1280 x 800 pixels at 200 %
        page.later("return new Response('{}', {status: 400});")
        page.fill("#source-text", "ka lo mi\n" * 30)
        page.wait(lambda: page.shows("#notice"))
        assert page.run("return document.querySelector('#notice').getBoundingClientRect().bottom <= innerHeight")


def test_on_paper_stand_both_whole_texts_and_no_buttons(page: Page) -> None:
    page.fill("#source-text", text := "ka lo mi\n" * 40)
    page.translates(text)
    page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        for side in ("source", "target"):
            field = f"document.querySelector('#{side}-field')"
            assert page.run(f"return {field}.scrollHeight - {field}.clientHeight") <= 1
        assert page.shows("#mirror") and not any(page.shows(each) for each in ("#source-text", "button", ".panel"))
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_keyboard_reaches_everything_and_leaves_it_again(page: Page) -> None:
    page.fill("#source-text", "ka lo mi")
    page.translates("ka lo mi")
    for panel in ("glossary", "history", "attention"):
        page.click(f"#{panel} summary")
    page.click("#history-keep")
    page.wait(lambda: page.all("#attention-drawing canvas") and page.all(".entry"))
    page.run("document.querySelector('.skip').focus()")
    wanted = page.run(
        "return [...document.querySelectorAll('button, a[href], select, summary, textarea, input, [tabindex=\"0\"]')]"
        ".filter((each) => each.checkVisibility() && each.tabIndex >= 0 && !each.disabled).length"
    )
    seen = list[str]()
    for _ in range(wanted - 1):
        ActionChains(page.browser).send_keys(Keys.TAB).perform()
        seen.append(
            page.run(
                "const each = document.activeElement, style = getComputedStyle(each);"
                "const around = getComputedStyle(each.closest('.leaf') ?? each);"
                "const inside = [...each.children].map((child) => getComputedStyle(child).strokeWidth);"
                "const marked = style.outlineStyle !== 'none' || around.boxShadow !== 'none' || inside.includes('2px');"
                "const order = [...document.querySelectorAll('*')].indexOf(each);"
                "return `${order} ${marked ? '' : 'invisible '}${each.outerHTML.slice(0, 60)}`"
            )
        )
    assert len(set(seen)) == wanted - 1 and not [each for each in seen if "invisible" in each or "<body" in each]
    places = [int(each.split()[0]) for each in seen]
    assert places == sorted(places)  # the order on the page is the order of the keyboard
