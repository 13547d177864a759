"""A web page of another site that translates with the server, in a real browser."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from servers import serving

pytest.importorskip(
    "selenium", reason="the page is opened in a browser: pip install selenium (it is in the extra `dev`)"
)

from web_page import MISSING, WITHOUT

if TYPE_CHECKING:
    from selenium import webdriver

pytestmark = pytest.mark.skipif(bool(MISSING), reason=WITHOUT)

ASK = """
    const [address, done] = arguments, body = JSON.stringify({q: 'ka lo', source: 'ka', target: 'zu'});
    fetch(address + 'translate', {method: 'POST', headers: {'Content-Type': 'application/json'}, body})
        .then(async (answer) => done(await answer.json()), (error) => done(error.name));
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The origin of another site with a page."""
    (tmp_path / "index.html").write_text("<!doctype html><title>Another site</title>")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_page_of_a_listed_site_may_translate(
    site: str, model: Path, address: str, browser: "webdriver.Chrome", tmp_path: Path
) -> None:
    with serving(model, tmp_path / "log", "--cors", site) as server:
        browser.get(site)
        assert browser.execute_async_script(ASK, server.address)["translatedText"]
        assert browser.execute_async_script(ASK, address) == "TypeError"  # this server doesn't list the site
