"""A panel of a product in C: which loop nests are one, the call that is printed, and the function behind the call.

    for k, i, l: c[i, l] = fma(a[i, k], b[k, l], c[i, l])
        ->  harp_panel_f32_x16(rows, columns, depth, &a, a_row, a_step, &b, b_step, b_column, &c, c_row)

The function chooses how to read `b` from sizes and strides: where it is, or packed, or, with one row or one column, as
a matrix times a vector. It adds in the order of k in all of them. Rows of c have room for two vectors, where b has no
more columns. It is the same text for all programs, and compiled once for a machine.
"""

from __future__ import annotations

from functools import partial
from string import Template

from harp.backends.c import dots, stream, turned, update
from harp.backends.c.scalar import TYPES
from harp.backends.c.shared import Shared
from harp.backends.c.update import KINDS, Print, Products
from harp.backends.protocol import Unit
from harp.trace.dtypes import DType


def call(found: Products, prints: Print) -> str:
    """The call, for any products."""
    arguments = found.arguments(prints, (found.b.row, found.b.step))
    return f"{name(found.c.buffer.dtype, found.width // 2)}({arguments});"


def name(dtype: DType, lanes: int) -> str:
    """What the function is called."""
    return f"harp_panel_{dtype.name}_x{lanes}"


def _declaration(dtype: DType, lanes: int) -> str:
    t = TYPES[dtype]
    return (
        f"void {name(dtype, lanes)}(int64_t rows, int64_t columns, int64_t depth,\n"
        f"    const {t} *a, int64_t a_row, int64_t a_step, const {t} *b, int64_t b_step, int64_t b_column,\n"
        f"    {t} *c, int64_t c_row)"
    )


_UNIT = Template("""\
/* c[i, l] = fma(a[i, k], b[k, l], c[i, l]) over all k, in the order of k, for no more columns than two vectors have. */
#include <stdint.h>

/* Rows of a packed panel, which stays in the first cache; rows up to which packing costs more than it saves, and
   elements of b up to which it is in the first cache anyway; rows of one column at a time. */
enum { WIDTH = $width, LANES = WIDTH/2, DEPTH = 256, FEW = 16, NEAR = 4096, ROWS = 512 };

$declarations

/* Rows of b as whole vectors, `width` elements; columns that are not there become zero. */
static void pack(int64_t width, int64_t columns, int64_t depth,
    const $t *restrict b, int64_t b_step, int64_t b_column, $t *restrict panel)
{
    int64_t l = 0;
    if (b_column == 1 && columns == WIDTH) {
        for (int64_t k = 0; k < depth; ++k)
            for (l = 0; l < WIDTH; ++l) panel[k*WIDTH + l] = b[k*b_step + l];
        return;
    }
    if (columns < width)
        for (int64_t at = 0; at < depth*width; ++at) panel[at] = 0;
    if (b_column == 1) {
        for (int64_t k = 0; k < depth; ++k)
            for (l = 0; l < columns; ++l) panel[k*width + l] = b[k*b_step + l];
        return;
    }
    if (b_step == 1) {
        $turned(columns, depth, b, b_column, panel, width);
        return;
    }
    for (; l < columns; ++l)
        for (int64_t k = 0; k < depth; ++k) panel[k*width + l] = b[l*b_column + k*b_step];
}

/* Rows of b, one after the other, that have `width` elements before the end of the last one. */
static inline int64_t before_end(int64_t width, int64_t columns, int64_t depth, int64_t b_step)
{
    if (width <= columns) return depth;
    const int64_t missing = (width - columns + b_step - 1)/b_step;
    return depth > missing ? depth - missing : 0;
}

/* One column, whose sums are together while they are computed. */
static void column(int64_t rows, int64_t depth, const $t *a, int64_t a_row, int64_t a_step,
    const $t *b, int64_t b_step, $t *c, int64_t c_row)
{
    for (; rows > 0; rows -= ROWS, a += ROWS*a_row, c += ROWS*c_row) {
        $t sums[ROWS];
        const int64_t here = rows < ROWS ? rows : ROWS;
        for (int64_t i = 0; i < here; ++i) sums[i] = c[i*c_row];
        if (a_step == 1) $dots(here, depth, a, a_row, b, b_step, sums);
        else $stream(here, depth, b, b_step, a, a_step, sums);
        for (int64_t i = 0; i < here; ++i) c[i*c_row] = sums[i];
    }
}

$declaration
{
    if (rows <= 0 || columns <= 0 || depth <= 0) return;
    if (columns == 1 && (a_step == 1 || a_row == 1)) {
        column(rows, depth, a, a_row, a_step, b, b_step, c, c_row);
        return;
    }
    if (rows == 1 && b_step == 1) {
        $dots(columns, depth, b, b_column, a, a_step, c);
        return;
    }
    const int64_t width = columns > LANES ? WIDTH : LANES;
    if (b_column == 1 && b_step > 0 && (rows <= FEW || depth*b_step <= NEAR)) {
        /* Where it is. What is read behind a row is of the rows after it, and comes to columns that are not there. */
        const int64_t here = before_end(width, columns, depth, b_step);
        $update(rows, columns, here, a, a_row, a_step, b, b_step, c, c_row);
        depth -= here, a += here*a_step, b += here*b_step;
    }
    for (; depth > 0; depth -= DEPTH, a += DEPTH*a_step, b += DEPTH*b_step) {
        _Alignas(64) $t panel[DEPTH*WIDTH];
        const int64_t here = depth < DEPTH ? depth : DEPTH;
        pack(width, columns, here, b, b_step, b_column, panel);
        $update(rows, columns, here, a, a_row, a_step, panel, width, c, c_row);
    }
}
""")


def _unit(dtype: DType, lanes: int) -> Unit:
    called = {"update": update.name(dtype, lanes), "stream": stream.name(dtype), "dots": dots.name(dtype, lanes)}
    called["turned"] = turned.name(dtype, lanes)
    declared = {**update.SHARED, **stream.SHARED, **dots.SHARED, **turned.SHARED}
    fields = {
        "t": TYPES[dtype], "width": 2 * lanes,
        "declaration": _declaration(dtype, lanes),
        "declarations": "".join(f"{declared[name].declaration};\n" for name in called.values()),
    }  # fmt: skip
    return Unit(_UNIT.substitute(fields, **called), shared=True)


SHARED = {name(*kind): Shared(_declaration(*kind), partial(_unit, *kind)) for kind in KINDS}
