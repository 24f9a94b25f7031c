"""Functions with derivatives of their own, through all transforms, beside the same derivatives without them."""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, CotangentError, TangentError

W = np.array([[0.5, -1.0], [2.0, 0.3]])


@harp.custom_jvp
def by_tangents(w, x):
    return {"y": hnp.tanh(w @ x), "n": hnp.argmax(x)}


@by_tangents.defjvp
def rule(primals, tangents):
    """Twice the derivative that it would have, so that it can be told apart."""
    (w, x), (tw, tx) = primals, tangents
    y = by_tangents(w, x)
    return y, {"y": 2 * (1 - y["y"] ** 2) * (tw @ x + w @ tx), "n": 0}


@harp.custom_vjp
def by_cotangents(w, x):
    return {"y": hnp.tanh(w @ x), "n": hnp.argmax(x)}


def forward(w, x):
    y = by_cotangents(w, x)
    return y, (w, x, y["y"])


def backward(kept, ct):
    w, x, y = kept
    inner = 2 * ct["y"] * (1 - y**2)
    return hnp.outer(inner, x), inner @ w


by_cotangents.defvjp(forward, backward)


def doubled(w, x):
    """The same derivatives by other means: 2*f - stop(f)."""
    y = hnp.tanh(w @ x)
    return {"y": 2 * y - harp.stop_gradient(y), "n": hnp.argmax(x)}


def loss(function):
    return lambda w, x: hnp.sum(hnp.sin(function(w, x)["y"]) * x)


X = np.array([0.3, -0.7])
BATCH = np.array([[0.3, -0.7], [1.0, 0.2], [0.0, 0.4]])
TRANSFORMS = {
    "value": lambda f: lambda: f(W, X),
    "grad": lambda f: lambda: harp.grad(f, (0, 1))(W, X),
    "jvp": lambda f: lambda: harp.jvp(f, (W, X), (W + 1, X * 2)),
    "jacfwd": lambda f: lambda: harp.jacfwd(f, (0, 1))(W, X),
    "jacrev": lambda f: lambda: harp.jacrev(f, (0, 1))(W, X),
    "vmap": lambda f: lambda: harp.vmap(f, (None, 0))(W, BATCH),
    "vmap of grad": lambda f: lambda: harp.vmap(harp.grad(f, (0, 1)), (None, 0))(W, BATCH),
    "grad of vmap": lambda f: lambda: harp.grad(lambda w: hnp.sum(harp.vmap(f, (None, 0))(w, BATCH) ** 2))(W),
    "jvp of vmap": lambda f: lambda: harp.jvp(lambda w: harp.vmap(f, (None, 0))(w, BATCH), (W,), (W + 1,)),
    "in a scan": lambda f: (
        lambda: harp.grad(lambda w: harp.scan(lambda c, x: (c + f(w, x * c), None), 1.0, BATCH)[0])(W)
    ),
    "in a branch": lambda f: lambda: harp.grad(lambda w: harp.cond(w[0, 0] > 0, lambda: f(w, X), lambda: 0.0))(W),
}


def leaves(tree):
    return [leaf for part in tree for leaf in leaves(part)] if isinstance(tree, tuple) else [np.asarray(tree)]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("function", [by_tangents, by_cotangents])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_take_the_given_derivative(name, function, compiled):
    found, expected = (TRANSFORMS[name](loss(f)) for f in (function, doubled))
    if compiled:
        found = harp.jit(found)
    for a, b in zip(leaves(found()), leaves(expected()), strict=True):
        npt.assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_second_derivatives_are_those_of_the_rules():
    @harp.custom_jvp
    def cube(x):
        return x**3

    @cube.defjvp
    def cube_rule(primals, tangents):
        return cube(*primals), 3 * primals[0] ** 2 * tangents[0]

    for x in (0.0, 2.0):
        for second in (harp.grad(harp.grad(cube)), harp.hessian(cube), harp.jit(harp.grad(harp.grad(cube)))):
            npt.assert_allclose(float(second(x)), 6 * x)


def test_arguments_that_are_no_arrays():
    @partial(harp.custom_jvp, nondiff_argnums=(1,))
    def power(x, n):
        return x**n

    @power.defjvp
    def power_rule(n, primals, tangents):
        return power(primals[0], n), 10.0 * n * tangents[0]

    assert float(harp.grad(lambda x: power(x, 3))(2.0)) == 30.0

    by_name = harp.custom_vjp(lambda f, x: f(x), nondiff_argnums=(0,))
    by_name.defvjp(lambda f, x: (f(x), x), lambda f, x, ct: (ct * f(x),))
    npt.assert_allclose(float(harp.grad(lambda x: by_name(hnp.sin, x))(2.0)), np.sin(2.0))


def test_integers_and_none():
    @harp.custom_vjp
    def scaled(x, k):
        return x * k

    scaled.defvjp(lambda x, k: (scaled(x, k), k), lambda k, ct: (ct * k * 5, None))
    assert float(harp.grad(lambda x: scaled(x, 3))(2.0)) == 15.0
    assert float(harp.jit(harp.grad(lambda x, k: scaled(x, k)))(2.0, 3)) == 15.0


def test_one_program_for_all_sizes():
    compiled = harp.jit(harp.grad(lambda w, x: hnp.sum(by_cotangents(w, x)["y"])))
    for n in (1, 2, 5):
        w, x = np.random.default_rng(n).normal(size=(2, n, n))
        w, x = w, x[0]
        expected = 2 * np.outer(1 - np.tanh(w @ x) ** 2, x)
        npt.assert_allclose(np.asarray(compiled(w, x)), expected, rtol=1e-11)
    assert compiled.compilations <= 2


def with_rules(forward, backward):
    f = harp.custom_vjp(lambda x: x * 2.0)
    f.defvjp(forward, backward)
    return f


def with_rule(rule):
    f = harp.custom_jvp(lambda x: x * 2.0)
    f.defjvp(rule)
    return f


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: harp.custom_jvp(lambda x: x)(1.0), ArgumentError, "has no rule; give it one with defjvp"),
        (lambda: harp.custom_vjp(lambda x: x)(1.0), ArgumentError, "has no rules; give it some with defvjp"),
        (lambda: harp.grad(with_rules(lambda x: x, lambda r, c: (c,)))(1.0), CotangentError, "a pair"),
        (
            lambda: harp.grad(with_rules(lambda x: (x, x), lambda r, c: c))(1.0),
            CotangentError,
            "must return a tuple of 1 cotangent, one for each argument",
        ),
        (
            lambda: harp.grad(with_rules(lambda x: (x, x), lambda r, c: ((c, c),)))(1.0),
            CotangentError,
            "returns a tree",
        ),
        (lambda: harp.grad(with_rules(lambda x: (x, x), lambda r, c: (hnp.ones(2),)))(1.0), CotangentError, "1 axis"),
        (
            lambda: harp.grad(with_rules(lambda x: (x[None], x), lambda r, c: (c,)))(1.0),
            CotangentError,
            "returns first is float64 with 1 axis, but the function's own is float64 with 0 axes",
        ),
        (
            lambda: harp.grad(with_rules(lambda x: ((x, x), x), lambda r, c: (c,)))(1.0),
            CotangentError,
            "returns first has 2 arrays, but that of the function has 1",
        ),
        (
            lambda: harp.grad(with_rules(lambda x: (x, x), lambda r, c: (hnp.ones(2),)))(1.0),
            CotangentError,
            "the cotangent that '<lambda>' returns is float64 with 1 axis, but argument x is float64 with 0 axes",
        ),
        (lambda: harp.jit(with_rule(lambda p, t: (p[0], t[0])))(k=1.0), ArgumentError, "missing a required argument"),
        (lambda: harp.custom_jvp(lambda x, n: x, (1,)).defjvps(None), ArgumentError, "without nondiff_argnums"),
        (lambda: harp.grad(with_rule(lambda p, t: t[0]))(1.0), TangentError, "a pair"),
        (lambda: harp.grad(with_rule(lambda p, t: (p[0], (t[0], t[0]))))(1.0), TangentError, "returns 2 tangents"),
        (lambda: harp.custom_jvp(3), ArgumentError, "takes a function first"),
    ],
)
def test_what_is_no_rule(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_none_inside_of_a_tree_of_cotangents():
    @harp.custom_vjp
    def f(params, x):
        return params["w"] * x + params["more"][0] * params["more"][1]["k"]

    given = {"w": 2.0, "more": (3.0, {"k": 4.0})}
    for inside, expected in (
        ((None, {"k": 7.0}), (0.0, 7.0)),
        ((None, None), (0.0, 0.0)),
        (None, (0.0, 0.0)),
        ((5.0, {"k": None}), (5.0, 0.0)),
    ):
        f.defvjp(lambda p, x: (f(p, x), None), lambda _, ct, inside=inside: ({"w": 3 * ct, "more": inside}, None))
        for run in (lambda g: g, harp.jit):
            params, x = run(harp.grad(f, (0, 1)))(given, 5.0)
            assert (float(params["w"]), float(x)) == (3.0, 0.0)
            assert (float(params["more"][0]), float(params["more"][1]["k"])) == expected
    for wrong in (1.0, (1.0, 2.0), (1.0,), {"k": 1.0}):
        f.defvjp(lambda p, x: (f(p, x), None), lambda _, ct, wrong=wrong: ({"w": ct, "more": wrong}, None))
        with pytest.raises(CotangentError, match="for an argument that is a tree"):
            harp.grad(f)(given, 5.0)


def test_arguments_by_name_and_by_default_reach_the_rules():
    @harp.custom_vjp
    def scaled(x, scale=2.0):
        return x * scale

    scaled.defvjp(lambda x, scale: (scaled(x, scale), (x, scale)), lambda kept, ct: (3 * ct * kept[1], ct * kept[0]))
    pushed = harp.custom_jvp(lambda x, scale=2.0: x * scale)
    pushed.defjvp(lambda p, t: (pushed(*p), 3 * t[0] * p[1] + t[1] * p[0]))
    for f in (scaled, pushed):
        for run in (lambda g: g, harp.jit):
            assert float(f(5.0)) == float(run(f)(5.0)) == 10
            assert float(run(harp.grad(f))(5.0)) == 6
            assert float(run(harp.grad(lambda x, f=f: f(x, scale=4.0)))(5.0)) == 12
            assert float(run(harp.grad(lambda s, f=f: f(scale=s, x=5.0)))(4.0)) == 5


def test_a_parameter_that_has_no_place_is_an_error():
    f = harp.custom_jvp(lambda x, *, scale: x * scale)
    f.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(ArgumentError, match="was given scale by name only"):
        f(1.0, scale=2.0)


@pytest.mark.parametrize("run", [lambda f: f, harp.jit])
def test_a_rule_for_each_argument(run):
    f = harp.custom_jvp(lambda x, y: {"a": hnp.sin(x) * y, "b": y})
    f.defjvps(
        lambda t, value, x, y: {"a": 10 * hnp.cos(x) * t * y, "b": 0 * t},
        lambda t, value, x, y: {"a": t * value["a"], "b": 2 * t},
    )
    value, tangent = run(lambda x, y, s, t: harp.jvp(f, (x, y), (s, t)))(0.5, 2.0, 3.0, 4.0)
    assert float(value["b"]) == 2
    npt.assert_allclose(float(tangent["a"]), 10 * np.cos(0.5) * 3 * 2 + 4 * np.sin(0.5) * 2)
    assert float(tangent["b"]) == 8
    f.defjvps(None, lambda t, value, x, y: {"a": t, "b": 2 * t})
    found = run(harp.vmap(harp.grad(lambda x, y: f(x, y)["a"] + f(x, y)["b"], (0, 1))))(np.ones(2), np.ones(2))
    assert [np.asarray(g).tolist() for g in found] == [[0, 0], [3, 3]]
    f.defjvps(None, None)
    assert float(run(harp.grad(lambda y: f(1.0, y)["b"]))(2.0)) == 0
    f.defjvps(None)
    with pytest.raises(ArgumentError, match="was given 1 rule, but '<lambda>' has 2 arguments"):
        harp.grad(lambda y: f(1.0, y)["b"])(2.0)
