"""Loops whose bounds are data, or numbers of the loops round them, beside the same loops in Python."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, IndexOutOfRangeError

RNG = np.random.default_rng(0)
SIZES = (5, 0, 1, 2, 33)


def pairs(x):
    """A triangular loop whose steps are linear in what they carry."""

    def outer(i, total):
        return total + harp.fori_loop(0, i, lambda j, s: s + x[j] * x[i] * j, 0.0)

    return harp.fori_loop(0, x.shape[0], outer, 0.0)


def pairs_in_python(x):
    return sum(x[j] * x[i] * j for i in range(len(x)) for j in range(i))


def chains(x):
    """A triangular loop from the number of the outer step on, whose steps are not linear."""

    def outer(i, total):
        return total + harp.fori_loop(i + 1, x.shape[0], lambda j, s: hnp.sin(s) + x[j] * x[i], 0.0)

    return harp.fori_loop(0, x.shape[0], outer, 0.0)


def chains_in_python(x):
    total = 0.0
    for i in range(len(x)):
        s = 0.0
        for j in range(i + 1, len(x)):
            s = np.sin(s) + x[j] * x[i]
        total += s
    return total


def slope_of(function, x, step=1e-6):
    return np.array([(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))])


BOTH = pytest.mark.parametrize("loop, plain", [(pairs, pairs_in_python), (chains, chains_in_python)])


@BOTH
def test_triangular_loops_are_one_program(loop, plain):
    compiled = harp.jit(loop)
    for count in SIZES:
        x = RNG.normal(size=count)
        npt.assert_allclose(np.asarray(compiled(x)), plain(x), rtol=1e-12, atol=1e-13)
        npt.assert_allclose(np.asarray(loop(hnp.asarray(x))), plain(x), rtol=1e-12, atol=1e-13)
    assert compiled.compilations == 1


@pytest.mark.slow
@BOTH
def test_their_derivatives(loop, plain):
    slope, batch = harp.jit(harp.grad(loop)), harp.jit(harp.vmap(harp.grad(loop)))
    forward = harp.jit(lambda x, t: harp.jvp(loop, (x,), (t,))[1])
    second = harp.jit(harp.hessian(loop))
    for count in (5, 0, 1, 2, 40):
        x, tangent = RNG.normal(size=count), RNG.normal(size=count)
        expected = slope_of(plain, x).reshape(count)
        npt.assert_allclose(np.asarray(slope(x)), expected, rtol=1e-6, atol=1e-8)
        npt.assert_allclose(np.asarray(forward(x, tangent)), expected @ tangent, rtol=1e-6, atol=1e-7)
        npt.assert_allclose(np.asarray(batch(np.stack([x, -x])))[0], expected, rtol=1e-6, atol=1e-8)
        if count < 6:
            curved = np.asarray(second(x))
            for k, e in enumerate(np.eye(count)):
                change = np.asarray(slope(x + 1e-5 * e)) - np.asarray(slope(x - 1e-5 * e))
                npt.assert_allclose(curved[k], change / 2e-5, rtol=1e-5, atol=1e-6)
    assert slope.compilations == batch.compilations == forward.compilations == second.compilations == 1


@pytest.mark.usefixtures("processor")  # the text of its programs
def test_they_are_loops_of_a_length_and_read_without_a_test():
    text = harp.jit(pairs).lower(np.ones(4)).source
    assert "i1 < i0" in text and "harp_indirect" not in text and "harp_interrupted(&" not in text
    text = harp.jit(harp.grad(pairs)).lower(np.ones(4)).source
    assert "harp_indirect" not in text and "harp_interrupted(&" not in text


def test_a_long_loop_backward_whose_states_nobody_reads():
    """More steps than states would be kept."""
    slope = harp.jit(harp.grad(lambda x, n: harp.fori_loop(0, n, lambda i, c: 0.999 * c + x[i % 3], x[0])))
    x, n = RNG.normal(size=3), 5000
    expected = np.zeros(3)
    for i in range(n):
        expected[i % 3] += 0.999 ** (n - 1 - i)
    expected[0] += 0.999**n
    npt.assert_allclose(np.asarray(slope(x, n)), expected, rtol=1e-9)
    npt.assert_allclose(np.asarray(slope(x, 0)), [1, 0, 0])
    npt.assert_allclose(np.asarray(slope(x, -4)), [1, 0, 0])


def test_a_position_beyond_the_array_takes_the_nearest_element():
    total = harp.jit(lambda x, n: harp.fori_loop(0, n, lambda i, c: c + x[i], 0.0))
    rows = harp.jit(lambda x, n: harp.fori_loop(0, n, lambda i, c: c + x[i] * i, 0.0 * x[0]))
    changed = harp.jit(lambda x, n: harp.fori_loop(0, n, lambda i, c: c.at[i].add(1.0), x))
    x = RNG.normal(size=4)
    near = [x[min(i, 3)] for i in range(7)]
    npt.assert_allclose(np.asarray(total(x, 7)), sum(near), rtol=1e-12)
    a = RNG.normal(size=(4, 3))
    npt.assert_allclose(np.asarray(rows(a, 7)), sum(a[min(i, 3)] * i for i in range(7)), rtol=1e-12)
    npt.assert_allclose(np.asarray(changed(x, 7)), x + 1)


def test_triangular_loops_that_leave_the_array():
    """The inner number is below the outer one, which goes beyond the array."""
    loop = lambda x, n: harp.fori_loop(
        0, n.shape[0], lambda i, c: c + harp.fori_loop(0, 2 * i, lambda j, s: s + x[j], 0.0), 0.0
    )
    compiled = harp.jit(loop)
    for size, count in ((3, 5), (30, 5), (1, 2)):
        x = RNG.normal(size=size)
        expected = sum(x[min(j, size - 1)] for i in range(count) for j in range(2 * i))
        npt.assert_allclose(np.asarray(compiled(x, np.zeros(count))), expected, rtol=1e-12)


def test_a_batch_of_bounds():
    x = RNG.normal(size=6)
    counts = np.array([3, 0, 6, -2])
    loop = lambda n: harp.fori_loop(0, n, lambda i, c: hnp.sin(c) + x[i], 0.0)
    found = harp.jit(harp.vmap(lambda n: loop(n)))
    x = hnp.asarray(x)
    for k, value in enumerate(np.asarray(found(counts))):
        c = 0.0
        for i in range(max(counts[k], 0)):
            c = np.sin(c) + float(x[i])
        npt.assert_allclose(value, c, rtol=1e-12)


def test_triangular_loops_round_a_branch_and_in_one():
    def loop(x, flag):
        def outer(i, total):
            inner = lambda: harp.fori_loop(
                0, i, lambda j, s: s + harp.cond(x[j] > 0, lambda: x[j] ** 2, lambda: 0.0), 0.0
            )
            return total + harp.cond(flag, inner, lambda: 0.0)

        return harp.fori_loop(0, x.shape[0], outer, 0.0)

    x = RNG.normal(size=7)
    expected = sum(x[j] ** 2 for i in range(7) for j in range(i) if x[j] > 0)
    npt.assert_allclose(np.asarray(harp.jit(loop)(x, True)), expected, rtol=1e-12)
    assert float(harp.jit(loop)(x, False)) == 0
    slope = np.array([2 * x[j] * (6 - j) if x[j] > 0 else 0 for j in range(7)])
    npt.assert_allclose(np.asarray(harp.jit(harp.grad(loop))(x, True)), slope, rtol=1e-12)
    flags = np.array([True, False])
    batch = harp.jit(harp.vmap(harp.grad(loop), in_axes=(None, 0)))
    npt.assert_allclose(np.asarray(batch(x, flags)), [slope, 0 * slope], rtol=1e-12)


def test_the_number_takes_the_dtype_of_what_it_meets_where_its_bounds_are_numbers_of_loops():
    x = RNG.normal(size=4).astype(np.float32)
    assert harp.jit(pairs)(x).dtype == np.float32
    whole = harp.jit(
        lambda x: harp.fori_loop(
            0, x.shape[0], lambda i, c: harp.fori_loop(i, x.shape[0], lambda j, s: s + x[j] * j, c), hnp.int8(0)
        )
    )
    small = np.array([1, -2, 1], np.int8)
    assert whole(small).dtype == np.int8
    assert int(whole(small)) == sum(int(small[j]) * j for i in range(3) for j in range(i, 3))


def test_bounds_at_the_ends_of_their_dtypes():
    steps = harp.jit(lambda a, b: harp.fori_loop(a, b, lambda i, c: (c[0] + 1, i), (0, (a + b).astype("int64")))[0])
    for a, b in ((2**63 - 3, 2**63 - 1), (-(2**63), -(2**63) + 4), (3, -(2**63)), (2**63 - 1, -(2**63))):
        assert int(steps(np.int64(a), np.int64(b))) == max(b - a, 0)
    last = harp.jit(lambda a, b: harp.fori_loop(a, b, lambda i, c: i, a))
    found = last(np.uint64(2**63 + 1), np.uint64(2**63 + 5))
    assert found.dtype == np.uint64 and int(found) == 2**63 + 4
    assert int(last(np.uint64(2**64 - 3), np.uint64(2**64 - 1))) == 2**64 - 2
    assert int(last(np.uint64(7), np.uint64(5))) == 7
    mixed = harp.jit(lambda a, b: harp.fori_loop(a, b, lambda i, c: c + 1, 0))
    assert int(mixed(np.int64(2**63 - 4), np.uint64(2**63 - 1))) == 3


def test_bounds_are_integers():
    with pytest.raises(ArgumentError, match="integers or arrays of one integer"):
        harp.jit(lambda n: harp.fori_loop(0, n, lambda i, c: c, 0.0))(np.ones(2, int))
    with pytest.raises(ArgumentError, match="integers or arrays of one integer"):
        harp.jit(lambda n: harp.fori_loop(0, n, lambda i, c: c, 0.0))(1.5)


def test_elements_of_an_array_that_has_none():
    """A loop that data ends may not run; if it does, what it reads is no number."""
    by_data = harp.jit(lambda x, n: harp.fori_loop(0, n, lambda i, c: c + x[i], 0.0))
    rows = harp.jit(lambda x, n: harp.fori_loop(0, n, lambda i, c: c + x[i], hnp.zeros(x.shape[1])))
    loop = lambda x: harp.while_loop(lambda c: c[0] < x.shape[0], lambda c: (c[0] + 1, c[1] + x[c[0]]), (0, 0.0))[1]
    for backend in (by_data, lambda x, n: harp.fori_loop(0, n, lambda i, c: c + hnp.asarray(x)[i], 0.0)):
        for x, n, expected in ((np.ones(3), 2, 2.0), (np.ones(0), np.asarray(0), 0.0), (np.ones(3), 2, 2.0)):
            assert float(backend(x, hnp.asarray(n))) == expected
    assert np.isnan(float(by_data(np.ones(0), 2)))
    assert np.isnan(np.asarray(rows(np.ones((0, 2)), 1))).all() and np.asarray(rows(np.ones((0, 2)), 0)).tolist() == [
        0,
        0,
    ]
    assert float(harp.jit(loop)(np.ones(0))) == 0 and float(harp.jit(loop)(np.ones(4))) == 4
    assert np.asarray(harp.jit(harp.grad(loop))(np.ones(0))).shape == (0,)
    with pytest.raises(IndexOutOfRangeError, match="no element"):
        harp.jit(lambda x: harp.fori_loop(0, 3, lambda i, c: c + x[i], 0.0))(np.ones(0))
