"""Which loop nests groups of work-items share: products by squares, and long rows that are added up.

    for i, j { acc = 0; for k: ... }    ->  squares of the result        (`tiles`)
    for i { acc = 0; for k: acc += }    ->  a group for each row         (`rows`)

What fits neither stays as it is, for `grid`: an iteration is a work-item.
"""

from __future__ import annotations

from harp.lower.device.grid import is_for_host, is_independent
from harp.lower.device.groups import ITEMS, suits
from harp.lower.device.rows import shared_rows, shared_running_sum, shared_sum
from harp.lower.device.tiles import tiled
from harp.lower.loopir.loops import Alloc, If, Kernel, LoopKind, Nest, Repeat, Seq, Stmt
from harp.lower.loopir.nests import FreshLoops, rebuilt
from harp.lower.target import Target
from harp.trace.index.polynomial import Loop


def share(kernel: Kernel, target: Target) -> Kernel:
    """The kernel with nests that groups share, where the device has groups."""
    return kernel.with_body(_statement(FreshLoops(kernel), kernel.body, target, frozenset()))


def _statement(fresh: FreshLoops, s: Stmt, target: Target, known: frozenset[Loop]) -> Stmt:
    """`known` are the loops of the host round the statement."""
    if isinstance(s, Nest):
        return _nest(fresh, s, target, known)
    if isinstance(s, Repeat):
        known = known | {s.loop}
    running = shared_running_sum(fresh, s)
    if running is not None:
        return running
    if isinstance(s, (Seq, If, Alloc, Repeat)):
        found = rebuilt(s, lambda part: _statement(fresh, part, target, known))
        return found if not isinstance(s, Alloc) or suits(found) else s
    return s


def _nest(fresh: FreshLoops, s: Nest, target: Target, known: frozenset[Loop]) -> Stmt:
    whole = shared_sum(fresh, s)
    if whole is not None:
        return whole
    heads = s.heads
    for at, head in enumerate(heads):
        others = [*heads[:at], *heads[at + 1 :]]
        if not is_for_host(head, LoopKind.PLAIN, s, known) or not is_independent(head, others, s.body):
            return s
    found = tiled(fresh, s) if target.group >= ITEMS else None
    return found or shared_rows(fresh, s) or s
