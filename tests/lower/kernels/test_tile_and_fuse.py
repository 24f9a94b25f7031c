"""Products and work on their rows become one kernel over blocks of rows, whose bits are those of the single kernels."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.lower.kernels import tile_and_fuse as pass_
from harp.lower.pipeline import lower
from harp.lower.target import Target
from harp.trace.sizes.signature import canonical

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def softmax(xp, x):
    raised = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return raised / xp.sum(raised, axis=-1, keepdims=True)


def attention(xp, q, k, v):
    return softmax(xp, q @ xp.swapaxes(k, -1, -2)) @ v


def heads(xp, q, k, v):
    n, d = q.shape
    q, k, v = (x.reshape(x.shape[0], 4, d // 4).transpose(1, 0, 2) for x in (q, k, v))
    return attention(xp, q, k, v).transpose(1, 0, 2).reshape(n, d)


def causal(xp, q, k, v):
    scores = q @ k.T
    here = xp.arange(scores.shape[0])[:, None] >= xp.arange(scores.shape[1])[None, :]
    return softmax(xp, xp.where(here, scores, -1e30)) @ v


def ragged(xp, q, k, v):
    """Keys of another number than queries, and a bias that is not of the group."""
    return softmax(xp, q @ k.T * 0.5 + k[:, 0]) @ v + q[:, :1]


def kernels(function, *args):
    return lower(canonical(harp.trace(function, *args)), Target(fma=True)).program.kernels


PROGRAMS = {
    "one head": (attention, lambda n, m: (normal(n, 8), normal(m, 8), normal(m, 5))),
    "batch": (attention, lambda n, m: (normal(2, n, 8), normal(2, m, 8), normal(2, m, 5))),
    "heads": (heads, lambda n, m: (normal(n, 16), normal(m, 16), normal(m, 16))),
    "causal": (causal, lambda n, m: (normal(n, 8), normal(m, 8), normal(m, 5))),
    "ragged": (ragged, lambda n, m: (normal(n, 8), normal(m, 8), normal(m, 5))),
}
SIZES = [(1, 1), (3, 2), (63, 65), (64, 64), (65, 40), (200, 130)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name):
    function, make = PROGRAMS[name]
    compiled = harp.jit(lambda *args: function(hnp, *args))
    for n, m in SIZES:
        args = make(n, m)
        exact = function(np, *(x.astype(np.float64) for x in args))
        np.testing.assert_allclose(np.asarray(compiled(*args)), exact, rtol=2e-5, atol=2e-6)
    assert compiled.compilations <= 3  # sizes of 1 broadcast


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_kernel_without_scores_in_memory(name):
    function, make = PROGRAMS[name]
    program = lower(canonical(harp.trace(lambda *args: function(hnp, *args), *make(70, 90))), Target(fma=True)).program
    assert len(program.kernels) == 1 and not program.scratch


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_bits_as_single_kernels(name, monkeypatch, tmp_path):
    function, make = PROGRAMS[name]
    args = make(150, 70)
    fused = np.asarray(harp.jit(lambda *args: function(hnp, *args))(*args))
    monkeypatch.setattr(pass_, "_NEAR", 1)
    single = harp.jit(lambda *args: 1 * function(hnp, *args))
    assert len(kernels(lambda *args: function(hnp, *args), *args)) == 3
    np.testing.assert_array_equal(fused, np.asarray(single(*args)))


def test_rows_have_the_same_bits_in_every_batch():
    compiled = harp.jit(lambda *args: attention(hnp, *args))
    q, k, v = normal(300, 8), normal(90, 8), normal(90, 5)
    whole = np.asarray(compiled(q, k, v))
    for rows in (2, 63, 64, 65, 129):
        np.testing.assert_array_equal(np.asarray(compiled(q[:rows], k, v)), whole[:rows])


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name):
    function, make = PROGRAMS[name]
    args = [x.astype(np.float64) for x in make(70, 66)]
    weights = RNG.normal(size=function(np, *args).shape)
    found = harp.jit(harp.grad(lambda *args: hnp.sum(function(hnp, *args) * weights), argnums=(0, 1, 2)))(*args)
    for number, slope in enumerate(found):
        step = RNG.normal(size=args[number].shape)
        ends = []
        for h in (1e-6, -1e-6):
            moved = [x + h * step if k == number else x for k, x in enumerate(args)]
            ends.append(np.sum(function(np, *moved) * weights))
        np.testing.assert_allclose(np.sum(np.asarray(slope) * step), (ends[0] - ends[1]) / 2e-6, rtol=1e-4)


def test_what_is_returned_stays_in_memory():
    def weights_too(q, k, v):
        weights = softmax(hnp, q @ k.T)
        return weights, weights @ v

    q, k, v = normal(70, 8), normal(90, 8), normal(90, 5)
    weights, out = harp.jit(weights_too)(q, k, v)
    exact = softmax(np, q.astype("f8") @ k.T)
    np.testing.assert_allclose(np.asarray(weights), exact, rtol=2e-5, atol=1e-7)
    np.testing.assert_allclose(np.asarray(out), exact @ v, rtol=2e-5, atol=2e-6)


def test_rows_of_other_rows_are_no_group():
    """Columns of the scores are read by the second kernel: it needs all rows."""
    q, k, v = normal(70, 8), normal(90, 8), normal(70, 5)
    made = kernels(lambda q, k, v: softmax(hnp, (q @ k.T).T) @ v, q, k, v)
    compiled = harp.jit(lambda q, k, v: softmax(hnp, (q @ k.T).T) @ v)
    assert len(made) > 1
    np.testing.assert_allclose(
        np.asarray(compiled(q, k, v)), softmax(np, (q.astype("f8") @ k.T).T) @ v, rtol=2e-5, atol=2e-6
    )


def test_layers_stay_single_products():
    """What passes between the layers is no larger than what goes in: products of all rows are faster."""
    x, first, second = normal(70, 8), normal(8, 8), normal(8, 8)
    made = kernels(lambda x, a, b: hnp.tanh(x @ a) @ b, x, first, second)
    assert len(made) >= 2


def test_kernels_between_do_not_matter():
    """The projection of the values is computed after the scores, and read by the second product."""

    def projected(xp, x, a, b, c):
        return attention(xp, x @ a, x @ b, x @ c)

    x, a, b, c = normal(70, 8), normal(8, 4), normal(8, 4), normal(8, 6)
    made = kernels(lambda *args: projected(hnp, *args), x, a, b, c)
    assert sum("max" in kernel.name for kernel in made) == 1 and len(made) <= 4
    exact = projected(np, *(p.astype("f8") for p in (x, a, b, c)))
    np.testing.assert_allclose(np.asarray(harp.jit(lambda *args: projected(hnp, *args))(x, a, b, c)), exact, rtol=1e-3)
