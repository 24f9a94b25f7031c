"""Branches, and loops that data ends, beside the same in Python."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, CarryError, ShapeError

RNG = np.random.default_rng(0)


def yes(x):
    return {"a": hnp.sum(hnp.sin(x) * x), "b": x * 2}


def no(x):
    return {"a": hnp.sum(x**3), "b": hnp.cumsum(x)}


def choose(x):
    found = harp.cond(hnp.sum(x) > 0, yes, no, x)
    return hnp.sum(found["b"] ** 2) * found["a"]


def chosen(x):
    found = (yes if float(np.sum(np.asarray(x))) > 0 else no)(x)
    return hnp.sum(found["b"] ** 2) * found["a"]


TRANSFORMS = {
    "value": lambda f: f,
    "grad": harp.grad,
    "jvp": lambda f: lambda x: harp.jvp(f, (x,), (x + 1,)),
    "hessian": harp.hessian,
    "gradient of the gradient": lambda f: harp.grad(lambda x: hnp.sum(harp.grad(f)(x) ** 2)),
}


def leaves(tree) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in (tree if isinstance(tree, tuple) else (tree,))]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_each_branch_has_its_derivatives(name):
    """One program for both branches and all sizes; the branch that Python would take is known for sure."""
    transform = TRANSFORMS[name]
    compiled = harp.jit(transform(choose))
    for x in (np.array([0.5, 1.0]), np.array([-0.5, -1.0, 0.3]), np.array([-1.0]), np.array([2.0])):
        reference = yes if x.sum() > 0 else no

        def plain(x, reference=reference):
            found = reference(x)
            return hnp.sum(found["b"] ** 2) * found["a"]

        for found in (compiled(x), transform(choose)(x)):
            for a, b in zip(leaves(found), leaves(transform(plain)(x)), strict=True):
                npt.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    assert compiled.compilations <= 2, "a sum over one element is no sum"


def test_batches_of_branches():
    """Each example takes its own branch, in values and gradients."""
    x = RNG.normal(size=(6, 3))
    for transform in (lambda f: f, harp.grad):
        expected = np.stack([np.asarray(transform(choose)(row)) for row in x])
        npt.assert_allclose(np.asarray(harp.vmap(transform(choose))(x)), expected, rtol=1e-9)
        npt.assert_allclose(np.asarray(harp.jit(harp.vmap(transform(choose)))(x)), expected, rtol=1e-9)


def test_only_one_branch_is_computed():
    """What is computed of arrays round a branch is a part of it: the loop of the other would never end."""
    x = hnp.asarray(1.0)

    def forever():
        return harp.while_loop(lambda y: y > 0, lambda y: y + 1, x)

    compiled = harp.jit(
        lambda p, x: harp.cond(p, lambda: harp.while_loop(lambda y: y > 0, lambda y: y + 1, x), lambda: x)
    )
    assert float(compiled(False, 1.0)) == 1.0
    assert float(harp.cond(False, forever, lambda: x)) == 1.0


VIEWS = {
    "slices": lambda v: v[1:],
    "reversed": lambda v: v[::-1],
    "rows": lambda v: hnp.stack([v, v * 2])[1],
    "transposed": lambda v: hnp.stack([v, v * 2]).T,
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_of_views_from_outside(name):
    """A view that is taken in a branch, of one that was taken outside, reads the array itself."""

    def h(v):
        outer = VIEWS[name](v)
        inner = harp.cond(v[0] > 0, lambda: outer[::-1].T ** 2, lambda: (outer * 2).T)
        return hnp.sum(inner) + hnp.sum(harp.cond(v[0] < 0, lambda t: t[1:] * 3, lambda t: t[1:], outer))

    def plain(v):
        outer = VIEWS[name](v)
        return hnp.sum(outer**2) + hnp.sum(outer[1:])

    v = np.array([1.0, 2.0, 3.0])
    for transform in (lambda f: f, harp.grad, harp.hessian, harp.jacfwd):
        for run in (lambda f: f, harp.jit):
            npt.assert_allclose(np.asarray(run(transform(h))(v)), np.asarray(transform(plain)(v)))


def test_no_nan_from_branches_that_examples_do_not_take():
    def f(x):
        return harp.scan(lambda c, v: (harp.cond(v > 0, lambda: c + hnp.log(v) * c, lambda: c), None), 1.0, x)[0]

    x = np.array([[2.0, -1.0, 3.0], [-1.0, 0.0, 1.0]])
    each = np.asarray(harp.vmap(harp.grad(f))(x))
    assert np.isfinite(each).all()
    npt.assert_allclose(np.asarray(harp.grad(lambda x: hnp.sum(harp.vmap(f)(x)))(x)), each)
    npt.assert_allclose(np.asarray(harp.jit(harp.grad(lambda x: hnp.sum(harp.vmap(f)(x))))(x)), each)


def test_no_nan_reaches_what_examples_share():
    def f(w, x):
        return harp.cond(x > 0, lambda: hnp.log(x) * w, lambda: x * w)

    x = np.array([2.0, -1.0])
    found = harp.grad(lambda w: hnp.sum(harp.vmap(lambda x: f(w, x))(x)))(3.0)
    npt.assert_allclose(float(found), np.log(2.0) - 1)


def test_a_loop_that_never_runs_does_not_run_what_is_in_it():
    def inner(m):
        return harp.while_loop(lambda v: v < 10, lambda v: v * m, np.int64(1))

    f = harp.jit(lambda k, m: harp.while_loop(lambda c: c[0] < k, lambda c: (c[0] + 1, c[1] + inner(m)), (0, 0)))
    assert tuple(map(int, f(np.int64(0), np.int64(1)))) == (0, 0)
    assert tuple(map(int, f(np.int64(2), np.int64(3)))) == (2, 54)


def test_numbers_of_branches_take_each_others_dtype():
    found = harp.cond(np.array(True), lambda: 0, lambda: np.ones((), "f4"))
    assert found.dtype == np.float32 and float(found) == 0
    assert float(harp.jit(lambda p: harp.cond(p, lambda: 1, lambda: 2.5))(0)) == 2.5


def test_switch():
    branches = [lambda x: x, lambda x: x * x, hnp.sin]
    compiled = harp.jit(lambda i, x: harp.switch(i, branches, x))
    gradient = harp.jit(harp.grad(lambda x, i: harp.switch(i, branches, x)))
    for index in (-3, 0, 1, 2, 7):
        branch = branches[min(max(index, 0), 2)]
        npt.assert_allclose(float(compiled(index, 0.7)), float(branch(hnp.asarray(0.7))))
        npt.assert_allclose(float(gradient(0.7, index)), float(harp.grad(branch)(0.7)))


def newton(c):
    def step(now):
        x, _ = now
        after = 0.5 * (x + c / x)
        return after, hnp.abs(after - x)

    return harp.while_loop(lambda now: hnp.any(now[1] > 1e-12), step, (hnp.ones_like(c), hnp.ones_like(c)))[0]


def test_while_loops():
    compiled = harp.jit(newton)
    for count in (1, 0, 4):
        c = RNG.uniform(0.1, 100, count)
        npt.assert_allclose(np.asarray(compiled(c)), np.sqrt(c), rtol=1e-10)
        npt.assert_allclose(np.asarray(newton(c)), np.sqrt(c), rtol=1e-10)
    assert compiled.compilations == 1


def test_while_loops_forward_and_in_batches():
    c = RNG.uniform(0.1, 100, 5)
    for run in (lambda f: f, harp.jit):
        _, tangent = run(lambda c: harp.jvp(newton, (c,), (hnp.ones_like(c),)))(c)
        npt.assert_allclose(np.asarray(tangent), 0.5 / np.sqrt(c), rtol=1e-9)
        npt.assert_allclose(np.asarray(run(harp.vmap(newton))(c)), np.sqrt(c), rtol=1e-10)
        npt.assert_allclose(np.asarray(run(harp.jacfwd(newton))(c)), np.diag(0.5 / np.sqrt(c)), rtol=1e-9, atol=1e-12)


def test_examples_of_a_batch_end_at_different_times():
    def count(x):
        return harp.while_loop(lambda now: now[0] < 100, lambda now: (now[0] * 3, now[1] + 1), (x, 0))

    x = np.array([200.0, 1.0, 40.0, 99.0])
    for run in (lambda f: f, harp.jit):
        last, steps = run(harp.vmap(count))(x)
        npt.assert_array_equal(np.asarray(last), [200, 243, 120, 297])
        npt.assert_array_equal(np.asarray(steps), [0, 5, 1, 1])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: harp.cond(np.ones(2), lambda: 1, lambda: 2), ArgumentError, "the condition of cond has 1 axis"),
        (lambda: harp.cond(True, lambda: 1, lambda: (1, 2)), CarryError, "branches return the same tree"),
        (lambda: harp.cond(True, lambda: np.ones(2), lambda: np.ones((2, 1))), CarryError, "result 0 has 1 axis in"),
        (lambda: harp.cond(True, lambda: np.ones(2), lambda: np.ones(3)), ShapeError, "differs along axis 0"),
        (lambda: harp.cond(True, lambda: np.ones(2, "i4"), lambda: np.ones(2)), CarryError, "returns int32.*float64;"),
        (
            lambda: harp.switch(1, [lambda: 1, lambda: np.float32(0.5), lambda: np.float64(2)]),
            CarryError,
            "float32.*64",
        ),
        (lambda: harp.switch(0, abs), ArgumentError, "switch takes a tuple or list of functions second, not a builtin"),
        (lambda: harp.switch(0, []), ArgumentError, "switch has no branches"),
        (lambda: harp.switch(0.5, [lambda: 1]), ArgumentError, "the index of switch is one integer"),
        (lambda: harp.while_loop(lambda x: x, lambda x: x, 1.0), CarryError, "must return one truth value"),
        (lambda: harp.while_loop(lambda x: x < 1, lambda x: (x, x), 1.0), CarryError, "for the carry"),
    ],
)
def test_what_does_not_fit(call, error, words):
    with pytest.raises(error, match=words):
        call()
    with pytest.raises(error, match=words):
        harp.jit(call)()


def test_a_branch_of_some_examples_reads_integers_that_are_the_same_for_all():
    places = np.array([1, 0])
    f = lambda x: harp.cond(hnp.sum(x) > 2, lambda: x[hnp.asarray(places) * 1], lambda: x)
    xs = np.arange(4.0).reshape(2, 2)
    for run in (lambda f: f, harp.jit):
        npt.assert_array_equal(np.asarray(run(harp.vmap(f))(xs)), [[0, 1], [3, 2]])
        moved = harp.vmap(lambda x: harp.jvp(f, (x,), (x,))[1])
        npt.assert_array_equal(np.asarray(run(moved)(xs)), [[0, 1], [3, 2]])


def _double(x):
    return harp.while_loop(lambda c: c < 100, lambda c: c * 2, x)


_double_its_own = harp.custom_jvp(_double)
_double_its_own.defjvp(lambda primals, tangents: (_double_its_own(*primals), tangents[0] * 7))


@pytest.mark.parametrize(
    ("branch", "values", "slopes"),
    [
        (_double, [128, 192], [128, 64]),
        (lambda x: harp.fori_loop(0, 2, lambda i, c: _double(c) / 64, x), [2, 3], [2, 1]),
        (harp.checkpoint(_double), [128, 192], [128, 64]),
        (_double_its_own, [128, 192], [7, 7]),
        (lambda x: harp.cond(x < 9, harp.checkpoint(_double), lambda x: x, x), [128, 192], [128, 64]),
    ],
    ids=["loop", "in a loop", "computed again", "derivative of its own", "in a branch"],
)
def test_loops_of_examples_that_do_not_take_a_branch_do_not_run(branch, values, slopes):
    """They might never end: doubling a negative number never makes it large."""
    f = lambda x: harp.cond(x > 0, branch, lambda x: 3 * x, x)
    x = np.array([1.0, -1.0, 3.0])
    for run in (lambda f: f, harp.jit):
        npt.assert_array_equal(np.asarray(run(harp.vmap(f))(x)), [values[0], -3, values[1]])
        for gradient in (harp.vmap(harp.grad(f)), harp.grad(lambda x: hnp.sum(harp.vmap(f)(x)))):
            npt.assert_array_equal(np.asarray(run(gradient)(x)), [slopes[0], 3, slopes[1]])
