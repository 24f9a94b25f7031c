"""The dtype of what programs make of Python's floats: of arrays of numbers, zeros, random numbers."""

from __future__ import annotations

from types import TracebackType

from harp.config import on_search
from harp.errors import DTypeError
from harp.trace.scalar.dtypes import DType, DTypeLike, Kind, as_dtype, default_of, f32, f64, set_default
from harp.trace.source_locations import where


class default_dtype:
    """Make floating-point arrays that are given no dtype float32, or float64, from now on; as a context manager,
    within it.

    This is for what is made of no array: `zeros`, `ones`, `full`, `eye`, `linspace`, `arange` of floats, arrays of
    lists of Python's floats, what `harp.random` draws and `harp.nn` initialises; and for `float` as a dtype. Complex
    numbers are complex64 then. Dtypes of arrays are kept, and meet as in NumPy: float32 and int64, or a scalar of
    NumPy, make float64. A function that was compiled with the other dtype is compiled again.

    Raises DTypeError for another dtype.

    >>> import harp.numpy as hnp
    >>> with default_dtype("float32"):
    ...     hnp.zeros(2).dtype, hnp.array([1.5, 2.5]).dtype
    (dtype('float32'), dtype('float32'))
    """

    def __init__(self, dtype: DTypeLike) -> None:
        found = as_dtype(dtype)
        if found not in (f32, f64):
            raise DTypeError(f"the default dtype is float32 or float64, not {found.numpy}{where()}")
        self._before = default_of(Kind.FLOAT)
        _switch(found)

    def __enter__(self) -> default_dtype:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _switch(self._before)


def _switch(dtype: DType) -> None:
    set_default(dtype)
    for listener in on_search:
        listener()
