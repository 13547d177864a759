"""Parses requests that are sent as JSON, as forms or as query strings."""

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from email.errors import MessageError
from email.header import decode_header, make_header
from itertools import chain
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl

from pydantic import BaseModel, Field, ValidationError
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field as FormField
from python_multipart.multipart import FormParser, parse_options_header

from transduce.decoding.types import Guides, Translation, as_guides
from transduce.system.errors import UserError
from transduce.text.languages import LIBRETRANSLATE_CODES
from transduce.wings.serving.languages import Detected
from transduce.wings.serving.limits import Limits

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
MAX_FORM_FIELDS = 1000
MAX_NAME_CHARACTERS = 64  # maximum for the name of a model, a language or a content type
Code = Annotated[str, Field(max_length=MAX_NAME_CHARACTERS)]
MODEL_HELP = "name of the model that translates; without a name: the default model; also as a header, X-Model: NAME"
MEMORY_HELP = "use the server's translation memory, if it has one"
GLOSSARY_HELP = "source terms and their translations, as a JSON object; models trained with data.terms inflect them"
EXACT_HELP = "write the translations of the glossary's terms as they are, with any model"
PREFIX_HELP = "the characters that the translation {} with; for a list q, a list"
Fields = TypeVar("Fields", bound=BaseModel)
JsonObject = dict[str, Any]


class Detection(BaseModel):
    """The fields of POST /detect."""

    q: str


class Asked(BaseModel):
    """The fields of POST /attention."""

    q: str
    source: Code
    target: Code
    model: Code = Field("", description=MODEL_HELP)


class Suggestion(Asked):
    """The fields of POST /suggest: a text and the translation that a person suggests."""

    s: str = Field(description="the translation that q should have")


class Upload(BaseModel):
    """The fields of POST /translate_file beside `file`."""

    source: Code = Field("auto", description="language code, or auto")
    target: Code = Field(description="language code")
    glossary: dict[str, str] = Field({}, description=GLOSSARY_HELP)
    glossary_exact: bool = Field(False, description=EXACT_HELP)
    model: Code = Field("", description=MODEL_HELP)
    memory: bool = Field(True, description=MEMORY_HELP)


class Texts(BaseModel):
    """The fields of POST /translate. The fields after `api_key` are not part of LibreTranslate's API."""

    q: str | Annotated[list[str], Field(fail_fast=True)] = Field(
        description="a text or a list of texts; a text has any number of sentences and paragraphs"
    )
    source: Code = Field("auto", description="language code; auto: detect the language")
    target: Code = Field(description="language code")
    format: Literal["text", "html"] = Field("text", description="text or html")
    alternatives: int = Field(0, ge=0, description="number of alternative translations")
    api_key: str | None = Field(
        None, description="API key; better sent as a header, Authorization: Bearer KEY"
    )
    scores: bool = Field(
        False,
        description="return scores (mean of the sentences' log-probability / length penalty), confidence, flags",
    )
    alignment: bool = Field(False, description="return word alignments")
    beam_size: int | None = Field(
        None, ge=1, description="hypotheses kept per sentence; 1: greedy search"
    )
    glossary: dict[str, str] = Field({}, description=GLOSSARY_HELP)
    glossary_exact: bool = Field(False, description=EXACT_HELP)
    model: Code = Field("", description=MODEL_HELP)
    memory: bool = Field(True, description=MEMORY_HELP)
    prefix: str | list[str] = Field("", description=PREFIX_HELP.format("begins"))
    suffix: str | list[str] = Field("", description=PREFIX_HELP.format("ends"))


def parse(body: bytes, content_type: str, query: bytes, depth: int) -> JsonObject:
    """Return the fields of a request. Fields in the body override fields in the query.

    Raises UserError if the request is malformed or its JSON is nested deeper than `depth`.
    """
    fields = _form(query)
    if not body.strip():
        return fields
    kind = content_type.partition(";")[0].strip().lower()
    if kind == FORM:
        own = _form(body)
    elif kind == MULTIPART:
        own = _multipart(body, content_type)
    elif kind in ("application/json", "text/json", "") or kind.endswith("+json"):
        own = _json(body, depth)
    else:
        raise UserError(
            f"Unsupported content type {kind[:MAX_NAME_CHARACTERS]}.",
            f"Send JSON, {FORM} or {MULTIPART}.",
        )
    return fields | _present(own)


def boundary(content_type: str) -> bytes:
    """The boundary of a multipart form. Raises UserError if the boundary is missing or the form is not in UTF-8."""
    parameters = parse_options_header(content_type)[1]
    if parameters.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"utf8"):
        raise UserError("The form must be in UTF-8.")
    if not parameters.get(b"boundary"):
        raise UserError("The form's Content-Type names no boundary.")
    return parameters[b"boundary"]


def file_name(given: str) -> str:
    """The name of an uploaded file. .NET sends a name that is not ASCII as in e-mails (RFC 2047)."""
    with contextlib.suppress(ValueError, LookupError, MessageError):
        decoded = str(make_header(decode_header(given))) if given.startswith("=?") else given
        given = decoded.encode().decode()  # fails for half a surrogate pair
    return given.replace("\0", "")


def validate(kind: type[Fields], fields: JsonObject) -> Fields:
    """Validate the fields of a request. Raises UserError for the first invalid field.

    Empty fields other than `q` are ignored, because LibreTranslate's clients send empty fields.
    """
    try:
        return kind.model_validate(_present(fields))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        # A missing field may belong to an object in the field.
        name = first["loc"][-1 if first["type"] == "missing" else 0]
        raise UserError(f"{name}: {first['msg'][:1].lower()}{first['msg'][1:]}.") from None


def _present(fields: JsonObject) -> JsonObject:
    """The fields without null and empty fields, except that `q` may be empty."""
    return {name: value for name, value in fields.items() if name == "q" or value not in (None, "")}


def check_limits(asked: Texts, texts: Sequence[str], limits: Limits) -> None:
    """Raise UserError if a request exceeds a limit."""
    check_texts(texts, limits, asked.alternatives)
    _check_count("hypotheses (beam_size)", asked.beam_size or 0, limits.beam_size)
    check_characters(
        "prefix or suffix", [*as_texts(asked.prefix), *as_texts(asked.suffix)], limits.characters
    )
    check_glossary(asked.glossary, limits)


def check_texts(texts: Sequence[str], limits: Limits, alternatives: int = 0) -> None:
    """Raise UserError if there are too many texts or alternatives, or a text is too long."""
    _check_count("texts", len(texts), limits.texts)
    _check_count("alternatives", alternatives, limits.alternatives)
    check_characters("text", texts, limits.characters)


def as_texts(field: str | list[str]) -> list[str]:
    """The texts of a field; none if it is empty."""
    return field if isinstance(field, list) else [field] if field else []


def guides(asked: Texts, texts: Sequence[str]) -> Guides:
    """What the clients say about the translations. Raises UserError unless they are as many as the texts."""
    found = as_guides(len(texts), as_texts(asked.prefix), as_texts(asked.suffix))
    if found and asked.format == "html":
        raise UserError("A prefix or a suffix can't be used with HTML.", "Send the text as text.")
    return found


def check_glossary(glossary: Mapping[str, str], limits: Limits) -> None:
    """Raise UserError if a glossary exceeds a limit."""
    _check_count("terms", len(glossary), limits.terms)
    entries = chain.from_iterable(glossary.items())
    check_characters("text of a glossary entry", entries, limits.term_characters)


def _check_count(what: str, count: int, limit: int) -> None:
    if count > limit:
        raise UserError(f"Too many {what}: {count:,}; at most {limit:,} are allowed.")


def check_characters(what: str, texts: Iterable[str], limit: int) -> None:
    """Raise UserError if a text has more than `limit` characters."""
    for text in texts:
        if len(text) > limit:
            raise UserError(
                f"The {what} has {len(text):,} characters; at most {limit:,} are allowed."
            )


def _json(body: bytes, depth: int) -> JsonObject:
    try:
        fields = json.loads(body.decode("utf-8-sig"))
        if _depth(fields) > depth:
            raise UserError(f"The JSON exceeds {depth} levels of nesting.")
        if b"\\u" in body:
            json.dumps(fields, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise UserError(f"The body is not UTF-8 at byte {error.start + 1}.") from None
    except UnicodeEncodeError:
        raise UserError("A text holds half a surrogate pair, which is not valid Unicode.") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"The body is not JSON: {str(error)[:100]}.") from None
    if not isinstance(fields, dict):
        raise UserError(
            'The JSON must be an object: {"q": "a text", "source": "en", "target": "de"}.'
        )
    return fields


def _depth(value: object) -> int:
    """The levels of nested lists and objects in a value of JSON."""
    if isinstance(value, dict):
        value = list(value.values())
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _form(content: bytes) -> JsonObject:
    try:
        # curl -d sends text that is not percent-encoded.
        pairs = parse_qsl(
            content.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FORM_FIELDS,
        )
    except ValueError:  # includes UnicodeDecodeError
        raise UserError(
            f"The form is not in UTF-8, or has more than {MAX_FORM_FIELDS:,} fields."
        ) from None
    return by_name(pairs)


def _multipart(body: bytes, content_type: str) -> JsonObject:
    """Parse a multipart form without its files."""
    parts: list[Any] = []
    ended: list[bool] = []

    def add(part: object) -> None:
        if len(parts) == MAX_FORM_FIELDS:
            raise UserError(f"The form has more than {MAX_FORM_FIELDS:,} fields.")
        parts.append(part)

    try:
        FormParser(MULTIPART, add, add, lambda: ended.append(True), boundary(content_type)).write(
            body
        )
        fields = [part for part in parts if isinstance(part, FormField)]
        pairs = [
            ((field.field_name or b"").decode(), (field.value or b"").decode()) for field in fields
        ]
    except UnicodeDecodeError:
        raise UserError("The form is not in UTF-8.") from None
    except FormParserError:
        ended = []
    if not ended:
        raise UserError(
            "The form can't be read: its Content-Type is multipart/form-data, but its body is not."
        )
    return by_name(pairs)


def by_name(pairs: Iterable[tuple[str, object]]) -> JsonObject:
    """The fields of a form by name. A repeated field becomes a list, and a glossary is parsed as JSON."""
    values: dict[str, list[object]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    fields: JsonObject = {
        name: items[0] if len(items) == 1 else items for name, items in values.items()
    }
    terms = fields.get("glossary")
    if isinstance(terms, str) and terms:
        try:
            fields["glossary"] = _json(terms.encode(), 1)
        except UserError:
            raise UserError(
                'The field glossary must be a JSON object: {"term": "translation"}.'
            ) from None
    return fields


def code(language: str) -> str:
    """A language code of a model in LibreTranslate's form, such as pt-BR for pt_BR and for pb."""
    return LIBRETRANSLATE_CODES.get(language, language).replace("_", "-")


def detected(found: Detected) -> JsonObject:
    """A detected language as in a response."""
    return found._replace(language=code(found.language))._asdict()


def columns(found: list[Translation], asked: Texts, can_align: bool) -> dict[str, list[Any]]:
    """The fields of the response. Each field holds a list with one value per text."""
    values: dict[str, list[Any]] = {"translatedText": [each.text for each in found]}
    if asked.alternatives:
        values["alternatives"] = [[other.text for other in each.alternatives] for each in found]
    if asked.scores:
        values["scores"] = [round(each.score, 4) for each in found]
        values["alternativeScores"] = [
            [round(other.score, 4) for other in each.alternatives] for each in found
        ]
        values["confidence"] = [
            None if each.confidence is None else round(each.confidence, 4) for each in found
        ]
        values["flags"] = [list(each.flags) for each in found]
        if any(each.hops for each in found):
            values["hops"] = [
                [{"text": hop.text, "score": round(hop.score, 4)} for hop in each.hops]
                for each in found
            ]
    if any(each.matches for each in found):
        values["matches"] = [
            [match._asdict() | {"score": round(match.score, 4)} for match in each.matches]
            for each in found
        ]
    if any(each.terms for each in found):
        values["terms"] = [[term._asdict() for term in each.terms] for each in found]
    if asked.alignment and can_align and asked.format != "html":
        values["alignment"] = [[link._asdict() for link in each.links] for each in found]
    return values
