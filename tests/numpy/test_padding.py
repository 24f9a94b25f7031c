"""Pads of all modes against NumPy: shapes, widths, dtypes, options; gradients; one program for all sizes; errors."""

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import errors

STATISTICS = ("maximum", "mean", "median", "minimum")
MIRRORS = ("reflect", "symmetric")
MODES = {
    "constant": [{}, {"constant_values": (1, 3)}, {"constant_values": ((1, 2), (3, 4))}],
    "edge": [{}],
    "linear_ramp": [{}, {"end_values": 5}, {"end_values": (1.5, 7)}, {"end_values": np.array([[1, 2], [30, 4]])}],
    **{mode: [{}, {"stat_length": 2}, {"stat_length": ((1, 3), (2, 9))}] for mode in STATISTICS},
    **{mode: [{}, {"reflect_type": "even"}, {"reflect_type": "odd"}] for mode in MIRRORS},
    "wrap": [{}],
}
CASES = [(mode, options) for mode, rows in MODES.items() for options in rows]
DTYPES = ["?", "i1", "u1", "i2", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16"]
ORDERED = ("median",)  # needs an order, which complex numbers do not have in harp
WIDTHS = [0, 1, (2, 0), ((2, 1), (0, 2)), 5]
TOLERANCE = {"f2": 2e-3, "f4": 2e-6, "c8": 2e-6, "f8": 1e-13, "c16": 1e-13}


def numbers(shape, dtype="f8"):
    rng, kind = np.random.default_rng(sum(shape)), np.dtype(dtype).kind
    x = rng.normal(size=shape) * 20
    if kind == "b":
        return x > 0
    if kind == "c":
        return (x + 20j * rng.normal(size=shape)).astype(dtype)
    return (np.abs(x) if kind == "u" else x).astype(dtype)


def shortest(mode, width):
    """The fewest elements of an axis that harp pads by this width: mirrors and copies go once."""
    return {"reflect": 1, "symmetric": 0, "wrap": 0}.get(mode, 1 - np.max(width)) + np.max(width)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("mode", "options"), CASES)
def test_as_in_numpy(mode, options, dtype):
    if mode in ORDERED and np.dtype(dtype).kind == "c":
        with pytest.raises(errors.DTypeError, match="real"):
            hnp.pad(numbers((2, 3), dtype), 1, mode=mode, **options)
        return
    for shape in ((1, 1), (2, 3), (6, 4), (1, 7)):
        x = numbers(shape, dtype)
        layouts = (x, np.asfortranarray(x), x[::-1, ::-1])
        for k, width in enumerate(WIDTHS):
            if min(shape) < shortest(mode, width):
                continue
            given = layouts[(k + len(mode)) % 3]
            expected = np.pad(given, width, mode=mode, **options)
            found = hnp.pad(given, width, mode=mode, **options)
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            limit = TOLERANCE.get(dtype, 0)
            np.testing.assert_allclose(found, expected, rtol=limit, atol=20 * limit)


@pytest.mark.parametrize("dtype", ["f8", "i4"])
@pytest.mark.parametrize(("mode", "options"), CASES)
def test_one_program_for_all_sizes(mode, options, dtype):
    width = ((2, 1), (0, 1))
    program = harp.jit(lambda x: hnp.pad(x, width, mode=mode, **options))
    for shape in ((6, 4), (3, 3), (5, 2), (2, 5), (1, 1), (1, 8), (3, 2), (40, 70)):
        if min(shape) >= shortest(mode, width):
            x = numbers(shape, dtype)
            np.testing.assert_allclose(program(x), np.pad(x, width, mode=mode, **options), rtol=1e-13, atol=1e-13)
    assert program.compilations == 1


@pytest.mark.parametrize(("mode", "options"), CASES)
def test_gradients_are_slopes(mode, options):
    width, step, rng = ((1, 2), (2, 0)), 1e-6, np.random.default_rng(1)

    def loss(np, x):
        padded = np.pad(x, width, mode=mode, **options)
        return np.sum(padded * padded)

    slopes = harp.jit(harp.grad(lambda x: loss(hnp, x)))
    for shape in ((3, 3), (4, 6), (1, 1), (2, 1)):
        if min(shape) >= shortest(mode, width):
            x, along = numbers(shape), rng.normal(size=shape)
            slope = (loss(np, x + step * along) - loss(np, x - step * along)) / (2 * step)
            np.testing.assert_allclose(np.sum(slopes(x) * along), slope, rtol=1e-6, atol=1e-4)


def test_the_maximum_shares_its_gradient_among_ties():
    slope = harp.grad(lambda x: hnp.sum(hnp.pad(x, 1, mode="maximum")))
    np.testing.assert_array_equal(slope(np.array([1.0, 3.0, 3.0])), [1.0, 2.0, 2.0])


def test_integers_are_rounded_as_in_numpy():
    for length in range(1, 40):
        for value in (-7, 13, 100):
            x = np.array([value, 0, value + 1, 2 * length])  # some steps are 0, and then all elements are rounded so
            for mode in ("linear_ramp", "mean", "median"):
                for given in (x, x[:, None] + np.array([0, length]))[: 2 if length < 9 else 1]:
                    np.testing.assert_array_equal(hnp.pad(given, length, mode=mode), np.pad(given, length, mode=mode))


def test_nan_and_infinity():
    x = np.array([np.nan, 1.0, np.inf, -np.inf, 2.0])
    for mode in ("linear_ramp", *STATISTICS):
        for given in (x[1:], x[3:], x[:2], x[1:3], x):
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(hnp.pad(given, 2, mode=mode), np.pad(given, 2, mode=mode))


def test_widths_and_lengths_may_be_sizes():
    for mode, options in (("mean", "stat_length"), ("maximum", "stat_length"), ("linear_ramp", "")):
        program = harp.jit(
            lambda x, y, mode=mode, options=options: hnp.pad(
                x, (y.shape[0], 1), mode=mode, **({options: y.shape[0] + 1} if options else {})
            )
        )
        for n, m in ((3, 0), (2, 2), (1, 4), (8, 3)):
            x, given = numbers((n,)), {options: m + 1} if options else {}
            np.testing.assert_allclose(program(x, np.ones(m)), np.pad(x, (m, 1), mode=mode, **given), rtol=1e-12)
        assert program.compilations == 1


def test_an_empty_axis_grows_by_constants_alone():
    x = np.ones((2, 0))
    assert hnp.pad(x, 1, mode="empty").shape == np.pad(x, 1, mode="empty").shape == (4, 2)
    for mode in MODES.keys() - {"constant"}:
        assert hnp.pad(x, ((1, 1), (0, 0)), mode=mode).shape == (4, 0) if mode != "reflect" else True
        with pytest.raises(errors.ShapeError, match="pad of axis 1 of size 0"):
            hnp.pad(x, 1, mode=mode)
    program = harp.jit(lambda x, y: hnp.pad(x, (y.shape[0], 0), mode="edge"))
    assert program(np.ones(0), np.ones(0)).shape == (0,)
    with pytest.raises(errors.ShapeError, match="no element to start from; pad an empty axis with mode='constant'"):
        program(np.ones(0), np.ones(1))


def test_empty_keeps_what_is_there():
    np.testing.assert_array_equal(hnp.pad(np.arange(3), (1, 2), mode="empty")[1:4], np.arange(3))


ONES = np.ones(3)
ERRORS = {
    "mode": (lambda: hnp.pad(ONES, 1, mode="other"), errors.ArgumentError, "'linear_ramp', .* not 'other'"),
    "function": (lambda: hnp.pad(ONES, 1, mode=np.mean), errors.ArgumentError, "pad has the modes"),
    "unknown option": (lambda: hnp.pad(ONES, 1, mode="wrap", fill=3), errors.ArgumentError, "no option, not 'fill'"),
    "option of another mode": (
        lambda: hnp.pad(ONES, 1, mode="mean", end_values=3),
        errors.ArgumentError,
        "takes the option stat_length, not 'end_values'; end_values belongs to 'linear_ramp'",
    ),
    "width": (lambda: hnp.pad(ONES[None], ((0, 0), (-1, 0))), errors.ShapeError, "pad_width of axis 1 .* not -1"),
    "no integer": (lambda: hnp.pad(ONES, 1.5, mode="mean"), errors.ArgumentError, "pad_width of axis 0 .* not 1.5"),
    "no length": (lambda: hnp.pad(ONES, 1, mode="mean", stat_length=0), errors.ShapeError, "stat_length .* at least 1"),
    "pairs": (
        lambda: hnp.pad(ONES, 1, mode="mean", stat_length=((1, 2), (1, 2))),
        errors.ShapeError,
        "stat_length of pad has 2 pairs for 1 axis",
    ),
    "triple": (lambda: hnp.pad(ONES, (1, 2, 3)), errors.ShapeError, r"pad_width of pad is \(before, after\), not 3"),
    "complex end": (
        lambda: hnp.pad(ONES, 1, mode="linear_ramp", end_values=1j),
        errors.DTypeError,
        "end_values has 1j, but x has dtype float64",
    ),
    "end not held": (
        lambda: hnp.pad(np.ones(3, "u1"), 1, mode="linear_ramp", end_values=300),
        errors.IntegerRangeError,
        "end_values of pad is 300.0, which uint8 does not hold",
    ),
    "no number": (
        lambda: hnp.pad(ONES, 1, mode="linear_ramp", end_values="a"),
        errors.ArgumentError,
        "end_values must be numbers, not str",
    ),
    "reflection": (
        lambda: hnp.pad(ONES, 1, mode="reflect", reflect_type="both"),
        errors.ArgumentError,
        "'even' or 'odd', not 'both'",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    call, kind, text = ERRORS[name]
    with pytest.raises(kind, match=text):
        call()
