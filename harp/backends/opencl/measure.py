"""Small programs that measure a device: its speed, by its own clock, and its sub-groups.

Sub-groups are work-items that run together, and can read each other's variables. The device decides which work-items
form a sub-group, but kernels ask for a size that branches of a sum fit into, and number their work-items by sub-group
and lane. A device that claims to support this is tested once by a small kernel: drivers do not list all sizes that they
support, and some list sizes that fail.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyopencl as cl

from harp.backends.opencl import build
from harp.backends.opencl.buffers import ClMemory
from harp.backends.opencl.devices import OpenCLDevice
from harp.backends.protocol import Limits
from harp.backends.toolchain import library
from harp.config import log
from harp.errors import DeviceError
from harp.lower.device.groups import EACH, ITEMS

# Bytes that a copy reads: more than caches hold, or a part of a small memory.
_COPIED, _PART = 64 << 20, 8
_TIMES = 5
# Independent chains of a work-item, and their steps: see `library/measure.h`.
_CHAINS, _STEPS = 8, 512
_GROUP, _GROUPS_OF_UNIT = 64, 32
# The extensions that sub-groups need.
_SIZE = "cl_intel_required_subgroup_size"
_EXCHANGES = {"cl_khr_subgroup_shuffle", "cl_intel_subgroups"}
# The smallest first: it needs the fewest registers.
_SIZES = (EACH, 2 * EACH)


def measure(device: OpenCLDevice) -> Limits:
    """The limits, in some 100 ms. Raises DeviceError."""
    try:
        with device.lock:
            device.queue.finish()
            double = _multiply_adds(device, "double", 8) if device.has_doubles else None
            return Limits(_copy_speed(device), _multiply_adds(device, "float", 4), double)
    except (cl.Error, MemoryError) as error:
        raise DeviceError(f"{device!r} failed: {error}") from None


def _program(device: OpenCLDevice, number: str, lanes: int) -> cl.Program:
    real = number if lanes == 1 else f"{number}{lanes}"
    macros = f"#define HARP_NUMBER {number}\n#define HARP_REAL {real}\n#define HARP_STEPS {_STEPS}\n"
    doubles = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" if number == "double" else ""
    return build.program(device, doubles + macros + library.text("measure.h", "opencl"), number == "double")


def _copy_speed(device: OpenCLDevice) -> float:
    """The bytes read and written per second: by work-items, or by the driver's own copy."""
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
    """The multiplications and additions per second."""
    cl_device = device.device
    lanes = max(1, cl_device.native_vector_width_float if itemsize == 4 else cl_device.native_vector_width_double)
    items = cl_device.max_compute_units * _GROUP * _GROUPS_OF_UNIT
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
    """The shortest time of several runs, in seconds. An additional first run is not counted."""
    times = []
    for _ in range(_TIMES + 1):
        event = put()
        event.wait()
        times.append((event.profile.end - event.profile.start) / 1e9)
    return max(min(times[1:]), 1e-9)


@lru_cache(maxsize=1 << 6)
def sub_group_size(device: OpenCLDevice) -> int:
    """The sub-group size that kernels are to ask for; 0 if the device supports none."""
    extensions = set(device.device.extensions.split())
    if _SIZE not in extensions or not extensions & _EXCHANGES or device.device.max_work_group_size < ITEMS:
        return 0
    return next((lanes for lanes in _SIZES if has_sub_groups(device, lanes)), 0)


def has_sub_groups(device: OpenCLDevice, lanes: int) -> bool:
    """Whether its sub-groups can have this size, and exchange values."""
    queue = device.queue  # fails in a child of a process that has used the device
    macros = f"#define HARP_TRIAL\n#define HARP_ITEMS {ITEMS}\n#define HARP_LANES {lanes}\n"
    exchanged = np.zeros((ITEMS // lanes, lanes, 2), np.int64)
    try:
        built = build.program(device, build.whole(f'{macros}#include "sub_group.h"\n'), doubles=False)
        kernel = cl.Kernel(built, "harp_neighbours")
        memory: ClMemory = device.pool.allocate(exchanged.nbytes)
        kernel.set_args(memory)
        cl.enqueue_nd_range_kernel(queue, kernel, (ITEMS,), (ITEMS,))
        cl.enqueue_copy(queue, exchanged, memory)
    except (DeviceError, cl.Error) as error:
        log.debug("%r has no sub-groups of %d: %s", device, lanes, error)
        return False
    expected = np.roll(np.arange(ITEMS).reshape(ITEMS // lanes, lanes), -1, axis=1)
    return bool((exchanged == expected[..., None]).all())
