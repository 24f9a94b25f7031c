"""Loop fission: a loop over a long chain of operations, or over many functions, is strip-mined, and distributed over
segments of the chain, or over the functions.

    for i: out[i] = g(f(x[i]))
        ->  for ib { for simd l < STRIP: t[l] = f(x[ib*STRIP + l]); for simd l < STRIP: out[ib*STRIP + l] = g(t[l]) }

Each operation of a chain waits for the one before. A processor computes other elements meanwhile, but looks only a few
hundred instructions ahead: in a longer chain it sees one vector at a time. Segments are so short that it sees many
vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple, TypeGuard

from harp.lower.loopir.loops import Alloc, Buffer, Load, LoopKind, Seq, Space, Stmt, Store
from harp.lower.loopir.nests import makes_index_arrays, nest, renamed, sequence
from harp.lower.rewrite.loop_primitives import Context, split
from harp.trace.index.polynomial import Index, Loop, as_index
from harp.trace.scalar.dtypes import DType, bool_, f32, f64
from harp.trace.scalar.expr import Apply, Const, Expr, apply, rewrite, walk
from harp.trace.scalar.ops import INFO, Op

# The fewest dependent operations of a segment, and the elements of a strip.
_SEGMENT, _STRIP = 16, 256
# The most segments: each is a loop, and compile time depends more on loops than on their bodies.
_MOST = 16
# A chain with this many times its length of operations has enough independent ones.
_WIDTH = 4
# The most values kept from one segment to the next: storing more would cost as much as waiting. Beside functions they
# are as many as stay in a cache, for a function that stays in a loop takes the compiler 0.1 s.
_KEPT, _KEPT_BESIDE_FUNCTIONS = 6, 64
# The functions that the library has for rows, and the most uses of them in a loop that stay there.
FUNCTIONS = frozenset(op for op, info in INFO.items() if info.weight >= 12)
_USES = 6


def fissioned(context: Context, body: Stmt, loop: Loop) -> Stmt | None:
    """The loop over straight code in segments; None if the code has no long chain."""
    if makes_index_arrays(body):
        return None
    stores = _inlined(body, frozenset({Space.REG}))
    by_function = _by_function([store.value for store in stores])
    if by_function and reads_what_it_stores(stores):
        stores = _inlined(body, frozenset(Space))
        by_function = _by_function([store.value for store in stores])
    stages = by_function or _by_length([store.value for store in stores])
    last = max(stages.values(), default=0)
    last += bool(by_function) and last % 2  # stores are no functions
    if last < 2 or reads_what_it_stores(stores):
        return None
    kept = _kept(stores, stages, last)
    if not by_function and any(e.dtype is bool_ for e in kept):  # masks of bytes beside numbers take five times as long
        return None
    most = _KEPT_BESIDE_FUNCTIONS if by_function else _KEPT
    if any(sum(stages[e] <= stage < until for e, until in kept.items()) > most for stage in range(last)):
        return None
    blocks = split(context.fresh, loop.extent, _STRIP)
    head, lane = context.fresh.loop(blocks.length, LoopKind.SIMD)
    if not head or not (blocks.heads or by_function):  # one strip is enough to fill a processor
        return None
    room, found = (as_index(_STRIP),), _tiles(kept, stages)
    tiles = [Buffer(f"kept{number}", dtype, room, Space.LOCAL) for number, dtype in enumerate(found.dtypes)]
    copies = {e: Load(tiles[number], (lane,)) for e, number in found.numbers.items()}
    for e in dict.fromkeys(e.operands[1] for e in by_function if _has_exponents(e)):
        tiles.append(Buffer(f"kept{len(tiles)}", e.dtype, room, Space.LOCAL))
        copies[e] = Load(tiles[-1], (lane,))
    parts = _segments(stores, stages, copies, last)
    whole = sequence(nest(head, renamed(part, {loop: blocks.start + lane})) for part in parts)
    for tile in tiles:
        whole = Alloc(tile, whole)
    return nest(blocks.heads, whole)


def is_function(e: Expr) -> bool:
    """Whether it is a function that the library has for rows."""
    return isinstance(e, Apply) and e.op in FUNCTIONS and e.dtype in (f32, f64) and not _is_simple_power(e)


def _is_simple_power(e: Apply) -> bool:
    """Whether it is a power whose exponent is an integer, or half of one: it may be some products and roots."""
    exponent = e.operands[-1]
    return e.op is Op.POW and isinstance(exponent, Const) and float(2 * exponent.value).is_integer()


def _has_exponents(e: Expr) -> TypeGuard[Apply]:
    """Whether it is a power whose constant exponent becomes a tile: the library raises rows to rows. Other functions of
    constants take less time in loops of their own."""
    return isinstance(e, Apply) and e.op is Op.POW and is_function(e) and isinstance(e.operands[1], Const)


def _by_length(values: Sequence[Expr]) -> dict[Expr, int]:
    """The segment of each operation of a long chain; none if there is no long chain."""
    depths = _depths(values)
    depth = max(depths.values(), default=0)
    length = max(_SEGMENT, -(-depth // _MOST))
    if len(depths) > _WIDTH * (depth + length):
        return {}
    return {e: (d - 1) // length if d else 0 for e, d in depths.items()}


def _by_function(values: Sequence[Expr]) -> dict[Expr, int]:
    """Functions and other operations in segments of their own, in turns; none if there are few functions."""
    stages: dict[Expr, int] = {}
    for e in walk(values):
        if isinstance(e, Apply):
            behind = max((stages.get(a, 0) for a in e.args), default=0)
            stages[e] = behind + (behind % 2 != is_function(e))
    return stages if sum(map(is_function, stages)) > _USES else {}


class _Tiles(NamedTuple):
    """The number of the tile of each kept value, and the dtype of each tile."""

    numbers: dict[Expr, int]
    dtypes: list[DType]


def _tiles(kept: Mapping[Expr, int], stages: Mapping[Expr, int]) -> _Tiles:
    """A tile is free again behind the last segment that needs its value."""
    found, until = _Tiles({}, []), list[int]()
    for e in sorted(kept, key=stages.__getitem__):
        free = (n for n, dtype in enumerate(found.dtypes) if dtype is e.dtype and until[n] < stages[e])
        number = next(free, len(until))
        if number == len(until):
            found.dtypes.append(e.dtype)
            until.append(0)
        found.numbers[e], until[number] = number, kept[e]
    return found


def _inlined(body: Stmt, spaces: Set[Space]) -> list[Store]:
    """The stores to memory. A load of an element in these spaces that was stored before is the value stored there."""
    values: dict[tuple[Buffer, tuple[Index, ...]], Expr] = {}
    stores: list[Store] = []

    def leaf(e: Expr) -> Expr:
        return values.get((e.buffer, e.index), e) if isinstance(e, Load) and not e.conditions else e

    def visit(s: Stmt) -> None:
        if isinstance(s, Alloc):
            visit(s.body)
        elif isinstance(s, Seq):
            for part in s.parts:
                visit(part)
        elif isinstance(s, Store):
            value = rewrite((s.value,), leaf)[0]
            if s.buffer.space in spaces:
                values[s.buffer, s.index] = value
            if s.buffer.space is not Space.REG:
                stores.append(Store(s.buffer, s.index, value))

    visit(body)
    return stores


def _depths(values: Iterable[Expr]) -> dict[Expr, int]:
    """The weight of the longest chain of operations that ends with each value."""
    depth: dict[Expr, int] = {}
    for e in walk(values):
        if isinstance(e, Apply):
            depth[e] = INFO[e.op].weight + max((depth.get(a, 0) for a in e.args), default=0)
    return depth


def reads_what_it_stores(stores: Sequence[Store]) -> bool:
    """Whether a later segment could read what an earlier statement stored; a single store comes after all loads."""
    stored = {store.buffer for store in stores}
    loaded = {e.buffer for e in walk(store.value for store in stores) if isinstance(e, Load)}
    return len(stores) > 1 and not stored.isdisjoint(loaded)


def _kept(stores: Sequence[Store], stages: Mapping[Expr, int], last: int) -> dict[Expr, int]:
    """The operations that later segments need, and the last of these segments. All stores are in the last segment."""
    until: dict[Expr, int] = {}
    needs = [(a, stage) for e, stage in stages.items() for a in e.args] + [(store.value, last) for store in stores]
    for e, stage in needs:
        if stages.get(e, stage) < stage:
            for value in e.args if _is_comparison(e) else (e,):
                if stages.get(value, stage) < stage:
                    until[value] = max(until.get(value, 0), stage)
    return until


def _is_comparison(e: Expr) -> bool:
    """Whether it is a mask that later segments compute again: loads of bytes beside numbers take longer."""
    return e.dtype is bool_ and bool(e.args) and not any(a.dtype is bool_ for a in e.args)


def _segments(
    stores: Sequence[Store], stages: Mapping[Expr, int], kept: Mapping[Expr, Load], last: int
) -> Iterable[Stmt]:
    """The statements of each segment, in which kept values of earlier segments are loaded, and exponents."""
    here: dict[Expr, Expr] = {}
    written: dict[int, list[Stmt]] = {stage: [] for stage in range(last + 1)}
    written[0] += [Store(place.buffer, place.index, e) for e, place in kept.items() if isinstance(e, Const)]

    def value(e: Expr, stage: int) -> Expr:
        return kept[e] if e in kept and stages.get(e, stage) < stage else here.get(e, e)

    def read(e: Expr, stage: int) -> Expr:
        if isinstance(e, Apply) and stages[e] < stage and _is_comparison(e):
            return apply(e.op, *(value(a, stage) for a in e.operands), cast_to=e.dtype)
        return value(e, stage)

    for e, stage in stages.items():
        assert isinstance(e, Apply)
        operands = [read(a, stage) for a in e.operands]
        if _has_exponents(e):
            operands[1] = kept.get(e.operands[1], e.operands[1])
        here[e] = apply(e.op, *operands, cast_to=e.dtype)
        if e in kept:
            written[stage].append(Store(kept[e].buffer, kept[e].index, here[e]))
    written[last] += [Store(s.buffer, s.index, read(s.value, last)) for s in stores]
    return [part for stage in written.values() if stage for part in _loops(stage)]


def _loops(stores: Sequence[Stmt]) -> Iterable[Stmt]:
    """The statements of the loops of a segment: one for each function."""
    if all(isinstance(s, Store) and is_function(s.value) for s in stores):
        return stores
    return (sequence(stores),)
