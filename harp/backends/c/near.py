"""Loops that call a function which is fast for common numbers and slow for the others.

The loop is printed twice: with a function for common numbers only, which notes others, and, to be run if it noted any,
with the function for all numbers. Both give the same bits for common numbers. The second run does all the work of the
first one again, so the loop must not read what it stores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from harp.backends.c.values import Line
from harp.lower.loops import For, LoopKind, Nest, Seq, Stmt, Store
from harp.lower.uses import uses

# Functions with a twin for common numbers: harp_sin_near_f32(&far_f32, x) is that of harp_sin_f32(x).
FUNCTIONS = ("atan2", "cos", "log10", "log2", "pow", "sin", "tan")
NOTES = {"f32": "uint32_t"}  # as wide as the numbers, so that vectors of both have the same length

_CALL = re.compile(rf"\bharp_({'|'.join(FUNCTIONS)})_({'|'.join(NOTES)})\(")


def repeatable(stmt: Nest) -> bool:
    """Whether the innermost loop of a nest does the same if it is run again."""
    last = stmt.heads[-1] if stmt.heads else None
    if not isinstance(last, For) or last.kind is not LoopKind.SIMD or not all(map(_sets, _flat(stmt.body))):
        return False
    used = uses(stmt.body)
    return not used.reads & used.writes


def twice(loop: Sequence[Line]) -> list[Line]:
    """The lines of a loop, where it calls such functions with a loop for common numbers before them."""
    types = sorted({dtype for line in loop for _, dtype in _CALL.findall(line.text)})
    if not types:
        return list(loop)
    depth = loop[0].depth
    near = [line._replace(text=_CALL.sub(r"harp_\1_near_\2(&far_\2, ", line.text)) for line in loop]
    notes = [Line(depth + 1, f"{NOTES[dtype]} far_{dtype} = 0;") for dtype in types]
    again = Line(depth + 1, f"if ({' || '.join(f'far_{dtype}' for dtype in types)}) {{")
    first, second = _deeper(near, 1), _deeper(loop, 2)
    return [Line(depth, "{"), *notes, *first, again, *second, Line(depth + 1, "}"), Line(depth, "}")]


def _deeper(lines: Iterable[Line], by: int) -> list[Line]:
    return [line._replace(depth=line.depth + by) for line in lines]


def _flat(stmt: Stmt) -> tuple[Stmt, ...]:
    return stmt.parts if isinstance(stmt, Seq) else (stmt,)


def _sets(stmt: Stmt) -> bool:
    return isinstance(stmt, Store) and stmt.reduce is None
