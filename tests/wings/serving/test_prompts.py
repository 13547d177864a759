"""What prompts state, which are refused, and batches that keep their form."""

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")

from transduce.system.errors import UserError
from transduce.wings.serving.prompts import Prompt, find_language, read_batch, read_prompt

TEXTS = st.text(st.characters(categories=["L", "N", "P", "Zs"])).filter(
    lambda text: "".join(text.split()).strip('"') != ""
)


@pytest.mark.parametrize(
    ("system", "user", "source", "target"),
    [
        ("", "A dog.", "", ""),
        (" \n", "A dog.", "", ""),
        ("", "Translate to German:\n\n\nA dog.", "", "German"),
        ("", "\ntranslate from English into de :\r\nA dog.", "English", "de"),
        ("", "Translate to German：\nA dog.", "", "German"),
        ("Translate to German:", "A dog.", "", "German"),
        ("Translate to German:\n\n## Rules\n1. Only the translation.", "A dog.", "", "German"),
        ('{"target_lang": "de"}', "A dog.", "", "de"),
        ("", '{"target_lang": "de", "source_lang": "en", "text": "A dog."}', "en", "de"),
        ("", '{"text": "A dog.", "to": "German", "from": "auto"}', "auto", "German"),
        ("", '{"text": "A dog.", "to": "German", "from": null}', "", "German"),
        ("Translate from English to French:", "Translate to German:\nA dog.", "English", "German"),
    ],
)
def test_stated_forms_name_languages(system: str, user: str, source: str, target: str) -> None:
    assert read_prompt(system, user) == Prompt("A dog.", source, target)


def test_a_list_of_texts_with_a_target_stays_a_list() -> None:
    assert read_prompt("", '{"target": "de", "text": ["ä", "b"]}').text == '["ä", "b"]'


def test_null_and_numbers_are_no_text() -> None:
    assert read_prompt('{"target": "de", "text": null}', "A dog.") == Prompt("A dog.", "", "de")
    assert read_prompt("", '{"target": "de", "text": null}').text == ""
    with pytest.raises(UserError, match="does not understand the JSON"):
        read_batch(read_prompt("", '{"target": "de", "text": 5}').text)


@pytest.mark.parametrize(
    "line",
    [
        "Translate to German: A dog.",
        "Please translate the following text into German.",
        "Translate the following text into zh-CN:",
        "## Translate from English to de",
        "You are a professional German native translator.",
        "Übersetze ins Deutsche:",
        "Bitte übersetzen Sie den Text auf Englisch.",
        "Traduis en allemand : un chien",
        "Traduce al inglés:",
        "Traduci in tedesco:",
        "Traduza para o inglês:",
        "Vertaal naar het Engels:",
        "Översätt till tyska:",
        "Przetłumacz na język niemiecki:",
        "Přelož do angličtiny:",
        "Käännä englanniksi:",
        "Переведи на английский:",
        "Переклади англійською:",
        "Dịch sang tiếng Anh:",
        "Metni İngilizceye çevir:",
        "请将以下文本翻译成英文：",
        "翻译成德语:",
        "翻譯成英文",
        "次の文を英語に翻訳してください。",
        "다음 문장을 영어로 번역해 주세요.",
    ],
)
def test_an_instruction_is_refused_and_never_a_text(line: str) -> None:
    for user in (line, f"\n{line}\nA dog runs."):
        with pytest.raises(UserError, match="begins with an instruction") as error:
            read_prompt("", user)
        assert "{{text}}" in str(error.value) and "`Translate to German:`" in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "Translate this sentence with care.",
        "Translate this crossword for idols.",
        "I translate from German into English.",
        "A dog.\nTranslate to German:",
        "Translators of German live here.",
        "Übersetzungen ins Deutsche sind teuer.",
        "You are a German shepherd.",
        "翻译下文",
        "[x] not JSON {",
        "1. Translate to German:",
    ],
)
def test_a_text_is_a_text(text: str) -> None:
    assert read_prompt("", text) == Prompt(text)


def test_a_system_message_in_no_stated_form_is_refused() -> None:
    for system in ("You translate.", "Translate well:", '{"a": "de"}', "Rules:\nTranslate to de:"):
        with pytest.raises(UserError, match="does not understand the system message"):
            read_prompt(system, "A dog.")


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("a b\nc\n", ["a b\nc\n"]),
        ("1. a\n2. b", ["a\n", "b"]),
        (" 1) a\n\n 2)  b\nc\n", ["a\n\n", "b\nc\n"]),
        ("[1] a\n[2]b", ["a\n", "b"]),
        ("#1 a\n#2: b", ["a\n", "b"]),
        ("1: a\n2: b", ["a\n", "b"]),
        ("1、a\n2、b", ["a\n", "b"]),
        ("1 | a\n2|b", ["a\n", "b"]),
        ("(1) a\n<2> b", ["a\n", "b"]),
        ("1.\n2. b", ["b"]),
        ("1.5 a", ["1.5 a"]),
        ("a\n1. b", ["a\n1. b"]),
        ("a\n\n%%\n\nb %% c", ["a\n\n", "b %% c"]),
        ("1\n00:00:01,000 --> 00:00:02,000\na\n\n2\n00:03 --> 00:04\nb\n", ["a\n\n", "b\n"]),
        ('["a", "b\\n\\u00e4",\n "" ]', ["a", "b\nä"]),
        ('{"1": "a", "2":"b \\"1\\": c"}', ["a", 'b "1": c']),
        ('["\\ud800"]', ['["\\ud800"]']),
        ("[]", []),
        ("{}", []),
        (" \n", []),
    ],
)
def test_batches(text: str, texts: list[str]) -> None:
    batch = read_batch(text)
    assert batch.texts == texts
    marked = batch.written([f"<{each}>" for each in texts])
    for each in texts:
        if not batch.is_json:
            assert f"<{each}>" in marked
            marked = marked.replace(f"<{each}>", each)
    if batch.is_json:
        values = json.loads(marked)
        found = [*values.values()] if isinstance(values, dict) else values
        assert [each for each in found if each] == [f"<{each}>" for each in texts]
    else:
        assert marked == text, "the form stays byte for byte"


@given(st.text('1.) [#%\n>-:x|"{,'))
def test_a_message_and_its_texts_make_up_the_message(text: str) -> None:
    try:
        batch = read_batch(text)
    except UserError:
        assert json.loads(text) is not None
        return
    assert batch.is_json or batch.written(batch.texts) == text


@given(st.lists(TEXTS), st.sampled_from([None, 2]), st.booleans())
def test_lists_in_json(texts: list[str], indent: int | None, is_ascii: bool) -> None:
    batch = read_batch(json.dumps(texts, indent=indent, ensure_ascii=is_ascii))
    assert batch.texts == texts
    assert batch.written(batch.texts) == json.dumps(texts, indent=indent, ensure_ascii=False)


@given(st.lists(TEXTS, min_size=1, max_size=9))
def test_numbered_lines(texts: list[str]) -> None:
    texts = [" ".join(text.split()) for text in texts]
    batch = read_batch("".join(f"{i}. {text}\n" for i, text in enumerate(texts, 1)))
    assert [each.rstrip("\n") for each in batch.texts] == texts


@pytest.mark.parametrize("text", ['{"a": "b"}', '["a", 1]', '[["a"]]', '{"1": 2}'])
def test_other_json_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="does not understand the JSON"):
        read_batch(text)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("de", "de"),
        ("DE-AT", "de"),
        ("German", "de"),
        ("german", "de"),
        ("French", ""),
        ("Simplified Chinese", "zh_Hans"),
        ("Chinese (Traditional)", "zh_Hant"),
        ("Simplified Mandarin Chinese", "zh_Hans"),
        ("zh-TW", "zh_Hant"),
        ("Brazilian Portuguese", "pt"),
        ("", ""),
    ],
)
def test_languages_by_code_and_name(name: str, code: str) -> None:
    assert find_language(name, ["de", "zh_Hans", "zh_Hant", "pt"]) == code


def test_a_script_is_not_taken_for_another() -> None:
    assert find_language("Traditional Chinese", ["zh_Hans"]) == ""
    assert find_language("Traditional Chinese", ["zh"]) == "zh"


@pytest.mark.parametrize(
    "text",
    [
        "translate from " + "a to " * 200_000,
        "translate to" + " " * 1_000_000,
        "\n" * 1_000_000,
        "[" * 500_000,
        "[" + '"a",' * 200_000,
        "1" * 1_000_000,
        "1. " * 300_000,
        "1\n" * 500_000,
        "you are a " * 100_000,
        " " * 1_000_000 + "%",
    ],
)
def test_hostile_messages_take_no_time(text: str) -> None:
    start = time.monotonic()
    for system in ("", text):
        with contextlib.suppress(UserError):
            read_batch(read_prompt(system, text).text)
    assert time.monotonic() - start < 2
