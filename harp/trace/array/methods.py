"""The methods that arrays share with NumPy's, beside operators and reductions: each is a function of the namespace.

What changes a NumPy array in place is an error here that says what to write instead.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from harp.errors import ArgumentError, DTypeError, MutationError
from harp.lazy import FUNCTIONS
from harp.trace.scalar.dtypes import NDArray, as_dtype
from harp.trace.source_locations import calling_frame, is_ignored, where


class Methods:
    """Methods of NumPy's arrays."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def dtype(self) -> np.dtype[np.generic]: ...

        @property
        def T(self) -> Self: ...

        def _concrete(self, what: str) -> NDArray: ...

    def _by_name(self, name: str, *args: object, **options: object) -> Any:
        return getattr(FUNCTIONS["numpy"], name)(self, *args, **options)

    # -- order

    def sort(
        self, axis: object = -1, kind: object = None, order: object = None, *, stable: object = None, **options: bool
    ) -> Self:
        """The sorted array: another one, which the caller takes. `kind` and `stable` change nothing: sorts are stable.

        Raises MutationError where a statement `x.sort()` does nothing with the result, as if x changed.
        """
        _no_order(order)
        if is_ignored(calling_frame()):
            raise MutationError(f"arrays do not change, so x.sort() is another array: write x = x.sort(){where()}")
        result: Self = self._by_name("sort", axis, **options)
        return result

    def argsort(
        self, axis: object = -1, kind: object = None, order: object = None, *, stable: object = None, **options: bool
    ) -> Self:
        """Positions that sort the array; equal elements stay in order."""
        _no_order(order)
        result: Self = self._by_name("argsort", axis, **options)
        return result

    def searchsorted(self, v: object, side: str = "left", sorter: object = None) -> Self:
        """Where `v` would be put in to keep this array sorted."""
        if isinstance(v, (list, tuple)):
            v = FUNCTIONS["numpy"].asarray(v)
        result: Self = self._by_name("searchsorted", v, side=side, sorter=sorter)
        return result

    def nonzero(self, *, size: object = None, fill_value: object = None) -> tuple[Self, ...]:
        """The positions of elements that are not zero; in a traced function with `size`."""
        result: tuple[Self, ...] = self._by_name("nonzero", size=size, fill_value=fill_value)
        return result

    # -- parts

    def take(
        self, indices: object, axis: int | None = None, mode: str | None = None, fill_value: object = None
    ) -> Self:
        """The elements at these positions, of all or along an axis."""
        result: Self = self._by_name("take", indices, axis=axis, mode=mode, fill_value=fill_value)
        return result

    def repeat(self, repeats: object, axis: int | None = None, *, total_repeat_length: object = None) -> Self:
        """Each element so many times, of all or along an axis."""
        result: Self = self._by_name("repeat", repeats, axis=axis, total_repeat_length=total_repeat_length)
        return result

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Self:
        """The diagonals of two axes, along the last axis."""
        result: Self = self._by_name("diagonal", offset, axis1, axis2)
        return result

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: object = None) -> Self:
        """The sums of the diagonals of two axes."""
        result: Any = self._by_name("trace", offset, axis1, axis2)
        return result if dtype is None else result.astype(dtype)  # type: ignore[no-any-return]

    def swapaxes(self, axis1: int, axis2: int) -> Self:
        """The array with two axes interchanged."""
        result: Self = self._by_name("swapaxes", axis1, axis2)
        return result

    def flatten(self, order: str = "C") -> Self:
        """All elements along one axis; by columns with the order "F"."""
        return self.ravel(order)

    def ravel(self, order: str = "C") -> Self:
        """All elements along one axis; by columns with the order "F"."""
        result: Self = FUNCTIONS["ravel"](self, order)
        return result

    # -- numbers

    def conj(self) -> Self:
        """The complex conjugates; the array itself if it is not complex."""
        result: Self = self._by_name("conj")
        return result

    def conjugate(self) -> Self:
        """The complex conjugates; the array itself if it is not complex."""
        return self.conj()

    def copy(self, order: str = "C") -> Self:
        """The same numbers, in the same memory, for nobody can change it; they stay where the array is donated."""
        return copy(self)

    def block_until_ready(self) -> Self:
        """The array itself, whose numbers are there: on the processor they are when a call returns; those of another
        device are copied to the host. In a traced function there is nothing to wait for."""
        getattr(self, "_value")  # noqa: B009 (a slot of arrays, which asks a device)
        return self

    def view(self, dtype: object = None, *sizes: object) -> Self:
        """The array itself, or its bits as elements of another dtype, along the last axis.

        Raises DTypeError and ShapeError where sizes do not fit; DTypeError in traced functions for bool and complex.
        """
        if sizes:
            wanted = ", ".join(map(repr, (dtype, *sizes)))
            raise DTypeError(f"view takes a dtype, not {wanted}; for another shape use x.reshape({wanted}){where()}")
        if dtype is None or as_dtype(dtype) is as_dtype(self.dtype):
            return self
        if getattr(self, "_value", None) is None:
            traced: Self = FUNCTIONS["view"](self, as_dtype(dtype))
            return traced
        try:
            seen = self._concrete("the memory of the values").view(as_dtype(dtype).numpy)
        except ValueError as error:
            raise DTypeError(f"a view of {self.dtype} as {as_dtype(dtype).numpy}: {error}{where()}") from None
        result: Self = FUNCTIONS["numpy"].asarray(seen)
        return result

    def tobytes(self, order: str = "C") -> bytes:
        """The bytes of the elements, in row-major order."""
        return np.ascontiguousarray(self._concrete("the bytes of the numbers")).tobytes()

    # -- what changes a NumPy array

    def fill(self, value: object) -> NoReturn:
        """Raises MutationError."""
        raise _unchanging("fill", "x = harp.numpy.full_like(x, value)")

    def put(self, indices: object, values: object, mode: object = "raise") -> NoReturn:
        """Raises MutationError."""
        raise _unchanging("put", "x = x.ravel().at[indices].set(values).reshape(x.shape)")

    def partition(self, kth: object, axis: object = -1, kind: object = None, order: object = None) -> NoReturn:
        """Raises MutationError."""
        raise _unchanging("partition", "x = harp.numpy.sort(x, axis)")

    def resize(self, *new_shape: object, refcheck: bool = True) -> NoReturn:
        """Raises MutationError."""
        raise _unchanging("resize", "x = x.reshape(shape), or harp.numpy.pad(x, widths)")

    def setflags(self, *flags: object, **named: object) -> NoReturn:
        """Raises MutationError."""
        raise _unchanging("setflags", "np.array(x) for an array that can be written to")

    def setfield(self, val: object, dtype: object, offset: int = 0) -> NoReturn:
        """Raises MutationError."""
        raise _unchanging("setfield", "x = x.at[index].set(value)")

    # -- what is not there

    if not TYPE_CHECKING:  # for whom there is no other name than those above

        def __getattr__(self, name: str) -> object:
            advice = _NOT_THERE.get(name)
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(f"{text}; {advice}" if advice else text, name=name, obj=self)


# Names of NumPy, PyTorch and JAX that mean something else here, or nothing.
_NOT_THERE = {
    **dict.fromkeys(("base", "ctypes", "data", "flags", "strides"), "memory is that of np.asarray(x)"),
    **dict.fromkeys(("dump", "dumps", "tofile"), "use np.save, or pickle"),
    **dict.fromkeys(("byteswap", "getfield"), "use np.asarray(x), and the method of that"),
    **dict.fromkeys(("cpu", "detach", "numpy"), "np.asarray(x) is its NumPy array; harp.stop_gradient stops gradients"),
    **dict.fromkeys(("double", "float", "half", "int", "long", "to", "type"), "use .astype(dtype)"),
    **dict.fromkeys(("add_", "mul_", "copy_", "zero_", "fill_"), "arrays do not change: write x = x + y, or x.at[...]"),
    **dict.fromkeys(("append", "extend", "insert"), "arrays do not grow: use harp.numpy.concatenate([x, more])"),
    "argpartition": "use .argsort(), or harp.numpy.top_k",
    "backward": "harp.grad(function) is the function that computes the gradient",
    "choose": "use harp.numpy.select, or harp.numpy.take_along_axis",
    "compress": "use x[mask], or harp.numpy.where in a traced function",
    "cuda": "use harp.device_put(x, device)",
    "clone": "arrays do not change, so nobody needs a copy",
    "dim": "use .ndim",
    "expand": "use harp.numpy.broadcast_to(x, shape)",
    "flat": "use .ravel()",
    "grad": "harp.grad(function) is the function that computes the gradient",
    "itemset": "use x = x.at[index].set(value)",
    "masked_fill": "use harp.numpy.where(mask, value, x)",
    "matmul": "use x @ y",
    "permute": "use .transpose(axes)",
    "ptp": "use harp.numpy.ptp(x)",
    "unsqueeze": "use x[None], or harp.numpy.expand_dims(x, axis)",
}


def _no_order(order: object) -> None:
    if order is not None:
        raise ArgumentError(f"order names fields, which arrays of harp do not have; leave it out{where()}")


def _unchanging(name: str, instead: str) -> MutationError:
    return MutationError(f"arrays do not change, so there is no x.{name}(); write {instead}{where()}")
