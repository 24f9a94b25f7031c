"""Every way in which C sorts: in vectors and by digits, alone and in parts, whatever the pivots are."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harp.backends.c_family.library import KERNELS, kernel
from harp.backends.options import CompileOptions
from harp.backends.protocol import Source, Unit
from harp.backends.runtime.load import build_and_load, pointer
from harp.backends.toolchain.library import included
from harp.backends.toolchain.toolchain import find_toolchain
from harp.trace.scalar.dtypes import as_dtype

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="needs a C compiler")

# Runs all parts at once, or each on its own, the last one first.
RUNNERS = """
#define HARP_EXPORT __attribute__((visibility("default")))
static void whole(void (*part)(void *, int64_t, int64_t), void *given, int64_t count, double work)
{
    (void)work;
    part(given, 0, count);
}
static void apart(void (*part)(void *, int64_t, int64_t), void *given, int64_t count, double work)
{
    (void)work;
    for (int64_t k = count; k-- > 0;) part(given, k, k + 1);
}
HARP_EXPORT int f(int64_t n, const void *given, void *stored, void *work, int reverse, int parts)
{
    return NAME(n, given, stored, work, reverse, parts ? apart : whole);
}
"""
# Macros by which the library sorts otherwise.
WAYS = {
    "as it is": "",
    "digits": "#define QUICKSORT 0\n",
    "bad pivots": "#define QUICKSORT_SPREAD(n) 0\n",
    "few pivots": "#define QUICKSORT_DEPTH 2\n",
}
DTYPES = ["float32", "int64", "uint16"]


@cache
def compiled(stem: str, dtype: str, way: str):
    name = kernel(stem, as_dtype(dtype))
    unit = KERNELS[name].unit()
    source = Source((Unit(WAYS[way] + unit.text + RUNNERS.replace("NAME", name), unit.flags),))
    declaration = "int(*)(int64_t, void *, void *, void *, int, int)"
    library = build_and_load(source, CompileOptions(), names=["f"])
    return library, library.function("f", declaration)


def run(stem: str, way: str, x: np.ndarray, reverse: bool, parts: bool) -> np.ndarray:
    out, work = np.empty(len(x), x.dtype if stem == "sort" else np.int64), np.empty(len(x) + 1, np.int64)
    given = x.copy()
    _, function = compiled(stem, str(x.dtype), way)
    assert function(len(x), *map(pointer, (given, out, work)), reverse, parts) == 0
    assert given.tobytes() == x.tobytes()
    return out


def wanted(stem: str, x: np.ndarray, reverse: bool) -> np.ndarray:
    if reverse:
        order = len(x) - 1 - np.argsort(x[::-1], kind="stable")[::-1]
    else:
        order = np.argsort(x, kind="stable")
    return x[order] if stem == "sort" else order


def numbers(rng: np.random.Generator, n: int, dtype: str, kind: str) -> np.ndarray:
    if kind == "few":
        return rng.integers(0, 5, n).astype(dtype)
    if kind == "in order":
        return np.arange(n).astype(dtype)
    if kind == "mostly one":
        return np.where(rng.integers(0, 20, n), 7, rng.integers(0, 99, n)).astype(dtype)
    if np.dtype(dtype).kind != "f":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, n, dtype, endpoint=True)
    values = rng.standard_normal(n)
    if kind == "special":
        values = np.where(rng.integers(0, 3, n), values, rng.choice([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf], n))
    return values.astype(dtype)


KINDS = st.sampled_from(["any", "few", "in order", "mostly one", "special"])
SIZES = st.one_of(st.integers(0, 300), st.sampled_from([1023, 2499, 2501, 5000, 65_537, 140_000]))


@pytest.mark.parametrize("way", WAYS)
@given(st.sampled_from(DTYPES), SIZES, KINDS, st.booleans(), st.booleans(), st.integers(0, 99))
def test_values(way, dtype, n, kind, reverse, parts, seed):
    x = numbers(np.random.default_rng(seed), n, dtype, kind)
    assert run("sort", way, x, reverse, parts).tobytes() == wanted("sort", x, reverse).tobytes()


@given(st.sampled_from(DTYPES), SIZES, KINDS, st.booleans(), st.booleans(), st.integers(0, 99))
def test_places(dtype, n, kind, reverse, parts, seed):
    x = numbers(np.random.default_rng(seed), n, dtype, kind)
    np.testing.assert_array_equal(run("argsort", "as it is", x, reverse, parts), wanted("argsort", x, reverse))


def test_each_macro_is_one_of_the_library():
    files = included(KERNELS["harp_sort_i64"].unit().text).values()
    for macro in ("QUICKSORT", "QUICKSORT_SPREAD", "QUICKSORT_DEPTH"):
        assert any(f"#ifndef {macro}\n" in text for text in files)


@pytest.mark.parametrize("longest", [1, 5, 2**31 - 1])
@pytest.mark.parametrize("right", [False, True])
def test_a_row_is_searched_in_parts(longest, right):
    """As one is that is too long for places of 32 bits."""
    name, rng = "harp_searchsorted_f32", np.random.default_rng(0)
    code = "int f(int64_t n, void *row, int64_t m, void *values, void *out, int right)"
    call = f'__attribute__((visibility("default"))) {code} {{ return {name}(n, row, m, values, out, right), 0; }}'
    unit = KERNELS[name].unit()
    source = Source((Unit(f"#define LONGEST {longest}\n{unit.text}{call}\n", unit.flags),))
    library = build_and_load(source, CompileOptions(), names=["f"])
    function = library.function("f", "int(*)(int64_t, void *, int64_t, void *, void *, int)")
    values = rng.integers(-3, 20, 100).astype(np.float32)
    for n in (0, 1, 5, 17):
        row, out = np.sort(rng.integers(0, 17, n)).astype(np.float32), np.full(100, 77)
        assert function(n, pointer(row), 100, pointer(values), pointer(out), right) == 0
        np.testing.assert_array_equal(out, np.searchsorted(row, values, "right" if right else "left"))
