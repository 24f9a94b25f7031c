"""A program on a device: the function that a jitted function calls, and the helpers that its host code calls."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from harp.backends.c_family.values import printed
from harp.backends.opencl import build
from harp.backends.opencl.buffers import ClMemory, DeviceBuffer, flat_bytes, made, uploaded
from harp.backends.opencl.devices import OpenCLDevice
from harp.backends.opencl.host import HostCode
from harp.backends.opencl.host_calls import (
    Launch,
    Run,
    call_python,
    element,
    launch,
    position,
    position_or_miss,
    quotient,
    settle,
    take,
)
from harp.backends.opencl.sorting import sort_rows
from harp.backends.protocol import ResultMemory, Span
from harp.config import counters
from harp.errors import DeviceError
from harp.lower.loopir.text import CodeLine
from harp.trace.eval.host_calls import is_raised_by_call
from harp.trace.scalar.dtypes import NDArray

Buffer = NDArray | DeviceBuffer


class OpenCLExecutable:
    """Runs a program on arrays of the device and of the host, and does not wait for results that stay there.

    On a device that shares the host's memory, inputs of the host are used in place. Then, and for results on the host,
    a call waits until it is finished.
    """

    function: Callable[..., int] | None = None
    packed: Callable[..., int] | None = None

    @property
    def memory(self) -> ResultMemory:
        """The memory of its results."""
        return OpenCLMemory(self.device)

    def __init__(self, device: OpenCLDevice, host: Sequence[CodeLine], kernels: Sequence[tuple[HostCode, str]]) -> None:
        self.device = device
        namespace: dict[str, object] = {**self.helpers(), "constant": partial(_constant, device)}
        for number, (code, source) in enumerate(kernels):
            inner: dict[str, object] = dict(self.helpers())
            if code.launches:
                doubles, is_users = any(f.doubles for f in code.launches), any(f.is_users for f in code.launches)
                built = build.program(device, source, doubles, is_users)
                for place, launched in enumerate(code.launches):
                    inner[f"launch{place}"] = Launch(device, cl.Kernel(built, launched.name), launched)
            exec(compile(printed(code.lines), f"<host code of kernel {number}>", "exec"), inner)
            namespace[f"kernel{number}"] = inner["kernel"]
        exec(compile(printed(host), "<host code of a program>", "exec"), namespace)
        self._program: Callable[..., None] = namespace["program"]  # type: ignore[assignment]

    def __call__(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], sizes: Sequence[int], /) -> int:
        device = self.device
        run = Run(device, self.queue, [])
        try:
            with device.lock:
                try:
                    self._launch_all(run, inputs, outputs, sizes)
                finally:
                    if run.kept:  # also if a function of Python has ended the program
                        run.queue.finish()
        except (cl.MemoryError, MemoryError) as error:
            if is_raised_by_call(error):
                raise
            return 1
        except cl.Error as error:
            if is_raised_by_call(error):
                raise
            raise DeviceError(f"{device!r} failed: {error}") from None
        return 0

    def _launch_all(self, run: Run, inputs: Sequence[Buffer], outputs: Sequence[Buffer], sizes: Sequence[int]) -> None:
        memories = [array.memory if isinstance(array, DeviceBuffer) else _input(run, array) for array in inputs]
        results = [array.memory if isinstance(array, DeviceBuffer) else take(run, array.nbytes) for array in outputs]
        self._program(run, *memories, *results, *sizes)
        for array, buffer in zip(outputs, results, strict=True):
            if not isinstance(array, DeviceBuffer) and array.nbytes:
                cl.enqueue_copy(run.queue, flat_bytes(array), buffer)

    @property
    def queue(self) -> cl.CommandQueue:
        """The queue that calls use."""
        return self.device.queue

    def helpers(self) -> Mapping[str, object]:
        """The functions that host code calls, by name."""
        return _HELPERS


class TimedOpenCLExecutable(OpenCLExecutable):
    """Computes the same in a queue of its own, and is finished when a call returns. The device times the launches: each
    has an event with its begin and its end."""

    def __init__(self, device: OpenCLDevice, host: Sequence[CodeLine], kernels: Sequence[tuple[HostCode, str]]) -> None:
        properties = cl.command_queue_properties.PROFILING_ENABLE
        self._queue = cl.CommandQueue(device.context, device.device, properties)
        self._number = 0
        self._began = 0  # the host's clock at the first launch
        self._events: list[tuple[int, cl.Event]] = []
        super().__init__(device, host, kernels)

    @property
    def queue(self) -> cl.CommandQueue:
        """A queue with times."""
        return self._queue

    def helpers(self) -> Mapping[str, object]:
        """The helpers, with launches whose events are kept."""
        return {**super().helpers(), "launch": self._launch, "begin": self._begin}

    def _begin(self, number: int) -> None:
        self._number = number

    def _launch(self, *arguments: object) -> None:
        if not self._events:
            self._began = time.monotonic_ns()
        self._events += [(self._number, event) for event in launch(*arguments)]  # type: ignore[arg-type]

    @property
    def spans(self) -> Sequence[Span]:
        """The spans of the latest call, by the device's clock, which is set to that of the host at the first launch."""
        if not self._events:
            return []
        ahead = self._events[0][1].profile.queued - self._began
        profiles = [(number, event.profile) for number, event in self._events]
        return [Span(number, profile.start - ahead, profile.end - ahead) for number, profile in profiles]

    def __call__(self, inputs: Sequence[Buffer], outputs: Sequence[Buffer], sizes: Sequence[int], /) -> int:
        with self.device.lock:
            self._events.clear()
            self.device.queue.finish()  # finish the computation of the arguments
            status = super().__call__(inputs, outputs, sizes)
            self._queue.finish()
        return status


class OpenCLMemory(NamedTuple):
    """Allocates results on a device."""

    device: OpenCLDevice

    def make(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceBuffer:
        """A new array, whose elements are not set. Raises OutOfMemoryError."""
        return made(self.device, shape, dtype)

    def upload(self, array: NDArray) -> DeviceBuffer:
        """A copy of an array. Raises OutOfMemoryError."""
        return uploaded(self.device, array)

    def taken(self, array: Buffer, others: Sequence[object]) -> DeviceBuffer:
        """The memory of a donated argument for a result, if the caller's variable is its only owner: a copy if it is on
        the host, mapped there, or also another argument, of this call or of one in another thread."""
        if not isinstance(array, DeviceBuffer):
            return uploaded(self.device, array)
        if not array.is_mapped and not any(other is array for other in others) and _references(array) == _ONE_VARIABLE:
            return array
        copy = made(self.device, array.shape, array.dtype)
        if array.nbytes:
            with self.device.lock:
                cl.enqueue_copy(self.device.queue, copy.memory, array.memory, byte_count=array.nbytes)
        return copy


def _references(value: object) -> int:
    return sys.getrefcount(value)


def _counted_references() -> int:
    """The reference count that Python reports in `taken`, including its own variables: versions differ."""

    def taken(argument: object) -> int:
        return _references(argument)

    buffer = object()
    return taken(buffer)


_ONE_VARIABLE = _counted_references()


def _constant(device: OpenCLDevice, bits: str) -> ClMemory:
    """A number on the device, given its bytes in hexadecimal."""
    return uploaded(device, np.frombuffer(bytearray.fromhex(bits), np.uint8)).memory


def _input(run: Run, array: NDArray) -> ClMemory:
    """An array of the host as a buffer, for the time of the call."""
    flags = cl.mem_flags
    if array.nbytes == 0:
        return take(run, 1)
    if not run.device.shares_memory:
        counters.add("bytes_to_devices", array.nbytes)
        return cl.Buffer(run.device.context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=flat_bytes(array))
    buffer = cl.Buffer(run.device.context, flags.READ_ONLY | flags.USE_HOST_PTR, hostbuf=flat_bytes(array))
    run.kept.append(buffer)  # its owner may change it after the call
    return buffer


_CALLS = (take, launch, element, position, position_or_miss, quotient, settle, call_python, sort_rows)
_HELPERS = {f.__name__: f for f in _CALLS}
