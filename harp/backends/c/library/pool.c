/* The threads of the process, shared by all programs: one job at a time, in chunks that whoever is free claims.
 *
 * The caller works too, and never waits for a thread that has not claimed a chunk: a sleeping or slow thread costs
 * nothing but its help. A caller that finds the pool busy, or is inside a part itself, does its job alone. Threads are
 * started with the first job that is worth it, and forgotten in a forked child, which starts its own.
 *
 * A job is published by the word `state`: its number in the high half, the next chunk in the low half. Claiming is a
 * compare-and-swap of this word, so a thread that has read the fields of an old job cannot claim a chunk of a new one.
 *
 * A chunk is done in blocks of some milliseconds, as the work of the job says. When the status of the job is not 0,
 * because a part has failed or Python was interrupted, the blocks that remain are left out.
 */
#ifdef __linux__
#include <sched.h>
#include <unistd.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define CLOSED 0xffffffffu
#define MOST_THREADS 256
#define CHUNKS_PER_THREAD 4
/* Rounds of waiting before a thread sleeps: some tens of microseconds. */
#define SPINS 2000
/* Rounds of waiting for the others between two questions whether Python was interrupted: some milliseconds. */
#define ROUNDS 65536
/* So many threads are kept off the caller's core; machines with more cores have idle ones that are found anyway. */
#define MOST_MOVED 16

typedef void part_function(void *given, int64_t begin, int64_t end);
typedef struct {
    int status, least; /* as process.h says */
} harp_job;

/* interrupt.c */
extern _Thread_local int *harp_job_status, harp_helps;
int harp_interrupt_poll(void);

static _Alignas(64) _Atomic uint64_t state = CLOSED;
static _Alignas(64) _Atomic int64_t finished;
static _Alignas(64) _Atomic(part_function *) job_part;
static _Atomic(void *) job_given;
static _Atomic int64_t job_count, job_chunks, job_block;

static atomic_int limit = 1, started, asleep;
static atomic_flag busy = ATOMIC_FLAG_INIT;
static _Thread_local int inside, threads_here;
static pthread_mutex_t waiting = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static pthread_t helpers[MOST_THREADS]; /* it and its cores belong to whoever has set `busy` */
#ifdef __linux__
static cpu_set_t cores_of_helpers; /* empty: not all have been told yet */
#endif

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

static inline int is_open(uint64_t word, uint32_t seen)
{
    return (uint32_t)(word >> 32) != seen && (uint32_t)word != CLOSED;
}

/* How many iterations a block has. */
static int64_t block_of(const harp_job *job, int64_t count, double work)
{
    const double steps = work > HARP_POOL_BLOCK_WORK ? (double)count * (HARP_POOL_BLOCK_WORK / work) : (double)count;
    return steps < job->least ? job->least : (int64_t)steps;
}

/* Some iterations, block by block until the job is to end. */
static void run(part_function *part, void *given, int64_t begin, int64_t end, int64_t block)
{
    int *const status = &((harp_job *)given)->status;
    while (begin < end && !__atomic_load_n(status, __ATOMIC_RELAXED)) {
        const int64_t stop = end - begin > block ? begin + block : end;
        part(given, begin, stop);
        if (stop < end && harp_interrupt_poll()) __atomic_store_n(status, 1, __ATOMIC_RELAXED);
        begin = stop;
    }
}

/* Work on the current job until no chunk is left; the number of the job. */
static uint32_t help(void)
{
    for (;;) {
        uint64_t word = atomic_load_explicit(&state, memory_order_acquire);
        part_function *const part = atomic_load_explicit(&job_part, memory_order_relaxed);
        void *const given = atomic_load_explicit(&job_given, memory_order_relaxed);
        const int64_t count = atomic_load_explicit(&job_count, memory_order_relaxed);
        const int64_t chunks = atomic_load_explicit(&job_chunks, memory_order_relaxed);
        const int64_t block = atomic_load_explicit(&job_block, memory_order_relaxed);
        const int64_t chunk = (uint32_t)word;
        if ((uint32_t)word == CLOSED || chunk >= chunks) return (uint32_t)(word >> 32);
        if (!atomic_compare_exchange_weak_explicit(&state, &word, word + 1, memory_order_acq_rel, memory_order_relaxed))
            continue;
        const int64_t each = count / chunks, more = count % chunks;
        const int64_t begin = chunk * each + (chunk < more ? chunk : more);
        harp_job_status = &((harp_job *)given)->status;
        run(part, given, begin, begin + each + (chunk < more), block);
        harp_job_status = NULL;
        atomic_fetch_add_explicit(&finished, 1, memory_order_release);
    }
}

static void *live(void *unused)
{
    uint32_t seen = 0;
    inside = harp_helps = 1;
    for (;;) {
        for (int spins = 0; !is_open(atomic_load_explicit(&state, memory_order_acquire), seen); ++spins) {
            if (spins < SPINS) {
                relax();
                continue;
            }
            pthread_mutex_lock(&waiting);
            atomic_fetch_add(&asleep, 1);
            while (!is_open(atomic_load(&state), seen)) pthread_cond_wait(&wake, &waiting);
            atomic_fetch_sub(&asleep, 1);
            pthread_mutex_unlock(&waiting);
        }
        seen = help();
    }
    return unused;
}

/* Let the threads run where the caller may, but on other cores than the caller: Linux likes to wake a thread on the
 * core of whoever wakes it, where it waits until the caller has done all the work. Where a caller is bound to one core,
 * they may run where the main thread may. */
static void keep_off_this_core(void)
{
#ifdef __linux__
    const int core = sched_getcpu(), count = atomic_load(&started);
    cpu_set_t cores;
    if (core < 0 || core >= CPU_SETSIZE || sched_getaffinity(0, sizeof cores, &cores) != 0) return;
    CPU_CLR(core, &cores);
    if (CPU_COUNT(&cores) == 0 && sched_getaffinity(getpid(), sizeof cores, &cores) == 0) CPU_CLR(core, &cores);
    if (CPU_COUNT(&cores) == 0 || CPU_EQUAL(&cores, &cores_of_helpers)) return;
    for (int i = 0; i < count && i < MOST_MOVED; ++i) pthread_setaffinity_np(helpers[i], sizeof cores, &cores);
    cores_of_helpers = cores;
#endif
}

static void start(int wanted)
{
    sigset_t all, old;
#ifdef __linux__
    CPU_ZERO(&cores_of_helpers);
#endif
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the main thread's */
    while (atomic_load(&started) < wanted) {
        pthread_t thread;
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        const int failed = pthread_create(&thread, &attributes, live, NULL);
        pthread_attr_destroy(&attributes);
        if (failed) break; /* fewer helpers, the same results */
        helpers[atomic_fetch_add(&started, 1)] = thread;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void pool_after_fork(void)
{
    atomic_store(&started, 0);
    atomic_store(&asleep, 0);
    atomic_store(&state, CLOSED);
    atomic_flag_clear(&busy);
    pthread_mutex_init(&waiting, NULL);
    pthread_cond_init(&wake, NULL);
    inside = 0;
    harp_job_status = NULL;
}

__attribute__((constructor)) static void prepare_pool(void) { pthread_atfork(NULL, NULL, pool_after_fork); }

/* How many threads work on a job, the caller included. */
EXPORT void harp_pool_set_threads(int count)
{
    atomic_store(&limit, count < 1 ? 1 : count > MOST_THREADS ? MOST_THREADS : count);
}

/* The same for calls from this thread only; 0 takes that back. */
EXPORT void harp_pool_set_mine(int count)
{
    threads_here = count < 0 ? 0 : count > MOST_THREADS ? MOST_THREADS : count;
}

EXPORT int harp_pool_started(void) { return atomic_load(&started); }

/* All iterations of a parallel loop, unless its status says that it has ended before. */
EXPORT void harp_pool_run(part_function *part, void *given, int64_t count, double work)
{
    const int threads = threads_here ? threads_here : atomic_load_explicit(&limit, memory_order_relaxed);
    if (threads < 2 || count < 2 || work < HARP_POOL_LEAST_WORK || inside ||
        atomic_flag_test_and_set_explicit(&busy, memory_order_acquire)) {
        if (work > HARP_POOL_BLOCK_WORK)
            run(part, given, 0, count, block_of(given, count, work));
        else
            part(given, 0, count);
        return;
    }
    if (atomic_load_explicit(&started, memory_order_relaxed) < threads - 1) start(threads - 1);
    const int64_t most = (int64_t)threads * CHUNKS_PER_THREAD, chunks = count < most ? count : most;
    const uint64_t number = (atomic_load_explicit(&state, memory_order_relaxed) >> 32) + 1;
    atomic_store_explicit(&state, (number - 1) << 32 | CLOSED, memory_order_release);
    atomic_store_explicit(&job_part, part, memory_order_relaxed);
    atomic_store_explicit(&job_given, given, memory_order_relaxed);
    atomic_store_explicit(&job_count, count, memory_order_relaxed);
    atomic_store_explicit(&job_chunks, chunks, memory_order_relaxed);
    atomic_store_explicit(&job_block, block_of(given, count, work), memory_order_relaxed);
    atomic_store_explicit(&finished, 0, memory_order_relaxed);
    atomic_store(&state, number << 32);
    if (atomic_load(&asleep) > 0) {
        keep_off_this_core();
        pthread_mutex_lock(&waiting);
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&waiting);
    }
    inside = 1;
    help();
    harp_job_status = &((harp_job *)given)->status;
    for (unsigned rounds = 1; atomic_load_explicit(&finished, memory_order_acquire) < chunks; ++rounds) {
        relax();
        if (rounds % ROUNDS == 0) harp_interrupt_poll();
    }
    harp_job_status = NULL;
    inside = 0;
    atomic_flag_clear_explicit(&busy, memory_order_release);
}
