"""Reads the tensors of a file that `torch.save` wrote, without running its pickle.

A pickle is a program, which may call any function. Of its steps, only those of STEPS are followed, which fill
collections. Of its names, only those of KNOWN_NAMES are accepted, and none is imported: each stands for a function
below, or for a type of numbers. A tensor is made only after its size has been compared with the size of the file.

Both formats are read: zip archives, and the files of torch before 1.6, which hold no checksums.
"""

import contextlib
import io
import math
import pickle
import struct
import zipfile
from pathlib import Path
from typing import IO, Any, ClassVar

import torch
from torch import Tensor

MAX_PICKLE_BYTES = 64 << 20  # the description of a model with 10,000 tensors takes 1 MB
MAX_DIMENSIONS = 8
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_START = b"\x80\x02\x8a\x0a" + LEGACY_MAGIC.to_bytes(10, "little") + b"."
LEGACY_VERSION = 1001
ZIP_START = b"PK\x03\x04"
STEPS = (
    "PROTO STOP MARK GLOBAL REDUCE BINPERSID BINPUT LONG_BINPUT BINGET LONG_BINGET "
    "NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINUNICODE "
    "EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_LIST APPEND APPENDS EMPTY_DICT SETITEM SETITEMS"
)


def read_torch_file(file: Path) -> dict[str, Tensor]:
    """The tensors of a model's weights by name; tensors that share a storage in the file share it here.

    Raises ValueError if the file is damaged, or holds anything but tensors of floating-point numbers.
    """
    with file.open("rb") as content:
        start = content.read(len(LEGACY_START))
        content.seek(0)
        try:
            if start.startswith(ZIP_START):
                return _read_zip(content, file.stat().st_size)
            if start == LEGACY_START:
                return _read_legacy(content, file.stat().st_size)
        except (
            zipfile.BadZipFile,
            pickle.UnpicklingError,
            struct.error,
            OSError,
            EOFError,
            LookupError,
            TypeError,
            AttributeError,
            RuntimeError,  # also NotImplementedError and RecursionError
        ) as error:
            raise ValueError(f"it is damaged ({error!r})") from None
    raise ValueError("torch.save didn't write it")


def _read_zip(content: IO[bytes], file_size: int) -> dict[str, Tensor]:
    with zipfile.ZipFile(content) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries.values()):
            raise ValueError("its entries are compressed")
        pickles = [name for name in entries if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ValueError("the entry data.pkl is missing")
        folder = pickles[0].removesuffix("data.pkl")
        order = f"{folder}byteorder"
        if order in entries and archive.read(order) != b"little":
            raise ValueError("its numbers have another byte order")
        with archive.open(pickles[0]) as described:
            reader = _Reader(described.read(MAX_PICKLE_BYTES), file_size)
        weights = _weights(reader.load())
        for key, storage in reader.storages.items():
            entry = f"{folder}data/{key}"
            if entry not in entries or entries[entry].file_size != storage.nbytes:
                raise ValueError(f"the values of the storage {key} are missing")
            with archive.open(entry) as values:
                _fill(storage, values)
    return weights


def _read_legacy(content: IO[bytes], file_size: int) -> dict[str, Tensor]:
    reader = _Reader(content.read(MAX_PICKLE_BYTES), file_size)
    magic, version, system, described, keys = (reader.load() for _ in range(5))
    if (magic, version) != (LEGACY_MAGIC, LEGACY_VERSION):
        raise ValueError("it has another version")
    if system["little_endian"] is not True:
        raise ValueError("its numbers have another byte order")
    weights = _weights(described)
    if sorted(keys) != sorted(reader.storages):
        raise ValueError("its list of storages is damaged")
    content.seek(reader.pickles.tell())
    for key in keys:
        storage = reader.storages[key]
        if int.from_bytes(content.read(8), "little") != storage.numel():
            raise ValueError(f"the values of the storage {key} are missing")
        _fill(storage, content)
    if content.read(1):
        raise ValueError("it does not end after its last storage")
    return weights


def _weights(value: Any) -> dict[str, Tensor]:
    """The value. Raises ValueError unless it is a dictionary of tensors."""
    if not isinstance(value, dict) or not value:
        raise ValueError("it holds no weights by name")
    for name, each in value.items():
        if not isinstance(name, str) or not isinstance(each, Tensor):
            raise ValueError(f"{name!r:.80} is not the name of a tensor")
    return value


def _fill(storage: Tensor, content: IO[bytes]) -> None:
    """Read the values of a storage. Raises EOFError if some are missing."""
    read = content.readinto(storage.view(torch.uint8).numpy())  # type: ignore[attr-defined]
    if read < storage.nbytes:
        raise EOFError


class _Reader(pickle._Unpickler):
    """Python's machine for pickles with few steps and with names of our own."""

    dispatch: ClassVar[dict[int, Any]] = {
        code: pickle._Unpickler.dispatch[code]
        for code in (getattr(pickle, step)[0] for step in STEPS.split())
    }

    def __init__(self, content: bytes, room: int) -> None:
        """`room` is the number of bytes that storages may have."""
        self.pickles = io.BytesIO(content)  # whatever size a step claims, no more is read
        self.room = room
        self.storages = dict[str, Tensor]()
        super().__init__(self.pickles)

    def find_class(self, module: str, name: str) -> object:
        known = f"{module}.{name}"
        if known not in KNOWN_NAMES:
            raise ValueError(
                f"it names '{known:.80}', which weights of floating-point numbers don't need"
            )
        return KNOWN_NAMES[known]

    def persistent_load(self, value: object) -> Tensor:
        """A storage, whose values are read later."""
        match value:
            case ("storage", torch.dtype() as dtype, str(key), str(), int(size), *views) if (
                views in ([], [None])
            ):
                if key not in self.storages:
                    self.room -= size * dtype.itemsize
                    if self.room < 0:
                        raise ValueError(f"the values of the storage {key} are missing")
                    self.storages[key] = torch.empty(size, dtype=dtype)
                storage = self.storages[key]
                if (storage.dtype, storage.numel()) != (dtype, size):
                    raise ValueError(f"the storage {key} has two sizes or types")
                return storage
        raise ValueError("its description of a storage is damaged")

    def ignore_attributes(self) -> None:
        """Attributes of an OrderedDict, such as versions of modules."""
        self.stack.pop()  # type: ignore[attr-defined]

    dispatch[pickle.BUILD[0]] = ignore_attributes


def _tensor(storage: Tensor, offset: int, size: Any, stride: Any, *_: object) -> Tensor:
    """A tensor whose values lie in its storage; raises ValueError otherwise."""
    values = storage.numel()
    are_counts = min(offset, *size, *stride, 0) == 0 and len(size) <= MAX_DIMENSIONS
    if are_counts and math.prod(size) <= values and offset <= values:
        with contextlib.suppress(RuntimeError, TypeError):  # for another place than the storage
            return storage.as_strided(size, stride, offset)
    raise ValueError("a tensor extends beyond its storage")


def _parameter(tensor: Tensor, *_: object) -> Tensor:
    return tensor


# What the known names of a pickle stand for.
KNOWN_NAMES: dict[str, object] = {
    "collections.OrderedDict": dict,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_parameter": _parameter,
    "torch.FloatStorage": torch.float32,
    "torch.HalfStorage": torch.float16,
    "torch.BFloat16Storage": torch.bfloat16,
    "torch.DoubleStorage": torch.float64,
}
