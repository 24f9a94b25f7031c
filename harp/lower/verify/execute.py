"""Runs programs and kernels of the loop IR in Python, with every check: slow, for small data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from harp.errors import VerificationError
from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import Buffer, Callback, For, If, Kernel, Let, Nest, Row, Space, Stmt, Store, parts
from harp.lower.loopir.program import Program, Subarray, formals
from harp.lower.verify.interpreter import Interpreter
from harp.trace.index.polynomial import Atom, Index, Symbol, evaluate, product
from harp.trace.scalar.dtypes import NDArray as Array
from harp.trace.scalar.expr import Const, walk


def execute(program: Program, inputs: Sequence[Array], sizes: Mapping[Symbol, int]) -> list[Array]:
    """The outputs of a program. Raises VerificationError at the first thing that a program must not do."""
    interpreter = Interpreter(sizes)
    for buffer, array in zip(program.inputs, inputs, strict=True):
        _place(interpreter, buffer, array, None)
    for buffer in (*program.outputs, *(b for slot in program.scratch for b in slot.buffers)):
        interpreter.allocate(buffer, _shape(interpreter, buffer))
    for source, target in program.donated:
        array = inputs[source].copy()
        _place(interpreter, program.outputs[target], array, np.ones(array.size, bool))
    neighbours = {b: slot.buffers for slot in program.scratch for b in slot.buffers}
    for call in program.calls:
        kernel = program.kernels[call.kernel]
        writes = effects(kernel.body).writes
        function = Interpreter({s: interpreter.number(p)() for s, p in zip(kernel.sizes, call.sizes, strict=True)})
        for formal, actual in zip(formals(kernel), call.arguments, strict=True):
            if formal in writes:
                for other in neighbours.get(actual.buffer, ()):
                    if other is not actual.buffer:  # they take turns in one slot
                        _forget(interpreter, other)
            _place(function, formal, *_given(interpreter, actual))
        function.run(kernel)
    return [_finished(interpreter, buffer) for buffer in program.outputs]


def run_kernel(kernel: Kernel, buffers: Mapping[Buffer, Array], sizes: Mapping[Symbol, int]) -> None:
    """Run one kernel on arrays, in place. Outputs count as unwritten, and must be stored in full."""
    interpreter = Interpreter(sizes)
    written = {b: np.zeros(a.size, bool) for b, a in buffers.items() if b.space is Space.OUTPUT}
    for buffer, array in buffers.items():
        _place(interpreter, buffer, array, written.get(buffer))
    interpreter.run(kernel)
    for buffer, mask in written.items():
        _all_written(buffer, mask)


def _shape(interpreter: Interpreter, buffer: Buffer) -> tuple[int, ...]:
    return tuple(interpreter.number(p)() for p in buffer.shape)


def _place(interpreter: Interpreter, buffer: Buffer, array: Array, written: Array | None) -> None:
    shape = _shape(interpreter, buffer)
    if array.shape != shape or array.dtype != buffer.dtype.numpy:
        raise VerificationError(f"{buffer.name} is {buffer.dtype}{list(shape)}, the array {array.dtype}{array.shape}")
    interpreter.memory(buffer).set(array.reshape(-1), written, shape)


def _given(interpreter: Interpreter, argument: Subarray) -> tuple[Array, Array | None]:
    """The part of an array that a call gives, and what of it was written. Of a part that is not there, nothing was."""
    memory, at = interpreter.memory(argument.buffer), [interpreter.number(p)() for p in argument.at]
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


def _forget(interpreter: Interpreter, buffer: Buffer) -> None:
    written = interpreter.memory(buffer).written
    assert written is not None
    written[:] = False


def _finished(interpreter: Interpreter, buffer: Buffer) -> Array:
    memory = interpreter.memory(buffer)
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
    if isinstance(stmt, Callback):
        return sum(max(_estimate(product(buffer.shape), values), 0) for buffer in (*stmt.targets, *stmt.sources))
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
