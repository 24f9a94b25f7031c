"""Each function of `harp.lax` beside NumPy, and beside `jax.lax` where JAX is installed: values, gradients, batches."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import lax
from tests.lax.cases import CASES, MORE

ALL = {**CASES, **MORE}
FUNCTIONS_OF_FUNCTIONS = {
    *("associative_scan", "cond", "fori_loop", "map", "scan", "switch", "while_loop"),
    *("custom_linear_solve", "custom_root"),  # tests/transforms/test_implicit.py
}
# By dimension numbers (tests/lax/test_gathering.py).
BY_NUMBERS = {"gather", "scatter", *(f"scatter_{how}" for how in ("add", "apply", "max", "min", "mul", "sub"))}
# Of examples of a batch (tests/transforms/batching/test_named_axes.py).
OF_BATCHES = {
    *("all_gather", "all_to_all", "axis_index", "axis_size", "pmax", "pmean", "pmin", "ppermute", "psum"),
    "psum_scatter",
}
CLASSES = {"ConvDimensionNumbers", "Precision", "RoundingMethod"}
CLASSES |= {"GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers"}
RNG = np.random.default_rng(1)

# No derivative at all, one at a jump, or none on purpose.
FLAT = {"bitcast_convert_type", "nextafter", "reduce_precision", "round", "round to even", "stop_gradient"}


def leaves(tree) -> list[np.ndarray]:
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [np.asarray(tree)]


def close(found, expected, name, rtol=1e-12):
    found, expected = leaves(found), leaves(expected)
    assert len(found) == len(expected), name
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape, name
        npt.assert_allclose(a, b, rtol=rtol, atol=1e-12, err_msg=name)


def tolerance(name: str) -> float:
    return 1e-8 if name in ("digamma", "erf_inv") else 1e-12  # their references are differences, and an inverse


@pytest.fixture(scope="module")
def jax():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jax = pytest.importorskip("jax")
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_platforms", "cpu")
    return jax


def test_every_function_has_a_case():
    others = FUNCTIONS_OF_FUNCTIONS | OF_BATCHES | BY_NUMBERS | CLASSES
    assert {*CASES} == {*lax.__all__} - others


def test_at_once():
    for name, case in ALL.items():
        found, expected = case.call(lax, *map(hnp.asarray, case.args)), case.expected(*case.args)
        close(found, expected, name, tolerance(name))
        for a, b in zip(leaves(found), leaves(expected), strict=True):
            assert a.dtype == b.dtype or name == "population_count", name


@pytest.mark.parametrize("first", sorted({name[0] for name in ALL}))
def test_in_a_program(first):
    cases = {name: case for name, case in ALL.items() if name.startswith(first)}
    compiled = harp.jit(lambda args: {name: case.call(lax, *args[name]) for name, case in cases.items()})
    found = compiled({name: case.args for name, case in cases.items()})
    for name, case in cases.items():
        close(found[name], case.expected(*case.args), name, tolerance(name))


def test_in_a_batch():
    """Of three examples: the case's own, and its arguments in another order."""
    for name, case in ALL.items():
        batch = [np.stack([a, a[::-1] if a.ndim else a, a]) for a in case.args]
        found = harp.vmap(lambda *args, case=case: case.call(lax, *args))(*batch)
        examples = [leaves(case.expected(*(a[k] for a in batch))) for k in range(3)]
        close(found, [np.stack(parts) for parts in zip(*examples, strict=True)], name, tolerance(name))


def loss(namespace, call, weights):
    def weighted(*args):
        found = call(*args)
        parts = found if isinstance(found, (tuple, list)) else [found]
        return sum(namespace.sum(w * part) for w, part in zip(weights, parts, strict=True))

    return weighted


def differentiable():
    for name, case in ALL.items():
        results = leaves(case.expected(*case.args))
        if name not in FLAT and all(r.dtype == np.float64 for r in results):
            numbers = tuple(k for k, a in enumerate(case.args) if a.dtype == np.float64)
            if numbers:
                yield name, case, numbers, [RNG.normal(size=r.shape) for r in results]


@pytest.mark.slow
def test_gradients_against_differences():
    for name, case, numbers, weights in differentiable():
        gradients = harp.grad(loss(hnp, lambda *a, case=case: case.call(lax, *a), weights), numbers)(*case.args)
        total = loss(np, case.expected, weights)
        for k, gradient in zip(numbers, gradients, strict=True):
            direction = RNG.normal(size=case.args[k].shape)
            ends = [
                total(*(a + h * direction if i == k else a for i, a in enumerate(case.args))) for h in (1e-6, -1e-6)
            ]
            found = np.sum(np.asarray(gradient) * direction)
            npt.assert_allclose(found, (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-5, err_msg=f"{name} {k}")


@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_values_are_jaxs(jax):
    for name, case in ALL.items():
        found = case.call(lax, *map(hnp.asarray, case.args))
        close(found, case.call(jax.lax, *map(jax.numpy.asarray, case.args)), name, tolerance(name))


def test_gradients_are_jaxs(jax):
    for name, case, numbers, weights in differentiable():
        found = harp.grad(loss(hnp, lambda *a, case=case: case.call(lax, *a), weights), numbers)(*case.args)
        theirs = jax.grad(loss(jax.numpy, lambda *a, case=case: case.call(jax.lax, *a), weights), numbers)
        close(found, theirs(*map(jax.numpy.asarray, case.args)), name, 1e-9)


# JAX's keyword arguments for compilers and devices.
OTHERS = {"accuracy", "out_dtype", "out_sharding", "sharding", "allow_negative_indices", "_split_transpose"}
# Functions of harp.numpy under another name keep the names of their arguments, which are given by place.
BY_PLACE = {"x", "y", "a", "b", "arrays", "tree"}


def test_arguments_are_jaxs(jax):
    for name in lax.__all__:
        if name in CLASSES:
            continue
        others = OTHERS | ({"operand"} if name in ("cond", "switch") else set())
        theirs = [n for n in inspect.signature(getattr(jax.lax, name)).parameters if n not in others]
        mine = [*inspect.signature(getattr(lax, name)).parameters][: len(theirs)]
        differ = [(a, b) for a, b in zip(mine, theirs, strict=True) if a != b]
        assert all(a in BY_PLACE for a, _ in differ), (name, differ)


# -- sizes ----------------------------------------------------------------------------------------------------------


def windowed(x):
    low = max(2 * (-(-len(x) // 2) - 1) + 3 - len(x), 0) // 2
    return np.concatenate([np.zeros(low), x, np.zeros(3)])


PROGRAMS = {
    "slices of a computed start": (
        lambda x, i: lax.dynamic_slice_in_dim(x, i, x.shape[0] // 2),
        lambda x, i: x[(b := max(0, min(i, len(x) - len(x) // 2))) : b + len(x) // 2],
    ),
    "updates at a computed start": (
        lambda x, i: lax.dynamic_update_slice(x, x[: x.shape[0] // 2] * 2, (i,)),
        lambda x, i: np.concatenate([x[: (b := max(0, min(i, len(x) - (k := len(x) // 2))))], x[:k] * 2, x[b + k :]]),
    ),
    "updates at a known start": (
        lambda x, i: lax.dynamic_update_slice(x, x[: x.shape[0] // 2] * 2, (1,)),
        lambda x, i: np.concatenate([x[: (b := min(1, len(x) - (k := len(x) // 2)))], x[:k] * 2, x[b + k :]]),
    ),
    "pads": (
        lambda x, i: lax.pad(x, 0.5, [(x.shape[0], 1, 2)]),
        lambda x, i: np.concatenate(
            [np.full(len(x), 0.5), np.stack([x, x * 0 + 0.5, x * 0 + 0.5], 1).ravel()[: max(3 * len(x) - 2, 0)], [0.5]]
        ),
    ),
    "strides": (lambda x, i: lax.slice(x, (0,), x.shape, (3,)), lambda x, i: x[::3]),
    "running sums of exponentials": (lambda x, i: lax.cumlogsumexp(x), lambda x, i: np.log(np.exp(x).cumsum())),
    "windows": (
        lambda x, i: lax.reduce_window(x, 0.0, lax.add, (3,), (2,), "SAME"),
        lambda x, i: np.array([np.sum(windowed(x)[2 * j : 2 * j + 3]) for j in range(-(-len(x) // 2))]),
    ),
    "iota": (lambda x, i: x * lax.iota("float64", x.shape[0]), lambda x, i: x * np.arange(len(x))),
    "bits": (lambda x, i: lax.reduce_or(lax.convert_element_type(x * 8, int), (0,)), None),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program_for_all_sizes(name):
    call, expected = PROGRAMS[name]
    compiled = harp.jit(call)
    slope = harp.jit(harp.grad(lambda x, i: hnp.sum(call(x, i) ** 2)))
    for size in (5, 2, 0, 1, 12):
        x, i = RNG.normal(size=size), np.asarray(size // 2)
        reference = expected or (lambda x, i: np.bitwise_or.reduce((x * 8).astype(int)))
        close(compiled(x, i), reference(x, int(i)), name)
        if expected is None:
            continue
        direction = RNG.normal(size=size)
        ends = [np.sum(reference(x + h * direction, int(i)) ** 2) for h in (1e-6, -1e-6)]
        found = np.sum(np.asarray(slope(x, i)) * direction)
        npt.assert_allclose(found, (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-6)
    assert compiled.compilations == 1
    assert slope.compilations <= 1


def test_a_ring_buffer_in_a_loop():
    """What such functions are for: a window, and an update, at the place of each iteration."""

    @harp.jit
    def run(x):
        def step(i, buffer):
            window = lax.dynamic_slice(buffer, (i,), (3,))
            return lax.dynamic_update_slice(buffer, window[::-1] + 1, (i,))

        return lax.fori_loop(0, x.shape[0], step, x)

    for size in (3, 8):
        x = RNG.normal(size=size)
        expected = x.copy()
        for i in range(size):
            b = min(i, size - 3)
            expected[b : b + 3] = expected[b : b + 3][::-1] + 1
        npt.assert_allclose(run(x), expected, rtol=1e-12)
    assert run.compilations == 1


def test_the_gradient_of_clamp_at_its_ends():
    """As jax.grad: at an end it goes to neither."""
    x = np.array([-1.0, 0.0, 0.5, 1.0, 2.0, np.nan])
    low, high = np.zeros(6), np.ones(6)
    by_low, by_x, by_high = harp.grad(lambda *args: hnp.sum(lax.clamp(*args)), (0, 1, 2))(low, x, high)
    npt.assert_array_equal(by_low, [1, 0, 0, 0, 0, 0])
    npt.assert_array_equal(by_x, [0, 0, 1, 0, 0, 0])
    npt.assert_array_equal(by_high, [0, 0, 0, 0, 1, 0])
    npt.assert_array_equal(lax.clamp(low, x, high), [0, 0, 0.5, 1, 1, np.nan])
    npt.assert_array_equal(lax.clamp(3.0, x, 2.0), np.where(np.isnan(x), x, 2.0))  # max has the last word


def test_precision_changes_nothing():
    x, y = RNG.normal(size=(2, 3, 3))
    for precision in (lax.Precision.DEFAULT, lax.Precision.HIGH, lax.Precision.HIGHEST, "highest", None):
        npt.assert_allclose(lax.dot(x, y, precision=precision), x @ y, rtol=1e-12)


X = np.ones((2, 3))
ERRORS = [
    (lambda: lax.slice(np.ones(3), (1,), (4,)), harp.errors.IndexOutOfRangeError, "from 1 to 4 .* axis 0 of size 3"),
    (lambda: lax.slice(np.ones(3), (2,), (1,)), harp.errors.IndexOutOfRangeError, "from 2 to 1"),
    (lambda: lax.slice(np.ones(3), (0, 0), (1,)), harp.errors.ShapeError, "start_indices has 2 entries for 1 axis"),
    (lambda: lax.dynamic_slice(np.ones(3), (0,), (4,)), harp.errors.ShapeError, "4 elements is larger than axis 0"),
    (lambda: lax.dynamic_slice(np.ones((3, 3)), (0,), (2, 2)), harp.errors.ShapeError, "1 entry for 2 axes"),
    (lambda: lax.dynamic_slice(np.ones(3), (0.5,), (2,)), harp.errors.DTypeError, "must be integers"),
    (lambda: lax.dynamic_update_slice(np.ones(3), np.ones((1, 1)), (0,)), harp.errors.ShapeError, "2 entries for 1"),
    (lambda: lax.dynamic_update_slice(np.ones(3, int), np.ones(2), (0,)), harp.errors.DTypeError, "update has dtype"),
    (lambda: lax.pad(np.ones(3), 0.0, []), harp.errors.ShapeError, "0 triples .* for 1 axis"),
    (lambda: lax.pad(np.ones(3), 0.0, [(0, 0)]), harp.errors.ShapeError, "takes \\(low, high, interior\\)"),
    (lambda: lax.pad(np.ones(3), 0.0, [(0, 0, -1)]), harp.errors.ShapeError, "interior of axis 0 must be at least 0"),
    (lambda: lax.pad(np.ones(3), 0.0, [(-4, 0, 0)]), harp.errors.ShapeError, "negative"),
    (lambda: lax.pad(np.ones(3), np.ones(2), [(0, 0, 0)]), harp.errors.ArgumentError, "one number"),
    (lambda: lax.broadcast_in_dim(np.ones(3), (3, 2), (0, 1)), harp.errors.AxisError, "each of 1 axis"),
    (lambda: lax.collapse(np.ones((2, 2)), 1, 1), harp.errors.AxisError, "has none"),
    (lambda: lax.split(np.ones(3), (1, 1)), harp.errors.ShapeError, "3 is not 2"),
    (lambda: lax.select_n(np.ones(2), 1.0, 2.0), harp.errors.DTypeError, "not by float64"),
    (lambda: lax.select_n(True, 1.0, 2.0, 3.0), harp.errors.ArgumentError, "3 cases by bool"),
    (lambda: lax.select_n(1), harp.errors.ArgumentError, "no cases"),
    (lambda: lax.integer_pow(2.0, 0.5), harp.errors.ArgumentError, "y must be an integer"),
    (lambda: lax.clz(1.0), harp.errors.DTypeError, "clz is for integers"),
    (lambda: lax.reduce_precision(1, 5, 10), harp.errors.DTypeError, "is for floats"),
    (lambda: lax.reduce_precision(1.0, 0, 10), harp.errors.ArgumentError, "at least 1 and 0"),
    (lambda: lax.reduce((1.0, 2.0), 0.0, max, ()), harp.errors.ArgumentError, "an initial value for each operand"),
    (lambda: lax.reduce_window(X, 0.0, lax.add, (2,)), harp.errors.ShapeError, "window_dimensions has 1 size"),
    (lambda: lax.reduce_window(X, 0.0, lax.add, (2, 2), (0, 1)), harp.errors.ShapeError, "strides"),
    (
        lambda: lax.reduce_window(X, 0.0, lax.add, (2, 2), None, "full"),
        harp.errors.ArgumentError,
        "'same', 'same_lower'",
    ),
    (lambda: lax.reduce_window(X, 0.0, lax.add, (2, 2), None, [(0, 0)]), harp.errors.ShapeError, "for each of 2 axes"),
    (lambda: lax.population_count(1.0), harp.errors.DTypeError, "for integers"),
    (lambda: lax.reduce_or(np.ones(2), (0,)), harp.errors.DTypeError, "for integers and bool"),
    (lambda: lax.sort((np.ones(2),), num_keys=2), harp.errors.ArgumentError, "1 array by 2 keys"),
    (lambda: lax.dot(np.ones((2, 2, 2)), np.ones(2)), harp.errors.ShapeError, "vectors and matrices"),
    (lambda: lax.batch_matmul(np.ones((2, 2)), np.ones((1, 2, 2))), harp.errors.ShapeError, "2 and 3 axes"),
    (lambda: lax.dot_general(np.ones(2), np.ones(2), (((0,), ()), ((), ()))), harp.errors.AxisError, "1 contracting"),
    (lambda: lax.dot_general(np.ones(2), np.ones(2), (((0,), (0,)), ((0,), (0,)))), harp.errors.AxisError, "twice"),
]


@pytest.mark.parametrize(("call", "kind", "text"), ERRORS)
def test_errors_say_what_to_do(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
