/* What all programs of a process share, as one unit. */
#ifdef __linux__
#define _GNU_SOURCE
#endif
#include "interrupt.c"

#include "arguments.c"
#include "memory.c"
#include "pool.c"
