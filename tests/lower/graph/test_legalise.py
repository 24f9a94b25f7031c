"""Complex numbers by parts and halves in float32: tables that are complete, what no backend has, what stays as it
is."""

from __future__ import annotations

import numpy as np
import pytest
from graphs import FUSED, SMALL

import harp
import harp.numpy as hnp
from harp.errors import VerificationError
from harp.lower.graph import complex as by_parts
from harp.lower.graph.legalise import legalise, verify_legalised
from harp.lower.pipeline import lower
from harp.trace.graph.graph import Graph
from harp.trace.graph.node import MapReduce
from harp.trace.scalar.dtypes import Kind, bf16, c64, c128, f16, f32
from harp.trace.scalar.expr import Operand, apply, evaluate
from harp.trace.scalar.ops import INFO, Op, Reduce
from harp.trace.sizes.signature import canonical
from harp.trace.tracer import trace


def test_every_complex_operation_has_a_row():
    defined = {op for op, info in INFO.items() if Kind.COMPLEX in info.kinds}
    assert set(by_parts.ROWS) == (defined | {Op.COMPLEX}) - {Op.CAST}


@pytest.mark.parametrize("op", sorted(by_parts.ROWS, key=lambda op: op.value), ids=lambda op: op.value)
@pytest.mark.parametrize("dtype", [c64, c128], ids=str)
def test_rows_compute_what_numpy_does(op, dtype):
    rng = np.random.default_rng(0)
    arity = INFO[op].arity
    arrays = [(rng.normal(size=40) + 1j * rng.normal(size=40)).astype(dtype.numpy) for _ in range(arity)]
    operands = [Operand(dtype, k) for k in range(arity)]
    if op is Op.COMPLEX:
        operands, arrays = [apply(Op.REAL, x) for x in operands], arrays
    if op is Op.SELECT:
        operands[0] = apply(Op.EQ, operands[0], operands[1])
        arrays[0][::2] = arrays[1][::2]
    e = apply(op, *operands)
    found, expected = (evaluate(x, lambda leaf: arrays[leaf.slot]) for x in (by_parts.split(e), e))
    assert found.dtype == expected.dtype == e.dtype.numpy
    np.testing.assert_allclose(found, expected, rtol=1e-5 if dtype is c64 else 1e-12, atol=1e-6 if dtype is c64 else 0)


def legalised(function, *signatures):
    graph = legalise(canonical(trace(function, *signatures)))
    verify_legalised(graph)
    return graph


def test_real_programs_stay_as_they_are():
    graph = canonical(trace(lambda x, y: hnp.sum(hnp.exp(x) @ y, axis=0), f32["n", "m"], f32["m", "k"]))
    assert legalise(graph).outputs == graph.outputs


def sums(graph: Graph):
    return [n for n in graph.nodes() if isinstance(n, MapReduce) and n.reduce is Reduce.SUM]


def test_a_complex_matrix_product_is_four_real_ones():
    graph = legalised(lambda x, y: x @ y, c64["n", "k"], c64["k", "m"])
    assert [n.dtype for n in sums(graph)] == [f32] * 4
    for target in (SMALL, FUSED):
        assert "panel" in lower(graph, target).loops or "local" in lower(graph, target).loops


def test_a_sum_of_products_reads_its_operands_once():
    graph = legalised(lambda x, y: hnp.sum(x * y), c64["n"], c64["n"])
    assert [n.dtype for n in sums(graph)] == [c64]
    graph = legalised(lambda x, y: x @ y, c64["n", "k"], c64["k"])
    assert [n.dtype for n in sums(graph)] == [c64]


@pytest.mark.parametrize("dtype", [f16, bf16], ids=str)
def test_halves_are_added_in_float32_and_rounded_once(dtype):
    graph = legalised(lambda x, y: (x * y).sum() + (x @ y), dtype["n"], dtype["n"])
    assert {n.dtype for n in sums(graph)} == {f32}
    assert graph.outputs[0].dtype is dtype
    copied = legalised(lambda x: x[::-1], dtype["n"])
    assert "cast" not in repr(copied)


def test_what_no_backend_has_is_found():
    for expr in (apply(Op.EXP, Operand(c64, 0)), Operand(f16, 0) + Operand(f16, 0)):
        (x,) = trace(lambda x: x, expr.args[0].dtype["n"]).inputs
        with pytest.raises(VerificationError, match=r"is left in"):
            verify_legalised(Graph((x,), (MapReduce(x.shape, (x,), expr),)))


def test_fused_multiply_adds_on_machines_that_have_them():
    graph = canonical(trace(lambda x, y: x * y + x, c64["n"], c64["n"]))
    assert "fma" in lower(graph, FUSED).loops and "fma" not in lower(graph, SMALL).loops
    function = harp.jit(lambda x, y: x * y + x)
    z = np.array([1 + 2j, 3 - 1j], "complex64")
    np.testing.assert_allclose(function(z, z[::-1]), z * z[::-1] + z)


def test_a_function_and_its_rule_share_loops():
    """The rule of `custom_vjp` calls the function on another line than the user: its loop ran twice."""

    @harp.custom_vjp
    def decayed(x):
        return harp.scan(lambda total, e: (0.5 * total + hnp.sin(e), None), 0.0, x)[0]

    def forward(x):
        y = decayed(x)
        return y, (x, y)

    decayed.defvjp(forward, lambda kept, ct: (ct * kept[1] * kept[0],))

    def loss(x):
        return decayed(x) ** 2

    gradient = harp.grad(loss)
    calls = [line for line in harp.jit(gradient).lower(np.ones(3)).loops.splitlines() if line.startswith("call")]
    assert sum("repeat" in call for call in calls) == 1, calls
