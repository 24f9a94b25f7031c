"""What would be silently wrong: derivatives of two transforms that are mixed up, arrays that leave the function they
belong to, side effects, memory that changes. And what users get wrong: each message names the argument, and what to do.
"""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import (
    ArgumentError,
    BatchError,
    CarryError,
    ConcretizationError,
    IntegerGradientError,
    LeakedTracerError,
    MutationError,
    NonScalarGradientError,
    OutputError,
    ShapeError,
    TangentError,
)

X = np.arange(1.0, 4.0)
INTEGERS = np.arange(3)

# -- two derivatives at once --------------------------------------------------------------------------------------


def push(function, x, t):
    return harp.jvp(function, (x,), (t,))[1]


# A function of one number, the number, and its derivative by hand.
CONFUSING = {
    "grad in grad": (harp.grad, lambda x: x * harp.grad(lambda y: x * y * y)(3.0), 2.0, 24.0),
    "jvp in jvp": (None, lambda x: x * push(lambda y: x * y * y, 3.0, 1.0), 2.0, 24.0),
    "jvp in grad, in the outer direction": (harp.grad, lambda x: x * push(lambda y: x * y * y, 3.0, x), 2.0, 72.0),
    "three levels": (
        None,
        lambda x: harp.grad(lambda y: push(lambda z: x * y * z * z, y, x))(x),
        2.0,
        48.0,
    ),
    "through vmap": (
        harp.grad,
        lambda x: harp.grad(lambda y: hnp.sum(harp.vmap(lambda z: x * y * z * y)(hnp.asarray([1.0, 2.0]))))(x),
        2.0,
        24.0,
    ),
    "in a loop": (
        harp.grad,
        lambda x: harp.scan(lambda c, _: (c + harp.grad(lambda y: x * y * y)(c), None), 1.0, length=2)[0],
        0.5,
        8.0,
    ),
    "in a branch": (
        harp.grad,
        lambda x: harp.cond(x > 0, lambda: x * harp.grad(lambda y: x * y * y)(3.0), lambda: x),
        2.0,
        24.0,
    ),
    "checkpointed": (harp.grad, lambda x: harp.grad(harp.checkpoint(lambda y: x * x * y * y))(x), 2.0, 24.0),
    "a pullback that is used inside": (
        harp.grad,
        lambda x: harp.vjp(lambda y: x * y * y, x)[1](x)[0],
        2.0,
        24.0,
    ),
    "nothing of the inner argument": (harp.grad, lambda x: x * harp.grad(lambda y: x * x)(1.0), 2.0, 0.0),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", CONFUSING)
def test_derivatives_are_not_mixed_up(name, compiled):
    transform, function, x, expected = CONFUSING[name]
    derivative = transform(function) if transform else lambda x: push(function, x, 1.0)
    assert float((harp.jit(derivative) if compiled else derivative)(x)) == pytest.approx(expected, rel=1e-12)


def test_derivatives_of_examples_are_not_mixed_up():
    """Each row has its own outer argument."""
    slopes = harp.vmap(harp.grad(lambda x: x * harp.grad(lambda y: x * y * y)(x)))(X)
    npt.assert_allclose(np.asarray(slopes), 6 * X**2)


# -- arrays that leave their function -----------------------------------------------------------------------------

# Runs a transform of a function that keeps an array of its own.
LEAKS = {
    "grad": lambda keep, x: harp.grad(lambda t: hnp.sum(keep(t)))(x),
    "vjp": lambda keep, x: harp.vjp(keep, x),
    "jvp": lambda keep, x: harp.jvp(keep, (x,), (x,)),
    "linearize": lambda keep, x: harp.linearize(keep, x),
    "hessian": lambda keep, x: harp.hessian(lambda t: hnp.sum(keep(t)))(x),
    "vmap": lambda keep, x: harp.vmap(keep)(x),
    "jit": lambda keep, x: harp.jit(keep)(x),
    "eval_shape": lambda keep, x: harp.eval_shape(keep, x),
    "the carry of scan": lambda keep, x: harp.scan(lambda c, v: (keep(c), v), 0.0, x),
    "an element in scan": lambda keep, x: harp.scan(lambda c, v: (c, keep(v)), 0.0, x),
    "what scan computes": lambda keep, x: harp.scan(lambda c, v: (keep(c * v), v), 0.0, x),
    "the number in fori_loop": lambda keep, x: harp.fori_loop(0, 2, lambda i, c: c + keep(i), x),
    "while_loop": lambda keep, x: harp.while_loop(lambda c: hnp.sum(c) < 10, lambda c: keep(c * 2), x),
    "cond": lambda keep, x: harp.cond(hnp.sum(x) > 0, lambda v: keep(v * 2), lambda v: v, x),
    "switch": lambda keep, x: harp.switch(hnp.argmax(x), [lambda v: keep(v * 2), lambda v: v], x),
    "map": lambda keep, x: harp.map(keep, x),
    "checkpoint": lambda keep, x: harp.grad(harp.checkpoint(lambda t: hnp.sum(keep(t))))(x),
}
# In a trace a function that is jitted is part of that trace, and so is what it keeps.
INSIDE = [name for name in LEAKS if name != "jit"]


class Kept:
    """A function that hands its argument on, and keeps it."""

    array = None

    def __call__(self, x):
        self.array = x * 1
        return x


@pytest.mark.parametrize("name", LEAKS)
def test_arrays_do_not_leave_their_function(name):
    kept = Kept()
    LEAKS[name](kept, hnp.asarray(X))
    if name in ("cond", "switch") and kept.array._value is not None:
        return  # outside of a trace the branch may run at once
    with pytest.raises(LeakedTracerError, match=r"return it instead of storing it[\s\S]*test_soundness"):
        kept.array + 1
    with pytest.raises(LeakedTracerError):
        harp.jit(lambda x: x + kept.array)(1.0)
    with pytest.raises(LeakedTracerError):
        harp.vmap(lambda x: x + kept.array)(X)


@pytest.mark.parametrize("name", INSIDE)
def test_arrays_do_not_leave_their_function_inside_a_trace(name):
    def function(x):
        kept = Kept()
        LEAKS[name](kept, x)
        return x + kept.array

    for transform in (harp.jit, harp.vmap, lambda f: lambda x: harp.jvp(f, (x,), (x,))):
        with pytest.raises(LeakedTracerError, match="return it instead of storing it"):
            transform(function)(X if transform is not harp.vmap else np.ones((2, 3)))


@pytest.mark.parametrize("name", INSIDE)
def test_arrays_do_not_get_from_one_run_to_the_next(name):
    """Also where the same function is transformed twice."""

    def function(x):
        kept = Kept()

        def again(v):
            return kept(v if kept.array is None else v + hnp.sum(kept.array))

        LEAKS[name](again, x)
        return LEAKS[name](again, x)

    with pytest.raises(LeakedTracerError):
        harp.eval_shape(function, X)


def test_a_pullback_belongs_to_its_trace():
    kept = []

    def function(x):
        kept.append(harp.vjp(lambda t: t * x, x)[1])
        kept.append(harp.linearize(lambda t: t * x, x)[1])
        return x

    harp.vmap(function)(X)
    for linear in kept:
        with pytest.raises(LeakedTracerError):
            linear(1.0)


# -- side effects and memory that changes -------------------------------------------------------------------------


def test_functions_run_once_for_each_trace():
    runs = []
    for transform in (harp.jit, harp.vmap):
        runs.clear()
        mapped = transform(lambda x: (runs.append(0), x * 2)[1])
        for n in (3, 3, 7):
            mapped(np.ones(n))
        assert len(runs) == (1 if transform is harp.jit else 3)
    runs.clear()
    harp.fori_loop(0, 1000, lambda i, c: (runs.append(0), c + 1.0)[1], np.zeros(()))
    assert len(runs) == 1


def test_captured_arrays_are_copied():
    captured = np.ones(3)
    compiled = harp.jit(lambda x: x * captured)
    compiled(X)
    _, pullback = harp.vjp(lambda x: hnp.sum(x * captured), X)
    _, pushforward = harp.linearize(lambda x: x * captured, X)
    captured[:] = 100.0
    npt.assert_array_equal(np.asarray(compiled(X)), X)
    npt.assert_array_equal(np.asarray(pullback(1.0)[0]), np.ones(3))
    npt.assert_array_equal(np.asarray(pushforward(X)), X)


def test_arguments_are_copied():
    x = X.copy()
    _, pullback = harp.vjp(lambda x: hnp.sum(x * x), x)
    _, pushforward = harp.linearize(lambda x: x * x, x)
    x[:] = 100.0
    npt.assert_array_equal(np.asarray(pullback(1.0)[0]), 2 * X)
    npt.assert_array_equal(np.asarray(pushforward(X)), 2 * X * X)


def test_what_changes_while_a_function_is_traced_counts_at_once():
    """Each use of a captured array is of what is in it at that time."""
    captured = np.zeros(3)

    def function(x):
        first = x + captured
        captured[:] = 10.0
        return first, x + captured

    for transform in (harp.jit, lambda f: harp.vmap(f, axis_size=1, in_axes=None, out_axes=None)):
        captured[:] = 0.0
        first, second = transform(function)(X)
        npt.assert_array_equal(np.asarray(first), X)
        npt.assert_array_equal(np.asarray(second), X + 10)


def test_arguments_are_not_changed():
    def function(x, p):
        x += 1.0
        p["a"] = p["a"] * x
        return hnp.sum(p["a"])

    x, p = X.copy(), {"a": X.copy()}
    slopes = harp.grad(function, (0, 1))(x, p)
    npt.assert_array_equal(np.asarray(slopes[0]), X)
    npt.assert_array_equal(np.asarray(slopes[1]["a"]), X + 1)
    harp.vmap(lambda x: function(x, {"a": x}))(x)
    npt.assert_array_equal(x, X)
    npt.assert_array_equal(p["a"], X)
    with pytest.raises(MutationError, match=r"x\.at\[index\]\.set"):
        harp.vmap(lambda x: x.__setitem__(0, 1.0))(np.ones((2, 3)))


def test_numbers_of_a_trace_do_not_go_into_numpy_arrays():
    memory = np.zeros(3)
    with pytest.raises(ConcretizationError, match="only dtype and sizes of arrays are known"):
        harp.grad(lambda x: (memory.__setitem__(slice(None), x), hnp.sum(x))[1])(X)
    with pytest.raises((ConcretizationError, ValueError)) as caught:  # NumPy's own error, for the same cause
        harp.grad(lambda x: (memory.__setitem__(0, x[0]), hnp.sum(x))[1])(X)
    assert isinstance(caught.value.__cause__ or caught.value, ConcretizationError)
    npt.assert_array_equal(memory, 0.0)


# -- what does not fit --------------------------------------------------------------------------------------------


def total(x):
    return hnp.sum(x * 1.0)


def ones(*shape):
    return np.ones(shape)


WRONG = {
    "integers": [
        (lambda: harp.grad(total)(INTEGERS), IntegerGradientError, r"argument x has dtype int64.*\.astype"),
        (lambda: harp.grad(lambda p: p["a"][0] * 1.0)({"a": (3,)}), IntegerGradientError, r"argument p\['a'\]\[0\]"),
        (lambda: harp.grad(lambda x: x * 1.0)(True), IntegerGradientError, "argument x has dtype bool"),
        (lambda: harp.vjp(total, INTEGERS), IntegerGradientError, "argument x"),
        (lambda: harp.linearize(total, INTEGERS), IntegerGradientError, "argument x"),
        (lambda: harp.jvp(lambda x, y: x * y, (1.0, 2), (1.0, 2)), IntegerGradientError, "argument y"),
        (lambda: harp.hessian(total)(INTEGERS), IntegerGradientError, "argument x"),
        (lambda: harp.hvp(total, (INTEGERS,), (INTEGERS,)), IntegerGradientError, "argument x"),
        (lambda: harp.vmap(harp.grad(total))(np.ones((2, 3), int)), IntegerGradientError, "argument x"),
        (
            lambda: harp.grad(lambda x: hnp.argmax(x))(X),
            IntegerGradientError,
            r"returns int64.*convert it with \.astype",
        ),
    ],
    "results": [
        (lambda: harp.grad(lambda x: x)(X), NonScalarGradientError, r"shape \[3\]; reduce it.*harp\.numpy\.sum"),
        (lambda: harp.grad(lambda x: x[:1])(X), NonScalarGradientError, r"shape \[1\]; reduce it"),
        (lambda: harp.vmap(harp.grad(lambda x: x))(ones(2, 3)), NonScalarGradientError, r"shape \[3\]"),
        (lambda: harp.grad(lambda x: (x[0], x[1]))(X), NonScalarGradientError, "not 2 arrays; with has_aux=True"),
        (lambda: harp.grad(lambda x: None)(X), NonScalarGradientError, "not 0 arrays"),
        (lambda: harp.grad(total, has_aux=True)(X), NonScalarGradientError, r"must return a pair \(value, aux\)"),
        (lambda: harp.hvp(lambda x: x, (X,), (X,)), NonScalarGradientError, "reduce it"),
        (lambda: harp.grad(lambda x: "a")(X), OutputError, "returned 'a' of type str"),
        (lambda: harp.scan(lambda c, v: (c, "a"), 0.0, X), OutputError, "returned 'a' of type str"),
    ],
    "no arrays": [
        (lambda: harp.grad(lambda s: 1.0)("a"), ArgumentError, "argument s is a str.*argnums"),
        (lambda: harp.grad(lambda p: 1.0)({"a": ["z"]}), ArgumentError, r"argument p\['a'\]\[0\] is a str"),
        (lambda: harp.grad(lambda x: 1.0)(np.array(["a"])), Exception, "argument x"),
        (lambda: harp.vmap(lambda x, s: x)(X, "a"), ArgumentError, "argument s is a str.*in_axes is None"),
        (lambda: harp.vmap(lambda x: x)(np.array(["a"])), Exception, "argument x"),
        (lambda: harp.jvp(total, (X,), ("a",)), ArgumentError, "the tangent is a str"),
        (lambda: harp.vjp(total, X)[1]("a"), ArgumentError, "the cotangent is a str"),
        (lambda: harp.scan(lambda c, v: (c, v), {"a": "b"}, X), ArgumentError, r"the carry\['a'\] is a str"),
        (lambda: harp.scan(lambda c, v: (c, v), 0.0, (X, "a")), ArgumentError, r"xs\[1\] is a str"),
        (lambda: harp.while_loop(lambda c: True, lambda c: c, "a"), ArgumentError, "the carry is a str"),
        (lambda: harp.cond("a", lambda: 1, lambda: 2), ArgumentError, "the condition of cond is a str"),
        (
            lambda: harp.grad(lambda x: harp.checkpoint(lambda x, s: x)(x, "a"))(1.0),
            ArgumentError,
            "argument s is a str.*close over it",
        ),
        (
            lambda: harp.grad(lambda x: GIVEN(x, "a"))(1.0),
            ArgumentError,
            "argument s is a str.*nondiff_argnums",
        ),
    ],
    "axes of batches": [
        (lambda: harp.vmap(lambda x, y: x)(ones(3), ones(2)), ShapeError, "argument x and argument y.*3 is not 2"),
        (
            lambda: harp.vmap(lambda x, y: x, (0, 1))(ones(3, 2), ones(2, 5)),
            ShapeError,
            "argument x and argument y.*3 is not 5",
        ),
        (lambda: harp.vmap(lambda p: p)({"a": ones(3), "b": ones(2)}), ShapeError, r"p\['a'\] and argument p\['b'\]"),
        (lambda: harp.vmap(lambda x, *, k: x)(ones(3), k=ones(2)), ShapeError, "argument x and argument k"),
        (
            lambda: harp.grad(lambda x: hnp.sum(harp.vmap(lambda a, b: a * b)(x, ones(2))))(X),
            ShapeError,
            "argument a and argument b",
        ),
        (lambda: harp.vmap(lambda x: x, in_axes=1.0)(ones(2, 2)), BatchError, "an axis is an integer, or None"),
        (lambda: harp.vmap(lambda x: x, axis_size=2.0)(ones(2)), ShapeError, "axis_size must be an integer, not 2.0"),
        (lambda: harp.vmap(lambda: 1.0, axis_size=-1)(), ShapeError, "axis_size is negative: -1"),
        (lambda: harp.vmap(lambda x: x, axis_size=3)(ones(2)), ShapeError, "argument x and axis_size"),
    ],
    "carries": [
        (
            lambda: harp.scan(lambda c, v: (c.astype("f4"), v), ones(2), X),
            CarryError,
            r"given the carry as float64 with 1 axis, but returns it as float32.*\.astype",
        ),
        (lambda: harp.scan(lambda c, v: (c + v, v), np.int64(0), X), CarryError, "as int64.*returns it as float64"),
        (lambda: harp.scan(lambda c, v: (c * 1j, v), np.float64(0), X), CarryError, "returns it as complex128"),
        (lambda: harp.scan(lambda c, v: (c[None], v), ones(2), X), CarryError, "with 2 axes"),
        (
            lambda: harp.scan(lambda c, v: ((c[0], c[1][:1]), v), (0.0, ones(2)), X),
            ShapeError,
            r"the carry\[1\] changes its size along axis 0",
        ),
        (
            lambda: harp.scan(lambda c, v: ({"a": c["a"]}, v), {"a": 1.0, "b": 2.0}, X),
            CarryError,
            "for the carry, which is a tree.*return the same",
        ),
        (lambda: harp.scan(lambda c, v: (None, v), 0.0, X), CarryError, "returns None for the carry"),
        (lambda: harp.fori_loop(0, 2, lambda i, c: c > 0, ones(2)), CarryError, "returns it as bool"),
        (lambda: harp.fori_loop(0, 2, lambda i, c: (c, c), ones(2)), CarryError, "for the carry"),
        (lambda: harp.while_loop(lambda c: c < 1, lambda c: c[None], np.zeros(())), CarryError, "with 1 axis"),
        (
            lambda: harp.vmap(lambda x: harp.scan(lambda c, v: (c[None], v), x, X))(ones(2, 3)),
            CarryError,
            "with 2 axes",
        ),
        (lambda: harp.scan(lambda c, v: (c, v), 0.0, length=1.5), ShapeError, "length must be an integer, not 1.5"),
        (lambda: harp.cond(True, lambda: {"a": 1}, lambda: {"b": 1}), CarryError, "branches return the same tree"),
    ],
    "decisions on data": [
        (lambda: harp.jit(harp.grad(lambda x: x if x > 0 else -x))(1.0), ConcretizationError, r"harp\.numpy\.where"),
        (lambda: harp.vmap(lambda x: x if x > 0 else -x)(X), ConcretizationError, r"harp\.numpy\.where"),
        (
            lambda: harp.scan(lambda c, v: (c + float(v), v), 0.0, X),
            ConcretizationError,
            r"`float\(v\)` asks for a Python float",
        ),
        (lambda: harp.grad(lambda x: np.sum(np.isnat(x)))(X), ConcretizationError, "harp.numpy has no isnat yet"),
    ],
    "tangents": [
        (lambda: harp.jvp(total, (X,), (ones(2),)), ShapeError, "the tangent does not fit x along axis 0"),
        (lambda: harp.jvp(total, (X,), (INTEGERS,)), TangentError, "the tangent is int64"),
        (lambda: harp.jvp(total, (X,), (X, X)), TangentError, "the tangents are a tree"),
    ],
}
GIVEN = harp.custom_jvp(lambda x, s: x)
GIVEN.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
CALLS = [pytest.param(*call, id=f"{group} {k}") for group, calls in WRONG.items() for k, call in enumerate(calls)]


@pytest.mark.parametrize(("call", "error", "words"), CALLS)
def test_messages_name_the_argument_and_what_to_do(call, error, words):
    for run in (lambda f: f, harp.jit):
        with pytest.raises(error, match=words) as caught:
            run(call)()
        assert isinstance(caught.value, harp.errors.HarpError)
        assert "test_soundness.py" in str(caught.value)


def test_axes_may_be_numpys():
    found = harp.vmap(lambda x: x, in_axes=np.int64(1), out_axes=np.int32(0), axis_size=np.int64(3))(np.ones((2, 3)))
    assert found.shape == (3, 2)
