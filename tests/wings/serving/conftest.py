"""The web page, served for a small model and open in a browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from servers import serving, train

if TYPE_CHECKING:  # selenium may be missing
    from selenium import webdriver

    from web_page import Page

NETWORK = "Failed to load resource"  # what Chromium's console says of every answer of 400 and above


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of the toy language."""
    return train(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="session")
def address(model: Path) -> Iterator[str]:
    """Where `transduce serve` serves the model."""
    with serving(model, model.parent / "server.log") as server:
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
    page.complaints()  # forget those of pages of other tests
    page.open()
    yield page
    page.run("localStorage.clear(); sessionStorage.clear()")  # the next test is there for the first time
    assert [said for said in page.complaints() if NETWORK not in said] == []
