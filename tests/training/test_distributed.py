"""Training by several processes learns what one does, and ends as one."""

import functools
import json
import math
import os
import random
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.distributed
from hypothesis import given
from hypothesis import strategies as st

import together
from command_line import run
from corpora import TINY, changed, spelt, write_texts
from forked import COMMAND, Forked
from transduce.config.parse import configure
from transduce.model.build import build
from transduce.preparation.prepare import prepare
from transduce.system.errors import UserError
from transduce.system.journal import Event, read_events
from transduce.training import distributed
from transduce.training.distributed import (
    ALONE,
    Ranks,
    full_model,
    full_tensor,
    gradient_sync,
    init_distributed,
    is_sharded,
    place_on_machine,
    scatter_weights,
    shard_like,
    wrap,
)
from transduce.training.update import dropout_seed
from transduce_lab.comparing.runs import carry_out
from waiting import wait_for

OPTIONS = {
    **TINY,
    "model.dropout": 0.1,
    "train.steps": 50,
    "train.warmup": 40,
    "train.accumulate": 3,
    "train.save_every": 20,
    "train.validate_every": 10,
    "train.patience": 0,
}


@given(st.integers(1, 40), st.integers(1, 12))
def test_each_micro_batch_counts_on_one_rank_and_all_make_as_many_passes(count, world):
    slots = [Ranks(rank, world).slots(count) for rank in range(world)]
    computed = [slot.index for each in slots for slot in each if not slot.is_dummy]
    assert sorted(computed) == list(range(count))
    assert {len(each) for each in slots} == {-(-count // world)}
    for rank, each in enumerate(slots):
        assert all(slot.index % world == rank for slot in each if not slot.is_dummy)
        assert all(0 <= slot.index < count for slot in each)


def test_ranks_ask_each_other(monkeypatch):
    """The other rank has the same numbers; what rank 0 sends, this one gets."""
    asked = []
    sent = {"a": [1, "ü"]}
    content = json.dumps(sent).encode()

    def broadcast(tensor, source, group=None):
        asked.append((source, group))
        tensor[...] = (
            len(content)
            if not tensor.ndim
            else torch.frombuffer(bytearray(content), dtype=torch.uint8)
        )

    def reduce(tensor, how="sum"):
        asked.append(how)
        tensor.add_(tensor)

    fake = SimpleNamespace(
        all_reduce=reduce, broadcast=broadcast, ReduceOp=SimpleNamespace(MAX="max")
    )
    monkeypatch.setattr(distributed, "dist", fake)
    assert ALONE.sum(torch.tensor([1.0, 2.0])).tolist() == [1, 2] and ALONE.highest(3) == 3
    assert ALONE.agree({"b": 1}) == {"b": 1} and asked == []
    both = Ranks(1, 2, agree_group="patient")
    found = both.sum(torch.tensor([1.0, 2.0], dtype=torch.float32))
    assert found.tolist() == [2, 4] and found.dtype == torch.float64
    assert (both.highest(3), asked) == (6, ["sum", "max"])
    assert both.agree({"b": 1}) == sent and asked[2:] == [(0, "patient")] * 2


def test_processes_share_the_threads_and_gpus_of_their_machine(monkeypatch):
    monkeypatch.setattr(distributed, "cores", lambda: 6)
    two, many = (Ranks(1, 9, local_rank=1, local_world=number) for number in (2, 8))
    assert [two.threads(wanted) for wanted in (0, 2, 3, 5)] == [3, 2, 3, 3]
    assert (many.threads(0), many.threads(4)) == (1, 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    assert [ALONE.threads(wanted) for wanted in (0, 9)] == [6, 9]
    monkeypatch.setattr(torch, "get_num_threads", lambda: 5)
    assert ALONE.threads(0) == 5
    chosen, used = [torch.device("cpu")], []
    monkeypatch.setattr(distributed, "choose_device", lambda: chosen[0])
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", used.append)
    assert two.device() == many.device() == torch.device("cpu")
    chosen[0] = torch.device("cuda")
    assert ALONE.device() == torch.device("cuda") and not used
    assert two.device() == torch.device("cuda", 1) == used.pop()
    with pytest.raises(UserError, match="torchrun started 8 processes for 2 GPUs"):
        many.device()


@pytest.mark.parametrize(
    ("environment", "is_first"),
    [
        ({}, True),
        ({"WORLD_SIZE": "1"}, True),
        ({"WORLD_SIZE": "2", "RANK": "0"}, True),
        ({"WORLD_SIZE": "2", "RANK": "1"}, False),
        ({"RANK": "1"}, True),
    ],
)
def test_the_environment_says_which_process_is_the_first(environment, is_first, monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert distributed.is_first() is is_first


def test_each_layer_is_sharded_and_gathered_again(shard):
    from torch.distributed.fsdp import FSDPModule

    model = build(together.MODEL)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}
    sharded = shard(model)
    parts = {name for name, part in sharded.named_modules() if isinstance(part, FSDPModule)}
    layers = {"", "encoder.0", "decoder.0", "decoder.1"}
    sides = {f"decoder.{n}.source_attention.{side}" for n in (0, 1) for side in ("key", "value")}
    assert parts == layers | sides
    assert is_sharded(sharded) and not is_sharded(model)
    with torch.no_grad():
        for weight in sharded.parameters():
            weight.add_(1)
    cpu = torch.device("cpu")
    for ranks, change in ((Ranks(1, 2), 0), (Ranks(0, 2), 1)):
        moved: list[object] = []
        model.to = moved.append  # type: ignore[method-assign]
        with full_model(sharded, model, ranks, cpu) as full:
            assert full is model
        assert moved == ([cpu, "cpu"] if change else [])
        for name, weight in model.state_dict().items():
            torch.testing.assert_close(weight, before[name] + change)
    model.load_state_dict(before)
    scatter_weights(model, sharded, Ranks(0, 2))
    for name, weight in sharded.state_dict().items():
        assert torch.equal(full_tensor(weight), before[name]) and full_tensor(weight) is not weight
    assert not any(weight.is_meta for weight in model.parameters())
    scatter_weights(model, sharded, Ranks(1, 2))
    assert all(weight.is_meta for weight in model.parameters()), "they take no memory"


def test_a_whole_model_stays_as_it_is():
    model = build(together.MODEL)
    scatter_weights(model, model, Ranks(1, 2))
    assert not any(weight.is_meta for weight in model.parameters())
    with full_model(model, model, Ranks(1, 2), torch.device("meta")) as full:
        assert full is model and not any(weight.is_meta for weight in model.parameters())
    weight = next(model.parameters())
    assert full_tensor(weight) is weight and shard_like(weight, weight) is weight


@pytest.mark.usefixtures("shard")
@pytest.mark.parametrize("sparse", [False, True])
def test_gradients_are_averaged_after_the_last_micro_batch_of_an_update(sparse):
    model = build(together.MODEL)
    wrapped = wrap(model, Ranks(0, 2), shard=False, sparse=sparse, device=torch.device("cpu"))
    assert wrapped.module is model and wrapped.find_unused_parameters is sparse
    assert not wrapped.broadcast_buffers
    for last in (True, False):
        with gradient_sync(wrapped, last=last):
            assert wrapped.require_backward_grad_sync is last
        with gradient_sync(model, last=last):
            pass


def test_single_process_needs_no_process_group():
    with init_distributed() as ranks:
        assert ranks is ALONE
        assert not torch.distributed.is_initialized()
        model = build(together.MODEL)
        assert wrap(model, ranks, shard=True, sparse=False, device=torch.device("cpu")) is model
    assert [slot.index for slot in ALONE.slots(5)] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("environment", "pattern"),
    [
        ({"WORLD_SIZE": "2"}, "RANK is ''.*Start the processes with torchrun, or unset WORLD_SIZE"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE is 'two'"),
        ({"WORLD_SIZE": "²"}, "WORLD_SIZE is '²'"),
        ({"WORLD_SIZE": "2", "RANK": "0"}, "MASTER_PORT is ''"),
        (
            {"WORLD_SIZE": "2", "RANK": "1", "MASTER_PORT": "65536"},
            "MASTER_PORT is 65536; the highest port is 65535",
        ),
    ],
)
def test_incomplete_environment_is_refused(environment, pattern, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UserError, match=pattern), init_distributed():
        pass


def test_only_train_runs_as_several_processes(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    status, _, said = run(capsys, "demo", "--out", tmp_path / "out")
    assert (status, "torchrun is for `transduce train`" in said) == (2, True), said
    with pytest.raises(UserError, match=r"only. Start this command without torchrun"):
        carry_out([], tmp_path, 1.0)


def test_unshardable_models_are_refused(tmp_path, capsys):
    command = [
        "train",
        "--train",
        *write_texts(tmp_path, "train", 50, seed=1),
        "--out",
        tmp_path / "out",
    ]
    for option, reason in (
        ("model.kind=recurrent", "kind transformer"),
        ("model.experts=4", "experts"),
    ):
        status, _, said = run(capsys, *command, "train.shard=true", option)
        assert status == 2 and "train.shard " in said and reason in said


JOINS = """
from transduce.training import distributed, rendezvous
rendezvous.JOIN_SECONDS = 5.0
with distributed.init_distributed():
    pass
"""
MISSES_RANK_2 = """
import datetime, os, pathlib, sys, waiting
from transduce.training import distributed, rendezvous
folder, rank, roll_call = pathlib.Path(sys.argv[1]), os.environ["RANK"], rendezvous._roll_call

class Store:  # waits briefly for rank 2 only: the others may be slow
    def __init__(self, store):
        self.add, self.set, self.get, self._wait = store.add, store.set, store.get, store.wait

    def wait(self, keys, timeout):
        patience = datetime.timedelta(seconds=waiting.PATIENCE)
        self._wait(keys, timeout if keys == ["transduce/name/2"] else patience)

def brief_roll_call(store, *numbers):
    rendezvous.NOTICE_SECONDS, rendezvous.JOIN_SECONDS = 0.5, 2.0
    return roll_call(Store(store), *numbers)

rendezvous._roll_call = brief_roll_call  # private, since only the call for rank 2 may be brief on a busy machine
try:
    with distributed.init_distributed():
        pass
finally:
    (folder / rank).touch()
    if rank == "0":  # the store ends with it
        waiting.wait_for((folder / "1").exists)
"""


def test_missing_rank_is_named_after_a_timeout(tmp_path):
    for status, said in together.ends(together.start(2, MISSES_RANK_2, tmp_path, WORLD_SIZE="3")):
        assert (
            status == 1 and "has not heard from rank 2: was it killed, or never started?" in said
        ), said
        assert "has not heard from rank 2 for 2 seconds. Start all ranks together" in said, said


def test_two_processes_with_one_number_are_refused():
    processes = together.start(2, JOINS, RANK="0")
    assert any(
        "have the same rank" in said or "can't connect to the others" in said
        for _, said in together.ends(processes)
    )


VERSIONS = """
import os
from transduce.training import distributed
distributed.code_hash = lambda: os.environ["RANK"]
with distributed.init_distributed():
    raise AssertionError("they have different versions")
"""
FOLDERS = """
import os, pathlib, sys
from transduce.training import distributed, resume
with distributed.init_distributed() as ranks:
    resume.check_shared(pathlib.Path(sys.argv[1]) / "same", ranks)
    resume.check_shared(pathlib.Path(sys.argv[1]) / os.environ["RANK"], ranks)
    raise AssertionError("they have different folders")
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (VERSIONS, "Rank 1 has other versions than rank 0"),
        (FOLDERS, "1 is not the folder that rank 0"),
    ],
)
def test_ranks_with_other_code_or_files_are_refused(code, said, tmp_path):
    for name in ("same", "0", "1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text(name)
    found = together.ends(together.start(2, code, tmp_path))
    assert [status for status, _ in found] == [1, 1]
    assert all(said in each and "they have different" not in each for _, each in found)


@pytest.fixture(scope="module")
def computed(tmp_path_factory) -> tuple[Path, dict[str, list[tuple[int, str]]]]:
    """Gradients by two and three processes in a folder, and how the processes ended, each in another way."""
    folder = tmp_path_factory.mktemp("gradients")
    worlds = {"killed": 2, "error": 3}
    started = {
        end: together.start(world, together.GRADIENTS, folder, end) for end, world in worlds.items()
    }
    return folder, {end: together.ends(processes) for end, processes in started.items()}


@pytest.mark.parametrize("world", [2, 3])
def test_any_number_of_ranks_has_the_same_gradient(world, computed):
    """By DDP, of three ranks also sharded; what is left over of an update is any number of micro-batches."""
    names = (
        {"transformer/fsdp", "transformer/ddp"}
        if world == 3
        else {f"{name}/ddp" for name in together.MODELS}
    )
    for rank in range(world):
        everything = torch.load(computed[0] / f"{world}-{rank}.pt")
        assert everything.keys() == names
        for name, found in everything.items():
            kind = name.partition("/")[0]
            alone = alone_gradients(kind)
            assert found.keys() == alone.keys()  # a weight that has no gradient has none
            for count in together.COUNTS[kind]:
                keys = [
                    key for key in alone if key.startswith(f"{count}/") and not key.endswith("loss")
                ]
                one, other = (
                    torch.cat([each[key].flatten() for key in keys]).double()
                    for each in (alone, found)
                )
                assert (other - one).norm() <= 1e-6 * one.norm(), (name, count)
                torch.testing.assert_close(
                    found[f"{count}/loss"], alone[f"{count}/loss"], rtol=1e-6, atol=0
                )
            last = max(together.COUNTS[kind])
            for key in (key for key in found if key.startswith("first/")):
                assert torch.equal(found[key], found[key.replace("first", str(last))]), (
                    f"{name}: a start changes {key}"
                )


@functools.cache
def alone_gradients(kind: str) -> dict[str, torch.Tensor]:
    """Those of one process."""
    return together.gradients(kind, ALONE)


def test_killed_rank_stops_all_ranks_with_its_cause(computed):
    (status, said), (killed, _) = computed[1]["killed"]
    assert (status, killed) == (1, -signal.SIGKILL)
    assert said.startswith("transduce: Rank 1 (process ") and "died: it was killed" in said


def test_error_of_one_rank_is_reported_by_all(computed):
    *others, (status, said) = computed[1]["error"]
    assert status == 1 and "UserError: There is no room." in said
    for status, said in others:
        # PyTorch may warn before it that the name of a computer is unknown.
        *_, last = said.splitlines()
        assert status == 1 and last.startswith("transduce: Rank 2 (process ")
        assert last.endswith("ended: There is no room.")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> list[str]:
    """The command-line arguments of a small corpus."""
    folder = tmp_path_factory.mktemp("corpus")
    train, valid = (
        write_texts(folder, "train", 700, seed=1),
        write_texts(folder, "valid", 30, seed=2),
    )
    return ["--train", *train, "--valid", *valid]


def command(corpus: list[str], out: Path, **changes: object) -> list[str]:
    """What stands behind `transduce`; a change is written train__steps=10."""
    return ["train", *corpus, "--out", str(out), *spelt(changed(OPTIONS, **changes))]


def succeed(world: int, *arguments: str) -> list[str]:
    """Train with so many processes; returns what each said."""
    found = together.ends(together.start(world, COMMAND, *arguments))
    assert [status for status, _ in found] == [0] * world, found
    assert [said for _, said in found[1:]] == [""] * (world - 1)
    return [said for _, said in found]


def validations(out: Path) -> list[Event]:
    """What the journal says of them."""
    return [event for event in read_events(out / "journal.jsonl") if event["event"] == "validation"]


def curve(out: Path) -> list[tuple[int, float]]:
    """Step and loss per token of every validation."""
    return [(event["step"], math.log(event["perplexity"])) for event in validations(out)]


def same_curve(one: Path, other: Path) -> bool:
    """Whether two trainings learnt the same."""
    steps, losses = zip(*curve(one), strict=True)
    return (steps, pytest.approx(losses, abs=1e-4)) == tuple(zip(*curve(other), strict=True))


@pytest.mark.slow
def test_any_number_of_ranks_trains_and_resumes_alike(corpus, tmp_path):
    for world in (1, 2, 3):
        succeed(world, *command(corpus, tmp_path / str(world)))
    succeed(2, *command(corpus, tmp_path / "sharded", train__shard=True))
    for name, steps in (("changed", 15), ("changed", 31), ("changed", 50)):
        world, shard = {15: (2, False), 31: (3, True), 50: (1, False)}[steps]
        succeed(world, *command(corpus, tmp_path / name, train__steps=steps, train__shard=shard))
    assert len(curve(tmp_path / "1")) == 5
    for name in ("2", "3", "sharded", "changed"):
        assert same_curve(tmp_path / "1", tmp_path / name), name


@pytest.mark.slow
def test_three_ranks_resume_with_the_same_bits(corpus, tmp_path):
    drawn = {"data__augment": "default", "train__sample_source": 0.1}
    for name, steps in (("again", 20), ("again", 40), ("whole", 40)):
        succeed(3, *command(corpus, tmp_path / name, train__steps=steps, **drawn))
    weights = "checkpoints/step-00000040/model.safetensors"
    assert (tmp_path / "again" / weights).read_bytes() == (
        tmp_path / "whole" / weights
    ).read_bytes()


@pytest.mark.slow
def test_no_corpus_size_makes_ranks_hang(tmp_path):
    """Epochs whose last update has every number of micro-batches, some of them fewer than there are ranks."""
    prepared: dict[int, Path] = {}
    for count in range(150, 400, 10):
        files, folder = (
            write_texts(tmp_path, f"train-{count}", count, seed=count),
            tmp_path / f"prepared-{count}",
        )
        data = configure({"data.corpora": [{"files": files}], "data.holdout": 10}).data
        mixture = prepare(data, folder, vocab_size=lambda _: 300).mixture
        prepared.setdefault(len(mixture.plan(0, 0, budget=50, accumulate=4, seed=1)[-1]), folder)
    assert prepared.keys() == {1, 2, 3, 4}
    for rest, folder in prepared.items():
        out = tmp_path / f"out-{rest}"
        changes = {"data__max_tokens": 200, "train__accumulate": 4}
        succeed(3, *command(["--train", str(folder)], out, **changes))
        assert validations(out)[-1]["epoch"] > 1


@pytest.mark.slow
def test_signal_to_one_rank_stops_all_and_training_resumes(corpus, tmp_path):
    out = tmp_path / "out"
    processes = together.start(2, COMMAND, *command(corpus, out, train__steps=5000))
    wait_for(lambda: (out / "checkpoints/step-00000020").is_dir())
    processes[1].send_signal(signal.SIGTERM)
    assert [status for status, _ in together.ends(processes)] == [130, 130]
    stop = list(read_events(out / "journal.jsonl"))[-1]
    assert (stop["event"], stop["reason"]) == ("stop", "interrupted")
    assert (out / f"checkpoints/step-{stop['step']:08d}").is_dir()
    steps = -(-(stop["step"] + 1) // 10) * 10
    succeed(3, *command(corpus, out, train__steps=steps))
    succeed(1, *command(corpus, tmp_path / "whole", train__steps=steps))
    assert same_curve(out, tmp_path / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("trial", range(6))
def test_a_killed_rank_ends_the_job(trial, corpus, tmp_path):
    chance = random.Random(trial)
    world = chance.choice([2, 3])
    processes = together.start(
        world,
        COMMAND,
        *command(corpus, tmp_path / "out", train__steps=5000, train__validate_every=5),
    )
    said = wait_for(lambda: processes[0].said)  # they have met, and rank 0 begins to prepare
    assert said.startswith("Reading the corpus")
    moment = chance.choice(
        ["data/manifest.json", "config.toml", "checkpoints/step-00000010", "checkpoints/step-*5"]
    )
    wait_for(lambda: any((tmp_path / "out").glob(moment)), lambda: processes[0].poll() is not None)
    victim = chance.randrange(world)
    processes[victim].kill()
    for rank, (status, said) in enumerate(together.ends(processes)):
        if rank != victim:
            assert status == 1
            assert (
                f"transduce: Rank {victim} " in said.splitlines()[-1]
                and "died: it was killed" in said.splitlines()[-1]
            )


def torchrun(*arguments: object) -> Forked:
    """torchrun with a training."""
    return Forked(
        "from torch.distributed.run import main; main()",
        *arguments,
        PYTHONPATH=os.pathsep.join(sys.path),
    )


@pytest.mark.slow
def test_torchrun_restarts_killed_ranks(corpus, tmp_path):
    out = tmp_path / "out"
    options = ["--nproc-per-node", 2, "--master-port", together.free_port(), "--max-restarts", 2]
    process = torchrun(*options, "-m", "transduce", *command(corpus, out, train__steps=200))
    for step in (20, 80):
        wait_for(lambda step=step: (out / f"checkpoints/step-{step:08d}").is_dir())
        mine = wait_for(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text).split()
        os.kill(int(mine[step % len(mine)]), signal.SIGKILL)
    ((status, said),) = together.ends([process])
    assert status == 0, said
    assert said.count("Resuming at step") >= 1 and said.count("died: it was killed") <= 2
    succeed(1, *command(corpus, tmp_path / "whole", train__steps=200))
    assert same_curve(out, tmp_path / "whole")


@pytest.mark.slow
def test_two_nodes_train_like_one_process(corpus, tmp_path):
    address = f"127.0.0.1:{together.free_port()}"
    options = [
        "--nnodes",
        2,
        "--nproc-per-node",
        1,
        "--rdzv-backend",
        "c10d",
        "--rdzv-endpoint",
        address,
    ]
    nodes = [
        torchrun(*options, "-m", "transduce", *command(corpus, tmp_path / "two")) for _ in range(2)
    ]
    assert [status for status, _ in together.ends(nodes)] == [0, 0]
    succeed(1, *command(corpus, tmp_path / "one"))
    assert same_curve(tmp_path / "one", tmp_path / "two")


def test_dropout_depends_on_the_micro_batch_not_on_the_rank():
    seeds = {
        dropout_seed(1, 5, slot.index) for rank in range(3) for slot in Ranks(rank, 3).slots(6)
    }
    assert seeds == {dropout_seed(1, 5, place) for place in range(6)}


def test_processes_without_local_ranks_count_those_of_their_machine(monkeypatch):
    """As in Kubernetes, where each pod is a machine."""

    def gather(hosts: list[str], *_: str, **__: object) -> None:
        hosts[:] = ["a", "b", "a", "c"]

    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    monkeypatch.setattr(torch.distributed, "all_gather_object", gather)
    assert [place_on_machine(rank, 4, None) for rank in range(4)] == [
        (0, 2),
        (0, 1),
        (1, 2),
        (0, 1),
    ]
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert place_on_machine(3, 4, None) == (1, 2)
