"""The fields `prefix` and `suffix` of POST /translate."""

from collections.abc import Iterator
from typing import Any

import pytest

from models import make_model
from servers import store_of
from transduce.decoding.loading import load
from transduce.decoding.translator import Translator

pytest.importorskip("fastapi", reason="pip install 'transduce[serve]'")
from requests_of_tests import NOBODY, client
from transduce.wings.serving.api import application
from transduce.wings.serving.limits import Limits

LANGUAGES = {"source": "en", "target": "de"}


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    return load(make_model(tmp_path_factory.mktemp("prefixes") / "model", {}), engine="torch")


@pytest.fixture(scope="module")
def asking(translator: Translator) -> Iterator[Any]:
    store = store_of(translator)
    with client(application(store, NOBODY, Limits(characters=50), local=True)) as asking:
        yield asking


def test_a_request_may_have_one_or_several(asking: Any, translator: Translator) -> None:
    one = {"q": "ka lo mi", "prefix": "xü", "suffix": " zu.", "alternatives": 1} | LANGUAGES
    for answer in (asking.post("/translate", json=one), asking.post("/translate", data=one)):
        texts = [answer.json()["translatedText"], *answer.json()["alternatives"]]
        assert len(texts) == 2
        assert all(text.startswith("xü") and text.endswith(" zu.") for text in texts)
    several = {"q": ["ka lo", "ka lo", "mi"], "prefix": ["", "fe g", "x"]} | LANGUAGES
    found = translator.translate(several["q"], prefixes=several["prefix"])
    for answer in (
        asking.post("/translate", json=several),
        asking.post("/translate", data=several),
    ):
        assert answer.json()["translatedText"] == [each.text for each in found]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"q": ["ka", "lo"], "prefix": "x"}, "There are 2 texts but 1 prefixes"),
        ({"q": "ka", "suffix": ["x", "y"]}, "There are 1 texts but 2 suffixes"),
        ({"q": "<p>ka</p>", "prefix": "x", "format": "html"}, "can't be used with HTML"),
        ({"q": " ", "prefix": "x"}, "Text 1 is blank"),
        ({"q": "ka", "prefix": "x" * 51}, "The prefix or suffix has 51 characters"),
        ({"q": "ka", "prefix": "x\ny"}, "has a line break"),
        ({"q": "ka", "prefix": "x", "target": "en"}, "same language"),
    ],
)
def test_what_can_not_be_continued_is_refused(
    asking: Any, fields: dict[str, Any], message: str
) -> None:
    answer = asking.post("/translate", json=LANGUAGES | fields)
    assert answer.status_code == 400 and message in answer.json()["error"]
