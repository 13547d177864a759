"""DeepL's API for glossaries: /v2/glossaries for one language pair, /v3/glossaries for several.

Both versions show the same glossaries; /v2 lists only those with one language pair.
"""

import asyncio
import csv
import re
from collections import defaultdict
from io import StringIO
from typing import Literal

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from transduce.system.errors import UserError
from transduce.text.languages import main_language
from transduce.text.plain import BYTE_ORDER_MARK
from transduce.wings.serving.glossaries import (
    MAX_GLOSSARIES,
    ClientGlossary,
    Glossaries,
    Languages,
)
from transduce.wings.serving.payload import Code, JsonObject, check_glossary, validate
from transduce.wings.serving.requests import owner_of, read_fields
from transduce.wings.serving.service import Service

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
# DeepL refuses tabs, line breaks and other control characters in terms. CSV may quote them, but TSV can't hold them.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class Pair(BaseModel):
    """The languages of a glossary or of a translation."""

    source_lang: Code
    target_lang: Code

    @property
    def languages(self) -> Languages:
        return Languages.of(self.source_lang, self.target_lang)


class Entries(Pair):
    """The terms of a language pair, one in each line."""

    entries: str
    entries_format: Literal["tsv", "csv"]


class Change(BaseModel):
    """The fields of a new or changed glossary."""

    name: str = Field("", max_length=1024)
    dictionaries: list[Entries] = []


def add_glossaries(app: FastAPI, service: Service, glossaries: Glossaries) -> None:
    """Add the routes for glossaries to the application."""
    turn = asyncio.Lock()

    async def handle(request: Request) -> JsonObject | Response:
        fields = await read_fields(request, service.limits)
        async with turn:
            return await asyncio.to_thread(_answer, request, fields, service, glossaries)

    router = APIRouter(include_in_schema=False)
    for version in ("/v2", "/v3"):
        for place in ("", "/{glossary_id}", "/{glossary_id}/{part}"):
            path = f"{version}/glossaries{place}"
            router.add_api_route(path, handle, methods=METHODS, response_model=None)

    @router.get("/v2/glossary-language-pairs")
    async def pairs() -> JsonObject:
        directions = service.catalogues.default.directions
        known = dict.fromkeys(Languages.of(*each) for each in directions)
        return {"supported_languages": [each._asdict() for each in known]}

    app.include_router(router)


def _answer(
    request: Request, fields: JsonObject, service: Service, glossaries: Glossaries
) -> JsonObject | Response:
    """The answer to a request. Raises HTTPException and UserError."""
    owner = owner_of(request)
    is_single = request.url.path.startswith("/v2")
    place = [*request.path_params.values()]
    glossary = glossaries.get(owner, place[0]) if place else ClientGlossary(owner=owner)
    if is_single and place and len(glossary.dictionaries) != 1:  # clients of /v2 can't read it
        raise HTTPException(
            404, "The glossary does not have one language pair. Use /v3/glossaries."
        )
    match [request.method, *place]:
        case ["GET"]:
            found = glossaries.find(owner)
            shown = [each for each in found if not is_single or len(each.dictionaries) == 1]
            return {"glossaries": [each.description for each in shown]}
        case ["GET", _]:
            return glossary.description
        case ["GET", _, "entries"]:
            # /v2 does not name the languages.
            languages = validate(Pair, glossary.description if is_single else fields).languages
            text = "\n".join(map("\t".join, glossary.terms(languages).items()))
            if is_single:
                return Response(text, media_type="text/tab-separated-values")
            terms = languages._asdict() | {"entries": text, "entries_format": "tsv"}
            return {"dictionaries": [terms]}
        case ["DELETE", _]:
            glossaries.delete(glossary)
            return Response(status_code=204)
        case ["DELETE", _, "dictionaries"]:
            languages = validate(Pair, fields).languages
            glossary.terms(languages)
            del glossary.dictionaries[languages]
            answer: JsonObject | Response = Response(status_code=204)
        case ["PUT", _, "dictionaries"]:
            new = validate(Entries, fields)
            glossary.dictionaries[new.languages] = entries = _terms(new, {}, service)
            answer = new.languages._asdict() | {"entry_count": len(entries)}
        case ["POST"] | ["PATCH", _]:
            given = [fields] if is_single else _nested(fields)
            if not place and len(glossaries.find(owner)) >= MAX_GLOSSARIES:
                sentence = f"A key can have {MAX_GLOSSARIES:,} glossaries. Delete one."
                raise HTTPException(456, sentence)
            asked = validate(Change, {"dictionaries": given} | fields)
            for new in asked.dictionaries:
                known = glossary.dictionaries.get(new.languages, {})
                glossary.dictionaries[new.languages] = _terms(new, known, service)
            glossary.name = asked.name or glossary.name
            if not glossary.name or not glossary.dictionaries:
                raise UserError("A glossary needs a name and entries.")
            answer = JSONResponse(glossary.description, 200 if place else 201)
        case _:
            raise HTTPException(404, "Not Found")
    glossaries.save(glossary)
    return answer


def _nested(fields: JsonObject) -> list[JsonObject]:
    """The dictionaries in the fields of a client's form, such as `dictionaries[0].source_lang`."""
    found = defaultdict[str, JsonObject](dict)
    for name, value in fields.items():
        dictionary, bracket, field = name.partition("].")
        if bracket:
            found[dictionary][field] = value
    return [*found.values()]


def _terms(asked: Entries, known: dict[str, str], service: Service) -> dict[str, str]:
    """Known terms and new entries. Raises UserError for wrong entries or if no model translates their languages."""
    if not service.catalogues.default.route(*asked.languages):
        raise UserError("The two languages of a glossary must differ.")
    lines = StringIO(asked.entries.removeprefix(BYTE_ORDER_MARK))
    try:
        is_csv = asked.entries_format == "csv"
        rows = [*csv.reader(lines)] if is_csv else [line.split("\t") for line in lines]
    except csv.Error as error:
        raise UserError(f"The entries are not CSV: {error}.") from None
    new = dict[str, str]()
    for number, row in enumerate(rows, 1):
        term, translation, *codes = [*map(str.strip, row), "", ""]
        is_pair = tuple(map(main_language, filter(None, codes))) in ((), asked.languages)
        is_broken = CONTROL.search(term + translation)
        if term and translation and is_pair and not is_broken and term not in new:
            new[term] = translation
        elif "".join(row).strip():
            raise UserError(
                f"Line {number} of the entries, {term[:64]!r}: expected a new term, its translation and, if any, the "
                "languages of the glossary."
            )
    if not new:
        raise UserError("The glossary has no entries.")
    check_glossary(known | new, service.limits)
    return known | new
