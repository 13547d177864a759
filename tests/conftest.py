"""What holds for all tests: one thread, that none disturbs another, laws without a stopwatch, a cache of their own."""

import gc
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
import torch

import transduce
from corpora import write_texts
from forked import load_languages_once, measure_quickly
from transduce.evaluation import scores

if TYPE_CHECKING:  # selenium may be missing
    from selenium import webdriver

if "TEST_GPU" not in os.environ:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # many tests compare bits with those of a CPU
# Whose list of fonts takes seconds.
os.environ.setdefault("MPLCONFIGDIR", str(Path.home() / ".cache" / "matplotlib"))
CACHE = tempfile.TemporaryDirectory()
os.environ["XDG_CACHE_HOME"] = CACHE.name
os.fsync = lambda _: None  # tests kill processes, not machines; it takes 5 % of a short training
torch.set_num_threads(1)
measure_quickly()
load_languages_once()
scores.MAX_RESAMPLES = 200  # of the bootstrap, which is slow
for profile, examples in {"fast": 40, "all": 100}.items():
    hypothesis.settings.register_profile(
        profile,
        deadline=None,
        max_examples=examples,
        suppress_health_check=[
            hypothesis.HealthCheck.too_slow,
            hypothesis.HealthCheck.function_scoped_fixture,
        ],
    )


def pytest_configure(config: pytest.Config) -> None:
    """`make test` tries fewer examples than `make test-all`."""
    hypothesis.settings.load_profile("fast" if config.option.markexpr == "not slow" else "all")


def pytest_collection_finish() -> None:
    """Collect no garbage among what is imported, which takes 3 % of the time."""
    gc.freeze()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator["webdriver.Chrome"]:
    """A Chromium for all tests of a module."""
    from web_page import start_browser

    browser = start_browser(tmp_path_factory.mktemp("downloads"))
    yield browser
    browser.quit()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that has begun to learn to reverse words."""
    folder = tmp_path_factory.mktemp("engines")
    options = {
        "data.vocab_size": 300,
        "data.max_tokens": 256,
        "data.holdout": 20,
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "model.d_model": 32,
        "model.d_ff": 64,
        "model.num_heads": 2,
        "model.dropout": 0.1,
        "train.steps": 150,
        "train.warmup": 50,
        "train.save_every": 50,
        "train.validate_every": 150,
        "train.threads": 1,
        "train.precision": "float32",
        "decode.max_extra_tokens": 2,
    }
    files = write_texts(folder, "train", 300, seed=0)
    return transduce.train(folder / "model", train=files, options=options).folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty one."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "transduce" / "engines"
