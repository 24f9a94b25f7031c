"""The hypergeometric functions against 40 digits: values, or NaN where digits are lost, special points, derivatives."""

import mpmath
import numpy as np
import pytest
from mpmath import mp

import harp
import harp.numpy as hnp
from harp.scipy import special
from harp.test_util import check_grads

INF, NAN = np.inf, np.nan
RNG = np.random.default_rng(0)
KUMMER = [
    (0, 0, 1, 1), (1, 0, 1, INF), (-2, -3, 2, 3), (-3, -2, 2, INF), (1, 1, 700, np.exp(700)), (1, 2, -1e4, 1e-4),
    (1, 2, 1e4, INF), (1, 1, 0, 1), (-1, 1, 1, 0), (NAN, 1, 1, NAN), (2.5, 2.5, -50, np.exp(-50)), (1, 2, NAN, NAN),
]  # fmt: skip
GAUSS = [
    (1, 1, 2, 1, INF), (1, 1, 3, 1, 2), (-2, 1, 3, 1, 0.5), (0.5, 0.5, 2, 1, 4 / np.pi), (1, 2, 3, 2.0, NAN),
    (0, 1, 2, 0.5, 1), (1, 2, 0, 0.5, INF), (-2, 1, -3, 0.5, 17 / 12), (1, 1, 2, -1e10, np.log1p(1e10) / 1e10),
    (1, 1, 1, 0.0, 1), (1, 2, 2, 0.7, 1 / 0.3), (NAN, 1, 1, 0.1, NAN), (1, -1, 3, 0.9, 0.7),
]  # fmt: skip


def exact(name, *given):
    with mp.workdps(40):
        return float(getattr(mpmath, name)(*map(mp.mpf, given)).real)


@pytest.mark.parametrize(("name", "size", "farthest", "digits", "most"), [
    ("hyp1f1", 40, 160, 1e-11, 0.02), ("hyp1f1", 300, 1200, 1e-11, 0.5),
    ("hyp2f1", 10, 3, 1e-11, 0), ("hyp2f1", 100, 3, 1e-9, 0.5),
])  # fmt: skip
def test_large_parameters_are_right_or_nan(name, size, farthest, digits, most):
    """A share of at most so much is NaN."""
    count = 60
    parameters = [RNG.uniform(-size, size, count) for _ in range(2 if name == "hyp1f1" else 3)]
    x = RNG.uniform(-farthest, farthest if name == "hyp1f1" else 1, count)
    found = np.asarray(getattr(special, name)(*parameters, x))
    expected = np.array([exact(name, *map(float, row)) for row in zip(*parameters, x, strict=True)])
    there = np.isfinite(found)
    np.testing.assert_allclose(found[there], expected[there], rtol=digits)
    assert np.mean(~there & np.isfinite(expected)) <= most


def test_one_program_near_one_and_far_away():
    program = harp.jit(special.hyp2f1)
    for n in (0, 1, 7):
        a, b, c = 10 ** RNG.uniform(-2, 1, (3, n))
        x = np.where(np.arange(n) % 2, 1 - 10 ** RNG.uniform(-12, 0, n), -(10 ** RNG.uniform(-2, 6, n)))
        expected = [exact("hyp2f1", *map(float, row)) for row in zip(a, b, c, x, strict=True)]
        np.testing.assert_allclose(program(a, b, c, x), expected, rtol=1e-12)
    assert program.compilations == 1
    batched = harp.vmap(special.hyp2f1, (0, None, 0, 0))(a, 1.5, c, x)
    np.testing.assert_allclose(batched, special.hyp2f1(a, 1.5, c, x), rtol=1e-14)
    assert special.hyp2f1(np.float32(1), np.float32(1), np.float32(2), np.float32(0.5)).dtype == "float32"


def test_special_points():
    for function, rows in ((special.hyp1f1, KUMMER), (special.hyp2f1, GAUSS)):
        *given, expected = np.array(rows).T
        np.testing.assert_allclose(function(*given), expected, rtol=1e-12, atol=1e-15)


POINTS = {
    "hyp1f1": [(1.0, 2.0, 0.5), (0.3, 1.3, -3.0), (-2.0, 3.0, 0.7), (2.0, 1.5, 120.0), (2.0, 1.5, -120.0)],
    "hyp2f1": [(1.0, 2.0, 2.5, 0.5), (0.3, 1.3, 1.2, -3.0), (-2.0, 3.0, 2.5, 0.2), (1.5, 0.5, 0.7, 0.9)],
}


@pytest.mark.parametrize("name", POINTS)
def test_derivatives(name):
    """By all arguments, also where a series ends."""
    columns = np.transpose(POINTS[name])
    function, moving = getattr(special, name), tuple(range(len(columns)))
    slopes = harp.grad(lambda *given: hnp.sum(function(*given)), moving)(*columns)
    for j, point in enumerate(POINTS[name]):
        for k in moving:
            with mp.workdps(40):
                order = tuple(int(i == k) for i in moving)
                expected = float(mp.diff(getattr(mpmath, name), tuple(map(mp.mpf, point)), order))
            np.testing.assert_allclose(np.asarray(slopes[k])[j], expected, rtol=1e-11)
    near = [column[:2] for column in columns]
    check_grads(lambda x: function(*near[:-1], x), (near[-1],), 1)
