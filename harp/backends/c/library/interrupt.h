/* Whether a loop is to end, because Python was interrupted; and how many of its steps go between two such questions. */
#ifndef HARP_INTERRUPT_H
#define HARP_INTERRUPT_H

#include "generated.h"

extern HARP_EXPORT int (*harp_interrupted)(void);

/* Scalar operations between two questions, which take some 20 ns each. */
#define HARP_OPERATIONS 1048576.0

/* The first position that does not belong to the block of steps that begins at `from`; `work` is that of a step. */
HARP_INLINE int64_t harp_stop(int64_t from, int64_t end, double work)
{
    const int64_t steps = work < HARP_OPERATIONS ? (int64_t)(HARP_OPERATIONS / (work + 1.0)) + 1 : 1;
    return end - from > steps ? from + steps : end;
}

#endif
