"""The Python interface: the names that `transduce` offers, and what they do."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import transduce
from corpora import reverse_texts, write_texts
from transduce import model_folder
from transduce.model.device import set_threads

SIZES = {
    "data.vocab_size": 300,
    "data.max_tokens": 256,
    "data.holdout": 10,
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.num_heads": 2,
    "train.steps": 20,
    "train.warmup": 20,
    "train.save_every": 10,
    "train.validate_every": 20,
    "train.threads": 1,
    "decode.max_extra_tokens": 2,
}


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> transduce.Result:
    """A training, by the interface."""
    folder = tmp_path_factory.mktemp("api")
    files = write_texts(folder, "train", 200, seed=0)
    return transduce.train(
        str(folder / "model"), train=files, source="ka", target="zu", options=SIZES
    )


def test_public_names_exist_and_no_others_are_exported():
    assert transduce.__all__ == sorted(set(transduce.__all__))
    for name in transduce.__all__:
        assert getattr(transduce, name).__name__ == name
    namespace: dict[str, object] = {}
    exec("from transduce import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(transduce.__all__)
    assert set(transduce.__all__) <= set(dir(transduce))
    with pytest.raises(AttributeError, match="module 'transduce' has no attribute 'loda'"):
        transduce.loda  # noqa: B018


def test_importing_loads_neither_torch_nor_numpy():
    code = "import sys, transduce; dir(transduce); transduce.UserError; print({'torch', 'numpy'} & {*sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_training_returns_folder_reason_and_metrics(result):
    assert isinstance(result, transduce.Result)
    assert (result.folder / "model.safetensors").is_file()
    assert result.reason == "steps" and result.metrics["training"]["steps"] == 20


@pytest.fixture
def two_threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("two_threads")
def test_a_training_changes_nothing_of_the_process(result, tmp_path):
    before = torch.random.get_rng_state()
    files = write_texts(tmp_path, "train", 200, seed=0)
    transduce.train(
        tmp_path / "out", train=files, options=SIZES | {"train.steps": 1, "train.warmup": 1}
    )
    transduce.load(result.folder, engine="torch")
    assert torch.get_num_threads() == 2 and torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.usefixtures("two_threads")
def test_a_forked_process_does_not_wait_for_threads_that_it_lacks():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(torch.get_num_threads) == 1
        pool.apply(set_threads, [2])
        assert pool.apply(torch.get_num_threads) == 1


def test_a_process_trains_one_model_at_a_time(tmp_path):
    files = write_texts(tmp_path, "train", 200, seed=0)

    def other() -> bool:
        with pytest.raises(transduce.UserError, match="This process trains another model already"):
            transduce.train(tmp_path / "other", train=files, options=SIZES)
        return True

    assert (
        transduce.train(tmp_path / "one", train=files, options=SIZES, stop=other).reason
        == "interrupted"
    )


def test_a_signal_saves_the_training_and_ends_the_program(tmp_path):
    files = write_texts(tmp_path, "train", 200, seed=0)

    def send() -> bool:
        os.kill(os.getpid(), signal.SIGTERM)
        return False

    with pytest.raises(KeyboardInterrupt):
        transduce.train(tmp_path / "out", train=files, options=SIZES, stop=send)
    assert transduce.train(tmp_path / "out").reason == "steps"


def test_a_loaded_model_translates_lists_of_texts(result):
    translator = transduce.load(result.folder)
    assert isinstance(translator, transduce.Translator)
    sources = [*reverse_texts(5, seed=3)[0], ""]
    translations = translator.translate(sources)
    assert all(isinstance(translation, transduce.Translation) for translation in translations)
    assert len(translations) == 6 and translations[-1].text == ""
    assert all(translation.score < 0 for translation in translations[:5])
    assert transduce.load(str(result.folder)).translate(sources) == translations
    with pytest.raises(TypeError, match="Give a list of texts"):
        translator.translate("ka lo")


def test_texts_may_come_from_iterators(result):
    translator, (sources, targets) = transduce.load(result.folder), reverse_texts(5, seed=3)
    assert list(translator.translate(iter(sources))) == translator.translate(sources)
    assert translator.translate(dict.fromkeys(sources)) == translator.translate(sources)
    assert translator.score(iter(sources), iter(targets)) == translator.score(sources, targets)


def test_only_decode_options_can_be_changed_on_loading(result):
    assert transduce.load(result.folder, {"decode.beam_size": 2}).config.beam_size == 2
    with pytest.raises(
        transduce.UserError, match=r"model\.d_model can't be set for a trained model"
    ):
        transduce.load(result.folder, {"model.d_model": 16})
    with pytest.raises(
        transduce.UserError, match=r"Unknown option 'beam_size'. Did you mean 'decode\.beam_size'"
    ):
        transduce.load(result.folder, {"beam_size": 2})


def test_several_folders_are_an_ensemble(result):
    together = transduce.load([result.folder, Path(result.folder)])
    sources = reverse_texts(5, seed=3)[0]
    found = [translation.score for translation in together.translate(sources)]
    alone = [
        translation.score
        for translation in transduce.load(result.folder, engine="torch").translate(sources)
    ]
    assert len(together.engine.models) == 2
    assert found == pytest.approx(alone, abs=1e-4)


def test_train_function_takes_the_options_of_the_command(tmp_path):
    english, german, french = (tmp_path / f"train.{code}" for code in ("en", "de", "fr"))
    lines = reverse_texts(120, seed=5)
    for file, texts in zip((english, german, french), (*lines, lines[0]), strict=True):
        file.write_text("".join(f"{text}\n" for text in texts))
    options = SIZES | {
        "train.steps": 4,
        "train.warmup": 2,
        "train.save_every": 2,
        "train.validate_every": 4,
    }
    calls = iter([False, False, True])
    arguments = {"train": [english, german], "options": options}
    first = transduce.train(tmp_path / "two", **arguments, stop=lambda: next(calls))
    assert first.reason == "interrupted" and not first.metrics
    whole = transduce.train(tmp_path / "two", **arguments)
    config = model_folder.read_config(whole.folder)
    assert (config.data.source, config.data.target, whole.reason) == ("en", "de", "steps")
    assert config.sources["train.steps"] == "calling program"
    more = transduce.train(
        tmp_path / "three", train=[english, french], init=whole.folder, options={"train.steps": 2}
    )
    assert model_folder.read_config(more.folder).data.directions == ("en-de", "en-fr")
    one = transduce.train(
        tmp_path / "one", recipe="multi30k-en-de", train=[english, german], options=options
    )
    assert model_folder.read_config(one.folder).train.cooldown == 3500
    with pytest.raises(transduce.UserError, match=r"Did you mean 'train\.steps'"):
        transduce.train(tmp_path / "none", train=[english, german], options={"train.step": 2})


def test_mistakes_are_user_errors(tmp_path):
    with pytest.raises(transduce.UserError, match="There is no model folder"):
        transduce.load(tmp_path / "none")
    with pytest.raises(transduce.UserError, match="no model to load"):
        transduce.load([])
    with pytest.raises(transduce.UserError, match="There is nothing to train on"):
        transduce.train(tmp_path / "out")
    with pytest.raises(transduce.UserError, match="The name of a corpus file is empty"):
        transduce.train(tmp_path / "out", train=["", ""])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "nowhere"}, "can't be loaded onto the device nowhere"),
        ({"device": "xla", "engine": "torch"}, "can't be loaded onto the device xla"),
        ({"threads": -1}, "threads must be at least 0, not -1"),
    ],
)
def test_devices_and_threads_that_do_not_exist_are_user_errors(result, options, said):
    with pytest.raises(transduce.UserError, match=said):
        transduce.load(result.folder, **options)
