"""float16, bfloat16 and float8 are for storage: what an expression over them computes, it computes in float32; one over
int4 and uint4 in int8 and uint8, where the result of every operation wraps around.

An expression is rounded to them once, where it ends, or where it says so by a cast; a reduction of them adds up in
float32, and its result is rounded. So all that runs programs, the NumPy interpreter and lowering, goes by this file.
"""

from __future__ import annotations

from functools import lru_cache

from harp.trace.scalar.dtypes import DType, computing
from harp.trace.scalar.expr import Apply, Const, Expr, apply, bitcast, cast, const, walk
from harp.trace.scalar.ops import Op, convert


@lru_cache(maxsize=1 << 12)
def widened(e: Expr) -> Expr:
    """`e` in float32 or int8 where it is of a dtype for storage, and so is what it is computed of; other expressions as
    they are."""
    new: dict[Expr, Expr] = {}
    for x in walk((e,)):
        if isinstance(x, Apply):
            args = [new[a] for a in x.operands]
            if x.op is Op.BITCAST:
                seen = bitcast(rounded(args[0], x.operands[0].dtype), x.dtype)
                new[x] = cast(seen, computing(x.dtype))
            elif x.op is not Op.CAST:
                new[x] = apply(x.op, *args)
                if x.dtype.is_stored and x.dtype.is_integer:
                    new[x] = cast(cast(new[x], x.dtype), new[x].dtype)
            elif x.dtype.is_stored and x.operands[0].dtype is x.dtype:
                new[x] = args[0]
            else:
                new[x] = cast(cast(args[0], x.dtype), computing(x.dtype))
        elif isinstance(x, Const) and x.dtype.is_stored:
            new[x] = const(convert(x.value, computing(x.dtype).numpy), computing(x.dtype))
        else:
            new[x] = cast(x, computing(x.dtype))
    return new[e]


def rounded(e: Expr, dtype: DType) -> Expr:
    """What `widened` gave for an expression of this dtype, in that dtype again."""
    if isinstance(e, Apply) and e.op is Op.CAST and e.operands[0].dtype is dtype and dtype.is_stored:
        return e.operands[0]  # it came from there
    return cast(e, dtype)
