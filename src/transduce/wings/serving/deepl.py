"""Serves DeepL's HTTP API (v2, and glossaries of v3) beside LibreTranslate's, over the same models, keys and limits."""

import asyncio
from collections.abc import Sequence
from typing import Literal

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from transduce.decoding.types import Term, TranslationOptions
from transduce.system.errors import UserError
from transduce.text.formats import MARKUP_TEXT, PRESERVED_TEXT
from transduce.text.languages import language_name
from transduce.text.pairs import LINE_BREAKS
from transduce.wings.documents.fragment import Outline, read_fragment, with_marks, without_marks
from transduce.wings.serving import payload
from transduce.wings.serving.deepl_glossaries import add_glossaries, main_code
from transduce.wings.serving.glossaries import Glossaries
from transduce.wings.serving.languages import UNDETERMINED
from transduce.wings.serving.payload import Code, JsonObject, validate
from transduce.wings.serving.protocols import Protocol
from transduce.wings.serving.requests import (
    Wanted,
    catalogue_of,
    memory_of,
    model_header,
    owner_of,
    read_fields,
    translate_texts,
)
from transduce.wings.serving.service import AUTO, Order, PageReader, Service, read_page


def _error(status: int, sentence: str, error: BaseException) -> JsonObject:
    if status == 404 and getattr(error, "detail", "") == "Not Found":  # a path without a route
        sentence = "This server does not have this part of DeepL's API."
    return {"message": sentence.replace("GET /languages", "GET /v2/languages")}


DEEPL = Protocol(
    ("/v2/", "/v3/"),
    _error,
    scheme="DeepL-Auth-Key",
    key_field="auth_key",
    status_without_key=403,
    queued=("/v2/translate", "/v2/document"),
    uploads=("/v2/document",),
)
MAX_DEEPL_TEXTS = 50
READING = ["GET", "POST"]  # methods of routes that change nothing
# Targets of DeepL that stand for one language of a model. DeepL's clients refuse EN and PT.
TARGET_VARIANTS = {"EN": ("EN-GB", "EN-US"), "PT": ("PT-BR", "PT-PT")}
Tags = list[str] | str


class Wish(BaseModel):
    """The fields that texts and documents share. Other fields of DeepL's API are ignored."""

    source_lang: Code = AUTO
    target_lang: Code
    formality: Literal["default", "more", "less", "prefer_more", "prefer_less"] = "default"
    glossary_id: str = ""
    glossary_ids: Tags = []
    style_id: str = ""
    translation_memory_id: str = ""
    custom_instructions: Tags = []

    def check(self) -> None:
        """Raise UserError for a wish that no model of this server can meet."""
        if self.formality in ("more", "less"):
            raise UserError(
                "'formality' is not supported for given 'target_lang'.",
                f"Send prefer_{self.formality} to use it where it is supported.",
            )
        for field in ("style_id", "translation_memory_id", "custom_instructions"):
            if getattr(self, field):
                raise UserError(f"{field} is not supported by this server.")


class DeepLTexts(Wish):
    """The fields of /v2/translate."""

    text: list[str] | str
    split_sentences: Literal["0", "1", "nonewlines"] = "1"
    tag_handling: Literal["", "xml", "html"] = ""
    outline_detection: bool = True
    splitting_tags: Tags = []
    non_splitting_tags: Tags = []
    ignore_tags: Tags = []
    show_billed_characters: bool = False
    model_type: str = ""


def add_deepl(app: FastAPI, service: Service, glossaries: Glossaries) -> None:
    """Add DeepL's routes to the application."""

    async def translate(request: Request) -> Response:
        return await _translate(request, service, glossaries)

    async def languages(request: Request) -> Response:
        kind = (await read_fields(request, service.limits)).get("type", "source")
        if kind not in ("source", "target"):
            raise UserError("type must be source or target.")
        return JSONResponse(_languages(service, is_target=kind == "target"))

    async def usage(request: Request) -> Response:
        count = await asyncio.to_thread(glossaries.characters, owner_of(request))
        return JSONResponse(
            {"character_count": count, "character_limit": service.limits.month_characters}
        )

    for route in (translate, languages, usage):
        app.add_route(f"/v2/{route.__name__}", route, READING, include_in_schema=False)
    add_glossaries(app, service, glossaries)


def check_quota(service: Service, used: int, characters: int) -> None:
    """Raise HTTPException (456) if a client may not have so many more characters translated this month."""
    limit = service.limits.month_characters
    if used + characters > limit:
        raise HTTPException(456, f"Quota exceeded: {limit:,} characters a month.")


async def terms_of(request: Request, glossaries: Glossaries, wish: Wish) -> tuple[Term, ...]:
    """The terms of the glossaries that a request names; the first glossary with a term applies.

    Raises HTTPException (404) if a glossary is gone, and UserError if it lacks the languages of the request.
    """
    names = [*filter(None, [wish.glossary_id]), *_names(wish.glossary_ids)]
    if names and wish.source_lang == AUTO:
        raise UserError("Use of a glossary requires the source_lang parameter to be specified.")
    languages = main_code(wish.source_lang), main_code(wish.target_lang)
    terms = dict[str, str]()
    for name in names:
        found = await asyncio.to_thread(glossaries.get, owner_of(request), name)
        if languages not in found.dictionaries:
            raise UserError("The glossary has no dictionary from {} to {}.".format(*languages))
        terms = found.dictionaries[languages] | terms
    return tuple(Term(*each) for each in terms.items())


async def _translate(request: Request, service: Service, glossaries: Glossaries) -> Response:
    asked = validate(DeepLTexts, await read_fields(request, service.limits))
    texts = [asked.text] if isinstance(asked.text, str) else asked.text
    asked.check()
    if not 1 <= len(texts) <= MAX_DEEPL_TEXTS:
        raise UserError(f"text must hold 1 to {MAX_DEEPL_TEXTS} texts, not {len(texts):,}.")
    payload.check_characters("text", texts, service.limits.characters)
    owner = owner_of(request)
    characters = sum(map(len, texts))
    check_quota(service, await asyncio.to_thread(glossaries.characters, owner), characters)
    terms = await terms_of(request, glossaries, asked)
    memory = memory_of(request, service)
    options = TranslationOptions(1, False, terms, asked.split_sentences != "0", memory)
    read = _reader(asked)
    ignored = _names(asked.ignore_tags)
    sent = [with_marks(text, ignored) if read else _joined(text, asked) for text in texts]
    catalogue = catalogue_of(request, service, "")
    wanted = Wanted(sent, asked.source_lang, asked.target_lang, Order(options), read)
    found = await translate_texts(request, service, catalogue, wanted)
    await asyncio.to_thread(glossaries.count, owner, characters)
    answers = list[JsonObject]()
    for text, source, translation in zip(texts, found.sources, found.translations, strict=True):
        if source == UNDETERMINED:  # a text without words
            source = catalogue.sources(asked.target_lang)[0]
        translated = without_marks(translation.text)
        language = main_code(source).upper()
        answer: JsonObject = {"detected_source_language": language, "text": translated}
        if asked.show_billed_characters:
            answer["billed_characters"] = len(text)
        if asked.model_type:
            answer["model_type_used"] = asked.model_type.removeprefix("prefer_")
        answers.append(answer)
    header = model_header(service, *found.routes.values())
    return JSONResponse({"translations": answers}, headers=header)


def _names(tags: Tags) -> Sequence[str]:
    """The names in a list, or in a text with commas between the names."""
    listed = tags.split(",") if isinstance(tags, str) else tags
    return [name.strip() for name in listed if name.strip()]


def _joined(text: str, asked: DeepLTexts) -> str:
    """A plain text, in one line if line breaks must not split sentences."""
    return text if asked.split_sentences == "1" else LINE_BREAKS.sub(" ", text)


def _reader(asked: DeepLTexts) -> PageReader | None:
    """What finds the texts in markup; None for plain texts."""
    if asked.tag_handling != "xml":
        return read_page if asked.tag_handling else None
    kind = PRESERVED_TEXT if asked.split_sentences == "1" else MARKUP_TEXT
    inline = _names(asked.non_splitting_tags)
    outline = Outline(asked.outline_detection, _names(asked.splitting_tags), inline)
    return lambda text, *_: read_fragment(text, outline, kind)


def _languages(service: Service, *, is_target: bool) -> list[JsonObject]:
    """The languages as DeepL lists them: sources without a region, English and Portuguese as targets with one."""
    directions = service.catalogues.default.directions
    if not is_target:
        sources = dict.fromkeys(main_code(each.source) for each in directions)
        return [{"language": each.upper(), "name": language_name(each)} for each in sources]
    targets = dict.fromkeys(payload.code(each.target).upper() for each in directions)
    codes = [code for each in targets for code in TARGET_VARIANTS.get(each, (each,))]
    return [
        {"language": code, "name": language_name(code), "supports_formality": False}
        for code in codes
    ]
