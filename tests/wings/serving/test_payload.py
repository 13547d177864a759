"""Tests of transduce/wings/serving/payload.py."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servers import Echo
from transduce.decoding.types import Link, Translation
from transduce.system.errors import UserError
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from pydantic import BaseModel

from requests_of_tests import WORDED, client, guard
from transduce.wings.serving import payload
from transduce.wings.serving.languages import Detected
from transduce.wings.serving.limits import Limits
from transduce.wings.serving.payload import Texts, Upload, check_limits, columns, parse, validate


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


MULTIPART = "multipart/form-data; boundary=xx"


def form(*fields: tuple[str, str], end: str = "--xx--\r\n") -> bytes:
    parts = (
        f'--xx\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields
    )
    return ("".join(parts) + end).encode()


@pytest.mark.parametrize(
    ("body", "kind", "expected"),
    [
        (b"q=a+b&q=c&target=de", payload.FORM, {"q": ["a b", "c"], "target": "de"}),
        (b"q=&target=", "Application/X-WWW-Form-Urlencoded; charset=utf-8", {"q": ""}),
        (form(("q", "ä"), ("q", "b"), ("x", "")), MULTIPART, {"q": ["ä", "b"]}),
        (b'{"q": "a"}', "application/json", {"q": "a"}),
        (b'\xef\xbb\xbf{"q": "a"}', "", {"q": "a"}),
        (b'{"q": "a"}', "text/json", {"q": "a"}),
        (b'{"q": "a"}', "application/vnd.api+json; charset=utf-8", {"q": "a"}),
        (b" \n", "image/png", {}),
        (b'glossary={"a": "b"}', payload.FORM, {"glossary": {"a": "b"}}),
        (b"glossary=", payload.FORM, {}),
        (b"glossary=a&glossary=b", payload.FORM, {"glossary": ["a", "b"]}),
        (form(("glossary", '{"a": "b"}'), ("q", "")), MULTIPART, {"q": "", "glossary": {"a": "b"}}),
        (b'{"q": "a", "x": null, "y": "", "z": 0, "w": false}', "", {"q": "a", "z": 0, "w": False}),
        (b'{"q": null}', "", {"q": None}),
        (b'{"q": "\\ud83d\\ude00"}', "", {"q": "\U0001f600"}),
    ],
)
def test_bodies_by_hand(body: bytes, kind: str, expected: dict[str, object]) -> None:
    assert parse(body, kind, b"", 9) == expected
    assert parse(body, kind, b"model=m&q=query", 9) == {"model": "m", "q": "query"} | expected


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b"x", "image/png", "Unsupported content type image/png. Send JSON,"),
        (b"x", "a" * 99, f"Unsupported content type {'a' * 64}. Send"),
        (b"x", "text/html; charset=utf-8", "Unsupported content type text/html. Send JSON,"),
        (b"x", "application/json/x", "Unsupported content type application/json/x. "),
        (b"[1]", "", "The JSON must be an object"),
        (b"1", "", "The JSON must be an object"),
        (b"[[[[[[[[[[]]]]]]]]]]", "", "The JSON exceeds 9 levels of nesting."),
        (b"[" * 100_000, "", "The body is not JSON: maximum recursion depth exceeded"),
        (b'{"q": "' + b"a" * 999, "", "The body is not JSON: Unterminated string starting at"),
        (b"{", "", "The body is not JSON"),
        (b'{"q": "\xff"}', "", "The body is not UTF-8 at byte 8."),
        (b'{"q": "\\ud800"}', "", "A text holds half a surrogate pair"),
        (b"q=%ff", payload.FORM, "The form is not in UTF-8, or has more than 1,000 fields"),
        (b"&".join([b"a=b"] * 1001), payload.FORM, "has more than 1,000 fields"),
        (form(*[("a", "b")] * 1001), MULTIPART, "The form has more than 1,000 fields"),
        (form(("q", "a"), end=""), MULTIPART, "The form can't be read"),
        (b"x", MULTIPART, "The form can't be read"),
        (form(("q", "a")).replace(b'; name="q"', b""), MULTIPART, "The form can't be read"),
        (form(("q", "a")), "multipart/form-data", "names no boundary"),
        (form(("q", "a")), MULTIPART + "; charset=latin-1", "must be in UTF-8"),
        (form(("q", "X")).replace(b"X", b"\xff"), MULTIPART, "The form is not in UTF-8"),
        (b"glossary=x", payload.FORM, "The field glossary must be a JSON object"),
        (b'glossary={"a": {}}', payload.FORM, "The field glossary must be a JSON object"),
    ],
)
def test_malformed_bodies_are_refused(body: bytes, kind: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        parse(body, kind, b"", 9)
    assert said in str(error.value)


def test_a_form_may_have_a_thousand_fields() -> None:
    assert len(parse(b"&".join([b"q=b"] * 1000), payload.FORM, b"", 9)["q"]) == 1000
    assert len(parse(form(*[("q", "b")] * 1000), MULTIPART, b"", 9)["q"]) == 1000


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("a.txt", "a.txt"),
        ("=?utf-8?B?w6Quc3J0?=", "ä.srt"),
        ("=?utf-8?Q?=C3=A4.srt?=", "ä.srt"),
        ("=?no-such?B?w6Q=?=", "=?no-such?B?w6Q=?="),
        ("x=?utf-8?B?w6Q=?=", "x=?utf-8?B?w6Q=?="),
        ("a\0b", "ab"),
    ],
)
def test_names_of_uploads(given: str, name: str) -> None:
    assert payload.file_name(given) == name


def test_fields_are_validated_and_empty_ones_are_missing() -> None:
    found = validate(Texts, {"q": "", "target": "de", "source": "", "model": None, "unknown": 1})
    assert (found.q, found.target, found.source, found.model) == ("", "de", "auto", "")
    assert (found.format, found.alternatives, found.beam_size, found.glossary) == (
        "text",
        0,
        None,
        {},
    )
    assert not (found.scores or found.alignment)
    for fields, said in (
        ({"q": "a"}, "target: field required"),
        ({"target": "de"}, "q: field required"),
        ({"q": "a", "target": "x" * 65}, "target: string should have at most 64 characters"),
        ({"q": "a", "target": "de", "alternatives": -1}, "alternatives: input should be greater"),
        ({"q": "a", "target": "de", "beam_size": 0}, "beam_size: input should be greater"),
        ({"q": "a", "target": "de", "format": "pdf"}, "format: input should be 'text' or 'html'"),
        ({"q": [1], "target": "de"}, "q: "),
    ):
        with pytest.raises(UserError) as error:
            validate(Texts, fields)
        assert str(error.value).startswith(said)
    assert validate(Upload, {"target": "de"}).source == "auto"


@pytest.mark.parametrize(
    ("kind", "undescribed"),
    [
        (Texts, set()),
        (Upload, set()),
        (payload.Asked, {"q", "source", "target"}),
        (payload.Detection, {"q"}),
    ],
)
def test_fields_that_are_not_plain_are_described(
    kind: type[BaseModel], undescribed: set[str]
) -> None:
    fields = kind.model_json_schema()["properties"].items()
    assert {name for name, field in fields if "description" not in field} == undescribed


def test_limits_may_be_reached_but_not_exceeded() -> None:
    limits = Limits(texts=2, alternatives=3, beam_size=4, terms=1, characters=5, term_characters=3)
    fine = {"q": "", "target": "de", "alternatives": 3, "beam_size": 4, "glossary": {"abc": "def"}}
    check_limits(validate(Texts, fine), ["12345", "x"], limits)
    for changes, texts, said in (
        ({}, ["", "", ""], "Too many texts: 3; at most 2 are allowed."),
        ({"alternatives": 4}, [], "Too many alternatives: 4; at most 3 are allowed."),
        ({"beam_size": 5}, [], "Too many hypotheses (beam_size): 5; at most 4"),
        ({"glossary": {"a": "b", "c": "d"}}, [], "Too many terms: 2; at most 1"),
        ({}, ["", "123456"], "The text has 6 characters; at most 5 are allowed."),
        (
            {"glossary": {"abcd": "x"}},
            [],
            "The text of a glossary entry has 4 characters; at most 3",
        ),
        ({"glossary": {"x": "abcd"}}, [], "The text of a glossary entry has 4 characters"),
    ):
        with pytest.raises(UserError) as error:
            check_limits(validate(Texts, fine | changes), texts, limits)
        assert str(error.value).startswith(said)


def test_the_columns_of_an_answer() -> None:
    link = Link((0, 1), (2, 3), 0.5)
    other = Translation("y", -2.00006, ())
    hop = Translation("p", -0.12345, ())
    found = [
        Translation("x", -1.23456, (), (other,), ("cut",), (link,), 0.87654, (hop, hop)),
        Translation("", 0.0, ()),
    ]
    plain = {"q": "", "target": "de"}
    assert columns(found, validate(Texts, plain), True) == {"translatedText": ["x", ""]}
    every = validate(Texts, plain | {"alternatives": 1, "scores": True, "alignment": True})
    values = {
        "translatedText": ["x", ""],
        "alternatives": [["y"], []],
        "scores": [-1.2346, 0.0],
        "alternativeScores": [[-2.0001], []],
        "confidence": [0.8765, None],
        "flags": [["cut"], []],
        "hops": [[{"text": "p", "score": -0.1235}] * 2, []],
    }
    aligned = [[{"source": (0, 1), "target": (2, 3), "weight": 0.5}], []]
    assert columns(found, every, True) == values | {"alignment": aligned}
    assert columns(found, every, False) == values
    html = validate(Texts, plain | {"alignment": True, "format": "html"})
    assert columns(found, html, True) == {"translatedText": ["x", ""]}
    scores = columns(found[1:], validate(Texts, plain | {"scores": True}), True)
    assert "hops" not in scores and scores["flags"] == [[]]


def test_codes_have_hyphens() -> None:
    found = [payload.code(each) for each in ("pt_BR", "pb", "zt", "zh_Hans", "en", "a_b_c")]
    assert found == ["pt-BR", "pt-BR", "zh-Hant", "zh-Hans", "en", "a-b-c"]
    assert payload.detected(Detected("zh_Hans", 12.5)) == {
        "language": "zh-Hans",
        "confidence": 12.5,
    }
