"""Transforms compose in any order: chains of two and three of them, over functions with all kinds of nodes, at sizes
from 0 to 33, interpreted and compiled, with one program for all sizes.

What is compared with is NumPy, in extended precision and with differences for derivatives, and JAX where there is JAX
and differences would take too long. `make test` runs a part that covers all pairs and all triples; `make matrix` runs
all of them.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.testing as npt
import pytest
from chains import (
    PAIRS,
    SIZES,
    TRANSFORMS,
    TRIPLES,
    Chain,
    applied,
    by_differences,
    by_jax,
    evaluations,
    point,
)
from corpus import FUNCTIONS, HARP, JAX, numpy_library

import harp
import harp.numpy as hnp
from harp.trace.graph.node import KINDS, Examples, Node, WithBody, walk

ALL = bool(os.environ.get("HARP_MATRIX"))
NAMES = list(FUNCTIONS)
SINGLES: list[Chain] = [(), *((t,) for t in TRANSFORMS)]
# How often NumPy may compute a function for one number to compare with.
MOST = 2500 if ALL else 150
TOLERANCE = 1e-6
needs_all = pytest.mark.skipif(not ALL, reason="`make matrix` runs all chains")


def distance(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest number; infinite where one is no number."""
    size = np.max(np.abs(expected), initial=0.0)
    return float(np.nan_to_num(np.max(np.abs(found - expected), initial=0.0) / (1 + size), nan=np.inf))


class Comparison:
    """Counts what was compared, and what could not be, and lists what is wrong."""

    def __init__(self) -> None:
        self.compared = self.undecided = 0
        self.wrong: list[str] = []

    def results(self, name: str, chain: Chain, n: int, found: dict[str, np.ndarray]) -> None:
        """Results of one chain at one size, by the way in which they were computed."""
        for way, result in found.items():
            if result.shape != (n,) or result.dtype != np.float64:
                self.wrong.append(f"{way} {chain} of {name} at {n}: {result.dtype}{list(result.shape)}")
                return
        expensive = evaluations(chain, n) > MOST
        if expensive and (JAX is None or not ALL):
            return
        expected = by_jax(chain, name, n) if expensive else by_differences(chain, name, n)
        self.compared += 1
        for way, result in found.items():
            apart = distance(result, expected)
            if apart < TOLERANCE:
                continue
            if not expensive and self._is_kink(chain, name, n, expected):
                self.undecided += 1
            else:
                self.wrong.append(f"{way} {chain} of {name} at {n}: wrong by {apart:.1e}")

    def _is_kink(self, chain: Chain, name: str, n: int, expected: np.ndarray) -> bool:
        """Whether a branch or a maximum changes between the points of a difference, which then depends on the step."""
        return distance(by_differences(chain, name, n, 0.3), expected) > TOLERANCE / 10

    def finish(self) -> None:
        assert not self.wrong, "\n".join(self.wrong)
        assert self.undecided * 20 <= self.compared, f"{self.undecided} of {self.compared} say nothing"


def check(
    cases: Iterable[tuple[str, Chain]], compiled: bool, interpreted: bool = True, sizes: Sequence[int] = SIZES
) -> None:
    """Compare chains at several sizes. What jit is round, is compiled: there it says nothing of the interpreter."""
    comparison = Comparison()
    for name, chain in cases:
        function = applied(HARP, chain, name)
        program = harp.jit(function)
        for n in sizes:
            found = {}
            if interpreted and chain[:1] != ("jit",):
                found["interpreted"] = np.asarray(function(point(n)))
            if compiled:
                found["compiled"] = np.asarray(program(point(n)))
            comparison.results(name, chain, n, found)
        if compiled and program.compilations != 1:
            comparison.wrong.append(f"{chain} of {name} has {program.compilations} programs")
    comparison.finish()


def test_the_functions_have_every_kind_of_node():
    found: set[type[Node]] = set()

    def look(nodes: Iterable[Node]) -> None:
        for node in nodes:
            found.add(type(node))
            if isinstance(node, WithBody):
                look(walk(node.body.outputs))

    for name in NAMES:
        look(harp.trace(applied(HARP, ("vmap",), name), harp.f64["n"]).nodes())
    assert found == set(KINDS) - {Examples}  # which is gone when its batch is made


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_pairs(name):
    check(((name, chain) for chain in (*SINGLES, *PAIRS) if chain[:1] != ("jit",)), compiled=False)


@pytest.mark.slow
@pytest.mark.parametrize("outer", [t for t in TRANSFORMS if t != "jit"])
def test_triples(outer):
    """Each of one function; the next triple takes the next function."""
    cases = [(NAMES[k % len(NAMES)], chain) for k, chain in enumerate(TRIPLES) if chain[0] == outer]
    check(cases, compiled=False, sizes=(2, 0, 1, 5))


@pytest.mark.parametrize("name", NAMES)
def test_jacobians_and_hessians(name):
    """In both modes, and in each order of them, beside differences."""
    n, exact = 3, numpy_library()
    wide, weights = point(n).astype(np.longdouble), np.cos(np.arange(n) * 1.0)
    function, reference = applied(HARP, (), name), applied(exact, (), name)

    def columns(f: Callable) -> np.ndarray:
        return np.stack([exact.jvp(f, (wide,), (e,))[1] for e in np.eye(n, dtype=wide.dtype)], 1).astype(float)

    def close(found: object, expected: np.ndarray) -> None:
        assert distance(np.asarray(found), expected) < TOLERANCE

    modes = (harp.jacfwd, harp.jacrev)
    for transform in modes:
        close(transform(function)(point(n)), columns(reference))
    loss = lambda y: hnp.sum(function(y) * weights)
    second = columns(exact.grad(lambda y: np.sum(reference(y) * weights)))
    for outer, inner in itertools.product(modes, modes):
        close(outer(inner(loss))(point(n)), second)
    close(harp.hessian(loss)(point(n)), second)
    close(harp.hvp(loss, (point(n),), (np.ones(n),)), second.sum(1))


@pytest.mark.parametrize("outer", TRANSFORMS)
def test_compiled(outer):
    """Each pair of one function, and by turns each function."""
    cases = [(NAMES[(3 * k + k // 7) % len(NAMES)], chain) for k, chain in enumerate(PAIRS) if chain[0] == outer]
    check(cases, compiled=True, interpreted=False)


@needs_all
@pytest.mark.parametrize("outer", [t for t in TRANSFORMS if t != "jit"])
@pytest.mark.parametrize("name", NAMES)
def test_all_triples(name, outer):
    check(((name, chain) for chain in TRIPLES if chain[0] == outer), compiled=False)


@needs_all
@pytest.mark.parametrize("outer", TRANSFORMS)
@pytest.mark.parametrize("name", NAMES)
def test_all_compiled(name, outer):
    chains = [c for c in (*SINGLES, *PAIRS, *TRIPLES) if c[:1] == (outer,) or (not c and outer == "jit")]
    check(((name, chain) for chain in chains), compiled=True, interpreted=False)


@pytest.mark.skipif(JAX is None, reason="JAX is not installed")
@pytest.mark.parametrize("name", NAMES)
def test_differences_are_derivatives(name):
    """What harp is compared with, beside JAX."""
    for chain in (*SINGLES, ("grad", "grad"), ("jvp", "grad"), ("vmap", "cond")):
        npt.assert_allclose(by_differences(chain, name, 5), by_jax(chain, name, 5), rtol=1e-8, atol=1e-8)
