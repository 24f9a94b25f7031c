"""Complex numbers against NumPy: functions at all corners, reductions, products, in programs and at once."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.errors import DTypeError
from harp.test_util import check_grads

DTYPES = ["complex64", "complex128"]
NEAR = {"complex64": 2e-6, "complex128": 2e-14, "float32": 2e-6, "float64": 2e-14}
UNARY = (
    "exp expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh "
    "abs sign square reciprocal negative conj real imag angle isnan isinf isfinite"
)
rng = np.random.default_rng(0)


def numbers(shape, dtype="complex64"):
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)


def corners(dtype):
    """All pairs of what is special: zeros, infinities, NaN, numbers whose squares or powers overflow, denormal ones."""
    big = (1e30, 3e38, 1e-30, 1e-45) if dtype == "complex64" else (1e300, 1.7e308, 1e-300, 5e-324)
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, np.inf, -np.inf, np.nan, 90.0, -90.0, *big, *(-b for b in big)]
    return np.array([complex(a, b) for a, b in itertools.product(values, values)], dtype)


def parts(a):
    return (a.real, a.imag) if np.asarray(a).dtype.kind == "c" else (a,)


def near(found, expected, tolerance, absolute=0.0):
    """By parts: a large real part does not excuse an imaginary one."""
    found = np.asarray(found)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    for a, b in zip(parts(found), parts(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=absolute)


def both(function, *args):
    """The same at once and compiled."""
    return function(*map(hnp.asarray, args)), harp.jit(function)(*args)


@pytest.fixture(scope="module", params=DTYPES)
def compiled(request):
    """All unary functions, in one program."""
    dtype = np.dtype(request.param)
    return dtype, harp.jit(lambda z: {name: getattr(hnp, name)(z) for name in UNARY.split()})


def test_functions(compiled):
    dtype, function = compiled
    for size in (0, 1, 5, 3000):
        z = numbers(size, dtype) * rng.choice([1e-3, 1.0, 10.0], size=size).astype(dtype)
        wide = z.astype(np.clongdouble)
        for name, found in function(z).items():
            expected = np.asarray(getattr(np, name)(wide))
            real = np.finfo(dtype).dtype
            assert found.dtype == {"c": dtype, "f": real, "b": np.bool_}[expected.dtype.kind]
            tolerance = (40 if name in ("log1p", "expm1") else 8) * np.finfo(dtype).eps
            for result in (found, getattr(hnp, name)(z)):
                error = np.abs(np.asarray(result).astype("c16") - expected)
                assert (error <= tolerance * np.abs(expected.astype("c16"))).all(), (name, size)


# What NumPy computes by a formula of fewer digits, or where it has an infinity or NaN against the standard.
OWN = {"log1p", "expm1", "reciprocal", "sign", "square"}


def test_corners(compiled):
    """At infinities, NaN, zeros, and where squares overflow: by parts, with NumPy's zeros."""
    dtype, function = compiled
    z = corners(dtype.name)
    with np.errstate(all="ignore"):
        for name, found in function(z).items():
            if name in OWN:
                continue
            expected = np.asarray(getattr(np, name)(z))
            found = np.asarray(found)
            if name[-3:] != "log":  # C99 leaves signs open there
                kept = np.isfinite(z.real) | np.isfinite(z.imag)
                found, expected = found[kept], expected[kept]
            for a, b in zip(parts(found), parts(expected), strict=True):
                np.testing.assert_allclose(a, b, rtol=NEAR[dtype.name] * 20, atol=np.finfo(dtype).tiny, err_msg=name)
            if name in ("log", "sqrt", "conj", "real", "imag", "negative"):
                for a, b in zip(parts(np.asarray(found)), parts(expected), strict=True):
                    known = ~np.isnan(b)
                    np.testing.assert_array_equal(np.signbit(a)[known], np.signbit(b)[known], err_msg=name)


SIGNED = "exp expm1 log sqrt reciprocal sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh"


@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_corners_have_the_signs_of_eager_ones(dtype):
    """Also those that C99 leaves open; docs/dtypes.md has a table of what is not NumPy's."""
    values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    z = np.array([complex(a, b) for a, b in itertools.product(values, values)], dtype)
    known = ~(np.isnan(z.imag) & np.isinf(z.real))
    names = SIGNED.split()
    compiled = harp.jit(lambda z: [getattr(hnp, name)(z) for name in names])(z)
    for name, found in zip(names, compiled, strict=True):
        where = known if name in ("asin", "atan") else slice(None)
        eager = np.asarray(getattr(hnp, name)(hnp.asarray(z)))[where]
        for a, b in zip(parts(np.asarray(found)[where]), parts(eager), strict=True):
            np.testing.assert_allclose(a, b, rtol=NEAR[dtype] * 20, atol=1e-6, err_msg=name)
            np.testing.assert_array_equal(np.signbit(a)[~np.isnan(b)], np.signbit(b)[~np.isnan(b)], err_msg=name)
    with np.errstate(all="ignore"):
        expected = np.reciprocal(z)
    found = np.asarray(harp.jit(hnp.reciprocal)(z))
    for a, b in zip(parts(found[z != 0]), parts(expected[z != 0]), strict=True):
        np.testing.assert_allclose(a, b, rtol=NEAR[dtype])
        np.testing.assert_array_equal(np.signbit(a)[~np.isnan(b)], np.signbit(b)[~np.isnan(b)])
    assert np.isinf(found[z == 0].real).all() and np.isnan(found[z == 0].imag).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_corners_of_our_own(dtype):
    inf, nan = np.inf, np.nan
    table = {
        "expm1": [(complex(inf, 0), complex(inf, 0)), (complex(-inf, inf), -1 + 0j), (1e-20j, 1e-20j)],
        "log1p": [(1e-20 + 0j, 1e-20 + 0j), (-1 + 0j, complex(-inf, 0)), (complex(1e-20, 1e-18), 1e-20 + 1e-18j)],
        "sign": [(0j, 0j), (complex(inf, 2), 1 + 0j), (complex(2, -inf), -1j), (1.5e38 - 2e38j, 0.6 - 0.8j)],
    }
    for name, cases in table.items():
        z, expected = (np.array(column, "complex128") for column in zip(*cases, strict=True))
        for found in both(getattr(hnp, name), z.astype(dtype)):
            np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=name)
    unknown = hnp.sign(np.array([complex(inf, inf), complex(nan, 1)], dtype))
    assert np.isnan(np.asarray(unknown)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic(dtype):
    function = lambda z, w: (z + w, z - w, z * w, z / w, z == w, z != w, z**2, z**-1, z**w, hnp.where(z == w, w, z))
    a, b = numbers((7, 1), dtype), numbers((1, 300), dtype)
    b[0, :7] = a[:, 0]
    for operand in (b, b[:, ::-1], b[:, ::3], b[:, :1], b[:, :0]):
        expected = function(a.astype("c16"), operand.astype("c16"))
        for result in both(function, a, operand):
            for found, wanted in zip(result, expected, strict=True):
                kind = bool if wanted.dtype.kind == "b" else dtype
                np.testing.assert_allclose(found, wanted.astype(kind), rtol=NEAR[dtype], atol=NEAR[dtype])


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_and_quotients_at_infinities_are_numpys(dtype):
    values = [0.0, -0.0, 1.0, 0.5, -2.5, np.inf, -np.inf, np.nan]
    z = np.array([complex(a, b) for a, b in itertools.product(values, values)], dtype)
    with np.errstate(all="ignore"):
        for function in (lambda a, b: a * b, lambda a, b: a / b, lambda a, b: a == b):
            expected = function(z[:, None], z[None])
            for found in both(lambda a, b, f=function: f(a[:, None], b[None]), z, z):
                np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype == "complex64" else 1e-13, atol=1e-44)


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_element_has_the_same_bits_wherever_it_stands(dtype):
    """In vectors and in the rest of a loop: gcc fuses complex products in vectors, which must not show."""
    real, imag = hnp.real, hnp.imag
    function = harp.jit(
        lambda z, w: (
            *(z * w, z / w, hnp.conj(z) * 2.5 - w, hnp.exp(z) * w + z, hnp.sum(z[None] * w, 0), z * z * z),
            *(real(z) * imag(w), (real(z) * imag(w) - real(w)) + 1j * (real(z) * imag(w) + real(w))),
        )
    )
    z, w = numbers(101, dtype), numbers(101, dtype)
    whole = [np.asarray(a) for a in function(z, w)]
    for k in range(0, 101, 7):
        for found, wanted in zip(function(z[k:], w[k:]), whole, strict=True):
            np.testing.assert_array_equal(np.asarray(found), wanted[k:])


REDUCTIONS = {
    "sum": lambda xp, z: xp.sum(z),
    "sum of rows": lambda xp, z: xp.sum(z, axis=1),
    "sum of columns": lambda xp, z: xp.sum(z, axis=0),
    "product": lambda xp, z: xp.prod(z, axis=1),
    "product of columns": lambda xp, z: xp.prod(z, axis=0),
    "product of all": lambda xp, z: xp.prod(z),
    "mean": lambda xp, z: xp.mean(z, axis=0),
    "variance": lambda xp, z: xp.var(z, axis=1),
    "standard deviation": lambda xp, z: xp.std(z),
    "cumulative sum": lambda xp, z: xp.cumsum(z, axis=1),
    "cumulative sum of columns": lambda xp, z: xp.cumsum(z, axis=0),
    "cumulative product": lambda xp, z: xp.cumprod(z, axis=1),
    "any": lambda xp, z: xp.any(z, axis=0),
    "all": lambda xp, z: xp.all(z),
    "sum of products": lambda xp, z: xp.sum(z * z[::-1]),
    "square": lambda xp, z: z @ z.T,
    "row": lambda xp, z: z @ xp.sum(z, axis=0),
    "outer": lambda xp, z: xp.einsum("ij,kj->ijk", z, z),
    "trace": lambda xp, z: xp.einsum("ij,ij->", z, z),
    "views": lambda xp, z: xp.pad(z, 1)[::-1, 1:].T.reshape(-1),
}
COMPILED = {dtype: harp.jit(lambda z: {name: f(hnp, z) for name, f in REDUCTIONS.items()}) for dtype in DTYPES}


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.sampled_from(DTYPES), st.tuples(*[st.sampled_from([0, 1, 2, 5, 33, 70])] * 2), st.booleans())
def test_reductions_and_products(dtype, shape, backwards):
    z = (numbers(shape, dtype) / 2)[:: -1 if backwards else 1]
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        expected = {name: np.asarray(f(np, z.astype("c16"))) for name, f in REDUCTIONS.items()}
        for name, found in COMPILED[dtype](z).items():
            wanted = expected[name]
            eager = REDUCTIONS[name](hnp, hnp.asarray(z))
            assert found.dtype == eager.dtype == np.asarray(REDUCTIONS[name](np, z)).dtype, name
            for result in (found, eager):
                tolerance = 5e-5 if dtype == "complex64" else 1e-12
                atol = tolerance * np.abs(wanted.astype("c16")).max(initial=1.0)
                np.testing.assert_allclose(result, wanted, rtol=tolerance, atol=atol, err_msg=name)
    assert COMPILED[dtype].compilations <= 4  # by the axes that are 1


def test_long_sums():
    z, w = numbers(100_003), numbers(100_003)
    for found in both(lambda z, w: hnp.sum(z * w), z, w):
        np.testing.assert_allclose(found, np.sum(z.astype("c16") * w), rtol=1e-4)


def test_numbers_are_weak():
    x = np.ones(2, np.float32)
    assert (hnp.asarray(x) * 1j).dtype == np.complex64 and (hnp.asarray(x).astype("f8") + 1j).dtype == np.complex128
    assert (hnp.asarray(np.ones(2, np.int32)) * 1j).dtype == np.complex64
    assert (hnp.ones(2, "complex64") * 2.0 + 1).dtype == np.complex64
    assert (1j * hnp.asarray(x)[0]).dtype == np.complex64 and hnp.asarray(1j).dtype == np.complex128
    assert complex(hnp.asarray(2 + 1j)) == 2 + 1j and hnp.asarray(1j).item() == 1j
    assert harp.jit(lambda x: x * (x.shape[0] * 1j))(x).dtype == np.complex64
    f = harp.jit(lambda z, s: z * s)
    assert f(x.astype("c8"), 2j).dtype == np.complex64
    np.testing.assert_array_equal(np.asarray(hnp.full(2, 1j)), np.full(2, 1j))


def test_creation_and_parts():
    z = numbers((3, 4))
    a = hnp.asarray(z)
    for found, wanted in [(a.real, z.real), (a.imag, z.imag), (hnp.conj(a), z.conj()), (hnp.imag(z.real), 0 * z.real)]:
        np.testing.assert_array_equal(np.asarray(found), wanted)
    np.testing.assert_array_equal(np.asarray(hnp.asarray([[1, 2j], [3.0, 4]])), np.array([[1, 2j], [3, 4]]))
    np.testing.assert_array_equal(np.asarray(hnp.eye(3, dtype="complex64")), np.eye(3, dtype="c8"))
    np.testing.assert_allclose(np.asarray(hnp.linspace(0, 1 + 2j, 5)), np.linspace(0, 1 + 2j, 5))
    np.testing.assert_allclose(np.asarray(hnp.vdot(z, z)), np.vdot(z, z), rtol=1e-5)
    assert hnp.iscomplexobj(z) and not hnp.iscomplexobj(z.real)
    np.testing.assert_allclose(np.asarray(hnp.angle(np.array([-1.0, 2.0]))), [np.pi, 0])


def test_by_parts():
    z = np.array([1.5 + 2.5j, -0.4 - 3.7j, complex(np.nan, np.inf), complex(-np.inf, 2)], "complex64")
    np.testing.assert_array_equal(np.asarray(hnp.round(z)), np.round(z))
    np.testing.assert_allclose(np.asarray(hnp.round(z[:2], 1)), np.round(z[:2], 1), rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(hnp.nan_to_num(z, nan=7.0)), np.nan_to_num(z, nan=7.0))
    assert bool(hnp.allclose(z[:2], z[:2] * (1 + 1e-6j))) and not bool(hnp.isclose(1j, 1.1j))
    for dtype in ("float16", "bfloat16"):
        x = hnp.nan_to_num(hnp.asarray([np.nan, np.inf, -np.inf, 1.0], dtype=dtype))
        largest = hnp.finfo(dtype).max
        assert x.dtype == dtype and [float(v) for v in x] == [0.0, largest, -largest, 1.0]


ORDERED = {
    "lt": lambda z: z < z,
    "lt ": lambda z: hnp.greater_equal(z, z),
    "max   ": lambda z: hnp.softmax(z),
    "floordiv": lambda z: z // z,
    "mod": lambda z: z % z,
    "floor": lambda z: hnp.floor(z),
    "lt  ": lambda z: hnp.relu(z),
}


def test_powers_of_zero_vanish_where_the_exponent_has_a_positive_real_part():
    exponents = np.array([1 + 1j, 0.5 - 2j, 3, 0, 1j, -1, -1 - 1j, complex(np.nan, 0)])
    found = np.asarray(harp.jit(lambda a, b: a**b)(np.zeros(8, complex), exponents))
    np.testing.assert_array_equal(found[:4], [0, 0, 0, 1])
    assert np.isnan(found[4:].real).all() and np.isnan(found[4:].imag).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_greater_and_the_lesser_of_two_are_numpys(dtype):
    values = [0.0, -1.0, 1.0, np.inf, -np.inf, np.nan]
    a = np.array([complex(x, y) for x, y in itertools.product(values, values)], dtype)
    b, low, high, half, one = a[:, None], *(np.array(v, dtype) for v in (-0.5 + 1j, 1 + 0.5j, 0.5, 1 - 1j))
    for name in ("maximum", "minimum", "fmax", "fmin"):
        f, of_numpy = getattr(hnp, name), getattr(np, name)
        compiled = harp.jit(lambda x, y, f=f: (f(x, y), f(x, 0.5), f(1 - 1j, x)))
        for g in (compiled, harp.vmap(compiled, (None, 0), 0)):
            for found, expected in zip(g(a, b), (of_numpy(a, b), of_numpy(a, half), of_numpy(one, a)), strict=True):
                np.testing.assert_array_equal(np.asarray(found), np.broadcast_to(expected, found.shape), strict=True)
        assert f(a[:0], a[:1]).shape == compiled(a[:0], a[:1])[0].shape == (0,)
        np.testing.assert_array_equal(np.asarray(f(a, b)), of_numpy(a, b), strict=True)
        np.testing.assert_array_equal(np.asarray(f(a.real, b)), of_numpy(a.real, b), strict=True)
    for f in (hnp.clip, harp.jit(hnp.clip)):
        np.testing.assert_array_equal(np.asarray(f(a, low, high)), np.clip(a, low, high), strict=True)


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_derivatives_of_the_greater_of_two(name):
    """They are of the one that is chosen; equal ones share them, and one beside NaN has all in fmax and fmin."""
    f, a, b = getattr(hnp, name), np.array([1 + 2j, 1 + 1j, 3 - 1j]), np.array([1 + 1j, 1 + 2j, 2 + 5j])
    apart = np.array([0.5, -0.5, 0])  # the order of equal real parts jumps
    check_grads(lambda a, b: f(a, b) * (2 - 1j), (a + apart, b), 2)
    slopes = harp.jit(harp.grad(lambda a, b: hnp.sum(hnp.real(f(a, b) * (2 - 1j))), argnums=(0, 1)))
    chosen = getattr(np, name)(a, b) == a
    for found, mask in zip(slopes(a, b), (chosen, ~chosen), strict=True):
        np.testing.assert_array_equal(np.asarray(found), np.where(mask, 2 - 1j, 0))
    for found in slopes(a, a):
        np.testing.assert_array_equal(np.asarray(found), np.full(3, 1 - 0.5j))
    if name.startswith("f"):
        ours, others = slopes(a, np.full(3, complex(0, np.nan)))
        np.testing.assert_array_equal(np.asarray(ours), np.full(3, 2 - 1j))
        np.testing.assert_array_equal(np.asarray(others), np.zeros(3))


@pytest.mark.parametrize("name", ORDERED)
def test_there_is_no_order(name):
    for call in (ORDERED[name], harp.jit(ORDERED[name])):
        with pytest.raises(DTypeError, match=f"{name.strip()}|remainder|floor_divide|relu|is not defined") as caught:
            call(hnp.asarray(numbers(3)))
        assert "complex" in str(caught.value) and __file__ in str(caught.value)


def test_an_imaginary_part_is_not_lost():
    z = numbers(3)
    for lose in (
        lambda: hnp.asarray(z).astype("float32"),
        lambda: hnp.sum(z, dtype="float64"),
        lambda: hnp.full(3, 1j, "float32"),
        lambda: hnp.asarray(1j, dtype="int32"),
        lambda: hnp.pad(np.ones(2), 1, constant_values=1j),
        lambda: hnp.atan2(z, z) if hasattr(hnp, "atan2") else hnp.asarray(z).astype("int8"),
        lambda: float(hnp.asarray(1j)),
        lambda: int(hnp.asarray(1j)),
    ):
        with pytest.raises(DTypeError):
            lose()
    np.testing.assert_array_equal(np.asarray(hnp.asarray(np.array([0, 1j, 0.5])).astype(bool)), [False, True, True])


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_start_from_their_first_factor(dtype):
    """1 times an infinity has a NaN: the product of one factor is that factor, in every lane and chunk."""
    compiled = harp.jit(lambda z: (hnp.prod(z, axis=0), hnp.prod(z, axis=1), hnp.cumprod(z, axis=0)))
    for size in (2, 3, 40):
        z = np.full((1, size), np.inf, dtype)
        rows = z.T
        for f in (compiled, lambda z: (hnp.prod(z, 0), hnp.prod(z, 1), hnp.cumprod(z, 0))):
            np.testing.assert_array_equal(f(z)[0], z[0])
            np.testing.assert_array_equal(f(z)[2], z)
            np.testing.assert_array_equal(f(rows)[1], z[0])
            np.testing.assert_array_equal(np.asarray(f(rows)[2])[0], z[0, :1])


def test_membership_and_sinc_of_complex_numbers():
    z = np.array([1 + 2j, 1 - 2j, 0, np.nan, 3])
    for find in (hnp.isin, harp.jit(hnp.isin)):
        np.testing.assert_array_equal(find(z, np.array([3, 1 + 2j, np.nan])), [True, False, False, False, True])
        np.testing.assert_array_equal(find(z[:, None], z[:0]), np.zeros((5, 1), bool))
    w = np.array([0.3 + 0.1j, 2 - 1j, 0, 1e-9j, -0.2, 0.31831 + 0j])
    for f in (hnp.sinc, harp.jit(hnp.sinc)):
        np.testing.assert_allclose(f(w), np.sinc(w), rtol=1e-13, atol=1e-15)
