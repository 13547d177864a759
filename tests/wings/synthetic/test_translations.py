"""A journal keeps translations, whatever interrupts a call."""

import json
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest

from transduce import model_folder
from transduce.config.parse import configure
from transduce.decoding.plan import GUESSED, LONG, LOST, OTHER_NUMBERS
from transduce.decoding.types import CUT, DETACHED, EMPTY, LOOP, UNTRANSLATED, Translation
from transduce.system.errors import UserError
from transduce.text.pairs import Origin, Pair
from transduce.wings.synthetic import translations
from transduce.wings.synthetic.translations import begin, check_plain, licence_of, translated

FLAGS = {
    "cut": (DETACHED, CUT),
    "loop": (LOOP,),
    "detached": (DETACHED,),
    "lost": (OTHER_NUMBERS, LOST),
    "guessed": (GUESSED,),
    "empty": (EMPTY,),
    "long": (LONG,),
    "foreign": (UNTRANSLATED,),
}
SOURCES = ["plain", "cut", "loop", "detached", "plain"]
CALL = {"model": "m", "beam": 4}
EXPECTED = [
    ("t1", "plain", "<plain>", ""),
    ("t2", "cut", "<cut>", "cut-off"),
    ("t3", "loop", "<loop>", "cut-off"),
    ("t4", "detached", "<detached>", ""),
    ("t5", "plain", "<plain>", ""),
]
Row = tuple[str, str, str, str]


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translations, "CHUNK_LINES", 3)


def run(
    path: Path, *, sources: Sequence[str] = SOURCES, count: int = 9, **changes: object
) -> tuple[list[Row], list[list[str]]]:
    """The first `count` translations, and what was translated together to get them."""
    call = CALL | changes
    calls: list[list[str]] = []

    def translate(texts: Sequence[str]) -> list[Translation]:
        calls.append(list(texts))
        return [Translation(f"<{text}>", -1.0, (), flags=FLAGS.get(text, ())) for text in texts]

    pairs = (Pair(text, f"t{line}", Origin("f", line)) for line, text in enumerate(sources, 1))
    found = translated(pairs, translate, begin(path, call), path, call)
    rows = [(p.target, e["source"], e["text"], e["bad"]) for p, e in islice(found, count)]
    found.close()
    return rows, calls


def test_translations_that_are_cut_off_or_repeat_themselves_are_bad(tmp_path):
    assert run(tmp_path / "j") == (EXPECTED, [["plain", "cut", "loop"], ["detached", "plain"]])
    [first, *events] = map(json.loads, (tmp_path / "j").read_text().splitlines())
    assert {name: first[name] for name in ("event", *CALL)} == {"event": "beginning", **CALL}
    assert [(each["source"], each["text"], each["bad"]) for each in events] == [
        row[1:] for row in EXPECTED
    ]


def test_a_translation_that_is_a_copy_or_lost_a_placeholder_is_bad(tmp_path):
    names = [*FLAGS][3:]
    rules = ["placeholders", "placeholders", "empty", "too-long", "copied"]
    assert [row[3] for row in run(tmp_path / "j", sources=names)[0]] == rules


@pytest.mark.parametrize("count", range(1, 6))
def test_an_interrupted_call_translates_only_what_is_missing(count, tmp_path):
    assert run(tmp_path / "j", count=count)[0] == EXPECTED[:count]
    with (tmp_path / "j").open("a") as file:
        file.write('{"event": "translation", "sou')  # killed while writing
    rows, calls = run(tmp_path / "j")
    assert rows == EXPECTED and [text for texts in calls for text in texts] == SOURCES[count:]
    assert len((tmp_path / "j").read_text().splitlines()) == 6, "it begins once"
    assert run(tmp_path / "j") == (EXPECTED, [])


def test_an_empty_journal_has_no_translations(tmp_path):
    (tmp_path / "journal").touch()
    assert list(begin(tmp_path / "journal", {"a": 1})) == []


def test_a_journal_of_another_call_or_corpus_is_refused(tmp_path):
    run(tmp_path / "j", count=2)
    for changes in ({"beam": 5}, {"model": "n"}, {"more": 1}):
        with pytest.raises(UserError, match="made with another model, engine, text or options"):
            run(tmp_path / "j", **changes)
    with pytest.raises(UserError, match="damaged or of another corpus"):
        run(tmp_path / "j", sources=["plain", "other"])
    kept = (tmp_path / "j").read_text()
    for old, new in (("<cut>", "<cat>"), ('"bad": "cut-off"', '"bad": ""'), ('"check"', '"chick"')):
        assert old in kept
        (tmp_path / "j").write_text(kept.replace(old, new))
        with pytest.raises(UserError, match="damaged or of another corpus"):
            run(tmp_path / "j")


def test_a_file_that_is_no_plain_text_is_refused():
    check_plain(["a.txt", "b.yy", "c"], "texts")
    for name in ("a.tsv", "a.po", "a.pot", "a.html", "a.srt"):
        with pytest.raises(UserError, match=f"{name} is not plain text") as error:
            check_plain(["a.txt", name], "texts")
        assert error.value.hint and error.value.hint.options == ("texts",)


def test_translations_have_the_licences_of_all_models(tmp_path):
    for name, licence in (("a", "mit"), ("b", ""), ("c", "cc-by-4.0 and mit"), ("d", "")):
        (tmp_path / name).mkdir()
        model_folder.write_config(tmp_path / name, configure({"data.licence": licence}))
    for names, licence in (("bd", ""), ("ab", "mit"), ("acb", "mit and cc-by-4.0")):
        assert licence_of([tmp_path / name for name in names]) == licence
