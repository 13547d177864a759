"""The web page, served for a small model and open in a browser."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from servers import serving, train

if TYPE_CHECKING:  # selenium may be missing
    from selenium import webdriver

    from web_page import Page

NETWORK = "Failed to load resource"  # what Chromium's console says of every answer of 400 and above


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where `transduce serve` serves a small model of the toy language."""
    folder = tmp_path_factory.mktemp("page")
    with serving(train(folder), folder / "server.log") as server:
        yield server.address


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator["webdriver.Chrome"]:
    from web_page import start

    driver = start(tmp_path_factory.mktemp("downloads"))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser: "webdriver.Chrome", address: str) -> Iterator["Page"]:
    from web_page import Page

    page = Page(browser, address)
    page.open()
    yield page
    page.run("localStorage.clear(); sessionStorage.clear()")  # the next test is there for the first time
    assert [said for said in page.complaints() if NETWORK not in said] == []
