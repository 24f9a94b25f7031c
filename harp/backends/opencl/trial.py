"""Whether a device works: a small program is built and run on it. The cache remembers that, for each driver.

A device that fails keeps its number, but nobody is given it unasked.
"""

from __future__ import annotations

import hashlib
import json
import textwrap
import time

import numpy as np
import pyopencl as cl

from harp.backends.opencl import build
from harp.backends.opencl.devices import OpenCLDevice, device, devices
from harp.backends.toolchain import cache
from harp.config import log
from harp.errors import DeviceError

__all__ = ["advice", "device", "devices", "examine", "facts", "problem"]

_SOURCE = """
__kernel void harp_trial(__global int *x, const int step)
{
    const int i = get_global_id(0);
    for (int k = FIRST; k < FIRST + i; ++k) x[i] += step;
}
"""
_ITEMS = 64
_SUFFIX = ".json"
_LONGEST = 300
_known: dict[str, str | None] = {}  # by the identity of the device


def problem(device: OpenCLDevice) -> str | None:
    """What is wrong with a device; None if it works."""
    if device.identity not in _known:
        found = _recalled(device)
        if found is None:
            return examine(device)
        _known[device.identity] = found or None
    return _known[device.identity]


def advice(device: OpenCLDevice) -> str:
    """What to do about one that fails."""
    own = device.device
    return f"update or remove driver {own.driver_version.strip()!r} of platform {own.platform.name.strip()!r}"


def facts(device: OpenCLDevice) -> str:
    """What there is to know of one."""
    own = device.device
    doubles = "float64" if device.has_doubles else "no float64"
    return (
        f"driver {own.driver_version.strip()}, {own.global_mem_size / (1 << 30):.1f} GiB, {doubles}, "
        f"{own.max_compute_units} compute units, work-groups of up to {own.max_work_group_size}"
    )


def examine(device: OpenCLDevice) -> str | None:
    """The same, by a trial now, which is remembered."""
    found = _trial(device)
    _known[device.identity] = found
    cache.put(_key(device), _SUFFIX, json.dumps([_key(device), found or ""]).encode())
    return found


def _key(device: OpenCLDevice) -> str:
    content = f"{_SOURCE}\0{device.identity}"
    return f"trial-{hashlib.sha256(content.encode(errors='surrogateescape')).hexdigest()}"


def _recalled(device: OpenCLDevice) -> str | None:
    """What an earlier process found: a problem, or an empty text."""
    content = cache.get(_key(device), _SUFFIX)
    if content is None:
        return None
    try:
        own, found = json.loads(content)
        if own == _key(device) and isinstance(found, str):
            return found
    except (ValueError, TypeError, RecursionError) as error:
        log.debug("the trial of %r cannot be read: %s", device, error)
    return None


def _trial(device: OpenCLDevice) -> str | None:
    try:
        with device.lock:
            numbers = _run(device)
    except DeviceError as error:
        return _brief(str(error))
    except (cl.Error, MemoryError) as error:
        return _brief(f"it fails to run a program: {error}")
    wrong = numbers != [3 * i for i in range(_ITEMS)]
    return f"a program computes wrong numbers on it: {numbers[:4]} instead of [0, 3, 6, 9]" if wrong else None


def _run(device: OpenCLDevice) -> list[int]:
    """The numbers that the program computes, which no cache has, neither harp's nor the driver's."""
    source = f"#define FIRST {time.time_ns() % 1_000_000}\n{_SOURCE}"
    kernel = cl.Kernel(build.anew(device, source), "harp_trial")
    found = np.zeros(_ITEMS, np.int32)
    flags = cl.mem_flags
    memory = cl.Buffer(device.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=found)
    kernel.set_args(memory, np.int32(3))
    cl.enqueue_nd_range_kernel(device.queue, kernel, (_ITEMS,), None)
    cl.enqueue_copy(device.queue, found, memory)
    return [int(number) for number in found]


def _brief(text: str) -> str:
    """A line of what a driver says: the first, in which pyopencl repeats itself, and the first that names an error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first: list[str] = []
    for part in lines[0].removesuffix(" -").split(" - "):
        first += [] if any(earlier.endswith(part) for earlier in first) else [part]
    told = [line for line in lines[1:] if "error" in line.lower()][:1]
    return textwrap.shorten("; ".join([" - ".join(first), *told]), _LONGEST, placeholder=" ...")
