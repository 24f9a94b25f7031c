/* Memory for the time of a call, or of a part of a loop: a thread gives back last what it took first. */
#ifndef HARP_MEMORY_H
#define HARP_MEMORY_H

#include "generated.h"

/* Aligned to 64 bytes; NULL on failure. The process has these functions once, for all programs (memory.c). */
extern HARP_EXPORT void *(*harp_take)(int64_t bytes);
extern HARP_EXPORT void (*harp_give)(void *block);

#endif
