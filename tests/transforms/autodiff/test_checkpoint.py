"""Checkpointed functions: the same derivatives, with less memory."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError

RNG = np.random.default_rng(0)
WEIGHTS = [RNG.normal(size=(8, 8)) * 0.3 for _ in range(3)]
X = RNG.normal(size=(5, 8))


def layer(w, x):
    return hnp.tanh(hnp.sin(hnp.exp(x @ w) * 0.1))


def network(layer):
    def run(weights, x):
        for w in weights:
            x = layer(w, x)
        return hnp.sum(x**2)

    return run


TRANSFORMS = {
    "value": lambda f: f,
    "grad": lambda f: harp.grad(f, (0, 1)),
    "value_and_grad": harp.value_and_grad,
    "jvp": lambda f: lambda *a: harp.jvp(f, a, a),
    "second": lambda f: harp.grad(lambda w, x: hnp.sum(harp.grad(f, 1)(w, x) ** 2), 1),
    "forward over reverse": lambda f: lambda w, x: harp.jvp(lambda x: harp.grad(f, 1)(w, x), (x,), (x,)),
    "vmap": lambda f: lambda w, x: harp.vmap(harp.grad(f, 1), (None, 0))(w, hnp.stack([x, x * 2])),
}


def leaves(tree):
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, (tuple, list)) else [np.asarray(tree)]


@pytest.mark.parametrize("name", TRANSFORMS)
def test_same_derivatives(name):
    transform = TRANSFORMS[name]
    expected = leaves(transform(network(layer))(WEIGHTS, X))
    for run in (lambda f: f, harp.jit):
        found = leaves(run(transform(network(harp.checkpoint(layer))))(WEIGHTS, X))
        for a, b in zip(found, expected, strict=True):
            npt.assert_allclose(a, b, rtol=1e-10, atol=1e-13)


def test_less_memory():
    """Of twenty layers, the results are kept, and not what is computed on the way to each."""
    weights, x = [np.ones((16, 16))] * 20, np.ones((64, 16))
    peaks = []
    for each in (layer, harp.checkpoint(layer)):
        lowered = harp.jit(harp.grad(network(each))).lower(weights, x)
        peaks.append(lowered.memory().scratch)
    assert 2 * peaks[1] <= peaks[0], peaks


def test_trees_keywords_and_what_is_closed_over():
    w = WEIGHTS[0]

    def loss(x, scale):
        inner = harp.checkpoint(lambda p, *, by: {"y": hnp.sin(p["x"] @ w) * by * scale})
        return hnp.sum(inner({"x": x}, by=2.0)["y"])

    def plain(x, scale):
        return hnp.sum(hnp.sin(x @ w) * 2.0 * scale)

    for run in (lambda f: f, harp.jit):
        found, expected = (leaves(run(harp.grad(f, (0, 1)))(X, 3.0)) for f in (loss, plain))
        for a, b in zip(found, expected, strict=True):
            npt.assert_allclose(a, b, rtol=1e-12)


def test_steps_of_a_loop():
    def loss(wrap):
        step = wrap(lambda c, x: (hnp.tanh(c @ WEIGHTS[0] + x), hnp.sum(c)))
        return lambda c: hnp.sum(harp.scan(step, c, X)[0] ** 2)

    found, expected = (harp.jit(harp.grad(loss(wrap)))(X[0]) for wrap in (harp.checkpoint, lambda f: f))
    npt.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-11)


def test_one_program_for_all_sizes():
    compiled = harp.jit(harp.grad(lambda w, x: network(harp.checkpoint(layer))([w], x)))
    for n, k in ((1, 2), (0, 3), (7, 5)):
        w, x = RNG.normal(size=(k, k)), RNG.normal(size=(n, k))
        npt.assert_allclose(
            np.asarray(compiled(w, x)), np.asarray(harp.grad(lambda w, x: network(layer)([w], x))(w, x)), atol=1e-12
        )
    assert compiled.compilations <= 2


def named_layer(w, x):
    grown = harp.checkpoint_name(hnp.exp(x @ w), "grown")
    return hnp.tanh(harp.checkpoint_name(hnp.sin(grown * 0.1), "waves"))


P = harp.checkpoint_policies
POLICIES = {
    "everything": P.everything_saveable,
    "nothing": P.nothing_saveable,
    "products": P.dots_saveable,
    "a name": P.save_only_these_names("grown"),
    "two names": P.save_only_these_names("grown", "waves"),
    "all but a name": P.save_anything_except_these_names("grown"),
    "both": P.save_from_both_policies(P.dots_saveable, P.save_only_these_names("waves")),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("policy", POLICIES)
def test_policies_change_no_derivative(policy, name):
    """By the interpreter: a policy says of which nodes a graph is made, and nothing of how they are computed."""
    transform = TRANSFORMS[name]
    kept = harp.checkpoint(named_layer, policy=POLICIES[policy])
    expected = leaves(transform(network(named_layer))(WEIGHTS, X))
    for found, right in zip(leaves(transform(network(kept))(WEIGHTS, X)), expected, strict=True):
        npt.assert_allclose(np.asarray(found), np.asarray(right), rtol=1e-9, atol=1e-12)


def times_computed(what, policy=None):
    """How often an operation stands in the graph of a gradient."""
    kept = named_layer if policy is None else harp.checkpoint(named_layer, policy=policy)
    traced = harp.jit(harp.grad(lambda w, x: network(kept)([w], x))).lower(WEIGHTS[0], X)
    return str(traced.graph).count(what)


@pytest.mark.parametrize("what", ["exp(", "sin(", "tanh("])
def test_what_is_kept_is_not_computed_again(what):
    assert times_computed(what, POLICIES["everything"]) == times_computed(what)
    assert times_computed(what, POLICIES["nothing"]) > times_computed(what)


def test_what_has_a_name_is_not_computed_again():
    waves = P.save_only_these_names("waves")
    assert times_computed("sin(", waves) == times_computed("sin(")
    assert times_computed("exp(", waves) == times_computed("exp(", POLICIES["nothing"])


def test_a_policy_keeps_memory_between():
    weights, x = [RNG.normal(size=(64, 64)) * 0.1] * 12, RNG.normal(size=(256, 64))

    def scratch(policy):
        each = harp.checkpoint(named_layer, policy=policy)
        return harp.jit(harp.grad(network(each))).lower(weights, x).memory().scratch

    least, some, most = (scratch(POLICIES[p]) for p in ("nothing", "products", "everything"))
    assert least < some <= most


def test_names_change_nothing():
    x = RNG.normal(size=3)
    assert harp.checkpoint_name(x, "x") is x
    for transform in (lambda f: f, harp.grad, lambda f: harp.grad(harp.grad(f)), lambda f: harp.jvp(f, (1.0,), (1.0,))):
        plain = transform(lambda v: hnp.sin(v) ** 3)
        called = transform(lambda v: harp.checkpoint_name({"v": hnp.sin(v)}, "s")["v"] ** 3)
        for a, b in ((plain, called),) if isinstance(plain, tuple) else ((plain(1.0), called(1.0)),):
            npt.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-12)


def test_a_policy_in_loops_and_batches():
    def step(c, v):
        return hnp.tanh(harp.checkpoint_name(hnp.exp(c * 0.1), "grown") * v)

    def slope(step):
        last = lambda c, vs: harp.scan(lambda c, v: (step(c, v), None), c, vs)[0]
        return harp.jit(harp.vmap(harp.grad(last), (0, None)))

    c, vs = RNG.normal(size=4), RNG.normal(size=6)
    for policy in ("a name", "nothing", "everything"):
        found = slope(harp.checkpoint(step, policy=POLICIES[policy]))(c, vs)
        npt.assert_allclose(np.asarray(found), np.asarray(slope(step)(c, vs)), rtol=1e-9)


def test_a_policy_is_a_function():
    with pytest.raises(harp.errors.HarpError, match="policy"):
        harp.checkpoint(layer, policy="everything")


def test_static_arguments_are_passed_as_they_are():
    layer = harp.checkpoint(lambda x, kind: hnp.sin(x) if kind == "sin" else x, static_argnums=1, prevent_cse=False)
    last = harp.checkpoint(lambda kind, x: kind(x), static_argnums=(-2,), policy=None)
    for run in (lambda f: f, harp.jit):
        assert float(run(harp.grad(lambda x: layer(x, "sin")))(0.0)) == 1
        assert float(run(harp.grad(lambda x: last(hnp.cos, x)))(0.0)) == 0
    with pytest.raises(ArgumentError, match=r"argument kind is a str.*static_argnums"):
        harp.grad(lambda x: harp.checkpoint(lambda x, kind: x)(x, "sin"))(0.0)
