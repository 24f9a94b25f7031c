"""Kernels over all elements of arrays, one after the other, go by blocks: what passes between them stays in cache.

    for i: a[i] = f(x[i])        ->  for ib { for l < 128: t[l] = f(x[128*ib + l])
    for i: b[i] = g(a[i])                     for l < 128: b[128*ib + l] = g(t[l]) }

Such kernels are apart because one loop would be too much code. Each array between them would go through memory as a
whole, and long formulas have hundreds of them. Arrays of several axes go in the order of memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import attrs

from harp.lower.cost_model import code_size
from harp.lower.loopir.effects import indices
from harp.lower.loopir.loops import Alloc, Buffer, For, Kernel, LoopKind, Nest, Space, Stmt, Store, offset, walk
from harp.lower.loopir.nests import Numbers, is_plain, is_straight, nest, reads, renamed, sequence
from harp.lower.rewrite.coalesce import coalesced
from harp.lower.rewrite.loop_primitives import shrink, split
from harp.lower.schedule.build import Built
from harp.lower.schedule.row_kernels import rows_in
from harp.trace.index.polynomial import Index, Loop, as_index, indirect_in, of

# Bytes of the arrays of a block, and elements of each.
_CACHE, _LEAST, _MOST = 1 << 17, 64, 512
# Operations in all kernels of a block, and kernels: equal kernels would otherwise be compiled once.
_CODE, _KERNELS = 4000, 64


@attrs.frozen
class _Member:
    """A kernel that goes through memory once."""

    kernel: Kernel
    loop: Loop
    body: Stmt

    @property
    def stores(self) -> tuple[Store, ...]:
        return tuple(s for s in walk(self.body) if isinstance(s, Store) and s.buffer.space is not Space.REG)

    @property
    def code(self) -> int:
        return sum(code_size(s.value) for s in walk(self.body) if isinstance(s, Store))


def in_blocks(built: Built) -> Built:
    """The kernels, of which those that follow each other over the same positions are one."""
    kernels: list[Kernel] = []
    gone: set[Buffer] = set()
    for run in _runs(built.kernels):
        own = _own(run, built) if len(run) > 1 else []
        if own:
            kernels.append(_block(run, own))
            gone.update(own)
        else:
            kernels += [part.kernel if isinstance(part, _Member) else part for part in run]
    scratch = tuple(buffer for buffer in built.scratch if buffer not in gone)
    return attrs.evolve(built, kernels=tuple(kernels), scratch=scratch) if gone else built


def _runs(kernels: Sequence[Kernel]) -> Iterator[list[_Member] | list[Kernel]]:
    """The kernels in order; those in a list of members can be one."""
    run: list[_Member] = []
    for kernel in kernels:
        member = _member(kernel)
        if run and (member is None or not _fits([*run, member])):
            yield run
            run = []
        if member is None:
            yield [kernel]
        else:
            run.append(member)
    if run:
        yield run


def _member(kernel: Kernel) -> _Member | None:
    """for i: straight code without places that are data"""
    s = kernel.body
    if not isinstance(s, Nest) or not is_plain(s) or not is_straight(s.body):
        return None
    heads, body = coalesced(Numbers(kernel), [h for h in s.heads if isinstance(h, For)], s.body)
    loop, kind = heads[0].loop, heads[0].kind
    data = any(indirect_in(p) for part in walk(body) for p in indices(part))
    if len(heads) > 1 or kind is not LoopKind.SERIAL or loop.extent.constant is not None or data:
        return None
    return _Member(kernel, loop, body)


def _fits(run: Sequence[_Member]) -> bool:
    """Whether the last one can join the others: what is stored is read where it is stored, and there alone."""
    first, last = run[0], run[-1]
    if last.loop.extent is not first.loop.extent or len(run) > _KERNELS or sum(m.code for m in run) > _CODE:
        return False
    stored = [store.buffer for member in run for store in member.stores]
    if len(set(stored)) < len(stored):
        return False
    places = [(m, store.buffer, store.index) for m in run for store in m.stores]
    places += [(m, load.buffer, load.index) for m in run for load in reads(m.body) if load.buffer in stored]
    asked = any(load.conditions for m in run for load in reads(m.body) if load.buffer in stored)
    return not asked and all(offset(buffer, index) is of(m.loop) for m, buffer, index in places)


def _own(run: Sequence[_Member] | Sequence[Kernel], built: Built) -> list[Buffer]:
    """The scratch buffers that no other kernel uses."""
    inside = {part.kernel for part in run if isinstance(part, _Member)}
    stored = {store.buffer for part in run if isinstance(part, _Member) for store in part.stores}
    outside = {buffer for kernel in built.kernels if kernel not in inside for buffer in _used(kernel)}
    return [buffer for buffer in built.scratch if buffer in stored and buffer not in outside]


def _used(kernel: Kernel) -> Iterator[Buffer]:
    yield from (load.buffer for load in reads(kernel.body))
    yield from (part.buffer for part in walk(kernel.body) if isinstance(part, Store))
    for row in rows_in(kernel.body):
        yield from (row.target, *row.sources)


def _block(run: Sequence[_Member] | Sequence[Kernel], own: Sequence[Buffer]) -> Kernel:
    members = [part for part in run if isinstance(part, _Member)]
    numbers = Numbers(Kernel("", sequence(m.kernel.body for m in members)))
    size = _LEAST
    while size < _MOST and 2 * size * sum(buffer.dtype.itemsize for buffer in own) <= _CACHE:
        size *= 2
    extent = members[0].loop.extent
    blocks = split(numbers, extent, size)
    tiles = {buffer: Buffer(buffer.name, buffer.dtype, (as_index(size),), Space.TILE) for buffer in own}
    parts: list[Stmt] = []
    for member in members:
        head, lane = numbers.loop(blocks.length)
        body = shrink(renamed(member.body, {member.loop: blocks.start + lane}), tiles, partial(_at, lane))
        parts.append(nest(head, body))
    whole = sequence(parts)
    for tile in tiles.values():
        whole = Alloc(tile, whole)
    name = "_".join(dict.fromkeys("_".join(m.kernel.name for m in members).split("_")))
    return Kernel(name, nest(blocks.heads, whole))


def _at(lane: Index, index: tuple[Index, ...]) -> tuple[Index, ...]:
    return (lane,)
