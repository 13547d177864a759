"""Clients and guards for the tests of limits and keys."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from servers import Echo, store_of
from transduce.config.schema import DecodeConfig
from transduce.decoding.translator import Translator
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from starlette.testclient import TestClient

from transduce.text.languages import Direction
from transduce.wings.serving.access import AccessControl
from transduce.wings.serving.api import application
from transduce.wings.serving.keys import Keys
from transduce.wings.serving.limits import Limits

WORDED = {"q": "ka lo", "source": "ka", "target": "zu"}


NOBODY = Keys()


def guard(
    tokenizer: Tokenizer,
    engine: Echo,
    keys: Keys = NOBODY,
    *,
    local: bool = True,
    proxied: bool = False,
    **limits: int,
) -> AccessControl:
    store = store_of(translator_of(engine, tokenizer, "ka", "zu"))
    return application(store, keys, Limits(**limits), local=local, proxied=proxied)


def translator_of(engine: Echo, tokenizer: Tokenizer, *direction: str) -> Translator:
    return Translator(
        engine, tokenizer, DecodeConfig(beam_size=2), directions=[Direction(*direction)]
    )


@contextlib.contextmanager
def client(app: Any, address: str = "127.0.0.1") -> Iterator[TestClient]:
    with TestClient(
        app, base_url="http://localhost", client=(address, 1), raise_server_exceptions=False
    ) as client:
        yield client
