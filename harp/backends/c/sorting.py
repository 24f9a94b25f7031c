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

# A stable sort of keys that differ in `bits` bits from bit `low` on. Long rows are dealt out by the highest of these
# first, so that the passes over the lower ones stay in a cache; these go from the lowest digit on.
_RADIX = Template(
    """\
#define DIGITS(k) ((uint32_t)((k) >> shift) & mask)

/* Where the keys with each digit begin; 0 if all have the same. */
static int begins(int64_t n, const number *from, int shift, uint32_t mask, uint32_t *place)
{
    memset(place, 0, ((size_t)mask + 1)*sizeof *place);
    for (int64_t i = 0; i < n; ++i) place[DIGITS(from[i])]++;
    if (place[DIGITS(from[0])] == (uint32_t)n) return 0;
    uint32_t before = 0;
    for (uint32_t d = 0; d <= mask; ++d) {
        const uint32_t count = place[d];
        place[d] = before;
        before += count;
    }
    return 1;
}

static void deal(int64_t n, const number *from, number *to, int shift, uint32_t mask, uint32_t *place)
{
    for (int64_t i = 0; i < n; ++i) {
        const number k = from[i];
        to[place[DIGITS(k)]++] = k;
    }
}

/* Sorts a short row in place. */
static void insert(int64_t n, number *row)
{
    for (int64_t i = 1; i < n; ++i) {
        const number k = row[i];
        int64_t j = i;
        for (; j > 0 && row[j - 1] >> LOW > k >> LOW; --j) row[j] = row[j - 1];
        row[j] = k;
    }
}

/* Sorts what is at `from` and leaves it at `from` or `to`: where `at_to` says. */
static void sort(int64_t n, number *from, number *to, int bits, int at_to)
{
    uint32_t place[1 << $wide], first[1 << $wide];
    if (n <= $short) {
        insert(n, from);
    } else if (n > $cache && bits > $wide) {
        const int shift = LOW + bits - $wide;
        const uint32_t mask = (1 << $wide) - 1;
        if (!begins(n, from, shift, mask, place)) {
            sort(n, from, to, bits - $wide, at_to);
            return;
        }
        memcpy(first, place, sizeof first);
        deal(n, from, to, shift, mask, place);
        for (uint32_t d = 0; d <= mask; ++d) {
            const int64_t begin = first[d], count = place[d] - first[d];
            if (count) sort(count, to + begin, from + begin, bits - $wide, !at_to);
        }
        return;
    } else {
        const int digit = n < $long ? 8 : $wide;
        for (int done = 0; done < bits; done += digit) {
            const int shift = LOW + done;
            const uint32_t mask = (1u << (bits - done < digit ? bits - done : digit)) - 1;
            if (!begins(n, from, shift, mask, place)) continue; /* all keys share the digit */
            deal(n, from, to, shift, mask, place);
            number *const other = from;
            from = to;
            to = other;
            at_to = !at_to;
        }
    }
    if (at_to) memcpy(to, from, (size_t)n*sizeof *to);
}

/* What threads share of a long row: slices of it to count and to deal out, and then groups of the digits. */
struct job {
    int64_t n;
    number *from, *to;
    int bits;
    uint32_t begin[(1 << $wide) + 1], group[$groups + 1], place[$slices][1 << $wide];
};

static void count_slices(void *given, int64_t begin, int64_t end)
{
    struct job *const job = given;
    const int shift = LOW + job->bits - $wide;
    const uint32_t mask = (1 << $wide) - 1;
    for (int64_t s = begin; s < end; ++s) {
        memset(job->place[s], 0, sizeof job->place[s]);
        for (int64_t i = job->n*s/$slices; i < job->n*(s + 1)/$slices; ++i) job->place[s][DIGITS(job->from[i])]++;
    }
}

static void deal_slices(void *given, int64_t begin, int64_t end)
{
    struct job *const job = given;
    for (int64_t s = begin; s < end; ++s) {
        const int64_t first = job->n*s/$slices, last = job->n*(s + 1)/$slices;
        deal(last - first, job->from + first, job->to, LOW + job->bits - $wide, (1 << $wide) - 1, job->place[s]);
    }
}

static void sort_groups(void *given, int64_t begin, int64_t end)
{
    struct job *const job = given;
    for (uint32_t d = job->group[begin]; d < job->group[end]; ++d) {
        const int64_t first = job->begin[d], count = job->begin[d + 1] - first;
        if (count) sort(count, job->to + first, job->from + first, job->bits - $wide, 0);
    }
}

/* Where each slice puts what it has of each digit, and groups of about equally many keys; 0 if all share the digit. */
static int divide(struct job *job)
{
    int64_t before = 0, group = 0;
    for (uint32_t d = 0; d < 1 << $wide; ++d) {
        const int64_t begin = before;
        job->begin[d] = (uint32_t)before;
        for (; group <= $groups && group*job->n/$groups <= before; ++group) job->group[group] = d;
        for (int s = 0; s < $slices; ++s) {
            const uint32_t count = job->place[s][d];
            job->place[s][d] = (uint32_t)before;
            before += count;
        }
        if (before - begin == job->n) return 0;
    }
    job->begin[1 << $wide] = (uint32_t)before;
    for (; group <= $groups; ++group) job->group[group] = 1 << $wide;
    return 1;
}

/* With all threads, by the highest of `bits` that differ; how many are below these if there are none. */
static __attribute__((noinline)) int sort_long(int64_t n, number *from, number *to, int bits, runner *run)
{
    struct job job;
    job.n = n, job.from = from, job.to = to;
    for (job.bits = bits; job.bits > $wide; job.bits -= $wide) {
        run(count_slices, &job, $slices, 2.0*(double)n);
        if (!divide(&job)) continue; /* all keys share the digit */
        run(deal_slices, &job, $slices, 4.0*(double)n);
        run(sort_groups, &job, $groups, 16.0*(double)n);
        return 0;
    }
    return job.bits;
}

/* Sorts what is at `from` and leaves it at `to`. */
static void sort_row(int64_t n, number *from, number *to, int bits, runner *run)
{
    if (n > $cache && bits > $wide) bits = sort_long(n, from, to, bits, run);
    if (bits) sort(n, from, to, bits, 1);
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

# Rows up to this length are sorted by insertion; from so many keys on, wide digits of so many bits take less time than
# they save; so many keys, with room for as many, stay in a cache.
_SHORT, _LONG, _WIDE, _CACHE = 40, 4096, 11, 1 << 16
# In how many parts threads share a longer row.
_SLICES, _GROUPS = 16, 64

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


def declarations() -> dict[str, str]:
    """The declaration of each of the functions, by its name."""
    return {name(f, dtype): f"{_declaration(f, dtype)};\n" for f in _SIGNATURES for dtype in _REAL}


def units(words: Iterable[str]) -> list[Unit]:
    """The units with those of the functions that are mentioned."""
    mentioned = set(words)
    return [_unit(f, dtype) for f in _SIGNATURES for dtype in _REAL if name(f, dtype) in mentioned]


def _declaration(function: str, dtype: DType) -> str:
    return Template(_SIGNATURES[function]).substitute(name=name(function, dtype))


def _unit(function: str, dtype: DType) -> Unit:
    bits = 8 * dtype.itemsize
    fields: dict[str, object] = {
        "key": f"uint{bits}_t", "last": str(bits - 1), "infinite": str(_infinite(dtype)), "short": str(_SHORT),
        "encode": _ENCODE[dtype.kind], "decode": _DECODE[dtype.kind], "declaration": _declaration(function, dtype),
        "special": _SPECIAL if dtype.is_float else "0", "bits": bits, "wide": _WIDE, "long": _LONG, "cache": _CACHE,
        "slices": _SLICES, "groups": _GROUPS,
    }  # fmt: skip
    text = _HEAD.substitute(fields) + "\n" + _TEXTS[function](bits, fields)
    return Unit(f"/* {name(function, dtype)}: see harp.backends.c.sorting */\n{text}", ("-O3",), shared=True)


_SPECIAL = "(keys[i] == TOP) | ((keys[i] & (key)~TOP) > INFINITE)"


def _infinite(dtype: DType) -> int:
    """The bits of infinity; no matter for integers."""
    return int(np.asarray(np.inf, dtype.numpy).view(f"u{dtype.itemsize}")) if dtype.is_float else 0


def _sort(bits: int, fields: Mapping[str, object]) -> str:
    head = "typedef element number;\n#define LOW 0\n"
    return "\n".join((head, _RADIX.substitute(fields), _SORT.substitute(fields)))


def _order(bits: int, fields: Mapping[str, object]) -> str:
    head = "typedef uint64_t number __attribute__((may_alias));\n#define LOW 32\n"
    body = _ORDER.substitute(fields, high=_HIGH if bits > 32 else "", half=min(bits, 32))
    return "\n".join((head, _RADIX.substitute(fields), body))


def _search(bits: int, fields: Mapping[str, object]) -> str:
    return _SEARCH.substitute(fields)


_TEXTS: Mapping[str, Callable[[int, Mapping[str, object]], str]] = {"sort": _sort, "order": _order, "search": _search}
