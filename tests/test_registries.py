"""Every registered name exists and has the type that the core expects (`registered.py`)."""

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

import registered
from transduce.config import commands, families
from transduce.config.schema import model_options
from transduce.decoding.registry import EXPORT_FORMATS, engines
from transduce.system.errors import NotInstalledError
from transduce.system.registry import load, plugins
from transduce.text.formats import file_formats

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
READERS = {
    kind: [getattr(form, kind) for form in file_formats().values() if getattr(form, kind)]
    for kind in ("pairs", "parallel", "document")
}
NAMED: dict[str, tuple[Iterable[str], list[object]]] = {
    "engines": (engines().values(), [*registered.ENGINES]),
    "export formats": (EXPORT_FORMATS.values(), [*registered.EXPORT_FORMATS]),
    "families": ([family.model for family in families.families().values()], [*registered.FAMILIES]),
    "options": ([*commands.OPTIONS.values(), *plugins("options").values()], registered.OPTIONS),
    "pairs": (READERS["pairs"], [*registered.READ_PAIRS]),
    "parallel": (READERS["parallel"], [*registered.READ_PARALLEL]),
    "documents": (READERS["document"], [*registered.READ_DOCUMENT]),
}


@pytest.mark.parametrize("registry", NAMED)
def test_registered_names_have_the_types_that_the_core_expects(registry: str) -> None:
    names, typed = NAMED[registry]
    assert {id(load(name)) for name in names} == {id(each) for each in typed}


def test_registered_model_options_are_typed() -> None:
    assert [*model_options()] == registered.MODEL_OPTIONS


def test_registered_commands_are_functions_with_help() -> None:
    for command in commands.commands().values():
        assert load(command.function).__doc__, command


def test_entry_points_name_the_tables_of_the_lab() -> None:
    points = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["entry-points"][
        "transduce"
    ]
    for registry, name in points.items():
        table = load(name)
        assert isinstance(table, Mapping) and plugins(registry).items() >= table.items()


def test_missing_modules_are_refused_with_their_extra() -> None:
    with pytest.raises(NotInstalledError, match=r"pip install 'transduce\[serve\]'"):
        load("transduce.wings.serving.gone:serve")
    with pytest.raises(NotInstalledError, match=r"pip install 'transduce\[lab\]'"):
        load("transduce_lab.gone:parse")
