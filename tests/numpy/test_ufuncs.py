"""The methods of ufuncs beside NumPy's: of each function of two arguments that NumPy has as one."""

import inspect
import pickle

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, MutationError, ShapeError
from harp.numpy.ufuncs import _OF_AT

# NumPy warns where results say it all, and gives heaviside of integers as float64.
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def is_of_two(name):
    ufunc = getattr(np, name, None)
    return isinstance(ufunc, np.ufunc) and ufunc.nin == 2 and ufunc.nout == 1 and not ufunc.signature


NAMES = [name for name in dir(hnp) if is_of_two(name)]
METHODS = {
    "reduce": lambda u, x: u.reduce(x),
    "reduce, axes kept": lambda u, x: u.reduce(x, axis=1, keepdims=True),
    "reduce all": lambda u, x: u.reduce(x, axis=None),
    "reduce from a number": lambda u, x: u.reduce(x, axis=(0, 2), initial=2),
    "reduce a part": lambda u, x: u.reduce(x, axis=0, initial=1, where=x > 1),
    "reduce nothing": lambda u, x: u.reduce(x[:0]),
    "accumulate": lambda u, x: u.accumulate(x, axis=-1),
    "accumulate nothing": lambda u, x: u.accumulate(x[:0]),
    "outer": lambda u, x: u.outer(x, x[0, 0]),
    "reduceat": lambda u, x: u.reduceat(x, np.array([0, 2, 1, 3, 3]), 1),
}


def compared(name, dtype):
    """The methods that NumPy has for this dtype, with what they give."""
    x = np.abs((np.random.default_rng(0).normal(size=(3, 4, 2)) * 3).astype(dtype)) + 1
    for method, call in METHODS.items():
        try:
            yield method, call, x, np.asarray(call(getattr(np, name), x))
        except (TypeError, ValueError):  # it has not
            continue


@pytest.mark.parametrize("name", NAMES)
def test_methods_at_once(name):
    for dtype in ("f8", "i4"):
        for method, call, x, expected in compared(name, dtype):
            found = np.asarray(call(getattr(hnp, name), hnp.asarray(x)))
            assert found.shape == expected.shape, method
            assert found.dtype == expected.dtype or name == "heaviside", method
            np.testing.assert_allclose(found, expected, rtol=1e-12, err_msg=method)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["add", "hypot"])
def test_methods_in_programs_also_as_methods_of_numpy(name):
    for method, call, x, expected in compared(name, "f8"):
        function = harp.jit(lambda x, call=call: (call(getattr(hnp, name), x), call(getattr(np, name), x)))
        for found in function(x):
            np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-12, err_msg=method)


@pytest.mark.parametrize("name", _OF_AT)
def test_at_returns_the_new_array(name):
    x, i, y = np.arange(1.0, 7.0).reshape(3, 2), np.array([0, 2, 0]), np.array([2.0, 3.0])
    expected = x.copy()
    getattr(np, name).at(expected, i, y)
    found = harp.jit(lambda x: getattr(hnp, name).at(x, i, y, inplace=False))(x)
    np.testing.assert_allclose(np.asarray(found), expected)
    assert x[0, 0] == 1


def test_at_of_one_argument_and_what_it_cannot_do():
    np.testing.assert_array_equal(np.asarray(hnp.negative.at(np.ones(3), [0, 0])), [-1, 1, 1])
    with pytest.raises(ArgumentError, match=r"x\.at\[index\]\.set\(harp\.numpy\.hypot"):
        assert hnp.hypot.at(np.ones(3), [0], 2.0)
    with pytest.raises(ArgumentError, match="leave out inplace"):
        hnp.add.at(np.ones(3), [0], 2.0, inplace=True)
    with pytest.raises(MutationError, match=r"write x = add\.at\(x"):
        hnp.add.at(np.ones(3), [0], 2.0)
    with pytest.raises(ShapeError, match=r"subtract\.reduce over axis 0 of size 0 has no value"):
        hnp.subtract.reduce(np.ones(0))
    with pytest.raises(ArgumentError, match="needs an initial"):
        hnp.subtract.reduce(np.ones(2), where=np.ones(2, bool))
    with pytest.raises(ArgumentError, match="integers along one axis"):
        hnp.add.reduceat(np.ones(2), [[0]])


def test_functions_stay_functions():
    """They are pickled by name, compiled, batched and differentiated, with their own signature."""
    for name in NAMES:
        function = getattr(hnp, name)
        assert inspect.isfunction(function) and pickle.loads(pickle.dumps(function)) is function
    assert [*inspect.signature(hnp.add).parameters] == ["a", "b"] and harp.jit(hnp.add).__name__ == "add"
    x = np.array([[2.0, 3.0], [5.0, 7.0]])
    np.testing.assert_array_equal(np.asarray(harp.vmap(hnp.multiply.reduce)(x)), [6.0, 35.0])
    np.testing.assert_array_equal(np.asarray(harp.grad(hnp.subtract.reduce)(x[0])), [1.0, -1.0])
    back = harp.jit(harp.grad(lambda x: hnp.sum(hnp.multiply.reduceat(x, [1, 0]))))(x[0])
    np.testing.assert_array_equal(np.asarray(back), [3.0, 3.0])
