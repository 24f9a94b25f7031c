"""Functions of the standard inside `jit`: one program for all sizes, 0 and 1 included, against NumPy through strict.

Functions that go together share a program, for a compiler run takes longer than what is tested.
"""

from __future__ import annotations

import array_api_strict
import numpy as np
import pytest
import status
from test_functions import compare

import harp

array_api_strict.set_array_api_strict_flags(api_version=status.VERSION)
SIZES = [(3, 4), (0, 2), (1, 5), (2, 1), (5, 0), (1, 1), (7, 3)]
FILLED = [(3, 4), (1, 5), (2, 1), (1, 1), (7, 3)]
FLOAT, ANY, INTEGER, BOOL = ("float32", "float64"), ("int16", "float32"), ("int32", "uint8"), ("bool",)


def elementwise(xp, x, y):
    two = ("add", "subtract", "multiply", "maximum", "minimum", "equal", "not_equal", "less", "greater_equal")
    one = ("abs", "sign", "square", "ceil", "floor", "trunc", "round", "negative", "isnan", "isinf", "isfinite")
    return {n: getattr(xp, n)(x, y) for n in two} | {n: getattr(xp, n)(x) for n in one}


def transcendental(xp, x, y):
    return {n: getattr(xp, n)(x) for n in ("exp", "expm1", "cos", "sin", "tan", "tanh", "sqrt")} | {
        "log": xp.log(xp.abs(x)),
        "log1p": xp.log1p(xp.abs(x)),
        "log2": xp.log2(xp.abs(x)),
        "log10": xp.log10(xp.abs(x)),
        "divide": xp.divide(x, y),
    }


def bits(xp, x, y):
    names = ("bitwise_and", "bitwise_or", "bitwise_xor")
    return {n: getattr(xp, n)(x, y) for n in names} | {
        "bitwise_invert": xp.bitwise_invert(x),
        "bitwise_left_shift": xp.bitwise_left_shift(x, xp.asarray(y % 7, dtype=x.dtype)),
        "bitwise_right_shift": xp.bitwise_right_shift(x, xp.asarray(y % 7, dtype=x.dtype)),
        "floor_divide": xp.floor_divide(x, y | xp.ones_like(y)),
        "remainder": xp.remainder(x, y | xp.ones_like(y)),
    }


def logic(xp, x, y):
    names = ("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "equal")
    return {n: getattr(xp, n)(x, y) for n in names} | {
        "logical_not": xp.logical_not(x),
        "bitwise_invert": xp.bitwise_invert(x),
        "any": xp.any(x, axis=0),
        "all": xp.all(x, axis=1, keepdims=True),
        "where": xp.where(x, y, x),
    }


def shapes(xp, x, y):
    return {
        "flip": xp.flip(x, axis=1),
        "permute_dims": xp.permute_dims(x, (1, 0)),
        "matrix_transpose": xp.matrix_transpose(x),
        "moveaxis": xp.moveaxis(x, 0, 1),
        "expand_dims": xp.expand_dims(x, axis=1),
        "squeeze": xp.squeeze(xp.expand_dims(x, axis=0), 0),
        "reshape": xp.reshape(x, (x.shape[1], x.shape[0])),
        "tile": xp.tile(x, (2, 1, 2)),
        "repeat": xp.repeat(x, 2, axis=1),
        "tril": xp.tril(x, k=1),
        "triu": xp.triu(x, k=-1),
        "slice": x[::-1, :],
        "broadcast_to": xp.broadcast_to(x, (2, *x.shape)),
        "broadcast_arrays": xp.broadcast_arrays(x, xp.expand_dims(y, axis=0))[0],
    }


def joined(xp, x, y):
    return {
        "concat": xp.concat([x, y], axis=0),
        "flat": xp.concat([x, y], axis=None),
        "stack": xp.stack([x, y], axis=1),
        "roll": xp.roll(x, 1, axis=0),
        "meshgrid": xp.meshgrid(x[0, :], y[:, 0])[1],
        "linspace": xp.linspace(0.0, 1.0, x.shape[0]),
        "eye": xp.eye(x.shape[0], x.shape[1], k=1),
        "arange": xp.arange(x.shape[1]),
        "full_like": xp.full_like(x, 3),
        "ones": xp.ones((x.shape[0],)),
        "zeros_like": xp.zeros_like(x),
    }


def reductions(xp, x, y):
    one = {n: getattr(xp, n)(x, axis=1) for n in ("sum", "prod", "any", "all")}
    return one | {
        "sum_all": xp.sum(x),
        "cumulative_sum": xp.cumulative_sum(x, axis=0, include_initial=True),
        "cumulative_prod": xp.cumulative_prod(x, axis=1),
    }


def moments(xp, x, y):
    return {n: getattr(xp, n)(x, axis=0, keepdims=True) for n in ("mean", "max", "min", "argmax", "argmin")} | {
        "var": xp.var(x, axis=1, correction=0.0),
        "std": xp.std(x),
        "vector_norm": xp.linalg.vector_norm(x, axis=1),
        "vector_norm_inf": xp.linalg.vector_norm(x, ord=float("inf")),
        "vector_norm_3": xp.linalg.vector_norm(x, ord=3),
        "matrix_norm": xp.linalg.matrix_norm(x),
        "matrix_norm_1": xp.linalg.matrix_norm(x, ord=-1, keepdims=True),
    }


def products(xp, x, y):
    return {
        "matmul": xp.matmul(x, xp.matrix_transpose(y)),
        "tensordot": xp.tensordot(x, y, axes=((0,), (0,))),
        "vecdot": xp.vecdot(x, y),
        "outer": xp.linalg.outer(x[0, :], y[:, 0]),
        "diagonal": xp.linalg.diagonal(x, offset=1),
        "trace": xp.linalg.trace(x),
        "matrix_power": xp.linalg.matrix_power(xp.matmul(xp.matrix_transpose(x), y), 3),
        "cross": xp.linalg.cross(xp.stack([x, y, x], axis=-1), xp.stack([y, y, x], axis=-1)),
    }


def sorting(xp, x, y):
    return {
        "sort": xp.sort(x, axis=0),
        "descending": xp.sort(x, descending=True),
        "argsort": xp.argsort(x, axis=1),
        "searchsorted": xp.searchsorted(xp.sort(xp.reshape(x, (-1,))), y, side="right"),
        "count_nonzero": xp.count_nonzero(x, axis=0),
        "diff": xp.diff(x, axis=1),
    }


def complexes(xp, x, y):
    one = ("abs", "real", "imag", "conj", "exp", "sin", "cos", "tanh", "sqrt", "square", "sign", "isfinite", "negative")
    two = ("add", "subtract", "multiply", "equal")
    sums = {n: getattr(xp, n)(x, axis=1) for n in ("sum", "prod", "cumulative_sum", "any")}
    return sums | {n: getattr(xp, n)(x) for n in one} | {n: getattr(xp, n)(x, y) for n in two}


GROUPS = [
    *((complexes, d, SIZES, 2e-6) for d in ("complex64", "complex128")),
    *((products, d, FILLED, 1e-5) for d in ("complex64",)),
    *((elementwise, d, SIZES, 0) for d in (*INTEGER, *FLOAT)),
    *((transcendental, d, SIZES, 4e-7) for d in FLOAT),
    *((bits, d, SIZES, 0) for d in ("int8", "uint16", "int64")),
    *((logic, d, SIZES, 0) for d in BOOL),
    *((shapes, d, SIZES, 0) for d in ANY),
    *((joined, d, FILLED, 1e-6) for d in FLOAT),
    *((reductions, d, SIZES, 1e-5) for d in ("int32", "float32")),
    *((sorting, d, SIZES, 0) for d in ("uint8", "int32", "float32")),
    *((moments, d, FILLED, 1e-5) for d in FLOAT),
    *((products, d, FILLED, 1e-5) for d in FLOAT),
]


def numbers(rng, dtype, shape):
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.startswith("complex"):
        return (rng.integers(-40, 40, shape) / 16 + rng.integers(-40, 40, shape) / 16j).astype(dtype)
    if dtype.startswith("float"):
        return (rng.integers(-40, 40, shape) / 16).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(max(limits.min, -50), min(limits.max, 50), shape).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize(("group", "dtype", "sizes", "tolerance"), GROUPS, ids=lambda v: getattr(v, "__name__", str(v)))
def test_one_program(group, dtype, sizes, tolerance):
    rng = np.random.default_rng(0)
    compiled = harp.jit(lambda x, y: group(harp.numpy, x, y))
    for shape in sizes:
        x, y = numbers(rng, dtype, shape), numbers(rng, dtype, shape)
        found = compiled(x, y[::-1, ::-1])
        with np.errstate(all="ignore"):
            expected = group(array_api_strict, *map(array_api_strict.asarray, (x, y[::-1, ::-1])))
        for name, value in found.items():
            compare(harp.numpy.asarray(value), expected[name], tolerance)
    assert compiled.compilations == 1
