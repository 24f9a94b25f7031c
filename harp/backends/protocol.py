"""The interface of backends: a backend makes an executable from a program, or from the graph of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from harp.backends.options import CompileOptions
from harp.trace.graph.graph import Graph
from harp.trace.resident import DeviceMemory
from harp.trace.scalar.dtypes import NDArray

if TYPE_CHECKING:  # not needed by a process that finds its programs in the cache
    from harp.lower.loopir.program import Program
    from harp.lower.loopir.text import CodeLine
    from harp.lower.target import Target


class Unit(NamedTuple):
    """A text that is compiled on its own, with its own flags.

    A shared unit is part of many libraries, so its object file is cached: a kernel of a program, or a part of harp.
    """

    text: str
    flags: tuple[str, ...] = ()
    shared: bool = False
    kernel: bool = False

    @property
    def is_library(self) -> bool:
        """Whether it is a part of harp, equal for all programs."""
        return self.shared and not self.kernel


class Source(NamedTuple):
    """The source of one library: units that are linked.

    `kernels` repeats the lines of the program's kernels, in the order of the program, and `calls` those of the unit
    that calls them. `of_user` says that there is code of the user in it.
    """

    units: tuple[Unit, ...]
    kernels: tuple[tuple[CodeLine, ...], ...] = ()
    calls: tuple[CodeLine, ...] = ()
    of_user: bool = False

    def __str__(self) -> str:
        return "\n".join(unit.text for unit in self.units if not unit.is_library)


class ResultMemory(Protocol):
    """The memory of a device, for results that stay there: it makes an array, copies one, and takes over the memory of
    a donated argument or copies it. All raise OutOfMemoryError."""

    def make(self, shape: tuple[int, ...], dtype: np.dtype[Any], /) -> DeviceMemory: ...

    def upload(self, array: NDArray, /) -> DeviceMemory: ...

    def taken(self, given: Any, others: Sequence[object], /) -> DeviceMemory: ...


class Span(NamedTuple):
    """A run of a kernel: the number of the program's call that it belongs to, and its begin and end in nanoseconds."""

    call: int
    began: int
    ended: int


class Limits(NamedTuple):
    """The measured limits of a device: bytes read and written per second by a copy; multiplications and additions per
    second of float32, and of float64, which some devices lack."""

    copy: float
    float32: float
    float64: float | None


class ProgramText(NamedTuple):
    """A program in the language of a backend: the `kernels` in order, without their library, the `calls` of them, and
    the `whole` text."""

    language: str
    kernels: tuple[tuple[CodeLine, ...], ...]
    calls: tuple[CodeLine, ...]
    whole: str


class Executable(Protocol):
    """A program that can be called.

    A call takes the arrays of the inputs and captured arrays, C-contiguous and of native byte order, fills the
    preallocated outputs, and returns 0, or 1 when there is no memory for scratch. `function` does the same with
    pointers and sizes as its arguments, one after the other, `packed` with an array of pointers and one of sizes. Each
    is None where it cannot be used. With a `memory` of its own it takes arrays that are there, too, and outputs are.
    """

    @property
    def function(self) -> Callable[..., int] | None: ...

    @property
    def packed(self) -> Callable[..., int] | None: ...

    @property
    def memory(self) -> ResultMemory | None: ...

    def __call__(self, inputs: Sequence[NDArray], outputs: Sequence[NDArray], sizes: Sequence[int], /) -> int: ...


class TimedExecutable(Executable, Protocol):
    """A program that computes the same, and times its kernels."""

    @property
    def spans(self) -> Sequence[Span]:
        """The runs of kernels in the latest call, in order, by a clock of the device."""
        ...


class Backend(Protocol):
    """One way to run programs. `check` is for backends that run the graph; a compiled program contains its checks."""

    name: str

    @property
    def memory(self) -> ResultMemory | None:
        """The memory of its results, if that is not the host's."""

    def target(self) -> Target | None:
        """The properties of the machine that lowering needs; None if the graph is run as it is."""

    def compile(
        self,
        program: Program | None,
        graph: Graph,
        options: CompileOptions,
        check: bool = False,
        sizes: Sequence[int] | None = None,
    ) -> Executable:
        """The executable of a program; `sizes`, in its order, are those of the call that waits for it, if one does."""
        ...

    def text(self, program: Program) -> ProgramText:
        """The text of the program that is compiled."""
        ...

    def timed(self, program: Program, options: CompileOptions) -> TimedExecutable:
        """The program with clocks round its kernels, for profiles."""
        ...

    def measure(self, threads: int) -> Limits:
        """The measured limits of the device, for the CPU with this number of threads."""
        ...

    def limits_key(self, threads: int) -> str:
        """The key of these limits."""
        ...
