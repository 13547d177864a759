"""A server and its answers for the tests of DeepL's protocol."""

from typing import Any

import pytest

from servers import Echo, store_of
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")

from requests_of_tests import NOBODY, client, translator_of
from transduce.wings.serving.api import application
from transduce.wings.serving.keys import Keys
from transduce.wings.serving.limits import Limits


def served(tokenizer: Tokenizer, *direction: str, keys: Keys = NOBODY, **options: Any) -> Any:
    engine = Echo()
    engine.gate.set()
    store = store_of(translator_of(engine, tokenizer, *direction or ("en", "de")))
    limits = Limits(**{name: options.pop(name) for name in [*options] if name != "glossaries"})
    return client(application(store, keys, limits, local=True, **options))


def translated(asking: Any, *texts: str, **fields: Any) -> Any:
    asked = {"text": list(texts), "target_lang": "DE", "source_lang": "EN"} | fields
    answer = asking.post("/v2/translate", json=asked)
    assert answer.status_code == 200, answer.json()
    return answer.json()["translations"]


def refused(answer: Any, status: int, part: str) -> None:
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["message"] and part in answer.json()["message"], answer.json()
