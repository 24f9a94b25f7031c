"""Scaling of updates, element by element, by what earlier ones were: a row of formulas for each method.

g is an update, t the number of the step from 1 on, and b(m) = m / (1 - b**t), which takes out that m began as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from harp.errors import TreeError
from harp.numpy.complexes import imag, real
from harp.numpy.creation import asarray, full_like, zeros
from harp.numpy.elementwise import rsqrt, sign, sqrt, square, where
from harp.optim.transformations import GradientTransformation, following, fraction
from harp.trace.array.array import Array
from harp.trace.source_locations import where as place
from harp.trace.trees import Tree
from harp.tree import flatten, map, structure, unflatten


class TraceState(NamedTuple):
    """The running sum of `trace`."""

    trace: Tree


class ScaleByRssState(NamedTuple):
    """The sums of squares of `scale_by_rss`."""

    sum_of_squares: Tree


class ScaleByRmsState(NamedTuple):
    """The running mean of squares of `scale_by_rms`."""

    nu: Tree


class ScaleByAdamState(NamedTuple):
    """The number of steps, and the running means of updates and of their squares, of `scale_by_adam`."""

    count: Array  # type: ignore[assignment]
    mu: Tree
    nu: Tree


class ScaleByBeliefState(NamedTuple):
    """The number of steps, and the running means of updates and of squares of their errors, of `scale_by_belief`."""

    count: Array  # type: ignore[assignment]
    mu: Tree
    nu: Tree


class ScaleByLionState(NamedTuple):
    """The number of steps, and the running mean of updates, of `scale_by_lion`."""

    count: Array  # type: ignore[assignment]
    mu: Tree


def _of_elements(
    state_class: Callable[..., Any], starts: dict[str, Callable[[Array], Array]], formula: Callable[..., Any]
) -> GradientTransformation:
    """The transformation whose state has a tree like the parameters for each of `starts`, which says how it begins.

    `formula(t, g, *arrays)` is the update and the arrays after step t; these keep the dtypes that they had, and the
    update that of g.
    """
    counts = "count" in state_class._fields  # type: ignore[attr-defined]

    def init(params: Any) -> Any:
        trees = {name: map(lambda p, start=start: start(asarray(p)), params) for name, start in starts.items()}
        return state_class(**({"count": zeros((), "int32")} if counts else {}), **trees)

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        given, spec = flatten(updates)
        t = following(state.count) if counts else None
        columns = [_like(updates, name, getattr(state, name)) for name in starts]
        found = []
        for g, *arrays in zip(map(asarray, given), *columns, strict=True):
            new = formula(t, g, *arrays)
            found.append([x.astype(asarray(old).dtype) for x, old in zip(new, (g, *arrays), strict=True)])
        after, *trees = (unflatten(spec, [row[k] for row in found]) for k in range(1 + len(starts)))
        return after, state_class(**({"count": t} if counts else {}), **dict(zip(starts, trees, strict=True)))

    return GradientTransformation(init, update)


def _like(updates: Any, name: str, stored: Any) -> list[Any]:
    """The arrays of a state for those of the gradients."""
    try:
        return structure(updates).flatten_up_to(stored)
    except TreeError:
        given, kept = structure(updates), structure(stored)
        raise TreeError(
            f"update: the gradients are {given!r}, but {name} of the state is {kept!r}; begin with init(params) for "
            f"parameters of that tree{place()}"
        ) from None


def _filled(value: Any, dtype: Any = None) -> Callable[[Array], Array]:
    return lambda p: full_like(p, value, dtype=dtype)


def _squares(value: Any) -> Callable[[Array], Array]:
    """Of complex parameters, real."""
    return lambda p: full_like(real(p), value)


def _square(g: Array) -> Array:
    return square(real(g)) + square(imag(g)) if g.dtype.kind == "c" else square(g)


def _mean(decay: Any, old: Array, new: Array) -> Any:
    return decay * old + (1 - decay) * new


def _unbiased(decay: Any, t: Array, mean: Array) -> Array:
    """The mean without the share that its start, 0, has in it; that share is computed in float64."""
    return mean / (1 - asarray(decay, dtype="float64") ** t).astype(real(mean).dtype)


def trace(decay: Any, nesterov: bool = False, accumulator_dtype: Any = None) -> GradientTransformation:
    """Momentum: m = g + decay*m; the update is m, with `nesterov` g + decay*m.

    `accumulator_dtype` is the dtype of m, by default that of the parameters. B. Polyak, 1964; Y. Nesterov, 1983;
    I. Sutskever and others, On the importance of initialization and momentum in deep learning, 2013.

    >>> momentum = trace(0.5)
    >>> updates, state = momentum.update({"w": 4.0}, momentum.init({"w": 0.0}))
    >>> momentum.update({"w": 4.0}, state)[0]
    {'w': Array(6.)}
    """

    def formula(t: None, g: Array, m: Array) -> tuple[Array, Array]:
        m = g + decay * m
        return (g + decay * m if nesterov else m), m

    return _of_elements(TraceState, {"trace": _filled(0, accumulator_dtype)}, formula)


def scale_by_rss(initial_accumulator_value: Any = 0.1, eps: Any = 1e-7) -> GradientTransformation:
    """AdaGrad: s = s + g**2; the update is g / sqrt(s + eps), and 0 where s is.

    J. Duchi, E. Hazan, Y. Singer, Adaptive subgradient methods, 2011.

    >>> adaptive = scale_by_rss(0.0, 0.0)
    >>> adaptive.update({"w": -4.0}, adaptive.init({"w": 0.0}))[0]
    {'w': Array(-1.)}
    """

    def formula(t: None, g: Array, s: Array) -> tuple[Array, Array]:
        s = s + _square(g)
        return g * where(s > 0, rsqrt(where(s > 0, s, 1) + eps), 0), s

    return _of_elements(ScaleByRssState, {"sum_of_squares": _squares(initial_accumulator_value)}, formula)


def scale_by_rms(
    decay: Any = 0.9, eps: Any = 1e-8, initial_scale: Any = 0.0, eps_in_sqrt: bool = True
) -> GradientTransformation:
    """RMSProp: v = decay*v + (1 - decay)*g**2; the update is g / sqrt(v + eps), or g / (sqrt(v) + eps).

    G. Hinton, Neural networks for machine learning, lecture 6, 2012.

    >>> adaptive = scale_by_rms(0.75, 0.0)
    >>> adaptive.update({"w": 4.0}, adaptive.init({"w": 0.0}))[0]
    {'w': Array(2.)}
    """

    def formula(t: None, g: Array, v: Array) -> tuple[Array, Array]:
        v = _mean(decay, v, _square(g))
        return (g * rsqrt(v + eps) if eps_in_sqrt else g / (sqrt(v) + eps)), v

    return _of_elements(ScaleByRmsState, {"nu": _squares(initial_scale)}, formula)


def scale_by_adam(
    b1: Any = 0.9,
    b2: Any = 0.999,
    eps: Any = 1e-8,
    eps_root: Any = 0.0,
    mu_dtype: Any = None,
    *,
    nesterov: bool = False,
) -> GradientTransformation:
    """Adam: m = b1*m + (1 - b1)*g, v = b2*v + (1 - b2)*g**2; the update is b1(m) / (sqrt(b2(v) + eps_root) + eps).

    b1(m) is m / (1 - b1**t), and b2(v) likewise, in step t. With `nesterov` (T. Dozat, 2016) the next step's b1*b1(m)
    plus (1 - b1)*b1(g) is in place of b1(m). `mu_dtype` is the dtype of m. A derivative of the update itself needs an
    `eps_root` above 0 where gradients may be 0. D. Kingma, J. Ba, Adam: a method for stochastic optimization, 2015.
    Raises ArgumentError for decays outside of 0 <= b < 1.

    >>> adam = scale_by_adam()
    >>> adam.update({"w": -4.0}, adam.init({"w": 0.0}))[0]
    {'w': Array(-1.)}
    """
    fraction("b1 of scale_by_adam", b1)
    fraction("b2 of scale_by_adam", b2)

    def formula(t: Array, g: Array, m: Array, v: Array) -> tuple[Array, ...]:
        m, v = _mean(b1, m, g), _mean(b2, v, _square(g))
        return _ahead(b1, t, g, m, nesterov) / (sqrt(_unbiased(b2, t, v) + eps_root) + eps), m, v

    return _of_elements(ScaleByAdamState, {"mu": _filled(0, mu_dtype), "nu": _squares(0)}, formula)


def _ahead(b1: Any, t: Array, g: Array, m: Array, nesterov: bool) -> Any:
    """The mean of updates, with `nesterov` that of the step to come."""
    if not nesterov:
        return _unbiased(b1, t, m)
    return b1 * _unbiased(b1, following(t), m) + (1 - b1) * _unbiased(b1, t, g)


def scale_by_belief(
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-16, eps_root: Any = 1e-16, *, nesterov: bool = False
) -> GradientTransformation:
    """AdaBelief: m as in Adam, v = b2*v + (1 - b2)*(g - m)**2 + eps_root; the update is b1(m) / (sqrt(b2(v)) + eps).

    J. Zhuang and others, AdaBelief optimizer, 2020. Arguments and errors are those of `scale_by_adam`.

    >>> adaptive = scale_by_belief(b1=0.5)
    >>> adaptive.update({"w": -4.0}, adaptive.init({"w": 0.0}))[0]
    {'w': Array(-2.)}
    """
    fraction("b1 of scale_by_belief", b1)
    fraction("b2 of scale_by_belief", b2)

    def formula(t: Array, g: Array, m: Array, v: Array) -> tuple[Array, ...]:
        m = _mean(b1, m, g)
        v = _mean(b2, v, _square(g - m)) + eps_root
        return _ahead(b1, t, g, m, nesterov) / (sqrt(_unbiased(b2, t, v)) + eps), m, v

    return _of_elements(ScaleByBeliefState, {"mu": _filled(0), "nu": _squares(0)}, formula)


def scale_by_lion(b1: Any = 0.9, b2: Any = 0.99, mu_dtype: Any = None) -> GradientTransformation:
    """Lion: the update is sign(b1*m + (1 - b1)*g), then m = b2*m + (1 - b2)*g.

    `mu_dtype` is the dtype of m. X. Chen and others, Symbolic discovery of optimization algorithms, 2023.

    >>> lion = scale_by_lion()
    >>> lion.update({"w": -4.0}, lion.init({"w": 0.0}))[0]
    {'w': Array(-1.)}
    """

    def formula(t: Array, g: Array, m: Array) -> tuple[Array, Array]:
        return sign(_mean(b1, m, g)), _mean(b2, m, g)

    return _of_elements(ScaleByLionState, {"mu": _filled(0, mu_dtype)}, formula)
