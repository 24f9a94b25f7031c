"""What functions are given by transforms outside of traces: arrays of harp, whatever the caller passed; and shapes
without numbers."""

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, ShapeError

X, Y, PLACES = np.arange(3.0), np.ones(3), np.array([0, 2])


def custom(function):
    function = harp.custom_jvp(function)
    function.defjvp(lambda primals, tangents: (function(*primals), tangents[0]))
    return function


TRANSFORMS = {
    "grad": lambda f: harp.grad(f)(X, Y, {"a": PLACES}, names=("n", 3, None)),
    "grad of a later one": lambda f: harp.grad(f, argnums=1)(X, Y, {"a": PLACES}, names=("n", 3, None)),
    "jacfwd": lambda f: harp.jacfwd(f)(X, Y, {"a": PLACES}, names=("n", 3, None)),
    "hessian": lambda f: harp.hessian(f)(X, Y, {"a": PLACES}, names=("n", 3, None)),
    "vmap": lambda f: harp.vmap(f, in_axes=(0, None, None))(np.ones((2, 3)), Y, {"a": PLACES, "names": ("n", 3, None)}),
    "jvp": lambda f: harp.jvp(f, (X, Y), (X, Y)),
    "vjp": lambda f: harp.vjp(f, X, Y)[1](1.0),
    "cond": lambda f: harp.cond(True, f, f, X, Y, {"a": PLACES}),
    "switch": lambda f: harp.switch(0, [f], X, Y, {"a": PLACES}),
    "scan": lambda f: harp.scan(lambda c, x: (c, f(*x)), 0.0, (np.ones((2, 3)), np.ones((2, 3)))),
    "checkpoint": lambda f: harp.checkpoint(f)(X, Y, {"a": PLACES}, names=("n", 3, None)),
    "custom_jvp": lambda f: custom(f)(X, Y, {"a": PLACES}),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_functions_are_given_arrays_of_harp(name):
    seen = []

    def function(x, y, places=None, names=None):
        seen.extend(harp.tree.leaves((x, y, places, names)))
        places = hnp.asarray([0, 2]) if places is None else places["a"]
        return hnp.sum(x.at[places].multiply(2.0) * y.at[0].set(7.0))

    TRANSFORMS[name](function)
    assert len(seen) >= 2
    assert {type(leaf) for leaf in seen} <= {harp.Array, str, int}


def test_the_gradient_with_a_second_array_of_numpy():
    found = harp.grad(lambda x, y: hnp.sum(x * y.at[0].set(7.0)))(X, Y)
    np.testing.assert_array_equal(np.asarray(found), [7.0, 1.0, 1.0])


def test_text_and_objects_stay_as_they_are():
    words, dates = np.array(["a", "b"]), np.array(["2020-01-01"], "M8[D]")
    found = harp.grad(lambda x, w, d: hnp.sum(x) * len(w) * (w[0] == "a") * (d is dates))(X, words, dates)
    np.testing.assert_array_equal(np.asarray(found), [2.0, 2.0, 2.0])


def test_an_argument_that_cannot_be_an_array_is_named():
    with pytest.raises(harp.errors.ArgumentError, match="an argument of 'masked'"):

        def masked(x, y):
            return hnp.sum(x)

        harp.grad(masked)(X, np.ma.masked_array([1.0], [True]))


# -- shapes without numbers -------------------------------------------------------------------------------------------


def test_shapes_and_dtypes_of_trees():
    found = harp.eval_shape(
        lambda p, x, *, k: {"y": x @ p["w"], "n": (hnp.argmax(x), k * 2)},
        {"w": harp.f32[3, 4]},
        np.ones((2, 3), "f4"),
        k=1,
    )
    assert found == {"y": harp.f32[2, 4], "n": (harp.i64[()], harp.i64[()])}
    assert harp.eval_shape(lambda x: x[:0], np.ones(3)).shape == (0,)


def test_nothing_is_computed():
    huge = harp.f64[10**6, 10**6]
    assert harp.eval_shape(lambda x: hnp.sum(x @ x, axis=0), huge) == harp.f64[10**6]
    assert harp.eval_shape(harp.grad(lambda x: hnp.sum(x**2)), huge) == huge
    assert harp.eval_shape(lambda x: harp.while_loop(lambda y: y > 0, lambda y: y + 1, x), 1.0).shape == ()


def test_inside_a_trace_sizes_are_symbols():
    @harp.jit
    def f(x):
        rows = harp.eval_shape(lambda x: x.T, x).shape[1]
        return hnp.zeros(rows)

    assert f(np.ones((2, 3))).shape == (2,) and f(np.ones((5, 3))).shape == (5,)
    assert f.compilations == 1


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: harp.eval_shape(lambda x: x, harp.f32["n"]), ArgumentError, "takes numbers for sizes"),
        (lambda: harp.eval_shape(lambda x: x @ x, harp.f32[2, 3]), ShapeError, "matmul"),
        (lambda: harp.eval_shape(lambda x, s: x, harp.f32[2], "s"), ArgumentError, "argument s is a str"),
        (lambda: harp.eval_shape(3), ArgumentError, "takes a function first"),
    ],
)
def test_what_has_no_shape(call, error, words):
    with pytest.raises(error, match=words):
        call()
