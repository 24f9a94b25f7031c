"""Updates of rank k in C: which loop nests are one, the call that is printed for it, and the function behind the call.

    for k, i, l: c[i, l] = fma(a[i, k], b[k, l], c[i, l])
        ->  harp_update_f32_x16(rows, columns, depth, &a, a_row, a_step, &b, b_step, &c, c_row)

The function keeps up to 10 rows of two vectors in registers. AVX-512 has room for 14, which were slower where rows of
`a` are a power of two apart, for those share few lines of the first cache. It may compute more columns than it is asked
for, up to two vectors: a nest qualifies where rows of b and c have room for that. (Others are for
`harp.backends.c.panel`.) It is the same text for all programs, and compiled once for a machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from string import Template
from typing import NamedTuple

from harp.backends.c.scalar import TYPES
from harp.backends.c.shared import Shared
from harp.backends.protocol import Unit
from harp.lower.loops import Buffer, For, Load, Nest, Store, flat
from harp.trace.bounds import nonnegative
from harp.trace.dtypes import DType, f32, f64
from harp.trace.expr import Apply
from harp.trace.index import ONE, ZERO, Index, Loop, split_linear
from harp.trace.ops import Op

# By dtype, the elements of a vector.
LANES = {f32: (4, 8, 16), f64: (2, 4, 8)}
KINDS = [(dtype, lanes) for dtype in LANES for lanes in LANES[dtype]]
# Rows by the bytes of a vector: two vectors a row, two of b and one of a, in the registers that come with the width.
_ROWS = {16: 6, 32: 6, 64: 10}


class Access(NamedTuple):
    """The element at the start of the loops, and how far it moves with two of them; by its stride for each axis."""

    buffer: Buffer
    first: tuple[Index, ...]
    row: tuple[Index, ...]
    step: tuple[Index, ...]

    @property
    def is_along(self) -> bool:
        """Whether it moves along memory with its step, by one: not so a variable, which has no axis to move along."""
        return self.step[-1:] == (ONE,) and all(p is ZERO for p in self.step[:-1])


class Print(NamedTuple):
    """How an index, an element of a buffer, and its distance from the first one are printed."""

    number: Callable[[Index], str]
    element: Callable[[Buffer, tuple[Index, ...]], str]
    offset: Callable[[Buffer, tuple[Index, ...]], str]

    def pointer(self, access: Access) -> str:
        """To the element at the start of the loops."""
        return f"&{self.element(access.buffer, access.first)}"


class Products(NamedTuple):
    """A nest that adds products to rows of `width` elements, which are two vectors."""

    rows: Index
    columns: Index
    depth: Index
    a: Access
    b: Access
    c: Access
    width: int

    def arguments(self, prints: Print, steps: Sequence[tuple[Index, ...]]) -> str:
        """Of a call: extents, and where the three operands lie; `b` moves by these steps."""
        a, b, c = self.a, self.b, self.c
        places = ((a, (a.row, a.step)), (b, steps), (c, (c.row,)))
        texts = [prints.number(extent) for extent in (self.rows, self.columns, self.depth)]
        for access, moves in places:
            texts += [prints.pointer(access), *(prints.offset(access.buffer, move) for move in moves)]
        return ", ".join(texts)


def products(stmt: Nest) -> Products | None:
    """The products that a nest adds, if it does that."""
    store, loops = stmt.body, [head.loop for head in stmt.heads if isinstance(head, For)]
    if not isinstance(store, Store) or len(loops) != 3 or len(stmt.heads) != 3 or store.reduce is not None:
        return None
    value, dtype = store.value, store.buffer.dtype
    if not isinstance(value, Apply) or value.op is not Op.FMA or dtype not in LANES:
        return None
    found = [e for e in value.args if isinstance(e, Load) and not e.conditions]
    if len(found) < 3 or found[2].buffer is not store.buffer or found[2].index != store.index:
        return None
    k, i, lane = loops
    a, b, c = map(access, found, [loops] * 3, (i, k, i), (k, lane, lane))
    if a is None or b is None or c is None or store.buffer in (a.buffer, b.buffer):
        return None
    if not c.is_along:
        return None
    width = c.buffer.shape[-1].constant or 0
    if width // 2 not in LANES[dtype] or not nonnegative(width - lane.extent) or not _has_room(c, width):
        return None
    return Products(i.extent, lane.extent, k.extent, a, b, c, width)


def is_packed(found: Products) -> bool:
    """Whether the function is the one for it, which reads whole rows of b."""
    return found.b.is_along and _has_room(found.b, found.width)


def access(load: Load, loops: Sequence[Loop], row: Loop, step: Loop) -> Access | None:
    """None where the element moves with another one of the loops, or not in proportion.

    Where axes were merged, the element is counted along the last axis, from the start of the buffer.
    """
    whole = flat(load.buffer, load.index)
    first = load.index if whole is None else (*(ZERO for _ in load.index[1:]), whole)
    slopes: dict[Loop, tuple[Index, ...]] = {}
    for loop in loops:
        split = [split_linear(p, loop) for p in first]
        if any(s is None for s in split):
            return None
        slopes[loop] = tuple(s[0] for s in split if s is not None)
        first = tuple(s[1] for s in split if s is not None)
    if any(p is not ZERO for loop in loops if loop not in (row, step) for p in slopes[loop]):
        return None
    return Access(load.buffer, first, slopes[row], slopes[step])


def _has_room(access: Access, width: int) -> bool:
    """Whether whole rows may be read and written, of an access that is along them."""
    return access.buffer.shape[-1].constant == width and access.first[-1] is ZERO


def call(found: Products, prints: Print) -> str:
    """The call."""
    arguments = found.arguments(prints, (found.b.row,))
    return f"{name(found.c.buffer.dtype, found.width // 2)}({arguments});"


def name(dtype: DType, lanes: int) -> str:
    """What the function is called."""
    return f"harp_update_{dtype.name}_x{lanes}"


def _declaration(dtype: DType, lanes: int) -> str:
    t = TYPES[dtype]
    return (
        f"void {name(dtype, lanes)}(int64_t rows, int64_t columns, int64_t depth,\n"
        f"    const {t} *a, int64_t a_row, int64_t a_step, const {t} *b, int64_t b_step, {t} *c, int64_t c_row)"
    )


_UNIT = Template("""\
/* c[i, l] = fma(a[i, k], b[k, l], c[i, l]) over all k, for tiles of rows of one or two vectors. Each product is added
   in the order of k; contraction to a fused multiply-add is asked for by the flags of this unit. */
#include <stdint.h>

typedef $t vector __attribute__((vector_size($bytes), aligned($size), may_alias));
#define HARP_HERE static __attribute__((noinline)) void
#define HARP_PLACES \\
    int64_t depth, const $t *a, int64_t a_row, int64_t a_step, const $t *b, int64_t b_step, $t *c, int64_t c_row

$tiles
typedef void tile(HARP_PLACES);
static tile *const tiles[2][$rows] = {
$table
};

$declaration
{
    if (rows <= 0 || depth <= 0 || columns <= 0) return;
    /* As many tiles as it takes, of heights that differ by one at most. */
    const int64_t count = (rows + $rows - 1) / $rows, low = rows / count, higher = rows % count;
    tile *const *const kind = tiles[columns > $lanes];
    for (int64_t n = 0; n < count; ++n) {
        const int64_t height = low + (n < higher);
        kind[height - 1](depth, a, a_row, a_step, b, b_step, c, c_row);
        a += height*a_row;
        c += height*c_row;
    }
}
""")


def _unit(dtype: DType, lanes: int) -> Unit:
    rows = _ROWS[lanes * dtype.itemsize]
    heights = range(1, rows + 1)
    fields = {
        "t": TYPES[dtype], "bytes": lanes * dtype.itemsize, "size": dtype.itemsize, "rows": rows, "lanes": lanes,
        "tiles": "\n".join(_tile(dtype, height, vectors, lanes) for vectors in (1, 2) for height in heights),
        "table": "\n".join(f"    {{{', '.join(f'tile_{h}_{v}' for h in heights)}}}," for v in (1, 2)),
        "declaration": _declaration(dtype, lanes),
    }  # fmt: skip
    return Unit(_UNIT.substitute(fields), ("-ffp-contract=fast",), shared=True)


def _tile(dtype: DType, height: int, vectors: int, lanes: int) -> str:
    """The sums in registers, from the first product to the last. Rows of `a` share pointers, three to each."""
    cells = [(i, j) for i in range(height) for j in range(vectors)]
    starts = [f"*a{i} = a + {i}*a_row" for i in range(0, height, 3)]
    load = [f"    vector c{i}_{j} = *(vector *)(c + {i}*c_row + {j * lanes});" for i, j in cells]
    right = [f"        const vector b{j} = *(const vector *)(b + {j * lanes});" for j in range(vectors)]
    add = [f"        c{i}_{j} += a{i - i % 3}[{i % 3}*a_row]*b{j};" for i, j in cells]
    step = [f"a{i} += a_step" for i in range(0, height, 3)]
    store = [f"    *(vector *)(c + {i}*c_row + {j * lanes}) = c{i}_{j};" for i, j in cells]
    return "\n".join([
        f"HARP_HERE tile_{height}_{vectors}(HARP_PLACES)",
        "{",
        f"    const {TYPES[dtype]} {', '.join(starts)};",
        *load,
        "    for (; depth > 0; --depth) {",
        *right,
        *add,
        f"        {', '.join(step)}, b += b_step;",
        "    }",
        *store,
        "}",
    ])  # fmt: skip


SHARED = {name(*kind): Shared(_declaration(*kind), partial(_unit, *kind)) for kind in KINDS}
