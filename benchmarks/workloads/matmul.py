"""Matrix products of all layouts and kinds of shapes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType

import numpy as np

from benchmarks.harness import Goal
from benchmarks.workload import Arguments, Comparison

SIZES, SMALL = (64, 256, 1024, 2048), 20


def operands(dtype: str, *shapes: str) -> Callable[..., Arguments]:
    """Arrays of shapes that are named by sizes: "mk" has the first and the second of m, k, n, batch."""

    def make(rng: np.random.Generator, *sizes: int) -> Arguments:
        named = dict(zip("mknb", sizes, strict=False))
        return tuple(rng.standard_normal([named[letter] for letter in shape]).astype(dtype) for shape in shapes)

    return make


def product(xp: ModuleType, a, b):
    """As stored."""
    return a @ b


def _transposed(layout: str, xp: ModuleType, a, b):
    left = a.T if layout[0] == "T" else a
    return left @ (b.T if layout[1] == "T" else b)


def relu(xp: ModuleType, x):
    """With the namespace's own function where it has one."""
    return xp.relu(x) if hasattr(xp, "relu") else xp.maximum(x, 0.0)


def _bias_relu(xp: ModuleType, a, b, bias):
    return relu(xp, a @ b + bias)


def _squares() -> list[Comparison]:
    found = []
    for kind, dtype in (("f32", "float32"), ("f64", "float64")):
        for n in SIZES:
            sizes, small = (n,) * 3, (SMALL,) * 3
            for layout in ("NN", "NT", "TN", "TT"):
                function = product if layout == "NN" else partial(_transposed, layout)
                make = operands(dtype, "mk", "kn")  # stored in the other order where transposed: the same as n is equal
                found.append(Comparison(f"matmul/{kind}-{layout}-{n}", Goal(0.95), make, sizes, small, function))
            make = operands(dtype, "mk", "kn", "n")
            found.append(Comparison(f"matmul/{kind}-bias-relu-{n}", Goal(0.95), make, sizes, small, _bias_relu))
    return found


def _skinny(name: str, goal: float, sizes: tuple[int, int, int], small: tuple[int, int, int]) -> Comparison:
    return Comparison(f"skinny/{name}", Goal(goal), operands("float32", "mk", "kn"), sizes, small, product)


BATCH = operands("float32", "bmk", "bkn")

WORKLOADS = (
    *_squares(),
    _skinny("32x784x128", 1.1, (32, 784, 128), (3, 40, 10)),
    Comparison("skinny/batch-64-of-64", Goal(1.1), BATCH, (64, 64, 64, 64), (5, 6, 7, 3), product),
    _skinny("128x256x10", 1.0, (128, 256, 10), (12, 25, 10)),
    _skinny("1x1024x1024", 1.0, (1, 1024, 1024), (1, 30, 30)),
    _skinny("1024x1024x1", 1.0, (1024, 1024, 1), (30, 30, 1)),
)
