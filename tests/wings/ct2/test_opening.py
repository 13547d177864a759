"""Tests of transduce/wings/ct2/opening.py."""

import pytest
import torch

import transduce
from transduce.system.errors import UserError
from transduce.wings.ct2 import opening


def test_a_gpu_counts_only_if_our_own_search_can_use_it(monkeypatch):
    monkeypatch.setattr("ctranslate2.get_cuda_device_count", lambda: 1)
    for usable in (True, False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda usable=usable: usable)
        assert opening.has_gpu() == usable


def test_ensembles_and_gpus_use_torch(trained, cache, monkeypatch):
    assert transduce.load([trained, trained]).engine.name == "torch"
    with pytest.raises(
        UserError,
        match=r"The engine ctranslate2 can't run .*: it is for one model, not an ensemble",
    ):
        transduce.load([trained, trained], engine="ctranslate2")
    monkeypatch.setattr(opening, "has_gpu", lambda: True)
    assert transduce.load(trained).engine.name == "torch"
    assert not cache.exists()
    assert transduce.load(trained, engine="ctranslate2").engine.name.startswith("CTranslate2, ")


@pytest.mark.usefixtures("cache")
def test_missing_ctranslate2_falls_back_to_torch(trained, monkeypatch):
    monkeypatch.setattr(opening, "find_spec", lambda _: None)
    assert transduce.load(trained).engine.name == "torch"
    with pytest.raises(UserError, match=r"pip install 'transduce\[fast\]'"):
        transduce.load(trained, engine="ctranslate2")
