/* Whether a loop that may never end is to end, because Python was interrupted. `since` is 0 when it begins. */
#ifndef HARP_INTERRUPT_H
#define HARP_INTERRUPT_H

#include "generated.h"

extern HARP_EXPORT int (*harp_interrupted)(int64_t *since);

#endif
