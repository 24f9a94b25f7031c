"""Results that take over the memory of inputs which the caller donates.

    for i: out0[i] = in0[i] + in1[i]    ->    for i: out0[i] = out0[i] + in1[i]        (in0 lives in out0)

An output of the same dtype and shape may live in such an input where no element is stored before its old value was read
for the last time: no kernel after the one that stores the output reads the input, and in that one each iteration of the
loops round the store and a load reads only elements that itself stores, in the store's own statement or before it.

    for i { m = max over j of in0[i, j]; for j: out0[i, j] = in0[i, j]/m }         (row i is read, then stored)
    for i { s = sum over j of in0[i, j]; for j: out0[i, j] = in0[i, j]; out0[i, k] = s }      (nothing is left to copy)

A scatter changes what an earlier kernel stored; if that is a copy of the input, nothing is left to copy.

The input's buffer is replaced by the output's in all kernels, so two buffers never share memory, and later passes see a
buffer that is read and then written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from harp.lower.loopir.effects import used_whole
from harp.lower.loopir.loops import Buffer, For, If, Kernel, Load, Nest, Seq, Stmt, Store, parts, walk
from harp.lower.loopir.nests import Renaming, is_plain, reads, rebuilt, sequence
from harp.lower.schedule.build import Built
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Atom, loops_in
from harp.trace.scalar.dtypes import bool_


def donate(built: Built, donated: Sequence[int]) -> Built:
    """Each output in the first of the given inputs that it can live in; one that it is computed from is preferred."""
    kernels, free = built.kernels, [*donated]
    pairs: list[tuple[int, int]] = []
    for number, target in enumerate(built.outputs):
        stored = [k for k, kernel in enumerate(kernels) if target in _stored(kernel)]
        if not stored:
            continue
        computed_from = _read(kernels[stored[0]])
        for candidate in sorted(free, key=lambda k: built.inputs[k] not in computed_from):
            found = _living_in(kernels, stored[0], built.inputs[candidate], target)
            if found is not None:
                kernels = found
                free.remove(candidate)
                pairs.append((candidate, number))
                break
    return attrs.evolve(built, kernels=_that_do_something(kernels), donated=tuple(pairs))


def in_memory_of(kernels: Sequence[Kernel], source: Buffer, target: Buffer) -> tuple[Kernel, ...] | None:
    """The kernels with a result in the memory of an input, in which it is stored; None where it cannot live there."""
    stored = [k for k, kernel in enumerate(kernels) if target in _stored(kernel)]
    found = _living_in(tuple(kernels), stored[0], source, target) if stored else None
    return None if found is None else _that_do_something(found)


def _living_in(kernels: tuple[Kernel, ...], place: int, source: Buffer, target: Buffer) -> tuple[Kernel, ...] | None:
    """The same, given the first kernel that stores the result."""
    order = _reads_first(kernels, place, source) if _fits(source, target) else None
    if order is None or not _is_safe(kernels[place], source, target):
        return None
    return tuple(_replaced(kernel, source, target) for kernel in order)


def _fits(source: Buffer, target: Buffer) -> bool:
    """Truth values stay where they are: the caller's may be any byte, and those of the program are 0 or 1."""
    return source.dtype is target.dtype and source.dtype is not bool_ and source.shape == target.shape


def _reads_first(kernels: Sequence[Kernel], place: int, source: Buffer) -> tuple[Kernel, ...] | None:
    """The kernels, of which those that read `source`, and what they need, go before the one at `place`, unless they
    need that."""
    last = max((k for k in range(place + 1, len(kernels)) if source in _read(kernels[k])), default=place)
    first: list[int] = []
    stored, read = set[Buffer](), set[Buffer]()
    for k in range(last, place - 1, -1):
        stores, reads = _stored(kernels[k]), _read(kernels[k])
        waits = stores & (read | stored) or reads & stored  # for what goes first
        if k > place and (source in reads or waits):
            first.insert(0, k)
            stored |= stores
            read |= reads
        elif waits:
            return None
    others = [k for k in range(place, last + 1) if k not in first]
    return (*kernels[:place], *(kernels[k] for k in (*first, *others)), *kernels[last + 1 :])


def _is_safe(kernel: Kernel, source: Buffer, target: Buffer) -> bool:
    return source not in _read(kernel) or _reads_only_what_it_stores(kernel.body, source, target)


def _reads_only_what_it_stores(body: Stmt, source: Buffer, target: Buffer) -> bool:
    """Whether every load of `source` is of elements of `target` that its iteration stores then, or later."""
    if not is_plain(body) or any(isinstance(part, If) for part in walk(body)):
        return False
    order = list(_in_order(body, frozenset()))
    stores = [k for k, (store, _) in enumerate(order) if store.buffer is target]
    # What stays as it is need not be stored, if that came before what does not.
    places = [k for k in stores if not _copies(order[k][0], source)]
    if not places:
        return True
    if len(places) != 1:
        return False
    last, loops = order[places[0]]
    # Each iteration stores an element of its own.
    moving = [p for p in last.index if loops.intersection(loops_in(p))]
    if last.reduce is not None or len(moving) != len(loops) or {p.atom for p in moving} != loops:
        return False
    for place, (store, around) in enumerate(order):
        for load in (load for load in reads(store) if load.buffer is source):
            same = (p is q for p, q in zip(last.index, load.index, strict=True) if p.atom in around)
            if place > places[0] or not all(same):
                return False
    return True


def _copies(store: Store, source: Buffer) -> bool:
    value = store.value if store.reduce is None else None
    is_whole = isinstance(value, Load) and not value.conditions and value.index == store.index
    return is_whole and isinstance(value, Load) and value.buffer is source


def _in_order(s: Stmt, loops: frozenset[Atom]) -> Iterator[tuple[Store, frozenset[Atom]]]:
    """The stores in order of execution, with the loops round them."""
    if isinstance(s, Store):
        yield s, loops
    if isinstance(s, Nest):
        loops |= {h.loop for h in s.heads if isinstance(h, For)}
    for part in parts(s):
        yield from _in_order(part, loops)


def _stores(kernel: Kernel) -> Iterator[Store]:
    return (part for part in walk(kernel.body) if isinstance(part, Store))


def _stored(kernel: Kernel) -> set[Buffer]:
    return {store.buffer for store in _stores(kernel)} | used_whole(kernel.body).writes


def _read(kernel: Kernel) -> set[Buffer]:
    return {load.buffer for load in reads(kernel.body)} | used_whole(kernel.body).reads


def _replaced(kernel: Kernel, source: Buffer, target: Buffer) -> Kernel:
    """The kernel with one buffer in place of another."""
    renaming = Renaming(Substitution({}), {source: (target, ())})
    return Kernel(kernel.name, renaming.statement(kernel.body)) if source in _read(kernel) else kernel


def _that_do_something(kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """The kernels without copies of an element to itself, also of those in loops with others."""
    return tuple(k.with_body(_without_nothing(k.body)) for k in kernels if not _does_nothing(k.body))


def _without_nothing(s: Stmt) -> Stmt:
    if isinstance(s, Seq):
        return sequence(_without_nothing(part) for part in s.parts if not _does_nothing(part))
    return rebuilt(s, _without_nothing) if is_plain(s) and not isinstance(s, Store) else s


def _does_nothing(s: Stmt) -> bool:
    """for i: out[i] = out[i]"""
    if isinstance(s, Nest):
        return _does_nothing(s.body)
    return isinstance(s, Store) and _copies(s, s.buffer)
