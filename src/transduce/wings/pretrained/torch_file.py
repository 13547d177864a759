"""Reads the tensors of a file that `torch.save` wrote, without unpickling it.

A pickle is a program, which may call any function. Here, the program only describes tensors: the three functions and
four types of storages below are names, nothing is imported or called, and every other name is refused. A tensor is made
only after its size has been compared with the size of the file.

Both formats are read: zip archives, and the files of torch before 1.6, which hold no checksums.
"""

import io
import math
import pickletools
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

import torch
from torch import Tensor

MAX_PICKLE_BYTES = 64 << 20  # the description of a model with 10,000 tensors takes 1 MB
MAX_DIMENSIONS = 8
LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
LEGACY_START = b"\x80\x02\x8a\x0a" + LEGACY_MAGIC.to_bytes(10, "little") + b"."
LEGACY_VERSION = 1001
ZIP_START = b"PK\x03\x04"
ORDERED_DICT = "collections OrderedDict"
REBUILD_TENSOR = "torch._utils _rebuild_tensor_v2"
REBUILD_PARAMETER = "torch._utils _rebuild_parameter"
STORAGE_TYPES = {
    "torch FloatStorage": torch.float32,
    "torch HalfStorage": torch.float16,
    "torch BFloat16Storage": torch.bfloat16,
    "torch DoubleStorage": torch.float64,
}
KNOWN_NAMES = {ORDERED_DICT, REBUILD_TENSOR, REBUILD_PARAMETER, *STORAGE_TYPES}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
# Opcodes that push their argument.
VALUE_STEPS = {"BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE"}


class Name(NamedTuple):
    """A name of a Python object, which is never imported."""

    name: str


class Storage(NamedTuple):
    """A part of the file with the values of tensors."""

    key: str
    dtype: torch.dtype
    size: int  # values


class Description(NamedTuple):
    """A tensor in a storage."""

    storage: Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


def read_torch_file(file: Path) -> dict[str, Tensor]:
    """The tensors of a model's weights by name; tensors that share a storage in the file share it here.

    Raises ValueError if the file is damaged, or holds anything but tensors of floating-point numbers.
    """
    with file.open("rb") as content:
        start = content.read(len(LEGACY_START))
        content.seek(0)
        try:
            if start.startswith(ZIP_START):
                return _read_zip(content)
            if start == LEGACY_START:
                return _read_legacy(content, file.stat().st_size)
        except (
            zipfile.BadZipFile,
            zlib.error,
            struct.error,
            OSError,
            EOFError,
            NotImplementedError,
            RuntimeError,
            RecursionError,
        ) as error:
            raise ValueError(f"it is damaged ({str(error) or type(error).__name__})") from None
    raise ValueError("torch.save didn't write it")


def _read_zip(content: IO[bytes]) -> dict[str, Tensor]:
    with zipfile.ZipFile(content) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if len(entries) < len(archive.infolist()):
            raise ValueError("two of its entries have the same name")
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries.values()):
            raise ValueError("its entries are compressed")
        pickles = [name for name in entries if name.endswith("/data.pkl")]
        if len(pickles) != 1:
            raise ValueError("the entry data.pkl is missing")
        folder = pickles[0].removesuffix("data.pkl")
        order = f"{folder}byteorder"
        if order in entries and archive.read(order) != b"little":
            raise ValueError("its numbers have another byte order")
        if entries[pickles[0]].file_size > MAX_PICKLE_BYTES:
            raise ValueError("its description of the tensors is too long")

        def read(storage: Storage) -> bytes:
            entry = entries.get(f"{folder}data/{storage.key}")
            expected = storage.size * storage.dtype.itemsize
            if entry is None or entry.file_size != expected:
                raise ValueError(f"the values of the storage {storage.key} are missing")
            return archive.read(entry)

        described = _descriptions(Machine().run(io.BytesIO(archive.read(pickles[0]))))
        return _tensors(described, read)


def _read_legacy(content: IO[bytes], file_size: int) -> dict[str, Tensor]:
    # Whatever size a step claims, no more is read.
    pickles = io.BytesIO(content.read(MAX_PICKLE_BYTES))
    magic, version, system = (Machine().run(pickles) for _ in range(3))
    if (magic, version) != (LEGACY_MAGIC, LEGACY_VERSION) or not isinstance(system, dict):
        raise ValueError("it has another version")
    if system.get("little_endian") is not True:
        raise ValueError("its numbers have another byte order")
    described = _descriptions(Machine().run(pickles))
    storages = {each.storage.key: each.storage for each in described.values()}
    keys = Machine().run(pickles)
    content.seek(pickles.tell())
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise ValueError("its list of storages is damaged")
    values = dict[str, bytes]()
    for key in keys:
        if key not in storages or key in values:
            raise ValueError(f"the storage {key} belongs to no tensor")
        [size] = struct.unpack("<q", content.read(8))
        expected = storages[key].size * storages[key].dtype.itemsize
        if size != storages[key].size or expected > file_size - content.tell():
            raise ValueError(f"the values of the storage {key} are missing")
        values[key] = content.read(expected)
    for key in storages.keys() - values.keys():
        raise ValueError(f"the values of the storage {key} are missing")
    if content.read(1):
        raise ValueError("it does not end after its last storage")
    return _tensors(described, lambda storage: values.pop(storage.key))


def _descriptions(value: object) -> dict[str, Description]:
    """The described tensors. Raises ValueError for other values, and for storages that are described in two ways."""
    if not isinstance(value, dict) or not value:
        raise ValueError("it holds no weights by name")
    storages = dict[str, Storage]()
    for name, each in value.items():
        if not isinstance(name, str) or not isinstance(each, Description):
            raise ValueError(f"{name!r:.80} is not the name of a tensor")
        if storages.setdefault(each.storage.key, each.storage) != each.storage:
            raise ValueError(f"the storage {each.storage.key} has two sizes or types")
    return value


def _tensors(
    described: dict[str, Description], read: Callable[[Storage], bytes]
) -> dict[str, Tensor]:
    flat = dict[str, Tensor]()
    tensors = dict[str, Tensor]()
    for name, each in described.items():
        storage = each.storage
        if storage.key not in flat:
            content = bytearray(read(storage) if storage.size else b"")
            flat[storage.key] = (
                torch.frombuffer(content, dtype=storage.dtype)
                if content
                else torch.empty(0, dtype=storage.dtype)
            )
        tensors[name] = flat[storage.key].as_strided(each.size, each.stride, each.offset)
    return tensors


class Machine:
    """Follows the steps of a pickle with descriptions in place of objects."""

    def __init__(self) -> None:
        self.stack = list[Any]()
        self.marks = list[int]()
        self.memo = dict[int, Any]()

    def run(self, content: io.BytesIO) -> object:
        """The value that a pickle describes. Reads up to the pickle's end. Raises ValueError for other steps."""
        try:
            for opcode, argument, _ in pickletools.genops(content):
                if opcode.name == "STOP":
                    break
                self.step(opcode.name, argument)
            [value] = self.stack
        except (IndexError, KeyError, TypeError) as error:
            raise ValueError(
                f"its description of the tensors is damaged ({type(error).__name__})"
            ) from None
        return value

    def step(self, opcode: str, argument: Any) -> None:
        if opcode in VALUE_STEPS:
            self.stack.append(argument)
        elif opcode in CONSTANTS:
            self.stack.append(CONSTANTS[opcode])
        elif opcode in TUPLES:
            self.stack.append(tuple(self.popped(len(self.stack) - TUPLES[opcode])))
        elif opcode in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self.stack[-1]
        elif opcode in ("BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[argument])
        elif opcode == "GLOBAL":
            self.stack.append(Name(checked(argument)))
        elif opcode != "PROTO":
            self.collect(opcode)

    def collect(self, opcode: str) -> None:
        """The steps that make or fill a collection, and those that describe a storage or a tensor."""
        if opcode == "MARK":
            self.marks.append(len(self.stack))
        elif opcode in ("EMPTY_DICT", "EMPTY_LIST"):
            self.stack.append({} if opcode == "EMPTY_DICT" else [])
        elif opcode == "TUPLE":
            self.stack.append(tuple(self.popped(self.marks.pop())))
        elif opcode in ("APPENDS", "APPEND"):
            items = self.popped(self.marks.pop() if opcode == "APPENDS" else len(self.stack) - 1)
            self.top(list).extend(items)
        elif opcode in ("SETITEMS", "SETITEM"):
            items = self.popped(self.marks.pop() if opcode == "SETITEMS" else len(self.stack) - 2)
            self.top(dict).update(zip(items[::2], items[1::2], strict=True))
        elif opcode == "BUILD":  # attributes of an OrderedDict, such as versions of modules
            self.stack.pop()
            self.top(dict)
        elif opcode == "BINPERSID":
            self.stack.append(storage_of(self.stack.pop()))
        elif opcode == "REDUCE":
            function, arguments = self.popped(len(self.stack) - 2)
            self.stack.append(described(function, arguments))
        else:
            raise ValueError(f"its description of the tensors has the step {opcode}")

    def popped(self, begin: int) -> list[Any]:
        """The top of the stack from index `begin` on, which is removed."""
        if not 0 <= begin <= len(self.stack):
            raise IndexError(begin)
        items = self.stack[begin:]
        del self.stack[begin:]
        return items

    def top(self, kind: type) -> Any:
        """The last value of the stack. Raises TypeError if it has another type."""
        if not isinstance(self.stack[-1], kind):
            raise TypeError(kind)
        return self.stack[-1]


def checked(name: str) -> str:
    """A module and a name in it. Raises ValueError if no weights need it."""
    if name not in KNOWN_NAMES:
        raise ValueError(
            f"it names '{name.replace(' ', '.'):.80}', which weights of floating-point numbers don't need"
        )
    return name


def storage_of(value: object) -> Storage:
    """The storage that a persistent id describes."""
    match value:
        case ("storage", Name(kind), str(key), str(), int(size), *views):
            if kind in STORAGE_TYPES and size >= 0 and views in ([], [None]):
                return Storage(key, STORAGE_TYPES[kind], size)
    raise ValueError("its description of a storage is damaged")


def described(function: object, arguments: object) -> object:
    """What a call would make: an empty dictionary, or a tensor whose values lie in its storage."""
    match function, arguments:
        case Name(name), () if name == ORDERED_DICT:
            return {}
        case Name(name), (Description() as tensor, bool(), dict()) if name == REBUILD_PARAMETER:
            return tensor
        case Name(name), (
            Storage() as storage,
            int(offset),
            tuple(size),
            tuple(stride),
            bool(),
            dict(),
            *_,
        ) if name == REBUILD_TENSOR:
            if all(_are_counts(numbers) for numbers in ((offset,), size, stride)):
                return _inside(Description(storage, offset, size, stride))
    raise ValueError("its description of a tensor is damaged")


def _are_counts(numbers: tuple[object, ...]) -> bool:
    return len(numbers) <= MAX_DIMENSIONS and all(
        type(number) is int and 0 <= number < 1 << 62 for number in numbers
    )


def _inside(tensor: Description) -> Description:
    """The tensor. Raises ValueError unless all its values lie inside of its storage."""
    if len(tensor.size) != len(tensor.stride):
        raise ValueError("a tensor has more sizes than strides")
    values = math.prod(tensor.size)
    steps = zip(tensor.size, tensor.stride, strict=True)
    last = tensor.offset + sum((size - 1) * stride for size, stride in steps)
    if values and not (last < tensor.storage.size and values <= tensor.storage.size):
        raise ValueError("a tensor extends beyond its storage")
    if not values and tensor.offset > tensor.storage.size:
        raise ValueError("a tensor begins beyond its storage")
    return tensor
