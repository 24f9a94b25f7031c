"""The origin of a NaN: a formula, its operands, the step of a loop and the line."""

import re
from functools import partial

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import NotFiniteError

LINE = r"\n  at .*test_not_finite.py:\d+"


def found(call, infinities=False):
    with harp.debug.nans(infinities), pytest.raises(NotFiniteError) as error:
        call()
    return str(error.value)


@pytest.mark.parametrize("run", [lambda f: f, harp.jit], ids=["at once", "compiled"])
def test_forward(run):
    def f(x):
        y = hnp.log(x)
        return hnp.sum(y * 2.0)

    text = found(lambda: run(f)(np.array([1.0, -4.0, 2.0])))
    assert re.fullmatch(r"nan is computed at \[1\] as log\(x0\) of x0 = -4.0" + LINE, text), text
    with harp.debug.nans():
        assert run(f)(np.array([1.0, 2.0])) == pytest.approx(2 * np.log(2))


@pytest.mark.parametrize("run", [lambda f: f, harp.jit], ids=["at once", "compiled"])
def test_backward_names_the_line_that_was_differentiated(run):
    def f(x):
        root = hnp.sqrt(x)
        return hnp.sum(root * 0.0 if x.ndim == 2 else hnp.where(x > 0, root, 0.0))

    text = found(lambda: run(harp.grad(f))(np.array([1.0, 0.0])))
    assert "nan is computed at [1] as" in text
    assert re.search(LINE, text)


def test_what_is_not_chosen_is_no_error():
    f = harp.jit(lambda x: hnp.where(x > 0, hnp.log(x), 0.0))
    with harp.debug.nans():
        assert list(np.asarray(f(np.array([1.0, -1.0])))) == [0.0, 0.0]


def test_neither_are_those_that_the_arguments_have():
    f = harp.jit(lambda x: x + 1)
    with harp.debug.nans():
        assert np.isnan(np.asarray(f(np.array([np.nan]))))[0]


@pytest.mark.parametrize("run", [lambda f: f, harp.jit], ids=["at once", "compiled"])
def test_infinities(run):
    f = lambda x: 1.0 / hnp.asarray(x)
    with harp.debug.nans():
        assert np.isinf(float(run(f)(np.zeros(()))))
    assert "inf is computed as div(" in found(lambda: run(f)(np.zeros(())), infinities=True)


@pytest.mark.parametrize("run", [lambda f: f, harp.jit], ids=["at once", "compiled"])
def test_the_step_of_a_loop(run):
    def f(xs):
        return harp.scan(lambda c, x: (c + hnp.log(x), c), 0.0, xs)[0]

    text = found(lambda: run(f)(np.array([1.0, 3.0, -2.0, -1.0])))
    assert "log(x0) of x0 = -2.0, in step 2 of a loop" in text
    assert re.search(LINE, text)
    root = lambda x: harp.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, hnp.sqrt(c[1] - 1)), (0, x))[1]
    assert "in step 2 of a loop" in found(lambda: run(root)(np.float64(3.0)))


@pytest.mark.parametrize("run", [lambda f: f, harp.jit], ids=["at once", "compiled"])
def test_branches_and_functions_with_derivatives_of_their_own(run):
    f = lambda x: harp.cond(x < 0, hnp.log, lambda x: x, x)
    assert "log(x0) of x0 = -1.0" in found(lambda: run(f)(np.float64(-1.0)))
    g = harp.checkpoint(lambda x: hnp.sum(hnp.arccos(x)))
    assert "of x0 = 2.0" in found(lambda: run(g)(np.array([0.0, 2.0])))


def test_reductions_and_halves():
    big = np.array([3e38, 3e38], np.float32)
    text = found(lambda: hnp.sum(hnp.asarray(big)), infinities=True)
    assert "whose numbers are all finite" in text
    text = found(lambda: harp.jit(hnp.exp)(np.array([1.0, 20.0], np.float16)), infinities=True)
    assert "inf is computed at [1] as" in text


def test_programs_of_within_and_without_do_not_mix():
    f = harp.jit(hnp.log)
    x = np.array([-1.0])
    with np.errstate(all="ignore"):
        assert np.isnan(np.asarray(f(x)))[0]
        compilations = f.compilations
        assert found(lambda: f(x))
        assert np.isnan(np.asarray(f(x)))[0]
    assert f.compilations == compilations
    with harp.debug.nans(), harp.debug.nans(infinities=True):
        pass
    assert np.isnan(np.asarray(f(x)))[0]


def test_donated_arguments():
    f = harp.jit(lambda x: hnp.sqrt(x - 1.0), donate_argnums=0)
    assert "sqrt(" in found(lambda: f(hnp.asarray(np.zeros(3))))


def test_sizes_of_other_calls():
    f = harp.jit(lambda x: hnp.log(x))
    with harp.debug.nans():
        for n in (3, 5, 7):
            f(np.ones(n))
        assert f.compilations == 1
        with pytest.raises(NotFiniteError, match=r"at \[8\]"):
            f(np.where(np.arange(9) == 8, -1.0, 1.0))


def line_of(function, offset):
    return f"at {__file__}:{function.__code__.co_firstlineno + offset}"


def test_lines_inside_loops_and_branches():
    """Two loops whose steps are the same, on lines of their own; a loop that data ends; a branch."""

    def loops(x, y):
        first = harp.fori_loop(0, 4, lambda i, c: c + hnp.log(c - x), 9.0)
        second = harp.fori_loop(
            0,
            4,
            lambda i, c: c + hnp.log(c - y),
            9.0,
        )
        return first + second

    def branches(x):
        half = harp.while_loop(
            lambda c: c > 1,
            lambda c: hnp.sqrt(c - 4),
            x,
        )
        return harp.cond(
            x > 0,
            lambda: hnp.log(-x),
            lambda: half,
        )

    batch = harp.jit(harp.vmap(loops))
    for run, lift in ((loops, np.asarray), (harp.jit(loops), np.asarray), (batch, np.atleast_1d)):
        assert found(partial(run, lift(9.5), lift(0.0))).endswith(line_of(loops, 1))
        assert found(partial(run, lift(0.0), lift(9.5))).endswith(line_of(loops, 5))
    assert found(lambda: harp.jit(branches)(np.float64(6.0))).endswith(line_of(branches, 8))
    with harp.debug.nans():
        assert float(harp.jit(branches)(np.float64(-2.0))) == -2.0
    gradient = harp.jit(harp.grad(lambda x: harp.fori_loop(0, 3, lambda i, c: hnp.sqrt(c) * c, x)))
    assert "in step" in found(lambda: gradient(np.float64(-1.0)))
