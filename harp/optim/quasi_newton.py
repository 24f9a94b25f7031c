"""The method of Broyden, Fletcher, Goldfarb and Shanno with limited memory, and the line search that it needs.

    s = x - x', y = g - g' (the changes of the last steps);    the update is h @ g, with h the estimate of the inverse
    Hessian matrix of these pairs, which is never made: two loops over the pairs multiply by it

D. C. Liu, J. Nocedal, On the limited memory BFGS method, 1989; J. Nocedal, S. J. Wright, Numerical Optimization (2006),
algorithm 7.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from harp.errors import ArgumentError, DTypeError
from harp.flatten_util import ravel_pytree
from harp.numpy.creation import asarray, full, zeros, zeros_like
from harp.numpy.elementwise import isfinite, maximum, minimum, where
from harp.numpy.joining import concatenate
from harp.numpy.linalg.products import dot
from harp.optim.transformations import GradientTransformation, following, global_norm, needed, positive
from harp.scipy.line_search import wolfe_length
from harp.trace.array.array import Array
from harp.trace.source_locations import where as place
from harp.trace.trees import Tree
from harp.transforms.autodiff.grad import value_and_grad
from harp.transforms.control.conditional import cond
from harp.transforms.control.scan import scan
from harp.tree import leaves, map


class ScaleByLBFGSState(NamedTuple):
    """The number of steps, the last parameters and updates as vectors, and the last pairs of their changes as rows,
    each with 1 / dot(s, y), or 0 where there is none."""

    count: Array  # type: ignore[assignment]
    params: Array
    updates: Array
    diff_params_memory: Array
    diff_updates_memory: Array
    weights_memory: Array


class ScaleByWolfeState(NamedTuple):
    """The length of the last step; the value and the gradient after it, or infinity where they are not known."""

    learning_rate: Array
    value: Array
    grad: Tree


def _vector(name: str, tree: Any) -> tuple[Array, Callable[[Array], Any]]:
    vector, unravel = ravel_pytree(tree)
    if vector.dtype.kind != "f":
        raise DTypeError(f"{name} takes real floating-point parameters, not {vector.dtype}{place()}")
    return vector, unravel


def scale_by_lbfgs(memory_size: int = 10, scale_init_precond: bool = True) -> GradientTransformation:
    """Gradients times the estimate of the inverse Hessian matrix by the last `memory_size` steps.

    Before the first pair the estimate is 1 / max(1, |g|), then it begins with dot(s, y) / dot(y, y); without
    `scale_init_precond` with 1. A pair whose dot(s, y) is not above 0 is left out. `update` needs the parameters.
    Raises ArgumentError for a memory_size below 1, DTypeError for parameters that are not real.

    >>> newton = scale_by_lbfgs()
    >>> newton.update({"w": 4.0}, newton.init({"w": 0.0}), {"w": 0.0})[0]
    {'w': Array(1.)}
    """
    positive("memory_size of scale_by_lbfgs", memory_size)

    def init(params: Any) -> ScaleByLBFGSState:
        x, _ = _vector("scale_by_lbfgs", params)
        none, rows = zeros_like(x), zeros((memory_size, x.shape[0]), x.dtype)
        return ScaleByLBFGSState(zeros((), "int32"), none, none, rows, rows, zeros((memory_size,), x.dtype))

    def update(updates: Any, state: ScaleByLBFGSState, params: Any = None) -> tuple[Any, ScaleByLBFGSState]:
        x, _ = _vector("scale_by_lbfgs", needed(params, "scale_by_lbfgs"))
        g, unravel = _vector("scale_by_lbfgs", updates)
        is_first = state.count == 0
        s, y = where(is_first, 0, x - state.params), where(is_first, 0, g - state.updates)
        curvature, square = dot(s, y), dot(y, y)
        is_pair = (curvature > 0) & isfinite(curvature)
        weight = where(is_pair, 1 / where(is_pair, curvature, 1), 0)
        memory = tuple(concatenate([old[1:], new[None]]) for old, new in zip(state[3:], (s, y, weight), strict=True))
        start = where(
            is_first, 1 / maximum(1, global_norm(g)), where(is_pair, curvature / where(is_pair, square, 1), 1)
        )
        found = _times_inverse(g, memory, start if scale_init_precond else 1)
        return unravel(found), ScaleByLBFGSState(following(state.count), x, g, *memory)

    return GradientTransformation(init, update)


def _times_inverse(g: Array, memory: tuple[Array, ...], start: Any) -> Array:
    """The estimate times g."""

    def right(q: Array, pair: tuple[Array, ...]) -> tuple[Array, Array]:
        s, y, weight = pair
        share = weight * dot(s, q)
        return q - share * y, share

    def left(r: Array, pair: tuple[Any, Array]) -> tuple[Array, None]:
        (s, y, weight), share = pair
        return r + (share - weight * dot(y, r)) * s, None

    q, shares = scan(right, g, memory, reverse=True)
    r, _ = scan(left, start * q, (memory, shares))
    return r  # type: ignore[no-any-return]


def scale_by_wolfe_linesearch(max_linesearch_steps: int = 20, tolerance: float = 1e-6) -> GradientTransformation:
    """Updates times a length at which both conditions of Wolfe hold, found by bisection from 1 on.

    `update` takes `value`, `grad` and `value_fn` by name: the function of the parameters, its value and gradient there.
    After so many trials without success the length is the longest one that brought less than it should, or 0. The value
    may grow by `tolerance` of it where slopes show that it falls. Raises ArgumentError without these arguments.

    >>> search = scale_by_wolfe_linesearch()
    >>> function = lambda x: (x - 3.0) ** 2
    >>> search.update(6.0, search.init(0.0), 0.0, value=9.0, grad=-6.0, value_fn=function)[0]
    Array(3.)
    """
    positive("max_linesearch_steps of scale_by_wolfe_linesearch", max_linesearch_steps)

    def init(params: Any) -> ScaleByWolfeState:
        vector, _ = _vector("scale_by_wolfe_linesearch", params)
        return ScaleByWolfeState(
            full((), 1, vector.dtype), full((), math.inf, vector.dtype), map(lambda p: zeros_like(asarray(p)), params)
        )

    def update(
        updates: Any,
        state: ScaleByWolfeState,
        params: Any = None,
        *,
        value: Any = None,
        grad: Any = None,
        value_fn: Callable[[Any], Any] | None = None,
        **extra_args: Any,
    ) -> tuple[Any, ScaleByWolfeState]:
        if value is None or grad is None or value_fn is None:
            raise ArgumentError(
                "a line search needs the function, its value and its gradient: call "
                f"update(grad, state, params, value=value, grad=grad, value_fn=f){place()}"
            )
        x, unravel = _vector("scale_by_wolfe_linesearch", needed(params, "scale_by_wolfe_linesearch"))
        direction, _ = _vector("scale_by_wolfe_linesearch", updates)
        dtype = state.value.dtype

        def along(length: Array) -> tuple[Array, Array, Any]:
            here, gradient = value_and_grad(value_fn)(unravel(x + length * direction))
            slope = dot(_vector("scale_by_wolfe_linesearch", gradient)[0], direction)
            return here.astype(dtype), slope.astype(dtype), (here.astype(dtype), gradient)

        slope = dot(_vector("scale_by_wolfe_linesearch", grad)[0], direction).astype(dtype)
        begin = (state.value, state.grad)
        value = asarray(value).astype(dtype)
        trial = wolfe_length(along, value, minimum(slope, 0), max_linesearch_steps, begin, tolerance)
        length = where(trial.good, trial.length, trial.low)
        found: Any = trial.found
        after = ScaleByWolfeState(length, where(trial.good, found[0], math.inf), found[1])
        return map(lambda u: (length * asarray(u)).astype(asarray(u).dtype), updates), after

    return GradientTransformation(init, update)


def value_and_grad_from_state(value_fn: Callable[[Any], Any]) -> Callable[..., tuple[Array, Any]]:
    """As `harp.value_and_grad` of a function of the parameters, but taken from the state where the line search has
    computed them: call it with `state=`.

    >>> import harp
    >>> function = lambda x: (x - 3.0) ** 2
    >>> optimiser, x = harp.optim.lbfgs(), harp.numpy.asarray(0.0)
    >>> value, gradient = value_and_grad_from_state(function)(x, state=optimiser.init(x))
    >>> value, gradient
    (Array(9.), Array(-6.))
    """

    evaluated: Callable[[Any], tuple[Array, Any]] = value_and_grad(value_fn)

    def found(params: Any, *, state: Any) -> tuple[Array, Any]:
        searches = [part for part in leaves(state, is_leaf=_is_search) if _is_search(part)]
        if len(searches) != 1:
            raise ArgumentError(f"the state has {len(searches)} line searches, and is to have one{place()}")
        (search,) = searches

        def computed() -> tuple[Array, Any]:
            value, gradient = evaluated(params)
            return value.astype(search.value.dtype), gradient

        value, gradient = cond(isfinite(search.value), lambda: (search.value, search.grad), computed)
        return value, gradient

    return found


def _is_search(part: Any) -> bool:
    return isinstance(part, ScaleByWolfeState)
