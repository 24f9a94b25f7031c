"""Runs programs and kernels of the loop IR in Python, with every check: slow, for small data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from harp.errors import VerificationError
from harp.lower.loops import Buffer, For, If, Kernel, Let, Nest, Row, Space, Stmt, Store, parts
from harp.lower.machine import Machine
from harp.lower.program import Argument, Program, formals
from harp.lower.uses import uses
from harp.trace.dtypes import Buffer as Array
from harp.trace.expr import Const, walk
from harp.trace.index import Atom, Index, Symbol, evaluate


def execute(program: Program, inputs: Sequence[Array], sizes: Mapping[Symbol, int]) -> list[Array]:
    """The outputs of a program. Raises VerificationError at the first thing that a program must not do."""
    machine = Machine(sizes)
    for buffer, array in zip(program.inputs, inputs, strict=True):
        _place(machine, buffer, array, None)
    for buffer in (*program.outputs, *(b for slot in program.scratch for b in slot.buffers)):
        machine.allocate(buffer, _shape(machine, buffer))
    for source, target in program.donated:
        array = inputs[source].copy()
        _place(machine, program.outputs[target], array, np.ones(array.size, bool))
    neighbours = {b: slot.buffers for slot in program.scratch for b in slot.buffers}
    for call in program.calls:
        kernel = program.kernels[call.kernel]
        writes = uses(kernel.body).writes
        function = Machine({s: machine.number(p)() for s, p in zip(kernel.sizes, call.sizes, strict=True)})
        for formal, actual in zip(formals(kernel), call.arguments, strict=True):
            if formal in writes:
                for other in neighbours.get(actual.buffer, ()):
                    if other is not actual.buffer:  # they take turns in one slot
                        _forget(machine, other)
            _place(function, formal, *_given(machine, actual))
        function.run(kernel)
    return [_finished(machine, buffer) for buffer in program.outputs]


def run_kernel(kernel: Kernel, buffers: Mapping[Buffer, Array], sizes: Mapping[Symbol, int]) -> None:
    """Run one kernel on arrays, in place. Outputs count as unwritten, and must be stored in full."""
    machine = Machine(sizes)
    written = {b: np.zeros(a.size, bool) for b, a in buffers.items() if b.space is Space.OUTPUT}
    for buffer, array in buffers.items():
        _place(machine, buffer, array, written.get(buffer))
    machine.run(kernel)
    for buffer, mask in written.items():
        _all_written(buffer, mask)


def _shape(machine: Machine, buffer: Buffer) -> tuple[int, ...]:
    return tuple(machine.number(p)() for p in buffer.shape)


def _place(machine: Machine, buffer: Buffer, array: Array, written: Array | None) -> None:
    shape = _shape(machine, buffer)
    if array.shape != shape or array.dtype != buffer.dtype.numpy:
        raise VerificationError(f"{buffer.name} is {buffer.dtype}{list(shape)}, the array {array.dtype}{array.shape}")
    machine.memory(buffer).set(array.reshape(-1), written, shape)


def _given(machine: Machine, argument: Argument) -> tuple[Array, Array | None]:
    """The part of an array that a call gives, and what of it was written. Of a part that is not there, nothing was."""
    memory, at = machine.memory(argument.buffer), [machine.number(p)() for p in argument.at]
    assert memory.flat is not None
    shape = memory.shape[len(at) :]
    if not all(0 <= k < n for k, n in zip(at, memory.shape, strict=False)):
        missing = np.zeros(shape, memory.flat.dtype)
        return missing, np.zeros(missing.size, bool)
    size, number = math.prod(shape), 0
    for k, n in zip(at, memory.shape, strict=False):
        number = number * n + k
    part = slice(number * size, (number + 1) * size)
    return memory.flat[part].reshape(shape), None if memory.written is None else memory.written[part]


def _forget(machine: Machine, buffer: Buffer) -> None:
    written = machine.memory(buffer).written
    assert written is not None
    written[:] = False


def _finished(machine: Machine, buffer: Buffer) -> Array:
    memory = machine.memory(buffer)
    assert memory.flat is not None and memory.written is not None
    _all_written(buffer, memory.written)
    return memory.flat.reshape(memory.shape)


def _all_written(buffer: Buffer, written: Array) -> None:
    missing = np.flatnonzero(~written.astype(bool))
    if missing.size:
        raise VerificationError(f"output {buffer.name}: {missing.size} elements are never stored, first {missing[0]}")


def iterations(program: Program, sizes: Mapping[Symbol, int]) -> int:
    """An estimate of how many scalar operations `execute` would do."""
    given: dict[Atom, int] = dict(sizes.items())
    total = 0
    for call in program.calls:
        kernel = program.kernels[call.kernel]
        total += _work(kernel.body, {s: _estimate(p, given) for s, p in zip(kernel.sizes, call.sizes, strict=True)})
    return total


def _work(stmt: Stmt, values: dict[Atom, int]) -> int:
    """Loops inside expressions stand at 0, so ragged extents count as full."""
    if isinstance(stmt, Store):
        return sum(not isinstance(e, Const) for e in walk((stmt.value,))) + 1
    if isinstance(stmt, Row):
        return sum(max(_estimate(buffer.shape[-1], values), 0) for buffer in (stmt.target, *stmt.sources))
    times = 1
    if isinstance(stmt, Nest):
        for head in stmt.heads:
            if isinstance(head, For):
                times *= max(_estimate(head.loop.extent, values), 0)
            elif isinstance(head, Let):
                values[head.symbol] = _estimate(head.index, values)
    below = [_work(part, dict(values)) for part in parts(stmt)]
    return times * (max(below, default=0) if isinstance(stmt, If) else sum(below))


def _estimate(p: Index, values: Mapping[Atom, int]) -> int:
    return evaluate(p, lambda atom: values.get(atom, 0))
