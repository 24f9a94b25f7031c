"""Functions that ask about sizes are right at every size, whatever size came first."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import errors


def by_range(x):
    total = 0.0
    for k in range(x.shape[0]):
        total = total + x[k] * float(k)
    return total + hnp.sum(x) * 0.0


SCENARIOS = {
    "equal 1": lambda x: x * 1.0 if x.shape[0] == 1 else x * 2.0,
    "less": lambda x: x * 1.0 if x.shape[0] < 3 else x * 2.0,
    "less or equal": lambda x: x * 1.0 if x.shape[0] <= 3 else x * 2.0,
    "greater": lambda x: x * 1.0 if x.shape[0] > 4 else x * 2.0,
    "not equal": lambda x: x * 1.0 if x.shape[0] != 4 else x * 2.0,
    "truth": lambda x: x * 1.0 if x.shape[0] else x * 2.0,
    "floor division": lambda x: x * 1.0 if x.shape[0] // 3 == 1 else x * 2.0,
    "remainder": lambda x: x * 1.0 if x.shape[0] % 3 == 1 else x * 2.0,
    "even": lambda x: x * 1.0 if x.shape[0] % 2 == 0 else x * 2.0,
    "builtin min": lambda x: x * min(x.shape[0], 4),
    "builtin max": lambda x: x * max(x.shape[0], 4),
    "range": by_range,
    "int": lambda x: x * int(x.shape[0]),
    "len": lambda x: x * len(x),
    "hash": lambda x: x * 1.0 if x.shape[0] in {1, 3} else x * 2.0,
    "as a number": lambda x: x * x.shape[0] / (x.shape[0] + 1) + x.shape[0] ** 2,
    "power": lambda x: x * x.shape[0] ** 0.5,
    "product": lambda x: x * 1.0 if x.shape[0] * (x.shape[0] - 1) > 10 else x * 2.0,
    "two branches": lambda x: x * (1.0 if x.shape[0] > 2 else 2.0) * (3.0 if x.shape[0] > 5 else 4.0),
}


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5, 6, 9), (9, 6, 5, 4, 3, 2, 1, 0), (1, 9, 0, 4, 2)], ids=str)
def test_right_at_every_size(name, order):
    f = SCENARIOS[name]
    compiled = harp.jit(f)
    for n in (*order, *order):
        x = np.arange(n, dtype=np.float64) + 1.5
        npt.assert_allclose(compiled(x), np.asarray(f(x)), rtol=1e-15)


def test_broadcast_axes_are_decided_by_the_call():
    f = harp.jit(lambda a, b: a + b)
    for n, m in itertools.permutations([(3, 3), (1, 1), (0, 0), (3, 1), (1, 3), (5, 5), (0, 1), (1, 0)], 2):
        for p, q in (n, m):
            a, b = np.arange(p) * 1.0, np.arange(q) * 10.0
            npt.assert_array_equal(f(a, b), a + b)
    assert f.compilations == 3


def test_mismatch_names_argument_axis_and_sizes():
    f = harp.jit(lambda first, second: first + second)
    with pytest.raises(errors.ShapeError, match=r"first\.shape\[0\] = 3.*second\.shape\[0\] = 4") as caught:
        f(np.zeros(3), np.zeros(4))
    assert __file__ in str(caught.value)
    with pytest.raises(errors.ShapeError):
        harp.jit(lambda x, w: x @ w)(np.zeros((2, 3)), np.zeros((4, 5)))


def test_leaks_raise():
    kept = []

    def leak(x):
        kept.append(x)
        kept.append(x.shape[0])
        return x * 1.0

    harp.jit(leak)(np.ones(3))
    with pytest.raises(errors.LeakedTracerError):
        kept[0] + 1.0
    with pytest.raises(errors.LeakedTracerError):
        harp.jit(lambda x: x + kept[0])(np.ones(3))
    with pytest.raises(errors.LeakedTracerError):
        harp.jit(lambda x: x * kept[1])(np.ones(3))
    with pytest.raises(errors.LeakedTracerError):
        kept[1] + 1


def test_inner_leak_raises():
    def f(x):
        kept = []
        harp.grad(lambda t: (kept.append(t), hnp.sum(t))[1])(x)
        return x + kept[0]

    with pytest.raises(errors.LeakedTracerError):
        harp.jit(f)(np.ones(3))


def test_declared_signature():
    f = harp.jit(lambda x, y: x @ y, signature=(harp.f64["n", 3], harp.f64[3, "n"]))
    npt.assert_array_equal(f(np.ones((2, 3)), np.ones((3, 2))), np.full((2, 2), 3.0))
    with pytest.raises(errors.SignatureError):
        f(np.ones((2, 3)), np.ones((3, 4)))
    with pytest.raises(errors.SignatureError):
        f(np.ones((2, 4)), np.ones((3, 2)))


def test_sizes_that_are_equal_by_a_guard_alone():
    f = harp.jit(lambda x, y: hnp.outer(x, x) + y * 2.0)
    for n, m in ((0, 0), (2, 3), (1, 1), (3, 2)):
        x, y = np.ones((n, m)), np.arange(float(n * m * n * m)).reshape(n * m, n * m)
        npt.assert_array_equal(f(x, y), np.outer(x, x) + y * 2)
    square = harp.jit(lambda x: hnp.outer(x, x) + x)  # n * m == n and n * m == m have no solution for one size
    for n in (0, 1, 0):
        x = np.ones((n, n))
        npt.assert_array_equal(square(x), np.outer(x, x) + x)


# Axes that are 1 by a guard on a product, a square or a multiple of sizes.
ONES = {
    "product": (lambda xp, a, b: a.reshape(-1) + b, ((1, 1), (5,)), ((2, 3), (6,)), ((3, 1), (1,)), ((0, 1), (1,))),
    "two products": (
        lambda xp, a, b, c: (a.reshape(-1) + c.reshape(-1)) * b,
        ((1, 1), (5,), (1, 1)),
        ((2, 1), (2,), (1, 2)),
        ((1, 1), (1,), (2, 2)),
    ),
    "convolve": (lambda xp, a, b: xp.convolve(a, a) + b, ((1,), (5,)), ((3,), (5,)), ((3,), (1,))),
    "where": (lambda xp, a, b: xp.where(b > 1, a.reshape(-1), b), ((1, 1), (5,)), ((2, 2), (4,)), ((2, 2), (1,))),
    "square": (lambda xp, a, b: xp.outer(a, a).reshape(-1) + b, ((1,), (5,)), ((2,), (4,)), ((2,), (1,))),
    "multiple": (lambda xp, a, b: xp.concatenate([a, a])[1:] + b, ((1,), (5,)), ((2,), (3,)), ((2,), (1,))),
    "einsum": (lambda xp, a, b: xp.einsum("i,ij->j", a.reshape(-1), b), ((1, 1), (5, 3)), ((2, 2), (4, 3))),
    "outer": (lambda xp, a, b: xp.outer(a, a) + b, ((1, 1), (2, 5)), ((1, 2), (2, 2)), ((2, 2), (4, 1))),
    "repeat": (lambda xp, a, b: xp.repeat(a, a.shape[0]) + b, ((1,), (5,)), ((2,), (4,)), ((3,), (1,))),
    "ravel": (lambda xp, a, b: xp.ravel(a) * b, ((1, 1, 1), (5,)), ((1, 2, 1), (2,)), ((1, 2, 3), (1,))),
    "quotient": (lambda xp, a, b: a[: a.shape[0] // 2] + b, ((2,), (5,)), ((3,), (4,)), ((9,), (4,)), ((9,), (1,))),
}


def arrays_of(shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


@pytest.mark.parametrize("name", ONES)
def test_axes_that_are_one_by_a_guard(name):
    function, *calls = ONES[name]
    for order in (calls, calls[::-1]):
        compiled = harp.jit(lambda *arrays: function(hnp, *arrays))
        for shapes in (*order, *order):
            arrays = arrays_of(shapes)
            npt.assert_allclose(compiled(*arrays), function(np, *arrays), rtol=1e-12)


def test_gradients_along_axes_that_are_one_by_a_guard():
    gradient = harp.jit(harp.grad(lambda a, b: hnp.sum((a.reshape(-1) + b) * b)))
    for n in (5, 1):
        b = np.arange(float(n))
        npt.assert_allclose(gradient(np.full((1, 1), 7.0), b), [[b.sum()]])
    npt.assert_allclose(gradient(np.ones((2, 3)), np.arange(6.0)), np.arange(6.0).reshape(2, 3))


def test_an_update_with_one_value_by_a_guard():
    put = harp.jit(lambda a, b: b.at[:].set(a.reshape(-1)))
    for shapes in (((1, 1), (5,)), ((2, 2), (4,)), ((1, 1), (1,))):
        a, b = arrays_of(shapes)
        npt.assert_array_equal(put(a, b), np.broadcast_to(a.reshape(-1), b.shape))


def test_a_common_factor_is_cancelled():
    """64*n == n*m teaches m == 64, so that the view has an inverse; no elements at all are another case."""
    split = harp.jit(lambda x: x.reshape(x.shape[0], 4, 16) * 2.0)
    for n in (3, 0, 10):
        assert split(np.ones((n, 64))).shape == (n, 4, 16)
    assert split(np.ones((0, 5))).shape == (0, 4, 16)
    assert split.compilations == 2
    heads = harp.jit(lambda x: x.reshape(x.shape[0], 12, x.shape[1] // 12) * 2.0)
    for n, d in ((3, 24), (0, 12), (1, 0)):
        assert heads(np.ones((n, d))).shape == (n, 12, d // 12)
    assert heads.compilations == 1


def caught(function):
    def guarded(xp, *arrays):
        try:
            return function(xp, *arrays)
        except (ValueError, IndexError):
            return xp.zeros(3)

    return guarded


CAUGHT = {
    "add": (lambda xp, a, b: a + b, ((2,), (3,)), ((4,), (1,)), ((1,), (4,)), ((3,), (3,)), ((5,), (2,))),
    "where": (lambda xp, a, b: xp.where(a > 0, a, b), ((2,), (3,)), ((4,), (1,)), ((1,), (2,)), ((2,), (2,))),
    "einsum": (
        lambda xp, a, b: xp.einsum("i,i->", a, b),
        ((2,), (3,)),
        ((4,), (4,)),
        ((5,), (4,)),
    ),
    "broadcast_to": (
        lambda xp, a, b: xp.broadcast_to(a, b.shape),
        ((2,), (3,)),
        ((1,), (4,)),
        ((4,), (4,)),
        ((4,), (1,)),
    ),
    "broadcast_arrays": (lambda xp, a, b: xp.broadcast_arrays(a, b)[0], ((2,), (3,)), ((1,), (4,)), ((4,), (1,))),
    "matmul": (
        lambda xp, a, b: a @ b,
        ((2, 3, 4), (3, 4, 2)),
        ((1, 3, 4), (5, 4, 2)),
        ((3, 3, 4), (1, 4, 2)),
        ((2, 3, 4), (2, 5, 2)),
        ((2, 3, 4), (2, 4, 2)),
    ),
    "concatenate": (
        lambda xp, a, b: xp.concatenate([a, b]),
        ((2, 2), (2, 3)),
        ((2, 4), (3, 4)),
        ((2, 1), (2, 4)),
    ),
    "index": (lambda xp, a, b: a[3] + b, ((3,), (1,)), ((4,), (1,)), ((0,), (2,)), ((9,), (3,))),
    "indices": (lambda xp, a, b: a[np.array([0, 3])] + b, ((3,), (1,)), ((4,), (1,)), ((0,), (2,)), ((9,), (3,))),
    "reshape": (lambda xp, a, b: a.reshape(2, -1) + b, ((3,), (1,)), ((4,), (1,)), ((0,), (1,)), ((9,), (3,))),
    "max": (lambda xp, a, b: xp.max(a) + b, ((0,), (1,)), ((4,), (1,)), ((1,), (2,))),
}


@pytest.mark.parametrize("name", CAUGHT)
def test_a_caught_error_serves_only_calls_that_raise_it(name):
    function, *calls = CAUGHT[name]
    function = caught(function)
    for order in (calls, calls[::-1]):
        compiled = harp.jit(lambda *arrays: function(hnp, *arrays))
        for shapes in (*order, *order):
            arrays = arrays_of(shapes)
            npt.assert_allclose(compiled(*arrays), function(np, *arrays), rtol=1e-12)


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x: hnp.max(x) if x.shape[0] != 0 else hnp.sum(x), 1),
        (lambda x: hnp.max(x) + hnp.min(x) + x[0] + x[x.shape[0] - 1] + x[-1], 1),
        (lambda x: x[5] + x[2] + (x[0] if x.shape[0] > 3 else x[1]), 1),
        (lambda x: x * 1.0 if x.shape[0] > 2 and x.shape[0] >= 2 and 2 * x.shape[0] != 1 else x, 1),
        (lambda x: sum(x[k] for k in range(x.shape[0])), 1),
        (lambda x: (x[1:][2:], x[:3][-2:], x[2:-1][::-1], x[5:2:-1], hnp.diff(x)[:3]), 0),
        (lambda x: (hnp.roll(x, 2), x.at[-2:].set(0.0), hnp.split(x, [1, 2])[1], hnp.pad(x, 2)), 0),
    ],
)
def test_no_guard_says_what_others_say(function, count):
    compiled = harp.jit(function)
    compiled(np.arange(8.0))
    assert len(compiled.signatures[0].guards) == count


def test_parts_whose_sizes_are_equal_by_a_guard_alone():
    joined = harp.jit(lambda a, b, c: hnp.concatenate([hnp.outer(a.reshape(-1), b), c], axis=1))
    for (n, m), k in (((2, 3), 4), ((0, 3), 2), ((1, 1), 1)):
        a, b, c = np.ones((n, m)), np.arange(float(k)), np.arange(float(n * m * 2)).reshape(n * m, 2)
        npt.assert_array_equal(joined(a, b, c), np.concatenate([np.outer(a.reshape(-1), b), c], axis=1))
    by_product = harp.jit(
        lambda a, b, c: hnp.concatenate([(a[:, None] * b).reshape(-1)[:, None], c.reshape(-1)[:, None]], axis=1)
    )
    for n, m, shape in ((2, 6, (3, 4)), (0, 3, (0, 5)), (1, 1, (1, 1))):
        a, b, c = np.ones(n), np.arange(float(m)), np.ones(shape)
        expected = np.concatenate([np.outer(a, b).reshape(-1, 1), c.reshape(-1, 1)], axis=1)
        npt.assert_array_equal(by_product(a, b, c), expected)
