"""Loops for common numbers, which run again where they met others: values, bits, and where there is no second loop."""

from __future__ import annotations

import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp.backends.toolchain.toolchain import find_toolchain

needs_compiler = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")

# Each function, numbers of its first loop, and others.
CASES = {
    "sin": (hnp.sin, np.sin, (-6.0, 6.0), [1e5, -3e38, 65537.0, np.inf, np.nan]),
    "cos": (hnp.cos, np.cos, (-6.0, 6.0), [1e5, -3e38, 65537.0, -np.inf, np.nan]),
    "tan": (hnp.tan, np.tan, (-6.0, 6.0), [1e5, -3e38, 65537.0, np.inf, np.nan]),
    "log2": (hnp.log2, np.log2, (0.01, 9.0), [0.0, -1.0, 1e-40, np.inf, np.nan]),
    "log10": (hnp.log10, np.log10, (0.01, 9.0), [-0.0, -1.0, 1e-45, np.inf, np.nan]),
    "atan2": (
        lambda x: hnp.atan2(x, 2 - x),
        lambda x: np.arctan2(x, 2 - x),
        (-6.0, 6.0),
        [0.0, 1e20, -1e-20, np.inf, np.nan],
    ),
    "pow": (lambda x: hnp.pow(x, x), lambda x: np.power(x, x), (0.01, 9.0), [0.0, -2.0, -1.5, 1e-40, np.inf, np.nan]),
}
ALL = pytest.mark.parametrize("name", CASES)


def source(function, *arrays) -> str:
    return harp.jit(function).lower(*arrays).source


@needs_compiler
@ALL
def test_one_uncommon_number_anywhere(name: str) -> None:
    function, reference, (low, high), others = CASES[name]
    common = np.random.default_rng(2).uniform(low, high, 5000).astype(np.float32)
    compiled = harp.jit(function)
    first = np.asarray(compiled(common))
    for place, other in zip((0, 17, 4095, 4096, 4999, 2500), others, strict=False):
        x = common.copy()
        x[place] = other
        got = np.asarray(compiled(x))
        with np.errstate(all="ignore"):
            exact = reference(x.astype(np.float64)).astype(np.float32)
        np.testing.assert_allclose(got, exact, rtol=2e-7, atol=1e-45)
        others_left = np.arange(x.size) != place
        np.testing.assert_array_equal(got[others_left].view(np.uint32), first[others_left].view(np.uint32))


@ALL
def test_there_is_a_loop_for_common_numbers(name: str) -> None:
    text = source(CASES[name][0], np.ones(5000, np.float32))
    assert text.count(f"harp_{name}_near_f32(&far, ") == text.count(f"harp_{name}_f32(") == 1
    assert text.index(f"harp_{name}_near_f32(") < text.index("if (far)") < text.index(f"harp_{name}_f32(")


def test_no_other_function_has_two_loops() -> None:
    assert "uint32_t far" not in source(lambda x: hnp.exp(x) + hnp.arcsin(x), np.ones(5000, np.float32))
    assert "uint32_t far" not in source(hnp.tan, np.ones(5000))


def test_what_cannot_be_run_again_has_one_loop() -> None:
    """Sums would be added twice, and what is updated in place would be updated twice."""
    assert "uint32_t far" not in source(lambda x: hnp.sum(hnp.sin(x), axis=1), np.ones((50, 500), np.float32))
    assert "uint32_t far" not in harp.jit(hnp.sin, donate_argnums=0).lower(np.ones(5000, np.float32)).source


@needs_compiler
def test_in_place() -> None:
    x = np.linspace(-1e5, 1e5, 5000, dtype=np.float32)
    got = np.asarray(harp.jit(hnp.sin, donate_argnums=0)(hnp.asarray(x.copy())))
    np.testing.assert_allclose(got, np.sin(x.astype(np.float64)), rtol=2e-7)


@needs_compiler
def test_numbers_that_a_choice_leaves_out_are_noted_without_a_branch() -> None:
    """A note behind a condition would keep the loop from being done in vectors."""
    function = harp.jit(lambda x: hnp.where(x < 9, hnp.sin(x) * 2 + hnp.cos(x), x))
    x = np.linspace(-6, 6, 5000, dtype=np.float32)
    x[::1000] = 1e6
    text = function.lower(x).source
    notes = [line for line in text.splitlines() if "(&far, " in line]
    assert len(notes) == 2 and not any("?" in line for line in notes)
    exact = x.astype(np.float64)
    exact = np.where(x < 9, np.sin(exact) * 2 + np.cos(exact), exact)
    np.testing.assert_allclose(np.asarray(function(x)), exact, rtol=1e-6, atol=1e-6)
