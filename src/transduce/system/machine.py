"""Cores and free memory of the machine, and settings of the libraries that use them."""

import contextlib
import ctypes
import math
import os
import platform
import threading
from pathlib import Path

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # parameters of mallopt(3)
KEPT_BLOCK_BYTES = 1 << 30
OLD_KEPT_BLOCK_BYTES = 1 << 25  # the maximum before glibc 2.35
SPIN_COUNT = "3000"  # about ten microseconds
KERNELS_CACHED = "64"  # per cache; a micro-batch needs 39
AVX512 = {"avx512f", "avx512cd", "avx512vl", "avx512bw", "avx512dq"}  # required by CTranslate2's AVX-512 kernels
CGROUP = Path("/sys/fs/cgroup")  # the limits of a container (version 2)
NICENESS = 5  # about a third of a normal thread's share


def cores(group: Path = CGROUP) -> int:
    """The number of CPU threads that this process may use, limited by the CPU quota of its container."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):  # there is no quota: no file, or "max"
        quota, period = map(int, (group / "cpu.max").read_text(encoding="ascii").split())
        return max(1, min(allowed, math.ceil(quota / period)))
    return allowed


def free_memory(group: Path = CGROUP) -> float:
    """The bytes that can still be allocated before Linux kills this process or its container; inf on other systems."""
    free = math.inf
    with contextlib.suppress(OSError, ValueError):
        free = int(_entry(Path("/proc/meminfo"), "MemAvailable:").removesuffix("kB")) * 1024
    with contextlib.suppress(OSError, ValueError):
        limit, used = (int((group / f"memory.{name}").read_text(encoding="ascii")) for name in ("max", "current"))
        cached = int(_entry(group / "memory.stat", "inactive_file "))  # Linux frees cached files when needed
        free = min(free, limit - used + cached)
    return free


def lower_priority() -> None:
    """Lower the priority of this thread and of the threads that it will start."""
    if hasattr(os, "setpriority") and platform.system() == "Linux":  # elsewhere the call affects the whole process
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


def sleep_soon() -> None:
    """Make waiting OpenMP threads sleep sooner, unless the user set a wait policy; call this before importing torch.

    A waiting libgomp thread polls 300,000 times before it sleeps, and so takes CPU time from working threads. If other
    processes also use the cores, training with two threads falls to 1/20 of its speed (`benchmarks/spinning.py`).
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)


def keep_memory() -> None:
    """Make glibc reuse large blocks of memory instead of returning them to Linux; does nothing without glibc.

    Tensors take megabytes each, and their sizes differ between batches and between search steps. Linux clears freed
    pages before it hands them out again. Clearing took up to 1/5 of the training time and 1/6 of the search time.
    All threads share the retained memory.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(M_ARENA_MAX, 1)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_BLOCK_BYTES)
        if not libc.mallopt(M_MMAP_THRESHOLD, KEPT_BLOCK_BYTES):
            libc.mallopt(M_MMAP_THRESHOLD, OLD_KEPT_BLOCK_BYTES)


def keep_few_kernels() -> None:
    """Limit the kernel caches of oneDNN and torch, unless the user set limits; call this before any matrix product.

    oneDNN compiles a kernel of about 0.7 MB for each shape of a bfloat16 matrix product. oneDNN and torch each cache
    1,024 kernels. Batches rarely have the same shape, so most kernels are never used again and waste gigabytes.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, KERNELS_CACHED)


def features(processors: Path = Path("/proc/cpuinfo")) -> set[str]:
    """The CPU flags of the first processor, as Linux names them; empty on other systems."""
    with contextlib.suppress(OSError):
        return set(_entry(processors, "flags").split())
    return set()


def _entry(file: Path, name: str) -> str:
    """The text after `name` in the first line that starts with `name`; "" if the file has no such line."""
    with file.open(encoding="utf-8") as lines:
        return next((line.removeprefix(name) for line in lines if line.startswith(name)), "").strip()


def use_wide_registers() -> None:
    """Let CTranslate2 use AVX-512 on every processor that has it; call this before creating a translator.

    By default, CTranslate2 uses AVX-512 on Intel processors only. On other processors it uses AVX2, which is up to
    10 % slower. If the user has set CT2_FORCE_CPU_ISA, that setting takes precedence.
    """
    if features() >= AVX512:
        os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")
