"""What keeps a long computation from growing, and what the machine is."""

import os
import subprocess
import sys
import time

import pytest
import torch

from transduce.system.machine import cores, free_memory, let_segments_grow
from transduce.training.autobatch import has_fast_bfloat16

PRODUCTS = """
import torch
from pathlib import Path
from transduce.system.machine import keep_few_kernels
if {few}:
    keep_few_kernels()
torch.set_num_threads(1)
weight = torch.ones(256, 256, dtype=torch.bfloat16)
def after(first, last):
    for rows in range(first, last):
        torch.ones(rows, 256, dtype=torch.bfloat16) @ weight
    return int(Path("/proc/self/statm").read_text().split()[1])  # pages in memory
before = after(900, 1000)
print(after(1000, 1500) - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    not has_fast_bfloat16(torch.device("cpu")) or sys.platform != "linux", reason="other kernels"
)
def test_products_of_many_shapes_take_no_more_memory():
    kept = {
        name: value for name, value in os.environ.items() if not name.endswith("CACHE_CAPACITY")
    }
    many, few = (
        int(subprocess.check_output([sys.executable, "-c", PRODUCTS.format(few=few)], env=kept))
        for few in (False, True)
    )
    assert few < many / 4


@pytest.mark.parametrize("slow", [torch.float32, torch.bfloat16])
def test_the_faster_precision_is_chosen(slow, monkeypatch):
    clock = [0.0]
    # Torch has no public name.
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(
        torch.nn.functional,
        "linear",
        lambda factor, _: clock.__setitem__(0, clock[0] + 1 + (factor.dtype == slow)),
    )
    assert has_fast_bfloat16.__wrapped__(torch.device("cpu")) == (slow == torch.float32)


def test_container_limits_cap_cores_and_memory(tmp_path):
    many, much = cores(tmp_path), free_memory(tmp_path)
    for quota, found in (
        ("max 100000", many),
        ("50000 100000", 1),
        (f"{many * 100_000} 100000", many),
    ):
        (tmp_path / "cpu.max").write_text(f"{quota}\n")
        assert cores(tmp_path) == found
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("file 300\ninactive_file 200\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert free_memory(tmp_path) > 1000 or much < 1000
    (tmp_path / "memory.max").write_text("1000\n")
    assert free_memory(tmp_path) == 500


@pytest.mark.parametrize(
    "theirs", [{}, {"PYTORCH_ALLOC_CONF": "a:b"}, {"PYTORCH_CUDA_ALLOC_CONF": "a:b"}]
)
def test_blocks_of_gpu_memory_grow_unless_the_user_says_otherwise(monkeypatch, theirs):
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        monkeypatch.delenv(name, raising=False)
    for name, value in theirs.items():
        monkeypatch.setenv(name, value)
    let_segments_grow()
    said = {name: value for name, value in os.environ.items() if name.startswith("PYTORCH_")}
    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF", raising=False)
    assert said == (theirs or {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
