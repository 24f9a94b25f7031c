"""The flags of a kernel's unit that follow from what the kernel does."""

from __future__ import annotations

from collections.abc import Iterator, Set

from harp.backends.c_family.scalar import HALVES
from harp.lower.loopir.loops import MEMORY, For, Kernel, Load, Nest, Repeat, Store, walk
from harp.lower.loopir.nests import stride
from harp.trace.scalar.expr import Apply, Expr
from harp.trace.scalar.expr import walk as walk_expr
from harp.trace.scalar.ops import Op

# Where numbers of 16 bits stand beside floats, gcc prints each loop for two vectors at once; what these leave then goes
# one by one, not by a loop for each shorter vector, in half the compiling time.
_OF_HALVES = ("--param=vect-epilogues-nomask=0",)
# Of elements that lie side by side and are read in some iterations only, gcc 12 takes one for the other, where their
# order is not that of what is computed:
#     for i { c = ...; out[2*i] = c ? x[2*i + 1] : 0; out[2*i + 1] = c ? x[2*i] : 0 }
# It forgets the permutation of the vector where it makes one masked load of both. Such loops go one by one.
_OF_CHOICES = ("-fno-tree-loop-if-convert",)


def flags_of(kernel: Kernel, uses: Set[str]) -> tuple[str, ...]:
    """The flags of a kernel that uses these headers and kernels of the library."""
    return (*(_OF_HALVES if HALVES in uses else ()), *(_OF_CHOICES if _chooses_side_by_side(kernel) else ()))


def _chooses_side_by_side(kernel: Kernel) -> bool:
    """Whether it reads some elements in some iterations only, of those that are two or more apart, or have parts."""
    heads = (h for s in walk(kernel.body) if isinstance(s, Nest) for h in s.heads)
    loops = {h.loop for h in heads if isinstance(h, For)}
    loops |= {s.loop for s in walk(kernel.body) if isinstance(s, Repeat)}
    chosen = {load for s in walk(kernel.body) if isinstance(s, Store) for load in _chosen(s.value)}
    return any(
        load.dtype.is_complex or any(abs(stride(load, loop) or 0) > 1 for loop in loops)
        for load in chosen
        if load.buffer.space in MEMORY
    )


def _chosen(value: Expr) -> Iterator[Load]:
    """The loads of a value that not every iteration does."""
    for e in walk_expr((value,)):
        if isinstance(e, Load) and e.conditions:
            yield e
        elif isinstance(e, Apply) and e.op is Op.SELECT:
            yield from (load for load in walk_expr(e.operands[1:]) if isinstance(load, Load))
