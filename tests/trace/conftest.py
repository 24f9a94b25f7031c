"""A traced function beside the function itself: what `check` accepts, and what the graph gives there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from harp.trace.array.array import Array
from harp.trace.array.primitives import as_array
from harp.trace.eval.interpret import interpret
from harp.trace.sizes.scope import Scope
from harp.trace.sizes.signature import canonical, signature_of, sizes_of
from harp.trace.tracer import size_arguments, trace_function


class Program:
    """A function traced with arrays at hand, and its signature."""

    def __init__(self, function: Callable[..., object], *arrays: np.ndarray, scope: Scope | None = None) -> None:
        self.function = function
        self.scope = Scope() if scope is None else scope
        names = [f"a{k}" for k in range(len(arrays))]
        arguments = size_arguments(names, [(a, False) for a in arrays], self.scope)
        self.axes = [size.atom for argument in arguments for size in argument.shape]
        traced = trace_function(lambda args: function(*args), arguments, self.scope, "f")
        self.graph = traced.graph
        self.signature = signature_of(self.graph, self.scope, self.axes)
        self.check = self.signature.compile_check()

    def accepts(self, *shapes: tuple[int, ...]) -> bool:
        return self.check(*(size for shape in shapes for size in shape)) is not None

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """What the graph gives, for sizes that the check accepts; by way of its canonical form as well."""
        sizes = self.check(*(size for a in arrays for size in a.shape))
        assert sizes is not None, "this call breaks a guard"
        result = interpret(self.graph, arrays, dict(zip(self.signature.sizes, sizes, strict=True)))[0]
        renamed = canonical(self.graph)
        again = interpret(renamed, arrays, dict(zip(sizes_of(renamed), sizes, strict=True)))[0]
        np.testing.assert_array_equal(again, result, strict=True)
        return result

    def eager(self, *arrays: np.ndarray) -> np.ndarray:
        """What the function gives where no trace is open."""
        return np.asarray(as_array(self.function(*(as_array(a) for a in arrays))))


@pytest.fixture
def program() -> type[Program]:
    return Program


def numbers(shape: Sequence[int], dtype: object = np.float64, seed: int = 0) -> np.ndarray:
    """Small numbers of a dtype, zeros and negative ones among them."""
    rng = np.random.default_rng([seed, *shape])
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        return rng.integers(0 if kind == "u" else -5, 6, shape).astype(dtype)
    return np.round(rng.normal(size=shape) * 4).astype(dtype) / 2


@pytest.fixture(name="numbers")
def numbers_fixture() -> Callable[..., np.ndarray]:
    return numbers


@pytest.fixture
def arrays() -> Callable[..., list[np.ndarray]]:
    return lambda *shapes: [numbers(shape, seed=k) for k, shape in enumerate(shapes)]


__all__ = ["Array", "Program", "numbers"]
