"""Tests of transduce/wings/serving/reference.py."""

import re

import pytest

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from transduce.wings.serving.payload import JsonObject
from transduce.wings.serving.reference import reference

FIELDS = {
    "q": {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
        "description": "a text & more",
    },
    "format": {"enum": ["text", "html"], "type": "string", "default": "text"},
    "scores": {"type": "boolean", "default": False},
    "beam_size": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
    "glossary": {"type": "object", "default": {}},
    "pairs": {
        "type": "array",
        "items": {"anyOf": [{"type": "number"}, {"type": "boolean"}]},
        "default": 0,
    },
    "what": {},
}
SCHEMA = {"properties": FIELDS, "required": ["q", "what"]}
EXAMPLE = {"q": "A dog's", "target": "de"}
DESCRIPTION: JsonObject = {
    "info": {"title": "A <title>", "version": "1.2", "description": "It & more."},
    "paths": {
        "/translate": {
            "post": {
                "summary": "Translate <texts>",
                "requestBody": {
                    "content": {"json": {"schema": SCHEMA, "example": EXAMPLE}, "form": {}}
                },
                "responses": {
                    "200": {"content": {"application/json": {"example": {"ä": ["Ein <Hund>"]}}}}
                },
            }
        },
        "/file/{kept}": {
            "get": {"summary": "Download", "responses": {"200": {"content": {}}}},
            "post": {
                "summary": "Upload",
                "requestBody": {
                    "content": {"form": {"schema": {}, "example": {"file": "@a.po", "to": "de"}}}
                },
                "responses": {"200": {"content": {"application/json": {"example": []}}}},
            },
        },
    },
}


def test_the_reference_by_hand() -> None:
    page = reference(DESCRIPTION)
    assert "<h1>A &lt;title&gt; 1.2: API</h1>" in page and "<p>It &amp; more.</p>" in page
    head = "<th>field</th><th>type</th><th>default</th><th>meaning</th>"
    rows = (
        ("q", "string or array", "required", "a text &amp; more"),
        ("format", "string", '"text"', ""),
        ("scores", "boolean", "false", ""),
        ("beam_size", "integer or null", "null", ""),
        ("glossary", "object", "{}", ""),
        ("pairs", "array", "0", ""),
        ("what", "any", "required", ""),
    )
    body = "".join(
        f"<tr><td><code>{name}</code></td><td>{'</td><td>'.join(others)}</td></tr>"
        for name, *others in rows
    )
    routes = (
        "<h2><code>POST /translate</code></h2><p>Translate &lt;texts&gt;.</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        "<pre>curl SERVER/translate -d q='A dog'\"'\"'s' "
        '-d target=de\n\n{"ä": ["Ein &lt;Hund&gt;"]}</pre>',
        "<h2><code>GET /file/{kept}</code></h2><p>Download.</p>",
        "<h2><code>POST /file/{kept}</code></h2><p>Upload.</p>"
        "<pre>curl SERVER/file/{kept} -F file=@a.po -F to=de\n\n[]</pre>",
    )
    assert "".join(routes) in page
    assert re.search(r"</html>\s*$", page)
