"""Options: what is written is read again, and every mistake is a sentence that helps."""

import typing
from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.config import schema as config
from transduce.config.parse import configure, parse_assignments, read_recipe, to_toml
from transduce.config.schema import (
    SECTIONS,
    CorpusConfig,
    DataConfig,
    DecodeConfig,
    ModelConfig,
    Option,
    RunConfig,
    TrainConfig,
    differences,
    with_options,
)
from transduce.system.errors import UserError

OPTIONS = {option.name: option for option in config.options()}
SCALARS = [option for option in OPTIONS.values() if option.name not in ("data.corpora",)]
corpora = st.builds(
    CorpusConfig,
    files=st.tuples(st.text()) | st.tuples(st.text(), st.text()),
    weight=st.floats(0, 9),
)


positive = st.integers(1, 2000)


def values(option: Option) -> st.SearchStrategy[Any]:
    """What an option may be."""
    if typing.get_origin(option.kind) is Literal:
        return st.sampled_from(typing.get_args(option.kind))
    if option.name == "model.convolutions":
        return st.lists(st.builds("{}x{}x{}".format, positive, positive, positive), max_size=3).map(
            tuple
        )
    if option.name == "data.directions":
        return st.lists(st.sampled_from(["en-de", "de-en", "en-pt_BR"]), max_size=3).map(tuple)
    if option.name in ("data.source", "data.target"):
        return st.from_regex(r"[a-z]{2,3}([-_][A-Za-z]{2,4})?", fullmatch=True)
    if option.name == "model.expert_layers":
        return st.lists(st.just(1), max_size=1).map(tuple)
    if option.kind == tuple[CorpusConfig, ...]:
        return st.lists(corpora, max_size=3).map(tuple)
    numbers = {
        int: st.integers(int(option.least), int(min(option.below, 2**62)) - 1),
        float: st.floats(option.least, option.below, exclude_max=True),
    }
    lists = {
        tuple[item, ...]: st.lists(some, max_size=3).map(tuple)
        for item, some in ((str, st.text()), (int, st.integers(0, 99)))
    }
    others = {bool: st.booleans(), str: st.text()} | lists
    return (numbers | others)[option.kind]


@st.composite
def configurations(draw: st.DrawFn) -> RunConfig:
    """Any configuration that a run can have."""
    sections: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for option in OPTIONS.values():
        section, key = option.name.split(".")
        sections[section][key] = draw(values(option))
    heads = draw(st.integers(1, 16))
    width = 2 * heads * draw(st.integers(1, 64))
    experts = sections["model"]["experts"]
    used = draw(st.integers(1, max(1, experts)))
    model = with_options(
        with_options(ModelConfig(), **sections["model"]),
        num_heads=heads,
        num_kv_heads=draw(st.sampled_from([0, 1, heads])),
        d_model=width,
        experts_per_token=used,
        kind="transformer",
        cell="lstm",
        kernel_size=3,
        separable=False,
        convolutions=(),
    )
    if model.positions == "rotary":
        model = replace(model, d_k=2 * (model.d_k // 2), attention="scaled")
    sections["data"]["joint"] &= not sections["data"]["symbols"]
    sections["data"]["augment"] = (
        "none" if sections["data"]["symbols"] else sections["data"]["augment"]
    )
    sections["train"]["shard"] &= not experts
    is_fixed = sections["data"]["tokenizer"] in ("char", "word", "wordpiece")
    sections["train"]["sample_source"] *= not is_fixed
    sections["train"]["sample_target"] *= not (is_fixed or sections["data"]["symbols"])
    if sections["model"]["block_size"] > 1:
        sections["train"]["risk_steps"] = 0
    return RunConfig(
        model,
        DataConfig(**sections["data"]),
        TrainConfig(**sections["train"]),
        DecodeConfig(**sections["decode"]),
    )


@given(configurations())
def test_configuration_survives_writing_and_reading(run: RunConfig) -> None:
    assert configure(read_recipe(to_toml(run), "config.toml")) == run


@given(configurations(), configurations())
def test_differences_applied_to_the_old_give_the_new_configuration(
    old: RunConfig, new: RunConfig
) -> None:
    changed = differences(old, new)
    assert all(was != now for was, now in changed.values())
    given_now = {name: now for name, (_, now) in changed.items()}
    assert configure(read_recipe(to_toml(old), "config.toml"), given_now) == new


@given(st.data())
@pytest.mark.parametrize("option", SCALARS, ids=lambda option: option.name)
def test_assignments_are_read_by_the_options_type(option: Option, data: st.DataObject) -> None:
    value = data.draw(values(option))
    if option.kind == tuple[str, ...]:
        value = tuple(text for text in value if text and "," not in text)
        text = ",".join(value)
    elif option.kind == tuple[int, ...]:
        text = ",".join(map(str, value))
    else:
        text = str(value).lower() if option.kind is bool else str(value)
    assert parse_assignments([f"{option.name}={text}"]) == {option.name: value}


def test_the_defaults_are_the_papers_base_model() -> None:
    run = configure()
    model, train = run.model, run.train
    assert (
        model.d_model,
        model.d_ff,
        model.num_heads,
        model.num_encoder_layers,
        model.dropout,
    ) == (
        512,
        2048,
        8,
        6,
        0.1,
    )
    assert (train.steps, train.warmup, train.label_smoothing, train.beta2, train.epsilon) == (
        100_000,
        4000,
        0.1,
        0.98,
        1e-9,
    )
    assert (run.decode.beam_size, run.decode.length_penalty, run.decode.max_extra_tokens) == (
        4,
        0.6,
        50,
    )


def test_later_layers_win() -> None:
    run = configure({"model.d_model": 64, "train.steps": 5}, {"model.d_model": 128})
    assert (run.model.d_model, run.train.steps) == (128, 5)


def test_a_recipe_has_a_table_per_section() -> None:
    text = """
        [model]
        d_model = 256
        [data]
        vocab_size = 8_000
        [[data.corpora]]
        files = ["a.en", "a.de"]
        [[data.corpora]]
        files = ["b.tsv"]
        weight = 2
        [train]
        learning_rate = 2
    """
    run = configure(read_recipe(text, "recipe.toml"))
    assert (run.model.d_model, run.data.vocab_size, run.train.learning_rate) == (256, 8000, 2.0)
    assert run.data.corpora == (CorpusConfig(("a.en", "a.de"), 1.0), CorpusConfig(("b.tsv",), 2.0))


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("model.d_modle", "model.d_model"),
        ("modle.d_model", "model.d_model"),
        ("train.warm_up", "train.warmup"),
        ("beam_size", "decode.beam_size"),
        ("droput", "model.dropout"),
        ("max_tokens", "data.max_tokens"),
    ],
)
def test_an_unknown_option_names_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UserError, match=rf"'{name}'. Did you mean '{nearest}'\?"):
        configure({name: 1})
    with pytest.raises(UserError, match=rf"'{name}'. Did you mean '{nearest}'\?"):
        parse_assignments([f"{name}=1"])


def test_unlike_option_names_point_to_the_list_of_options() -> None:
    with pytest.raises(UserError, match=r"'zzz'. `transduce options` lists all options\."):
        parse_assignments(["zzz=1"])


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("model.d_model", "512", "model.d_model must be a whole number, not '512'."),
        ("model.d_model", 512.0, "model.d_model must be a whole number, not '512.0'."),
        ("model.d_model", True, "model.d_model must be a whole number, not 'True'."),
        ("model.dropout", True, "model.dropout must be a number, not 'True'."),
        ("data.joint", 1, "data.joint must be true or false, not '1'."),
        ("train.minutes", float("inf"), "train.minutes must be a number, not 'inf'."),
        ("data.source", 1, "data.source must be a text, not '1'."),
        (
            "data.test",
            ["caf\udce9.tsv"],
            r"data.test: the file name 'caf\udce9.tsv' is not UTF-8. Rename the file.",
        ),
        (
            "data.corpora",
            [{"files": ["\udce9"]}],
            r"data.corpora.files: the file name '\udce9' is not UTF-8. Rename the file.",
        ),
        ("data.valid", "a.en", "data.valid must be a list, not 'a.en'."),
        ("model.norm", "both", "model.norm must be one of post, pre, not 'both'."),
        ("model.norm", ["post"], "model.norm must be one of post, pre, not '['post']'."),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(name: str, value: Any, sentence: str) -> None:
    with pytest.raises(UserError) as error:
        configure({name: value})
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model.d_model": 0}, "model.d_model must be at least 1, not 0"),
        ({"model.d_model": 7, "model.num_heads": 7}, "model.d_model must be even, not 7"),
        (
            {"model.kind": "recurrent", "model.window": 3},
            "model.window is for models of the kind transformer, not rec",
        ),
        (
            {"data.symbols": True},
            "data.symbols needs separate vocabularies for source and target. Also set data.joint=false",
        ),
        (
            {"data.symbols": True, "data.joint": False, "train.sample_target": 0.1},
            "target tokens are whole words",
        ),
        ({"data.tokenizer": "char", "train.sample_source": 0.1}, "Characters can't be sampled"),
        ({"data.tokenizer": "char", "train.sample_target": 0.1}, "Characters can't be sampled"),
        ({"data.tokenizer": "word", "train.sample_target": 0.1}, "Words can't be sampled"),
        (
            {"model.cell": "gru"},
            "model.cell is for models of the kind recurrent, not transformer. Leave",
        ),
        ({"model.experts": 2, "train.shard": True}, "train.shard does not support experts"),
        (
            {"model.experts": 2, "model.experts_per_token": 3},
            "experts_per_token .3. must not exceed model.experts .2.",
        ),
        (
            {"model.expert_layers": (7,)},
            "model.expert_layers must be numbers from 1 to 6, the number of layers",
        ),
        (
            {"model.convolutions": ("3x0x1",)},
            "'3x0x1' is not of the form COUNTxCHANNELSxKERNEL, such as 9x512x3",
        ),
        (
            {"data.source": "pt/BR"},
            "data.source must be a language code, such as en, pt_BR or zh-Hant, not 'pt/BR'",
        ),
        ({"data.target": "x y"}, "data.target must be a language code"),
        ({"data.target": ".."}, "data.target must be a language code"),
        ({"data.target": ""}, "data.target must be a language code"),
        (
            {"data.directions": ("en-../de",)},
            "data.directions: 'en-../de' is not of the form SOURCE-TARGET",
        ),
        ({"data.directions": ("en-de", "en-en")}, "'en-en' is not of the form SOURCE-TARGET"),
        ({"data.directions": ("en-pt-BR",)}, "'en-pt-BR' is not of the form SOURCE-TARGET"),
        (
            {"model.num_heads": 7},
            r"model.d_model must be a multiple of model.num_heads \(7\)",
        ),
        ({"model.dropout": 1}, "model.dropout must be at least 0 and below 1, not 1.0"),
        (
            {"model.window": 2**31},
            "model.window must be at least 0 and below 2147483648, not 2147483648.",
        ),
        (
            {"train.seed": 2**63},
            "train.seed must be at least 0 and below 9223372036854775808, not 9223372036854775808",
        ),
        ({"train.save_every": -1}, "train.save_every must be at least 0, not -1"),
        ({"train.steps": 0}, "train.steps must be at least 1, not 0"),
        (
            {"data.corpora": [{"files": ["a"], "weight": -1}]},
            "data.corpora.weight must be at least 0, not -1.0",
        ),
        ({"data.corpora": [{"weight": 1}]}, "needs files"),
        ({"data.corpora": [{"files": []}]}, "needs files"),
        (
            {"data.corpora": [{"files": ["a"], "weight": float("nan")}]},
            "weight must be a number, not 'nan'",
        ),
        ({"data.corpora": [{"files": ["a"], "wieght": 1}]}, "needs files"),
        ({"data.corpora": [{"files": "a"}]}, "data.corpora.files must be a list, not 'a'"),
    ],
)
def test_impossible_values_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        configure(options)


@pytest.mark.parametrize("code", ["zh-Hant", "sr@latin", "en_US.UTF-8", "हिन्दी", "src", "es-419"])
def test_codes_of_any_form_are_read(code: str) -> None:
    assert configure({"data.source": code}).data.source == code
    direction = f"{code.replace('-', '_')}-de"
    assert configure({"data.directions": (direction,)}).data.directions == (direction,)


def test_heads_may_have_their_own_width() -> None:
    model = configure({"model.num_heads": 7, "model.d_k": 16, "model.d_v": 16}).model
    assert (model.num_heads, model.d_k) == (7, 16)


def test_models_without_heads_may_have_any_width() -> None:
    assert configure({"model.kind": "recurrent", "model.d_model": 250}).model.d_model == 250


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[model]\nd_model = \n", r"recipe.toml: not valid TOML: .*line 2"),
        ("d_model = 4", r"recipe.toml: 'd_model' stands outside a section such as \[model\]"),
        (
            "[model]\nd_modle = 4",
            r"recipe.toml: unknown option 'model.d_modle'. Did you mean 'model.d_model'\?",
        ),
        ("[model]\nd_model = '4'", r"recipe.toml: model.d_model must be a whole number, not '4'"),
        (
            "format = 9",
            r"recipe.toml has format 9, but this version reads format 1. Install a newer transduce",
        ),
        ("a = " + "[" * 2000, r"recipe.toml: not valid TOML"),
        ("[train]\nsteps = 0x" + "1" * 5000, r"recipe.toml: not valid TOML"),
        (
            "[train]\nlearning_rate = 1" + "0" * 400,
            r"recipe.toml: train.learning_rate must be a number",
        ),
        ("a." * 50_000 + "a = 1", r"recipe.toml: a line has more than 100 dots outside strings"),
    ],
)
def test_a_mistake_in_a_recipe_names_the_file(text: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        read_recipe(text, "recipe.toml")


def test_an_argument_without_equals_is_no_option() -> None:
    with pytest.raises(
        UserError, match=r"'model\.d_model' is not an option\. Write options as section.key=value"
    ):
        parse_assignments(["model.d_model"])
