"""Glossaries of DeepL's protocol: transduce/wings/serving/deepl_glossaries.py and glossaries.py."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import transduce
from models import make_model
from servers import store_of
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")

from deepl_requests import refused, served, translated
from requests_of_tests import NOBODY, client
from transduce.system.errors import UserError
from transduce.wings.serving.api import application
from transduce.wings.serving.glossaries import ClientGlossary, Glossaries, Languages
from transduce.wings.serving.keys import Keys, add_key
from transduce.wings.serving.limits import Limits

DOG = {"source_lang": "EN", "target_lang": "DE", "entries": "dog\tHund\n", "entries_format": "tsv"}
CAT = DOG | {"entries": "cat,Katze\r\n\r\n", "entries_format": "csv"}
BACK = DOG | {"source_lang": "DE", "target_lang": "EN", "entries": "Hund\tdog"}
GONE = "4c3a2b1e-0000-4000-8000-000000000000"
TERMS = st.text("abc ä,\"'", min_size=1).map(str.strip).filter(bool)


@pytest.fixture
def asking(tokenizer: Tokenizer) -> Iterator[Any]:
    with served(tokenizer) as asking:
        yield asking


def made(asking: Any, version: int = 2, **fields: Any) -> Any:
    answer = asking.post(f"/v{version}/glossaries", json={"name": "animals"} | fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_both_versions_show_the_same_glossary(asking: Any) -> None:
    glossary = made(asking, **DOG)
    path = glossary["glossary_id"]
    assert (glossary["name"], glossary["ready"], glossary["entry_count"]) == ("animals", True, 1)
    assert (glossary["source_lang"], glossary["target_lang"]) == ("en", "de")
    for version in (2, 3):
        assert asking.get(f"/v{version}/glossaries/{path}").json() == glossary
        assert asking.get(f"/v{version}/glossaries").json() == {"glossaries": [glossary]}
    text = asking.get(f"/v2/glossaries/{path}/entries")
    assert text.headers["content-type"].startswith("text/tab-separated-values")
    assert text.text == "dog\tHund"
    pair = {"source_lang": "en", "target_lang": "de"}
    assert asking.get(f"/v3/glossaries/{path}/entries", params=pair).json() == {
        "dictionaries": [pair | {"entries": "dog\tHund", "entries_format": "tsv"}]
    }
    assert asking.delete(f"/v2/glossaries/{path}").status_code == 204
    for version in (2, 3):
        refused(asking.get(f"/v{version}/glossaries/{path}"), 404, path)


def test_forms_of_deepls_clients_hold_dictionaries(asking: Any) -> None:
    form = {f"dictionaries[0].{field}": value for field, value in DOG.items()}
    answer = asking.post("/v3/glossaries", data={"name": "animals"} | form)
    assert answer.json()["dictionaries"] == made(asking, 3, dictionaries=[DOG])["dictionaries"]
    assert asking.post("/v2/glossaries", data={"name": "animals"} | DOG).status_code == 201


def test_a_form_may_hold_several_dictionaries(tokenizer: Tokenizer) -> None:
    with served(tokenizer, "en", "pt_BR") as asking:
        form = {"name": "animals"} | {
            f"dictionaries[{i}].{field}": value
            for i, target in enumerate(("PT", "EN-GB"))
            for field, value in (DOG | {"target_lang": target}).items()
        }
        refused(asking.post("/v3/glossaries", data=form), 400, "must differ")
        form["dictionaries[1].target_lang"] = "pt-BR"
        form["dictionaries[1].entries"] = "cat\tgato\r\n\r\n"
        answer = asking.post("/v3/glossaries", data=form)
        pair = {"source_lang": "en", "target_lang": "pt", "entry_count": 2}
        assert answer.json()["dictionaries"] == [pair]


def test_v2_refuses_the_entries_of_several_language_pairs(tokenizer: Tokenizer) -> None:
    glossary = ClientGlossary(
        owner="",
        name="animals",
        dictionaries={Languages("en", "de"): {"dog": "Hund"}, Languages("de", "en"): {}},
    )
    glossaries = Glossaries()
    glossaries.save(glossary)
    with served(tokenizer, glossaries=glossaries) as asking:
        for place in ("", "/entries"):
            answer = asking.get(f"/v2/glossaries/{glossary.id}{place}")
            refused(answer, 404, "Use /v3/glossaries.")
        assert asking.get("/v2/glossaries").json() == {"glossaries": []}


def test_dictionaries_are_added_replaced_and_removed(asking: Any) -> None:
    path = f"/v3/glossaries/{made(asking, 3, dictionaries=[DOG])['glossary_id']}"
    pair = {"source_lang": "EN", "target_lang": "DE"}

    def entries() -> str:
        [found] = asking.get(f"{path}/entries", params=pair).json()["dictionaries"]
        return str(found["entries"])

    changed = asking.patch(path, json={"name": "beasts", "dictionaries": [CAT]}).json()
    assert (changed["name"], changed["dictionaries"][0]["entry_count"]) == ("beasts", 2)
    assert entries() == "dog\tHund\ncat\tKatze"
    assert asking.put(f"{path}/dictionaries", json=CAT).json()["entry_count"] == 1
    assert entries() == "cat\tKatze"
    assert asking.delete(f"{path}/dictionaries", params=pair).status_code == 204
    refused(asking.delete(f"{path}/dictionaries", params=pair), 404, "no dictionary from en to de")
    refused(asking.get(f"{path}/entries", params=pair), 404, "no dictionary from en to de")
    assert asking.get("/v2/glossaries").json() == {"glossaries": []}
    refused(asking.get(path.replace("v3", "v2")), 404, "Use /v3/glossaries.")
    assert len(asking.get("/v3/glossaries").json()["glossaries"]) == 1


def test_terms_are_used(tmp_path: Path) -> None:
    model = transduce.load(make_model(tmp_path / "model", {}), engine="torch")
    with client(application(store_of(model), NOBODY, Limits(), local=True)) as asking:
        first = made(asking, **DOG | {"entries": "ka\tlo"})["glossary_id"]
        second = made(asking, **DOG | {"entries": "ka\tmi"})["glossary_id"]

        def said(**fields: Any) -> list[str]:
            return str(translated(asking, "ka", **fields)[0]["text"]).split()

        assert "lo" in said(glossary_id=first, target_lang="DE-AT")
        assert "mi" in said(glossary_id=second)
        assert "lo" in said(glossary_ids=[first, second])
        assert "mi" in said(glossary_ids=f"{second},{first}")


def test_a_glossary_belongs_to_a_key(tokenizer: Tokenizer, tmp_path: Path) -> None:
    keys = tmp_path / "keys"
    alice, bob = (
        {"Authorization": f"DeepL-Auth-Key {add_key(keys, name)}"} for name in ("alice", "bob")
    )
    with served(tokenizer, keys=Keys(keys)) as asking:
        asked = DOG | {"name": "animals"}
        path = asking.post("/v2/glossaries", json=asked, headers=alice).json()["glossary_id"]
        for method, place in (
            ("GET", f"/v2/glossaries/{path}"),
            ("DELETE", f"/v3/glossaries/{path}"),
            ("PATCH", f"/v3/glossaries/{path}"),
        ):
            refused(asking.request(method, place, headers=bob), 404, path)
        assert asking.get("/v3/glossaries", headers=bob).json() == {"glossaries": []}
        fields = {"text": ["ka"], "target_lang": "DE", "source_lang": "EN", "glossary_id": path}
        refused(asking.post("/v2/translate", json=fields, headers=bob), 404, path)
        assert asking.post("/v2/translate", json=fields, headers=alice).status_code == 200


def test_glossaries_outlive_the_server(tokenizer: Tokenizer, tmp_path: Path) -> None:
    file = tmp_path / "glossaries.sqlite"
    with served(tokenizer, glossaries=Glossaries(file)) as asking:
        glossary = made(asking, **DOG)
        translated(asking, "ka lo")
    with served(tokenizer, glossaries=Glossaries(file)) as asking:
        assert asking.get("/v2/glossaries").json() == {"glossaries": [glossary]}
        assert asking.get("/v2/usage").json()["character_count"] == 5
    (tmp_path / "text").write_text("no database" * 100)
    with pytest.raises(UserError, match="text: file is not a database"):
        Glossaries(tmp_path / "text")


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"entries": "dog Hund"}, "Line 1 of the entries"),
        ({"entries": "dog\tHund\ncat\t"}, "Line 2 of the entries"),
        ({"entries": "dog\tHund\ndog\tHunde"}, "Line 2 of the entries, 'dog': expected a new term"),
        ({"entries": "\n\n"}, "entries"),
        ({"entries": "dog,Hund,en,fr", "entries_format": "csv"}, "the languages of the glossary"),
        ({"entries": 'dog,"' + "x" * 200_000, "entries_format": "csv"}, "not CSV"),
        ({"entries": 'dog,Hund\n"a\tcat",Katze', "entries_format": "csv"}, "Line 2 of the entries"),
        (
            {"entries": '"dog",Hund\n"a\ncat",Katze', "entries_format": "csv"},
            "Line 2 of the entries",
        ),
        ({"entries": f"dog\t{'x' * 201}"}, "200"),
        ({"entries_format": "xls"}, "'tsv' or 'csv'"),
        ({"name": ""}, "name"),
        ({"target_lang": "XX"}, "xx"),
        ({"target_lang": "EN"}, "must differ"),
    ],
)
def test_mistakes_in_glossaries(asking: Any, fields: dict[str, Any], part: str) -> None:
    refused(asking.post("/v2/glossaries", json=DOG | {"name": "animals"} | fields), 400, part)
    if "name" not in fields:
        asked = {"name": "animals", "dictionaries": [DOG | fields]}
        refused(asking.post("/v3/glossaries", json=asked), 400, part)


def test_the_csv_of_a_spreadsheet_may_begin_with_a_byte_order_mark(asking: Any) -> None:
    fields = {"entries": "\ufeffdog,Hund\r\n", "entries_format": "csv"}
    path = f"/v2/glossaries/{made(asking, **DOG | fields)['glossary_id']}/entries"
    assert asking.get(path).text == "dog\tHund"


def test_a_missing_field_is_named(asking: Any) -> None:
    asked = {"name": "animals", "source_lang": "EN", "target_lang": "DE"}
    refused(asking.post("/v2/glossaries", json=asked), 400, "entries: field required.")


def test_glossaries_that_are_gone(asking: Any) -> None:
    for place in ("", "/entries", "/entries?source_lang=en&target_lang=de"):
        refused(asking.get(f"/v2/glossaries/{GONE}{place}"), 404, GONE)
    asked = {"text": ["ka"], "target_lang": "DE", "source_lang": "EN", "glossary_id": GONE}
    refused(asking.post("/v2/translate", json=asked), 404, GONE)
    glossary = made(asking, **DOG)["glossary_id"]
    asked |= {"glossary_id": glossary, "source_lang": "DE"}
    refused(asking.post("/v2/translate", json=asked), 400, "no dictionary from de to de")


def test_language_pairs(asking: Any) -> None:
    assert asking.get("/v2/glossary-language-pairs").json() == {
        "supported_languages": [{"source_lang": "en", "target_lang": "de"}]
    }


@given(st.dictionaries(st.tuples(TERMS, TERMS), st.dictionaries(TERMS, TERMS)))
def test_what_is_kept_is_read_again(dictionaries: Any) -> None:
    glossaries = Glossaries()
    glossary = ClientGlossary(owner="owner", name="name", dictionaries=dictionaries)
    glossaries.save(glossary)
    assert glossaries.get("owner", glossary.id) == glossary
    assert glossaries.find("other") == []
