"""Differential equations: `odeint` of `jax.experimental.ode`, with steps that suit the tolerance, and adjoints.

A step is that of Dormand and Prince (1980, J. Comput. Appl. Math. 6), of order 5 with an estimate of its error of order
4; values between the ends of a step are the polynomials of Hairer, Nørsett and Wanner (Solving Ordinary Differential
Equations I, II.6). The loop over steps ends when the error allows, so its derivative in reverse mode is that of the
equation: the cotangent follows an equation of its own, backwards in time (Pontryagin et al., The Mathematical Theory of
Optimal Processes, 1962).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf, nan, prod
from typing import Any, NamedTuple

import harp.numpy as hnp
from harp.errors import DTypeError, ShapeError, TreeError
from harp.jax.closures import closure_convert
from harp.lax.arithmetic import complex
from harp.numpy.linalg.norms import norm
from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array
from harp.trace.scalar.dtypes import DType
from harp.trace.source_locations import where
from harp.trace.tracer import require_function
from harp.trace.trees import alike
from harp.transforms.autodiff.custom import custom_vjp
from harp.transforms.autodiff.grad import vjp
from harp.transforms.batching.vmap import vmap
from harp.transforms.control.conditional import while_loop
from harp.transforms.control.scan import scan
from harp.tree import flatten, unflatten
from harp.tree import map as tree_map

# Times of the stages in a step, the weights of stages in those after them, and the weights of the error.
_TIMES = (1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1)
_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_BETWEEN = (
    -12715105075 / 11282082432,
    0,
    87487479700 / 32700410799,
    -10690763975 / 1880347072,
    701980252875 / 199316789632,
    -1453857185 / 822651844,
    69997945 / 29380423,
)

Rate = Callable[..., Array]


class _Step(NamedTuple):
    """Where the last step ended: its time, state and derivative, the length of the next step, the start of the last
    step, and the coefficients of its polynomial."""

    time: Array
    state: Array
    rate: Array
    length: Array
    start: Array
    polynomial: tuple[Array, ...]


class _Tolerance(NamedTuple):
    """The arguments of `odeint` that say how it steps."""

    rtol: float
    atol: float
    mxstep: float
    hmax: float


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = inf,
    hmax: float = inf,
) -> Any:
    """The solution of dy/dt = func(y, t, *args) at times `t` (n,), which increase, from `y0` at t[0]: the tree of `y0`,
    with a first axis of n, and its dtypes; NaN for times that are not reached, or lie before earlier ones. What `func`
    returns is a tree as that of `y0`, too.

    The error of a step is within `atol + rtol * |y|`; there are at most `mxstep` steps between two times, none longer
    than `hmax`; the last may end behind t[-1]. Derivatives in reverse mode, with respect to `y0`, `t`, `args` and what
    `func` closes over, are solutions to the same tolerance. Raises ShapeError for times that are no vector and for
    derivatives of another shape, TreeError for another tree, DTypeError for complex derivatives of real numbers.

    >>> import harp.numpy as hnp
    >>> float(odeint(lambda y, t: -y, 1.0, hnp.asarray([0.0, 1.0]))[-1]).__round__(6)
    0.367879
    """
    require_function("odeint", func, ["y", "t", *(f"args[{k}]" for k in range(len(args)))])
    times = as_array(t)
    if times.ndim != 1:
        raise ShapeError(f"times of odeint are a vector, but have shape {times.shape}{where()}")
    for leaf in flatten(args)[0]:
        as_array(leaf)  # raises for what is no array
    leaves, structure = flatten(y0)
    states = [as_array(leaf) for leaf in leaves]
    states = [state if state.kind.is_inexact else state * 1.0 for state in states]
    leaf_kinds = tuple(_Leaf(state.shape, state.kind) for state in states)
    first = _vector(states)

    def unravel(vector: Array) -> Any:
        return unflatten(structure, _leaves(vector, leaf_kinds))

    def rate(vector: Array, time: Array, *args: Any) -> Array:
        rates, found = flatten(func(unravel(vector), time, *args))
        if not alike(found, structure):
            raise TreeError(f"func of odeint returns another tree than y0, whose derivative it is{where()}")
        return _vector([_like(as_array(one), leaf) for one, leaf in zip(rates, leaf_kinds, strict=True)])

    times = times.astype(first.dtype)
    converted, closed = closure_convert(rate, first, times, *args)
    tolerance = _Tolerance(rtol, atol, mxstep, hmax)
    return vmap(unravel)(_solve(converted, tolerance, first, times, *args, *closed))


class _Leaf(NamedTuple):
    """Shape and dtype of an array of the state."""

    shape: tuple[int, ...]
    dtype: DType


def _like(rate: Array, state: _Leaf) -> Array:
    """A derivative in the dtype of its state."""
    if rate.shape != state.shape:
        raise ShapeError(f"func of odeint returns shape {rate.shape} where y0 has shape {state.shape}{where()}")
    if rate.kind.is_complex and not state.dtype.is_complex:
        raise DTypeError(f"func of odeint returns complex numbers where those of y0 are real; make y0 complex{where()}")
    return rate.astype(state.dtype)


def _vector(arrays: Sequence[Array]) -> Array:
    """The elements of arrays as one vector of floats, real parts before imaginary ones."""
    parts = [part for array in arrays for part in ((array.real, array.imag) if array.kind.is_complex else (array,))]
    return hnp.concatenate([hnp.ravel(part) for part in parts]) if parts else hnp.zeros(0)


def _leaves(vector: Array, kinds: Sequence[_Leaf]) -> list[Array]:
    """The arrays of a vector."""
    found, start = [], 0
    for leaf in kinds:
        parts = []
        for _ in range(2 if leaf.dtype.is_complex else 1):
            end = start + prod(leaf.shape)
            parts.append(hnp.reshape(vector[start:end], leaf.shape))
            start = end
        found.append((complex(*parts) if len(parts) == 2 else parts[0]).astype(leaf.dtype))
    return found


def _combined(weights: tuple[float, ...], rates: list[Array]) -> Array:
    return sum((w * k for w, k in zip(weights[1:], rates[1:], strict=True) if w), weights[0] * rates[0])


def _tried(func: Rate, last: _Step, tolerance: _Tolerance) -> _Step:
    """A step of the given length, or the last one again with a shorter length where the error is too large."""
    h = last.length
    rates = [last.rate]
    state = last.state
    for time, weights in zip(_TIMES, _STAGES, strict=True):
        state = last.state + h * _combined(weights, rates)
        rates.append(func(state, last.time + time * h))
    allowed = tolerance.atol + tolerance.rtol * hnp.maximum(hnp.abs(last.state), hnp.abs(state))
    error = norm(h * _combined(_ERROR, rates) / allowed) / hnp.sqrt(hnp.maximum(state.shape[0], 1)).astype(state.dtype)
    is_good = error <= 1
    # The error of a step grows with its length to the power 5.
    factor = hnp.clip(0.9 * hnp.maximum(error, 1e-10) ** -0.2, hnp.where(is_good, 1.0, 0.2), 10.0)
    factor = hnp.where(hnp.isfinite(error), factor, 0.2)
    change = state - last.state
    bend = h * rates[0] - change
    polynomial = (last.state, change, bend, change - h * rates[-1] - bend, h * _combined(_BETWEEN, rates))
    good = _Step(last.time + h, state, rates[-1], h, last.time, polynomial)
    chosen: _Step = tree_map(lambda new, old: hnp.where(is_good, new, old), good, last)
    return chosen._replace(length=hnp.minimum(h * factor, tolerance.hmax))


def _value(step: _Step, time: Array) -> Array:
    """The polynomial of the last step, at a time between its start and its end; NaN elsewhere."""
    length = step.time - step.start
    at = hnp.where(length > 0, (time - step.start) / hnp.where(length > 0, length, 1), 0)
    first, change, bend, third, fourth = step.polynomial
    value = first + at * (change + (1 - at) * (bend + at * (third + (1 - at) * fourth)))
    return hnp.where((step.start <= time) & (time <= step.time), value, nan)


def _first_length(func: Rate, state: Array, time: Array, rate: Array, tolerance: _Tolerance) -> Array:
    """A length for the first step (Hairer, Nørsett and Wanner, II.4)."""
    scale = tolerance.atol + tolerance.rtol * hnp.abs(state)
    value, slope = norm(state / scale), norm(rate / scale)
    is_small = (value < 1e-5) | (slope < 1e-5)
    short = hnp.where(is_small, 1e-6, 0.01 * value / hnp.where(is_small, 1, slope))
    bend = norm((func(state + short * rate, time + short) - rate) / scale) / short
    largest = hnp.maximum(slope, bend)
    is_flat = largest <= 1e-15
    long = hnp.where(is_flat, hnp.maximum(1e-6, short * 1e-3), (0.01 / hnp.where(is_flat, 1, largest)) ** 0.2)
    return hnp.minimum(hnp.minimum(100 * short, long), tolerance.hmax)


def _at_times(func: Rate, tolerance: _Tolerance, state: Array, times: Array, *args: Any) -> Array:
    """States at all times, one after the other in a loop; steps go on past a time, which lies between their ends."""

    def bound(state: Array, time: Array) -> Array:
        return func(state, time, *args)

    def goes_on(carry: tuple[_Step, Array, Array]) -> Array:
        step, time, count = carry
        can = hnp.isfinite(time) & hnp.isfinite(step.length) & (step.time + step.length > step.time)
        return (step.time < time) & (count < tolerance.mxstep) & can

    def longer(carry: tuple[_Step, Array, Array]) -> tuple[_Step, Array, Array]:
        return _tried(bound, carry[0], tolerance), carry[1], carry[2] + 1

    def until(last: _Step, time: Array) -> tuple[_Step, Array]:
        step = while_loop(goes_on, longer, (last, time, hnp.asarray(0)))[0]
        return step, _value(step, time)

    time = hnp.sum(times[:1])
    rate = bound(state, time)
    length = _first_length(bound, state, time, rate, tolerance)
    zero = hnp.zeros_like(state)
    first = _Step(time, state, rate, length, time, (state, zero, zero, zero, zero))
    states: Array = scan(until, first, times)[1]
    return states


@partial(custom_vjp, nondiff_argnums=(0, 1))
def _solve(func: Rate, tolerance: _Tolerance, state: Array, times: Array, *args: Any) -> Array:
    return _at_times(func, tolerance, state, times, *args)


def _forward(func: Rate, tolerance: _Tolerance, state: Array, times: Array, *args: Any) -> tuple[Array, Any]:
    states = _at_times(func, tolerance, state, times, *args)
    return states, (states, times, args)


def _backward(func: Rate, tolerance: _Tolerance, kept: Any, cotangents: Array) -> tuple[Any, ...]:
    """The cotangent of the state goes from each time to the one before; on the way those of arguments add up."""
    states, times, args = kept
    leaves, structure = flatten(args)
    floats = [k for k, leaf in enumerate(leaves) if as_array(leaf).kind.is_inexact]

    def rate(state: Array, time: Array, *chosen: Array) -> Array:
        given = dict(zip(floats, chosen, strict=True))
        return func(state, time, *unflatten(structure, [given.get(k, leaf) for k, leaf in enumerate(leaves)]))

    def adjoint(carry: Any, back: Array, *chosen: Array) -> Any:
        state, cotangent, _ = carry
        slope, pull = vjp(lambda state, *chosen: rate(state, -back, *chosen), state, *chosen)
        of_state, *of_args = pull(cotangent)
        return -slope, of_state, tuple(of_args)

    chosen = tuple(leaves[k] for k in floats)

    def before(carry: tuple[Array, Any], row: Any) -> tuple[Any, None]:
        """From the end of a piece to its start."""
        cotangent, of_args = carry
        state, of_value, ends = row
        start = (state, cotangent + of_value, of_args)
        passed = odeint(adjoint, start, ends, *chosen, **tolerance._asdict())
        _, cotangent, of_args = tree_map(lambda x: x[1], passed)
        return (cotangent, of_args), None

    zeros = (hnp.zeros(states.shape[1], states.dtype), tuple(hnp.zeros_like(as_array(leaf)) for leaf in chosen))
    ends = -hnp.stack([times[1:], times[:-1]], axis=1)
    (cotangent, of_args), _ = scan(before, zeros, (states[1:], cotangents[1:], ends), reverse=True)
    slopes = vmap(lambda state, time: func(state, time, *args))(states, times)
    # A later t[0] leaves out the start of the way: -cotangent @ slope; a later t[k] goes on for longer.
    of_times = hnp.where(hnp.arange(times.shape[0]) == 0, -(slopes @ cotangent), hnp.sum(cotangents * slopes, axis=1))
    found: list[Any] = [None] * len(leaves)
    for k, of_arg in zip(floats, of_args, strict=True):
        found[k] = of_arg
    return cotangent + hnp.sum(cotangents[:1], axis=0), of_times, *unflatten(structure, found)


_solve.defvjp(_forward, _backward)
