"""Loops that call a function which has a fast twin for common arguments.

    for simd i: out[i] = sin(x[i])
        ->  far = 0; for simd i: out[i] = sin_near(&far, x[i]); if (far) for simd i: out[i] = sin(x[i])

The twin is exact for common arguments only, and notes others. Both functions give the same bits for common arguments.
The second run repeats all work of the first, so the loop must not read what it stores.
"""

from __future__ import annotations

from collections.abc import Sequence

from harp.backends.c_family.scalar import known_power
from harp.lower.loopir.effects import effects
from harp.lower.loopir.loops import For, LoopKind, Nest, Seq, Stmt, Store
from harp.trace.scalar.dtypes import f32, f64
from harp.trace.scalar.expr import Apply, Const, Expr, walk
from harp.trace.scalar.ops import Op

# Functions of float32 with a twin for common arguments: harp_sin_near_f32(&far, x) is the twin of harp_sin_f32(x).
# Powers of integers and divisions of floats have one, too.
FUNCTIONS = frozenset({Op.ATAN2, Op.COS, Op.LOG10, Op.LOG2, Op.POW, Op.SIN, Op.TAN})
# Those of float32 and float64 have twins, too: the exact ones call `fmod`, which loops over the bits of the quotient.
_DIVISIONS = frozenset({Op.FLOORDIV, Op.MOD})
# The variable that notes uncommon arguments: as wide as they are, so that vectors of both have the same length.
NOTED = "far"
NOTE = f"uint32_t {NOTED} = 0"


def runs_again(s: Nest) -> bool:
    """Whether the innermost loop calls such a function, and may be run twice."""
    last, stores = s.heads[-1] if s.heads else None, s.body.parts if isinstance(s.body, Seq) else (s.body,)
    if not isinstance(last, For) or last.kind is not LoopKind.SIMD or not all(map(_sets, stores)):
        return False
    if not any(has_twin(e) for e in walk(store.value for store in stores if isinstance(store, Store))):
        return False
    used = effects(s.body)
    return not used.reads & used.writes


def has_twin(e: Expr) -> bool:
    """Whether an operation has a twin. Of powers with a constant exponent, those that divide have one."""
    if isinstance(e, Apply) and e.op is Op.POW and e.dtype.is_integer:
        return not e.dtype.is_tiny and not isinstance(e.args[1], Const)
    if isinstance(e, Apply) and e.op in _DIVISIONS:
        return e.dtype in (f32, f64)
    if not isinstance(e, Apply) or e.op not in FUNCTIONS or e.dtype is not f32:
        return False
    power = known_power(e)
    return power is None or (power[0] == "whole" and power[1] < -1)


def call(e: Apply, args: Sequence[str]) -> str:
    """The call of the twin."""
    power = known_power(e)
    if power is not None:
        return f"harp_pow_{power[0]}_near_f32(&{NOTED}, {args[0]}, {power[1]})"
    return f"harp_{e.op.name.lower()}_near_{e.dtype}(&{NOTED}, {', '.join(args)})"


def _sets(s: Stmt) -> bool:
    return isinstance(s, Store) and s.reduce is None
