"""Kernels of convolutions are copied to the order of their sum, once, where they do not lie so."""

from __future__ import annotations

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp import lax
from harp.lower.graph.window_factors import window_factors
from harp.trace.eval.interpret import interpret
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import Contiguous, fresh_input
from harp.trace.index.polynomial import as_index
from harp.trace.scalar.dtypes import f64
from tests.lax.windows import convolved

FORWARD = lambda x, w, g: lax.conv(x, w, (1, 1), [(1, 1), (1, 1)])
BY_INPUT = lambda x, w, g: harp.vjp(lambda x: FORWARD(x, w, None), x)[1](g)[0]
STRIDED_BY_INPUT = lambda x, w, g: harp.vjp(lambda x: lax.conv(x, w, (2, 2), [(1, 1), (1, 1)]), x)[1](g)[0]
BY_WEIGHTS = lambda x, w, g: harp.vjp(lambda w: FORWARD(x, w, None), w)[1](g)[0]
TRANSPOSED = lambda x, w, g: lax.conv_general_dilated(x, w, (1, 1), [(1, 1), (1, 1)], (2, 2))


def copies(function, *arguments):
    return str(harp.jit(function).lower(*arguments).graph).count("contiguous")


def numbers(*shape):
    return np.random.default_rng(0).integers(-9, 9, shape).astype(float)


@pytest.mark.parametrize(
    ("function", "count"),
    # Of strides, sums by phase are kept before they are interleaved.
    [
        pytest.param(FORWARD, 0, id="forward"),
        pytest.param(BY_INPUT, 1, id="by input"),
        pytest.param(STRIDED_BY_INPUT, 2, id="by input, strides"),
        pytest.param(BY_WEIGHTS, 0, id="by weights"),
        pytest.param(TRANSPOSED, 2, id="transposed"),
    ],
)
def test_one_factor_is_copied_where_it_lies_otherwise(function, count):
    x, w = numbers(2, 3, 6, 5), numbers(4, 3, 3, 3)
    g = numbers(2, 4, 3, 3) if function is STRIDED_BY_INPUT else numbers(2, 4, 6, 5)
    assert copies(function, x, w, g) == count


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (7, 8)], ids=str)
def test_by_input(stride, size):
    """Integers are exact, so the sums are those of one window after the other."""
    x, w = numbers(2, 3, *size), numbers(4, 3, 3, 2)
    sums = lambda x: lax.conv(x, w, (stride, stride), [(1, 1), (1, 2)])
    g = numbers(*sums(x).shape)
    by_input = harp.jit(lambda x, w, g: harp.vjp(lambda x: lax.conv(x, w, (stride,) * 2, [(1, 1), (1, 2)]), x)[1](g)[0])
    direction = numbers(*x.shape)
    along = convolved(direction, w, (stride, stride), [(1, 1), (1, 2)], (1, 1), (1, 1), 1, 1)
    npt.assert_array_equal(np.sum(np.asarray(by_input(x, w, g)) * direction), np.sum(along * g))


@pytest.mark.parametrize("base", [(2, 2), (3, 1), (1, 2), (4, 3)], ids=str)
@pytest.mark.parametrize("size", [(1, 1), (0, 2), (4, 5)], ids=str)
def test_transposed(base, size):
    x, w = numbers(2, 3, *size), numbers(4, 3, 3, 2)
    pads = [(1, 0), (-1, 3)]
    found = harp.jit(lambda x, w: lax.conv_general_dilated(x, w, (1, 1), pads, base))(x, w)
    npt.assert_array_equal(found, convolved(x, w, (1, 1), pads, base, (1, 1), 1, 1))


def test_in_a_loop_the_copy_is_made_once():
    x, w = numbers(1, 3, 6, 5), numbers(3, 3, 3, 3)
    step = lambda x, w: harp.vjp(lambda x: lax.conv(x, w, (1, 1), [(1, 1), (1, 1)]), x)[1](x)[0] / 64

    def run(x, w):
        return harp.fori_loop(0, 3, lambda t, x: step(x, w), x)

    text = str(harp.jit(run).lower(x, w).graph)
    assert text.count("contiguous") == 1 and text.index("contiguous") < text.index("iterate")
    expected = x
    for _ in range(3):
        expected = np.asarray(step(expected, w))
    npt.assert_allclose(harp.jit(run)(x, w), expected, rtol=1e-13)


def test_the_pass_leaves_what_lies_in_order():
    """A copy that is made once is not copied again."""
    x, w = (fresh_input(name, tuple(map(as_index, shape)), f64) for name, shape in (("x", (3, 6)), ("w", (4, 3))))
    traced = harp.jit(lambda x, w: hnp.einsum("cx,oc->ox", x, w)).lower(np.ones((3, 6)), np.ones((4, 3))).graph
    assert "contiguous" not in str(traced)
    graph = Graph((x, w), (Contiguous(w),))
    again = window_factors(graph)
    assert again.outputs == graph.outputs
    npt.assert_array_equal(interpret(again, [np.ones((3, 6)), numbers(4, 3)], {})[0], numbers(4, 3))


LAST = ("NHWC", "HWIO", "NHWC")


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(1, 1), (2, 3), (7, 8)], ids=str)
def test_channels_last(size, stride):
    """Values and both gradients with channels last are those with channels first, moved: integers are exact."""
    pads = [(1, 1), (0, 2)]
    sums = lambda x, w: lax.conv_general_dilated(x, w, (stride, stride), pads, None, None, LAST)
    x, w = numbers(2, 3, *size), numbers(4, 3, 3, 2)
    y = convolved(x, w, (stride, stride), pads, (1, 1), (1, 1), 1, 1)
    args = np.moveaxis(x, 1, -1), np.moveaxis(w, (0, 1), (-1, -2))
    g = numbers(*y.shape)
    value, pullback = harp.jit(lambda x, w, g: (sums(x, w), harp.vjp(sums, x, w)[1](g)))(*args, np.moveaxis(g, 1, -1))
    npt.assert_array_equal(np.moveaxis(np.asarray(value), -1, 1), y)
    for gradient, direction, (dx, dw) in zip(
        pullback, args, ((numbers(*x.shape), w), (x, numbers(*w.shape))), strict=True
    ):
        along = convolved(dx, dw, (stride, stride), pads, (1, 1), (1, 1), 1, 1)
        moved = np.moveaxis(dx, 1, -1) if direction is args[0] else np.moveaxis(dw, (0, 1), (-1, -2))
        npt.assert_array_equal(np.sum(np.asarray(gradient) * moved), np.sum(along * g))


@pytest.mark.parametrize("by", [None, 0], ids=["forward", "by input"])
def test_channels_last_are_products(by):
    """Rows of windows are copied with their padding, and the library multiplies them."""
    sums = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), [(1, 1), (1, 1)], None, None, LAST)
    f = sums if by is None else lambda x, w: harp.vjp(lambda x: sums(x, w), x)[1](sums(x, w))[0]
    loops = str(harp.jit(f).lower(numbers(2, 6, 5, 3), numbers(3, 3, 3, 4)).loops)
    assert "_rows" in loops and "call gemm" in loops


@pytest.mark.parametrize("groups", [8, 4])
def test_groups_given_as_a_number(groups):
    """The gradient by the array divides no position but a feature's, and a sum has as many terms as a window."""
    sums = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", None, None, LAST, groups)
    x, w = numbers(2, 5, 6, 8), numbers(3, 3, 8 // groups, 8)
    by_input = harp.jit(lambda x, w, g: harp.vjp(lambda x: sums(x, w), x)[1](g)[0])
    g = numbers(2, 5, 6, 8)
    first = [np.moveaxis(a, -1, 1) for a in (x, g)]
    kernel = np.moveaxis(w, (-1, -2), (0, 1))
    along = convolved(first[0], kernel, (1, 1), [(1, 1), (1, 1)], (1, 1), (1, 1), groups, 1)
    npt.assert_array_equal(np.sum(np.asarray(by_input(x, w, g)) * x), np.sum(along * first[1]))
    graph = str(by_input.lower(x, w, g).graph).replace("+ 1)//2)", "").replace("(i3//s3)", "")
    assert "//" not in graph and "sum over [4, 5] of" in graph


@pytest.mark.parametrize("stride", [2, 3])
def test_a_transposed_convolution_backwards_copies_its_kernel_once(stride):
    """And not for each place of the array: where windows end is asked of the cotangent."""
    sums = lambda x, w: lax.conv_general_dilated(x, w, (1,), [(2, 2)], (stride,))
    x, w, g = numbers(2, 3, 7), numbers(4, 3, 3), numbers(2, 4, 6 * stride + 3)
    by_input = harp.jit(lambda x, w, g: harp.vjp(lambda x: sums(x, w), x)[1](g)[0])
    back = convolved(g, np.flip(w, 2).swapaxes(0, 1), (stride,), [(0, 0)], (1,), (1,), 1, 1)
    npt.assert_array_equal(by_input(x, w, g), back)
    copies = [line for line in str(by_input.lower(x, w, g).graph).splitlines() if "contiguous" in line]
    assert f"[s1, s3, {stride}, ((s4 + {stride - 1})//{stride})] contiguous" in copies[0]


def test_a_transposed_convolution_by_its_kernel_is_a_product():
    """Its phases are put together after the sum: read by quotients, no loop of it was one of a product."""
    sums = lambda x, w: lax.conv_general_dilated(x, w, (1, 1), [(2, 2), (2, 2)], (2, 2))
    x, w, g = numbers(2, 3, 4, 3), numbers(4, 3, 3, 3), numbers(2, 4, 9, 7)
    by_kernel = harp.jit(lambda x, w, g: harp.vjp(lambda w: sums(x, w), w)[1](g)[0])
    spread = np.zeros((2, 3, 7, 5))
    spread[:, :, ::2, ::2] = x
    along = convolved(np.pad(spread, ((0, 0), (0, 0), (2, 2), (2, 2))), w, (1, 1), [(0, 0)] * 2, (1, 1), (1, 1), 1, 1)
    found = np.asarray(by_kernel(x, w, g))
    npt.assert_array_equal(np.sum(found * w), np.sum(along * g))
    assert "call gemm" in str(by_kernel.lower(x, w, g).loops)
