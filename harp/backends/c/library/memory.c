/* Scratch memory that is kept between calls: a stack for each thread, shared by all programs.
 *
 * Fresh memory costs a page fault for every page at its first use, which for large arrays takes longer than filling
 * them. So a thread keeps what its last calls needed, up to a bound, in huge pages where it is large. What does not fit
 * is a block of its own, and the stack grows as soon as nothing is in it. After some calls that needed less than a
 * quarter it shrinks. It is freed when the thread ends, and when the thread has made no call for some seconds: a
 * thread of this file looks for such stacks as long as there are large ones.
 */
#ifdef __linux__
#include <sys/mman.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define LINE 64
#define HUGE_PAGE (2 << 20)
/* The most bytes that a thread keeps; fewer are not worth to be given back; calls between two looks at what is needed;
 * milliseconds between two looks at which threads make calls. */
#define MOST_KEPT (INT64_C(1) << 29)
#define FEW (1 << 20)
#define CALLS 64
#define PATIENCE 10000

struct stack {
    char *base;
    int64_t size, used; /* bytes that are kept, and that are taken now */
    int64_t most;       /* that were taken at the same time since the last look */
    int64_t beside;     /* in blocks of their own, now */
    int calls;
    int ended;        /* the thread ends, and keeps nothing any more */
    atomic_int busy;  /* one thread at a time changes a stack: its own during a call, or the one that looks */
    unsigned uses;    /* how often the first memory of a call was taken */
    unsigned noticed; /* the same when somebody looked */
    int listed;
    struct stack *next;
};

static _Thread_local struct stack mine;

/* All that have been large; whether a thread looks at them, and how often. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct stack *stacks;
static int looked_at;
static _Atomic int64_t patience = PATIENCE;

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

static void wait_a_moment(int64_t milliseconds)
{
    const struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static void seize(struct stack *stack)
{
    while (atomic_exchange_explicit(&stack->busy, 1, memory_order_acquire)) wait_a_moment(0);
}

static void leave(struct stack *stack) { atomic_store_explicit(&stack->busy, 0, memory_order_release); }

/* Nothing of it is taken. */
static void forget(struct stack *stack)
{
    free(stack->base);
    stack->base = NULL;
    stack->size = stack->most = 0;
}

/* Free large stacks that nobody has used since the last time; whether others are left. */
static int free_idle(void)
{
    int left = 0;
    for (struct stack *stack = stacks; stack != NULL; stack = stack->next) {
        if (atomic_exchange_explicit(&stack->busy, 1, memory_order_acquire)) {
            left = 1;
            continue;
        }
        if (stack->size > FEW && stack->uses == stack->noticed) forget(stack);
        stack->noticed = stack->uses;
        left |= stack->size > FEW;
        leave(stack);
    }
    return left;
}

static void *look(void *unused)
{
    int left = 1;
    while (left) {
        wait_a_moment(atomic_load(&patience));
        pthread_mutex_lock(&mutex);
        left = looked_at = free_idle();
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

/* With the mutex. Without a thread that looks, memory is kept until its thread ends. */
static void start_looking(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &before); /* signals are the main thread's */
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    looked_at = pthread_create(&thread, &attributes, look, NULL) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* The thread ends. What other libraries do at its end may call programs after that. */
static void end(void *given)
{
    struct stack *const stack = given;
    pthread_mutex_lock(&mutex);
    for (struct stack **place = &stacks; *place != NULL; place = &(*place)->next)
        if (*place == stack) {
            *place = stack->next;
            break;
        }
    pthread_mutex_unlock(&mutex);
    forget(stack);
    stack->ended = 1;
}

static void before_fork(void) { pthread_mutex_lock(&mutex); }

static void after_fork(void) { pthread_mutex_unlock(&mutex); }

/* Other threads are not there, and their stacks are lost. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&mutex, NULL);
    looked_at = 0;
    stacks = mine.listed && !mine.ended ? &mine : NULL;
    mine.next = NULL;
}

static void prepare(void)
{
    pthread_key_create(&at_end, end);
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* Keep so many bytes instead; the stack is empty. */
static void resize(int64_t bytes)
{
    free(mine.base);
    mine.base = bytes > 0 ? allocate(bytes) : NULL;
    mine.size = mine.base == NULL ? 0 : bytes;
    if (mine.base == NULL) return;
    pthread_once(&once, prepare);
    pthread_setspecific(at_end, &mine);
    if (mine.size <= FEW) return;
    pthread_mutex_lock(&mutex);
    if (!mine.listed) {
        mine.next = stacks;
        stacks = &mine;
        mine.listed = 1;
    }
    if (!looked_at) start_looking();
    pthread_mutex_unlock(&mutex);
}

/* Nothing is taken: make room for what the last calls needed. */
static void adapt(void)
{
    if (mine.ended) return;
    if (mine.most > mine.size && mine.most <= MOST_KEPT) resize(mine.most);
    if (++mine.calls < CALLS) return;
    if (mine.size > FEW && mine.most < mine.size / 4) resize(mine.most);
    mine.calls = 0;
    mine.most = 0;
}

static int is_empty(void) { return mine.used == 0 && mine.beside == 0; }

/* Memory on a cache line, or NULL. */
EXPORT void *harp_memory_take(int64_t bytes)
{
    if (bytes >= INT64_MAX / 4) return NULL;
    bytes = (bytes + LINE) / LINE * LINE;
    const int first = is_empty();
    if (first) seize(&mine);
    if (mine.used + mine.beside + bytes > mine.most) mine.most = mine.used + mine.beside + bytes;
    if (first) {
        ++mine.uses;
        adapt();
    }
    if (bytes <= mine.size - mine.used) {
        mine.used += bytes;
        return mine.base + mine.used - bytes;
    }
    int64_t *const block = allocate(bytes + LINE);
    if (block == NULL) {
        if (first) leave(&mine);
        return NULL;
    }
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
    } else {
        int64_t *const own = (int64_t *)(void *)(block - LINE);
        mine.beside -= *own;
        free(own);
    }
    if (is_empty()) leave(&mine);
}

/* Bytes that this thread keeps. */
EXPORT int64_t harp_memory_kept(void)
{
    const int first = is_empty();
    if (first) seize(&mine);
    const int64_t size = mine.size;
    if (first) leave(&mine);
    return size;
}

/* Give what this thread keeps back to the system, if no call is running. */
EXPORT void harp_memory_release(void)
{
    if (!is_empty()) return;
    seize(&mine);
    resize(0);
    leave(&mine);
}

/* How long a thread keeps memory without a call: between one and two times as many milliseconds. */
EXPORT void harp_memory_set_patience(int64_t milliseconds) { atomic_store(&patience, milliseconds); }
