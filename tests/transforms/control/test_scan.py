"""Loops of a known number of iterations, beside the same loops in Python: values, derivatives, batches, one program."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, CarryError, ConcretizationError, IndexOutOfRangeError, ShapeError

RNG = np.random.default_rng(0)
A = RNG.normal(size=(3, 3)) * 0.5
SIZES = (5, 0, 1, 2, 33)


def close(found, expected, **tolerance):
    tolerance = {"rtol": 1e-10, "atol": 1e-12, **tolerance}
    found, expected = leaves(found), leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        npt.assert_allclose(a, b, **tolerance)


def leaves(tree) -> list[np.ndarray]:
    if isinstance(tree, dict):
        tree = [tree[key] for key in sorted(tree)]
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [] if tree is None else [np.asarray(tree)]


def unrolled(step, init, xs, reverse=False):
    """What `scan` does, in Python."""
    carry, ys = init, [None] * len(xs)
    for k in reversed(range(len(xs))) if reverse else range(len(xs)):
        carry, ys[k] = step(carry, xs[k])
    return carry, hnp.stack(ys) if len(xs) else np.zeros((0, 3))


def step(carry, x):
    """A step with a product, a reduction, a view, and a value that is the same in all of them."""
    after = hnp.tanh(A @ carry + x) + hnp.max(carry) * hnp.sum(hnp.exp(A)) * 0.05
    return after, after[::-1] * x


@pytest.mark.parametrize("reverse", [False, True])
def test_as_in_python_with_one_program(reverse):
    compiled = harp.jit(lambda init, xs: harp.scan(step, init, xs, reverse=reverse))
    for count in SIZES:
        init, xs = RNG.normal(size=3), RNG.normal(size=(count, 3))
        expected = unrolled(step, init, xs, reverse)
        close(compiled(init, xs), expected)
        close(harp.scan(step, init, xs, reverse=reverse), expected)
    assert compiled.compilations == 1


def loss(scan):
    def total(init, xs):
        last, ys = scan(step, init, xs)
        return hnp.sum(last**2) + hnp.sum(hnp.sin(ys))

    return total


TRANSFORMS = {
    "grad": lambda f: harp.grad(f, (0, 1)),
    "value_and_grad": lambda f: harp.value_and_grad(f, (0, 1)),
    "jvp": lambda f: lambda *a: harp.jvp(f, a, tuple(0.5 + x for x in a)),
    "jacfwd": lambda f: harp.jacfwd(f, (0, 1)),
    "hessian": lambda f: harp.hessian(f, (0, 1)),
    "reverse over reverse": lambda f: harp.grad(lambda *a: sum(hnp.sum(g**2) for g in harp.grad(f, (0, 1))(*a))),
    "forward over reverse": lambda f: lambda *a: harp.jvp(harp.grad(f), a, a),
    "reverse over forward": lambda f: harp.grad(lambda *a: harp.jvp(f, a, a)[1]),
    "vmap": lambda f: lambda init, xs: harp.vmap(f, (0, None))(hnp.stack([init, init * 2]), xs),
    "vmap of xs": lambda f: lambda init, xs: harp.vmap(f, (None, 0))(init, hnp.stack([xs, xs * 2])),
    "vmap of grad": lambda f: lambda init, xs: harp.vmap(harp.grad(f), (0, None))(hnp.stack([init, init * 2]), xs),
    "grad of vmap": lambda f: harp.grad(
        lambda init, xs: hnp.sum(harp.vmap(f, (None, 0))(init, hnp.stack([xs, xs * 2])) ** 2)
    ),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_a_scan(name):
    """Each as that of the loop that Python has unrolled; compiled, once for all lengths."""
    transform = TRANSFORMS[name]
    compiled = harp.jit(transform(loss(harp.scan)))
    for count in (3, 0, 1, 2, 7):
        init, xs = RNG.normal(size=3), RNG.normal(size=(count, 3))
        if count == 0:
            compiled(init, xs)  # there is nothing to stack in Python
            continue
        expected = transform(loss(unrolled))(init, xs)
        close(transform(loss(harp.scan))(init, xs), expected, rtol=1e-8, atol=1e-9)
        close(compiled(init, xs), expected, rtol=1e-8, atol=1e-9)
    assert compiled.compilations == 1


def test_gradients_against_differences():
    init, xs = RNG.normal(size=3), RNG.normal(size=(6, 3))
    by_init, by_xs = harp.jit(harp.grad(loss(harp.scan), (0, 1)))(init, xs)
    for at, a, g in ((0, init, by_init), (1, xs, by_xs)):
        d = RNG.normal(size=a.shape)
        ends = [
            loss(harp.scan)(*(b + h * d if k == at else b for k, b in enumerate((init, xs)))) for h in (1e-6, -1e-6)
        ]
        npt.assert_allclose(np.sum(np.asarray(g) * d), (float(ends[0]) - float(ends[1])) / 2e-6, rtol=1e-6)


def test_scans_in_scans():
    def inner(x):
        return harp.scan(lambda c, y: (c * y + hnp.sin(c), c), x, hnp.arange(1.0, 4.0))[0]

    def outer(xs):
        return harp.scan(lambda c, x: (c + inner(x) * c, None), 1.0, xs)[0]

    def plain(xs):
        total = 1.0
        for k in range(4):
            c = xs[k]
            for y in (1.0, 2.0, 3.0):
                c = c * y + hnp.sin(c)
            total = total + c * total
        return total

    xs = RNG.normal(size=4) * 0.3
    for transform in (lambda f: f, harp.grad, harp.hessian, lambda f: lambda x: harp.vmap(f)(hnp.stack([x, x + 1]))):
        close(harp.jit(transform(outer))(xs), transform(plain)(xs), rtol=1e-9)


@given(st.integers(0, 9), st.integers(-3, 9), st.sampled_from(["f4", "f8"]))
def test_fori_loop(lower, upper, dtype):
    def run(x):
        return harp.fori_loop(lower, upper, lambda i, c: c * 0.5 + i, x)

    expected = np.ones(2, dtype)
    for i in range(lower, upper):
        expected = (expected * expected.dtype.type(0.5) + i).astype(dtype)
    npt.assert_allclose(np.asarray(run(np.ones(2, dtype))), expected, rtol=1e-6)


def test_bounds_may_be_sizes_and_data():
    by_size = harp.jit(lambda x: harp.fori_loop(1, x.shape[0], lambda i, c: c + x[i], x[0]))
    by_data = harp.jit(lambda x, n: harp.fori_loop(0, n, lambda i, c: c + x[i], 0.0))
    for count in (3, 1, 8):
        x = RNG.normal(size=count)
        npt.assert_allclose(np.asarray(by_size(x)), x.sum(), rtol=1e-12)
        for n in (0, 1, count):
            npt.assert_allclose(np.asarray(by_data(x, n)), x[:n].sum(), rtol=1e-12, atol=1e-15)
    assert by_size.compilations <= 2 and by_data.compilations == 1


def test_triangular_loops_update_in_place():
    """A Cholesky factorisation as three loops, the inner ones as long as the outer counter says."""

    def cholesky(a):
        def column(j, low):
            def add(k, s):
                return s + low[:, k] * low[j, k]

            s = a[:, j] - harp.fori_loop(0, j, add, hnp.zeros(a.shape[0]))
            below = hnp.arange(a.shape[0]) >= j
            return low.at[:, j].set(hnp.where(below, s / hnp.sqrt(s[j]), 0.0))

        return harp.fori_loop(0, a.shape[0], column, hnp.zeros_like(a))

    compiled = harp.jit(cholesky)
    for n in (1, 2, 5, 20):
        m = RNG.normal(size=(n, n))
        m = m @ m.T + np.eye(n)
        npt.assert_allclose(np.asarray(compiled(m)), np.linalg.cholesky(m), rtol=1e-9, atol=1e-12)


def test_what_is_carried_keeps_its_type():
    last, ys = harp.scan(lambda c, x: (c + x, c), 0, np.ones(3, "f4"))
    assert last.dtype == np.float32 and ys.dtype == np.float32, "Python's 0 takes the dtype that the body gives it"
    tree = harp.scan(lambda c, _: ({"n": c["n"] + 1, "x": (c["x"][0] * 2,)}, c["n"]), {"n": 0, "x": (1.0,)}, length=3)
    close(tree, ({"n": 3, "x": (8.0,)}, np.arange(3)))
    swapped = harp.jit(lambda: harp.fori_loop(0, 5, lambda i, c: (c[1], c[0] + c[1]), (0, 1)))()
    close(swapped, (5, 8))


def test_many_numbers_are_carried_round():
    """Each takes the dtype of the next one in a round of its own."""

    def run(x):
        return harp.fori_loop(0, 6, lambda i, c: (*c[1:], c[-1] + x), (1, 2, 3, 4, 5))

    expected = [1.0, 2.0, 3.0, 4.0, 5.0]
    for _ in range(6):
        expected = [*expected[1:], expected[-1] + 0.5]
    for found in (run(np.float32(0.5)), harp.jit(run)(np.float32(0.5))):
        assert all(leaf.dtype == np.float32 for leaf in found)
        npt.assert_allclose(leaves(found), expected)


UPDATES = {
    "of itself": lambda i, c: c.at[i].set(c[i] * 2),
    "of a constant": lambda i, c: c.at[i].set(3.0),
    "of the one before": lambda i, c: c.at[i].set(c[i] + c[i - 1]),
    "added": lambda i, c: c.at[i].add(c[0]),
    "of two": lambda i, c: c.at[i].set(c[i] * 2).at[0].add(c[i]),
}


def in_python(name, x):
    x = x.copy()
    for i in range(len(x)):
        if name == "of two":
            old = x[i]
            x[i] *= 2
            x[0] += old
        else:
            x[i] = {
                "of itself": x[i] * 2,
                "of a constant": 3.0,
                "of the one before": x[i] + x[i - 1],
                "added": x[i] + x[0],
            }[name]
    return x


@pytest.mark.parametrize("name", UPDATES)
def test_updates_are_in_place(name):
    """The loop has no loop in it: a step changes what it changes, and copies nothing."""
    compiled = harp.jit(lambda x: harp.fori_loop(0, x.shape[0], UPDATES[name], x))
    for count in (1, 2, 9):
        x = RNG.normal(size=count)
        npt.assert_allclose(np.asarray(compiled(x)), in_python(name, x), rtol=1e-12)
    if name == "of two":  # at a number, which is a choice for each element
        return
    loops = compiled.lower(np.ones(9)).loops
    if name in ("of a constant", "of itself"):  # all at once
        assert "repeat i" not in loops
    else:
        assert "for" not in loops[loops.index("repeat i") : loops.index("\ncall ")], loops


def subtract_rows(i, c):
    return c.at[i].set(c[i] - c[i - 1] * c[i, 0])


def add_to_column(i, c):
    return c.at[:, i].add(c @ c[i])


@pytest.mark.parametrize("step", [subtract_rows, add_to_column])
def test_rows_and_columns_change_in_place(step):
    """A step copies no matrix, though it reads other rows than the one that it changes."""
    compiled = harp.jit(lambda x: harp.fori_loop(0, x.shape[0], step, x))
    for count in (1, 2, 40):
        x = RNG.normal(size=(count, count)) / count
        expected = x.copy()
        for i in range(count):
            if step is subtract_rows:
                expected[i] = expected[i] - expected[i - 1] * expected[i, 0]
            else:
                expected[:, i] += expected @ expected[i]
        npt.assert_allclose(np.asarray(compiled(x)), expected, rtol=1e-9, atol=1e-12)
    lowered = compiled.lower(np.ones((100, 100)))
    assert lowered.memory().scratch < 8 * 100 * 100
    assert lowered.cost().bytes_written.degree == 2, lowered.loops  # n steps, and a row or column in each


@pytest.mark.parametrize("place", [-7, -3, 0, 2, 3])
def test_a_column_that_data_names(place):
    """Counted from the end, and dropped outside, as for rows."""
    x, v, cut = RNG.normal(size=(2, 4, 3)), RNG.normal(size=(2, 4)), slice(None)
    expected = x.copy()
    if -3 <= place < 3:
        expected[:, :, place] += v
    added = harp.jit(lambda x, v, i: x.at[:, :, i].add(v))
    npt.assert_allclose(np.asarray(added(x, v, place)), expected)
    slope = harp.jit(harp.grad(lambda v, i: hnp.sum(x * hnp.asarray(x).at[cut, cut, i].set(v))))
    npt.assert_allclose(np.asarray(slope(v, place)), x[:, :, place] if -3 <= place < 3 else np.zeros_like(v))


@pytest.mark.usefixtures("processor")  # the text of its programs
def test_the_number_of_a_step_is_looked_up_before_its_loops():
    step = harp.jit(lambda x: harp.fori_loop(0, x.shape[0], lambda k, d: hnp.minimum(d, d[:, k, None] + d[k]), x))
    x = RNG.uniform(1, 9, (12, 12))
    expected = x.copy()
    for k in range(12):
        expected = np.minimum(expected, expected[:, k, None] + expected[k])
    npt.assert_allclose(np.asarray(step(x)), expected)
    lines = step.lower(x).source.splitlines()
    assert not any("harp_indirect(" in line and "const int64_t place" not in line for line in lines)


def test_the_gradient_of_reading_costs_what_is_read():
    compiled = harp.jit(harp.grad(lambda x: harp.fori_loop(0, x.shape[0], lambda i, c: c + hnp.sin(x[i]), 0.0)))
    x = RNG.normal(size=7)
    npt.assert_allclose(np.asarray(compiled(x)), np.cos(x), rtol=1e-12)
    assert compiled.lower(x).cost().steps.degree == 1


def test_integers_truth_values_and_half_numbers_are_carried():
    x = np.array([3, 1, 2], "i4")
    found = harp.jit(lambda x: harp.scan(lambda c, v: ((c[0] | (v > 2), hnp.maximum(c[1], v)), c), (False, x[0]), x))(x)
    close(found, ((True, 3), (np.array([False, True, True]), np.array([3, 3, 3]))))
    half = harp.jit(lambda x: harp.scan(lambda c, v: (c + v, c * v), x[0], x))(np.arange(4, dtype="f2"))
    close(half, (6, np.array([0, 0, 2, 9])))
    z = harp.jit(lambda z: harp.scan(lambda c, v: (c * v, c), 1j, z))(np.array([1j, 2.0]))
    close(z, (-2.0, np.array([1j, -1.0])))


def test_sorting_inside_a_loop():
    xs = RNG.normal(size=(4, 6))
    found = harp.jit(lambda xs: harp.scan(lambda c, x: (hnp.sort(c + x), hnp.sort(x)), hnp.zeros(6), xs))(xs)
    carry = np.zeros(6)
    for x in xs:
        carry = np.sort(carry + x)
    close(found, (carry, np.sort(xs, -1)))


def test_map():
    x = RNG.normal(size=(4, 3))
    close(harp.jit(lambda x: harp.map(lambda v: (hnp.sort(v), hnp.sum(v)), x))(x), (np.sort(x), x.sum(-1)))
    close(harp.grad(lambda x: hnp.sum(harp.map(hnp.sin, x)))(x), np.cos(x))


def test_long_loops_compile_as_short_ones():
    compiled = harp.jit(lambda x, xs: harp.scan(lambda c, v: (c * 0.99 + v, None), x, xs)[0])
    compiled(0.0, np.ones(10))
    npt.assert_allclose(float(compiled(0.0, np.ones(10_000))), 100.0, rtol=1e-9)
    assert compiled.compilations == 1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: harp.scan(lambda c, x: (c, x), 0.0), ArgumentError, "say how often it runs with length"),
        (lambda: harp.scan(lambda c, x: c, 0.0, np.ones(3)), ArgumentError, r"must return a pair \(carry, y\)"),
        (lambda: harp.scan(lambda c, x: ((c, c), x), 0.0, np.ones(3)), CarryError, "for the carry, which is one array"),
        (lambda: harp.scan(lambda c, x: (c > 0, x), np.ones(()), np.ones(3)), CarryError, "returns it as bool"),
        (lambda: harp.scan(lambda c, x: (hnp.stack([c, c]), x), np.ones(()), np.ones(3)), CarryError, "with 1 axis"),
        (
            lambda: harp.scan(lambda c, x: (c[1:], x), np.ones(3), np.ones(3)),
            ShapeError,
            "changes its size along axis 0",
        ),
        (lambda: harp.scan(lambda c, x: (c, x), 0.0, (np.ones(3), np.ones(2))), ShapeError, "are of different lengths"),
        (lambda: harp.scan(lambda c, x: (c, x), 0.0, np.ones(3), length=2), ShapeError, "are of different lengths"),
        (lambda: harp.scan(lambda c, x: (c, x), 0.0, 1.0), ArgumentError, "has no axis to scan along"),
        (lambda: harp.scan(lambda c, _: (c, c), 0.0, length=-1), ShapeError, "is negative"),
        (lambda: harp.fori_loop(0.5, 3, lambda i, c: c, 0.0), ArgumentError, "the bounds of fori_loop"),
        (
            lambda: harp.fori_loop(0, 3, lambda i, c: c if i > 1 else -c, 0.0),
            ConcretizationError,
            "asks for a truth value",
        ),
        (lambda: harp.fori_loop(0, "3", lambda i, c: c, 1.0), ArgumentError, "the upper bound of fori_loop is a str"),
    ],
)
def test_what_does_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call()
    with pytest.raises(error, match=words):
        harp.jit(call)()


@pytest.mark.slow
@pytest.mark.parametrize("every", [1, 3, 7])
def test_loops_of_which_some_steps_are_kept(every):
    """The same numbers as without, forward and backward, whatever is left behind the last block."""

    def made(every):
        def f(w, xs):
            def step(c, x):
                c = hnp.tanh(c * w + x)
                return c, c * 2

            c, ys = harp.scan(step, hnp.zeros(xs.shape[1:]), xs, checkpoint_every=every)
            c, back = harp.scan(step, c, xs, reverse=True, checkpoint_every=every)
            last = harp.fori_loop(2, xs.shape[0], lambda i, c: hnp.sin(c + w * i), c, checkpoint_every=every)
            return hnp.sum(ys * back[::-1]) + hnp.sum(last)

        return f

    def by_hand(w, xs):
        def run(c, xs):
            ys = []
            for x in xs:
                c = np.tanh(c * w + x)
                ys.append(c * 2)
            return c, ys

        c, ys = run(np.zeros(2), xs)
        c, back = run(c, xs[::-1])  # as they were made: those of the last element first
        for i in range(2, len(xs)):
            c = np.sin(c + w * i)
        return sum(np.sum(y * b) for y, b in zip(ys, back, strict=True)) + np.sum(c)

    generator, h = np.random.default_rng(0), 1e-6
    f = made(every)
    both = harp.jit(harp.value_and_grad(f))
    for n in (0, 1, 2, 3, 5, 7, 20):
        w, xs = generator.normal(size=2), generator.normal(size=(n, 2))
        moved = [(by_hand(w + h * e, xs) - by_hand(w - h * e, xs)) / (2 * h) for e in np.eye(2)]
        for run in (both, harp.value_and_grad(f)):
            value, slope = run(w, xs)
            npt.assert_allclose(float(value), by_hand(w, xs), rtol=1e-12)
            npt.assert_allclose(np.asarray(slope), moved, rtol=1e-6, atol=1e-8)
    assert both.compilations == 1


def test_a_loop_of_which_some_steps_are_kept_takes_less_memory():
    def f(x, n, every):
        return hnp.sum(harp.fori_loop(0, n.shape[0], lambda i, c: hnp.sin(c) + x, x, checkpoint_every=every))

    x, n = np.ones(100), np.zeros(10_000)
    scratch = []
    for every in (None, 100):
        lowered = harp.jit(harp.grad(lambda x, n, every=every: f(x, n, every))).lower(x, n)
        scratch.append(lowered.memory().scratch)
    assert scratch[0] > 8e6
    assert scratch[1] < scratch[0] / 40


def test_checkpoint_every_is_a_positive_number_of_steps():
    for every, error in ((0, ShapeError), (-1, ShapeError), (1.5, ShapeError)):
        with pytest.raises(error, match="checkpoint_every"):
            harp.scan(lambda c, x: (c, x), 0.0, np.ones(3), checkpoint_every=every)


def test_a_loop_without_steps_reads_nothing_of_an_empty_array():
    """One program for arrays without elements and others."""
    total = lambda x: harp.fori_loop(0, x.shape[0], lambda i, c: c + x[i] ** 2, 0.0)
    running = lambda x: harp.fori_loop(1, x.shape[0], lambda i, c: c.at[i].set(c[i - 1] + c[i]), x)
    cases = [
        (harp.jit(total), lambda x: np.sum(x**2)),
        (harp.jit(harp.grad(total)), lambda x: 2 * x),
        (harp.jit(running), np.cumsum),
    ]
    for f, expected in cases:
        for n in (3, 0, 1, 2):
            x = np.arange(1.0, n + 1)
            npt.assert_allclose(np.asarray(f(x)), expected(x))
        assert f.compilations == 1
    with pytest.raises(IndexOutOfRangeError, match="no element that an index could mean"):
        harp.jit(lambda x: harp.fori_loop(0, 3, lambda i, c: c + x[i], 0.0))(np.ones(0))


def test_an_update_of_one_element_costs_one_element():
    """At a known place as at a computed one, whether it is set or added to."""
    x = np.arange(40.0).reshape(10, 4)
    updates = {
        "element": lambda i, c: c.at[0, 1].set(c[1, 1] * 0.5 + i),
        "row": lambda i, c: c.at[-1].add(c[0] * 0.5),
        "size": lambda i, c: c.at[c.shape[0] - 2].multiply(0.9),
    }
    for update in updates.values():
        f = harp.jit(lambda x, update=update: harp.fori_loop(0, 7, update, x))
        repeat = str(f.lower(x).loops).split("repeat i0")[1]
        assert "< s0" not in repeat  # no step goes over all rows
        expected = x.copy()
        for i in range(7):
            if update is updates["element"]:
                expected[0, 1] = expected[1, 1] * 0.5 + i
            elif update is updates["row"]:
                expected[-1] += expected[0] * 0.5
            else:
                expected[-2] *= 0.9
        for run in (f, lambda x, update=update: harp.fori_loop(0, 7, update, x)):
            npt.assert_allclose(np.asarray(run(x)), expected)
        total = lambda x, update=update: hnp.sum(harp.fori_loop(0, 7, update, x) ** 2)
        h = 1e-6 * np.random.default_rng(0).normal(size=x.shape)
        moved = (float(total(x + h)) - float(total(x - h))) / 2
        npt.assert_allclose(np.sum(np.asarray(harp.jit(harp.grad(total))(x)) * h), moved, rtol=1e-6)


def test_slices_of_what_is_carried_ask_no_element_for_its_place():
    """Loops inside of a loop are split like others; where an array is updated in place, what stays is not stored."""
    smooth = lambda i, c: c.at[1:-1].set(c[2:] * 0.5 + c[:-2] * 0.5)
    grow = lambda i, c: c.at[1:-1].add(c[1:-1] * 0.5)
    for update, stores in ((smooth, 3), (grow, 1)):
        f = harp.jit(lambda x, update=update: harp.fori_loop(0, 5, update, x))
        repeat = str(f.lower(np.ones(9)).loops).split("repeat i0")[1]
        split = repeat.split("else:")[0]
        assert "select" not in split and split.count(" = ") == stores
        for n in (0, 1, 2, 3, 9):
            x = np.sin(np.arange(float(n)))
            expected = x.copy()
            for _ in range(5):
                inner = expected[2:] * 0.5 + expected[:-2] * 0.5 if update is smooth else expected[1:-1] * 1.5
                expected[1:-1] = inner
            npt.assert_allclose(np.asarray(f(x)), expected)


def checksum(data):
    """The CRC of X.25 without its complement, by bits."""

    def byte(crc, value):
        def bit(_, state):
            crc, rest = state
            flag = (crc & 0x0001) ^ (rest & 0x0001)
            return hnp.where(flag, (crc >> 1) ^ 0x8408, crc >> 1), rest >> 1

        return harp.fori_loop(0, 8, bit, (crc, value))[0], None

    return harp.scan(byte, 0xFFFF, data)[0]


def test_bits_of_a_number_of_python_that_is_carried_meet_bytes():
    data, expected = np.frombuffer(b"123456789", np.uint8), 0x906E ^ 0xFFFF
    assert int(checksum(data)) == int(harp.jit(checksum)(data)) == expected


@pytest.mark.parametrize(
    ("first", "step", "advice"),
    [
        (0.0, lambda c, x: c + np.ones(3), r"begin with an array of those sizes \(3\), harp\.numpy\.full"),
        (np.int32(0), lambda c, x: c + 0.5, r"as float32, by \.astype\('float32'\), or return it with .*'int32'"),
        (np.ones(3), lambda c, x: c[0], "return it with all of its axes"),
    ],
)
def test_what_to_write_for_a_carry_that_changes(first, step, advice):
    with pytest.raises(CarryError, match=advice) as caught:
        harp.scan(lambda c, x: (step(c, x), None), first, np.ones(2))
    assert __file__ in str(caught.value)


@pytest.mark.parametrize("loop", [harp.scan, lambda f, c, x, reverse: harp.lax.cumsum(x, reverse=reverse)])
def test_reverse_is_true_or_false(loop):
    with pytest.raises(ArgumentError, match=r"reverse must be True or False, not \[True\]"):
        loop(lambda c, x: (c, x), 0.0, np.ones(3), reverse=[True])


@pytest.mark.parametrize("wrap", [lambda f: f, harp.jit])
def test_more_steps_than_an_int64_counts_are_an_error(wrap):
    """Compiled, 2**64 + 5 of them were five."""
    many = 2**64 + 5
    for f in (
        lambda x: harp.lax.fori_loop(0, many, lambda i, c: c + 1, x),
        lambda x: harp.lax.fori_loop(-(2**62), 2**63 - 1, lambda i, c: c + 1, x),
        lambda x: harp.lax.scan(lambda c, _: (c + 1, None), x, length=many),
    ):
        with pytest.raises(harp.errors.IntegerRangeError, match="does not fit int64"):
            wrap(f)(0.0)
