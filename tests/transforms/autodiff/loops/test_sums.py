"""Gradients of loops in loops, beside those of the same loops unrolled by Python; arrays are not added whole."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp

RNG = np.random.default_rng(0)


def unrolled(first, last, step, carry):
    for i in range(first, last):
        carry = step(i, carry)
    return carry


def elements(a, b, loop):
    return loop(
        0, a.shape[0], lambda i, c: loop(0, a.shape[1], lambda j, d: 0.9 * d + hnp.sin(a[i, j] * d + b[j]), c), 1.0
    )


def read_outside_too(a, b, loop):
    def row(i, c):
        c = loop(0, a.shape[1], lambda j, d: hnp.sin(d * a[i, j]) + b[j], c * a[i, 0])
        return loop(0, a.shape[1], lambda j, d: hnp.cos(d + a[j, i] * b[i]), c)

    return loop(0, a.shape[0], row, 1.0)


def one_sum_of_two(a, b, loop):
    both = a + b
    shifted = b - a
    return loop(
        0,
        a.shape[0],
        lambda i, c: loop(0, a.shape[1], lambda j, d: hnp.sin(d + (both[i, j] + shifted[j, i]) * both[j, j]), c),
        1.0,
    )


def triangle(a, b, loop):
    return loop(0, a.shape[0], lambda i, c: loop(0, i, lambda j, d: hnp.sin(d * a[i, j] + b[j]), c), 1.0)


def three_deep(a, b, loop):
    def inner(i, j, d):
        return loop(0, b.shape[0], lambda k, e: hnp.sin(e + a[i, k] * a[k, j] + b[j]), d)

    return loop(0, a.shape[0], lambda i, c: loop(0, a.shape[1], lambda j, d: inner(i, j, d), c), 1.0)


def in_a_branch(a, b, loop):
    def step(i, j, d):
        return harp.cond(d > 0.5, lambda d: hnp.sin(d * a[i, j]), lambda d: d + b[j] * a[j, i], d)

    return loop(0, a.shape[0], lambda i, c: loop(0, a.shape[1], lambda j, d: step(i, j, d), c), 1.0)


def side_by_side(a, b, loop):
    def step(i, c):
        first = loop(0, i, lambda j, d: d + a[i, j] * b[j], 0.0)
        second = loop(0, i, lambda j, d: d + hnp.sin(a[j, i] * c) * b[j] ** 2, 0.0)
        third = loop(0, a.shape[1], lambda j, d: d + a[j, j] * b[i], 0.0)
        return c * 0.5 + first - second * third

    return loop(0, a.shape[0], step, 1.0)


def one_after_the_other(a, b, loop):
    """The cotangents of the first loop depend on those of the second, which is the first one in the reverse pass."""

    def step(i, c):
        first = loop(0, i, lambda j, d: hnp.sin(d + a[i, j]), c)
        return loop(0, i, lambda j, d: hnp.cos(d * a[j, i]) + b[j], first)

    return loop(0, a.shape[0], step, 1.0)


def between_elements(a, b, loop):
    """Elements of the same array are read in two loops, between them, and at a fixed place."""

    def step(i, c):
        first = loop(0, 3, lambda j, d: d + hnp.sin(b[j] * c + a[i, 0]), 0.0)
        second = loop(0, 3, lambda j, d: d + hnp.cos(b[j] + c * b[0]), 0.0)
        return hnp.sin(c * b[i] + first * second) * b[i] + b[-1]

    return loop(0, a.shape[0], step, 0.5)


def of_what_changes(a, b, loop):
    """The array of which the loop inside reads elements is carried."""

    def step(i, c):
        return c.at[i].set(loop(0, a.shape[1], lambda j, d: hnp.sin(d * c[j] + a[i, j]) + c[0], c[i]))

    return hnp.sum(loop(0, a.shape[0], step, b))


FUNCTIONS = [
    between_elements,
    of_what_changes,
    elements,
    read_outside_too,
    one_sum_of_two,
    triangle,
    three_deep,
    in_a_branch,
    side_by_side,
    one_after_the_other,
]


def arguments(function, n):
    return RNG.normal(size=(n, n)), RNG.normal(size=(n, n) if function is one_sum_of_two else n)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_gradients(function):
    compiled = harp.jit(harp.grad(lambda a, b: function(a, b, harp.fori_loop), (0, 1)))
    for n in (4, 3, 6) if function is between_elements else (4, 1, 3):
        a, b = arguments(function, n)
        expected = harp.grad(lambda a, b: function(a, b, unrolled), (0, 1))(a, b)
        for found, wanted in zip(compiled(a, b), expected, strict=True):
            npt.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-9, atol=1e-12)
    assert compiled.compilations == 1


@pytest.mark.parametrize("function", [elements, read_outside_too, side_by_side])
def test_second_derivatives_and_batches(function):
    def squared(a, b, loop):
        return hnp.sum(harp.grad(lambda a: function(a, b, loop))(a) ** 2)

    a, b = map(hnp.asarray, arguments(function, 3))
    stacked = np.stack([a, np.asarray(a) * 0.5])
    found = harp.jit(harp.vmap(harp.grad(lambda a: squared(a, b, harp.fori_loop))))(stacked)
    expected = [np.asarray(harp.grad(lambda a: squared(a, b, unrolled))(each)) for each in stacked]
    npt.assert_allclose(np.asarray(found), expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("function", [elements, one_sum_of_two])
def test_a_step_adds_what_it_reads(function):
    """A gradient of n*n steps costs n*n, and not n additions of n*n elements."""
    gradient = harp.jit(harp.grad(lambda a, b: function(a, b, harp.fori_loop), (0, 1)))
    assert gradient.lower(*arguments(function, 5)).cost().operations.degree == 2


@pytest.mark.parametrize("function", [side_by_side, one_after_the_other, between_elements, of_what_changes])
def test_several_loops_of_a_step_add_what_they_read(function):
    gradient = harp.jit(harp.grad(lambda a, b: function(a, b, harp.fori_loop), (0, 1)))
    cost = gradient.lower(*arguments(function, 5)).cost()
    small, large = (cost.at(*[size] * len(cost.names)) for size in (200, 400))
    assert large.operations < 5 * small.operations and large.bytes_written < 5 * small.bytes_written, cost


def test_loops_with_elements_between_them_add_what_they_read():
    """A gradient of n steps costs n."""
    gradient = harp.jit(harp.grad(lambda a, b: between_elements(a, b, harp.fori_loop), 1))
    cost = gradient.lower(*arguments(between_elements, 5)).cost()
    small, large = (cost.at(*[size] * len(cost.names)) for size in (200, 400))
    assert large.steps < 2.5 * small.steps, cost


def test_a_loop_goes_on_with_the_cotangent_of_what_is_carried():
    """The steps are linear, so no states are kept."""

    def function(b):
        inner = lambda c: harp.fori_loop(0, 3, lambda j, d: d + 0.3 * c[j], 0.0)
        return hnp.sum(harp.fori_loop(0, b.shape[0], lambda i, c: c.at[i].set(inner(c) - c[i]), b))

    gradient = harp.jit(harp.grad(function))
    b = RNG.normal(size=5)
    expected = [float(function(row)) for row in np.eye(5)]
    npt.assert_allclose(np.asarray(gradient(b)), expected, rtol=1e-12)
    small, large = (gradient.lower(b).cost().at(size) for size in (200, 400))
    assert large.steps < 2.5 * small.steps
