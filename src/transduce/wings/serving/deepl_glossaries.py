"""DeepL's API for glossaries: /v2/glossaries for one language pair, /v3/glossaries for several.

Both versions show the same glossaries. An answer has the fields of both; /v2 lists only those with one language pair.
"""

import asyncio
import csv
import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from transduce.system.errors import UserError
from transduce.wings.serving.glossaries import (
    MAX_GLOSSARIES,
    ClientGlossary,
    Glossaries,
    Languages,
)
from transduce.wings.serving.payload import Code, JsonObject, check_glossary, validate
from transduce.wings.serving.requests import owner_of, read_fields
from transduce.wings.serving.service import Service

NESTED_FIELD = re.compile(r"dictionaries\[(\d+)\]\.(\w+)")  # in forms of DeepL's clients


class Pair(BaseModel):
    """A language pair of a glossary."""

    source_lang: Code
    target_lang: Code

    @property
    def languages(self) -> Languages:
        return main_code(self.source_lang), main_code(self.target_lang)


class Entries(Pair):
    """The terms of a language pair, one in each line."""

    entries: str
    entries_format: Literal["tsv", "csv"]


class Change(BaseModel):
    """The fields of a new or changed glossary."""

    name: str = Field("", max_length=1024)
    dictionaries: list[Entries] = []


def main_code(language: str) -> str:
    """A language code without its region, in lower case: glossaries apply to all variants of a language."""
    return language.replace("_", "-").partition("-")[0].lower()


def add_glossaries(app: FastAPI, service: Service, glossaries: Glossaries) -> None:
    """Add the routes for glossaries to the application."""
    turn = asyncio.Lock()

    def add(path: str, *, is_single: bool) -> None:
        async def handle(request: Request) -> Response:
            fields = await read_fields(request, service.limits)
            given = [dict(fields)] if is_single else _nested(fields)
            if given:
                fields["dictionaries"] = given
            client = _Client(service, glossaries, owner_of(request), fields, is_single)
            place = request.path_params.get("place", "").split("/")
            async with turn:
                return await asyncio.to_thread(client.answer, request.method, place)

        for each in (path, f"{path}/{{place:path}}"):
            methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
            app.add_route(each, handle, methods, include_in_schema=False)

    add("/v2/glossaries", is_single=True)
    add("/v3/glossaries", is_single=False)

    @app.get("/v2/glossary-language-pairs", include_in_schema=False)
    async def pairs() -> JsonObject:
        directions = service.catalogues.default.directions
        known = dict.fromkeys(
            (main_code(source), main_code(target)) for source, target in directions
        )
        return {"supported_languages": list(map(_as_json, known))}


def _nested(fields: JsonObject) -> list[JsonObject]:
    """The dictionaries in the fields of a form, such as `dictionaries[0].source_lang`."""
    found: dict[str, JsonObject] = {}
    for name, value in fields.items():
        if part := NESTED_FIELD.fullmatch(name):
            found.setdefault(part[1], {})[part[2]] = value
    return [*found.values()]


@dataclass
class _Client:
    """The sender of a request, and the fields of the request."""

    service: Service
    glossaries: Glossaries
    owner: str
    fields: JsonObject
    is_single: bool

    def answer(self, method: str, place: Sequence[str]) -> Response:
        """The answer to a method and a place below the path of all glossaries. Raises HTTPException and UserError."""
        glossary_id, *part = place
        match method, glossary_id:
            case "GET", "":
                found = self.glossaries.find(self.owner)
                shown = [
                    each for each in found if not self.is_single or len(each.dictionaries) == 1
                ]
                return JSONResponse({"glossaries": list(map(_described, shown))})
            case "POST", "":
                return self._add()
        glossary = self.glossaries.get(self.owner, glossary_id)
        match [method, *part]:
            case ["GET"]:
                return JSONResponse(_described(glossary))
            case ["GET", "entries"]:
                return self._entries(glossary)
            case ["DELETE"]:
                self.glossaries.delete(glossary)
                return Response(status_code=204)
            case ["PATCH"]:
                return JSONResponse(_described(self._change(glossary)))
            case ["PUT", "dictionaries"]:
                new = validate(Entries, self.fields)
                glossary.dictionaries[new.languages] = self._terms(new)
                self.glossaries.save(self.owner, glossary)
                return JSONResponse(_as_json(new.languages, glossary.dictionaries[new.languages]))
            case ["DELETE", "dictionaries"]:
                del glossary.dictionaries[self._languages(glossary)]
                self.glossaries.save(self.owner, glossary)
                return Response(status_code=204)
        raise HTTPException(404, "Not Found")

    def _add(self) -> Response:
        if len(self.glossaries.find(self.owner)) >= MAX_GLOSSARIES:
            raise HTTPException(456, f"A key can have {MAX_GLOSSARIES:,} glossaries. Delete one.")
        created = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        glossary = self._change(ClientGlossary(str(uuid.uuid4()), "", created, {}))
        return JSONResponse(_described(glossary), 201)

    def _change(self, glossary: ClientGlossary) -> ClientGlossary:
        """Rename a glossary, add terms to its dictionaries, and keep it."""
        asked = validate(Change, self.fields)
        for new in asked.dictionaries:
            terms = glossary.dictionaries.setdefault(new.languages, {})
            terms |= self._terms(new)
            check_glossary(terms, self.service.limits)
        glossary.name = asked.name or glossary.name
        if not glossary.name or not glossary.dictionaries:
            raise UserError("A glossary needs a name and entries.")
        self.glossaries.save(self.owner, glossary)
        return glossary

    def _languages(self, glossary: ClientGlossary) -> Languages:
        """The languages that the request names. Raises HTTPException (404) if the glossary lacks them."""
        languages = validate(Pair, self.fields).languages
        if languages not in glossary.dictionaries:
            raise HTTPException(
                404, "The glossary has no dictionary from {} to {}.".format(*languages)
            )
        return languages

    def _entries(self, glossary: ClientGlossary) -> Response:
        only = [*glossary.dictionaries] if self.is_single else []
        languages = only[0] if only else self._languages(glossary)
        text = "\n".join(map("\t".join, glossary.dictionaries[languages].items()))
        if self.is_single:
            return Response(text, media_type="text/tab-separated-values")
        shown = _as_json(languages) | {"entries": text, "entries_format": "tsv"}
        return JSONResponse({"dictionaries": [shown]})

    def _terms(self, asked: Entries) -> dict[str, str]:
        """Raises UserError if the entries can't be read, or no model translates between their languages."""
        if not self.service.catalogues.default.route(*asked.languages):
            raise UserError("The two languages of a glossary must differ.")
        lines = asked.entries.split("\n")
        try:
            is_csv = asked.entries_format == "csv"
            rows = [*csv.reader(lines)] if is_csv else [line.split("\t") for line in lines]
        except csv.Error as error:
            raise UserError(f"The entries are not CSV: {error}.") from None
        terms = _terms(rows, asked.languages)
        check_glossary(terms, self.service.limits)
        return terms


def _terms(rows: Iterable[list[str]], languages: Languages) -> dict[str, str]:
    """The terms in rows of source, target and, maybe, their languages. Raises UserError if a row is wrong."""
    terms = dict[str, str]()
    for number, row in enumerate(rows, 1):
        cells = [cell.strip() for cell in row]
        if not any(cells):
            continue
        place = f"Line {number} of the entries"
        if len(cells) not in (2, 4) or not all(cells):
            raise UserError(f"{place}: expected a term and its translation.")
        if cells[2:] and tuple(map(main_code, cells[2:])) != languages:
            raise UserError(f"{place}: its languages differ from those of the glossary.")
        if cells[0] in terms:
            raise UserError(f"{place} repeats the term {cells[0][:64]!r}.")
        terms[cells[0]] = cells[1]
    if not terms:
        raise UserError("The glossary has no entries.")
    return terms


def _described(glossary: ClientGlossary) -> JsonObject:
    """A glossary as in answers of both versions."""
    its = [_as_json(*each) for each in glossary.dictionaries.items()]
    single = its[0] | {"ready": True} if len(its) == 1 else {}
    return single | {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "creation_time": glossary.created,
        "dictionaries": its,
    }


def _as_json(languages: Languages, terms: dict[str, str] | None = None) -> JsonObject:
    """A language pair and the number of its terms."""
    pair = dict(zip(("source_lang", "target_lang"), languages, strict=True))
    return pair if terms is None else pair | {"entry_count": len(terms)}
