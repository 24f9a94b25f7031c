"""The devices that programs run on: the CPU, and the OpenCL devices of this machine.

A device is named by a string: "cpu", "opencl:0", "opencl:1", and so on. "opencl" is the first of these that works.
"""

from __future__ import annotations

from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np

from harp.backends import get
from harp.config import CPU, set_device, settings
from harp.errors import DeviceError
from harp.locks import importing
from harp.trace.array.array import Array, from_numpy
from harp.trace.array.primitives import as_array
from harp.trace.resident import ResidentArray
from harp.trace.source_locations import where
from harp.trace.trees import Tree, map_leaves

if TYPE_CHECKING:
    from harp.backends.opencl.devices import OpenCLDevice

_OPENCL = "opencl"


class _Trial(Protocol):
    """`harp.backends.opencl.trial`, which needs pyopencl."""

    def devices(self) -> tuple[OpenCLDevice, ...]: ...
    def device(self, number: int) -> OpenCLDevice: ...
    def facts(self, device: OpenCLDevice) -> str: ...
    def problem(self, device: OpenCLDevice) -> str | None: ...
    def known_problem(self, device: OpenCLDevice) -> str | None: ...
    def examine(self, device: OpenCLDevice) -> str | None: ...
    def advice(self, device: OpenCLDevice) -> str: ...


def devices() -> tuple[str, ...]:
    """The devices that programs can run on: "cpu", then OpenCL devices, graphics processors first.

    A device on which a small program fails is left out: `python -m harp doctor` says what is wrong with it.

    >>> devices()[0]
    'cpu'
    """
    try:
        trial = opencl()
        return (CPU, *(_name(device) for device in trial.devices() if trial.problem(device) is None))
    except DeviceError:
        return (CPU,)


def opencl() -> _Trial:
    """The module that knows the OpenCL devices. Raises DeviceError where pyopencl cannot be imported."""
    try:
        import_module("pyopencl")
        with importing:
            return cast(_Trial, import_module("harp.backends.opencl.trial"))
    except ImportError as error:
        raise DeviceError(f"pyopencl cannot be imported ({error}); `pip install harp-compiler[opencl]`") from None


def _name(device: OpenCLDevice) -> str:
    return f"{_OPENCL}:{device.number}"


def known_device(device: object) -> str:
    """The name of a device that works. Raises DeviceError for others."""
    if device == CPU:
        return CPU
    stem, _, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if stem != _OPENCL or not (device == _OPENCL or (number.isascii() and number.isdigit() and len(number) < 10)):
        raise DeviceError(f"there is no device {device!r}; this machine has {', '.join(devices())}{where()}")
    try:
        trial = opencl()
        if number:
            return _name(_working(trial, trial.device(int(number))))
        all_devices = trial.devices()
        if len(all_devices) < 2:
            return _name(_working(trial, trial.device(0)))
        working = next((other for other in all_devices if trial.problem(other) is None), None)
        return _name(working or _working(trial, all_devices[0]))
    except DeviceError as error:
        raise DeviceError(f"{device!r} cannot be used: {error}{where()}") from None


def _working(trial: _Trial, device: OpenCLDevice) -> OpenCLDevice:
    """The device. Raises DeviceError if a trial has failed; a device that is asked for by name is not tried now."""
    problem = trial.known_problem(device)
    if problem is not None:
        raise DeviceError(f"{problem}; {trial.advice(device)}, then let `python -m harp doctor` try it again")
    return device


def device_put(tree: Tree, device: str) -> Any:
    """The tree with its arrays on a device; numbers become arrays.

    Arrays that are there already, or belong to a trace, are returned as they are. Functions that run on the device take
    them without a copy, and `np.asarray` copies them back.

    Raises DeviceError if the device is not there, OutOfMemoryError if it has no room.

    >>> import numpy as np
    >>> device_put({"w": np.ones(3)}, "cpu")["w"].device
    'cpu'
    """
    return map_leaves(lambda leaf: to_device(as_array(leaf), device), tree)


def to_device(array: Array, device: str) -> Array:
    """The array on a device; itself if it is there, or belongs to a trace. Raises as `device_put`."""
    device = known_device(device)
    if array.device == device or (not isinstance(array, ResidentArray) and array._value is None):
        return array
    value = np.asarray(array)
    if device == CPU:
        return from_numpy(value, array.weak)
    memory = get(device).memory
    assert memory is not None, "only the processor's own arrays are in its memory"
    return ResidentArray(memory.upload(np.ascontiguousarray(value).reshape(value.shape)), array.weak)


class default_device:
    """Run functions that do not say otherwise on this device from now on; as a context manager, within it.

    `jit(f, device=...)` is for one function. Raises DeviceError if the device is not there, or is known not to work.

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
