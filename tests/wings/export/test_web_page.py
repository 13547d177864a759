"""Tests of the page of transduce/wings/export/web.py in a browser, served by a server of files only."""

import contextlib
import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("selenium", reason="pages are tested in a browser: pip install selenium")

from selenium.webdriver.common.keys import Keys

import transduce
from exports import make_site
from waiting import wait_for
from web_page import Page, complaints, start_browser

IS_DONE = """
    const [target, state] = ["target-text", "state"].map((id) => document.getElementById(id));
    return target.textContent && !target.classList.contains("stale")
        && target.getAttribute("aria-busy") === "false" && !state.textContent;
"""
TEXT = "ka lo mi\n\n  so ti"


class Server:
    """Serves a folder; remembers what was asked for."""

    def __init__(self, folder: Path) -> None:
        asked = self.asked = list[str]()

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                asked.append(self.path)

        handler = functools.partial(Handler, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Site(Page):
    def open(self) -> None:
        self.browser.get(self.address)
        self.wait(lambda: self.run("return document.documentElement.dataset.ready"))

    def translation(self, text: str) -> str:
        self.fill("#source-text", text)
        self.type(Keys.CONTROL, Keys.ENTER)
        self.wait(lambda: self.run(IS_DONE))
        return self.text("#target-text")


@pytest.fixture(scope="module")
def site(models: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "out"
    make_site(models("post"), folder)
    return folder


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    browser = start_browser(tmp_path_factory.mktemp("downloads"))
    yield browser
    browser.quit()


@pytest.fixture
def page(site: Path, browser: Any) -> Iterator[Site]:
    server = Server(site)
    page = Site(browser, server.address)
    page.server = server
    page.open()
    yield page
    with contextlib.suppress(OSError):
        server.stop()


def test_the_page_translates_texts_with_lines_and_sentences(page: Site, site: Path) -> None:
    translator = transduce.load(site)
    for beam_size in (4, 1):
        page.run(
            "const s = document.getElementById('search'); s.value = arguments[0]; s.onchange()",
            str(beam_size),
        )
        [expected] = translator.translate([TEXT], beam_size=beam_size, sentences=True)
        assert page.translation(TEXT) == expected.text
    assert not complaints(page.browser)


def test_the_page_works_without_its_server(page: Site, site: Path) -> None:
    expected = page.translation(TEXT)
    wait_for(lambda: page.run("return Boolean(navigator.serviceWorker.controller)"))
    page.server.stop()
    page.open()
    assert page.translation(TEXT) == expected
    names = {f"/{path.name}" for path in site.iterdir()}
    assert {"/index.html", "/encoder.onnx"} <= set(page.server.asked) <= names | {"/"}


def test_the_page_is_accessible(page: Site) -> None:
    axe = pytest.importorskip("selenium_axe_python")
    page.translation(TEXT)
    for scheme in ("light", "dark"):
        page.run("document.documentElement.dataset.theme = arguments[0]", scheme)
        checker = axe.Axe(page.browser)
        checker.inject()
        found = checker.run()
        assert not found["violations"], checker.report(found["violations"])
