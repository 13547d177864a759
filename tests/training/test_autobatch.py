"""The choice of the micro-batch size, the measured time of an update, and the memory that a training needs."""

import contextlib
import math
import random
from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from corpora import TINY, Rows, changed, mixture, reverse_rows
from small_trainings import same, weights
from transduce.config.parse import configure
from transduce.config.schema import ModelConfig, RunConfig
from transduce.model.build import build
from transduce.system.errors import UserError
from transduce.tokens import mixture as tokens_mixture
from transduce.tokens.mixture import Mixture
from transduce.training import autobatch
from transduce.training.distributed import ALONE

CPU = torch.device("cpu")


def config_of(**changes):
    return configure(changed(TINY, model__vocab_size=16, **changes))


def test_packed_rows_must_hold_every_sentence_and_fit_into_a_micro_batch(tmp_path):
    data = mixture(tmp_path / "data", [*reverse_rows(300, seed=1), ([5] * 9, [6] * 20)])
    fits = config_of(data__max_tokens=64, data__pack=21)
    trial = autobatch.try_batches(build(fits.model), data, fits, CPU)
    tokens = sum(int(side.sum()) for side in data.lengths(np.arange(301))) + 2 * 301
    rows = 3 * trial.updates_per_epoch * trial.accumulate
    assert trial.padding == pytest.approx(1 - tokens / (2 * 21 * rows))
    for changes, error in (
        ({"data__pack": 20}, "A sentence of 21 tokens does not fit into a row of 20 tokens"),
        ({"data__pack": 65}, "A row of 65 tokens .* micro-batch of 64 tokens"),
        ({"data__pack": 21, "model__positions": "rotary"}, "can't be packed"),
        ({"data__pack": 21, "train__risk_steps": 1}, "can't be packed"),
    ):
        lacks = config_of(data__max_tokens=64, **changes)
        with pytest.raises(UserError, match=error):
            autobatch.try_batches(build(lacks.model), data, lacks, CPU)


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
    config = config_of()
    needed = 16 * sum(weight.numel() for weight in build(config.model).parameters())
    monkeypatch.setattr(autobatch, "free_memory", lambda: needed)
    autobatch.check_memory(config, CPU)
    monkeypatch.setattr(autobatch, "free_memory", lambda: needed - 1)
    with pytest.raises(UserError, match="needs at least"):
        autobatch.check_memory(config, CPU)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    for free in (needed, needed - 1):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _, free=free: (free, 2 * needed))
        with pytest.raises(UserError) if free < needed else contextlib.nullcontext():
            autobatch.check_memory(config, torch.device("cuda"))
    endless = RunConfig(model=ModelConfig(d_model=2 * 10**9, d_ff=2 * 10**9))
    with pytest.raises(UserError, match=r"needs at least 9\.2 EB of memory, and .* are free"):
        autobatch.check_memory(endless, CPU)


def uneven_rows(count: int) -> Rows:
    """Pairs whose sides differ in length."""
    draw = random.Random(1)
    return [([5] * draw.randint(1, 9), [6] * draw.randint(1, 9)) for _ in range(count)]


def encoded(model: torch.nn.Module, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """A list that gets the shape of every batch of sources that the model encodes."""
    shapes: list[tuple[int, ...]] = []
    encode = model.encode
    monkeypatch.setattr(
        model, "encode", lambda src, *more: shapes.append((*src.shape,)) or encode(src, *more)
    )
    return shapes


def sources(data: Mixture, batches: Sequence[np.ndarray]) -> list[tuple[int, int]]:
    """The shapes of batches of sources with EOS."""
    return [(len(batch), int(data.lengths(batch)[0].max()) + 1) for batch in batches]


@pytest.mark.parametrize("risk_steps", [0, 5])
def test_the_largest_batch_is_tried_before_updates_are_timed(risk_steps, tmp_path, monkeypatch):
    """With minimum-risk training later, a try is an update of it: it encodes a batch twice, to draw and to learn."""
    data = mixture(tmp_path / "data", uneven_rows(60))
    config = config_of(data__max_tokens=48, train__risk_steps=risk_steps, train__samples=2)
    model = build(config.model)
    before = weights(model)
    shapes = encoded(model, monkeypatch)
    monkeypatch.setattr(autobatch, "free_memory", lambda: 10**12)
    trial = autobatch.try_batches(model, data, config, CPU)
    plan = data.plan(0, 0, budget=48, accumulate=1, seed=config.train.seed)
    batches = [batch for (batch,) in plan]
    cells = [
        len(batch) * sum(int(side.max()) + 1 for side in data.lengths(batch)) for batch in batches
    ]
    largest = batches[cells.index(max(cells))]
    tried = [largest[:1], largest[: len(largest) // 4], largest]
    times = 2 if risk_steps else 1
    expected = [shape for shape in sources(data, tried) for _ in range(times)]
    assert shapes == expected + 2 * sources(data, batches[:1])
    assert same(weights(model), before) and math.isfinite(trial.seconds_per_update)
    tokens = sum(int(side.sum()) + len(batch) for batch in batches for side in data.lengths(batch))
    assert trial[:2] == (1, len(plan)) and trial.padding == pytest.approx(1 - tokens / sum(cells))


def test_micro_batches_are_halved_until_they_fit(tmp_path, monkeypatch):
    data = mixture(tmp_path / "data", uneven_rows(60))
    peaks = iter([0, 10**9, 0, 10**9, 0, 0])
    usage = SimpleNamespace(
        getrusage=lambda _: SimpleNamespace(ru_maxrss=next(peaks)), RUSAGE_SELF=0
    )
    monkeypatch.setattr(autobatch, "resource", usage)
    monkeypatch.setattr(autobatch, "free_memory", lambda: 10**9)
    config = config_of(data__max_tokens=100)
    assert autobatch.try_batches(build(config.model), data, config, CPU).accumulate == 4
    chosen = config_of(data__max_tokens=100, train__accumulate=3)
    assert autobatch.try_batches(build(chosen.model), data, chosen, CPU).accumulate == 3
    shards = config_of(data__max_tokens=100, train__shard=True)
    several = ALONE._replace(world=2)
    trial = autobatch.try_batches(build(shards.model), data, shards, CPU, several)
    assert (trial.accumulate, trial.seconds_per_update) == (2, math.inf)


def test_the_updates_of_an_epoch_follow_from_its_first_block(tmp_path, monkeypatch):
    monkeypatch.setattr(tokens_mixture, "BLOCK_PAIRS", 40)
    monkeypatch.setattr(tokens_mixture, "RUN_PAIRS", 7)
    data = mixture(tmp_path / "data", uneven_rows(100))
    config = config_of(data__max_tokens=48, train__accumulate=2)
    plan = data.plan(0, 0, budget=24, accumulate=2, seed=config.train.seed)
    pairs = sum(len(batch) for batches in plan for batch in batches)
    trial = autobatch.try_batches(build(config.model), data, config, CPU)
    assert trial.updates_per_epoch == round(len(plan) * 100 / pairs) > 2 * len(plan)


def test_an_epoch_needs_pairs(tmp_path):
    data = Mixture(mixture(tmp_path / "data", uneven_rows(9)).stores, [0.0])
    config = config_of(data__max_tokens=48)
    with pytest.raises(UserError, match="An epoch has no pairs"):
        autobatch.try_batches(build(config.model), data, config, CPU)


@pytest.mark.parametrize(
    ("tokens", "world", "is_small", "accumulate"),
    [
        (8192, 1, False, 1),
        (8192, 1, True, 2),
        (8193, 1, True, 3),
        (8193, 2, True, 4),
        (8193, 3, True, 3),
        (8192, 2, False, 2),
    ],
)
def test_micro_batches_on_a_cpu_have_4096_tokens_and_each_process_has_some(
    tokens, world, is_small, accumulate
):
    config, ranks = config_of(data__max_tokens=tokens), ALONE._replace(world=world)
    assert autobatch._least_accumulate(config, 9, ranks, is_small=is_small) == accumulate


def test_a_batch_fits_if_a_quarter_of_it_takes_its_part_of_the_free_memory(monkeypatch):
    worst, learned, peak = np.arange(9), [], [0]
    usage = SimpleNamespace(getrusage=lambda _: SimpleNamespace(ru_maxrss=peak[0]), RUSAGE_SELF=0)
    monkeypatch.setattr(autobatch, "resource", usage)
    monkeypatch.setattr(autobatch, "free_memory", lambda: 76_800)

    def learn(batches: Sequence[np.ndarray]) -> None:
        learned.append(len(batches[0]))
        peak[0] += step[0] * (len(batches[0]) == 2)

    step = [0]
    for kilobytes, fits in ((10, True), (11, False)):  # times 1024 and 9 / 2; 60 % are 46,080 bytes
        step[0] = kilobytes
        learned.clear()
        assert autobatch._fits(learn, worst, CPU) is fits
        assert learned == [1, 2, 9][: 3 if fits else 2]
    learned.clear()
    assert autobatch._fits(learn, worst[:2], CPU) and learned == [1, 1, 2]
    monkeypatch.setattr(autobatch, "free_memory", lambda: math.inf)
    learned.clear()
    assert autobatch._fits(learn, worst, CPU) and learned == [1]


def test_a_batch_fits_on_a_gpu_if_a_tenth_of_its_memory_stays_free(monkeypatch):
    gpu, learned, reserved = torch.device("cuda", 1), [], [0]
    for name in ("empty_cache", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: reserved.__setitem__(0, 0))
    memory = SimpleNamespace(total_memory=1000)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: memory)
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda _: reserved[0])

    def learn(batches: Sequence[np.ndarray]) -> None:
        learned.append(len(batches[0]))
        reserved[0] += needed[-1]
        if reserved[0] > 1000:
            raise torch.OutOfMemoryError

    needed = []
    for size, fits in ((899, True), (900, False), (1001, False), (899, True)):
        needed.append(size)
        assert autobatch._fits(learn, np.arange(9), gpu) is fits
    assert learned == [9] * 4


@pytest.mark.parametrize(("duration", "count"), [(2.0, 4), (0.4, 4), (0.3, 5), (0.1, 7)])
def test_three_updates_and_a_second_are_timed(duration, count, monkeypatch):
    """Without the first one; of a plan of 12 updates every second one, or less."""
    monkeypatch.setattr(autobatch, "MAX_TIMED_UPDATES", 6)
    clock, learned = [0.0], []
    monkeypatch.setattr(autobatch, "time", SimpleNamespace(perf_counter=lambda: clock[0]))

    def learn(batches: Sequence[np.ndarray]) -> None:
        learned.append(batches)
        clock[0] += duration if len(learned) > 1 else 9.0

    plan = [[np.array([update, part]) for part in range(3)] for update in range(12)]
    seconds = autobatch._seconds(learn, plan, ALONE._replace(rank=1, world=2))
    assert seconds == pytest.approx(duration)
    # This process has the second of three micro-batches, and then nothing: the first one again.
    found = [[batch.tolist() for batch in batches] for batches in learned]
    assert found == [[[n, 1], [n, 0]] for n in (0, 0, 2, 4, 6, 8, 10)[:count]]


@pytest.mark.parametrize(
    ("has_instructions", "seconds", "is_fast"),
    [
        ((True, False), {torch.float32: 2.0, torch.bfloat16: 1.0}, True),
        ((False, True), {torch.float32: 2.0, torch.bfloat16: 1.0}, True),
        ((False, False), {torch.float32: 2.0, torch.bfloat16: 1.0}, False),
        ((True, True), {torch.float32: 1.0, torch.bfloat16: 1.0}, False),
        ((True, True), {torch.float32: 1.0, torch.bfloat16: 2.0}, False),
    ],
)
def test_bfloat16_is_fast_if_the_quickest_product_is(
    has_instructions, seconds, is_fast, monkeypatch
):
    for name, has in zip(
        ("_is_avx512_bf16_supported", "_is_amx_tile_supported"), has_instructions, strict=True
    ):
        monkeypatch.setattr(torch.cpu, name, lambda has=has: has)
    clock, seen = [0.0], []

    def linear(one: torch.Tensor, _: torch.Tensor) -> None:
        is_first = one.dtype not in seen
        seen.append(one.dtype)
        clock[0] += seconds[one.dtype] + 9 * is_first * (one.dtype == torch.bfloat16)

    monkeypatch.setattr(autobatch, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
    monkeypatch.setattr(torch.nn.functional, "linear", linear)
    assert autobatch.has_fast_bfloat16.__wrapped__(CPU) is is_fast
    assert seen == [torch.float32, torch.bfloat16] * (8 if any(has_instructions) else 0)


def test_a_gpu_that_emulates_bfloat16_is_not_fast(monkeypatch):
    monkeypatch.setattr(
        torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation
    )
    assert not autobatch.has_fast_bfloat16.__wrapped__(torch.device("cuda"))
