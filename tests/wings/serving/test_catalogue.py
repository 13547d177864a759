"""Tests of transduce/wings/serving/catalogue.py."""

from pathlib import Path

import pytest

from transduce.decoding.directions import Scores
from transduce.system.errors import UserError
from transduce.text.languages import Direction

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from transduce.wings.serving.catalogue import Catalogue, Catalogues, named_folders
from transduce.wings.serving.models import Model, State


def model_of(name: str, *directions: str, scores: Scores | None = None) -> Model:
    return Model(
        name,
        Path(f"/{name}"),
        [Direction.parse(each) for each in directions],
        scores or Scores(),
        1,
        State(Path(), ""),
    )


def test_the_first_model_of_a_direction_is_the_default():
    first, second = model_of("a", "en-de"), model_of("b", "en-de", "de-en", "de-fr")
    default = Catalogue([first, second])
    found = {
        str(each): [hop.model.name for hop in default.route(*each)] for each in default.directions
    }
    assert found == {"en-de": ["a"], "de-en": ["b"], "de-fr": ["b"], "en-fr": ["a", "b"]}
    named = Catalogues([first, second]).choose("b")
    assert [hop.model.name for hop in named.route("en", "fr")] == ["b", "b"]
    with pytest.raises(
        UserError,
        match=r"a translates 'de' to 'en'\. Choose one of its directions: en-de",
    ):
        Catalogues([first, second]).choose("a").route("de", "en")


def test_the_directions_of_the_first_model_come_first():
    default = Catalogue(
        [model_of("a", "en-de"), model_of("b", "de-en", "fr-en"), model_of("c", "fr-de", "en-de")]
    )
    assert [str(each) for each in default.directions] == ["en-de", "de-en", "fr-en", "fr-de"]


def test_the_first_model_that_was_measured_translates_a_direction_without_training():
    measured, trained = Scores(routes={"en-fr": {"direct": 9.0, "de": 1.0}}), model_of("c", "fr-en")
    models = [model_of(name, "en-de", "de-fr", scores=measured) for name in "ab"]
    default = Catalogue([*models, trained])
    assert [hop.model.name for hop in default.route("en", "fr")] == ["a"]
    assert [str(each) for each in default.directions][:4] == ["en-de", "de-fr", "fr-en", "en-fr"]


def test_a_text_without_words_has_the_first_model_into_the_target():
    default = Catalogue([model_of("a", "en-de"), model_of("b", "fr-en"), model_of("c", "de-en")])
    assert [hop.model.name for hop in default.route("und", "en")] == ["b"]
    assert [str(hop.direction) for hop in default.route("und", "en-GB")] == ["fr-en"]
    with pytest.raises(UserError):
        default.route("und", "it")


def test_a_text_that_is_in_the_target_language_has_no_model():
    default = Catalogue([model_of("a", "en-de", "de-en")])
    assert default.route("de_AT", "DE-at") == default.route("en-GB", "en-US") == ()


def test_folders_may_have_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a=b").mkdir()
    found = named_folders(["models/x", "new=models/x", "a=b", "."])
    assert found == [
        ("x", Path("models/x")),
        ("new", Path("models/x")),
        ("a=b", Path("a=b")),
        (tmp_path.name, Path()),
    ]
    for wrong, remedy in (
        ("=x", "Use a name"),
        ("n w=x", "Use a name"),
        ("é=x", "Use a name"),
        (f"{'a' * 65}=x", "Use a name of at most 64"),
        ("new=", "Write a folder"),
    ):
        with pytest.raises(UserError, match="neither a folder nor NAME=FOLDER") as error:
            named_folders([wrong])
        assert error.value.hint and remedy in error.value.hint.text
