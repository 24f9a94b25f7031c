"""A loaded program: what a call of a jitted function calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harp.backends.runtime import host_calls
from harp.backends.runtime.interface import Interface
from harp.backends.runtime.load import Library, pointer
from harp.backends.runtime.pool import RUNTIME, runtime
from harp.trace.scalar.dtypes import NDArray


class CExecutable:
    """`function` takes pointers of inputs and outputs, then sizes; `packed` takes two arrays of many of these."""

    memory: None = None

    def __init__(self, library: Library, interface: Interface, uses_scratch: bool) -> None:
        self.library = library
        self.interface = interface
        self.uses_scratch = uses_scratch
        self._packed = interface.packed
        wanted = {variable: function for variable, function in RUNTIME.items() if library.has(variable)}
        found = runtime() if wanted else None
        if found is not None:
            for variable, function in wanted.items():
                library.point(variable, found, function)
        if library.has(host_calls.VARIABLE):
            library.set_pointer(host_calls.VARIABLE, host_calls.ADDRESS)
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
