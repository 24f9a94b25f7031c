"""Kernels that a user has written, as text: what programs are told apart by, and what a compiler says of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from zlib import crc32

import attrs

from harp.errors import KernelError
from harp.trace.graph.matrix_functions import MatrixFunction
from harp.trace.graph.routines import PureFunction, StandIn
from harp.trace.interning import InternedBase, InternedByName
from harp.trace.scalar.dtypes import DType

# A line of a message of a compiler: the file that `#line` has named, and the number of the line.
_PLACE = re.compile(r'"?harp (kernel|names of kernel) (\w+)"?[:(](\d+)')
_UNDEFINED = re.compile(
    r"(?:undefined symbol|undefined reference to|annot find symbol|nresolved extern function)\W+(\w+)"
    r"|(\w+): symbol not found"
)

# Names of other languages, and how C and OpenCL C have it.
_ADVICE = {
    "abs": "abs is C's function of int: write fabs for floats, and x < 0 ? -x : x for other integers",
    "min": "write fmin for floats, and a < b ? a : b for integers",
    "max": "write fmax for floats, and a > b ? a : b for integers",
}


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

    @property
    def names(self) -> tuple[str, ...]:
        """All names that the user has chosen, in the order in which the source declares them."""
        return (*self.inputs, *self.outputs, *self.sizes, *self.grid, *(name for name, _ in self.types))

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
        if found is not None and found[2] in known and "error" in line:
            said = "\n".join(lines[first : first + 12])
            if found[1] == "kernel":
                return KernelError(_at_line(known[found[2]], backend, int(found[3]), line) + "\n" + said)
            names = known[found[2]].names
            name = repr(names[int(found[3]) - 1]) if 0 < int(found[3]) <= len(names) else "one of the names"
            return KernelError(
                f"{name} of kernel {found[2]!r} cannot be a name for {backend}: it is a macro or a word of the "
                f"language; choose another one\n{said}"
            )
    return _undefined(known.values(), backend, message)


def _at_line(kernel: KernelSource, backend: str, number: int, said: str) -> str:
    """What a compiler refuses: the line, and what to write instead of a name that languages have differently."""
    body = kernel.text(backend).split("\n")
    head = f"the compiler refuses kernel {kernel.name!r} for {backend}:"
    if number > len(body):
        return f"{head}\n  behind its last line, {body[-1].strip()}: does each brace have its counterpart?"
    advice = [text for name, text in _ADVICE.items() if re.search(rf"\W(?:_cl_)?{name}\W", said)]
    return "\n  ".join([head, f"line {number} is: {body[number - 1].strip()}", *advice])


def _undefined(kernels: Iterable[KernelSource], backend: str, message: str) -> KernelError | None:
    """The error for a program that calls a function which is declared, and defined nowhere."""
    found = _UNDEFINED.search(message)
    name = next(filter(None, found.groups())) if found is not None else None
    for kernel in kernels if name is not None else ():
        for number, line in enumerate(kernel.text(backend).split("\n"), 1):
            if name in re.findall(r"\w+", line):
                return KernelError(
                    f"kernel {kernel.name!r} uses {name}, which no library for {backend} defines; write its definition "
                    f"into the source\n  line {number} is: {line.strip()}"
                )
    return None


# What is called for its results; in the graph of a program a function of Python is a number.
Routine = PureFunction | KernelSource | MatrixFunction | StandIn
