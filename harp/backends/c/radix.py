"""The stable radix sort behind `harp.backends.c.sorting`, as C: for any unsigned `number`, from bit LOW on."""

from __future__ import annotations

from string import Template

# Rows up to this length are sorted by insertion; from so many keys on, wide digits of so many bits take less time than
# they save; so many keys, with room for as many, stay in a cache.
SHORT, LONG, WIDE, CACHE = 40, 4096, 11, 1 << 16
# In how many parts threads share a longer row.
SLICES, GROUPS = 16, 64

# A stable sort of keys that differ in `bits` bits from bit `low` on. Long rows are dealt out by the highest of these
# first, so that the passes over the lower ones stay in a cache; these go from the lowest digit on.
_TEXT = Template(
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
        const number *const from = job->from;
        const int64_t last = job->n*(s + 1)/$slices;
        uint32_t *const place = job->place[s];
        memset(place, 0, sizeof job->place[s]);
        for (int64_t i = job->n*s/$slices; i < last; ++i) place[DIGITS(from[i])]++;
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

SORT = _TEXT.substitute(short=SHORT, long=LONG, wide=WIDE, cache=CACHE, slices=SLICES, groups=GROUPS)
