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
    assert named_folders(["x/" + "a" * 65]) == [("a" * 64, Path("x/" + "a" * 65))]
    assert named_folders(["new=a=c"]) == [("new", Path("a=c"))]
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


def names(catalogue: Catalogue, source: str, target: str) -> list[str]:
    return [f"{hop.model.name} {hop.direction}" for hop in catalogue.route(source, target)]


def test_variants_of_a_language_are_translated_if_a_model_does_it():
    same = Catalogue([model_of("a", "pt_BR-en", "pt_BR-de")])
    assert names(same, "pt-BR", "pt-PT") == []
    direct = Catalogue([model_of("a", "pt_BR-pt_PT")])
    assert names(direct, "pt-BR", "pt-PT") == ["a pt_BR-pt_PT"]
    through = Catalogue([model_of("a", "pt_BR-en"), model_of("b", "en-pt_PT")])
    assert names(through, "pt-BR", "pt-PT") == ["a pt_BR-en", "b en-pt_PT"]
    assert names(through, "pt_br", "PT-BR") == []


def test_the_code_that_is_translated_into_the_target_is_chosen():
    default = Catalogue([model_of("a", "en-de"), model_of("b", "en_GB-fr"), model_of("c", "de-it")])
    assert names(default, "en-US", "fr") == ["b en_GB-fr"]
    assert names(default, "en-GB", "de-AT") == ["a en-de"]
    assert names(default, "en-US", "it-CH") == ["a en-de", "c de-it"]
    assert default.sources("it-CH") == ["de", "en"] and default.sources("fr") == ["en_GB"]
    assert [default.kept(code) for code in ("de-AT", "en-GB", "it", "fr")] == [
        "de",
        "en_GB",
        "",
        "",
    ]
    assert default.codes == ["en", "en_GB", "de", "fr", "it"]


@pytest.mark.parametrize(
    ("german", "french", "pivot"), [(40.0, 50.0, "fr"), (50.0, 40.0, "de"), (0.0, 50.0, "fr")]
)
def test_the_better_pivot_is_chosen(german: float, french: float, pivot: str):
    """A direction that was not measured counts as the worst."""
    models = []
    for code, value in (("de", german), ("fr", french)):
        directions = f"en-{code}", f"{code}-it"
        scores = Scores(quality=dict.fromkeys(directions, value) if value else {})
        models.append(model_of(code, *directions, scores=scores))
    for ordered in (models, models[::-1]):
        assert [hop.model.name for hop in Catalogue(ordered).route("en", "it")] == [pivot] * 2


def test_what_no_model_translates_is_refused_with_what_models_translate():
    catalogues = Catalogues([model_of("a", "en-de", "de-fr"), model_of("b", "en-de")])
    listed = "GET /languages lists the"
    for name, refused, said in (
        *(
            ("", pair, f"No model translates '{pair[0]}' to '{pair[1]}'. {listed} language pairs.")
            for pair in (("de", "en"), ("it", "de"), ("it", "it-x"))
        ),
        ("", ("", "xx"), f"No model translates into 'xx'. {listed} languages."),
        (
            "b",
            ("de", "en"),
            "No model with the name b translates 'de' to 'en'. Choose one of its directions: en-de.",
        ),
        (
            "a",
            ("", "en"),
            "No model with the name a translates into 'en'. Choose one of its directions: en-de, de-fr.",
        ),
    ):
        source, target = refused
        chosen = catalogues.choose(name)
        with pytest.raises(UserError) as error:
            chosen.route(source, target) if source else chosen.sources(target)
        assert str(error.value) == said
    with pytest.raises(UserError) as error:
        catalogues.choose("x" * 99)
    assert str(error.value) == f"There is no model with the name '{'x' * 64}'. Choose one of a, b."
    assert catalogues.names == ["a", "b"] and catalogues.choose("") is catalogues.default


def test_models_of_one_name_share_no_direction():
    assert not Catalogues([model_of("a", "en-de"), model_of("a", "de-en")]).has_choice
    assert Catalogues([model_of("a", "en-de"), model_of("b", "de-en", "en-de")]).has_choice
    both = Catalogues([model_of("a", "en-de"), model_of("a", "de-en", "de-fr")])
    assert both.names == ["a"] and len(both.choose("a").route("en", "fr")) == 2
    with pytest.raises(UserError) as error:
        Catalogues([model_of("a", "en-de"), model_of("a", "fr-en", "en-de")])
    assert str(error.value) == (
        "/a and /a both translate en to de, and have the name a. "
        "Give one of them another name, such as new=/a."
    )


def test_directions_without_training_are_sorted():
    names = ["en-cs", "en-es", "en-fr", "en-it", "en-pl", "en-sv"]
    routes = {name: {"direct": 9.0, "de": 1.0} for name in reversed(names)}
    trained = ["en-de", *(f"de-{name[3:]}" for name in names)]
    default = Catalogue([model_of("a", *trained, scores=Scores(routes=routes))])
    assert [str(each) for each in default.directions] == [*trained, *names]
