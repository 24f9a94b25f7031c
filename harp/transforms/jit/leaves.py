"""The leaves of a call's arguments as buffers: arrays of the host, or memory of the device that the program runs on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

import numpy as np

from harp.config import log
from harp.trace.array.array import Array
from harp.trace.resident import DeviceMemory, ResidentArray
from harp.trace.scalar.dtypes import NUMBERS, OF_NUMPY, NDArray, plain
from harp.trace.tracer import leaf_array


def resident(leaf: object, device: str) -> DeviceMemory | None:
    """The memory of an array that is on this device."""
    held = leaf.held if type(leaf) is ResidentArray else None
    return held if held is not None and held.device == device else None


def described(leaf: object, name: str, held: DeviceMemory | None) -> tuple[NDArray, bool]:
    """An argument as a NumPy array, and whether it is weak, as `leaf_array` has it. Of what is held by the device that
    is an array of its shape and dtype without its numbers, which stay there."""
    if held is None:
        return leaf_array(leaf, name)
    return np.broadcast_to(np.zeros((), held.dtype), held.shape), cast(Array, leaf).weak


def warn_of_copies(
    function: str, leaves: Sequence[object], names: Sequence[str], held: Sequence[DeviceMemory | None], device: str
) -> bool:
    """Say which arguments are on other devices than the one that the function runs on; whether there are any."""
    there = {
        name: leaf.held.device
        for leaf, name, here in zip(leaves, names, held, strict=True)
        if here is None and type(leaf) is ResidentArray and leaf.held is not None
    }
    if there:
        log.warning(
            "%r runs on %s, where arguments are moved by way of the host: %s; keep them there with "
            "harp.device_put(x, %r), or let it run where they are with harp.jit(f, device=...)",
            *(function, device, ", ".join(f"{name} on {place}" for name, place in there.items()), device),
        )
    return bool(there)


def on_host(function: Callable[..., None]) -> Callable[..., None]:
    """The function of arrays, for arrays that may be on a device."""

    def fetched(value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(fetched, value))
        return value.host() if hasattr(value, "host") else value

    return lambda *arguments: function(*map(fetched, arguments))


def buffers_of(leaves: Sequence[object], key: list[Hashable], device: str) -> tuple[list[Any], list[int]] | None:
    """The leaves as C-contiguous buffers, and all their sizes, if they are arrays or numbers; puts what they are into
    the key. Those on the device stay there."""
    buffers: list[Any] = []
    sizes: list[int] = []
    for leaf in leaves:
        if type(leaf) is np.ndarray and leaf.dtype in OF_NUMPY:
            buffer, weak = leaf, False
        elif type(leaf) is Array and leaf._value is not None:
            buffer, weak = leaf._value, leaf._weak
        elif (number := NUMBERS.get(type(leaf))) is not None:
            dtype, weak = number
            try:
                buffer = np.asarray(leaf, dtype.numpy)
            except OverflowError:
                return None
        elif (held := resident(leaf, device)) is not None:
            buffers.append(held)
            sizes += held.shape
            key += (held.dtype, held.ndim, cast(Array, leaf).weak)
            continue
        else:
            return None
        flags = buffer.flags
        if not (flags.c_contiguous and flags.aligned):
            buffer = plain(buffer)
        buffers.append(buffer)
        sizes += buffer.shape
        key += (buffer.dtype, buffer.ndim, weak)
    return buffers, sizes
