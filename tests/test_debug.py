"""Calls of Python from programs: which, in which order, with what, under every transform; and what they print."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import debug
from harp.config import settings
from harp.errors import ArgumentError, FormatError
from harp.transforms.jit import programs


@pytest.fixture(params=["at once", "C", "NumPy"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable]:
    """The function as it is, compiled, and with the interpreter as its program."""
    if request.param == "NumPy":
        monkeypatch.setattr(programs, "backend_name", lambda *_: "numpy")
    yield (lambda f: f) if request.param == "at once" else harp.jit


@pytest.fixture(params=["C", "NumPy"])
def jit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable]:
    if request.param == "NumPy":
        monkeypatch.setattr(programs, "backend_name", lambda *_: "numpy")
    yield harp.jit


class Log(list):
    """What calls were given, as Python's numbers and lists."""

    def __call__(self, *values: Any) -> None:
        self.append(tuple(v.tolist() if isinstance(v, np.ndarray) else v for v in values))

    def tell(self, *values: Any) -> None:
        debug.callback(self, *values)

    def flush(self) -> list:
        found, self[:] = list(self), []
        return found


@pytest.fixture
def log() -> Log:
    return Log()


X = np.array([1.0, 2.0, 3.0])


# -- order ---------------------------------------------------------------------------------------------------------


def test_calls_keep_their_order(run, log):
    def f(x):
        for k in range(5):
            log.tell(k, x)
            x = x + 1
        return x

    assert np.asarray(run(f)(0.0)) == 5
    assert log == [(k, float(k)) for k in range(5)]


def test_a_call_is_made_though_nobody_reads_its_operands(run, log):
    def f(x):
        log.tell(hnp.sin(x) * 0 + 7)

    assert run(f)(X) is None
    assert log == [([7.0, 7.0, 7.0],)]


def test_scan(run, log):
    def f(xs):
        log.tell("before")
        last, made = harp.scan(lambda c, x: (log.tell("step", c, x), (c + x, c))[1], 0.0, xs)
        log.tell("after", last)
        return made

    run(f)(X)
    assert log == [("before",), ("step", 0.0, 1.0), ("step", 1.0, 2.0), ("step", 3.0, 3.0), ("after", 6.0)]


def test_scan_backward_and_by_blocks(run, log):
    def f(xs):
        return harp.scan(lambda c, x: (log.tell(x), (c + x, None))[1], 0.0, xs, reverse=True, checkpoint_every=2)[0]

    run(harp.grad(f))(X)
    assert log == [(3.0,), (2.0,), (1.0,)]


def test_a_loop_that_carries_nothing(run, log):
    def f(x):
        harp.fori_loop(2, 5, lambda i, c: log.tell(i, x), None)

    run(f)(1.5)
    assert log == [(2, 1.5), (3, 1.5), (4, 1.5)]


def test_while_loop(run, log):
    def test(x):
        log.tell("test", x)
        return x < 10

    def step(x):
        log.tell("step", x)
        return x * 3

    assert float(run(lambda x: harp.while_loop(test, step, x))(2.0)) == 18
    assert log == [("test", 2.0), ("step", 2.0), ("test", 6.0), ("step", 6.0), ("test", 18.0)]


def test_loops_of_loops(run, log):
    def inner(i, c):
        return harp.fori_loop(0, i, lambda j, c: (log.tell(i, j, c), c + 1)[1], c)

    assert int(run(lambda n: harp.fori_loop(0, n, inner, 0))(np.int64(4))) == 6
    places = [(i, j) for i in range(4) for j in range(i)]
    assert log == [(i, j, k) for k, (i, j) in enumerate(places)]


def test_only_the_branch_that_is_taken(run, log):
    def f(x):
        log.tell("before")
        yes, no = (lambda x, word=word: (log.tell(word, x), x)[1] for word in ("yes", "no"))
        y = harp.cond(x > 0, yes, no, x)
        branches = [lambda x, k=k: (log.tell("branch", k), x * k)[1] for k in range(3)]
        y = harp.switch(y.astype(int), branches, y)
        log.tell("after", y)
        return y

    f = run(f)
    f(1.0)
    assert log.flush() == [("before",), ("yes", 1.0), ("branch", 1), ("after", 1.0)]
    f(-1.0)
    assert log.flush() == [("before",), ("no", -1.0), ("branch", 0), ("after", 0.0)]


def test_a_branch_that_returns_nothing(run, log):
    def f(x):
        harp.cond(x > 0, lambda: log.tell("yes"), lambda: None)

    f = run(f)
    f(1.0)
    f(-1.0)
    assert log == [("yes",)]


# -- what is given -------------------------------------------------------------------------------------------------


def test_arrays_are_those_of_the_call(jit, log):
    f = jit(lambda x, y: log.tell(x, y[:, :2] * 2, hnp.flip(x)))
    for n in (3, 1, 0, 5):
        x, y = np.arange(n, dtype=np.float32), np.arange(3 * n).reshape(n, 3)
        f(x, y)
        assert log.flush() == [(x.tolist(), (y[:, :2] * 2).tolist(), x[::-1].tolist())]
    assert f.compilations == 1


@pytest.mark.parametrize("dtype", ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"])
def test_dtypes(jit, dtype):
    seen = []
    given = np.array([[1, 0, 3], [0, 5, 1]]).astype(dtype)
    jit(lambda x: debug.callback(lambda *arrays: seen.extend(arrays), x, x[1:, 0], x[1, 1]))(given)
    for found, expected in zip(seen, (given, given[1:, 0], given[1, 1]), strict=True):
        assert isinstance(found, np.ndarray) and found.dtype == given.dtype and found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)


def test_bfloat16(jit):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    seen = []
    jit(lambda x: debug.callback(seen.append, x + 1))(np.array([1, 2], ml_dtypes.bfloat16))
    assert seen[0].dtype == ml_dtypes.bfloat16 and seen[0].tolist() == [2, 3]


def test_copies_stay(jit):
    seen = []
    jit(lambda xs: harp.scan(lambda c, x: (debug.callback(seen.append, c), (c + x, None))[1], xs[0] * 0, xs))(np.eye(2))
    assert [a.tolist() for a in seen] == [[0, 0], [1, 0]]
    seen[0][:] = 7  # one may be written to


def test_trees_and_what_is_no_array(run):
    seen = []

    def f(x):
        debug.callback(lambda tree, word, *, more: seen.append((tree, word, more)), {"a": (x, None)}, "w", more=[x + 1])

    run(f)(1.0)
    (((tree, word, more),),) = [seen]
    assert word == "w" and tree["a"][1] is None and float(tree["a"][0]) == 1 and float(more[0]) == 2


def test_static_values_are_other_programs(jit, log):
    f = jit(lambda k, x: log.tell(k, x), static_argnums=0)
    for k in (1, 2, 1):
        f(k, 0.5)
    assert log == [(1, 0.5), (2, 0.5), (1, 0.5)]


# -- transforms ----------------------------------------------------------------------------------------------------


def stepping(log: Log) -> Callable:
    """A function with calls at the top, in a loop, in a loop that data ends and in a branch."""

    def f(x):
        log.tell("x", x)
        s, _ = harp.scan(lambda c, k: (log.tell("scan", c), (c * x + k, None))[1], 1.0, np.arange(2.0))
        s = harp.while_loop(lambda c: c < 9, lambda c: (log.tell("while", c), c * 2)[1], s)
        s = harp.cond(s > 10, lambda s: (log.tell("large", s), s)[1], lambda s: (log.tell("small", s), s * 2)[1], s)
        log.tell("end", s)
        return s

    return f


def expected(x: float) -> list:
    """What `stepping` says of a number."""
    found: list = [("x", x), ("scan", 1.0), ("scan", x)]
    s = x * x + 1
    while s < 9:
        found.append(("while", s))
        s *= 2
    found.append(("large" if s > 10 else "small", s))
    return [*found, ("end", s if s > 10 else s * 2)]


WAYS = {
    "plain": lambda f: f,
    "grad": harp.grad,
    "value_and_grad": harp.value_and_grad,
    "vjp": lambda f: lambda x: harp.vjp(f, x)[1](1.0),
    "jvp": lambda f: lambda x: harp.jvp(f, (x,), (1.0,)),
    "linearize": lambda f: lambda x: harp.linearize(f, x)[1](1.0),
    "grad of grad": lambda f: harp.grad(harp.grad(f)),
    "jvp of grad": lambda f: lambda x: harp.jvp(harp.grad(f), (x,), (1.0,)),
    "grad of jvp": lambda f: harp.grad(lambda x: harp.jvp(f, (x,), (1.0,))[1]),
    "checkpoint": harp.checkpoint,
    "grad of checkpoint": lambda f: harp.grad(harp.checkpoint(f)),
    "jvp of checkpoint": lambda f: lambda x: harp.jvp(harp.checkpoint(f), (x,), (1.0,)),
    "jacrev": harp.jacrev,
    "jacfwd": harp.jacfwd,
    "value_and_jacfwd": harp.value_and_jacfwd,
    "hessian": harp.hessian,
    "jit": harp.jit,
}


@pytest.mark.parametrize("way", WAYS)
def test_transforms_say_it_once(run, log, way):
    f = run(WAYS[way](stepping(log)))
    for x in (1.0, 4.0, 4.0):
        f(x)
        assert log.flush() == expected(x)


@pytest.mark.parametrize("way", WAYS)
def test_batches_say_what_each_example_says(run, log, way):
    run(harp.vmap(WAYS[way](stepping(log))))(np.array([1.0, 4.0, 2.0]))
    for x in (1.0, 4.0, 2.0):
        for said in expected(x):
            log.remove(said)
    assert not log


@pytest.mark.parametrize("way", WAYS)
def test_transforms_in_a_loop(run, log, way):
    f = WAYS[way](stepping(log))

    def step(total, x):
        return total + harp.tree.reduce(lambda a, b: a + b, f(x)), None

    run(lambda xs: harp.scan(step, 0.0, xs)[0])(np.array([4.0, 1.0]))
    assert log == [*expected(4.0), *expected(1.0)]


@pytest.mark.parametrize("way", ["plain", "grad", "jvp", "grad of checkpoint", "grad of grad"])
def test_gradients_of_loops_of_them(run, log, way):
    f = WAYS[way](stepping(log))

    def loop(a, xs):
        return harp.scan(lambda c, x: (c + harp.tree.reduce(lambda a, b: a + b, f(x * a)), None), 0.0, xs)[0]

    run(harp.grad(loop))(1.0, np.array([4.0, 1.0]))
    assert log == [*expected(4.0), *expected(1.0)]


def test_examples_take_turns_and_ended_ones_are_silent(run, log):
    def f(x):
        return harp.while_loop(lambda c: c < 5, lambda c: (log.tell(c), c + x)[1], x)

    run(harp.vmap(f))(np.array([1.0, 3.0, 9.0]))
    assert log == [(1.0,), (3.0,), (2.0,), (3.0,), (4.0,)]


def test_a_loop_in_a_branch_that_some_examples_take(run, log):
    def f(x, k):
        loop = lambda x: harp.fori_loop(0, 2, lambda i, c: (log.tell(k, i, c), c * 2)[1], x)
        return harp.cond(x > 0, loop, lambda x: x, x)

    run(harp.vmap(harp.grad(f), in_axes=(0, 0)))(np.array([1.0, -1.0, 2.0]), np.arange(3))
    assert log == [(0, 0, 1.0), (2, 0, 2.0), (0, 1, 2.0), (2, 1, 4.0)]


def test_batches_of_batches(run, log):
    run(harp.vmap(harp.vmap(lambda x: (log.tell(x), x)[1])))(np.arange(6.0).reshape(2, 3))
    assert log == [(float(k),) for k in range(6)]


@pytest.mark.slow
def test_loops_in_branches_of_batches_of_batches(run, log):
    def inner(x, y):
        loop = lambda: harp.while_loop(lambda c: c < 3, lambda c: (log.tell(x, y, c), c + 1)[1], x)
        other = lambda: harp.cond(x > 1, lambda: (log.tell(-x, -y), x)[1], lambda: x)
        return harp.cond(y > 0, loop, other)

    f = lambda x, ys: hnp.sum(harp.vmap(lambda y: inner(x, y))(ys))
    for way in (f, harp.grad(f), harp.checkpoint(f), harp.grad(harp.checkpoint(f))):
        run(harp.vmap(way))(np.array([1.0, 2.0]), np.array([[1.0, -1.0], [-1.0, 1.0]]))
        assert sorted(log.flush()) == [(-2.0, 1.0), (1.0, 1.0, 1.0), (1.0, 1.0, 2.0), (2.0, 1.0, 2.0)]


def test_empty_batches_lose_no_other_calls(run, log):
    def f(xs):
        log.tell("before")
        harp.vmap(lambda x: (log.tell(x), x)[1])(xs)
        harp.vmap(lambda x: (log.tell(x), x)[1])(np.zeros(0))
        log.tell("after")

    run(f)(np.zeros(0))
    assert log == [("before",), ("after",)]


def test_what_is_the_same_for_all_examples_is_said_once(run, log):
    run(harp.vmap(lambda x: (log.tell("once"), x)[1]))(X)
    assert log == [("once",)]


@pytest.mark.parametrize("made", ["jvp", "vjp"])
def test_functions_with_derivatives_of_their_own(run, log, made):
    def f(x):
        log.tell("function", x)
        return x * x

    if made == "jvp":
        own = harp.custom_jvp(f)
        own.defjvp(lambda p, t: (own(*p), 2 * p[0] * t[0]))
    else:
        own = harp.custom_vjp(f)
        own.defvjp(lambda x: (own(x), x), lambda x, ct: (2 * x * ct,))

    def g(x):
        log.tell("before")
        y = own(x)
        log.tell("after", y)
        return y

    for way in (lambda f: f, harp.grad, harp.vmap, lambda f: harp.vmap(harp.grad(f))):
        x = 3.0 if way in (harp.grad,) or way(f) is f else np.array([3.0])
        run(way(g))(x)
        assert log.flush() == [("before",), ("function", 3.0), ("after", 9.0)]


def test_rules_say_what_they_compute(run, log):
    def told(x):
        log.tell("rule", x)
        return harp.fori_loop(0, 2, lambda i, c: (log.tell("loop", c), c * 1.0)[1], x)

    first, second = harp.custom_jvp(lambda x: x * x), harp.custom_vjp(lambda x: x * x)
    first.defjvp(lambda p, t: (first(*p), told(p[0]) * 2 * t[0]))
    second.defvjp(lambda x: (second(x), x), lambda x, ct: (told(x) * 2 * ct,))
    for f in (first, second):
        once = [("rule", 3.0), ("loop", 3.0), ("loop", 3.0)]
        ways = (f, harp.grad(f), harp.value_and_grad(f), harp.grad(harp.checkpoint(f)), harp.grad(harp.grad(f)))
        for way in ways:
            run(way)(3.0)
            assert log.flush() == ([] if way is f else once)
        run(lambda x, f=f: harp.jvp(f, (x,), (1.0,)))(3.0)
        assert log.flush() == once
        assert np.asarray(run(harp.vmap(harp.grad(f)))(X)).tolist() == [2.0, 4.0, 6.0]
        said = log.flush()
        for x in X:
            assert [say for say in said if say[1] == x] == [("rule", x), ("loop", x), ("loop", x)]
        assert float(run(harp.grad(lambda x, f=f: harp.cond(x > 5, f, lambda x: x, x)))(3.0)) == 1
        assert not log.flush()
        run(harp.grad(lambda x, f=f: harp.scan(lambda c, k: (f(c * k), None), x, np.array([1.0, 2.0]))[0]))(3.0)
        assert log.flush() == [("rule", 18.0), ("loop", 18.0), ("loop", 18.0), *once]


def test_rules_say_no_numbers_that_there_are_not(run, log):
    """Reverse mode by a rule for tangents, and forward mode by one for cotangents: what comes in has none."""

    def told(x, dx):
        log.tell("x", x)
        log.tell("dx", dx)
        harp.fori_loop(0, 2, lambda i, c: (log.tell("loop", c), c)[1], dx)
        log.tell("x again", x)
        return 2 * x * dx

    first, second = harp.custom_jvp(lambda x: x * x), harp.custom_vjp(lambda x: x * x)
    first.defjvp(lambda p, t: (first(*p), told(p[0], t[0])))
    second.defvjp(lambda x: (second(x), x), lambda x, ct: (told(x, ct),))
    both = [("x", 3.0), ("dx", 0.5), ("loop", 0.5), ("loop", 0.5), ("x again", 3.0)]
    for f in (first, second):
        forward, backward = (both, [both[0], both[-1]]) if f is first else ([both[0], both[-1]], both)
        assert float(run(lambda x, f=f: harp.jvp(f, (x,), (0.5,)))(3.0)[1]) == 3
        assert log.flush() == forward
        assert float(run(harp.grad(lambda x, f=f: f(x) * 0.5))(3.0)) == 3
        assert log.flush() == backward


def test_a_function_says_nothing_in_its_own_rules(run, log):
    def square(x):
        log.tell("function", x)
        return x * x

    first, second = harp.custom_jvp(square), harp.custom_vjp(square)
    first.defjvp(lambda p, t: (first(*p), (log.tell("rule", p[0]), 2 * p[0] * t[0])[1]))
    second.defvjp(lambda x: (second(x), x), lambda x, ct: ((log.tell("rule", x), 2 * x * ct)[1],))
    for f in (first, second):
        assert float(run(harp.grad(f))(3.0)) == 6
        assert sorted(log.flush()) == [("function", 3.0), ("rule", 3.0)]


def test_a_pullback_says_nothing_again(run, log):
    def f(x):
        _, back = harp.vjp(stepping(log), x)
        log.tell("between")
        return back(1.0)[0] + back(2.0)[0]

    run(f)(4.0)
    assert log == [*expected(4.0), ("between",)]


def test_shapes_say_nothing(log):
    harp.eval_shape(stepping(log), harp.f64[()])
    assert not log


# -- programs ------------------------------------------------------------------------------------------------------


def test_equal_programs_call_their_own_functions(jit):
    first, second = Log(), Log()
    f, g = (jit(lambda x, log=log: (log.tell(x), x)[1]) for log in (first, second))
    for k in range(3):
        f(float(k))
        g(10.0 + k)
    assert first == [(0.0,), (1.0,), (2.0,)] and second == [(10.0,), (11.0,), (12.0,)]


def test_functions_call_programs(jit, log):
    inner = jit(lambda x: (log.tell("inner", x), x + 1)[1])

    def outer(x):
        debug.callback(lambda x: log("outer", inner(x)._value), x)
        log.tell("end")

    jit(outer)(1.0)
    assert log == [("inner", 1.0), ("outer", 2.0), ("end",)]


def test_a_function_that_calls_itself(jit, log):
    @jit
    def f(x):
        log.tell(x)
        debug.callback(lambda x: f(x - 1) if x > 0 else None, x)
        log.tell(-x)

    f(2.0)
    assert log == [(2.0,), (1.0,), (0.0,), (-0.0,), (-1.0,), (-2.0,)]


def test_threads(jit):
    found: dict[int, list] = {}

    def work(x):
        debug.callback(lambda x: found.setdefault(threading.get_ident(), []).append(float(x)), x)
        return x

    f = jit(lambda xs: harp.scan(lambda c, x: (work(x), None), 0.0, xs)[0])
    f(np.zeros(1))
    found.clear()
    given = {}

    def call(k):
        given[threading.get_ident()] = [float(k)] * 50
        for _ in range(10):
            f(np.full(5, float(k)))
        barrier.wait()

    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == given


def test_results_beside_large_parallel_loops(log):
    f = harp.jit(lambda x: (log.tell(hnp.sum(x)), hnp.exp(x) * 2)[1], threads=2)
    x = np.zeros(1 << 20)
    np.testing.assert_array_equal(np.asarray(f(x)), 2.0)
    assert log == [(0.0,)]


def test_donated_arguments(jit, log):
    f = jit(lambda x: (log.tell(x), x + 1)[1], donate_argnums=0)
    np.testing.assert_array_equal(np.asarray(f(hnp.asarray(X))), X + 1)
    assert log == [(X.tolist(),)]


def test_verified_programs_call_once(log, monkeypatch):
    monkeypatch.setattr(settings, "verify", 3)
    f = harp.jit(harp.grad(stepping(log)))
    f(4.0)
    assert log == expected(4.0)
    log.clear()
    harp.jit(harp.vmap(lambda x, y: log.tell(x, y)))(np.arange(2.0), np.eye(2))
    assert log == [(0.0, [1.0, 0.0]), (1.0, [0.0, 1.0])]


def test_verified_loops_call_once(log, monkeypatch):
    monkeypatch.setattr(settings, "verify", 3)

    def f(xs):
        log.tell(xs)
        return harp.scan(lambda c, x: (log.tell(x, c), (c + hnp.sum(x), x * 2))[1], 0.0, xs)

    harp.jit(harp.vmap(f))(np.ones((2, 2, 1)))
    assert log.flush() == [([[1.0], [1.0]],)] * 2 + [([1.0], 0.0)] * 2 + [([1.0], 1.0)] * 2
    harp.jit(lambda xs: harp.grad(lambda xs: f(xs)[0])(xs))(np.ones((2, 1)))
    assert log.flush() == [([[1.0], [1.0]],), ([1.0], 0.0), ([1.0], 1.0)]
    harp.jit(lambda m, xs: harp.scan(lambda c, x: (log.tell(x, c, m), (c | x, ~x))[1], False, xs))(True, X > 1)
    assert log == [(False, False, True), (True, False, True), (True, True, True)]


def test_checked_programs(log):
    harp.jit(stepping(log), check=True)(4.0)
    assert log == expected(4.0)


def test_the_search_for_nans_calls_nothing(run, log):
    def f(x):
        log.tell(x)
        return harp.scan(lambda c, v: (log.tell(v), (c + hnp.log(v), None))[1], 0.0, x)[0]

    with debug.nans(), pytest.raises(harp.errors.NotFiniteError):
        run(f)(np.array([1.0, -1.0]))
    assert log == [([1.0, -1.0],), (1.0,), (-1.0,)]


def test_stages_show_the_call(log):
    stages = harp.jit(lambda x: log.tell(x)).lower(X)
    assert "call function 0 of Python" in str(stages.graph)
    assert "function 0 of Python(" in stages.loops
    assert "harp_call_python(0, " in stages.source
    assert stages.cost().bytes_read
    assert not log


# -- errors --------------------------------------------------------------------------------------------------------


class Stop(Exception):
    pass


@pytest.mark.parametrize("kind", [Stop, KeyboardInterrupt, SystemExit, ValueError, MemoryError])
def test_what_a_function_raises_is_raised(run, log, kind):
    error = kind("enough")

    def tell(k, x):
        log(k, x)
        if k == 2:
            raise error

    def f(x):
        y = harp.fori_loop(0, 5, lambda k, c: (debug.callback(tell, k, c), c + 1)[1], x)
        log.tell("after")
        return y

    f = run(f)
    for _ in range(2):
        with pytest.raises(kind) as raised:
            f(0.0)
        assert raised.value is error
        assert "tell" in [entry.name for entry in raised.traceback]
        assert log.flush() == [(0, 0.0), (1, 1.0), (2, 2.0)]


def test_an_error_ends_a_loop_without_end(jit):
    def stop(x):
        if x > 100:
            raise Stop

    endless = jit(lambda x: harp.while_loop(lambda c: c > -1, lambda c: (debug.callback(stop, c), c + 1)[1], x))
    with pytest.raises(Stop):
        endless(0.0)


def test_an_error_in_a_program_that_a_function_calls(jit, log):
    def fail(x):
        raise Stop

    inner = jit(lambda x: debug.callback(fail, x))

    def tries(x):
        with pytest.raises(Stop):
            inner(x)
        log("caught")

    jit(lambda x: (debug.callback(tries, x), log.tell("goes on"))[1])(1.0)
    assert log == [("caught",), ("goes on",)]


def test_jaxs_word_for_order_is_taken(run, capsys):
    def f(x):
        harp.debug.callback(lambda x: print(x), x, ordered=True)
        harp.debug.print("{}", x, ordered=False)
        return x

    run(f)(1.0)
    assert capsys.readouterr().out == "1.0\n1.0\n"


def test_callback_takes_a_function():
    with pytest.raises(ArgumentError, match="callback takes a function first, not a str"):
        debug.callback("x")


# -- print ---------------------------------------------------------------------------------------------------------


def test_print(run, capsys):
    def f(x, n):
        debug.print("{0} {1:+d} {a!r:>8} {b:.2e} {{}} {c}", x, n, a=n, b=x[0], c="w")
        debug.print("no placeholder")
        debug.print("{} and {}", x.shape[0], x[1:])

    run(f)(X, 7)
    assert capsys.readouterr().out == ("[1. 2. 3.] +7 array(7) 1.00e+00 {} w\nno placeholder\n3 and [2. 3.]\n")


@pytest.mark.parametrize(
    ("fmt", "given", "text"),
    [
        ("{} {}", (X,), r"the placeholder \{\} of '\{\} \{\}' is for argument 1, but there are 1"),
        ("{3}", (X,), r"the placeholder \{3\} .* is for argument 3"),
        ("{²}", (X,), r"the placeholder \{²\} .* has no argument '²'"),
        ("{" + "9" * 5000 + "}", (X,), r"is for argument 9*, but there are 1"),
        ("{loss:.2f}", (X,), r"the placeholder \{loss\} .* has no argument 'loss'"),
        ("{", (X,), r"is none of str.format"),
        ("{:.2f}", (X,), r"placeholder \{:.2f\} .* is for float64 with 1 axes"),
        ("{0:q}", (1.0,), r"placeholder \{0:q\} .* is for float64 with 0 axes"),
    ],
)
def test_formats_that_do_not_fit_are_found_when_tracing(run, capsys, fmt, given, text):
    with pytest.raises(FormatError, match=text):
        run(lambda *arrays: debug.print(fmt, *arrays))(*given)
    assert capsys.readouterr().out == ""


def test_print_takes_a_format():
    with pytest.raises(ArgumentError, match="takes a format first"):
        debug.print(X)
