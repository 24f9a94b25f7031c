"""What a backend is: it makes a kernel of a program, or of the graph that the program came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from harp.backends.options import CompileOptions
from harp.trace.graph.graph import Graph
from harp.trace.resident import DeviceMemory
from harp.trace.scalar.dtypes import NDArray

if TYPE_CHECKING:  # a process that finds its programs in the cache does without
    from harp.lower.loopir.program import Program
    from harp.lower.loopir.text import CodeLine
    from harp.lower.target import Target


class Unit(NamedTuple):
    """A text that is compiled on its own, with flags of its own.

    A shared one is part of many libraries, so its object file is kept: a kernel of a program, or a part of harp.
    """

    text: str
    flags: tuple[str, ...] = ()
    shared: bool = False
    kernel: bool = False

    @property
    def is_library(self) -> bool:
        """Whether it is a part of harp, the same for all programs."""
        return self.shared and not self.kernel


class Source(NamedTuple):
    """The source of one library: units that are linked.

    The lines of a program's kernels stand once more in `kernels`, in the order of the program, and those of the unit
    that calls them in `calls`.
    """

    units: tuple[Unit, ...]
    kernels: tuple[tuple[CodeLine, ...], ...] = ()
    calls: tuple[CodeLine, ...] = ()

    def __str__(self) -> str:
        return "\n".join(unit.text for unit in self.units if not unit.is_library)


class ResultMemory(Protocol):
    """The memory of a device, for results that stay there: room for an array, a copy of one, the memory of a donated
    argument or a copy of it. All raise OutOfMemoryError."""

    def make(self, shape: tuple[int, ...], dtype: np.dtype[Any], /) -> DeviceMemory: ...

    def upload(self, array: NDArray, /) -> DeviceMemory: ...

    def taken(self, given: Any, others: Sequence[object], /) -> DeviceMemory: ...


class Span(NamedTuple):
    """A run of a kernel: the number of the call in the program that it is a part of, its begin and its end in
    nanoseconds."""

    call: int
    began: int
    ended: int


class Limits(NamedTuple):
    """What a device does at most, as measured: bytes read and written in a second by a copy of an array;
    multiplications and additions in a second of float32 and of float64, which not all devices have."""

    copy: float
    float32: float
    float64: float | None


class ProgramText(NamedTuple):
    """A program in the language of a backend: `kernels` in order without the library that they include, and `calls`,
    what calls them. `whole` is all of it."""

    language: str
    kernels: tuple[tuple[CodeLine, ...], ...]
    calls: tuple[CodeLine, ...]
    whole: str


class Executable(Protocol):
    """A program that runs.

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
    """A program that takes the time of its kernels. It computes the same."""

    @property
    def spans(self) -> Sequence[Span]:
        """What ran in the latest call, in order, by a clock of the device."""
        ...


class Backend(Protocol):
    """One way to run programs. `check` is for those that run the graph; a compiled program contains its checks."""

    name: str

    @property
    def memory(self) -> ResultMemory | None:
        """Where its results are, if that is not the memory of the host."""

    def target(self) -> Target | None:
        """What lowering is told of the machine; None if the graph alone is run."""

    def compile(
        self, program: Program | None, graph: Graph, options: CompileOptions, check: bool = False
    ) -> Executable: ...

    def text(self, program: Program) -> ProgramText:
        """The program as it is compiled."""
        ...

    def timed(self, program: Program, options: CompileOptions) -> TimedExecutable:
        """The program with clocks round its kernels, for profiles."""
        ...

    def measure(self, threads: int) -> Limits:
        """How fast the device is, in so many threads where it is the processor."""
        ...

    def limits_key(self, threads: int) -> str:
        """What that depends on."""
        ...
