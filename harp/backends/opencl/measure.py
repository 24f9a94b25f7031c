"""How fast a device is: the time, by its own clock, of copies of a large array and of multiply-adds in registers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyopencl as cl

from harp.backends.opencl import build
from harp.backends.opencl.devices import OpenCLDevice
from harp.backends.protocol import Limits
from harp.backends.toolchain import library
from harp.errors import DeviceError

# Bytes that a copy reads, more than caches hold, or a part of a small memory.
_COPIED, _PART = 64 << 20, 8
_TIMES = 5
# Chains of a work-item, and their steps: `library/measure.h`.
_CHAINS, _STEPS = 8, 512
_GROUP, _GROUPS_OF_UNIT = 64, 32


def measure(device: OpenCLDevice) -> Limits:
    """The limits, in some 100 ms. Raises DeviceError."""
    try:
        with device.lock:
            device.queue.finish()
            double = _multiply_adds(device, "double", 8) if device.has_doubles else None
            return Limits(_copy(device), _multiply_adds(device, "float", 4), double)
    except (cl.Error, MemoryError) as error:
        raise DeviceError(f"{device!r} failed: {error}") from None


def _program(device: OpenCLDevice, number: str, lanes: int) -> cl.Program:
    real = number if lanes == 1 else f"{number}{lanes}"
    macros = f"#define HARP_NUMBER {number}\n#define HARP_REAL {real}\n#define HARP_STEPS {_STEPS}\n"
    doubles = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" if number == "double" else ""
    return build.program(device, doubles + macros + library.text("measure.h", "opencl"), number == "double")


def _copy(device: OpenCLDevice) -> float:
    """Bytes read and written in a second: by work-items, or by the driver's own copy."""
    size = min(_COPIED, device.device.max_mem_alloc_size // _PART) // 4096 * 4096
    flags = cl.mem_flags
    source, target = (cl.Buffer(device.context, flags.READ_WRITE, size) for _ in range(2))
    queue = _queue(device)
    cl.enqueue_fill_buffer(queue, source, np.ones(1, np.uint8), 0, size)
    kernel = cl.Kernel(_program(device, "float", 4), "harp_copy")
    kernel.set_args(source, target)
    ways: tuple[Callable[[], cl.Event], ...] = (
        lambda: cl.enqueue_nd_range_kernel(queue, kernel, (size // 16,), (_GROUP,)),
        lambda: cl.enqueue_copy(queue, target, source, byte_count=size),
    )
    return 2.0 * size / min(map(_fastest, ways))


def _multiply_adds(device: OpenCLDevice, number: str, itemsize: int) -> float:
    """Multiplications and additions in a second."""
    own = device.device
    lanes = max(1, own.native_vector_width_float if itemsize == 4 else own.native_vector_width_double)
    items = own.max_compute_units * _GROUP * _GROUPS_OF_UNIT
    queue = _queue(device)
    target = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, items * itemsize * lanes)
    kernel = cl.Kernel(_program(device, number, lanes), "harp_multiply_adds")
    dtype = np.float32 if itemsize == 4 else np.float64
    kernel.set_args(target, dtype(0.5), dtype(0.25))
    seconds = _fastest(lambda: cl.enqueue_nd_range_kernel(queue, kernel, (items,), (_GROUP,)))
    return 2.0 * _CHAINS * _STEPS * lanes * items / seconds


def _queue(device: OpenCLDevice) -> cl.CommandQueue:
    return cl.CommandQueue(device.context, device.device, cl.command_queue_properties.PROFILING_ENABLE)


def _fastest(put: Callable[[], cl.Event]) -> float:
    """Seconds of what is put into a queue. The first time, which is one more, does not count."""
    found = []
    for _ in range(_TIMES + 1):
        event = put()
        event.wait()
        found.append((event.profile.end - event.profile.start) / 1e9)
    return max(min(found[1:]), 1e-9)
