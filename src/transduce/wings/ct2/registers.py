"""Lets CTranslate2 use the widest registers of the processor."""

import os
from contextlib import suppress
from pathlib import Path

from transduce.system.machine import PROCESSORS, entry

# Required by CTranslate2's AVX-512 kernels.
AVX512 = {
    "avx512f",
    "avx512cd",
    "avx512vl",
    "avx512bw",
    "avx512dq",
}


def use_wide_registers() -> None:
    """Make CTranslate2 use AVX-512 if the CPU has it. This must be called before a translator is created.

    By default, CTranslate2 uses AVX-512 on Intel CPUs only. Does nothing if the user has set CT2_FORCE_CPU_ISA.
    """
    if features() >= AVX512:
        os.environ.setdefault("CT2_FORCE_CPU_ISA", "AVX512")


def features(processors: Path = PROCESSORS) -> set[str]:
    """The CPU flags in /proc/cpuinfo, or an empty set if this file can't be read."""
    with suppress(OSError):
        return set(entry(processors, "flags").split())
    return set()
