"""What the rows share: control flow of harp, JAX and plain Python under one name, and rows for gradients."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.harness import Goal, leaves, tree_map
from benchmarks.workload import Arguments, Comparison, Function

Array = Any  # of NumPy, JAX or harp
Namespace = ModuleType
GOAL = Goal(1.3)


def library(xp: Namespace) -> Any:
    """Where `grad`, `vmap` and the like of an array namespace are."""
    return importlib.import_module(xp.__name__.partition(".")[0])


def control(xp: Namespace) -> Any:
    """Where `scan`, `fori_loop` and `while_loop` are. NumPy has loops of Python, which only check results."""
    found = library(xp)
    return {"jax": lambda: found.lax, "numpy": lambda: PLAIN}.get(found.__name__, lambda: found)()


def _scan(f: Function, carry: Any, xs: Any, length: int | None = None, reverse: bool = False) -> tuple[Any, Any]:
    count = len(leaves(xs)[0]) if length is None else length
    ys = []
    for k in reversed(range(count)) if reverse else range(count):
        carry, y = f(carry, None if xs is None else tree_map(lambda a, k=k: a[k], xs))
        ys.append(y)
    return carry, _stacked(ys[::-1] if reverse else ys)


def _stacked(ys: list[Any]) -> Any:
    if isinstance(ys[0], tuple):
        return tuple(_stacked(list(parts)) for parts in zip(*ys, strict=True))
    return None if ys[0] is None else np.stack(ys)


def _fori_loop(start: int, stop: int, f: Function, carry: Any) -> Any:
    for k in range(start, stop):
        carry = f(k, carry)
    return carry


def _while_loop(test: Function, f: Function, carry: Any) -> Any:
    while test(carry):
        carry = f(carry)
    return carry


PLAIN = SimpleNamespace(scan=_scan, fori_loop=_fori_loop, while_loop=_while_loop)


def loss(xp: Namespace, tree: Any) -> Array:
    """How far all numbers are from 1, squared and added: squares of orthonormal rows would say nothing."""
    parts = tree if isinstance(tree, tuple) else (tree,)
    return sum(xp.sum((part - 1) ** 2) for part in parts)


def forward(
    name: str,
    arguments: Callable[..., Arguments],
    sizes: tuple[int, ...],
    small: tuple[int, ...],
    function: Function,
    own: Mapping[str, Function] | None = None,
    **more: Any,
) -> Comparison:
    """The program, beside JAX and what `own` has for numba. NumPy says what is right, and is not timed."""
    more = {"goal": GOAL, "peers": ("jax", "numba"), **more}
    return Comparison(name, arguments=arguments, sizes=sizes, small=small, function=function, own=own or {}, **more)


def gradient(
    name: str,
    arguments: Callable[..., Arguments],
    sizes: tuple[int, ...],
    small: tuple[int, ...],
    function: Function,
    argnums: tuple[int, ...] = (0,),
    **more: Any,
) -> Comparison:
    """The gradient of the `loss` of a program's results, beside JAX."""

    def slope(xp: Namespace, *given: Any) -> Any:
        return library(xp).grad(lambda *x: loss(xp, function(xp, *x)), argnums)(*given)

    more = {"goal": GOAL, "peers": ("jax",), "truth": "jax", **more}
    return Comparison(f"{name}-gradient", arguments=arguments, sizes=sizes, small=small, function=slope, **more)


def both(
    name: str,
    arguments: Callable[..., Arguments],
    sizes: tuple[int, ...],
    small: tuple[int, ...],
    function: Function,
    own: Mapping[str, Function] | None = None,
    argnums: tuple[int, ...] = (0,),
    **more: Any,
) -> list[Comparison]:
    """The program, and the gradient."""
    return [
        forward(name, arguments, sizes, small, function, own, **more),
        gradient(name, arguments, sizes, small, function, argnums, **more),
    ]
