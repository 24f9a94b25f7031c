"""Arrays of other libraries as arguments."""

import re

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, UnsupportedDTypeError


class WithArray:
    """As pandas' objects are: with NumPy's protocol."""

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        if isinstance(self.value, Exception):
            raise self.value
        return np.asarray(self.value, dtype)


class WithDlpack:
    """As other libraries' are: memory alone."""

    def __init__(self, value):
        self.value = value

    def __dlpack__(self, **options):
        return self.value.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.value.__dlpack_device__()


@pytest.mark.parametrize("kind", [WithArray, WithDlpack])
def test_arguments(kind):
    f = harp.jit(lambda x, tree: x * 2 + tree["y"])
    for n in (2, 5):
        x = np.arange(float(n))
        npt.assert_array_equal(f(kind(x), {"y": kind(x + 1)}), 3 * x + 1)
    assert f.compilations == 1
    npt.assert_array_equal(hnp.sin(kind(x)), np.sin(x))
    npt.assert_array_equal(hnp.asarray(kind(x)), x)
    npt.assert_array_equal(harp.jit(lambda y: y + hnp.exp(kind(x)))(x), x + np.exp(x))
    npt.assert_allclose(harp.grad(lambda x: hnp.sum(x * x))(kind(x)), 2 * x)


def test_what_has_no_numbers_says_why():
    f = harp.jit(lambda x: x)
    with pytest.raises(ArgumentError, match=r"argument x is a .* WithArray, of which NumPy gets no array \(on a GPU\)"):
        f(WithArray(RuntimeError("on a GPU.\nmore")))
    with pytest.raises(UnsupportedDTypeError, match="argument x: dtype object"):
        f(WithArray(np.array([1, "a"], dtype=object)))
    with pytest.raises(ArgumentError, match="argument x is an object; a traced function"):
        f(object())
    with pytest.raises(ArgumentError, match="argument x is a type"):
        f(WithArray)


def test_torch():
    torch = pytest.importorskip("torch")
    f = harp.jit(lambda x: x * 2)
    result = f(torch.ones(2, 3).T)
    assert result.dtype == np.float32 and result.shape == (3, 2)
    for tensor in (torch.ones(3, requires_grad=True), torch.ones(3, device="meta")):
        with pytest.raises(ArgumentError, match=r"torch Tensor, .*pass tensor\.detach\(\)\.cpu\(\)"):
            f(tensor)
    with pytest.raises(ArgumentError, match=r"tensor\.float\(\) of a dtype"):
        f(torch.ones(3, dtype=torch.bfloat16))


@pytest.mark.filterwarnings("ignore")
def test_jax():
    jax = pytest.importorskip("jax")
    f = harp.jit(lambda x: x * 2)
    assert f(jax.numpy.ones(3)).dtype == np.float32
    with pytest.raises(ArgumentError, match="outside of functions that JAX traces"):
        jax.jit(lambda x: f(x))(jax.numpy.ones(3))


def test_pandas():
    pandas = pytest.importorskip("pandas")
    f = harp.jit(lambda x: x * 2)
    npt.assert_array_equal(f(pandas.Series([1.0, 2.0])), [2, 4])
    npt.assert_array_equal(f(pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})), [[2, 1], [4, 3]])
    with pytest.raises(UnsupportedDTypeError, match="argument x"):
        f(pandas.DataFrame({"a": [1], "b": ["text"]}))


def test_operators_take_arrays_that_have_dlpack():
    x = np.arange(3.0)
    y = WithDlpack(x + 1)
    f = harp.jit(lambda x: (x * y, y - x, x < y))
    for found in (f(x), (hnp.asarray(x) * y, y - hnp.asarray(x), hnp.asarray(x) < y)):
        for result, expected in zip(found, (x * (x + 1), np.ones(3), np.ones(3, bool)), strict=True):
            npt.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("sin(): argument 'input' (position 1) must be Tensor, not Array", "PyTorch .* use the function of harp.numpy"),
        ("Argument of type <class 'harp.trace.array.array.Array'> is not a valid JAX type", "JAX .* harp.lax"),
    ],
)
def test_functions_of_other_libraries(text, note):
    def theirs(x):
        raise TypeError(text)

    with pytest.raises(TypeError) as caught:
        harp.jit(lambda x: harp.vmap(theirs)(x))(np.ones(3))
    (found,) = caught.value.__notes__
    assert re.match(note, found)
