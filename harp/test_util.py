"""Derivatives against differences, for the tests of programs, as `jax.test_util` has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from harp.errors import ArgumentError
from harp.trace.source_locations import where
from harp.trace.trees import flatten, unflatten
from harp.transforms.autodiff.forward import jvp
from harp.transforms.autodiff.grad import vjp

__all__ = ["check_grads"]

# From lists of floating-point or complex arrays to such lists.
_Function = Callable[..., list[Any]]
# How far a slope may be from a difference, by the dtype of the numbers.
_TOLERANCE = {"float64": 1e-5, "complex128": 1e-5, "float32": 1e-2, "complex64": 1e-2}


class _Limits(NamedTuple):
    step: float
    atol: float | None
    rtol: float | None

    def compare(self, found: Any, expected: Any, of: np.dtype[Any], what: str) -> None:
        limit = _TOLERANCE.get(of.name, 1e-1)
        atol, rtol = (limit if given is None else given for given in (self.atol, self.rtol))
        np.testing.assert_allclose(found, expected, rtol, atol, err_msg=f"{what} against differences")


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float = 1e-4,
) -> None:
    """Compare the derivatives of `f` at `args`, of so many orders, with differences along random directions.

    `modes` are "fwd", forward, and "rev", reverse mode; above order 1 both are taken of each of them, too. `f` takes
    and returns trees of arrays; those that are neither floating-point nor complex have no derivatives. `eps` is the
    distance of two points.

    Raises AssertionError where a derivative is wrong, ArgumentError for another mode.

    >>> import harp.numpy as hnp
    >>> check_grads(lambda x: hnp.sin(x) * x, (0.5,), order=2)
    """
    wrong = [mode for mode in modes if mode not in _MODES]
    if wrong:
        raise ArgumentError(f"modes of check_grads are 'fwd' and 'rev', not {wrong[0]!r}{where()}")
    leaves, treedef = flatten(tuple(args))
    places = [k for k, leaf in enumerate(leaves) if np.asarray(leaf).dtype.kind in "fc"]

    def of_numbers(*numbers: Any) -> list[Any]:
        now = list(leaves)
        for place, number in zip(places, numbers, strict=True):
            now[place] = number
        results = flatten(f(*unflatten(treedef, now)))[0]
        return [leaf for leaf in results if np.dtype(leaf.dtype).kind in "fc"]  # type: ignore[attr-defined]

    at, limits = [np.asarray(leaves[k]) for k in places], _Limits(eps, atol, rtol)
    functions = [of_numbers]
    for _ in range(order):
        functions = [derivative for function in functions for derivative in _checked(function, at, modes, limits)]


def _checked(function: _Function, at: list[Any], modes: Sequence[str], limits: _Limits) -> list[_Function]:
    """The derivatives of a function, one for each mode, compared with its differences."""
    random = np.random.default_rng(0)
    along, toward = _directions(at, random), _directions(function(*at), random)
    ends = [function(*(x + sign * limits.step * d for x, d in zip(at, along, strict=True))) for sign in (1, -1)]
    slopes = [(np.asarray(a) - np.asarray(b)) / (2 * limits.step) for a, b in zip(*ends, strict=True)]
    return [_MODES[mode](function, along, toward, at, slopes, limits) for mode in modes]


def _forward(
    function: _Function, along: list[Any], toward: list[Any], at: list[Any], slopes: list[Any], limits: _Limits
) -> _Function:
    """The derivative along a direction, compared."""

    def pushed(*numbers: Any) -> list[Any]:
        tangents: list[Any] = jvp(function, numbers, tuple(along))[1]
        return tangents

    for found, expected in zip(pushed(*at), slopes, strict=True):
        limits.compare(np.asarray(found), expected, expected.dtype, "forward mode")
    return pushed


def _reverse(
    function: _Function, along: list[Any], toward: list[Any], at: list[Any], slopes: list[Any], limits: _Limits
) -> _Function:
    """The cotangents of the arguments for random ones of the results: <cotangents, direction> is compared."""

    def pulled(*numbers: Any) -> list[Any]:
        return list(vjp(function, *numbers)[1](toward))

    dtype = slopes[0].dtype if slopes else np.dtype(float)
    limits.compare(_paired(pulled(*at), along), _paired(toward, slopes), dtype, "reverse mode")
    return pulled


_MODES: dict[str, Callable[..., _Function]] = {"fwd": _forward, "rev": _reverse}


def _directions(like: Sequence[Any], random: np.random.Generator) -> list[Any]:
    """Arrays of these shapes and dtypes, of random numbers."""
    shapes = [(np.shape(x), np.asarray(x).dtype) for x in like]
    drawn = [random.normal(size=(2, *shape)) for shape, _ in shapes]
    return [
        np.asarray(re + 1j * im if dtype.kind == "c" else re, dtype)
        for (re, im), (_, dtype) in zip(drawn, shapes, strict=True)
    ]


def _paired(a: Sequence[Any], b: Sequence[Any]) -> float:
    """The sum of all products, of which the real part counts."""
    return sum(float(np.sum(np.real(np.asarray(x) * np.asarray(y)))) for x, y in zip(a, b, strict=True))
