"""Serves OpenAI's protocol: a model for each direction, and chats whose last user message is the text."""

import time
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple
from uuid import uuid4

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from transduce.system.errors import UserError
from transduce.text.languages import Direction
from transduce.wings.serving.catalogue import Catalogues
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
    read_fields,
    translate_texts,
)
from transduce.wings.serving.service import AUTO, Service

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
    """The model and the directions that a name means."""

    name: str
    model: str  # see catalogue_of
    source: str  # AUTO: the language of the text
    directions: list[Direction]


def add_openai(app: FastAPI, service: Service) -> None:
    """Add the routes of OpenAI's protocol. The server's description leaves them out, since OpenAI describes them."""
    router = APIRouter(prefix="/v1", include_in_schema=False)
    started = int(time.time())

    def described(choice: Choice) -> JsonObject:
        return {"id": choice.name, "object": "model", "created": started, "owned_by": "transduce"}

    @router.get("/models")
    async def models() -> JsonObject:
        choices = _choices(service.catalogues).values()
        return {"object": "list", "data": list(map(described, choices))}

    @router.get("/models/{name:path}")
    async def model(name: str) -> JsonObject:
        return described(_choose(service.catalogues, name))

    @router.post("/chat/completions")
    async def complete(request: Request) -> Response:
        return await _complete(request, service)

    app.include_router(router)


@lru_cache(maxsize=2)  # a new version of a model changes the catalogues
def _choices(catalogues: Catalogues) -> dict[str, Choice]:
    """All models by their names: SOURCE-TARGET, auto-TARGET, auto; with several models, also NAME/SOURCE-TARGET."""
    found = dict[str, Choice]()
    for model in ["", *catalogues.names] if catalogues.has_choice else [""]:
        for each in catalogues.choose(model).directions:
            target = code(each.target)
            for source, own in (
                (each.source, f"{code(each.source)}-{target}"),
                (AUTO, f"{AUTO}-{target}"),
                (AUTO, AUTO),
            ):
                name = f"{model}/{own}" if model else own
                plain = name.replace("_", "-").casefold()
                choice = found.setdefault(plain, Choice(name, model, source, []))
                choice.directions.append(each)
    return found


def _choose(catalogues: Catalogues, name: str) -> Choice:
    """What the name of a model means. Raises UnknownModelError for an unknown name."""
    choices = _choices(catalogues)
    if (choice := choices.get(name.replace("_", "-").casefold())) is None:
        listed = ", ".join(each.name for each in islice(choices.values(), MAX_LISTED))
        sentence = f"There is no model {name[:MAX_NAME_CHARACTERS]!r}. Choose one of {listed}."
        raise UnknownModelError(404, f"{sentence} GET /v1/models lists all.")
    return choice


async def _complete(request: Request, service: Service) -> Response:
    fields = await read_fields(request, service.limits)
    for field, harmless in UNSUPPORTED.items():
        if fields.get(field) and fields[field] != harmless:
            raise UserError(f"{field}: this server only translates.", "Leave the field out.")
    chat = validate(Chat, fields)
    choice = _choose(service.catalogues, chat.model)
    system = [each.text for each in chat.messages if each.role in ("system", "developer")]
    user = ["", *(each.text for each in chat.messages if each.role == "user")]
    prompt = read_prompt("\n".join(system), user[-1])
    source, target = _languages(choice, prompt)
    batch = read_batch(prompt.text)
    if not batch.places:
        raise UserError("The chat has no text.", "Send it as the last message of the role user.")
    check_texts(batch.texts, service.limits)
    wanted = Wanted(source, target, model=choice.model)
    found = await translate_texts(request, service, batch.texts, wanted)
    answer = batch.written(each.text for each in found.translations)
    message = {"role": "assistant", "content": answer}
    # Words, since models differ in their tokens.
    read = len(prompt.text.split())
    written = len(answer.split())
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    base = {"id": f"chatcmpl-{uuid4().hex}", "created": int(time.time()), "model": choice.name}
    ending = {"index": 0, "finish_reason": "stop"}
    if not chat.stream:
        choices = [ending | {"message": message}]
        body = base | {"object": "chat.completion", "choices": choices, "usage": usage}
        return JSONResponse(body, headers=found.header)
    base["object"] = "chat.completion.chunk"
    events = [
        base | {"choices": [{"index": 0, "finish_reason": None, "delta": message}]},
        base | {"choices": [ending | {"delta": {}}]},
    ]
    if chat.stream_options.get("include_usage"):
        events.append(base | {"choices": [], "usage": usage})
    text = "".join(f"data: {each}\n\n" for each in [*map(to_json, events), "[DONE]"])
    return Response(text, headers=found.header, media_type="text/event-stream")


def _languages(choice: Choice, prompt: Prompt) -> tuple[str, str]:
    """The languages to translate between. Raises UserError if a prompt contradicts the name of the model."""
    source = choice.source
    if prompt.source.casefold() not in ("", AUTO):
        source = find_language(prompt.source, [each.source for each in choice.directions])
    target = find_language(prompt.target, [each.target for each in choice.directions])
    if not source or not target:
        languages = f"from {prompt.source or AUTO} into {prompt.target or 'no language'}"
        known = ", ".join(map(str, choice.directions[:MAX_LISTED]))
        raise UserError(
            f"The prompt asks for a translation {languages}, but the model {choice.name} translates {known}.",
            "Choose another model, or begin the prompt with a line such as `Translate to German:`.",
        )
    return source, target
