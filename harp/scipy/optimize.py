"""SciPy's `minimize` as a loop inside of programs: by the method of Broyden, Fletcher, Goldfarb and Shanno.

    p = -h @ g;  t with f(x + t*p) low and g(x + t*p) @ p flat enough;  h of the change of x and that of g

J. Nocedal, S. J. Wright, Numerical Optimization (2006), chapter 6. Steps are found by bisection.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from harp.errors import ArgumentError, ShapeError
from harp.numpy.creation import asarray, eye
from harp.numpy.elementwise import abs, isfinite, where
from harp.numpy.linalg.products import dot, matmul, outer
from harp.numpy.reductions import all as all_
from harp.numpy.reductions import max as max_
from harp.scipy.line_search import wolfe_length
from harp.trace.array.array import Array
from harp.trace.source_locations import plural
from harp.trace.source_locations import where as place
from harp.transforms.autodiff.grad import value_and_grad
from harp.transforms.control.conditional import while_loop

__all__ = ["minimize"]


class OptimizeResults(NamedTuple):
    """What `minimize` returns: the point, and the function, gradient and inverse Hessian matrix (an estimate) there.

    `status` is 0 where the gradient is small, 1 after the last step, 3 where no step is good, and `success` whether it
    is 0. `nit`, `nfev` and `njev` count steps, values and gradients.
    """

    x: Array
    success: Array
    status: Array
    fun: Array
    jac: Array
    hess_inv: Array
    nfev: Array
    njev: Array
    nit: Array


def minimize(
    fun: Callable[..., Any],
    x0: object,
    args: tuple[Any, ...] = (),
    *,
    method: str = "BFGS",
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A local minimum of a function of a vector, from `x0` on. In `jit` it is a loop of the program, for all lengths.

    `options` are `gtol`, which the largest element of the gradient is to fall below (`tol` is the same, 1e-5 by
    default), `maxiter` (200 for each element) and `line_search_maxiter` (50). Raises ArgumentError for other methods
    and options, ShapeError for an x0 that is no vector.

    >>> import numpy as np
    >>> found = minimize(lambda x: ((x - 3.0) ** 2).sum(), np.zeros(2))
    >>> found.x.round(6), bool(found.success)
    (Array([3., 3.]), True)
    """
    known = {"gtol": 1e-5 if tol is None else tol, "maxiter": None, "line_search_maxiter": 50}
    for option in (options or {}).keys() - known.keys():
        raise ArgumentError(f"minimize has no option {option!r}, only {', '.join(known)}{place()}")
    if method.upper() != "BFGS":
        raise ArgumentError(f"method of minimize is 'BFGS', not {method!r}{place()}")
    chosen = {**known, **(options or {})}
    start = asarray(x0)
    if start.ndim != 1:
        raise ShapeError(f"x0 of minimize is a vector, not an array with {plural(start.ndim, 'axes')}{place()}")
    start = start if start.dtype.kind == "f" else start.astype("float64")
    most = 200 * start.shape[0] if chosen["maxiter"] is None else chosen["maxiter"]

    def evaluated(x: Array) -> tuple[Array, Array]:
        value, gradient = value_and_grad(fun)(x, *args)
        return value, gradient

    def goes_on(state: OptimizeResults) -> Any:
        return (state.status < 0) & (state.nit < most)

    def step(state: OptimizeResults) -> OptimizeResults:
        direction = -matmul(state.hess_inv, state.jac)
        length, count, good = _length(evaluated, state, direction, chosen["line_search_maxiter"])
        moved = length * direction
        x = state.x + moved
        value, gradient = evaluated(x)
        change = gradient - state.jac
        scale = dot(change, moved)
        inverse = where(good, _updated(state.hess_inv, moved, change, where(scale > 0, scale, 1)), state.hess_inv)
        small = max_(abs(gradient), initial=0) < chosen["gtol"]
        status = where(small, 0, where(good, -1, 3))
        nfev = state.nfev + count + 1
        return OptimizeResults(x, small, status, value, gradient, inverse, nfev, nfev, state.nit + 1)

    value, gradient = evaluated(start)
    small = max_(abs(gradient), initial=0) < chosen["gtol"]
    one = eye(start.shape[0], dtype=start.dtype)
    first = OptimizeResults(start, small, where(small, 0, -1), value, gradient, one, asarray(1), asarray(1), asarray(0))
    last: OptimizeResults = while_loop(goes_on, step, first)
    return last._replace(status=where(last.status < 0, 1, last.status))


def _updated(inverse: Array, moved: Array, change: Array, scale: Array) -> Array:
    """The estimate that takes the change of the gradient to that of the point."""
    left = eye(moved.shape[0], dtype=moved.dtype) - outer(moved, change) / scale
    return matmul(matmul(left, inverse), left.T) + outer(moved, moved) / scale


def _length(evaluated: Callable[[Array], Any], state: OptimizeResults, direction: Array, most: int) -> Any:
    """How far to go, how many trials it took, and whether both conditions hold there."""

    def along(length: Array) -> tuple[Array, Array, tuple[()]]:
        value, gradient = evaluated(state.x + length * direction)
        return value, where(all_(isfinite(gradient)), dot(gradient, direction), math.nan), ()

    trial = wolfe_length(along, state.fun, dot(state.jac, direction), most)
    return where(trial.good, trial.length, 0), trial.count, trial.good
