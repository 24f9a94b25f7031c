"""What users write, with types: this file is checked by type checkers, and runs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

import harp
import harp.numpy as hnp
from harp import Array, lax


class Layer(NamedTuple):
    w: Array
    b: Array


Params = dict[str, Layer]


def init(key: Array, sizes: list[int]) -> Params:
    keys = harp.random.split(key, len(sizes) - 1)
    layers: Params = {}
    for k, (rows, columns) in enumerate(pairwise(sizes)):
        w = harp.random.normal(keys[k], (rows, columns)) / hnp.sqrt(rows)
        layers[f"layer{k}"] = Layer(w, hnp.zeros(columns))
    return layers


def forward(params: Params, x: Array) -> Array:
    for name in sorted(params):
        layer = params[name]
        x = hnp.tanh(x @ layer.w + layer.b)
    return x


def loss(params: Params, x: Array, y: Array) -> Array:
    difference = forward(params, x)[:, 0] - y
    return hnp.mean(difference**2)


@harp.jit
def step(params: Params, x: Array, y: Array) -> tuple[Array, Params]:
    value, gradient = harp.value_and_grad(loss)(params, x, y)
    new: Params = harp.tree.map(lambda p, g: p - 0.5 * g, params, gradient)
    return value, new


@harp.jit(static_argnames="n")
def power_sum(x: Array, n: int) -> Array:
    total = hnp.zeros_like(x)
    for k in range(n):
        total = total + x**k
    return total


@harp.jit(static_argnames=("mode",))
def normalise(x: Array, mode: str = "max") -> Array:
    if mode == "max":
        return x / x.max()
    return x / hnp.linalg.vector_norm(x)


def log_density(x: Array, covariance: Array) -> Array:
    white = hnp.linalg.solve_triangular(hnp.linalg.cholesky(covariance), x, lower=True)
    sign, size = hnp.linalg.slogdet(hnp.linalg.inv(covariance))
    return -0.5 * (white @ white) + 0.5 * sign * size + 0 * hnp.linalg.det(covariance)


@hnp.vectorize(signature="(n),(n,n)->()")
def distance(x: Array, a: Array) -> Array:
    return hnp.sqrt(x @ hnp.linalg.solve(a, x))


def simulate(x0: Array, steps: Array) -> Array:
    def body(x: Array, u: Array) -> tuple[Array, Array]:
        x = hnp.where(x > 1.0, x - u, x + u)
        return x, x

    _, path = lax.scan(body, x0, steps)
    return path


def grown(x: Array, rate: float) -> Array:
    return harp.fori_loop(0, 3, lambda i, v: v + rate * i, x)


def root(a: Array) -> Array:
    def better(guess: Array) -> Array:
        return (guess + a / guess) / 2

    return harp.while_loop(lambda guess: abs(guess * guess - a) > 1e-12, better, 1.0)


def shrunk(x: Array, limit: float = 1.0) -> Array:
    largest: int = x.shape[0]
    return harp.cond(hnp.max(x) > limit, lambda v: v / largest, lambda v: v, x)


def lengths(rows: Array) -> Array:
    return lax.map(lambda row: hnp.sqrt(row @ row), rows)


@harp.tree.register
@dataclass
class Line:
    slope: Array
    offset: Array


@harp.tree.register(static=("degree",))
@dataclass(frozen=True)
class Power:
    factor: Array
    degree: int = 2

    def at(self, x: Array) -> Array:
        return self.factor * x**self.degree


@harp.jit(static_argnames="times")
def shifted(line: Line, power: Power, times: int) -> Array:
    return times * line.offset + power.at(line.slope)


class Counter:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    @harp.jit(static_argnums=0)
    def scaled(self, x: Array) -> Array:
        return x * self.scale


def main() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 3))
    y = np.sin(x.sum(axis=1))
    params = init(harp.random.key(0), [3, 8, 1])
    losses = []
    for _ in range(3):
        value, params = step(params, x, y)
        losses.append(float(value))
    single = harp.grad(lambda v: hnp.sum(hnp.sin(v)))(x[0])
    batched = harp.vmap(lambda v, w: hnp.dot(v, w), in_axes=(0, None))(x, np.ones(3))
    value, pullback = harp.vjp(lambda v: v * v, hnp.ones(3))
    (cotangent,) = pullback(hnp.ones(3))
    value, tangent = harp.jvp(hnp.exp, (hnp.zeros(2),), (hnp.ones(2),))
    hessian = harp.jit(harp.hessian(lambda v: hnp.prod(v)))(np.array([2.0, 3.0]))
    path = harp.jit(simulate)(np.float64(0.5), np.ones(4))
    sorted_rows, order = hnp.asarray(x).sort(axis=0), hnp.argsort(x, axis=0)
    moved = hnp.asarray(x).at[0].add(1.0).at[:, 1].set(0.0).swapaxes(0, 1)
    grid = hnp.mgrid[0:2, 0:3]
    joined = hnp.concatenate([hnp.ravel(grid), hnp.arange(3), hnp.r_[0.5, 1:3]])
    single_precision = hnp.float32(3)
    masked = hnp.where(hnp.asarray(x) > 0, x, 0.0).sum(axis=1, keepdims=True)
    assert isinstance(joined, hnp.ndarray) and hnp.issubdtype(joined.dtype, hnp.floating)
    rows, columns = hnp.shape(masked)
    print(f"{losses[-1]:.3f}", rows, columns, single_precision, len(step.signatures), step.compilations)
    shift: Array = shifted(Line(hnp.ones(2), hnp.zeros(2)), Power(hnp.ones(2), degree=3), times=2)
    return {
        "shift": shift,
        "losses": losses,
        "power": power_sum(x, n=3),
        "systems": (log_density(hnp.asarray(y), hnp.eye(20)), distance(y, np.eye(20))),
        "normalised": [normalise(y), normalise(hnp.asarray(y), mode="norm")],
        "scaled": Counter(2.0).scaled(x),
        "derivatives": (single, batched, cotangent, tangent, hessian),
        "arrays": (path, sorted_rows, order, moved, harp.jit(harp.checkpoint(hnp.tanh))(y)),
        "loops": (
            grown(hnp.ones(2), 0.5),
            root(hnp.asarray(2.0)),
            shrunk(hnp.asarray([2.0, 4.0])),
            lengths(hnp.eye(2)),
        ),
        "last": float(harp.stop_gradient(hnp.asarray(y))[-1]),
    }


if __name__ == "__main__":
    main()
