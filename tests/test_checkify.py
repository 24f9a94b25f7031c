"""Errors as values: which check fails first, in programs, loops, branches, batches and derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, CheckError, FormatError
from harp.jax.experimental import checkify
from harp.tree import leaves


def root(x):
    checkify.check(x >= 0, "{x} is negative", x=x)
    return x**0.5


def first(text):
    """The first line of a message, without its end."""
    return None if text is None else text.splitlines()[0].removesuffix(" (`check` failed)")


def ways(f):
    """At once, compiled, and of a compiled function."""
    return f, harp.jit(f)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_the_first_that_fails(dtype):
    for g in (*ways(checkify.checkify(root)), checkify.checkify(harp.jit(root))):
        error, value = g(np.array(4, dtype))
        assert error.get() is error.get_exception() is None and np.asarray(value) == 2
        error.throw()
        error, value = g(np.array(-4, dtype))
        assert first(error.get()) == f"{np.array(-4, dtype)} is negative" and f"{__file__}:" in error.get()
        with pytest.raises(CheckError, match="is negative"):
            error.throw()
        assert isinstance(error.get_exception(), (ValueError, RuntimeError)) and len(leaves(error)) == 1


def test_a_check_that_nobody_takes_raises():
    for g in ways(root):
        assert np.asarray(g(9.0)) == 3
        with pytest.raises(CheckError, match=r"-1\.0 is negative"):
            g(-1.0)
    seen = lambda x: (checkify.debug_check(x > 0, "low"), x)[1]
    for g in ways(seen):
        assert np.asarray(g(-1.0)) == -1
    assert first(checkify.checkify(seen)(-1.0)[0].get()) == "low"
    batch = harp.jit(harp.vmap(root))
    with pytest.raises(CheckError, match=r"-2\.0 is negative"):
        batch(np.array([1.0, -2.0]))
    np.testing.assert_array_equal(np.asarray(batch(np.array([1.0, 4.0]))), [1, 2])


def loop(xs):
    def step(count, x):
        checkify.check(x < 100, "large")
        return count + 1, (checkify.check(x > 0, "step {}: {y}", count, y=x), x)[1]

    return harp.scan(step, 0, xs)


LOOPS = [([1.0, 2.0], None), ([1.0, -2.0, -3.0, 200.0], "step 1: -2.0"), ([1.0, 200.0, -3.0], "large"), ([], None)]


def test_loops():
    compiled = harp.jit(checkify.checkify(loop))
    for xs, text in LOOPS:
        for g in (checkify.checkify(loop), compiled):
            error, (count, kept) = g(np.array(xs))
            assert first(error.get()) == text and count == len(xs)
            np.testing.assert_array_equal(np.asarray(kept), xs)
    assert compiled.compilations == 1


def until(x):
    def body(x):
        checkify.check(x < 20, "x = {}", x)
        return x * 2

    return harp.while_loop(lambda x: x < 100, body, x)


def branch(x):
    return harp.cond(x > 0, lambda: (checkify.check(x > 5, "small {}", x), x)[1], lambda: -x)


@pytest.mark.parametrize("f", [until, branch])
def test_data_that_decides(f):
    inputs, texts = [1.0, 7.0, 300.0], {until: ["x = 32.0", "x = 28.0", None], branch: ["small 1.0", None, None]}[f]
    for x, text in zip(inputs, texts, strict=True):
        for g in ways(checkify.checkify(f)):
            assert first(g(x)[0].get()) == text
    for g in ways(harp.vmap(checkify.checkify(f))):
        error, _ = g(np.array(inputs))
        lines = [line for line in error.get().splitlines() if line.startswith("at mapped index")]
        assert lines == [f"at mapped index {k}: {t} (`check` failed)" for k, t in enumerate(texts) if t]
    for g in ways(checkify.checkify(harp.vmap(f))):
        assert first(g(np.array(inputs))[0].get()) in texts
        assert g(np.array([300.0, 300.0]))[0].get() is None


def test_errors_are_checks_again():
    def inner(x):
        error, value = harp.jit(checkify.checkify(root))(x)
        checkify.check_error(error)
        return value

    for g in ways(checkify.checkify(inner)):
        assert first(g(-1.0)[0].get()) == "-1.0 is negative" and g(1.0)[0].get() is None
    for g in ways(inner):
        with pytest.raises(CheckError, match=r"-1\.0 is negative"):
            g(-1.0)
    dropped = checkify.checkify(root, checkify.nan_checks - checkify.nan_checks)
    assert dropped(-1.0)[0].get() is None
    both = checkify.checkify(lambda x: checkify.checkify(root)(x))
    outer, (within, _) = both(-1.0)
    assert outer.get() is None and first(within.get()) == "-1.0 is negative"


def test_other_calls_keep_their_order(capsys):
    def f(x):
        harp.debug.print("before")
        checkify.check(x > 0, "bad")
        harp.debug.print("after")
        return x

    def outer(x):
        harp.debug.print("first")
        error, value = checkify.checkify(f)(x)
        harp.debug.print("last")
        return error, value

    for g in ways(outer):
        assert first(g(-1.0)[0].get()) == "bad"
        assert capsys.readouterr().out.split() == ["first", "before", "after", "last"]
    for g in ways(checkify.checkify(outer)):
        error, (within, _) = g(-1.0)
        assert error.get() is None and first(within.get()) == "bad"
        assert capsys.readouterr().out.split() == ["first", "before", "after", "last"]


def test_derivatives():
    for g in ways(harp.grad(lambda x: checkify.checkify(root)(x)[1])):
        np.testing.assert_allclose(g(4.0), 0.25)
    for g in ways(checkify.checkify(harp.grad(root))):
        error, slope = g(4.0)
        assert error.get() is None and np.asarray(slope) == 0.25
        assert first(g(-4.0)[0].get()) == "-4.0 is negative"
    for g in ways(checkify.checkify(lambda x: harp.jvp(root, (x,), (1.0,))[1])):
        assert first(g(-4.0)[0].get()) == "-4.0 is negative"


AUTOMATIC = {
    "nan": (checkify.nan_checks, hnp.log, (-1.0,), "nan generated by primitive: log", (1.0,)),
    "nan-float32": (checkify.float_checks, hnp.sqrt, (np.float32([1, -1]),), "nan generated by primitive: sqrt",
                    (np.ones(2),)),
    "sum": (checkify.nan_checks, hnp.sum, (np.array([1, np.nan]),), "nan generated by primitive: sum", (np.ones(2),)),
    "cumsum": (checkify.nan_checks, hnp.cumsum, (np.array([1, np.nan]),), "nan generated by primitive: a running sum",
               (np.ones(2),)),
    "div": (checkify.div_checks, lambda x, y: x / y, (np.ones(2), np.array([1.0, 0])), "division by zero", (1.0, 2.0)),
    "floordiv": (checkify.div_checks, lambda x, y: x // y, (3, np.int64(0)), "division by zero", (3, np.int64(2))),
    "index": (checkify.index_checks, lambda x, i: x[i], (np.arange(3.0), np.array([1, 7])),
              "out-of-bounds indexing: index 7 is out of bounds for axis 0 with size 3",
              (np.arange(3.0), np.array([-3]))),
    "update": (checkify.index_checks, lambda x, i: x.at[0, i].set(1), (np.ones((2, 3)), np.int32(-4)),
               "out-of-bounds indexing: index -4 is out of bounds for axis 1 with size 3",
               (np.ones((2, 3)), np.int32(2))),
    "loop": (checkify.all_checks, lambda xs: harp.scan(lambda s, x: (s + hnp.log(x), s), 0.0, xs)[0],
             (np.array([1.0, -1.0]),), "nan generated by primitive: log", (np.array([1.0, 0.5]),)),
}  # fmt: skip


@pytest.mark.parametrize("name", AUTOMATIC)
def test_automatic_checks(name):
    errors, f, bad, text, good = AUTOMATIC[name]
    for g in (checkify.checkify(f, errors), harp.jit(checkify.checkify(f, errors))):
        error, _ = g(*map(hnp.asarray, bad))
        assert first(error.get()) == text
        assert g(*map(hnp.asarray, good))[0].get() is None
    assert harp.jit(checkify.checkify(f))(*map(hnp.asarray, bad))[0].get() is None


def test_what_is_refused():
    with pytest.raises(ArgumentError, match="check takes one truth value, not an array of shape"):
        checkify.check(np.ones(2) > 0, "no")
    with pytest.raises(FormatError, match="no argument 'y'"):
        checkify.check(True, "{y}")
    with pytest.raises(ArgumentError, match="check_error takes an Error, not a str"):
        checkify.check_error("no")
    with pytest.raises(ArgumentError, match=r"errors of checkify has \['oob'\]"):
        checkify.checkify(root, frozenset({"oob"}))
    forgotten = checkify.Error(123)
    with pytest.raises(CheckError, match="not known any more"):
        forgotten.throw()
    assert "Error" in repr(forgotten)
