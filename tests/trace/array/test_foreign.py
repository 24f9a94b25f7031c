"""Arrays of other libraries as arguments."""

import re

import numpy as np
import numpy.testing as npt
import pytest
import scipy.sparse

import harp
import harp.numpy as hnp
from harp.errors import ArgumentError, HarpError, UnsupportedDTypeError
from harp.trace.sizes.size import Size


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
    for read in (torch.from_dlpack, torch.utils.dlpack.from_dlpack):
        read(result)[0] = 9  # torch writes to memory that is marked as read-only
    assert np.all(np.asarray(result) == 2)
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


class Failing:
    def __array__(self, dtype=None, copy=None):
        return 1 / 0


def claiming(kind: type) -> object:
    """An object that says that it is of another class."""
    return type("Proxy", (), {"__class__": property(lambda self: kind)})()


USES = {
    "asarray": hnp.asarray,
    "an operand": lambda value: hnp.sin(value),
    "the second operand": lambda value: hnp.asarray(1.0) + hnp.multiply(2.0, value),
    "an argument": harp.jit(lambda x: x + 1),
    "an argument of grad": harp.grad(lambda x: x * 2),
    "a list": lambda value: hnp.asarray([1.0, value]),
}


@pytest.mark.parametrize("use", USES)
def test_errors_of_a_conversion_are_named(use):
    with pytest.raises(HarpError, match=r"division by zero|not an array or a number") as caught:
        USES[use](Failing())
    assert isinstance(caught.value, ArgumentError)


@pytest.mark.parametrize("kind", [np.ndarray, np.float64, float, int, bool, harp.Array, Size])
@pytest.mark.parametrize("use", [*USES, "a result", "an index", "an axis", "a shape"])
def test_objects_that_claim_to_be_of_another_class(use, kind):
    uses = USES | {
        "a result": lambda value: harp.jit(lambda x: value)(1.0),
        "an index": lambda value: hnp.arange(3.0)[value],
        "an axis": lambda value: hnp.sum(hnp.ones((2, 3)), axis=value),
        "a shape": hnp.zeros,
    }
    with pytest.raises(HarpError):
        uses[use](claiming(kind))


def test_a_proxy_that_converts_itself_is_an_array():
    class Proxy:
        __class__ = property(lambda self: np.ndarray)

        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0)

    for f in (hnp.asarray, lambda x: x * 1, harp.jit(lambda x: x * 1)):
        npt.assert_array_equal(f(hnp.asarray(Proxy())), np.arange(3.0))
    npt.assert_array_equal(harp.jit(lambda x: x + 1)(Proxy()), [1, 2, 3])
    npt.assert_array_equal(hnp.add(Proxy(), Proxy()), [0, 2, 4])


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy has no strings of any length")
def test_arrays_of_strings_are_refused():
    texts = np.array(["a", "b"], dtype=np.dtypes.StringDType())
    uses = [hnp.asarray, hnp.sin, harp.jit(lambda x: x), lambda x: hnp.zeros(3, x.dtype), lambda x: hnp.ones(2) + x]
    for use in uses:
        with pytest.raises(UnsupportedDTypeError, match=r"dtype StringDType\(\) is not supported"):
            use(texts)


def test_names_that_are_no_text_are_no_dtypes():
    for name in ("\udcff", "f8\udcff"):
        with pytest.raises(UnsupportedDTypeError, match="is not a dtype"):
            hnp.zeros(3, dtype=name)


def test_sparse_matrices_are_told_how_to_become_arrays():
    with pytest.raises(ArgumentError, match=r"make an array of it with \.toarray\(\)"):
        hnp.sum(scipy.sparse.eye(3))
