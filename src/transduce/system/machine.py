"""The CPU cores and the free memory of the machine, and performance settings of libraries."""

import contextlib
import ctypes
import math
import os
import platform
from pathlib import Path

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # parameters of mallopt(3)
KEPT_BLOCK_BYTES = 1 << 30
OLD_KEPT_BLOCK_BYTES = 1 << 25  # the maximum before glibc 2.35
SPIN_COUNT = "3000"  # about ten microseconds
KERNELS_CACHED = "64"  # kernels per cache; a micro-batch needs 39
CGROUP = Path("/sys/fs/cgroup")  # the limits of a container (version 2)
PROCESSORS = Path("/proc/cpuinfo")


def cores(group: Path = CGROUP) -> int:
    """The number of logical CPUs that this process may use, within the CPU quota of its container."""
    allowed = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    with contextlib.suppress(OSError, ValueError):  # there is no quota: no file, or "max"
        quota, period = map(int, (group / "cpu.max").read_text(encoding="ascii").split())
        return max(1, min(allowed, math.ceil(quota / period)))
    return allowed


def free_memory(group: Path = CGROUP) -> float:
    """The number of bytes that this process can still allocate, or inf on systems other than Linux."""
    free = math.inf
    with contextlib.suppress(OSError, ValueError):
        free = int(entry(Path("/proc/meminfo"), "MemAvailable:").removesuffix("kB")) * 1024
    with contextlib.suppress(OSError, ValueError):
        limit, used = (
            int((group / f"memory.{name}").read_text(encoding="ascii"))
            for name in ("max", "current")
        )
        # Linux frees cached files when needed.
        cached = int(entry(group / "memory.stat", "inactive_file "))
        free = min(free, limit - used + cached)
    return free


def sleep_soon() -> None:
    """Make waiting OpenMP threads sleep sooner. This must be called before torch is imported.

    Threads that poll while they wait take CPU time from other processes (docs/reference/performance.md). Does nothing
    if the user has set OMP_WAIT_POLICY.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)


def let_segments_grow() -> None:
    """Make torch enlarge blocks of GPU memory instead of adding new ones. This must be called before torch is imported.

    Without this, batches of many shapes take twice as much memory. Does nothing if the user has set torch's options.
    """
    if "PYTORCH_ALLOC_CONF" not in os.environ:
        os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")


def keep_memory() -> None:
    """Make glibc reuse large blocks of memory instead of returning them to Linux.

    Without this, clearing pages for new tensors takes up to 1/5 of the training time and 1/6 of the search time.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(M_ARENA_MAX, 1)
        libc.mallopt(M_TRIM_THRESHOLD, KEPT_BLOCK_BYTES)
        if not libc.mallopt(M_MMAP_THRESHOLD, KEPT_BLOCK_BYTES):
            libc.mallopt(M_MMAP_THRESHOLD, OLD_KEPT_BLOCK_BYTES)


def keep_few_kernels() -> None:
    """Limit the kernel caches of oneDNN and torch. This must be called before any matrix product.

    oneDNN compiles a kernel of about 0.7 MB for each shape of a bfloat16 matrix product. Limits that the user has
    set in the environment stay in force.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, KERNELS_CACHED)


def processor() -> str:
    """The name of the processor."""
    with contextlib.suppress(OSError):
        if name := entry(PROCESSORS, "model name").lstrip("\t :"):
            return name
    return platform.processor() or platform.machine()


def entry(file: Path, name: str) -> str:
    """The text after `name` in the first line that starts with `name`, or "" if there is no such line."""
    with file.open(encoding="utf-8") as lines:
        return next(
            (line.removeprefix(name) for line in lines if line.startswith(name)), ""
        ).strip()
