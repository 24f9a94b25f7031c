"""Donated arguments: right results at all sizes, memory that is used again, and arrays that are gone."""

from __future__ import annotations

import gc
import threading

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import errors
from harp.backends.runtime import memory
from harp.backends.toolchain.toolchain import find_toolchain

pytestmark = pytest.mark.usefixtures("processor")

F32 = np.float32
SIZES = [0, 1, 2, 3, 17, 1000, 300_000]
compiled = pytest.mark.skipif(find_toolchain() is None, reason="there is no compiled program")


def address(array) -> int:
    return np.asarray(array).__array_interface__["data"][0]


def array(values, dtype=F32):
    """A harp array that nobody else has."""
    return hnp.asarray(np.asarray(values, dtype))


def scaled(x, y):
    return x * 2 + y


def step(params, gradient, rate):
    return {name: params[name] - rate * gradient[name] for name in params}


@pytest.mark.parametrize("size", SIZES)
def test_results_at_all_sizes_by_one_program(size):
    f = harp.jit(scaled, donate_argnums=0)
    f(array(np.ones(4)), array(np.ones(4)))
    values, y = np.arange(size, dtype=F32), np.ones(size, F32)
    state, expected = array(values), values
    for _ in range(4):
        state, expected = f(state, y), expected * 2 + y
        npt.assert_array_equal(np.asarray(state), expected)
    assert f.compilations == 1


@compiled
@pytest.mark.parametrize("size", SIZES[1:])
def test_memory_is_used_again(size):
    f = harp.jit(scaled, donate_argnums=0)
    x, y = array(np.ones(size)), np.ones(size, F32)
    places = {address(x)}
    for _ in range(5):
        x = f(x, y)
        places.add(address(x))
    assert len(places) == 1


@compiled
@pytest.mark.parametrize("keywords", [False, True])
def test_trees_keywords_and_numbers(keywords):
    f = harp.jit(step, donate_argnames="params")
    params = {"w": array(np.ones((30, 50))), "b": array(np.zeros(3))}
    gradient = {"w": np.full((30, 50), 2, F32), "b": np.ones(3, F32)}
    for k in range(1, 5):
        before = {name: address(p) for name, p in params.items()}
        params = f(rate=0.5, params=params, gradient=gradient) if keywords else f(params, gradient, 0.5)
        assert {name: address(p) for name, p in params.items()} == before
        npt.assert_array_equal(np.asarray(params["w"]), np.full((30, 50), 1 - k, F32))
        npt.assert_array_equal(np.asarray(params["b"]), np.full(3, -k / 2, F32))


@compiled
def test_static_arguments_before_donated_ones():
    f = harp.jit(lambda n, x: x * n, static_argnums=0, donate_argnums=1)
    x = array([1, 2])
    place = address(x)
    y = f(3, x)
    assert address(y) == place
    npt.assert_array_equal(np.asarray(f(2, y)), [6, 12])
    with pytest.raises(errors.DonatedError, match="argument x"):
        f(3, x)


def test_negative_numbers_and_methods():
    class Model:
        def __init__(self):
            self.go = harp.jit(self.apply, donate_argnums=-1)

        def apply(self, a, b):
            return a - b

    a, b = array([5]), array([3])
    npt.assert_array_equal(np.asarray(Model().go(a, b)), [2])
    assert a + 1
    with pytest.raises(errors.DonatedError):
        b + 1


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(1, 1), (3, 50), (70, 9), (0, 4)])
def test_running_sums_in_place(axis, shape):
    values = np.arange(shape[0] * shape[1], dtype=np.float64).reshape(shape)
    f = harp.jit(lambda x: hnp.cumulative_sum(x, axis=axis) + x, donate_argnums=0)
    for _ in range(3):
        npt.assert_array_equal(np.asarray(f(array(values, np.float64))), np.cumsum(values, axis=axis) + values)


# --- what others hold keeps its values


def a_view(x):
    return np.asarray(x)


def a_part(x):
    return np.asarray(x)[1:]


def a_reshaped_view(x):
    return np.asarray(x).reshape(-1, 1)


def a_memoryview(x):
    return memoryview(np.asarray(x))


def the_block(x):
    base = np.asarray(x)
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return base


HOLDERS = [a_view, a_part, a_reshaped_view, a_memoryview, the_block]


@pytest.mark.parametrize("hold", HOLDERS)
@pytest.mark.parametrize("size", [5, 400_000])
@pytest.mark.parametrize("warm", [0, 3])
def test_what_others_hold_keeps_its_values(hold, size, warm):
    f = harp.jit(scaled, donate_argnums=0)
    y = np.ones(size, F32)
    x = array(np.arange(size))
    for _ in range(warm):
        x = f(x, y)
    expected = np.array(np.asarray(x))
    held = hold(x)
    seen = np.array(np.asarray(held)).ravel()
    result = f(x, y)
    npt.assert_array_equal(np.asarray(result), expected * 2 + y)
    npt.assert_array_equal(np.array(np.asarray(held)).ravel(), seen)


@pytest.mark.parametrize("order", ["C", "F"])
def test_numpy_arrays_are_never_written_to(order):
    f = harp.jit(scaled, donate_argnums=(0, 1))
    x, y = np.ones((30, 40), F32, order=order), np.ones((30, 40), F32, order=order)
    for _ in range(3):
        npt.assert_array_equal(np.asarray(f(x, y)), np.full((30, 40), 3, F32))
        npt.assert_array_equal(x, 1)
        npt.assert_array_equal(y, 1)
        npt.assert_array_equal(np.asarray(f(np.ones(3, F32), 1.0)), [3, 3, 3])


def test_another_handle_on_the_same_numbers():
    x = array(np.arange(6))
    same = x.reshape(2, 3)
    f = harp.jit(scaled, donate_argnums=0)
    npt.assert_array_equal(np.asarray(f(x, 1.0)), np.arange(6) * 2 + 1)
    npt.assert_array_equal(np.asarray(same), np.arange(6).reshape(2, 3))


@pytest.mark.parametrize("numbers", [0, 1, (0, 1)])
@pytest.mark.parametrize("warm", [0, 2])
def test_one_array_for_two_arguments(numbers, warm):
    f = harp.jit(lambda x, y: (x * 2 + y[::-1], y - x[::-1]), donate_argnums=numbers)
    for _ in range(warm):
        f(array([0, 0, 0]), array([1, 1, 1]))
    values = np.array([1, 2, 5], F32)
    x = array(values)
    a, b = f(x, x)
    npt.assert_array_equal(np.asarray(a), values * 2 + values[::-1])
    npt.assert_array_equal(np.asarray(b), values - values[::-1])
    with pytest.raises(errors.DonatedError):
        x + 1


@pytest.mark.parametrize("numbers", [0, (0, 1)])
def test_one_array_in_the_same_place_of_two_arguments(numbers):
    f = harp.jit(lambda x, y: (x + y, x - y), donate_argnums=numbers)
    for _ in range(4):
        x = array([1, 2])
        a, b = f(x, x)
        npt.assert_array_equal(np.asarray(a), [2, 4])
        npt.assert_array_equal(np.asarray(b), [0, 0])


def test_a_captured_array():
    kept = array([1, 2, 3])
    f = harp.jit(lambda x: x + kept, donate_argnums=0)
    npt.assert_array_equal(np.asarray(f(kept)), [2, 4, 6])
    npt.assert_array_equal(np.asarray(f(array([1, 1, 1]))), [2, 3, 4])
    with pytest.raises(errors.DonatedError):
        f(kept)
    with pytest.raises(errors.DonatedError):
        f(array([[1, 1, 1]]))  # traced again


def test_a_function_that_has_captured_the_array_keeps_it():
    x = array([1, 2, 3])
    g = harp.jit(lambda y: x * y)
    npt.assert_array_equal(np.asarray(g(2.0)), [2, 4, 6])
    y = harp.jit(lambda x: x * 10, donate_argnums=0)(x)
    npt.assert_array_equal(np.asarray(g(2.0)), [2, 4, 6])
    npt.assert_array_equal(np.asarray(y), [10, 20, 30])


def test_one_result_twice_and_arguments_that_change_places():
    f = harp.jit(lambda x, y: (y, x, y, (x, x + y)), donate_argnums=(0, 1))
    for _ in range(3):
        x, y, again, (also, total) = f(array([1, 2]), array([3, 4]))
        results = x, y, again, also, total
        npt.assert_array_equal([np.asarray(a) for a in results], [[3, 4], [1, 2], [3, 4], [1, 2], [4, 6]])
        assert len({address(a) for a in results}) == 5


# --- gone

USES = {
    "operator": lambda x: x + 1,
    "reflected": lambda x: np.ones(2) * x,
    "numpy": lambda x: np.asarray(x),
    "function": lambda x: hnp.sum(x),
    "float": lambda x: float(x),
    "list": lambda x: x.tolist(),
    "shape": lambda x: x.shape,
    "dtype": lambda x: x.dtype,
    "ndim": lambda x: x.ndim,
    "size": lambda x: x.size,
    "bytes": lambda x: x.nbytes,
    "index": lambda x: x[0],
    "iteration": lambda x: list(x),
    "reshape": lambda x: x.reshape(-1),
    "pickle": lambda x: x.__reduce__(),
    "jit": lambda x: harp.jit(lambda y: y + 1)(x),
    "grad": lambda x: harp.grad(lambda y: hnp.sum(y * y))(x),
    "lower": lambda x: harp.jit(lambda y: y + 1).lower(x),
    "captured": lambda x: harp.jit(lambda y: y + x)(1.0),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_donated_array_is_gone(use):
    f = harp.jit(step, donate_argnums=0)
    x = array([1, 2])
    f({"w": x}, {"w": 1.0}, 1.0)
    with pytest.raises(errors.DonatedError, match=r"'step' as argument params\['w'\] and is gone; use what that call"):
        use(x)
    assert repr(x) == "Array(donated)"


def test_gone_for_the_short_way_too():
    f = harp.jit(scaled, donate_argnums=0)
    x, y = array([1, 2]), np.ones(2, F32)
    for _ in range(4):
        old, x = x, f(x, y)
    for _ in range(2):
        with pytest.raises(errors.DonatedError, match="'scaled' as argument x"):
            f(old, y)
    npt.assert_array_equal(np.asarray(f(x, y)), [63, 95])


def test_also_where_no_result_fits():
    f = harp.jit(lambda x: hnp.sum(x), donate_argnums=0)
    x = array([1, 2])
    assert float(f(x)) == 3
    with pytest.raises(errors.DonatedError):
        x + 1


def test_not_before_the_arguments_fit():
    f = harp.jit(scaled, donate_argnums=0)
    x = array([1, 2])
    with pytest.raises(errors.ShapeError):
        f(x, array([1, 2, 3]))
    with pytest.raises(errors.ArgumentError):
        f(x, "text")
    npt.assert_array_equal(np.asarray(x), [1, 2])


# --- where nothing is donated


def test_ignored_inside_a_trace():
    f = harp.jit(lambda x: x * x, donate_argnums=0)
    outer = harp.jit(lambda x: f(x) + x)
    x = array([1, 2])
    for _ in range(3):
        npt.assert_array_equal(np.asarray(outer(x)), [2, 6])
    total = harp.grad(lambda x: hnp.sum(f(x) + x))
    npt.assert_array_equal(np.asarray(total(x)), [3, 5])
    npt.assert_array_equal(np.asarray(x), [1, 2])


def test_a_donated_gradient():
    f = harp.jit(harp.value_and_grad(lambda x: hnp.sum(x * x)), donate_argnums=0)
    x = array([1, 2])
    value, gradient = f(x)
    assert float(value) == 5
    npt.assert_array_equal(np.asarray(gradient), [2, 4])
    with pytest.raises(errors.DonatedError):
        x + 1


def test_wrong_options():
    for wrong in ({"donate_argnums": 2}, {"donate_argnums": "x"}, {"donate_argnames": "z"}, {"donate_argnames": 3}):
        with pytest.raises(errors.ArgumentError, match=f"{next(iter(wrong))}.*"):
            harp.jit(scaled, **wrong)
    with pytest.raises(errors.ArgumentError, match="'x' of 'scaled' is static and cannot be donated"):
        harp.jit(scaled, static_argnums=0, donate_argnames="x")


# --- memory


@compiled
def test_programs_are_told_apart_by_what_is_donated():
    plain, first, second = harp.jit(scaled), harp.jit(scaled, donate_argnums=0), harp.jit(scaled, donate_argnums=1)
    for f, gone in ((plain, (False, False)), (first, (True, False)), (second, (False, True)), (plain, (False, False))):
        x, y = array([1, 2]), array([3, 4])
        places = address(x), address(y)
        result = f(x, y)
        npt.assert_array_equal(np.asarray(result), [5, 8])
        assert tuple(address(result) == place for place in places) == gone
        assert tuple(repr(a) == "Array(donated)" for a in (x, y)) == gone


@pytest.mark.slow
@compiled
def test_free_blocks_are_not_those_that_results_live_in():
    f = harp.jit(scaled, donate_argnums=0)
    size = memory.LARGE  # elements, of four bytes
    y = np.ones(size, F32)
    states = [f(array(np.full(size, k)), y) for k in range(4)]
    for turn in range(3):
        states = [f(s, y) for s in states]
        gc.collect()
        other = harp.jit(lambda y: y * 0 - 1)(y)  # from the free list
        del other
        for k, s in enumerate(states):
            npt.assert_array_equal(np.asarray(s)[:: size // 7], (k + 1) * 2 ** (turn + 2) - 1)
        assert len({address(s) for s in states}) == len(states)
    memory.release()


@compiled
def test_the_memory_of_a_call_counts_shared_arrays_once():
    x = np.ones((10, 20), F32)
    plain, sharing = (harp.jit(scaled, **o).lower(x, x).memory() for o in ({}, {"donate_argnums": 0}))
    assert (plain.donated, sharing.donated) == (0, 800)
    assert plain.peak - sharing.peak == 800


def test_threads_that_donate_the_same_array():
    f = harp.jit(scaled, donate_argnums=0)
    y = np.ones(1000, F32)
    f(f(array(np.zeros(1000)), y), y)
    for k in range(50):
        x, found = array(np.full(1000, k)), []
        barrier = threading.Barrier(3)

        def run(x=x, found=found, barrier=barrier):
            barrier.wait()
            try:
                found.append(np.array(np.asarray(f(x, y))))
            except errors.DonatedError:
                found.append(None)

        threads = [threading.Thread(target=run) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        results = [r for r in found if r is not None]
        assert len(found) == 3 and results
        for r in results:
            npt.assert_array_equal(r, 2 * k + 1)


def test_many_arguments():
    f = harp.jit(lambda xs: [x + 1 for x in xs], donate_argnums=0)
    state = [array([k]) for k in range(120)]
    for _ in range(3):
        state = f(state)
    npt.assert_array_equal([int(s[0]) for s in state], np.arange(120) + 3)


def test_numbers_of_parameters_may_be_an_array():
    for numbers in (np.array([0, 1]), np.array(0)):
        f = harp.jit(lambda x, y: x + y, donate_argnums=numbers)
        np.testing.assert_array_equal(f(hnp.ones(3), hnp.ones(3)), np.full(3, 2.0))
