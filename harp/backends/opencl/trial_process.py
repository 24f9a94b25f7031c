"""A trial of one device, for a process of its own: some drivers end the process, or never return.

It is run as a file, with the number of the device among those of all platforms, and prints what is wrong, if anything.
"""

from __future__ import annotations

import sys
import time
import warnings

# Of a process that cannot import pyopencl, or what it needs.
CANNOT_SAY = 3
_ITEMS = 64
_SOURCE = """
__kernel void harp_trial(__global int *x, const int step)
{
    const int i = get_global_id(0);
    for (int k = FIRST; k < FIRST + i; ++k) x[i] += step;
}
"""

try:
    import numpy as np
    import pyopencl as cl
except ImportError:
    if __name__ == "__main__":
        sys.exit(CANNOT_SAY)
    raise


def all_devices() -> list[cl.Device]:
    """Those of all platforms, in the order of these."""
    return [device for platform in cl.get_platforms() for device in platform.get_devices()]


def problem(device: cl.Device) -> str:
    """What is wrong; an empty text for a device that works."""
    try:
        found = _run(device)
    except (cl.Error, MemoryError) as error:
        return f"its driver refuses a program: {error}"
    wrong = found != [3 * i for i in range(_ITEMS)]
    return f"a program computes wrong numbers on it: {found[:4]} instead of [0, 3, 6, 9]" if wrong else ""


def _run(device: cl.Device) -> list[int]:
    """The numbers that a program computes which no cache of a driver has."""
    context = cl.Context([device])
    queue = cl.CommandQueue(context, device)
    source = f"#define FIRST {time.time_ns() % 1_000_000}\n{_SOURCE}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernel = cl.Kernel(cl.Program(context, source).build(), "harp_trial")
    numbers = np.zeros(_ITEMS, np.int32)
    flags = cl.mem_flags
    memory = cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=numbers)
    kernel.set_args(memory, np.int32(3))
    cl.enqueue_nd_range_kernel(queue, kernel, (_ITEMS,), None)
    cl.enqueue_copy(queue, numbers, memory)
    return [int(number) for number in numbers]


if __name__ == "__main__":
    try:
        print(problem(all_devices()[int(sys.argv[1])]))
    except ImportError:  # pyopencl imports some of what it needs when it builds a program
        sys.exit(CANNOT_SAY)
