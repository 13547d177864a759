"""Tests of transduce/commands/recipes.py."""

import pytest

from transduce.commands.recipes import gather, with_languages


@pytest.mark.parametrize(
    ("train", "languages", "assignments", "expected"),
    [
        (["a/train.en", "train.de.gz"], ("", ""), [], ("en", "de")),
        (["train.de", "train.pt-BR"], ("", ""), [], ("de", "pt-BR")),
        (["is/Tatoeba.de-en.en.txt.gz", "is/Tatoeba.de-en.de.txt.gz"], ("", ""), [], ("en", "de")),
        (["train.en", "train.de"], ("fr", ""), [], ("fr", None)),
        (["train.en", "train.de"], ("en", ""), [], ("en", "de")),
        (["train.en", "train.de"], ("", "de"), [], ("en", "de")),
        (["train.en", "train.de"], ("", ""), ["data.target=fr"], (None, "fr")),
        (["train.src", "train.de"], ("", ""), [], (None, None)),
        (["one.en", "other.en"], ("", ""), [], (None, None)),
        (["train.en.tsv"], ("", ""), [], (None, None)),
    ],
)
def test_names_of_files_say_the_languages_where_nothing_else_does(
    train, languages, assignments, expected
):
    given = with_languages(
        gather(None, train=train, valid=[], test=[], languages=languages, assignments=assignments),
        train,
    )
    assert (given.get("data.source"), given.get("data.target")) == expected


def test_the_command_line_wins_over_the_recipe(tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        '[data]\nsource = "en"\ntarget = "de"\ntest = ["a", "b"]\n[train]\nsteps = 5\nminutes = 1.0\n'
    )
    given = gather(
        str(recipe),
        train=["c.tsv"],
        valid=[],
        test=["d", "e"],
        languages=("", "fr"),
        assignments=["train.steps=6"],
    )
    assert given == {
        "data.corpora": [{"files": ["c.tsv"]}],
        "data.source": "en",
        "data.target": "fr",
        "data.test": ("d", "e"),
        "train.steps": 6,
        "train.minutes": 1.0,
    }


def test_recipes_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nothing = {"train": (), "valid": (), "test": (), "languages": ("", ""), "assignments": ()}
    found = [
        gather(name, **nothing) for name in ("recipes/multi30k-en-de.toml", "multi30k-en-de.toml")
    ]
    assert found[0] == found[1] == gather("multi30k-en-de", **nothing) != {}
    (tmp_path / "multi30k-en-de.toml").write_text("[train]\nsteps = 7\n")
    assert gather("multi30k-en-de.toml", **nothing) == {"train.steps": 7}
    assert gather("multi30k-en-de", **nothing) == found[0]
