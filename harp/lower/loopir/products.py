"""Sums of products: which loop nests are matrix products, and which sums are fused multiply-adds.

    for i, j { acc = 0; for k: acc = fma(a[i, k], b[k, j], acc); out[i, j] = f(acc) }

Each operand is any value that does not contain the other one's loop. Products of integers are of arrays of 8 bits,
summed in 32 bits, with the body `acc += a[i, k]*b[k, j]`.
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
    offset,
    walk,
)
from harp.lower.loopir.nests import accumulation, accumulations, is_sequential, rebuilt, sequence, stride
from harp.trace.index.polynomial import Index, Loop, loops_in, split_linear
from harp.trace.scalar.dtypes import DType, i8, i32, integer_limits, u8
from harp.trace.scalar.expr import Apply, Const, Expr, Position, apply
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Op, Reduce

_ARRAYS = (*MEMORY, Space.THREAD)


@attrs.frozen(repr=False)
class Product:
    """One accumulation: acc = fma(a, b, acc) over `loops`, where only `b` moves with the columns. Where there is a
    `window`, one factor moves with its loops in place of the last of `loops`, which goes through their iterations: `b`,
    or `a` if that cannot be read in place."""

    acc: Buffer
    loops: tuple[Loop, ...]
    a: Expr
    b: Expr
    window: tuple[Loop, ...] = ()


@attrs.frozen(repr=False)
class Match:
    """Products over the same rows and columns; `body` is computed from their sums."""

    outer: tuple[For, ...]
    row: Loop
    column: Loop
    products: tuple[Product, ...]
    body: Stmt


def fused_sums(s: Stmt) -> Stmt:
    """Make a float sum of products a chain of fused multiply-adds, so that all schedules round alike.

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
    """Whether the statement is a sum of products."""
    return match(s) is not None


def match(s: Stmt) -> Match | None:
    """The products that a nest computes; None if it is no matrix product."""
    if not isinstance(s, Nest) or isinstance(s.body, Nest) or any(map(is_sequential, walk(s))):
        return None
    heads = [h for h in s.heads if isinstance(h, For)]
    column = heads[-1].loop
    variables = {part.buffer for part in walk(s.body) if isinstance(part, Alloc)}
    products = [_product(loops, store, column, variables) for loops, store in accumulations(s.body)]
    known = tuple(p for p in products if p is not None)
    if not known or len(known) < len(products) or not all(_starts_at_zero(s.body, p.acc) for p in known):
        return None
    rows = [h.loop for h in heads[:-1] if all(_is_row(h.loop, p) for p in known)]
    if not rows or any(_reaches(p, (rows[-1], column)) for p in known):
        return None
    outer = tuple(h for h in heads[:-1] if h.loop is not rows[-1])
    return Match(outer, rows[-1], column, known, _without(s.body, {p.acc for p in known}))


def _product(loops: Sequence[For], store: Store, column: Loop, variables: Set[Buffer]) -> Product | None:
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
    if not fits or not (_exists_before(a, variables) and _exists_before(b, variables)):
        return None
    is_copied = len(inner) == 1 or (value.dtype.is_float and lies_along(b, inner))
    if not is_direct(a) and not (is_copied and all(loop.extent.constant != 0 for loop in inner)):
        return None
    return Product(store.buffer, inner, a, b)


def moving(e: Expr) -> set[Loop]:
    """The loops that a value depends on."""
    loops_found: set[Loop] = set()
    for part in walk_expr((e,)):
        indices: tuple[Index, ...] = ()
        if isinstance(part, Load):
            indices = (*part.index, *part.conditions)
        elif isinstance(part, Position):
            indices = (part.index,)
        loops_found.update(loop for p in indices for loop in loops_in(p))
    return loops_found


def _is_row(loop: Loop, product: Product) -> bool:
    return loop in moving(product.a) and loop not in moving(product.b)


def _reaches(product: Product, loops: tuple[Loop, Loop]) -> bool:
    """Whether the extents of the product's loops depend on the row or the column."""
    return any(loop in loops_in(k.extent) for k in product.loops for loop in loops)


def _exists_before(e: Expr, variables: Set[Buffer]) -> bool:
    """Whether it is computed from arrays that exist before the loops, not from variables."""
    loaded = (part.buffer for part in walk_expr((e,)) if isinstance(part, Load))
    return all(buffer.space in _ARRAYS and buffer not in variables for buffer in loaded)


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
    """Whether a backend can read the operand in place, by strides along its axes, or along merged axes."""
    a = narrow(a)
    if not isinstance(a, Load) or a.conditions:
        return False
    whole = flat(a.buffer, a.index)
    places = a.index if whole is None else (whole,)
    return all(split_linear(p, loop) is not None for p in places for loop in loops_in(p))


def lies_along(e: Expr, loops: Sequence[Loop]) -> bool:
    """Whether a value is read in memory as by one loop that goes through the iterations of all of these."""
    if not isinstance(e, Load) or e.conditions:
        return False
    place, steps = offset(e.buffer, e.index), list[Index]()
    for loop in reversed(loops):
        parts = split_linear(place, loop)
        if parts is None or (steps and parts[0] is not steps[-1]):
            return False
        steps.append(parts[0] * loop.extent)
    return True


def moves_by_one(e: Expr, loop: Loop) -> bool:
    """Whether the loads of a value follow each other in memory along a loop, or do not move."""
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
    """The statement without these variables and their computation."""
    if isinstance(s, Alloc) and s.buffer in accs:
        return _without(s.body, accs)
    if isinstance(s, Seq):
        return sequence(_without(part, accs) for part in s.parts if not _computes(part, accs))
    return rebuilt(s, lambda part: _without(part, accs))


def _computes(s: Stmt, accs: set[Buffer]) -> bool:
    reduction = accumulation(s)
    store = reduction[1] if reduction else s
    return isinstance(store, Store) and store.buffer in accs


def multiply_adds(kernel: Kernel) -> Kernel:
    """Make sums of products of complex values fused multiply-adds, in all loops.

        add(mul(a, b), c)       ->  fma(a, b, c)
        add(c, neg(mul(a, b)))  ->  fma(neg(a), b, c)

    gcc 12 fuses them in vectors (vfmaddsub) whatever -ffp-contract says, but not in a loop's remainder; so they are
    fused here, and all versions of a loop round alike. Sums over loops are fused where they are made
    (`harp.lower.schedule.build`).

    Real values stay as they are. A value that several kernels need is computed in each of them, and must be rounded
    alike: if one of them fused where another one rounds, z - max(z) would not be 0, and its square root could be NaN.
    """
    return kernel.with_body(_statement(kernel.body))


def _statement(s: Stmt) -> Stmt:
    if isinstance(s, Store):
        return attrs.evolve(s, value=fused(s.value)) if s.value.dtype.is_complex else s
    return rebuilt(s, _statement)


def fused(value: Expr) -> Expr:
    """The value with fused multiply-adds wherever a product is added."""
    new: dict[Expr, Expr] = {}
    for e in walk_expr((value,)):
        args = [new[a] for a in e.args]
        if not isinstance(e, Apply):
            new[e] = e
        elif e.op is Op.ADD and e.dtype.is_float and (at := [k for k, a in enumerate(args) if _is_product(a)]):
            new[e] = apply(Op.FMA, *_factors(args[at[0]]), args[1 - at[0]])
        else:
            new[e] = apply(e.op, *args, cast_to=e.dtype)
    return new[value]


def _is(op: Op, e: Expr) -> bool:
    return isinstance(e, Apply) and e.op is op


def _is_product(e: Expr) -> bool:
    """Whether it is a product or a negated product."""
    return _is(Op.MUL, e) or (_is(Op.NEG, e) and _is(Op.MUL, e.args[0]))


def _factors(e: Expr) -> tuple[Expr, Expr]:
    """The factors of a product or a negated product."""
    if _is(Op.NEG, e):
        a, b = e.args[0].args
        return -a, b
    a, b = e.args
    return a, b
