"""Copies of arrays that nobody reads again: the array is made where its copy would be.

    mem = f(x); out = mem; g(out)    ->    out = f(x); g(out)

Loops begin with such copies of what they carry at first, so a loop in a loop goes on in place.
"""

from __future__ import annotations

import attrs

from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import Buffer, Kernel, Load, Nest, Store
from harp.lower.loopir.nests import Renaming
from harp.lower.schedule.build import Built
from harp.trace.graph.node import positions
from harp.trace.index.division import Substitution


def without_copies(built: Built) -> Built:
    """The kernels without copies of scratch memory that only a copy reads, to memory that nothing used before."""
    kernels, scratch = list(built.kernels), dict.fromkeys(built.scratch)
    touched = [set(effects(kernel.body).touched) for kernel in kernels]
    place = 0
    while place < len(kernels):
        pair = _copied(kernels[place])
        if pair is not None:
            target, source = pair
            is_last = not any(source in later for later in touched[place + 1 :])
            if source in scratch and is_last and not any(target in before for before in touched[:place]):
                built.origins.note_moved(source, target)
                del kernels[place], touched[place], scratch[source]
                for k in (k for k in range(place) if source in touched[k]):
                    kernels[k] = _renamed(kernels[k], source, target)
                    touched[k] = touched[k] - {source} | {target}
                continue
        place += 1
    if len(kernels) == len(built.kernels):
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
