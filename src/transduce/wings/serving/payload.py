"""What clients send: JSON, a form or a query, as one and the same request."""

import json
import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, Field, ValidationError
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from transduce.system.errors import UserError

# Of JSON, in which brackets mean nothing. One that doesn't end goes to the end, or looking for the next one would take
# as long again at each of its quotation marks.
TEXTS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
FORM_FIELDS = 1000
CODE = 64  # characters of the longest language code
NOT_UNICODE = "Texts must be Unicode: one holds half a surrogate pair."
NOT_A_FORM = "The form can't be read: it is not multipart/form-data as its Content-Type says."
Fields = TypeVar("Fields", bound=BaseModel)


class Detection(BaseModel):
    """POST /detect."""

    q: str


class Asked(BaseModel):
    """POST /attention: one sentence."""

    q: str
    source: str = Field(max_length=CODE)
    target: str = Field(max_length=CODE)


class Texts(BaseModel):
    """POST /translate, as LibreTranslate has it; from `scores` on, ours alone."""

    q: str | Annotated[list[str], Field(fail_fast=True)] = Field(
        description="a text of any number of sentences and paragraphs, or a list of them"
    )
    source: str = Field("auto", max_length=CODE, description="language code; auto: detect it")
    target: str = Field(max_length=CODE, description="language code")
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, description="so many other translations beside the best")
    api_key: str | None = Field(None, description="better sent as a header: Authorization: Bearer KEY")
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
    if kind == FORM:
        return fields | _form(body)
    if kind == MULTIPART:
        return fields | _multipart(body, boundary(content_type))
    if kind in ("application/json", "text/json", "") or kind.endswith("+json"):
        return fields | _json(body, depth)
    raise UserError(f"A body is JSON or a form ({FORM} or {MULTIPART}), not {kind[:CODE]}.")


def boundary(content_type: str) -> bytes:
    """What stands between the parts of a form; raises UserError if nothing does, or if it is not in UTF-8."""
    parameters = parse_options_header(content_type)[1]
    if parameters.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"utf8"):
        raise UserError("The form must be in UTF-8.")
    if not parameters.get(b"boundary"):
        raise UserError("The form's Content-Type names no boundary.")
    return parameters[b"boundary"]


def validate(kind: type[Fields], fields: dict[str, Any]) -> Fields:
    """The request; raises UserError that names the first field that is wrong.

    A field that is null or empty is none, but for `q`: what clients of LibreTranslate send for what they leave out.
    """
    try:
        return kind.model_validate(
            {name: each for name, each in fields.items() if each not in (None, "") or name == "q"}
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"][:1])
        raise UserError(f"{place or 'The request'}: {first['msg'][:1].lower()}{first['msg'][1:]}.") from None


def _json(body: bytes, depth: int) -> dict[str, Any]:
    if _depth(body) > depth:
        raise UserError(f"The JSON is nested deeper than {depth} levels.")
    try:
        fields = json.loads(body.decode("utf-8-sig"))
        if b"\\u" in body:
            json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise UserError(f"The body is not UTF-8: byte {error.start + 1}.") from None
    except UnicodeEncodeError:
        raise UserError(NOT_UNICODE) from None
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
    try:
        # Not percent-encoded, as curl sends it, is taken as well.
        pairs = parse_qsl(content.decode(), keep_blank_values=True, errors="strict", max_num_fields=FORM_FIELDS)
    except ValueError:  # UnicodeDecodeError, too
        raise UserError(f"The form is not in UTF-8, or has more than {FORM_FIELDS:,} fields.") from None
    return _by_name(pairs)


def _multipart(body: bytes, boundary: bytes) -> dict[str, Any]:
    """The fields of a form but for its files."""
    parts: list[tuple[dict[bytes, bytes], bytearray]] = []  # of each the headers and the content
    ended: list[bool] = []
    header = b""

    def begin() -> None:
        if len(parts) == FORM_FIELDS:
            raise UserError(f"The form has more than {FORM_FIELDS:,} fields.")
        parts.append(({}, bytearray()))

    def name_header(data: bytes, start: int, end: int) -> None:
        nonlocal header
        header = data[start:end].lower()

    def fill_header(data: bytes, start: int, end: int) -> None:
        parts[-1][0][header] = data[start:end]

    try:
        parser = MultipartParser(
            boundary,
            {
                "on_part_begin": begin,
                "on_header_field": name_header,
                "on_header_value": fill_header,
                "on_part_data": lambda data, start, end: parts[-1][1].extend(data[start:end]),
                "on_end": lambda: ended.append(True),
            },
        )
        parser.write(body)
        described = [(parse_options_header(headers[b"content-disposition"])[1], text) for headers, text in parts]
        pairs = [
            (options[b"name"].decode(), text.decode()) for options, text in described if b"filename" not in options
        ]
    except UnicodeDecodeError:
        raise UserError("The form is not in UTF-8.") from None
    except (FormParserError, KeyError):
        raise UserError(NOT_A_FORM) from None
    if not ended:
        raise UserError(NOT_A_FORM)
    return _by_name(pairs)


def _by_name(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """A field that is there several times is a list; a glossary is JSON."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    fields: dict[str, Any] = {name: each[0] if len(each) == 1 else each for name, each in values.items()}
    if isinstance(terms := fields.get("glossary"), str) and terms:
        fields["glossary"] = _json(terms.encode(), 1)
    return fields
