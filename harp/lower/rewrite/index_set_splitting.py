"""Index set splitting: loops are split where a condition changes, so that no element tests which piece of an array it
is in.

    for i < n + m: out[i] = a[i] if i < n else b[i - n]
        ->  for i < n: out[i] = a[i];  for i < m: out[n + i] = b[i]

Concatenation, rolling, padding, updates of slices: reading such an array is a select by conditions `p >= 0` with p
linear in the position. Each condition changes at a cut, so the positions of a loop are divided into segments in which
all are decided, and the boxes of several loops are the products of their segments; boxes that share segments of outer
loops share these loops. (M. Griebl, P. Feautrier, C. Lengauer: "Index set splitting", 2000.) If the order of the cuts
is not known for all sizes, one order is taken, and a branch keeps the original loop for sizes with another order:

    out[i] = x[i - 1] if i - 1 >= 0 else x[i + 1] if n - 2 - i >= 0 else 0
        ->  if n - 2 >= 0 { i = 0; for 1 <= i < n - 1; i = n - 1 } else { for i < n: as it was }

If the boxes were too much code, a loop gets three segments: the largest one, and the parts before and behind it, where
conditions stay; if that is still too much, inner loops of the small parts are not split. A condition that also depends
on inner loops, as in a sum over a window of a padded array, is decided where it holds for all of their iterations. Sums
of products and loops that carry a variable are not split. The number of a step is like a size for the nests in it: a
sum that `k < t` masks runs up to t. A body of several statements, as of a row that also fills registers, is split along
one loop only, whose iterations stay in order.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import groupby, pairwise

import attrs

from harp.lower.loopir.conditions import Facts, conditions, given, is_there_already, without_dead_stores
from harp.lower.loopir.effects import loads, value_loads
from harp.lower.loopir.loops import (
    MEMORY,
    Alloc,
    For,
    If,
    Kernel,
    Load,
    LoopKind,
    Nest,
    Repeat,
    Seq,
    Space,
    Stmt,
    Store,
    walk,
)
from harp.lower.loopir.nests import (
    FreshLoops,
    is_elementwise_or_sums,
    is_plain,
    is_sequential,
    is_straight,
    nest,
    rebuilt,
    sequence,
    stride,
    with_loops,
)
from harp.lower.loopir.products import is_contraction
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import ceildiv, floordiv
from harp.trace.index.polynomial import (
    ZERO,
    Atom,
    FloorDiv,
    Index,
    Loop,
    evaluate,
    indirect_in,
    loops_in,
    split_linear,
    value_atoms,
)
from harp.trace.scalar.expr import Apply, Const, Expr, apply, const, rewrite
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import INFO

# The code of all boxes of a nest is at most `_MOST`, or `_TIMES` that of the nest. All nests of a kernel together,
# without those of little code, have at most `_KERNEL`, or as much as the kernel had. Compile time depends on
# operations, loads and stores; a loop counts as several of these, and a function such as a sine by its weight.
_FREE, _MOST, _TIMES, _KERNEL = 64, 500, 5, 2000
_LOOP, _FUNCTION, _WEIGHT = 4, 3, 8
# The most iterations of a loop whose segments stay inside of the enclosing loops, and of one of phases of a stride.
_SHORT, _PHASES = 64, 8
# The value of sizes when segments are compared: the choice of the largest one is a guess that changes no result.
_TYPICAL = 1 << 40

# The budget of a proof about the order of cuts: many pieces have many cuts.
_FEW_STEPS = 300

_NOWHERE: Mapping[Atom, Index] = {}


@attrs.frozen(repr=False)
class Segment:
    """Positions from `start` up to `stop` along a loop, and facts about conditions there."""

    start: Index
    stop: Index
    facts: Facts

    @property
    def length(self) -> Index:
        return self.stop - self.start


@attrs.frozen(repr=False)
class Box:
    """A segment of each loop, and the simplified body, valid if all of `order` are >= 0."""

    segments: Mapping[Loop, Segment]
    body: Stmt
    order: tuple[Index, ...]


def split_index_sets(kernel: Kernel) -> Kernel:
    """The kernel with split loops."""
    counters = frozenset(part.loop for part in walk(kernel.body) if isinstance(part, Repeat))
    context = _Context(FreshLoops(kernel), counters, _Room(max(_KERNEL, _size(kernel.body))))
    split = _branched(context, _split(context, _settled(kernel.body)), inside=False)
    return kernel if split is kernel.body else kernel.with_body(without_dead_stores(split))


def _settled(s: Stmt) -> Stmt:
    """The statement without conditions that hold at all positions, or at none, such as those of single digits."""
    if not isinstance(s, Store):
        return rebuilt(s, _settled) if is_plain(s) else _whole_nests(s, _settled)
    known = {p: True if _is_seen(p) else False if _is_seen(-p - 1) else None for p in conditions(s)}
    facts = {p: holds for p, holds in known.items() if holds is not None}
    return given(s, facts) if facts else s


def _whole_nests(s: Stmt, change: Callable[[Stmt], Stmt]) -> Stmt:
    """A statement that is not plain, with `change` applied to the nests in it."""
    return rebuilt(s, change) if isinstance(s, (Repeat, Seq, If, Alloc, Nest)) else s


class _Cuts(enum.Enum):
    """Which boxes are made: those of all segments; those of three segments of each loop; or the largest box, and the
    parts before and behind it along each loop, in which inner loops are not split."""

    ALL = "all"
    THREE = "three"
    LARGEST = "largest"


@attrs.define
class _Room:
    """The amount of code that may still be added to the kernel."""

    left: int


@attrs.frozen(repr=False)
class _Context:
    """New loops of the kernel, and room for code. `counters` are the loops of repetitions, whose numbers are constant
    in a nest. Loops that are `left_out` are not split."""

    fresh: FreshLoops
    counters: frozenset[Loop]
    room: _Room
    left_out: frozenset[Loop] = frozenset()

    def loops_in(self, p: Index) -> frozenset[Loop]:
        """The loops of nests that an index expression depends on."""
        return loops_in(p) - self.counters


def _split(context: _Context, s: Stmt) -> Stmt:
    if not is_plain(s):
        return _whole_nests(s, lambda part: _split(context, part))
    if is_sequential(s) or is_contraction(s):
        return s
    inside = rebuilt(s, lambda part: _split(context, part))
    if inside is not s and isinstance(inside, Seq):
        return _joined(inside)
    return _pieces(context, inside) if isinstance(inside, Nest) else inside


def _branched(context: _Context, s: Stmt, inside: bool) -> Stmt:
    """Unswitch an outer loop: conditions of inner nests that depend only on it become branches round these nests.

    for i { for j: a[i, j] = f if i < n - 1 else g; for j: ... }
        ->  for i { if i < n - 1 { for j: a[i, j] = f } else { for j: a[i, j] = g }; for j: ... }
    """
    if not is_plain(s):
        return _whole_nests(s, lambda part: _branched(context, part, inside))
    if is_sequential(s) or is_contraction(s):
        return s
    if not isinstance(s, Nest):
        return rebuilt(s, lambda part: _branched(context, part, inside))
    if not _only_stores_to_memory(s):
        return s  # vectors run across the outer loops of sums, and cannot branch
    if is_straight(s.body):
        return _decided(context, s) if inside else s
    return rebuilt(s, lambda part: _branched(context, part, inside=True))


def _only_stores_to_memory(s: Stmt) -> bool:
    return all(part.buffer.space in MEMORY for part in walk(s) if isinstance(part, Store))


def _stores_elements(s: Stmt) -> bool:
    return is_straight(s) and _only_stores_to_memory(s)


def _decided(context: _Context, s: Nest, known: frozenset[Index] = frozenset()) -> Stmt:
    """A branch for the first condition that depends on enclosing loops only, and so on in both of its sides.

    A condition in `known` may still be in the body: one of the two conditions of an equation does not decide it.
    """
    own = {h.loop for h in s.heads if isinstance(h, For)}
    for p in conditions(s):
        if p in known or not loops_in(p) or loops_in(p) & own or indirect_in(p):
            continue
        known |= {p}
        yes, no = (given(s, {p: holds, -p - 1: not holds}) for holds in (True, False))
        assert isinstance(yes, Nest) and isinstance(no, Nest)
        if _is_seen(p) or _is_seen(-p - 1):
            return _decided(context, yes if _is_seen(p) else no, known)
        if _size(s) <= context.room.left:
            context.room.left -= _size(s)
            return If((p,), _decided(context, yes, known), _decided(context, no, known))
    return s


def _joined(s: Seq) -> Stmt:
    """acc = 0; acc += v  ->  acc = 0 + v, if a loop has become a single iteration"""
    joined: list[Stmt] = []
    for part in s.parts:
        last = joined[-1] if joined else None
        if isinstance(part, Store) and isinstance(last, Store) and _is_step(last, part):
            joined[-1] = Store(part.buffer, (), _after(last.value, part), last.reduce)
        else:
            joined.append(part)
    return sequence(joined)


def _is_step(first: Store, second: Store) -> bool:
    """Whether the second of two consecutive stores updates the variable that the first one sets."""
    same = first.buffer is second.buffer and first.buffer.space is Space.REG and first.reduce is None
    return same and not (second.reduce is not None and any(load.buffer is first.buffer for load in loads(second)))


def _after(value: Expr, step: Store) -> Expr:
    """The value of the variable after the step, given its value before."""
    if step.reduce is not None:
        return apply(step.reduce.value, value, step.value)
    return rewrite((step.value,), lambda e: value if isinstance(e, Load) and e.buffer is step.buffer else e)[0]


def _pieces(context: _Context, s: Nest) -> Stmt:
    heads = [h for h in s.heads if isinstance(h, For)]
    own = {h.loop for h in heads}
    if any(h.kind is not LoopKind.PLAIN or loops_in(h.loop.extent) & own for h in heads):
        return s
    if any(context.loops_in(h.loop.extent) for h in heads) and not _stores_elements(s.body):
        return s  # the lanes of loops round a sum share its loops
    if not (is_elementwise_or_sums(s) or len(heads) == 1):  # the segments of one loop stay in order
        return s
    vector = heads[-1].loop
    if not _stores_elements(s.body) and not any(vector in loops_in(p) for p in conditions(s.body)):
        return s  # each condition is decided once for all elements of a vector
    most_code = min(max(_MOST, _TIMES * _size(s.body)), max(_FREE, context.room.left))
    for cuts in _Cuts:
        boxes, order, code = _within(most_code, _boxes(context, s.body, [h.loop for h in heads], cuts))
        if any(map(context.loops_in, order)) and not _stores_elements(s.body):
            continue  # as in `_branched`
        if len(boxes) > 1 or (boxes and not boxes[0].segments.keys() >= {h.loop for h in heads}):
            context.room.left -= code if code > _FREE else 0
            boxes = [box for box in boxes if not _changes_nothing(box.body)]
            # Remaining conditions would be decided by `_branched`, for each of the boxes that share a loop.
            kept = _nested(context.fresh, boxes) if cuts is _Cuts.ALL else [_box(context.fresh, box) for box in boxes]
            if not kept or not order:
                return sequence(kept) if kept else s
            # For steps in which the cuts that depend on the step's number have another order, those that depend on
            # sizes are left.
            varying = (frozenset().union(*map(loops_in, order)) & context.counters) - context.left_out
            by_sizes = attrs.evolve(context, left_out=context.left_out | varying)
            return If(order, sequence(kept), _pieces(by_sizes, s) if varying else s)
    return s


def _within(most: int, boxes: Iterable[Box]) -> tuple[list[Box], tuple[Index, ...], int]:
    """The boxes, the conditions >= 0 for their order, and their code; none if the code is more than `most`."""
    found: list[Box] = []
    code = 0
    for box in boxes:
        code += _size(box.body)
        if code > most:
            return [], (), 0
        found.append(box)
    return found, tuple(dict.fromkeys(p for box in found for p in box.order)), code


def _boxes(
    context: _Context, body: Stmt, loops: Sequence[Loop], cuts: _Cuts, outer: frozenset[Loop] = frozenset()
) -> Iterator[Box]:
    """The boxes of loops, from the outside in, each with its simplified body."""
    if not loops:
        yield Box({}, body, ())
        return
    loop = loops[0]
    if len(loops) == 1 and outer:
        inside = _inside(context, body, loop, outer)
        if inside is not None:
            yield inside
            return
    # Of sums, a short outer loop, as over the phases of a stride, stays whole: vectors run across inner loops.
    is_short = len(loops) > 1 and (loop.extent.constant or _SHORT) < _PHASES and not _stores_elements(body)
    tests = () if is_short else _tests(context, loop, body, frozenset(), {*loops[1:], *outer})
    segments, order = _segments(loop, tests)
    if cuts is not _Cuts.ALL:
        segments = _around_the_largest(segments)
    whole = {inner: Segment(ZERO, inner.extent, {}) for inner in loops[1:]}
    largest = _largest(segments) if cuts is _Cuts.LARGEST and segments else None
    for segment in segments:
        left = given(body, segment.facts)
        if largest is not None and segment is not largest:
            yield Box({loop: segment, **whole}, left, order)
            continue
        for box in _boxes(context, left, loops[1:], cuts, outer | {loop}):
            yield Box({loop: segment, **box.segments}, box.body, order + box.order)


def _inside(context: _Context, body: Stmt, loop: Loop, outer: frozenset[Loop]) -> Box | None:
    """The segments of an innermost loop, in sequence inside of the other loops: of a short loop, such as over the
    pieces of a stack, or of one whose cuts depend on the other loops, as on the diagonal of a matrix.

    for i, j < n: out[i, j] = x[i, j] if j <= i else 0  ->  for i { for j < i + 1: ...; for j < n - i - 1: ... }
    """
    tests = list(_tests(context, loop, body, outer))
    short = loop.extent.constant is not None and loop.extent.constant <= _SHORT
    if not short and not any(loops_in(test.bound) & outer for test in tests):
        return None
    segments, order = _segments(loop, tests)
    if not any(segment.facts for segment in segments):
        return None
    own = tuple(p for p in order if context.loops_in(p))
    if own and not _only_stores_to_memory(body):
        return None  # as in `_branched`
    boxes = [Box({loop: s}, given(body, s.facts), ()) for s in segments]
    changing = [box for box in boxes if not _changes_nothing(box.body)] if _stores_elements(body) else boxes
    made = sequence(_box(context.fresh, box) for box in changing or boxes)
    if own:
        made = If(own, made, nest((For(loop),), body))
    return Box({}, made, tuple(p for p in order if not context.loops_in(p)))


def _box(fresh: FreshLoops, box: Box, outer: Mapping[Atom, Index] = _NOWHERE) -> Stmt:
    heads: list[For] = []
    places = dict(outer)
    for loop, segment in box.segments.items():
        head, position = fresh.loop(segment.length)
        heads += head
        places[loop] = segment.start + position
    return nest(heads, with_loops(fresh, box.body, places))


def _nested(fresh: FreshLoops, boxes: Iterable[Box], places: Mapping[Atom, Index] = _NOWHERE) -> list[Stmt]:
    """Loops over the boxes, in order. Boxes that share segments of outer loops share these loops, so that a row is
    stored at once, including its ends: else each end would touch a cache line of its own.

    for i, j < n: a; for i: b[i, n]  ->  for i { for j < n: a; b[i, n] }
    """
    made: list[Stmt] = []
    for shared, group in groupby(boxes, lambda box: next(iter(box.segments.items()), None)):
        same = list(group)
        if shared is None or len(same) == 1 or not all(map(_is_along_rows, same)):
            made += [_box(fresh, box, places) for box in same]
            continue
        loop, segment = shared
        head, position = fresh.loop(segment.length)
        rest = [attrs.evolve(box, segments=dict([*box.segments.items()][1:])) for box in same]
        made.append(nest(head, sequence(_nested(fresh, rest, {**places, loop: segment.start + position}))))
    return made


def _is_along_rows(box: Box) -> bool:
    """Whether a box is elementwise, and its innermost loop runs along memory."""
    if not is_straight(box.body) or not _only_stores_to_memory(box.body):
        return False
    *_, last = box.segments
    stores = [part for part in walk(box.body) if isinstance(part, Store)]
    accesses = [load for store in stores for load in (Load(store.buffer, store.index), *value_loads(store.value))]
    return all(stride(load, last) in (-1, 0, 1) for load in accesses)


def _size(s: Stmt) -> int:
    """The amount of code of a statement in loops; see the top."""
    stores = [part for part in walk(s) if isinstance(part, Store)]
    return _LOOP + sum(1 + sum(map(_size_of, walk_expr((store.value,)))) for store in stores)


def _size_of(e: Expr) -> int:
    if not isinstance(e, Apply):
        return not isinstance(e, Const)
    weight = INFO[e.op].weight
    return _FUNCTION * weight if weight >= _WEIGHT else 1


def _changes_nothing(s: Stmt) -> bool:
    """Whether a statement stores only values that are there already, or adds nothing to a sum, which is never -0.0."""
    if isinstance(s, Seq):
        return all(map(_changes_nothing, s.parts))
    if not isinstance(s, Store):
        return False
    if s.reduce is not None:
        return s.value is const(s.reduce.identity(s.buffer.dtype), s.buffer.dtype)
    return is_there_already(s)


# --- segments


@attrs.frozen(repr=False)
class Predicate:
    """A condition p >= 0. `bound` >= 0 implies it, and is equivalent to it if `bound` is p."""

    p: Index
    bound: Index

    def facts(self, holds: bool) -> Facts:
        """The facts on one side of the cut."""
        return {self.p: holds} if holds or self.bound is self.p else {}


def _tests(
    context: _Context, loop: Loop, body: Stmt, outer: Set[Loop], others: Set[Loop] = frozenset()
) -> Iterator[Predicate]:
    """The conditions of a body that are decided along a loop, given the outer ones, or from some position on for all
    iterations of inner ones. For stores of elements, conditions may also depend on loops further out, except on
    `others`: pieces of sums would be short, and lanes could not share them."""
    inner = {h.loop for s in walk(body) if isinstance(s, Nest) for h in s.heads if isinstance(h, For)}
    stores_elements = _stores_elements(body)
    for p in conditions(body):
        bound = None if indirect_in(p) else _least(p, inner)
        if bound is None or loop not in loops_in(bound) or loops_in(bound) & context.left_out:
            continue
        more = context.loops_in(bound) - outer - {loop}
        if more and (more & (inner | others) or not stores_elements):
            continue
        parts = split_linear(bound, loop)
        if parts is not None and parts[0].constant:
            yield Predicate(p, bound)


def _least(p: Index, inner: Set[Loop]) -> Index | None:
    """The least value of p over inner loops, if it is linear in them."""
    for loop in loops_in(p) & inner:
        parts = split_linear(p, loop)
        if parts is None or parts[0].constant is None or loops_in(loop.extent):
            return None
        p = parts[1] if parts[0].constant > 0 else parts[1] + parts[0] * (loop.extent - 1)
    return p


def _segments(loop: Loop, tests: Iterable[Predicate]) -> tuple[list[Segment], tuple[Index, ...]]:
    """The segments of a loop, in the order of the cuts for typical sizes, and the conditions >= 0 under which that is
    the order."""
    end = loop.extent
    order: list[Index] = []
    changes: dict[
        Index, list[tuple[Predicate, bool]]
    ] = {}  # by cut: the conditions that change there, and whether they hold behind it
    facts: dict[Index, bool] = {}
    for test in tests:
        cut, rises = _cut(loop, test.bound)
        order += _at_least_one(cut)
        if _precedes(cut, ZERO):
            facts |= test.facts(rises)
            order.append(-cut)
        elif _precedes(end, cut):
            facts |= test.facts(not rises)
            order.append(cut - end)
        else:
            changes.setdefault(cut, []).append((test, rises))
            facts |= test.facts(not rises)
    bounds = [ZERO, *sorted(changes, key=_typical), end]
    order += [b - a for a, b in pairwise(bounds)]
    order += _at_least_one(end)
    segments = []
    for start, stop in pairwise(bounds):
        for test, rises in changes.get(start, ()):
            facts = {p: known for p, known in facts.items() if p is not test.p} | dict(test.facts(rises))
        segments.append(Segment(start, stop, facts))
    return [s for s in segments if s.length is not ZERO], tuple(p for p in order if not _is_seen(p))


def _at_least_one(p: Index) -> Iterator[Index]:
    """The conditions >= 0 under which all divisors in p are >= 1. Proofs assume that, since a loop over the divisor
    runs only then, but segments are computed outside of that loop."""
    return (atom.den - 1 for atom in value_atoms(p) if isinstance(atom, FloorDiv))


def _cut(loop: Loop, p: Index) -> tuple[Index, bool]:
    """The position at which p >= 0 begins to hold along the loop, or ceases to, and which of the two."""
    parts = split_linear(p, loop)
    assert parts is not None and parts[0].constant is not None
    slope, rest = parts[0].constant, parts[1]
    return (ceildiv(-rest, slope), True) if slope > 0 else (floordiv(rest, -slope) + 1, False)


def _precedes(a: Index, b: Index) -> bool:
    """Whether a <= b: for all sizes, or for typical ones if b <= a is not proved."""
    return _is_seen(b - a) or (not _is_seen(a - b) and _typical(a) <= _typical(b))


def _is_seen(p: Index) -> bool:
    """Whether p >= 0 is proved within the budget; else it is tested at run time."""
    return nonnegative(p, _FEW_STEPS)


def _typical(p: Index) -> int:
    return evaluate(p, lambda atom: _TYPICAL // 2 if isinstance(atom, Loop) else _TYPICAL)


def _largest(segments: Sequence[Segment]) -> Segment:
    return max(segments, key=lambda segment: _typical(segment.length))


def _around_the_largest(segments: list[Segment]) -> list[Segment]:
    """At most three segments; there are no facts about the first and the last of three."""
    if len(segments) <= 3:
        return segments
    largest = _largest(segments)
    ends = Segment(ZERO, largest.start, {}), Segment(largest.stop, segments[-1].stop, {})
    return [s for s in (ends[0], largest, ends[1]) if s.length is not ZERO]
