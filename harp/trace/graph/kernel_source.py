"""Kernels that a user has written, as text: what programs are told apart by, and what a compiler says of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from zlib import crc32

import attrs

from harp.errors import KernelError
from harp.trace.graph.routines import PureFunction, StandIn
from harp.trace.interning import InternedBase, InternedByName
from harp.trace.scalar.dtypes import DType

# A line of a message of a compiler: the file that `#line` has named, and the number of the line.
_PLACE = re.compile(r'"?harp kernel (\w+)"?[:(](\d+)')


@attrs.frozen(eq=False, weakref_slot=False)
class KernelSource(InternedBase, metaclass=InternedByName):
    """The body of a function over pointers and sizes, for each backend, which runs for each point of a grid.

    `types` are names for dtypes. Outputs that are `filled` are zeros at first. `operations` are those of a point, if
    somebody has said how many there are. A `reference` computes the same with NumPy.
    """

    name: str
    texts: tuple[tuple[str, str], ...]  # by backend
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    grid: tuple[str, ...]
    sizes: tuple[str, ...]
    types: tuple[tuple[str, DType], ...]
    filled: tuple[bool, ...]
    operations: int | None = None
    reference: PureFunction | None = None

    def text(self, backend: str) -> str:
        """The body for a backend. Raises KernelError if there is none."""
        for name, body in self.texts:
            if name == backend:
                return body
        there = " and ".join(name for name, _ in self.texts)
        raise KernelError(f"kernel {self.name!r} has a source for {there}, and none for {backend}; add one")

    def content(self) -> str:
        """All that it is, as one line."""
        types = "".join(f", {name} = {dtype}" for name, dtype in self.types)
        flags = f"{list(self.filled)} {self.operations} {self.reference is not None}"
        names = [*self.inputs, "->", *self.outputs, "over", *self.grid, "by", *self.sizes]
        return f"kernel {self.name}({' '.join(names)}{types}) {flags} {list(self.texts)}"

    @property
    def number(self) -> int:
        """One that other kernels rarely have."""
        return crc32(self.content().encode()) % 97


def refusal(kernels: Iterable[KernelSource], backend: str, message: str) -> KernelError | None:
    """The error for a program that a compiler refuses, if it says so of one of these kernels, with the user's lines."""
    known = {kernel.name: kernel for kernel in kernels}
    lines = message.splitlines()
    for first, line in enumerate(lines):
        found = _PLACE.search(line)
        if found is None or found[1] not in known or "error" not in line:
            continue
        body, number = known[found[1]].text(backend).split("\n"), int(found[2])
        quoted = f"\n  line {number} is: {body[number - 1].strip()}" if 0 < number <= len(body) else ""
        said = "\n".join(lines[first : first + 12])
        return KernelError(f"the compiler refuses kernel {found[1]!r} for {backend}:{quoted}\n{said}")
    return None


# What is called for its results; in the graph of a program a function of Python is a number.
Routine = PureFunction | KernelSource | StandIn
