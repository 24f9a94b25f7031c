"""Functions of Python inside programs: what they are given, what they return, and what they raise."""

from __future__ import annotations

import collections

import ml_dtypes
import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, CallbackError, MissingRuleError

X = np.array([3.0, 1.0, 2.0])
DTYPES = ("bool", "int8", "int64", "uint16", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def test_results_are_a_tree_of_arrays_whose_sizes_are_those_of_arguments(run):
    def both(a, b):
        return {"product": np.outer(a, b), "sums": (a.sum(), np.append(b, 1.5))}

    @run
    def f(x, y):
        n, m = x.shape[0], y.shape[0]
        result = {"product": harp.f64[n, m], "sums": (harp.f64[()], harp.f64[m + 1])}
        made = harp.pure_callback(both, result, 2 * x, y + 1)
        return made["product"] + x[:, None], made["sums"][0], made["sums"][1] * 2

    for n, m in ((3, 2), (1, 4), (0, 3), (2, 0)):
        x, y = np.arange(n) + 0.5, np.arange(m) * 1.0
        product, total, more = f(x, y)
        npt.assert_array_equal(product, np.outer(2 * x, y + 1) + x[:, None])
        npt.assert_array_equal(total, (2 * x).sum())
        npt.assert_array_equal(more, np.append(y + 1, 1.5) * 2)
    if isinstance(f, harp.JitFunction):
        assert f.compilations == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_goes_there_and_back(run, dtype):
    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    given = np.array([[1, 0, 1], [0, 1, 1]]).astype(kind)
    seen = []

    def turned(a):
        seen.append(a)
        return a[::-1]

    result = run(lambda x: harp.pure_callback(turned, x, x))(given)
    assert result.dtype == kind
    npt.assert_array_equal(np.asarray(result), given[::-1])
    assert seen[-1].dtype == kind


def test_other_arguments_are_passed_as_they_are(run):
    def shifted(tree, word, *, by):
        return tree["a"] + len(word) + by + (tree["b"] is None)

    f = run(lambda x: harp.pure_callback(shifted, x, {"a": x, "b": None}, "four", by=x.shape[0]))
    npt.assert_array_equal(f(X), X + 8)


def test_arrays_that_a_function_keeps_are_its_own(run):
    kept = []
    f = run(lambda x: harp.pure_callback(lambda a: (kept.append(a), a)[1], x, x + 1) * 2)
    first = f(X)
    second = f(X + 10)
    npt.assert_array_equal(first, (X + 1) * 2)
    npt.assert_array_equal(second, (X + 11) * 2)
    kept[0][:] = 0
    npt.assert_array_equal(kept[-1], X + 11)


def test_numbers_of_python_take_on_the_declared_dtype(run):
    f = run(
        lambda x: harp.pure_callback(lambda x: (float(x), 3, True), (harp.f32[()], harp.f32[()], harp.bool_[()]), x)
    )
    values = [np.asarray(value) for value in f(1.5)]
    assert [(v.dtype.name, v.item()) for v in values] == [("float32", 1.5), ("float32", 3.0), ("bool", True)]
    with pytest.raises(CallbackError, match=r"was declared as i32\[\], but is float64\[\]"):
        np.asarray(run(lambda x: harp.pure_callback(float, harp.i32[()], x))(1.0))


def test_what_is_not_what_was_declared_is_an_error_that_names_both(run):
    def too_long(a):
        return a, np.append(a, a)

    f = run(lambda x: harp.pure_callback(too_long, (x, x), x))
    with pytest.raises(CallbackError, match=r"result 1 of pure_callback of too_long was declared as f64\[3\], but is "):
        np.asarray(f(X)[1])
    with pytest.raises(CallbackError, match=r"declared as f64\[3\], but is float32\[3\]"):
        np.asarray(run(lambda x: harp.pure_callback(lambda a: a.astype("f"), x, x))(X))
    with pytest.raises(CallbackError, match=r"declared to return \(\*, \*\), but returns one array"):
        np.asarray(run(lambda x: harp.pure_callback(lambda a: a, (x, x), x))(X)[0])


def test_what_a_function_raises_reaches_the_caller(run):
    class Mine(Exception):
        pass

    def fails(a):
        if a[0] > 1:
            raise Mine("too large")
        return a

    f = run(lambda x: harp.pure_callback(fails, x, x) + 1)
    for _ in range(2):
        with pytest.raises(Mine, match="too large"):
            np.asarray(f(X))
        npt.assert_array_equal(f(X / 4), X / 4 + 1)


def test_in_loops_it_is_called_in_each_step_and_in_branches_where_they_are_taken(run):
    calls = collections.Counter()

    def counted(name, function):
        def call(*arrays):
            calls[name] += 1
            return function(*arrays)

        return call

    @run
    def f(x, many):
        def step(c, v):
            d = harp.pure_callback(counted("step", np.add), c, c, v)
            return d, d * 2

        last, made = harp.scan(step, x[0] * 0, x)
        last = harp.while_loop(
            lambda c: c < many, lambda c: harp.pure_callback(counted("while", np.add), c, c, c), last
        )
        yes = lambda v: harp.pure_callback(counted("yes", np.negative), v, v)
        no = lambda v: harp.pure_callback(counted("no", np.positive), v, v)
        return harp.cond(last > 40, yes, no, last), made

    result, made = f(X, 30.0)
    assert float(result) == -48.0
    npt.assert_array_equal(made, 2 * np.cumsum(X))
    assert calls == {"step": 3, "while": 3, "yes": 1}


def test_what_nobody_reads_is_not_called(jit):
    calls = []
    f = jit(lambda x: (harp.pure_callback(lambda a: (calls.append(1), a)[1], x, x), x + 1)[1])
    npt.assert_array_equal(f(X), X + 1)
    assert not calls


def test_some_of_several_results(jit):
    f = jit(lambda x: harp.pure_callback(lambda a: (a, a + 1, a + 2), (x, x, x), x)[1])
    npt.assert_array_equal(f(X), X + 1)


@pytest.mark.parametrize("method", ["sequential", "broadcast_all"])
def test_batches(run, method):
    shapes = []

    def weighed(a, b, s):
        shapes.append(a.shape)
        return np.sort(a, -1) * s[..., None], (a * b).sum(-1)

    def f(a, b, s):
        return harp.pure_callback(weighed, (a, harp.f64[()]), a, b, s, vmap_method=method)

    a, b, s = np.random.default_rng(0).normal(size=(2, 4, 3)), np.arange(3.0), np.array([2.0, -1.0])
    inner = harp.vmap(f, (0, None, None))
    ordered, sums = run(harp.vmap(inner, (0, None, 0)))(a, b, s)
    npt.assert_allclose(ordered, np.sort(a, -1) * s[:, None, None])
    npt.assert_allclose(sums, (a * b).sum(-1))
    assert shapes == ([(3,)] * 8 if method == "sequential" else [(2, 4, 3)])


def test_a_batch_of_nothing(run):
    f = lambda x: harp.pure_callback(lambda a: a * 2, x, x, vmap_method="broadcast_all")
    assert np.asarray(run(harp.vmap(f))(np.empty((0, 3)))).shape == (0, 3)


def test_a_derivative_that_is_given(run):
    @harp.custom_vjp
    def erf_outside(x):
        return harp.pure_callback(lambda a: np.tanh(a), x, x)

    erf_outside.defvjp(lambda x: (erf_outside(x), x), lambda x, ct: (ct * (1 - hnp.tanh(x) ** 2),))
    gradient = run(harp.grad(lambda x: (erf_outside(x) * x).sum()))(X)
    npt.assert_allclose(gradient, np.tanh(X) + X * (1 - np.tanh(X) ** 2), rtol=1e-12)


def test_without_one_the_error_names_the_function_and_the_line(run):
    def secret(a):
        return a

    def f(x):
        return harp.pure_callback(secret, x, x).sum()

    for transform in (harp.grad(f), lambda x: harp.jvp(f, (x,), (x,))[1]):
        with pytest.raises(MissingRuleError, match=r"pure_callback of secret.*custom_vjp(.|\n)*test_callback\.py"):
            run(transform)(X)
    fixed = harp.grad(lambda x: (harp.stop_gradient(harp.pure_callback(secret, x, harp.stop_gradient(x))) * x).sum())
    npt.assert_array_equal(run(fixed)(X), X)
    npt.assert_array_equal(run(harp.grad(lambda x: f(hnp.round(x).astype(int)) + x.sum()))(X), np.ones(3))


def test_equal_functions_share_a_program_and_call_their_own(jit):
    def made(by):
        return jit(lambda x: harp.pure_callback(lambda a: a + by, x, x) * 2)

    first, second = made(1), made(2)
    npt.assert_array_equal(first(X), (X + 1) * 2)
    before = harp.stats()["programs"]
    npt.assert_array_equal(second(X), (X + 2) * 2)
    npt.assert_array_equal(first(X), (X + 1) * 2)
    assert harp.stats()["programs"] == before


def test_a_function_may_call_programs_that_call_functions(jit):
    inner = jit(lambda x: harp.pure_callback(lambda a: a * 2, x, x))
    outer = jit(lambda x: harp.pure_callback(lambda a: np.asarray(inner(a + 1)), x, x) - 1)
    npt.assert_array_equal(outer(X), 2 * (X + 1) - 1)


def test_checked_programs_and_searches_for_nan(jit):
    f = jit(lambda x: harp.pure_callback(lambda a: a[::-1], x, x)[1:])
    with harp.debug.nans():
        npt.assert_array_equal(f(X), X[::-1][1:])
        bad = harp.jit(lambda x: harp.pure_callback(lambda a: a * np.nan, x, x) + 1)
        with pytest.raises(harp.errors.NotFiniteError, match="call pure function"):
            bad(X)


def test_bad_declarations():
    for result, text in (
        ("f64[3]", "is declared by a signature"),
        (harp.f64["n"], "a name for a size"),
        ({"a": 3.0}, "is declared by a signature"),
    ):
        with pytest.raises(ArgumentError, match=text):
            harp.pure_callback(np.sin, result, X)
    with pytest.raises(ArgumentError, match="takes a function first"):
        harp.pure_callback(X, X, X)
    with pytest.raises(ArgumentError, match="vmap_method is 'all'"):
        harp.pure_callback(np.sin, X, X, vmap_method="all")


def test_the_stages_show_the_call():
    stages = harp.jit(lambda x: harp.pure_callback(np.sort, x, x) + 1).lower(X)
    assert "call pure function 0 of Python with (%0) -> f64[s0]" in str(stages.graph)
    assert "function 0 of Python(in0)" in stages.loops
    assert stages.cost().bytes_read.text() == "16*n"
