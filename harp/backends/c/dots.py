"""A matrix times a vector, in C.

    for l, k: c[l] = fma(a[k], b[l, k], c[l])  <-  harp_dots_f32_x16(rows, depth, &b, b_row, &a, a_step, &c)

Each element is one chain in the order of k, and yet the rows of b are read along memory: a square of b is turned over
in registers, so that a vector holds one k of as many rows as it has room for. `harp.backends.c.panel` calls it where a
product has one column or one row. Like that of `harp.backends.c.update` it is compiled once for a machine.
"""

from __future__ import annotations

from functools import partial
from string import Template

from harp.backends.c import turn
from harp.backends.c.scalar import TYPES
from harp.backends.c.shared import Shared
from harp.backends.c.update import KINDS
from harp.backends.protocol import Unit
from harp.trace.dtypes import DType


def name(dtype: DType, lanes: int) -> str:
    """What the function is called."""
    return f"harp_dots_{dtype.name}_x{lanes}"


def _declaration(dtype: DType, lanes: int) -> str:
    t = TYPES[dtype]
    return (
        f"void {name(dtype, lanes)}(int64_t rows, int64_t depth, const {t} *b, int64_t b_row,\n"
        f"    const {t} *a, int64_t a_step, {t} *c)"
    )


_UNIT = Template("""\
/* c[l] = fma(a[k], b[l, k], c[l]) over all k, in the order of k; contraction to a fused multiply-add is asked for by
   the flags of this unit. */
#include <stdint.h>

$turn
enum { CHUNK = 16*LANES };

HARP_IN vector add(const $t *b, int64_t b_row, const $t *a, vector sums)
{
    vector columns[LANES];
    turn(b, b_row, columns);
$add
    return sums;
}

/* Elements before the first place for a vector in each row, if it is the same for all of them and rows are long: from
   there on each line of the cache is read once. */
HARP_IN int64_t ahead(int64_t depth, const $t *b, int64_t b_row)
{
    return depth < CHUNK || b_row*$size % $bytes ? 0 : (int64_t)(-(uintptr_t)b % $bytes / $size);
}

/* A part of each row, fewer elements than a vector; nothing behind the last row is read. */
static __attribute__((noinline)) vector rest(
    int64_t depth, const $t *b, int64_t b_row, const $t *a, vector sums, const $t *end)
{
    $t copy[LANES*LANES];
    vector columns[LANES];
    if (depth <= 0) return sums;
    if (b_row < 0 || b + (LANES - 1)*b_row + LANES > end) {
        for (int64_t r = 0; r < LANES; ++r)
            for (int64_t k = 0; k < LANES; ++k) copy[r*LANES + k] = k < depth ? b[r*b_row + k] : 0;
        b = copy;
        b_row = LANES;
    }
    turn(b, b_row, columns);
    for (int64_t k = 0; k < depth; ++k) sums += columns[k]*a[k];
    return sums;
}

/* Whole squares, one after the other. */
static __attribute__((noinline)) vector squares(
    int64_t from, int64_t to, const $t *b, int64_t b_row, const $t *a, vector sums)
{
    for (int64_t k = from; k < to; k += LANES) sums = add(b + k, b_row, a + k, sums);
    return sums;
}

/* As many rows as a vector has room for. */
static __attribute__((noinline)) void one(
    int64_t depth, const $t *b, int64_t b_row, const $t *a, $t *c, const $t *end)
{
    const int64_t head = ahead(depth, b, b_row), whole = head + (depth - head)/LANES*LANES;
    vector sums = rest(head, b, b_row, a, *(const vector *)c, end);
    sums = squares(head, whole, b, b_row, a, sums);
    *(vector *)c = rest(depth - whole, b + whole, b_row, a + whole, sums, end);
}

/* Twice as many: each addition waits for the one before it, and meanwhile there is the other square. */
static __attribute__((noinline)) void two(
    int64_t depth, const $t *b, int64_t b_row, const $t *a, $t *c, const $t *end)
{
    /* Rows whose distance is a power of two share few lines of the first cache: the second square then follows. */
    const int64_t head = ahead(depth, b, b_row), whole = head + (depth - head)/LANES*LANES;
    const int64_t most = head + (b_row*$size % 2048 ? 0 : 8*LANES), behind = most < whole ? most : whole;
    const $t *const other = b + LANES*b_row;
    vector sums = rest(head, b, b_row, a, *(const vector *)c, end);
    vector others = rest(head, other, b_row, a, *(const vector *)(c + LANES), end);
    sums = squares(head, behind, b, b_row, a, sums);
    for (int64_t k = behind, next = head; k < whole; k += LANES, next += LANES) {
        sums = add(b + k, b_row, a + k, sums);
        others = add(other + next, b_row, a + next, others);
    }
    others = squares(whole - behind + head, whole, other, b_row, a, others);
    *(vector *)c = rest(depth - whole, b + whole, b_row, a + whole, sums, end);
    *(vector *)(c + LANES) = rest(depth - whole, other + whole, b_row, a + whole, others, end);
}

/* Fewer rows than that: a part of them at a time, in memory that has room for all. */
static __attribute__((noinline)) void few(
    int64_t rows, int64_t depth, const $t *b, int64_t b_row, const $t *a, $t *c)
{
    _Alignas(64) $t copy[LANES*(CHUNK + LANES)] = {0}, sums[LANES] = {0};
    for (int64_t r = 0; r < rows; ++r) sums[r] = c[r];
    for (; depth > 0; depth -= CHUNK, b += CHUNK, a += CHUNK) {
        const int64_t here = depth < CHUNK ? depth : CHUNK;
        for (int64_t r = 0; r < rows; ++r)
            for (int64_t k = 0; k < here; ++k) copy[r*(CHUNK + LANES) + k] = b[r*b_row + k];
        one(here, copy, CHUNK + LANES, a, sums, copy + LANES*(CHUNK + LANES));
    }
    for (int64_t r = 0; r < rows; ++r) c[r] = sums[r];
}

static __attribute__((noinline)) void all(int64_t rows, int64_t depth, const $t *b, int64_t b_row, const $t *a, $t *c)
{
    const $t *const end = b + (rows - 1)*b_row + depth;
    int64_t row = 0;
    if (rows < LANES) {
        few(rows, depth, b, b_row, a, c);
        return;
    }
    for (; row + 2*LANES <= rows; row += 2*LANES) two(depth, b + row*b_row, b_row, a, c + row, end);
    if (row + LANES <= rows) {
        one(depth, b + row*b_row, b_row, a, c + row, end);
        row += LANES;
    }
    if (row < rows) { /* with rows that are done, whose sums are not kept */
        $t sums[LANES] = {0};
        const int64_t first = rows - LANES;
        for (int64_t r = row; r < rows; ++r) sums[r - first] = c[r];
        one(depth, b + first*b_row, b_row, a, sums, end);
        for (int64_t r = row; r < rows; ++r) c[r] = sums[r - first];
    }
}

$declaration
{
    if (rows <= 0) return;
    if (a_step == 1) {
        all(rows, depth, b, b_row, a, c);
        return;
    }
    for (; depth > 0; depth -= CHUNK, a += CHUNK*a_step, b += CHUNK) {
        $t copy[CHUNK];
        const int64_t here = depth < CHUNK ? depth : CHUNK;
        for (int64_t k = 0; k < here; ++k) copy[k] = a[k*a_step];
        all(rows, here, b, b_row, copy, c);
    }
}
""")


def _unit(dtype: DType, lanes: int) -> Unit:
    fields = {
        "t": TYPES[dtype], "bytes": lanes * dtype.itemsize, "size": dtype.itemsize, "turn": turn.text(dtype, lanes),
        "add": "\n".join(f"    sums += columns[{k}]*a[{k}];" for k in range(lanes)),
        "declaration": _declaration(dtype, lanes),
    }  # fmt: skip
    return Unit(_UNIT.substitute(fields), ("-ffp-contract=fast", *turn.FLAGS), shared=True)


SHARED = {name(*kind): Shared(_declaration(*kind), partial(_unit, *kind)) for kind in KINDS}
