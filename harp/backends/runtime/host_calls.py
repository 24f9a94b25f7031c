"""How compiled programs call functions of Python.

A program has a variable that points to a function of ours. It says by number which function is meant, where the arrays
are, and what they are: as text that is a part of the program, "1 1 int64:0 bool:0 float64:2" for calls of rank 1 whose
first array is what the function makes, and the sizes.
The functions are those of the call that runs in this thread. The first error that one of them raises ends the program.

Loops that may never end call a function that does nothing: when Python runs, it handles signals, such as Ctrl-C.

A thread that is inside a program when Python ends goes on for a moment, so the functions are never freed.
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
    """The rank of the calls, how many of the arrays are results, and dtype and rank of its own of each array."""

    rank: int
    results: int
    arrays: tuple[tuple[np.dtype[np.generic], int], ...]


@lru_cache(maxsize=1 << 10)
def _layout(text: bytes) -> _Layout:
    rank, results, *arrays = text.decode().split()
    pairs = (array.split(":") for array in arrays)
    return _Layout(int(rank), int(results), tuple((as_dtype(name).numpy, int(own)) for name, own in pairs))


def _call(number: int, text: object, pointers: object, sizes: object) -> int:
    """Called by programs. Returns 0; what it raises goes to `_failed`."""
    layout = _layout(_ffi.string(text))
    given = iter(_ffi.unpack(sizes, layout.rank + sum(own for _, own in layout.arrays)))
    shape = tuple(next(given) for _ in range(layout.rank))
    arrays = [
        _array(pointers[k], dtype, (*shape, *(next(given) for _ in range(own))))  # type: ignore[index]
        for k, (dtype, own) in enumerate(layout.arrays)
    ]
    targets, operands = arrays[: layout.results], arrays[layout.results :]
    results = [(target.shape[layout.rank :], as_dtype(target.dtype)) for target in targets]
    for target, made in zip(targets, run_function(number, shape, operands, results), strict=True):
        target[...] = made
    return 0


def _failed(kind: type[BaseException], error: BaseException, traceback: TracebackType) -> None:
    """The program is told by the result of the call, which is 1 then, and ends."""
    note_error(error.with_traceback(traceback))


def _array(address: object, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> NDArray:
    """An array of the program: nobody keeps it."""
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.frombuffer(_ffi.buffer(address, prod(shape) * dtype.itemsize), dtype).reshape(shape)


_callback = _ffi.callback(_TYPE, _call, 1, _failed)
# What the variable of a program is set to where there is no library that all programs share.
ADDRESS = _ffi.cast("void *", _callback)


def _listen() -> int:
    """Python has handled signals in the main thread before it gets here."""
    return 0


_listener = _ffi.callback("int(void)", _listen, 1, _failed)
keep_for_good(_callback)
keep_for_good(_listener)


# What the variables of the library are set to that all programs share.
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
