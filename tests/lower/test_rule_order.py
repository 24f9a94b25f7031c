"""The order of the rules for loop nests: rules of one row may be exchanged, rows may not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import chain, pairwise

import numpy as np

import harp
import harp.numpy as hnp
from harp.lower.loopir.loops import Kernel
from harp.lower.loopir.nests import FreshLoops
from harp.lower.loopir.text import kernel_text
from harp.lower.pipeline import PASSES, RULES, Lowered
from harp.lower.rewrite.loop_primitives import Context, Rule, everywhere
from harp.lower.schedule.schedule import Schedule
from harp.lower.target import Target

TARGET = Target(vector_bytes=32, fma=True, cores=2)


def ones(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.ones(shape, dtype)


# Among them they have a nest for each rule.
PROGRAMS = {
    "elementwise": (lambda x: x + 1, ones(3, 4)),
    "rows": (lambda x, b: x + b, ones(3, 4), ones(4)),
    "sum of columns": (lambda x: x.sum(0), ones(3, 4)),
    "sum of rows": (lambda x: x.sum(1), ones(3, 4)),
    "sum of some axes": (lambda x: x.sum((0, 2)), ones(3, 4, 5)),
    "elements of rows": (lambda x: hnp.cos(x[:, :, 0].sum(1)), ones(3, 4, 5)),
    "softmax": (lambda x: hnp.exp(x - x.max(1, keepdims=True)) / hnp.exp(x).sum(1, keepdims=True), ones(3, 4)),
    "largest of rows": (lambda x: hnp.argmax(x, 1), ones(3, 4)),
    "least of columns": (lambda x: x.min(0), ones(3, 4)),
    "product": (lambda x, w: x @ w, ones(3, 4), ones(4, 5)),
    "product by columns": (lambda x, w: x @ w.T, ones(3, 4), ones(5, 4)),
    "matrix and vector": (lambda x, w: x @ w, ones(3, 4), ones(4)),
    "products of a batch": (lambda x, w: x @ w, ones(2, 3, 4), ones(2, 4, 5)),
    "distances": (lambda x, y: ((x[:, None] - y) ** 2).sum(-1), ones(3, 4), ones(5, 4)),
    "running sum": (lambda x: hnp.cumsum(x, 1), ones(3, 4)),
    "transpose": (lambda x, y: x.T + y, ones(3, 4), ones(4, 3)),
    "axes in another order": (lambda x: hnp.transpose(x, (2, 0, 1)) * 2, ones(2, 3, 4)),
    "matrices of a batch": (lambda x, w: x * w[:, None, :], ones(7, 3, 3), ones(7, 3)),
    "sum of the middle axis, turned": (lambda x: x.transpose(2, 1, 0).sum(1), ones(3, 4, 5)),
    "halves": (lambda x: x * 2 + 1, ones(3, 4, dtype=np.float16)),
    "search": (lambda key: harp.random.gamma(key, 2.0, (5,)), np.zeros(2, np.uint32)),
    "filter": (lambda x, k: hnp.convolve(x, k), ones(8), ones(3)),
}
# And these, of sizes that are constants.
OF_SIZES = {
    "three terms": (lambda x, y: x.sum(0) + y.T, harp.f32[3, "n", "m"], harp.f32["m", "n"]),
    "a small matrix": (lambda x, y: x * y[:, None], harp.f32[3, 4], harp.f32[3]),
}


@cache
def kernels() -> tuple[Kernel, ...]:
    """The kernels as the rules find them, equal ones once."""
    found: dict[str, Kernel] = {}
    graphs = [harp.jit(function).lower(*arguments).graph for function, *arguments in PROGRAMS.values()]
    for function, *signature in OF_SIZES.values():
        arguments = [ones(*(size if isinstance(size, int) else 5 for size in s.shape)) for s in signature]
        graphs.append(harp.jit(function, signature=tuple(signature)).lower(*arguments).graph)
    for graph in graphs:
        state = Lowered(graph, TARGET, graph, Schedule(graph, ()))
        for step in PASSES:
            if step.name == "rewrite nests":
                break
            state = step.run(state)
        found |= {kernel_text(kernel): kernel for kernel in state.built.kernels}
    return tuple(found.values())


def rewritten(rows: Sequence[Sequence[Rule]]) -> list[str]:
    texts = []
    for kernel in kernels():
        context, body = Context(TARGET, FreshLoops(kernel)), kernel.body
        for rule in chain.from_iterable(rows):
            body = everywhere(context, rule, body)
        texts.append(kernel_text(kernel.with_body(body)))
    return texts


def test_rules_of_one_row_may_be_exchanged():
    assert rewritten([row[::-1] for row in RULES]) == rewritten(RULES)


def test_rows_may_not_be_exchanged():
    whole, free = rewritten(RULES), []
    for number, (row, following) in enumerate(pairwise(RULES)):
        if rewritten((*RULES[:number], following, row, *RULES[number + 2 :])) == whole:
            free.append((row[0].__name__, following[0].__name__))
    assert not free


def test_each_rule_fits_a_nest():
    unused = set(chain.from_iterable(RULES))
    for kernel in kernels():
        context, body = Context(TARGET, FreshLoops(kernel)), kernel.body
        for rule in chain.from_iterable(RULES):
            after = everywhere(context, rule, body)
            unused -= {rule} if after is not body else set()
            body = after
    assert not unused, [rule.__name__ for rule in unused]
