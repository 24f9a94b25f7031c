"""Sums through the lanes of sub-groups: the loop nests, their values and bits, and the text of their kernels."""

from __future__ import annotations

import re

import numpy as np
import numpy.testing as npt
import pytest

import harp
import harp.numpy as hnp
from harp.lower.loopir.text import program_text
from harp.lower.pipeline import lower
from harp.lower.target import Target
from harp.lower.verify.interpreter import execute
from harp.lower.verify.verify import verify_program
from harp.trace.sizes.signature import canonical, sizes_of


def lowered(function, *arguments, lanes=16):
    target = Target(fma=True, grid=True, wide=True, group=1024, sub_group=lanes)
    return lower(canonical(harp.jit(function).lower(*arguments).graph), target).program


class Sums:
    """The loop nests of a function of an array, for sub-groups of so many lanes, and what they compute for any number
    of rows and columns."""

    def __init__(self, function, x, lanes):
        graph = canonical(harp.jit(function).lower(x).graph)
        self.sizes = sizes_of(graph)
        target = Target(fma=True, grid=True, wide=True, group=1024, sub_group=lanes)
        self.program = lower(graph, target).program
        assert ("lanes" in program_text(self.program)) == bool(lanes)
        assert verify_program(self.program) == []

    def __call__(self, x):
        return execute(self.program, [x], dict(zip(self.sizes, x.shape, strict=True)))[0]


def of_all_lanes(function, dtype, length):
    """Without sub-groups, and with two kinds of them."""
    return [Sums(function, given(dtype, length), lanes) for lanes in (0, 16, 32)]


def given(dtype, length, rows=2):
    rng = np.random.default_rng(length)
    x = rng.standard_normal((rows, length)) + (1j * rng.standard_normal((rows, length)) if dtype[0] == "c" else 0)
    if dtype[0] in "iu":
        x = rng.integers(0, 100, (rows, length))
    return x > 1.9 if dtype == "bool" else x.astype(dtype)


REDUCTIONS = {
    "sum": (hnp.sum, np.sum, ("float32", "float64", "float16", "int8", "uint16", "int32", "uint64", "complex64")),
    "prod": (hnp.prod, np.prod, ("float64", "int64", "complex128")),
    "max": (hnp.max, np.max, ("float32", "int16")),
    "min": (hnp.min, np.min, ("float64", "uint8")),
    "any": (hnp.any, np.any, ("bool",)),
    "all": (hnp.all, np.all, ("bool",)),
    "argmax": (hnp.argmax, np.argmax, ("float32",)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REDUCTIONS)
def test_sums_have_the_bits_that_they_have_without_sub_groups(name):
    ours, numpy, dtypes = REDUCTIONS[name]
    for dtype in dtypes:
        programs = of_all_lanes(lambda x: ours(x, axis=1), dtype, 9)
        for length in (127, 128, 129, 257, 530):
            x = given(dtype, length)
            without, *found = (program(x) for program in programs)
            rounded = {"float32": 1e-4, "complex64": 1e-4, "float16": 0.1}.get(dtype, 1e-9)
            npt.assert_allclose(without, numpy(x, axis=1), rtol=rounded, atol=rounded)
            for other in found:
                assert other.tobytes() == without.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums_have_them_too(reverse):
    def f(x):
        return harp.lax.cumsum(x, axis=1, reverse=reverse)

    for dtype in ("float32", "int16"):
        programs = of_all_lanes(f, dtype, 9)
        for length in (128, 200, 1100):
            x = given(dtype, length, 1)
            without, *found = (program(x) for program in programs)
            wanted = np.cumsum(x[:, ::-1], axis=1, dtype="f8")[:, ::-1] if reverse else np.cumsum(x, axis=1, dtype="f8")
            npt.assert_allclose(without, wanted.astype(dtype), rtol=1e-4, atol=1e-4)
            for other in found:
                assert other.tobytes() == without.tobytes()


def test_parts_are_in_lanes_and_sums_in_memory_of_the_group():
    x = np.ones((5, 7), "f4")
    one, two = (program_text(lowered(lambda x: hnp.sum(x, axis=1), x, lanes=lanes)) for lanes in (16, 32))
    assert "lanes v0_parts: f32[16, 16]" in one and "group v0_parts" not in one and "group v0_sums: f32[16]" in one
    assert "lanes v0_parts: f32[8, 32]" in two
    for other in (lambda x: hnp.sum(x, axis=0), lambda x: hnp.sum(x), lambda x: hnp.bincount(x, length=3)):
        x = np.ones(7, int) if other.__code__.co_names[-1] == "bincount" else np.ones((5, 7))
        assert "lanes" in program_text(lowered(other, x))


def test_without_sub_groups_nothing_is_in_lanes():
    assert "lanes" not in program_text(lowered(lambda x: hnp.sum(x, axis=1), np.ones((5, 7)), lanes=0))


def kernel_text(function, *arguments, lanes=16):
    """The functions with groups, of a device with such sub-groups; those for short rows are the last ones."""
    pytest.importorskip("pyopencl")
    from harp.backends.opencl.host import kernel_code

    codes = [kernel_code(kernel) for kernel in lowered(function, *arguments, lanes=lanes).kernels]
    return ["\n".join(line.text for line in launch.lines) for code in codes for launch in code.launches if launch.items]


def test_a_kernel_asks_for_its_sub_groups():
    *_, text = kernel_text(lambda x: hnp.sum(x, axis=1), np.ones((5, 7), "f4"))
    assert "reqd_work_group_size(256, 1, 1)" in text and "intel_reqd_sub_group_size(16)" in text
    assert "const int64_t item = get_sub_group_id()*16 + get_sub_group_local_id();" in text
    assert "get_local_id" not in text
    assert re.search(r"const float lane0 = harp_shuffle_f32\(lanes0, i\d+\);", text) and "float group0[16]" in text
    *_, text = kernel_text(lambda x: hnp.sum(x, axis=1), np.ones((5, 7), "f4"), lanes=32)
    assert "intel_reqd_sub_group_size(32)" in text
    assert re.search(r"harp_shuffle_f32\(lanes0, 16\*i\d+ \+ i\d+\);", text)
    *_, text = kernel_text(lambda x: hnp.sum(x, axis=1), np.ones((5, 7), "f4"), lanes=0)
    assert "sub_group" not in text and "item" not in text and "reqd" not in text


def test_a_barrier_less():
    def two(x):
        return hnp.exp(x - hnp.max(x, axis=1, keepdims=True)) / hnp.sum(x * x, axis=1, keepdims=True)

    for function in (lambda x: hnp.sum(x, axis=1), two, lambda x: hnp.cumsum(x, axis=1)):
        few, many = ("".join(kernel_text(function, np.ones((5, 7)), lanes=lanes)) for lanes in (16, 0))
        assert 0 < few.count("barrier(") < many.count("barrier(")


def test_no_barrier_is_missing_between_sums_that_share_their_memory():
    """The second sum stores to what all have read of the first one: there is a barrier between the two."""
    *_, text = kernel_text(lambda x: hnp.sum(x * hnp.sum(x, axis=1, keepdims=True), axis=1), np.ones((5, 7)))
    reads = [m.start() for m in re.finditer(r"= reg\d+ \+ group0\[", text)]
    store = text.index("group0[", reads[0] + 40)
    assert len(reads) == 2 and text.count("barrier(", reads[0], store) == 1
