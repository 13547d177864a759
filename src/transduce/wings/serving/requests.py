"""What the routes of all protocols share: the fields of a request, its models, its place in the queue, its texts."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, unquote

from fastapi import Request, Response
from starlette.datastructures import UploadFile
from starlette.requests import ClientDisconnect

from transduce.decoding.types import Guides, Translation, TranslationOptions
from transduce.system.errors import UserError
from transduce.wings.serving.catalogue import Catalogue, Route
from transduce.wings.serving.languages import Detected
from transduce.wings.serving.limits import Limits
from transduce.wings.serving.payload import (
    MULTIPART,
    Fields,
    JsonObject,
    boundary,
    by_name,
    file_name,
    parse,
    validate,
)
from transduce.wings.serving.service import AUTO, Order, PageReader, Service

Result = TypeVar("Result")
MODEL_HEADER = "X-Model"
MAX_UPLOAD_FIELDS = 16
MAX_INLINE_BODY_BYTES = 1 << 14  # a longer body is parsed in a thread


class Wanted(NamedTuple):
    """How a request wants its texts or its document translated."""

    source: str  # a language code, or AUTO
    target: str
    options: TranslationOptions = TranslationOptions(sentences=True)
    model: str = ""  # see catalogue_of
    memory: bool = True  # whether the translation memory is used, if there is one
    beam_size: int | None = None
    read: PageReader | None = None  # reads texts with markup
    guides: Guides = None


class Translated(NamedTuple):
    """The translations of a request's texts, in their order."""

    translations: list[Translation]
    sources: list[str]  # the language of each text
    detected: list[Detected]  # if the source is AUTO
    routes: dict[str, Route]  # by source language
    can_align: bool  # whether all models align words
    header: dict[str, str]


async def read_fields(request: Request, limits: Limits) -> JsonObject:
    """The fields of a request's body and query. Raises UserError if they are malformed."""
    body = await request.body()
    kind = request.headers.get("content-type", "")
    parsing = partial(parse, body, kind, request.scope["query_string"], limits.depth)
    is_short = len(body) < MAX_INLINE_BODY_BYTES
    return parsing() if is_short else await asyncio.to_thread(parsing)


async def read_upload(request: Request, kind: type[Fields]) -> tuple[str, bytes, Fields]:
    """The name and the content of an uploaded document, and the other fields of its form.

    Raises UserError if the form is malformed or has no document.
    """
    if request.headers.get("content-type", "").lower().startswith(MULTIPART):
        boundary(request.headers["content-type"])
    async with request.form(max_files=1, max_fields=MAX_UPLOAD_FIELDS) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise UserError(
                "The request has no document.",
                "Send one as multipart/form-data, in the field file with a filename.",
            )
        asked = validate(kind, by_name(form.multi_items()))
        return file_name(file.filename or ""), await file.read(), asked


def download(name: str, content: bytes) -> Response:
    """A response that a browser keeps as a file of this name."""
    disposition = f"attachment; filename*=UTF-8''{quote(name)}"
    headers = {"Content-Disposition": disposition, "Cache-Control": "no-store"}
    return Response(content, headers=headers, media_type="application/octet-stream")


async def document_work(
    request: Request,
    service: Service,
    name: str,
    content: bytes,
    wanted: Wanted,
    observe: Callable[[int], object] = bool,
) -> tuple[Route, Callable[[], Coroutine[Any, Any, bytes]]]:
    """The models that translate a document, and what translates it. Raises UserError for unknown languages.

    `observe` receives the number of characters before they are translated.
    """
    catalogue = catalogue_of(request, service, wanted.model)
    source = wanted.source
    if source == AUTO:
        shown = await service.shown(content, wanted.target, name)
        [detected] = await service.sources([shown], catalogue, wanted.target)
        source = detected.language
    route = catalogue.route(source, wanted.target)
    order = _order(request, service, wanted)

    async def translated() -> bytes:
        async with service.store.open([route]) as [opened]:
            return await service.translate_document(content, name, opened, order, observe)

    return route, translated


def catalogue_of(request: Request, service: Service, name: str) -> Catalogue:
    """The models that a request may use: the models named by its field `model` or its header, or the default models."""
    return service.catalogues.choose(name or unquote(request.headers.get(MODEL_HEADER, "")))


def model_header(service: Service, *routes: Route) -> dict[str, str]:
    """The header that names the models of an answer, if the server has several for a direction."""
    names = dict.fromkeys(quote(hop.model.name) for route in routes for hop in route)
    return {MODEL_HEADER: ", ".join(names)} if names and service.catalogues.has_choice else {}


def owner_of(request: Request) -> str:
    """The name of the key that a request has sent; "" without keys."""
    return str(getattr(request.state, "owner", ""))


def _order(request: Request, service: Service, wanted: Wanted) -> Order:
    """The options of a request, with the translation memory as its client sees it."""
    options = wanted.options
    if service.corrections and wanted.memory:
        memory = service.corrections.memory(owner_of(request))
        options = options._replace(translation_memory=memory)
    return Order(options, wanted.beam_size)


async def translate_texts(
    request: Request, service: Service, texts: Sequence[str], wanted: Wanted
) -> Translated:
    """Translate the texts of each source language along its route, with a place in the queue.

    Raises UserError if a direction is unknown, and ClientDisconnect.
    """
    catalogue = catalogue_of(request, service, wanted.model)
    order = _order(request, service, wanted)
    target = wanted.target
    read = wanted.read
    guides = wanted.guides
    detected = list[Detected]()
    if wanted.source == AUTO:
        detected = await service.sources(texts, catalogue, target, html=read is not None)
    sources = [each.language for each in detected] or [wanted.source] * len(texts)
    routes = {each: catalogue.route(each, target) for each in sources}

    async def translated() -> Translated:
        by_place = dict[int, Translation]()
        async with service.store.open([*routes.values()]) as opened:
            for source, route in zip(routes, opened, strict=True):
                places = [i for i, each in enumerate(sources) if each == source]
                its = [texts[i] for i in places]
                found = (
                    await service.translate_pages(its, route, order, read)
                    if read
                    else await service.translate(
                        its, route, order, guides=guides and [guides[i] for i in places]
                    )
                )
                by_place |= zip(places, found, strict=True)
            can_align = all(served.can_align for served in chain.from_iterable(opened))
        translations = [by_place[i] for i in range(len(texts))]
        header = model_header(service, *routes.values())
        return Translated(translations, sources, detected, routes, can_align, header)

    return await in_turn(request, service, translated)


async def in_turn(
    request: Request, service: Service, work: Callable[[], Coroutine[Any, Any, Result]]
) -> Result:
    """Run `work` with a place in the queue. Cancels `work` if the client disconnects."""
    with service.batcher.place():
        task = asyncio.ensure_future(work())
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise ClientDisconnect
        finally:
            task.cancel()
            gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
