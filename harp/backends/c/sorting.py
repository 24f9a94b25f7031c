"""Sorting and searching rows: the functions behind the calls, each compiled once for a machine.

    harp_sort_f32(n, keys, out, work, reverse, run)      the keys in order
    harp_order_f32(n, keys, out, work, reverse, run)     their places in order
    harp_search_f32(n, table, m, values, out, right)

Keys become unsigned numbers of the same order: a sign bit is turned, negative floats are turned round, all NaN are the
largest number, and both zeros are one. These are sorted by a stable radix sort (Knuth, The Art of Computer Programming,
volume 3, section 5.2.5): rows that no cache holds by the highest bits first, then from the lowest digit on; short ones
by insertion. Digits that all keys share cost no pass. Descending is ascending with all bits of the keys turned over, so
equal keys keep their order. Places go with 32 bits of the key in one number; keys of 64 bits are sorted by their low
half, and then by their high half. Values alone have no order among equals, so vectors may sort them (`quick.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from string import Template

import numpy as np

from harp.backends.c import radix
from harp.backends.c.quick import quicksort
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
    Kind.BOOL: "(key)(k ^ flip)",
    Kind.UINT: "(key)(k ^ flip)",
    Kind.INT: "(key)(k ^ TOP ^ flip)",
    Kind.FLOAT: "(k ^ flip) & TOP ? (key)(k ^ flip ^ TOP) : (key)~(k ^ flip)",
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
struct source { const element *keys; key flip; };

static inline int take(const struct source *source, int64_t begin, int64_t count, number *to)
{
    const element *const keys = source->keys + begin;
    const key flip = source->flip;
    key special = 0;
    for (int64_t i = 0; i < count; ++i) {
        to[i] = encode(keys[i], flip);
        special |= $special;
    }
    return special != 0;
}

static inline void finish(const struct source *source, int64_t count, number *row)
{
    const key flip = source->flip;
    for (int64_t i = 0; i < count; ++i) {
        const key k = row[i];
        row[i] = $decode;
    }
}

$radix
$declaration
{
    const struct source source = {given, reverse ? ALL : 0};
    element *const out = stored;
    if (n < 1) return 0;
    if (n > UINT32_MAX) return 1;
    if (!sort_row(&source, n, out, work, $bits, run)) return 0;
    /* Both zeros have one key, and so have all NaN: they come in the order in which they were. */
    const element *const keys = given;
    const key flip = source.flip;
    int64_t zeros = 0, nans = reverse ? 0 : n;
    for (int64_t i = 0; i < n; ++i) {
        const key k = encode(out[i], flip);
        zeros += k < (key)(TOP ^ flip);
        nans -= !reverse && k == ALL;
    }
    for (int64_t i = 0; i < n; ++i) {
        const key size = keys[i] & (key)~TOP;
        if (size == 0) out[zeros++] = keys[i];
        if (size > INFINITE) out[nans++] = keys[i];
    }
    return 0;
}
"""
)

_ORDER = Template(
    """\
struct source { const element *keys; key flip; const number *made; };

static inline int take(const struct source *source, int64_t begin, int64_t count, number *to)
{
    if (source->made) {
        memcpy(to, source->made + begin, (size_t)count*sizeof *to);
        return 0;
    }
    for (int64_t i = 0; i < count; ++i)
        to[i] = (number)encode(source->keys[begin + i], source->flip) << 32 | (number)(begin + i);
    return 0;
}

static inline void finish(const struct source *source, int64_t count, number *row)
{
    (void)source;
    for (int64_t i = 0; i < count; ++i) row[i] = (uint32_t)row[i];
}

$radix
$declaration
{
    struct source source = {given, reverse ? ALL : 0, 0};
    number *const room = work, *const places = stored;
    if (n < 1) return 0;
    if (n > UINT32_MAX) return 1;
    if (n <= $short) {
        for (int64_t i = 0; i < n; ++i) {
            const key k = encode(source.keys[i], source.flip);
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
$calls
    return 0;
}
"""
)

_CALLS = {
    32: "    sort_row(&source, n, places, room, $half, run);",
    64: """\
    const element *const keys = source.keys;
    const key flip = source.flip, first = encode(keys[0], flip);
    key differ = 0;
    for (int64_t i = 0; i < n; ++i) differ |= encode(keys[i], flip) ^ first;
    const int twice = (differ >> 32) != 0;
    sort_row(&source, n, twice ? room : places, twice ? places : room, 32, run);
    if (twice) {
        for (int64_t i = 0; i < n; ++i) room[i] |= encode(keys[room[i]], flip) & ~(number)UINT32_MAX;
        source.made = room;
        sort_row(&source, n, places, room, 32, run);
    }""",
}

# Halves of a range are as long for all values, whatever is found, so that many go side by side.
_SEARCH = Template(
    """\
#define LANES 64
static inline void search(int64_t n, const element *table, int64_t m, const element *values, int64_t *out, int right)
{
    for (int64_t start = 0; start < m; start += LANES) {
        const int64_t count = m - start < LANES ? m - start : LANES;
        key wanted[LANES];
        int64_t first[LANES];
        for (int64_t l = 0; l < LANES; ++l) {
            wanted[l] = encode(values[start + (l < count ? l : 0)], 0);
            first[l] = 0;
        }
        for (int64_t left = n; left > 0;) {
            const int64_t half = left > 1 ? left / 2 : 1;
            for (int64_t l = 0; l < LANES; ++l) {
                const key here = encode(table[first[l] + half - 1], 0);
                first[l] += (right ? here <= wanted[l] : here < wanted[l]) ? half : 0;
            }
            left -= half;
        }
        for (int64_t l = 0; l < count; ++l) out[start + l] = first[l];
    }
}
$declaration
{
    if (right) search(n, given, m, searched, out, 1);
    else search(n, given, m, searched, out, 0);
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
    return "\n".join((head, _SORT.substitute(fields, radix=quicksort(bits) + radix.SORT)))


def _order(bits: int, fields: Mapping[str, object]) -> str:
    head = "typedef uint64_t number __attribute__((may_alias));\n#define LOW 32\n#define QUICK 0\n"
    calls = Template(_CALLS[max(bits, 32)]).substitute(half=bits)
    return "\n".join((head, _ORDER.substitute(fields, radix=radix.SORT, calls=calls)))


def _search(bits: int, fields: Mapping[str, object]) -> str:
    return _SEARCH.substitute(fields)


_TEXTS: Mapping[str, Callable[[int, Mapping[str, object]], str]] = {"sort": _sort, "order": _order, "search": _search}

SHARED = {
    name(f, dtype): Shared(_declaration(f, dtype), partial(_unit, f, dtype)) for f in _SIGNATURES for dtype in _REAL
}
