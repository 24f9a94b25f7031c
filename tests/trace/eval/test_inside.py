"""Which views, gathers and scatters leave the array that they read or change, and that the interpreter asks."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harp.config import settings
from harp.errors import AddressError
from harp.trace.eval.inside import outside
from harp.trace.eval.interpret import interpret
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Gather, Put, Scatter, View, fresh_input
from harp.trace.index.division import floordiv
from harp.trace.index.polynomial import Loop, Symbol, as_index, evaluate, of
from harp.trace.scalar.dtypes import f64, i64
from harp.trace.scalar.expr import const

SYMBOL = Symbol(0, 0, "n")
N = of(SYMBOL)
ROW, J = of(Loop(0, N)), of(Loop(1, as_index(3)))
INDICES = st.builds(
    lambda a, b, c, d, e: floordiv(a * ROW + b * J + c + d * N, e),
    st.integers(-2, 2), st.integers(-2, 2), st.integers(-3, 3), st.integers(0, 1), st.integers(1, 3),
)  # fmt: skip


def truth(node: View, n: int) -> bool:
    """Whether a position leaves the source, one after the other."""
    for i, j in product(range(n), range(3)):
        values = {SYMBOL: n, Loop(0, N): i, Loop(1, as_index(3)): j}
        if all(evaluate(c, values.__getitem__) >= 0 for c in node.conditions):
            for p, extent in zip(node.index, node.src.shape, strict=True):
                if not 0 <= evaluate(p, values.__getitem__) < evaluate(extent, values.__getitem__):
                    return True
    return False


@given(st.lists(INDICES, min_size=2, max_size=2), st.lists(INDICES, max_size=2), st.integers(0, 5))
def test_all_positions_are_looked_at(index, conditions, n):
    source = fresh_input("x", (N, as_index(3)), f64)
    fill = const(0.0, f64) if conditions else None
    node = View(source, (N, as_index(3)), tuple(index), tuple(conditions), fill)
    found = outside(node, {SYMBOL: n})
    assert (found is not None) == truth(node, n)
    if found is not None:
        assert found.size == (n, 3)[found.axis] and not 0 <= found.position < found.size


@pytest.mark.parametrize(("elements", "count", "leaves"), [(0, 2, True), (0, 0, False), (3, 2, False)])
def test_the_nearest_element_of_no_elements(elements, count, leaves):
    x, m = fresh_input("x", (N,), f64), Symbol(0, 1, "m")
    places, updates = fresh_input("i", (of(m),), i64), fresh_input("u", (of(m),), f64)
    sizes = {SYMBOL: elements, m: count}
    assert (outside(Gather(x, (places,)), sizes) is not None) is leaves
    assert (outside(Scatter(x, (places,), updates, Put.ADD, True), sizes) is not None) is leaves
    assert outside(Gather(x, (places,), const(0.0, f64)), sizes) is None
    assert outside(Scatter(x, (places,), updates, Put.ADD), sizes) is None


@pytest.mark.parametrize(
    "index", [ROW + 1, 2 * ROW, floordiv(ROW * ROW, 1)]
)  # by strides, and one position after the other
def test_the_interpreter_asks_when_it_is_told_to(monkeypatch, index):
    x = fresh_input("x", (N,), f64)
    view = View(x, (N,), (index,))
    graph = Graph((x,), (view,), {view: ("user.py", 7)})
    memory = np.arange(20.0)
    with pytest.raises(AddressError, match=r"x is read at(.|\n)*user.py:7$"):
        interpret(graph, [memory[:4]], {SYMBOL: 4}, check=True)
    for name, level in (("verify", 3), ("check", True)):
        with monkeypatch.context() as patch, pytest.raises(AddressError):
            patch.setattr(settings, name, level)
            interpret(graph, [memory[:4]], {SYMBOL: 4})
