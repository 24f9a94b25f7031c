"""Optimisers against their formulas in NumPy, and against optax where that is installed."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import optim

RNG = np.random.default_rng(0)
RATE = 0.1
STEPS = 4


def gradients(shape=(3, 2), dtype=np.float64):
    """For each step a tree, whose first element is 0 throughout."""
    found = []
    for _ in range(STEPS):
        w = RNG.normal(size=shape)
        w.reshape(-1)[:1] = 0
        found.append({"w": w.astype(dtype), "b": [RNG.normal(size=shape[-1:]).astype(dtype)]})
    return found


# Formulas for one array: (x, g, its state, the number of the step) -> the update.


def momentum(x, g, s, t):
    s["m"] = g + 0.9 * s.get("m", 0)
    return -RATE * s["m"]


def nesterov(x, g, s, t):
    s["m"] = g + 0.9 * s.get("m", 0)
    return -RATE * (g + 0.9 * s["m"])


def adam_direction(g, s, t, ahead=False):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.99 * s.get("v", 0) + 0.01 * abs(g) ** 2
    mean = s["m"] / (1 - 0.9**t)
    if ahead:
        mean = 0.9 * s["m"] / (1 - 0.9 ** (t + 1)) + 0.1 * g / (1 - 0.9**t)
    return mean / (np.sqrt(s["v"] / (1 - 0.99**t) + 1e-9) + 1e-3)


def adagrad(x, g, s, t):
    s["q"] = s.get("q", 0) + g**2
    return -RATE * np.divide(g, np.sqrt(s["q"] + 1e-7), out=np.zeros_like(g), where=s["q"] > 0)


def rms(g, s):
    s["q"] = 0.9 * s.get("q", 0.5) + 0.1 * g**2
    return g / np.sqrt(s["q"] + 1e-8)


def rmsprop_momentum(x, g, s, t):
    s["m"] = -RATE * rms(g, s) + 0.5 * s.get("m", 0)
    return s["m"]


def rmsprop_outside(x, g, s, t):
    s["q"] = 0.9 * s.get("q", 0) + 0.1 * g**2
    return -RATE * g / (np.sqrt(s["q"]) + 1e-8)


def lion(x, g, s, t):
    update = np.sign(0.9 * s.get("m", 0) + 0.1 * g) + 0.25 * x
    s["m"] = 0.99 * s.get("m", 0) + 0.01 * g
    return -RATE * update


def adabelief(x, g, s, t):
    s["m"] = 0.9 * s.get("m", 0) + 0.1 * g
    s["v"] = 0.999 * s.get("v", 0) + 0.001 * (g - s["m"]) ** 2 + 1e-10
    return -RATE * (s["m"] / (1 - 0.9**t)) / (np.sqrt(s["v"] / (1 - 0.999**t)) + 1e-8)


ADAM = {"b2": 0.99, "eps": 1e-3, "eps_root": 1e-9}
# For each: what makes it, of harp.optim or optax, and its formula.
ROWS = {
    "sgd": (lambda o: o.sgd(RATE), lambda x, g, s, t: -RATE * g),
    "momentum": (lambda o: o.sgd(RATE, 0.9), momentum),
    "nesterov": (lambda o: o.sgd(RATE, momentum=0.9, nesterov=True), nesterov),
    "adam": (lambda o: o.adam(RATE, **ADAM), lambda x, g, s, t: -RATE * adam_direction(g, s, t)),
    "nadam": (
        lambda o: o.adam(RATE, **ADAM, nesterov=True),
        lambda x, g, s, t: -RATE * adam_direction(g, s, t, ahead=True),
    ),
    "adamw": (
        lambda o: o.adamw(RATE, **ADAM, weight_decay=0.25),
        lambda x, g, s, t: -RATE * (adam_direction(g, s, t) + 0.25 * x),
    ),
    "scheduled": (
        lambda o: o.adamw(lambda t: RATE * 0.5 ** t.astype("float64"), **ADAM, weight_decay=lambda t: 0.25 * t),
        lambda x, g, s, t: -RATE * 0.5 ** (t - 1) * (adam_direction(g, s, t) + 0.25 * (t - 1) * x),
    ),
    "adagrad": (lambda o: o.adagrad(RATE, 0.0), adagrad),
    "rmsprop": (lambda o: o.rmsprop(RATE, initial_scale=0.5), lambda x, g, s, t: -RATE * rms(g, s)),
    "rmsprop_momentum": (lambda o: o.rmsprop(RATE, initial_scale=0.5, momentum=0.5), rmsprop_momentum),
    "rmsprop_outside": (lambda o: o.rmsprop(RATE, eps_in_sqrt=False), rmsprop_outside),
    "lion": (lambda o: o.lion(RATE, weight_decay=0.25), lion),
    "adabelief": (lambda o: o.adabelief(RATE, eps=1e-8, eps_root=1e-10), adabelief),
    "clip": (
        lambda o: o.chain(o.clip(0.5), o.scale(-RATE)),
        lambda x, g, s, t: -RATE * np.clip(g, -0.5, 0.5),
    ),
}
OPTIMISERS = {name: make(optim) for name, (make, _) in ROWS.items()}


def expected(formula, params, steps):
    """The parameters after each step, in float64."""
    x = [leaf.astype(np.result_type(leaf, np.float64)) for leaf in harp.tree.leaves(params)]
    states = [{} for _ in x]
    for t, tree in enumerate(steps, 1):
        gs = [g.astype(np.result_type(g, np.float64)) for g in harp.tree.leaves(tree)]
        x = [p + formula(p, g, s, t) for p, g, s in zip(x, gs, states, strict=True)]
    return x


def after(optimiser, params, steps):
    state = optimiser.init(params)
    for g in steps:
        updates, state = optimiser.update(g, state, params)
        params = optim.apply_updates(params, updates)
    return params, state


def check(found, params, formula, steps, rtol, atol=0):
    for leaf, exact in zip(harp.tree.leaves(found), expected(formula, params, steps), strict=True):
        npt.assert_allclose(np.asarray(leaf), exact, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", ROWS)
def test_formula(name):
    steps = gradients()
    params = steps[0]
    found, _ = after(OPTIMISERS[name], params, steps)
    check(found, params, ROWS[name][1], steps, 1e-13, 1e-15)


@harp.jit
def all_steps(params, steps):
    """All optimisers in one program: parameters and states after `steps`, a tree whose leaves have a row for each."""

    def one(carry, g):
        found = {}
        for name, (p, state) in carry.items():
            updates, state = OPTIMISERS[name].update(g, state, p)
            found[name] = optim.apply_updates(p, updates), state
        return found, None

    start = {name: (params, optimiser.init(params)) for name, optimiser in OPTIMISERS.items()}
    return harp.scan(one, start, steps)[0]


def test_one_program_of_a_scan_for_all_sizes():
    for shape in ((3, 2), (1, 1), (0, 4), (5, 3)):
        steps = gradients(shape, np.float32)
        found = all_steps(steps[0], harp.tree.map(lambda *rows: np.stack(rows), *steps))
        for name, (params, _) in found.items():
            assert {leaf.dtype.name for leaf in harp.tree.leaves(params)} == {"float32"}
            check(params, steps[0], ROWS[name][1], steps, 2e-5, 2e-6)
    assert all_steps.compilations == 1


@pytest.mark.parametrize("name", ROWS)
def test_against_optax(name):
    optax, jax = pytest.importorskip("optax"), pytest.importorskip("jax")
    steps = gradients()
    with jax.enable_x64(True):
        params, transformation = jax.tree.map(jax.numpy.asarray, steps[0]), ROWS[name][0](optax)
        state = transformation.init(params)
        for g in jax.tree.map(jax.numpy.asarray, steps):
            updates, state = transformation.update(g, state, params)
            params = optax.apply_updates(params, updates)
    found, own = after(OPTIMISERS[name], steps[0], steps)
    for leaf, exact in zip(harp.tree.leaves(found), jax.tree.leaves(params), strict=True):
        npt.assert_allclose(np.asarray(leaf), exact, rtol=1e-6, atol=1e-7)  # powers of decays are float32 there
    for leaf, exact in zip(harp.tree.leaves(own), jax.tree.leaves(state), strict=True):
        npt.assert_allclose(np.asarray(leaf), exact, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_dtypes_stay(dtype):
    kept = np.dtype(pytest.importorskip("ml_dtypes").bfloat16 if dtype == "bfloat16" else dtype)
    steps = gradients(dtype=kept)
    for name in ("adamw", "rmsprop_momentum", "scheduled"):
        found, state = after(OPTIMISERS[name], steps[0], steps)
        arrays = harp.tree.leaves((found, state))
        assert {leaf.dtype.name for leaf in arrays} <= {dtype, "int32"}
    found, _ = after(OPTIMISERS["momentum"], steps[0], steps)
    check(harp.tree.map(lambda x: x.astype("float64"), found), steps[0], momentum, steps, 0.05, 0.05)


def test_means_of_another_dtype():
    for make in (optim.adam, optim.lion):
        state = after(make(RATE, mu_dtype="float32"), {"w": np.ones(2)}, [{"w": np.ones(2)}])[1][0]
        assert state.mu["w"].dtype.name == "float32"
    state = after(optim.sgd(RATE, 0.9, accumulator_dtype="float32"), np.ones(2), [np.ones(2)])[1][0]
    assert state.trace.dtype.name == "float32"


def test_complex():
    steps = [{"z": RNG.normal(size=3) + 1j * RNG.normal(size=3)} for _ in range(STEPS)]
    found, state = after(OPTIMISERS["adam"], steps[0], steps)
    check(found, steps[0], ROWS["adam"][1], steps, 1e-13)
    assert state[0].nu["z"].dtype.name == "float64"


def after_a_step(rate, x, name="adam"):
    optimiser = optim.adam(rate, **ADAM) if name == "adam" else optim.sgd(rate, 0.9)
    function = lambda x: hnp.sum(hnp.cos(x) * x)
    state = optimiser.init(x)
    for _ in range(2):
        updates, state = optimiser.update(harp.grad(function)(x), state, x)
        x = optim.apply_updates(x, updates)
    return function(x)


def test_gradient_through_steps():
    x, h = np.array([0.3, -1.2, 2.0]), 1e-6
    by_rate, by_x = harp.jit(harp.grad(after_a_step, argnums=(0, 1)))(0.1, x)
    npt.assert_allclose(by_rate, (after_a_step(0.1 + h, x) - after_a_step(0.1 - h, x)) / (2 * h), rtol=1e-6)
    for k, unit in enumerate(np.eye(3)):
        difference = (after_a_step(0.1, x + h * unit) - after_a_step(0.1, x - h * unit)) / (2 * h)
        npt.assert_allclose(by_x[k], difference, rtol=1e-6)
    npt.assert_allclose(harp.jvp(after_a_step, (0.1, x), (1.0, 0 * x))[1], by_rate, rtol=1e-12)


def test_batch_of_optimisers():
    rates, x = np.array([0.1, 0.2, 0.4]), np.array([0.3, -1.2])
    batch = harp.vmap(after_a_step, in_axes=(0, None))(rates, x)
    npt.assert_allclose(batch, [after_a_step(rate, x) for rate in rates], rtol=1e-13)
    states = harp.vmap(optim.adam(0.1).init)(np.ones((3, 2)))
    _, states = harp.vmap(optim.adam(0.1).update)(np.ones((3, 2)), states)
    assert states[0].count.shape == (3,) and states[0].mu.shape == (3, 2)


def test_gradients_of_another_tree_than_the_state():
    optimiser = harp.optim.adam(0.1)
    state = optimiser.init({"b": np.ones(2)})
    with pytest.raises(
        harp.errors.TreeError, match=r"update: the gradients are PyTreeDef\(\{'a': \*\}\), but mu of .* init"
    ):
        optimiser.update({"a": np.ones(2)}, state)
