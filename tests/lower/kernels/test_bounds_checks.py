"""Checked programs: an index outside its array is reported, and memory is not touched, for reads, stores and rows."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from graphs import FUSED, N, elementwise, fold, graph, parameter

import harp
import harp.numpy as hnp
from harp.errors import VerificationError
from harp.lower.kernels.bounds_checks import check_addresses, verify_checked
from harp.lower.loopir.loops import Buffer, If, Kernel, Load, Nest, Row, Space, Store, walk
from harp.lower.pipeline import lower
from harp.lower.schedule.build import Built
from harp.lower.verify.interpreter import execute
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Gather, Node, Put, Scatter, View, positions
from harp.trace.graph.row_functions import RowOp
from harp.trace.index.polynomial import Loop, Symbol, of
from harp.trace.scalar.dtypes import f32, i64
from harp.trace.scalar.expr import apply, const
from harp.trace.scalar.ops import Op, Reduce
from harp.trace.sizes.signature import canonical

(ROW,) = positions((N,))
HERE = ("user.py", 12)


@pytest.fixture(autouse=True)
def unfinished(monkeypatch):
    """Results may be left unfinished: what would be stored to them lies outside."""
    monkeypatch.setattr("harp.lower.verify.interpreter._all_written", lambda buffer, written: None)


def checked(*outputs: Node, site: Node | None = None):
    made = graph(*outputs)
    sites = {site: HERE} if site is not None else {}
    return lower(Graph(made.inputs, made.outputs, sites), FUSED, check=True).program


def run(program, *arrays: np.ndarray, n: int) -> tuple[list[np.ndarray], tuple[int, int, int]]:
    """The results and the fault, from the machine that itself raises where an access is outside."""
    *results, fault = execute(program, arrays, dict.fromkeys(program.sizes, n))
    return results, tuple(fault.tolist())


@pytest.mark.parametrize(
    ("index", "wrong"),
    [(ROW + 1, 4), (ROW - 1, -1), (ROW * 2, 4), (N - ROW, 4), (N - 2 - ROW, -1)],
)
def test_a_view_that_leaves_its_source(index, wrong):
    x = parameter(N)
    view = View(x, (N,), (index,))
    program = checked(elementwise(lambda a: apply(Op.EXP, a), view), site=view)
    _, (number, position, size) = run(program, np.ones(4, np.float32), n=4)
    access = program.accesses[number - 1]
    assert (position, size) == (wrong, 4)
    assert (access.array, access.axis, access.index, access.site, access.stores) == ("x", 0, (index,), HERE, False)


def test_the_first_fault_is_reported_and_what_is_inside_is_computed():
    x = parameter(N)
    (result,), fault = run(checked(View(x, (N,), (ROW * 2 - 2,))), np.arange(6, dtype=np.float32), n=6)
    assert fault == (1, -2, 6)
    np.testing.assert_array_equal(result[1:4], [0, 2, 4])


def test_conditions_are_respected():
    x = parameter(N)
    view = View(x, (N,), (ROW + 1,), (N - 2 - ROW,), const(9.0, f32))
    program = checked(view)
    assert not program.accesses or run(program, np.arange(3, dtype=np.float32), n=3)[1] == (0, 0, 0)
    short = View(x, (N,), (ROW + 2,), (N - 2 - ROW,), const(9.0, f32))  # one position too many
    (result,), fault = run(checked(short), np.arange(3, dtype=np.float32), n=3)
    np.testing.assert_array_equal(result, [2, 9, 9])
    assert fault[1:] == (3, 3)


def test_inside_a_reduction():
    x = parameter(N)
    (result,), fault = run(checked(fold(Reduce.SUM, View(x, (N,), (ROW + 1,)), 0)), np.arange(5, dtype=np.float32), n=5)
    assert fault[1:] == (5, 5) and result == 10


def test_an_index_array_is_read_inside():
    x, i = parameter(N), parameter(N, dtype=i64, name="i")
    program = checked(Gather(x, (View(i, (N,), (ROW + 1,)),), const(0.0, f32)))
    (result,), (number, position, size) = run(program, np.arange(3, dtype=np.float32), np.array([2, 1, 0]), n=3)
    assert program.accesses[number - 1].array == "i" and (position, size) == (3, 3)
    np.testing.assert_array_equal(result[:2], [1, 0])


@pytest.mark.parametrize("kind", [Put.SET, Put.ADD])
def test_nothing_is_stored_outside(kind):
    """The nearest element of an axis without elements: a guard keeps that from a program."""
    base, i, updates = parameter(N), parameter(N + 2, dtype=i64, name="i"), parameter(N + 2, name="u")
    program = checked(Scatter(base, (i,), updates, kind, True))
    (result,), (number, _, size) = run(program, np.ones(0, np.float32), np.zeros(2, int), np.ones(2, np.float32), n=0)
    assert result.size == 0 and size == 0
    assert program.accesses[number - 1].stores or kind is Put.ADD  # which reads first
    (result,), fault = run(program, np.ones(1, np.float32), np.zeros(3, int), np.ones(3, np.float32), n=1)
    assert fault == (0, 0, 0) and result == [1 if kind is Put.SET else 4]


def test_rows_are_inside_all_arrays():
    short = Symbol(0, 1, "m")
    source, target = Buffer("in0", f32, (of(short),), Space.INPUT), Buffer("out0", f32, (N,), Space.OUTPUT)
    lane = Loop(0, N)
    row = Row(RowOp.SORT, False, target, (of(lane),), lane, (source,))
    built = check_addresses(Built((Kernel("sort", row),), (source,), (target,), ()), graph(parameter(N)))
    (access,) = built.accesses
    assert access.array == "x" and any(isinstance(part, If) for part in walk(built.kernels[1].body))


def test_what_is_inside_by_its_form_is_not_compared():
    x = parameter(N, N)
    program = checked(elementwise(lambda a: apply(Op.EXP, a), x), fold(Reduce.SUM, x, 0))
    assert not program.accesses and len(program.outputs) == 2


FUNCTIONS = [
    lambda x, i: hnp.pad(x, 1)[::-1].T,
    lambda x, i: (x[1:] - x[:-1]) @ hnp.reshape(x, (x.shape[1], -1)),
    lambda x, i: hnp.pad(hnp.take(x[::-1], i, axis=0, mode="fill", fill_value=7.0), 1, constant_values=2.0),
    lambda x, i: x.at[i].add(x[i]),
    lambda x, i: hnp.sort(hnp.cumsum(x[:, ::2], axis=0), axis=0),
    lambda x, i: hnp.sum(hnp.pad(x, 2)[1:]),
    lambda x, i: harp.grad(lambda x: hnp.sum(hnp.tanh(x[i] @ hnp.pad(x[:, 1:], ((0, 0), (1, 0))).T)))(x),
]


@pytest.mark.parametrize("f", FUNCTIONS)
def test_every_access_is_proved_inside_by_the_tests_round_it(f):
    g = canonical(harp.trace(f, np.ones((4, 3), np.float32), np.zeros(2, int)))
    verify_checked(lower(g, FUSED, check=True).built.kernels)


def test_a_test_that_is_missing_is_found():
    x = parameter(N)
    kernels = lower(graph(View(x, (N,), (ROW + 1,))), FUSED, check=True).built.kernels
    verify_checked(kernels)
    (store,) = (s for s in walk(kernels[1].body) if isinstance(s, Store) and isinstance(s.value, Load))
    (loops,) = (s for s in walk(kernels[1].body) if isinstance(s, Nest))
    with pytest.raises(VerificationError, match="not checked"):
        verify_checked([Kernel("copy", attrs.evolve(loops, body=store))])
