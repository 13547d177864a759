"""DeepL's protocol: transduce/wings/serving/deepl.py."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")

from deepl_requests import refused, served, translated
from requests_of_tests import NOBODY, client, translator_of
from servers import Echo, store_of
from transduce.wings.serving.api import application
from transduce.wings.serving.keys import Keys, add_key
from transduce.wings.serving.limits import Limits


@pytest.fixture
def asking(tokenizer: Tokenizer) -> Iterator[Any]:
    with served(tokenizer) as asking:
        yield asking


def test_texts_keep_their_order(asking: Any) -> None:
    found = translated(
        asking,
        "ka lo",
        "mi",
        "",
        show_billed_characters=True,
        model_type="prefer_quality_optimized",
    )
    assert [each["text"] for each in found] == ["ka lo", "mi", ""]
    assert [each["billed_characters"] for each in found] == [5, 2, 0]
    assert {each["detected_source_language"] for each in found} == {"EN"}
    assert {each["model_type_used"] for each in found} == {"quality_optimized"}


def test_forms_and_query_strings_ask_as_json_does(asking: Any) -> None:
    fields = {
        "text": ["ka lo", "mi"],
        "target_lang": "DE",
        "tag_handling": "xml",
        "ignore_tags": "x,y",
    }
    answers = [
        asking.post("/v2/translate", json=fields | {"ignore_tags": ["x", "y"]}),
        asking.post("/v2/translate", data=fields),
        asking.post("/v2/translate", params=fields),
        asking.get("/v2/translate", params=fields),
    ]
    assert [answer.status_code for answer in answers] == [200] * 4, answers[0].text
    assert len({answer.text for answer in answers}) == 1


def test_xml(asking: Any) -> None:
    text = "<d><p>ka <b>lo</b>.</p> <x>mi</x><p>mi <x>lo &amp;</x> ka</p></d>"
    [found] = translated(asking, text, tag_handling="xml", ignore_tags=["x"])
    assert found["text"] == text


@pytest.mark.parametrize("tags", [["x", " y"], ["x", "y", ""], "x, y", ["x,y"]])
def test_names_of_tags_as_clients_send_them(asking: Any, tags: Any) -> None:
    text = "<d>ka <x>lo</x> <y>&#x6d;i</y></d>"
    [found] = translated(asking, text, tag_handling="xml", ignore_tags=tags)
    assert found["text"] == text


def test_html_and_its_attributes(asking: Any) -> None:
    text = '<p title="ka">ka <b>lo</b>.<br><span class=x>mi</span></p>'
    for fields in ({}, {"ignore_tags": ["span"]}, {"split_sentences": "0"}):
        [found] = translated(asking, text, tag_handling="html", **fields)
        assert found["text"] == text


def test_sentences_are_split_as_asked(asking: Any) -> None:
    text = "ka lo\nmi. ka"
    for split, expected in (("1", text), ("nonewlines", "ka lo mi. ka"), ("0", "ka lo mi. ka")):
        [found] = translated(asking, text, split_sentences=split)
        assert found["text"] == expected


def test_a_text_can_be_one_sentence(tokenizer: Tokenizer) -> None:
    engine = Echo()
    engine.gate.set()
    store = store_of(translator_of(engine, tokenizer, "en", "de"))
    with client(application(store, NOBODY, Limits(), local=True)) as asking:
        translated(asking, "ka lo. mi ka.", split_sentences="0")
        assert "ka lo. mi ka." in engine.searched[0] and "mi ka." not in engine.searched[0]
        translated(asking, "ka lo. mi ka.")
        assert any("mi ka." in batch for batch in engine.searched)


def test_fields_that_change_nothing_are_accepted(asking: Any) -> None:
    fields = {
        "context": "A letter.",
        "preserve_formatting": True,
        "formality": "prefer_more",
        "tag_handling_version": "v2",
        "enable_beta_languages": False,
        "model_type": "latency_optimized",
    }
    assert translated(asking, "ka", **fields)[0]["text"] == "ka"


@pytest.mark.parametrize(
    ("source", "targets", "codes"),
    [
        ("en", ["DE", "de-AT"], ("EN", ["DE"])),
        ("pt_BR", ["EN-US", "EN-GB", "EN"], ("PT", ["EN-GB", "EN-US"])),
        ("zh_Hans", ["PT-BR", "PT-PT"], ("ZH", ["PT-BR", "PT-PT"])),
        ("de", ["ZH", "ZH-HANS"], ("DE", ["ZH-HANS"])),
    ],
)
def test_codes_are_deepls(
    tokenizer: Tokenizer, source: str, targets: list[str], codes: tuple[str, list[str]]
) -> None:
    target = codes[1][0].partition("-")[0].lower() if "HANS" not in codes[1][0] else "zh_Hans"
    with served(tokenizer, source, target) as asking:
        for each in targets:
            [found] = translated(asking, "ka lo", source_lang=codes[0], target_lang=each)
            assert found == {"detected_source_language": codes[0], "text": "ka lo"}
        listed = asking.get("/v2/languages").json()
        assert [each["language"] for each in listed] == [codes[0]]
        listed = asking.post("/v2/languages", data={"type": "target"}).json()
        assert [each["language"] for each in listed] == codes[1]
        assert not any(each["supports_formality"] for each in listed)


def test_languages_are_detected(asking: Any) -> None:
    texts = ["The dog runs across the street.", "12:30"]
    found = translated(asking, *texts, source_lang=None)
    assert [each["detected_source_language"] for each in found] == ["EN", "EN"]
    [same] = translated(asking, "Der Hund rennt.", source_lang="DE")
    assert same == {"detected_source_language": "DE", "text": "Der Hund rennt."}
    [same] = translated(asking, "A dog runs.", target_lang="EN-GB")
    assert same == {"detected_source_language": "EN", "text": "A dog runs."}


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"text": []}, "text: value should have at least 1 item"),
        ({"text": ["ka"] * 51}, "text: value should have at most 50 items"),
        ({"text": None}, "text"),
        ({"text": ["ka" * 10_001]}, "20,000"),
        ({"target_lang": "XX"}, "XX"),
        ({"target_lang": None}, "target_lang"),
        ({"source_lang": "XX"}, "XX"),
        ({"formality": "more"}, "formality: input should be 'default', 'prefer_more'"),
        ({"formality": "rude"}, "formality"),
        ({"split_sentences": "2"}, "split_sentences"),
        ({"tag_handling": "md"}, "tag_handling"),
        ({"style_id": "a"}, "style_id"),
        ({"custom_instructions": ["Be brief."]}, "custom_instructions"),
        ({"ignore_tags": ["x", 5]}, "ignore_tags"),
        ({"text": 5}, "text"),
        ({"source_lang": None, "glossary_id": "a"}, "source_lang"),
    ],
)
def test_mistakes_get_deepls_form_of_error(asking: Any, fields: dict[str, Any], part: str) -> None:
    asked = {"text": ["ka"], "target_lang": "DE", "source_lang": "EN"} | fields
    answer = asking.post("/v2/translate", json={k: v for k, v in asked.items() if v is not None})
    refused(answer, 400, part)


def test_other_features_of_deepl_are_missing(asking: Any) -> None:
    for path in ("/v2/write/rephrase", "/v3/style_rules", "/v2/translate/x", "/v3/voice"):
        refused(asking.post(path, json={}), 404, "does not have")
    refused(asking.put("/v2/translate", json={}), 405, "Method not allowed")


def test_keys(tokenizer: Tokenizer, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys", "alice")
    with served(tokenizer, keys=Keys(tmp_path / "keys")) as asking:
        for header in ({}, {"Authorization": "DeepL-Auth-Key wrong"}):
            refused(asking.get("/v2/usage", headers=header), 403, "API key")
        for sent in (
            {"headers": {"Authorization": f"DeepL-Auth-Key {key}"}},
            {"params": {"auth_key": key}},
        ):
            assert asking.get("/v2/usage", **sent).status_code == 200
        assert asking.post("/v2/usage", data={"auth_key": key}).status_code == 200


def test_characters_are_counted_for_each_key(tokenizer: Tokenizer, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    alice, bob = (
        {"Authorization": f"DeepL-Auth-Key {add_key(keys, name)}"} for name in ("alice", "bob")
    )
    asked = {"text": ["ka lo", "mi"], "target_lang": "DE", "source_lang": "EN"}
    with served(tokenizer, keys=Keys(keys), month_characters=9) as asking:
        assert asking.post("/v2/translate", json=asked, headers=alice).status_code == 200
        refused(asking.post("/v2/translate", json=asked, headers=alice), 456, "9 characters")
        refused(
            asking.post("/v2/translate", json=asked | {"target_lang": "XX"}, headers=bob), 400, "XX"
        )
        usages = [asking.get("/v2/usage", headers=each).json() for each in (alice, bob)]
        assert [each["character_count"] for each in usages] == [7, 0]
        assert {each["character_limit"] for each in usages} == {9}


def test_errors_of_limits_have_deepls_form(tokenizer: Tokenizer) -> None:
    asked = {"text": ["ka"], "target_lang": "DE"}
    with served(tokenizer, body=90) as asking:
        refused(asking.post("/v2/translate", json=asked | {"context": "x" * 90}), 413, "90 bytes")
        refused(asking.get("/v2/translate", headers={"Sec-Fetch-Site": "cross-site"}), 403, "pages")
        refused(
            asking.put("/v3/glossaries/x", headers={"Sec-Fetch-Site": "cross-site"}), 403, "pages"
        )
