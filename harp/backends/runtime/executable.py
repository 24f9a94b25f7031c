"""A loaded program, and how it is called: the names and the C types of what its library exports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from harp.backends.protocol import Span
from harp.backends.runtime import host_calls, lapack
from harp.backends.runtime.load import Library, pointer
from harp.backends.runtime.pool import RUNTIME, runtime
from harp.trace.scalar.dtypes import NDArray

# Few parameters are passed one by one. From so many arrays on they are read at once (`arguments.py`), from so many
# parameters on cffi cannot pass them otherwise.
_ARRAYS, _PARAMETERS = 6, 100


class Interface(NamedTuple):
    """How many arrays and sizes a program takes. The captured arrays are inputs."""

    inputs: int
    outputs: int
    sizes: int

    @property
    def packed(self) -> bool:
        """Whether there are so many parameters that they are passed in arrays."""
        return self.inputs + self.outputs >= _ARRAYS or sum(self) > _PARAMETERS

    @property
    def names(self) -> tuple[str, str]:
        """The functions that run it, and that say how much scratch memory that takes."""
        suffix = "_packed" if self.packed else ""
        return f"harp_run{suffix}", f"harp_scratch{suffix}"

    @property
    def types(self) -> tuple[str, str]:
        """Their types."""
        if self.packed:
            return "int(*)(void **, int64_t *)", "int64_t(*)(int64_t *)"
        sizes = ["int64_t"] * self.sizes
        run = ", ".join(["void *"] * (self.inputs + self.outputs) + sizes) or "void"
        return f"int(*)({run})", f"int64_t(*)({', '.join(sizes) or 'void'})"


class CExecutable:
    """`function` takes pointers of inputs and outputs, then sizes; `packed` takes two arrays of many of these."""

    memory: None = None

    def __init__(self, library: Library, interface: Interface, uses_scratch: bool) -> None:
        self.library = library
        self.interface = interface
        self.uses_scratch = uses_scratch
        self._packed = interface.packed
        if library.has(host_calls.VARIABLE):
            library.set_pointer(host_calls.VARIABLE, host_calls.ADDRESS)
        if library.has(lapack.VARIABLE):
            library.set_pointer(lapack.VARIABLE, lapack.table())
        wanted = {variable: function for variable, function in RUNTIME.items() if library.has(variable)}
        found = runtime() if wanted else None
        if found is not None:
            for variable, function in wanted.items():
                library.point(variable, found, function)
        (run, scratch), (run_type, scratch_type) = interface.names, interface.types
        self._run = library.function(run, run_type)
        self._scratch = library.function(scratch, scratch_type)

    @property
    def function(self) -> Callable[..., int] | None:
        """What can be called with pointers and sizes one after the other."""
        return None if self._packed else self._run

    @property
    def packed(self) -> Callable[..., int] | None:
        """What can be called with an array of pointers and one of sizes."""
        return self._run if self._packed else None

    def scratch_bytes(self, sizes: Sequence[int]) -> int:
        """The scratch memory of a call with these sizes; -1 if it is too much to count."""
        return self._scratch(sizes) if self._packed else self._scratch(*sizes)

    def __call__(self, inputs: Sequence[NDArray], outputs: Sequence[NDArray], sizes: Sequence[int], /) -> int:
        pointers = [pointer(array) for group in (inputs, outputs) for array in group]
        return self._run(pointers, sizes) if self._packed else self._run(*pointers, *sizes)


class TimedCExecutable(CExecutable):
    """It notes when its calls of kernels begin and end. It is called with arrays only; the last output of the library
    is for the times."""

    function: Callable[..., int] | None = None
    packed: Callable[..., int] | None = None

    def __init__(self, library: Library, interface: Interface, uses_scratch: bool, calls: int) -> None:
        super().__init__(library, interface, uses_scratch)
        self._times = np.zeros((calls, 2), np.int64)

    @property
    def spans(self) -> Sequence[Span]:
        """Of the latest call."""
        return [Span(number, began, ended) for number, (began, ended) in enumerate(self._times.tolist())]

    def __call__(self, inputs: Sequence[NDArray], outputs: Sequence[NDArray], sizes: Sequence[int], /) -> int:
        return super().__call__(inputs, [*outputs, self._times], sizes)
