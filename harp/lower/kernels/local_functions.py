"""Equal loops of a kernel become calls of one function.

    for simd l < n: t1[l] = t0[l]*1.01 + 1.0    ->    f(n, t0, 1.0, t1)
    for simd l < n: t0[l] = t1[l]*1.01 + 2.0          f(n, t1, 2.0, t0)

As in `outline`, loops may differ in numbers. The time to compile a kernel is about proportional to its loops.
"""

from __future__ import annotations

from collections import Counter

from harp.lower.kernels.outline import Form, Outlined, with_parameters
from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import Buffer, For, Kernel, LocalCall, LoopKind, Nest, Seq, Space, Stmt, Store, walk
from harp.lower.loopir.nests import rebuilt
from harp.lower.reductions.accumulators import LANES
from harp.trace.index.polynomial import of
from harp.trace.scalar.expr import Const

# The fewest equal loops: a call takes some nanoseconds, and the compiler some milliseconds for a loop.
_FEWEST = 3


def local_functions(kernel: Kernel) -> Kernel:
    """The kernel in which equal loops for vectors are calls."""
    loops = [s for s in walk(kernel.body) if _is_loop(s)]
    if len(loops) < _FEWEST:
        return kernel
    pool: dict[Const, Buffer] = {}
    outlined = with_parameters([Outlined(Form(Kernel("loop", s)), {}) for s in loops], pool)
    times = Counter(form.text for form, _ in outlined)
    functions: dict[str, Kernel] = {}
    numbers = {buffer: number for number, buffer in pool.items()}
    calls: dict[Stmt, Stmt] = {}
    for s, (form, parts) in zip(loops, outlined, strict=True):
        if times[form.text] >= _FEWEST:
            function = functions.get(form.text) or functions.setdefault(form.text, form.kernel())
            arguments = tuple(numbers[parts[b].buffer] if b in parts else b for b in form.buffers)
            calls[s] = LocalCall(function, arguments, tuple(map(of, form.sizes)), s)

    def statement(s: Stmt) -> Stmt:
        return calls[s] if s in calls else rebuilt(s, statement)

    return kernel.with_body(statement(kernel.body))


def _is_loop(s: Stmt) -> bool:
    """Whether it is an innermost loop for vectors, without sums and variables, and so long that its arrays are not kept
    in registers."""
    head = s.heads[0] if isinstance(s, Nest) and len(s.heads) == 1 else None
    if not isinstance(s, Nest) or not isinstance(head, For) or head.kind is not LoopKind.SIMD:
        return False
    stores = s.body.parts if isinstance(s.body, Seq) else (s.body,)
    if not all(isinstance(store, Store) and store.reduce is None for store in stores):
        return False
    length = head.loop.extent.constant
    return (length is None or length > LANES) and not any(buffer.space is Space.REG for buffer in effects(s).touched)
