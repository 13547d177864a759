"""Serves DeepL's HTTP API (v2, and glossaries of v3) beside LibreTranslate's, over the same models, keys and limits."""

import asyncio
from typing import Annotated, Literal

from fastapi import FastAPI, Request, Response
from fastapi.concurrency import contextmanager_in_threadpool
from fastapi.responses import JSONResponse
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from transduce.decoding.types import Term, TranslationOptions, as_terms
from transduce.system.errors import UserError
from transduce.text.formats import MARKUP_TEXT, PRESERVED_TEXT
from transduce.text.languages import language_name, main_language
from transduce.text.pairs import LINE_BREAKS
from transduce.wings.documents.fragment import Outline, read_fragment, with_marks, without_marks
from transduce.wings.serving import payload
from transduce.wings.serving.deepl_glossaries import Pair, add_glossaries
from transduce.wings.serving.glossaries import Glossaries
from transduce.wings.serving.languages import UNDETERMINED
from transduce.wings.serving.payload import Code, JsonObject, validate
from transduce.wings.serving.protocols import Protocol
from transduce.wings.serving.requests import (
    Wanted,
    owner_of,
    read_fields,
    translate_texts,
)
from transduce.wings.serving.service import AUTO, PageReader, Service, read_page


def _error(status: int, sentence: str, error: BaseException) -> JsonObject:  # noqa: ARG001
    missing = "This server does not have this part of DeepL's API."
    sentence = sentence.replace("GET /languages", "GET /v2/languages")
    return {"message": sentence.replace("Not found. See /docs.", missing)}


DEEPL = Protocol(
    ("/v2/", "/v3/"),
    _error,
    scheme="DeepL-Auth-Key",
    key_field="auth_key",
    status_without_key=403,
    queued=("/v2/translate", "/v2/document"),
    uploads=("/v2/document",),
)
READING = ["GET", "POST"]  # methods of routes that change nothing
# Targets of DeepL that stand for one language of a model. DeepL's clients refuse EN and PT.
TARGET_VARIANTS = {"EN": ("EN-GB", "EN-US"), "PT": ("PT-BR", "PT-PT")}
UNSUPPORTED_FIELDS = "style_id", "translation_memory_id", "custom_instructions", "output_format"


def _split(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(" ".join(names).replace(",", " ").split())


# Forms have a text with commas between the names. DeepL's clients split "x, y" into "x" and " y".
Names = Annotated[tuple[str, ...], BeforeValidator(payload.as_texts), AfterValidator(_split)]


class Wish(Pair):
    """The fields that texts and documents share. Other fields of DeepL's API are ignored."""

    source_lang: Code = AUTO
    formality: Literal["default", "prefer_more", "prefer_less"] = "default"
    glossary_id: Names = ()
    glossary_ids: Names = ()

    @model_validator(mode="before")
    @classmethod
    def check(cls, fields: JsonObject) -> JsonObject:
        """Raise UserError for a wish that no model of this server can meet."""
        for field in UNSUPPORTED_FIELDS:
            if fields.get(field):
                raise UserError(f"{field} is not supported by this server.")
        return fields


class DeepLTexts(Wish):
    """The fields of /v2/translate."""

    text: Annotated[
        list[str], BeforeValidator(payload.as_texts), Field(min_length=1, max_length=50)
    ]
    split_sentences: Literal["0", "1", "nonewlines"] = "1"
    tag_handling: Literal["", "xml", "html"] = ""
    outline_detection: bool = True
    splitting_tags: Names = ()
    non_splitting_tags: Names = ()
    ignore_tags: Names = ()
    show_billed_characters: bool = False
    model_type: str = ""


class Listing(BaseModel):
    """The field of /v2/languages."""

    type: Literal["source", "target"] = "source"


def add_deepl(app: FastAPI, service: Service, glossaries: Glossaries) -> None:
    """Add DeepL's routes to the application."""

    async def translate(request: Request) -> Response:
        return await _translate(request, service, glossaries)

    async def languages(request: Request) -> Response:
        asked = validate(Listing, await read_fields(request, service.limits))
        return JSONResponse(_languages(service, is_target=asked.type == "target"))

    async def usage(request: Request) -> Response:
        count = await asyncio.to_thread(glossaries.characters, owner_of(request))
        return JSONResponse(
            {"character_count": count, "character_limit": service.limits.month_characters}
        )

    for route in (translate, languages, usage):
        app.add_route(f"/v2/{route.__name__}", route, READING, include_in_schema=False)
    add_glossaries(app, service, glossaries)


async def terms_of(request: Request, glossaries: Glossaries, wish: Wish) -> tuple[Term, ...]:
    """The terms of the glossaries that a request names. Raises UserError or HTTPException if it can't have them."""
    names = [*wish.glossary_id, *wish.glossary_ids]
    if names and wish.source_lang == AUTO:
        raise UserError("Use of a glossary requires the source_lang parameter to be specified.")
    owner = owner_of(request)
    return as_terms(await asyncio.to_thread(glossaries.terms, owner, names, wish.languages))


async def _translate(request: Request, service: Service, glossaries: Glossaries) -> Response:
    asked = validate(DeepLTexts, await read_fields(request, service.limits))
    texts = asked.text
    limits = service.limits
    payload.check_characters("text", texts, limits.characters)
    terms = await terms_of(request, glossaries, asked)
    options = TranslationOptions(1, False, terms, asked.split_sentences != "0")
    read = _reader(asked)
    sent = texts
    if read:
        sent = [with_marks(text, asked.ignore_tags) for text in texts]
    elif asked.split_sentences != "1":  # line breaks must not split sentences
        sent = [LINE_BREAKS.sub(" ", text) for text in texts]
    wanted = Wanted(asked.source_lang, asked.target_lang, options, read=read)
    size = sum(map(len, texts))
    counted = glossaries.counted(owner_of(request), size, limits.month_characters)
    async with contextmanager_in_threadpool(counted):
        found = await translate_texts(request, service, sent, wanted)
    answers = list[JsonObject]()
    for text, source, translation in zip(texts, found.sources, found.translations, strict=True):
        if source == UNDETERMINED:  # a text without words
            source = found.routes[source][0].direction.source
        answer: JsonObject = {
            "detected_source_language": main_language(source).upper(),
            "text": without_marks(translation.text),
        }
        if asked.show_billed_characters:
            answer["billed_characters"] = len(text)
        if asked.model_type:
            answer["model_type_used"] = asked.model_type.removeprefix("prefer_")
        answers.append(answer)
    return JSONResponse({"translations": answers}, headers=found.header)


def _reader(asked: DeepLTexts) -> PageReader | None:
    """What finds the texts in markup; None for plain texts."""
    if asked.tag_handling != "xml":
        return read_page if asked.tag_handling else None
    kind = PRESERVED_TEXT if asked.split_sentences == "1" else MARKUP_TEXT
    outline = Outline(asked.outline_detection, asked.splitting_tags, asked.non_splitting_tags)
    return lambda text, *_: read_fragment(text, outline, kind)


def _languages(service: Service, *, is_target: bool) -> list[JsonObject]:
    """The languages as DeepL lists them: sources without a region, English and Portuguese as targets with one."""
    own = dict.fromkeys(
        (payload.code(target) if is_target else main_language(source)).upper()
        for source, target in service.catalogues.default.directions
    )
    if not is_target:
        return [{"language": each, "name": language_name(each)} for each in own]
    return [
        {"language": code, "name": language_name(code), "supports_formality": False}
        for each in own
        for code in TARGET_VARIANTS.get(each, [each])
    ]
