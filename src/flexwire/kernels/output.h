/* A block of memory that grows while it is written. */
#ifndef FLEXWIRE_OUTPUT_H
#define FLEXWIRE_OUTPUT_H
#include <Python.h>
#include <stdint.h>
typedef struct { uint8_t *begin, *at, *end; } Output;

/* Makes room for so many bytes more; returns where to write them, NULL without memory. */
static __attribute__((noinline, cold, unused)) uint8_t *grow(Output *out, int64_t count) {
    int64_t size = 2 * (out->end - out->begin) + count, used = out->at - out->begin;
    uint8_t *grown = PyMem_Realloc(out->begin, (size_t)size);
    if (!grown) return NULL;
    out->begin = grown;
    out->end = grown + size;
    return out->at = grown + used;
}
#endif
