/* Quicksort in vectors of AVX-512: numbers of 32 or 64 bits.
 *
 * A row is partitioned by a pivot: of each vector, the numbers below the pivot go to where the row is
 * wanted, and the others to the other one of two arrays. What fits into eight vectors is sorted
 * in registers by a network. C. A. R. Hoare: "Quicksort", The Computer Journal 5 (1962); K. E. Batcher: "Sorting
 * networks and their applications", AFIPS 32 (1968). Equal numbers change places, so it is for numbers that are all
 * there is to a key.
 *
 * It is part of radix_sort.h, and defines QUICKSORT, which tests set to 0. With -fsanitize=thread, gcc 12 inserts calls
 * and loses vectors that live across them (with -mtune=skylake-avx512; not with -O1, nor without the sanitizer). */
#ifndef QUICKSORT
#if defined(__AVX512F__) && HARP_BITS >= 32 && !defined(__SANITIZE_THREAD__)
#define QUICKSORT 1
#else
#define QUICKSORT 0
#endif
#endif
#if QUICKSORT

/* How often pivots may be bad before digits are used, and the distance of the numbers of which a pivot is chosen. */
#ifndef QUICKSORT_DEPTH
#define QUICKSORT_DEPTH 64
#endif
#ifndef QUICKSORT_SPREAD
#define QUICKSORT_SPREAD(n) ((n) / (2 * LANES))
#endif

#if HARP_BITS == 32
#define LANES 16
#define D "d"
#define BITS "32"
#define ORDER ((vector){0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}) /* the number of each lane */
typedef uint16_t lanes;
#else
#define LANES 8
#define D "q"
#define BITS "64"
#define ORDER ((vector){0, 1, 2, 3, 4, 5, 6, 7})
typedef uint8_t lanes;
#endif

#define AHEAD 64                           /* vectors that are fetched before they are read */
#define SOME(n) ((lanes)((1u << (n)) - 1)) /* the first n lanes, n < LANES */

static void radix_sort(int64_t n, number *row, number *room, int bits, int across);

typedef number vector __attribute__((vector_size(64), aligned(sizeof(number)), may_alias));

/* The instructions are named: gcc reads the 46,000 lines of immintrin.h in 0.2 s. */

static inline vector least(vector a, vector b)
{
    __asm__("vpminu" D " %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}

static inline vector greatest(vector a, vector b)
{
    __asm__("vpmaxu" D " %1, %0, %0" : "+v"(a) : "v"(b));
    return a;
}

/* x[places[i]] for all i */
static inline vector permuted(vector x, vector places)
{
    __asm__("vperm" D " %0, %1, %0" : "+v"(x) : "v"(places));
    return x;
}

/* The same of a and b, one behind the other. */
static inline vector permuted_of_two(vector a, vector places, vector b)
{
    __asm__("vpermt2" D " %2, %1, %0" : "+v"(a) : "v"(places), "v"(b));
    return a;
}

/* Of the two results of `exchange`, lanes of `upper` get the greater one. */
static inline vector choose(vector a, vector b, lanes upper)
{
    vector chosen = least(a, b);
    __asm__("vpmaxu" D " %3, %2, %0%{%1%}" : "+v"(chosen) : "Yk"(upper), "v"(a), "v"(b));
    return chosen;
}

static inline lanes are_below(vector a, vector b, int or_equal)
{
    lanes below;
    if (or_equal)
        __asm__("vpcmpleu" D " %2, %1, %0" : "=Yk"(below) : "v"(a), "v"(b));
    else
        __asm__("vpcmpltu" D " %2, %1, %0" : "=Yk"(below) : "v"(a), "v"(b));
    return below;
}

/* These lanes first; zeros follow. */
static inline vector compressed(vector x, lanes chosen)
{
    __asm__("vpcompress" D " %0, %0%{%1%}%{z%}" : "+v"(x) : "Yk"(chosen));
    return x;
}

/* Some lanes from memory, the others of x. */
static inline vector loaded(vector x, lanes some, const number *from)
{
    __asm__("vmovdqu" BITS " %2, %0%{%1%}" : "+v"(x) : "Yk"(some), "m"(*(const vector *)from));
    return x;
}

static inline void stored(vector x, lanes some, number *to)
{
    __asm__("vmovdqu" BITS " %2, %0%{%1%}" : "+m"(*(vector *)to) : "Yk"(some), "v"(x));
}

/* Lanes change places with those whose numbers differ from theirs in the bits of `by`. */
static inline vector across_lanes(vector x, int by) { return permuted(x, ORDER ^ (number)by); }

static inline void exchange(vector *a, vector *b)
{
    const vector low = least(*a, *b);
    *b = greatest(*a, *b);
    *a = low;
}

#define EXCHANGE(i, j) exchange(&x[i], &x[j])

/* What is sorted in groups of lanes becomes sorted in groups of twice as many: first with those of the other group in
   reverse, then at half the distance each time. A lane holds as many numbers that follow each other as vectors. */
static inline __attribute__((always_inline)) void merge(vector *x, int count, int group)
{
    const lanes upper[] = {(lanes)0xAAAA, (lanes)0xCCCC, (lanes)0xF0F0, (lanes)0xFF00};
    for (int i = 0; i < count / 2; ++i) {
        const vector a = x[i], b = across_lanes(x[count - 1 - i], (2 << group) - 1);
        x[i] = choose(a, b, upper[group]);
        x[count - 1 - i] = across_lanes(choose(a, b, (lanes)~upper[group]), (2 << group) - 1);
    }
    for (int half = group - 1; half >= 0; --half)
        for (int i = 0; i < count; ++i) x[i] = choose(x[i], across_lanes(x[i], 1 << half), upper[half]);
    if (count == 8)
        for (int i = 0; i < 4; ++i) exchange(&x[i], &x[i + 4]);
    for (int i = 0; i < count; i += 4) exchange(&x[i], &x[i + 2]), exchange(&x[i + 1], &x[i + 3]);
    for (int i = 0; i < count; i += 2) exchange(&x[i], &x[i + 1]);
}

/* Lanes of a and b in turn: those of the first halves, or of the second ones. */
static inline vector interleave(vector a, vector b, int second)
{
    const vector place = (ORDER >> 1) + (ORDER & 1) * LANES;
    return permuted_of_two(a, place + (number)(second * (LANES / 2)), b);
}

/* Sorts at most count*LANES numbers, for 4 or 8 vectors. */
static inline __attribute__((always_inline)) void sorting_network(int64_t n, const number *from, number *to, int count)
{
    const vector last = ~(vector){0};
    const int64_t whole = n / LANES;
    const lanes rest = SOME(n % LANES);
    vector x[8];
    for (int i = 0; i < count; ++i) {
        const lanes some = i < whole ? (lanes)~0u : i == whole ? rest : 0;
        x[i] = loaded(last, some, from + i * LANES);
    }
    /* In each lane: four vectors, the other four, and all eight (Batcher's odd-even merges). */
    EXCHANGE(0, 1), EXCHANGE(2, 3), EXCHANGE(0, 2), EXCHANGE(1, 3), EXCHANGE(1, 2);
    if (count == 8) {
        EXCHANGE(4, 5), EXCHANGE(6, 7), EXCHANGE(4, 6), EXCHANGE(5, 7), EXCHANGE(5, 6);
        EXCHANGE(0, 4), EXCHANGE(1, 5), EXCHANGE(2, 6), EXCHANGE(3, 7), EXCHANGE(2, 4), EXCHANGE(3, 5);
        EXCHANGE(1, 2), EXCHANGE(3, 4), EXCHANGE(5, 6);
    }
    merge(x, count, 0);
    merge(x, count, 1);
    merge(x, count, 2);
    if (LANES == 16) merge(x, count, 3);
    for (int step = count / 2; step; step /= 2) { /* lane l of vector i to place count*l + i */
        for (int i = 0; i < count; ++i) {
            if (i & step) continue;
            const vector a = x[i], b = x[i + step];
            x[i] = interleave(a, b, 0);
            x[i + step] = interleave(a, b, 1);
        }
    }
    for (int i = 0; i < count; ++i) {
        const lanes some = i < whole ? (lanes)~0u : i == whole ? rest : 0;
        stored(x[i], some, to + i * LANES);
    }
}

static __attribute__((noinline)) void sort_in_registers(int64_t n, const number *from, number *to)
{
    if (n <= 4 * LANES)
        sorting_network(n, from, to, 4);
    else
        sorting_network(n, from, to, 8);
}

/* A number with about as many below it as above it: the middle one of LANES. */
static inline number choose_pivot(int64_t n, const number *row)
{
    const int64_t spread = QUICKSORT_SPREAD(n);
    vector sample, rank = {0};
    for (int i = 0; i < LANES; ++i) sample[i] = row[n / 2 + (2 * i - (LANES - 1)) * spread];
    for (int i = 0; i < LANES; ++i) rank -= (vector)(sample > sample[i]);
    number pivot = 0;
    for (int i = 0; i < LANES; ++i) pivot = rank[i] <= LANES / 2 && sample[i] > pivot ? sample[i] : pivot;
    return pivot;
}

/* Puts what is below the pivot to `lows` and the rest to `highs`, in no order; how many are below it. With `equal`,
   what equals the pivot is below it. One of the two may be `from` itself: no more is stored than has been read. */
static inline int64_t partition(int64_t n, const number *from, number *lows, number *highs, number pivot, int equal)
{
    const vector border = (vector){0} + pivot;
    const int64_t whole = n - n % LANES;
    int64_t low = 0;
    int64_t i = 0;
    for (; i + 4 * LANES <= whole; i += 4 * LANES) {
        vector x[4];
        lanes less[4];
        for (int k = 0; k < 4; ++k) {
            __builtin_prefetch(from + i + (AHEAD + k) * LANES);
            x[k] = *(const vector *)(from + i + k * LANES);
            less[k] = are_below(x[k], border, equal);
        }
        for (int k = 0; k < 4; ++k) {
            *(vector *)(lows + low) = compressed(x[k], less[k]);
            *(vector *)(highs + (i + k * LANES - low)) = compressed(x[k], (lanes)~less[k]);
            low += __builtin_popcount(less[k]);
        }
    }
    for (; i < whole; i += LANES) {
        const vector x = *(const vector *)(from + i);
        const lanes less = are_below(x, border, equal);
        *(vector *)(lows + low) = compressed(x, less);
        *(vector *)(highs + (i - low)) = compressed(x, (lanes)~less);
        low += __builtin_popcount(less);
    }
    const lanes rest = SOME(n % LANES);
    const vector x = loaded((vector){0}, rest, from + whole);
    const lanes less = (lanes)(rest & are_below(x, border, equal));
    const lanes more = (lanes)(rest & ~less);
    const int last = __builtin_popcount(less);
    stored(compressed(x, less), SOME(last), lows + low);
    stored(compressed(x, more), SOME(__builtin_popcount(more)), highs + (whole - low));
    return low + last;
}

/* Sorts what is at `row` and leaves it there, or at `room` where `across` says so, finished: by digits where pivots
   were bad `left` times. */
static void quicksort(const struct source *source, int64_t n, number *row, number *room, int bits, int across, int left)
{
    number *const to = across ? room : row, *const other = across ? row : room;
    if (n <= 8 * LANES || !left) {
        if (left)
            sort_in_registers(n, row, to);
        else
            radix_sort(n, row, room, bits, across);
        finish(source, n, to);
        return;
    }
    const number pivot = choose_pivot(n, row);
    int64_t low = partition(n, row, to, other, pivot, 0);
    if (low) {
        quicksort(source, low, to, other + (n - low), bits, 0, left - 1);
    } else { /* it is the least number: what equals it is in order */
        low = partition(n, other, to, other, pivot, 1);
        finish(source, low, to);
    }
    if (low < n) quicksort(source, n - low, other, to + low, bits, 1, left - 1);
}
#endif
