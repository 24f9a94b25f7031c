/* A stable radix sort of any unsigned `number`, from bit LOW on: D. E. Knuth, The Art of Computer Programming, volume
 * 3, section 5.2.5. Short rows are sorted by insertion.
 *
 * Rows that no cache holds, and numbers of many bits, are distributed by the highest bits first (MSD); what has these
 * in common goes from the lowest digit on (LSD), two digits for each time that it is read to count. It goes to room
 * that is used again for each part of a row, so that what is written to is in the L1 cache, and back. Digits that
 * all keys share cost no pass. Threads share long rows.
 *
 * Where the order of equal numbers is no matter and the machine can, vectors sort them instead (QUICKSORT): also what
 * the first digit has distributed, where several threads share a row.
 *
 * Who includes it says where numbers come from and what becomes of them when they are in order:
 *
 *     struct source                                                    the keys
 *     int take(const struct source *, begin, count, number *to)        some of them as numbers; whether any is special
 *     void finish(const struct source *, count, number *row)           numbers in order to what is wanted */

enum {
    SHORT = 40,      /* rows up to this length are sorted by insertion */
    LONG = 2500,     /* from so many keys on, wide digits take less time than they save */
    WIDE = 11,       /* bits of a wide digit */
    CACHE = 1 << 18, /* so many keys, with room for as many, stay in a cache */
    FIRST =
        10, /* bits of the first digit of a row that no cache holds: more places cannot be written to at full speed */
    TINY = 12,            /* rows up to this length are not worth vectors */
    SLICES = 16,          /* in how many slices threads share a longer row */
    GROUPS = 64,          /* and groups of its digits */
    MOST_ALONE = 1 << 26, /* a longer row is sorted in groups by one thread, too, which asks for interrupts */
    STOPPED = 2,          /* the result of a sort that has not gone to its end */
    BLOCK = 512           /* how many numbers are made at a time */
};

#include "sort/quicksort.h"

/* A digit of the number k: the bits of `mask` from `shift` on. */
#define DIGIT(k) ((uint32_t)((k) >> shift) & mask)

/* Counts to where the keys with each digit begin; 0 if all have the same, which is that of `k`. */
static int to_offsets(int64_t n, number k, int shift, uint32_t mask, uint32_t *place)
{
    if (place[DIGIT(k)] == (uint32_t)n) return 0;
    uint32_t before = 0;
    for (uint32_t d = 0; d <= mask; ++d) {
        const uint32_t count = place[d];
        place[d] = before;
        before += count;
    }
    return 1;
}

static inline void count_digits(int64_t n, const number *from, int shift, uint32_t mask, uint32_t *place)
{
    for (int64_t i = 0; i < n; ++i) place[DIGIT(from[i])]++;
}

static inline void distribute(int64_t n, const number *restrict from, number *restrict to, int shift, uint32_t mask,
                              uint32_t *restrict place)
{
    for (int64_t i = 0; i < n; ++i) {
        const number k = from[i];
        to[place[DIGIT(k)]++] = k;
    }
}

/* How many bits there are up to the highest one that is set. */
static inline int width(number bits) { return bits ? 64 - __builtin_clzll(bits) : 0; }

/* Sorts a short row in place. */
static void insertion_sort(int64_t n, number *row)
{
    for (int64_t i = 1; i < n; ++i) {
        const number k = row[i];
        int64_t j = i;
        for (; j > 0 && row[j - 1] >> LOW > k >> LOW; --j) row[j] = row[j - 1];
        row[j] = k;
    }
}

/* From the lowest digit on; 1 if the row is in `room` then. */
static int lsd_radix_sort(int64_t n, number *row, number *room, int bits)
{
    uint32_t place[2][1 << WIDE];
    const int widest = n < LONG ? 8 : WIDE, passes = (bits + widest - 1) / widest;
    const int digit = (bits + passes - 1) / passes;
    const uint32_t mask = (1u << digit) - 1;
    number *from = row, *to = room;
    for (int pass = 0; pass < passes; pass += 2) {
        const int shift = LOW + pass * digit, two = pass + 1 < passes;
        for (int k = 0; k <= two; ++k) memset(place[k], 0, ((size_t)mask + 1) * sizeof place[k][0]);
        if (two) {
            for (int64_t i = 0; i < n; ++i) {
                const number k = from[i] >> shift;
                place[0][(uint32_t)k & mask]++;
                place[1][(uint32_t)(k >> digit) & mask]++;
            }
        } else {
            count_digits(n, from, shift, mask, place[0]);
        }
        for (int k = 0; k <= two; ++k) {
            if (!to_offsets(n, from[0], shift + k * digit, mask, place[k])) continue; /* all keys share the digit */
            distribute(n, from, to, shift + k * digit, mask, place[k]);
            number *const other = from;
            from = to;
            to = other;
        }
    }
    return from == room;
}

/* Sorts what is at `row` and leaves it there, or at `room` where `across` says so. */
static void radix_sort(int64_t n, number *row, number *room, int bits, int across)
{
    int there = 0;
    if (n <= SHORT) {
        insertion_sort(n, row);
    } else if (n > CACHE && bits > WIDE) {
        uint32_t place[1 << WIDE] = {0}, first[1 << WIDE];
        const int left = bits - WIDE, shift = LOW + left;
        const uint32_t mask = (1 << WIDE) - 1;
        count_digits(n, row, shift, mask, place);
        if (!to_offsets(n, row[0], shift, mask, place)) {
            radix_sort(n, row, room, left, across);
            return;
        }
        memcpy(first, place, sizeof first);
        distribute(n, row, room, shift, mask, place);
        for (uint32_t d = 0; d <= mask; ++d) {
            const int64_t begin = first[d], many = place[d] - first[d];
            if (many) radix_sort(many, room + begin, row + begin, left, !across);
        }
        return;
    } else if (bits > 0) {
        there = lsd_radix_sort(n, row, room, bits);
    }
    if (there != across) memcpy(there ? row : room, there ? room : row, (size_t)n * sizeof *row);
}

/* In place, and finished. */
static void sort_part(const struct source *source, int64_t n, number *row, number *room, int bits)
{
#if QUICKSORT
    if (n > TINY) {
        quicksort(source, n, row, room, bits, 0, QUICKSORT_DEPTH);
        return;
    }
#endif
    radix_sort(n, row, room, bits, 0);
    finish(source, n, row);
}

/* What threads share of a long row: slices of it to count and to distribute, and then groups of the digits. */
struct job {
    int status, least; /* as those of harp_job */
    const struct source *source;
    int64_t n;
    number *row, *room, differ[SLICES];
    int bits, alone, special[SLICES];
    uint32_t begin[(1 << FIRST) + 1], group[GROUPS + 1], place[SLICES][1 << FIRST];
};

#if QUICKSORT
static void take_slices(void *given, int64_t begin, int64_t end)
{
    struct job *const job = given;
    for (int64_t s = begin; s < end; ++s) {
        const int64_t first = job->n * s / SLICES, last = job->n * (s + 1) / SLICES;
        job->special[s] = take(job->source, first, last - first, job->row + first);
    }
    if (end - begin == SLICES && job->n <= MOST_ALONE) job->alone = 1;
}
#endif

static void count_slices(void *given, int64_t begin, int64_t end)
{
    struct job *const job = given;
    const int shift = LOW + job->bits - FIRST;
    const uint32_t mask = (1 << FIRST) - 1;
    number block[BLOCK], first;
    take(job->source, 0, 1, &first);
    for (int64_t s = begin; s < end; ++s) {
        const int64_t last = job->n * (s + 1) / SLICES;
        number differ = 0;
        int special = 0;
        memset(job->place[s], 0, sizeof job->place[s]);
        for (int64_t i = job->n * s / SLICES; i < last; i += BLOCK) {
            const int64_t many = last - i < BLOCK ? last - i : BLOCK;
            special |= take(job->source, i, many, block);
            for (int64_t j = 0; j < many; ++j) differ |= block[j] ^ first;
            count_digits(many, block, shift, mask, job->place[s]);
        }
        job->differ[s] = differ >> LOW;
        job->special[s] = special;
    }
}

static void distribute_slices(void *given, int64_t begin, int64_t end)
{
    struct job *const job = given;
    number block[BLOCK];
    for (int64_t s = begin; s < end; ++s) {
        const int64_t last = job->n * (s + 1) / SLICES;
        for (int64_t i = job->n * s / SLICES; i < last; i += BLOCK) {
            const int64_t many = last - i < BLOCK ? last - i : BLOCK;
            take(job->source, i, many, block);
            distribute(many, block, job->row, LOW + job->bits - FIRST, (1 << FIRST) - 1, job->place[s]);
        }
    }
}

static void sort_groups(void *given, int64_t begin, int64_t end)
{
    struct job *const job = given;
    number *const room = job->room + job->begin[job->group[begin]];
    for (uint32_t d = job->group[begin]; d < job->group[end]; ++d) {
        const int64_t first = job->begin[d], many = job->begin[d + 1] - first;
        if (!many) continue;
        sort_part(job->source, many, job->row + first, room, job->bits - FIRST);
    }
}

/* Where each slice puts what it has of each digit, and groups of about equally many keys; 0 if all share the digit. */
static int divide(struct job *job)
{
    int64_t before = 0, group = 0;
    for (uint32_t d = 0; d < 1 << FIRST; ++d) {
        const int64_t begin = before;
        job->begin[d] = (uint32_t)before;
        for (; group <= GROUPS && group * job->n / GROUPS <= before; ++group) job->group[group] = d;
        for (int s = 0; s < SLICES; ++s) {
            const uint32_t many = job->place[s][d];
            job->place[s][d] = (uint32_t)before;
            before += many;
        }
        if (before - begin == job->n) return 0;
    }
    job->begin[1 << FIRST] = (uint32_t)before;
    for (; group <= GROUPS; ++group) job->group[group] = 1 << FIRST;
    return 1;
}

/* With all threads, by the highest bits that differ. STOPPED if Python was interrupted. */
static __attribute__((noinline)) int sort_long(const struct source *source, int64_t n, number *row, number *room,
                                               int bits, harp_runner *run)
{
    struct job job;
    job.source = source, job.n = n, job.row = row, job.room = room, job.bits = bits;
    job.status = 0, job.least = SLICES;
    number differ = 0;
    int special = 0;
#if QUICKSORT
    job.alone = 0;
    run(take_slices, &job, SLICES, (double)n);
    if (job.status) return STOPPED;
    if (job.alone) {
        for (int s = 0; s < SLICES; ++s) special |= job.special[s];
        sort_part(source, n, row, room, bits);
        return special;
    }
#endif
    job.least = 1;
    run(count_slices, &job, SLICES, 2.0 * (double)n);
    if (job.status) return STOPPED;
    for (int s = 0; s < SLICES; ++s) differ |= job.differ[s], special |= job.special[s];
    if (!divide(&job)) { /* all keys share the digit: by the next one that differs, if there is one */
        if (!differ) {
            take(source, 0, n, row);
            finish(source, n, row);
            return special;
        }
        job.bits = width(differ) < FIRST ? FIRST : width(differ);
        run(count_slices, &job, SLICES, 2.0 * (double)n);
        if (job.status) return STOPPED;
        divide(&job);
    }
    run(distribute_slices, &job, SLICES, 4.0 * (double)n);
    if (job.status) return STOPPED;
    run(sort_groups, &job, GROUPS, 16.0 * (double)n);
    return job.status ? STOPPED : special;
}

/* Sorts numbers that differ in `bits` bits and leaves them at `row`; whether any of them is special, or STOPPED. */
static int sort_row(const struct source *source, int64_t n, number *row, number *room, int bits, harp_runner *run)
{
    if (n > CACHE && bits > WIDE) return sort_long(source, n, row, room, bits, run);
    const int special = take(source, 0, n, row);
    number differ = 0;
    if (n > SHORT && !QUICKSORT)
        for (int64_t i = 1; i < n; ++i) differ |= row[i] ^ row[0];
    else if (n > SHORT)
        differ = (number) ~(number)0;
    sort_part(source, n, row, room, width(differ >> LOW));
    return special;
}
