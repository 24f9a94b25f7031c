"""Chains, masks, clipping and errors of transformations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import optim
from harp.errors import ArgumentError, TreeError

PARAMS = {"w": np.array([1.0, 2.0]), "b": None, "c": (np.array(3.0),)}


class Foreign(NamedTuple):
    """A transformation as optax writes them, which knows nothing of harp or of further arguments."""

    init: object
    update: object


def halves(updates, state, params=None):
    return harp.tree.map(lambda g: g / 2, updates), state + 1


def test_links_of_other_packages():
    both = optim.chain(optim.scale(-1.0), Foreign(lambda params: 0, halves), optim.clip(0.75))
    init, update = both  # a pair
    updates, state = update(PARAMS, init(PARAMS), PARAMS, value=1.0)
    npt.assert_array_equal(updates["w"], [-0.5, -0.75])
    assert state[1] == 1 and updates["b"] is None


def test_chains_of_optax():
    base = pytest.importorskip("optax._src.base")
    combined = pytest.importorskip("optax").chain(optim.scale(2.0), base.stateless(lambda g, p: g), optim.scale(0.5))
    updates, _ = combined.update({"w": np.ones(2)}, combined.init({"w": np.ones(2)}))
    npt.assert_array_equal(updates["w"], [1, 1])


def test_further_arguments():
    seen = {}

    def update(updates, state, params=None, **extra_args):
        seen.update(extra_args)
        return updates, state

    inner = Foreign(lambda params: (), update)
    chain = optim.chain(optim.identity(), optim.masked(optim.chain(inner), {"w": True, "b": True, "c": False}))
    chain.update(PARAMS, chain.init(PARAMS), PARAMS, value=7)
    assert seen == {"value": 7}


@pytest.mark.parametrize(
    "mask",
    [
        {"w": True, "b": None, "c": (False,)},
        {"w": True, "b": None, "c": False},
        lambda params: harp.tree.map(lambda p: p.ndim > 0, params),
    ],
)
def test_masks(mask):
    optimiser = optim.chain(optim.masked(optim.trace(0.5), mask), optim.add_decayed_weights(0.5, mask))
    state = optimiser.init(PARAMS)
    assert len(harp.tree.leaves(state)) == 1  # one running sum
    step = harp.jit(optimiser.update)
    for factor in (1, 1.5):
        updates, state = step(PARAMS, state, PARAMS)
        npt.assert_array_equal(updates["w"], PARAMS["w"] * (factor + 0.5))
        npt.assert_array_equal(updates["c"][0], 3)


def test_global_norm_and_clipping():
    tree = {"a": np.array([3.0, 0.0]), "b": [np.array([[4.0]]), np.zeros((0, 2))]}
    assert float(optim.global_norm(tree)) == 5
    assert float(optim.global_norm({})) == 0
    clip = optim.clip_by_global_norm(2.5)
    npt.assert_allclose(clip.update(tree, ())[0]["a"], [1.5, 0])
    assert optim.clip_by_global_norm(6.0).update(tree, ())[0]["b"][0] == 4
    for dtype, large in ((np.float32, 1e30), (np.float16, 6e4)):  # squares are infinite
        (found,) = clip.update((np.full(4, large, dtype),), ())[0]
        assert found.dtype.name == np.dtype(dtype).name
        npt.assert_allclose(found, 1.25, rtol=1e-3)
    assert np.isnan(np.asarray(clip.update(np.array([1.0, np.nan]), ())[0])).all()


def test_derivative_of_clipping():
    clip = optim.clip_by_global_norm(2.5)
    slope = harp.grad(lambda x, y: hnp.sum(clip.update((x, y), ())[0][0]))
    npt.assert_array_equal(slope(np.zeros(2), np.zeros(1)), [1, 1])
    for y in (np.zeros(3), np.zeros(0)):
        npt.assert_allclose(slope(np.array([3.0, 4.0]), y), 0.5 * (1 - 7 / 25 * np.array([3.0, 4.0])), rtol=1e-12)
    z = harp.jvp(optim.global_norm, (np.array([3 + 4j, 0]),), (np.array([1 + 0j, 1]),))
    npt.assert_allclose(z, (5, 0.6), rtol=1e-12)


def test_the_count_stays_in_its_dtype():
    state = optim.scale_by_schedule(lambda count: count).init(1.0)
    last = state._replace(count=hnp.asarray(2**31 - 1, "int32"))
    _, state = optim.scale_by_schedule(lambda count: count).update(1.0, last)
    assert int(state.count) == 2**31 - 1


@pytest.mark.parametrize(
    "make, named",
    [
        (lambda: optim.chain(optim.sgd), "argument 0"),
        (lambda: optim.chain(optim.identity()).update(1.0, (), 1.0), "init"),
        (lambda: optim.adamw(0.1).update(1.0, optim.adamw(0.1).init(1.0)), "needs the parameters"),
        (lambda: optim.scale_by_lbfgs().update(1.0, optim.scale_by_lbfgs().init(1.0)), "needs the parameters"),
        (lambda: optim.lbfgs().update(1.0, optim.lbfgs().init(1.0), 1.0), "value_fn"),
        (lambda: optim.masked(optim.scale(1.0), 3).init({"w": 1.0}), "True and False"),
        (lambda: optim.clip(0.0), "max_delta"),
        (lambda: optim.clip_by_global_norm(-1), "max_norm"),
        (lambda: optim.adam(0.1, b1=1.0), "b1 of scale_by_adam"),
        (lambda: optim.adabelief(0.1, b2=-0.1), "b2 of scale_by_belief"),
        (lambda: optim.scale_by_lbfgs(0), "memory_size"),
        (lambda: optim.scale_by_wolfe_linesearch(0), "max_linesearch_steps"),
        (lambda: optim.value_and_grad_from_state(lambda x: x)(1.0, state=()), "0 line searches"),
        (lambda: optim.linear_schedule(1.0, 0.0, 0), "transition_steps"),
        (lambda: optim.cosine_decay_schedule(1.0, -1), "decay_steps"),
        (lambda: optim.exponential_decay(1.0, 1, 0.0), "decay_rate"),
        (lambda: optim.warmup_cosine_decay_schedule(0.0, 0.0, 1, 2), "peak_value"),
        (lambda: optim.warmup_cosine_decay_schedule(0.0, 1.0, 2, 2), "decay_steps"),
        (lambda: optim.piecewise_constant_schedule(1.0, {1: -0.5}), "scales"),
        (lambda: optim.join_schedules([], [1]), "one boundary less"),
    ],
)
def test_mistakes(make, named):
    with pytest.raises(ArgumentError, match=named):
        make()


def test_trees_that_differ():
    adam = optim.adam(0.1)
    with pytest.raises(TreeError):
        adam.update({"w": 1.0, "v": 2.0}, adam.init({"w": 1.0}))
    with pytest.raises(TreeError):
        optim.apply_updates({"w": 1.0}, {"v": 1.0})
