"""Examples of requests and answers of a server from English to German, for the description of the API."""

from typing import NamedTuple

from transduce.wings.serving.payload import JsonObject


class Example(NamedTuple):
    """The fields of a request, and the answer to it."""

    asked: dict[str, str]
    answer: object


ENGLISH_TO_GERMAN = {"source": "en", "target": "de"}
EXAMPLES = {
    "/translate": Example(
        {"q": "A dog runs."} | ENGLISH_TO_GERMAN, {"translatedText": "Ein Hund rennt."}
    ),
    "/translate_file": Example(
        {"file": "@messages.po"} | ENGLISH_TO_GERMAN,
        {"translatedFileUrl": "http://localhost:5000/download_file/Zr0Jm2Qy6cT8sVb1XwKdPg.po"},
    ),
    "/suggest": Example(
        {"q": "A dog runs.", "s": "Ein Hund läuft."} | ENGLISH_TO_GERMAN,
        {"success": True, "state": "accepted"},
    ),
    "/detect": Example({"q": "Ein Hund rennt."}, [{"language": "de", "confidence": 44.4}]),
    "/languages": Example(
        {},
        [
            {"code": "en", "name": "English", "targets": ["de"]},
            {"code": "de", "name": "German", "targets": []},
        ],
    ),
    "/health": Example({}, {"status": "ok"}),
}


def answered(path: str) -> dict[int | str, JsonObject]:
    """The OpenAPI description of the answer of a route."""
    return {200: {"content": {"application/json": {"example": EXAMPLES[path].answer}}}}
