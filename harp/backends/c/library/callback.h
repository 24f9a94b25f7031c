/* How a program calls a function of Python, by its number: 0, or 1 if the program is to end. The layout says of which
   dtypes and ranks the arrays are, and the sizes are those of the calls and then of each array. */
#ifndef HARP_CALLBACK_H
#define HARP_CALLBACK_H

#include "generated.h"

extern HARP_EXPORT int (*harp_call_python)(int64_t number, const char *layout, const void *const *arrays,
                                           const int64_t *sizes);

#endif
