"""Squares of a matrix turned over in registers, in C: text that units with other functions include.

turn(b, b_row, columns)  sets  columns[k][r] = b[r*b_row + k]  for as many rows and columns as a vector has room for
"""

from __future__ import annotations

from collections.abc import Iterator
from string import Template

from harp.backends.c.scalar import TYPES
from harp.trace.dtypes import DType, f32, f64

# For units with squares: gcc would have a pointer for each row of a square, which are more than there are registers.
FLAGS = ("-fno-ivopts",)
# An integer as wide as an element.
_PICKS = {f32: "int32_t", f64: "int64_t"}

_TEXT = Template("""\
typedef $t vector __attribute__((vector_size($bytes), aligned($size), may_alias));

/* Elements of x and y in turn, of the first and of the second half of each 16 bytes; and every other 16 bytes. */
#if defined(__clang__) || __GNUC__ >= 12
#define PICK(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)
#else
typedef $picks picks __attribute__((vector_size($bytes)));
#define PICK(x, y, ...) __builtin_shuffle(x, y, (picks){__VA_ARGS__})
#endif
#define LOW(x, y) PICK(x, y, $low)
#define HIGH(x, y) PICK(x, y, $high)
#define EVEN(x, y) PICK(x, y, $even)
#define ODD(x, y) PICK(x, y, $odd)
#define HARP_IN static inline __attribute__((always_inline))
enum { LANES = $lanes };

/* The elements of a row lie one after the other: column k of as many rows as a vector has room for. */
HARP_IN void turn(const $t *b, int64_t b_row, vector columns[LANES])
{
$square
}
""")


def text(dtype: DType, lanes: int) -> str:
    """The type `vector`, the constant LANES, and the function."""
    own = 16 // dtype.itemsize  # elements of 16 bytes
    zipped = [", ".join(str(k) for k in _zipped(lanes, own, start)) for start in (0, own // 2)]
    parted = [", ".join(str(k + j) for k in range(start, 2 * lanes, 2 * own) for j in range(own)) for start in (0, own)]
    return _TEXT.substitute(
        t=TYPES[dtype],
        picks=_PICKS[dtype],
        bytes=lanes * dtype.itemsize,
        size=dtype.itemsize,
        lanes=lanes,
        low=zipped[0],
        high=zipped[1],
        even=parted[0],
        odd=parted[1],
        square="\n".join(f"    {line}" for line in _square(lanes, own)),
    )


def _zipped(lanes: int, own: int, start: int) -> Iterator[int]:
    for block in range(0, lanes, own):
        for k in range(block + start, block + start + own // 2):
            yield from (k, k + lanes)


def _square(lanes: int, own: int) -> Iterator[str]:
    """First by 16 bytes, among rows that are `own` apart; then the elements of each 16 bytes."""
    yield from (f"const vector row{r} = *(const vector *)(b + {r}*b_row);" for r in range(lanes))
    blocks: list[list[str]] = []  # by row of 16 bytes, the vectors with each of its columns
    for first in range(own):
        names = [f"row{r}" for r in range(first, lanes, own)]
        yield from _stages(names, f"part{first}", ("EVEN", "ODD"), halves=False)
        blocks.append(names)
    for quarter in range(lanes // own):
        names = [blocks[first][quarter] for first in range(own)]
        yield from _stages(names, f"turned{quarter}", ("LOW", "HIGH"), halves=True)
        yield from (f"columns[{quarter * own + k}] = {name};" for k, name in enumerate(names))


def _stages(names: list[str], stem: str, joins: tuple[str, str], halves: bool) -> Iterator[str]:
    """Each stage makes as many vectors as there are of pairs of them; `names` becomes the last ones."""
    count = len(names)
    for stage in range(count.bit_length() - 1):
        made = [f"{stem}_{stage}_{k}" for k in range(count)]
        for k, name in enumerate(made):
            if halves:  # zipped: vectors far apart become neighbours
                join, x, y = joins[k % 2], names[k // 2], names[(k + count) // 2]
            else:  # parted: neighbours
                join, at = joins[k * 2 // count], 2 * k % count
                x, y = names[at], names[at + 1]
            yield f"const vector {name} = {join}({x}, {y});"
        names[:] = made
