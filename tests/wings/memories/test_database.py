"""Tests of transduce/wings/memories/database.py."""

import os
import random
import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from waiting import PATIENCE

pytest.importorskip("rapidfuzz", reason="pip install 'transduce[serve]'")
from transduce.system.errors import UserError
from transduce.wings.memories import database
from transduce.wings.memories.database import Database, Unit
from transduce.wings.memories.similarity import similarity, tokens

WORDS = [f"{first}{second}" for first in "bdfglmn" for second in ("a", "ei", "o", "u")]


@pytest.fixture
def memory(tmp_path: Path) -> Database:
    return Database(tmp_path / "memory.sqlite")


def said(memory: Database, text: str, owner: str = "", direction: str = "en-de") -> list[str]:
    [matches] = memory.matches([text], direction, owner)
    return [match.target for match in matches]


def test_an_exact_match_comes_alone_with_its_origin(memory: Database) -> None:
    memory.add([Unit("A dog runs.", "Hund", "m.tmx:3"), Unit("A dog sits.", "Sitz")], "en-de")
    [[match]] = memory.matches(["A  dog runs. "], "en-de")
    assert match == ("A dog runs.", "Hund", 1.0, "m.tmx:3")


def test_similar_units_come_with_their_scores_best_first(memory: Database) -> None:
    units = [Unit("A dog runs fast.", "1"), Unit("A dog runs.", "2"), Unit("No match at all!", "3")]
    memory.add(units, "en-de")
    [matches] = memory.matches(["A cat runs."], "en-de")
    assert [(match.target, match.score) for match in matches] == [("2", 0.75), ("1", 0.6)]


def test_capitals_alone_make_no_exact_match(memory: Database) -> None:
    memory.add([Unit("Stop!", "Halt!")], "en-de")
    [[match]] = memory.matches(["STOP!"], "en-de")
    assert match.score == 0.99


def test_of_several_translations_the_newest_comes_first(memory: Database) -> None:
    memory.add([Unit("Stop!", "Halt!"), Unit("Stop!", "Stopp!"), Unit("Go!", "Los!")], "en-de")
    assert said(memory, "Stop!") == ["Stopp!", "Halt!"]
    assert memory.contradictions("en-de") == 1
    assert memory.add([Unit("Stop!", "Halt!")], "en-de") == 0
    assert said(memory, "Stop!") == ["Halt!", "Stopp!"]


def test_directions_are_kept_apart(memory: Database) -> None:
    memory.add([Unit("Chat", "Unterhaltung")], "en-de")
    memory.add([Unit("Chat", "Katze")], "fr-de")
    assert said(memory, "Chat", direction="fr-de") == ["Katze"]
    assert said(memory, "Chat", direction="de-en") == []


def test_an_owner_sees_own_units_first_and_never_those_of_others(memory: Database) -> None:
    random_texts = random.Random(5)
    owners = ["", "anna", "bert", "cleo"]
    for number in range(400):
        owner = random_texts.choice(owners)
        text = " ".join(random_texts.choices(WORDS, k=random_texts.randint(1, 6)))
        memory.add([Unit(text, f"{owner}:{number}")], "en-de", owner)
    for _ in range(400):
        owner = random_texts.choice(owners)
        text = " ".join(random_texts.choices(WORDS, k=random_texts.randint(1, 6)))
        for target in said(memory, text, owner):
            assert target.split(":")[0] in ("", owner)
    memory.add([Unit("ba ba", "shared")], "en-de")
    memory.add([Unit("ba ba", "own")], "en-de", "anna")
    assert said(memory, "ba ba", "anna") == ["own", "shared"]
    assert said(memory, "ba ba", "bert") == ["shared"]


def test_the_index_finds_what_a_comparison_with_every_unit_finds(memory: Database) -> None:
    draw = random.Random(1)
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(3, 12))) for _ in range(1500)]
    memory.add([Unit(text, text) for text in texts], "en-de")
    found = 0
    asked = [" ".join([*draw.choice(texts).split()[:-1], "new"]) for _ in range(200)]
    for text in asked:
        best = max(similarity(tokens(text), tokens(each)) for each in texts)
        [matches] = memory.matches([text], "en-de")
        found += bool(matches) and matches[0].score == pytest.approx(best)
    assert found >= 196


@pytest.mark.parametrize("text", ["", " ", "…", '"', "' OR 1", "a*", "NEAR(a b)", "🙂", "\ud800"])
def test_any_text_can_be_looked_up_and_added(memory: Database, text: str) -> None:
    memory.add([Unit("A dog.", "Hund")], "en-de")
    assert memory.matches([text], "en-de") == [()]
    memory.add([Unit(text.encode("utf-8", "replace").decode(), "x")], "en-de")


def test_what_was_added_is_there_after_the_process_has_ended(memory: Database) -> None:
    memory.add([Unit("A dog.", "Hund", machine="Katze")], "en-de", "anna")
    again = Database(memory.path)
    assert said(again, "A dog.", "anna") == ["Hund"]
    [(direction, owner, unit)] = again.units()
    assert (direction, owner, unit.machine) == ("en-de", "anna", "Katze")


def test_a_waiting_unit_is_no_match_until_a_person_accepts_it(memory: Database) -> None:
    memory.add([Unit("A dog.", "x", state="waiting", reason="short")], "en-de")
    memory.add([Unit("A cat.", "y", state="waiting")], "en-de")
    assert said(memory, "A dog.") == []
    [(*_, dog), (*_, cat)] = memory.units("waiting")
    memory.decide(dog.id, "accepted")
    memory.decide(cat.id, "rejected")
    assert said(memory, "A dog.") == said(memory, "A dog!") == ["x"]
    assert said(memory, "A cat.") == ["x"]
    assert not [*memory.units("waiting")]
    for number in (dog.id, cat.id, 5):
        with pytest.raises(UserError, match=f"No correction {number} waits"):
            memory.decide(number, "accepted")


def test_a_file_replaces_only_its_own_units(memory: Database) -> None:
    memory.add([Unit("Go!", "Los!")], "en-de")
    memory.read_file("a.tmx", "1", [Unit("A dog.", "Hund"), Unit("A cat.", "Katze")], "en-de")
    memory.read_file("b.tmx", "1", [Unit("A cow.", "Kuh")], "en-de")
    memory.read_file("a.tmx", "1", [Unit("never read", "")], "en-de")
    assert said(memory, "A cat.") == ["Katze"]
    memory.read_file("a.tmx", "2", [Unit("A dog.", "Dogge")], "en-de")
    assert said(memory, "A dog.") == ["Dogge"]
    assert memory.count("en-de") == 3
    assert said(memory, "A cat.") == ["Dogge", "Kuh"]


def test_a_file_that_fails_halfway_changes_nothing(memory: Database) -> None:
    def broken() -> Any:
        yield Unit("A dog.", "Dogge")
        raise UserError("a.tmx:2: damaged.")

    memory.read_file("a.tmx", "1", [Unit("A dog.", "Hund")], "en-de")
    with pytest.raises(UserError, match="damaged"):
        memory.read_file("a.tmx", "2", broken(), "en-de")
    assert said(memory, "A dog.") == ["Hund"]


def test_threads_and_connections_share_a_memory(memory: Database) -> None:
    def add(name: str, of: Database) -> None:
        for number in range(20):
            of.add([Unit(f"{name} {number}", name)], "en-de")
            assert said(of, f"{name} {number}")[0] == name

    others = [Database(memory.path), memory, memory]
    threads = [
        threading.Thread(target=add, args=(name, of))
        for name, of in zip("abc", others, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert memory.count("en-de") == 60


def test_accepted_units_outlive_a_killed_process(tmp_path: Path) -> None:
    """Ten processes are killed at some moment; each had written a file beside the memory after each unit."""
    path, counted = tmp_path / "memory.sqlite", tmp_path / "count"
    Database(path)
    for attempt in range(10):
        counted.write_text("0")
        if not (child := os.fork()):
            memory = Database(path)
            for number in range(10_000):
                memory.add([Unit(f"{attempt} {number}", "x")], "en-de")
                counted.write_text(str(number + 1))
        while int(counted.read_text() or 0) < 3 * attempt:
            pass
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        known = {unit.source for *_, unit in Database(path).units()}
        assert known >= {f"{attempt} {number}" for number in range(int(counted.read_text() or 0))}
    memory = Database(path)
    assert all(said(memory, text) == ["x"] for text in known)
    sqlite3.connect(path).execute("INSERT INTO words_1 (words_1) VALUES ('integrity-check')")


def damaged(path: Path) -> None:
    path.write_bytes(b"no database" * 1000)


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [damaged, folder])
def test_a_file_that_is_no_database_is_named(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "m.sqlite"
    make(path)
    with pytest.raises(UserError, match=r"m\.sqlite: "):
        Database(path)


def test_a_full_disk_loses_nothing(memory: Database) -> None:
    memory.add([Unit("A dog.", "Hund")], "en-de")
    pages = memory._connection.execute("PRAGMA page_count").fetchone()[0]
    memory._connection.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(UserError, match="full"):
        memory.add([Unit(f"text {number}", "x" * 1000) for number in range(100)], "en-de")
    assert memory.count("en-de") == 1
    assert said(memory, "A dog.") == ["Hund"]


def test_frequent_words_are_not_searched_if_others_are_there(
    memory: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "MAX_POSTINGS", 10)
    memory.add([Unit(f"the {number} of it", "x") for number in range(100)], "en-de")
    memory.add([Unit("the dog of it", "Hund")], "en-de")
    assert said(memory, "the dog of mine")[0] == "Hund"
    assert len(said(memory, "the of it")) == database.MAX_MATCHES


def test_a_unit_of_two_files_stays_while_one_of_them_holds_it(memory: Database) -> None:
    for file in ("a.tmx", "b.tmx"):
        memory.read_file(file, "1", [Unit("A dog.", "Hund", file)], "en-de")
    assert said(memory, "A dog.") == said(memory, "A dog!") == ["Hund"]
    assert memory.contradictions("en-de") == 0
    memory.read_file("a.tmx", "2", [], "en-de")
    assert said(memory, "A dog.") == ["Hund"]
    memory.keep_files(["a.tmx"])
    assert said(memory, "A dog.") == said(memory, "A dog!") == []


def test_numbers_are_not_used_again(memory: Database) -> None:
    memory.add([Unit("A dog.", "Hund")], "en-de", "anna")
    [(_, _, first)] = memory.units()
    memory.delete("anna")
    memory.add([Unit("A cat.", "Katze")], "en-de", "bert")
    [(_, _, second)] = memory.units()
    assert second.number > first.number
