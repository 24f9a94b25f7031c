"""Functions with derivatives of their own that read arrays of the function round them, beside formulas in NumPy."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ClosureGradientError, GradientError

X, S = np.array([0.3, 0.5]), np.array([2.0, 4.0])
SLOPE = 3 * np.cos(X)  # for s = 1; three times the derivative, so that it can be told apart


def by_tangents(in_body, in_rule):
    @harp.custom_jvp
    def g(x):
        return hnp.sin(x) * in_body

    g.defjvp(lambda p, t: (g(*p), 3 * t[0] * in_rule * hnp.cos(p[0])))
    return g


def by_cotangents(in_body, in_rule):
    @harp.custom_vjp
    def g(x):
        return hnp.sin(x) * in_body

    g.defvjp(lambda x: (g(x), x), lambda x, ct: (3 * ct * in_rule * hnp.cos(x),))
    return g


def slope(f, x):
    return harp.grad(lambda x: hnp.sum(f(x)))(x)


def loop(make, s, x):
    g = make(s * 1.0, s + 0)
    return hnp.sum(harp.fori_loop(0, 3, lambda i, c: c + g(x * (i + 1)), x))


def scan(make, s, x):
    return hnp.sum(harp.scan(lambda c, i: (c + make(s * i, s * i)(x * i), None), x, np.arange(1.0, 4))[0])


def while_(make, s, x):
    step = lambda c: (c[0] + 1, c[1] + make(s, s)(x * c[0]))
    return hnp.sum(harp.while_loop(lambda c: c[0] < 3, step, (1, x))[1])


def checkpointed(make, s, x, policy):
    keep = getattr(harp.checkpoint_policies, policy)
    return slope(lambda x: harp.checkpoint(lambda s, x: make(s * 1.0, s)(x), policy=keep)(s, x), x)


def steps(power, first=1, last=3):
    return 1 + sum(3 * 2 * np.cos(X * i) * i**power for i in range(first, last + 1))


# What is computed of a way to make the function, of s, and of x; and what comes out for s = 2, or for both of `S`.
COMPUTED = {
    "value": (lambda make, s, x: make(s, s)(x), 2 * np.sin(X)),
    "gradient": (lambda make, s, x: slope(make(s, s), x), 2 * SLOPE),
    "of what is computed": (lambda make, s, x: slope(lambda x: make(s * s / 2, s * s / 2)(x), x), 2 * SLOPE),
    "in the function that is differentiated": (
        lambda make, s, x: slope(lambda x: make(s * 1.0, s + 0)(x), x),
        2 * SLOPE,
    ),
    "rule only": (lambda make, s, x: slope(make(7.0, s), x), 2 * SLOPE),
    "argument": (lambda make, s, x: harp.grad(lambda s, x: hnp.sum(make(s, s)(x)), 1)(s, x), 2 * SLOPE),
    "forward": (lambda make, s, x: harp.jvp(make(s, s), (x,), (np.ones(2),))[1], 2 * SLOPE),
    "second": (lambda make, s, x: harp.hessian(lambda x: hnp.sum(make(s, s)(x)))(x), np.diag(-6 * np.sin(X))),
    "a gradient by what its rule reads": (
        lambda make, s, x: harp.grad(lambda s: hnp.sum(slope(make(7.0, s), x)))(s),
        np.sum(SLOPE),
    ),
    "stopped": (lambda make, s, x: harp.grad(lambda s: s + make(harp.stop_gradient(s), s)(x)[0])(s), 1.0),
    "batch of closures": (lambda make, s, x: harp.vmap(lambda s: slope(make(s, s), x))(S), np.outer(S, SLOPE)),
    "gradient of a batch": (lambda make, s, x: slope(lambda x: harp.vmap(lambda s: make(s, s)(x))(S), x), 6 * SLOPE),
    "batch of arguments": (lambda make, s, x: harp.vmap(harp.grad(make(s, s)))(x), 2 * SLOPE),
    "loop": (lambda make, s, x: harp.grad(partial(loop, make), 1)(s, x), steps(1)),
    "loop forward": (lambda make, s, x: harp.jvp(partial(loop, make, s), (x,), (np.ones(2),))[1], np.sum(steps(1))),
    "step": (lambda make, s, x: harp.grad(partial(scan, make), 1)(s, x), steps(2)),
    "batch of loops": (
        lambda make, s, x: harp.vmap(lambda s: harp.grad(partial(scan, make), 1)(s, x))(S)[0],
        steps(2),
    ),
    "while": (lambda make, s, x: harp.grad(partial(while_, make, s))(x), steps(1, last=2)),
    "branch": (lambda make, s, x: slope(lambda x: harp.cond(x[0] > 0, make(s, s), lambda x: x, x), x), 2 * SLOPE),
    "checkpoint": (partial(checkpointed, policy="nothing_saveable"), 2 * SLOPE),
    "checkpoint with a policy": (partial(checkpointed, policy="everything_saveable"), 2 * SLOPE),
    "batch of checkpoints": (
        lambda make, s, x: harp.vmap(lambda s: checkpointed(make, s, x, "everything_saveable"))(S),
        np.outer(S, SLOPE),
    ),
}


@pytest.mark.parametrize("make", [by_tangents, by_cotangents])
@pytest.mark.parametrize("name", COMPUTED)
def test_closures_are_constants(name, make):
    function, expected = COMPUTED[name]
    function = partial(function, make)
    npt.assert_allclose(np.asarray(harp.jit(function)(2.0, X)), expected, rtol=1e-12, atol=1e-14)
    npt.assert_allclose(np.asarray(function(2.0, X)), expected, rtol=1e-12, atol=1e-14)


REFUSED = {
    "gradient": lambda make, s, x: harp.grad(lambda s: hnp.sum(make(s, s)(x)))(s),
    "forward": lambda make, s, x: harp.jvp(lambda s: make(s, s)(x), (s,), (1.0,)),
    "of what is computed": lambda make, s, x: harp.grad(lambda s: hnp.sum(make(s * 2, 1.0)(x)))(s),
    "both": lambda make, s, x: slope(lambda x: make(x * 2, 1.0)(x), x),
    "loop": lambda make, s, x: harp.grad(partial(loop, make))(s, x),
    "step": lambda make, s, x: harp.grad(partial(scan, make))(s, x),
    "what is carried": lambda make, s, x: slope(lambda x: harp.fori_loop(0, 3, lambda i, c: c + make(c, c)(x), x), x),
    "batch": lambda make, s, x: harp.vmap(harp.grad(lambda s: hnp.sum(make(s, s)(x))))(S),
    "gradient of a batch": lambda make, s, x: slope(lambda s: harp.vmap(lambda s: make(s, s)(x))(s), S),
    "checkpoint": lambda make, s, x: harp.grad(lambda s: harp.checkpoint(lambda x: make(s, s)(x))(x)[0])(s),
}


@pytest.mark.parametrize("make", [by_tangents, by_cotangents])
@pytest.mark.parametrize("name", REFUSED)
def test_a_derivative_of_what_is_closed_over_is_refused(name, make):
    function = partial(REFUSED[name], make)
    for run in (function, harp.jit(function)):
        with pytest.raises(ClosureGradientError, match=r"'g' .*make that array an argument") as caught:
            run(2.0, X)
        assert isinstance(caught.value, GradientError) and "test_closures.py:" in str(caught.value)


class Layer:
    """Its parts are read by a method that is the rule."""

    def __init__(self, scale):
        self.scale = {"of the rule": [scale]}

    def backward(self, factor, kept, ct):
        return (ct * self.scale["of the rule"][0] * factor,)


def test_arrays_behind_methods_partials_and_defaults():
    @harp.jit
    def f(s, x):
        def loss(x):
            g = harp.custom_vjp(lambda x: x * 1.0)
            scale = s * 1.0
            g.defvjp(lambda x, _s=s + 0: (g(x) * _s / _s, None), partial(Layer(scale).backward, s * 5))
            return hnp.sum(g(x))

        return harp.grad(loss)(x)

    npt.assert_allclose(np.asarray(f(2.0, X)), [20.0, 20.0])


def test_a_closure_is_compiled_once_for_all_sizes():
    compiled = harp.jit(lambda s, x: slope(lambda x: by_cotangents(s * 1.0, s * 1.0)(x), x))
    for n in (0, 2, 5, 33):
        s, x = np.random.default_rng(n).normal(size=(2, n))
        npt.assert_allclose(np.asarray(compiled(s, x)), 3 * s * np.cos(x), rtol=1e-12)
    assert compiled.compilations == 1
