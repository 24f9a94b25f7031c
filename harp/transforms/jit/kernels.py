"""Calls of the user's kernels outside of `jit`: a program for each kernel, with its ranks and dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import count
from typing import NamedTuple

import numpy as np

from harp.backends.options import CompileOptions
from harp.config import CPU
from harp.trace.graph.graph import Graph
from harp.trace.graph.kernel_source import KernelSource
from harp.trace.graph.node import Foreign, fresh_input
from harp.trace.index.polynomial import Shape, Symbol, of
from harp.trace.scalar.dtypes import DType, NDArray, as_dtype
from harp.trace.sizes.signature import by_appearance
from harp.transforms.jit import programs

_Kinds = tuple[tuple[int, DType], ...]  # ranks and dtypes


class _Program(NamedTuple):
    """The program, and the positions, among all sizes of a call, of the sizes that it takes."""

    program: programs.CompiledProgram
    sizes: tuple[int, ...]


def run_kernel(
    source: KernelSource,
    calls: tuple[int, ...],
    operands: Sequence[NDArray],
    results: Sequence[tuple[tuple[int, ...], DType]],
    sizes: Sequence[int],
) -> list[NDArray] | None:
    """The results of a kernel, as whole arrays; None if there is no compiler, or no C source."""
    if programs.backend_name(CPU) != "c" or "c" not in dict(source.texts):
        return None
    rank = len(calls)
    operand_kinds = tuple((o.ndim - rank, as_dtype(o.dtype)) for o in operands)
    result_kinds = tuple((len(own), dtype) for own, dtype in results)
    entry = _program(source, rank, operand_kinds, result_kinds, len(sizes))
    numbers = [*calls, *(n for o in operands for n in o.shape[rank:]), *(n for own, _ in results for n in own), *sizes]
    outputs = [np.empty((*calls, *own), dtype.numpy) for own, dtype in results]
    inputs = [np.ascontiguousarray(o).reshape(o.shape) for o in operands]
    if entry.program.kernel(inputs, outputs, [numbers[k] for k in entry.sizes]):
        raise MemoryError
    return outputs


@lru_cache(maxsize=256)
def _program(source: KernelSource, rank: int, operand_kinds: _Kinds, result_kinds: _Kinds, sizes: int) -> _Program:
    """The program of one call of a kernel. Each size is a symbol of its own: equal sizes do not matter here."""
    numbers = count()
    symbols: list[Symbol] = []

    def extents(rank: int) -> Shape:
        fresh = [Symbol(-1, next(numbers), "n") for _ in range(rank)]
        symbols.extend(fresh)
        return tuple(map(of, fresh))

    calls = extents(rank)
    inputs = [fresh_input(f"x{k}", calls + extents(ndim), dtype) for k, (ndim, dtype) in enumerate(operand_kinds)]
    results = tuple((extents(ndim), dtype) for ndim, dtype in result_kinds)
    graph = Graph(tuple(inputs), Foreign(source, calls, tuple(inputs), results, extents(sizes)).parts)
    program = programs.program_for(graph, CompileOptions(), device=CPU)
    return _Program(program, tuple(symbols.index(s) for s in by_appearance(graph)))
