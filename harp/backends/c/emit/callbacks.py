"""Calls of functions of Python in C.

mem3 = function 2 of Python(mem1) where mem2, after in0
    ->  if (status == 0)
            status = harp_call_python(2, "1 1 int64:0 int64:0 bool:0 float64:2", (void *[]){mem3, in0, mem2, mem1},
                                      (int64_t []){s0, s1, s2});
"""

from __future__ import annotations

from collections.abc import Callable

from harp.lower.loopir.loops import Buffer, ForeignCall
from harp.trace.index.polynomial import Index

# Where the variable is declared that points to what calls Python; and what it points to at first.
HEADER = "callback.h"
DEFINITION = """\
static int harp_no_python(int64_t number, const char *layout, const void *const *arrays, const int64_t *sizes)
{
    (void)number, (void)layout, (void)arrays, (void)sizes;
    return 1;
}
int (*harp_call_python)(int64_t, const char *, const void *const *, const int64_t *) = harp_no_python;"""

# The same for loops that ask whether Python was interrupted.
INTERRUPT_DEFINITION = """\
static int harp_not_interrupted(void) { return 0; }
int (*harp_interrupted)(void) = harp_not_interrupted;"""


def call(stmt: ForeignCall, name: Callable[[Buffer], str], text: Callable[[Index], str]) -> list[str]:
    """The line of a call."""
    rank, arrays = len(stmt.calls), (*stmt.targets, *stmt.sources)
    kinds = (f"{b.dtype.numpy_name}:{len(b.shape) - rank}" for b in arrays)
    layout = " ".join([str(rank), str(len(stmt.targets)), *kinds])
    sizes = [text(p) for p in (*stmt.calls, *(p for b in arrays for p in b.shape[rank:]))]
    given = f"(const void *[]){{{', '.join(map(name, arrays))}}}, (const int64_t []){{{', '.join(sizes) or '0'}}}"
    return [f'if (status == 0) status = harp_call_python({stmt.routine}, "{layout}", {given});']
