/* Scratch memory that is kept between calls: a stack for each thread, shared by all programs.
 *
 * Fresh memory costs a page fault for every page at its first use, which for large arrays takes longer than filling
 * them. So a thread keeps what its last calls needed, up to a bound, in huge pages where it is large. What does not fit
 * is a block of its own, and the stack grows as soon as nothing is in it. After some calls that needed less than a
 * quarter it shrinks; it is freed when the thread ends.
 */
#ifdef __linux__
#define _GNU_SOURCE
#include <sys/mman.h>
#endif
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
#define LINE 64
#define HUGE_PAGE (2 << 20)
/* The most bytes that a thread keeps; fewer are not worth to be given back; calls between two looks at what is needed.
 */
#define MOST_KEPT (INT64_C(1) << 29)
#define FEW (1 << 20)
#define CALLS 64

static _Thread_local struct {
    char *base;
    int64_t size, used; /* bytes that are kept, and that are taken now */
    int64_t most;       /* that were taken at the same time since the last look */
    int64_t beside;     /* in blocks of their own, now */
    int calls;
} mine;

static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *allocate(int64_t bytes)
{
    void *block = NULL;
    const size_t alignment = bytes >= 2 * HUGE_PAGE ? HUGE_PAGE : LINE;
    if (posix_memalign(&block, alignment, (size_t)bytes) != 0) return NULL;
#ifdef MADV_HUGEPAGE
    if (alignment == HUGE_PAGE) madvise(block, (size_t)bytes, MADV_HUGEPAGE);
#endif
    return block;
}

/* The thread ends. What other libraries do at its end may call programs after that. */
static void end(void *block)
{
    free(block);
    mine.base = NULL;
    mine.size = mine.used = mine.most = 0;
}

static void prepare(void) { pthread_key_create(&at_end, end); }

/* Keep so many bytes instead; the stack is empty. */
static void resize(int64_t bytes)
{
    pthread_once(&once, prepare);
    free(mine.base);
    mine.base = bytes > 0 ? allocate(bytes) : NULL;
    mine.size = mine.base == NULL ? 0 : bytes;
    pthread_setspecific(at_end, mine.base);
}

/* Nothing is taken: make room for what the last calls needed. */
static void adapt(void)
{
    if (mine.most > mine.size && mine.most <= MOST_KEPT) resize(mine.most);
    if (++mine.calls < CALLS) return;
    if (mine.size > FEW && mine.most < mine.size / 4) resize(mine.most);
    mine.calls = 0;
    mine.most = 0;
}

/* Memory on a cache line, or NULL. */
EXPORT void *harp_memory_take(int64_t bytes)
{
    if (bytes >= INT64_MAX / 4) return NULL;
    bytes = (bytes + LINE) / LINE * LINE;
    if (mine.used + mine.beside + bytes > mine.most) mine.most = mine.used + mine.beside + bytes;
    if (mine.used == 0 && mine.beside == 0) adapt();
    if (bytes <= mine.size - mine.used) {
        mine.used += bytes;
        return mine.base + mine.used - bytes;
    }
    int64_t *const block = allocate(bytes + LINE);
    if (block == NULL) return NULL;
    *block = bytes;
    mine.beside += bytes;
    return (char *)block + LINE;
}

/* Give back what was taken last, of what has not been given back. */
EXPORT void harp_memory_give(void *taken)
{
    char *const block = taken;
    if (block == NULL) return;
    if (mine.base != NULL && block >= mine.base && block < mine.base + mine.size) {
        mine.used = block - mine.base;
        return;
    }
    int64_t *const own = (int64_t *)(void *)(block - LINE);
    mine.beside -= *own;
    free(own);
}

/* Bytes that this thread keeps. */
EXPORT int64_t harp_memory_kept(void) { return mine.size; }

/* Give what this thread keeps back to the system, if no call is running. */
EXPORT void harp_memory_release(void)
{
    if (mine.used == 0) resize(0);
}
