"""Loops that are split along the pieces of arrays: what is split, and that the numbers are NumPy's at all sizes."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import FUSED, SMALL, WIDE, M, N, check, graph, parameter
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.lower.loopir.effects import value_loads
from harp.lower.loopir.loops import Buffer, For, If, Kernel, Load, LoopKind, Nest, Seq, Space, Store, walk
from harp.lower.loopir.nests import FreshLoops
from harp.lower.rewrite import index_set_splitting as split_pass
from harp.trace.graph.view import pad
from harp.trace.index.polynomial import Loop, Symbol, of
from harp.trace.scalar.dtypes import f32, f64
from harp.trace.scalar.expr import const
from harp.trace.scalar.expr import walk as walk_expr

X = parameter(N, M)


def put(x, key, value):
    made = x.copy()
    made[key] = value
    return made


# By name: a function of two matrices in harp and in NumPy.
PROGRAMS = {
    "concatenate": (lambda x, y: hnp.concatenate([x, y, x * 2], 0), lambda x, y: np.concatenate([x, y, x * 2], 0)),
    "columns": (lambda x, y: hnp.concatenate([x, y, x + 1], 1), lambda x, y: np.concatenate([x, y, x + 1], 1)),
    "stack": (lambda x, y: hnp.stack([x, y, x], 2), lambda x, y: np.stack([x, y, x], 2)),
    "block": (lambda x, y: hnp.block([[x, y], [y, x]]), lambda x, y: np.block([[x, y], [y, x]])),
    "window": (lambda x, y: hnp.concatenate([x, y], 0)[1:-1], lambda x, y: np.concatenate([x, y], 0)[1:-1]),
    "roll": (lambda x, y: hnp.roll(x, 1, 0) + hnp.roll(y, -2, 1), lambda x, y: np.roll(x, 1, 0) + np.roll(y, -2, 1)),
    "stencil": (
        lambda x, y: sum(hnp.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)),
        lambda x, y: sum(np.roll(x, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)),
    ),
    "pad": (lambda x, y: hnp.pad(x, 2, constant_values=5) * 2, lambda x, y: np.pad(x, 2, constant_values=5) * 2),
    "sum of pads": (lambda x, y: hnp.sum(hnp.pad(x, 2) + 1, 1), lambda x, y: np.sum(np.pad(x, 2) + 1, 1)),
    "updates": (
        lambda x, y: x.at[1:3].set(7).at[:, 2:5].add(y[:, 2:5]).at[0].set(1),
        lambda x, y: put(put(put(x, np.s_[1:3], 7), np.s_[:, 2:5], put(x, np.s_[1:3], 7)[:, 2:5] + y[:, 2:5]), 0, 1),
    ),
    "diagonal": (lambda x, y: hnp.tril(x) + hnp.eye(*x.shape), lambda x, y: np.tril(x) + np.eye(*x.shape)),
}
COMPILED = {name: harp.jit(f) for name, (f, _) in PROGRAMS.items()}
GRADIENTS = {name: harp.jit(harp.grad(lambda x, y, f=f: hnp.sum(f(x, y) ** 2))) for name, (f, _) in PROGRAMS.items()}


@given(st.sampled_from(sorted(PROGRAMS)), st.integers(0, 9), st.integers(0, 9))
def test_as_in_numpy(name, rows, columns):
    if name == "updates":
        rows = max(rows, 1)
    x, y = (np.random.default_rng(seed).integers(-9, 9, (rows, columns)).astype("f8") for seed in (1, 2))
    np.testing.assert_array_equal(np.asarray(COMPILED[name](x, y)), PROGRAMS[name][1](x, y))


@given(st.sampled_from(sorted(PROGRAMS)), st.integers(1, 6), st.integers(1, 6))
def test_gradients_are_differences(name, rows, columns):
    x, y = (np.random.default_rng(seed).integers(-9, 9, (rows, columns)).astype("f8") for seed in (1, 2))

    def loss(x):
        return np.sum(PROGRAMS[name][1](x, y) ** 2)

    expected = np.zeros_like(x)  # of a square, central differences are exact
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1
        expected[place] = (loss(x + step) - loss(x - step)) / 2
    np.testing.assert_allclose(np.asarray(GRADIENTS[name](x, y)), expected)


@pytest.mark.parametrize("target", [SMALL, FUSED, WIDE])
def test_padding(target):
    node = pad(X, [2, 1], [1, 3], const(3.0, f32))
    for sizes in [(0, 0), (1, 1), (5, 40), (40, 3)]:
        check(graph(node), sizes, target)


@pytest.mark.parametrize("name", ["concatenate", "columns", "stack", "block"])
def test_no_element_asks_for_its_piece(name):
    x = np.ones((5, 5))
    text = COMPILED[name].lower(x, x).loops
    assert "select" not in text and " else " not in text


@pytest.mark.parametrize("n", [0, 1, 2, 3, 40])
def test_the_steps_of_loops_are_split_too(n):
    """Also where a step has a loop inside, and one that data ends."""

    def rolled(x):
        return harp.fori_loop(0, 3, lambda k, x: hnp.roll(x, 1) + x, x)

    def nested(x):
        return harp.fori_loop(0, 2, lambda k, x: harp.while_loop(lambda x: hnp.max(x) < 50, rolled, x), x)

    x = np.random.default_rng(0).integers(1, 9, n + 1).astype("f8")
    for function in (rolled, nested):
        text = harp.jit(function).lower(x).loops
        assert "repeat" in text and "select" not in text and " else " not in text
    expected = [x]
    while len(expected) < 4 or (expected[-1].max() < 50 or len(expected) % 3 != 1):
        expected.append(np.roll(expected[-1], 1) + expected[-1])
    np.testing.assert_array_equal(np.asarray(harp.jit(rolled)(x)), expected[3])
    np.testing.assert_array_equal(np.asarray(harp.jit(nested)(x)), expected[-1])


def test_sums_in_steps_go_as_far_as_the_mask():
    """Also of products, which are then calls of the library; in parallel loops, lanes share the whole sum."""

    def sums(x):
        k, start = hnp.arange(x.shape[1]), hnp.zeros(x.shape[0])
        return harp.fori_loop(0, x.shape[1], lambda i, c: c + hnp.sum(hnp.where(k < i, x * x[i], 0.0), axis=1), start)

    compiled = harp.jit(sums)
    x = np.random.default_rng(0).normal(size=(50, 50))
    text = compiled.lower(x).loops
    assert "repeat" in text and "select" not in text and "call row dots" in text
    expected = sum(x[:, :i] @ x[i, :i] for i in range(50))
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-10, atol=1e-10)
    each = harp.jit(lambda x: harp.map(lambda i: hnp.sum(hnp.where(hnp.arange(50) < i, x, 0.0)), hnp.arange(50)))
    assert "repeat" not in each.lower(x[0]).loops
    np.testing.assert_allclose(each(x[0]), [x[0, :i].sum() for i in range(50)], rtol=1e-10, atol=1e-10)


def by_python(start, stop, step, c):
    for i in range(start, stop):
        c = step(i, c)
    return c


def test_steps_with_another_order_of_the_cuts_are_cut_as_sizes_say():
    """As soon as the number of the step is larger than the array, its cut is not in it, but the border still is."""

    def diagonals(np, loop, x):
        k = np.arange(x.shape[0] + 1)
        before = lambda c: np.concatenate([c[:1], c[:-1]])
        step = lambda i, c: np.where((k == 0) | (k >= i), i, before(c) + np.concatenate([x[:1], x]))
        return loop(1, 2 * x.shape[0] + 1, step, 0 * k)

    compiled = harp.jit(lambda x: diagonals(hnp, harp.fori_loop, x))
    x = np.arange(9) * 3
    first, other = compiled.lower(x).loops.split("else:")
    assert "select" not in first and other.count("select") == 1 and " if " not in other
    for n in (9, 1, 2, 3):
        np.testing.assert_array_equal(compiled(x[:n]), diagonals(np, by_python, x[:n]))


def test_cuts_of_which_only_the_length_of_the_loop_depends_on_the_step():
    """The first three elements of a loop that begins at the number of the step."""

    def program(loop, put, where, x):
        n = x.shape[0]
        step = lambda i, c: loop(i, n, lambda j, d: put(d, j, where(j - i < 3, 2 * x[j], 3.0)), c)
        return loop(0, n, step, x)

    compiled = harp.jit(lambda x: program(harp.fori_loop, lambda c, j, v: c.at[j].set(v), hnp.where, x))
    for n in (9, 0, 1, 2, 3, 4):
        x = np.arange(n) + 1.0
        np.testing.assert_array_equal(compiled(x), program(by_python, put, np.where, x))


def test_branches_that_have_nothing_to_do():
    """Rows that no mask lets through, within loops over all rows."""

    def program(np, loop, a):
        k = np.arange(a.shape[0])
        band = lambda i: ((k > i - 3) & (k < i + 2))[:, None] & ((k > i) | (k == 0))
        return loop(0, a.shape[0], lambda i, a: np.where(band(i), a + 1, a), a)

    compiled = harp.jit(lambda a: program(hnp, harp.fori_loop, a))
    for n in (5, 0, 1, 2, 3, 9):
        a = np.random.default_rng(n).normal(size=(n, n))
        np.testing.assert_array_equal(compiled(a), program(np, by_python, a))


@pytest.mark.parametrize("examples", [0, 1, 3, 17])
def test_the_steps_of_loops_that_run_in_parallel_are_split(examples):
    """For each example a loop over rows, of which each changes to the right of the diagonal."""

    def one(a):
        k = hnp.arange(a.shape[1])

        def step(i, a):
            below = lambda j, a: a.at[j].set(hnp.where(k > i, a[j] - 0.1 * a[i], a[j]))
            return harp.fori_loop(i + 1, a.shape[0], below, a)

        return harp.fori_loop(0, a.shape[0], step, a)

    x = np.random.default_rng(0).normal(size=(examples, 6, 4 if examples == 3 else 9))
    compiled = harp.jit(lambda x: harp.map(one, x))
    split, whole = compiled.lower(x).loops.split("else:")  # where there are more rows than columns
    assert "for parallel" in split and "select" not in split and "select" in whole
    expected = x.copy()
    for i in range(6):
        for j in range(i + 1, 6):
            expected[:, j, i + 1 :] -= 0.1 * expected[:, i, i + 1 :]
    np.testing.assert_allclose(np.asarray(compiled(x)), expected, rtol=1e-12)


@pytest.mark.parametrize("shape", [(1, 1), (2, 5), (5, 2), (9, 40)])
def test_rows_with_registers_are_split(shape):
    """A row of a ramp has its ends in registers, which depend on where the row is."""
    ramp = harp.jit(lambda x: hnp.pad(x, 2, mode="linear_ramp"))
    x = np.random.default_rng(0).normal(size=shape)
    assert " else " not in ramp.lower(x).loops
    np.testing.assert_allclose(np.asarray(ramp(x)), np.pad(x, 2, mode="linear_ramp"))


@pytest.mark.parametrize("shape", [(2, 2), (3, 5), (40, 3)])
def test_borders_are_set_in_one_pass(shape):
    """Choices by position cost nothing, so that what they choose from is not kept."""

    def framed(x):
        x = x.at[0, :].set(x[1, :])
        x = x.at[-1, :].set(x[-2, :])
        x = x.at[:, 0].set(-x[:, 1])
        return x.at[:, -1].set(-x[:, -2]) * 1.5

    x = np.random.default_rng(0).normal(size=shape)
    expected = x.copy()
    expected[0, :] = expected[1, :]
    expected[-1, :] = expected[-2, :]
    expected[:, 0] = -expected[:, 1]
    expected[:, -1] = -expected[:, -2]
    compiled = harp.jit(framed)
    np.testing.assert_array_equal(np.asarray(compiled(x)), expected * 1.5)
    assert len(compiled.lower(x)._program.kernels) == 1


def test_neighbours_on_a_torus_are_read_in_one_pass():
    """A multiplication is repeated at nine places rather than kept."""

    def weighted(x, w):
        around = sum(hnp.roll(x, shift, axis) for shift in (-1, 1) for axis in (0, 1))
        return hnp.sum(0.16 * (around - 4 * x) * w)

    x, w = np.random.default_rng(0).normal(size=(2, 7, 5))
    gradient = harp.jit(harp.grad(weighted))
    expected = 0.16 * (sum(np.roll(w, shift, axis) for shift in (-1, 1) for axis in (0, 1)) - 4 * w)
    np.testing.assert_allclose(np.asarray(gradient(x, w)), expected)
    assert len(gradient.lower(x, w)._program.kernels) == 1


def steps(xp, put, x, y):
    """The second array needs its neighbours in the same row of the first, so they share the loop over the rows."""
    n = x.shape[0]
    first = put(x, np.s_[: n - 1], x[: n - 1] * 2 + y[1:])
    return first, put(y, np.s_[:, 1:], y[:, 1:] + first[:, :-1])


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_nests_that_share_a_loop_branch_round_their_loops(rows):
    f = harp.jit(lambda x, y: steps(hnp, lambda a, key, v: a.at[key].set(v), x, y))
    x, y = (np.random.default_rng(seed).integers(-9, 9, (rows, 4)).astype("f8") for seed in (1, 2))
    for got, expected in zip(f(x, y), steps(np, put, x, y), strict=True):
        np.testing.assert_array_equal(got, expected)
    text = f.lower(np.ones((5, 4)), np.ones((5, 4))).loops
    assert len(text.split("kernel ")) == 2, "one kernel"
    assert not any("select" in line for line in text.splitlines() if line.strip().startswith("out0["))


def test_branches_stand_round_the_nests_that_share_a_loop():
    n, m = of(Symbol(0, 0, "n")), of(Symbol(0, 1, "m"))
    i, j, k = Loop(0, n), Loop(1, m), Loop(2, m)
    x, y, z = (Buffer(name, f64, (n, m), Space.OUTPUT) for name in "xyz")
    below = Load(x, (of(i) + 1, of(j)), (n - 2 - of(i),), const(0.0, f64))
    first = Nest((For(j),), Store(y, (of(i), of(j)), below))
    second = Nest((For(k),), Store(z, (of(i), of(k)), Load(x, (of(i), of(k)))))
    shared = Nest((For(i),), Seq((first, second)))
    context = split_pass._Context(FreshLoops(Kernel("map", shared)), frozenset(), split_pass._Room(100))
    found = split_pass._branched(context, shared, inside=False)
    assert isinstance(found, Nest) and isinstance(found.body, Seq)
    branch, other = found.body.parts
    assert isinstance(branch, If) and branch.conditions == (n - 2 - of(i),) and other is second
    (value,) = [s.value for s in walk(branch.yes) if isinstance(s, Store)]
    assert isinstance(value, Load) and not value.conditions
    assert not any(isinstance(s.value, Load) for s in walk(branch.no) if isinstance(s, Store))


def test_cost_does_not_depend_on_the_number_of_pieces():
    x = np.ones((3, 4))
    for count in (2, 16, 64):
        joined = harp.jit(lambda x, count=count: hnp.concatenate([x * k for k in range(count)]))
        stages = joined.lower(x)
        cost = stages.cost()
        assert repr(cost.reads) == repr(cost.writes) == f"{count}*n*m"
        assert "select" not in stages.loops
        np.testing.assert_array_equal(joined(x), np.concatenate([x * k for k in range(count)]))


def test_other_orders_keep_the_loop():
    """Rolled by one in both directions, an axis of one element has no middle."""
    rolled = harp.jit(lambda x: hnp.roll(x, 1) + hnp.roll(x, -1)).lower(np.ones(5))
    (kernel,) = rolled._program.kernels
    (branch,) = [s for s in walk(kernel.body) if isinstance(s, If) and s.no is not None]
    inside = [s for s in walk(branch.yes) if isinstance(s, Store)]
    assert len(inside) == 3
    assert not any(map(asks, inside))
    assert any(asks(s) for s in walk(branch.no) if isinstance(s, Store))


@pytest.mark.parametrize("shift", [1, -2, 7])
def test_empty_axes_are_left_alone(shift):
    """A shift modulo a size of 0 is the shift itself: more elements than there are."""
    rolled = harp.trace(lambda x: hnp.roll(x * 2, shift, 0), harp.f32["n", "m"])
    for sizes in [(0, 3), (1, 3), (9, 2)]:
        check(rolled, sizes)


def asks(s: Store) -> bool:
    return any(isinstance(e, Load) and e.conditions for e in walk_expr((s.value,)))


def test_too_many_boxes_leave_the_middle_whole():
    """Shifts in all directions by up to ten: 20 cuts along each axis."""

    def f(x):
        return sum(hnp.pad(x, 10)[10 + i : 10 + i + x.shape[0], 10 - i : 10 - i + x.shape[1]] for i in range(-10, 11))

    x = np.random.default_rng(0).integers(-9, 9, (40, 33)).astype("f8")
    padded = np.pad(x, 10)
    expected = sum(padded[10 + i : 50 + i, 10 - i : 43 - i] for i in range(-10, 11))
    compiled = harp.jit(f)
    np.testing.assert_array_equal(compiled(x), expected)
    (kernel,) = compiled.lower(x)._program.kernels
    stores = [s for s in walk(kernel.body) if isinstance(s, Store)]
    assert len(stores) <= 10 and not all(map(asks, stores))


@pytest.mark.slow
def test_functions_are_not_copied_for_each_of_many_pieces():
    """C compilers take a tenth of a second for a loop with a sine: a hundred of them would be too many."""

    def f(xp, x):
        return xp.sin(xp.concatenate([x[:, k % 5 :] * k for k in range(100)], axis=1))

    x = np.random.default_rng(0).standard_normal((3, 7))
    compiled = harp.jit(lambda x: f(hnp, x))
    np.testing.assert_allclose(compiled(x), f(np, x), rtol=1e-12)
    stores = [s for kernel in compiled.lower(x)._program.kernels for s in walk(kernel.body) if isinstance(s, Store)]
    assert len(stores) <= 10


def test_what_stays_the_same_is_not_stored():
    """Of an array that is donated, only the part that changes is touched."""
    update = harp.jit(lambda x: x.at[2:4].set(1.0), donate_argnums=0)
    (kernel,) = update.lower(np.ones((9, 3)))._program.kernels
    branch = next((s for s in walk(kernel.body) if isinstance(s, If) and s.no is not None), None)
    stores = [s for s in walk(kernel.body if branch is None else branch.yes) if isinstance(s, Store)]
    assert len(stores) == 1 and not list(value_loads(stores[0].value))
    x = hnp.asarray(np.arange(27.0).reshape(9, 3))
    expected = np.arange(27.0).reshape(9, 3)
    expected[2:4] = 1
    np.testing.assert_array_equal(update(x), expected)


@pytest.mark.slow
@pytest.mark.parametrize("reduce", ["sum", "max"])
@pytest.mark.parametrize("steps", [(4, 2), (3, 2), (2, 4), (8, 4, 2)])
def test_reductions_over_updates_with_steps(reduce, steps):
    """How far a loop inside runs depends on the outer one, which then cannot go inside of it."""

    def updated(xp, put, x):
        for step in steps:
            x = put(x, np.s_[..., ::step], -2 * x[..., ::step])
        return getattr(xp, reduce)(x, axis=0), getattr(xp, reduce)(x)

    compiled = harp.jit(lambda x: updated(hnp, lambda a, key, v: a.at[key].set(v), x))
    for shape in ((1,), (5,), (9,), (17,), (4, 9), (9, 4)):
        x = np.random.default_rng(0).normal(size=shape)
        for found, expected in zip(compiled(x), updated(np, put, x), strict=True):
            np.testing.assert_allclose(np.asarray(found), expected)


def test_a_row_is_stored_to_with_its_ends():
    """Ends of rows in loops of their own would bring every row into the cache again."""

    def step(xp, x, y):
        inner = y[1:-1, 1:-1, 1:-1] * 2 + x[1:-1, 1:-1, 1:-1]
        return x.at[1:-1, 1:-1, 1:-1].set(inner) if xp is hnp else placed(x, inner)

    def placed(x, inner):
        result = x.copy()
        result[1:-1, 1:-1, 1:-1] = inner
        return result

    compiled = harp.jit(lambda x, y: step(hnp, x, y))
    rng = np.random.default_rng(0)
    for shape in ((5, 6, 7), (3, 3, 3), (2, 5, 9), (1, 1, 1), (4, 2, 3), (0, 3, 3)):
        x, y = rng.standard_normal((2, *shape))
        np.testing.assert_array_equal(np.asarray(compiled(x, y)), step(np, x, y))
    (kernel,) = compiled.lower(x, y)._program.kernels
    parallel = [h for s in walk(kernel.body) if isinstance(s, Nest) for h in s.heads if h.kind is LoopKind.PARALLEL]
    inside = [s for s in walk(kernel.body) if isinstance(s, Nest) and len(s.heads) == 1 and isinstance(s.body, Seq)]
    assert inside and len(parallel) <= 6, "a loop over the rows for both ends and what is between them"
