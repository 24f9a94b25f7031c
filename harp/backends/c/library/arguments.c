/* The addresses and sizes of many NumPy arrays at once: Python takes ten times as long to ask each array.
 *
 * An array is a Python object, whose head ends with its type, and then the fields below, which are part of NumPy's
 * binary interface. How long the heads are is what Python says; `arguments.py` tries all this before it is used.
 */
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
/* NumPy's bits for C order and aligned. */
#define BEHAVED 0x101

/* How PyArrayObject_fields begins. */
struct array {
    char *data;
    int rank;
    const intptr_t *sizes, *strides;
    const void *base, *dtype;
    int flags;
};

/* What is asked of an array. */
struct expected {
    intptr_t dtype, rank;
};

/* The bytes before a tuple's items, those of an object's head, and the type of arrays. */
struct layout {
    intptr_t tuple, head, type;
};

EXPORT size_t harp_array_bytes(void) { return sizeof(struct array); }

/* Where the arrays of a tuple lie, and their sizes one after the other; 1 if one is not what is expected. */
EXPORT int harp_read_arrays(const void *tuple, int64_t count, const struct expected *expected,
                            const struct layout *layout, void **places, int64_t *sizes)
{
    const char *const *const items = (const char *const *)(const void *)((const char *)tuple + layout->tuple);
    for (int64_t k = 0; k < count; ++k) {
        const char *const fields = items[k] + layout->head;
        if (((const intptr_t *)(const void *)fields)[-1] != layout->type) return 1;
        const struct array *const array = (const struct array *)(const void *)fields;
        if ((intptr_t)array->dtype != expected[k].dtype || array->rank != expected[k].rank) return 1;
        if ((array->flags & BEHAVED) != BEHAVED) return 1;
        places[k] = array->data;
        for (int axis = 0; axis < array->rank; ++axis) *sizes++ = array->sizes[axis];
    }
    return 0;
}
