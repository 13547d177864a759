"""What the machine has: cores, and memory that a long computation keeps."""

import ctypes
import os
import platform

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8  # of mallopt(3)
LARGE = 1 << 30  # bytes
LARGEST_ONCE = 1 << 25  # bytes, before glibc 2.35


def cores() -> int:
    """CPU threads that are worth using."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
