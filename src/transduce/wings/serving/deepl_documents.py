"""DeepL's API for documents: upload, status and download. A document is translated after the answer to its upload."""

import asyncio
import json
import secrets
from contextlib import ExitStack

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from transduce.decoding.types import TranslationOptions
from transduce.system.errors import UserError
from transduce.text.formats import document_format
from transduce.wings.serving.access import answer, log_error
from transduce.wings.serving.deepl import DEEPL, READING, Wish, terms_of
from transduce.wings.serving.glossaries import Glossaries
from transduce.wings.serving.payload import JsonObject
from transduce.wings.serving.requests import (
    Wanted,
    document_work,
    download,
    owner_of,
    read_fields,
    read_upload,
)
from transduce.wings.serving.service import Service

# The answer about a document waits for its translation. DeepL's clients ask again after five seconds.
STATUS_SECONDS = 4


Handle = tuple[str, str, str]  # a document's ID, its key and its owner
# A translated document, and the number of characters of its texts.
Documents = dict[Handle, asyncio.Task[tuple[Response, int]]]


class DeepLDocument(Wish):
    """The fields of POST /v2/document beside `file`."""

    filename: str = ""


def add_documents(app: FastAPI, service: Service, glossaries: Glossaries) -> None:
    """Add the routes for documents to the application."""
    kept: Documents = {}  # the oldest first

    async def upload(request: Request) -> Response:
        return await _upload(request, service, glossaries, kept)

    async def find(request: Request) -> Handle:
        """Which document a request means. Raises HTTPException (404) if it is gone or belongs to someone else."""
        key = (await read_fields(request, service.limits)).get("document_key")
        handle = request.path_params["document_id"], str(key), owner_of(request)
        if handle not in kept:
            sentence = "There is no such document, or it was downloaded or has expired."
            raise HTTPException(404, sentence)
        return handle

    async def status(request: Request) -> Response:
        handle = await find(request)
        task = kept[handle]
        state: JsonObject = {"document_id": handle[0], "status": "translating"}
        await asyncio.wait({task}, timeout=STATUS_SECONDS)
        if task.done():
            if error := task.exception():
                if not isinstance(error, UserError | HTTPException):
                    log_error(error)
                sentence = json.loads(bytes(answer(error, DEEPL).body))["message"]
                state |= {"status": "error", "error_message": sentence}
            else:
                state |= {"status": "done", "billed_characters": task.result()[1]}
        return JSONResponse(state)

    async def result(request: Request) -> Response:
        """The translated document, which is forgotten when it is sent."""
        handle = await find(request)
        if not kept[handle].done():
            raise HTTPException(503, "The translation of the document is not done.")
        response, _ = kept[handle].result()

        async def forget() -> None:  # a function without async would run in a thread, later
            kept.pop(handle, None)

        response.background = BackgroundTask(forget)
        return response

    path = "/v2/document/{document_id}"
    app.add_route("/v2/document", upload, ["POST"], include_in_schema=False)
    app.add_route(path, status, READING, include_in_schema=False)
    app.add_route(f"{path}/result", result, ["POST"], include_in_schema=False)


async def _upload(
    request: Request, service: Service, glossaries: Glossaries, kept: Documents
) -> Response:
    """Begin to translate a document. Raises UserError or HTTPException if it can't be translated."""
    limits = service.limits
    name, content, asked = await read_upload(request, DeepLDocument)
    name = asked.filename or name
    document_format(name)  # raises UserError for an unknown suffix
    if sum(not task.done() for task in kept.values()) >= limits.uploads:
        sentence = "The server is busy with other documents. Try again later."
        raise HTTPException(503, sentence, {"Retry-After": "5"})
    terms = await terms_of(request, glossaries, asked)
    document_id, document_key = (secrets.token_hex(size).upper() for size in (16, 32))
    handle = document_id, document_key, owner_of(request)
    size = 0
    stack = ExitStack()

    def observe(characters: int) -> None:
        nonlocal size
        size = characters
        stack.enter_context(glossaries.counted(handle[-1], size, limits.month_characters))

    options = TranslationOptions(1, False, terms, True)
    wanted = Wanted(asked.source_lang, asked.target_lang, options)
    _, work = await document_work(request, service, name, content, wanted, observe)

    def forget() -> None:
        kept.pop(handle, None)

    async def translated() -> tuple[Response, int]:
        with stack, service.batcher.place():
            stack.callback(asyncio.get_running_loop().call_later, limits.document_seconds, forget)
            return download(name, await work()), size

    kept[handle] = asyncio.create_task(translated())
    for oldest in [*kept][: -limits.documents]:
        del kept[oldest]
    return JSONResponse({"document_id": document_id, "document_key": document_key})
