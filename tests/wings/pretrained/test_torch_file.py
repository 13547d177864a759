"""Tests of transduce/wings/pretrained/torch_file.py."""

import io
import os
import pickle
import random
import struct
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.wings.pretrained.torch_file import LEGACY_START, read_torch_file

FORMATS = pytest.mark.parametrize("is_zip", [True, False])
MIB = 1 << 20


def weights() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    half = torch.randn(5, 4).half()
    return torch.nn.TransformerDecoderLayer(16, 4, 32).state_dict() | {
        "half": half,
        "tied": half,
        "bfloat16": torch.randn(3).bfloat16(),
        "double": torch.randn(2, 2).double(),
        "transposed": torch.randn(5, 4).t(),
        "slice": torch.randn(10, 4)[2:7, 1:3],
        "empty": torch.empty(0, 3),
        "number": torch.tensor(3.0),
        "parameter": torch.nn.Parameter(torch.randn(3)),
    }


def saved(folder: Path, value: Any, *, is_zip: bool) -> Path:
    file = folder / "pytorch_model.bin"
    torch.save(value, file, _use_new_zipfile_serialization=is_zip)
    return file


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return list(one) == list(other) and all(
        one[name].dtype == other[name].dtype and torch.equal(one[name], other[name]) for name in one
    )


@FORMATS
def test_both_formats_are_read_as_torch_reads_them(is_zip, tmp_path):
    file = saved(tmp_path, OrderedDict(weights()), is_zip=is_zip)
    read = read_torch_file(file)
    expected = torch.load(file, weights_only=False)
    assert same(read, expected)
    assert [each.stride() for each in read.values()] == [e.stride() for e in expected.values()]
    assert read["tied"].data_ptr() == read["half"].data_ptr()  # the values are read once


class Call:
    """What a pickle turns into the call of a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


@FORMATS
@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"a": Call(os.system, "touch opened")}, r"it names '(posix|nt)\.system'"),
        (Call(eval, "1"), "it names '__builtin__.eval'"),
        ([torch.zeros(2)], "it holds no weights by name"),
        ({}, "it holds no weights by name"),
        ({"a": 3}, "'a' is not the name of a tensor"),
        ({1: torch.zeros(2)}, "1 is not the name of a tensor"),
        ({"model": {"a": torch.zeros(2)}}, "'model' is not the name of a tensor"),
        ({"a": torch.zeros(2, dtype=torch.int64)}, "it names 'torch.LongStorage'"),
        ({"a": torch.zeros(2).to_sparse()}, "it names 'torch._utils._rebuild_sparse_tensor'"),
        ({"a": torch.zeros(1).expand(1 << 30)}, "a tensor extends beyond its storage"),
    ],
)
def test_anything_but_weights_is_refused_and_never_called(
    value, why, is_zip, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=why):
        read_torch_file(saved(tmp_path, value, is_zip=is_zip))
    assert not (tmp_path / "opened").exists()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_quantised_weights_are_refused(tmp_path):
    quantised = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    with pytest.raises(
        ValueError, match=r"it names 'torch\.(_utils\._rebuild_qtensor|QInt8Storage)'"
    ):
        read_torch_file(saved(tmp_path, {"a": quantised}, is_zip=True))


def described(offset: int, size: Any, stride: Any, values: int = 4, key: str = "0") -> bytes:
    """A pickle of one tensor, whose place in the storage may be anything."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: Any) -> Any:
            return obj.args if isinstance(obj, Persistent) else None

    storage = Persistent("storage", torch.FloatStorage, key, "cpu", values)
    rebuilt = Call(
        torch._utils._rebuild_tensor_v2, storage, offset, size, stride, False, OrderedDict()
    )
    content = io.BytesIO()
    Pickler(content, 2).dump({"a": rebuilt})
    return content.getvalue()


def test_attributes_of_functions_are_not_set(tmp_path):
    """A pickle may set attributes of what it names."""
    function = b"ctorch._utils\n_rebuild_tensor_v2\n"
    defaults = b"X\x0c\x00\x00\x00__defaults__"
    for attributes in (b"}" + defaults + b"Ns", b"N}" + defaults + b")s\x86"):
        file = archive(tmp_path / "model.bin", b"\x80\x02" + function + attributes + b"b.")
        with pytest.raises(ValueError, match="is damaged"):
            read_torch_file(file)


class Persistent:
    def __init__(self, *args: Any) -> None:
        self.args = args


def archive(file: Path, pickled: bytes, data: bytes = bytes(16), **others: bytes) -> Path:
    with zipfile.ZipFile(file, "w") as opened:
        opened.writestr("model/data.pkl", pickled)
        opened.writestr("model/data/0", data)
        for name, content in others.items():
            opened.writestr(f"model/{name}", content)
    return file


@pytest.mark.parametrize(
    ("place", "is_inside"),
    [
        ((0, (4,), (1,)), True),
        ((0, (2, 2), (2, 1)), True),
        ((3, (1,), (1,)), True),
        ((3, (1,), (9,)), True),  # a stride that is never taken
        ((4, (0,), (1,)), True),
        ((5, (0,), (1,)), False),
        ((1, (4,), (1,)), False),
        ((0, (5,), (1,)), False),
        ((0, (5,), (0,)), False),  # five values, four in the file
        ((0, (2,), (4,)), False),
        ((0, (2,), (1 << 61,)), False),
        ((0, (2,), (-1,)), False),
        ((-1, (2,), (1,)), False),
        ((0, (-2,), (1,)), False),
        ((0, (1 << 62,), (1,)), False),
        ((0, (2,), (1, 1)), False),
        ((0, (2.0,), (1,)), False),
        ((0, [2], (1,)), False),
        ((0, (1,) * 9, (1,) * 9), False),
        ((0, (-1, 0), (1, 1)), False),  # torch itself would make it
    ],
)
def test_a_tensor_lies_in_its_storage(place, is_inside, tmp_path):
    file = archive(tmp_path / "model.bin", described(*place), struct.pack("<4f", 1, 2, 3, 4))
    if not is_inside:
        with pytest.raises(ValueError, match="tensor"):
            read_torch_file(file)
        return
    offset, size, stride = place
    expected = torch.tensor([1.0, 2, 3, 4]).as_strided(size, stride, offset)
    assert torch.equal(read_torch_file(file)["a"], expected)


def test_sizes_are_compared_with_the_file_before_a_tensor_is_made(tmp_path):
    file = tmp_path / "model.bin"
    whole = (0, (4,), (1,))
    for pickled, data, why in (
        (
            described(0, (1 << 40,), (1,), 1 << 40),
            bytes(16),
            "the values of the storage 0 are missing",
        ),
        (described(*whole), bytes(12), "the values of the storage 0 are missing"),
        (described(*whole), bytes(20), "the values of the storage 0 are missing"),
        (described(*whole, key="../0"), bytes(16), "the storage ../0 are missing"),
    ):
        with pytest.raises(ValueError, match=why):
            read_torch_file(archive(file, pickled, data))
    with pytest.raises(ValueError, match="another byte order"):
        read_torch_file(archive(file, described(*whole), byteorder=b"big"))
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("model/data.pkl", described(*whole))
        opened.writestr("model/data/0", bytes(100 * MIB))
    with pytest.raises(ValueError, match="compressed"):
        read_torch_file(file)
    file.write_bytes(LEGACY_START + b"\x80\x02B\xff\xff\xff\x7fabc.")  # a text of 2 GiB, it says
    with pytest.raises(ValueError, match="but only 4 remain"):
        read_torch_file(file)


@pytest.mark.parametrize(
    "content", [b"", b"PK", b"cos\nsystem\n(S'touch opened'\ntR.", b"\x1f\x8b"]
)
def test_other_files_are_refused(content, tmp_path):
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(ValueError, match=r"torch\.save didn't write it"):
        read_torch_file(tmp_path / "model.bin")


@FORMATS
def test_damage_is_refused_or_changes_nothing(is_zip, tmp_path):
    """Files of torch before 1.6 hold no checksums: there, it is enough that nothing is read beyond a storage."""
    file = saved(tmp_path, weights(), is_zip=is_zip)
    whole = file.read_bytes()
    expected = read_torch_file(file)
    draw = random.Random(0)
    refused = 0
    for _ in range(300):
        content = bytearray(whole)
        place = draw.randrange(len(whole) if draw.random() < 0.5 else 3000)
        kind = draw.randrange(4)
        if kind == 0:
            content[place] ^= 1 << draw.randrange(8)
        elif kind == 1:
            content[place : place + 40] = bytes(len(content[place : place + 40]))
        elif kind == 2:
            del content[place : place + draw.randint(1, 20)]
        else:
            content = content[:place]
        file.write_bytes(content)
        try:
            read = read_torch_file(file)
        except ValueError:
            refused += 1
            continue
        assert not is_zip or same(read, expected)
    assert refused > 150
