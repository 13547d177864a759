"""How the protocols of a server differ in their keys, waiting routes and errors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from transduce.wings.serving.payload import JsonObject


def _libretranslate_error(status: int, sentence: str, error: BaseException) -> JsonObject:  # noqa: ARG001
    return {"error": sentence}


@dataclass(frozen=True)
class Protocol:
    """What AccessControl needs to know of the paths that begin with `prefixes`."""

    prefixes: tuple[str, ...] = ("/",)
    # HTTP status, sentence and exception -> the body of an answer.
    error: Callable[[int, str, BaseException], JsonObject] = _libretranslate_error
    scheme: str = "Bearer"  # of the header Authorization; Bearer is always accepted
    key_field: str = "api_key"  # the field or query parameter that may hold the key
    status_without_key: int = 401
    status_of_unknown_key: int = 403
    queued: tuple[str, ...] = ()  # paths whose POST requests wait for the models
    uploads: tuple[str, ...] = ()  # paths whose POST requests may be as large as a document


UPLOAD = "/translate_file"
LIBRETRANSLATE = Protocol(
    queued=("/translate", UPLOAD, "/attention", "/suggest"), uploads=(UPLOAD,)
)


def protocol_of(path: str, protocols: Sequence[Protocol]) -> Protocol:
    """The first protocol with a prefix of `path`, or LibreTranslate's."""
    return next((each for each in protocols if path.startswith(each.prefixes)), LIBRETRANSLATE)
