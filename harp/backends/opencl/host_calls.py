"""The helpers that the host code of a program calls: launches, memory, elements, and functions of the user."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from struct import Struct
from typing import NamedTuple

import numpy as np
import pyopencl as cl

from harp.backends.opencl.buffers import ClMemory, flat_bytes
from harp.backends.opencl.devices import OpenCLDevice
from harp.backends.opencl.emit.render import LaunchCode
from harp.backends.opencl.emit.statements import DIMENSIONS
from harp.trace.eval.host_calls import run_function
from harp.trace.scalar.dtypes import NDArray, as_dtype

# Work-items of a group where a kernel does not say; the device may allow fewer. With 64, an H100 took 637 us for each
# of three elementwise programs of 67 million elements, which move 537 to 805 MB: one group in each of its cycles.
_GROUP = 256
# Rows of a grid up to the first length form groups with other rows, with so many work-items along a row.
_NARROW = ((16, 8), (128, 64))
# Work-items that run on a compute unit at once, as on the largest devices of today.
_AT_WORK = 2048
# The most groups along the second and third dimension of a launch, as devices of NVIDIA allow.
_MOST_GROUPS = (1 << 16) - 1


class Launch:
    """A kernel of a built program, with the properties that its launches need."""

    def __init__(self, device: OpenCLDevice, kernel: cl.Kernel, code: LaunchCode) -> None:
        self.kernel = kernel
        self.items = _items(device, kernel, code.items)
        self.group = _items(device, kernel, _GROUP) if device.is_wide else 1
        self.in_turns = code.in_turns
        self.numbers = Struct(f"{len(code.buffers) + len(code.names) + code.numbers}q")
        self.dimensions = max(1, min(len(code.grid), DIMENSIONS))


class Run(NamedTuple):
    """A call: the device, its queue, and the host's arrays that it reads, for which it waits for its end."""

    device: OpenCLDevice
    queue: cl.CommandQueue
    kept: list[object]


def take(run: Run, size: int) -> ClMemory:
    """Memory for later commands of the queue. It may be reused at once: commands of the next owner run after these."""
    return run.device.pool.allocate(max(size, 1))


def launch(
    run: Run,
    launched: Launch,
    grid: tuple[int, ...],
    buffers: tuple[ClMemory, ...],
    numbers: tuple[int, ...],
    room: tuple[int, ...] | None = None,
) -> list[cl.Event]:
    """Enqueue a launch; `grid` are the extents from the inside out. An empty grid has no event."""
    if any(extent <= 0 for extent in grid):
        return []
    kernel = launched.kernel
    grid_of_launch = [*grid[: DIMENSIONS - 1], prod(grid[DIMENSIONS - 1 :])][: launched.dimensions] or [1]
    if launched.in_turns:
        grid_of_launch = [min(prod(grid), max(run.device.cores * _AT_WORK // launched.items, 1))]
    if launched.items:
        group = (launched.items, *(1,) * (len(grid_of_launch) - 1))
        padded = tuple(extent * size for extent, size in zip(grid_of_launch, group, strict=True))
    else:
        group = _group(grid_of_launch, launched.group)
        padded = tuple(-(-extent // size) * size for extent, size in zip(grid_of_launch, group, strict=True))
    at = 0
    for buffer in buffers:
        kernel.set_arg(at, buffer)
        at += 1
    if room is not None:
        parts = prod(padded) // (launched.items if launched.in_turns else 1)
        kernel.set_arg(at, take(run, parts * sum(-(-max(size, 0) // 64) * 64 for size in room)))
        at += 1
    if numbers:
        kernel.set_arg(at, launched.numbers.pack(*numbers))
    if all(size <= _MOST_GROUPS * per_group for size, per_group in zip(padded[1:], group[1:], strict=True)):
        return [cl.enqueue_nd_range_kernel(run.queue, kernel, padded, group)]
    return _in_slices(run, kernel, padded, group)


def _in_slices(run: Run, kernel: cl.Kernel, padded: tuple[int, ...], group: tuple[int, ...]) -> list[cl.Event]:
    """Several launches, one after the other, with global offsets, in place of a larger one."""
    events = []
    ranges = [range(0, size, _MOST_GROUPS * per_group) for size, per_group in zip(padded[1:], group[1:], strict=True)]
    for starts in product(*ranges):
        sizes = (
            min(size - start, _MOST_GROUPS * per_group)
            for size, start, per_group in zip(padded[1:], starts, group[1:], strict=True)
        )
        events.append(cl.enqueue_nd_range_kernel(run.queue, kernel, (padded[0], *sizes), group, (0, *starts)))
    return events


def _items(device: OpenCLDevice, kernel: cl.Kernel, wanted: int) -> int:
    """The work-items of a group: as many as the kernel wants, or as the device allows."""
    if not wanted:
        return 0
    most = kernel.get_work_group_info(cl.kernel_work_group_info.WORK_GROUP_SIZE, device.device)
    return min(wanted, 1 << (int(most).bit_length() - 1))


def _group(whole: Sequence[int], items: int) -> tuple[int, ...]:
    """The size of a work-group for a grid."""
    if len(whole) == 1:
        return (1 if whole[0] == 1 else items,)
    row = next((row for longest, row in _NARROW if whole[0] <= longest and row < items), items)
    return (row, items // row, *(1,) * (len(whole) - 2))


def element(run: Run, buffer: ClMemory, at: int, dtype: str) -> int:
    """An integer or bool of a buffer, as a number."""
    number = np.empty(1, as_dtype(dtype).numpy)
    cl.enqueue_copy(run.queue, number, buffer, src_offset=at * number.itemsize)
    return int(number[0])


def position(a: int, n: int) -> int:
    """A position along an axis of n elements, from the end if it is negative; the nearest one where it is outside."""
    return min(max(a + n if a < 0 else a, 0), n - 1)


def position_or_miss(a: int, n: int) -> int:
    """A position along an axis of n elements, from the end if it is negative; n where it is outside."""
    at = a + n if a < 0 else a
    return at if 0 <= at < n else n


def quotient(a: int, b: int) -> int:
    return a // b if b else 0


def settle(run: Run, moved: tuple[tuple[ClMemory, int, ClMemory, int, int, int], ...]) -> None:
    """Copy arrays that were exchanged back: (buffer, offset, own buffer, own offset, elements, size of one)."""
    away = [
        (b, at, home, home_at, n * size, size)
        for b, at, home, home_at, n, size in moved
        if b is not home or at != home_at
    ]
    copies = []
    for buffer, at, home, home_at, size, item in away:
        if size > 0:
            between = buffer, at * item
            if len(away) > 1:  # one may be in the home of another
                between = take(run, size), 0
                cl.enqueue_copy(run.queue, between[0], buffer, byte_count=size, src_offset=at * item)
            copies.append((home, home_at * item, *between, size))
    for home, place, buffer, start, size in copies:
        cl.enqueue_copy(run.queue, home, buffer, byte_count=size, src_offset=start, dst_offset=place)


def call_python(
    run: Run,
    number: int,
    calls: tuple[int, ...],
    targets: tuple[tuple[ClMemory, int, str, tuple[int, ...]], ...],
    sources: tuple[tuple[ClMemory, int, str, tuple[int, ...]], ...],
) -> None:
    """Call a function of Python: (buffer, offset, dtype, shape of one call) of each result, and of each operand."""
    operands = [_downloaded(run, buffer, at, dtype, calls + own) for buffer, at, dtype, own in sources]
    made = run_function(number, calls, operands, [(own, as_dtype(dtype)) for _, _, dtype, own in targets])
    for (buffer, at, _, _), array in zip(targets, made, strict=True):
        if array.size:
            whole = np.ascontiguousarray(array)
            cl.enqueue_copy(run.queue, buffer, flat_bytes(whole), dst_offset=at * whole.itemsize)


def _downloaded(run: Run, buffer: ClMemory, at: int, dtype: str, shape: tuple[int, ...]) -> NDArray:
    array = np.empty(shape, as_dtype(dtype).numpy)
    if array.size:
        cl.enqueue_copy(run.queue, flat_bytes(array), buffer, src_offset=at * array.itemsize)
    return array
