"""Makes the page /docs from the OpenAPI description."""

import json
from html import escape
from importlib.resources import files
from shlex import quote
from string import Template

from transduce.wings.serving.payload import JsonObject

TABLE_HEAD = "<thead><tr><th>field</th><th>type</th><th>default</th><th>meaning</th></tr></thead>"


def reference(description: JsonObject) -> str:
    """Make the HTML page /docs from the OpenAPI description of the server."""
    description = json.loads(escape(json.dumps(description, ensure_ascii=False), quote=False))
    routes = "".join(
        _route(f"{method.upper()} {path}", path, route)
        for path, methods in description["paths"].items()
        for method, route in methods.items()
    )
    page = Template(files(__package__).joinpath("reference.html").read_text(encoding="utf-8"))
    return page.substitute(description["info"], routes=routes)


def _route(name: str, path: str, route: JsonObject) -> str:
    """The summary of a route, its fields and, if there is one, an example as a command."""
    contents = route.get("requestBody", {}).get("content", {})
    body: JsonObject = next(iter(contents.values()), {})  # all content types have the same fields
    schema = body.get("schema", {})
    rows = "".join(
        _row(field, of_field, field in schema.get("required", []))
        for field, of_field in schema.get("properties", {}).items()
    )
    table = f"<table>{TABLE_HEAD}<tbody>{rows}</tbody></table>" if rows else ""
    answers = route["responses"]["200"].get("content", {}).get("application/json", {})
    fields = body.get("example", {})
    option = "F" if "file" in fields else "d"
    sent = "".join(f" -{option} {field}={quote(value)}" for field, value in fields.items())
    shown = json.dumps(answers.get("example"), ensure_ascii=False)
    example = f"<pre>curl SERVER{path}{sent}\n\n{shown}</pre>" if "example" in answers else ""
    return f"<h2><code>{name}</code></h2><p>{route['summary']}.</p>{table}{example}"


def _row(name: str, field: JsonObject, is_required: bool) -> str:
    types = [each.get("type", "any") for each in field.get("anyOf", [field])]
    default = "required" if is_required else json.dumps(field.get("default"))
    cells = f"<code>{name}</code>", " or ".join(types), default, field.get("description", "")
    return f"<tr><td>{'</td><td>'.join(cells)}</td></tr>"
