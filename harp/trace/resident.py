"""Arrays whose numbers are in the memory of a device, until somebody on the host asks for them."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from harp.trace.array.array import Array
from harp.trace.scalar.dtypes import DType, NDArray, as_dtype
from harp.trace.trees import leaf_type


class DeviceMemory(Protocol):
    """An array in the memory of a device, row-major."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def ndim(self) -> int: ...

    @property
    def device(self) -> str: ...

    def host(self) -> NDArray:
        """The numbers, as soon as they are computed: a view where the host shares the memory, else a copy."""


_HOST: Any = Array.__dict__["_value"]  # the slot


@leaf_type
class ResidentArray(Array):
    """An array on a device. What asks for its numbers on the host gets them there once."""

    __slots__ = ("_held",)
    _held: DeviceMemory | None

    def __init__(self, held: DeviceMemory, weak: bool = False) -> None:
        self._held = held
        _HOST.__set__(self, None)
        self._node = self._level = None
        self._weak = weak

    @property
    def _value(self) -> NDArray | None:
        value: NDArray | None = _HOST.__get__(self)
        if value is None and self._held is not None:
            value = self._held.host()
            value.setflags(write=False)
            _HOST.__set__(self, value)
        return value

    @_value.setter
    def _value(self, value: NDArray | None) -> None:
        """It is given up."""
        self._held = None
        _HOST.__set__(self, value)

    def __copy__(self) -> Array:
        return self if self._held is None else ResidentArray(self._held, self._weak)

    @property
    def held(self) -> DeviceMemory | None:
        """The memory; None when the array was donated."""
        return self._held

    @property
    def device(self) -> str:
        """Where the numbers are, as in "opencl:0"."""
        return super().device if self._held is None else self._held.device

    @property
    def shape(self) -> tuple[Any, ...]:
        """The sizes of the axes."""
        return super().shape if self._held is None else self._held.shape

    @property
    def kind(self) -> DType:
        """The dtype as harp's own object."""
        return super().kind if self._held is None else as_dtype(self._held.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return super().ndim if self._held is None else self._held.ndim

    @property
    def size(self) -> Any:
        """The number of elements."""
        return super().size if self._held is None else int(np.prod(self._held.shape, dtype=np.int64))

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return int(self.size) * self.itemsize
