"""The differential check: runs a graph before and after a pass, or the program made from it, on random data of small
sizes, and compares the results.

Sizes for which an index would be outside of its array violate a guard of the trace, and are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import cast

import attrs
import numpy as np

from harp.errors import AddressError, IndexOutOfRangeError, VerificationError
from harp.lower.loopir.program import Program
from harp.lower.verify.interpreter import Known, execute, iterations
from harp.trace.eval.interpret import interpret
from harp.trace.graph.graph import Graph
from harp.trace.graph.host_calls import muted, silenced
from harp.trace.graph.node import walk
from harp.trace.index.polynomial import Index, Symbol, evaluate
from harp.trace.scalar.dtypes import DType, Kind, NDArray, as_dtype, bf16, c64, c128, f16, f32, f64
from harp.trace.sizes.signature import sizes_of

Sizes = Mapping[Symbol, int]

_MOST_ITERATIONS = 50_000
_MOST_ELEMENTS = 2_000
_TRIES = 8
_CASES = 2
_TOLERANCES = {bf16: 3e-2, f16: 4e-3, f32: 1e-3, c64: 1e-3, f64: 1e-9, c128: 1e-9}


def check_graph(before: Graph, after: Graph) -> None:
    """Raise VerificationError unless both graphs compute the same."""
    for case in _cases(before):
        results = interpret(muted(silenced(after)), case.inputs, case.sizes)
        _compare(case.outputs, results, lambda: f"a pass over the graph\n{after}")


def check_program(graph: Graph, program: Program, is_checked: bool = False) -> None:
    """Raise VerificationError unless the program computes the graph. A program that `is_checked` reports indices
    outside and computes nothing then, so it is not run on such data."""
    captured = [c.captured.array for c in graph.captured]
    for case in _cases(graph, is_checked):
        if iterations(program, case.sizes) <= _MOST_ITERATIONS:
            results = execute(program, [*case.inputs, *captured], case.sizes, case.known)[: len(graph.outputs)]
            _compare(case.outputs, results, lambda: f"the program of\n{graph}")


def random_array(dtype: DType, shape: tuple[int, ...], seed: int) -> NDArray:
    """Numbers near 1, where nothing overflows and logarithms exist."""
    generator = np.random.default_rng(seed)
    if dtype.kind is Kind.BOOL:
        return np.asarray(generator.integers(0, 2, shape).astype(bool))
    if dtype.is_integer:
        return np.asarray(generator.integers(0, 4, shape).astype(dtype.numpy))
    parts = generator.uniform(0.5, 1.5, (2, *shape))
    return np.asarray((parts[0] + 1j * parts[1] if dtype.is_complex else parts[0]).astype(dtype.numpy))


@attrs.frozen(repr=False)
class _Case:
    """Sizes, data, the graph's results for them, and those of kernels of its programs."""

    sizes: Sizes
    inputs: list[NDArray]
    outputs: list[NDArray]
    known: Known = attrs.field(factory=dict)


@lru_cache(maxsize=2)  # all passes of one program are compared with the same
def _cases(graph: Graph, is_checked: bool = False) -> tuple[_Case, ...]:
    cases = (_case(graph, sizes, is_checked) for sizes in _sizes(graph))
    return tuple(islice((case for case in cases if case is not None), _CASES))


def _case(graph: Graph, sizes: Sizes, is_checked: bool) -> _Case | None:
    """Random data of these sizes; None if a view leaves its array, possibly in the body of a loop or in operands of
    Python: with HARP_VERIFY=3 the interpreter checks that. Indices that are data may be outside, unless they are
    checked."""
    arrays = [random_array(i.dtype, _concrete_shape(i.shape, sizes), k) for k, i in enumerate(graph.inputs)]
    try:
        return _Case(sizes, arrays, list(interpret(muted(graph), arrays, sizes, is_checked)))
    except (AddressError, IndexOutOfRangeError):
        return None


def _sizes(graph: Graph) -> Iterator[Sizes]:
    """Small sizes for which shapes exist."""
    symbols = sizes_of(graph)
    generator = np.random.default_rng(len(symbols))
    tries: list[Sequence[int]] = [[4] * len(symbols)]
    tries += [[int(k) for k in generator.integers(0, 6, len(symbols))] for _ in range(_TRIES)]
    candidates = (dict(zip(symbols, values, strict=True)) for values in tries)
    nodes = tuple(walk((*graph.inputs, *graph.outputs)))
    yield from (sizes for sizes in candidates if all(_is_small(node.shape, sizes) for node in nodes))


def _is_small(shape: tuple[Index, ...], sizes: Sizes) -> bool:
    """Whether this is the shape of an array, and a small one."""
    numbers = _concrete_shape(shape, sizes)
    return min(numbers, default=0) >= 0 and bool(np.prod(numbers) <= _MOST_ELEMENTS)


def _concrete_shape(shape: tuple[Index, ...], sizes: Sizes) -> tuple[int, ...]:
    return tuple(evaluate(p, lambda atom: sizes[cast(Symbol, atom)]) for p in shape)


def _compare(expected: Sequence[NDArray], results: Sequence[NDArray], what: Callable[[], str]) -> None:
    for number, (a, b) in enumerate(zip(expected, results, strict=True)):
        dtype = as_dtype(a.dtype)
        tolerance = _TOLERANCES.get(dtype, 0.0)
        if dtype.is_stored:
            a, b = a.astype(np.float32), b.astype(np.float32)
        if a.shape != b.shape or not np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=dtype.is_inexact):
            raise VerificationError(f"output {number} is\n{b}\ninstead of\n{a}\nafter {what()}")
