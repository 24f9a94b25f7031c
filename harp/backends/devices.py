"""Where programs run: the processor, which every machine has, and the OpenCL devices of this one.

A device is named by a string: "cpu", "opencl:0", "opencl:1", and so on; "opencl" is the first of these.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import numpy as np

from harp.config import CPU, set_device, settings
from harp.errors import DeviceError
from harp.trace.array.array import Array, from_numpy
from harp.trace.array.operators import TABLE
from harp.trace.array.primitives import as_array
from harp.trace.array.resident import ResidentArray
from harp.trace.source_locations import where
from harp.trace.trees import Tree, map_leaves

_OPENCL = "opencl"


def devices() -> tuple[str, ...]:
    """The devices that programs can run on: "cpu", then OpenCL's, graphics processors first.

    >>> devices()[0]
    'cpu'
    """
    return (CPU, *(f"{_OPENCL}:{k}" for k in range(len(_opencl()))))


def _opencl() -> tuple[object, ...]:
    """The OpenCL devices; none where OpenCL is not installed."""
    try:
        from harp.backends.opencl.devices import devices  # pyopencl is an extra

        return devices()
    except (ImportError, DeviceError):
        return ()


def known_device(device: object) -> str:
    """The name of a device that is there. Raises DeviceError for others."""
    if isinstance(device, str):
        name = f"{_OPENCL}:0" if device == _OPENCL else device
        if name == CPU or name in devices():
            return name
        if name.startswith(f"{_OPENCL}:"):
            raise DeviceError(f"{device!r} cannot be used: {_missing()}{where()}")
    raise DeviceError(f"there is no device {device!r}; this machine has {', '.join(devices())}{where()}")


def _missing() -> str:
    try:
        from harp.backends.opencl.devices import device

        return repr(device(10**6))
    except ImportError:
        return "pyopencl is not installed; `pip install harp[opencl]`"
    except DeviceError as error:
        return str(error)


def device_put(tree: Tree, device: str) -> Any:
    """The tree with its arrays on a device; numbers become arrays.

    Arrays that are there, or belong to a trace, are themselves. Functions that run on the device take them without a
    copy, and `np.asarray` gets them back.

    Raises DeviceError if the device is not there, OutOfMemoryError if it has no room.

    >>> import numpy as np
    >>> device_put({"w": np.ones(3)}, "cpu")["w"].device
    'cpu'
    """
    return map_leaves(lambda leaf: _moved(as_array(leaf), known_device(device)), tree)


def _moved(array: Array, device: str) -> Array:
    if array.device == device or (not isinstance(array, ResidentArray) and array._value is None):
        return array
    value = np.asarray(array)
    if device == CPU:
        return from_numpy(value, array.weak)
    from harp.backends.opencl import buffers, devices  # pyopencl is an extra

    on = devices.device(int(device.partition(":")[2]))
    return ResidentArray(buffers.uploaded(on, np.ascontiguousarray(value).reshape(value.shape)), array.weak)


TABLE["to_device"] = lambda array, device: _moved(array, known_device(device))


class default_device:  # noqa: N801: it is called like a function
    """Run functions that do not say otherwise on this device from now on; as a context manager, within it.

    `jit(f, device=...)` is for one function. Raises DeviceError if the device is not there.

    >>> with default_device("cpu"):
    ...     pass
    """

    def __init__(self, device: str) -> None:
        self._before = settings.device
        set_device(known_device(device))

    def __enter__(self) -> default_device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        set_device(self._before)
