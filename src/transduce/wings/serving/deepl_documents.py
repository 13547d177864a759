"""DeepL's API for documents: upload, status and download. A document is translated after the answer to its upload."""

import asyncio
import json
import secrets
from contextlib import ExitStack
from dataclasses import dataclass, field
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from transduce.decoding.types import TranslationOptions
from transduce.text.formats import document_format
from transduce.wings.serving.access import answer
from transduce.wings.serving.deepl import DEEPL, READING, Wish, terms_of
from transduce.wings.serving.glossaries import Glossaries
from transduce.wings.serving.payload import JsonObject
from transduce.wings.serving.requests import (
    catalogue_of,
    document_route,
    memory_of,
    owner_of,
    read_fields,
    read_upload,
)
from transduce.wings.serving.service import Order, Service

# The answer about a document waits for its translation. DeepL's clients ask again after five seconds.
STATUS_SECONDS = 4


Translated = tuple[bytes, int]  # a document, and the number of characters of its texts


class DeepLDocument(Wish):
    """The fields of POST /v2/document beside `file`."""

    filename: str = ""


@dataclass
class UploadedDocument:
    """A document that is being translated or waits for its download."""

    name: str
    owner: str
    task: asyncio.Task[Translated]
    key: str = field(default_factory=lambda: secrets.token_hex(32).upper())


@dataclass
class DeepLDocuments:
    """The documents of all clients, by their IDs, the oldest first."""

    service: Service
    glossaries: Glossaries
    kept: dict[str, UploadedDocument] = field(default_factory=dict)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes to the application."""
        path = "/v2/document/{document_id}"
        app.add_route("/v2/document", self.upload, ["POST"], include_in_schema=False)
        app.add_route(path, self.status, READING, include_in_schema=False)
        app.add_route(f"{path}/result", self.result, READING, include_in_schema=False)

    async def upload(self, request: Request) -> Response:
        """Begin to translate a document. Raises UserError or HTTPException if it can't be translated."""
        service = self.service
        limits = service.limits
        name, content, asked = await read_upload(request, DeepLDocument)
        name = asked.filename or name
        document_format(name)  # raises UserError for an unknown suffix
        unfinished = [each for each in self.kept.values() if not each.task.done()]
        if len(unfinished) >= limits.uploads:
            sentence = "The server is busy with other documents. Try again later."
            raise HTTPException(503, sentence, {"Retry-After": "5"})
        terms = await terms_of(request, self.glossaries, asked)
        catalogue = catalogue_of(request, service, "")
        source = asked.source_lang
        route = await document_route(service, catalogue, (name, content), source, asked.target_lang)
        order = Order(TranslationOptions(1, False, terms, True, memory_of(request, service)))
        owner = owner_of(request)
        document_id = secrets.token_hex(16).upper()

        def forget() -> None:
            self.kept.pop(document_id, None)

        async def translated() -> Translated:
            size = 0

            def observe(characters: int) -> None:
                nonlocal size
                size = characters
                stack.enter_context(
                    self.glossaries.counted(owner, characters, limits.month_characters)
                )

            with ExitStack() as stack, service.batcher.place():
                stack.callback(
                    asyncio.get_running_loop().call_later, limits.document_seconds, forget
                )
                async with service.store.open([route]) as [opened]:
                    found = await service.translate_document(content, name, opened, order, observe)
            return found, size

        document = UploadedDocument(name, owner, asyncio.create_task(translated()))
        self.kept[document_id] = document
        for oldest in [*self.kept][: -limits.documents]:
            del self.kept[oldest]
        return JSONResponse({"document_id": document_id, "document_key": document.key})

    async def status(self, request: Request) -> Response:
        """Tell whether a document is translated."""
        document_id, document = await self._find(request)
        state: JsonObject = {"document_id": document_id, "status": "translating"}
        await asyncio.wait({document.task}, timeout=STATUS_SECONDS)
        if document.task.done():
            if error := document.task.exception():
                sentence = json.loads(bytes(answer(error, DEEPL).body))["message"]
                state |= {"status": "error", "error_message": sentence}
            else:
                state |= {"status": "done", "billed_characters": document.task.result()[1]}
        return JSONResponse(state)

    async def result(self, request: Request) -> Response:
        """Send a translated document, and forget it afterwards."""
        document_id, document = await self._find(request)
        if not document.task.done():
            raise HTTPException(503, "The translation of the document is not done.")
        disposition = f"attachment; filename*=UTF-8''{quote(document.name)}"
        return Response(
            document.task.result()[0],
            headers={"Content-Disposition": disposition, "Cache-Control": "no-store"},
            media_type="application/octet-stream",
            background=BackgroundTask(self.kept.pop, document_id, None),
        )

    async def _find(self, request: Request) -> tuple[str, UploadedDocument]:
        """The document of a request. Raises HTTPException (404) if it is gone or belongs to someone else."""
        document_id = request.path_params["document_id"]
        found = self.kept.get(document_id)
        fields = await read_fields(request, self.service.limits)
        if not found or (found.key, found.owner) != (fields.get("document_key"), owner_of(request)):
            sentence = "There is no such document, or it was downloaded or has expired."
            raise HTTPException(404, sentence)
        return document_id, found
