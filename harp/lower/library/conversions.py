"""Rows of float16 as float32, and back, which machines convert a vector at a time.

for simd l: wide[l] = cast<f32>(x[i, l])    ->  widen
for simd l: out[i, l] = cast<f16>(wide[l])  ->  narrow
"""

from __future__ import annotations

from harp.lower.library.operands import operand
from harp.lower.library.runs import is_dense
from harp.lower.loopir.loops import For, LibraryCall, Load, LoopKind, Nest, Routine, Store
from harp.trace.index.polynomial import indirect_in
from harp.trace.scalar.dtypes import f16, f32
from harp.trace.scalar.expr import Apply
from harp.trace.scalar.ops import Op

_ROUTINES = {(f16, f32): Routine.WIDEN, (f32, f16): Routine.NARROW}


def conversion(s: Nest) -> LibraryCall | None:
    """The rule; see the top of the file."""
    last, store = s.heads[-1], s.body
    if not isinstance(last, For) or last.kind is not LoopKind.SIMD or not isinstance(store, Store) or store.reduce:
        return None
    value = store.value
    given = value.args[0] if isinstance(value, Apply) and value.op is Op.CAST else None
    if not isinstance(given, Load) or given.conditions or any(map(indirect_in, (*store.index, *given.index))):
        return None
    routine, loops = _ROUTINES.get((given.dtype, value.dtype)), (last.loop,)
    source, target = operand(given, loops), operand(Load(store.buffer, store.index), loops)
    if (
        routine is None
        or source is None
        or target is None
        or not is_dense(source, loops)
        or not is_dense(target, loops)
    ):
        return None
    return LibraryCall(routine, 0, loops, (source, target))
