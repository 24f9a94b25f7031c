"""The flags of a kernel's unit that follow from what the kernel does."""

from __future__ import annotations

from collections.abc import Iterator, Set

from harp.backends.c_family.scalar import HALVES
from harp.lower.loopir.loops import MEMORY, For, Kernel, Load, Nest, Stmt, Store, parts, walk
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
    """Whether only some iterations of a loop read parts of complex numbers, or several of the elements between those of
    one iteration and the next."""
    nests = [s for s in walk(kernel.body) if isinstance(s, Nest)]
    bodies = [(s.body, [h.loop for h in s.heads if isinstance(h, For)][-1:]) for s in nests]
    for body, loops in [(kernel.body, []), *bodies]:
        chosen = {load for s in _inside(body) for load in _chosen(s.value) if load.buffer.space in MEMORY}
        if any(load.dtype.is_complex for load in chosen):
            return True
        apart = [load.buffer for load in chosen if any(abs(stride(load, loop) or 0) > 1 for loop in loops)]
        if len(set(apart)) < len(apart):
            return True
    return False


def _inside(s: Stmt) -> Iterator[Store]:
    """The stores of a statement that are in no further loop."""
    if isinstance(s, Store):
        yield s
    elif not isinstance(s, Nest):
        for part in parts(s):
            yield from _inside(part)


def _chosen(value: Expr) -> Iterator[Load]:
    """The loads of a value that not every iteration does."""
    for e in walk_expr((value,)):
        if isinstance(e, Load) and e.conditions:
            yield e
        elif isinstance(e, Apply) and e.op is Op.SELECT:
            yield from (load for load in walk_expr(e.operands[1:]) if isinstance(load, Load))
