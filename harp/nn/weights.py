"""Weights in files of the format safetensors, which many published models come in.

A file is the length of its header in 8 bytes, the header, which is JSON and says of each array its dtype, its shape and
where its bytes are, and the bytes. https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from harp.errors import ArgumentError, DTypeError, FileError
from harp.numpy.creation import asarray
from harp.trace.array.array import Array
from harp.trace.scalar.dtypes import as_dtype
from harp.trace.source_locations import where
from harp.tree import keystr, leaves_with_path

_NAMES = {
    "BOOL": "bool",
    **{f"I{8 * n}": f"int{8 * n}" for n in (1, 2, 4, 8)},
    **{f"U{8 * n}": f"uint{8 * n}" for n in (1, 2, 4, 8)},
    **{f"F{8 * n}": f"float{8 * n}" for n in (2, 4, 8)},
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "C64": "complex64",
}
_FORMS = {name: form for form, name in _NAMES.items()}
_LONGEST = 100_000_000  # bytes of a header, as in the package safetensors


def load_safetensors(path: str | os.PathLike[str], *, nested: bool = False) -> dict[str, Any]:
    """The arrays of a file of the format safetensors: a dict by their names, as these are in the file.

    With `nested` dots in names are steps into dicts: `{"layer.0.weight": w}` is `{"layer": {"0": {"weight": w}}}`.
    bfloat16 and float8 need the package ml_dtypes, without which they raise MissingPackageError. Raises FileError for a
    damaged file, DTypeError for a dtype that harp does not have, ArgumentError where a name is the start of another one
    and `nested` is asked for.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "weights.safetensors"
    >>> save_safetensors(path, {"layer": [{"weight": 1.5}]})
    >>> load_safetensors(path), load_safetensors(path, nested=True)
    ({'layer.0.weight': Array(1.5)}, {'layer': {'0': {'weight': Array(1.5)}}})
    """
    with open(path, "rb") as file:
        content = np.frombuffer(file.read(), np.uint8)
    try:
        start, header = _header(content)
        found = {name: _array(name, fields, content[start:]) for name, fields in header}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, DTypeError):
            raise
        raise FileError(f"{os.fspath(path)} is damaged, or not of the format safetensors: {error}{where()}") from None
    return _nested(found) if nested else found


def _header(content: Any) -> tuple[int, list[tuple[str, Any]]]:
    """Where the bytes of arrays start, and what is said of each array. Raises ValueError unless they fill the file."""
    if len(content) < 8:
        raise ValueError(f"it has {len(content)} bytes, and no header")
    length = int.from_bytes(content[:8].tobytes(), "little")
    if length > min(len(content) - 8, _LONGEST):
        raise ValueError(f"a header of {length} bytes does not fit in it")
    header = json.loads(content[8 : 8 + length].tobytes(), object_pairs_hook=_no_duplicates)
    header.pop("__metadata__", None)
    end = 0
    for name, fields in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = fields["data_offsets"]
        if first != end or last < first:
            raise ValueError(f"the bytes of {name!r} are from {first} to {last}, those before it end at {end}")
        end = last
    if end != len(content) - 8 - length:
        raise ValueError(f"arrays have {end} bytes, and there are {len(content) - 8 - length}")
    return 8 + length, list(header.items())


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice in its header")
    return found


def _array(name: str, fields: Mapping[str, Any], data: Any) -> Array:
    form, shape, (first, last) = fields["dtype"], fields["shape"], fields["data_offsets"]
    if form not in _NAMES:
        raise DTypeError(f"{name!r} is of the dtype {form}, which harp does not have{where()}")
    dtype = as_dtype(_NAMES[form]).dtype
    if not all(isinstance(size, int) and size >= 0 for size in shape):
        raise ValueError(f"the shape of {name!r} is {shape}")
    if math.prod(shape) * dtype.itemsize != last - first:
        raise ValueError(f"{name!r} has {last - first} bytes, and the shape {shape} of {form}")
    return asarray(data[first:last].view(dtype).reshape(shape))


def _nested(arrays: Mapping[str, Array]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, array in arrays.items():
        *steps, last = name.split(".")
        part = tree
        for step in steps:
            part = part.setdefault(step, {})
            if not isinstance(part, dict):
                break
        if not isinstance(part, dict) or last in part:
            raise ArgumentError(f"{name!r} goes on where another name ends: load it with nested=False{where()}")
        part[last] = array
    return tree


def save_safetensors(path: str | os.PathLike[str], arrays: Any, *, metadata: Mapping[str, str] | None = None) -> None:
    """Write the arrays of a tree to a file of the format safetensors, each by the keys on the way to it, with dots.

    `metadata` is text by names, which the file keeps. A file that is there stays whole until the new one is. Raises
    ArgumentError for two arrays of one name, DTypeError for dtypes that the format does not have.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "weights.safetensors"
    >>> save_safetensors(path, {"w": [1.0, 2.0], "b": 3})
    >>> list(load_safetensors(path))
    ['b', 'w.0', 'w.1']
    """
    values: dict[str, Any] = {}
    for name, value in _named(arrays):
        if name in values or name == "__metadata__":
            raise ArgumentError(f"two arrays have the name {name!r}, or it is taken{where()}")
        if value.dtype.name not in _FORMS:
            raise DTypeError(f"{name!r} is {value.dtype.name}, which safetensors does not have: convert it{where()}")
        values[name] = value
    # Larger elements first, so that all are aligned.
    values = dict(sorted(values.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])))
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, value in values.items():
        first, end = end, end + value.nbytes
        header[name] = {"dtype": _FORMS[value.dtype.name], "shape": value.shape, "data_offsets": [first, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    unfinished = f"{os.fspath(path)}.{os.getpid()}"
    try:
        with open(unfinished, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for value in values.values():
                file.write(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
        os.replace(unfinished, path)
    finally:
        if os.path.exists(unfinished):
            os.unlink(unfinished)


def _named(arrays: Any) -> Iterator[tuple[str, Any]]:
    for keys, leaf in leaves_with_path(arrays):
        yield keystr(keys, simple=True, separator="."), np.asarray(asarray(leaf))
