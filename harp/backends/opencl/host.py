"""The host code of a program, as Python: it launches kernels, runs loops and branches, and calls functions of Python.

    def kernel1(run, in0, in0_at, out0, out0_at, s0):
        launch(run, l1_0, (s0,), (in0, out0), (in0_at, out0_at, s0))
        i1 = 0
        while i1 < s0:
            launch(...)
            i1 += 1

An array is a buffer of the device and the offset of its first element there. `run` has the queue of the call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from harp.backends.c_family import turns
from harp.backends.c_family.statements import parameters
from harp.backends.c_family.values import Lines, code
from harp.backends.opencl import sorting
from harp.backends.opencl.emit.render import LaunchCode, launch, loop_name
from harp.lower.device.grid import is_launch, launches
from harp.lower.device.groups import sorted_by_many
from harp.lower.loopir.loops import Buffer, ForeignCall, If, Kernel, Repeat, Row, Seq, Stmt, is_endless, offset
from harp.lower.loopir.program import Program, Subarray, formals
from harp.lower.loopir.text import CodeLine
from harp.trace.index.polynomial import ZERO, Atom, Fold, Index, Indirect, Loop, Shape, product


class HostCode(NamedTuple):
    """The host code of a kernel, and the launches that it names `launch0`, `launch1`..."""

    lines: tuple[CodeLine, ...]
    launches: tuple[LaunchCode, ...]


def kernel_code(kernel: Kernel) -> HostCode:
    """The function `kernel` of a kernel, which launches its parts on the device."""
    host = _Host(kernel)
    host.statement(kernel.body)
    parameters = [text for buffer in formals(kernel) for text in (host.names[buffer], f"{host.names[buffer]}_at")]
    parameters += [host.names[size] for size in kernel.sizes]
    lines = (*code(f"def kernel({', '.join(['run', *parameters])}):"), *(host.lines.lines or code("    pass")))
    return HostCode(lines, tuple(host.launches))


def program_code(program: Program, timed: bool = False) -> list[CodeLine]:
    """The function `program`, which takes buffers of inputs and outputs, then sizes. With `timed` it announces each
    call. Constants are made before."""
    names: dict[Buffer | Atom, str] = {}
    for stem, group in (("in", program.inputs), ("out", program.outputs)):
        names |= {buffer: f"{stem}{k}" for k, buffer in enumerate(group)}
    names |= {size: f"s{k}" for k, size in enumerate(program.sizes)}
    index = _index(names.__getitem__)
    head = f"def program({', '.join(['run', *names.values()])}):"
    lines = Lines()
    for number, slot in enumerate(program.scratch):
        sizes = [index(size) for size in dict.fromkeys(slot.sizes)]
        most = sizes[0] if len(sizes) == 1 else f"max({', '.join(sizes)})"
        lines.add(f"mem{number} = take(run, {most})")
        names |= dict.fromkeys(slot.buffers, f"mem{number}")
    names |= {buffer: buffer.name for buffer in program.constants}
    for number, call in enumerate(program.calls):
        if timed:
            lines.add(f"begin({number})")
        arguments = ["run"]
        for argument in call.arguments:
            arguments += [names[argument.buffer], _start(argument, index)]
        arguments += map(index, call.sizes)
        lines.add(f"kernel{call.kernel}({', '.join(arguments)})", call=number)
    lines.add("return")
    made = [f'{buffer.name} = constant("{number.bits.hex()}")' for buffer, number in program.constants.items()]
    return [*code("\n".join([*made, head])), *lines.lines]


def _start(argument: Subarray, index: Callable[[Index], str]) -> str:
    """The offset of a part of an array, in elements."""
    return index(offset(argument.buffer, (*argument.at, *(ZERO,) * len(argument.shape))))


def _index(leaf: Callable[[Atom], str]) -> Fold[str]:
    return Fold(_total, _term, "quotient({}, {})".format, "max({}, 0)".format, leaf)


def _total(terms: list[str]) -> str:
    return f"({' + '.join(terms)})" if len(terms) > 1 else terms[0] if terms else "0"


def _term(coefficient: int, factors: list[str]) -> str:
    return "*".join(factors if coefficient == 1 and factors else [f"({coefficient})", *factors])


class _Host:
    """The lines of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.names = parameters(kernel)
        self.launches: list[LaunchCode] = []
        self.lines = Lines()
        self.index = _index(self.leaf)

    def leaf(self, atom: Atom) -> str:
        if isinstance(atom, Loop):
            return loop_name(atom)
        if isinstance(atom, Indirect):
            helper = "position_or_miss" if atom.misses else "position"
            assert isinstance(atom.array, Buffer)
            return f"{helper}({self.element(atom.array, atom.at)}, {self.index(atom.size)})"
        return self.names[atom]

    def place(self, buffer: Buffer, at: Shape) -> str:
        name = self.names[buffer]
        return f"{name}_at + {self.index(offset(buffer, at))}"

    def element(self, buffer: Buffer, at: Shape) -> str:
        """An element that the host reads, which waits for the device."""
        return f"element(run, {self.names[buffer]}, {self.place(buffer, at)}, {buffer.dtype.numpy_name!r})"

    def statement(self, s: Stmt) -> None:
        if is_launch(s):
            self.launch(s)
        else:
            _STATEMENTS[type(s)](self, s)

    def block(self, head: str, s: Stmt) -> None:
        """A block of statements behind a colon."""
        self.lines.add(f"{head}:")
        self.lines.depth += 1
        self.statement(s)
        self.lines.depth -= 1

    def launch(self, s: Stmt) -> None:
        row = sorted_by_many(s)
        if row is not None:
            self.sorted_rows(row)
            return
        number = len(self.launches)
        code = launch(self.kernel, s, number, self.lines.loops)
        self.launches.append(code)
        buffers = [self.names[b] for b in code.buffers]
        numbers = [*(f"{name}_at" for name in buffers), *map(self.leaf, code.names)]
        arguments = [_tuple(map(self.index, code.grid[::-1])), _tuple(buffers), _tuple(numbers)]
        if code.room:
            arguments.append(_tuple(map(self.index, code.room)))
        self.lines.add(f"launch(run, launch{number}, {', '.join(arguments)})")

    def sorted_rows(self, row: Row) -> None:
        """The launches of a sort, whose number the host computes from the length of the rows."""
        codes = sorting.launches(row, len(self.launches))
        names = [f"launch{len(self.launches) + k}" for k in range(len(codes))]
        self.launches += codes
        rows, n = self.index(product(row.target.shape[:-1])), self.index(row.target.shape[-1])
        sources, target = (_tuple(map(self.start, group)) for group in (row.sources, (row.target,)))
        keys = row.sources[0].dtype.itemsize
        arguments = [_tuple(names), repr(row.function.value), rows, n, str(keys), sources, target]
        self.lines.add(f"sort_rows(run, launch, {', '.join(arguments)})")

    def start(self, buffer: Buffer) -> str:
        """An array and its offset."""
        return f"({self.names[buffer]}, {self.names[buffer]}_at)"

    def seq(self, s: Seq) -> None:
        for part in launches(s):
            self.statement(part)

    def branch(self, s: If) -> None:
        self.block(f"if {' and '.join(f'{self.index(p)} >= 0' for p in s.conditions) or 'True'}", s.yes)
        if s.no is not None:
            self.block("else", s.no)

    def repeat(self, s: Repeat) -> None:
        name, outside = loop_name(s.loop), self.lines.loops
        homes = [self.names[b] for b in turns.members(s.moves)]
        for home in homes:
            self.lines.add(f"home_{home} = {home}, {home}_at")
        test = "" if s.test is None else f" and {self.element(s.test.buffer, s.test.index)}"
        end = "True" if is_endless(s) else f"{name} < {self.index(s.loop.extent)}"
        self.lines.add(f"{name} = 0")
        self.lines.loops += (s,)
        self.block(f"while {end}{test}", s.body)
        self.lines.depth += 1
        for target, source in s.moves:
            a, b = self.names[target], self.names[source]
            self.lines.add(f"{a}, {a}_at, {b}, {b}_at = {b}, {b}_at, {a}, {a}_at")
        self.lines.add(f"{name} += 1")
        self.lines.depth -= 1
        self.lines.loops = outside
        targets = dict.fromkeys(target for target, _ in s.moves)
        if targets:
            moved = (
                f"({self.names[t]}, {self.names[t]}_at, *home_{self.names[t]}, "
                f"{self.index(product(t.shape))}, {t.dtype.itemsize})"
                for t in targets
            )
            self.lines.add(f"settle(run, {_tuple(moved)})")
        for home in homes:
            self.lines.add(f"{home}, {home}_at = home_{home}")

    def foreign(self, s: ForeignCall) -> None:
        if not isinstance(s.routine, int):
            self.launch(s)
            return
        made, given = (
            _tuple(
                f"({self.names[b]}, {self.names[b]}_at, {b.dtype.numpy_name!r}, "
                f"{_tuple(map(self.index, b.shape[len(s.calls) :]))})"
                for b in group
            )
            for group in (s.targets, s.sources)
        )
        self.lines.add(f"call_python(run, {s.routine}, {_tuple(map(self.index, s.calls))}, {made}, {given})")


def _tuple(texts: Iterator[str] | Sequence[str] | map[str]) -> str:
    items = list(texts)
    return f"({', '.join(items)}{',' * (len(items) == 1)})"


_STATEMENTS: Mapping[type[Stmt], Callable[..., None]] = {
    Seq: _Host.seq,
    If: _Host.branch,
    Repeat: _Host.repeat,
    ForeignCall: _Host.foreign,
}
