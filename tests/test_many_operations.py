"""Programs of many operations: no pass, printer or verifier recurses by their number, and none needs more than time in
proportion to it.

HARP_OPERATIONS=20000 runs them with so many, which takes minutes.
"""

import copy
import inspect
import os
import pickle
import sys

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.config import settings

OPERATIONS = int(os.environ.get("HARP_OPERATIONS", "600"))
FRAMES = 560  # that a stage may use, of the 1,000 that Python has: those before it are not harp's


def chain(xp, x, y, n=OPERATIONS):
    for t in range(n // 3):
        x = x * y + 0.5 if t % 3 else xp.sin(x) - 0.3 * y
    return x


def comb(xp, x, y, n=OPERATIONS):
    """Each value of a chain is read again in the end, in the other order."""
    teeth, s = [], x
    for t in range(n // 5):
        s = xp.cos(s) * y
        teeth.append(s + 0.25 * t)
    total = x
    for tooth in reversed(teeth):
        total = 0.5 * total + 0.1 * tooth
    return total


def butterfly(xp, x, y, n=OPERATIONS):
    """Each of 32 values goes into two of the next stage."""
    v = [x * (0.1 * k) + y for k in range(32)]
    for stage in range(n // 64 + 1):
        half = 1 << stage % 5
        pairs = {k: (v[k], v[k | half]) for k in range(32) if not k & half}
        for k, (a, b) in pairs.items():
            v[k], v[k | half] = 0.5 * (a + b), 0.4 * (a - b)
    return sum(v[1:], v[0])


def ring(xp, x, y, n=OPERATIONS):
    """Each operation replaces one of 12 values by one of two others."""
    v = [x + 0.02 * k * y for k in range(12)]
    for t in range(n // 2):
        i, j = t * 7 % 12, (t * 11 + 3) % 12
        v[(t * 5 + 1) % 12] = 0.5 * v[i] * v[j] + 0.5 if t % 3 else v[i] - 0.3 * v[j]
    return sum(v[1:], v[0])


def running_sums(xp, x, y, n=OPERATIONS):
    for _ in range(n // 8):
        x = xp.cumsum(x) * y
    return x


def row_values(xp, x, y, n=OPERATIONS):
    """A value for each row in each operation on a matrix."""
    z = x[:, None] * y[None, :]
    for k in range(n // 8):
        z = z * (xp.sin(x * k) * xp.cos(x + k) + x / (k + 1) + 0.7)[:, None]
    return xp.sum(z, axis=0)


def places(xp, x, y, n=OPERATIONS):
    """Roll, flip and choose."""
    for k in range(n // 8):
        x = xp.where(x > 0.01 * k, xp.roll(x, 1) * 0.9, xp.flip(x) + 0.1) * y
    return x


SHAPES = [chain, comb, butterfly, ring, running_sums, row_values, places]
X, Y = np.linspace(0.1, 0.3, 5), np.linspace(0.2, 0.4, 5)


@pytest.fixture
def few_frames():
    """The stage under test has few frames. What harp loads at its first call is loaded before."""
    harp.jit(harp.grad(lambda x: hnp.sum(x * x))).lower(X).html()
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + FRAMES)
    yield
    sys.setrecursionlimit(limit)


def repeated(f):
    return lambda x, y: harp.lax.scan(lambda c, _: (f(c, y), None), x, None, length=2)[0]


STAGES = {
    "plain": lambda f: f,
    "grad": lambda f: harp.grad(lambda x, y: hnp.sum(f(x, y))),
    "jvp": lambda f: lambda x, y: harp.jvp(f, (x, y), (y, x)),
    "checkpoint": lambda f: harp.grad(lambda x, y: hnp.sum(harp.checkpoint(f)(x, y))),
    "scan": repeated,
    "grad of scan": lambda f: harp.grad(lambda x, y: hnp.sum(repeated(f)(x, y))),
    "cond": lambda f: lambda x, y: harp.lax.cond(x[0] > 0, lambda: f(x, y), lambda: f(y, x)),
    "vmap": lambda f: lambda x, y: harp.vmap(f)(hnp.stack([x, y]), hnp.stack([y, x])),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.usefixtures("few_frames")
def test_values(shape):
    got = shape(hnp, hnp.asarray(X), hnp.asarray(Y))
    np.testing.assert_allclose(np.asarray(got), shape(np, X, Y), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("stage", STAGES if OPERATIONS > 600 else ("plain", "checkpoint", "scan"))
@pytest.mark.parametrize("shape", [ring, running_sums])
@pytest.mark.usefixtures("few_frames")
def test_each_transform_is_lowered_and_printed(shape, stage):
    """The two shapes whose kernels have the most variables."""
    stages = harp.jit(STAGES[stage](lambda x, y: shape(hnp, x, y))).lower(X, Y)
    assert str(stages) and repr(stages.graph) and repr(stages.schedule) and stages.loops and stages.source
    assert stages.cost().at().operations > 0


@pytest.mark.parametrize("shape", [s for s in SHAPES if s not in (ring, running_sums)])
@pytest.mark.parametrize("stage", ["plain", "grad"] if OPERATIONS > 600 else ["plain"])
@pytest.mark.usefixtures("few_frames")
def test_each_shape_is_lowered_and_verified(shape, stage, monkeypatch):
    monkeypatch.setattr(settings, "verify", 2)
    assert harp.jit(STAGES[stage](lambda x, y: shape(hnp, x, y))).lower(X, Y).html()


@pytest.mark.usefixtures("few_frames")
def test_pickles_and_copies():
    """A value outside of a trace is numbers, whatever computed it."""
    value = ring(hnp, hnp.asarray(X), hnp.asarray(Y))
    for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        np.testing.assert_array_equal(np.asarray(again), np.asarray(value))
