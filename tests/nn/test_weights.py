"""Files of weights: round trips of all dtypes, the package safetensors as a reader and writer, and damage."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import numpy.testing as npt
import pytest

import harp
from harp import nn
from harp.errors import ArgumentError, DTypeError, FileError

RNG = np.random.default_rng(0)
PLAIN = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
]
PACKAGED = ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]


def arrays(names):
    found = {}
    for k, name in enumerate(names):
        dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), name)) if name in PACKAGED else np.dtype(name)
        shape = [(), (3,), (0, 2), (2, 1, 3)][k % 4]
        values = RNG.integers(0, 2, shape) if name == "bool" else RNG.normal(size=shape) * 4
        found[f"{name}.weight"] = np.asarray(np.asarray(values).astype(dtype))
    return found


def check(found, expected):
    assert sorted(found) == sorted(expected)
    for name, array in expected.items():
        assert (found[name].dtype.name, found[name].shape) == (array.dtype.name, array.shape)
        assert np.asarray(found[name]).tobytes() == array.tobytes()


def test_round_trip(tmp_path):
    path, given = tmp_path / "w.safetensors", arrays(PLAIN + PACKAGED)
    nn.save_safetensors(path, given, metadata={"format": "np"})
    check(nn.load_safetensors(path), given)
    check({f"{k}.weight": v["weight"] for k, v in nn.load_safetensors(path, nested=True).items()}, given)
    header = path.read_bytes()[8:]
    assert json.loads(header[: header.index(b"}}") + 2])["__metadata__"] == {"format": "np"}
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    nn.save_safetensors(path, {})
    assert nn.load_safetensors(path) == {}


def test_trees(tmp_path):
    path = tmp_path / "w.safetensors"
    w = np.asarray(RNG.normal(size=(2, 3))).T  # not in the order of memory
    nn.save_safetensors(path, {"layers": [{"w": w}, {"w": harp.numpy.asarray(1.5)}], "b": 2})
    assert list(nn.load_safetensors(path)) == ["b", "layers.0.w", "layers.1.w"]
    tree = nn.load_safetensors(path, nested=True)
    npt.assert_array_equal(tree["layers"]["0"]["w"], w)
    assert float(tree["layers"]["1"]["w"]) == 1.5


def test_files_of_the_package(tmp_path):
    reader = pytest.importorskip("safetensors.numpy")
    path, given = tmp_path / "w.safetensors", arrays(PLAIN)
    reader.save_file(given, path, metadata={"a": "b"})
    check(nn.load_safetensors(path), given)
    nn.save_safetensors(path, given, metadata={"a": "b"})
    check(reader.load_file(path), given)


def test_other_dtypes_of_the_package(tmp_path):
    module = pytest.importorskip("safetensors")
    path, given = tmp_path / "w.safetensors", arrays(PACKAGED)
    nn.save_safetensors(path, given)
    forms = {name: (fields["dtype"], bytes(fields["data"])) for name, fields in module.deserialize(path.read_bytes())}
    assert forms["bfloat16.weight"][0] == "BF16" and forms["float8_e4m3fn.weight"][0] == "F8_E4M3"
    assert {name: data for name, (_, data) in forms.items()} == {name: a.tobytes() for name, a in given.items()}


def written(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def of(dtype="F32", shape=(1,), offsets=(0, 4)):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


@pytest.mark.parametrize(
    "content, named",
    [
        (b"", "0 bytes"),
        (b"\xff" * 20, "does not fit"),
        (written(b"{"), "Expecting"),
        (written(b"[1]"), "safetensors"),
        (written(b"\xff\xfe{}"), "safetensors"),
        (written({"a": of()}, b"123"), "there are 3"),
        (written({"a": of()}, b"12345"), "there are 5"),
        (written({"a": of(shape=(2,))}, b"1234"), "4 bytes, and the shape"),
        (written({"a": of(shape=(-1,))}, b"1234"), "the shape of 'a'"),
        (written({"a": of(shape=(-1, -1))}, b"1234"), "the shape of 'a'"),
        (written({"a": of(shape=(1.0,))}, b"1234"), "the shape of 'a'"),
        (written({"a": of(offsets=(0, 4)), "b": of(offsets=(0, 4))}, b"1234"), "those before it end at 4"),
        (written({"a": of(offsets=(4, 8))}, b"12345678"), "those before it end at 0"),
        (written({"a": {"dtype": "F32"}}), "data_offsets"),
        (written({"a": 3}), "safetensors"),
        (written({"a": of(offsets=("0", "4"))}, b"1234"), "safetensors"),
        (written(b'{"a": 1, "a": 2}'), "twice"),
        (written(b"[" * 100_000), "safetensors"),
    ],
)
def test_damage(content, named, tmp_path):
    path = tmp_path / "w.safetensors"
    path.write_bytes(content)
    with pytest.raises(FileError, match=named):
        nn.load_safetensors(path)


def test_any_byte_that_is_missing_or_changed_is_found_or_harmless(tmp_path):
    path = tmp_path / "w.safetensors"
    nn.save_safetensors(path, {"a": np.ones(2, np.float32), "b": np.ones((), np.int8)})
    content = path.read_bytes()
    for k in range(len(content)):
        path.write_bytes(content[:k])
        with pytest.raises(FileError):
            nn.load_safetensors(path)
        path.write_bytes(content[:k] + bytes([content[k] ^ 1]) + content[k + 1 :])
        with contextlib.suppress(FileError, DTypeError):
            nn.load_safetensors(path)


def test_mistakes(tmp_path):
    path = tmp_path / "w.safetensors"
    nn.save_safetensors(path, {"a": 1.0})
    with pytest.raises(DTypeError, match="'b' is complex128"):
        nn.save_safetensors(path, {"b": np.ones(1, complex)})
    with pytest.raises(ArgumentError, match=r"'a\.b'"):
        nn.save_safetensors(path, {"a.b": 1.0, "a": {"b": 1.0}})
    assert list(nn.load_safetensors(path)) == ["a"]  # the file is whole
    for names in (("a", "a.b"), ("a.b.c", "a.b"), ("a", "a.b.c")):
        nn.save_safetensors(path, dict.fromkeys(names, 1.0))
        with pytest.raises(ArgumentError, match="nested=False"):
            nn.load_safetensors(path, nested=True)
    path.write_bytes(written({"a": of("F8_E8M0", (4,))}, b"1234"))
    with pytest.raises(DTypeError, match="'a' is of the dtype F8_E8M0"):
        nn.load_safetensors(path)
    with pytest.raises(FileNotFoundError):
        nn.load_safetensors(tmp_path / "missing")
