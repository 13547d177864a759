"""Serves LibreTranslate's HTTP API with additional fields and routes."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp

from transduce.decoding.types import TranslationOptions, as_terms
from transduce.system.errors import UserError
from transduce.text.formats import document_suffixes
from transduce.text.languages import Direction, language_name
from transduce.wings.serving import payload
from transduce.wings.serving.access import AccessControl, answer
from transduce.wings.serving.addresses import public_url
from transduce.wings.serving.catalogue import Catalogue, Route
from transduce.wings.serving.corrections import Corrections
from transduce.wings.serving.deepl import DEEPL, add_deepl
from transduce.wings.serving.deepl_documents import add_documents
from transduce.wings.serving.downloads import Downloads
from transduce.wings.serving.examples import EXAMPLES, answered
from transduce.wings.serving.glossaries import Glossaries
from transduce.wings.serving.idle_learning import IdleLearner
from transduce.wings.serving.keys import Keys
from transduce.wings.serving.languages import codes
from transduce.wings.serving.limits import Limits
from transduce.wings.serving.openai import OPENAI, add_openai
from transduce.wings.serving.page_routes import add_page
from transduce.wings.serving.payload import (
    FORM,
    MULTIPART,
    Asked,
    Detection,
    JsonObject,
    Suggestion,
    Texts,
    Upload,
    validate,
)
from transduce.wings.serving.protocols import protocol_of
from transduce.wings.serving.requests import (
    MODEL_HEADER,
    Wanted,
    catalogue_of,
    document_work,
    download,
    in_turn,
    model_header,
    owner_of,
    read_fields,
    read_upload,
    translate_texts,
)
from transduce.wings.serving.service import AUTO, Order, Service, read_page
from transduce.wings.serving.store import ModelStore

PROTOCOLS = (OPENAI, DEEPL)  # beside LibreTranslate's

# Schemas for the description of the API.
STRING: JsonObject = {"type": "string"}
ERROR_BODY = {"type": "object", "properties": {"error": STRING}}
ERROR = {"description": "An error", "content": {"application/json": {"schema": ERROR_BODY}}}
FILE = STRING | {"format": "binary", "description": "a document with a file name"}
DOCUMENT = {
    "type": "object",
    "properties": {"file": FILE, **Upload.model_json_schema()["properties"]},
    "required": ["file", "target"],
}


def application(
    store: ModelStore,
    keys: Keys,
    limits: Limits,
    *,
    local: bool,
    proxied: bool = False,
    origins: Sequence[str] = (),
    corrections: Corrections | None = None,
    learns: bool = False,
    glossaries: Glossaries | None = None,
) -> ASGIApp:
    """Create the server's ASGI application. `local`, `proxied` and `origins` are described at AccessControl.

    `learns`: the models learn the corrections while no requests come. `glossaries`: by default, in memory.
    Raises UserError if two models of the same name have a common direction.
    """
    service = Service(store, limits, corrections)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        tasks = [asyncio.create_task(store.watch())]
        if corrections and learns:
            folders = dict.fromkeys(model.folder for model in store.models)
            idle = service.batcher.idle_seconds
            learner = IdleLearner([*folders], corrections.database, idle)
            tasks.append(asyncio.create_task(learner.run()))
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await service.batcher.stop()

    async def refuse(request: Request, error: Exception) -> JSONResponse:
        return answer(error, protocol_of(request.scope["path"], PROTOCOLS))

    app = FastAPI(
        title="transduce",
        version=version("transduce"),
        description="Translation with Transformer models. The API extends LibreTranslate's API by fields and routes.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's page loads scripts from another server
        redoc_url=None,
        redirect_slashes=False,
        responses={"default": ERROR},
        exception_handlers=dict.fromkeys(
            (UserError, HTTPException, ClientDisconnect, Exception), refuse
        ),
    )
    _add_translations(app, service)
    if corrections:
        _add_suggestions(app, service, corrections)
    _add_documents(app, service, Downloads(limits.documents, limits.document_seconds))
    _add_facts(app, service, keys, limits)
    add_openai(app, service)
    glossaries = glossaries or Glossaries()
    add_deepl(app, service, glossaries)
    add_documents(app, service, glossaries)
    checked = AccessControl(
        app, service, keys, {"/health", *add_page(app)}, local, proxied, origins, PROTOCOLS
    )
    if not origins:
        return checked
    return CORSMiddleware(
        checked,
        allow_origins=origins,
        allow_methods=["GET", "POST"],
        allow_headers=["*"],  # OpenAI's client sends a dozen of its own
        expose_headers=[MODEL_HEADER, "Retry-After", "Content-Disposition"],
    )


def _add_translations(app: FastAPI, service: Service) -> None:
    limits = service.limits

    @app.post(
        "/translate",
        summary="Translate texts",
        openapi_extra=_body(Texts, EXAMPLES["/translate"].asked),
        responses=answered("/translate"),
    )
    async def translate(request: Request) -> JSONResponse:
        return await _translate(request, service)

    @app.post(
        "/detect",
        summary="Detect the language of a text",
        openapi_extra=_body(Detection, EXAMPLES["/detect"].asked),
        responses=answered("/detect"),
    )
    async def detect(request: Request) -> JSONResponse:
        asked = validate(Detection, await read_fields(request, limits))
        payload.check_characters("text", [asked.q], limits.characters)
        return JSONResponse(list(map(payload.detected, service.detect(asked.q))))

    @app.post(
        "/attention",
        summary="Show a model's attention for a sentence",
        openapi_extra=_body(Asked, EXAMPLES["/translate"].asked),
    )
    async def attention(request: Request) -> Response:
        return await _draw_attention(request, service)


def _add_suggestions(app: FastAPI, service: Service, corrections: Corrections) -> None:
    @app.post(
        "/suggest",
        summary="Correct a translation",
        openapi_extra=_body(Suggestion, EXAMPLES["/suggest"].asked),
        responses=answered("/suggest"),
    )
    async def suggest(request: Request) -> JSONResponse:
        return await _suggest(request, service, corrections)


def _add_documents(app: FastAPI, service: Service, downloads: Downloads) -> None:
    example = EXAMPLES["/translate_file"].asked
    body = {"content": {MULTIPART: {"schema": DOCUMENT, "example": example}}, "required": True}
    parameter = {"name": "kept", "in": "path", "required": True, "schema": STRING}

    @app.post(
        "/translate_file",
        summary="Translate a document, sent as multipart/form-data",
        openapi_extra={"requestBody": body},
        responses=answered("/translate_file"),
    )
    async def translate_file(request: Request) -> JSONResponse:
        return await _translate_file(request, service, downloads)

    @app.get(
        "/download_file/{kept}",
        summary="Download a translated document",
        response_class=Response,
        openapi_extra={"parameters": [parameter]},
    )
    async def download_file(request: Request) -> Response:
        found = downloads.get(request.path_params["kept"])
        if found is None:
            raise HTTPException(404, "The document is unknown or has expired. Translate it again.")
        return download(found.name, found.content)


async def _translate(request: Request, service: Service) -> JSONResponse:
    asked = validate(Texts, await read_fields(request, service.limits))
    texts = [asked.q] if isinstance(asked.q, str) else asked.q
    payload.check_limits(asked, texts, service.limits)
    options = TranslationOptions(
        asked.alternatives + 1,
        asked.alignment,
        as_terms(asked.glossary),
        True,
        glossary_exact=asked.glossary_exact,
    )
    wanted = Wanted(
        asked.source,
        asked.target,
        options,
        asked.model,
        asked.memory,
        asked.beam_size,
        read_page if asked.format == "html" else None,
        payload.guides(asked, texts),
    )
    found = await translate_texts(request, service, texts, wanted)
    columns = dict[str, list[Any]]()
    if asked.source == AUTO:
        columns["detectedLanguage"] = list(map(payload.detected, found.detected))
    columns |= payload.columns(found.translations, asked, found.can_align)
    if any(len(route) > 1 for route in found.routes.values()):
        columns["route"] = [_languages(found.routes[source], source) for source in found.sources]
    is_one = isinstance(asked.q, str)
    answer = {field: values[0] if is_one else values for field, values in columns.items()}
    return JSONResponse(answer, headers=found.header)


async def _suggest(request: Request, service: Service, corrections: Corrections) -> JSONResponse:
    """Keep a correction together with what the models say without the memory."""
    owner = owner_of(request)
    if not corrections.accepts(owner):
        raise HTTPException(403, "This server keeps no corrections of clients without a key.")
    asked = validate(Suggestion, await read_fields(request, service.limits))
    payload.check_characters("text", [asked.q, asked.s], service.limits.characters)
    if not asked.q.strip() or not asked.s.strip():
        raise UserError(
            "A correction needs two texts.", "Send the text as q, and its translation as s."
        )
    catalogue = catalogue_of(request, service, asked.model)
    source = await _source(asked, service, catalogue)
    route = catalogue.route(source, asked.target)
    if not route:
        raise UserError(f"{source} and {asked.target} are the same language.")

    async def judged() -> tuple[str, str]:
        async with service.store.open([route]) as [opened]:
            order = Order(TranslationOptions(sentences=True))
            [found] = await service.translate([asked.q], opened, order)
            if len(opened) > 1:
                return found.text, "no single model can judge it"
            texts = (asked.q, asked.s, found.text)
            doubt = await service.batcher.call(lambda: corrections.doubt(opened[0], *texts))
            return found.text, doubt

    machine, doubt = await in_turn(request, service, judged)
    direction = str(Direction(route[0].direction.source, route[-1].direction.target))
    texts = (asked.q, asked.s, direction, owner, machine, doubt)
    state = await asyncio.to_thread(corrections.add, *texts)
    reason = {"reason": doubt} if doubt and state == "waiting" else {}
    return JSONResponse({"success": True, "state": state, **reason})


def _languages(route: Route, source: str) -> list[str]:
    """The languages of a route as in a response. A route without a model has only the source."""
    return list(map(payload.code, codes(hop.direction for hop in route) or [source]))


async def _source(asked: Asked, service: Service, catalogue: Catalogue) -> str:
    """The language of the text of a request."""
    if asked.source != AUTO:
        return asked.source
    [detected] = await service.sources([asked.q], catalogue, asked.target)
    return detected.language


async def _draw_attention(request: Request, service: Service) -> Response:
    asked = validate(Asked, await read_fields(request, service.limits))
    catalogue = catalogue_of(request, service, asked.model)
    source = await _source(asked, service, catalogue)
    route = catalogue.route(source, asked.target)
    if len(route) != 1:
        raise UserError(
            f"No single model translates {source!r} to {asked.target!r}, so attention can't be shown."
        )

    async def drawn() -> str:
        async with service.store.open([route]) as [[served]]:
            return await service.attention(asked.q, served)

    picture = await in_turn(request, service, drawn)
    return Response(picture, headers=model_header(service, route), media_type="application/json")


async def _translate_file(request: Request, service: Service, downloads: Downloads) -> JSONResponse:
    name, content, asked = await read_upload(request, Upload)
    payload.check_glossary(asked.glossary, service.limits)
    terms = as_terms(asked.glossary)
    options = TranslationOptions(1, False, terms, True, glossary_exact=asked.glossary_exact)
    wanted = Wanted(asked.source, asked.target, options, asked.model, asked.memory)
    route, translated = await document_work(request, service, name, content, wanted)
    kept = downloads.add(name, asked.target, await in_turn(request, service, translated))
    asyncio.get_running_loop().call_later(service.limits.document_seconds + 1, downloads.expire)
    url = public_url(request.url_for("download_file", kept=kept), request.headers)
    return JSONResponse({"translatedFileUrl": url}, headers=model_header(service, route))


def _add_facts(app: FastAPI, service: Service, keys: Keys, limits: Limits) -> None:
    corrections = service.corrections

    @app.get("/languages", summary="List the language pairs", responses=answered("/languages"))
    async def languages() -> list[JsonObject]:
        default = service.catalogues.default
        targets: dict[str, list[str]] = {payload.code(code): [] for code in default.codes}
        for source, target in default.directions:
            targets[payload.code(source)].append(payload.code(target))
        return [
            {"code": code, "name": language_name(code), "targets": found}
            for code, found in targets.items()
        ]

    @app.get("/frontend/settings", summary="Settings for a web page")
    async def settings() -> JsonObject:
        target = payload.code(service.catalogues.default.directions[0].target)
        return {
            "apiKeys": bool(keys),
            "keyRequired": bool(keys),
            "charLimit": limits.characters,
            "frontendTimeout": 300,
            "suggestions": bool(corrections and corrections.accepts("key" if keys else "")),
            "filesTranslation": True,
            "fileLimit": limits.document,  # bytes; LibreTranslate lacks this setting
            "supportedFilesFormat": document_suffixes(),
            **({"models": service.catalogues.names} if service.catalogues.has_choice else {}),
            "language": {
                "source": {"code": AUTO, "name": "Detect language"},
                "target": {"code": target, "name": language_name(target)},
            },
        }

    @app.get("/health", summary="Health check", responses=answered("/health"))
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    @app.get("/metrics", summary="Metrics for Prometheus")
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


def _body(kind: type[BaseModel], example: JsonObject) -> JsonObject:
    """Return the OpenAPI description of a request body with the fields of `kind`."""
    schema = {"schema": kind.model_json_schema(), "example": example}
    return {
        "requestBody": {"content": {"application/json": schema, FORM: schema, MULTIPART: schema}}
    }
