"""The OpenCL devices of this machine: what lowering must know of each, and its context, queue and memory pool."""

from __future__ import annotations

import gc
import os
import threading
import warnings
from functools import cached_property, lru_cache

import pyopencl as cl
from pyopencl.tools import ImmediateAllocator, MemoryPool

from harp.backends.runtime.load import keep_for_good
from harp.config import settings
from harp.errors import DeviceError
from harp.lower.target import Target


class OpenCLDevice:
    """One device. Its work goes to one queue, in order; `lock` is held while a call is enqueued."""

    def __init__(self, device: cl.Device, number: int) -> None:
        self.device = device
        self.number = number
        # Asked for now: after a fork a child, whose messages name the device, must not call the driver.
        self.description = f"{device.name.strip()}, {device.platform.name.strip()}"
        self.lock = threading.RLock()
        self._left_to_parent = False

    @property
    def name(self) -> str:
        """The name by which users choose the device."""
        return f"opencl:{self.number}"

    def __repr__(self) -> str:
        return f"{self.name} ({self.description})"

    @cached_property
    def context(self) -> cl.Context:
        """The context. Raises DeviceError after a fork, which leaves the driver's threads behind."""
        if self._left_to_parent:
            raise DeviceError(
                f"{self!r} was in use when this process was forked, and drivers do not work in a child; start it with "
                'multiprocessing.get_context("spawn"), or run the function there with device="cpu"'
            )
        return cl.Context([self.device])

    @cached_property
    def queue(self) -> cl.CommandQueue:
        return cl.CommandQueue(self.context, self.device)

    @cached_property
    def pool(self) -> MemoryPool:
        """The pool that reuses memory which was given back."""
        return MemoryPool(ImmediateAllocator(self.queue))

    def leave_to_parent(self) -> None:
        """After a fork, what was made before belongs to the parent: the child does not use it."""
        self.lock = threading.RLock()
        for name in ("pool", "queue", "context"):
            self.__dict__.pop(name, None)
        self._left_to_parent = True

    @cached_property
    def has_doubles(self) -> bool:
        return bool(self.device.double_fp_config)

    @cached_property
    def shares_memory(self) -> bool:
        """Whether its buffers can be arrays of the host."""
        return bool(self.device.host_unified_memory)

    @cached_property
    def gives_programs_out(self) -> bool:
        """Whether binaries of built programs are to be had for a cache at no cost. PoCL, which has a cache of its own,
        would compile all kernels again for work-groups of any size: that took as long as a program's first call."""
        return bool(self.device.platform.name.strip() != "Portable Computing Language")

    @cached_property
    def is_wide(self) -> bool:
        """Whether its work-items are lanes of vectors, as on graphics processors, or are treated so."""
        if settings.wide is not None:
            return settings.wide
        return not self.device.type & cl.device_type.CPU

    @cached_property
    def cores(self) -> int:
        """The number of its compute units."""
        return int(self.device.max_compute_units)

    @cached_property
    def identity(self) -> str:
        """The properties that a built program depends on."""
        device, platform = self.device, self.device.platform
        facts = (platform.name, platform.version, device.name, device.vendor, device.version, device.driver_version)
        return "\0".join(fact.strip() for fact in facts)

    def target(self, sub_group: int = 0) -> Target:
        """The properties that lowering needs; `sub_group` is the result of `measure.sub_group_size`."""
        device = self.device
        width = 8 * max(device.native_vector_width_double, 1)
        return Target(
            vector_bytes=max(width, 16),
            fma=True,
            cores=self.cores,
            line=device.global_mem_cacheline_size or 64,
            grid=True,
            wide=self.is_wide,
            group=device.max_work_group_size,
            sub_group=sub_group,
        )


@lru_cache(maxsize=1)
def devices() -> tuple[OpenCLDevice, ...]:
    """All devices, graphics processors first. Raises DeviceError where OpenCL itself is not there."""
    all_devices = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for platform in cl.get_platforms():
                all_devices += platform.get_devices()
    except cl.Error as error:
        raise DeviceError(
            f"no OpenCL platform was found ({error}); install a driver for a device, or PoCL for the processor "
            "(`pip install pocl-binary-distribution`, or `apt install pocl-opencl-icd`)"
        ) from None
    all_devices.sort(key=lambda device: not device.type & cl.device_type.GPU)
    return tuple(OpenCLDevice(device, number) for number, device in enumerate(all_devices))


def device(number: int) -> OpenCLDevice:
    """The device with a number. Raises DeviceError."""
    known = devices()
    if not 0 <= number < len(known):
        there = "; ".join(map(repr, known)) or "none"
        raise DeviceError(f"there is no OpenCL device {number}; there are: {there}")
    return known[number]


def _after_fork() -> None:
    if devices.cache_info().currsize:  # else no driver was called yet
        # The child does not free it either: NVIDIA's driver would end the child, and take the memory from the parent.
        for held in gc.get_objects():
            if type(held).__module__ == "pyopencl._cl":
                keep_for_good(held)
        for known in devices():
            known.leave_to_parent()


os.register_at_fork(after_in_child=_after_fork)
