"""`f.lower(...)`: what it says of sizes, memory and costs, beside what calls and NumPy say."""

from __future__ import annotations

import re

import attrs
import numpy as np
import pytest

import harp
import harp.numpy as hnp
from harp import errors
from harp.backends.toolchain.toolchain import find_toolchain
from harp.config import settings
from harp.lower import pipeline
from harp.transforms.jit import lowering

F32 = np.float32
TABLE = np.arange(6, dtype=F32)


def layer(x, w):
    h = hnp.tanh(x @ w)
    return (h - hnp.mean(h, axis=0)) @ w.T, hnp.sum(h, axis=1)


def memory(f, *args):
    return harp.jit(f).lower(*args).memory()


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("sizes", [(3, 4, 5), (1000, 300, 70), (0, 4, 5), (1, 1, 1), (600, 0, 2)])
def test_arrays_as_numpy_counts_them_and_scratch_as_compiled_code_does(sizes):
    rows, inner, columns = sizes
    f = harp.jit(layer)
    x, w = np.ones((rows, inner), F32), np.ones((inner, columns), F32)
    stages = f.lower(np.ones((9, 8), F32), np.ones((8, 7), F32))
    found = stages.memory(*sizes)
    assert found == f.lower(x, w).memory()
    outputs = f(x, w)
    assert found.inputs == x.nbytes + w.nbytes
    assert found.outputs == sum(np.asarray(o).nbytes for o in outputs)
    assert found.captured == 0
    assert found.peak == found.inputs + found.outputs + found.scratch + found.threads * found.per_thread
    if find_toolchain() is not None:
        (kernel,) = {e.program.kernel for entries in f._entries.values() for e in entries}
        assert found.scratch == kernel.scratch_bytes(sizes)


def test_captured_arrays():
    assert memory(lambda x: x * TABLE, np.ones(6, F32)).captured == TABLE.nbytes


def test_rows_that_stay_inside_a_kernel_are_counted_for_each_thread():
    def softmax(x):
        e = hnp.exp(x - hnp.max(x, axis=1, keepdims=True))
        return e / hnp.sum(e, axis=1, keepdims=True)

    stages = harp.jit(softmax, threads=3).lower(np.ones((4, 1000), F32))
    few, many = stages.memory(), stages.memory(1 << 20, 1000)
    assert few.per_thread == many.per_thread and few.threads == 3
    assert many.peak == 2 * (1 << 20) * 4000 + many.scratch + 3 * many.per_thread


def test_sizes_are_named_in_order():
    stages = harp.jit(layer).lower(np.ones((2, 3), F32), np.ones((3, 4), F32))
    assert stages.sizes == ("x.shape[0]", "x.shape[1]", "w.shape[1]")
    halves = harp.jit(lambda x: hnp.sum(x.reshape(-1, 2), axis=1)).lower(np.ones(6, F32))
    assert len(halves.sizes) == 1 and halves.memory().inputs == 24


@pytest.mark.parametrize("wrong", [(1,), (1, 2), (1, 2, 3, 4), (1, 2, -3), (1, 2, 3.0), (1, 2, "a"), (1, True, 3)])
def test_wrong_sizes(wrong):
    stages = harp.jit(layer).lower(np.ones((2, 3), F32), np.ones((3, 4), F32))
    with pytest.raises(errors.ArgumentError, match=r"[xw]\.shape\[[01]\]"):
        stages.memory(*wrong)


def test_declared_sizes_hold_for_lower():
    f = harp.jit(lambda x: x + 1, signature=(harp.f32["n", 3],))
    assert len(f.lower(np.ones((2, 3), F32)).sizes) == 1
    with pytest.raises(errors.SignatureError, match="axis 1"):
        f.lower(np.ones((2, 4), F32))


def test_numpy_integers_are_sizes():
    stages = harp.jit(lambda x: x + 1).lower(np.ones(3))
    assert stages.memory(np.int64(7)).inputs == 56


# --- what is printed


def test_the_summary_is_short_and_names_the_stages():
    def deep(x, w):
        for k in range(60):
            x = hnp.sort(hnp.tanh(x @ w) + k, axis=1)
        return x

    for f in (layer, deep, lambda x, w: x):
        stages = harp.jit(f).lower(np.ones((2, 3), F32), np.ones((3, 3), F32))
        text = str(stages)
        assert text == repr(stages) and len(text.splitlines()) <= 14
        named = re.findall(r"^\.(\w+)", text, re.MULTILINE)
        assert named == ["graph", "schedule", "loops", "source", "arrays", "cost", "html"]
        assert all(hasattr(stages, name) for name in named)
        cost, memory = stages.cost().at(), stages.memory()
        for number in (cost.operations, cost.bytes_read, cost.bytes_written, memory.peak, memory.scratch):
            assert re.search(rf"(?<![\d,]){number:,}(?![\d,])", text), number


def test_the_summary_counts_what_there_is():
    stages = harp.jit(lambda x: hnp.sort(x) * 2).lower(np.ones(3))
    text = str(stages)
    kernels, nodes = (int(number) for number in re.search(r": (\d+) kernels? of (\d+) nodes?\n", text).groups())
    assert kernels == stages.loops.count("\ncall ") and nodes == str(stages.graph).count(" = ")
    assert "for n = x.shape[0] = 3\n" in text
    assert re.search(r"operations +n +3\n", text)


def test_many_sizes_take_lines_of_their_own():
    stages = harp.jit(lambda *arrays: sum(hnp.sum(a) for a in arrays)).lower(*(np.ones((k, k + 1)) for k in range(20)))
    assert max(map(len, str(stages).splitlines())) <= 110


# --- costs


def cost(f, *shapes):
    return harp.jit(f).lower(*(np.ones(shape, F32) for shape in shapes)).cost()


def test_the_cost_of_a_layer():
    found = cost(layer, (2, 3), (3, 4))
    assert dict(found.names) == {"n": "x.shape[0]", "m": "x.shape[1]", "k": "w.shape[1]"}
    assert found.operations.degree == 3 and found.reads.degree == 3 and found.writes.degree == 2
    leading = [term for term in found.operations.terms if len(term[1]) == 3]
    assert leading == [(4, ("n", "m", "k"))], "two products"
    assert repr(found.special) == "n*k"
    assert found.exact


def test_costs_at_sizes():
    found = cost(layer, (2, 3), (3, 4))
    values = found.at(10, 20, 30)
    assert values.special == 300 and values.writes == sum(kernel.writes for kernel in values.kernels)
    assert found.at() == found.at(2, 3, 4) != found.at(3, 3, 4)
    assert found.at(0, 0, 0).operations == 0


@pytest.mark.parametrize("wrong", [(1,), (1, 2), (1, 2, 3, 4), (1, 2, -3), (1, 2, 3.0), (1, 2, "a"), (1, True, 3)])
def test_wrong_sizes_of_a_cost(wrong):
    with pytest.raises(errors.ArgumentError, match=r"cost.*[xw]\.shape\[[01]\]"):
        cost(layer, (2, 3), (3, 4)).at(*wrong)


def test_costs_as_text():
    text = str(cost(layer, (2, 3), (3, 4))).splitlines()
    assert text[0].split() == ["kernel", "line", "operations", "special", "reads", "writes"]
    assert "2*n*m*k" in text[1] and "test_lowering.py" in text[1], "the dearest first, with its line"
    assert text[-3].startswith("in all") and text[-2].startswith("bytes read")
    assert text[-1] == "where n = x.shape[0], m = x.shape[1], k = w.shape[1]"
    many = str(cost(lambda x: [hnp.sort(x * k) for k in range(2, 20)], (5,)))
    assert "more)" in many and "comparisons" in many


def test_costs_depend_neither_on_chunks_nor_on_tiles():
    found = cost(lambda x, w: hnp.sum(x @ w), (2, 3), (3, 4))
    assert repr(found.operations) == "2*n*m*k + n*k"


@pytest.mark.skipif(find_toolchain() is None, reason="there is no compiled program")
def test_what_was_shown_is_not_lowered_again(monkeypatch):
    """`f.lower(x)` and then `f(x)` go through the passes once; another function, or another target, does not."""
    calls = []
    original = lowering.lower
    monkeypatch.setattr(lowering, "lower", lambda *a: calls.append(a) or original(*a))
    f, x = harp.jit(lambda x: hnp.sin(x) * 12345.5 + 1), np.ones(3)
    assert f.lower(x).loops
    np.testing.assert_allclose(np.asarray(f(x)), np.sin(x) * 12345.5 + 1)
    assert len(calls) == 1
    g = harp.jit(lambda x: hnp.sin(x) * 54321.5 + 1)
    np.testing.assert_allclose(np.asarray(g(x)), np.sin(x) * 54321.5 + 1)
    assert len(calls) == 2


def test_loops_that_break_an_invariant_run_as_they_were_built(monkeypatch, tmp_path):
    """A bug in a pass that makes loops fast costs speed, and not the result; who looks for such bugs gets the error."""
    raised = []

    def broken(state):
        if not state.fast:
            return state
        raised.append(state)
        raise errors.VerificationError("i5 is used where no loop binds it")

    passes = [attrs.evolve(p, run=broken) if p.name == "rewrite nests" else p for p in pipeline.PASSES]
    monkeypatch.setattr(pipeline, "PASSES", tuple(passes))
    monkeypatch.setenv("HARP_CACHE_DIR", str(tmp_path))  # an earlier run of the tests may have kept the program
    product = lambda x, w: hnp.exp(-x @ w)  # of no other test, or the program would be there
    x, w = np.arange(12, dtype=F32).reshape(3, 4) / 12, np.ones((4, 50), F32)
    with pytest.raises(errors.VerificationError, match="i5"):
        harp.jit(product)(x, w)
    assert raised
    monkeypatch.setattr(settings, "verify", 0)
    f = harp.jit(product)
    with pytest.warns(RuntimeWarning, match=r"i5 is used.*report it") as caught:
        found = f(x, w)
    assert caught[0].filename == __file__
    np.testing.assert_allclose(found, np.exp(-x @ w), rtol=1e-5)
    with pytest.warns(RuntimeWarning, match="i5 is used"):
        assert "parallel" not in f.lower(x, w).loops
