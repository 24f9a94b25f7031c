"""Removal of copies: an array that is copied and not read again is computed directly where the copy would be.

    mem = f(x); out = mem; g(out)               ->    out = f(x); g(out)
    mem = f(x); out = mem; g(out); h(mem[k])    ->    out = f(x); part = out[k]; g(out); h(part)

Loops begin with such copies of their carried values, so an inner loop works in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import Buffer, For, Kernel, Load, Nest, Space, Stmt, Store, walk
from harp.lower.loopir.nests import Renaming, is_plain, nest, reads, rebuilt
from harp.lower.loopir.origin import Storage
from harp.lower.schedule.build import Built
from harp.trace.graph.node import positions
from harp.trace.index.bounds import nonnegative
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Index, Indirect, Loop, depends_on, product
from harp.trace.scalar.expr import Expr, const, rewrite

# Parts of an array that all iterations of a kernel read are copied before it, so that the result can take over the
# array's memory.
#
#     for i, j: out[i, j] = in[i, j] - in[i, t]*in[t, j]
#         ->  for i: column[i] = in[i, t];  for j: row[j] = in[t, j]
#             for i, j: out[i, j] = in[i, j] - column[i]*row[j]          (in place: in[i, j] is read, then stored)
#
# A part has constant indices along some axes, so it is smaller than a second array by a power of n: a step of a loop
# that subtracts an outer product, or takes the shorter of two paths, needs one matrix instead of two.

# The index along each axis; None where the part has the whole axis.
_Part = tuple[Index | None, ...]
# An array must have at least this many times the elements of a part: one of two rows is not worth a copy.
_TIMES = 16


def with_copied_parts(
    kernels: Sequence[Kernel], source: Buffer, target: Buffer
) -> tuple[tuple[Buffer, ...], tuple[Kernel, ...]]:
    """Buffers for the parts of `source` that are read after `target` is stored to, and the kernels, preceded by those
    that fill these buffers."""
    first = next((k for k, kernel in enumerate(kernels) if _stores_to(kernel, target)), len(kernels))
    readers = [kernel for kernel in kernels[first:] if is_plain(kernel.body)]
    buffers: dict[_Part, Buffer] = {}
    for load in (load for kernel in readers for load in reads(kernel.body) if load.buffer is source):
        part = _small_part(load)
        if part is not None and part not in buffers:
            shape = tuple(size for size, fixed in zip(source.shape, part, strict=True) if fixed is None)
            buffers[part] = Buffer(f"{source.name}_part{len(buffers)}", source.dtype, shape, Space.SCRATCH)

    def leaf(e: Expr) -> Expr:
        part = _small_part(e) if isinstance(e, Load) and e.buffer is source else None
        if part is None:
            return e
        assert isinstance(e, Load)
        index = tuple(p for p, fixed in zip(e.index, part, strict=True) if fixed is None)
        return Load(buffers[part], index, e.conditions, e.fill)

    # Columns last: their copy may be fused with the loop over the rows.
    copies = [_part_copy(buffers[part], source, part) for part in sorted(buffers, key=lambda part: part[0] is None)]
    others = [k.with_body(_with_values(k.body, leaf)) if k in readers else k for k in kernels]
    return tuple(buffers.values()), (*copies, *others)


def _small_part(load: Load) -> _Part | None:
    """The part that is copied for a load; None if it is not small, or no index is constant."""
    part = tuple(None if any(isinstance(atom, (Loop, Indirect)) for atom in depends_on(p)) else p for p in load.index)
    times = product([size for p, size in zip(part, load.buffer.shape, strict=True) if p is not None])
    return part if times.constant is None or times.constant >= _TIMES else None


def _part_copy(buffer: Buffer, source: Buffer, part: _Part) -> Kernel:
    """for i: buffer[i] = source[i, t], for elements inside of `source`; the others are not read."""
    along = positions(buffer.shape)
    rest = iter(along)
    fixed = [(p, size) for p, size in zip(part, source.shape, strict=True) if p is not None]
    unproven = tuple(c for p, size in fixed for c in (p, size - 1 - p) if not nonnegative(c))
    fill = const(0, source.dtype) if unproven else None
    value = Load(source, tuple(next(rest) if p is None else p for p in part), unproven, fill)
    loops = [atom for p in along if isinstance(atom := p.atom, Loop)]
    return Kernel("copy", nest(map(For, loops), Store(buffer, along, value)))


def _with_values(s: Stmt, leaf: Callable[[Expr], Expr]) -> Stmt:
    if isinstance(s, Store):
        return Store(s.buffer, s.index, rewrite((s.value,), leaf)[0], s.reduce)
    return rebuilt(s, lambda part: _with_values(part, leaf))


def _stores_to(kernel: Kernel, target: Buffer) -> bool:
    return any(isinstance(s, Store) and s.buffer is target for s in walk(kernel.body))


def without_copies(built: Built) -> Built:
    """The kernels without copies of scratch memory to untouched memory, if the copied array is not read again, or only
    small parts of it, which are copied instead."""
    kernels, scratch = list(built.kernels), dict.fromkeys(built.scratch)
    touched = [set(effects(kernel.body).touched) for kernel in kernels]
    number = 0
    while number < len(kernels):
        pair = _whole_copy(kernels[number])
        if pair is not None and pair[1] in scratch and not any(pair[0] in before for before in touched[:number]):
            target, source = pair
            parts: tuple[Buffer, ...] = ()
            behind: Sequence[Kernel] = kernels[number + 1 :]
            if any(source in later for later in touched[number + 1 :]):
                parts, behind = with_copied_parts(behind, source, target)
            if not any(source in effects(k.body).touched for k in behind[len(parts) :]):
                if Storage.OF_LOOP not in built.origins.storage_of(target):
                    built.origins.note_storage(target, Storage.UPDATED_PARTS if parts else Storage.UPDATED)
                built.origins.note_moved(source, target)
                kernels[number:] = behind
                kernels[: number + len(parts)] = [_renamed(k, source, target) for k in kernels[: number + len(parts)]]
                touched = [set(effects(kernel.body).touched) for kernel in kernels]
                del scratch[source]
                scratch |= dict.fromkeys(parts)
                continue
        number += 1
    if scratch.keys() == set(built.scratch):
        return built
    return attrs.evolve(built, kernels=tuple(kernels), scratch=tuple(scratch))


def _whole_copy(kernel: Kernel) -> tuple[Buffer, Buffer] | None:
    """Target and source of a kernel that copies a whole array; None for other kernels."""
    store = kernel.body.body if isinstance(kernel.body, Nest) else kernel.body
    value = store.value if isinstance(store, Store) and store.reduce is None else None
    if not isinstance(store, Store) or not isinstance(value, Load) or value.conditions:
        return None
    target, source = store.buffer, value.buffer
    whole = store.index == value.index == positions(target.shape)
    return (target, source) if whole and target.shape == source.shape and target.dtype is source.dtype else None


def _renamed(kernel: Kernel, old: Buffer, new: Buffer) -> Kernel:
    return kernel.with_body(Renaming(Substitution({}), {old: (new, ())}).statement(kernel.body))
