/* Long loops let Python handle signals: it does so only when it runs.
 *
 * They ask every few milliseconds. Python is called a few times in a second, for it may take some milliseconds to get
 * the interpreter's lock from another thread. A thread that helps with a job of the pool does not call Python: it
 * looks at the status of the job, which the thread sets that has begun it.
 *
 * When Python ends, it goes on in one thread only. A program that runs in another one is told to end, and is not let
 * into Python, where its thread would end in the middle of what calls it.
 */
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <pthread.h>
#endif
#include <stdint.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
/* Between two calls of Python, in nanoseconds. */
#define ASK_AFTER 200000000

/* The status of the job that this thread works on, and whether another thread has begun it (pool.c sets both). */
_Thread_local int *harp_job_status, harp_helps;

static _Thread_local int64_t since;

static int harp_nobody(void) { return 0; }

/* Set to functions of Python: to the last one where it has a function that says whether it ends. */
typedef int harp_function(int64_t number, const char *layout, const void *const *arrays, const int64_t *sizes);
EXPORT int (*harp_ask_python)(void) = harp_nobody;
EXPORT harp_function *harp_function_of_python;
EXPORT int (*harp_python_ends)(void) = harp_nobody;

/* Python ends in the main thread. */
static int is_main(void)
{
#if defined(__linux__)
    return syscall(SYS_gettid) == getpid();
#elif defined(__APPLE__)
    return pthread_main_np();
#else
    return 0;
#endif
}

static int is_over(void) { return harp_python_ends() && !is_main(); }

EXPORT int harp_interrupt_call(int64_t number, const char *layout, const void *const *arrays, const int64_t *sizes)
{
    return is_over() || harp_function_of_python(number, layout, arrays, sizes);
}

EXPORT int harp_interrupt_poll(void)
{
    int *const job = harp_job_status;
    if (job && __atomic_load_n(job, __ATOMIC_RELAXED)) return 1;
    if (harp_helps) return 0;
    struct timespec time;
    if (!is_over()) {
        if (clock_gettime(CLOCK_MONOTONIC, &time) != 0) return 0;
        const int64_t now = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
        if (now - since < ASK_AFTER) return 0;
        since = now;
        if (!harp_ask_python()) return 0;
    }
    if (job) __atomic_store_n(job, 1, __ATOMIC_RELAXED);
    return 1;
}
