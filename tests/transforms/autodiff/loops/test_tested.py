"""Reverse mode through loops that data ends, beside the same loops with a known end, unrolled in NumPy."""

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.transforms.autodiff.loops import tested

STEPS = [0, 1, 2, 3, 4, 5, 15, 16, 17, 33, 64, 100]


def iterated(x, steps):
    """The state after so many steps, an array, and a count of numbers that are no floats."""

    def step(now):
        k, state, even = now
        return k + 1, hnp.sin(0.9 * state) + 0.1 * x * k, even + 1 - k % 2

    return harp.while_loop(lambda now: now[0] < steps, step, (0, x, 0))


def loss(x, steps):
    _, state, even = iterated(x, steps)
    return hnp.sum(state * state) * (even + 1)


def slope(x, steps):
    """The derivative of `loss`, which is elementwise, by the chain rule."""
    state, derivative, even = x, np.ones_like(x), 0
    for k in range(steps):
        state, derivative = np.sin(0.9 * state) + 0.1 * x * k, 0.9 * np.cos(0.9 * state) * derivative + 0.1 * k
        even += 1 - k % 2
    return 2 * state * derivative * (even + 1)


@pytest.fixture(params=[(2, 2), (3, 4), (32, 1024)], ids=["2 kept", "4 kept", "all kept"])
def kept(request, monkeypatch):
    """As few states are kept that there are many marks and windows, and several windows for a mark."""
    monkeypatch.setattr(tested, "_FEWEST", request.param[0])
    monkeypatch.setattr(tested, "_MOST", request.param[1])


@pytest.mark.parametrize("run", [lambda f: f, harp.jit], ids=["at once", "compiled"])
def test_gradients(kept, run):
    x = np.array([-0.7, 0.2, 1.3])
    gradient = run(harp.grad(loss))
    for steps in STEPS:
        npt.assert_allclose(np.asarray(gradient(x, np.int64(steps))), slope(x, steps), rtol=1e-12, atol=1e-14)


def test_one_program_serves_all_numbers_of_steps_and_sizes(kept):
    gradient = harp.jit(harp.grad(loss))
    for n in (0, 1, 2, 5, 33):
        x = np.linspace(-1, 1, n)
        npt.assert_allclose(np.asarray(gradient(x, np.int64(n))), slope(x, n), rtol=1e-12, atol=1e-14)
    assert gradient.compilations == 1


@pytest.mark.slow
@pytest.mark.parametrize("run", [lambda f: f, harp.jit], ids=["at once", "compiled"])
def test_batches_whose_examples_end_at_different_times(kept, run):
    xs, steps = np.linspace(-1, 1, 15).reshape(5, 3), np.array([7, 0, 1, 33, 12])
    expected = [slope(x, k) for x, k in zip(xs, steps, strict=True)]
    of_each = run(harp.vmap(harp.grad(loss)))
    of_all = run(harp.grad(lambda xs, steps: hnp.sum(harp.vmap(loss)(xs, steps))))
    for found in (of_each(xs, steps), of_all(xs, steps)):
        npt.assert_allclose(np.asarray(found), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.slow
def test_large_batches_keep_fewer_steps_of_each_example():
    """As many states are kept of all examples together as of a carry of that size."""

    def root(c):
        return harp.while_loop(lambda x: abs(x * x - c) > 1e-12, lambda x: 0.5 * (x + c / x), c)

    of_each = harp.jit(harp.vmap(harp.grad(root)))
    of_pairs = harp.jit(harp.vmap(harp.vmap(harp.grad(root))))
    for n in (3, 0, 1, 20_000):
        c = np.linspace(2, 4, n)
        for found in (of_each(c), np.asarray(of_pairs(c[None]))[0]):
            npt.assert_allclose(np.asarray(found), 0.5 / np.sqrt(c), rtol=1e-9)
    assert of_each.compilations == 1
    assert harp.vmap(harp.grad(root))(np.zeros(0)).shape == (0,)
    for lowered in (of_each.lower(np.ones(20_000)), of_pairs.lower(np.ones((200, 100)))):
        assert lowered.memory().scratch < 100e6  # a thousand states of each would be 1000 MB


@pytest.mark.slow
@pytest.mark.parametrize("run", [lambda f: f, harp.jit], ids=["at once", "compiled"])
def test_second_derivatives(kept, run):
    x, h = np.array([0.4]), 1e-6
    first = lambda x, steps: harp.grad(loss)(x, steps)[0]
    second = run(lambda x, steps: (harp.grad(first)(x, steps), harp.jacfwd(first)(x, steps)))
    for steps in (0, 1, 3, 10, 20):
        expected = (slope(x + h, steps) - slope(x - h, steps)) / (2 * h)
        for found in second(x, np.int64(steps)):
            npt.assert_allclose(np.asarray(found), expected, rtol=1e-7, atol=1e-8)


def test_bounds_that_are_data():
    def f(x, a, b):
        return hnp.sum(harp.fori_loop(a, b, lambda i, c: c * hnp.cos(x * i), x))

    x, h = np.array([0.3, -0.2]), 1e-6
    value = lambda x, a, b: np.sum(x * np.prod([np.cos(x * i) for i in range(a, b)], axis=0))
    gradient = harp.jit(harp.grad(f))
    for a, b in [(0, 4), (2, 3), (3, 3), (5, 1), (-2, 6)]:
        moved = [x + h * e for e in np.eye(2)], [x - h * e for e in np.eye(2)]
        expected = [(value(p, a, b) - value(m, a, b)) / (2 * h) for p, m in zip(*moved, strict=True)]
        npt.assert_allclose(np.asarray(gradient(x, a, b)), expected, rtol=1e-7, atol=1e-9)


def test_inside_other_loops_and_branches():
    """A scan whose step has a loop that data ends, in a branch."""

    def root(c):
        return harp.while_loop(lambda x: abs(x * x - c) > 1e-13, lambda x: 0.5 * (x + c / x), c)

    def f(x):
        step = lambda total, c: (total + harp.cond(c > 1, root, lambda c: c * c, c), None)
        return harp.scan(step, 0.0, x)[0]

    x = np.array([4.0, 0.3, 2.0, 9.0])
    expected = [0.25, 0.6, 0.5 / np.sqrt(2), 1 / 6]
    for run in (lambda f: f, harp.jit):
        npt.assert_allclose(np.asarray(run(harp.grad(f))(x)), expected, rtol=1e-9)


def test_what_is_the_same_in_all_steps_has_a_derivative():
    """Matrices that the steps read: their cotangents are sums over the steps."""

    def f(a, v, steps):
        return hnp.sum(harp.while_loop(lambda now: now[0] < steps, lambda now: (now[0] + 1, a @ now[1]), (0, v))[1])

    a, v, steps = np.array([[0.9, 0.2], [-0.3, 0.8]]), np.array([1.0, -2.0]), 6
    powers = [np.linalg.matrix_power(a, k) for k in range(steps)]
    expected = sum(
        np.outer(powers[steps - 1 - k].T @ np.ones(2), powers[k] @ v) for k in range(steps)
    )  # d sum(a**n v) = sum of 1' a**(n-1-k) da a**k v
    gradient = harp.jit(harp.grad(f, argnums=(0, 1)))
    found = gradient(a, v, np.int64(steps))
    npt.assert_allclose(np.asarray(found[0]), expected, rtol=1e-12)
    npt.assert_allclose(np.asarray(found[1]), np.linalg.matrix_power(a, steps).T @ np.ones(2), rtol=1e-12)


def test_complex_carries():
    def size(z, steps):
        return abs(harp.while_loop(lambda n: n[0] < steps, lambda n: (n[0] + 1, n[1] * n[1] + z), (0, z))[1])

    z, direction = -0.2 + 0.4j, 0.6 - 0.8j
    along = harp.jit(harp.grad(lambda t, steps: size(z + t * direction, steps)))
    c, slope = z, direction
    for steps in range(6):
        npt.assert_allclose(float(along(0.0, np.int64(steps))), (c.conjugate() * slope).real / abs(c), rtol=1e-12)
        c, slope = c * c + z, 2 * c * slope + direction


def test_float32():
    x = np.float32([0.5, 0.1])
    found = harp.jit(harp.grad(loss))(x, np.int64(9))
    assert found.dtype == np.float32
    npt.assert_allclose(np.asarray(found), slope(x.astype(np.float64), 9), rtol=2e-5)


@pytest.mark.slow
def test_second_derivatives_of_examples_that_end_at_different_times(kept):
    """What an example that has ended would compute means nothing, and its loops inside might never end."""
    second = harp.jit(harp.vmap(harp.grad(lambda x, steps: harp.grad(lambda x: loss(x, steps))(x))))
    xs, steps, h = np.array([0.4, -0.2, 1.1, 0.7]), np.array([3, 0, 9, 1]), 1e-6
    expected = [(slope(x + h, k) - slope(x - h, k)) / (2 * h) for x, k in zip(xs[:, None], steps, strict=True)]
    npt.assert_allclose(np.asarray(second(xs, steps)), np.ravel(expected), rtol=1e-7, atol=1e-8)
