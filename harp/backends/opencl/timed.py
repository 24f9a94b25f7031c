"""A program on a device whose launches the device times: each has an event, which knows when it began and ended."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import pyopencl as cl

from harp.backends.opencl.devices import OpenCLDevice
from harp.backends.opencl.executable import Given, OpenCLExecutable
from harp.backends.opencl.host import HostCode
from harp.backends.opencl.host_calls import launch
from harp.backends.protocol import Span


class TimedOpenCLExecutable(OpenCLExecutable):
    """Computes the same, in a queue of its own that takes times, and is done when a call returns."""

    def __init__(self, device: OpenCLDevice, host: str, kernels: Sequence[tuple[HostCode, str]]) -> None:
        properties = cl.command_queue_properties.PROFILING_ENABLE
        self._queue = cl.CommandQueue(device.context, device.device, properties)
        self._number = 0
        self._began = 0  # the host's clock at the first launch
        self._events: list[tuple[int, cl.Event]] = []
        super().__init__(device, host, kernels)

    @property
    def queue(self) -> cl.CommandQueue:
        """The one that takes times."""
        return self._queue

    def helpers(self) -> Mapping[str, object]:
        """Those of all programs, with launches that are kept."""
        return {**super().helpers(), "launch": self._launch, "begin": self._begin}

    def _begin(self, number: int) -> None:
        self._number = number

    def _launch(self, *given: object) -> None:
        if not self._events:
            self._began = time.monotonic_ns()
        self._events += [(self._number, event) for event in launch(*given)]  # type: ignore[arg-type]

    @property
    def spans(self) -> Sequence[Span]:
        """Of the latest call, by the clock of the device, which is set by that of the host at the first launch."""
        if not self._events:
            return []
        ahead = self._events[0][1].profile.queued - self._began
        profiles = [(number, event.profile) for number, event in self._events]
        return [Span(number, profile.start - ahead, profile.end - ahead) for number, profile in profiles]

    def __call__(self, inputs: Sequence[Given], outputs: Sequence[Given], sizes: Sequence[int], /) -> int:
        with self.device.lock:
            self._events.clear()
            self.device.queue.finish()  # what made the arguments
            status = super().__call__(inputs, outputs, sizes)
            self._queue.finish()
        return status
