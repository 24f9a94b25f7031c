"""Running sums along long rows, by chunks: the same sums, and the same bits for every number of rows and threads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from graphs import FUSED, SMALL, WIDE, check
from hypothesis import given, settings
from hypothesis import strategies as st

import harp
import harp.numpy as hnp
from harp.lower.pipeline import lower
from harp.lower.reductions import scan
from harp.lower.reductions.interleave import ROWS
from tests.lower.reductions.test_interleave import GRAPHS

THREADS = (1, 2, 5)
# What is cut: forwards or backwards along memory, and by one accumulator.
CUT = ["sum1", "max1", "min1", "cube2", "suffix1", "flipped", "of a map", "of a flattened matrix", "tail", "both"]
PARTLY = ["directions", "axes", "again"]
WHOLE = sorted({*GRAPHS} - {*CUT, *PARTLY})
SPAN = ROWS * scan.CHUNK


@pytest.fixture(autouse=True)
def threads_as_before() -> Iterator[None]:
    yield
    harp.set_threads(0)


@pytest.mark.parametrize("name", [*CUT, *PARTLY])
@pytest.mark.parametrize("target", [SMALL, WIDE], ids=["small", "wide"])
def test_chunks_have_the_sums_of_the_loops(name, target, monkeypatch):
    monkeypatch.setattr(scan, "CHUNK", 3)
    monkeypatch.setattr(scan, "LONG", 30)
    assert "carries" in lower(GRAPHS[name], target).loops
    for rows, length in [(2, 29), (1, 30), (0, 48), (9, 49)]:
        check(GRAPHS[name], (rows, length, length), target)


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_not_cut(name):
    """Products of floats, other axes than the last one, several sums in one loop."""
    assert "carries" not in lower(GRAPHS[name], FUSED).loops


@pytest.mark.parametrize("name", CUT)
def test_the_chunks_are_shared_by_threads(name):
    text = lower(GRAPHS[name], FUSED).loops
    assert text.count(f"//{SPAN}):") >= 2 and text.count("for parallel") >= 2
    for line in text.splitlines():
        if line.strip().endswith(f"//{SPAN}):") and line.startswith("    for"):
            assert "parallel" in line or "sequential" in line, line


cumulative = {
    "sum": (harp.jit(lambda x: hnp.cumsum(x, axis=1)), lambda x: np.cumsum(x, axis=1)),
    "from the end": (
        harp.jit(lambda x: hnp.flip(hnp.cumsum(hnp.flip(x, 1), axis=1), 1)),
        lambda x: np.cumsum(x[:, ::-1], axis=1)[:, ::-1],
    ),
    "max": (harp.jit(lambda x: hnp.cummax(x, axis=1)), lambda x: np.maximum.accumulate(x, axis=1)),
    "gradient": (
        harp.jit(harp.grad(lambda x: hnp.sum(hnp.cumsum(x, axis=1) * x))),
        lambda x: np.cumsum(x, axis=1) + np.cumsum(x[:, ::-1], axis=1)[:, ::-1],
    ),
}
LENGTHS = st.sampled_from([0, 1, 100, scan.LONG - 1, scan.LONG, 2 * SPAN - 1, 2 * SPAN, 2 * SPAN + 1, 3 * SPAN + 77])


@settings(max_examples=30)
@given(st.sampled_from(sorted(cumulative)), st.sampled_from(["f4", "f8", "i4"]), st.integers(1, 4), LENGTHS)
def test_every_row_has_its_own_bits(name, dtype, rows, length):
    if name == "gradient" and dtype == "i4":
        dtype = "f8"
    compiled, exact = cumulative[name]
    x = (np.random.default_rng(length).standard_normal((4, length)) * 9).astype(dtype)
    harp.set_threads(1)
    whole = np.asarray(compiled(x))
    wanted = exact(x.astype("f8" if x.dtype.kind == "f" else "i8"))
    np.testing.assert_allclose(whole, wanted, rtol=1e-4, atol=0 if dtype == "i4" else 2e-5 * max(length, 1))
    for threads in THREADS:
        harp.set_threads(threads)
        np.testing.assert_array_equal(np.asarray(compiled(x[:rows])), whole[:rows])
    assert compiled.compilations <= 3, "one for each dtype"


def test_sums_of_positive_numbers_never_fall():
    x = np.random.default_rng(0).random((1, 4 * SPAN + 5), np.float32)
    assert np.all(np.diff(np.asarray(cumulative["sum"][0](x))) >= 0)


def test_special_numbers_go_on():
    x = np.ones((1, 3 * SPAN), np.float32)
    x[0, SPAN + 5], x[0, 2 * SPAN + 7] = np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.asarray(cumulative["sum"][0](x)), np.cumsum(x, axis=1))
    x[0, 100] = np.nan
    np.testing.assert_array_equal(np.asarray(cumulative["max"][0](x)), np.maximum.accumulate(x, axis=1))


def test_a_product_that_is_0_stays_so():
    """A chunk of it would overflow, and infinity times 0 is NaN."""
    x = np.full((1, 3 * SPAN), 2.0, np.float32)
    x[0, :300] = 0.5
    x[0, 5] = 0
    found = np.asarray(harp.jit(lambda x: hnp.cumprod(x, axis=1))(x))
    assert not found[0, 5:].any()
    whole = np.ones((1, 3 * SPAN), np.int64) * 3
    np.testing.assert_array_equal(np.asarray(harp.jit(lambda x: hnp.cumprod(x, axis=1))(whole)), np.cumprod(whole, 1))


@pytest.mark.parametrize(
    "made",
    [lambda x: x * 2 + 1, lambda x: x[::-1], lambda x: x[hnp.arange(x.shape[0]) // 2]],
    ids=["map", "flip", "gather"],
)
def test_what_is_summed_may_be_a_result_of_the_same_loop(made):
    """The sums of the chunks come before the loop that stores it."""

    def f(x):
        v = made(x)
        return v, hnp.cumsum(v)

    for n in (5, scan.LONG + 17):
        x = np.random.default_rng(n).random(n)
        known = np.asarray(made(hnp.asarray(x)))
        found = harp.jit(f)(x)
        np.testing.assert_array_equal(np.asarray(found[0]), known)
        np.testing.assert_allclose(np.asarray(found[1]), np.cumsum(known))
