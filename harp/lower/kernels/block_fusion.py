"""Elementwise kernels that follow each other run in blocks: intermediate arrays stay in cache.

    for i: a[i] = f(x[i])        ->  for ib { for l < BLOCK: t[l] = f(x[BLOCK*ib + l])
    for i: b[i] = g(a[i])                     for l < BLOCK: b[BLOCK*ib + l] = g(t[l]) }

`fuse` leaves such kernels apart because one loop would be too much code. Their intermediate arrays would go through
memory whole, and long formulas have hundreds of them; most are needed only briefly, so a few tiles serve all of them in
turn. `_block_size` says how many elements a BLOCK has. Arrays of several axes are traversed in the order of memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import attrs

from harp.lower.cost_model import code_size
from harp.lower.kernels.fuse import joined_name
from harp.lower.loopir.effects import effects, indices
from harp.lower.loopir.loops import Alloc, Buffer, For, Kernel, Load, LoopKind, Nest, Space, Stmt, Store, offset, walk
from harp.lower.loopir.nests import FreshLoops, is_plain, is_straight, nest, reads, renamed, sequence
from harp.lower.rewrite.coalesce import coalesced
from harp.lower.rewrite.loop_primitives import shrink, split
from harp.lower.schedule.build import Built
from harp.lower.target import Target
from harp.trace.index.polynomial import Index, Loop, as_index, indirect_in, of

# Elements of a tile (least and most), and tiles of a block: allocations nest, and nesting is bounded.
_LEAST, _MOST, _TILES = 64, 512, 128
# The most operations, and kernels, of a block: equal kernels are otherwise compiled once.
_CODE, _KERNELS = 4000, 64


@attrs.frozen(repr=False)
class _Member:
    """A kernel that traverses memory once: its number, its loop, the body, its accesses, and the amount of code."""

    kernel: Kernel
    number: int
    loop: Loop
    body: Stmt
    stores: tuple[Store, ...]
    loads: tuple[Load, ...]
    code: int


def in_blocks(built: Built, target: Target) -> Built:
    """The kernels, where runs over the same positions become one kernel if that keeps intermediate arrays in cache."""
    runs = [run for run in _runs(built.kernels) if len(run) > 1]
    if not runs:
        return built
    users: dict[Buffer, set[int]] = {}
    for number, kernel in enumerate(built.kernels):
        for buffer in effects(kernel.body).touched:
            users.setdefault(buffer, set()).add(number)
    scratch, kernels = set(built.scratch), dict(enumerate(built.kernels))
    for run in runs:
        first, *others = (member.number for member in run)
        tiled = [s.buffer for m in run for s in m.stores if s.buffer in scratch and users[s.buffer] <= {first, *others}]
        if tiled:
            size = _block_size(tiled, target.tile_bytes)
            tiles = _tiles(run, tiled, size)
            scratch.difference_update(tiles)
            kernels[first] = _block(run, tiles, size)
            for number in others:
                del kernels[number]
    remaining = tuple(buffer for buffer in built.scratch if buffer in scratch)
    return attrs.evolve(built, kernels=tuple(kernels.values()), scratch=remaining)


def _runs(kernels: Sequence[Kernel]) -> Iterator[list[_Member]]:
    """Runs of consecutive kernels that can become one."""
    run: list[_Member] = []
    for number, kernel in enumerate(kernels):
        member = _member(kernel, number)
        if member is None or not _fits([*run, member]):
            yield run
            run = []
        if member is not None:
            run.append(member)
    yield run


def _member(kernel: Kernel, number: int) -> _Member | None:
    """The kernel, if it is `for i: straight code` without indices that are data."""
    s = kernel.body
    if not isinstance(s, Nest) or not is_plain(s) or not is_straight(s.body):
        return None
    heads, body = coalesced(FreshLoops(kernel), [h for h in s.heads if isinstance(h, For)], s.body)
    loop, kind = heads[0].loop, heads[0].kind
    data = any(indirect_in(p) for part in walk(body) for p in indices(part))
    if len(heads) > 1 or kind is not LoopKind.PLAIN or loop.extent.constant is not None or data:
        return None
    stores = [part for part in walk(body) if isinstance(part, Store)]
    outside = tuple(store for store in stores if store.buffer.space is not Space.REG)
    code = sum(code_size(store.value) for store in stores)
    return _Member(kernel, number, loop, body, outside, tuple(reads(body)), code)


def _fits(run: Sequence[_Member]) -> bool:
    """Whether the last kernel can join the others: stored elements are read only at the position of their store."""
    first, last = run[0], run[-1]
    if last.loop.extent is not first.loop.extent or len(run) > _KERNELS or sum(m.code for m in run) > _CODE:
        return False
    stored = [store.buffer for member in run for store in member.stores]
    if len(set(stored)) < len(stored):
        return False
    places = [(m, store.buffer, store.index) for m in run for store in m.stores]
    places += [(m, load.buffer, load.index) for m in run for load in m.loads if load.buffer in stored]
    asked = any(load.conditions for m in run for load in m.loads if load.buffer in stored)
    return not asked and all(offset(buffer, index) is of(m.loop) for m, buffer, index in places)


def _block_size(tiled: Sequence[Buffer], room: int) -> int:
    """The number of elements of a block, whose tiles take `room` bytes at most."""
    size = _LEAST
    while size < _MOST and 2 * size * sum(buffer.dtype.itemsize for buffer in tiled) <= room:
        size *= 2
    return size


def _tiles(members: Sequence[_Member], tiled: Sequence[Buffer], size: int) -> dict[Buffer, Buffer]:
    """The tile that holds a block of each array: a new one, or, if there are no more, one that no later member reads.
    Arrays without a tile stay in memory."""
    last = {load.buffer: place for place, member in enumerate(members) for load in member.loads}
    ends: dict[Buffer, int] = {}  # the last member that reads a tile
    tiles: dict[Buffer, Buffer] = {}
    for place, member in enumerate(members):
        for buffer in (store.buffer for store in member.stores if store.buffer in tiled):
            tile: Buffer | None = Buffer(buffer.name, buffer.dtype, (as_index(size),), Space.LOCAL)
            if len(ends) == _TILES:
                free = [t for t, end in ends.items() if t.dtype is buffer.dtype and end < place]
                tile = min(free, key=ends.__getitem__, default=None)  # the one that has been free the longest
            if tile is not None:
                ends[tile] = last.get(buffer, place)
                tiles[buffer] = tile
    return tiles


def _block(members: Sequence[_Member], tiles: Mapping[Buffer, Buffer], size: int) -> Kernel:
    """The members, one after the other in a loop over blocks, with tiles for their intermediate arrays."""
    fresh = FreshLoops(Kernel("", sequence(m.kernel.body for m in members)))
    extent = members[0].loop.extent
    blocks = split(fresh, extent, size)
    parts: list[Stmt] = []
    for member in members:
        head, lane = fresh.loop(blocks.length)
        body = shrink(renamed(member.body, {member.loop: blocks.start + lane}), tiles, partial(_in_tile, lane))
        parts.append(nest(head, body))
    whole = sequence(parts)
    for tile in dict.fromkeys(tiles.values()):
        whole = Alloc(tile, whole)
    return Kernel(joined_name(m.kernel for m in members), nest(blocks.heads, whole))


def _in_tile(lane: Index, index: tuple[Index, ...]) -> tuple[Index, ...]:
    return (lane,)
