"""Serves the web page, its files, and the reference of the API."""

from importlib.resources import files
from pathlib import PurePosixPath

from fastapi import FastAPI, Response

from transduce.wings.serving.reference import reference

PAGE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
CONTENT_TYPES = {".js": "text/javascript", ".css": "text/css"}


def add_page(app: FastAPI) -> list[str]:
    """Add the web page, its assets and /docs to the application. Returns the paths of the page and the assets."""
    found = {
        f"/{each.name}": each
        for each in files("transduce.wings.serving").joinpath("page").iterdir()
    }
    found |= {
        f"/{each}": files("transduce.wings.inspection").joinpath(each)
        for each in ("drawing.js", "drawing.css")
    }
    found["/"] = found.pop("/index.html")

    def add(path: str, content: bytes) -> None:
        kind = CONTENT_TYPES.get(PurePosixPath(path).suffix, "text/html") + "; charset=utf-8"

        @app.get(path, include_in_schema=False)
        async def asset() -> Response:
            return Response(content, headers={**PAGE_HEADERS, "Content-Type": kind})

    add("/docs", reference(app.openapi()).encode())
    for path, each in found.items():
        add(path, each.read_bytes())
    return list(found)
