/* Loops that may never end let Python handle signals: it does so only when it runs.
 *
 * They ask every few steps. Python is called a few times in a second, for it may take some milliseconds to get the
 * interpreter's lock from another thread.
 */
#include <stdint.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
/* Between two calls of Python, in nanoseconds. */
#define PATIENCE 200000000

static int harp_nobody(void) { return 0; }

/* Set to a function of Python. */
EXPORT int (*harp_ask_python)(void) = harp_nobody;

EXPORT int harp_interrupt_poll(int64_t *since)
{
    struct timespec time;
    if (clock_gettime(CLOCK_MONOTONIC, &time) != 0) return 0;
    const int64_t now = (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
    if (*since == 0) *since = now;
    if (now - *since < PATIENCE) return 0;
    *since = now;
    return harp_ask_python();
}
