"""The page /docs: routes and fields from the OpenAPI description, without scripts."""

from collections.abc import Iterator
from html import escape
from typing import Any

TABLE_HEAD = "<thead><tr><th>field</th><th>type</th><th>default</th><th>meaning</th></tr></thead>"


def reference(description: dict[str, Any]) -> str:
    """HTML from the OpenAPI description."""
    info = description["info"]
    title = escape(info["title"])
    routes = "".join(
        _route(method, path, route)
        for path, methods in description["paths"].items()
        for method, route in methods.items()
    )
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}: API</title></head><body><h1>{title} {escape(info['version'])}: API</h1>"
        f"<p>{escape(info['description'])}</p>"
        "<p>Send fields as JSON, as a form or in the query string. Errors have a status of 400 or above and the "
        "body <code>{&quot;error&quot;: &quot;a sentence&quot;}</code>. The machine-readable description is "
        f'<a href="openapi.json">openapi.json</a>.</p>{routes}</body></html>'
    )


def _route(method: str, path: str, route: dict[str, Any]) -> str:
    contents = route.get("requestBody", {}).get("content", {})
    schema = contents["application/json"]["schema"] if contents else {}
    rows = "".join(
        _row(name, field, name in schema.get("required", [])) for name, field in schema.get("properties", {}).items()
    )
    heading = f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(route['summary'])}.</p>"
    return heading + (f"<table>{TABLE_HEAD}<tbody>{rows}</tbody></table>" if rows else "")


def _row(name: str, field: dict[str, Any], required: bool) -> str:
    default = "required" if required else _shown(field.get("default"))
    cells = (
        f"<code>{escape(name)}</code>",
        " or ".join(_types(field)),
        escape(default),
        escape(field.get("description", "")),
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _shown(default: object) -> str:
    return "" if default in (None, {}) else str(default).lower() if isinstance(default, bool) else str(default)


def _types(field: dict[str, Any]) -> Iterator[str]:
    if "anyOf" in field:
        yield from (kind for option in field["anyOf"] for kind in _types(option) if kind != "null")
    elif "enum" in field:
        yield from map(str, field["enum"])
    elif field.get("type") == "array":
        yield "list of " + " or ".join(_types(field["items"]))
    else:
        yield field.get("type", "any")
