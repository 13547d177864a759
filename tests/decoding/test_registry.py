"""The registries of engines: how an engine is opened, and what is said if it is not installed."""

from typing import get_args

from transduce.decoding.registry import ENGINES, EngineName, engines, open_engine
from transduce.decoding.types import Refusal
from transduce.system.errors import Hint
from transduce.system.registry import plugins


def test_an_engine_that_is_not_installed_refuses_the_model():
    assert open_engine("transduce.wings.nothing:open_engine", None) == Refusal(
        "transduce.wings.nothing is not installed here", Hint.install("serve")
    )


def test_an_engine_is_opened_by_its_function():
    assert open_engine("builtins:str", 5) == "5"


def test_engines_of_the_core_and_the_wings_come_first():
    assert [*engines()] == [*ENGINES, *plugins("engines")] and plugins("engines")
    assert get_args(EngineName) == ("auto", *engines())
