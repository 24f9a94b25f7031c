"""Transforms in each other: second derivatives, and a gradient for each example."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.loops.spelling import GOAL, Array, Namespace, library
from benchmarks.workload import Arguments, Comparison


def _data(rng: np.random.Generator, variables: int, rows: int) -> Arguments:
    return rng.standard_normal(variables) * 0.1, rng.standard_normal((rows, variables))


def logistic(xp: Namespace, w: Array, x: Array) -> Array:
    """The loss of a logistic regression, and a penalty."""
    return xp.sum(xp.log1p(xp.exp(x @ w))) + xp.sum(w**4)


def rosenbrock(xp: Namespace, x: Array) -> Array:
    """A valley that is hard to walk along."""
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def _hessian(function: Any):
    def made(xp: Namespace, *given: Array) -> Array:
        return library(xp).hessian(lambda *x: function(xp, *x))(*given)

    return made


def _network(rng: np.random.Generator, examples: int) -> Arguments:
    sizes = ((32, 64), (64,), (64, 10), (10,))
    params = [rng.standard_normal(size, np.float32) * np.float32(0.2) for size in sizes]
    labels = np.eye(10, dtype=np.float32)[rng.integers(0, 10, examples)]
    return params, rng.standard_normal((examples, 32), np.float32), labels


def network_loss(xp: Namespace, params: list[Array], x: Array, label: Array) -> Array:
    """The cross-entropy of one example."""
    w1, b1, w2, b2 = params
    scores = xp.tanh(x @ w1 + b1) @ w2 + b2
    top = xp.max(scores)
    return top + xp.log(xp.sum(xp.exp(scores - top))) - xp.sum(scores * label)


def per_example(xp: Namespace, params: list[Array], x: Array, labels: Array) -> list[Array]:
    """A gradient for each example."""
    transforms = library(xp)
    slope = transforms.grad(lambda p, x, label: network_loss(xp, p, x, label))
    return transforms.vmap(slope, in_axes=(None, 0, 0))(params, x, labels)


def _row(name: str, arguments: Any, sizes: tuple[int, ...], small: tuple[int, ...], function: Any) -> Comparison:
    return Comparison(name, GOAL, arguments, sizes, small, function, peers=("jax",), truth="jax")


DERIVATIVES: list[Comparison] = [
    _row("hessian/logistic-50", _data, (50, 200), (5, 8), _hessian(logistic)),
    _row("hessian/rosenbrock-50", lambda rng, n: (rng.standard_normal(n),), (50,), (5,), _hessian(rosenbrock)),
    _row("vmap/per-example-gradients", _network, (256,), (3,), per_example),
]
