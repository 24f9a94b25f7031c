"""Arrays in the memory of a device, which stay there between calls.

On a device that shares the host's memory, the host's view of an array is the array, mapped once; else it is a copy.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pyopencl as cl

from harp.backends.opencl.devices import OpenCLDevice
from harp.config import counters
from harp.errors import DeviceError, OutOfMemoryError
from harp.trace.scalar.dtypes import NDArray

# A buffer, or a part of the pool: the type hints of pyopencl are not consistent about the two.
ClMemory = Any


class DeviceBuffer:
    """An array on a device. Its memory is freed, or given back to the device's pool, with its last user.

    `maker` names the call that computes it, for errors that are reported later.
    """

    __slots__ = ("_host", "dtype", "maker", "memory", "on", "shape")

    def __init__(
        self, on: OpenCLDevice, memory: ClMemory, shape: tuple[int, ...], dtype: np.dtype[Any], maker: str = ""
    ) -> None:
        self.on, self.memory, self.shape, self.dtype, self.maker = on, memory, shape, dtype, maker
        self._host: NDArray | None = None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """The size in bytes."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def device(self) -> str:
        """The name of the device."""
        return self.on.name

    @property
    def is_mapped(self) -> bool:
        """Whether its memory is mapped into the host."""
        return self._host is not None

    def host(self) -> NDArray:
        """The numbers. Raises DeviceError where the device has failed to compute them."""
        if self._host is None:
            try:
                self._host = self._fetched()
            except cl.Error as error:
                maker = self.maker or "a call"
                raise DeviceError(f"{self.on!r} failed to compute a result of {maker}: {error}") from None
        return self._host

    def _fetched(self) -> NDArray:
        if self.nbytes == 0:
            return np.empty(self.shape, self.dtype)
        queue = self.on.queue
        if self.on.shares_memory:
            mapped, _ = cl.enqueue_map_buffer(queue, self.memory, cl.map_flags.READ, 0, (self.nbytes,), np.dtype("u1"))
            raw = np.asarray(_Numbers(mapped, self.memory))
        else:
            counters.add("bytes_from_devices", self.nbytes)
            copy = np.empty(self.nbytes, np.uint8)
            cl.enqueue_copy(queue, copy, self.memory)
            raw = np.asarray(_Numbers(copy))
        return raw.view(self.dtype).reshape(self.shape)


class _Numbers:
    """Owns a view of numbers that nobody can make writable; while it is used, mapped memory stays mapped."""

    def __init__(self, numbers: NDArray, memory: ClMemory = None) -> None:
        self.kept = numbers, memory
        place, _ = numbers.__array_interface__["data"]
        self.__array_interface__ = {**numbers.__array_interface__, "data": (place, True)}


def made(on: OpenCLDevice, shape: tuple[int, ...], dtype: np.dtype[Any], maker: str = "") -> DeviceBuffer:
    """A new array, whose elements are not set. Raises OutOfMemoryError."""
    size = prod(shape) * dtype.itemsize
    try:
        return DeviceBuffer(on, on.pool.allocate(max(size, 1)), shape, dtype, maker)
    except (cl.Error, MemoryError, OverflowError) as error:
        raise OutOfMemoryError(
            f"{on!r} has no room for an array of shape {shape}, {size:,} bytes: {error}; free others, or compute in "
            "parts"
        ) from None


def uploaded(on: OpenCLDevice, array: NDArray) -> DeviceBuffer:
    """A copy of an array on the device. Raises OutOfMemoryError."""
    buffer = made(on, array.shape, array.dtype)
    if array.nbytes:
        counters.add("bytes_to_devices", array.nbytes)
        with on.lock:
            cl.enqueue_copy(on.queue, buffer.memory, flat_bytes(array))
    return buffer


def flat_bytes(array: NDArray) -> NDArray:
    """The bytes of a C-contiguous array."""
    return array.reshape(-1).view(np.uint8)
