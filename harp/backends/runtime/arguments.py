"""Reads many array arguments of a call at once, in C.

Python takes 250 ns to get an array's dtype, order in memory, shape and address. C reads the fields of the object, whose
layout NumPy's binary interface defines. It is used only if it agrees with Python about some test arrays. The call holds
the interpreter's lock, which cffi's calls release: else another thread could change an array meanwhile.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import _cffi_backend
import numpy as np

from harp.backends.runtime.load import Library, pointer, type_of
from harp.backends.runtime.pool import runtime
from harp.config import log

_READ = "int(*)(void *, int64_t, void *, void *, void **, int64_t *)"
_HOLDING_THE_LOCK = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_int64, *[ctypes.c_void_p] * 4)
_ADDRESS = type_of("uintptr_t")
_WORD = np.dtype(np.intp).itemsize


class Reader(NamedTuple):
    """Reads arrays of given dtypes and ranks: `read(arrays, arity, expected, layout, pointers, sizes)`.

    `arrays` is a tuple, the rest are numbers and addresses. The result is 0 if all are C-contiguous and aligned arrays
    of these dtypes and ranks; then their addresses and their sizes, one after the other, are in the memory that
    `room_for_pointers` and `room_for_sizes` made. `numbers(sizes, axes)` is a list of them.
    """

    read: Callable[..., int]
    arity: int
    axes: int
    expected: int
    layout: int
    kept: tuple[object, ...]  # owners of the memory at the addresses
    room_for_sizes: Callable[[], object]
    numbers: Callable[[object, int], list[int]] = _cffi_backend.unpack

    def __call__(self, arrays: tuple[object, ...]) -> tuple[list[int], list[int]] | None:
        """The addresses and the sizes; None if an array is not as expected."""
        pointers, sizes = room_for_pointers(self.arity)(), self.room_for_sizes()
        if self.read(arrays, self.arity, self.expected, self.layout, address(pointers), address(sizes)):
            return None
        addresses = _cffi_backend.cast(type_of("uintptr_t *"), pointers)
        return [addresses[k] for k in range(self.arity)], self.numbers(sizes, self.axes)


def address(memory: object) -> int:
    """The address of cffi's memory."""
    return int(_cffi_backend.cast(_ADDRESS, memory))


def room_for_pointers(count: int) -> Callable[[], object]:
    """A function that allocates an array of this many pointers."""
    return partial(_cffi_backend.newp, type_of(f"void *[{count}]"))


def reader(expected: Sequence[tuple[np.dtype[np.generic], int]]) -> Reader | None:
    """A reader for arrays of these dtypes and ranks; None if only Python can read them."""
    library = runtime()
    return _reader(library, expected) if library is not None and _is_as_assumed(library) else None


def _reader(library: Library, expected: Sequence[tuple[np.dtype[np.generic], int]]) -> Reader:
    words, axes = type_of("intptr_t[]"), sum(rank for _, rank in expected)
    facts = _cffi_backend.newp(words, [fact for dtype, rank in expected for fact in (id(dtype), rank)])
    layout = _cffi_backend.newp(words, [tuple.__basicsize__, object.__basicsize__, id(np.ndarray)])
    room = partial(_cffi_backend.newp, type_of(f"int64_t[{axes}]"))
    read = _HOLDING_THE_LOCK(address(library.function("harp_read_arrays", _READ)))
    return Reader(read, len(expected), axes, address(facts), address(layout), (facts, layout, library), room)


@lru_cache(maxsize=1)
def _is_as_assumed(library: Library) -> bool:
    """Whether objects have the layout that the C code assumes: other interpreters or versions of NumPy may differ."""
    fields = library.function("harp_array_bytes", "size_t(*)(void)")()
    assumed = (
        sys.implementation.name == "cpython"
        and np.ndarray.__basicsize__ >= object.__basicsize__ + fields
        and tuple.__basicsize__ >= object.__basicsize__ + _WORD
        and _reads_what_python_says(library)
    )
    if not assumed:
        log.debug("arguments are read one after the other: arrays are not laid out as assumed")
    return assumed


def _reads_what_python_says(library: Library) -> bool:
    number, matrix = np.zeros((), np.int32), np.zeros((4, 6), np.float32)
    whole, single = (number.dtype, 0), (matrix.dtype, 2)
    expected = [pointer(number), pointer(matrix)]
    addresses = [address(p) for p in expected]
    misaligned = np.zeros(97, np.uint8)[1:].view(np.float32).reshape(4, 6)
    others = (matrix[:, ::2], matrix.T, matrix[0], matrix.astype(np.int32), misaligned, object(), None)
    return _reader(library, [whole, single])((number, matrix)) == (addresses, [4, 6]) and not any(
        _reader(library, [single])((other,)) for other in others
    )
