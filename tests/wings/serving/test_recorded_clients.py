"""Requests that other programs' clients have sent, and what the server answered; `recorded_clients.json` holds them.

Recorded with an engine that returns its input, and with the key of a file, called KEY. Each request is sent again, with
the IDs and keys of the present answers.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")

from deepl_requests import served
from transduce.wings.serving.keys import Keys, add_key

RECORDED = json.loads((Path(__file__).parent / "recorded_clients.json").read_text("utf-8"))
IDS = ("glossary_id", "document_id", "document_key")
TIMES = ("creation_time",)
SENTENCES = ("message", "error")


def pairs(old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """The fields of two answers of the same form."""
    assert type(old) is type(new), (old, new)
    if isinstance(old, dict):
        assert old.keys() == new.keys()
        for name in old:
            yield name, old[name], new[name]
            yield from pairs(old[name], new[name])
    elif isinstance(old, list):
        assert len(old) == len(new), (old, new)
        for one, other in zip(old, new, strict=True):
            yield from pairs(one, other)


@pytest.mark.parametrize("client", RECORDED)
def test_recorded_requests_get_the_same_answers(
    client: str, tokenizer: Tokenizer, tmp_path: Path
) -> None:
    known = {"KEY": add_key(tmp_path / "keys", "alice")}

    def present(text: str) -> str:
        for old, new in known.items():
            text = text.replace(old, new)
        return text

    with served(tokenizer, keys=Keys(tmp_path / "keys")) as asking:
        for call in RECORDED[client]:
            answer = asking.request(
                call["method"],
                present(call["path"]),
                headers={name: present(value) for name, value in call["headers"].items()},
                content=present(call["body"]).encode(),
            )
            assert answer.status_code == call["status"], (call, answer.text)
            if not answer.headers.get("content-type", "").startswith("application/json"):
                assert answer.text == present(call["answer"]), call
                continue
            for name, old, new in pairs(json.loads(call["answer"]), answer.json()):
                if name in IDS:
                    assert known.setdefault(old, new) == new, call
                elif name in SENTENCES:  # their words may change
                    assert new.endswith(".")
                elif name not in TIMES and not isinstance(old, list | dict):
                    assert (present(old) if isinstance(old, str) else old) == new, call
