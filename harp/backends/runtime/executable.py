"""A loaded program, and how it is called: the names and C types of the functions that its library exports."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from harp.backends.protocol import Span
from harp.backends.runtime import host_calls, lapack
from harp.backends.runtime.load import Library, pointer
from harp.backends.runtime.pool import attach
from harp.config import log
from harp.errors import HarpError
from harp.trace.scalar.dtypes import NDArray

# Few parameters are passed one by one. From `_ARRAYS` arrays on they are read at once (`arguments.py`); from
# `_PARAMETERS` parameters on cffi cannot pass them one by one.
_ARRAYS, _PARAMETERS = 6, 100


# What a program for first calls returns if it has done enough.
TOO_MUCH = 2
_finishing: dict[FirstCExecutable, threading.Lock] = {}
os.register_at_fork(after_in_child=_finishing.clear)


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
    """A program for first calls: `finish` makes the full one, to which calls are handed on from then on.

    `function` and `packed` do nothing and return TOO_MUCH where it is time to `wait` for it, and call again. Of the
    `variables` one points to the full program, and the other has the number of operations that are left."""

    def __init__(
        self,
        library: Library,
        interface: Interface,
        uses_scratch: bool,
        variables: tuple[str, str],
        full: Callable[[], CExecutable],
    ) -> None:
        super().__init__(library, interface, uses_scratch, waits=False)
        self._variables, self._make = variables, full
        self.full: CExecutable | None = None

    def finish(self) -> CExecutable:
        """Only one thread makes it. Raises ToolchainError."""
        try:
            with _finishing.setdefault(self, threading.Lock()):
                if self.full is None:
                    full = self._make()
                    self.library.point(self._variables[0], full.library, "harp_run")
                    self.full = full
        finally:
            _finishing.pop(self, None)
        return self.full

    def wait(self) -> None:
        """Make the full program, or wait for the thread that does. If it cannot be made this one serves all calls."""
        try:
            self.finish()
        except (HarpError, OSError, MemoryError) as error:
            log.debug("the first program serves all calls: %s", error)
            self.library.set_number(self._variables[1], inf)


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
