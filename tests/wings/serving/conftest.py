"""The web page, served for a small model and open in a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from corpora import WORDS
from servers import Echo
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from typing import TYPE_CHECKING

import pytest

from models import make_model
from served import KA_ZU
from servers import serving, train

if TYPE_CHECKING:  # selenium may be missing
    from selenium import webdriver

    from web_page import Page

NETWORK = "Failed to load resource"  # Chromium's complaint about every answer with a status of 400 or more


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small model of the toy language."""
    return train(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="session")
def address(model: Path) -> Iterator[str]:
    """The address of `transduce serve` for the model, with a memory that keeps everybody's corrections."""
    memory = ("--memory", str(model.parent / "memory.sqlite"), "--corrections", "anyone")
    with serving(model, model.parent / "server.log", *memory) as server:
        yield server.address


@pytest.fixture
def page(browser: "webdriver.Chrome", address: str) -> Iterator["Page"]:
    """The page, opened by a person who has never used it."""
    from web_page import Page, complaints

    complaints(browser)  # forget those of other tests
    page = Page(browser, address)
    page.open()
    yield page
    page.run("localStorage.clear(); sessionStorage.clear()")
    assert [said for said in complaints(browser) if NETWORK not in said] == []


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(list(WORDS), list(WORDS), vocab_size=300)


@pytest.fixture
def engine() -> Iterator[Echo]:
    engine = Echo()
    engine.gate.set()
    yield engine
    engine.gate.set()


@pytest.fixture(scope="session")
def versions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("versions")
    return [make_model(folder / f"v{n}", KA_ZU | {"model.num_decoder_layers": n}) for n in (1, 2)]
