"""The fast engine is the same model: converted without loss, checked before it is used, kept and found again."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import transduce
from corpora import reverse_texts
from engines import GENERATOR, SMALL, converted, lively
from transduce.config.schema import CorpusConfig, RunConfig, with_options
from transduce.decoding.torch_engine import TorchEngine
from transduce.model_folder import load
from transduce.preparation.prepared import read_valid
from transduce.system.errors import UserError
from transduce.system.file_lock import file_lock
from transduce.tokens.tokenizer import Tokenizer
from transduce.wings.formats import MAX_POSITIONS, refuse_config
from transduce.wings.phrasebook.examples import PHRASEBOOK, held_out, phrases


def test_ctranslate2_positions_equal_the_sinusoids(tmp_path):
    model = lively(SMALL)
    ours, theirs = TorchEngine([model]), converted(model, SMALL, tmp_path)
    long = torch.randint(4, 40, (700,), generator=GENERATOR).tolist()
    assert theirs.max_positions == MAX_POSITIONS
    assert theirs.log_probs([long], [long])[0] == pytest.approx(
        ours.log_probs([long], [long])[0], rel=1e-4, abs=1e-3
    )


def test_the_fast_engine_is_made_once_and_named(trained, cache, capfd):
    for model in trained, trained / ".." / trained.name:
        translator = transduce.load(model)
        assert translator.engine.name.startswith("CTranslate2, ")
    said = capfd.readouterr().err
    assert (
        said.count("Building a fast engine") == 1
        and "sentences get the same translation as from torch" in said
    )
    [kept] = cache.iterdir()
    check = json.loads((kept / "check.json").read_text())
    assert check["comparison"] in said and check["compute_type"] in translator.engine.name
    sources = reverse_texts(40, seed=3)[0]
    exact = transduce.load(trained, engine="torch")
    scores = [
        exact.score(sources, [t.text for t in each.translate(sources)])
        for each in (exact, translator)
    ]
    ours, theirs = (sum(score.score for score in each) / len(sources) for each in scores)
    assert theirs > ours - 0.5


def test_held_out_pairs_come_from_the_prepared_corpus_if_it_is_unchanged(trained, tmp_path):
    prepared = Path(shutil.copytree(trained / "data", tmp_path / "prepared"))
    model = load(trained)._replace(folder=tmp_path)
    corpus = CorpusConfig(files=(str(prepared),))
    model = model._replace(
        config=replace(model.config, data=replace(model.config.data, corpora=(corpus,)))
    )
    assert held_out(model, 5) == read_valid(prepared)[:5]
    Tokenizer.train(["a b c"], ["d e f"], vocab_size=270, joint=True).save(prepared)
    (prepared / "manifest.json").unlink()
    assert {pair.origin.file for pair in held_out(model, 5)} == {PHRASEBOOK}
    data = replace(model.config.data, source="de", directions=("de-en", "de-fr"))
    assert [pair.direction for pair in phrases(data, 3)] == ["de-en", "de-fr", "de-en"]
    assert phrases(data, 1)[0].source == phrases(model.config.data, 1)[0].target


@pytest.mark.usefixtures("cache")
def test_a_kept_engine_translates_without_torch(trained):
    transduce.load(trained)
    code = f"import sys, transduce; print(transduce.load({str(trained)!r}).translate(['a b'])[0].text); "
    found = subprocess.run(
        [sys.executable, "-c", code + "print({'torch', 'numpy.random'} & {*sys.modules})"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.splitlines()[-1] == "set()" and "Making" not in found.stderr


def test_a_relative_folder_is_found_from_another_working_directory(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(trained.parent)
    translator = transduce.load(trained.name, engine="ctranslate2")
    monkeypatch.chdir(tmp_path)
    # Opens the engine torch.
    [found] = translator.translate(["A dog runs."], glossary={"dog": "Katze"})
    assert "Katze" in found.text


def test_a_process_that_forked_after_loading_must_load_again(trained, monkeypatch):
    translator = transduce.load(trained, engine="ctranslate2")
    # In a forked process, CTranslate2 has no threads and waits forever.
    monkeypatch.setattr("os.getpid", lambda: 1)
    with pytest.raises(UserError, match="loaded before this process forked"):
        translator.translate(["A dog runs."])


def test_another_model_has_another_engine_and_a_damaged_one_is_made_again(
    trained, cache, tmp_path, capfd
):
    other = tmp_path / "other"
    shutil.copytree(trained, other)
    transduce.load(trained)
    [kept] = cache.iterdir()
    damaged = bytearray((kept / "model.bin").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (kept / "model.bin").write_bytes(damaged)
    transduce.load(trained).translate(["a b"])
    assert [path.name for path in cache.iterdir()] == [kept.name]
    assert capfd.readouterr().err.count("Building a fast engine") == 2
    manifest = json.loads((other / "manifest.json").read_text())
    # Other bytes: as good as another model.
    (other / "manifest.json").write_text(json.dumps(manifest))
    transduce.load(other)
    assert len(list(cache.iterdir())) == 2


def test_unwritable_cache_builds_the_engine_only_on_request(trained, tmp_path, monkeypatch, capfd):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert transduce.load(trained).engine.name == "torch"
    assert "The fast engine is not used: it can't be built: " in capfd.readouterr().err
    assert transduce.load(trained, engine="ctranslate2").engine.name.startswith("CTranslate2, ")
    assert "built for this run only" in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("damage", ["[", '"text"', "{}", "null"])
@pytest.mark.usefixtures("cache")
def test_damaged_validation_text_keeps_no_model_from_translating(damage, trained, tmp_path, capfd):
    folder = shutil.copytree(trained, tmp_path / "model")
    (folder / "data" / "valid.jsonl").write_text(f"{damage}\n")
    assert transduce.load(folder).engine.name == "torch"
    assert "valid.jsonl is damaged" in capfd.readouterr().err


def test_leftovers_of_killed_builds_are_removed_and_running_builds_kept(trained, cache):
    for name in (".abc.aside-1", ".abc.aside-2"):
        (cache / name).mkdir(parents=True)
        (cache / name / "model.bin").touch()
    with file_lock(cache / ".abc.aside-2.lock", "busy"):
        transduce.load(trained)
        assert sorted(path.name for path in cache.glob(".*")) == [
            ".abc.aside-2",
            ".abc.aside-2.lock",
        ]
    [kept] = cache.glob("[!.]*")
    (
        cache / f".{kept.name}.aside-3.lock"
    ).touch()  # of a process that was killed when the engine was complete
    transduce.load(trained)
    assert [path.name for path in cache.glob(".*")] == [".abc.aside-2"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"kind": "recurrent"}, r"it supports Transformers only, not model\.kind = recurrent"),
        ({"experts": 4}, r"it does not support model\.experts"),
        ({"window": 3}, r"it does not support model\.window"),
        ({"attention": "additive"}, r"it does not support model\.attention = additive"),
        ({"d_k": 3}, r"it does not support model\.d_k = 3"),
    ],
)
def test_unsupported_models_are_refused_with_their_option(changed, why):
    config = RunConfig(model=with_options(SMALL, **changed))
    refusal = refuse_config("ctranslate2", config)
    assert refusal and re.fullmatch(why, refusal.reason)
