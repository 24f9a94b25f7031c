"""Sums of products: which loop nests they are, over rows and columns, and which of them are fused multiply-adds.

    for i, j { acc = 0; for k: acc = fma(a[i, k], b[k, j], acc); out[i, j] = f(acc) }

Either operand is any value without the other one's loops. Products of integers are these of arrays of 8 bits, summed in
32 bits; `acc += a[i, k]*b[k, j]` is what is written there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

import attrs

from harp.lower.loopir.loops import (
    MEMORY,
    Alloc,
    Buffer,
    For,
    If,
    Kernel,
    Load,
    Nest,
    Seq,
    Space,
    Stmt,
    Store,
    flat,
    walk,
)
from harp.lower.loopir.nests import accumulation, accumulations, is_sequential, rebuilt, sequence, stride
from harp.trace.index.polynomial import Index, Loop, loops_in, split_linear
from harp.trace.scalar.dtypes import DType, i8, i32, integer_limits, u8
from harp.trace.scalar.expr import Apply, Const, Expr, Position, apply
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Op, Reduce

_ARRAYS = (*MEMORY, Space.THREAD)


@attrs.frozen
class Product:
    """One accumulation: acc = fma(a, b, acc) over `loops`, where only `b` moves with the columns."""

    acc: Buffer
    loops: tuple[Loop, ...]
    a: Expr
    b: Expr


@attrs.frozen
class Match:
    """Products over the same rows and columns; `body` is what is computed of their sums."""

    outer: tuple[For, ...]
    row: Loop
    column: Loop
    products: tuple[Product, ...]
    body: Stmt


def fused_sums(s: Stmt) -> Stmt:
    """A float sum of products is one chain of fused multiply-adds: every schedule of it rounds alike.

    acc += a*b  ->  acc = fma(a, b, acc)
    """
    if not isinstance(s, Store):
        return rebuilt(s, fused_sums)
    value, acc = s.value, s.buffer
    is_product = isinstance(value, Apply) and value.op is Op.MUL and value.dtype.is_float
    if s.reduce is not Reduce.SUM or acc.space is not Space.REG or not is_product:
        return s
    return Store(acc, s.index, apply(Op.FMA, *value.args, Load(acc, s.index)))


def is_contraction(s: Stmt) -> bool:
    """Whether the rule fits the statement."""
    return match(s) is not None


def match(s: Stmt) -> Match | None:
    """The products that a nest is, if it is that."""
    if not isinstance(s, Nest) or isinstance(s.body, Nest) or any(map(is_sequential, walk(s))):
        return None
    heads = [h for h in s.heads if isinstance(h, For)]
    column = heads[-1].loop
    own = {part.buffer for part in walk(s.body) if isinstance(part, Alloc)}
    products = [_product(loops, store, column, own) for loops, store in accumulations(s.body)]
    known = tuple(p for p in products if p is not None)
    if not known or len(known) < len(products) or not all(_starts_at_zero(s.body, p.acc) for p in known):
        return None
    rows = [h.loop for h in heads[:-1] if all(_is_row(h.loop, p) for p in known)]
    if not rows or any(_reaches(p, (rows[-1], column)) for p in known):
        return None
    outer = tuple(h for h in heads[:-1] if h.loop is not rows[-1])
    return Match(outer, rows[-1], column, known, _without(s.body, {p.acc for p in known}))


def _product(loops: Sequence[For], store: Store, column: Loop, own: Set[Buffer]) -> Product | None:
    value = store.value
    if isinstance(value, Apply) and value.op is Op.FMA and value.dtype.is_float and store.reduce is None:
        a, b, _ = value.args
    elif isinstance(value, Apply) and value.op is Op.MUL and value.dtype is i32 and store.reduce is Reduce.SUM:
        a, b = value.args
        if narrow(a) is a or narrow(b) is b or not (is_direct(a) and is_direct(b)):
            return None
    else:
        return None
    if column in moving(a):
        a, b = b, a
    inner = tuple(h.loop for h in loops)
    fits = column in moving(b) and column not in moving(a) and {*inner} & moving(a) and {*inner} & moving(b)
    if not fits or not (_is_there(a, own) and _is_there(b, own)):
        return None
    if not is_direct(a) and (len(inner) > 1 or inner[0].extent.constant == 0):
        return None
    return Product(store.buffer, inner, a, b)


def moving(e: Expr) -> set[Loop]:
    """The loops that a value depends on."""
    found: set[Loop] = set()
    for part in walk_expr((e,)):
        indices: tuple[Index, ...] = ()
        if isinstance(part, Load):
            indices = (*part.index, *part.conditions)
        elif isinstance(part, Position):
            indices = (part.index,)
        found.update(loop for p in indices for loop in loops_in(p))
    return found


def _is_row(loop: Loop, product: Product) -> bool:
    return loop in moving(product.a) and loop not in moving(product.b)


def _reaches(product: Product, loops: tuple[Loop, Loop]) -> bool:
    """Whether how far the product's loops run depends on the row or the column."""
    return any(loop in loops_in(k.extent) for k in product.loops for loop in loops)


def _is_there(e: Expr, own: Set[Buffer]) -> bool:
    """Whether it is of arrays that are there before the loops, and not of variables."""
    loaded = (part.buffer for part in walk_expr((e,)) if isinstance(part, Load))
    return all(buffer.space in _ARRAYS and buffer not in own for buffer in loaded)


def panel_vectors(dtype: DType) -> int:
    """How many vectors of columns a panel has: of integers more, for it packs both factors."""
    return 8 if dtype is i32 else 2


def narrow(e: Expr) -> Expr:
    """The integer of 8 bits that a value is in more bits; other values as they are."""
    inner = e
    while isinstance(inner, Apply) and inner.op is Op.CAST and _holds(inner.dtype, inner.args[0].dtype):
        inner = inner.args[0]
    return inner if inner.dtype in (i8, u8) else e


def _holds(wide: DType, dtype: DType) -> bool:
    """Whether an integer dtype has all numbers of another one."""
    if not (wide.is_integer and dtype.is_integer):
        return False
    limits, inside = integer_limits(wide), integer_limits(dtype)
    return limits.min <= inside.min and inside.max <= limits.max


def is_direct(a: Expr) -> bool:
    """Whether a backend can read the operand where it is, by strides: of its axes, or of axes that were merged."""
    a = narrow(a)
    if not isinstance(a, Load) or a.conditions:
        return False
    whole = flat(a.buffer, a.index)
    places = a.index if whole is None else (whole,)
    return all(split_linear(p, loop) is not None for p in places for loop in loops_in(p))


def moves_by_one(e: Expr, loop: Loop) -> bool:
    """Whether what a value loads lies along memory with a loop, or is the same for all of it."""
    return all(stride(x, loop) in (0, 1) for x in walk_expr((e,)) if isinstance(x, Load))


def _starts_at_zero(body: Stmt, acc: Buffer) -> bool:
    """Whether the only other store to the variable sets it to zero."""
    stores = [s for s in _stores(body) if s.buffer is acc]
    first = stores[0].value if stores else None
    return len(stores) == 2 and isinstance(first, Const) and not first.value and stores[0].reduce is None


def _stores(s: Stmt) -> Iterator[Store]:
    if isinstance(s, Store):
        yield s
    elif isinstance(s, Seq):
        for part in s.parts:
            yield from _stores(part)
    elif isinstance(s, If):
        yield from _stores(s.yes)
        if s.no is not None:
            yield from _stores(s.no)
    elif isinstance(s, (Alloc, Nest)):
        yield from _stores(s.body)


def _without(s: Stmt, accs: set[Buffer]) -> Stmt:
    """The statement without these variables, and without what computes them."""
    if isinstance(s, Alloc) and s.buffer in accs:
        return _without(s.body, accs)
    if isinstance(s, Seq):
        return sequence(_without(part, accs) for part in s.parts if not _computes(part, accs))
    return rebuilt(s, lambda part: _without(part, accs))


def _computes(s: Stmt, accs: set[Buffer]) -> bool:
    found = accumulation(s)
    store = found[1] if found else s
    return isinstance(store, Store) and store.buffer in accs


def multiply_adds(kernel: Kernel) -> Kernel:
    """Sums of products of complex values are fused multiply-adds, in every loop.

        add(mul(a, b), c)       ->  fma(a, b, c)
        add(c, neg(mul(a, b)))  ->  fma(neg(a), b, c)

    gcc 12 fuses them in vectors (vfmaddsub), whatever -ffp-contract says, and not in the rest of a loop; so they are
    fused here, and all versions of a loop round alike. Sums over loops are fused where they are written
    (`harp.lower.schedule.build`).

    Real values are left alone. A value that several kernels need is computed in each of them, rounded in the same way:
    if one of them fused what another one rounds, z - max(z) would not be 0, nor its square root a number.
    """
    return kernel.with_body(_statement(kernel.body))


def _statement(s: Stmt) -> Stmt:
    if isinstance(s, Store):
        return attrs.evolve(s, value=fused(s.value)) if s.value.dtype.is_complex else s
    return rebuilt(s, _statement)


def fused(value: Expr) -> Expr:
    """The value with fused multiply-adds, wherever a product is added."""
    new: dict[Expr, Expr] = {}
    for e in walk_expr((value,)):
        args = [new[a] for a in e.args]
        if not isinstance(e, Apply):
            new[e] = e
        elif e.op is Op.ADD and e.dtype.is_float and (found := [k for k, a in enumerate(args) if _is_product(a)]):
            new[e] = apply(Op.FMA, *_factors(args[found[0]]), args[1 - found[0]])
        else:
            new[e] = apply(e.op, *args, cast_to=e.dtype)
    return new[value]


def _is(op: Op, e: Expr) -> bool:
    return isinstance(e, Apply) and e.op is op


def _is_product(e: Expr) -> bool:
    """Whether it is a product, or the negative of one."""
    return _is(Op.MUL, e) or (_is(Op.NEG, e) and _is(Op.MUL, e.args[0]))


def _factors(e: Expr) -> tuple[Expr, Expr]:
    """Of a product, or of a product's negative."""
    if _is(Op.NEG, e):
        a, b = e.args[0].args
        return -a, b
    a, b = e.args
    return a, b
