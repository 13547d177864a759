"""The choice of the micro-batch size, the measured time of an update, and the memory that a training needs."""

from types import SimpleNamespace

import pytest
import torch

from corpora import TINY, changed, mixture, reverse_rows
from transduce.config.parse import configure
from transduce.config.schema import ModelConfig, RunConfig
from transduce.model.build import build
from transduce.system.errors import UserError
from transduce.training import autobatch
from transduce.training.distributed import ALONE

CPU = torch.device("cpu")


def config_of(**changes):
    return configure(changed(TINY, model__vocab_size=16, **changes))


def test_a_sentence_and_its_end_must_fit(tmp_path):
    data = mixture(tmp_path / "data", [*reverse_rows(30, seed=1), ([5] * 9, [6] * 20)])
    fits, lacks = (config_of(data__max_tokens=tokens) for tokens in (21, 20))
    autobatch.try_batches(build(fits.model), data, fits, CPU)
    with pytest.raises(
        UserError, match="A sentence of 21 tokens does not fit into a micro-batch of 20 tokens"
    ):
        autobatch.try_batches(build(lacks.model), data, lacks, CPU)


def test_processes_may_be_more_than_micro_batches_with_a_long_sentence(tmp_path):
    data = mixture(tmp_path / "data", [*reverse_rows(30, seed=1), ([5] * 9, [6] * 20)])
    config, ranks = config_of(data__max_tokens=64), ALONE._replace(world=4)
    # 22 tokens each.
    assert autobatch.try_batches(build(config.model), data, config, CPU, ranks).accumulate == 3


def test_the_time_of_an_update_is_the_mean_without_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr(autobatch, "MAX_TIMED_UPDATES", 4)
    monkeypatch.setattr(autobatch, "TIMED_SECONDS", 1e9)
    clock, durations = [0.0], iter([50, 2, 3, 4, 5])
    monkeypatch.setattr(autobatch, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    plan = mixture(tmp_path / "data", reverse_rows(100, seed=1)).plan(
        0, 0, budget=32, accumulate=1, seed=1
    )
    seconds = autobatch._seconds(lambda _: clock.append(clock.pop() + next(durations)), plan, ALONE)
    assert seconds == (2 + 3 + 4 + 5) / 4


def test_training_needs_sixteen_bytes_for_each_weight(monkeypatch):
    config = RunConfig(model=ModelConfig(vocab_size=300))
    needed = 16 * sum(weight.numel() for weight in build(config.model).parameters())
    monkeypatch.setattr(autobatch, "free_memory", lambda: needed)
    autobatch.check_memory(config, CPU)
    monkeypatch.setattr(autobatch, "free_memory", lambda: needed - 1)
    with pytest.raises(UserError, match="needs at least"):
        autobatch.check_memory(config, CPU)
