"""The text, the picture and the digest of graphs: the same for the same program, in every process."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np

import harp.numpy as hnp
from harp.trace.graph.graph import Graph, digest
from harp.trace.graph.node import MapReduce, fresh_input
from harp.trace.index.polynomial import Symbol, of
from harp.trace.scalar.dtypes import f32, f64
from harp.trace.scalar.expr import Operand, apply
from harp.trace.scalar.ops import Op
from harp.trace.sizes.signature import by_appearance, canonical, sizes_of
from harp.trace.tracer import trace

SCRIPT = """
import numpy as np
import harp.numpy as hnp
from harp.trace.graph.graph import digest
from harp.trace.sizes.signature import canonical
from harp.trace.tracer import trace

def f(x, w, b):
    h = hnp.tanh(x @ w + b)
    return h[1:] - h[:-1], hnp.concatenate([h, x], axis=1).reshape(-1), h[:, ::-1].max(axis=0)

for _ in range({shift}):  # symbols and inputs of this process get other numbers
    trace(lambda x: x + 1, np.zeros((2, 2)))
graph = canonical(trace(f, np.zeros((4, 3)), np.ones((3, 5)), np.ones(5)))
print(graph, graph.to_dot(), digest(graph).hex())
"""


def test_text_does_not_depend_on_the_process():
    texts = set()
    for seed, shift in (("0", 0), ("1", 3), ("7", 11)):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT.format(shift=shift)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        texts.add(done.stdout)
    assert len(texts) == 1


def test_digest_does_not_depend_on_names():
    def f(first, second):
        return hnp.exp(first) @ second

    def g(left, right):
        return hnp.exp(left) @ right

    one = trace(f, f32["n", "k"], f32["k", "m"])
    two = trace(g, f32["a", "b"], f32["b", "c"])
    three = trace(f, np.zeros((4, 3), np.float32), np.zeros((3, 2), np.float32))
    assert digest(canonical(one)) == digest(canonical(two)) == digest(canonical(three))
    assert repr(one) != repr(two)


def outer(symbols):
    a, b = map(of, symbols)
    x, y = fresh_input("x", (a, b), f64), fresh_input("y", (b, a), f64)
    both = MapReduce((a, b), (x,), apply(Op.EXP, Operand(f64, 0)))
    return Graph((x, y), (both, MapReduce((b, a), (y,), apply(Op.SIN, Operand(f64, 0)))))


def test_digest_does_not_depend_on_numbers():
    forward = outer((Symbol(1, 0, "n"), Symbol(1, 1, "m")))
    backward = outer((Symbol(2, 9, "n"), Symbol(2, 4, "m")))
    assert by_appearance(backward) == (Symbol(2, 9, "n"), Symbol(2, 4, "m"))
    assert digest(canonical(forward)) == digest(canonical(backward))


def test_digest_sees_every_difference():
    functions = [
        lambda x: x + 1.0,
        lambda x: x + 2.0,
        lambda x: x * 1.5,
        lambda x: x + np.nan,
        lambda x: x + 0.0,
        lambda x: -x,
        lambda x: x.sum(axis=0),
        lambda x: x.sum(axis=1),
        lambda x: x.max(axis=1),
        lambda x: x[1:],
        lambda x: x[::-1],
        lambda x: (x, x),
        lambda x: x.T,
        lambda x: x + np.ones(3),
    ]
    texts = [digest(canonical(trace(f, np.zeros((4, 3))))) for f in functions]
    assert len(set(texts)) == len(texts)
    assert digest(canonical(trace(functions[0], np.zeros((4, 3), np.float32)))) not in texts


def test_canonical_is_canonical():
    graph = canonical(trace(lambda x, y: x @ y, np.zeros((2, 3)), np.zeros((3, 4))))
    assert [i.name for i in graph.inputs] == ["a0", "a1"]
    assert [s.name for s in sizes_of(graph)] == ["s0", "s1", "s2"]
    again = canonical(graph)
    assert repr(again) == repr(graph)


def test_text():
    graph = trace(lambda x, y: (hnp.exp(x) + y).sum(axis=1), f32["n", "m"], f32["m"])
    assert repr(graph).splitlines()[0] == "%0 = f32[n, m] input x"
    assert "sum over [1] of [n, m]" in repr(graph)
    assert "view" in repr(graph) and repr(graph).splitlines()[-1].startswith("return %")
    padded = trace(lambda x: hnp.concatenate([x, x]), f32["n"])
    assert " where " in repr(padded) and " else " in repr(padded)


def test_unused_inputs_are_listed():
    graph = trace(lambda x, y: x, f32["n"], f32["m"])
    assert repr(graph) == "%0 = f32[n] input x\n%1 = f32[m] input y\nreturn %0"
    assert graph.nodes() == [graph.inputs[0]]


def test_captured_arrays_are_in_order_of_use():
    first, second = np.ones(3), np.zeros(3)
    graph = trace(lambda x: (x + first) * second + first, np.zeros(3))
    assert [c.captured.array[0] for c in graph.captured] == [1.0, 0.0]


def test_picture():
    dot = trace(lambda x: hnp.exp(x).sum(), f32["n"]).to_dot()
    assert dot.startswith("digraph harp {") and dot.endswith("}")
    assert re.findall(r"^  (n\d -> n\d);$", dot, re.MULTILINE) == ["n0 -> n1", "n1 -> n2"]
    assert dot.count("{") == dot.count("}") and dot.count('"') % 2 == 0 and "peripheries=2" in dot
