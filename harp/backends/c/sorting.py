"""Sorting and searching rows: the functions behind the calls, each compiled once for a machine.

    harp_sort_f32(n, keys, out, work, reverse, run)      the keys in order
    harp_order_f32(n, keys, out, work, reverse, run)     their places in order
    harp_search_f32(n, table, m, values, out, right)

Keys become unsigned numbers of the same order: a sign bit is turned, negative floats are turned round, all NaN are the
largest number, and both zeros are one. These are sorted by a stable radix sort (Knuth, The Art of Computer Programming,
volume 3, section 5.2.5): rows that no cache holds by the highest bits first, then from the lowest digit on; short ones
by insertion. Digits that all keys share cost no pass. Descending is ascending with all bits of the keys turned over, so
equal keys keep their order. Places go with 32 bits of the key in one number; keys of 64 bits are sorted by their low
half, and then by their high half.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from string import Template

import numpy as np

from harp.backends.c import radix
from harp.backends.c.shared import Shared
from harp.backends.protocol import Unit
from harp.trace.dtypes import ALL, DType, Kind

_ENCODE: Mapping[Kind, str] = {
    Kind.BOOL: "return (key)(b ^ flip);",
    Kind.UINT: "return (key)(b ^ flip);",
    Kind.INT: "return (key)(b ^ TOP ^ flip);",
    Kind.FLOAT: """\
const key size = b & (key)~TOP, placed = b & TOP ? (key)~b : (key)(b | TOP);
    return (key)((size > INFINITE ? ALL : size == 0 ? TOP : placed) ^ flip);""",
}
_DECODE: Mapping[Kind, str] = {
    Kind.BOOL: "return (key)(k ^ flip);",
    Kind.UINT: "return (key)(k ^ flip);",
    Kind.INT: "return (key)(k ^ TOP ^ flip);",
    Kind.FLOAT: """\
const key b = (key)(k ^ flip);
    return b & TOP ? (key)(b ^ TOP) : (key)~b;""",
}

_HEAD = Template(
    """\
#include <stdint.h>
#include <string.h>

typedef $key key;
typedef void runner(void (*part)(void *, int64_t, int64_t), void *given, int64_t count, double work);
typedef $key element __attribute__((may_alias));
#define TOP ((key)((key)1 << $last))
#define ALL ((key)~(key)0)
#define INFINITE ((key)$infinite)

/* An unsigned number in the order of the elements, from the bits of an element. */
static inline key encode(key b, key flip)
{
    $encode
}
"""
)

_SORT = Template(
    """\
static inline key decode(key k, key flip)
{
    $decode
}

$declaration
{
    const element *const keys = given;
    element *const out = stored, *const room = work;
    const key flip = reverse ? ALL : 0;
    int64_t special = 0;
    if (n < 1) return 0;
    if (n > UINT32_MAX) return 1;
    for (int64_t i = 0; i < n; ++i) {
        room[i] = encode(keys[i], flip);
        special += $special;
    }
    sort_row(n, room, out, $bits, run);
    int64_t zeros = 0, nans = reverse ? 0 : n;
    if (special) { /* the numbers below them are counted */
        for (int64_t i = 0; i < n; ++i) {
            zeros += out[i] < (key)(TOP ^ flip);
            nans -= !reverse && out[i] == ALL;
        }
    }
    for (int64_t i = 0; i < n; ++i) out[i] = decode(out[i], flip);
    if (special) { /* both zeros have one key, and so have all NaN: they come in the order in which they were */
        for (int64_t i = 0; i < n; ++i) {
            const key size = keys[i] & (key)~TOP;
            if (size == 0) out[zeros++] = keys[i];
            if (size > INFINITE) out[nans++] = keys[i];
        }
    }
    return 0;
}
"""
)

_ORDER = Template(
    """\
$declaration
{
    const element *const keys = given;
    number *const room = work, *const places = stored;
    const key flip = reverse ? ALL : 0;
    if (n < 1) return 0;
    if (n > UINT32_MAX) return 1;
    if (n <= $short) {
        for (int64_t i = 0; i < n; ++i) {
            const key k = encode(keys[i], flip);
            int64_t j = i;
            for (; j > 0 && room[j - 1] > k; --j) {
                room[j] = room[j - 1];
                places[j] = places[j - 1];
            }
            room[j] = k;
            places[j] = (number)i;
        }
        return 0;
    }
    for (int64_t i = 0; i < n; ++i) room[i] = (number)encode(keys[i], flip) << 32 | (number)i;
    sort_row(n, room, places, $half, run);
$high
    for (int64_t i = 0; i < n; ++i) places[i] = (uint32_t)places[i];
    return 0;
}
"""
)

_HIGH = """\
    number differ = 0;
    const key first = encode(keys[0], flip);
    for (int64_t i = 0; i < n; ++i) differ |= encode(keys[i], flip) ^ first;
    if (differ >> 32) {
        for (int64_t i = 0; i < n; ++i) {
            const number place = (uint32_t)places[i];
            room[i] = (encode(keys[place], flip) & ~(number)UINT32_MAX) | place;
        }
        sort_row(n, room, places, 32, run);
    }"""

_SEARCH = Template(
    """\
$declaration
{
    const element *const table = given, *const values = searched;
    for (int64_t i = 0; i < m; ++i) {
        const key wanted = encode(values[i], 0);
        int64_t first = 0;
        for (int64_t left = n; left > 0;) {
            const int64_t half = left / 2;
            const key here = encode(table[first + half], 0);
            const int below = right ? here <= wanted : here < wanted;
            first = below ? first + half + 1 : first;
            left = below ? left - half - 1 : half;
        }
        out[i] = first;
    }
}
"""
)

# What runs the parts of a loop; see `harp.backends.c.parts`.
_RUNNER = "void (*run)(void (*part)(void *, int64_t, int64_t), void *given, int64_t count, double work)"

_SIGNATURES = {
    "sort": f"int $name(int64_t n, const void *given, void *stored, void *work, int reverse,\n    {_RUNNER})",
    "order": f"int $name(int64_t n, const void *given, void *stored, void *work, int reverse,\n    {_RUNNER})",
    "search": "void $name(int64_t n, const void *given, int64_t m, const void *searched, int64_t *out, int right)",
}


_REAL = [dtype for dtype in ALL if dtype.kind in _ENCODE]


def name(function: str, dtype: DType) -> str:
    """The name of a function for keys of this dtype."""
    return f"harp_{function}_{dtype.name}"


def _declaration(function: str, dtype: DType) -> str:
    return Template(_SIGNATURES[function]).substitute(name=name(function, dtype))


def _unit(function: str, dtype: DType) -> Unit:
    bits = 8 * dtype.itemsize
    fields: dict[str, object] = {
        "key": f"uint{bits}_t", "last": str(bits - 1), "infinite": str(_infinite(dtype)), "short": radix.SHORT,
        "encode": _ENCODE[dtype.kind], "decode": _DECODE[dtype.kind], "declaration": _declaration(function, dtype),
        "special": _SPECIAL if dtype.is_float else "0", "bits": bits,
    }  # fmt: skip
    text = _HEAD.substitute(fields) + "\n" + _TEXTS[function](bits, fields)
    return Unit(f"/* {name(function, dtype)}: see harp.backends.c.sorting */\n{text}", ("-O3",), shared=True)


_SPECIAL = "(keys[i] == TOP) | ((keys[i] & (key)~TOP) > INFINITE)"


def _infinite(dtype: DType) -> int:
    """The bits of infinity; no matter for integers."""
    return int(np.asarray(np.inf, dtype.numpy).view(f"u{dtype.itemsize}")) if dtype.is_float else 0


def _sort(bits: int, fields: Mapping[str, object]) -> str:
    head = "typedef element number;\n#define LOW 0\n"
    return "\n".join((head, radix.SORT, _SORT.substitute(fields)))


def _order(bits: int, fields: Mapping[str, object]) -> str:
    head = "typedef uint64_t number __attribute__((may_alias));\n#define LOW 32\n"
    body = _ORDER.substitute(fields, high=_HIGH if bits > 32 else "", half=min(bits, 32))
    return "\n".join((head, radix.SORT, body))


def _search(bits: int, fields: Mapping[str, object]) -> str:
    return _SEARCH.substitute(fields)


_TEXTS: Mapping[str, Callable[[int, Mapping[str, object]], str]] = {"sort": _sort, "order": _order, "search": _search}

SHARED = {
    name(f, dtype): Shared(_declaration(f, dtype), partial(_unit, f, dtype)) for f in _SIGNATURES for dtype in _REAL
}
