"""A browser, and the web page of `transduce serve` as a person uses it."""

import contextlib
import json
import shutil
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "selenium", reason="pages are tested in a browser: pip install selenium (in the extra `dev`)"
)

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from waiting import PATIENCE, wait_for

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--window-size=1280,800",
    "--lang=en",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # pages must not need the network
)
INTERCEPT = """{
    const next = window.fetch, held = () => new Promise((resolve) => window.release = resolve);
    let calls = 0; window.fetch = async (path, options) => { %s }
}"""


def start_browser(downloads: Path) -> webdriver.Chrome:
    """A headless Chromium that writes its downloads into this folder; without one, the test is skipped."""
    programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    missing = [name for name, path in programs.items() if not path]
    if missing:
        pytest.skip(
            f"pages are tested in a browser; {', '.join(missing)} is missing: apt install chromium-driver"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = programs["chromium"]
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    browser = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(programs["chromedriver"])
    )
    browser.set_script_timeout(PATIENCE)
    browser.command_executor.client_config.timeout = PATIENCE
    browser.downloads = downloads
    return browser


def complaints(browser: webdriver.Chrome) -> list[str]:
    """Errors of scripts and violations of the Content-Security-Policy since the last call."""
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] != "INFO"]


def set_screen(
    browser: webdriver.Chrome,
    width: int,
    height: int,
    *,
    touch: bool = False,
    scheme: str = "light",
) -> None:
    """Emulate a screen of this size in CSS pixels; `touch`: of a device without mouse and keyboard."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": touch}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": touch})
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})


class Page:
    """The page as a person uses it. Elements are named by CSS selectors."""

    def __init__(self, browser: webdriver.Chrome, address: str):
        self.browser, self.address = browser, address

    def open(self) -> None:
        self.browser.get(self.address)
        self.wait(lambda: self.all("#target-language option"))

    def one(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def value(self, selector: str) -> str:
        return self.one(selector).get_property("value")

    def shows(self, selector: str) -> bool:
        return self.one(selector).is_displayed()

    def click(self, selector: str) -> None:
        self.one(selector).click()

    def fill(self, selector: str, text: str) -> None:
        """Replace the text of a field at once, not letter by letter."""
        self.run("document.querySelector(arguments[0]).select()", selector)
        self.run(
            "document.execCommand(arguments[0] ? 'insertText' : 'delete', false, arguments[0])",
            text,
        )

    def type(self, *keys: str) -> None:
        """Type into the source text."""
        self.one("#source-text").send_keys(*keys)

    def press(self, *keys: str) -> None:
        """Press keys where the focus is."""
        ActionChains(self.browser).send_keys(*keys).perform()

    def point(self, element: WebElement) -> None:
        """Move the mouse to an element."""
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(self.browser).move_to_element(element).perform()

    def translate(self, text: str) -> None:
        """Enter a text, and wait for its translation."""
        self.fill("#source-text", text)
        self.translates(text)

    def translates(self, text: str, glossary: Mapping[str, str] | None = None) -> None:
        """Wait until the page shows what the API answers for `text`."""
        answer = self.served(text, glossary)
        self.wait(lambda: self.text("#target-text") == answer and self.all("#target-text .word"))

    def served(self, text: str, glossary: Mapping[str, str] | None = None) -> str:
        """The server's translation, without the page."""
        body = json.dumps(
            {"q": text, "source": "ka", "target": "zu", "glossary": dict(glossary or {})}
        ).encode()
        request = urllib.request.Request(
            self.address + "translate", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)["translatedText"]

    def wait(self, condition: Callable[[], Any]) -> Any:
        return wait_for(condition)

    def run(self, script: str, *arguments: object) -> Any:
        return self.browser.execute_script(script, *arguments)

    def module(self, name: str, expression: str, *arguments: object) -> Any:
        """The value of an expression, where `it` is the page's module `name` and `given` are the arguments."""
        script = f"const done = arguments[arguments.length - 1], given = [...arguments]; import('./{name}.js')"
        return self.browser.execute_async_script(
            f"{script}.then((it) => done({expression}))", *arguments
        )

    def watch(self, selector: str) -> None:
        """Record what an element shows from now on, however briefly: `seen` returns it."""
        self.run(
            "const one = document.querySelector(arguments[0]), seen = window.seen = [];"
            "const look = () => seen.push(one.textContent);"
            "new MutationObserver(look).observe(one, {childList: true, characterData: true, subtree: true})",
            selector,
        )

    def seen(self) -> list[str]:
        return self.run("return window.seen")

    def intercept(self, script: str) -> None:
        """Run a script instead of `fetch(path, options)`: `next` is the real one, `await held()` waits for release."""
        self.run(INTERCEPT % script)

    def release(self) -> None:
        """Let a held request go on, as soon as there is one."""
        self.wait(lambda: self.run("return Boolean(window.release)"))
        self.run("window.release()")

    @contextlib.contextmanager
    def intercepted(self, script: str) -> Iterator[None]:
        """Open the page with its fetches intercepted from the first one on."""
        script = INTERCEPT % script
        added = self.browser.execute_cdp_cmd(
            "Page.addScriptToEvaluateOnNewDocument", {"source": script}
        )
        try:
            self.open()
            yield
        finally:
            self.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)

    @contextlib.contextmanager
    def on(
        self, width: int, height: int, *, touch: bool = False, scheme: str = "light"
    ) -> Iterator[None]:
        """Open the page on another screen."""
        set_screen(self.browser, width, height, touch=touch, scheme=scheme)
        try:
            self.open()
            yield
        finally:
            set_screen(self.browser, 1280, 800)
