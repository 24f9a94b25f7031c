"""Hoisting: elements of index arrays that are invariant in inner loops are read once, before these.

    for i { for simd j: out[i, j] = x[idx[i], j] }  ->  for i { let p = idx[i]; for simd j: out[i, j] = x[p, j] }

Compilers do not see this themselves, since clipping an index is a chain of selects. Only elements that are certain to
be inside of the index array, and not made in the kernel, are read early, since conditions round the use may come later.
"""

from __future__ import annotations

from harp.lower.loopir.effects import indices
from harp.lower.loopir.loops import Buffer, For, Head, Kernel, Let, Nest, Repeat, Stmt, Store, walk
from harp.lower.loopir.nests import Renaming, rebuilt
from harp.trace.index.bounds import below
from harp.trace.index.division import Substitution
from harp.trace.index.polynomial import Atom, Index, Indirect, Loop, Symbol, indirect_in, loops_in, of

# Scopes of programs' sizes begin at 0.
_SCOPE = -1


def hoisted(kernel: Kernel) -> Kernel:
    """The kernel with names for such elements."""
    if not any(_indirects(part) for part in walk(kernel.body)):
        return kernel
    stored = frozenset(part.buffer for part in walk(kernel.body) if isinstance(part, Store))
    return kernel.with_body(_Names(stored).statement(kernel.body, frozenset()))


def _indirects(s: Stmt) -> set[Indirect]:
    return {indirect for p in indices(s) for indirect in indirect_in(p)}


class _Names:
    def __init__(self, stored: frozenset[Buffer]) -> None:
        self.stored = stored
        self.count = 0

    def statement(self, s: Stmt, bound: frozenset[Loop]) -> Stmt:
        if isinstance(s, Nest):
            return self.nest(s, bound)
        if isinstance(s, Repeat):
            bound |= {s.loop}
        return rebuilt(s, lambda part: self.statement(part, bound))

    def nest(self, s: Nest, bound: frozenset[Loop]) -> Stmt:
        heads: list[Head] = []
        rest: Stmt = s
        while isinstance(rest, Nest) and rest.heads:
            head = rest.heads[0]
            heads.append(head)
            rest = Nest(rest.heads[1:], rest.body) if len(rest.heads) > 1 else rest.body
            if isinstance(head, For):
                bound |= {head.loop}
                if any(isinstance(part, Nest) for part in walk(rest)):
                    lets, rest = self.lets(rest, bound)
                    heads += lets
        return Nest(tuple(heads), self.statement(rest, bound))

    def lets(self, s: Stmt, bound: frozenset[Loop]) -> tuple[list[Let], Stmt]:
        """Names for elements that the bound loops determine, innermost ones first, and the statement with these
        names."""
        lets: list[Let] = []
        while True:
            found = {indirect for part in walk(s) for indirect in _indirects(part)}
            ready = [p for p in found if p.array not in self.stored and _is_ready(p, bound)]
            if not ready:
                return lets, s
            indirect = min(ready, key=lambda p: p.key)
            symbol = Symbol(_SCOPE, self.count, f"p{self.count}")
            self.count += 1
            lets.append(Let(symbol, of(indirect)))
            names: dict[Atom, Index] = {indirect: of(symbol)}
            s = Renaming(Substitution(names), {}).statement(s)


def _is_ready(indirect: Indirect, bound: frozenset[Loop]) -> bool:
    """Whether it is known and inside of its array for all iterations of these loops, and contains no other element."""
    assert isinstance(indirect.array, Buffer)
    known = all(loops_in(p) <= bound and not indirect_in(p) for p in indirect.at)
    return known and all(below(p, extent) for p, extent in zip(indirect.at, indirect.array.shape, strict=True))
