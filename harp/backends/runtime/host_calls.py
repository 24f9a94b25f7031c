"""How compiled programs call functions of Python.

A program has a variable that points to a function of this module. It passes the number of the Python function, pointers
to the arrays, their sizes, and a text that describes them, a part of the program: "1 1 int64:0 bool:0 float64:2" means
calls of rank 1 whose first array is the result. The numbers refer to the functions of the call that runs in this
thread. The first error that one raises ends the program.

Loops without a bound call a function that does nothing: when Python code runs, signals such as Ctrl-C are handled.

A thread that is inside of a program when Python ends runs on for a moment, so the functions are never freed.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from math import prod
from types import TracebackType
from typing import NamedTuple

import _cffi_backend
import numpy as np

from harp.backends.runtime.load import keep_for_good
from harp.trace.eval.host_calls import Functions, calling, note_error, run_function, take_error
from harp.trace.scalar.dtypes import NDArray, as_dtype

# The variable of programs, and the type of the function.
VARIABLE = "harp_call_python"
_TYPE = "int(int64_t, char *, void **, int64_t *)"

_ffi = _cffi_backend.FFI()


class _Layout(NamedTuple):
    """The rank of the calls, the number of results among the arrays, and each array's dtype and rank within a call."""

    rank: int
    results: int
    arrays: tuple[tuple[np.dtype[np.generic], int], ...]


@lru_cache(maxsize=1 << 10)
def _layout(text: bytes) -> _Layout:
    rank, results, *arrays = text.decode().split()
    pairs = (array.split(":") for array in arrays)
    return _Layout(int(rank), int(results), tuple((as_dtype(name).numpy, int(own)) for name, own in pairs))


def _call(number: int, text: object, pointers: object, sizes: object) -> int:
    """The function that programs call. Returns 0; errors go to `_failed`."""
    layout = _layout(_ffi.string(text))
    extents = iter(_ffi.unpack(sizes, layout.rank + sum(rank for _, rank in layout.arrays)))
    shape = tuple(next(extents) for _ in range(layout.rank))
    arrays = [
        _array(pointers[k], dtype, (*shape, *(next(extents) for _ in range(rank))))  # type: ignore[index]
        for k, (dtype, rank) in enumerate(layout.arrays)
    ]
    targets, operands = arrays[: layout.results], arrays[layout.results :]
    results = [(target.shape[layout.rank :], as_dtype(target.dtype)) for target in targets]
    for target, made in zip(targets, run_function(number, shape, operands, results), strict=True):
        target[...] = made
    return 0


def _failed(kind: type[BaseException], error: BaseException, traceback: TracebackType) -> None:
    """Remembers an error; the call then returns 1, and the program ends."""
    note_error(error.with_traceback(traceback))


def _array(address: object, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> NDArray:
    """An array of the program, valid during the call."""
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.frombuffer(_ffi.buffer(address, prod(shape) * dtype.itemsize), dtype).reshape(shape)


_callback = _ffi.callback(_TYPE, _call, 1, _failed)
# The value of a program's variable where the shared library does not exist.
ADDRESS = _ffi.cast("void *", _callback)


def _listen() -> int:
    """Does nothing: Python handles signals in the main thread before it gets here."""
    return 0


_listener = _ffi.callback("int(void)", _listen, 1, _failed)
keep_for_good(_callback)
keep_for_good(_listener)


# The values of the variables of the library that all programs share.
POINTERS = {"harp_ask_python": _ffi.cast("void *", _listener), "harp_function_of_python": ADDRESS}
for _name in ("Py_IsFinalizing", "_Py_IsFinalizing"):  # since Python 3.13, and before
    if hasattr(ctypes.pythonapi, _name):
        _address = ctypes.cast(getattr(ctypes.pythonapi, _name), ctypes.c_void_p).value
        POINTERS["harp_python_ends"] = _ffi.cast("void *", _address)


def with_functions(call: Callable[..., int], functions: Functions) -> Callable[..., int]:
    """The call of a program that calls these functions. Raises what one of them raises."""

    def called(*arguments: object) -> int:
        with calling(functions):
            status = call(*arguments)
            error = take_error()
        if error is not None:
            raise error
        return status

    return called
