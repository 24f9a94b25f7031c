"""Bodies of loops, branches and batches that are not computed find no elements where there are none: as NumPy's."""

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import IndexOutOfRangeError, ShapeError

SAME_SLICE = lambda x, i: harp.lax.dynamic_update_slice(x, hnp.ones(1), (i,))
UPDATES = {
    "set": lambda x, i: x.at[0].set(2.0),
    "add at the end": lambda x, i: x.at[-1].add(2.0),
    "clip": lambda x, i: x.at[i].add(2.0, mode="clip"),
    "array": lambda x, i: x.at[np.array([0, 0])].set(3.0),
    "dynamic_update_slice": SAME_SLICE,
}
READS = {
    "first": lambda x, i: x[0],
    "last": lambda x, i: hnp.sin(x[-1]) * x[None, -1, ...].sum(),
    "array": lambda x, i: x[np.array([0])].sum(),
    "dynamic_slice": lambda x, i: harp.lax.dynamic_slice(x, (i,), (1,))[0],
    "dynamic_slice at a number": lambda x, i: harp.lax.dynamic_slice(x, (0,), (1,))[0],
    "slice": lambda x, i: harp.lax.slice(x, (0,), (1,))[0],
    "max": lambda x, i: hnp.max(x),
    "argmin": lambda x, i: hnp.argmin(x) * 1.0,
    "a batch": lambda x, i: hnp.sum(harp.vmap(lambda k: x[0] + x[k])(hnp.arange(x.shape[0]))),
}


def in_while(x, step, start):
    after = lambda s: (s[0] + 1, step(s[1], s[0]))
    return harp.while_loop(lambda s: s[0] < x.shape[0], after, (0, start))[1]


LOOPS = {
    "fori_loop": lambda x, step, start: harp.fori_loop(0, x.shape[0], lambda i, c: step(c, i), start),
    "nested": lambda x, step, start: harp.fori_loop(
        0, x.shape[0], lambda i, c: harp.fori_loop(0, 1, lambda _, c: step(c, i), c), start
    ),
    "scan": lambda x, step, start: harp.scan(lambda c, i: (step(c, i), None), start, hnp.arange(x.shape[0]))[0],
}
BY_DATA = {
    "while_loop": in_while,
    "a bound": lambda x, step, start: harp.fori_loop(0, hnp.sum(x > -1), lambda i, c: step(c, i), start),
}


def of_sizes(function, sizes=(0, 3, 1)):
    """The results for these sizes, of one program for those with elements and one without, and computed at once."""
    program = harp.jit(function)
    for size in sizes:
        x = np.arange(1.0, size + 1)
        found = np.asarray(program(x))
        np.testing.assert_allclose(found, np.asarray(function(hnp.asarray(x))), rtol=1e-15)
        yield x, found
    assert program.compilations <= 2


@pytest.mark.parametrize("name", READS)
def test_reads(name):
    read = READS[name]
    loops = LOOPS if name in ("max", "argmin") else LOOPS | BY_DATA
    for loop in loops.values() if name == "first" else [loops["fori_loop"], list(loops.values())[-1]]:
        for x, found in of_sizes(lambda x, loop=loop: loop(x, lambda c, k: c + read(x, k), 0.0)):
            total = sum(float(read(hnp.asarray(x), i)) for i in range(len(x)))
            np.testing.assert_allclose(found, total, rtol=1e-14)


@pytest.mark.parametrize("name", UPDATES)
def test_updates(name):
    update = UPDATES[name]
    for loop in (LOOPS["fori_loop"], BY_DATA["while_loop"]):
        for x, found in of_sizes(lambda x, loop=loop: loop(x, update, x)):
            now = hnp.asarray(x)
            for i in range(len(x)):
                now = update(now, i)
            np.testing.assert_allclose(found, np.asarray(now))


def test_gradients_of_what_is_not_computed():
    function = harp.jit(harp.grad(lambda x: harp.fori_loop(0, x.shape[0], lambda i, c: c * x[0] + x[-1], 1.0)))
    assert np.asarray(function(np.zeros(0))).shape == (0,)
    np.testing.assert_allclose(np.asarray(function(np.array([3.0]))), [2.0])


@pytest.mark.parametrize(
    "test", [lambda x: x.shape[0] > 0, lambda x: hnp.any(x > 0), lambda x: hnp.sum(x) > 0], ids=["size", "any", "sum"]
)
def test_branches(test):
    for x, found in of_sizes(lambda x: harp.cond(test(x), lambda: x[0] + x[-1], lambda: -1.0)):
        np.testing.assert_array_equal(found, x[0] + x[-1] if len(x) else -1.0)
    for x, found in of_sizes(lambda x: harp.cond(x.shape[0] > 0, lambda: hnp.max(x), lambda: -1.0)):
        np.testing.assert_array_equal(found, x.max() if len(x) else -1.0)


def test_what_is_computed_is_held_to_the_axis():
    """Also where data decides, if there are elements, or if a number is asked for that nothing has."""
    x = np.ones(3)
    with pytest.raises(IndexOutOfRangeError, match="index 5"):
        harp.jit(lambda x: harp.fori_loop(0, x.shape[0], lambda i, c: c + x[5], 0.0))(x)
    with pytest.raises(IndexOutOfRangeError, match="index 5"):
        harp.jit(lambda x: harp.cond(hnp.any(x > 2), lambda: x[5], lambda: 0.0))(x)
    with pytest.raises(IndexOutOfRangeError, match="index 0"):
        harp.jit(lambda x: harp.fori_loop(0, 2, lambda i, c: c + x[0], 0.0))(x[:0])
    with pytest.raises(ShapeError, match="has no value"):
        harp.jit(lambda x: harp.cond(hnp.any(x > 2), lambda: hnp.max(x), lambda: 0.0))(x[:0])
    found = harp.jit(lambda x, taken: harp.cond(taken, lambda: x[0], lambda: 0.0))(x[:0], True)
    assert np.isnan(np.asarray(found))
