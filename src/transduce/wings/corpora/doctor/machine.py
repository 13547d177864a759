"""Checks whether this machine is ready for training and serving."""

import math
import os
import platform
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal, NamedTuple

from packaging.requirements import Requirement

from transduce.system.machine import cores, free_memory

GIB = 1 << 30
EXTRA_PURPOSES = {
    "doctor": "language identification",
    "documents": "PO, XLIFF, TMX and HTML; sentence splitting",
    "export": "export to other formats",
    "fast": "fast translation on CPUs",
    "fetch": "download of known corpora",
    "lab": "comparison of options; the paper's tokenised BLEU",
    "scale": "preparation and translation on many machines",
    "serve": "the HTTP server",
    "terms": "dictionary forms of terms",
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
    if (memory := free_memory()) < math.inf:
        yield Fact("memory", "good", f"{memory / GIB:,.1f} GiB free")
    free = shutil.disk_usage(folder).free
    yield Fact("disk", "good", f"{free / GIB:,.1f} GiB free in {folder}")
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
        built = f"for CUDA {torch.version.cuda}" if torch.version.cuda else "without CUDA"
        says = f"this machine has a GPU, but torch can't use it: torch was built {built}"
        mend = "install the build of torch for your driver (see nvidia-smi): https://pytorch.org/get-started/locally/"
        yield Fact("GPU", "lacking", says, mend)
    else:
        yield Fact("GPU", "good", "no GPU; small models can be trained on the CPU")


def _extras() -> Iterator[Fact]:
    """Check for each extra of transduce whether its packages are installed."""
    requirements = [Requirement(text) for text in metadata.requires("transduce") or []]
    for extra, purpose in EXTRA_PURPOSES.items():
        wanted = [
            each for each in requirements if each.marker and each.marker.evaluate({"extra": extra})
        ]
        missing = ", ".join(filter(None, map(_complaint, wanted)))
        if missing:
            mend = f"pip install 'transduce[{extra}]'"
            yield Fact(f"extra {extra}", "lacking", f"{purpose}: {missing}", mend)
        else:
            yield Fact(f"extra {extra}", "good", purpose)


def _complaint(requirement: Requirement) -> str:
    """Why the installed packages don't meet a requirement, or "" if they meet it."""
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return f"{requirement.name} is missing"
    if requirement.name == "transduce" or requirement.specifier.contains(version, prereleases=True):
        return ""
    return f"{requirement.name} {version} is installed, but must be {requirement.specifier}"
