"""A trial of one device, for a process of its own: some drivers end the process, or never return.

It is run as a file, with the number of the device among those of all platforms, and prints the problem, if any.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

# The exit status of a process that cannot import pyopencl, or a package that pyopencl needs.
CANNOT_SAY = 3
_ITEMS = 64
_SOURCE = """
__kernel void harp_trial(__global int *x, const int step)
{
    const int i = get_global_id(0);
    for (int k = FIRST; k < FIRST + i; ++k) x[i] += step;
}
"""
# Compilers that do not know a CPU fail at instructions that it has, such as fused multiply-adds of vectors.
_VECTORS = """
__kernel void harp_vectors(__global NUMBER *x)
{
    const int i = get_global_id(0);
    x[i] = fma(x[i], x[i], x[i] + FIRST);
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
    """The devices of all platforms, in order."""
    return [device for platform in cl.get_platforms() for device in platform.get_devices()]


def problem(device: cl.Device) -> str:
    """The problem of a device; an empty text if it works."""
    try:
        numbers = _run(device)
    except (cl.Error, MemoryError) as error:
        return f"its driver refuses a program: {error}"
    if numbers != [3 * i for i in range(_ITEMS)]:
        return f"a program computes wrong numbers on it: {numbers[:4]} instead of [0, 3, 6, 9]"
    return ""


def _run(device: cl.Device) -> list[int]:
    """The numbers computed by a program that no driver has in a cache."""
    context = cl.Context([device])
    queue = cl.CommandQueue(context, device)
    first = time.time_ns() % 1_000_000
    numbers = _computed(context, queue, f"#define FIRST {first}\n{_SOURCE}", np.zeros(_ITEMS, np.int32), np.int32(3))
    widths = {"float": device.native_vector_width_float, "double": device.native_vector_width_double}
    for number, width in widths.items():  # 0 where there are no doubles
        if width > 0:
            source = f"#define FIRST {first}\n#define NUMBER {number}{width if width > 1 else ''}\n{_VECTORS}"
            dtype = np.float32 if number == "float" else np.float64
            vectors = _computed(context, queue, source, np.ones((_ITEMS, width), dtype))
            if (vectors != first + 2).any():
                return [int(v) for v in vectors.flat]
    return [int(number) for number in numbers]


def _computed(
    context: cl.Context, queue: cl.CommandQueue, source: str, numbers: np.ndarray[Any, Any], *arguments: object
) -> np.ndarray[Any, Any]:
    """The result of a source's kernel for an array, with a work-item for each row."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (kernel,) = cl.Program(context, source).build().all_kernels()
    flags = cl.mem_flags
    memory = cl.Buffer(context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=numbers)
    kernel.set_args(memory, *arguments)
    cl.enqueue_nd_range_kernel(queue, kernel, (len(numbers),), None)
    cl.enqueue_copy(queue, numbers, memory)
    return numbers


if __name__ == "__main__":
    try:
        print(problem(all_devices()[int(sys.argv[1])]))
    except ImportError:  # pyopencl imports some packages only when it builds a program
        sys.exit(CANNOT_SAY)
