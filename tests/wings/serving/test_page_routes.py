"""Tests of transduce/wings/serving/page_routes.py."""

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from fastapi import FastAPI
from starlette.testclient import TestClient

import transduce
from transduce.wings.serving.page_routes import add_page

# Nothing from elsewhere runs, is loaded, gets what is typed, or shows the page inside of another one.
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "form-action": "'none'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}


def test_the_page_and_its_files_are_served_as_they_are() -> None:
    app = FastAPI(docs_url=None, title="A title", description="Of an API.")
    paths = add_page(app)
    wings = Path(transduce.__file__).parent / "wings"
    asking = TestClient(app)
    folders = {"drawing.js": "inspection", "drawing.css": "inspection"}
    kinds = {"js": "text/javascript", "css": "text/css", "html": "text/html"}
    assert len(paths) == len({*paths}) and {"/", "/page.js", "/drawing.js", "/drawing.css"} < {
        *paths
    }
    for path in paths:
        name = path[1:] or "index.html"
        content = (wings / folders.get(name, "serving/page") / name).read_bytes()
        answer = asking.get(path)
        assert (answer.status_code, answer.content) == (200, content), path
        kind = kinds[name.rpartition(".")[2]]
        assert answer.headers["content-type"] == f"{kind}; charset=utf-8"
    assert asking.get("/index.html").status_code == 404
    docs = asking.get("/docs")
    assert docs.headers["content-type"] == "text/html; charset=utf-8" and "A title" in docs.text
    for headers in (docs.headers, answer.headers):
        policy = dict(each.split(" ", 1) for each in headers["content-security-policy"].split("; "))
        assert policy == POLICY
        assert headers["referrer-policy"] == "no-referrer", "an address may hold a text"
        assert headers["cache-control"] == "no-cache", "a new version is shown at once"
    assert not {*paths, "/docs"} & app.openapi()["paths"].keys()
