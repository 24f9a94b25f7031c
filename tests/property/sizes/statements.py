"""The rows that random functions are made of: source templates with holes.

A hole `{x:12f}` takes a value from those that the function has so far; the letter says what it takes:

- x y z: arrays. After the colon: ranks that fit (none: any), and marks: `f` floats, `i` integers, `b` bools, `n`
  numbers of either kind, `e` values that are exact, so that a comparison of them is no matter of rounding;
- n m k: expressions of sizes;
- c: a small number, also negative; p: a small positive number;
- j: an axis of the array that is named after the colon; w: one of the words after the colon; q: a condition;
- s: a slice;
- E: an expression of another row; L: one that is linear in the variable p, of the array named after the colon.

The same letter is the same value wherever it stands in a row, except for E, L, c, q, s and w.
"""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A template. `cost`: how the digits grow: 0 they do not, 1 as in a product, 9 the result is rounded.

    A row that `grows` makes arrays much larger than those that it is given; few of them are used in a function.
    """

    text: str
    cost: int = 0
    grows: bool = False


EXPRESSIONS = {
    # elementwise, broadcasting
    "add": Row("{x:n} + {y:n}"),
    "subtract": Row("{x:n} - {y:n}"),
    "multiply": Row("{x:n} * {y:n}", 1),
    "maximum": Row("xp.maximum({x:n}, {y:n})"),
    "where": Row("xp.where({x:en} > 0, {y:n}, {z:n})"),
    "where sizes": Row("xp.where({x:en} > 0, {y:f}, {n} * 1.0)"),
    "compare": Row("{x:en} < {y:en}"),
    "logical": Row("xp.logical_and({x:b}, {y:b})"),
    "add size": Row("{x:n} + {n}"),
    "multiply size": Row("{x:f} * {n}", 1),
    "divide size": Row("{x:f} / {n}", 9),
    "power of size": Row("{x:f} * {n:a} ** 0.5", 9),
    "integers by size": Row("{x:i} // {n}"),
    "integers modulo size": Row("{x:i} % {n}"),
    "clip": Row("xp.clip({x:f}, -1.0, 1.0)"),
    "clip by sizes": Row("xp.clip(xp.arange({n}), {m}, {m} + {p})"),
    # reading
    "slice": Row("{x:123}[{s}]"),
    "slices": Row("{x:23}[{s}, {s}]"),
    "last slice": Row("{x:123}[..., {s}]"),
    "element": Row("{x:123}[{n}]"),
    "constant element": Row("{x:123}[{c}]"),
    "column": Row("{x:23}[:, {c}]"),
    "known elements": Row("{x:123}[xp.asarray([0, {c}])]"),
    "gather": Row("gather({x:123}, {y:0123ie})"),
    "gather half": Row("gather({x:123}, xp.arange({n}) // 2)"),
    "gather backwards": Row("gather({x:123}, {n} - 1 - xp.arange({n}))"),
    "gather modulo": Row("gather({x:123}, xp.arange({n}) % {p})"),
    "own element": Row("{x:2}[xp.arange({x}.shape[0]), xp.minimum(xp.arange({x}.shape[0]), {x}.shape[1] - 1)]"),
    "take": Row("xp.take({x:123}, xp.asarray([{c}, 0]), axis={j:x})"),
    "take along": Row("xp.take_along_axis({x:123e}, xp.argsort({x}, axis={j:x}, stable=True), axis={j:x})"),
    "window": Row("sum({x:123n}[i : i + {p}] for i in range(2))"),
    "shifted": Row("{x:123n}[1:] - {x}[:-1]"),
    "shifted by size": Row("{x:123n}[{n}:] + {x}[: {x}.shape[0] - {n}]"),
    "edges": Row("{x:1n}[0] + {x}[-1]"),
    "new axis": Row("{x:12}[:, None]"),
    "mask columns": Row("xp.where(xp.arange({x:123f}.shape[-1]) < {n}, {x}, 0.0)"),
    # changing
    "put element": Row("put({x:123f}, {c}, {y:0f})"),
    "put at size": Row("put({x:123f}, {n}, 2.0)"),
    "put slice": Row("put({x:123f}, slice({c}, {n}), {y:f})"),
    "put strided": Row("put({x:123f}, slice(None, None, {w:2|-1|-2|3}), {c})"),
    "add slice": Row("add({x:123f}, slice({n}, None), {y:f})"),
    "put pair": Row("put({x:23f}, ({c}, {n}), 1.0)"),
    "scatter": Row("scatter({x:1f}, {y:1ie}, 1.0)"),
    "scatter half": Row("scatter({x:1f}, xp.arange({n}) // 2, xp.arange({n}) * 1.0)"),
    # shapes
    "merge": Row("{x}.reshape(-1)"),
    "reshape pair": Row("{x}.reshape({n}, {m})"),
    "reshape split": Row("{x}.reshape(-1, {p})"),
    "reshape halves": Row("{x:1}.reshape({x}.shape[0] // 2, 2)"),
    "reshape size": Row("{x}.reshape({n:a}, -1)"),
    "reshape inner": Row("{x:2}.reshape({x}.shape[0], {p}, -1)"),
    "reshape swapped": Row("{x:2}.reshape({x}.shape[1], {x}.shape[0])"),
    "reshape rows": Row("{x:3}.reshape({x}.shape[0] * {x}.shape[1], {x}.shape[2])"),
    "reshape as": Row("{x}.reshape({y}.shape)"),
    "reshape ones": Row("{x}.reshape(1, -1, 1)"),
    "reshape scalar": Row("{x}.reshape(())"),
    "merge and add": Row("{x:n}.reshape(-1) + {y:n}"),
    "broadcast as": Row("xp.broadcast_to({x}, {y}.shape)"),
    "broadcast pair": Row("xp.broadcast_to({x:012}, ({n}, {m}))", grows=True),
    "broadcast more": Row("xp.broadcast_to({x:012}, ({p}, *{x}.shape))", grows=True),
    "broadcast both": Row("xp.broadcast_arrays({x}, {y})[{w:0|1}]"),
    "expand": Row("xp.expand_dims({x:012}, axis={w:0|-1})"),
    "squeeze": Row("xp.squeeze({x:123}, axis={j:x})"),
    "transpose": Row("xp.transpose({x})"),
    "move axis": Row("xp.moveaxis({x:23}, 0, -1)"),
    "swap axes": Row("xp.swapaxes({x:23}, 0, 1)"),
    "flip": Row("xp.flip({x:123}, axis={j:x})"),
    "roll": Row("xp.roll({x:123}, {n}, axis={j:x})"),
    "roll all": Row("xp.roll({x:123}, {c})"),
    "rot90": Row("xp.rot90({x:2}, {c})"),
    "atleast 2d": Row("xp.atleast_2d({x:012})"),
    # joining, splitting
    "concatenate": Row("xp.concatenate([{x:123}, {y:123}])"),
    "concatenate axis": Row("xp.concatenate([{x:123}, {y:123}], axis={j:x})"),
    "concatenate flat": Row("xp.concatenate([{x:n}.reshape(-1), {y:n}.reshape(-1)])"),
    "concatenate shifted": Row("xp.concatenate([{x:123}[1:], {x}[:1]])"),
    "stack": Row("xp.stack([{x:012n}, {y:012n}], axis={w:0|-1})"),
    "stack slices": Row("xp.stack([{x:12}[1:], {x}[:-1]])"),
    "column stack": Row("xp.column_stack([{x:12n}, {y:12n}])"),
    "hstack": Row("xp.hstack([{x:n}, {y:n}])"),
    "vstack": Row("xp.vstack([{x:12n}, {y:12n}])"),
    "append": Row("xp.append({x:n}, {y:n})"),
    "block": Row("xp.block([[{x:2f}, {y:2f}], [{x}, {y}]])", grows=True),
    "split": Row("xp.split({x:123}, {p})[-1]"),
    "split at": Row("xp.split({x:123}, [{p}])[{w:0|1}]"),
    "array split": Row("xp.array_split({x:123}, {p})[0]"),
    "unstack": Row("sum(row for row in {x:123n})"),
    "tile": Row("xp.tile({x:12}, {n})", grows=True),
    "tile pair": Row("xp.tile({x:12}, ({c}, {p}))", grows=True),
    "repeat": Row("xp.repeat({x:123}, {p}, axis={j:x})"),
    "repeat size": Row("xp.repeat({x:1}, {n})", grows=True),
    "pad": Row("xp.pad({x:1n}, ({p}, {p}))"),
    "pad size": Row("xp.pad({x:1n}, ({n}, 1))"),
    "pad mode": Row("xp.pad({x:1n}, ({w:0|1|2}, 1), mode={w:'edge'|'reflect'|'symmetric'|'wrap'})"),
    "pad matrix": Row("xp.pad({x:2n}, ((0, {p}), (1, 0)), mode={w:'constant'|'edge'})"),
    # creation
    "arange": Row("xp.arange({n})"),
    "arange between": Row("xp.arange({n}, {m})"),
    "arange step": Row("xp.arange({n}, {m}, {w:2|3|-1|-2})"),
    "arange floats": Row("xp.arange({n}) * 0.5"),
    "zeros": Row("xp.zeros({n})"),
    "ones": Row("xp.ones(({n}, {m}))"),
    "full": Row("xp.full(({n}, {p}), 2.5)"),
    "full size": Row("xp.full({p}, {n} * 1.0)"),
    "like": Row("xp.ones_like({x:f})"),
    "eye": Row("xp.eye({n})"),
    "eye pair": Row("xp.eye({n}, {m}, k={w:0|1|-1})"),
    "linspace": Row("xp.linspace(0.0, 1.0, {n})", 9),
    "linspace sizes": Row("xp.linspace({n} * 1.0, {m} * 1.0, {p})", 9),
    "tri": Row("xp.tri({n}, {m})"),
    "tril": Row("xp.tril({x:2}, {w:0|1|-1})"),
    "triu": Row("xp.triu({x:23}, {w:0|1|-1})"),
    "diag": Row("xp.diag({x:12})", grows=True),
    "diag off": Row("xp.diag({x:12}, {w:1|-1})", grows=True),
    "diagonal": Row("xp.diagonal({x:2}, {w:0|1|-1})"),
    "trace": Row("xp.trace({x:2n})"),
    "meshgrid": Row("xp.meshgrid({x:1}, {y:1})[{w:0|1}]", grows=True),
    "meshgrid of sizes": Row("xp.meshgrid(xp.arange({n}), xp.arange({m}), indexing='ij')[0]", grows=True),
    "vander": Row("xp.vander({x:1f}, 3)", 1),
    "indices": Row("xp.indices(({n}, {p}))[0]", grows=True),
    # products
    "einsum inner": Row("xp.einsum('i,i->', {x:1n}, {y:1n})", 1),
    "einsum matmul": Row("xp.einsum('ij,jk->ik', {x:2n}, {y:2n})", 1),
    "einsum transposed": Row("xp.einsum('ij,kj->ik', {x:2n}, {y:2n})", 1),
    "einsum trace": Row("xp.einsum('ii->', {x:2n})"),
    "einsum diagonal": Row("xp.einsum('ii->i', {x:2n})"),
    "einsum product": Row("xp.einsum('ij,ij->i', {x:2n}, {y:2n})", 1),
    "einsum vector": Row("xp.einsum('ij,j->i', {x:2n}, {y:1n})", 1),
    "einsum outer": Row("xp.einsum('i,j->ij', {x:1n}, {y:1n})", 1, grows=True),
    "einsum batch": Row("xp.einsum('bij,bjk->bik', {x:3n}, {y:3n})", 1),
    "matmul": Row("{x:123n} @ {y:123n}", 1),
    "matmul transposed": Row("{x:2n} @ {x}.T", 1),
    "dot": Row("xp.dot({x:12n}, {y:12n})", 1),
    "outer": Row("xp.outer({x:n}, {y:n})", 1, grows=True),
    "kron": Row("xp.kron({x:12n}, {y:12n})", 1, grows=True),
    "tensordot": Row("xp.tensordot({x:2n}, {y:2n}, axes=1)", 1),
    "inner": Row("xp.inner({x:12n}, {y:12n})", 1),
    "convolve": Row("xp.convolve({x:1f}, {y:1f}, mode={w:'full'|'same'|'valid'})", 1),
    "trapezoid": Row("xp.trapezoid({x:1f})"),
    "gradient": Row("xp.gradient({x:1f})"),
    # reductions, running
    "sum": Row("xp.sum({x:n})"),
    "sum axis": Row("xp.sum({x:123n}, axis={j:x})"),
    "sum keep": Row("xp.sum({x:123n}, axis={j:x}, keepdims=True)"),
    "sum pair": Row("xp.sum({x:23n}, axis=(0, -1))"),
    "max": Row("xp.max({x:123n})"),
    "max axis": Row("xp.max({x:123n}, axis={j:x})"),
    "min axis": Row("xp.min({x:123n}, axis={j:x})"),
    "argmax": Row("xp.argmax({x:123en})"),
    "argmin axis": Row("xp.argmin({x:123en}, axis={j:x})"),
    "prod": Row("xp.prod({x:123f}, axis={j:x})", 9),
    "mean": Row("xp.mean({x:123f})", 9),
    "mean axis": Row("xp.mean({x:123f}, axis={j:x})", 9),
    "mean by size": Row("xp.sum({x:123f}, axis=0) / {x}.shape[0]", 9),
    "any": Row("xp.any({x:123b}, axis={j:x})"),
    "all": Row("xp.all({x:123b})"),
    "count": Row("xp.count_nonzero({x:en})"),
    "cumsum": Row("xp.cumsum({x:123n}, axis={j:x})"),
    "cumsum flat": Row("xp.cumsum({x:1n})"),
    "diff": Row("xp.diff({x:123n}, axis={j:x})"),
    "diff twice": Row("xp.diff({x:123n}, n=2)"),
    "ptp": Row("xp.ptp({x:123n}, axis=0)"),
    # sorting, searching
    "sort": Row("xp.sort({x:123n}, axis={j:x})"),
    "argsort": Row("xp.argsort({x:123en}, axis={j:x}, stable=True)"),
    "searchsorted": Row("xp.searchsorted(xp.sort({x:1en}), {y:en})"),
    "median": Row("xp.median({x:1f})", 9),
}

# Linear in p, so that the product of two has an exact gradient.
LINEAR = (
    "p",
    "p * {p}",
    "p.reshape(-1)",
    "p[1:]",
    "p[::-1]",
    "p[:{n}]",
    "p[{c}]",
    "p + {y:f}",
    "{y:f} * p",
    "xp.sum(p, axis=0)",
    "xp.concatenate([p, p])",
    "xp.cumsum(p, axis=0)",
    "xp.broadcast_to(p, ({p}, *p.shape))",
    "gather(p, xp.arange({n}) // 2)",
    "put(p, 0, 1.0)",
    "xp.pad(p.reshape(-1), (1, {p}))",
    "xp.where(xp.arange(p.shape[-1]) < {n}, p, 0.0)",
    "xp.transpose(p)",
    "xp.roll(p, {n})",
    "xp.diff(p, axis=0)",
    "p / ({n:a} + 1)",
)

# Whole statements; `v` is what they define.
STATEMENTS = {
    "if": "if {q}:\n    v = {E}\nelse:\n    v = {E}",
    "elif": "if {q}:\n    v = {E}\nelif {q}:\n    v = {E}\nelse:\n    v = {E}",
    "if expression": "v = {x} if {q} else {y}",
    "if adds": "v = {x:n}\nif {q}:\n    v = v + 1",
    "if size": "v = {n} if {q} else {m}",
    "while": "v, t = {x:123}, {n}\nwhile t > 1:\n    t, v = t // 2, v[1:]",
    "while length": "v = {x:1n}\nwhile v.shape[0] > 2:\n    v = v[::2] + 1",
    "while halves": "v = {x:1n}\nwhile v.shape[0] % 2 == 0 and v.shape[0] > 0:\n    v = v.reshape(-1, 2)[:, 0]",
    "for": "v = {x:n}\nfor i in range(min({n}, 4)):\n    v = v + i",
    "for rows": "v = 0\nfor row in {x:123n}:\n    v = v * 2 + row",
    "for elements": "v = 0.0\nfor i in range({x:1f}.shape[0]):\n    v = v + {x}[i] * i",
    "for slices": "v = {x:1n}\nfor i in range(1, 3):\n    v = v[:-1] + {x}[i:]",
    "for shapes": "v = 0\nfor d in {x}.shape:\n    v = v * 2 + d",
    "try any": "try:\n    v = {E}\nexcept Exception:\n    v = xp.zeros(3)",
    "try value": "try:\n    v = {E}\nexcept ValueError:\n    v = {x}",
    "try index": "try:\n    v = {E}\nexcept IndexError:\n    v = xp.zeros({n})",
    "try arithmetic": "try:\n    v = {n} // {m}\nexcept ZeroDivisionError:\n    v = {k}",
    "try else": "try:\n    t = {E}\nexcept Exception:\n    v = {x}\nelse:\n    v = t",
    "nested jit": "v = jit(lambda p: p + {n})({x:n})",
    "nested jit of two": "v = jit(lambda p, q: p[:{n}] + q)({x:123n}, {y:n})",
    "nested jit branches": "v = jit(lambda p: p * 2 if p.shape[0] == {n} else p[:1])({x:123n})",
    "nested jit twice": "g = jit(lambda p: p[1:] - p[:-1])\nv = g(g({x:123n}))",
    "grad": "v = grad(lambda p: xp.sum({L:x} * {L:x}), {x:123fe})",
    "grad linear": "v = grad(lambda p: xp.sum({L:x}), {x:123fe})",
    "grad branches": "v = grad(lambda p: xp.sum({L:x}) if {q} else xp.sum(p * p), {x:123fe})",
    "jit of grad": "v = jit(lambda t: grad(lambda p: xp.sum({L:x} * {L:x}), t))({x:123fe})",
    "size": "v = {n}",
    "size of shape": "v = {x:123}.shape[{c}]",
    "divmod": "v = divmod({n}, {p})[{w:0|1}]",
    "size as array": "v = xp.asarray({n})",
    "sum of sizes": "v = sum({x}.shape)",
}

# Of sizes: what is asked, and what is computed. `a` is one that the function has; `c` and `p` are as above.
CONDITIONS = (
    *("{n} == {m}", "{n} != {m}", "{n} < {m}", "{n} >= {m}", "{n} == {c}", "{n} > {c}", "{n} <= {c}"),
    *("{n} == {m} == {c}", "{n} == {m} == {k}", "{c} < {n} <= {m}", "{n} % {p} == 0", "{n}", "not {n}"),
    *("{n} > {m} and {m} != {c}", "{n} == 1 or {m} == 1", "{n} in (1, 3)", "{n} * {m} == {c}", "{n} - {m} == {c}"),
    *("{x}.shape == {y}.shape", "{x}.ndim == {y}.ndim", "{x:123}.shape[0] == {y:123}.shape[-1]", "{x}.size == {p}"),
    *("{n} == 2.0", "{n} < 2.5", "{n} % 2 != {m} % 2", "max({n}, {m}) > {p}", "{n} == {m} and {m} == {k}"),
    *("{n} * {m} == 1", "{n} + {m} == 2", "{n} ** 2 == {m}", "bool({n})", "{n} // {p} == {m} // {p}"),
)
SIZES = (
    *("{a}",) * 8,
    *("{a} + {c}", "{a} - {c}", "{a} * {p}", "{a} // {p}", "{a} % {p}", "-{a}", "({a} + {a})", "{a} - {a}"),
    *("{a} * {a}", "{a} // {a}", "{a} % {a}", "abs({a} - {a})", "min({a}, {a})", "max({a}, {p})", "min({a}, {p})"),
    *("{a} ** 2", "({a} << 1)", "({a} >> 1)", "({a} & 1)", "divmod({a}, {p})[0]", "-{a} // {p}", "-{a} % {p}"),
    *("(-({a} // -2))", "({a} + 1) // 2", "{p} - {a}", "{p} * {a} + {c}", "{a} // -{p}", "abs({c} - {a})"),
)
SLICES = (
    *("1:", ":-1", "::-1", "::2", "1::2", "::-2", "{n}:", ":{n}", "{n}:{m}", "-{n}:", "{c}:", ":{c}", "{c}:{n}"),
    *("{n}::-1", ":{n}:2", "{c}:{c}", "{n}:{c}:-1", ":{n}:-1", "1:1 + {n}", "None:None:{n}"),
)
