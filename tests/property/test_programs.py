"""Random programs: compiled == interpreted == NumPy, over all primitives, dtypes, views and sizes, 0 and 1 included.

Programs of exact steps agree bit by bit, NaN, infinities and signs of zeros included; others within a tolerance.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from steps import BINARY, UNARY, Step, examples

import harp
import harp.numpy as hnp
from harp.errors import NotFiniteError

DTYPES = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]
DTYPES += ["float16", "complex64", "complex128"]
SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.25, np.nan, np.inf, -np.inf, 1e-40, 7.0, 3e38, -1e-30]
SIZES = st.sampled_from([0, 1, 2, 3, 5, 8, 33])
# Sums of values of very different size cancel: both sides are within this of the exact result, relative to the
# largest value.
TOLERANCE = {"f2": 2e-2, "f4": 2e-4, "f8": 1e-10, "c8": 2e-4, "c16": 1e-10}


class Program:
    """Steps, each on earlier values, for two inputs of one rank."""

    def __init__(self, rank: int, steps: list[tuple[Step, int, int]], unary: Collection[Step] = UNARY.values()) -> None:
        self.rank, self.steps, self.unary = rank, steps, list(map(id, unary))
        self.exact = all(step.exact for step, _, _ in steps)

    def run(self, inputs: list, which: int) -> list:
        """With harp's functions (0) or NumPy's (1); a step that does not fit is left out."""
        values = list(inputs)
        for step, a, b in self.steps:
            x, y = values[a], values[b]
            unary = id(step) in self.unary
            fits = x.dtype.kind in step.kinds and step.rank <= x.ndim <= 3 and x.dtype == y.dtype
            if not unary:
                fits = fits and x.ndim == y.ndim and all(m == n for m, n in zip(x.shape, y.shape, strict=True))
            values.append(step[which](*([x] if unary else [x, y])) if fits else x)
        return values[2:]

    def __repr__(self) -> str:
        names = {id(step): name for table in (UNARY, BINARY) for name, step in table.items()}
        return f"rank {self.rank}: {[(names.get(id(s), s), a, b) for s, a, b in self.steps]}"


@st.composite
def programs(draw, kind: str) -> Program:
    rank = draw(st.integers(1, 3))
    table = [s for s in (*UNARY.values(), *BINARY.values()) if kind in s.kinds]
    steps = []
    for k in range(draw(st.integers(1, 6))):
        step = draw(st.sampled_from(table))
        a = draw(st.integers(0, k + 1))
        steps.append((step, a, draw(st.integers(0, k + 1)) if step in BINARY.values() else a))
    return Program(rank, steps)


def fill(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, tame: bool) -> np.ndarray:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind == "c":  # products of infinities are tested elsewhere
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    if kind == "f":
        values = rng.choice(SPECIAL, size=shape) if rng.random() < 0.5 and not tame else rng.normal(size=shape)
        with np.errstate(all="ignore"):
            return values.astype(dtype)
    limits = np.iinfo(dtype)
    small = rng.integers(max(limits.min, -4), 5, size=shape)
    wild = rng.integers(limits.min, limits.max, size=shape, dtype=dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.8, small.astype(dtype), wild)


def agree(actual: object, expected: np.ndarray, exact: bool) -> None:
    found = np.asarray(actual)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    if found.dtype.kind not in "fc" or exact:
        np.testing.assert_array_equal(found, expected)
        if found.dtype.kind == "f":
            known = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(expected[known]))
        return
    finite = np.abs(expected)[np.isfinite(expected)]
    tolerance = TOLERANCE[expected.dtype.str[1:]]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * finite.max(initial=1.0))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_donated_arguments_change_no_bit(dtype):
    @examples(15)
    @given(
        program=programs(np.dtype(dtype).kind), sizes=st.lists(SIZES, min_size=3, max_size=4), seed=st.integers(0, 99)
    )
    def check(program, sizes, seed):
        rng = np.random.default_rng(seed)
        plain = harp.jit(lambda x, y: program.run([x, y], 0))
        donating = harp.jit(lambda x, y: program.run([x, y], 0), donate_argnums=(0, 1))
        for start in range(3):
            shape = tuple((sizes + sizes)[start : start + program.rank])
            inputs = [fill(rng, shape, dtype, False) for _ in range(2)]
            expected = plain(*inputs)
            for arguments in ([hnp.asarray(i) for i in inputs], inputs):  # memory that is taken over, and a copy
                for found, wanted in zip(donating(*arguments), expected, strict=True):
                    assert np.asarray(found).tobytes() == np.asarray(wanted).tobytes()
        assert donating.compilations == plain.compilations

    check()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool", "complex64"])
def test_checked_programs_agree_with_numpy(dtype):
    @examples(10)
    @given(
        program=programs(np.dtype(dtype).kind), sizes=st.lists(SIZES, min_size=3, max_size=4), seed=st.integers(0, 99)
    )
    def check(program, sizes, seed):
        rng = np.random.default_rng(seed)
        checked = harp.jit(lambda x, y: program.run([x, y], 0), check=True)
        for start in range(3):
            shape = tuple((sizes + sizes)[start : start + program.rank])
            inputs = [fill(rng, shape, dtype, not program.exact) for _ in range(2)]
            with np.errstate(all="ignore"):
                expected = program.run(inputs, 1)
            exact = program.exact and inputs[0].dtype.kind != "c"
            is_finite = all(np.isfinite(e).all() for e in expected if e.dtype.kind in "fc")
            try:
                found = checked(*inputs)  # no index is outside
            except NotFiniteError:
                assert not is_finite
                continue
            if exact or is_finite:
                for value, wanted in zip(found, expected, strict=True):
                    agree(value, wanted, exact)

    check()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_interpreted_and_numpy_agree(dtype):
    @examples(30)
    @given(
        program=programs(np.dtype(dtype).kind), sizes=st.lists(SIZES, min_size=3, max_size=6), seed=st.integers(0, 99)
    )
    def check(program, sizes, seed):
        rng = np.random.default_rng(seed)
        compiled = harp.jit(lambda x, y: program.run([x, y], 0))
        for start in range(3):  # one function, several sizes
            shape = tuple((sizes + sizes)[start : start + program.rank])
            inputs = [fill(rng, shape, dtype, not program.exact) for _ in range(2)]
            with np.errstate(all="ignore"):
                expected = program.run(inputs, 1)
            exact = program.exact and inputs[0].dtype.kind != "c"  # complex products may be fused
            if not exact and not all(np.isfinite(e).all() for e in expected if e.dtype.kind in "fc"):
                continue  # what overflows here may round to the largest number there
            eager = program.run([hnp.asarray(i) for i in inputs], 0)
            for value, interpreted, wanted in zip(compiled(*inputs), eager, expected, strict=True):
                agree(interpreted, wanted, exact)
                agree(value, wanted, exact)

    check()
