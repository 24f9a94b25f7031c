"""Convolutions beside one window after the other by NumPy: values, gradients, batches, and what their graphs are."""

from __future__ import annotations

import re

import numpy as np
import numpy.testing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp import lax, nn
from harp.errors import ArgumentError, ShapeError
from harp.trace.graph.node import Scatter
from tests.lax.windows import convolved, same

SMALL = st.integers(1, 3)


@st.composite
def convolutions(draw):
    """An array and a kernel in one to three dimensions, and the options of a convolution."""
    rank, count = draw(SMALL), draw(st.sampled_from([1, 1, 2, 3]))
    by_batch = draw(st.booleans())
    groups, batches = (1, count) if by_batch else (count, 1)
    n, c, o = draw(st.integers(0, 2)), draw(SMALL), draw(SMALL)

    def each(numbers):
        return [draw(numbers) for _ in range(rank)]

    pads = [(draw(st.integers(-1, 2)), draw(st.integers(-1, 2))) for _ in range(rank)]
    options = (each(SMALL), pads, each(st.integers(1, 2)), each(st.integers(1, 2)), None, groups, batches)
    shapes = (n * batches, c * groups, *each(st.integers(1, 6))), (o * count, c, *each(SMALL))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    return *(rng.normal(size=shape) for shape in shapes), options, rng


def expected(x, w, options):
    strides, pads, bases, dilations, _, groups, batches = options
    return convolved(x, w, strides, pads, bases, dilations, groups, batches)


@settings(max_examples=8, deadline=None)
@given(convolutions())
def test_any_convolution_and_its_derivatives_to_second_order(case):
    x, w, options, rng = case
    result = expected(x, w, options)
    weights = rng.normal(size=result.shape)
    directions = rng.normal(size=x.shape), rng.normal(size=w.shape)

    def loss(x, w):
        return hnp.sum(weights * hnp.sin(lax.conv_general_dilated(x, w, *options)))

    def reference(step):
        moved = (a + step * d for a, d in zip((x, w), directions, strict=True))
        return np.sum(weights * np.sin(expected(*moved, options)))

    def slope(x, w):
        return sum(hnp.sum(d * g) for d, g in zip(directions, harp.grad(loss, (0, 1))(x, w), strict=True))

    npt.assert_allclose(lax.conv_general_dilated(x, w, *options), result, rtol=1e-12, atol=1e-12)
    npt.assert_allclose(slope(x, w), (reference(1e-6) - reference(-1e-6)) / 2e-6, rtol=1e-5, atol=1e-6)
    _, tangent = harp.jvp(loss, (x, w), directions)
    npt.assert_allclose(tangent, slope(x, w), rtol=1e-9, atol=1e-10)
    twice = sum(hnp.sum(d * g) for d, g in zip(directions, harp.grad(slope, (0, 1))(x, w), strict=True))
    second = (reference(1e-4) - 2 * reference(0) + reference(-1e-4)) / 1e-8
    npt.assert_allclose(twice, second, rtol=1e-4, atol=1e-4)
    graph = harp.trace(harp.grad(slope, (0, 1)), harp.f64[x.shape], harp.f64[w.shape])
    assert not any(isinstance(node, Scatter) for node in graph.nodes())


PADDINGS = ["SAME", "same", "SAME_LOWER", "VALID", [(1, 2), (0, -1)]]
OPTIONS = [
    ((stride, 1), padding, None, (1, dilation)) for padding in PADDINGS for stride in (1, 2) for dilation in (1, 2)
]


@pytest.mark.parametrize("fixed", [False, True], ids=["any kernel", "fixed kernel"])
@pytest.mark.parametrize("options", OPTIONS[::4])
def test_one_program_for_all_sizes(options, fixed):
    """Of batch, channels and image, and of the kernel where it is not fixed; both derivatives in one program."""
    strides, padding, _, dilations = options

    def conv(x, w):
        w = hnp.reshape(w, (*w.shape[:2], 3, 2)) if fixed else w
        return lax.conv_general_dilated(x, w, *options)

    f = harp.jit(lambda x, w: (conv(x, w), *harp.grad(lambda x, w: hnp.sum(hnp.sin(conv(x, w))), (0, 1))(x, w)))
    rng = np.random.default_rng(0)
    for n, c, o, height, width in [
        (2, 3, 4, 9, 8),
        (1, 1, 1, 5, 6),
        (0, 2, 3, 5, 5),
        (3, 2, 2, 40, 21),
        (1, 2, 3, 7, 5),
    ]:
        kernel = (3, 2) if fixed or height == 9 else (min(height, 4), 1)
        x, w = rng.normal(size=(n, c, height, width)), rng.normal(size=(o, c, *kernel))
        pads = padding
        if isinstance(padding, str):
            lower = padding == "SAME_LOWER"
            pads = same((height, width), kernel, strides, dilations, lower) if padding[0] in "sS" else [(0, 0)] * 2
        value, by_x, by_w = f(x, w)
        npt.assert_allclose(value, convolved(x, w, strides, pads, None, dilations), rtol=1e-10, atol=1e-10)
        u, v = rng.normal(size=x.shape), rng.normal(size=w.shape)
        ends = [np.sum(np.sin(convolved(x + h * u, w + h * v, strides, pads, None, dilations))) for h in (1e-6, -1e-6)]
        found = np.sum(np.asarray(by_x) * u) + np.sum(np.asarray(by_w) * v)
        npt.assert_allclose(found, (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-5)
    assert f.compilations == 1


def test_images_that_are_smaller_than_the_window():
    f = harp.jit(lambda x, w: lax.conv(x, hnp.reshape(w, (1, 1, 3, 3)), (1, 1), "VALID"))
    for height, width in [(5, 4), (2, 4), (0, 0), (2, 2), (4, 1), (3, 3)]:
        found = f(np.ones((2, 1, height, width)), np.ones((1, 1, 3, 3)))
        assert found.shape == (2, 1, max(height - 2, 0), max(width - 2, 0))
    assert f.compilations == 1
    g = harp.jit(lambda x, w: lax.conv(x, w, (1,), "VALID"))
    assert g(np.ones((1, 1, 2)), np.ones((1, 1, 3))).shape == (1, 1, 0)
    assert g(np.ones((1, 1, 3)), np.ones((1, 1, 3))).shape == (1, 1, 1)


def test_axes_of_windows_along_no_axis():
    x, w = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(4, 3)
    npt.assert_array_equal(lax.conv_general_dilated(x, w, (), []), x @ w.T)


@pytest.mark.parametrize(
    "numbers",
    [
        ("NCHW", "OIHW", "NCHW"),
        ["NHWC", "HWIO", "NHWC"],
        ("HNCW", "WOHI", "CWHN"),
        lax.ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 1, 2, 3)),
        None,
    ],
)
def test_orders_of_axes(numbers):
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 5, 6)), rng.normal(size=(4, 3, 3, 2))
    found = lax.conv_dimension_numbers((0,) * 4, (0,) * 4, numbers)
    moved = [np.transpose(a, np.argsort(spec)) for a, spec in zip((x, w), found, strict=False)]
    result = lax.conv_general_dilated(*moved, (1, 2), "VALID", dimension_numbers=numbers)
    plain = convolved(x, w, (1, 2), [(0, 0)] * 2)
    npt.assert_allclose(result, np.transpose(plain, np.argsort(found.out_spec)), rtol=1e-12)


def test_strides_are_in_the_order_of_the_axes_of_the_kernel():
    """As in JAX, where the letters of the array and of the result may have another order."""
    x, w, numbers = np.arange(48.0).reshape(1, 6, 8, 1), np.ones((2, 3, 1, 1)), ("NHWC", "WHIO", "NHWC")
    result = lax.conv_general_dilated(x, w, (1, 2), ((1, 0), (0, 1)), None, (2, 1), numbers)
    plain = convolved(x.transpose(0, 3, 2, 1), w.transpose(3, 2, 0, 1), (1, 2), [(1, 0), (0, 1)], (1, 1), (2, 1))
    npt.assert_array_equal(result, plain.transpose(0, 3, 2, 1))
    assert lax.conv_dimension_numbers((1,) * 4, (1,) * 4, numbers).lhs_spec == (0, 3, 2, 1)


@pytest.mark.parametrize("dtype", ["int32", "int8", "uint16", "complex64", "complex128", "float16", "float32"])
def test_dtypes(dtype):
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-4, 5, size) for size in ((2, 3, 6), (4, 3, 2)))
    x, w = (a + 1j * a[::-1] if dtype.startswith("c") else a for a in (x, w))
    x, w = x.astype(dtype), w.astype(dtype)
    with np.errstate(over="ignore"):
        wanted = convolved(x, w, (1,), [(1, 1)]).astype(dtype)
    for f in (lax.conv_general_dilated, harp.jit(lambda x, w: lax.conv_general_dilated(x, w, (1,), [(1, 1)]))):
        found = f(x, w, (1,), [(1, 1)]) if f is lax.conv_general_dilated else f(x, w)
        assert found.dtype == dtype
        npt.assert_array_equal(found, wanted)
    wide = lax.conv_general_dilated(x, w, (1,), [(1, 1)], preferred_element_type="complex128")
    assert wide.dtype == "complex128"


def test_batches_of_either_operand():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 2, 4, 5)), rng.normal(size=(3, 4, 2, 3))[:, :, :, :3]

    def conv(a, b):
        return lax.conv_general_dilated(a, b, (1,), "SAME", feature_group_count=2)

    for axes in ((0, None), (None, 0), (0, 0), (1, 2)):
        left = x if axes[0] is not None else x[0]
        right = rng.normal(size=(3, 4, 2, 3)) if axes[1] is not None else w[0]
        moved = [np.moveaxis(a, 0, k) if k else a for a, k in zip((left, right), axes, strict=True)]
        found = harp.jit(harp.vmap(conv, axes))(*moved)
        for k in range(3):
            one = left[k] if axes[0] is not None else left, right[k] if axes[1] is not None else right
            npt.assert_allclose(found[k], convolved(*one, (1,), same((5,), (3,), (1,)), groups=2), rtol=1e-12)


def test_depthwise_by_a_size():
    """The number of groups is the number of channels, whatever that is."""
    f = harp.jit(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=x.shape[1]))
    rng = np.random.default_rng(0)
    for c in (3, 5, 1):
        x, w = rng.normal(size=(2, c, 4, 5)), rng.normal(size=(c, 1, 3, 3))
        npt.assert_allclose(f(x, w), convolved(x, w, (1, 1), [(1, 1)] * 2, groups=c), rtol=1e-10, atol=1e-12)


def cost_of(f, *shapes):
    return harp.jit(f).lower(*(np.ones(shape, np.float32) for shape in shapes)).cost()


@pytest.mark.parametrize("fixed", [False, True], ids=["any kernel", "fixed kernel"])
@pytest.mark.parametrize("stride, dilation", [(1, 1), (2, 1), (1, 2)])
def test_gradients_are_of_the_same_power(stride, dilation, fixed):
    """Of the size, for a row and a filter; and a small multiple of the convolution."""

    def conv(x, w):
        w = hnp.reshape(w, (3,)) if fixed else w
        return (
            lax.conv(x[None, None], w[None, None], (stride,), [(1, 1)])
            if dilation == 1
            else nn.conv(x[None], w[None, None], 1, 1, dilation)
        )

    shapes = (50,), (3,)
    forward = cost_of(conv, *shapes)
    for which in (0, 1):
        backward = cost_of(harp.grad(lambda x, w: hnp.sum(conv(x, w) ** 2), which), *shapes)
        assert backward.steps.degree == forward.steps.degree
        sizes = [1000, 3][: len(forward.names)]
        assert backward.at(*sizes).steps <= 8 * forward.at(*sizes).steps


def test_strides_multiply_no_zeros():
    """The gradient of as many windows takes as many multiplications, however far they are apart."""
    w = np.ones((30, 40))

    def multiplications(stride):
        conv = lambda x, w: lax.conv(x[None, None], w[:, None], (stride,), "VALID")
        f = harp.jit(harp.grad(lambda x, w: hnp.sum(hnp.sin(conv(x, w)))))
        return f.lower(np.ones(99 * stride + 40), w).cost().at(99 * stride + 40, *w.shape).operations

    assert multiplications(16) <= 1.5 * multiplications(4)


def test_the_gradient_keeps_no_array_of_windows():
    """Which would have nine times as many elements as the image."""
    f = harp.jit(harp.grad(lambda x, w: hnp.sum(hnp.sin(lax.conv(x, w, (1, 1), "SAME"))), (0, 1)))
    x, w = np.ones((2, 8, 30, 30), np.float32), np.ones((8, 8, 3, 3), np.float32)
    slots = f.lower(x, w).memory(2, 8, 30, 30, 8, 3, 3)
    assert slots.scratch <= 2.5 * x.nbytes, slots


# --- transposed


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("stride, kernel", [(1, 3), (2, 3), (2, 2), (3, 2), (2, 5)])
def test_transposed_is_the_gradient(padding, stride, kernel):
    """Of the convolution of an array of the size that the transposed one makes."""
    rng = np.random.default_rng(0)
    y, w = rng.normal(size=(2, 4, 5)), rng.normal(size=(3, 5, kernel))
    numbers = ("NWC", "IOW", "NWC")
    found = lax.conv_transpose(y, w, (stride,), padding, None, numbers, transpose_kernel=True)
    x = np.zeros((2, 3, found.shape[1]))

    def conv(x):
        return lax.conv_general_dilated(x, np.moveaxis(w, 1, 0), (stride,), padding)

    assert conv(x).shape == (2, 5, 4)
    _, pull = harp.vjp(conv, x)
    npt.assert_allclose(found, np.moveaxis(np.asarray(pull(np.moveaxis(y, 2, 1))[0]), 1, 2), rtol=1e-12, atol=1e-14)


def test_transposed_by_numbers():
    rng = np.random.default_rng(0)
    y, w = rng.normal(size=(2, 4, 5)), rng.normal(size=(3, 5, 6))
    for consistent, pads in ((False, [(2, 1)]), (True, [(0, 1)])):
        found = lax.conv_transpose(y, w, (2,), [(2, 1)], use_consistent_padding=consistent)
        plain = convolved(np.moveaxis(y, 2, 1), np.transpose(w, (2, 1, 0)), (1,), pads, (2,))
        npt.assert_allclose(found, np.moveaxis(plain, 1, 2), rtol=1e-12)


# --- errors


@pytest.mark.parametrize(
    "shapes, options, error, text",
    [
        (((1, 3, 5), (2, 4, 3)), ((1,), "SAME"), ShapeError, "axis 1 of the kernel"),
        (((1, 3, 5), (2, 3)), ((1,), "SAME"), ShapeError, "as many axes"),
        (((1, 3, 5), (2, 3, 3)), ((1, 1), "SAME"), ShapeError, "strides"),
        (((1, 3, 5), (2, 3, 3)), ((0,), "SAME"), ShapeError, "at least 1"),
        (((1, 3, 5), (2, 3, 3)), ((1,), "FULL"), ArgumentError, "'same'"),
        (((1, 3, 5), (2, 3, 3)), ((1,), [(1, 1, 1)]), ShapeError, "pair"),
        (((1, 3, 5), (2, 3, 3)), ((1,), "SAME", (2,)), ArgumentError, "conv_transpose"),
        (((1, 3, 5), (2, 3, 3)), ((1,), "SAME", None, None, ("NCH", "OIW", "NCH")), ArgumentError, "dimension_numbers"),
        (((1, 3, 5), (2, 3, 3)), ((1,), "SAME", None, None, ("NCH", "OIH")), ArgumentError, "three texts"),
        (((1, 3, 5), (2, 3, 3)), ((1,), "SAME", None, None, None, 2), ShapeError, "2 groups of one size"),
        (((2, 4, 5), (2, 2, 3)), ((1,), "SAME", None, None, None, 2, 2), ArgumentError, "not both"),
    ],
)
def test_errors(shapes, options, error, text):
    with pytest.raises(error, match=re.escape(text)):
        lax.conv_general_dilated(*map(np.ones, shapes), *options)


@pytest.mark.parametrize("base", [1, 2])
def test_of_bool_any_product_is_true(base):
    x, w = np.arange(60).reshape(2, 3, 10) % 7 == 0, np.arange(24).reshape(4, 3, 2) % 5 == 0
    f = lambda x, w: lax.conv_general_dilated(x, w, (1,), [(1, 0)], (base,))
    expected = convolved(x.astype(int), w.astype(int), (1,), [(1, 0)], (base,), (1,), 1, 1) > 0
    for found in (f(x, w), harp.jit(f)(x, w)):
        assert found.dtype == bool
        npt.assert_array_equal(found, expected)
