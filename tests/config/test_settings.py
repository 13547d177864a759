"""Every value knows its source."""

from hypothesis import given
from hypothesis import strategies as st

from transduce.config.parse import configure
from transduce.config.schema import flatten
from transduce.config.settings import (
    CALLER,
    COMMAND_LINE,
    DEFAULT,
    FROM_SIZES,
    RECIPE,
    TRIAL,
    Settings,
)

NUMBERS = st.dictionaries(
    st.sampled_from(["train.steps", "train.warmup", "data.max_tokens", "train.keep_last"]),
    st.integers(1, 9),
)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_each_value_comes_from_the_highest_layer_and_names_it(table, recipe, line, trial) -> None:
    settings = (
        Settings(RECIPE, recipe)
        .updated(Settings(COMMAND_LINE, line))
        .under(FROM_SIZES, table)
        .over(TRIAL, trial)
    )
    config = settings.config()
    assert config == configure(table, recipe, line, trial)
    layers = {
        DEFAULT: flatten(configure()),
        FROM_SIZES: table,
        RECIPE: recipe,
        COMMAND_LINE: line,
        TRIAL: trial,
    }
    for name, value in flatten(config).items():
        source = config.sources[name]
        assert layers[source].get(name) == value, "the layer that is named holds the value"
        higher = list(layers)[list(layers).index(source) + 1 :]
        assert all(layers[layer].get(name, value) == value for layer in higher), (
            "no layer above it says otherwise"
        )


def test_only_user_settings_count_as_chosen() -> None:
    settings = Settings(COMMAND_LINE, {"train.steps": 100_000}).under(
        FROM_SIZES, {"train.steps": 5, "train.warmup": 2}
    )
    assert settings["train.steps"] == 100_000 and settings.is_chosen("train.steps"), (
        "also a value that is the default"
    )
    assert not settings.is_chosen("train.warmup") and not settings.is_chosen("train.seed")
    assert settings.over(TRIAL, {"train.steps": 100_000}).source("train.steps") == COMMAND_LINE
    assert Settings.of({"train.steps": 3}).source("train.steps") == CALLER
    assert "train.steps" not in settings.without("train.steps")


def test_a_configuration_gives_its_sources_back() -> None:
    config = Settings(RECIPE, {"train.steps": 7}).config()
    again = Settings.of_config(config).updated(
        Settings(COMMAND_LINE, {"train.steps": 9, "train.warmup": 4000})
    )
    assert (again.source("train.steps"), again.source("train.warmup")) == (COMMAND_LINE, DEFAULT)
    assert again.config().train.steps == 9
