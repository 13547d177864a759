"""What clients send: JSON, a form or a query, as one and the same request."""

import json
import re
from typing import Any, Literal, TypeVar
from urllib.parse import parse_qs

from pydantic import BaseModel, Field, ValidationError

from transduce.errors import UserError

TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)  # of JSON, in which brackets mean nothing
NOT_UNICODE = "Texts must be Unicode: one holds half a surrogate pair."
Fields = TypeVar("Fields", bound=BaseModel)


class Detection(BaseModel):
    """POST /detect."""

    q: str


class Asked(BaseModel):
    """POST /attention: one sentence."""

    q: str
    source: str
    target: str


class Texts(BaseModel):
    """POST /translate, as LibreTranslate has it; from `scores` on, ours alone."""

    q: str | list[str] = Field(description="a text of any number of sentences and paragraphs, or a list of them")
    source: str = Field("auto", description="language code; auto: detect it")
    target: str = Field(description="language code")
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, description="so many other translations beside the best")
    api_key: str = Field("", description="better sent as a header: Authorization: Bearer KEY")
    scores: bool = Field(False, description="mean log-probability / length penalty of a text's sentences")
    alignment: bool = Field(False, description="which words of the translation belong to which of the text")
    beam_size: int | None = Field(None, ge=1, description="hypotheses kept per sentence; 1: greedy")
    glossary: dict[str, str] = Field({}, description="terms of the text, and what must stand for them")


def parse(body: bytes, content_type: str, query: bytes, depth: int) -> dict[str, Any]:
    """The fields of a request, those of the body over those of the query.

    Raises UserError for a body that is not what its content type says, or is nested deeper than `depth`.
    """
    fields = _form(query)
    if not body.strip():
        return fields
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        return fields | _form(body)
    if kind in ("application/json", "text/json", "") or kind.endswith("+json"):
        return fields | _json(body, depth)
    raise UserError(f"A body is JSON or a form (application/x-www-form-urlencoded), not {kind}.")


def validate(kind: type[Fields], fields: dict[str, Any]) -> Fields:
    """The request; raises UserError that names the first field that is wrong."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "string_unicode":
            raise UserError(NOT_UNICODE) from None
        place = ".".join(str(part) for part in first["loc"][:1])
        raise UserError(f"{place or 'The request'}: {first['msg'][:1].lower()}{first['msg'][1:]}.") from None


def _json(body: bytes, depth: int) -> dict[str, Any]:
    if _depth(body) > depth:
        raise UserError(f"The JSON is nested deeper than {depth} levels.")
    try:
        fields = json.loads(body)
    except UnicodeDecodeError as error:
        raise UserError(f"The body is not UTF-8: byte {error.start + 1}.") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"The body is not JSON: {str(error)[:100]}.") from None
    if not isinstance(fields, dict):
        raise UserError('The JSON must be an object: {"q": "a text", "source": "en", "target": "de"}.')
    return fields


def _depth(body: bytes) -> int:
    """Of the brackets outside of texts."""
    deepest = depth = 0
    for bracket in re.findall(rb"[\[\]{}]", TEXTS.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _form(content: bytes) -> dict[str, Any]:
    """A field that is there several times is a list; a glossary is JSON."""
    try:
        pairs = parse_qs(content.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=1000)
    except ValueError:  # UnicodeDecodeError, too
        raise UserError("The form is not percent-encoded UTF-8, or has more than 1,000 fields.") from None
    fields: dict[str, Any] = {name: values[0] if len(values) == 1 else values for name, values in pairs.items()}
    if isinstance(fields.get("glossary"), str):
        fields["glossary"] = _json(fields["glossary"].encode(), 1)
    return fields
