"""Steps that random programs are made of beside those of tests/property/steps.py: loops, cumulative sums, casts, vmap.

Loops are written once, for harp and for NumPy: `flow(xp)` has the functions of either.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np

import harp
import harp.numpy as hnp

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "property"))
from steps import ANY, BINARY, EVERY, FIELDS, FLOATS, INTEGERS, NUMBERS, UNARY, Step, both


def _scan(f: Callable, init: object, xs: np.ndarray, reverse: bool = False) -> tuple[object, np.ndarray]:
    carry, ys = init, []
    for x in xs[::-1] if reverse else xs:
        carry, y = f(carry, x)
        ys.append(y)
    if not ys:
        return carry, np.asarray(f(init, np.zeros(xs.shape[1:], xs.dtype))[1])[None][:0]
    return carry, np.stack(ys[::-1] if reverse else ys)


def _fori(low: int, high: int, body: Callable, init: object) -> object:
    for k in range(low, high):
        init = body(k, init)
    return init


def _while(goes_on: Callable, body: Callable, init: object) -> object:
    while goes_on(init):
        init = body(init)
    return init


def rows(f: Callable) -> Callable:
    """vmap with NumPy: one row after the other."""

    def call(*arrays: np.ndarray) -> np.ndarray:
        if len(arrays[0]):
            return np.stack([np.asarray(f(*given)) for given in zip(*arrays, strict=True)])
        return np.asarray(f(*(np.zeros(a.shape[1:], a.dtype) for a in arrays)))[None][:0]

    return call


_NUMPY = SimpleNamespace(
    scan=_scan,
    fori_loop=_fori,
    while_loop=_while,
    cond=lambda holds, yes, no, *given: yes(*given) if holds else no(*given),
    switch=lambda number, branches, *given: branches[min(max(int(number), 0), len(branches) - 1)](*given),
    vmap=rows,
)


def flow(xp: object) -> object:
    return harp if xp is hnp else _NUMPY


def _like(xp: object, x: object) -> object:
    """A row of zeros."""
    return xp.zeros(x.shape[1:], x.dtype)


def _decaying(carry: object, x: object) -> tuple[object, object]:
    return carry * 0.5 + x, carry - x


def _mixed(carry: object, x: object) -> tuple[object, object]:
    return carry ^ x, carry | x


def _halved(xp: object, x: object) -> object:
    """Until all are small, forty times at most: infinities stay what they are."""
    found = flow(xp).while_loop(
        lambda s: (s[1] < 40) & xp.any(xp.abs(s[0]) > 1), lambda s: (s[0] * 0.5, s[1] + 1), (x, 0)
    )
    return found[0]


def _flat(x: object) -> object:
    return x.reshape(-1)


def _padded(xp: object, x: object) -> object:
    """No axis is empty."""
    return xp.pad(x, [(0, 1)] * x.ndim)


def _sorted_places(xp: object, x: object) -> object:
    return xp.take_along_axis(x, xp.argsort(x, axis=0, stable=True), axis=0)


def _doubled(xp: object, x: object) -> object:
    return flow(xp).while_loop(lambda s: s[1] < 5, lambda s: (s[0] + s[0], s[1] + 1), (x, 0))[0]


LOOPS = {
    "scan": both(lambda xp, x: flow(xp).scan(_decaying, _like(xp, x), x)[1], FLOATS, 1, False),
    "scan backwards": both(lambda xp, x: flow(xp).scan(_decaying, _like(xp, x), x, reverse=True)[1], FLOATS, 1, False),
    "last of a scan": both(lambda xp, x: flow(xp).scan(_decaying, _like(xp, x), x)[0], FLOATS, 1, False),
    "scan of bits": both(lambda xp, x: flow(xp).scan(_mixed, _like(xp, x), x)[1], "biu", 1),
    "three times": both(lambda xp, x: flow(xp).fori_loop(0, 3, lambda i, c: c + x, x), FIELDS),
    "each place": both(
        lambda xp, x: flow(xp).fori_loop(0, x.shape[0], lambda i, c: c + x[i], _like(xp, x)), FIELDS, 1, False
    ),
    "five times": both(_doubled, FIELDS),
    "halve": both(_halved, FLOATS),
    "one of two": both(lambda xp, x: flow(xp).cond(xp.any(x > 1), lambda v: -v, lambda v: v * v, x)),
    "one of three": both(
        lambda xp, x: flow(xp).switch(xp.sum(x > 0) % 3, [lambda v: v[::-1], lambda v: v * v, lambda v: v - 1], x),
        NUMBERS,
        1,
    ),
}
MORE = {
    **LOOPS,
    "running sum": both(lambda xp, x: xp.cumsum(x, axis=0, dtype=x.dtype), FIELDS, 1, False),
    "running sum of rows": both(lambda xp, x: xp.cumsum(x, axis=x.ndim - 1, dtype=x.dtype), FIELDS, 1, False),
    "running product": both(lambda xp, x: xp.cumprod(x, axis=0, dtype=x.dtype), NUMBERS, 1, False),
    "centred": both(lambda xp, x: x - xp.sum(x, axis=-1, keepdims=True, dtype=x.dtype) * 2, FIELDS, 1, False),
    "place of the largest": both(lambda xp, x: xp.argmax(_padded(xp, x), axis=0), NUMBERS, 1),
    "place of the least": both(lambda xp, x: xp.argmin(_padded(xp, x), axis=-1), NUMBERS, 1),
    "largest": both(lambda xp, x: xp.max(_padded(xp, x), axis=0), FLOATS, 1, False),
    "least": both(lambda xp, x: xp.min(_padded(xp, x), axis=-1), FLOATS, 1, False),
    "mean": both(lambda xp, x: xp.mean(_padded(xp, x), axis=0), FLOATS, 1, False),
    "sort rows": both(lambda xp, x: xp.sort(x, axis=-1, stable=True), "biu", 1),
    "take in order": both(_sorted_places, "biu", 1),
    "search": both(lambda xp, x: xp.searchsorted(xp.sort(_flat(x)), _flat(x)), "iu", 1),
    "roll": both(lambda xp, x: xp.roll(x, 2, axis=0), EVERY, 1),
    "below the diagonal": both(lambda xp, x: xp.tril(x, 1), FIELDS, 2),
    "swap": both(lambda xp, x: xp.swapaxes(x, 0, 1), EVERY, 2),
    "count": both(lambda xp, x: xp.sum(x != 0, axis=0), EVERY, 1),
    "to float32": both(lambda xp, x: x.astype(xp.float32), ANY),
    "to float64": both(lambda xp, x: x.astype(xp.float64), ANY),
    "to int16": both(lambda xp, x: x.astype(xp.int16), "biu"),
    "to uint64": both(lambda xp, x: x.astype(xp.uint64), "biu"),
    "conjugate": both(lambda xp, x: xp.conj(x), "c"),
    "real part": both(lambda xp, x: xp.real(x), "c"),
    "imaginary part": both(lambda xp, x: xp.imag(x), "c"),
    "squares": both(lambda xp, x: xp.sum(x * x, axis=0, dtype=x.dtype), FIELDS, 1, False),
    "product with itself": both(lambda xp, x: xp.swapaxes(x, -1, -2) @ x, FIELDS, 2, False),
    "mask": both(lambda xp, x: xp.where(x > 0, x * 2, xp.flip(x, axis=0)), INTEGERS + FLOATS, 1),
}


def batched(name: str, step: Step) -> tuple[str, Step]:
    """A step of one array, of each row of it."""
    found = Step(harp.vmap(step.harp), rows(step.numpy), step.kinds, step.rank + 1, step.exact)
    return f"vmap of {name}", found


ONE = {**UNARY, **MORE}
ONE |= dict(batched(name, ONE[name]) for name in list(ONE))


def arranged(axis: int | None, falling: bool) -> Callable:
    """The terms along an axis, or all of them, from the least to the greatest or the other way round."""

    def call(x: np.ndarray) -> np.ndarray:
        along = 0 if axis is None else axis
        found = np.sort(x.reshape(-1) if axis is None else x, axis=along)
        return (np.flip(found, along) if falling else found).reshape(x.shape)

    return call


def by_size(axis: int, falling: bool) -> Callable:
    """Factors by their absolute values: where the product of some of them vanishes, or is beyond all, it is now."""

    def call(x: np.ndarray) -> np.ndarray:
        order = np.argsort(np.abs(x), axis=axis)
        return np.take_along_axis(x, np.flip(order, axis) if falling else order, axis)

    return call


# The order of these terms is not promised: a part of them may overflow, or vanish, in one order and not in another.
TERMS = {"sum": (arranged, 0), "sum keep": (arranged, -1), "sum all": (arranged, None), "mean": (arranged, 0)}
TERMS["prod"] = (by_size, 0)


def terms(falling: bool) -> Callable:
    """Puts what a step sums or multiplies in order, the step of each row too; what other steps read stays."""

    def change(name: str, value: object) -> object:
        whole = name.removeprefix("vmap of ")
        given = np.asarray(value)
        if whole not in TERMS or given.dtype.kind not in "fc":
            return value
        arrange, axis = TERMS[whole]
        put = arrange(axis, falling)
        found = put(given) if whole == name else rows(put)(given)
        return found if isinstance(value, np.ndarray | np.generic) else hnp.asarray(found)

    return change


TWO = BINARY
LOOPING = [*LOOPS, *(f"vmap of {name}" for name in LOOPS)]
SMOOTH = ["negative", "exp2", "expm1", "sin", "cos", "tanh", "flip", "tail", "head", "every second", "backwards by two"]
SMOOTH += ["first half", "last axis", "transpose", "merge", "split", "add axis", "gather", "gather columns", "put"]
SMOOTH += ["add up", "pad", "repeat", "double", "stack", "sum", "sum keep", "sum all", "prod", "sort", "differences"]
SMOOTH += ["scan", "scan backwards", "last of a scan", "three times", "each place", "five times", "one of two", "halve"]
SMOOTH += ["running sum", "running sum of rows", "running product", "running maximum", "centred", "largest", "mean"]
SMOOTH += ["roll", "below the diagonal", "swap", "squares", "product with itself", "one of three"]
SMOOTH += [f"vmap of {name}" for name in SMOOTH]
SMOOTH_TWO = ["add", "subtract", "multiply", "outer product", "matmul", "where"]
