"""What all of linear algebra asks of its operands, and LAPACK for each matrix of a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from harp.config import settings
from harp.errors import LinAlgError, ShapeError
from harp.numpy.complexes import conj
from harp.numpy.manipulation import broadcast_to, matrix_transpose
from harp.trace.array.arithmetic import in_common
from harp.trace.array.array import Array, from_numpy, node_of
from harp.trace.array.primitives import as_named, common_dtype, emit_results, join_sizes
from harp.trace.graph.matrix_functions import MATRICES, MatrixFunction, MatrixOp
from harp.trace.graph.node import Foreign
from harp.trace.index.polynomial import ONE, Index
from harp.trace.scalar.dtypes import DType, computing, f64
from harp.trace.sizes.levels import current
from harp.trace.sizes.size import resolve, resolve_all, unify, wrap
from harp.trace.source_locations import plural, where
from harp.transforms.autodiff.grad import stop_gradient


def operands(name: str, **values: object) -> tuple[list[Array], DType]:
    """The operands in the dtype in which to compute, and the dtype of the result: integers and bool are float64, and
    what has 16 bits is computed in float32. Raises ArgumentError for what is no array."""
    arrays = [as_named(value, f"argument {label} of {name}") for label, value in values.items()]
    common, _ = common_dtype(arrays)
    result = common if common.is_inexact else f64
    return [in_common(array, computing(result)) for array in arrays], result


def require_matrices(name: str, array: Array, label: str = "a") -> None:
    """Raise ShapeError for fewer than two axes."""
    if array.ndim < 2:
        raise ShapeError(
            f"argument {label} of {name} has {plural(array.ndim, 'axes')}; it is a matrix, or a batch of matrices in "
            f"the last two axes{where()}"
        )


def require_square(name: str, array: Array) -> None:
    """Hold the last two axes to be equal, by a guard where it must be. Raises ShapeError."""
    require_matrices(name, array)
    rows, columns = node_of(array).shape[-2:]
    unify(rows, columns, lambda: f"{name} takes square matrices: axes {array.ndim - 2} and {array.ndim - 1} of a")


def at_once(
    function: Callable[..., Any], *arrays: Array, finite: bool = False, refused_by: MatrixOp | None = None
) -> Any:
    """What NumPy makes of arrays outside of a trace; None inside of one. With `finite` it is not given NaN and
    infinities: LAPACK does not end for some of them. Matrices that NumPy refuses raise LinAlgError, with what the
    function `refused_by` says of them; without it, the result is None."""
    if current() is not None:
        return None
    given = list(map(np.asarray, arrays))
    if finite and not all(np.isfinite(array).all() for array in given):
        return None
    try:
        with np.errstate(all="ignore"):
            results = function(*given)
    except np.linalg.LinAlgError:
        if refused_by is None:
            return None
        a = "a matrix of the batch" if given[0].ndim > 2 else "the matrix"
        raise LinAlgError(f"{a} {MATRICES[refused_by].refuses}{where()}") from None
    if settings.nans:  # which says where a NaN comes from
        return None
    return tuple(map(_returned, results)) if isinstance(results, tuple) else _returned(results)


def _returned(result: Any) -> Array:
    return from_numpy(np.asarray(result))


def in_batch(arrays: Sequence[Array], ranks: Sequence[int]) -> list[Array]:
    """Arrays whose axes before the last ones, of which each has its number, broadcast. Raises ShapeError."""
    shapes = [node_of(array).shape for array in arrays]
    cuts = [len(shape) - rank for shape, rank in zip(shapes, ranks, strict=True)]
    batch: list[Index] = [ONE] * max(cuts)
    for shape, cut in zip(shapes, cuts, strict=True):
        for axis, size in enumerate(shape[:cut], len(batch) - cut):
            batch[axis] = join_sizes(batch[axis], size, partial(_no_broadcast, axis - len(batch)))
    batch = list(map(resolve, batch))
    own = [(*batch, *shape[cut:]) for shape, cut in zip(shapes, cuts, strict=True)]
    return [broadcast_to(array, _sizes(shape)) for array, shape in zip(arrays, own, strict=True)]


def _no_broadcast(axis: int) -> str:
    return f"batches of matrices do not broadcast: axis {axis} of those in front of the matrices"


def adjoint(a: Array) -> Array:
    """The conjugate transposes of the matrices of a batch."""
    return matrix_transpose(conj(a))


def lapack(op: MatrixOp, *arrays: Array, flags: tuple[bool, ...] = (), refuses: bool = True) -> tuple[Array, ...]:
    """The results of a function of matrices, for operands whose axes in front are the same. No derivative flows.

    Raises LinAlgError, outside of a trace, for a matrix without a result, if it `refuses` such."""
    function = MatrixFunction(op, flags)
    nodes = tuple(node_of(stop_gradient(array)) for array in arrays)
    shapes = [resolve_all(node.shape) for node in nodes]
    calls = shapes[0][: len(shapes[0]) - MATRICES[op].ranks[0]]
    results = function.results([shape[len(calls) :] for shape in shapes], nodes[0].dtype)
    found = emit_results(Foreign(function, calls, nodes, results))
    if (
        refuses
        and current() is None
        and (text := function.refused(list(map(np.asarray, arrays)), np.asarray(found[0])))
    ):
        raise LinAlgError(f"{text}{where()}")
    return found


def _sizes(shape: Sequence[Index]) -> tuple[object, ...]:
    return tuple(map(wrap, shape))
