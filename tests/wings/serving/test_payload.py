"""Tests of transduce/wings/serving/payload.py."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers import Echo
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from requests_of_tests import WORDED, client, guard
from transduce.wings.serving.payload import Texts, parse


def test_null_and_empty_fields_count_as_absent(tokenizer: Tokenizer, engine: Echo) -> None:
    with client(guard(tokenizer, engine)) as asking:
        plain = asking.post("/translate", json=WORDED).json()
        for name in Texts.model_fields.keys() - WORDED.keys():
            for answer in (
                asking.post("/translate", json=WORDED | {name: None}),
                asking.post("/translate", json=WORDED | {name: ""}),
                asking.post("/translate", data=WORDED | {name: ""}),
            ):
                assert answer.status_code == 200 and answer.json() == plain, (name, answer.text)
        assert asking.post("/translate", json=WORDED | {"q": ""}).json() == {"translatedText": ""}
        for name in ("q", "target"):
            assert (
                f"{name}: " in asking.post("/translate", json=WORDED | {name: None}).json()["error"]
            )


@given(
    st.recursive(
        st.text('[]{}"\\'), lambda inner: st.lists(inner) | st.dictionaries(st.text("[{"), inner)
    )
)
def test_json_depth_ignores_strings(value: object) -> None:
    def depth(value: object) -> int:
        inner = (
            value.values()
            if isinstance(value, dict)
            else value
            if isinstance(value, list)
            else None
        )
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    body = json.dumps({"q": value}).encode()
    for limit in range(1, 5):
        if depth(value) < limit:
            assert parse(body, "", b"", limit) == {"q": value}
        else:
            with pytest.raises(UserError, match=f"exceeds {limit} levels"):
                parse(body, "", b"", limit)


def test_empty_fields_of_a_body_do_not_hide_those_of_the_query() -> None:
    body = json.dumps({"q": "y", "source": None, "target": "", "format": "html"}).encode()
    found = parse(body, "application/json", b"q=x&source=de&target=en", 9)
    assert found == {"q": "y", "source": "de", "target": "en", "format": "html"}
