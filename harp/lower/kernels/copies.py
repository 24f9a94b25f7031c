"""Copies of arrays that nobody reads again: the array is made where its copy would be.

    mem = f(x); out = mem; g(out)               ->    out = f(x); g(out)
    mem = f(x); out = mem; g(out); h(mem[k])    ->    out = f(x); part = out[k]; g(out); h(part)

Loops begin with such copies of what they carry at first, so a loop in a loop goes on in place.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from harp.lower.kernels.copied_parts import with_copied_parts
from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import Buffer, Kernel, Load, Nest, Store
from harp.lower.loopir.nests import Renaming
from harp.lower.schedule.build import Built
from harp.trace.graph.node import positions
from harp.trace.index.division import Substitution


def without_copies(built: Built) -> Built:
    """The kernels without copies of scratch memory to memory that nothing used before, where nobody reads the copied
    array again, or only small parts of it, which are copied instead."""
    kernels, scratch = list(built.kernels), dict.fromkeys(built.scratch)
    touched = [set(effects(kernel.body).touched) for kernel in kernels]
    place = 0
    while place < len(kernels):
        pair = _copied(kernels[place])
        if pair is not None and pair[1] in scratch and not any(pair[0] in before for before in touched[:place]):
            target, source = pair
            parts: tuple[Buffer, ...] = ()
            behind: Sequence[Kernel] = kernels[place + 1 :]
            if any(source in later for later in touched[place + 1 :]):
                parts, behind = with_copied_parts(behind, source, target)
            if not any(source in effects(k.body).touched for k in behind[len(parts) :]):
                built.origins.note_moved(source, target)
                kernels[place:] = behind
                kernels[: place + len(parts)] = [_renamed(k, source, target) for k in kernels[: place + len(parts)]]
                touched = [set(effects(kernel.body).touched) for kernel in kernels]
                del scratch[source]
                scratch |= dict.fromkeys(parts)
                continue
        place += 1
    if scratch.keys() == set(built.scratch):
        return built
    return attrs.evolve(built, kernels=tuple(kernels), scratch=tuple(scratch))


def _copied(kernel: Kernel) -> tuple[Buffer, Buffer] | None:
    """Two arrays of the same shape, of which one becomes what the other is."""
    store = kernel.body.body if isinstance(kernel.body, Nest) else kernel.body
    value = store.value if isinstance(store, Store) and store.reduce is None else None
    if not isinstance(store, Store) or not isinstance(value, Load) or value.conditions:
        return None
    target, source = store.buffer, value.buffer
    whole = store.index == value.index == positions(target.shape)
    return (target, source) if whole and target.shape == source.shape and target.dtype is source.dtype else None


def _renamed(kernel: Kernel, old: Buffer, new: Buffer) -> Kernel:
    return kernel.with_body(Renaming(Substitution({}), {old: (new, ())}).statement(kernel.body))
