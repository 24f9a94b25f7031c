"""What the programs share: float32 arguments, rows of the table, and what NumPy, JAX and harp spell differently."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.costs import case

Array = Any  # of NumPy, JAX or harp
Namespace = ModuleType

both = partial(case.both, weighted=True, tolerance=1e-4)
forward = partial(case.forward, tolerance=1e-4)
normal = partial(case.normal, dtype="float32")
uniform = partial(case.uniform, dtype="float32")
increasing = partial(case.increasing, dtype="float32")
integers = partial(case.integers, dtype="int32")


class _Place:
    """Part of a copy of a NumPy array, changed by the methods of `x.at[...]`."""

    def __init__(self, array: Array, index: Any) -> None:
        self.array, self.index = array, index

    def _changed(self, ufunc: np.ufunc, values: Array) -> Array:
        changed = self.array.copy()
        ufunc.at(changed, self.index, values)  # of one place, all updates count
        return changed

    def set(self, values: Array) -> Array:
        """The values instead."""
        changed = self.array.copy()
        changed[self.index] = values
        return changed

    def add(self, values: Array) -> Array:
        """The values added."""
        indices = self.index if isinstance(self.index, tuple) else (self.index,)
        if any(isinstance(index, np.ndarray) for index in indices):
            return self._changed(np.add, values)
        return self.set(self.array[self.index] + values)

    def multiply(self, values: Array) -> Array:
        """Multiplied by the values, at places that are named once."""
        return self.set(self.array[self.index] * values)

    def max(self, values: Array) -> Array:
        """The greater of both."""
        return self._changed(np.maximum, values)


class _Places:
    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: Any) -> _Place:
        return _Place(self.array, index)


def at(xp: Namespace, x: Array) -> Array:
    """`x.at`, which arrays of NumPy lack."""
    return _Places(x) if xp is np else x.at


def cummax(xp: Namespace, x: Array, axis: int) -> Array:
    """The running maximum."""
    if xp is np:
        return np.maximum.accumulate(x, axis=axis)
    return xp.cummax(x, axis=axis) if hasattr(xp, "cummax") else importlib.import_module("jax").lax.cummax(x, axis=axis)


def bincount(xp: Namespace, places: Array, weights: Array, length: int) -> Array:
    """The sum of the weights of each place."""
    return xp.bincount(places, weights, **{"minlength" if xp is np else "length": length})


def _library(xp: Namespace, name: str) -> Callable[..., Array]:
    return getattr(xp if hasattr(xp, name) else importlib.import_module("jax").nn, name)


def softmax(xp: Namespace, x: Array, axis: int) -> Array:
    """That of the library, where it has one."""
    if xp is not np:
        return _library(xp, "softmax")(x, axis=axis)
    raised = np.exp(x - x.max(axis=axis, keepdims=True))
    return raised / raised.sum(axis=axis, keepdims=True)


def logsumexp(xp: Namespace, x: Array, axis: int) -> Array:
    """That of the library, where it has one."""
    if xp is not np:
        return _library(xp, "logsumexp")(x, axis=axis)
    largest = x.max(axis=axis, keepdims=True)
    return (np.log(np.exp(x - largest).sum(axis=axis, keepdims=True)) + largest).squeeze(axis)
