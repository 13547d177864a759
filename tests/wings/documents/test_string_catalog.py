"""Hand-computed values of transduce/wings/documents/string_catalog.py."""

import json
from typing import Any

import pytest

from transduce.system.errors import UserError
from transduce.text.formats import read_document


def unit(value: str, state: str = "translated") -> dict[str, Any]:
    return {"stringUnit": {"state": state, "value": value}}


def catalog(**strings: Any) -> bytes:
    return json.dumps({"sourceLanguage": "en", "strings": strings, "version": "1.0"}).encode()


@pytest.mark.parametrize(
    ("german", "is_translated"),
    [
        (unit("Hallo"), True),
        (unit("Hallo", "needs_review"), True),
        (unit("Hallo", "new"), False),
        (unit("", "translated"), False),
        ({"variations": {"plural": {"one": unit("ein"), "other": unit("", "new")}}}, False),
        ({}, False),
    ],
)
def test_a_translation_counts_by_its_state(german: Any, is_translated: bool) -> None:
    data = catalog(Hello={"localizations": {"de": german}})
    assert read_document(data, "a.xcstrings", "en", "de").texts == (
        [] if is_translated else ["Hello"]
    )
    again = read_document(data, "a.xcstrings", "en", "de", redo=True)
    made = json.loads(again.write(["Guten Tag"]))["strings"]["Hello"]["localizations"]
    assert made == {"de": unit("Guten Tag")}


def test_new_translations_are_marked_for_a_review() -> None:
    data = catalog(Hello={})
    document = read_document(data, "a.xcstrings", "en", "pt-BR", needs_review=True)
    made = json.loads(document.write(["Olá"]))["strings"]["Hello"]
    assert made == {"localizations": {"pt-BR": unit("Olá", "needs_review")}}


def test_entries_that_must_stay() -> None:
    data = catalog(A={"shouldTranslate": False}, B={"localizations": "x"}, C=3)
    assert read_document(data, "a.xcstrings", "en", "de").texts == []
    no_object = b'{"sourceLanguage": "en", "strings": "abc"}'
    assert read_document(no_object, "a.xcstrings", "en", "de").texts == []
    with pytest.raises(UserError, match="is not a string catalog"):
        read_document(b'{"strings": {}}', "a.xcstrings", "en", "de")
    with pytest.raises(UserError, match="declares translation from 'en'"):
        read_document(data, "a.xcstrings", "fr", "de")


def test_an_entry_keeps_its_other_values_and_line_ends() -> None:
    data = catalog(A={"comment": "c", "localizations": {"fr": unit("B")}})
    data = json.dumps(json.loads(data), indent=2).replace("\n", "\r\n").encode()
    written = read_document(data, "a.xcstrings", "en", "de").write(["C"])
    assert b"\n" not in written.replace(b"\r\n", b"")
    entry = json.loads(written)["strings"]["A"]
    assert entry == {"comment": "c", "localizations": {"fr": unit("B"), "de": unit("C")}}


@pytest.mark.parametrize(
    "entry",
    [
        '{ "comment":"{1.50}\\u00e4",\t"localizations":{"fr":{"stringUnit" : {"value":"B"}}} }',
        '{"localizations" : {}, "x" : [1.0, 1e2]}',
        '{"x":"y"}',
        "{ }",
        '{"localizations":{"de":{"stringUnit":{"state":"new","value":""}},"fr":{}}}',
    ],
)
def test_everything_but_the_new_localisation_stays_the_same_bytes(entry: str) -> None:
    content = f'{{"sourceLanguage":"en","strings":{{"A{{0}}":{entry}, "B":3}}}}'
    document = read_document(content.encode(), "a.xcstrings", "en", "de")
    written = document.write(["{0} C"]).decode()
    [slot] = document.slots
    assert written.startswith(content[: slot.begin]) and written.endswith(content[slot.end :])
    before, after = (json.loads(each)["strings"]["A{0}"] for each in (content, written))
    before.setdefault("localizations", {})["de"] = unit("{0} C")
    assert after == before
