"""The steps that random programs are made of: what harp does, what NumPy does, and where they fit.

An exact step gives the same bits wherever it is computed; of the others each is within a few units in the last place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from hypothesis import settings

import harp.numpy as hnp

ANY, NUMBERS, FLOATS, INTEGERS = "biuf", "iuf", "f", "iu"
EVERY, FIELDS = ANY + "c", NUMBERS + "c"  # complex numbers have no order


def examples(percent: int) -> settings:
    """So many of each hundred examples that the profile asks for."""
    return settings(max_examples=settings().max_examples * percent // 100)


class Step(NamedTuple):
    """One row: a function of one or two arrays for harp and for NumPy, dtypes by kind, least rank, exactness."""

    harp: Callable
    numpy: Callable
    kinds: str = NUMBERS
    rank: int = 0
    exact: bool = True


def both(function: Callable, kinds: str = NUMBERS, rank: int = 0, exact: bool = True) -> Step:
    """The same code for both; `xp` is the namespace."""
    return Step(lambda *a: function(hnp, *a), lambda *a: function(np, *a), kinds, rank, exact)


def inexact(name: str) -> Step:
    return Step(getattr(hnp, name), getattr(np, name), FLOATS, 0, False)


def same(name: str, kinds: str = NUMBERS) -> Step:
    return Step(getattr(hnp, name), getattr(np, name), kinds)


def _places(xp: object, count: object) -> object:
    """Every second place, then the last one several times; as data."""
    return xp.minimum(xp.arange(count) * 2, count - 1)


def _put_numpy(x: np.ndarray, ufunc: np.ufunc | None) -> np.ndarray:
    result, places = x.copy(), _places(np, x.shape[0])
    if ufunc is None:
        result[places] = x[::-1]
    else:
        ufunc.at(result, places, x[::-1])
    return result


def _put(how: str, ufunc: np.ufunc | None, kinds: str = FIELDS) -> Step:
    def function(x):
        return getattr(x.at[_places(hnp, x.shape[0])], how)(x[::-1])

    return Step(function, lambda x: _put_numpy(x, ufunc), kinds, 1)


UNARY = {
    "gather": both(lambda xp, x: x[_places(xp, x.shape[0])], EVERY, 1),
    "gather columns": both(lambda xp, x: x[..., _places(xp, x.shape[-1])], EVERY, 1),
    "gather pairs": both(lambda xp, x: x[_places(xp, x.shape[0]), 1:][:, ::-1], EVERY, 2),
    "put": _put("set", None, EVERY),
    # of float16, each sum is rounded here, and by NumPy each addition
    "add up": _put("add", np.add)._replace(exact=False),
    "greatest": _put("max", np.maximum, "biu"),
    "negative": both(lambda xp, x: -x, FIELDS),
    "abs": same("abs"),
    "sign": same("sign"),
    "square": both(lambda xp, x: x * x, FIELDS),
    "invert": both(lambda xp, x: ~x, "biu"),
    "logical not": both(lambda xp, x: xp.logical_not(x), EVERY),
    "positive part": both(lambda xp, x: xp.where(x > 1, x, x - x)),
    "choose": both(lambda xp, x: xp.where(x > 1, x, -x)),
    "floor": same("floor", FLOATS),
    "reciprocal": both(lambda xp, x: 1 / x, FLOATS),
    "sqrt": same("sqrt", FLOATS),
    "to bool": both(lambda xp, x: (x != 0) & (x == x), EVERY),
    "shift left": both(lambda xp, x: x << 3, INTEGERS),
    "shift right": both(lambda xp, x: x >> 2, INTEGERS),
    "clip": both(lambda xp, x: xp.clip(x, 0, 2), INTEGERS),  # which zero a float becomes is nobody's promise
    "clip floats": both(lambda xp, x: xp.clip(x, -0.5, 0.5), FLOATS),
    **{n: inexact(n) for n in ("exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "tanh")},
    "power": both(lambda xp, x: xp.abs(x) ** 1.5, FLOATS, 0, False),
    "cube": both(lambda xp, x: x**3, INTEGERS),
    "flip": both(lambda xp, x: x[::-1], EVERY, 1),
    "tail": both(lambda xp, x: x[1:], EVERY, 1),
    "head": both(lambda xp, x: x[:-1], EVERY, 1),
    "every second": both(lambda xp, x: x[::2], EVERY, 1),
    "backwards by two": both(lambda xp, x: x[::-2], EVERY, 1),
    "first half": both(lambda xp, x: x[: x.shape[0] // 2], EVERY, 1),
    "last axis": both(lambda xp, x: x[..., 1:], EVERY, 1),
    "transpose": both(lambda xp, x: xp.transpose(x), EVERY),
    "merge": both(lambda xp, x: x.reshape(-1), EVERY),
    "split": both(lambda xp, x: x[: x.shape[0] // 2 * 2].reshape((x.shape[0] // 2, 2, *x.shape[1:])), EVERY, 1),
    "add axis": both(lambda xp, x: x[None], EVERY),
    "pad": both(lambda xp, x: xp.pad(x, [(1, 2)] * x.ndim), FIELDS, 1),
    "repeat": both(lambda xp, x: xp.broadcast_to(x[None], (3, *x.shape)), EVERY),
    "double": both(lambda xp, x: xp.concatenate([x, x[::-1]], axis=0), EVERY, 1),
    "stack": both(lambda xp, x: xp.stack([x, x], axis=-1), EVERY),
    "sum": both(lambda xp, x: xp.sum(x, axis=0, dtype=x.dtype), FIELDS, 1, False),
    "sum keep": both(lambda xp, x: xp.sum(x, axis=-1, keepdims=True, dtype=x.dtype), FIELDS, 1, False),
    "sum all": both(lambda xp, x: xp.sum(x, dtype=x.dtype), FIELDS, 0, False),
    "prod": both(lambda xp, x: xp.prod(x, axis=0, dtype=x.dtype), FIELDS, 1, False),
    "any": both(lambda xp, x: xp.any(x, axis=-1), EVERY, 1),
    "all": both(lambda xp, x: xp.all(x, axis=0), EVERY, 1),
    "sort": both(lambda xp, x: xp.sort(x, axis=0, stable=True), ANY, 1),
    "order": both(lambda xp, x: xp.argsort(x, axis=-1, stable=True), "biu", 1),
    "differences": both(lambda xp, x: xp.diff(x, axis=0), FIELDS, 1),
    # which zero is the greater of 0.0 and -0.0 is not said
    "running maximum": Step(lambda x: hnp.cummax(x, 0), lambda x: np.maximum.accumulate(x, 0), ANY, 1, False),
    "highest": both(lambda xp, x: xp.max(xp.pad(x, [(0, 1)] * x.ndim), axis=0), INTEGERS, 1),
    "lowest": both(lambda xp, x: xp.min(xp.pad(x, [(0, 1)] * x.ndim), axis=-1), INTEGERS, 1),
}
BINARY = {
    "add": both(lambda xp, a, b: a + b, FIELDS),
    "subtract": both(lambda xp, a, b: a - b, FIELDS),
    "multiply": both(lambda xp, a, b: a * b, FIELDS),
    "divide": both(lambda xp, a, b: a / b, FLOATS + "c"),
    "maximum": same("maximum", "biu"),
    "minimum": same("minimum", "biu"),
    "floor divide": both(lambda xp, a, b: a // b),
    "remainder": both(lambda xp, a, b: a % b),
    "and": both(lambda xp, a, b: a & b, "biu"),
    "or": both(lambda xp, a, b: a | b, "biu"),
    "xor": both(lambda xp, a, b: a ^ b, "biu"),
    "less": both(lambda xp, a, b: a < b, ANY),
    "equal": both(lambda xp, a, b: a == b, EVERY),
    "where": both(lambda xp, a, b: xp.where(a < b, a, b)),
    "outer product": both(lambda xp, a, b: a[..., None] * b[..., None, :], FIELDS, 1),
    "matmul": both(lambda xp, a, b: a @ xp.swapaxes(b, -1, -2), FIELDS, 2, False),
}
