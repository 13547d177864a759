"""Tests of the server's translation memory and of corrections: transduce/wings/serving/corrections.py."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from servers import Echo, store_of
from transduce.tokens.tokenizer import Tokenizer

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
pytest.importorskip("rapidfuzz", reason="pip install 'transduce[serve]'")
from requests_of_tests import NOBODY, WORDED, client, translator_of
from transduce.wings.memories.database import Database, Unit
from transduce.wings.serving.api import application
from transduce.wings.serving.corrections import Contributors, Corrections
from transduce.wings.serving.keys import Keys, add_key
from transduce.wings.serving.limits import Limits

KA_ZU = {"source": "ka", "target": "zu"}


@pytest.fixture
def memory(tmp_path: Path) -> Database:
    memory = Database(tmp_path / "m.sqlite")
    memory.add([Unit("ka lo", "from the memory", "m.tmx:1")], "ka-zu")
    return memory


def served(
    tokenizer: Tokenizer,
    memory: Database,
    contributors: Contributors = "anyone",
    keys: Keys = NOBODY,
) -> Any:
    engine = Echo()
    engine.gate.set()
    store = store_of(translator_of(engine, tokenizer, "ka", "zu"))
    corrections = Corrections(memory, contributors)
    return client(application(store, keys, Limits(), local=True, corrections=corrections))


@pytest.fixture
def asking(tokenizer: Tokenizer, memory: Database) -> Iterator[Any]:
    with served(tokenizer, memory) as asking:
        yield asking


def ask(asking: Any, path: str, **fields: object) -> Any:
    answer = asking.post(path, json=KA_ZU | fields)
    assert answer.status_code == 200, answer.json()
    return answer.json()


def test_an_answer_names_the_units_that_it_comes_from(asking: Any) -> None:
    match = {"source": "ka lo", "target": "from the memory", "score": 1.0, "origin": "m.tmx:1"}
    assert ask(asking, "/translate", q="ka lo") == {
        "translatedText": "from the memory",
        "matches": [match],
    }
    several = ask(asking, "/translate", q=["nu", "ka  lo", "ka lo nu"])
    assert several["translatedText"] == ["nu", "from the memory", "ka lo nu"]
    assert several["matches"] == [[], [match], [match | {"score": pytest.approx(0.6667)}]]


def test_without_the_memory_the_answer_is_that_of_the_model(asking: Any) -> None:
    assert ask(asking, "/translate", q="ka lo", memory=False) == {"translatedText": "ka lo"}


def test_a_page_and_a_document_use_the_memory(asking: Any) -> None:
    page = ask(asking, "/translate", q="<p>ka lo</p>", format="html")
    assert page["translatedText"] == "<p>from the memory</p>"
    file = {"file": ("a.txt", b"ka lo\nnu\n")}
    for fields, line in (({}, "from the memory"), ({"memory": "false"}, "ka lo")):
        answer = asking.post("/translate_file", data=KA_ZU | fields, files=file)
        made = asking.get(answer.json()["translatedFileUrl"])
        assert made.text == f"{line}\nnu\n"


def test_a_correction_counts_at_once(asking: Any, memory: Database) -> None:
    kept = ask(asking, "/suggest", q="nu mi", s="corrected")
    assert kept == {"success": True, "state": "accepted"}
    found = ask(asking, "/translate", q="nu mi")
    assert found["translatedText"] == "corrected"
    assert found["matches"][0]["origin"] == "correction"
    [*_, (direction, owner, unit)] = memory.units()
    assert (direction, owner, unit.machine) == ("ka-zu", "", "nu mi")


def test_a_doubtful_correction_waits_for_a_person(asking: Any, memory: Database) -> None:
    kept = ask(asking, "/suggest", q="nu mi", s="much too long, " * 10 + "really")
    assert kept["success"] and kept["state"] == "waiting" and "longer" in kept["reason"]
    assert ask(asking, "/translate", q="nu mi")["translatedText"] == "nu mi"
    [(direction, _, unit)] = memory.units("waiting")
    assert (direction, unit.machine, unit.reason) == ("ka-zu", "nu mi", kept["reason"])
    memory.decide(unit.id, "accepted")
    assert ask(asking, "/translate", q="nu mi")["translatedText"] == unit.target


def test_what_a_person_has_rejected_stays_rejected(asking: Any, memory: Database) -> None:
    fields = {"q": "nu mi", "s": "much too long, " * 10 + "really"}
    ask(asking, "/suggest", **fields)
    [(_, _, unit)] = memory.units("waiting")
    memory.decide(unit.id, "rejected")
    assert ask(asking, "/suggest", **fields) == {"success": True, "state": "rejected"}
    assert ask(asking, "/translate", q="nu mi")["translatedText"] == "nu mi"


def test_what_the_memory_says_is_not_what_the_machine_had_said(
    asking: Any, memory: Database
) -> None:
    ask(asking, "/suggest", q="ka lo", s="better")
    [*_, (_, _, unit)] = memory.units()
    assert unit.machine == "ka lo"
    assert ask(asking, "/translate", q="ka lo")["translatedText"] == "better"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"q": "", "s": "x"}, 400),
        ({"q": "x", "s": "  "}, 400),
        ({"q": "x"}, 400),
        ({"q": "x", "s": "y" * 20_001}, 400),
        ({"q": "x", "s": "y", "target": "ka"}, 400),
        ({"q": "x", "s": "y", "target": "xx"}, 400),
    ],
)
def test_refused_corrections(asking: Any, fields: dict[str, str], status: int) -> None:
    answer = asking.post("/suggest", json=KA_ZU | fields)
    assert answer.status_code == status
    assert answer.json()["error"].endswith(".")


@pytest.mark.parametrize("contributors", ["keys", "nobody"])
def test_clients_without_a_key_teach_only_if_the_operator_says_so(
    tokenizer: Tokenizer, memory: Database, contributors: Contributors
) -> None:
    with served(tokenizer, memory, contributors) as asking:
        answer = asking.post("/suggest", json=WORDED | {"s": "x"})
        assert answer.status_code == 403
        assert not asking.get("/frontend/settings").json()["suggestions"]
    assert memory.count("ka-zu") == 1


def test_a_server_without_a_memory_has_no_route(tokenizer: Tokenizer) -> None:
    store = store_of(translator_of(Echo(), tokenizer, "ka", "zu"))
    with client(application(store, NOBODY, Limits(), local=True)) as asking:
        assert asking.post("/suggest", json=WORDED | {"s": "x"}).status_code == 404
        assert not asking.get("/frontend/settings").json()["suggestions"]


def test_no_key_ever_sees_the_corrections_of_another(
    tokenizer: Tokenizer, memory: Database, tmp_path: Path
) -> None:
    path = tmp_path / "keys"
    keys = {name: add_key(path, name) for name in ("anna", "bert")}
    draw = random.Random(3)
    texts = [" ".join(draw.choices(["ka", "lo", "mi", "nu"], k=4)) for _ in range(40)]
    with served(tokenizer, memory, "keys", Keys(path)) as asking:
        assert asking.get("/frontend/settings").json()["suggestions"]
        for number, text in enumerate(texts):
            name = draw.choice([*keys])
            fields = WORDED | {"q": text, "s": f"{name} {number}"}
            headers = {"Authorization": f"Bearer {keys[name]}"}
            assert asking.post("/suggest", json=fields, headers=headers).status_code == 200
        for name, key in keys.items():
            headers = {"X-API-Key": key}
            answer = asking.post("/translate", json=WORDED | {"q": texts}, headers=headers).json()
            origins = {each["origin"] for its in answer["matches"] for each in its}
            assert origins <= {f"correction by {name}", "m.tmx:1"}
            assert f"correction by {name}" in origins


def test_a_damaged_memory_is_a_fault_of_the_server(asking: Any, memory: Database) -> None:
    with memory.writing() as connection:
        connection.execute("DROP TABLE units")
    for path in ("/translate", "/suggest"):
        answer = asking.post(path, json=WORDED | {"s": "x"})
        assert answer.status_code == 503
        assert str(memory.path) not in answer.text
