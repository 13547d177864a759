"""Makes the page /docs from the OpenAPI description."""

import json
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from shlex import quote
from string import Template

from transduce.wings.serving.payload import JsonObject

TABLE_HEAD = "<thead><tr><th>field</th><th>type</th><th>default</th><th>meaning</th></tr></thead>"


def reference(description: JsonObject) -> str:
    """Make the HTML page /docs from the OpenAPI description of the server."""
    info: dict[str, str] = description["info"]
    routes = "".join(
        _route(method, path, route)
        for path, methods in description["paths"].items()
        for method, route in methods.items()
    )
    page = Template(files(__package__).joinpath("reference.html").read_text(encoding="utf-8"))
    return page.substitute({name: escape(text) for name, text in info.items()}, routes=routes)


def _route(method: str, path: str, route: JsonObject) -> str:
    contents = route.get("requestBody", {}).get("content", {})
    # All content types have the same fields.
    schema: JsonObject = next((each["schema"] for each in contents.values()), {})
    rows = "".join(
        _row(name, field, name in schema.get("required", []))
        for name, field in schema.get("properties", {}).items()
    )
    heading = (
        f"<h2><code>{method.upper()} {escape(path)}</code></h2><p>{escape(route['summary'])}.</p>"
    )
    table = f"<table>{TABLE_HEAD}<tbody>{rows}</tbody></table>" if rows else ""
    return heading + table + _example(path, contents, route["responses"]["200"])


def _example(path: str, contents: JsonObject, answer: JsonObject) -> str:
    """The example of a request, as a command, and of the answer, if there are examples."""
    answers = answer.get("content", {}).get("application/json", {})
    if "example" not in answers:
        return ""
    fields: dict[str, str] = next((each["example"] for each in contents.values()), {})
    option = "F" if "file" in fields else "d"
    sent = "".join(f" -{option} {name}={quote(value)}" for name, value in fields.items())
    shown = json.dumps(answers["example"], ensure_ascii=False)
    return f"<pre>curl SERVER{escape(path + sent)}\n\n{escape(shown)}</pre>"


def _row(name: str, field: JsonObject, required: bool) -> str:
    default = field.get("default")
    shown = "required" if required else "" if default in (None, {}) else str(default).lower()
    meaning = escape(field.get("description", ""))
    cells = f"<code>{escape(name)}</code>", " or ".join(_types(field)), escape(shown), meaning
    return f"<tr><td>{'</td><td>'.join(cells)}</td></tr>"


def _types(field: JsonObject) -> Iterator[str]:
    if "anyOf" in field:
        yield from (kind for option in field["anyOf"] for kind in _types(option) if kind != "null")
    elif "enum" in field:
        yield from map(str, field["enum"])
    elif field.get("type") == "array":
        yield "list of " + " or ".join(_types(field["items"]))
    else:
        yield field.get("type", "any")
