"""Results that take over the memory of inputs, which the caller donates.

    for i: out0[i] = in0[i] + in1[i]    ->    for i: out0[i] = out0[i] + in1[i]        (in0 lives in out0)

An output may live in an input of the same dtype and shape if no element is stored before the last read of its old
value: no kernel after the one that stores the output reads the input, and in that kernel no statement after the store
does; each iteration of the loops round both reads only elements that no other iteration stores.

    for i { m = max over j of in0[i, j]; for j: out0[i, j] = in0[i, j]/m }         (row i is read, then stored)
        ->  for i { m = max over j of out0[i, j]; for j: out0[i, j] = out0[i, j]/m }

A scatter changes elements that an earlier kernel, or an earlier statement, stored; where those stores only copied the
input, they are dropped.

    for i { a = in0[i, 0]; for j: out0[i, j] = in0[i, j]; out0[i, t] = a }
        ->  for i { a = out0[i, 0]; out0[i, t] = a }

The input's buffer is replaced by the output's in all kernels, so two buffers never share memory, and later passes see
one buffer that is read and then written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from harp.lower.loopir.effects import effects, used_whole
from harp.lower.loopir.loops import Buffer, For, Kernel, Load, Nest, Seq, Stmt, Store, parts, walk
from harp.lower.loopir.nests import Renaming, is_plain, reads, rebuilt, sequence
from harp.lower.loopir.origin import Storage
from harp.lower.schedule.build import Built
from harp.trace.index.division import Substitution
from harp.trace.scalar.dtypes import bool_


def donate(built: Built, donated: Sequence[int]) -> Built:
    """Let each output live in the first donated input that fits; inputs that it is computed from come first."""
    kernels, free = built.kernels, [*donated]
    pairs: list[tuple[int, int]] = []
    for number, target in enumerate(built.outputs):
        stored = [k for k, kernel in enumerate(kernels) if target in _stored(kernel)]
        if not stored:
            continue
        computed_from = _read_buffers(kernels[stored[0]])
        for candidate in sorted(free, key=lambda k: built.inputs[k] not in computed_from):
            moved = _living_in(kernels, stored[0], built.inputs[candidate], target)
            if moved is not None:
                kernels = moved
                free.remove(candidate)
                pairs.append((candidate, number))
                if built.inputs[candidate] in computed_from:
                    built.origins.note_moved(built.inputs[candidate], target)
                built.origins.note_storage(target, Storage.DONATED)
                break
    return attrs.evolve(built, kernels=_that_do_something(kernels), donated=tuple(pairs))


def in_memory_of(kernels: Sequence[Kernel], source: Buffer, target: Buffer) -> tuple[Kernel, ...] | None:
    """The kernels with a result that lives in an input, in which it is stored; None if it cannot."""
    stored = [k for k, kernel in enumerate(kernels) if target in _stored(kernel)]
    moved = _living_in(tuple(kernels), stored[0], source, target) if stored else None
    return None if moved is None else _that_do_something(moved)


def copies(kernels: Sequence[Kernel], source: Buffer, target: Buffer) -> bool:
    """Whether a result is a copy of an input in which a part is changed."""
    stores = [store for kernel in kernels for store in _stores(kernel) if store.buffer is target]
    return len(stores) > 1 and not all(_is_change(store, source, target) for store in stores)


def _living_in(kernels: tuple[Kernel, ...], place: int, source: Buffer, target: Buffer) -> tuple[Kernel, ...] | None:
    """The same, given the first kernel that stores the result."""
    order = _reads_first(kernels, place, source) if _fits(source, target) else None
    kernel = kernels[place]
    if order is not None and is_plain(kernel.body) and not _is_safe(kernel, source, target):
        kernel = kernel.with_body(_reading_first(kernel.body, source, target))
    if order is None or not _is_safe(kernel, source, target):
        return None
    return tuple(_replaced(kernel if k is kernels[place] else k, source, target) for k in order)


def _fits(source: Buffer, target: Buffer) -> bool:
    """Whether dtypes and shapes are equal. Bools do not fit: the caller's may be any byte, the program's are 0 or 1."""
    return source.dtype is target.dtype and source.dtype is not bool_ and source.shape == target.shape


def _reads_first(kernels: Sequence[Kernel], place: int, source: Buffer) -> tuple[Kernel, ...] | None:
    """The kernels, reordered: those that read `source`, and those that they depend on, precede the kernel at `place`.
    None if they depend on that kernel."""
    last = max((k for k in range(place + 1, len(kernels)) if source in _read_buffers(kernels[k])), default=place)
    first: list[int] = []
    stored, read = set[Buffer](), set[Buffer]()
    for k in range(last, place - 1, -1):
        stores, reads = _stored(kernels[k]), _read_buffers(kernels[k])
        waits = stores & (read | stored) or reads & stored  # for the kernels that are moved
        if k > place and (source in reads or waits):
            first.insert(0, k)
            stored |= stores
            read |= reads
        elif waits:
            return None
    others = [k for k in range(place, last + 1) if k not in first]
    return (*kernels[:place], *(kernels[k] for k in (*first, *others)), *kernels[last + 1 :])


def _is_safe(kernel: Kernel, source: Buffer, target: Buffer) -> bool:
    if source not in _read_buffers(kernel):
        return True
    return is_plain(kernel.body) and _reads_in_time(kernel.body, source, target)


def _reads_in_time(s: Stmt, source: Buffer, target: Buffer) -> bool:
    """Whether all loads of `source` precede the change of their element: of two consecutive statements, the second
    reads nothing that the first changes; in a loop that does both, each iteration reads and changes elements of its
    own, as where its loop is the index along one axis."""
    if isinstance(s, Nest) and _changes(s, source, target) and _loads(s, source):
        places = [store.index for store in walk(s) if isinstance(store, Store) and _is_change(store, source, target)]
        places += [load.index for load in _loads(s, source)]
        axes = range(len(target.shape))
        for head in (h for h in s.heads if isinstance(h, For)):
            if not any(all(place[k].atom is head.loop for place in places) for k in axes):
                return False
    if isinstance(s, Seq):
        is_changed = False
        for part in s.parts:
            if is_changed and _loads(part, source):
                return False
            is_changed |= _changes(part, source, target)
    return all(_reads_in_time(part, source, target) for part in parts(s))


def _reading_first(s: Stmt, source: Buffer, target: Buffer) -> Stmt:
    """The statement, in which parts that read `source` precede those that change it, unless they depend on them."""
    if not isinstance(s, Seq):
        return s if isinstance(s, Store) else rebuilt(s, lambda part: _reading_first(part, source, target))
    order: list[Stmt] = []
    for part in (_reading_first(part, source, target) for part in s.parts):
        changing = [k for k, before in enumerate(order) if _changes(before, source, target)]
        place = changing[0] if changing and _loads(part, source) and not _changes(part, source, target) else len(order)
        order.insert(place if all(_are_apart(part, other) for other in order[place:]) else len(order), part)
    return sequence(order)


def _are_apart(one: Stmt, other: Stmt) -> bool:
    """Whether two statements may be exchanged."""
    a, b = effects(one), effects(other)
    return not (a.writes & (b.reads | b.writes) or b.writes & a.reads)


def _loads(s: Stmt, source: Buffer) -> list[Load]:
    return [load for load in reads(s) if load.buffer is source]


def _changes(s: Stmt, source: Buffer, target: Buffer) -> bool:
    return any(isinstance(part, Store) and _is_change(part, source, target) for part in walk(s))


def _is_change(store: Store, source: Buffer, target: Buffer) -> bool:
    """Whether the stored value differs from the present one, if the result lives in `source`."""
    value = store.value
    if store.buffer is not target or store.reduce is not None or not isinstance(value, Load):
        return store.buffer is target
    return value.buffer is not source or value.index != store.index or bool(value.conditions)


def _stores(kernel: Kernel) -> Iterator[Store]:
    return (part for part in walk(kernel.body) if isinstance(part, Store))


def _stored(kernel: Kernel) -> set[Buffer]:
    return {store.buffer for store in _stores(kernel)} | used_whole(kernel.body).writes


def _read_buffers(kernel: Kernel) -> set[Buffer]:
    return {load.buffer for load in reads(kernel.body)} | used_whole(kernel.body).reads


def _replaced(kernel: Kernel, source: Buffer, target: Buffer) -> Kernel:
    """The kernel with one buffer in place of another."""
    renaming = Renaming(Substitution({}), {source: (target, ())})
    return Kernel(kernel.name, renaming.statement(kernel.body)) if source in _read_buffers(kernel) else kernel


def _that_do_something(kernels: Sequence[Kernel]) -> tuple[Kernel, ...]:
    """The kernels without copies of elements to themselves, which may also be inside of loops."""
    return tuple(k.with_body(_without_nothing(k.body)) for k in kernels if not _does_nothing(k.body))


def _without_nothing(s: Stmt) -> Stmt:
    if isinstance(s, Seq):
        return sequence(_without_nothing(part) for part in s.parts if not _does_nothing(part))
    return rebuilt(s, _without_nothing) if is_plain(s) and not isinstance(s, Store) else s


def _does_nothing(s: Stmt) -> bool:
    """for i: out[i] = out[i]"""
    if isinstance(s, Nest):
        return _does_nothing(s.body)
    value = s.value if isinstance(s, Store) else None
    if not isinstance(s, Store) or not isinstance(value, Load) or s.reduce is not None or value.conditions:
        return False
    return value.buffer is s.buffer and value.index == s.index
