"""A matrix times a vector: which loop nests are that, and the function behind the call.

    for k, l: c[l] = fma(a[k], b[l, k], c[l])
        ->  harp_dots_f32_x16(rows, depth, &b, b_row, b_step, &a, a_step, &c, c_step)

Each element is one chain in the order of k, and yet the rows of b are read along memory: a square of b is turned over
in registers, so that a vector holds one k of as many rows as it has room for. Where the rows lie beside each other in
memory they are vectors already. Like that of `harp.backends.c.update` it is compiled once for a machine; c has rows of
two vectors, which says how long they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from string import Template
from typing import NamedTuple

from harp.backends.c.scalar import TYPES
from harp.backends.c.stream import LOOPS
from harp.backends.c.update import Access, Print, access
from harp.backends.protocol import Unit
from harp.lower.loops import For, Load, Nest, Store
from harp.trace.dtypes import DType, f32, f64
from harp.trace.expr import Apply
from harp.trace.index import ONE, ZERO, Index
from harp.trace.ops import Op

# By dtype, the elements of a vector; and an integer as wide as an element.
_LANES = {f32: (4, 8, 16), f64: (2, 4, 8)}
_PICKS = {f32: "int32_t", f64: "int64_t"}
_KNOWN = [(dtype, lanes) for dtype in _LANES for lanes in _LANES[dtype]]


class Dots(NamedTuple):
    """A nest that is such a product."""

    name: str
    rows: Index
    depth: Index
    a: Access
    b: Access
    c: Access


def match(stmt: Nest) -> Dots | None:
    """The product that a nest is, if it is one."""
    store, loops = stmt.body, [head.loop for head in stmt.heads if isinstance(head, For)]
    if not isinstance(store, Store) or len(loops) != 2 or len(stmt.heads) != 2 or store.reduce is not None:
        return None
    value, dtype = store.value, store.buffer.dtype
    if not isinstance(value, Apply) or value.op is not Op.FMA or len(store.buffer.shape) != 2:
        return None
    lanes = (store.buffer.shape[-1].constant or 0) // 2
    found = [e for e in value.args if isinstance(e, Load) and not e.conditions]
    if (dtype, lanes) not in _KNOWN or len(found) < 3 or found[2].index != store.index:
        return None
    k, lane = loops
    a, b, c = (access(found[slot], loops, lane, k) for slot in range(3))
    if a is not None and _moves(a.row):
        a, b = b, a
    if a is None or b is None or c is None or _moves(a.row) or _moves(c.step) or store.buffer in (a.buffer, b.buffer):
        return None
    fits = found[2].buffer is store.buffer and (_by_one(b.step) or _by_one(b.row))
    return Dots(_name(dtype, lanes), lane.extent, k.extent, a, b, c) if fits else None


def _moves(step: tuple[Index, ...]) -> bool:
    return any(p is not ZERO for p in step)


def _by_one(step: tuple[Index, ...]) -> bool:
    return step[-1] is ONE and not _moves(step[:-1])


def call(dots: Dots, prints: Print) -> str:
    """The call."""
    a, b, c = dots.a, dots.b, dots.c
    extents = f"{prints.number(dots.rows)}, {prints.number(dots.depth)}"
    matrix = f"{prints.pointer(b)}, {prints.offset(b.buffer, b.row)}, {prints.offset(b.buffer, b.step)}"
    vector = f"{prints.pointer(a)}, {prints.offset(a.buffer, a.step)}"
    return f"{dots.name}({extents}, {matrix}, {vector}, {prints.pointer(c)}, {prints.offset(c.buffer, c.row)});"


def declarations() -> dict[str, str]:
    """The declaration of each of the functions, by its name."""
    return {_name(dtype, lanes): _declaration(dtype, lanes) + ";\n" for dtype, lanes in _KNOWN}


def units(words: Iterable[str]) -> list[Unit]:
    """The units with those of the functions that are mentioned."""
    mentioned = set(words)
    return [_unit(dtype, lanes) for dtype, lanes in _KNOWN if _name(dtype, lanes) in mentioned]


def _name(dtype: DType, lanes: int) -> str:
    return f"harp_dots_{dtype.name}_x{lanes}"


def _declaration(dtype: DType, lanes: int) -> str:
    t = TYPES[dtype]
    return (
        f"void {_name(dtype, lanes)}(int64_t rows, int64_t depth, const {t} *b, int64_t b_row, int64_t b_step,\n"
        f"    const {t} *a, int64_t a_step, {t} *c, int64_t c_row)"
    )


_UNIT = Template(
    """\
/* c[l] = fma(a[k], b[l, k], c[l]) over all k, in the order of k; contraction to a fused multiply-add is asked for by
   the flags of this unit. */
#include <stdint.h>

typedef $t vector __attribute__((vector_size($bytes), aligned($size), may_alias));

typedef $t quarter __attribute__((vector_size(16), aligned($size), may_alias));

/* Elements of x and y in turn, of the first and of the second half of each 16 bytes; vectors one behind the other. */
#if defined(__clang__) || __GNUC__ >= 12
#define LOW(x, y) __builtin_shufflevector(x, y, $low)
#define HIGH(x, y) __builtin_shufflevector(x, y, $high)
$joins
#else
typedef $picks picks __attribute__((vector_size($bytes)));
#define LOW(x, y) __builtin_shuffle(x, y, (picks){$low})
#define HIGH(x, y) __builtin_shuffle(x, y, (picks){$high})
#define JOIN($names) ((vector){$elements})
#endif

/* The elements of a row lie one after the other: as many rows as a vector has room for. */
static void across(int64_t depth, const $t *b, int64_t b_row, const $t *a, int64_t a_step, $t *c)
{
    vector sums = *(const vector *)c;
    for (; depth >= $lanes; depth -= $lanes, b += $lanes) {
$squares
    }
    for (; depth > 0; --depth, ++b, a += a_step) {
        vector column;
        for (int r = 0; r < $lanes; ++r) column[r] = b[r*b_row];
        sums += column*a[0];
    }
    *(vector *)c = sums;
}

/* The same for a few rows. */
static void single(int64_t rows, int64_t depth, const $t *b, int64_t b_row, const $t *a, int64_t a_step, $t *sums)
{
    for (; depth > 0; --depth, ++b, a += a_step)
        for (int64_t r = 0; r < rows; ++r) sums[r] += a[0]*b[r*b_row];
}

/* The rows lie beside each other: up to $most of them. */
static void along(int64_t columns, int64_t depth, const $t *b, int64_t b_step, const $t *a, int64_t a_step, $t *sums)
{
"""
    + LOOPS
    + """}

$declaration
{
    const int64_t most = b_row == 1 ? $most : $lanes;
    for (int64_t row = 0; row < rows; row += most, b += most*b_row, c += most*c_row) {
        const int64_t here = rows - row < most ? rows - row : most;
        $t sums[$most];
        for (int64_t r = 0; r < here; ++r) sums[r] = c[r*c_row];
        if (b_row == 1) {
            along(here, depth, b, b_step, a, a_step, sums);
        } else if (here < $lanes) {
            single(here, depth, b, b_row, a, a_step, sums);
        } else {
            across(depth, b, b_row, a, a_step, sums);
        }
        for (int64_t r = 0; r < here; ++r) c[r*c_row] = sums[r];
    }
}
"""
)
# Rows that lie beside each other and are summed at a time.
_MOST = 512
# Elements of each row that are asked for ahead of their use: of so many streams at once the hardware loses track.
_AHEAD = 64


def _unit(dtype: DType, lanes: int) -> Unit:
    own = 16 // dtype.itemsize  # elements of a quarter
    zipped = [", ".join(str(k) for k in _zipped(lanes, own, start)) for start in (0, own // 2)]
    names = [f"x{k}" for k in range(lanes // own)]
    fields = {
        "t": TYPES[dtype], "picks": _PICKS[dtype], "bytes": lanes * dtype.itemsize, "size": dtype.itemsize,
        "lanes": lanes, "most": _MOST, "low": zipped[0], "high": zipped[1], "names": ", ".join(names),
        "joins": "\n".join(_joins(names, own)),
        "elements": ", ".join(f"{x}[{k}]" for x in names for k in range(own)),
        "squares": "\n".join(f"        {line}" for line in _squares(lanes, own)),
        "declaration": _declaration(dtype, lanes),
    }  # fmt: skip
    return Unit(_UNIT.substitute(fields), ("-ffp-contract=fast",), shared=True)


def _zipped(lanes: int, own: int, start: int) -> Iterator[int]:
    for block in range(0, lanes, own):
        for k in range(block + start, block + start + own // 2):
            yield from (k, k + lanes)


def _joins(names: list[str], own: int) -> Iterator[str]:
    """The definition of JOIN by joining pairs."""
    level = names
    while len(level) > 1:
        own *= 2
        picks = ", ".join(map(str, range(own)))
        level = [f"__builtin_shufflevector({x}, {y}, {picks})" for x, y in zip(level[::2], level[1::2], strict=True)]
    yield f"#define JOIN({', '.join(names)}) ({level[0]})"


def _squares(lanes: int, own: int) -> Iterator[str]:
    """Columns by quarters of a vector: within 16 bytes, a square of `own` rows is turned over."""
    for r in range(lanes):
        yield f"__builtin_prefetch(b + {r}*b_row + {_AHEAD});"
    for first in range(0, lanes, own):
        yield "{"
        for r in range(own):
            rows = [f"*(const quarter *)(b + {block + r}*b_row + {first})" for block in range(0, lanes, own)]
            yield f"    const vector row{r} = JOIN({', '.join(rows)});"
        names = [f"row{r}" for r in range(own)]
        for stage in range(own.bit_length() - 1):
            made = [f"turned{stage}_{k}" for k in range(own)]
            joins = [f"{('LOW', 'HIGH')[k % 2]}({names[k // 2]}, {names[(k + own) // 2]})" for k in range(own)]
            yield f"    const vector {', '.join(f'{n} = {join}' for n, join in zip(made, joins, strict=True))};"
            names = made
        yield from (f"    sums += {name}*a[0], a += a_step;" for name in names)
        yield "}"
