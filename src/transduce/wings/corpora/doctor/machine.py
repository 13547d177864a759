"""Checks whether this machine is ready for training and serving."""

import os
import platform
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple

from packaging.requirements import Requirement

from transduce.system.machine import cores

GIB = 1 << 30
MIN_MEMORY_BYTES = 4 * GIB  # to train a base model
MIN_DISK_BYTES = 5 * GIB  # for the checkpoints of a base model
EXTRA_PURPOSES = {
    "doctor": "language identification",
    "documents": "PO, XLIFF, TMX and HTML; sentence splitting",
    "export": "export to other formats",
    "fast": "fast translation on CPUs",
    "fetch": "download of known corpora",
    "lab": "comparison of options; the paper's tokenised BLEU",
    "scale": "preparation and translation on many machines",
    "serve": "the HTTP server",
    "tensorboard": "learning curves in TensorBoard",
    "zstd": "files that end in .zst",
}


class Fact(NamedTuple):
    """The result of one check of a machine or a folder. `mend` says how to correct a fault."""

    what: str
    state: Literal["good", "lacking", "damaged"]
    says: str
    mend: str = ""


def machine_facts(folder: Path) -> Iterator[Fact]:
    """Check this machine, and the disk that holds `folder`."""
    yield Fact("Python", "good", platform.python_version())
    yield from _torch()
    yield Fact("cores", "good", f"{cores()} of {os.cpu_count()} CPU threads are available")
    if total := _memory_bytes():
        mend = (
            "train smaller models or use smaller batches (data.max_tokens)"
            if total < MIN_MEMORY_BYTES
            else ""
        )
        yield Fact("memory", "lacking" if mend else "good", f"{total / GIB:,.1f} GiB", mend)
    free = shutil.disk_usage(folder).free
    mend = "free some space, or write to another disk" if free < MIN_DISK_BYTES else ""
    yield Fact(
        "disk", "lacking" if mend else "good", f"{free / GIB:,.1f} GiB free in {folder}", mend
    )
    yield from _extras()


def _torch() -> Iterator[Fact]:
    import torch

    yield Fact("torch", "good", f"{torch.__version__}, {torch.get_num_threads()} threads")
    if torch.cuda.is_available():
        for number in range(torch.cuda.device_count()):
            properties = torch.cuda.get_device_properties(number)
            memory = f"{properties.total_memory / GIB:,.0f} GiB"
            yield Fact("GPU", "good", f"{properties.name}, {memory}, CUDA {torch.version.cuda}")
    elif any(Path("/dev").glob("nvidia[0-9]*")):
        why = (
            "was built without CUDA"
            if torch.version.cuda is None
            else f"was built for CUDA {torch.version.cuda}"
        )
        mend = "install the build of torch for your driver (see nvidia-smi): https://pytorch.org/get-started/locally/"
        yield Fact(
            "GPU", "lacking", f"this machine has a GPU, but torch can't use it: torch {why}", mend
        )
    else:
        yield Fact("GPU", "good", "no GPU; small models can be trained on the CPU")


def _memory_bytes() -> int:
    """The memory of this machine or container in bytes, or 0 if unknown."""
    limits = []
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    limit = Path("/sys/fs/cgroup/memory.max")
    if limit.is_file() and (text := limit.read_text(encoding="ascii").strip()).isdecimal():
        limits.append(int(text))
    return min(limits, default=0)


def _extras() -> Iterator[Fact]:
    """Check for each extra of transduce whether its packages are installed."""
    requirements = [Requirement(text) for text in metadata.requires("transduce") or []]
    for extra, purpose in EXTRA_PURPOSES.items():
        wanted = [
            each for each in requirements if each.marker and each.marker.evaluate({"extra": extra})
        ]
        missing = ", ".join(filter(None, map(_complaint, wanted)))
        mend = f"pip install 'transduce[{extra}]'" if missing else ""
        yield Fact(
            f"extra {extra}",
            "lacking" if missing else "good",
            f"{purpose}: {missing}" if missing else purpose,
            mend,
        )


def _complaint(requirement: Requirement) -> str:
    """Why the installed packages don't meet a requirement, or "" if they meet it."""
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name} is missing"
    is_good = requirement.name == "transduce" or requirement.specifier.contains(
        version, prereleases=True
    )
    return (
        ""
        if is_good
        else f"{requirement.name} {version} is installed, but must be {requirement.specifier}"
    )
