"""What the machine has, and how libraries use it: cores, registers, threads that wait, memory that is kept."""

import contextlib
import ctypes
import math
import os
import platform
import threading
from pathlib import Path

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8  # of mallopt(3)
LARGE = 1 << 30  # bytes
LARGEST_ONCE = 1 << 25  # bytes, before glibc 2.35
SPINS = "3000"  # some ten microseconds
KERNELS = "64"  # a micro-batch has 39
AVX512 = {"avx512f", "avx512cd", "avx512vl", "avx512bw", "avx512dq"}  # what CTranslate2's kernels of that name need
GROUP = Path("/sys/fs/cgroup")  # where a container sees its limits (version 2)
NICE = 5  # a third of the time that a thread gets which does not come second


def cores(group: Path = GROUP) -> int:
    """CPU threads that are worth using: those that are allowed, but no more than a container is given the time of."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):  # there is no limit, or it is "max"
        quota, period = map(int, (group / "cpu.max").read_text(encoding="ascii").split())
        return max(1, min(allowed, math.ceil(quota / period)))
    return allowed


def free_memory(group: Path = GROUP) -> float:
    """Bytes to be had on Linux, which ends a process that takes more, or than its container is given.

    Elsewhere infinite: other systems swap.
    """
    free = math.inf
    with contextlib.suppress(OSError, ValueError):
        free = int(_entry(Path("/proc/meminfo"), "MemAvailable:").removesuffix("kB")) * 1024
    with contextlib.suppress(OSError, ValueError):
        limit, used = (int((group / f"memory.{name}").read_text(encoding="ascii")) for name in ("max", "current"))
        cached = int(_entry(group / "memory.stat", "inactive_file "))
        free = min(free, limit - used + cached)  # of files, which is handed back on need
    return free


def come_second() -> None:
    """Let others be served before this thread, and the threads that it will start, where there are fewer cores."""
    if hasattr(os, "setpriority") and platform.system() == "Linux":  # elsewhere it is the whole process
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


def sleep_soon() -> None:
    """Let a thread that waits for the others of a product sleep after a moment; to be called before torch is imported.

    GNU's OpenMP has it turn 300,000 times first. Where another process has taken a core, it turns on the one that the
    others wait for, and a training with two threads has a twentieth of its speed (`benchmarks/spinning.py`). Who has
    set it already is left alone.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)


def keep_memory() -> None:
    """Tell glibc to reuse large blocks instead of handing each back to the system; elsewhere, do nothing.

    Every batch and every step of a search has other shapes, and their tensors are blocks of megabytes: handed back and
    asked for again, each page of them is cleared by the system every time, which takes up to a fifth of a training, and
    a sixth of a search. Threads that search share the memory that is kept.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(ARENA_MAX, 1)
        libc.mallopt(TRIM_THRESHOLD, LARGE)
        libc.mallopt(MMAP_THRESHOLD, LARGE) or libc.mallopt(MMAP_THRESHOLD, LARGEST_ONCE)


def keep_few_kernels() -> None:
    """Let oneDNN keep the kernels of an update; to be called before the first product. What a user has set stays.

    For each shape of a product in bfloat16 it makes a kernel, of some 0.7 MB, and it and what torch puts around it keep
    1,024 of them. Hardly two batches have the same shapes, so that a training grows by gigabytes for nothing.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, KERNELS)


def features(processors: Path = Path("/proc/cpuinfo")) -> set[str]:
    """What Linux says that the first processor can do, by its names; elsewhere nothing."""
    with contextlib.suppress(OSError):
        return set(_entry(processors, "flags").split())
    return set()


def _entry(file: Path, name: str) -> str:
    """What stands behind a name, at its first line, in a file where the system tells of itself; "" without such."""
    with file.open(encoding="utf-8") as lines:
        return next((line.removeprefix(name) for line in lines if line.startswith(name)), "").strip()


def use_wide_registers() -> None:
    """Let CTranslate2 use AVX-512 where there is such; to be called before its first translator.

    Left alone it does so on processors of Intel only, and takes AVX2 on others, which is up to a tenth slower. Who has
    chosen already is left alone.
    """
    if features() >= AVX512:
        os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")
