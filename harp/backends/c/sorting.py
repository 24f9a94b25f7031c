"""Sorting and searching rows: the functions behind the calls, each compiled once for a machine.

    harp_sort_f32(n, keys, out, work, flip)      the keys in order
    harp_order_f32(n, keys, out, work, flip)     their places in order
    harp_search_f32(n, table, m, values, out, right)

Keys become unsigned numbers of the same order: a sign bit is turned, negative floats are turned round, all NaN are the
largest number, and both zeros are one. These are sorted by a stable radix sort from the lowest digit on (Knuth, The
Art of Computer Programming, volume 3, section 5.2.5), short rows by insertion. Digits that all keys share cost no
pass. Descending is ascending with all bits of the keys turned over (`flip`), so equal keys keep their order. Places go
with 32 bits of the key in one number; keys of 64 bits are sorted by their low half, and then by their high half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from string import Template

import numpy as np

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

# Counts the digits, then goes from the lowest to the highest; the sorted keys are where the result points to.
_RADIX = Template(
    """\
static number *$name(int64_t n, number *from, number *to)
{
    static const int digit = $digit, passes = $passes, low = $low;
    uint32_t counts[$passes][1 << $digit];
    memset(counts, 0, sizeof counts);
    for (int64_t i = 0; i < n; ++i)
        for (int p = 0; p < passes; ++p) counts[p][from[i] >> (low + p*digit) & $mask]++;
    for (int p = 0; p < passes; ++p) {
        const int shift = low + p*digit;
        uint32_t *const place = counts[p];
        if (place[from[0] >> shift & $mask] == (uint32_t)n) continue; /* all keys share the digit */
        uint32_t before = 0;
        for (int d = 0; d < 1 << digit; ++d) {
            const uint32_t count = place[d];
            place[d] = before;
            before += count;
        }
        for (int64_t i = 0; i < n; ++i) {
            const number k = from[i];
            to[place[k >> shift & $mask]++] = k;
        }
        number *const other = from;
        from = to;
        to = other;
    }
    return from;
}
"""
)

_INSERT = """\
static void insert(int64_t n, number *from)
{
    for (int64_t i = 1; i < n; ++i) {
        const number k = from[i];
        int64_t j = i;
        for (; j > 0 && from[j - 1] > k; --j) from[j] = from[j - 1];
        from[j] = k;
    }
}
"""

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
    element *sorted = room;
    if (n <= $short) {
        insert(n, room);
    } else {
        sorted = $choice;
    }
    int64_t zeros = 0, nans = reverse ? 0 : n;
    if (special) { /* the numbers below them are counted */
        for (int64_t i = 0; i < n; ++i) {
            zeros += sorted[i] < (key)(TOP ^ flip);
            nans -= !reverse && sorted[i] == ALL;
        }
    }
    for (int64_t i = 0; i < n; ++i) out[i] = decode(sorted[i], flip);
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
    number *sorted = radix(n, room, places);
$high
    for (int64_t i = 0; i < n; ++i) places[i] = (uint32_t)sorted[i];
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
            const number place = (uint32_t)sorted[i];
            sorted[i] = (encode(keys[place], flip) & ~(number)UINT32_MAX) | place;
        }
        sorted = radix(n, sorted, sorted == room ? places : room);
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

# Rows up to this length are sorted by insertion; from so many keys on, wide digits take less time than they save.
_SHORT, _LONG = 40, 4096

_SIGNATURES = {
    "sort": "int $name(int64_t n, const void *given, void *stored, void *work, int reverse)",
    "order": "int $name(int64_t n, const void *given, void *stored, void *work, int reverse)",
    "search": "void $name(int64_t n, const void *given, int64_t m, const void *searched, int64_t *out, int right)",
}


def name(function: str, dtype: DType) -> str:
    """The name of a function for keys of this dtype."""
    return f"harp_{function}_{dtype.name}"


def declarations() -> dict[str, str]:
    """The declaration of each of the functions, by its name."""
    return {name(f, dtype): f"{_declaration(f, dtype)};\n" for f in _SIGNATURES for dtype in ALL}


def units(words: Iterable[str]) -> list[Unit]:
    """The units with those of the functions that are mentioned."""
    mentioned = set(words)
    return [_unit(f, dtype) for f in _SIGNATURES for dtype in ALL if name(f, dtype) in mentioned]


def _declaration(function: str, dtype: DType) -> str:
    return Template(_SIGNATURES[function]).substitute(name=name(function, dtype))


def _unit(function: str, dtype: DType) -> Unit:
    bits = 8 * dtype.itemsize
    fields = {
        "key": f"uint{bits}_t", "last": str(bits - 1), "infinite": str(_infinite(dtype)), "short": str(_SHORT),
        "encode": _ENCODE[dtype.kind], "decode": _DECODE[dtype.kind], "declaration": _declaration(function, dtype),
        "special": _SPECIAL if dtype.is_float else "0",
    }  # fmt: skip
    text = _HEAD.substitute(fields) + "\n" + _TEXTS[function](bits, fields)
    return Unit(f"/* {name(function, dtype)}: see harp.backends.c.sorting */\n{text}", shared=True)


_SPECIAL = "(keys[i] == TOP) | ((keys[i] & (key)~TOP) > INFINITE)"


def _infinite(dtype: DType) -> int:
    """The bits of infinity; no matter for integers."""
    return int(np.asarray(np.inf, dtype.numpy).view(f"u{dtype.itemsize}")) if dtype.is_float else 0


def _radix(title: str, digit: int, bits: int, low: int) -> str:
    fields = {"digit": digit, "passes": -(-bits // digit), "low": low, "mask": (1 << digit) - 1, "name": title}
    return _RADIX.substitute(fields)


def _sort(bits: int, fields: Mapping[str, str]) -> str:
    narrow = _radix("radix", 8, bits, 0)
    wide = _radix("radix_wide", 11, bits, 0) if bits > 16 else ""
    choice = f"n < {_LONG} ? radix(n, room, out) : radix_wide(n, room, out)" if wide else "radix(n, room, out)"
    body = _SORT.substitute(fields, choice=choice)
    return "\n".join(("typedef element number;\n", _INSERT, narrow, wide, body))


def _order(bits: int, fields: Mapping[str, str]) -> str:
    head = "typedef uint64_t number __attribute__((may_alias));\n"
    body = _ORDER.substitute(fields, high=_HIGH if bits > 32 else "")
    return "\n".join((head, _radix("radix", 8, min(bits, 32), 32), body))


def _search(bits: int, fields: Mapping[str, str]) -> str:
    return _SEARCH.substitute(fields)


_TEXTS: Mapping[str, Callable[[int, Mapping[str, str]], str]] = {"sort": _sort, "order": _order, "search": _search}
