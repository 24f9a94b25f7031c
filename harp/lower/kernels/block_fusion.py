"""Kernels over all elements of arrays, one after the other, go by blocks: what passes between them stays in cache.

    for i: a[i] = f(x[i])        ->  for ib { for l < 128: t[l] = f(x[128*ib + l])
    for i: b[i] = g(a[i])                     for l < 128: b[128*ib + l] = g(t[l]) }

Such kernels are apart because one loop would be too much code. Each array between them would go through memory as a
whole, and long formulas have hundreds of them; most are needed for a short time, so that a few tiles hold all of them
in turn. Arrays of several axes go in the order of memory.
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

# Elements of a tile, and tiles of a block: they nest, and nesting is bounded.
_LEAST, _MOST, _TILES = 64, 512, 128
# Operations in all kernels of a block, and kernels: equal kernels would otherwise be compiled once.
_CODE, _KERNELS = 4000, 64


@attrs.frozen
class _Member:
    """A kernel that goes through memory once: its number, its loop, what is in it, and how much code that is."""

    kernel: Kernel
    number: int
    loop: Loop
    body: Stmt
    stores: tuple[Store, ...]
    loads: tuple[Load, ...]
    code: int


def in_blocks(built: Built, target: Target) -> Built:
    """The kernels, of which those that follow each other over the same positions are one, where that saves memory."""
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
        own = [s.buffer for m in run for s in m.stores if s.buffer in scratch and users[s.buffer] <= {first, *others}]
        if own:
            size = _size(own, target.tile_bytes)
            tiles = _tiles(run, own, size)
            scratch.difference_update(tiles)
            kernels[first] = _block(run, tiles, size)
            for number in others:
                del kernels[number]
    left = tuple(buffer for buffer in built.scratch if buffer in scratch)
    return attrs.evolve(built, kernels=tuple(kernels.values()), scratch=left)


def _runs(kernels: Sequence[Kernel]) -> Iterator[list[_Member]]:
    """Kernels that follow each other and can be one."""
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
    """for i: straight code without places that are data"""
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
    """Whether the last one can join the others: what is stored is read where it is stored, and there alone."""
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


def _size(own: Sequence[Buffer], room: int) -> int:
    """How many elements of each array a block has, whose tiles take so many bytes at most."""
    size = _LEAST
    while size < _MOST and 2 * size * sum(buffer.dtype.itemsize for buffer in own) <= room:
        size *= 2
    return size


def _tiles(members: Sequence[_Member], own: Sequence[Buffer], size: int) -> dict[Buffer, Buffer]:
    """The tile that holds a block of each array: a new one, or one whose array no later member reads, if there are
    enough. Arrays for which no tile is left stay in memory."""
    last = {load.buffer: place for place, member in enumerate(members) for load in member.loads}
    ends: dict[Buffer, int] = {}  # the last member that reads a tile
    tiles: dict[Buffer, Buffer] = {}
    for place, member in enumerate(members):
        for buffer in (store.buffer for store in member.stores if store.buffer in own):
            tile: Buffer | None = Buffer(buffer.name, buffer.dtype, (as_index(size),), Space.LOCAL)
            if len(ends) == _TILES:
                free = [t for t, end in ends.items() if t.dtype is buffer.dtype and end < place]
                tile = min(free, key=ends.__getitem__, default=None)  # the one that has been free for longest
            if tile is not None:
                ends[tile] = last.get(buffer, place)
                tiles[buffer] = tile
    return tiles


def _block(members: Sequence[_Member], tiles: Mapping[Buffer, Buffer], size: int) -> Kernel:
    """The members, one after the other in a loop over blocks, with tiles of a block for what is theirs alone."""
    fresh = FreshLoops(Kernel("", sequence(m.kernel.body for m in members)))
    extent = members[0].loop.extent
    blocks = split(fresh, extent, size)
    parts: list[Stmt] = []
    for member in members:
        head, lane = fresh.loop(blocks.length)
        body = shrink(renamed(member.body, {member.loop: blocks.start + lane}), tiles, partial(_at, lane))
        parts.append(nest(head, body))
    whole = sequence(parts)
    for tile in dict.fromkeys(tiles.values()):
        whole = Alloc(tile, whole)
    return Kernel(joined_name(m.kernel for m in members), nest(blocks.heads, whole))


def _at(lane: Index, index: tuple[Index, ...]) -> tuple[Index, ...]:
    return (lane,)
