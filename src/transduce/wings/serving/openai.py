"""Serves OpenAI's protocol: a model for each direction, and chats whose last user message is the text."""

import time
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple
from uuid import uuid4

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from transduce.decoding.types import TranslationOptions
from transduce.system.errors import UserError
from transduce.wings.serving.catalogue import Catalogue, Catalogues
from transduce.wings.serving.payload import (
    MAX_NAME_CHARACTERS,
    JsonObject,
    check_texts,
    code,
    validate,
)
from transduce.wings.serving.prompts import (
    Prompt,
    find_language,
    read_batch,
    read_prompt,
    to_json,
)
from transduce.wings.serving.protocols import Protocol
from transduce.wings.serving.requests import (
    Wanted,
    memory_of,
    model_header,
    read_fields,
    translate_texts,
)
from transduce.wings.serving.service import AUTO, Order, Service

COMPLETIONS = "/v1/chat/completions"
MAX_LISTED = 20  # names of models in an error
# Fields that ask for what a translation is not, and their values that ask for nothing.
UNSUPPORTED: JsonObject = {
    "tools": [],
    "functions": [],
    "audio": None,
    "logprobs": False,
    "modalities": ["text"],
    "response_format": {"type": "text"},
    "n": 1,
}
ERROR_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}


class UnknownModelError(HTTPException):
    """A request names a model that the server does not have."""

    code = "model_not_found"


def _error(status: int, sentence: str, error: BaseException) -> JsonObject:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    code = getattr(error, "code", ERROR_CODES.get(status))
    return {"error": {"message": sentence, "type": kind, "param": None, "code": code}}


OPENAI = Protocol(("/v1/",), _error, status_of_unknown_key=401, queued=(COMPLETIONS,))


class Message(BaseModel):
    """A message of a chat."""

    role: str
    content: Any = ""

    @property
    def text(self) -> str:
        """The text of all parts. Raises UserError for an image, a sound or a file."""
        content = self.content or ""
        parts = [{"text": content}] if isinstance(content, str) else content
        try:
            return "".join(part["text"] for part in parts)
        except (KeyError, TypeError):
            raise UserError("A message may hold only text.", "Leave out its other parts.") from None


class Chat(BaseModel):
    """The fields of a chat that a translation can honour."""

    messages: list[Message]
    model: str = AUTO
    stream: bool = False
    stream_options: JsonObject = {}


class Choice(NamedTuple):
    """The models and the direction that the name of a model means."""

    name: str
    catalogue: Catalogue
    source: str  # AUTO: the language of the text
    target: str  # "": the language that the prompt states


def add_openai(app: FastAPI, service: Service) -> None:
    """Add the routes of OpenAI's protocol. The server's description leaves them out, since OpenAI describes them."""
    started = int(time.time())

    def described(name: str) -> JsonObject:
        return {"id": name, "object": "model", "created": started, "owned_by": "transduce"}

    @app.get("/v1/models", include_in_schema=False)
    async def models() -> JSONResponse:
        data = [described(choice.name) for choice in _choices(service.catalogues).values()]
        return JSONResponse({"object": "list", "data": data})

    @app.get("/v1/models/{name:path}", include_in_schema=False)
    async def model(request: Request) -> JSONResponse:
        choice = _choose(service.catalogues, request.path_params["name"])
        return JSONResponse(described(choice.name))

    @app.post(COMPLETIONS, include_in_schema=False)
    async def complete(request: Request) -> Response:
        return await _complete(request, service)


@lru_cache(maxsize=2)  # a new version of a model changes the catalogues
def _choices(catalogues: Catalogues) -> dict[str, Choice]:
    """All models by their names: SOURCE-TARGET, auto-TARGET, auto; with several models, also NAME/SOURCE-TARGET."""
    found = dict[str, Choice]()
    for name in ["", *catalogues.names] if catalogues.has_choice else [""]:
        catalogue = catalogues.choose(name)
        sources = Counter(target for _, target in catalogue.directions)
        several = [target for target, count in sources.items() if count > 1]
        detecting = [(AUTO, target) for target in [*several, ""]]
        for source, target in [*catalogue.directions, *detecting]:
            own = "-".join(filter(None, [code(source), code(target)]))
            full = f"{name}/{own}" if name else own
            found[_plain(full)] = Choice(full, catalogue, source, target)
    return found


def _choose(catalogues: Catalogues, name: str) -> Choice:
    """What the name of a model means. Raises UnknownModelError for an unknown name."""
    choices = _choices(catalogues)
    if (choice := choices.get(_plain(name))) is None:
        listed = ", ".join(each.name for each in islice(choices.values(), MAX_LISTED))
        sentence = f"There is no model {name[:MAX_NAME_CHARACTERS]!r}. Choose one of {listed}."
        raise UnknownModelError(404, f"{sentence} GET /v1/models lists all.")
    return choice


def _plain(name: str) -> str:
    return name.replace("_", "-").casefold()


async def _complete(request: Request, service: Service) -> Response:
    fields = await read_fields(request, service.limits)
    for field, harmless in UNSUPPORTED.items():
        if fields.get(field) and fields[field] != harmless:
            raise UserError(f"{field}: this server only translates.", "Leave the field out.")
    chat = validate(Chat, fields)
    choice = _choose(service.catalogues, chat.model)
    system = [each.text for each in chat.messages if each.role in ("system", "developer")]
    user = [each.text for each in chat.messages if each.role == "user"]
    prompt = read_prompt("\n".join(system), user[-1] if user else "")
    source, target = _languages(choice, prompt)
    batch = read_batch(prompt.text)
    if not batch.places:
        raise UserError("The chat has no text.", "Send it as the last message of the role user.")
    check_texts(batch.texts, service.limits)
    memory = memory_of(request, service)
    order = Order(TranslationOptions(sentences=True, translation_memory=memory))
    wanted = Wanted(batch.texts, source, target, order)
    found = await translate_texts(request, service, choice.catalogue, wanted)
    answer = batch.written(each.text for each in found.translations)
    # Words, since models differ in their tokens.
    read = len(prompt.text.split())
    written = len(answer.split())
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    base = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": choice.name}
    headers = model_header(service, *found.routes.values())
    if chat.stream:
        ending = {"usage": usage} if chat.stream_options.get("include_usage") else {}
        events = "".join(f"data: {each}\n\n" for each in _events(answer, base, ending))
        return Response(events, headers=headers, media_type="text/event-stream")
    message = {"role": "assistant", "content": answer}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = base | {"object": "chat.completion", "choices": choices, "usage": usage}
    return JSONResponse(body, headers=headers)


def _languages(choice: Choice, prompt: Prompt) -> tuple[str, str]:
    """The languages to translate between. Raises UserError if a prompt contradicts the name of the model."""
    directions = [
        each
        for each in choice.catalogue.directions
        if choice.source in (AUTO, each.source) and choice.target in ("", each.target)
    ]
    targets = list(dict.fromkeys(each.target for each in directions))
    is_open = bool(prompt.target) or len(targets) > 1
    target = find_language(prompt.target, targets) if is_open else targets[0]
    source = choice.source
    if prompt.source.casefold() not in ("", AUTO):
        source = find_language(prompt.source, [each.source for each in directions])
    if not source or not target:
        languages = [f"from {prompt.source}"] if prompt.source else []
        languages += [f"into {prompt.target}"] if prompt.target else []
        wish = f"asks for a translation {' '.join(languages)}" if languages else "names no language"
        known = ", ".join(map(str, directions[:MAX_LISTED]))
        raise UserError(
            f"The prompt {wish}, but the model {choice.name} translates {known}.",
            "Choose another model, or begin the prompt with a line such as `Translate to German:`.",
        )
    return source, target


def _events(answer: str, base: JsonObject, ending: JsonObject) -> Iterator[str]:
    """The server-sent events of an answer: its lines and its end; then `ending`, if it has fields."""
    common = base | {"object": "chat.completion.chunk"}
    lines = [{"content": line} for line in answer.splitlines(keepends=True)]
    for delta in [{"role": "assistant", "content": ""}, *lines, {}]:
        reason = None if delta else "stop"
        yield to_json(common | {"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    if ending:
        yield to_json(common | {"choices": []} | ending)
    yield "[DONE]"
