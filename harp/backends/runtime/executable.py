"""A loaded program, and how it is called: the names and C types of the functions that its library exports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from harp.backends.protocol import Span
from harp.backends.runtime import host_calls, lapack
from harp.backends.runtime.load import Library, pointer
from harp.backends.runtime.pool import attach
from harp.trace.scalar.dtypes import NDArray

# Few parameters are passed one by one. From `_ARRAYS` arrays on they are read at once (`arguments.py`); from
# `_PARAMETERS` parameters on cffi cannot pass them one by one.
_ARRAYS, _PARAMETERS = 6, 100


class Interface(NamedTuple):
    """The numbers of arrays and sizes that a program takes. Captured arrays are inputs."""

    inputs: int
    outputs: int
    sizes: int

    @property
    def packed(self) -> bool:
        """Whether there are so many parameters that they are passed in arrays."""
        return self.inputs + self.outputs >= _ARRAYS or sum(self) > _PARAMETERS

    @property
    def names(self) -> tuple[str, str]:
        """The names of the function that runs the program, and of the one that returns its scratch memory."""
        suffix = "_packed" if self.packed else ""
        return f"harp_run{suffix}", f"harp_scratch{suffix}"

    @property
    def types(self) -> tuple[str, str]:
        """The C types of these functions."""
        if self.packed:
            return "int(*)(void **, int64_t *)", "int64_t(*)(int64_t *)"
        sizes = ["int64_t"] * self.sizes
        run = ", ".join(["void *"] * (self.inputs + self.outputs) + sizes) or "void"
        return f"int(*)({run})", f"int64_t(*)({', '.join(sizes) or 'void'})"


class CExecutable:
    """`function` takes pointers of inputs and outputs, then sizes; `packed` takes two arrays of many of these."""

    memory: None = None

    def __init__(self, library: Library, interface: Interface, uses_scratch: bool, waits: bool = True) -> None:
        """Where no pool of threads has been compiled it `waits` for that, or is connected to it later."""
        self.library = library
        self.interface = interface
        self.uses_scratch = uses_scratch
        self._packed = interface.packed
        if library.has(host_calls.VARIABLE):
            library.set_pointer(host_calls.VARIABLE, host_calls.ADDRESS)
        if library.has(lapack.VARIABLE):
            library.set_pointer(lapack.VARIABLE, lapack.table())
        attach(library, waits)
        (run, scratch), (run_type, scratch_type) = interface.names, interface.types
        self._run = library.function(run, run_type)
        self._scratch = library.function(scratch, scratch_type)

    @property
    def function(self) -> Callable[..., int] | None:
        """The function that takes pointers and sizes one by one, if there is one."""
        return None if self._packed else self._run

    @property
    def packed(self) -> Callable[..., int] | None:
        """The function that takes an array of pointers and one of sizes, if there is one."""
        return self._run if self._packed else None

    def scratch_bytes(self, sizes: Sequence[int]) -> int:
        """The scratch memory of a call with these sizes; -1 if it is too much to count."""
        return self._scratch(sizes) if self._packed else self._scratch(*sizes)

    def __call__(self, inputs: Sequence[NDArray], outputs: Sequence[NDArray], sizes: Sequence[int], /) -> int:
        pointers = [pointer(array) for group in (inputs, outputs) for array in group]
        return self._run(pointers, sizes) if self._packed else self._run(*pointers, *sizes)


class FirstCExecutable(CExecutable):
    """A program for first calls: `finish` makes the full one, to which calls are handed on from then on."""

    def __init__(
        self, library: Library, interface: Interface, uses_scratch: bool, variable: str, full: Callable[[], CExecutable]
    ) -> None:
        super().__init__(library, interface, uses_scratch, waits=False)
        self._variable, self._make = variable, full
        self.full: CExecutable | None = None

    def finish(self) -> CExecutable:
        """Raises ToolchainError."""
        self.full = self._make()
        self.library.point(self._variable, self.full.library, "harp_run")
        return self.full


class TimedCExecutable(CExecutable):
    """Notes when its calls of kernels begin and end. It is called with arrays only; the last output of the library
    takes the times."""

    function: Callable[..., int] | None = None
    packed: Callable[..., int] | None = None

    def __init__(self, library: Library, interface: Interface, uses_scratch: bool, calls: int) -> None:
        super().__init__(library, interface, uses_scratch)
        self._times = np.zeros((calls, 2), np.int64)

    @property
    def spans(self) -> Sequence[Span]:
        """The runs of kernels in the latest call."""
        return [Span(number, began, ended) for number, (began, ended) in enumerate(self._times.tolist())]

    def __call__(self, inputs: Sequence[NDArray], outputs: Sequence[NDArray], sizes: Sequence[int], /) -> int:
        return super().__call__(inputs, [*outputs, self._times], sizes)
