"""The recurrent network: values and gradients against NumPy and JAX, one program for all lengths and batches."""

import re

import numpy as np
import pytest

import harp


@pytest.fixture
def example(load):
    return load("gru")


@pytest.fixture
def params(example):
    """In float64."""
    return doubled(example.initial_params(0))


def doubled(params):
    return harp.tree.map(lambda p: np.asarray(p).astype(np.float64), params)


def loss(xp, hidden, params, xs, ys):
    """The loss with a loop in Python, by NumPy's functions or those of a namespace like it."""
    h = xp.zeros((xs.shape[1], hidden))
    gru = params["gru"]
    for x in xs:
        given, own = x @ gru["input"] + gru["bias"], h @ gru["state"] + gru["state_bias"]
        gates = 1 / (1 + xp.exp(-(given + own)[:, : 2 * hidden]))
        reset, kept = gates[:, :hidden], gates[:, hidden:]
        h = kept * h + (1 - kept) * xp.tanh(given[:, 2 * hidden :] + reset * own[:, 2 * hidden :])
    return xp.mean((h @ params["out_w"] + params["out_b"] - ys) ** 2)


def problem(example, length, batch):
    xs, ys = example.adding_problem(length, batch, np.random.default_rng(length))
    return xs.astype(np.float64), ys.astype(np.float64)


def test_adding_problem(example):
    xs, ys = example.adding_problem(20, 50, np.random.default_rng(0))
    numbers, marks = xs[..., 0], xs[..., 1]
    assert (marks.sum(axis=0) == 2).all()
    np.testing.assert_allclose((numbers * marks).sum(axis=0), ys, rtol=1e-6)


def test_gradient_against_imaginary_steps(example, params):
    """The imaginary part of f(x + ih) / h is the derivative, without the cancellation of differences."""
    rng = np.random.default_rng(1)
    for length, batch in ((10, 7), (33, 1), (2, 3)):
        xs, ys = problem(example, length, batch)
        value, gradient = example.value_and_gradient(params, xs, ys)
        assert float(value) == pytest.approx(loss(np, example.HIDDEN, params, xs, ys), rel=1e-12)
        leaves, structure = harp.tree.flatten(params)
        for k, (p, slopes) in enumerate(zip(leaves, harp.tree.leaves(gradient), strict=True)):
            direction = rng.normal(size=p.shape)
            moved = harp.tree.unflatten(structure, [*leaves[:k], p + 1e-30j * direction, *leaves[k + 1 :]])
            slope = loss(np, example.HIDDEN, moved, xs, ys).imag / 1e-30
            assert np.sum(np.asarray(slopes) * direction) == pytest.approx(slope, rel=1e-10, abs=1e-13), k


def test_gradient_against_jax(example, params):
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    try:
        xs, ys = problem(example, 33, 7)
        expected = jax.grad(lambda p: loss(jax.numpy, example.HIDDEN, p, xs, ys))(params)
        _, gradient = example.value_and_gradient(params, xs, ys)
        for slopes, right in zip(harp.tree.leaves(gradient), harp.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(slopes), right, rtol=1e-9, atol=1e-12)
    finally:
        jax.config.update("jax_enable_x64", False)


def test_one_program(example):
    params = example.initial_params(0)
    state = example.OPTIMISER.init(params)
    for length in (10, 33, 1000):
        for batch in (1, 7):
            xs, ys = example.adding_problem(length, batch, np.random.default_rng(0))
            *_, value = example.train_step(params, state, xs, ys)
            exact = loss(np, example.HIDDEN, doubled(params), xs, ys)
            assert float(value) == pytest.approx(exact, rel=1e-4)
    assert example.train_step.compilations == 1


@pytest.mark.slow
def test_main(example, run):
    printed = run(example, "--steps", "600")
    error = re.search(r"^mean square error: (\d\.\d+) at length 50", printed)
    assert float(error[1]) < example.IGNORANT / 2
    assert "programs compiled: 1 for the train step, 1 to test" in printed


def test_needs_a_step(example, capsys):
    with pytest.raises(SystemExit):
        example.main(["--steps", "0"])
    assert "--steps" in capsys.readouterr().err
