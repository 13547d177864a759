"""DeepL's API for documents: upload, status and download. A document is translated after the answer to its upload."""

import asyncio
import json
import math
import secrets
import time
from dataclasses import dataclass, field
from pathlib import PurePath
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from transduce.decoding.types import TranslationOptions
from transduce.system.errors import UserError
from transduce.text.formats import document_format
from transduce.wings.serving.access import answer
from transduce.wings.serving.deepl import DEEPL, READING, Wish, check_quota, terms_of
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


class DeepLDocument(Wish):
    """The fields of POST /v2/document beside `file`."""

    filename: str = ""
    output_format: str = ""


@dataclass
class UploadedDocument:
    """A document that is being translated or waits for its download."""

    name: str
    owner: str
    key: str = field(default_factory=lambda: secrets.token_hex(32).upper())
    characters: int = 0  # 0 before the document is read
    expires: float = math.inf  # seconds of the monotonic clock, known after the translation


@dataclass
class DeepLDocuments:
    """The documents of all clients, by their IDs."""

    service: Service
    glossaries: Glossaries
    kept: dict[str, tuple[UploadedDocument, asyncio.Task[bytes]]] = field(default_factory=dict)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes to the application."""
        path = "/v2/document/{document_id}"
        app.add_route("/v2/document", self.upload, ["POST"], include_in_schema=False)
        app.add_route(path, self.status, READING, include_in_schema=False)
        app.add_route(f"{path}/result", self.result, READING, include_in_schema=False)

    async def upload(self, request: Request) -> Response:
        """Begin to translate a document. Raises UserError or HTTPException if it can't be translated."""
        service = self.service
        name, content, asked = await read_upload(request, DeepLDocument)
        name = asked.filename or name
        asked.check()
        document_format(name)  # raises UserError for an unknown suffix
        suffix = PurePath(name).suffix.lower()
        if f".{asked.output_format.lower() or suffix[1:]}" != suffix:
            raise UserError(f"A document is translated to the same format only, {suffix[1:]}.")
        unfinished = [task for _, task in self.kept.values() if not task.done()]
        if len(unfinished) >= service.limits.uploads:
            sentence = "The server is busy with other documents. Try again later."
            raise HTTPException(503, sentence, {"Retry-After": "5"})
        terms = await terms_of(request, self.glossaries, asked)
        source = (name, content), asked.source_lang
        catalogue = catalogue_of(request, service, "")
        route = await document_route(service, catalogue, *source, asked.target_lang)
        order = Order(TranslationOptions(1, False, terms, True, memory_of(request, service)))
        document = UploadedDocument(name, owner_of(request))
        used = await asyncio.to_thread(self.glossaries.characters, document.owner)

        def observe(characters: int) -> None:
            check_quota(service, used, characters)
            document.characters = characters

        async def translated() -> bytes:
            try:
                with service.batcher.place():
                    async with service.store.open([route]) as [opened]:
                        found = await service.translate_document(
                            content, name, opened, order, observe
                        )
                count = document.characters
                await asyncio.to_thread(self.glossaries.count, document.owner, count)
                return found
            finally:
                seconds = service.limits.document_seconds
                document.expires = time.monotonic() + seconds
                asyncio.get_running_loop().call_later(seconds + 1, self._expire)

        document_id = secrets.token_hex(16).upper()
        self.kept[document_id] = document, asyncio.create_task(translated())
        self._expire()
        return JSONResponse({"document_id": document_id, "document_key": document.key})

    async def status(self, request: Request) -> Response:
        """Tell whether a document is translated."""
        document, task = await self._find(request)
        await asyncio.wait({task}, timeout=STATUS_SECONDS)
        state: JsonObject = {"status": "translating" if document.characters else "queued"}
        if task.done():
            error = task.exception()
            state = {"status": "done", "billed_characters": document.characters}
            if error:
                sentence = json.loads(bytes(answer(error, DEEPL).body))["message"]
                state = {"status": "error", "error_message": sentence}
        return JSONResponse({"document_id": request.path_params["document_id"], **state})

    async def result(self, request: Request) -> Response:
        """Send a translated document, and forget it afterwards."""
        document, task = await self._find(request)
        if not task.done():
            raise HTTPException(503, "The translation of the document is not done.")

        async def forget() -> None:
            self.kept.pop(request.path_params["document_id"], None)

        disposition = f"attachment; filename*=UTF-8''{quote(document.name)}"
        return Response(
            task.result(),
            headers={"Content-Disposition": disposition, "Cache-Control": "no-store"},
            media_type="application/octet-stream",
            background=BackgroundTask(forget),
        )

    async def _find(self, request: Request) -> tuple[UploadedDocument, asyncio.Task[bytes]]:
        """The document of a request. Raises HTTPException (404) if it is gone or belongs to someone else."""
        self._expire()
        key = (await read_fields(request, self.service.limits)).get("document_key")
        found = self.kept.get(request.path_params["document_id"])
        if not found or found[0].key != key or found[0].owner != owner_of(request):
            raise HTTPException(
                404, "There is no such document, or it was downloaded or has expired."
            )
        return found

    def _expire(self) -> None:
        """Forget documents that have expired or are too many."""
        newest = [*self.kept.items()][-self.service.limits.documents :]
        self.kept = {each: found for each, found in newest if found[0].expires >= time.monotonic()}
