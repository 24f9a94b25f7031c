"""The OpenCL backend: print a program for a grid, let the driver build it or find it in the cache, load it."""

from __future__ import annotations

from collections.abc import Sequence

from harp.backends.c_family.values import code, printed
from harp.backends.opencl import measure
from harp.backends.opencl.build import whole
from harp.backends.opencl.devices import OpenCLDevice, device
from harp.backends.opencl.emit import render
from harp.backends.opencl.executable import OpenCLExecutable, OpenCLMemory, TimedOpenCLExecutable
from harp.backends.opencl.host import HostCode, kernel_code, program_code
from harp.backends.options import CompileOptions
from harp.backends.protocol import Executable, Limits, ProgramText, ResultMemory
from harp.config import show
from harp.errors import DeviceError, HarpError
from harp.lower.loopir.program import Program, custom_kernels
from harp.lower.loopir.text import CodeLine
from harp.lower.target import Target
from harp.trace.graph.graph import Graph
from harp.trace.graph.kernel_source import refusal


class OpenCLBackend:
    """Runs programs on one device; raises DeviceError where that is not possible."""

    name = "opencl"

    def __init__(self, device: OpenCLDevice) -> None:
        self.device = device

    @property
    def memory(self) -> ResultMemory:
        """The memory of the device."""
        return OpenCLMemory(self.device)

    def target(self) -> Target:
        """The properties of the device that lowering needs."""
        return self.device.target(measure.sub_group_size(self.device) if self.device.is_wide else 0)

    def compile(
        self,
        program: Program | None,
        graph: Graph,
        options: CompileOptions,
        check: bool = False,
        sizes: Sequence[int] | None = None,
    ) -> Executable:
        if program is None:
            raise HarpError("the OpenCL backend compiles lowered programs, and was given a graph only")
        kernels = _kernels(program)
        host = program_code(program)
        show(4, "OpenCL source", _all_texts(kernels, host))
        try:
            return OpenCLExecutable(self.device, host, kernels)
        except DeviceError as error:
            raise refusal(custom_kernels(program), "opencl", str(error)) or error from None

    def text(self, program: Program) -> ProgramText:
        """For each kernel its launches, in OpenCL C, and the Python of the host that enqueues them."""
        kernels, host = _kernels(program), program_code(program)
        codes = zip(program.kernels, kernels, strict=True)
        kernels_text = ((*render.text(kernel, made.launches), *_host(made.lines)) for kernel, (made, _) in codes)
        return ProgramText("OpenCL C", tuple(kernels_text), tuple(_host(host)), _all_texts(kernels, host))

    def timed(self, program: Program, options: CompileOptions) -> TimedOpenCLExecutable:
        """The program, whose launches go to a queue that times them."""
        return TimedOpenCLExecutable(self.device, program_code(program, timed=True), _kernels(program))

    def measure(self, threads: int) -> Limits:
        return measure.measure(self.device)

    def limits_key(self, threads: int) -> str:
        return self.device.identity


def _kernels(program: Program) -> list[tuple[HostCode, str]]:
    """For each kernel, the host code and the source of its launches."""
    codes = [kernel_code(kernel) for kernel in program.kernels]
    pairs = zip(program.kernels, codes, strict=True)
    return [(made, whole(printed(render.text(kernel, made.launches)))) for kernel, made in pairs]


def _all_texts(kernels: list[tuple[HostCode, str]], host: Sequence[CodeLine]) -> str:
    """The text of a program, including its library."""
    return "\n\n".join([*(f"{text}\n{printed(_host(made.lines))}" for made, text in kernels), printed(host)])


def _host(lines: Sequence[CodeLine]) -> list[CodeLine]:
    return [*code("/* on the host:"), *lines, *code("*/\n")]


def backend(number: int) -> OpenCLBackend:
    """The backend of a device, by the device's number."""
    return OpenCLBackend(device(number))
