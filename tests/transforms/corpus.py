"""Functions from n numbers to n numbers, which among them have every kind of node, written once for three libraries:
harp, JAX, and NumPy in extended precision, where a derivative is a quotient of differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import harp
import harp.numpy as hnp

try:
    import jax

    jax.config.update("jax_enable_x64", True)
except ImportError:  # then differences are what harp is compared with
    jax = None


class Library(NamedTuple):
    """What the functions and the transforms of this test are made of."""

    xp: Any
    jit: Callable
    grad: Callable
    jvp: Callable
    vmap: Callable
    checkpoint: Callable
    scan: Callable
    cond: Callable
    fori_loop: Callable
    put: Callable  # x with the elements at some places replaced
    add: Callable  # x with something added at some places
    read: Callable  # an element, whose number is data
    running_maximum: Callable
    tell: Callable  # calls Python with some arrays
    custom: Callable  # a function, and a function of x and a cotangent that says the same as its gradient
    sin: Callable  # a function that is not made of nodes, with a gradient of its own, which has another one


def _custom(function: Callable, backward: Callable) -> Callable:
    made = harp.custom_vjp(function)
    made.defvjp(lambda x: (function(x), x), lambda x, ct: (backward(hnp, x, ct),))
    return made


def _sin(x: Any, order: int = 0) -> Any:
    """A derivative of the sine, computed by Python."""

    @harp.custom_vjp
    def function(x: Any) -> Any:
        return harp.pure_callback(lambda x: np.sin(x + order % 4 * (np.pi / 2)), x, x)

    function.defvjp(lambda x: (function(x), x), lambda x, ct: (ct * _sin(x, order + 1),))
    return function(x)


HARP = Library(
    hnp,
    harp.jit,
    harp.grad,
    harp.jvp,
    harp.vmap,
    harp.checkpoint,
    harp.scan,
    harp.cond,
    harp.fori_loop,
    lambda x, places, values: x.at[places].set(values),
    lambda x, places, values: x.at[places].add(values),
    lambda x, k: x.at[k].get(mode="fill", fill_value=0),
    lambda x: hnp.cummax(x, 0),
    lambda *arrays: harp.debug.callback(lambda *_: None, *arrays),
    _custom,
    _sin,
)
# The last ones: JAX has no derivative in forward mode of a function with a gradient of its own.
JAX = jax and Library(
    jax.numpy,
    jax.jit,
    jax.grad,
    jax.jvp,
    jax.vmap,
    jax.checkpoint,
    jax.lax.scan,
    jax.lax.cond,
    jax.lax.fori_loop,
    HARP.put,
    HARP.add,
    HARP.read,
    jax.lax.cummax,
    lambda *arrays: None,
    lambda function, backward: function,
    jax.numpy.sin,
)


# -- NumPy, with derivatives by differences -----------------------------------------------------------------------

# Where extended precision is that of double, differences are as exact as tolerances ask for only to first order.
EXTENDED = np.longdouble
STEP = EXTENDED(1e-4 if np.finfo(EXTENDED).eps < 1e-17 else 2e-3)


def _slope(function: Callable, x: np.ndarray, direction: np.ndarray, step: np.longdouble) -> np.ndarray:
    """The derivative in a direction, from four points on the line, with an error of the fourth order in the step."""
    far, near = (np.subtract(function(x + h * direction), function(x - h * direction)) for h in (2 * step, step))
    return (8 * near - far) / (12 * step)


def _grad(function: Callable, step: np.longdouble) -> Callable:
    def gradient(x):
        return np.array([_slope(function, x, e, step) for e in np.eye(len(x), dtype=EXTENDED)], EXTENDED)

    return gradient


def _vmap(function: Callable) -> Callable:
    def mapped(*args):
        return np.array([function(*row) for row in zip(*args, strict=True)])

    return mapped


def _scan(function: Callable, carry: Any, xs: np.ndarray) -> tuple[Any, np.ndarray]:
    made = []
    for x in xs:
        carry, y = function(carry, x)
        made.append(y)
    return carry, np.array(made, EXTENDED)


def _fori_loop(start: int, end: int, function: Callable, carry: Any) -> Any:
    for k in range(start, end):
        carry = function(k, carry)
    return carry


def _changed(x: np.ndarray, places: Any, values: Any, ufunc: np.ufunc | None) -> np.ndarray:
    result = x.copy()
    if ufunc is None:
        result[places] = values
    else:
        ufunc.at(result, places, values)
    return result


def numpy_library(factor: float = 1.0) -> Library:
    """NumPy; `factor` makes the steps of differences longer or shorter."""
    step = STEP * EXTENDED(factor)
    return Library(
        np,
        lambda f: f,
        lambda f: _grad(f, step),
        lambda f, primals, tangents: (f(*primals), _slope(f, primals[0], tangents[0], step)),
        _vmap,
        lambda f: f,
        _scan,
        lambda p, f, g, *args: f(*args) if p else g(*args),
        _fori_loop,
        lambda x, places, values: _changed(x, places, values, None),
        lambda x, places, values: _changed(x, places, values, np.add),
        lambda x, k: x[k],
        lambda x: np.maximum.accumulate(x),
        lambda *arrays: None,
        lambda function, backward: function,
        np.sin,
    )


# -- the functions ------------------------------------------------------------------------------------------------


def elementwise(lib: Library, x: Any) -> Any:
    """Elementwise functions and a sum."""
    xp = lib.xp
    return xp.tanh(x) * xp.sum(xp.sin(x)) + xp.exp(-x * x) / (1 + xp.sum(x * x))


def product(lib: Library, x: Any) -> Any:
    """Products of matrices: of two of them along a last axis, and one with a vector."""
    xp = lib.xp
    a = xp.sin(x)[:, None] * xp.cos(x)[None, :]
    pair = xp.stack([a, a + 0.1], -1)
    first, second = xp.moveaxis(xp.einsum("ijb,jkb->ikb", pair, pair[:, ::-1]), -1, 0)
    return xp.tanh(first @ x / (1 + xp.sum(x * x))) * xp.cos(second @ xp.cos(x) / (1 + xp.sum(x * x)))


def views(lib: Library, x: Any) -> Any:
    """Slices, pads, flips, joined arrays, reshapes and transposes."""
    xp = lib.xp
    n = x.shape[0]
    padded = xp.pad(x, (1, 2))
    pairs = xp.stack([padded[1:-2][::-1], xp.sin(padded[:-3])], 1)
    return xp.reshape(pairs, (n * 2,))[::2] * padded[3:] + xp.concatenate([x[1:], x[:1]]) * xp.transpose(pairs)[1]


def places(lib: Library, x: Any) -> Any:
    """Arrays of indices: what is read, and what is added up where several go to one place."""
    xp = lib.xp
    n = x.shape[0]
    at = xp.minimum(2 * xp.arange(n), n - 1)
    return xp.sin(x[at]) * x + lib.add(lib.put(x, at[::-1], 0.5), at, xp.cos(x) * x)


def running(lib: Library, x: Any) -> Any:
    """Running sums and products."""
    xp = lib.xp
    return xp.tanh(xp.cumsum(xp.sin(x)) + xp.cumprod(1 + 0.3 * xp.cos(x)))


def order(lib: Library, x: Any) -> Any:
    """Sorted rows, positions in an order, and maxima, also running ones."""
    xp = lib.xp
    highest = xp.max(xp.pad(x, (0, 1)))
    return xp.sort(xp.sin(x)) * x[xp.argsort(x)] + highest * xp.tanh(x) + lib.running_maximum(xp.cos(x)) * x


def given(lib: Library, x: Any) -> Any:
    """A function with a gradient of its own."""
    xp = lib.xp
    softplus = lib.custom(
        lambda v: xp.log(1 + xp.exp(v)) * v,
        lambda xp, v, ct: ct * (xp.log(1 + xp.exp(v)) + v / (1 + xp.exp(-v))),
    )
    return softplus(x - 0.2) * xp.cos(xp.sum(x))


def scanned(lib: Library, x: Any) -> Any:
    """A loop along the axis of the argument, whose carry and results are used."""
    xp = lib.xp
    start = xp.sum(x) * 0.1
    last, made = lib.scan(lambda c, v: (xp.tanh(c + v), xp.sin(c) * v), start, x)
    return made + last * x


def branched(lib: Library, x: Any) -> Any:
    """A branch on data, of which one side reads what is round it."""
    xp = lib.xp
    y = xp.sin(x)
    return lib.cond(xp.sum(x) > 0.1, lambda v: v * xp.sum(v * y), lambda v: xp.cos(v) * 0.5 + y, x)


def looped(lib: Library, x: Any) -> Any:
    """Loops by number, of which one changes its carry in place."""
    xp = lib.xp
    n = x.shape[0]

    def step(k: Any, v: Any) -> Any:
        return lib.put(v, k, xp.sin(lib.read(v, k)) + lib.read(v, k) * xp.cos(lib.read(v, n - 1 - k)))

    y = lib.fori_loop(0, n, step, x)
    return lib.fori_loop(0, 3, lambda k, v: xp.tanh(v + 0.2 * y * k), x)


def told(lib: Library, x: Any) -> Any:
    """Calls of Python, also in a loop and in a branch."""
    xp = lib.xp
    lib.tell(x)

    def step(c: Any, v: Any) -> tuple[Any, Any]:
        lib.tell(c, v)
        return xp.sin(c) + v, c * v

    def branch(v: Any) -> Any:
        lib.tell(v)
        return v * v

    last, made = lib.scan(step, xp.sum(x) * 0.1, x)
    return lib.cond(last > 0.1, branch, lambda v: xp.cos(v), made * last + x)


def outside(lib: Library, x: Any) -> Any:
    """What Python computes, of all elements and in the steps of a loop."""
    xp = lib.xp

    def step(c: Any, v: Any) -> tuple[Any, Any]:
        return lib.sin(c) + v, c * lib.sin(v)

    last, made = lib.scan(step, xp.sum(x) * 0.1, x)
    return lib.sin(x * last) + made * x


FUNCTIONS: dict[str, Callable[[Library, Any], Any]] = {
    f.__name__: f
    for f in (elementwise, product, views, places, running, order, given, scanned, branched, looped, told, outside)
}
