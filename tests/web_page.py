"""The web page of `transduce serve` in a real browser, as a person uses it."""

import contextlib
import json
import shutil
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

from waiting import PATIENCE, wait_for

CHROMIUM, DRIVER = (shutil.which(name) or f"/usr/bin/{name}" for name in ("chromium", "chromedriver"))
MISSING = [program for program in (CHROMIUM, DRIVER) if not Path(program).exists()]
WITHOUT = f"the page is tested in a browser; {', '.join(MISSING)} is missing: apt install chromium-driver"

BETWEEN = """{
    const next = window.fetch, held = () => new Promise((resolve) => window.release = resolve);
    let calls = 0; window.fetch = async (path, options) => { %s }
}"""


class Page:
    """The page as a person uses it."""

    def __init__(self, browser: webdriver.Chrome, address: str):
        self.browser, self.address = browser, address

    def open(self) -> None:
        self.browser.get(self.address)
        self.wait(lambda: self.all("#target-language option"))

    def one(self, selector: str) -> WebElement:
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def run(self, script: str, *arguments: object) -> Any:
        return self.browser.execute_script(script, *arguments)

    def text(self, selector: str) -> str:
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def wait(self, condition: Callable[[], Any]) -> Any:
        return wait_for(condition)

    def watch(self, selector: str) -> None:
        """Keep what an element shows from now on, however briefly: `seen` gives it."""
        self.run(
            "const one = document.querySelector(arguments[0]), seen = window.seen = [];"
            "const look = () => seen.push(one.textContent);"
            "new MutationObserver(look).observe(one, {childList: true, characterData: true, subtree: true})",
            selector,
        )

    def seen(self) -> list[str]:
        return self.run("return window.seen")

    def release(self) -> None:
        """Let what is `held` go on, as soon as there is something."""
        self.wait(lambda: self.run("return Boolean(window.release)"))
        self.run("window.release()")

    def type(self, text: str) -> None:
        self.one("#source-text").send_keys(text)

    def translates(self, text: str) -> None:
        """Wait until what the page shows is what the API answers for `text`."""
        answer = self.served(text)
        self.wait(lambda: self.text("#target-text") == answer and self.all("#target-text .word"))

    def served(self, text: str, glossary: Mapping[str, str] | None = None) -> str:
        """The server's translation, without the page."""
        body = json.dumps({"q": text, "source": "ka", "target": "zu", "glossary": dict(glossary or {})}).encode()
        request = urllib.request.Request(self.address + "translate", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)["translatedText"]

    def click(self, selector: str) -> None:
        self.one(selector).click()

    def shows(self, selector: str) -> bool:
        return self.one(selector).is_displayed()

    def module(self, name: str, expression: str, *arguments: object) -> Any:
        """What an expression gives with the page's module `name` as `it` and the arguments as `given`."""
        script = f"const done = arguments[arguments.length - 1], given = [...arguments]; import('./{name}.js')"
        return self.browser.execute_async_script(f"{script}.then((it) => done({expression}))", *arguments)

    def complaints(self) -> list[str]:
        """What the console holds since it was last read: errors, and violations of the Content-Security-Policy."""
        return [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] != "INFO"]

    def later(self, script: str) -> None:
        """Put something in the way of what the page fetches; `next` is the real fetch, `held()` waits for `release`."""
        self.run(BETWEEN % script)

    def fill(self, selector: str, text: str) -> None:
        """Replace the text of a field at once, not letter by letter."""
        self.run("document.querySelector(arguments[0]).select()", selector)
        self.run("document.execCommand(arguments[0] ? 'insertText' : 'delete', false, arguments[0])", text)

    @contextlib.contextmanager
    def on(self, width: int, height: int, *, touch: bool = False, scheme: str = "light") -> Iterator[None]:
        """On a screen of this size in CSS pixels; `touch`: of a device without mouse and keyboard."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": touch}
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        send = self.browser.execute_cdp_cmd
        try:
            send("Emulation.setDeviceMetricsOverride", size)
            send("Emulation.setTouchEmulationEnabled", {"enabled": touch})
            send("Emulation.setEmulatedMedia", {"features": features})
            self.open()
            yield
        finally:
            send("Emulation.clearDeviceMetricsOverride", {})
            send("Emulation.setTouchEmulationEnabled", {"enabled": False})
            send("Emulation.setEmulatedMedia", {"features": []})

    @contextlib.contextmanager
    def from_the_start(self, script: str) -> Iterator[None]:
        """The same before the page loads, which it does now."""
        given = self.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": BETWEEN % script})
        try:
            self.open()
            yield
        finally:
            self.browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", given)


def start(downloads: Path) -> webdriver.Chrome:
    """A headless Chromium, which puts what it downloads into this folder."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,800", "--lang=en"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(PATIENCE)
    driver.downloads = downloads
    return driver
