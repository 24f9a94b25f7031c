"""Products of matrices of integers of 8 bits, summed in 32: the integers of NumPy, for all sizes and layouts."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import lax
from harp.lower.library import PANEL_LANES
from harp.lower.loopir.loops import LibraryCall, Routine, walk
from harp.lower.pipeline import lower
from harp.lower.target import Target
from harp.trace.scalar.dtypes import i32
from harp.trace.sizes.signature import canonical

DTYPES = ["int8", "uint8"]
rng = np.random.default_rng(0)


def drawn(shape, dtype):
    """Numbers of the whole range, and many at its ends, where a sum of two products does not fit 16 bits."""
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max + 1, shape).astype(dtype)
    ends = rng.integers(0, 3, shape)
    return np.where(ends == 0, limits.max, np.where(ends == 1, limits.min, x)).astype(dtype)


def exact(a, b):
    return a.astype(np.int64) @ b.astype(np.int64)


product = harp.jit(lambda a, b: hnp.matmul(a, b, preferred_element_type="int32"))


@pytest.mark.parametrize("right", DTYPES)
@pytest.mark.parametrize("left", DTYPES)
def test_all_sizes(left, right):
    sizes = [*range(8), 11, 12, 13, 15, 16, 17, 23, 24, 25, 31, 33, 48, 49, 63, 64, 65, 70]
    a, b = drawn((70, 70), left), drawn((70, 70), right)
    for m in sizes:
        for n in sizes:
            for k in (0, 1, 2, 5, 16, 70):
                found = np.asarray(product(a[:m, :k].copy(), b[:k, :n].copy()))
                assert found.dtype == np.int32
                np.testing.assert_array_equal(found, exact(a[:m, :k], b[:k, :n]), err_msg=f"{m} {k} {n}")


@pytest.mark.parametrize("shape", [(130, 511, 129), (1, 300, 200), (200, 300, 1), (3, 257, 3), (513, 513, 65)])
@pytest.mark.parametrize("right", DTYPES)
@pytest.mark.parametrize("left", DTYPES)
def test_large_and_in_every_layout(left, right, shape):
    m, k, n = shape
    a, b = drawn((m, k), left), drawn((k, n), right)
    columns = harp.jit(lambda a, b: lax.dot(a.T, b.T, preferred_element_type="int32"))
    expected = exact(a, b)
    np.testing.assert_array_equal(product(a, b), expected)
    np.testing.assert_array_equal(columns(np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)), expected)
    np.testing.assert_array_equal(product(np.asfortranarray(a), np.asfortranarray(b)), expected)
    wide, deep = drawn((m, 2 * k), left), drawn((2 * k, n), right)
    strided = harp.jit(lambda a, b: hnp.matmul(a[:, ::2], b[::-2], preferred_element_type="int32"))
    np.testing.assert_array_equal(strided(wide, deep), exact(wide[:, ::2], deep[::-2]))


def test_batches_and_einsum():
    a, b = drawn((3, 20, 37), "uint8"), drawn((3, 37, 50), "int8")
    np.testing.assert_array_equal(product(a, b), exact(a, b))
    np.testing.assert_array_equal(product(a, b[0]), exact(a, b[0]))
    np.testing.assert_array_equal(harp.vmap(product, in_axes=(0, None))(a, b[1]), exact(a, b[1]))
    general = harp.jit(lambda a, b: lax.dot_general(a, b, (((2,), (1,)), ((0,), (0,))), preferred_element_type="int32"))
    np.testing.assert_array_equal(general(a, b), exact(a, b))
    heads = harp.jit(lambda a, b: hnp.einsum("bij,bjk->ibk", a, b, preferred_element_type="int32"))
    np.testing.assert_array_equal(heads(a, b), exact(a, b).transpose(1, 0, 2))


def test_what_is_computed_of_the_sums_and_sums_that_wrap():
    a, b = drawn((33, 90), "int8"), drawn((90, 41), "int8")
    scaled = harp.jit(lambda a, b: hnp.matmul(a, b, preferred_element_type="int32").astype("float32") * 0.5 + 1)
    np.testing.assert_array_equal(scaled(a, b), exact(a, b).astype(np.float32) * np.float32(0.5) + 1)
    long = np.full((4, 140_000), -128, np.int8)
    np.testing.assert_array_equal(product(long, long.T.copy()), exact(long, long.T).astype(np.int32))


def test_one_program_for_all_sizes():
    f = harp.jit(lambda a, b: lax.dot(a, b, preferred_element_type="int32"))
    for m, k, n in ((5, 6, 7), (0, 3, 4), (100, 1, 2), (9, 200, 77)):
        a, b = drawn((m, k), "int8"), drawn((k, n), "uint8")
        np.testing.assert_array_equal(f(a, b), exact(a, b))
    assert f.compilations <= 3  # of which axes are 1


@pytest.mark.parametrize("lanes", PANEL_LANES[i32])
def test_the_panel_is_called(lanes):
    def routines(f, *args):
        program = lower(canonical(harp.trace(f, *args)), Target(vector_bytes=4 * lanes, fma=True)).program
        return {s.routine for kernel in program.kernels for s in walk(kernel.body) if isinstance(s, LibraryCall)}

    dot = lambda a, b: lax.dot(a, b, preferred_element_type="int32")
    assert Routine.GEMM_INTEGERS in routines(dot, harp.u8["n", "k"], harp.i8["k", "m"])
    assert Routine.GEMM_INTEGERS in routines(lambda a, b: dot(a, b.T), harp.i8["n", "k"], harp.i8["m", "k"])
    # A number that is not there in 8 bits, and sums of other dtypes, have the loops of all integers.
    assert Routine.GEMM_INTEGERS not in routines(dot, harp.i16["n", "k"], harp.i8["k", "m"])
    assert Routine.GEMM_INTEGERS not in routines(
        lambda a, b: dot(a.astype("int8"), b), harp.u8["n", "k"], harp.i8["k", "m"]
    )
    assert Routine.GEMM_INTEGERS not in routines(lambda a, b: a @ b, harp.i32["n", "k"], harp.i32["k", "m"])
