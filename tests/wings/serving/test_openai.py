"""OpenAI's protocol, as its client uses it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servers import Echo, store_of
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from starlette.testclient import TestClient

from requests_of_tests import NOBODY, client, guard, translator_of
from served import Store
from transduce.wings.memories.database import Database, Unit
from transduce.wings.serving.api import application
from transduce.wings.serving.corrections import Corrections
from transduce.wings.serving.keys import Keys, add_key
from transduce.wings.serving.limits import Limits

RECORDED = json.loads(Path(__file__).with_name("openai_requests.json").read_text(encoding="utf-8"))
COMPLETIONS = "/v1/chat/completions"
# The statuses of all calls that a server for ka-zu doesn't answer with 200.
REFUSED = {
    "models.retrieve unknown": 404,
    "models.delete": 405,
    "create unknown model": 404,
    "create system": 400,
    "create n": 400,
    "create tools": 400,
    "create image": 400,
    "create empty": 400,
    "parse": 400,
    "completions.create": 404,
    "responses.create": 404,
    "embeddings.create": 404,
    "chat.completions.list": 405,
}


@pytest.fixture
def asking(tokenizer: Tokenizer, engine: Echo) -> Iterator[TestClient]:
    """A client of a server whose translations repeat the texts."""
    pairs = ("en", "de"), ("fr", "de"), ("en", "fr"), ("en", "pt_BR")
    store = store_of(*(translator_of(engine, tokenizer, *pair) for pair in pairs))
    with client(application(store, NOBODY, Limits(texts=3, characters=50), local=True)) as made:
        yield made


def ask(asking: TestClient, text: Any, model: str = "en-de", **fields: Any) -> Any:
    system = fields.pop("system", None)
    messages = [{"role": "system", "content": system}] if system else []
    messages += [{"role": "user", "content": text}]
    return asking.post(COMPLETIONS, json={"model": model, "messages": messages} | fields)


def answer(asking: TestClient, text: Any, model: str = "en-de", **fields: Any) -> str:
    found = ask(asking, text, model, **fields)
    assert found.status_code == 200, found.text
    return str(found.json()["choices"][0]["message"]["content"])


def refusal(asking: TestClient, text: Any, model: str = "en-de", **fields: Any) -> str:
    found = ask(asking, text, model, **fields)
    assert found.status_code == 400
    error = found.json()["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error" and error["code"] is None
    return str(error["message"])


# -- the client


@pytest.mark.parametrize("recorded", RECORDED["requests"], ids=lambda each: each["call"])
def test_requests_of_the_client(
    tokenizer: Tokenizer, engine: Echo, recorded: dict[str, Any]
) -> None:
    with client(guard(tokenizer, engine)) as asking:
        found = asking.request(
            recorded["method"],
            recorded["path"],
            headers=RECORDED["headers"],
            json=recorded["body"],
        )
    status = REFUSED.get(recorded["call"], 200)
    assert found.status_code == status, found.text
    if status != 200:
        error = found.json()["error"]
        assert found.json().keys() == {"error"} and error["message"].endswith(".")
        is_model = "model" in recorded["call"] and status == 404
        assert error["code"] == ("model_not_found" if is_model else None)
        assert not is_model or "ka-zu" in error["message"]
    elif recorded["path"].startswith("/v1/models"):
        data = found.json().get("data", [found.json()])
        assert data[0]["id"] == "ka-zu" and data[0]["object"] == "model"
        assert isinstance(data[0]["created"], int) and data[0]["owned_by"] == "transduce"
    elif recorded["body"].get("stream"):
        assert_stream(found.text, "ti nu mi re nu", recorded["body"].get("stream_options"))
    else:
        body = found.json()
        assert body["object"] == "chat.completion" and body["model"] == "ka-zu"
        [choice] = body["choices"]
        assert choice["message"] == {"role": "assistant", "content": "ti nu mi re nu"}
        assert (choice["index"], choice["finish_reason"]) == (0, "stop")
        assert body["usage"]["total_tokens"] == 10
        assert body["id"].startswith("chatcmpl-") and body["created"] > 1_700_000_000


def assert_stream(text: str, content: str, options: object) -> None:
    events = [each.removeprefix("data: ") for each in text.strip().split("\n\n")]
    assert events.pop() == "[DONE]"
    chunks = [json.loads(each) for each in events]
    assert {each["object"] for each in chunks} == {"chat.completion.chunk"}
    assert len({each["id"] for each in chunks}) == 1
    if options:
        last = chunks.pop()
        assert last["choices"] == [] and last["usage"]["completion_tokens"] == 5
    deltas = [each["choices"][0]["delta"] for each in chunks]
    assert deltas[0]["role"] == "assistant" and deltas[-1] == {}
    assert "".join(each.get("content", "") for each in deltas) == content
    reasons = [each["choices"][0]["finish_reason"] for each in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["stop"]


def test_a_streamed_answer_has_all_lines(asking: TestClient) -> None:
    found = ask(asking, "ka lo\nmi re\n", stream=True)
    assert found.headers["content-type"].startswith("text/event-stream")
    assert_stream(found.text, "ka lo\nmi re\n", None)


def test_keys_and_limits_answer_in_openais_form(
    tokenizer: Tokenizer, engine: Echo, tmp_path: Path
) -> None:
    key = add_key(tmp_path / "keys", "alice")
    keys = Keys(tmp_path / "keys")
    with client(guard(tokenizer, engine, keys, per_key=2, body=200)) as asking:

        def error(key: str, **fields: Any) -> tuple[int, str]:
            headers = {"Authorization": f"Bearer {key}"}
            found = asking.post(COMPLETIONS, headers=headers, json={"messages": []} | fields)
            return found.status_code, found.json()["error"]["code"]

        assert error("wrong") == error("") == (401, "invalid_api_key")
        assert asking.get("/v1/models").json()["error"]["code"] == "invalid_api_key"
        assert error(key)[0] == 400
        assert error(key, x="x" * 200)[0] == 413
        assert error(key) == (429, "rate_limit_exceeded")


def test_a_full_queue_is_a_servers_error(tokenizer: Tokenizer, engine: Echo) -> None:
    app = guard(tokenizer, engine, queue=1)
    with client(app) as asking, app.service.batcher.place():
        found = ask(asking, "ka lo", "ka-zu")
        assert (found.status_code, found.json()["error"]["type"]) == (503, "server_error")
        assert "retry-after" in found.headers


def test_memory_and_metrics_are_those_of_the_other_routes(
    tokenizer: Tokenizer, engine: Echo, tmp_path: Path
) -> None:
    memory = Database(tmp_path / "m.sqlite")
    memory.add([Unit("ka lo", "from the memory", "m.tmx:1")], "ka-zu")
    store = store_of(translator_of(engine, tokenizer, "ka", "zu"))
    corrections = Corrections(memory, "anyone")
    app = application(store, NOBODY, Limits(), local=True, corrections=corrections)
    with client(app) as asking:
        assert answer(asking, "1. ka lo\n2. mi", "ka-zu") == "1. from the memory\n2. mi"
        counted = asking.get("/metrics").text
        assert f'transduce_requests_total{{route="{COMPLETIONS}",status="200"}} 1.0' in counted


# -- the names of models


def names(asking: TestClient) -> list[str]:
    return [each["id"] for each in asking.get("/v1/models").json()["data"]]


def test_each_direction_has_a_name(asking: TestClient) -> None:
    found = names(asking)
    directions = {"en-de", "fr-de", "en-fr", "en-pt-BR"}
    assert {*found} == directions | {"auto-de", "auto-fr", "auto-pt-BR", "auto"}
    for name in found:
        assert asking.get(f"/v1/models/{name}").json()["id"] == name
    for name in ("EN-DE", "en-pt_br", "Auto-de"):
        assert (
            asking.get(f"/v1/models/{name}").json()["id"].casefold()
            == name.replace("_", "-").casefold()
        )
    assert ask(asking, "ka lo", "EN-pt_BR").json()["model"] == "en-pt-BR"
    assert asking.get("/v1/models/en-es").status_code == 404


def test_several_models_of_a_direction_have_names_of_their_own() -> None:
    with client(application(Store("lo", "mi"), NOBODY, Limits(), local=True)) as asking:
        assert names(asking) == [
            f"{prefix}{name}"
            for prefix in ("", "lo/", "mi/")
            for name in ("ka-zu", "auto-zu", "auto")
        ]
        for name, model in (("ka-zu", "lo"), ("lo/ka-zu", "lo"), ("mi/ka-zu", "mi")):
            found = ask(asking, "re", name)
            assert found.headers["x-model"] == model
            assert model in found.json()["choices"][0]["message"]["content"]
            assert asking.get(f"/v1/models/{name}").json()["id"] == name


def test_an_unknown_model_is_refused_with_the_names(asking: TestClient) -> None:
    found = ask(asking, "ka lo", "gpt-5")
    assert found.status_code == 404
    message = found.json()["error"]["message"]
    assert "no model 'gpt-5'" in message and "en-de, auto-de, auto, fr-de" in message


# -- languages


def test_the_prompt_may_state_the_direction_of_the_model(asking: TestClient) -> None:
    for text in (
        "Translate to German:\n\nka lo",
        "Translate from English to de:\nka lo",
        '{"target_lang": "de", "source_lang": "en", "text": "ka lo"}',
    ):
        assert answer(asking, text) == "ka lo"
    assert answer(asking, "ka lo", system='{"target": "German"}') == "ka lo"
    for text in ("Translate to French:\nka", "Translate from French to German:\nka"):
        assert "the model en-de translates en-de" in refusal(asking, text)


def test_a_model_may_leave_the_direction_open(asking: TestClient) -> None:
    for name in ("auto", ""):
        found = ask(asking, "Translate from English to Brazilian Portuguese:\nka lo", name)
        assert found.json()["model"] == "auto"
        assert answer(asking, "Translate to French:\nka lo", name) == "ka lo"
    assert "into no language, but" in refusal(asking, "ka lo", "auto")
    assert "into Spanish" in refusal(asking, "Translate to Spanish:\nka lo", "auto")
    assert "from German" in refusal(asking, "Translate from German to French:\nka", "auto")
    assert answer(asking, "ka lo", "auto-de") == "ka lo"
    assert answer(asking, "Translate from French to German:\nka lo", "auto-de") == "ka lo"
    assert "into French" in refusal(asking, "Translate to French:\nka lo", "auto-de")


def test_a_single_direction_needs_no_name(tokenizer: Tokenizer, engine: Echo) -> None:
    with client(guard(tokenizer, engine)) as asking:
        assert names(asking) == ["ka-zu", "auto-zu", "auto"]
        found = asking.post(COMPLETIONS, json={"messages": [{"role": "user", "content": "ka"}]})
        assert found.json()["choices"][0]["message"]["content"] == "ka"


# -- messages


def test_the_last_message_of_the_user_is_the_text(asking: TestClient) -> None:
    messages = [
        {"role": "user", "content": "mi"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "user", "content": [{"type": "text", "text": "ka "}, {"text": "lo"}]},
        {"role": "assistant", "content": "re"},
    ]
    found = asking.post(COMPLETIONS, json={"model": "en-de", "messages": messages})
    assert found.json()["choices"][0]["message"]["content"] == "ka lo"


def test_prompts_are_never_translated(asking: TestClient, engine: Echo) -> None:
    for fields in (
        {"text": "Translate into German: ka"},
        {"text": "ka", "system": "You are a translator."},
        {"text": "ka", "system": "Translate to German: Be formal."},
    ):
        assert "{{text}}" in refusal(asking, **fields)
    assert engine.searched == []


def test_each_item_of_a_batch_is_translated_alone(asking: TestClient, engine: Echo) -> None:
    for text in (
        "1. ka lo\n2.  mi\n",
        "[1] ka lo\r\n[2] mi",
        "ka lo\n\n%%\n\nmi",
        '[ "ka lo",\n"mi" ]',
        '{"1": "ka lo", "2": "mi"}',
        "7\n00:00:01,000 --> 00:00:02,000\nka lo\n\n8\n00:00:03,000 --> 00:00:04,000\nmi\n",
    ):
        engine.searched.clear()
        assert answer(asking, text) == text
        assert sorted(each for batch in engine.searched for each in batch) == ["ka lo", "mi"]
    assert "Too many texts: 4" in refusal(asking, "1. ka\n2. ka\n3. ka\n4. ka")
    assert "51 characters" in refusal(asking, "k" * 51)


@pytest.mark.parametrize("text", ["", " \n ", [], [{"type": "text", "text": ""}], '["", " "]'])
def test_a_chat_without_a_text_is_refused(asking: TestClient, text: object) -> None:
    assert refusal(asking, text).startswith("The chat has no text.")
    assert refusal(asking, "Translate to German:\n").startswith("The chat has no text.")


@pytest.mark.parametrize(
    ("field", "value", "harmless"),
    [
        ("n", 2, 1),
        ("tools", [{"type": "function"}], []),
        ("functions", [{}], None),
        ("audio", {"voice": "x"}, None),
        ("modalities", ["text", "audio"], ["text"]),
        ("logprobs", True, False),
        ("response_format", {"type": "json_object"}, {"type": "text"}),
    ],
)
def test_what_a_translation_cannot_be_is_refused(
    asking: TestClient, field: str, value: object, harmless: object
) -> None:
    assert refusal(asking, "ka", **{field: value}).startswith(f"{field}: ")
    assert answer(asking, "ka", **{field: harmless}) == "ka"


def test_other_fields_are_ignored(asking: TestClient) -> None:
    others = {"temperature": 0.2, "max_tokens": 1, "top_p": 0.1, "seed": 1, "thinking": {"a": []}}
    assert answer(asking, "ka lo", **others) == "ka lo"


def test_malformed_requests(asking: TestClient) -> None:
    for body, said in (
        ({"model": "en-de"}, "messages: field required."),
        ({"messages": "ka"}, "messages: input should be a valid list."),
        ({"messages": [{"content": "ka"}]}, "role: field required."),
        ({"messages": [{"role": "user", "content": 1}]}, "only text"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "only text"),
        ({"messages": [], "model": ["en-de"]}, "model: "),
    ):
        found = asking.post(COMPLETIONS, json=body)
        assert found.status_code == 400 and said in found.json()["error"]["message"], body
    assert asking.get(COMPLETIONS).json()["error"]["message"] == "Method not allowed. See /docs."
    assert "error" in asking.post("/v1/completions", json={}).json()
